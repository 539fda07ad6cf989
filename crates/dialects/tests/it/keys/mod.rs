//! Keeps the key tables correct: each row is compared with the reader of its dialect, the generated schemas agree
//! with the readers on all test files, and the committed copies are up to date.
//!
//! `UPDATE_SCHEMAS=1` and `UPDATE_DOCS=1` rewrite those copies.

mod sample;
mod subjects;

use crate::support::{folder, read};
use jsonschema::Validator;
use sample::{Place, Route, example, routes};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use subjects::{NO_KEY, Subject, subjects};
use windlass_dialects::keys::{CONFIG, Key, LANGUAGES, MOCK, Shape, Status, page, page_of, schema};
use windlass_dialects::text::{Format, Limits};
use windlass_dialects::{Text, text};
use windlass_ir::{Code, Diagnostic, Severity, Source, SourceId};

/// Reports all problems, not only the first.
fn none(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<String> = problems.into_iter().collect();
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

fn names(finding: &Diagnostic, key: &str) -> bool {
    let last = |field: &str| field.rsplit('.').next() == Some(key);
    finding.reference.as_deref() == Some(key) || finding.field.as_deref().is_some_and(last)
}

fn shown(findings: &[Diagnostic]) -> String {
    let shown = findings.iter().map(|finding| format!("{}: {}", finding.code, finding.message));
    shown.collect::<Vec<_>>().join("; ")
}

/// Compares a row of a table with the reader.
fn check_row(subject: &Subject, place: &Place, key: &Key, file: &Json) -> Result<(), String> {
    let findings = subject.findings(file);
    let of_key = |severity| findings.iter().any(|f| f.severity == severity && names(f, key.name));
    let is_unread =
        |f: &&Diagnostic| matches!(f.code, Code::UnknownKey | Code::IgnoredKey) && names(f, key.name);
    let wrong_error = findings.iter().find(|f| f.is_error() && !subject.is_beyond_schema(f));
    let problem = match key.status {
        Status::Supported if findings.iter().any(|f| is_unread(&f)) => "the reader does not support it",
        Status::Supported if wrong_error.is_some() => "the example is refused",
        Status::NoEffect(_) if !of_key(Severity::Hint) && !of_key(Severity::Warning) => "no hint names it",
        Status::Warned(_) if !of_key(Severity::Warning) => "no warning names it",
        Status::Refused(_) if !of_key(Severity::Error) => "no error names it",
        Status::Supported | Status::NoEffect(_) | Status::Warned(_) | Status::Refused(_) => return Ok(()),
    };
    Err(format!("{} {}.{}: {problem}: {}\n  {file}", subject.name, place.name(), key.name, shown(&findings)))
}

#[test]
fn every_row_matches_the_reader() {
    for subject in subjects() {
        let rows = subject.rows();
        assert!(rows.len() > 5, "the rows must be found");
        none(rows.iter().filter_map(|(route, key, file)| check_row(subject, &route.end, key, file).err()));
    }
}

#[test]
fn a_wrong_row_is_detected() {
    let subject = subjects().next().expect("there are readers");
    let (route, key, file) = subject.rows().swap_remove(0);
    let lie = |status| check_row(subject, &route.end, &Key { status, ..*key }, &file).is_err();
    assert!(check_row(subject, &route.end, key, &file).is_ok());
    assert!(lie(Status::Warned("")) && lie(Status::Refused("")) && lie(Status::NoEffect("")));
    let mut object = route.end.object(subject.language(), None);
    object.insert(NO_KEY.into(), json!(1));
    let unknown = Key { name: NO_KEY, ..*key };
    assert!(check_row(subject, &route.end, &unknown, &route.file(subject.language(), object)).is_err());
}

fn check_unknown(subject: &Subject, route: &Route) -> Result<(), String> {
    let mut object = route.end.object(subject.language(), None);
    object.insert(NO_KEY.into(), json!(1));
    let file = route.file(subject.language(), object);
    let findings = subject.findings(&file);
    let is_reported = findings.iter().any(|finding| match route.end.refuses_unknown() {
        true => finding.is_error() && !subject.is_beyond_schema(finding),
        false => finding.code == Code::UnknownKey && !finding.is_error() && names(finding, NO_KEY),
    });
    let place = format!("{} {}", subject.name, route.end.name());
    if !is_reported {
        return Err(format!("{place}: `{NO_KEY}` is not reported: {}\n  {file}", shown(&findings)));
    }
    // The message about an unknown key lists those that the reader asked for.
    let of_key = findings.iter().filter(|finding| finding.reference.as_deref() == Some(NO_KEY));
    let lists = of_key.filter_map(|finding| finding.help.strip_prefix("use one of "));
    let known: Vec<&str> = route.end.keys(subject.language()).iter().map(|key| key.name).collect();
    let missing: Vec<&str> =
        lists.flat_map(|keys| keys.split(", ")).filter(|key| !known.contains(key)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("{place}: no row for {}", missing.join(", "))),
    }
}

#[test]
fn a_key_without_a_row_is_reported_everywhere_and_no_row_is_missing() {
    for subject in subjects() {
        none(routes(subject.language()).iter().filter_map(|route| check_unknown(subject, route).err()));
    }
}

#[test]
fn every_block_is_reached_and_every_name_is_known() {
    for language in LANGUAGES {
        let places: Vec<Place> = routes(language).into_iter().map(|route| route.end).collect();
        let reached: BTreeSet<&str> = places
            .iter()
            .flat_map(|place| {
                [place.block.name].into_iter().chain(place.variant.map(|(_, block)| block.name))
            })
            .chain(places.iter().flat_map(Place::includes))
            .collect();
        none(
            language
                .blocks()
                .filter(|block| !reached.contains(block.name))
                .map(|block| format!("{}: nothing leads to `{}`", language.name, block.name)),
        );
        for place in &places {
            let keys: Vec<&str> = place.keys(language).iter().map(|key| key.name).collect();
            let unique: BTreeSet<&str> = keys.iter().copied().collect();
            assert_eq!(keys.len(), unique.len(), "{} {}: {keys:?}", language.name, place.name());
        }
    }
}

/// Values of every shape, most of them invalid for any one key.
fn odd_values() -> Vec<Json> {
    vec![
        json!(null),
        json!(true),
        json!(0),
        json!(7),
        json!(-3),
        json!(0.5),
        json!(5_000_000_000_i64),
        json!(""),
        json!("zzz ?"),
        json!("30s"),
        json!("none"),
        json!([]),
        json!([7]),
        json!(["zzz"]),
        json!([[]]),
        json!([null]),
        json!({}),
        json!({"zzz ?": 1}),
        json!({"zzz": {}}),
    ]
}

/// Agreement at one key of one place: with its example, without it, and with mostly invalid values.
fn disagreements(subject: &Subject, validator: &Validator, route: &Route, key: &Key) -> Vec<String> {
    let language = subject.language();
    let with = |value: Option<Json>| {
        let mut object = route.end.object(language, Some(key));
        match value {
            Some(value) => object.insert(key.name.into(), value),
            None => object.shift_remove(key.name),
        };
        route.file(language, object)
    };
    let values = odd_values().into_iter().map(Some).chain([None, Some(example(language, key))]);
    let found = values.filter_map(|value| {
        let file = with(value.clone());
        let problem = subject.disagreement(validator, &file, &subject.findings(&file))?;
        let value = value.map_or_else(|| "absent".to_owned(), |value| value.to_string());
        Some(format!("{} {}.{} = {value}: {problem}", subject.name, route.end.name(), key.name))
    });
    found.collect()
}

#[test]
fn schema_and_reader_agree_on_every_key() {
    for subject in subjects() {
        let validator = subject.validator(false);
        // A key shared by many places is tested at the first of them.
        let mut tried = BTreeSet::new();
        let mut rows = subject.rows();
        rows.retain(|(_, key, _)| key.status == Status::Supported);
        rows.retain(|(route, key, _)| tried.insert((route.end.home(subject.language(), key), key.name)));
        none(rows.iter().flat_map(|(route, key, _)| disagreements(subject, &validator, route, key)));
    }
}

fn files_below(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that can be listed").path()).collect();
    paths.sort_unstable();
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The test files of this kind.
fn fixtures(subject: &Subject) -> Vec<PathBuf> {
    let of_this_kind = |path: &PathBuf| {
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let ending =
            path.extension().is_some_and(|ending| ["yaml", "yml", "json"].iter().any(|e| ending == *e));
        ending
            && !subject.other_yaml.contains(&&*name)
            && name != "expected.json"
            && !name.contains("overrides")
            && !path.ends_with("15-overrides-project.yaml")
    };
    files_below(&folder(subject.name)).into_iter().filter(of_this_kind).collect()
}

/// The tree of a file as JSON; `None` if it has none, or an incomplete one.
fn tree(file: &Text) -> Option<Json> {
    let source = Source::new(&*file.name, String::from_utf8(file.bytes.clone()).ok()?);
    let format = if file.name.ends_with(".json") { Format::Json } else { Format::Yaml };
    let read = text::read(&source, SourceId(0), format, &Limits::default());
    let is_whole = !read.diagnostics.iter().any(Diagnostic::is_error);
    read.root.filter(|_| is_whole)?.to_value().to_json()
}

#[test]
fn schema_and_reader_agree_on_every_fixture() {
    for subject in subjects() {
        let validator = subject.validator(false);
        let mut problems = Vec::new();
        let mut count = (0, 0);
        for path in fixtures(subject) {
            let file = read(&path);
            let Some(json) = tree(&file) else { continue };
            let findings = (subject.read)(file);
            count = if validator.is_valid(&json) { (count.0 + 1, count.1) } else { (count.0, count.1 + 1) };
            let problem = subject.disagreement(&validator, &json, &findings);
            problems.extend(problem.map(|problem| format!("{}: {problem}", path.display())));
        }
        none(problems);
        assert!(count.0 > 3 && count.1 > 1, "{}: good and bad files must be found: {count:?}", subject.name);
    }
}

/// A strict schema also refuses keys that cause a warning, and nothing else.
#[test]
fn a_strict_schema_refuses_keys_without_effect() {
    for subject in subjects() {
        let (open, strict) = (subject.validator(false), subject.validator(true));
        for route in routes(subject.language()) {
            let mut object = route.end.object(subject.language(), None);
            let file = route.file(subject.language(), object.clone());
            assert_eq!(open.is_valid(&file), strict.is_valid(&file), "{file}");
            object.insert(NO_KEY.into(), json!(1));
            let file = route.file(subject.language(), object);
            assert!(!strict.is_valid(&file), "{} {}: {file}", subject.name, route.end.name());
            let warned = |key: &&'static Key| matches!(key.status, Status::Warned(_));
            for key in route.end.keys(subject.language()).into_iter().filter(warned) {
                let file = subject.file_with(&route, key);
                assert!(
                    !strict.is_valid(&file),
                    "{} {}.{}: {file}",
                    subject.name,
                    route.end.name(),
                    key.name
                );
            }
        }
    }
}

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Compares a committed file with the generated one, or writes it if the variable is set.
fn check_copy(name: &str, text: &str, variable: &str) {
    let path = repository(name);
    if std::env::var_os(variable).is_some() {
        std::fs::create_dir_all(path.parent().expect("a file in a folder"))
            .expect("a folder of the repository");
        std::fs::write(&path, text).expect("a file of the repository");
    }
    let copy = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(copy == text, "{name} is outdated; rewrite it with {variable}=1");
}

#[test]
fn the_committed_schemas_are_up_to_date() {
    for language in LANGUAGES {
        let text = serde_json::to_string_pretty(&schema(language, false)).expect("JSON") + "\n";
        check_copy(&format!("schemas/{}.schema.json", language.name), &text, "UPDATE_SCHEMAS");
    }
}

#[test]
fn the_committed_pages_are_up_to_date() {
    const OF_MOCK: &str = "\
A mock file responds for agents, tools, tasks, requests and people, so that a workflow runs without them: `windlass run
WORKFLOW.yaml --mock FILE`. It is YAML or JSON. A [test case](../guides/testing.md) has the same content under `script`.

```yaml
steps:
  review:
    - error: { class: rate_limit, message: try again, retry_after: 5s }
    - { takes: 3m, outputs: { verdict: approved } }
  each[2]: [{ output: 7 }]
gates:
  sign-off: [{ action: approve, by: dana, after: 1h, fields: { ticket: T-1 } }]
signals:
  - { name: build-finished, value: { ok: true }, at: 5m }
```

A step that the file does not mention fails with [no_mock_response](../errors/no_mock_response.md), unless it is a command,
a task with a command, or a call of another workflow: those run for real.";
    const OF_CONFIG: &str = "\
The settings of a project on this machine. [Configuration](../guides/configuration.md) explains which file applies and how
the commands of tasks are called. `windlass validate windlass.toml` checks a file.

```toml
[tasks.\"lint.run\"]
command = [\"./tools/lint.sh\"]

[limits]
processes = 4

[runs]
recover = \"interrupt\"
```";
    check_copy("docs/reference/keys.md", &page(), "UPDATE_DOCS");
    check_copy("docs/reference/mock-file.md", &page_of(&MOCK, OF_MOCK), "UPDATE_DOCS");
    check_copy("docs/reference/windlass-toml.md", &page_of(&CONFIG, OF_CONFIG), "UPDATE_DOCS");
}

/// The examples of the tables match their own shapes.
#[test]
fn every_example_matches_its_schema() {
    for language in LANGUAGES {
        let validator = jsonschema::validator_for(&schema(language, false)).expect("a schema that is one");
        for route in routes(language) {
            let supported = |key: &&&'static Key| key.status == Status::Supported;
            for key in route.end.keys(language).iter().filter(supported) {
                let file = route.file(language, route.end.object(language, Some(key)));
                let refusal = validator.validate(&file).err().map(|error| error.to_string());
                assert_eq!(refusal, None, "{} {}.{}: {file}", language.name, route.end.name(), key.name);
            }
        }
    }
}

/// Whether a shape contains anything useful to an editor.
#[test]
fn schemas_describe_themselves() {
    for language in LANGUAGES {
        let json = schema(language, false);
        assert!(
            json["$id"].as_str().is_some_and(|id| id.ends_with(&format!("/{}.schema.json", language.name)))
        );
        let definitions = json["$defs"].as_object().map_or_else(Map::new, Clone::clone);
        let all = definitions.values().chain([&json]);
        for properties in all.filter_map(|definition| definition["properties"].as_object()) {
            for (name, property) in properties {
                let description = property["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{}: `{name}` has no description", language.name);
            }
        }
    }
    assert!(matches!(LANGUAGES[0].top().keys[0].shape, Shape::Block("workflow")));
}
