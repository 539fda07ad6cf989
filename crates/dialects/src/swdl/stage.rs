//! Reads the common keys of stages and dispatches on the type.

use super::agent::Surroundings;
use super::names::{VARIABLE_RULE, check_id, is_variable};
use super::policy::{self, Applies, Defaults};
use super::ports::{self, Outputs};
use super::table::{Context, Place, StepOf, Table, is_null, wrong_shape};
use super::{agent, assistant, gate, leaf, neighbors, scope, work};
use crate::text::{Kind as NodeKind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::policy::{OnFailure, Policy};
use windlass_ir::workflow::{Action, Condition, Guard, Kind, Recorded, Step};
use windlass_ir::{Code, Diagnostic, Duration, Span, Spanned, Value};

/// The defaults at the top of the file.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    pub defaults: &'a Defaults,
    pub around: &'a Surroundings,
    /// Whether anything can cause a rollback.
    pub undoes: bool,
    /// The timeout of a run.
    pub run_timeout: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StageType {
    Agent,
    Gate,
    FanOut,
    Shell,
    Tool,
    Task,
    Http,
    Workflow,
    Loop,
    Branch,
    Wait,
    Assign,
    Finish,
    Block,
    Parallel,
    Assistant,
    Builtin,
    Slot,
}

const TYPES: [(&str, StageType); 18] = [
    ("agent", StageType::Agent),
    ("gate", StageType::Gate),
    ("fan_out", StageType::FanOut),
    ("shell", StageType::Shell),
    ("tool", StageType::Tool),
    ("task", StageType::Task),
    ("http", StageType::Http),
    ("workflow", StageType::Workflow),
    ("loop", StageType::Loop),
    ("branch", StageType::Branch),
    ("wait", StageType::Wait),
    ("assign", StageType::Assign),
    ("finish", StageType::Finish),
    ("block", StageType::Block),
    ("parallel", StageType::Parallel),
    ("assistant", StageType::Assistant),
    ("builtin", StageType::Builtin),
    ("slot", StageType::Slot),
];

/// Every key that has a meaning on some type of stage.
const KEYS: [&str; 49] = [
    "id",
    "name",
    "description",
    "type",
    "depends_on",
    "condition",
    "roles",
    "inputs",
    "outputs",
    "context",
    "error_policy",
    "handoff",
    "ui",
    "recorded",
    "env",
    "compensate",
    "finally",
    "idempotency",
    "gate",
    "fan_out",
    "run",
    "shell",
    "cwd",
    "stdin",
    "output_format",
    "tool",
    "server",
    "args",
    "task",
    "group",
    "input",
    "http",
    "workflow",
    "with",
    "loop",
    "branch",
    "wait",
    "stages",
    "parallel",
    "assistant",
    "builtin",
    "slot",
    "metadata",
    "capabilities",
    "rounds",
    "planner",
    "mode",
    "rate_limit",
    "task_concurrency",
];

/// The position of a stage among others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// One of a list, in which others can name it.
    Listed,
    /// The only one of its kind inside another stage, with or without an id.
    Alone,
    Unnamed,
}

/// Keys that have their own block on no type, and one that the language only mentions.
const MORE_KEYS: [&str; 3] = ["set", "finish", "parallel_group"];

impl StageType {
    fn word(self) -> &'static str {
        TYPES.iter().find(|(_, ty)| *ty == self).map_or("agent", |(word, _)| word)
    }

    fn applies(self) -> Applies {
        match self {
            Self::Agent | Self::Tool | Self::Task | Self::Http | Self::Assistant | Self::Builtin => {
                Applies::Attempts
            }
            Self::Shell => Applies::Commands,
            Self::Workflow => Applies::Calls,
            Self::FanOut => Applies::RetryInside,
            Self::Loop | Self::Branch | Self::Block | Self::Parallel => Applies::Whole,
            Self::Gate | Self::Wait | Self::Assign | Self::Finish | Self::Slot => Applies::FailureOnly,
        }
    }

    fn outputs(self) -> Outputs {
        match self {
            Self::Loop | Self::Branch | Self::Block | Self::Parallel => Outputs::Computed,
            Self::Agent
            | Self::Shell
            | Self::Tool
            | Self::Task
            | Self::Http
            | Self::Workflow
            | Self::Wait
            | Self::Assign
            | Self::Assistant
            | Self::Builtin => Outputs::Produced,
            Self::Gate | Self::FanOut | Self::Finish | Self::Slot => Outputs::Fixed,
        }
    }
}

/// The stages of a list. `place` is the path of the list, with a trailing dot.
pub fn list<'a>(
    items: &'a [Node],
    place: &Place,
    document: &Document<'_>,
    context: &'a Context<'a>,
) -> Vec<Step> {
    let listed = items.iter().enumerate();
    let at = |index: usize| format!("{}[{index}]", place.prefix.trim_end_matches('.'));
    listed
        .filter_map(|(index, node)| {
            listed_stage(node, &at(index), Standing::Listed, place, document, context)
        })
        .collect()
}

/// One stage that has, or should have, an id. `at` is its field.
fn listed_stage<'a>(
    node: &'a Node,
    at: &str,
    standing: Standing,
    place: &Place,
    document: &Document<'_>,
    context: &'a Context<'a>,
) -> Option<Step> {
    let unnamed = Place { step: place.step.clone(), prefix: format!("{at}.") };
    let NodeKind::Map(map) = &node.kind else {
        context
            .diagnostics
            .borrow_mut()
            .push(wrong_shape(node, "a stage, which is a mapping").step_of(place).field(at));
        return None;
    };
    let id = map.get("id").filter(|entry| !is_null(&entry.value)).and_then(|entry| match &entry.value.kind {
        NodeKind::Scalar(scalar) => Some(Spanned::new(scalar.text.clone(), entry.value.span)),
        NodeKind::List(_) | NodeKind::Map(_) => None,
    });
    Some(match id {
        Some(id) => {
            let place = Place { step: Some(id.value.clone()), prefix: String::new() };
            let table = Table::new(context, map, node.span, place);
            check_id(&table, "id", &id);
            stage(&table, id, standing, document)
        }
        None => {
            let table = Table::new(context, map, node.span, unnamed);
            match table.text("id") {
                Some(_) | None if table.has("id") => {}
                _ => table.missing("id", "give the stage an id, such as `id: build`"),
            }
            // No other stage can name it, but problems inside it are still reported.
            stage(&table, Spanned::new(at.into(), node.span.head()), Standing::Unnamed, document)
        }
    })
}

/// An unnamed stage inside another: a template, a compensation, a `finally`.
pub fn inline(
    table: &Table<'_>,
    key: &str,
    node: &Node,
    around: &Table<'_>,
    document: &Document<'_>,
) -> Option<Step> {
    let inner = Table::of(table.context, node, table.place.child(key))?;
    let id = around.place.step.clone().unwrap_or_else(|| key.into());
    Some(stage(&inner, Spanned::new(id, node.span.head()), Standing::Unnamed, document))
}

/// A stage inside another that may have an id.
pub fn template_stage(
    table: &Table<'_>,
    key: &str,
    node: &Node,
    around: &Table<'_>,
    document: &Document<'_>,
) -> Option<Step> {
    let named = match &node.kind {
        NodeKind::Map(map) => map.get("id").is_some_and(|entry| !is_null(&entry.value)),
        NodeKind::Scalar(_) | NodeKind::List(_) => false,
    };
    match named {
        true => listed_stage(
            node,
            &table.place.field(key),
            Standing::Alone,
            &table.place,
            document,
            table.context,
        ),
        false => inline(table, key, node, around, document),
    }
}

/// Several stages as one branch: an unnamed block.
pub fn unnamed_block(stages: Vec<Step>, span: Span, around: &Table<'_>, document: &Document<'_>) -> Step {
    let id = around.place.step.clone().unwrap_or_else(|| "branches".into());
    Step {
        number: StepId(0),
        implicit: true,
        name: id.clone(),
        description: None,
        word: StageType::Block.word(),
        needs: Vec::new(),
        condition: None,
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: IndexMap::new(),
        policy: policy::of_block(document.defaults, around.context.foreign),
        recorded: None,
        kind: Kind::Block(stages),
        span,
        id: Spanned::new(id, span.head()),
    }
}

fn stage(table: &Table<'_>, id: Spanned<Arc<str>>, standing: Standing, document: &Document<'_>) -> Step {
    match standing {
        Standing::Listed => table.known(&["id", "depends_on"]),
        Standing::Alone => table.known(&["id"]),
        Standing::Unnamed => {}
    }
    let ty = table.word("type", &TYPES);
    let known = ty.unwrap_or(StageType::Agent);
    let (policy, draft) = policy::of_stage(table, document.defaults, known.applies());
    let inner_defaults;
    let inner = if known == StageType::FanOut && !table.context.foreign {
        inner_defaults = Defaults { retry: draft, ..document.defaults.clone() };
        Document { defaults: &inner_defaults, ..*document }
    } else {
        *document
    };
    let kind = match ty {
        None if table.has("type") => unknown_type(table, document),
        _ => kind(known, table, &inner),
    };
    let step = Step {
        number: StepId(0),
        implicit: standing == Standing::Unnamed,
        name: table.prose("name").unwrap_or_else(|| id.value.clone()),
        description: table.prose("description"),
        word: known.word(),
        needs: if standing == Standing::Listed { table.texts("depends_on") } else { Vec::new() },
        condition: condition(table),
        inputs: ports::inputs(table),
        outputs: ports::outputs(table, known.outputs()),
        env: table.bindings_named("env", is_variable, VARIABLE_RULE),
        policy,
        recorded: recorded(table),
        kind,
        span: table.span,
        id,
    };
    let step = guarded(step, table, document);
    if table.has("compensate") && !document.undoes && !table.context.foreign {
        table.report(never_undone(table));
    }
    table.known(&["ui"]);
    match ty {
        None if table.has("type") => table.known(&KEYS),
        _ => {}
    }
    neighbors::of_stage(table);
    let others: Vec<&str> = KEYS.iter().chain(&MORE_KEYS).copied().collect();
    table.finish(&others, |key| match key {
        "id" => ("on a stage inside another".into(), "remove it: such a stage has no id"),
        "depends_on" => ("on a stage inside another".into(), "remove it: there is no other stage next to it"),
        "recorded" => ("without `config.semantics: speckit`".into(), "remove it"),
        "parallel_group" => {
            ("at all".into(), "remove it: stages that do not depend on each other always run in parallel")
        }
        _ => (format!("on a stage of type {}", known.word()), "remove it, or change `type`"),
    });
    step
}

/// Members of the stage's record in another dialect that its outputs need not have.
fn recorded(table: &Table<'_>) -> Option<Box<Recorded>> {
    let given = table.context.foreign.then(|| table.node("recorded")).flatten()?.to_value();
    let plain = Recorded::default();
    let member = |name: &str, otherwise: Value| given.get(name).cloned().unwrap_or(otherwise);
    Some(Box::new(Recorded {
        integration: member("integration", plain.integration),
        model: member("model", plain.model),
        options: member("options", plain.options),
        input: member("input", plain.input),
    }))
}

/// A stage of an unknown type may still have parts worth checking.
fn unknown_type(table: &Table<'_>, document: &Document<'_>) -> Kind<Vec<Step>> {
    if table.has("roles") {
        return Kind::Action(Action::Agent(agent::read(table, document.around)));
    }
    agent::handoff(table);
    Kind::Assign(IndexMap::new())
}

fn kind(ty: StageType, table: &Table<'_>, document: &Document<'_>) -> Kind<Vec<Step>> {
    match ty {
        StageType::Agent => Kind::Action(Action::Agent(agent::read(table, document.around))),
        StageType::Gate => Kind::Gate(gate::read(table, document.run_timeout)),
        StageType::FanOut => Kind::ForEach(scope::fan_out(table, document)),
        StageType::Shell => Kind::Action(Action::Shell(work::shell(table))),
        StageType::Tool => Kind::Action(Action::Tool(work::tool(table))),
        StageType::Task => Kind::Action(Action::Task(work::task(table))),
        StageType::Http => Kind::Action(Action::Http(Box::new(work::http(table)))),
        StageType::Workflow => Kind::Action(Action::Call(work::call(table))),
        StageType::Loop => Kind::Repeat(scope::repeat(table, document)),
        StageType::Branch => Kind::Choose(scope::branch(table, document)),
        StageType::Wait => Kind::Wait(leaf::wait(table)),
        StageType::Assign => Kind::Assign(leaf::assign(table)),
        StageType::Finish => Kind::Finish(leaf::finish(table)),
        StageType::Block => Kind::Block(scope::block(table, document)),
        StageType::Parallel => Kind::Parallel(scope::parallel(table, document)),
        StageType::Assistant => Kind::Action(Action::Assistant(Box::new(assistant::read(table)))),
        StageType::Builtin => Kind::Action(Action::Builtin(work::builtin(table))),
        StageType::Slot => Kind::Slot(leaf::slot(table)),
    }
}

/// `condition: true` is the same as no condition.
fn condition(table: &Table<'_>) -> Option<Condition> {
    let always = table.node("condition").is_some_and(|node| node.to_value() == Value::Bool(true));
    if always { None } else { table.condition("condition") }
}

/// Wraps a stage with `compensate` or `finally`.
fn guarded(step: Step, table: &Table<'_>, document: &Document<'_>) -> Step {
    let compensate = handler(table, "compensate", document);
    let finally = handler(table, "finally", document);
    if compensate.is_none() && finally.is_none() {
        return step;
    }
    Step {
        number: StepId(0),
        id: step.id.clone(),
        implicit: step.implicit,
        name: step.name.clone(),
        description: step.description.clone(),
        word: step.word,
        needs: step.needs.clone(),
        condition: step.condition.clone(),
        inputs: IndexMap::new(),
        outputs: IndexMap::new(),
        env: step.env.clone(),
        policy: Policy { timeout: None, idempotency: None, ..step.policy.clone() },
        recorded: step.recorded.clone(),
        span: step.span,
        kind: Kind::Guard(Guard {
            // The guard alone determines the effect of a failure, and the compensation.
            body: vec![Step {
                implicit: true,
                needs: Vec::new(),
                condition: None,
                env: IndexMap::new(),
                policy: Policy { on_failure: OnFailure::Halt, compensate: None, ..step.policy },
                ..step
            }],
            compensate,
            finally,
        }),
    }
}

fn never_undone(table: &Table<'_>) -> Diagnostic {
    let key = "compensate";
    let message = "`compensate` never runs because this workflow never rolls back";
    let help = "add `on_stage_failure: rollback` to the `error_policy` of the file, or remove it";
    table.warning(Code::IgnoredKey, key, table.key_span(key), message).reference(key).help(help)
}

/// One unnamed stage, or a list of stages.
fn handler(table: &Table<'_>, key: &'static str, document: &Document<'_>) -> Option<Vec<Step>> {
    let node = table.node(key)?;
    match &node.kind {
        NodeKind::List(items) => Some(list(items, &table.place.child(key), document, table.context)),
        // The name of another stage, which is stored in the policy.
        NodeKind::Scalar(_) if key == "compensate" => None,
        NodeKind::Scalar(_) | NodeKind::Map(_) => {
            Some(inline(table, key, node, table, document).into_iter().collect())
        }
    }
}
