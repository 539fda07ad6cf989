//! Detects the dialect of a file by its content; the file name only decides if the content does not.

use crate::text::{Kind, Mapping, Node};
use crate::{dagnats, dcc, speckit, swdl};
use windlass_ir::workflow::Words;
use windlass_ir::{Code, Diagnostic, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
}

impl Dialect {
    pub const ALL: [Self; 4] = [Self::Swdl, Self::Speckit, Self::Dagnats, Self::Dcc];

    pub fn words(self) -> &'static Words {
        match self {
            Self::Swdl => &swdl::WORDS,
            Self::Speckit => &speckit::WORDS,
            Self::Dagnats => &dagnats::WORDS,
            Self::Dcc => &dcc::WORDS,
        }
    }

    pub fn name(self) -> &'static str {
        self.words().dialect
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Workflow(Dialect),
    /// Triggers, bound to workflows by name.
    Schedules,
    /// A skill whose metadata refers to workflows and schedules.
    Skill,
    /// Edits of a workflow.
    Overlay,
}

impl FileKind {
    pub const ALL: [Self; 7] = [
        Self::Workflow(Dialect::Swdl),
        Self::Workflow(Dialect::Speckit),
        Self::Workflow(Dialect::Dagnats),
        Self::Workflow(Dialect::Dcc),
        Self::Schedules,
        Self::Skill,
        Self::Overlay,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow(dialect) => dialect.name(),
            Self::Schedules => "schedules",
            Self::Skill => "skill",
            Self::Overlay => "overlay",
        }
    }

    /// Detects by the keys of the file; `None` if they are inconclusive.
    pub fn guess(root: &Node) -> Option<Self> {
        let Kind::Map(map) = &root.kind else { return None };
        let workflow = || by_content(map).map(Self::Workflow);
        other(Some(root), "").map(Other::kind).or_else(workflow)
    }

    /// Detects by the keys of the file, or by its name if they are inconclusive.
    pub(crate) fn of(root: Option<&Node>, name: &str) -> Self {
        let is_map = matches!(root, Some(Node { kind: Kind::Map(_), .. }));
        match other(root, name) {
            Some(other) => other.kind(),
            None if dcc::skill::is_skill_file(name) => Self::Skill,
            None if !is_map && dcc::schedules::is_schedules_file(name) => Self::Schedules,
            None => Self::Workflow(dialect(root, name)),
        }
    }
}

/// The number of steps to inspect: one of the first few is enough.
const STEPS_LOOKED_AT: usize = 20;

pub fn dialect(root: Option<&Node>, name: &str) -> Dialect {
    let map = root.and_then(as_map);
    let by_name = || by_name(name, map.is_some_and(|map| has_any_case(map, "steps")));
    map.and_then(by_content).unwrap_or_else(by_name)
}

fn as_map(node: &Node) -> Option<&Mapping> {
    match &node.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

fn has_any_case(map: &Mapping, key: &str) -> bool {
    map.entries.iter().any(|entry| entry.key.text.eq_ignore_ascii_case(key))
}

fn by_content(map: &Mapping) -> Option<Dialect> {
    let has = |key: &str| map.get(key).is_some();
    if has("stages") {
        return Some(Dialect::Swdl);
    }
    if has("schema_version") || (has("workflow") && has("steps")) {
        return Some(Dialect::Speckit);
    }
    if map.get("workflow").is_some_and(|entry| as_map(&entry.value).is_some()) {
        return Some(Dialect::Swdl);
    }
    if has("tasks") && !has("steps") {
        return Some(Dialect::Dcc);
    }
    by_steps(map).or_else(|| by_header(map))
}

fn by_steps(map: &Mapping) -> Option<Dialect> {
    let steps = map.entries.iter().find(|entry| entry.key.text.eq_ignore_ascii_case("steps"))?;
    let Kind::List(items) = &steps.value.kind else { return None };
    items.iter().take(STEPS_LOOKED_AT).filter_map(as_map).find_map(by_step)
}

/// Detects by the type of a step, or by keys that only one dialect has. Spec Kit comes last because its keys are
/// common words.
fn by_step(step: &Mapping) -> Option<Dialect> {
    const DCC: [&str; 9] =
        ["kind", "tool", "dcc", "timeout_secs", "idempotency_key", "on", "items", "as", "branches"];
    const DAGNATS: [&str; 9] = [
        "task",
        "depends_on",
        "retries",
        "timeout",
        "config",
        "loop",
        "skip_if",
        "compensate",
        "worker_group",
    ];
    const SPECKIT: [&str; 6] = ["run", "command", "prompt", "then", "cases", "wait_for"];
    let has = |keys: &[&str]| keys.iter().any(|key| step.get(key).is_some());
    if has_speckit_type(step) {
        return Some(Dialect::Speckit);
    }
    if has(&DCC) {
        return Some(Dialect::Dcc);
    }
    if DAGNATS.iter().any(|key| has_any_case(step, key)) {
        return Some(Dialect::Dagnats);
    }
    has(&SPECKIT).then_some(Dialect::Speckit)
}

fn has_speckit_type(step: &Mapping) -> bool {
    match step.get("type").map(|entry| &entry.value.kind) {
        Some(Kind::Scalar(word)) => speckit::is_step_type(&word.text),
        Some(Kind::List(_) | Kind::Map(_)) | None => false,
    }
}

fn by_header(map: &Mapping) -> Option<Dialect> {
    const DAGNATS: [&str; 8] = [
        "version",
        "default_retry",
        "concurrency",
        "input_schema",
        "output_schema",
        "triggers",
        "timeout",
        "singleton",
    ];
    let has = |key: &str| has_any_case(map, key);
    match has("steps") && has("name") {
        true if DAGNATS.iter().any(|key| has(key)) => Some(Dialect::Dagnats),
        true if has("inputs") || has("description") => Some(Dialect::Dcc),
        true | false => None,
    }
}

/// A native workflow has stages, so a file with steps is never detected as one unless its name says so.
fn by_name(name: &str, has_steps: bool) -> Dialect {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    if matches!(file, "WORKFLOW.yaml" | "WORKFLOW.yml" | "WORKFLOW.json") {
        return Dialect::Swdl;
    }
    match file.to_ascii_lowercase().as_str() {
        "workflow.yml" => Dialect::Speckit,
        file if file.ends_with(".workflow.yaml") || file.ends_with(".workflow.yml") => Dialect::Dcc,
        file if file.ends_with(".json") => Dialect::Dagnats,
        _ if has_steps => Dialect::Dcc,
        _ => Dialect::Swdl,
    }
}

/// Detects files that belong to a workflow and are easily mistaken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other<'a> {
    Schedules,
    /// With the workflow that it edits.
    Overlay(&'a str),
}

/// Every workflow has one of these keys.
const WORKFLOW_KEYS: [&str; 3] = ["stages", "steps", "tasks"];

pub fn other<'a>(root: Option<&'a Node>, name: &str) -> Option<Other<'a>> {
    let map = root.and_then(as_map)?;
    if WORKFLOW_KEYS.iter().any(|key| has_any_case(map, key)) {
        return None;
    }
    match map.get("extends").map(|entry| &entry.value.kind) {
        Some(Kind::Scalar(of)) if map.get("edits").is_some() => return Some(Other::Overlay(&of.text)),
        Some(Kind::Scalar(_) | Kind::List(_) | Kind::Map(_)) | None => {}
    }
    let schedules = map.get("schedules").is_some() || dcc::schedules::is_schedules_file(name);
    schedules.then_some(Other::Schedules)
}

impl Other<'_> {
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Schedules => Dialect::Dcc,
            Self::Overlay(_) => Dialect::Speckit,
        }
    }

    fn kind(self) -> FileKind {
        match self {
            Self::Schedules => FileKind::Schedules,
            Self::Overlay(_) => FileKind::Overlay,
        }
    }

    /// Explains what the file is, and what to do with it.
    pub fn finding(self, span: Span) -> Diagnostic {
        let (message, help) = match self {
            Self::Schedules => (
                "this is a schedules file, not a workflow".to_owned(),
                "check it with `windlass validate`; the workflows that it starts are in separate files",
            ),
            Self::Overlay(of) => (
                format!("this is an overlay, not a workflow: it edits the steps of `{of}`"),
                "pass the workflow that it extends",
            ),
        };
        Diagnostic::error(Code::NotAWorkflow, message).at(span).help(help)
    }
}

/// The same for a skill. It is not YAML, so only its name counts.
pub fn skill_finding(span: Span) -> Diagnostic {
    let help = "check it with `windlass validate`; its workflows are in the files that its metadata names";
    Diagnostic::error(Code::NotAWorkflow, "this is a skill, not a workflow").at(span).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, Limits, read};
    use windlass_ir::{Source, SourceId};

    #[test]
    fn keys_determine_the_dialect() {
        let check = |text: &str, expected: Option<&str>| {
            let read = read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default());
            let kind = FileKind::guess(&read.root.expect("readable"));
            assert_eq!(kind.map(FileKind::name), expected, "{text}");
        };
        check("{workflow: {id: a}, stages: []}", Some("swdl"));
        check("{workflow: {id: a}, stage: []}", Some("swdl"));
        check("{workflow: {id: a}}", Some("swdl"));
        check("{workflow: a}", None);
        check("{workflow: {id: a}, steps: [{id: b, type: shell}]}", Some("speckit"));
        check("{schema_version: '1.0', workflow: {}}", Some("speckit"));
        for step in ["run: b", "command: b", "prompt: b", "then: []", "cases: {}", "wait_for: [b]"] {
            check(&format!("{{steps: [{{id: a}}, {{id: b, {step}}}]}}"), Some("speckit"));
        }
        check("{name: a, steps: [{id: b, type: fan-out, items: []}]}", Some("speckit"));
        check("{name: a, steps: [{id: b, type: shell, timeout: 5}]}", Some("speckit"));
        check("{name: a, steps: [{id: b, type: sleep, timeout: 5}]}", Some("dagnats"));
        check("{name: a, steps: [{id: b, kind: approve, prompt: c}]}", Some("dcc"));
        check("{name: a, steps: [{id: b, task: c}]}", Some("dagnats"));
        check("{Name: a, Steps: [{ID: b, Task: c}]}", Some("dagnats"));
        check("{name: a, version: '1', steps: []}", Some("dagnats"));
        check("{name: a, steps: [{id: b, tool: c}]}", Some("dcc"));
        check("{name: a, inputs: {}, steps: []}", Some("dcc"));
        check("{name: a, tasks: []}", Some("dcc"));
        check("{name: a, steps: []}", None);
        check("{schedules: []}", Some("schedules"));
        check("{extends: a, edits: []}", Some("overlay"));
        check("{overrides: {}}", None);
        check("[a]", None);
    }

    #[test]
    fn the_file_name_decides_if_the_content_does_not() {
        let check = |name: &str, text: &str, expected: Dialect| {
            let read = read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default());
            assert_eq!(dialect(read.root.as_ref(), name), expected, "{name}: {text}");
        };
        for text in ["", "- a", "{name: a}"] {
            check("workflow.yml", text, Dialect::Speckit);
            check("a/b.workflow.yaml", text, Dialect::Dcc);
            check("a.json", text, Dialect::Dagnats);
            check("a.yaml", text, Dialect::Swdl);
            check("a/WORKFLOW.yaml", text, Dialect::Swdl);
            check("a/WORKFLOW.yml", text, Dialect::Swdl);
            check("a/WORKFLOW.json", text, Dialect::Swdl);
        }
        for text in ["{name: a, steps: []}", "{name: a, steps: [{id: b}]}", "{Steps: []}"] {
            check("a.yaml", text, Dialect::Dcc);
            check("-", text, Dialect::Dcc);
            check("a.json", text, Dialect::Dagnats);
            check("workflow.yml", text, Dialect::Speckit);
        }
        check("WORKFLOW.json", "{workflow: {id: a}, stage: []}", Dialect::Swdl);
    }
}
