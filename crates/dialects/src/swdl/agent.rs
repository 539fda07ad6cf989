//! Agent stages: the agent, its tools, its instructions, and how its result is passed on.

use super::names::{check_artifact, check_module};
use super::table::Table;
use std::sync::Arc;
use windlass_ir::Code;
use windlass_ir::workflow::{Agent, Handoff, HandoffFormat, Memory};

pub const MODEL: &str = "opus";

/// The written settings for memories; missing ones are inherited.
#[derive(Clone, Debug, Default)]
pub struct MemoryDraft {
    project_scope: Option<Arc<str>>,
    min_confidence: Option<f64>,
    categories: Option<Vec<Arc<str>>>,
    max_tokens: Option<u64>,
}

impl MemoryDraft {
    pub fn read(table: &Table<'_>) -> Self {
        let draft = Self {
            project_scope: table.plain_text("project_scope"),
            min_confidence: table
                .number("min_confidence", "a number from 0 to 1", |share| (0.0..=1.0).contains(&share)),
            categories: table.has("categories").then(|| table.plain_texts("categories")),
            max_tokens: table.integer("max_tokens", 1, u64::MAX),
        };
        table.known(&["categories"]);
        table.finish_all();
        draft
    }

    fn or(self, outer: &Self) -> Self {
        Self {
            project_scope: self.project_scope.or_else(|| outer.project_scope.clone()),
            min_confidence: self.min_confidence.or(outer.min_confidence),
            categories: self.categories.or_else(|| outer.categories.clone()),
            max_tokens: self.max_tokens.or(outer.max_tokens),
        }
    }

    fn finish(self) -> Memory {
        Memory {
            project_scope: self.project_scope.unwrap_or_else(|| "current".into()),
            min_confidence: self.min_confidence.unwrap_or(0.7),
            categories: self.categories.unwrap_or_default(),
            max_tokens: self.max_tokens.unwrap_or(2000),
        }
    }
}

/// The modules and memories of every agent of the workflow.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    modules: Vec<Arc<str>>,
    memory: Option<MemoryDraft>,
}

impl Surroundings {
    /// From the `context` of the workflow.
    pub fn read(context: Option<&Table<'_>>) -> Self {
        let Some(context) = context else { return Self::default() };
        let found = Self {
            modules: modules(context, "global_modules"),
            memory: context.table("memory").map(|table| MemoryDraft::read(&table)),
        };
        context.finish_all();
        found
    }
}

fn modules(context: &Table<'_>, key: &'static str) -> Vec<Arc<str>> {
    let references = context.texts(key);
    references.iter().for_each(|reference| check_module(context, key, reference));
    references.into_iter().map(|reference| reference.value).collect()
}

pub fn read(stage: &Table<'_>, around: &Surroundings) -> Agent {
    let roles = stage.table("roles");
    let primary = roles.as_ref().and_then(|roles| roles.table("primary"));
    let artifact = primary.as_ref().and_then(|primary| primary.text("artifact"));
    match (&artifact, &primary) {
        (Some(artifact), Some(primary)) => check_artifact(primary, "artifact", artifact),
        // A wrong shape on the way there has already been reported.
        _ if stage.has("roles") && roles.is_none() => {}
        _ => missing_roles(stage, roles.as_ref()),
    }
    let tools = roles.as_ref().map_or_else(Vec::new, |roles| {
        let tools = roles.texts("tools");
        tools.iter().for_each(|tool| check_artifact(roles, "tools", tool));
        tools.into_iter().map(|tool| tool.value).collect()
    });
    let model = primary.as_ref().and_then(|primary| primary.plain_text("model"));
    let instructions = primary.as_ref().and_then(|primary| primary.bound_text("instructions"));
    primary.iter().for_each(Table::finish_all);
    roles.iter().for_each(Table::finish_all);
    let (modules, memory) = surroundings(stage, around);
    Agent {
        artifact: artifact.map_or_else(|| "".into(), |artifact| artifact.value),
        model: model.unwrap_or_else(|| MODEL.into()),
        instructions,
        tools,
        modules,
        memory,
        handoff: handoff(stage),
    }
}

fn missing_roles(stage: &Table<'_>, roles: Option<&Table<'_>>) {
    const BLOCKS: [(&str, &str); 17] = [
        ("run", "shell"),
        ("gate", "gate"),
        ("fan_out", "fan_out"),
        ("tool", "tool"),
        ("task", "task"),
        ("http", "http"),
        ("workflow", "workflow"),
        ("loop", "loop"),
        ("branch", "branch"),
        ("wait", "wait"),
        ("set", "assign"),
        ("finish", "finish"),
        ("stages", "block"),
        ("parallel", "parallel"),
        ("assistant", "assistant"),
        ("builtin", "builtin"),
        ("slot", "slot"),
    ];
    let span = roles.map_or(stage.span.head(), |roles| roles.span.head());
    let finding = stage.error(Code::MissingRoles, "roles", span, "an agent stage must name its agent");
    let meant = BLOCKS.iter().find(|(key, _)| stage.has(key) && !stage.has("type"));
    stage.report(match meant {
        Some((key, ty)) => finding.help(format!("add `type: {ty}`, because the stage has `{key}`")),
        None => finding
            .help("add `roles: {primary: {artifact: \"agent:name\"}}`, or change the `type` of the stage"),
    });
}

/// The global modules and those of the stage, without duplicates; memories field by field.
fn surroundings(stage: &Table<'_>, around: &Surroundings) -> (Vec<Arc<str>>, Option<Memory>) {
    let context = stage.table("context");
    let mut all = around.modules.clone();
    let mut memory = around.memory.clone();
    if let Some(context) = &context {
        for module in modules(context, "modules") {
            if !all.contains(&module) {
                all.push(module);
            }
        }
        if let Some(own) = context.table("memory") {
            memory = Some(MemoryDraft::read(&own).or(&memory.unwrap_or_default()));
        }
        context.finish_all();
    }
    (all, memory.map(MemoryDraft::finish))
}

pub fn handoff(stage: &Table<'_>) -> Handoff {
    let formats = [
        ("structured", HandoffFormat::Structured),
        ("markdown", HandoffFormat::Markdown),
        ("raw", HandoffFormat::Raw),
    ];
    let table = stage.table("handoff");
    let handoff = Handoff {
        format: table.as_ref().and_then(|t| t.word("format", &formats)).unwrap_or(HandoffFormat::Structured),
        include_run_log: table.as_ref().and_then(|t| t.boolean("include_run_log")).unwrap_or(false),
        summary_prompt: table.as_ref().and_then(|t| t.bound_text("summary_prompt")),
    };
    table.iter().for_each(Table::finish_all);
    handoff
}
