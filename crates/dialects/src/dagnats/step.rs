//! Reads the common keys of steps and dispatches on the type.

use super::field::{filled, ignored, ruled};
use super::flow::Input;
use super::policy;
use super::roster::{Roster, scalar};
use super::{pause, respond, skip_if, work};
use crate::table::{Context, Place, Table, wrong_shape};
use crate::text::{Kind as NodeKind, Node};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::policy::{Policy, Retry};
use windlass_ir::workflow::{Action, Kind, Step};
use windlass_ir::{Code, Duration, Severity, Spanned};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepType {
    Normal,
    AgentLoop,
    SubWorkflow,
    Agent,
    Map,
    Sleep,
    WaitForEvent,
    Approval,
    Planner,
    Respond,
}

pub const TYPES: [(&str, StepType); 10] = [
    ("normal", StepType::Normal),
    ("agent_loop", StepType::AgentLoop),
    ("sub_workflow", StepType::SubWorkflow),
    ("agent", StepType::Agent),
    ("map", StepType::Map),
    ("sleep", StepType::Sleep),
    ("wait_for_event", StepType::WaitForEvent),
    ("approval", StepType::Approval),
    ("planner", StepType::Planner),
    ("respond", StepType::Respond),
];

impl StepType {
    pub fn word(self) -> &'static str {
        TYPES.iter().find(|(_, ty)| *ty == self).map_or("normal", |(word, _)| word)
    }

    /// Whether a worker executes it.
    pub fn has_task(self) -> bool {
        match self {
            Self::Normal | Self::AgentLoop | Self::Agent | Self::Map | Self::Planner => true,
            Self::SubWorkflow | Self::Sleep | Self::WaitForEvent | Self::Approval | Self::Respond => false,
        }
    }

    /// Whether `config` applies to it.
    fn has_config(self) -> bool {
        !matches!(self, Self::Normal | Self::Agent)
    }
}

/// Every key that has a meaning on some type of step.
const KEYS: [&str; 19] = [
    "id",
    "task",
    "depends_on",
    "retries",
    "timeout",
    "type",
    "config",
    "loop",
    "skip_if",
    "metadata",
    "retry",
    "worker_group",
    "on_failure",
    "compensate",
    "rate_limit",
    "keyed_rate_limit",
    "max_task_concurrency",
    "singleton",
    "required_capabilities",
];

/// The defaults for every step.
#[derive(Debug)]
pub struct Document<'a> {
    pub roster: Roster<'a>,
    pub default_retry: Option<Retry>,
    /// Whether all tasks of a run go to one worker.
    pub is_sticky: bool,
    pub run_timeout: Option<Duration>,
}

/// A step being read: its table and what is known about it so far.
#[derive(Debug)]
pub struct Draft<'a> {
    pub table: &'a Table<'a>,
    pub id: &'a Spanned<Arc<str>>,
    pub ty: StepType,
    /// Whether the type exists; if not, the keys that a type requires are not checked.
    pub is_sure: bool,
    pub needs: &'a [Spanned<Arc<str>>],
    pub input: &'a Input,
    pub document: &'a Document<'a>,
}

pub fn list<'a>(items: &'a [Node], document: &Document<'_>, context: &'a Context<'a>) -> Vec<Step> {
    items.iter().enumerate().filter_map(|(index, node)| listed(node, index, document, context)).collect()
}

fn listed<'a>(
    node: &'a Node,
    index: usize,
    document: &Document<'_>,
    context: &'a Context<'a>,
) -> Option<Step> {
    let at = format!("steps[{index}]");
    let NodeKind::Map(map) = &node.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(node, "a step, which is a mapping").field(at));
        return None;
    };
    let unnamed = Table::new(context, map, node.span, Place::default().child(&at));
    let id = unnamed.lookup("id").and_then(|entry| Some((scalar(&entry.value)?, entry.value.span)));
    Some(match id {
        Some((id, span)) => {
            let place = Place { step: Some(id.into()), prefix: String::new() };
            let table = Table::new(context, map, node.span, place);
            let id = Spanned::new(id.into(), span);
            check_id(&table, &id);
            step(&table, id, false, document)
        }
        None => {
            ruled(&unnamed, 3, || {
                super::field::demanded(&unnamed, "id", "give the step an id, such as \"fetch\"")
            });
            // No other step can name it, but problems inside it are still reported.
            step(&unnamed, Spanned::new(at.into(), node.span.head()), true, document)
        }
    })
}

/// The parts of a map have `.map.` in their ids.
fn check_id(table: &Table<'_>, id: &Spanned<Arc<str>>) {
    let cause = match &*id.value {
        text if text.contains(".map.") => "`.map.` is reserved for the items of a map",
        text if text.contains(char::is_control) => "it contains an invisible character",
        _ => return,
    };
    let message = format!("invalid id `{}`: {cause}", id.value.escape_debug());
    let finding = table.error(Code::BadId, "id", id.span, message).reference(&*id.value);
    table.report(finding.help("use letters, digits and hyphens, such as `fetch-diff`"));
}

fn step(table: &Table<'_>, id: Spanned<Arc<str>>, implicit: bool, document: &Document<'_>) -> Step {
    table.known(&["id"]);
    let ty = table.word("type", &TYPES);
    let needs = needs(table, document);
    let input = document.roster.input(&id.value, &needs);
    let draft = Draft {
        table,
        id: &id,
        ty: ty.unwrap_or(StepType::Normal),
        is_sure: ty.is_some() || !table.has("type"),
        needs: &needs,
        input: &input,
        document,
    };
    let word = draft.ty.word();
    let (kind, policy) = kind(&draft);
    let condition = skip_if::of_step(&draft);
    check_target(&draft);
    finish(&draft);
    Step {
        number: StepId(0),
        implicit,
        name: id.value.clone(),
        description: None,
        word,
        condition,
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: IndexMap::new(),
        policy,
        recorded: None,
        kind,
        span: table.span,
        needs,
        id,
    }
}

/// The ids of its dependencies, without duplicates.
fn needs(table: &Table<'_>, document: &Document<'_>) -> Vec<Spanned<Arc<str>>> {
    let mut seen = HashSet::new();
    let mut needs = table.texts("depends_on");
    needs.retain(|need| {
        let is_new = seen.insert(need.value.clone());
        if !is_new {
            let message = format!("duplicate dependency `{}`", need.value);
            let finding = table.warning(Code::IgnoredKey, "depends_on", need.span, message);
            table.report(finding.reference(&*need.value).help("remove one of the two"));
        }
        is_new
    });
    let own_target = table.place.step.as_deref().is_some_and(|id| document.roster.is_target(id));
    let targets = needs.iter().filter(|need| !own_target && document.roster.is_target(&need.value));
    for need in targets {
        let message = format!("`{}` runs only when another step fails, so it is usually skipped", need.value);
        let finding =
            table.warning(Code::BadTarget, "depends_on", need.span, message).reference(&*need.value);
        table.report(finding.help("depend on the step whose failure it handles, or that it undoes, instead"));
    }
    needs
}

fn kind(draft: &Draft<'_>) -> (Kind<Vec<Step>>, Policy) {
    let policy = policy::of_step(draft);
    let kind = match draft.ty {
        StepType::Normal | StepType::Agent => Kind::Action(Action::Task(work::task(draft))),
        StepType::AgentLoop => Kind::Action(Action::Task(work::agent_loop(draft))),
        StepType::Planner => Kind::Action(Action::Task(work::planner(draft))),
        StepType::SubWorkflow => Kind::Action(Action::Call(work::sub_workflow(draft))),
        StepType::Sleep => Kind::Wait(pause::sleep(draft)),
        StepType::WaitForEvent => Kind::Wait(pause::wait_for_event(draft)),
        StepType::Approval => Kind::Gate(pause::approval(draft)),
        StepType::Respond => Kind::Action(Action::Builtin(respond::read(draft))),
        StepType::Map => {
            let (outer, inner) = policy::around_items(policy);
            return (Kind::ForEach(work::map(draft, inner)), outer);
        }
    };
    (kind, policy)
}

/// Checks a step that runs only because another one failed.
fn check_target(draft: &Draft<'_>) {
    let Draft { table, id, document, .. } = draft;
    let Some(card) = document.roster.card(&id.value).filter(|card| card.is_target()) else { return };
    if !draft.needs.is_empty() {
        let why = ": this step runs when another one fails, not when these are done";
        let help = "remove it; the step's input contains the failure";
        let span = table.key_span("depends_on");
        table.report(ignored(table, Severity::Hint, "depends_on", span, why, help));
    }
    if let Some(own) = filled(table, "on_failure").filter(|_| card.recovers) {
        let why = ": the run ends when a failure handler fails";
        table.report(ignored(table, Severity::Warning, "on_failure", own.span, why, "remove it"));
    }
    if draft.ty == StepType::Map {
        let message = format!(
            "`{}` is a map, but a step that handles a failure or undoes another receives no list",
            id.value
        );
        let finding = table.error(Code::BadTarget, "type", id.span, message);
        table.report(finding.help("use a step of type normal"));
    }
}

fn finish(draft: &Draft<'_>) {
    let table = draft.table;
    check_loop(draft);
    if table.boolean("singleton") == Some(true) {
        let help = "remove it, or use `singleton` of the workflow";
        let span = table.key_span("singleton");
        table.report(ignored(table, Severity::Warning, "singleton", span, " on a step", help));
    }
    if !draft.is_sure {
        table.known(&KEYS);
    } else if !draft.ty.has_config() {
        no_config(draft);
    }
    if !draft.ty.has_task() {
        no_task(draft);
    }
    let here = format!("on a step of type {}", draft.ty.word());
    table.finish(&KEYS, |_| (here.clone(), "remove it, or change `type`"));
}

fn check_loop(draft: &Draft<'_>) {
    let table = draft.table;
    if draft.ty == StepType::AgentLoop || !draft.is_sure || !table.has("loop") {
        return;
    }
    table.known(&["loop"]);
    let message =
        format!("`loop` is only for steps of type agent_loop, but this step is of type {}", draft.ty.word());
    let finding = table.error(Code::ConflictingKeys, "loop", table.key_span("loop"), message).rule(10);
    table.report(finding.help("remove `loop`, or write \"type\": \"agent_loop\""));
}

fn no_config(draft: &Draft<'_>) {
    let table = draft.table;
    table.known(&["config"]);
    if table
        .lookup("config")
        .is_some_and(|entry| matches!(&entry.value.kind, NodeKind::Map(map) if map.entries.is_empty()))
    {
        return;
    }
    if table.has("config") {
        let why = format!(" on a step of type {}", draft.ty.word());
        let span = table.key_span("config");
        table.report(ignored(table, Severity::Warning, "config", span, &why, "remove it, or change `type`"));
    }
}

/// Older files give every step a task.
fn no_task(draft: &Draft<'_>) {
    let table = draft.table;
    table.known(&["task"]);
    if draft.ty != StepType::SubWorkflow && draft.is_sure && table.has("task") {
        let why = format!(" on a step of type {}: no worker executes it", draft.ty.word());
        let span = table.key_span("task");
        table.report(ignored(table, Severity::Hint, "task", span, &why, "remove it"));
    }
}
