//! What is wrong with a file: a workflow, or any file that goes with one.

use super::source::{diagnostics, file};
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::{Diagnostic, FileKind, Ref, Validation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::cases::{ENDINGS, read_cases};
use windlass_dialects::dcc::skill::read_skill;
use windlass_dialects::{
    Dialect, Loaded, Options, Text, file_kind, is_overrides, load, read_overlay, read_overrides,
    read_schedules,
};
use windlass_ir::{Code, Sources};
use windlass_runtime::{Config, Fault};

/// Check a file and report everything that is wrong with it: a workflow, schedules, a skill, an overlay, overrides, test cases
/// or a `windlass.toml`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ValidateWorkflow {
    #[serde(flatten)]
    pub of: Ref,
    /// Warnings make the file invalid.
    #[serde(default)]
    pub strict: bool,
}

impl Operation for ValidateWorkflow {
    type Reply = Validation;
    const ABOUT: About = About {
        name: "workflows.validate",
        summary: "Check a workflow",
        subject: Subject::Workflow,
        http: &[Route::post("/workflows/{id}/validate")],
        cli: &["validate"],
        ..About::PURE
    };

    fn example() -> Self {
        Self { of: super::sample(), strict: false }
    }
}

impl Perform for ValidateWorkflow {
    async fn perform(self, cx: &Context) -> Result<Validation, Refusal> {
        let (of, _) = self.of.resolved(cx).await?;
        let (text, options) = of.texts()?;
        let mut found = check(text, options);
        found.judge(self.strict);
        Ok(found)
    }
}

/// A file is what its name and its keys say, unless the caller names a dialect: then it is a workflow.
fn check(text: Text, options: Options) -> Validation {
    let name = text.name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let kind = match () {
        () if options.dialect.is_some() => FileKind::Workflow,
        () if name == "windlass.toml" => FileKind::Config,
        () if ENDINGS.iter().any(|ending| name.ends_with(ending)) => FileKind::Cases,
        () if is_overrides(&text) => FileKind::Overrides,
        () => match file_kind(&text) {
            windlass_dialects::FileKind::Workflow(_) => FileKind::Workflow,
            windlass_dialects::FileKind::Schedules => FileKind::Schedules,
            windlass_dialects::FileKind::Skill => FileKind::Skill,
            windlass_dialects::FileKind::Overlay => FileKind::Overlay,
        },
    };
    let file = text.name.clone();
    let found = match kind {
        FileKind::Workflow => workflow(&load(text, options)),
        FileKind::Schedules => {
            let read = read_schedules(text);
            let entries = read.schedules.len();
            Found { entries, ..Found::new(Some(Dialect::Dcc), &read.diagnostics, &read.sources) }
        }
        FileKind::Skill => {
            let read = read_skill(&text);
            let entries = read.workflows.len() + read.schedules.len();
            Found { entries, ..Found::new(Some(Dialect::Dcc), &read.diagnostics, &read.sources) }
        }
        FileKind::Overlay => {
            let read = read_overlay(text);
            Found {
                entries: read.entries,
                workflow: read.workflows.first().cloned(),
                ..Found::new(Some(Dialect::Speckit), &read.diagnostics, &read.sources)
            }
        }
        FileKind::Overrides => {
            let read = read_overrides(text);
            Found {
                entries: read.entries,
                ..Found::new(Some(Dialect::Swdl), &read.diagnostics, &read.sources)
            }
        }
        FileKind::Cases => {
            let mut read = read_cases(text);
            // An expectation under a wrong key would always be met.
            let unknown = read.diagnostics.iter_mut().filter(|finding| finding.code == Code::UnknownKey);
            unknown.for_each(|finding| finding.severity = windlass_ir::Severity::Error);
            Found { entries: read.cases.len(), ..Found::new(None, &read.diagnostics, &read.sources) }
        }
        FileKind::Config => config(&text),
    };
    Validation {
        file,
        valid: false,
        dialect: found.dialect.map(|dialect| dialect.name().to_owned()),
        workflow: found.workflow,
        diagnostics: found.diagnostics,
        kind: Some(kind),
        entries: found.entries,
        triggers: found.triggers,
    }
}

#[derive(Default)]
struct Found {
    dialect: Option<Dialect>,
    workflow: Option<String>,
    diagnostics: Vec<Diagnostic>,
    entries: usize,
    triggers: usize,
}

impl Found {
    fn new(dialect: Option<Dialect>, findings: &[windlass_ir::Diagnostic], sources: &Sources) -> Self {
        let diagnostics = Diagnostic::list(findings, sources, file(sources).as_deref());
        Self { dialect, diagnostics, ..Self::default() }
    }
}

fn workflow(loaded: &Loaded) -> Found {
    let steps = loaded.plan.iter().flat_map(|plan| &plan.steps).filter(|step| !step.implicit).count();
    Found {
        dialect: Some(loaded.dialect),
        workflow: loaded.workflow.clone(),
        diagnostics: diagnostics(loaded),
        entries: steps,
        triggers: loaded.triggers.len(),
    }
}

fn config(text: &Text) -> Found {
    let faults = match std::str::from_utf8(&text.bytes) {
        Ok(content) => match Config::check(content) {
            Ok(entries) => return Found { entries, ..Found::default() },
            Err(faults) => faults,
        },
        Err(_) => vec![Fault { place: None, message: "it is not UTF-8: save it as UTF-8".to_owned() }],
    };
    Found { diagnostics: faults.iter().map(|fault| finding(fault, &text.name)).collect(), ..Found::default() }
}

fn finding(fault: &Fault, file: &str) -> Diagnostic {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let place = fault.place.map(|at| (number(at.line), number(at.column)));
    Diagnostic::error(crate::Code::BadConfig, &fault.message, file, place)
}
