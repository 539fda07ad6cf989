//! The words of DCC-MCP. Every step is listed once, as its last iteration left it.

use super::Shown;
use crate::rows::INTERRUPTED;
use indexmap::IndexMap;
use serde_json::{Value as Json, json};
use windlass_engine::{Decision, Outcome, Path, RunPhase, StepPhase, StepView, View};
use windlass_ir::expr::{StatusWords, StepId};
use windlass_ir::workflow::Kind;

pub fn run_status(view: &View) -> &'static str {
    match view.phase() {
        RunPhase::Pending => "pending",
        RunPhase::Running => "running",
        RunPhase::Ended(Outcome::Failed(_)) => "failed",
        RunPhase::Ended(Outcome::Cancelled(_)) => "cancelled",
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => "completed",
    }
}

pub fn steps(view: &View) -> IndexMap<String, Shown> {
    let plan = &view.program().plan;
    let instances = super::instances(view);
    let names = plan.names();
    let named = (0u32..).map(StepId).zip(&plan.steps).filter(|(_, step)| !step.implicit);
    let all = named.map(|(number, _)| {
        let own = instances.get(&number).map(Vec::as_slice).unwrap_or_default();
        let shown = match super::last_called(own) {
            Some((path, instance)) => shown(view, path, &instance),
            // There is no word for what was passed by.
            None => Shown { status: "pending", ..super::unborn(view, &instances, number) },
        };
        (names[number.index()].clone(), shown)
    });
    all.collect()
}

pub fn shown(view: &View, path: &Path, step: &StepView<'_>) -> Shown {
    let mut shown = Shown::of(view, path, step);
    shown.status = match &step.phase {
        StepPhase::Settled(_) if super::was_left(view, step) => "pending",
        StepPhase::Dormant
        | StepPhase::Pending
        | StepPhase::Queued { .. }
        | StepPhase::Settled(Outcome::Skipped(_)) => "pending",
        StepPhase::Settled(outcome) => super::settled(&StatusWords::DCC, outcome),
        _ if view.is_interrupted() => INTERRUPTED,
        StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined
        | StepPhase::Inside => "running",
    };
    shown.input = super::given(step);
    if matches!(step.phase, StepPhase::Settled(Outcome::Failed(_))) {
        shown.output = left(view, path, step);
    }
    shown
}

/// What a scope that failed leaves behind: which arm was taken, and what became of branches.
fn left(view: &View, path: &Path, step: &StepView<'_>) -> Json {
    match (&view.plan_step(step).kind, step.entered) {
        (Kind::Choose(_), Some(Decision::Arm { arm, value })) => {
            json!({"condition": super::data(value), "taken": arm})
        }
        (Kind::Parallel(_), _) if step.frame.is_none() => {
            let inside = view.steps().filter(|(inside, _)| inside.parent().as_ref() == Some(path));
            let words = inside.filter_map(|(_, step)| match &step.phase {
                StepPhase::Settled(outcome) => Some(super::settled(&StatusWords::DCC, outcome)),
                _ => None,
            });
            json!({"branch_results": words.collect::<Vec<_>>()})
        }
        (_, _) => Json::Null,
    }
}
