//! Which dialect a file is written in, by what stands in it; its name only decides when the content does not.

use crate::text::{Kind, Mapping, Node};
use crate::{dagnats, dcc, speckit, swdl};
use windlass_ir::workflow::Words;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
}

static SWDL: Words = swdl::WORDS;
static SPECKIT: Words = speckit::WORDS;
static DAGNATS: Words = dagnats::WORDS;
static DCC: Words = dcc::WORDS;

impl Dialect {
    pub const ALL: [Self; 4] = [Self::Swdl, Self::Speckit, Self::Dagnats, Self::Dcc];

    pub fn words(self) -> &'static Words {
        match self {
            Self::Swdl => &SWDL,
            Self::Speckit => &SPECKIT,
            Self::Dagnats => &DAGNATS,
            Self::Dcc => &DCC,
        }
    }

    pub fn name(self) -> &'static str {
        self.words().dialect
    }

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Workflow(Dialect),
    /// Triggers, bound to workflows by name.
    Schedules,
}

impl FileKind {
    pub const ALL: [Self; 5] = [
        Self::Workflow(Dialect::Swdl),
        Self::Workflow(Dialect::Speckit),
        Self::Workflow(Dialect::Dagnats),
        Self::Workflow(Dialect::Dcc),
        Self::Schedules,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Workflow(dialect) => dialect.name(),
            Self::Schedules => "schedules",
        }
    }

    /// By the keys of the file; none when they tell nothing.
    pub fn guess(root: &Node) -> Option<Self> {
        let Kind::Map(map) = &root.kind else { return None };
        match map.get("schedules") {
            Some(_) if map.get("steps").is_none() && map.get("stages").is_none() => Some(Self::Schedules),
            Some(_) | None => by_content(map).map(Self::Workflow),
        }
    }
}

/// Steps beyond these are not looked at: one of the first few tells.
const STEPS_LOOKED_AT: usize = 20;

pub fn dialect(root: Option<&Node>, name: &str) -> Dialect {
    let map = root.and_then(|root| match &root.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    });
    map.and_then(by_content).unwrap_or_else(|| by_name(name))
}

fn by_content(map: &Mapping) -> Option<Dialect> {
    let has = |key: &str| map.get(key).is_some();
    if has("stages") {
        return Some(Dialect::Swdl);
    }
    if has("schema_version") || (has("workflow") && has("steps")) {
        return Some(Dialect::Speckit);
    }
    if has("tasks") && !has("steps") {
        return Some(Dialect::Dcc);
    }
    by_steps(map).or_else(|| by_header(map))
}

fn by_steps(map: &Mapping) -> Option<Dialect> {
    let steps = map.entries.iter().find(|entry| entry.key.text.eq_ignore_ascii_case("steps"))?;
    let Kind::List(items) = &steps.value.kind else { return None };
    items.iter().take(STEPS_LOOKED_AT).find_map(|item| match &item.kind {
        Kind::Map(step) => by_step(step),
        Kind::Scalar(_) | Kind::List(_) => None,
    })
}

/// Keys that only one of the dialects has on a step.
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
    let dcc = step.entries.iter().any(|entry| DCC.contains(&&*entry.key.text));
    let is_dagnats = |key: &str| DAGNATS.iter().any(|known| known.eq_ignore_ascii_case(key));
    let dagnats = step.entries.iter().any(|entry| is_dagnats(&entry.key.text));
    match (dcc, dagnats) {
        (true, _) => Some(Dialect::Dcc),
        (false, true) => Some(Dialect::Dagnats),
        (false, false) => None,
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
    let has = |key: &str| map.entries.iter().any(|entry| entry.key.text.eq_ignore_ascii_case(key));
    match has("steps") && has("name") {
        true if DAGNATS.iter().any(|key| has(key)) => Some(Dialect::Dagnats),
        true if has("inputs") || has("description") => Some(Dialect::Dcc),
        true | false => None,
    }
}

fn by_name(name: &str) -> Dialect {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    match file.as_str() {
        "workflow.yml" => Dialect::Speckit,
        file if file.ends_with(".workflow.yaml") || file.ends_with(".workflow.yml") => Dialect::Dcc,
        file if file.ends_with(".json") => Dialect::Dagnats,
        _ => Dialect::Swdl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, Limits, read};
    use windlass_ir::{Source, SourceId};

    #[test]
    fn the_keys_of_a_file_tell_what_it_is() {
        let check = |text: &str, expected: Option<&str>| {
            let read = read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default());
            let kind = FileKind::guess(&read.root.expect("readable"));
            assert_eq!(kind.map(FileKind::name), expected, "{text}");
        };
        check("{workflow: {id: a}, stages: []}", Some("swdl"));
        check("{workflow: {id: a}, steps: [{id: b, type: shell}]}", Some("speckit"));
        check("{schema_version: '1.0', workflow: {}}", Some("speckit"));
        check("{name: a, steps: [{id: b, task: c}]}", Some("dagnats"));
        check("{Name: a, Steps: [{ID: b, Task: c}]}", Some("dagnats"));
        check("{name: a, version: '1', steps: []}", Some("dagnats"));
        check("{name: a, steps: [{id: b, tool: c}]}", Some("dcc"));
        check("{name: a, inputs: {}, steps: []}", Some("dcc"));
        check("{name: a, tasks: []}", Some("dcc"));
        check("{schedules: []}", Some("schedules"));
        check("{overrides: {}}", None);
        check("[a]", None);
    }

    #[test]
    fn the_name_of_a_file_decides_when_its_content_does_not() {
        let check = |name: &str, expected: Dialect| assert_eq!(dialect(None, name), expected, "{name}");
        check("workflow.yml", Dialect::Speckit);
        check("a/b.workflow.yaml", Dialect::Dcc);
        check("a.json", Dialect::Dagnats);
        check("WORKFLOW.yaml", Dialect::Swdl);
    }
}
