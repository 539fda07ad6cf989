//! A run as its user sees it: the objects of replies. The status is neutral; ids, the dialect's status word and the list of steps
//! come from the dialect.

mod because;
mod event;
mod gate;
mod item;
mod limits;
mod lines;
mod listing;
mod payload;
mod projector;
mod record;
mod status;
mod summary;
mod transitions;
mod tree;

use crate::types::{
    Children, Failure as PublicFailure, FormField, Json, ResultKind, Run, StepView as PublicStep, Undone,
    Wait, WaitKind,
};
pub use event::event_name;
pub use gate::ShownFile;
use indexmap::IndexMap;
pub use item::item_name;
pub use limits::{budgets, limits};
pub use lines::Lines;
pub use projector::{Projector, Replay};
use serde_json::json;
pub use summary::summary;
pub(crate) use transitions::transitions;
pub use tree::{Attempt, Handler, Node};
use windlass_ir::StepStatus;
use windlass_ir::dialect::{
    CurrentStep, Dialect, Dialects, RunFacts, ShownInput, ShownOutput, StepFacts, StepPhase as FactPhase,
    Undone as Undoing,
};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::Value;
use windlass_ir::workflow::{Gate, Kind};
use windlass_runtime::{
    Asker, Assignment, CoordinatorState, Decision, Engine, Failure, HookTrace, Outcome, Path, RETRY_OF,
    RunId, RunPhase, StepPhase, StepView, Timestamp, View, Work, class, data, facts, ids, is_resumable,
    run_status, while_executed,
};

/// A run and what else is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Report<'v> {
    run: &'v RunId,
    view: &'v View,
    dialects: Dialects,
    facts: RunFacts,
    shared: Option<&'v CoordinatorState>,
}

impl<'v> Report<'v> {
    /// `executed` says whether a process executes the run.
    pub fn new(dialects: Dialects, run: &'v RunId, view: &'v View, executed: bool) -> Self {
        Self { run, view, dialects, facts: facts(view, run_status(view, executed)), shared: None }
    }

    /// A run of a data folder. Asks the owner of the folder whether it executes a run without a result.
    pub fn of(engine: &Engine, run: &'v RunId, view: &'v View) -> Self {
        Self::new(engine.dialects(), run, view, engine.executes(run, view))
    }

    /// A run in the middle of its events. A run that waits counts as running, so this does not look at its steps.
    pub fn in_passing(dialects: Dialects, run: &'v RunId, view: &'v View) -> Self {
        Self { run, view, dialects, facts: facts(view, while_executed(view)), shared: None }
    }

    /// Also shows its positions in queues.
    #[must_use]
    pub fn with_shared(self, shared: Option<&'v CoordinatorState>) -> Self {
        Self { shared, ..self }
    }

    pub fn dialect(&self) -> &'static dyn Dialect {
        self.dialects.named(&self.view.program().plan.dialect)
    }

    /// What users call a step.
    pub fn id(&self, path: &Path) -> String {
        ids::name(self.dialects, self.view, path).id
    }

    /// The run with its steps, at this moment.
    pub fn run(&self) -> Run {
        let (view, plan) = (self.view, &self.view.program().plan);
        let text = |name: &str| view.about().get(name).and_then(Value::as_str).map(str::to_owned);
        let all = self.steps();
        let steps_left_out = all.len().saturating_sub(STEPS_MAX);
        let steps = all.into_iter().take(STEPS_MAX).map(|(id, shown)| (id.clone(), shown.into_step(id)));
        let (created, ended) = (view.started_at(), view.ended_at());
        let started = match view.phase() {
            RunPhase::Pending => None,
            RunPhase::Running | RunPhase::Ended(_) => {
                created.map(|at| view.begins_at().unwrap_or(at).max(at))
            }
        };
        let error = self.error();
        let waiting_on = self.waiting_on();
        Run {
            kind: ResultKind::Result,
            run_id: self.run.to_string(),
            workflow: plan.header.id.to_string(),
            version: version(plan.digest.as_str()),
            dialect: plan.dialect.to_string(),
            status: self.status(),
            dialect_status: self.dialect_status().to_owned(),
            headline: summary::headline(&summary::Told {
                status: self.status(),
                error: error.as_ref(),
                waiting_on: &waiting_on,
                canceled_by: view.cancel().map(|cancel| &*cancel.by),
                failures: self.failures(),
            }),
            has_failures: self.has_failures(),
            mocked: self.is_mocked(),
            inputs: self.inputs(),
            outputs: outputs(view),
            current_step: self.current_step(),
            waiting_on,
            error,
            steps: steps.collect(),
            steps_left_out,
            created_at: created.map(instant).unwrap_or_default(),
            started_at: started.map(instant),
            ended_at: ended.map(instant),
            duration_seconds: started.zip(ended).map(|(start, end)| end.since(start).into()),
            by: view.by().map(ToString::to_string),
            undone: self.facts.undone.map(|undone| match undone {
                Undoing::All => Undone::All,
                Undoing::Part => Undone::Part,
            }),
            parent_run_id: view.parents().last().map(ToString::to_string),
            root_run_id: view.parents().first().unwrap_or(self.run).to_string(),
            retry_of: text(RETRY_OF),
            hooks: view.hooks().map(|(path, hook)| self.hook(path, hook)).collect(),
            seq: view.events,
            resumable: is_resumable(view),
            at_event: None,
        }
    }

    /// So many of the steps, from one of them on, and whether there are more.
    pub(crate) fn page(&self, from: usize, count: usize) -> (Vec<PublicStep>, bool) {
        let all = self.steps();
        let more = all.len() > from.saturating_add(count);
        let page = all.into_iter().skip(from).take(count);
        (page.map(|(id, shown)| shown.into_step(id)).collect(), more)
    }

    pub(crate) fn has_failures(&self) -> bool {
        self.view.has_failures() || self.view.steps().any(|(_, step)| has_failed(&step))
    }

    /// What failed in a run that did not fail itself: items of fan-outs, or steps.
    fn failures(&self) -> Option<String> {
        if !self.has_failures() {
            return None;
        }
        let view = self.view;
        let is_item = |step: &StepView<'_>| matches!(view.plan_step(step).kind, Kind::ForEach(_));
        let items = view.steps().filter(|(_, step)| step.frame.is_some() && is_item(step));
        let failed = items.filter(|(_, step)| has_failed(step)).count();
        let all: usize =
            view.steps().filter(|(_, step)| step.frame.is_none()).map(|(_, step)| items_of(&step)).sum();
        Some(match failed {
            0 => "with failed steps".to_owned(),
            failed => format!("with {failed} of {all} items failed"),
        })
    }

    /// A hook as a step.
    fn hook(&self, path: &Path, hook: &HookTrace) -> PublicStep {
        let id = self.id(path);
        let phase = match &hook.outcome {
            None => FactPhase::Running,
            Some(Outcome::Failed(_)) => FactPhase::Failed,
            Some(Outcome::Cancelled(_)) => FactPhase::Cancelled,
            Some(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => FactPhase::Done,
        };
        let (status, word) = self.words(&StepFacts::new(phase, self.facts));
        let span = hook.started_at.zip(hook.ended_at);
        PublicStep {
            path: Some(path.to_string()),
            name: id.trim_start_matches("hook:").to_owned(),
            kind: "hook".to_owned(),
            status,
            dialect_status: word.to_owned(),
            attempts: u32::from(hook.started_at.is_some()),
            delays_seconds: Vec::new(),
            input: Json::Null,
            output: Json::Null,
            error: match &hook.outcome {
                Some(Outcome::Failed(failure)) => Some(error(failure, Some(id.clone()))),
                Some(_) | None => None,
            },
            skipped_because: None,
            duration_seconds: span.map(|(start, end)| end.since(start).into()),
            started_at: hook.started_at.map(instant),
            ended_at: hook.ended_at.map(instant),
            wait: None,
            child_run_id: None,
            kept: false,
            rounds: None,
            children: None,
            item: None,
            undone: false,
            abandoned: false,
            id,
        }
    }

    /// Whether mock responses answer for its steps.
    pub(crate) fn is_mocked(&self) -> bool {
        self.view.about().get("scripted") == Some(&Value::Bool(true))
    }

    /// What the run was started with.
    pub fn inputs(&self) -> Json {
        let mut inputs = data(self.view.inputs());
        if let (true, Json::Object(inputs)) = (self.dialect().reporting().hides_missing_inputs, &mut inputs) {
            inputs.retain(|_, value| !value.is_null());
        }
        inputs
    }

    pub(crate) fn current_step(&self) -> Option<String> {
        match self.dialect().reporting().current {
            CurrentStep::Active => self.active().map(|path| self.id(path)),
            CurrentStep::LastBegun => {
                self.last_begun().map(|path| ids::within(self.dialects, self.view, path))
            }
        }
    }

    fn active(&self) -> Option<&'v Path> {
        let mut steps = self.view.steps();
        let active = steps.find(|(_, step)| match &step.phase {
            StepPhase::Queued { .. }
            | StepPhase::Running
            | StepPhase::Backoff { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined => true,
            StepPhase::Dormant | StepPhase::Pending | StepPhase::Inside | StepPhase::Settled(_) => false,
        });
        active.map(|(path, _)| path)
    }

    fn waiting_on(&self) -> Vec<Wait> {
        let view = self.view;
        match view.phase() {
            RunPhase::Pending if view.begins_at().is_some() => {
                let message = Some(json!("the run was started for later"));
                let until = view.begins_at().map(instant);
                return vec![Wait { message, until, ..waits(None, WaitKind::Timer) }];
            }
            RunPhase::Pending if view.started_at().is_some() => {
                let since = view.started_at().unwrap_or_default();
                let claims: Vec<_> = view.claims().cloned().collect();
                return vec![slot(None, &claims, since, self.position(&Path::default()))];
            }
            RunPhase::Pending | RunPhase::Ended(_) => return Vec::new(),
            RunPhase::Running => {}
        }
        view.steps().filter_map(|(path, step)| self.wait(path, &step)).collect()
    }

    /// What a step waits for.
    fn wait(&self, path: &Path, step: &StepView<'_>) -> Option<Wait> {
        let view = self.view;
        let wait = |kind| waits(Some(self.id(path)), kind);
        match &step.phase {
            StepPhase::Asking { message, until } => {
                let gate = gate(view, step);
                Some(Wait {
                    message: message.map(words),
                    options: gate.map(|gate| texts(&gate.options)),
                    approvers: gate.map(|gate| texts(&gate.approvers)),
                    form: gate.map(form),
                    until: until.map(instant),
                    ..wait(WaitKind::Gate)
                })
            }
            StepPhase::Queued { since } => {
                let claims = step.assignment.iter().flat_map(|assignment| &assignment.claims);
                let keys: Vec<_> = claims.map(|claim| claim.key().clone()).collect();
                Some(slot(Some(self.id(path)), &keys, *since, self.position(path)))
            }
            StepPhase::Backoff { until } => Some(Wait {
                message: Some(json!("waiting for the next attempt")),
                until: Some(instant(*until)),
                ..wait(WaitKind::Timer)
            }),
            StepPhase::Waiting { signal, until } => Some(Wait {
                message: signal.map(Json::from),
                until: until.map(instant),
                ..wait(if signal.is_some() { WaitKind::Signal } else { WaitKind::Timer })
            }),
            StepPhase::Running => step.child().map(|child| Wait {
                message: Some(json!(child)),
                child_run_id: Some(child.to_string()),
                ..wait(WaitKind::Run)
            }),
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Joined
            | StepPhase::Inside
            | StepPhase::Settled(_) => None,
        }
    }

    /// The position of a request in its queue, from 1.
    fn position(&self, path: &Path) -> Option<usize> {
        let (shared, run) = (self.shared?, self.run);
        let first = Asker { run: run.clone(), path: path.clone(), attempt: 0 };
        let mut waiting = shared.waiting.range(&first..);
        let (_, waiting) = waiting.next().filter(|(asker, _)| asker.run == *run && asker.path == *path)?;
        let queue = shared.queues.get(&waiting.on)?;
        Some(queue.range(..=waiting.position).count())
    }

    /// Why the run failed or was cancelled.
    pub(crate) fn error(&self) -> Option<PublicFailure> {
        match self.view.phase() {
            RunPhase::Ended(Outcome::Failed(failure)) => {
                Some(error(failure, self.view.failed_at().map(|path| self.id(path))))
            }
            RunPhase::Ended(Outcome::Cancelled(why)) => Some(PublicFailure {
                code: class::CANCELLED.to_owned(),
                message: why.to_string(),
                step: None,
                field: None,
            }),
            RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => None,
        }
    }

    /// One instance of a step as it is shown.
    fn shown(&self, path: &Path, step: &StepView<'v>) -> Shown {
        let (view, reporting, facts) = (self.view, self.dialect().reporting(), self.step_facts(step));
        let doing = doing(view, path, step);
        let mut shown = Shown::nothing(view.plan_step(step), self.words(&facts), None);
        shown.path = Some(path.to_string());
        shown.wait = self.wait(path, step);
        shown.rounds = step.rounds;
        shown.children = self.children(path, step);
        shown.item = self.item(path);
        shown.undone = step.undone == Some(true) || doing.undone == Some(true);
        shown.abandoned = step.abandoned;
        (shown.started_at, shown.ended_at) = (step.started_at.or(doing.started_at), step.ended_at);
        shown.attempts = doing.attempts;
        shown.child = doing.child();
        shown.kept = step.kept || doing.kept;
        shown.delays = doing.delays.to_vec();
        shown.input = match reporting.input {
            ShownInput::Declared if !view.plan_step(&doing).inputs.is_empty() => {
                doing.input.map_or(Json::Null, data)
            }
            ShownInput::Declared => given(&doing),
            ShownInput::Given => given(step),
            ShownInput::Asked => record::asked(step),
        };
        match &step.phase {
            StepPhase::Settled(Outcome::Done(value) | Outcome::Continue(value)) => shown.output = data(value),
            StepPhase::Settled(Outcome::Failed(failure)) => {
                shown.error = Some(error(failure, Some(self.id(path))));
            }
            StepPhase::Settled(Outcome::Skipped(skip)) => {
                let because = skip.because_of.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
                shown.skipped = Some(format!("{}{because}", skip.reason.word()));
            }
            StepPhase::Dormant if facts.status() == StepStatus::Skipped => {
                shown.skipped = Some(listing::NOT_TAKEN.into());
            }
            StepPhase::Settled(Outcome::Cancelled(_))
            | StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Running
            | StepPhase::Backoff { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined
            | StepPhase::Inside => {}
        }
        match reporting.output {
            ShownOutput::Done => {}
            ShownOutput::Progress => self.show_progress(path, step, &mut shown),
            ShownOutput::Record => self.show_record(path, step, &mut shown),
        }
        shown
    }
}

/// How many items a fan-out has.
fn items_of(step: &StepView<'_>) -> usize {
    match step.entered {
        Some(Decision::Items { items: Value::List(items), .. }) => items.len(),
        _ => 0,
    }
}

fn has_failed(step: &StepView<'_>) -> bool {
    matches!(step.phase, StepPhase::Settled(Outcome::Failed(_)))
}

fn outputs(view: &View) -> Json {
    match view.phase() {
        RunPhase::Ended(Outcome::Done(value) | Outcome::Continue(value)) => data(value),
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    }
}

/// A run shows at most this many steps.
const STEPS_MAX: usize = 1_000;

/// The digest of a plan as programs read it.
pub(crate) fn version(digest: &str) -> String {
    format!("blake3:{digest}")
}

fn instant(at: Timestamp) -> String {
    at.to_string()
}

/// A wait about which nothing else is known.
fn waits(step: Option<String>, kind: WaitKind) -> Wait {
    Wait {
        step,
        kind,
        message: None,
        options: None,
        until: None,
        since: None,
        approvers: None,
        form: None,
        position: None,
        child_run_id: None,
    }
}

/// A wait for a slot.
fn slot(
    step: Option<String>,
    keys: &[std::sync::Arc<str>],
    since: Timestamp,
    position: Option<usize>,
) -> Wait {
    let message = Some(json!(keys.join(", ")));
    Wait { message, since: Some(instant(since)), position, ..waits(step, WaitKind::Slot) }
}

/// A message without the space around it.
fn words(message: &Value) -> Json {
    match message {
        Value::Text(text) => json!(text.trim()),
        other => data(other),
    }
}

fn texts(texts: &[std::sync::Arc<str>]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn gate<'v>(view: &'v View, step: &StepView<'_>) -> Option<&'v Gate> {
    match &view.plan_step(step).kind {
        Kind::Gate(gate) => Some(gate),
        _ => None,
    }
}

/// The fields that an approver fills in.
fn form(gate: &Gate) -> IndexMap<String, FormField> {
    let fields = gate.form.iter().map(|(name, field)| {
        let field = FormField {
            kind: field.ty.to_string(),
            required: field.required,
            default: field.default.as_ref().map_or(Json::Null, data),
            choices: field.choices.iter().map(data).collect(),
            description: field.description.as_ref().map(ToString::to_string),
        };
        (name.to_string(), field)
    });
    fields.collect()
}

fn error(failure: &Failure, step: Option<String>) -> PublicFailure {
    PublicFailure {
        code: failure.class.to_string(),
        message: failure.message.to_string(),
        step,
        field: failure.field.as_ref().map(ToString::to_string),
    }
}

/// One step as it is shown.
#[derive(Clone, Debug)]
struct Shown {
    path: Option<String>,
    name: String,
    /// The dialect's word for its kind.
    kind: String,
    status: StepStatus,
    /// In the words of the dialect.
    word: &'static str,
    attempts: u32,
    delays: Vec<windlass_ir::Duration>,
    input: Json,
    output: Json,
    error: Option<PublicFailure>,
    skipped: Option<String>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    wait: Option<Wait>,
    /// The run that it has called.
    child: Option<RunId>,
    kept: bool,
    rounds: u32,
    children: Option<Children>,
    item: Option<String>,
    undone: bool,
    abandoned: bool,
}

impl Shown {
    /// A step that nothing has happened to.
    fn nothing(step: &PlanStep, (status, word): (StepStatus, &'static str), skipped: Option<&str>) -> Self {
        Self {
            path: None,
            name: step.name.to_string(),
            kind: step.word.to_string(),
            status,
            word,
            attempts: 0,
            delays: Vec::new(),
            input: Json::Null,
            output: Json::Null,
            error: None,
            skipped: skipped.map(str::to_owned),
            started_at: None,
            ended_at: None,
            wait: None,
            child: None,
            kept: false,
            rounds: 0,
            children: None,
            item: None,
            undone: false,
            abandoned: false,
        }
    }

    fn into_step(self, id: String) -> PublicStep {
        let span = self.started_at.zip(self.ended_at);
        PublicStep {
            id,
            path: self.path,
            name: self.name,
            kind: self.kind,
            status: self.status,
            dialect_status: self.word.to_owned(),
            attempts: self.attempts,
            delays_seconds: self.delays.into_iter().map(Into::into).collect(),
            input: self.input,
            output: self.output,
            error: self.error,
            skipped_because: self.skipped,
            duration_seconds: span.map(|(start, end)| end.since(start).into()),
            started_at: self.started_at.map(instant),
            ended_at: self.ended_at.map(instant),
            wait: self.wait,
            child_run_id: self.child.map(|child| child.to_string()),
            kept: self.kept,
            rounds: Some(self.rounds).filter(|rounds| *rounds > 0),
            children: self.children,
            item: self.item,
            undone: self.undone,
            abandoned: self.abandoned,
        }
    }
}

/// The instance that does the work of a step: itself, or what stands inside its guard.
fn doing<'v>(view: &'v View, path: &Path, step: &StepView<'v>) -> StepView<'v> {
    let known = view.plan_step(step);
    let Kind::Guard(guard) = &known.kind else { return *step };
    let inner = guard.body.first().and_then(|body| {
        let path = path.child(known.id.clone(), None);
        view.step(&path).filter(|inner| inner.step == *body).map(|inner| (path, inner))
    });
    inner.map_or(*step, |(path, inner)| doing(view, &path, &inner))
}

/// What the work of a step was given, where that is no object of declared inputs.
fn given(step: &StepView<'_>) -> Json {
    let Some(assignment) = step.assignment else {
        return step.input.map_or(Json::Null, data);
    };
    let Assignment { work, input, .. } = &**assignment;
    match work {
        Work::Tool { args, .. } => data(&args.0),
        Work::Task { input, .. } | Work::Call { input, .. } => data(input),
        Work::Builtin { args, .. } => data(args),
        Work::Agent { .. }
        | Work::Shell { .. }
        | Work::Http(_)
        | Work::Assistant(_)
        | Work::Notify { .. } => data(input),
    }
}
