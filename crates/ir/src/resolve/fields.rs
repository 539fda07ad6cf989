//! All fields that can contain an expression: the one list shared by checks and lowering.

use crate::contract::Type;
use crate::policy::Bindings;
use crate::trigger::TriggerInput;
use crate::workflow::{
    Action, Ask, Assistant, Bound, Choose, Condition, HookAction, Http, HttpAuth, HttpBody, Items, Kind,
    Output, Step, WaitFor, Workflow,
};
use indexmap::IndexMap;
use std::sync::Arc;

/// The value that contains the expression.
#[derive(Debug)]
pub enum Slot<'a> {
    Bound(&'a mut Bound),
    Condition(&'a mut Condition),
}

impl Slot<'_> {
    /// The name of the field in the file.
    pub fn field(&self) -> Arc<str> {
        match self {
            Self::Bound(bound) => bound.field.clone(),
            Self::Condition(condition) => condition.field.clone(),
        }
    }
}

/// Rules for a field, beyond its content.
#[derive(Clone, Copy, Debug)]
pub struct Use<'a> {
    /// The required type of the value.
    pub expects: Option<&'a Type>,
    /// Whether a secret may be passed as a whole: only where an executor uses it and no one reads it.
    pub secrets: bool,
    /// Whether the environment that the step itself adds can be read.
    pub own_env: bool,
    /// Whether it is a shell command, in which `raw()` has a meaning.
    pub command: bool,
    pub sight: Sight,
}

/// What an expression can see besides the preceding steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    Before,
    /// Evaluated inside or after the scope's body: sees the steps in it too.
    Body,
    /// The condition of a loop: sees the steps in it and the index of the round.
    Round,
    /// Sees the failed attempt.
    Retry,
    /// Evaluated for the run: sees every step of the outermost scope.
    Run,
    /// Evaluated before the first step: sees no steps.
    Start,
    /// Evaluated when a trigger fires: sees only the payload of the trigger, as the item.
    Trigger,
}

const PLAIN: Use<'static> =
    Use { expects: None, secrets: false, own_env: true, command: false, sight: Sight::Before };
const WITH_SECRETS: Use<'static> = Use { secrets: true, ..PLAIN };
const COMMAND: Use<'static> = Use { command: true, ..PLAIN };
const IN_ROUND: Use<'static> = Use { sight: Sight::Round, ..PLAIN };

type Visit<'v> = &'v mut dyn FnMut(Slot<'_>, Use<'_>);

/// The expressions of the step itself, without those of inner steps.
pub fn of_step(step: &mut Step, visit: Visit<'_>) {
    if let Some(condition) = &mut step.condition {
        visit(Slot::Condition(condition), PLAIN);
    }
    for input in step.inputs.values_mut() {
        let place = Use { expects: Some(&input.ty), ..PLAIN };
        optional(&mut input.source, place, visit);
    }
    let sight = if step.kind.bodies().is_empty() { Sight::Before } else { Sight::Body };
    outputs(&mut step.outputs, sight, visit);
    bindings(&mut step.env, Use { own_env: false, ..WITH_SECRETS }, visit);
    if let Some(when) = &mut step.policy.retry.when {
        visit(Slot::Condition(when), Use { sight: Sight::Retry, ..PLAIN });
    }
    if let Some(idempotency) = &mut step.policy.idempotency {
        bound(&mut idempotency.key, PLAIN, visit);
    }
    if let Some(rate) = &mut step.policy.rate {
        optional(&mut rate.key, PLAIN, visit);
    }
    of_kind(&mut step.kind, visit);
}

fn of_kind(kind: &mut Kind<Vec<Step>>, visit: Visit<'_>) {
    match kind {
        Kind::Action(action) => of_action(action, visit),
        Kind::Gate(gate) => {
            optional(&mut gate.message, PLAIN, visit);
            optional(&mut gate.show_file, PLAIN, visit);
        }
        Kind::Wait(wait) => match &mut wait.what {
            WaitFor::Duration(length) => bound(length, PLAIN, visit),
            WaitFor::Instant(instant) => bound(instant, PLAIN, visit),
            WaitFor::Cron(_) => {}
            WaitFor::Signal { matching, .. } | WaitFor::Message { matching, .. } => {
                bindings(matching, PLAIN, visit);
            }
        },
        Kind::Assign(set) => bindings(set, PLAIN, visit),
        Kind::Finish(finish) => bindings(&mut finish.outputs, PLAIN, visit),
        Kind::ForEach(each) => match &mut each.items {
            Items::List(list) => bound(list, Use { expects: Some(&any_list()), ..PLAIN }, visit),
            Items::Matrix(axes) => bindings(axes, Use { expects: Some(&any_list()), ..PLAIN }, visit),
        },
        Kind::Repeat(repeat) => visit(Slot::Condition(&mut repeat.condition), IN_ROUND),
        Kind::Choose(Choose::If { condition, .. }) => visit(Slot::Condition(condition), PLAIN),
        Kind::Choose(Choose::Switch { value, .. }) => bound(value, PLAIN, visit),
        Kind::Slot(_) | Kind::Block(_) | Kind::Parallel(_) | Kind::Guard(_) => {}
    }
}

fn of_action(action: &mut Action, visit: Visit<'_>) {
    match action {
        Action::Agent(agent) => {
            optional(&mut agent.instructions, PLAIN, visit);
            optional(&mut agent.handoff.summary_prompt, PLAIN, visit);
        }
        Action::Shell(shell) => {
            bound(&mut shell.run, COMMAND, visit);
            optional(&mut shell.cwd, PLAIN, visit);
            optional(&mut shell.stdin, WITH_SECRETS, visit);
        }
        Action::Tool(tool) => optional(&mut tool.args, WITH_SECRETS, visit),
        Action::Task(task) => optional(&mut task.input, PLAIN, visit),
        Action::Http(http) => of_http(http, visit),
        Action::Call(call) => {
            bound(&mut call.workflow, PLAIN, visit);
            optional(&mut call.input, PLAIN, visit);
        }
        Action::Assistant(assistant) => of_assistant(assistant, visit),
        Action::Builtin(builtin) => bindings(&mut builtin.args, PLAIN, visit),
    }
}

fn of_assistant(assistant: &mut Assistant, visit: Visit<'_>) {
    optional(&mut assistant.integration, PLAIN, visit);
    optional(&mut assistant.model, PLAIN, visit);
    match &mut assistant.ask {
        Ask::Prompt(prompt) => bound(prompt, PLAIN, visit),
        Ask::Command { input, arguments, settings, .. } => {
            bindings(input, PLAIN, visit);
            arguments.iter_mut().for_each(|argument| bound(argument, PLAIN, visit));
            bindings(settings, PLAIN, visit);
        }
    }
}

fn of_http(http: &mut Http, visit: Visit<'_>) {
    bound(&mut http.url, WITH_SECRETS, visit);
    bindings(&mut http.headers, WITH_SECRETS, visit);
    bindings(&mut http.query, WITH_SECRETS, visit);
    match &mut http.body {
        HttpBody::Empty => {}
        HttpBody::Json(body) | HttpBody::Text(body) => bound(body, WITH_SECRETS, visit),
        HttpBody::Form(fields) => bindings(fields, WITH_SECRETS, visit),
    }
    match &mut http.auth {
        None => {}
        Some(HttpAuth::Bearer(token)) => bound(token, WITH_SECRETS, visit),
        Some(HttpAuth::Basic { user, password }) => {
            bound(user, WITH_SECRETS, visit);
            bound(password, WITH_SECRETS, visit);
        }
    }
}

/// The expressions that belong to no step.
pub fn of_workflow(workflow: &mut Workflow, visit: Visit<'_>) {
    let start = Use { sight: Sight::Start, ..PLAIN };
    bindings(&mut workflow.env, Use { secrets: true, own_env: false, ..start }, visit);
    optional(&mut workflow.policy.concurrency.key, start, visit);
    optional(&mut workflow.policy.start_key, start, visit);
    if let Some(priority) = &mut workflow.policy.priority {
        bound(&mut priority.key, start, visit);
    }
    if let Some(singleton) = &mut workflow.policy.singleton {
        optional(&mut singleton.key, start, visit);
    }
    workflow.policy.cancel_on.iter_mut().for_each(|cancel| bindings(&mut cancel.matching, start, visit));
    outputs(&mut workflow.outputs, Sight::Run, visit);
    if let Some(result) = &mut workflow.result {
        let place = Use { expects: Some(&result.ty), sight: Sight::Run, ..PLAIN };
        optional(&mut result.source, place, visit);
    }
    for hook in &mut workflow.hooks {
        let command = matches!(hook.action, HookAction::Run(_));
        bound(hook.action.bound_mut(), Use { sight: Sight::Run, command, ..PLAIN }, visit);
    }
    for trigger in &mut workflow.triggers {
        let place = Use { sight: Sight::Trigger, ..PLAIN };
        match &mut trigger.input {
            TriggerInput::Parameters(given) => {
                for (name, value) in given {
                    let expects = workflow.parameters.get(name).map(|parameter| &parameter.ty);
                    bound(value, Use { expects, ..place }, visit);
                }
            }
            TriggerInput::Whole(value) => bound(value, place, visit),
            TriggerInput::Envelope => {}
        }
    }
}

fn any_list() -> Type {
    Type::Array(Box::new(Type::Any))
}

fn outputs(outputs: &mut IndexMap<Arc<str>, Output>, sight: Sight, visit: Visit<'_>) {
    for output in outputs.values_mut() {
        let place = Use { expects: Some(&output.ty), sight, ..PLAIN };
        optional(&mut output.source, place, visit);
    }
}

fn bindings(bindings: &mut Bindings, place: Use<'_>, visit: Visit<'_>) {
    bindings.values_mut().for_each(|value| bound(value, place, visit));
}

fn optional(value: &mut Option<Bound>, place: Use<'_>, visit: Visit<'_>) {
    if let Some(value) = value {
        bound(value, place, visit);
    }
}

fn bound(value: &mut Bound, place: Use<'_>, visit: Visit<'_>) {
    visit(Slot::Bound(value), place);
}
