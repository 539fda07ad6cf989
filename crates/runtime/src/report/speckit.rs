//! The words of Spec Kit. Listed is what has begun, under the ids that its own state file has: containers count as completed from
//! the moment they are entered, later rounds are `loop:step:1` and refresh the plain id, items are `fan:step:0`.

use super::{Shown, Standing, data, ids};
use indexmap::IndexMap;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use windlass_engine::{
    AssistantAsk, Decision, Outcome, Path, Question, RunId, RunPhase, SkipReason, StepPhase, StepView, View,
    Work, is_abort, is_raised,
};
use windlass_ir::Value;
use windlass_ir::expr::{StatusWords, is_truthy, text_form};
use windlass_ir::workflow::{Action, Choose, ForEach, Gate, Kind, OnReject, RepeatTest};

pub fn run_status(view: &View) -> &'static str {
    match view.phase() {
        RunPhase::Pending => "created",
        RunPhase::Running => match super::standing(view) {
            Standing::Waiting => "paused",
            Standing::Going | Standing::Success | Standing::Failed | Standing::Cancelled => "running",
        },
        RunPhase::Ended(Outcome::Failed(failure)) if is_abort(failure) => "aborted",
        RunPhase::Ended(Outcome::Failed(_)) => "failed",
        RunPhase::Ended(Outcome::Cancelled(_)) => "aborted",
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => "completed",
    }
}

pub fn steps(view: &View) -> IndexMap<String, Shown> {
    let mut all = IndexMap::new();
    for (path, step) in recorded(view) {
        let name = ids::name(view, path);
        if *name.id != *name.plain && !is_template(view, path) {
            all.insert(name.plain.to_string(), shown(view, path, &step));
        }
        all.insert(name.id, shown(view, path, &step));
    }
    all
}

/// What Spec Kit itself prints about a run for programs.
pub fn payload(run: &RunId, view: &View) -> Json {
    let plan = &view.program().plan;
    let current = current(view);
    let root = current.and_then(|path| path.segments().first()).map(|first| first.name.clone());
    let index = plan.roots.iter().position(|step| root.as_ref() == Some(&plan.step(*step).id));
    let status = run_status(view);
    let mut payload = json!({
        "run_id": run,
        "workflow_id": plan.header.id,
        "status": status,
        "current_step_id": current.map(|path| ids::within(view, path)),
        "current_step_index": index,
    });
    if let Some((path, step)) = current.and_then(|path| Some((path, view.step(path)?)))
        && matches!(status, "paused" | "aborted")
        && view.plan_step(&step).kind.is_gate()
    {
        payload["gate"] = gate(view, path, &step);
    }
    if let RunPhase::Ended(Outcome::Failed(failure)) = view.phase() {
        payload["error"] = json!(failure.message);
    }
    let scopes = called(view);
    if !scopes.is_empty() {
        payload["workflow_scopes"] = json!(scopes);
    }
    payload
}

fn gate(view: &View, path: &Path, step: &StepView<'_>) -> Json {
    let output = shown(view, path, step).output;
    let message = match &output["message"] {
        text @ Json::String(_) => text.clone(),
        other => text_form(&Value::from(other), &view.program().plan.semantics)
            .map_or(Json::Null, |text| json!(text)),
    };
    let mut gate = json!({
        "step_id": ids::within(view, path),
        "message": message,
        "options": output["options"],
        "choice": output["choice"],
    });
    let around = path.parent().map(|around| scope_path(&around)).unwrap_or_default();
    if !around.is_empty() {
        gate["scope_path"] = json!(around);
    }
    gate
}

/// The steps from the outermost in, each with the number of its item or round.
fn scope_path(path: &Path) -> Vec<String> {
    let parts = path.segments().iter().flat_map(|segment| {
        let number = segment.ordinal.map(|number| number.to_string());
        std::iter::once(segment.name.to_string()).chain(number)
    });
    parts.collect()
}

/// The workflows that were called and have begun.
fn called(view: &View) -> Vec<Json> {
    let inside = |path: &Path| {
        view.steps().find(|(other, _)| other.parent().as_ref() == Some(path)).map(|(_, step)| step)
    };
    let calls = view.steps().filter(|(_, step)| is_call(view, step));
    let mut entered: Vec<(&Path, StepView<'_>, StepView<'_>)> =
        calls.filter_map(|(path, step)| Some((path, step, inside(path)?))).collect();
    entered.sort_by_key(|(path, _, _)| place(view, path));
    let told = entered.into_iter().map(|(path, step, first)| {
        let status = match &step.phase {
            StepPhase::Settled(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => "completed",
            StepPhase::Settled(Outcome::Failed(failure)) if is_abort(failure) => "aborted",
            StepPhase::Settled(Outcome::Failed(_)) => "failed",
            StepPhase::Settled(Outcome::Cancelled(_)) => "aborted",
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Running
            | StepPhase::Backoff { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined
            | StepPhase::Inside => run_status(view),
        };
        let workflow = &view.program_of(&first).plan.header.id;
        json!({"scope_path": scope_path(path), "workflow_id": workflow, "status": status})
    });
    told.collect()
}

fn is_call(view: &View, step: &StepView<'_>) -> bool {
    matches!(view.plan_step(step).kind, Kind::Action(Action::Call(_)))
}

pub fn current_step(view: &View) -> Option<String> {
    current(view).map(|path| ids::within(view, path))
}

/// The step that failed, or else the one that was begun last, in whichever workflow that is. Steps follow each other in the order
/// of the file, and rounds and items in that of their numbers.
fn current(view: &View) -> Option<&Path> {
    let begun = view
        .steps()
        .filter(|(_, step)| step.frame.is_none() && !view.plan_step(step).implicit && has_begun(step));
    let last = || begun.max_by_key(|(path, _)| place(view, path)).map(|(path, _)| path);
    view.failed_at().or_else(last)
}

/// Where an instance stands among all of them.
fn place(view: &View, path: &Path) -> Vec<(u32, u32)> {
    let prefixes = std::iter::successors(Some(path.clone()), Path::parent);
    let mut place: Vec<(u32, u32)> = prefixes
        .filter_map(|prefix| {
            let step = view.step(&prefix)?;
            Some((step.step.0, step.frame.unwrap_or_default()))
        })
        .collect();
    place.reverse();
    place
}

/// What is written down in the order in which it came into being: not what is inside another workflow or deeper in an item.
fn recorded(view: &View) -> impl Iterator<Item = (&Path, StepView<'_>)> {
    view.steps().filter(|(path, step)| {
        let hidden = step.frame.is_some() || view.plan_step(step).implicit;
        let recorded = has_begun(step) && !has_raised(view, path, step);
        !hidden && recorded && !ids::is_called(view, path) && !is_private(view, path)
    })
}

/// Whether nothing is known of a step, since it could not even be told what to do, or something in a call could not. An item of a
/// fan-out is written down only when all that is in it has come to an end.
fn has_raised(view: &View, path: &Path, step: &StepView<'_>) -> bool {
    let raised = matches!(&step.phase, StepPhase::Settled(Outcome::Failed(failure)) if is_raised(failure));
    raised && (step.entered.is_none() || is_template(view, path))
}

fn has_begun(step: &StepView<'_>) -> bool {
    match &step.phase {
        StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued { .. } => false,
        StepPhase::Settled(Outcome::Cancelled(_)) => step.started_at.is_some(),
        StepPhase::Settled(Outcome::Skipped(skip)) => skip.reason == SkipReason::EmptySlot,
        StepPhase::Settled(_)
        | StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined
        | StepPhase::Inside => true,
    }
}

/// Whether a frame is an item of a fan-out, not a round of a loop.
fn is_item(view: &View, frame: &Path) -> bool {
    view.step(frame).is_some_and(|step| matches!(view.plan_step(&step).kind, Kind::ForEach(_)))
}

/// Whether a step is the one that a fan-out does for each item.
fn is_template(view: &View, path: &Path) -> bool {
    let around = path.parent().and_then(|around| view.step(&around));
    around.is_some_and(|around| {
        around.frame.is_some() && matches!(view.plan_step(&around).kind, Kind::ForEach(_))
    })
}

/// Whether a step is inside an item and not the step itself that is done for it.
fn is_private(view: &View, path: &Path) -> bool {
    let around = path.parent();
    path.frames().any(|(frame, _, _)| is_item(view, &frame) && Some(&frame) != around.as_ref())
}

pub fn shown(view: &View, path: &Path, step: &StepView<'_>) -> Shown {
    let mut shown = Shown::of(view, path, step);
    let known = view.plan_step(step);
    let container = container(view, path, step);
    shown.input = input(step);
    shown.status = match &step.phase {
        _ if container.is_some() => "completed",
        StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued { .. } => "pending",
        StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Joined | StepPhase::Inside => "running",
        StepPhase::Asking { .. } | StepPhase::Waiting { .. } => "paused",
        // There is no word for what was told to stop.
        StepPhase::Settled(Outcome::Cancelled(_)) => "failed",
        StepPhase::Settled(outcome) => super::settled(&StatusWords::SPECKIT, outcome),
    };
    match (container, &step.phase, &known.kind) {
        (Some(output), _, _) => (shown.output, shown.error) = (output, Json::Null),
        // It never came to its items.
        (None, StepPhase::Settled(Outcome::Failed(_)), Kind::ForEach(each)) => {
            shown.output = json!({"items": [], "max_concurrency": at_once(each, Some(1)), "item_count": 0});
        }
        (None, StepPhase::Settled(outcome), _) => shown.output = output(outcome),
        (None, StepPhase::Asking { .. }, Kind::Gate(gate)) => shown.output = asked(step, gate),
        (None, StepPhase::Inside, Kind::Action(Action::Call(_))) => {
            shown.status = run_status(view);
            shown.output = json!({"workflow": called_name(step), "status": shown.status});
        }
        (None, _, _) => {}
    }
    match (&known.kind, &mut shown.output) {
        // What is in the data of a command is not beside it, too.
        (Kind::Action(Action::Shell(_)), Json::Object(outputs)) => {
            let own = ["exit_code", "stdout", "stderr", "stdout_base64", "stderr_base64", "data"];
            outputs.retain(|name, _| own.contains(&name.as_str()));
        }
        (Kind::Action(Action::Assistant(_)), Json::Object(outputs)) => {
            outputs.retain(|name, _| !name.ends_with("_base64"));
        }
        (Kind::Slot(name), output) if output.is_null() => *output = json!({"slot": name}),
        (_, _) => {}
    }
    shown
}

fn output(outcome: &Outcome) -> Json {
    match outcome {
        Outcome::Done(value) | Outcome::Continue(value) => data(value),
        Outcome::Failed(failure) => failure.detail.as_ref().map_or_else(|| json!({}), data),
        Outcome::Skipped(_) | Outcome::Cancelled(_) => Json::Null,
    }
}

fn input(step: &StepView<'_>) -> Json {
    match step.assignment.map(|assignment| &assignment.work) {
        Some(Work::Assistant(work)) => match &work.ask {
            AssistantAsk::Command { input, .. } => data(input),
            AssistantAsk::Prompt(_) => Json::Null,
        },
        Some(Work::Call { input, .. }) => data(input),
        Some(_) | None => Json::Null,
    }
}

/// What a step with others inside has on record from the moment it is entered.
fn container(view: &View, path: &Path, step: &StepView<'_>) -> Option<Json> {
    let known = view.plan_step(step);
    let semantics = &view.program().plan.semantics;
    let holds = |value: &Value| is_truthy(value, semantics).unwrap_or(false);
    if let (StepPhase::Settled(Outcome::Done(value)), Kind::Choose(_) | Kind::Repeat(_) | Kind::ForEach(_)) =
        (&step.phase, &known.kind)
    {
        return Some(data(value));
    }
    Some(match (step.entered?, &known.kind) {
        (Decision::Arm { arm, .. }, Kind::Choose(Choose::If { .. })) => {
            json!({"condition_result": &**arm == "then"})
        }
        (Decision::Arm { arm, value }, Kind::Choose(Choose::Switch { .. })) => {
            let matched = if &**arm == "default" { "__default__" } else { arm };
            json!({"matched_case": matched, "expression_value": data(value)})
        }
        (Decision::Round { value, .. }, Kind::Repeat(repeat)) => match repeat.test {
            RepeatTest::While => {
                json!({"condition_result": holds(value), "max_iterations": repeat.rounds_max, "loop_type": "while"})
            }
            RepeatTest::Until | RepeatTest::DoWhile => {
                json!({"condition": repeat.as_written.as_ref().map(data), "max_iterations": repeat.rounds_max, "loop_type": "do-while"})
            }
        },
        (Decision::Items { items, at_once: limit, .. }, Kind::ForEach(each)) => {
            let count = if let Value::List(items) = items { items.len() } else { 0 };
            let mut told =
                json!({"items": data(items), "max_concurrency": at_once(each, *limit), "item_count": count});
            let raised =
                matches!(&step.phase, StepPhase::Settled(Outcome::Failed(failure)) if is_raised(failure));
            let template = each.body.first().filter(|_| !raised);
            if let Some(template) = template.map(|body| &view.program_of(step).step(*body).id) {
                told["results"] = json!(results(view, path, template, count));
            }
            told
        }
        (_, _) => return None,
    })
}

/// How many at once, as the file says it.
fn at_once<B>(each: &ForEach<B>, limit: Option<u32>) -> Json {
    each.as_written.as_ref().map_or_else(|| json!(limit.unwrap_or(1)), data)
}

fn called_name(step: &StepView<'_>) -> Json {
    match step.assignment.map(|assignment| &assignment.work) {
        Some(Work::Call { workflow, .. }) => data(workflow),
        Some(_) | None => Json::Null,
    }
}

/// What the items have come to, in order, up to the first that has failed or is not done.
fn results(view: &View, path: &Path, template: &Arc<str>, count: usize) -> Vec<Json> {
    let mut results = Vec::new();
    for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
        let path = path.frame(number).child(template.clone(), None);
        let Some(step) = view.step(&path) else { break };
        let is_done = match &step.phase {
            StepPhase::Settled(outcome) => {
                matches!(outcome, Outcome::Done(_)) || goes_on(view, path.parent())
            }
            StepPhase::Asking { .. } => false,
            _ => break,
        };
        results.push(shown(view, &path, &step).output);
        if !is_done {
            break;
        }
    }
    results
}

/// Whether an item counts as done although its step may have failed.
fn goes_on(view: &View, frame: Option<Path>) -> bool {
    let frame = frame.and_then(|frame| view.step(&frame));
    frame.is_some_and(|frame| matches!(frame.phase, StepPhase::Settled(Outcome::Done(_))))
}

/// A gate without a decision.
fn asked(step: &StepView<'_>, gate: &Gate) -> Json {
    let nothing = Question {
        message: None,
        show_file: None,
        input: Value::Null,
        on_timeout: gate.on_timeout,
        empties: None,
    };
    let question = match step.entered {
        Some(Decision::Gate(question)) => question,
        _ => &nothing,
    };
    let on_reject = match &gate.on_reject {
        OnReject::Fail => "fail",
        OnReject::Abort => "abort",
        OnReject::Skip => "skip",
        OnReject::Retry => "retry",
        OnReject::Back { .. } => "back",
    };
    json!({
        "message": question.message.as_ref().map(data),
        "options": gate.options,
        "on_reject": on_reject,
        "show_file": question.show_file.as_ref().map(data),
        "choice": step.decided.as_ref().and_then(|decided| decided.get("choice")).map(data),
    })
}
