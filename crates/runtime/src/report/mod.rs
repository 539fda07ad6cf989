//! A run as its user sees it: the contract that programs read, in the words of the dialect its file is written in.
//!
//! What is the same for all dialects is here; each dialect's words are in one file of its own.

mod swdl;

use serde_json::{Map, Value as Json, json};
use windlass_engine::{Failure, Outcome, Path, RunId, RunPhase, StepPhase, StepView, View};
use windlass_ir::expr::StepId;
use windlass_ir::value::Value;
use windlass_ir::workflow::{Gate, Kind};

/// How a run stands, as one word that decides how a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Success,
    Failed,
    Cancelled,
    /// Nothing but a person, a signal or a pause can move it.
    Waiting,
    /// It goes on by itself as soon as something drives it.
    Going,
}

pub fn standing(view: &View) -> Standing {
    match &view.phase {
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => Standing::Success,
        RunPhase::Ended(Outcome::Failed(_)) => Standing::Failed,
        RunPhase::Ended(Outcome::Cancelled(_)) => Standing::Cancelled,
        RunPhase::Pending | RunPhase::Running => {
            let moving = view.steps.values().any(|step| match &step.phase {
                StepPhase::Running | StepPhase::Backoff { .. } => true,
                StepPhase::Pending | StepPhase::Asking { .. } | StepPhase::Inside | StepPhase::Settled(_) => {
                    false
                }
            });
            let asking = view.steps.values().any(|step| matches!(step.phase, StepPhase::Asking { .. }));
            if !moving && (asking || view.paused) { Standing::Waiting } else { Standing::Going }
        }
    }
}

/// The result object of a run at this moment.
pub fn result(run: &RunId, view: &View) -> Json {
    let plan = &view.program().plan;
    let steps: Map<String, Json> = (0u32..)
        .map(StepId)
        .zip(&plan.steps)
        .filter(|(_, step)| !step.implicit)
        .map(|(id, step)| (step.id.to_string(), step_report(view, id)))
        .collect();
    json!({
        "type": "result",
        "run_id": run,
        "workflow": plan.header.id,
        "dialect": plan.dialect,
        "status": swdl::run_status(view),
        "scripted": view.about.get("scripted") == Some(&Value::Bool(true)),
        "paused": view.paused && view.ended_at.is_none(),
        "has_failures": view.has_failures || view.steps.values().any(has_failed),
        "inputs": view.inputs,
        "outputs": outputs(view),
        "current_step": current_step(view),
        "waiting_on": waiting_on(view),
        "error": run_error(view),
        "steps": steps,
    })
}

fn has_failed(step: &StepView) -> bool {
    matches!(step.phase, StepPhase::Settled(Outcome::Failed(_)))
}

fn outputs(view: &View) -> Json {
    match &view.phase {
        RunPhase::Ended(Outcome::Done(value) | Outcome::Continue(value)) => json!(value),
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    }
}

fn name_of(view: &View, step: &StepView) -> String {
    view.program().plan.step(step.step).id.to_string()
}

fn current_step(view: &View) -> Option<String> {
    let active = view.steps.values().find(|step| match &step.phase {
        StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Asking { .. } => true,
        StepPhase::Pending | StepPhase::Inside | StepPhase::Settled(_) => false,
    });
    active.map(|step| name_of(view, step))
}

fn waiting_on(view: &View) -> Vec<Json> {
    let waits = view.steps.values().filter_map(|step| match &step.phase {
        StepPhase::Asking { message, until } => Some(json!({
            "step": name_of(view, step),
            "kind": "gate",
            "message": message.as_ref().and_then(Value::as_str).map(str::trim),
            "options": ["approve", "reject"],
            "approvers": gate(view, step).map(|gate| &gate.approvers),
            "form": gate(view, step).map(form),
            "until": until.map(|until| until.to_string()),
        })),
        StepPhase::Backoff { until } => Some(json!({
            "step": name_of(view, step),
            "kind": "timer",
            "message": "waiting for the next attempt",
            "options": null,
            "until": until.to_string(),
        })),
        StepPhase::Pending | StepPhase::Running | StepPhase::Inside | StepPhase::Settled(_) => None,
    });
    match view.phase {
        RunPhase::Running => waits.collect(),
        RunPhase::Pending | RunPhase::Ended(_) => Vec::new(),
    }
}

fn gate<'v>(view: &'v View, step: &StepView) -> Option<&'v Gate> {
    match &view.program().plan.step(step.step).kind {
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
    match &view.phase {
        RunPhase::Ended(Outcome::Failed(failure)) => {
            let step = view.failed_at.as_ref().and_then(|path| view.steps.get(path));
            error(failure, step.map(|step| name_of(view, step)).as_deref())
        }
        RunPhase::Ended(Outcome::Cancelled(why)) => {
            json!({"code": windlass_engine::class::CANCELLED, "message": why, "step": null, "field": null})
        }
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    }
}

fn error(failure: &Failure, step: Option<&str>) -> Json {
    json!({"code": failure.class, "message": failure.message, "step": step, "field": failure.field})
}

/// The instance of a step, if it has come into being.
fn instance(view: &View, id: StepId) -> Option<(&Path, &StepView)> {
    view.steps.iter().find(|(_, step)| step.step == id)
}

fn step_report(view: &View, id: StepId) -> Json {
    let Some((_, step)) = instance(view, id) else { return unborn(view, id) };
    let (output, failure, skipped) = match &step.phase {
        StepPhase::Settled(Outcome::Done(value) | Outcome::Continue(value)) => {
            (json!(value), Json::Null, None)
        }
        StepPhase::Settled(Outcome::Failed(failure)) => {
            (Json::Null, error(failure, Some(&name_of(view, step))), None)
        }
        StepPhase::Settled(Outcome::Skipped(skip)) => {
            let because = skip.because_of.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
            (Json::Null, Json::Null, Some(format!("{}{because}", skip.reason.word())))
        }
        StepPhase::Settled(Outcome::Cancelled(_))
        | StepPhase::Pending
        | StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Inside => (Json::Null, Json::Null, None),
    };
    let duration = step.started_at.zip(step.ended_at).map(|(start, end)| end.since(start).as_secs_f64());
    json!({
        "status": swdl::step_status(&step.phase),
        "attempts": step.attempts,
        "delays_seconds": step.delays.iter().map(|delay| seconds(*delay)).collect::<Vec<_>>(),
        "input": step.input,
        "output": output,
        "error": failure,
        "skipped_because": skipped,
        "duration_seconds": duration,
    })
}

/// Whole seconds are shown whole.
fn seconds(length: windlass_ir::Duration) -> Json {
    if length.0.is_multiple_of(1_000_000) { json!(length.0 / 1_000_000) } else { json!(length.as_secs_f64()) }
}

/// A step that never came into being: its arm was not taken, or its scope has not been reached.
fn unborn(view: &View, id: StepId) -> Json {
    let plan = &view.program().plan;
    let parent = plan.step(id).parent.and_then(|parent| instance(view, parent)).map(|(_, step)| step);
    let passed_by = parent.is_some_and(|parent| {
        matches!(plan.step(parent.step).kind, Kind::Choose(_)) && !matches!(parent.phase, StepPhase::Pending)
    });
    let ended = matches!(view.phase, RunPhase::Ended(_));
    let (status, because) = match (passed_by || ended, view.cancel_requested) {
        (true, false) => ("skipped", Some("branch_not_taken")),
        (true, true) => ("skipped", Some("run_cancelled")),
        (false, _) => ("pending", None),
    };
    json!({
        "status": status, "attempts": 0, "delays_seconds": [], "input": null, "output": null, "error": null,
        "skipped_because": because, "duration_seconds": null,
    })
}
