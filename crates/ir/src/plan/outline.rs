//! Describes a plan: the order of its steps, what each step runs, and how long it may take.
//!
//! Programs read it as JSON; the command line shows it to people.

use super::{Parameters, Plan, PlanStep};
use crate::diagnostic::Code;
use crate::expr::{EvalError, Limits, Namespace, Printer, Read, Scope, StepId, Template, render};
use crate::policy::RetryAfter;
use crate::time::Duration;
use crate::value::Value;
use crate::workflow::{
    Action, Ask, Bound, Choose, Gate, Input, Items, Kind, Memory, OnReject, RepeatTest, WaitFor, Words,
};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outline {
    pub workflow: Json,
    pub dialect: String,
    pub digest: String,
    pub parameters: Json,
    pub parameters_schema: Json,
    /// The timeout of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    pub at_once: AtOnce,
    pub batches: Vec<Vec<String>>,
    /// Every named step, including steps inside scopes.
    pub steps: IndexMap<String, StepOutline>,
    pub estimate: Estimate,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepOutline {
    pub name: String,
    pub kind: String,
    /// A one-line summary of the work.
    pub runs: String,
    /// The command of a shell step, or of the items of a fan-out, with its line breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemsOutline>,
    /// The delay between the rounds of a loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<f64>,
    pub model: Option<String>,
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Json>,
    pub needs: Vec<String>,
    pub inputs: IndexMap<String, InputOutline>,
    pub outputs: Json,
    pub condition: Option<String>,
    pub timeout_seconds: Option<f64>,
    pub attempts_max: u32,
    pub retry: Json,
    pub on_failure: Json,
    pub context: StepContext,
    pub gate: Option<Json>,
    pub labels: Vec<String>,
    /// The steps that undo it and the steps that always follow it, one line each.
    pub compensate: Vec<String>,
    pub finally: Vec<String>,
    /// The enclosing scope, unless it is the outermost.
    pub inside: Option<String>,
    /// The batches of inner steps, one list per body.
    pub bodies: IndexMap<String, Vec<Vec<String>>>,
}

/// How many steps of a run, and runs of a workflow, may be active at a time; null means no limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtOnce {
    pub agents: Option<u32>,
    pub steps: Option<u32>,
    pub runs: Option<u32>,
}

/// The items of a fan-out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ItemsOutline {
    /// The list, or the axes of the matrix.
    pub of: String,
    /// Null if only the run can tell.
    pub count: Option<usize>,
    /// How many run at a time; null means all.
    pub at_once: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InputOutline {
    #[serde(rename = "type")]
    pub ty: String,
    pub required: bool,
    pub source: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepContext {
    pub modules: Vec<String>,
    pub memory_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
}

/// Upper bounds, not forecasts: a timeout is the most that one attempt may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    pub agents_seconds: f64,
    pub gates_seconds: f64,
    pub basis: String,
}

/// A batch of the outermost scope and its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub steps: Vec<String>,
    pub labels: Vec<&'static str>,
}

impl Outline {
    /// The batches with notes for people: parallel, conditional, gate.
    pub fn labelled_batches(&self) -> Vec<Batch> {
        self.batches
            .iter()
            .map(|ids| {
                let has =
                    |label: &str| ids.iter().all(|id| self.steps[id].labels.iter().any(|own| own == label));
                let mut labels = vec![if ids.len() > 1 { "parallel" } else { "sequential" }];
                labels.extend(["gate", "conditional"].into_iter().filter(|label| has(label)));
                Batch { steps: ids.clone(), labels }
            })
            .collect()
    }
}

const BASIS: &str =
    "sum over batches of the longest timeout, one attempt each; loops count one round, fan-outs one item";

pub(super) fn of(plan: &Plan, words: &Words, parameters: &Parameters) -> Outline {
    let names = plan.names();
    let ids = |list: &[StepId]| -> Vec<Vec<String>> {
        plan.batches(list)
            .iter()
            .map(|batch| batch.iter().map(|id| names[id.index()].clone()).collect())
            .collect()
    };
    let step_id = |id: StepId| plan.step(id).id.to_string();
    let printer = Printer { words, step: &step_id };
    let mut steps = IndexMap::new();
    for (number, step) in (0u32..).map(StepId).zip(&plan.steps) {
        if !step.implicit {
            let mut step = step_outline(plan, number, &printer, &ids);
            step.items = items(plan, number, &printer, parameters);
            steps.insert(names[number.index()].clone(), step);
        }
    }
    let time = time_of(plan, &plan.roots);
    Outline {
        workflow: json!(plan.header),
        dialect: plan.dialect.to_string(),
        digest: plan.digest.as_str().to_owned(),
        parameters: json!(parameters.to_value()),
        parameters_schema: plan.parameters_schema(),
        timeout_seconds: plan.policy.timeout.map(Duration::as_secs_f64),
        at_once: {
            let limits = &plan.policy.concurrency;
            AtOnce {
                agents: Some(limits.agents_per_run).filter(|agents| *agents != u32::MAX),
                steps: limits.steps_per_run,
                runs: limits.runs_per_workflow,
            }
        },
        batches: ids(&plan.roots),
        steps,
        estimate: Estimate {
            agents_seconds: time.work.as_secs_f64(),
            gates_seconds: time.gates.as_secs_f64(),
            basis: BASIS.to_owned(),
        },
    }
}

fn step_outline(
    plan: &Plan,
    number: StepId,
    printer: &Printer<'_>,
    ids: &dyn Fn(&[StepId]) -> Vec<Vec<String>>,
) -> StepOutline {
    let named = plan.step(number);
    let step = plan.step(plan.unguarded(number));
    // A fan-out attempts its template.
    let attempted = match &step.kind {
        Kind::ForEach(each) => each.body.first().map(|body| plan.step(plan.unguarded(*body))),
        Kind::Action(_) => Some(step),
        _ => None,
    };
    let retry = &attempted.unwrap_or(step).policy.retry;
    let strings = |list: &[Arc<str>]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let text = |bound: Option<&Bound>| bound.map(|bound| printer.template(&bound.template).trim().to_owned());
    let agent = match &step.kind {
        Kind::Action(Action::Agent(agent)) => Some(agent),
        _ => None,
    };
    StepOutline {
        name: named.name.to_string(),
        kind: step.word.to_string(),
        runs: runs(plan, step, printer),
        command: match attempted.map(|attempted| &attempted.kind) {
            Some(Kind::Action(Action::Shell(shell))) => {
                Some(printer.template(&shell.run.template).trim().to_owned())
            }
            Some(_) | None => None,
        },
        items: None,
        delay_seconds: match &step.kind {
            Kind::Repeat(repeat) => repeat.delay.map(Duration::as_secs_f64),
            _ => None,
        },
        model: agent.map(|agent| agent.model.to_string()),
        tools: agent.map_or_else(Vec::new, |agent| strings(&agent.tools)),
        instructions: agent.and_then(|agent| text(agent.instructions.as_ref())),
        handoff: agent.map(|agent| {
            json!({
                "format": agent.handoff.format,
                "include_run_log": agent.handoff.include_run_log,
                "summary_prompt": text(agent.handoff.summary_prompt.as_ref()),
            })
        }),
        needs: named.needs.iter().map(|need| plan.step(*need).id.to_string()).collect(),
        inputs: step
            .inputs
            .iter()
            .map(|(name, input)| (name.to_string(), input_outline(input, printer)))
            .collect(),
        outputs: outputs(step),
        condition: named.condition.as_ref().map(|condition| printer.expr(&condition.expr)),
        timeout_seconds: timeout(step).or_else(|| timeout(attempted?)).map(Duration::as_secs_f64),
        attempts_max: retry.attempts_max,
        retry: if attempted.is_none() {
            Json::Null
        } else {
            json!({
                "max_attempts": retry.attempts_max,
                "initial_interval": retry.backoff.initial.to_string(),
                "growth": retry.backoff.growth,
                "max_interval": retry.backoff.max.to_string(),
                "retry_after": retry_after(retry.after),
                "non_retryable_errors": retry.never,
                "when": retry.when.as_ref().map(|when| printer.expr(&when.expr)),
            })
        },
        on_failure: json!(named.policy.on_failure),
        context: agent.map_or_else(StepContext::default, |agent| StepContext {
            modules: strings(&agent.modules),
            memory_tokens: agent.memory.as_ref().map(|memory| memory.max_tokens),
            memory: agent.memory.clone(),
        }),
        gate: match &step.kind {
            Kind::Gate(gate) => Some(gate_outline(gate, printer)),
            _ => None,
        },
        labels: labels(plan, number),
        compensate: match &named.policy.compensate {
            Some(target) => vec![target.value.to_string()],
            None => handlers(plan, named, printer, "compensate"),
        },
        finally: handlers(plan, named, printer, "finally"),
        inside: named.parent.map(|parent| visible(plan, parent)),
        bodies: bodies(plan, number, ids),
    }
}

/// The items of a fan-out, and how many, if the parameters tell.
fn items(
    plan: &Plan,
    number: StepId,
    printer: &Printer<'_>,
    parameters: &Parameters,
) -> Option<ItemsOutline> {
    let Kind::ForEach(each) = &plan.step(plan.unguarded(number)).kind else { return None };
    let inputs = Inputs(parameters.to_value());
    let count = |bound: &Bound| match render(&bound.template, &inputs, &plan.semantics, &Limits::default()) {
        Ok(Value::List(items)) => Some(items.len()),
        Ok(_) | Err(_) => None,
    };
    let (of, count) = match &each.items {
        Items::List(list) => (printer.template(&list.template), count(list)),
        Items::Matrix(axes) => (
            axes.keys().map(|key| &**key).collect::<Vec<_>>().join(" × "),
            axes.values().map(count).try_fold(1usize, |product, axis| product.checked_mul(axis?)),
        ),
    };
    Some(ItemsOutline { of, count, at_once: each.concurrency })
}

/// Everything that is known before a run.
struct Inputs(Value);

impl Scope for Inputs {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        match read {
            Read::Namespace(Namespace::Inputs) => Ok(self.0.clone()),
            _ => Err(EvalError::new(Code::NotAvailableHere, "only the run can tell", "")),
        }
    }
}

fn handlers(plan: &Plan, guarded: &PlanStep, printer: &Printer<'_>, wanted: &str) -> Vec<String> {
    let bodies = match &guarded.kind {
        Kind::Guard(_) => guarded.kind.bodies(),
        _ => Vec::new(),
    };
    let body = bodies
        .into_iter()
        .find(|(word, _)| *word == wanted)
        .map(|(_, body)| body.as_slice())
        .unwrap_or_default();
    body.iter().map(|id| runs(plan, plan.step(plan.unguarded(*id)), printer)).collect()
}

/// The id of the nearest named step, starting with this one.
fn visible(plan: &Plan, id: StepId) -> String {
    let step = plan.step(id);
    match step.parent {
        Some(parent) if step.implicit => visible(plan, parent),
        _ => step.id.to_string(),
    }
}

/// The inner steps, looking through implicit ones.
fn bodies(
    plan: &Plan,
    number: StepId,
    ids: &dyn Fn(&[StepId]) -> Vec<Vec<String>>,
) -> IndexMap<String, Vec<Vec<String>>> {
    let mut found = IndexMap::new();
    for (word, body) in plan.step(number).kind.bodies() {
        match body.as_slice() {
            [only] if plan.step(*only).implicit => found.extend(bodies(plan, *only, ids)),
            [] => {}
            list if list.iter().any(|id| plan.step(*id).implicit) => {
                let branches = (1u32..).zip(list).flat_map(|(at, id)| branch(plan, *id, at, ids));
                found.extend(branches);
            }
            list => drop(found.insert(word.to_owned(), ids(list))),
        }
    }
    found
}

/// One of several branches: a step, or the steps inside an unnamed one.
fn branch(
    plan: &Plan,
    id: StepId,
    at: u32,
    ids: &dyn Fn(&[StepId]) -> Vec<Vec<String>>,
) -> Vec<(String, Vec<Vec<String>>)> {
    let heading = format!("branch {at}");
    match plan.step(id).implicit {
        false => vec![(heading, ids(&[id]))],
        true => match bodies(plan, id, ids) {
            inner if inner.len() == 1 => inner.into_values().map(|list| (heading.clone(), list)).collect(),
            inner => inner.into_iter().map(|(word, list)| (format!("{heading} {word}"), list)).collect(),
        },
    }
}

fn labels(plan: &Plan, number: StepId) -> Vec<String> {
    let step = plan.step(number);
    let siblings = match step.parent {
        None => &plan.roots,
        Some(parent) => {
            let around = plan.step(parent).kind.bodies().into_iter().map(|(_, body)| body);
            around.into_iter().find(|body| body.contains(&number)).unwrap_or(&plan.roots)
        }
    };
    let beside = siblings.iter().filter(|other| plan.step(**other).batch == step.batch).take(2).count();
    let mut labels = vec![if beside > 1 { "parallel" } else { "sequential" }];
    if step.condition.is_some() {
        labels.push("conditional");
    }
    if step.takes_over {
        let undoes = siblings.iter().any(|other| {
            plan.step(*other).policy.compensate.as_ref().is_some_and(|target| target.value == step.id)
        });
        labels.push(if undoes { "undoes" } else { "on_failure" });
    }
    match &plan.step(plan.unguarded(number)).kind {
        Kind::Gate(_) => labels.push("gate"),
        Kind::ForEach(_) => labels.push("fan_out"),
        Kind::Repeat(_) => labels.push("loop"),
        Kind::Parallel(_) => labels.push("branches"),
        Kind::Choose(_) => labels.push("branch"),
        Kind::Action(_)
        | Kind::Wait(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Guard(_) => {}
    }
    labels.into_iter().map(str::to_owned).collect()
}

fn input_outline(input: &Input, printer: &Printer<'_>) -> InputOutline {
    let source = input.source.as_ref().map(|bound| match &bound.template {
        Template::Expression(expr) => printer.expr(expr),
        template => printer.template(template),
    });
    InputOutline { ty: input.ty.to_string(), required: input.required, source }
}

fn outputs(step: &PlanStep) -> Json {
    let entries = step.outputs.iter().map(|(name, output)| {
        (
            name.to_string(),
            json!({"type": output.ty.to_string(), "required": output.required, "default": output.default}),
        )
    });
    Json::Object(entries.collect())
}

fn retry_after(after: RetryAfter) -> Json {
    match after {
        RetryAfter::AtLeast => json!("at_least"),
        RetryAfter::Instead { min, max } => json!({"min": min.to_string(), "max": max.to_string()}),
    }
}

fn gate_outline(gate: &Gate, printer: &Printer<'_>) -> Json {
    json!({
        "approvers": gate.approvers,
        "quorum": gate.quorum,
        "self_approval": gate.self_approval,
        "on_reject": on_reject(&gate.on_reject),
        "on_timeout": gate.on_timeout,
        "message": gate.message.as_ref().map(|message| printer.template(&message.template).trim().to_owned()),
        "form": gate.form.keys().collect::<Vec<_>>(),
    })
}

fn on_reject(on_reject: &OnReject) -> Json {
    match on_reject {
        OnReject::Fail | OnReject::Abort | OnReject::Skip | OnReject::Retry => json!(on_reject),
        OnReject::Back { to, times_max } => json!({"back_to": to.value, "max": times_max}),
    }
}

/// Who must approve, and what happens if they reject.
fn approval(gate: &Gate) -> String {
    let who = match (gate.approvers.is_empty(), gate.quorum) {
        (true, 1) => "anyone".to_owned(),
        (true, quorum) => format!("{quorum} people"),
        (false, 1) => gate.approvers.join(", "),
        (false, quorum) => format!("{quorum} of {}", gate.approvers.join(", ")),
    };
    match &gate.on_reject {
        OnReject::Back { to, .. } => format!("approval by {who}, otherwise back to {}", to.value),
        OnReject::Fail | OnReject::Abort | OnReject::Skip | OnReject::Retry => format!("approval by {who}"),
    }
}

/// A one-line summary of the work of a step.
fn runs(plan: &Plan, step: &PlanStep, printer: &Printer<'_>) -> String {
    match &step.kind {
        Kind::Action(Action::Agent(agent)) => agent.artifact.to_string(),
        Kind::Action(Action::Shell(shell)) => printer.template(&shell.run.template).trim().to_owned(),
        Kind::Action(Action::Tool(tool)) => match &tool.server {
            Some(server) => format!("tool {} on {server}", tool.tool),
            None => format!("tool {}", tool.tool),
        },
        Kind::Action(Action::Task(task)) => format!("task {}", task.task),
        Kind::Action(Action::Http(http)) => {
            format!("{} {}", http.method, printer.template(&http.url.template))
        }
        Kind::Action(Action::Call(call)) => {
            format!("workflow {}", printer.template(&call.workflow.template))
        }
        Kind::Action(Action::Assistant(assistant)) => match &assistant.ask {
            Ask::Prompt(prompt) => printer.template(&prompt.template).trim().to_owned(),
            Ask::Command { command, .. } => format!("command {command}"),
        },
        Kind::Action(Action::Builtin(builtin)) => builtin.what.word().to_owned(),
        Kind::Slot(name) => format!("slot {name}"),
        Kind::Parallel(parallel) => format!("{} parallel branches", parallel.branches.len()),
        Kind::Gate(gate) => approval(gate),
        Kind::Wait(wait) => wait_for(&wait.what, printer),
        Kind::Assign(set) => format!("sets {}", set.keys().map(|key| &**key).collect::<Vec<_>>().join(", ")),
        Kind::Finish(finish) => {
            format!("ends the run: {}", json!(finish.status).as_str().unwrap_or_default())
        }
        Kind::ForEach(each) => {
            let over = match &each.items {
                Items::List(list) => printer.template(&list.template),
                Items::Matrix(axes) => axes.keys().map(|key| &**key).collect::<Vec<_>>().join(" × "),
            };
            let inner = each.body.first().map(|body| runs(plan, plan.step(plan.unguarded(*body)), printer));
            format!("{} for each of {over}", inner.unwrap_or_default())
        }
        Kind::Repeat(repeat) => {
            let word = match repeat.test {
                RepeatTest::While => "while",
                RepeatTest::Until => "until",
                RepeatTest::DoWhile => "do while",
            };
            format!("{word} {}, at most {} rounds", printer.expr(&repeat.condition.expr), repeat.rounds_max)
        }
        Kind::Choose(Choose::If { condition, .. }) => format!("if {}", printer.expr(&condition.expr)),
        Kind::Choose(Choose::Switch { value, .. }) => format!("switch {}", printer.template(&value.template)),
        Kind::Block(_) => "its steps".to_owned(),
        Kind::Guard(guard) => {
            guard.body.first().map(|body| runs(plan, plan.step(*body), printer)).unwrap_or_default()
        }
    }
}

fn wait_for(what: &WaitFor, printer: &Printer<'_>) -> String {
    match what {
        WaitFor::Duration(length) => format!("waits {}", printer.template(&length.template)),
        WaitFor::Instant(instant) => format!("waits until {}", printer.template(&instant.template)),
        WaitFor::Cron(pattern) => format!("waits for the next {pattern}"),
        WaitFor::Signal { name, .. } => format!("waits for signal {name}"),
        WaitFor::Message { name, .. } => format!("waits for message {name}"),
    }
}

/// The timeout of one attempt of a step, or of a gate.
fn timeout(step: &PlanStep) -> Option<Duration> {
    match &step.kind {
        Kind::Gate(gate) => gate.timeout,
        Kind::Wait(wait) => wait.timeout,
        Kind::Action(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::ForEach(_)
        | Kind::Repeat(_)
        | Kind::Choose(_)
        | Kind::Guard(_) => step.policy.timeout,
    }
}

/// Working time and waiting time for people, counted separately.
#[derive(Clone, Copy, Default)]
struct Time {
    work: Duration,
    gates: Duration,
}

impl Time {
    fn longest(self, other: Self) -> Self {
        Self { work: self.work.max(other.work), gates: self.gates.max(other.gates) }
    }
}

fn time_of(plan: &Plan, list: &[StepId]) -> Time {
    plan.batches(list).iter().fold(Time::default(), |sum, batch| {
        // Steps that run only after a failure are not part of a successful run.
        let planned = batch.iter().filter(|id| !plan.step(**id).takes_over);
        let longest = planned.map(|id| time_of_step(plan, *id)).fold(Time::default(), Time::longest);
        Time { work: sum.work.plus(longest.work), gates: sum.gates.plus(longest.gates) }
    })
}

fn time_of_step(plan: &Plan, id: StepId) -> Time {
    let step = plan.step(id);
    let own = timeout(step);
    match &step.kind {
        Kind::Gate(_) => Time { gates: own.unwrap_or_default(), ..Time::default() },
        Kind::Guard(guard) => time_of(plan, &guard.body),
        kind => {
            let inside = kind
                .bodies()
                .into_iter()
                .map(|(_, body)| time_of(plan, body))
                .fold(Time::default(), Time::longest);
            Time { work: own.unwrap_or(inside.work), gates: inside.gates }
        }
    }
}
