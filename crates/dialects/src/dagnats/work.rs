//! Steps that workers execute, and steps that start another workflow.

use super::field::{count, demanded, filled, ignored, optional_count, ruled, text_map};
use super::flow;
use super::step::{Draft, StepType};
use super::{duration, flow::Input};
use crate::table::Table;
use crate::text::Node;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Namespace, StepId, Template};
use windlass_ir::policy::Policy;
use windlass_ir::workflow::{
    Action, Bound, Call, CallMode, ForEach, ItemFailure, Items, Kind, Planner, Rounds, Step, Task,
};
use windlass_ir::{Code, Severity, Value};

const ITEMS_MAX: u32 = 10_000;
const PLANNED_STEPS_MAX: u32 = 100;
const PLANNED_DEPTH_MAX: u32 = 10;

/// The task that workers subscribe to, with the input of the step.
pub fn task(draft: &Draft<'_>) -> Task {
    let table = draft.table;
    let name = match draft.is_sure {
        true => ruled(table, 4, || {
            demanded(table, "task", "name the task that workers subscribe to, such as \"git.fetch\"")
        }),
        false => filled(table, "task"),
    };
    let group = filled(table, "worker_group");
    if let Some(group) = group.as_ref().filter(|_| draft.document.is_sticky) {
        let message = "`worker_group` and `sticky` both select the worker";
        let finding = table.error(Code::ConflictingKeys, "worker_group", group.span, message);
        table.report(finding.reference(&*group.value).help("remove one of the two"));
    }
    Task {
        group: group.map(|group| group.value),
        input: Some(input(draft)),
        metadata: text_map(table, "metadata"),
        capabilities: table.plain_texts("required_capabilities"),
        ..Task::named(name.map_or_else(|| "".into(), |name| name.value))
    }
}

fn input(draft: &Draft<'_>) -> Bound {
    draft.input.bound("depends_on", draft.table.key_span("depends_on"))
}

/// `loop` in older files, `config` in newer ones; both are allowed if they agree.
pub fn agent_loop(draft: &Draft<'_>) -> Task {
    let table = draft.table;
    let older = table.table("loop").map(|block| ruled_rounds(&block));
    let newer = table.table("config").map(|block| ruled_rounds(&block));
    if !table.has("loop") && !table.has("config") {
        ruled(table, 9, || {
            table.missing("loop", "limit the number of rounds: \"loop\": {\"max_iterations\": 10}");
        });
    }
    if let (Some(Some(older)), Some(Some(newer))) = (&older, &newer)
        && older != newer
    {
        let message = "`loop` and `config` set different limits for the same loop";
        let finding = table.error(Code::ConflictingKeys, "config", table.key_span("config"), message);
        table.report(finding.label(table.key_span("loop"), "the other one").help("keep one of the two"));
    }
    Task { rounds: newer.or(older).flatten(), ..task(draft) }
}

fn ruled_rounds(table: &Table<'_>) -> Option<Rounds> {
    let help = "limit the number of rounds: \"max_iterations\": 10";
    let rounds_max = ruled(table, 9, || count(table, "max_iterations", 1, u32::MAX, help));
    let time_max = duration::optional(table, "max_duration");
    let delay = duration::optional(table, "loop_delay");
    let round = |key| optional_count(table, key, 0, u32::MAX).filter(|round| *round > 0);
    let (warn_at, force_at) = (round("budget_warn_at"), round("budget_force_at"));
    table.finish_all();
    Some(Rounds { rounds_max: rounds_max?, time_max, delay, warn_at, force_at })
}

pub fn planner(draft: &Draft<'_>) -> Task {
    let planner = config(draft, "limit the number of steps it may add: \"config\": {\"max_steps\": 10}")
        .and_then(|table| {
            let steps_max = count(
                &table,
                "max_steps",
                1,
                PLANNED_STEPS_MAX,
                "limit the number of steps it may \
                add",
            );
            let depth_max =
                optional_count(&table, "max_depth", 0, PLANNED_DEPTH_MAX).filter(|depth| *depth > 0);
            let tasks_allowed = table.plain_texts("allowed_tasks");
            table.finish_all();
            Some(Planner { steps_max: steps_max?, depth_max, tasks_allowed })
        });
    Task { planner, ..task(draft) }
}

/// The block that configures a step of this type.
pub fn config<'a>(draft: &Draft<'a>, help: &str) -> Option<Table<'a>> {
    draft.table.demand("config", help);
    draft.table.table("config")
}

/// One task for each element in the output of its only dependency.
pub fn map(draft: &Draft<'_>, policy: Policy) -> ForEach<Vec<Step>> {
    let table = draft.table;
    let items_max =
        config(draft, "limit the number of items: \"config\": {\"max_items\": 100}").and_then(|table| {
            let count = count(&table, "max_items", 1, ITEMS_MAX, "limit the number of items, up to 10000");
            table.finish_all();
            count
        });
    let items = match draft.needs {
        [only] => {
            check_nesting(draft, only);
            Input::Step(only.value.clone())
        }
        _ => {
            let message = format!(
                "a map processes the output of one step, but this one depends on {}",
                draft.needs.len()
            );
            let finding = table.error(Code::WrongShape, "depends_on", table.key_span("depends_on"), message);
            table.report(finding.help("name exactly one step in `depends_on`"));
            Input::Several(Vec::new())
        }
    };
    let is_known = draft.needs.iter().all(|need| draft.document.roster.card(&need.value).is_some());
    let items = match items {
        Input::Step(_) if is_known => items.bound("depends_on", table.key_span("depends_on")),
        _ => flow::constant(Value::list([]), "depends_on", table.span),
    };
    ForEach {
        items: Items::List(items),
        body: vec![for_item(draft, policy)],
        concurrency: None,
        on_failure: ItemFailure::Halt,
        items_max: items_max.map(u64::from),
        isolated: false,
        as_written: None,
    }
}

fn check_nesting(draft: &Draft<'_>, before: &windlass_ir::Spanned<Arc<str>>) {
    let nested = draft.document.roster.card(&before.value).is_some_and(|card| card.ty == Some(StepType::Map));
    if nested && before.value != draft.id.value {
        let message = format!("`{}` is a map as well, and a map cannot follow a map", before.value);
        let finding = draft.table.error(Code::BadTarget, "depends_on", before.span, message);
        draft
            .table
            .report(finding.reference(&*before.value).help("insert a step of type normal between the two"));
    }
}

/// The body of a map, which has no name of its own.
fn for_item(draft: &Draft<'_>, policy: Policy) -> Step {
    let span = draft.table.span.head();
    let item = flow::computed(flow::read(Namespace::Item, span), "depends_on");
    let task = Task { input: Some(item), ..task(draft) };
    Step {
        number: StepId(0),
        id: draft.id.clone(),
        implicit: true,
        name: draft.id.value.clone(),
        description: None,
        word: StepType::Normal.word(),
        needs: Vec::new(),
        condition: None,
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: IndexMap::new(),
        policy,
        recorded: None,
        kind: Kind::Action(Action::Task(task)),
        span,
    }
}

/// Another workflow as a separate run. Older files name it in `task`.
pub fn sub_workflow(draft: &Draft<'_>) -> Call {
    let table = draft.table;
    let block = table.table("config");
    let named = block.as_ref().and_then(|block| filled(block, "workflow"));
    let detach = block.as_ref().and_then(|block| block.boolean("detach")).unwrap_or(false);
    block.iter().for_each(Table::finish_all);
    let task = filled(table, "task");
    let name = match (named, task) {
        (Some(name), Some(task)) => {
            if name.value != task.value {
                let why = format!(": `config.workflow` names `{}`", name.value);
                table.report(ignored(table, Severity::Warning, "task", task.span, &why, "remove it"));
            }
            Some(name)
        }
        (Some(name), None) => Some(name),
        (None, Some(task)) => {
            let message =
                format!("`config.workflow` is missing, so `task` names the workflow: `{}`", task.value);
            let finding = table.warning(Code::MissingField, "config.workflow", task.span, message);
            table.report(finding.help(format!("add \"config\": {{\"workflow\": \"{}\"}}", task.value)));
            Some(task)
        }
        (None, None) => {
            let help = "name the other workflow: \"config\": {\"workflow\": \"NAME\"}";
            let missing = |node: Option<&Node>| node.map_or(table.span.head(), |node| node.span);
            let span = missing(table.node("config"));
            let finding =
                table.error(Code::MissingField, "config.workflow", span, "`config.workflow` is missing");
            table.report(finding.help(help));
            None
        }
    };
    let (name, span) = name.map_or_else(|| ("".into(), table.span), |name| (name.value, name.span));
    Call {
        workflow: Bound {
            template: Template::Constant(Value::Text(name)),
            field: "config.workflow".into(),
            span,
        },
        input: Some(input(draft)),
        mode: if detach { CallMode::Detached } else { CallMode::Child },
    }
}
