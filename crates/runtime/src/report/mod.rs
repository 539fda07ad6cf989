//! A run as its user sees it: the objects that programs read. The status is neutral; ids, the other status word and what is listed
//! come from the dialect.

mod limits;
mod listing;
mod payload;
mod record;
mod status;
mod transitions;
mod tree;

use crate::ids;
pub use limits::limits;
use serde_json::{Map, Value as Json, json};
pub(crate) use status::undone;
pub use status::{is_resumable, status};
pub(crate) use transitions::transitions;
pub use tree::Node;
use windlass_engine::{
    Asker, Assignment, CoordinatorState, Failure, Outcome, Path, RunId, RunPhase, StepPhase, StepView, View,
    Work, class,
};
use windlass_ir::StepStatus;
use windlass_ir::dialect::{CurrentStep, Dialect, Dialects, RunFacts, ShownInput, ShownOutput};
use windlass_ir::value::{SealedPart, VALUE_BYTES_MAX, Value};
use windlass_ir::workflow::{Gate, Kind};

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
        Self { run, view, dialects, facts: status::facts(view, status(view, executed)), shared: None }
    }

    /// A run in the middle of its events. A run that waits counts as running.
    fn in_passing(dialects: Dialects, run: &'v RunId, view: &'v View) -> Self {
        Self { run, view, dialects, facts: status::facts(view, status::while_executed(view)), shared: None }
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

    /// The result object of the run at this moment.
    pub fn result(&self) -> Json {
        let (view, plan) = (self.view, &self.view.program().plan);
        let steps: Map<String, Json> =
            self.steps().into_iter().map(|(id, shown)| (id, shown.into_json())).collect();
        let mut result = json!({
            "type": "result",
            "run_id": self.run,
            "workflow": plan.header.id,
            "dialect": plan.dialect,
            "status": self.status(),
            "dialect_status": self.dialect_status(),
            "scripted": view.about().get("scripted") == Some(&Value::Bool(true)),
            "paused": view.is_paused() && view.ended_at().is_none(),
            "has_failures": view.has_failures() || view.steps().any(|(_, step)| has_failed(&step)),
            "inputs": self.inputs(),
            "outputs": outputs(view),
            "current_step": self.current_step(),
            "waiting_on": self.waiting_on(),
            "error": self.error(),
            "steps": steps,
        });
        if let Some(of) = view.about().get(crate::engine::RETRY_OF) {
            result["retry_of"] = data(of);
        }
        result
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

    fn waiting_on(&self) -> Vec<Json> {
        let view = self.view;
        match view.phase() {
            RunPhase::Pending if view.begins_at().is_some() => {
                return vec![json!({
                    "step": null,
                    "kind": "timer",
                    "message": "the run was started for later",
                    "options": null,
                    "until": view.begins_at().map(|at| at.to_string()),
                })];
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
    fn wait(&self, path: &Path, step: &StepView<'_>) -> Option<Json> {
        let view = self.view;
        let name = || self.id(path);
        let shown = |until: windlass_engine::Timestamp| until.to_string();
        match &step.phase {
            StepPhase::Asking { message, until } => Some(json!({
                "step": name(),
                "kind": "gate",
                "message": message.map(words),
                "options": gate(view, step).map(|gate| &gate.options),
                "approvers": gate(view, step).map(|gate| &gate.approvers),
                "form": gate(view, step).map(form),
                "until": until.map(shown),
            })),
            StepPhase::Queued { since } => {
                let claims = step.assignment.iter().flat_map(|assignment| &assignment.claims);
                let keys: Vec<_> = claims.map(|claim| claim.key().clone()).collect();
                Some(slot(Some(&name()), &keys, *since, self.position(path)))
            }
            StepPhase::Backoff { until } => Some(json!({
                "step": name(),
                "kind": "timer",
                "message": "waiting for the next attempt",
                "options": null,
                "until": until.to_string(),
            })),
            StepPhase::Waiting { signal, until } => Some(json!({
                "step": name(),
                "kind": if signal.is_some() { "signal" } else { "timer" },
                "message": signal,
                "options": null,
                "until": until.map(shown),
            })),
            StepPhase::Running => step.child().map(
                |child| json!({"step": name(), "kind": "run", "message": child, "options": null, "until": null}),
            ),
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

    fn error(&self) -> Json {
        match self.view.phase() {
            RunPhase::Ended(Outcome::Failed(failure)) => {
                let step = self.view.failed_at().map(|path| self.id(path));
                error(failure, step.as_deref())
            }
            RunPhase::Ended(Outcome::Cancelled(why)) => {
                json!({"code": class::CANCELLED, "message": why, "step": null, "field": null})
            }
            RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
        }
    }

    /// One instance of a step as it is shown.
    fn shown(&self, path: &Path, step: &StepView<'v>) -> Shown {
        let (view, reporting, facts) = (self.view, self.dialect().reporting(), self.step_facts(step));
        let doing = doing(view, path, step);
        let mut shown = Shown::nothing(self.words(&facts), None);
        shown.attempts = doing.attempts;
        shown.child = doing.child();
        shown.kept = step.kept || doing.kept;
        shown.delays = doing.delays.to_vec();
        let span = step.started_at.or(doing.started_at).zip(step.ended_at);
        shown.duration = span.map(|(start, end)| end.since(start).as_secs_f64());
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
                shown.error = error(failure, Some(&self.id(path)));
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

fn has_failed(step: &StepView<'_>) -> bool {
    matches!(step.phase, StepPhase::Settled(Outcome::Failed(_)))
}

fn outputs(view: &View) -> Json {
    match view.phase() {
        RunPhase::Ended(Outcome::Done(value) | Outcome::Continue(value)) => data(value),
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    }
}

/// A wait for a slot.
fn slot(
    step: Option<&str>,
    keys: &[std::sync::Arc<str>],
    since: windlass_engine::Timestamp,
    position: Option<usize>,
) -> Json {
    json!({
        "step": step,
        "kind": "slot",
        "message": keys.join(", "),
        "options": null,
        "until": null,
        "since": since.to_string(),
        "position": position,
    })
}

/// A message as people write it.
fn words(message: &Value) -> Json {
    match message {
        Value::Text(text) => json!(text.trim()),
        other => data(other),
    }
}

fn gate<'v>(view: &'v View, step: &StepView<'_>) -> Option<&'v Gate> {
    match &view.plan_step(step).kind {
        Kind::Gate(gate) => Some(gate),
        _ => None,
    }
}

/// What an approver is asked to fill in.
fn form(gate: &Gate) -> Json {
    let fields = gate.form.iter().map(|(name, field)| {
        let about = json!({"type": field.ty.to_string(), "required": field.required, "default": field.default, "choices": field.choices});
        (name.to_string(), about)
    });
    Json::Object(fields.collect())
}

fn error(failure: &Failure, step: Option<&str>) -> Json {
    json!({"code": failure.class, "message": failure.message, "step": step, "field": failure.field})
}

/// Data as JSON, with a mask where a secret stands. What would take too much memory is described instead.
pub(crate) fn data(value: &Value) -> Json {
    match value.fits(VALUE_BYTES_MAX) {
        true => whole(value),
        false => format!("(not shown: {} MiB)", value.expanded_bytes().div_ceil(1 << 20)).into(),
    }
}

fn whole(value: &Value) -> Json {
    match value {
        Value::Sealed(parts) => {
            let text = parts.iter().map(|part| match part {
                SealedPart::Text(text) => text,
                SealedPart::Secret(_) => "***",
            });
            Json::String(text.collect())
        }
        Value::List(items) => Json::Array(items.iter().map(whole).collect()),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.to_string(), whole(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {
            value.to_json().unwrap_or_default()
        }
    }
}

/// One step as it is shown.
#[derive(Clone, Debug)]
struct Shown {
    status: StepStatus,
    /// In the words of the dialect.
    word: &'static str,
    attempts: u32,
    delays: Vec<windlass_ir::Duration>,
    input: Json,
    output: Json,
    error: Json,
    skipped: Option<String>,
    duration: Option<f64>,
    /// The run that it has called.
    child: Option<RunId>,
    kept: bool,
}

impl Shown {
    /// A step that nothing has happened to.
    fn nothing((status, word): (StepStatus, &'static str), skipped: Option<&str>) -> Self {
        Self {
            status,
            word,
            attempts: 0,
            delays: Vec::new(),
            input: Json::Null,
            output: Json::Null,
            error: Json::Null,
            skipped: skipped.map(str::to_owned),
            duration: None,
            child: None,
            kept: false,
        }
    }

    fn into_json(self) -> Json {
        let mut json = json!({
            "status": self.status,
            "dialect_status": self.word,
            "attempts": self.attempts,
            "delays_seconds": self.delays.into_iter().map(seconds).collect::<Vec<_>>(),
            "input": self.input,
            "output": self.output,
            "error": self.error,
            "skipped_because": self.skipped,
            "duration_seconds": self.duration,
        });
        if let (Json::Object(fields), Some(child)) = (&mut json, self.child) {
            fields.insert("child_run_id".into(), json!(child));
        }
        if self.kept {
            json["kept"] = true.into();
        }
        json
    }
}

/// Whole seconds are shown whole.
fn seconds(length: windlass_ir::Duration) -> Json {
    if length.0.is_multiple_of(1_000_000) { json!(length.0 / 1_000_000) } else { json!(length.as_secs_f64()) }
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
