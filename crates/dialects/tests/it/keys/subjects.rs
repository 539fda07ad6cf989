//! The readers that the tables are compared with, and the problems that each reports but no schema can express.

use super::sample::{Route, routes};
use jsonschema::Validator;
use serde_json::{Value as Json, json};
use windlass_dialects::cases::read_cases;
use windlass_dialects::keys::{ELSEWHERE, Key, LANGUAGES, Language, schema};
use windlass_dialects::{Dialect, Options, Text, load, read_schedules};
use windlass_ir::{Code, Diagnostic};

/// A kind of file whose reader is compared with its table.
pub struct Subject {
    pub name: &'static str,
    pub read: fn(Text) -> Vec<Diagnostic>,
    /// Codes of problems that the reader reports but no schema can: references, graphs, expressions, cron patterns.
    /// `CODE KEY` is that code at one key only.
    beyond_schema: &'static [&'static str],
    /// Test files with YAML 1.1 values, which schema validators read differently.
    pub other_yaml: &'static [&'static str],
}

/// One line per reader.
const SUBJECTS: &[Subject] = &[
    Subject { name: "swdl", read: |file| load_as(file, Dialect::Swdl), beyond_schema: SWDL, other_yaml: &[] },
    Subject {
        name: "speckit",
        read: |file| load_as(file, Dialect::Speckit),
        beyond_schema: SPECKIT,
        other_yaml: &["err_yaml.yml", "ok_all_types.yml", "warn_yaml11.yml"],
    },
    Subject {
        name: "dagnats",
        read: |file| load_as(file, Dialect::Dagnats),
        beyond_schema: DAGNATS,
        other_yaml: &[],
    },
    Subject { name: "dcc", read: |file| load_as(file, Dialect::Dcc), beyond_schema: DCC, other_yaml: &[] },
    Subject {
        name: "schedules",
        read: |file| read_schedules(file).diagnostics,
        beyond_schema: &["bad_cron", "bad_time", "bad_path", "duplicate_trigger"],
        other_yaml: &[],
    },
    Subject {
        name: "cases",
        read: |file| read_cases(file).diagnostics,
        beyond_schema: &["duplicate_key"],
        other_yaml: &[],
    },
];

pub fn subjects() -> impl Iterator<Item = &'static Subject> {
    SUBJECTS.iter()
}

const SWDL: &[&str] = &[
    // Names that must exist, and graphs
    "duplicate_stage_id",
    "duplicate_trigger",
    "bad_duration",
    "unknown_stage",
    "cycle",
    "bad_target",
    "missing_parameter",
    // Keys that depend on another key
    "bad_number quorum",
    "missing_field default",
    "gate_bypassed",
    // Expressions
    "expression_syntax",
    "expression_limit",
    "expression_type",
    "expression_value",
    "unknown_namespace",
    "unknown_function",
    "bad_arity",
    "unknown_parameter",
    "unknown_output",
    "unknown_field",
    "unknown_env",
    "unknown_secret",
    "secret_exposed",
    "unsafe_quoting",
    "not_an_ancestor",
    "not_available_here",
    // Values with their own grammar
    "bad_cron",
    "bad_time",
    "bad_schema",
    "bad_default",
];

const SPECKIT: &[&str] = &[
    // Names that must exist, or must not
    "step_id_duplicate",
    "verdict_input_undeclared",
    "verdict_input_in_fan_out",
    "verdict_input_cannot_reset",
    "wait_for_self",
    "wait_for_unknown_or_later",
    "slot_in_fan_out",
    // Keys that depend on another key
    "input_default_invalid",
    "gate_no_reject_option",
    // Expressions, and keys that are equal only in YAML 1.1
    "expression_syntax",
    "unknown_function",
    "bad_arity",
    "condition_not_one_block",
    "condition_block_unclosable",
    "duplicate_key",
];

const DAGNATS: &[&str] = &[
    // Names that must exist, and graphs
    "duplicate_stage_id",
    "duplicate_trigger",
    "unknown_stage",
    "cycle",
    "bad_target",
    "not_an_ancestor",
    // Two distant keys that contradict each other, and two triggers with one id
    "conflicting_keys",
    "duplicate_key",
    // Values with their own grammar, and limits on durations
    "bad_cron",
    "bad_time",
    "bad_schema",
    "bad_duration",
];

const DCC: &[&str] = &[
    "duplicate_stage_id",
    "expression_syntax",
    // A delay that is longer than the maximum
    "bad_number",
];

fn load_as(file: Text, dialect: Dialect) -> Vec<Diagnostic> {
    load(file, Options { dialect: Some(dialect), ..Options::default() }).diagnostics
}

/// A key that is unknown and not similar to any known key.
pub const NO_KEY: &str = "zzz_unknown";

impl Subject {
    pub fn language(&self) -> &'static Language {
        Language::by_name(self.name).expect("a table of this name")
    }

    /// The findings of the reader about a file in which every key can have a meaning: in swdl, where a failure can be
    /// undone.
    pub fn findings(&self, file: &Json) -> Vec<Diagnostic> {
        let mut file = file.clone();
        if self.name == "swdl" && file.get("error_policy").is_none() {
            file["error_policy"] = json!({"on_stage_failure": "rollback"});
        }
        (self.read)(Text { name: "file.json".into(), bytes: file.to_string().into_bytes() })
    }

    pub fn validator(&self, strict: bool) -> Validator {
        jsonschema::validator_for(&schema(self.language(), strict)).expect("a schema that is one")
    }

    /// Every place of a file, every key there, and the smallest file with that key.
    pub fn rows(&self) -> Vec<(Route, &'static Key, Json)> {
        let language = self.language();
        let rows = routes(language).into_iter().flat_map(|route| {
            let keys = route.end.keys(language).into_iter();
            keys.map(|key| (route.clone(), key, self.file_with(&route, key))).collect::<Vec<_>>()
        });
        rows.collect()
    }

    pub fn file_with(&self, route: &Route, key: &Key) -> Json {
        let object = route.end.object(self.language(), Some(key));
        route.file(self.language(), object)
    }

    pub fn is_beyond_schema(&self, finding: &Diagnostic) -> bool {
        let key = finding.field.as_deref().and_then(|field| field.rsplit('.').next()).unwrap_or_default();
        let code = finding.code.as_str();
        self.beyond_schema.iter().any(|beyond| *beyond == code || *beyond == format!("{code} {key}"))
    }

    fn is_foreign(&self, file: &Json) -> bool {
        let semantics = file["config"]["semantics"].as_str();
        semantics.is_some_and(|word| self.language().foreign.contains(&word))
    }

    /// Whether the schema and the reader agree about a file, and if not, how they differ.
    pub fn disagreement(
        &self,
        validator: &Validator,
        file: &Json,
        findings: &[Diagnostic],
    ) -> Option<String> {
        let errors: Vec<&Diagnostic> = findings.iter().filter(|finding| finding.is_error()).collect();
        // No schema can express that the case of keys does not matter.
        let is_lenient = findings.iter().any(|finding| finding.code == Code::KeyCase);
        match validator.validate(file) {
            Err(refusal) if errors.is_empty() && !is_lenient => {
                Some(format!("only the schema refuses it: {refusal} at {}", refusal.instance_path()))
            }
            Err(_) => None,
            // Under the rules of another dialect the schema says next to nothing.
            Ok(()) if self.is_foreign(file) => None,
            Ok(()) => {
                let sayable = errors.iter().find(|finding| !self.is_beyond_schema(finding));
                sayable.map(|finding| {
                    format!("only the reader refuses it: {}: {}", finding.code, finding.message)
                })
            }
        }
    }
}

#[test]
fn every_language_is_compared_with_its_reader() {
    let held = SUBJECTS.iter().map(|subject| subject.name);
    let held: Vec<&str> = held.chain(ELSEWHERE.iter().map(|language| language.name)).collect();
    let languages: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
    assert_eq!(held, languages);
    for subject in SUBJECTS {
        let code = |beyond: &'static str| beyond.split(' ').next().unwrap_or_default();
        let unknown = |beyond: &&&'static str| !Code::ALL.iter().any(|known| known.as_str() == code(beyond));
        let unknown: Vec<&&str> = subject.beyond_schema.iter().filter(unknown).collect();
        assert!(unknown.is_empty(), "{}: there is no code {unknown:?}", subject.name);
    }
}
