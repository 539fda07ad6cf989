//! A run as its user sees it: the contract that programs read, in the words of the dialect its file is written in.
//!
//! What is the same for all dialects is here; each dialect's words are in one file of its own, and `ids` are what steps are called.

mod dagnats;
mod dcc;
pub mod ids;
mod limits;
mod speckit;
mod swdl;
mod transitions;
mod tree;

use indexmap::IndexMap;
pub use limits::limits;
use serde_json::{Map, Value as Json, json};
pub use speckit::payload as speckit_payload;
use std::collections::HashMap;
pub(crate) use transitions::transitions;
pub use tree::{Node, State, tree};
use windlass_engine::Run;
use windlass_engine::{
    Asker, Assignment, CoordinatorState, Decision, Failure, Outcome, Path, RunId, RunPhase, StepPhase,
    StepView, View, Work, class, is_abort,
};
use windlass_ir::expr::{StatusWords, StepId, StepState};
use windlass_ir::value::{SealedPart, VALUE_BYTES_MAX, Value};
use windlass_ir::workflow::{Choose, Gate, Kind};

/// How a run stands, as one word that decides how a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Success,
    Failed,
    Cancelled,
    /// Nothing but a person, a signal or a pause can move it.
    Waiting,
    /// It continues by itself as soon as a process executes it.
    Going,
}

pub fn standing(view: &View) -> Standing {
    match view.phase() {
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => Standing::Success,
        RunPhase::Ended(Outcome::Failed(_)) => Standing::Failed,
        RunPhase::Ended(Outcome::Cancelled(_)) => Standing::Cancelled,
        RunPhase::Pending | RunPhase::Running if view.is_interrupted() => Standing::Going,
        RunPhase::Pending | RunPhase::Running => {
            let pending = view.phase() == RunPhase::Pending && view.started_at().is_some();
            let waiting = view.is_paused() || pending || view.steps().any(|(_, step)| is_for_others(&step));
            if waiting && !moves_by_itself(view) { Standing::Waiting } else { Standing::Going }
        }
    }
}

/// Whether a step waits for something outside the run.
fn is_for_others(step: &StepView<'_>) -> bool {
    matches!(
        step.phase,
        StepPhase::Asking { .. } | StepPhase::Queued { .. } | StepPhase::Waiting { signal: Some(_), .. }
    ) || is_calling(step)
}

/// Whether a step waits for a run that it has called, which alone can bring it further.
fn is_calling(step: &StepView<'_>) -> bool {
    step.phase == StepPhase::Running && step.child().is_some()
}

/// Whether work or time alone brings the run further.
pub(crate) fn moves_by_itself(view: &View) -> bool {
    let later = view.begins_at().is_some() && !view.is_paused();
    later
        || view.steps().any(|(path, step)| match step.phase {
            StepPhase::Running => !is_calling(&step),
            StepPhase::Backoff { .. } | StepPhase::Waiting { signal: None, .. } => true,
            StepPhase::Inside => is_between_rounds(view, path, &step),
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { signal: Some(_), .. }
            | StepPhase::Joined
            | StepPhase::Settled(_) => false,
        })
}

/// Whether a loop waits for its next round.
fn is_between_rounds(view: &View, path: &Path, step: &StepView<'_>) -> bool {
    let repeats = step.frame.is_none() && matches!(view.plan_step(step).kind, Kind::Repeat(_));
    let last = step.rounds.checked_sub(1).filter(|_| repeats);
    let last = last.and_then(|number| view.step(&path.frame(number)));
    last.is_some_and(|round| matches!(round.phase, StepPhase::Settled(_)))
}

/// Whether a run that has failed can be resumed, as far as the view shows.
pub fn is_resumable(view: &View) -> bool {
    match view.phase() {
        RunPhase::Ended(Outcome::Failed(failure)) => !is_abort(failure) && view.undone().is_none(),
        RunPhase::Ended(_) => false,
        RunPhase::Pending | RunPhase::Running => true,
    }
}

/// Whose words a run is told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
}

impl Dialect {
    pub fn of(view: &View) -> Self {
        Self::named(&view.program().plan.dialect)
    }

    pub fn of_run(run: &Run) -> Self {
        Self::named(&run.program().plan.dialect)
    }

    /// An unknown dialect is reported in the words of the native one.
    pub fn named(dialect: &str) -> Self {
        match dialect {
            "speckit" => Self::Speckit,
            "dagnats" => Self::Dagnats,
            "dcc" => Self::Dcc,
            _ => Self::Swdl,
        }
    }
}

fn run_status(view: &View) -> &'static str {
    if view.is_interrupted() {
        return crate::rows::INTERRUPTED;
    }
    match Dialect::of(view) {
        Dialect::Swdl => swdl::run_status(view),
        Dialect::Speckit => speckit::run_status(view),
        Dialect::Dagnats => dagnats::run_status(view),
        Dialect::Dcc => dcc::run_status(view),
    }
}

fn steps(view: &View) -> IndexMap<String, Shown> {
    match Dialect::of(view) {
        Dialect::Swdl => swdl::steps(view),
        Dialect::Speckit => speckit::steps(view),
        Dialect::Dagnats => dagnats::steps(view),
        Dialect::Dcc => dcc::steps(view),
    }
}

/// One instance in the words of its dialect.
fn shown(view: &View, path: &Path, step: &StepView<'_>) -> Shown {
    match Dialect::of(view) {
        Dialect::Swdl => swdl::shown(view, path, step),
        Dialect::Speckit => speckit::shown(view, path, step),
        Dialect::Dagnats => dagnats::shown(view, path, step),
        Dialect::Dcc => dcc::shown(view, path, step),
    }
}

/// The word for how a step has ended.
fn settled(words: &StatusWords, outcome: &Outcome) -> &'static str {
    words.word(match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => StepState::Done,
        Outcome::Failed(failure) => {
            StepState::Failed { timed_out: &*failure.class == class::TIMEOUT, recovered: false }
        }
        Outcome::Skipped(_) => StepState::Skipped,
        Outcome::Cancelled(_) => StepState::Cancelled,
    })
}

/// The result object of a run at this moment.
pub fn result(run: &RunId, view: &View) -> Json {
    result_at(run, view, None)
}

/// The same, with its positions in queues.
pub fn result_at(run: &RunId, view: &View, coordinator: Option<&CoordinatorState>) -> Json {
    let plan = &view.program().plan;
    let steps: Map<String, Json> =
        steps(view).into_iter().map(|(id, shown)| (id, shown.into_json())).collect();
    let mut result = json!({
        "type": "result",
        "run_id": run,
        "workflow": plan.header.id,
        "dialect": plan.dialect,
        "status": run_status(view),
        "scripted": view.about().get("scripted") == Some(&Value::Bool(true)),
        "paused": view.is_paused() && view.ended_at().is_none(),
        "has_failures": view.has_failures() || view.steps().any(|(_, step)| has_failed(&step)),
        "inputs": inputs(view),
        "outputs": outputs(view),
        "current_step": current_step(view),
        "waiting_on": waiting_on(view, |path| coordinator.and_then(|coordinator| position(coordinator, run, path))),
        "error": run_error(view),
        "steps": steps,
    });
    if let Some(of) = view.about().get(crate::engine::RETRY_OF) {
        result["retry_of"] = data(of);
    }
    result
}

/// What the run was started with. Spec Kit leaves out inputs that were not given.
fn inputs(view: &View) -> Json {
    let mut inputs = data(view.inputs());
    if let (Dialect::Speckit, Json::Object(inputs)) = (Dialect::of(view), &mut inputs) {
        inputs.retain(|_, value| !value.is_null());
    }
    inputs
}

/// Whether a step never began because another one failed: some dialects leave it as it was.
fn was_left(view: &View, step: &StepView<'_>) -> bool {
    let cancelled = matches!(step.phase, StepPhase::Settled(Outcome::Cancelled(_)));
    cancelled && step.started_at.is_none() && !view.cancel_requested()
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

fn current_step(view: &View) -> Option<String> {
    if Dialect::of(view) == Dialect::Speckit {
        return speckit::current_step(view);
    }
    let active = view.steps().find(|(_, step)| match &step.phase {
        StepPhase::Queued { .. }
        | StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined => true,
        StepPhase::Dormant | StepPhase::Pending | StepPhase::Inside | StepPhase::Settled(_) => false,
    });
    active.map(|(path, _)| ids::name(view, path).id)
}

fn waiting_on(view: &View, place: impl Fn(&Path) -> Option<usize>) -> Vec<Json> {
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
            return vec![slot(None, &claims, since, place(&Path::default()))];
        }
        RunPhase::Pending | RunPhase::Ended(_) => return Vec::new(),
        RunPhase::Running => {}
    }
    view.steps().filter_map(|(path, step)| wait(view, path, &step, &place)).collect()
}

/// What a step waits for.
fn wait(
    view: &View,
    path: &Path,
    step: &StepView<'_>,
    place: &dyn Fn(&Path) -> Option<usize>,
) -> Option<Json> {
    let name = || ids::name(view, path).id;
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
            Some(slot(Some(&name()), &keys, *since, place(path)))
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
fn position(coordinator: &CoordinatorState, run: &RunId, path: &Path) -> Option<usize> {
    let first = Asker { run: run.clone(), path: path.clone(), attempt: 0 };
    let (_, waiting) = coordinator
        .waiting
        .range(&first..)
        .next()
        .filter(|(asker, _)| asker.run == *run && asker.path == *path)?;
    let queue = coordinator.queues.get(&waiting.on)?;
    Some(queue.range(..=waiting.position).count())
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

fn run_error(view: &View) -> Json {
    match view.phase() {
        RunPhase::Ended(Outcome::Failed(failure)) => {
            let step = view.failed_at().map(|path| ids::name(view, path).id);
            error(failure, step.as_deref())
        }
        RunPhase::Ended(Outcome::Cancelled(why)) => {
            json!({"code": class::CANCELLED, "message": why, "step": null, "field": null})
        }
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    }
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
    status: &'static str,
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
    fn nothing(status: &'static str, skipped: Option<&str>) -> Self {
        Self {
            status,
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

    /// What is the same in all dialects; status and input are to be filled in.
    fn of(view: &View, path: &Path, step: &StepView<'_>) -> Self {
        let doing = doing(view, path, step);
        let mut shown = Self::nothing("", None);
        shown.attempts = doing.attempts;
        shown.child = doing.child();
        shown.kept = step.kept || doing.kept;
        shown.delays = doing.delays.to_vec();
        let span = step.started_at.or(doing.started_at).zip(step.ended_at);
        shown.duration = span.map(|(start, end)| end.since(start).as_secs_f64());
        match &step.phase {
            StepPhase::Settled(Outcome::Done(value) | Outcome::Continue(value)) => shown.output = data(value),
            StepPhase::Settled(Outcome::Failed(failure)) => {
                shown.error = error(failure, Some(&ids::name(view, path).id));
            }
            StepPhase::Settled(Outcome::Skipped(skip)) => {
                let because = skip.because_of.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
                shown.skipped = Some(format!("{}{because}", skip.reason.word()));
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
        shown
    }

    fn into_json(self) -> Json {
        let mut json = json!({
            "status": self.status,
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

/// The instances of each step of the file, without items and rounds as such and what belongs to another workflow.
type Instances<'v> = HashMap<StepId, Vec<(&'v Path, StepView<'v>)>>;

fn instances(view: &View) -> Instances<'_> {
    let mut all = Instances::new();
    for (path, step) in view.steps().filter(|(_, step)| step.unit == 0 && step.frame.is_none()) {
        all.entry(step.step).or_default().push((path, step));
    }
    all
}

/// The last of these that is more than a place to be called from.
fn last_called<'v>(instances: &[(&'v Path, StepView<'v>)]) -> Option<(&'v Path, StepView<'v>)> {
    let called = instances.iter().rev().find(|(_, step)| step.phase != StepPhase::Dormant);
    called.or(instances.last()).copied()
}

/// Handlers without a name of their own that have come into being.
fn handlers(view: &View) -> impl Iterator<Item = (&Path, StepView<'_>)> {
    view.steps().filter(|(path, step)| {
        let unnamed = step.unit == 0 && step.frame.is_none() && view.plan_step(step).implicit;
        unnamed && ids::is_handler(view, path)
    })
}

/// Adds the steps that workers have added to the run.
fn added(view: &View, all: &mut IndexMap<String, Shown>, shown: fn(&View, &Path, &StepView<'_>) -> Shown) {
    let added = view.steps().filter(|(_, step)| step.unit > 0 && step.frame.is_none());
    for (path, step) in added.filter(|(path, _)| !ids::is_called(view, path)) {
        all.insert(ids::name(view, path).id, shown(view, path, &step));
    }
}

/// A step that never came into being: its arm was not taken, or its scope has not been reached.
fn unborn(view: &View, instances: &Instances<'_>, id: StepId) -> Shown {
    let plan = &view.program().plan;
    let mut inner = id;
    while let Some(around) = plan.step(inner).parent {
        if let Some((_, scope)) = instances.get(&around).and_then(|born| last_called(born)) {
            return inside_of(view, &scope, inner);
        }
        inner = around;
    }
    match view.phase() {
        RunPhase::Ended(_) => Shown::nothing("skipped", Some("branch_not_taken")),
        RunPhase::Pending | RunPhase::Running => Shown::nothing("pending", None),
    }
}

/// What became of a step that its scope never came to.
fn inside_of(view: &View, scope: &StepView<'_>, inner: StepId) -> Shown {
    match (&scope.phase, &view.plan_step(scope).kind) {
        (StepPhase::Settled(Outcome::Cancelled(_)), _) => Shown::nothing("cancelled", None),
        (StepPhase::Settled(Outcome::Skipped(skip)), _) => {
            Shown::nothing("skipped", Some(skip.reason.word()))
        }
        (StepPhase::Settled(_), _) => Shown::nothing("skipped", Some("branch_not_taken")),
        (StepPhase::Inside, Kind::Choose(choose)) if !is_taken(scope, choose, inner) => {
            Shown::nothing("skipped", Some("branch_not_taken"))
        }
        (_, _) => Shown::nothing("pending", None),
    }
}

fn is_taken(scope: &StepView<'_>, choose: &Choose<Vec<StepId>>, inner: StepId) -> bool {
    let Some(Decision::Arm { arm, .. }) = scope.entered else { return true };
    choose.arms().into_iter().any(|(name, body)| *name == **arm && body.contains(&inner))
}
