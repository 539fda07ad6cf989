//! The words of DagNats. Every step is listed, the items of a map as `id.map.0`, and what a planner added under its own id.

use super::{Shown, ids};
use indexmap::IndexMap;
use windlass_engine::{Outcome, Path, RunPhase, StepPhase, StepView, Undone, View};
use windlass_ir::expr::{StatusWords, StepId};

pub fn run_status(view: &View) -> &'static str {
    match (view.phase(), view.undone()) {
        (RunPhase::Pending, _) => "pending",
        (RunPhase::Running, _) => "running",
        (RunPhase::Ended(_), Some(Undone::Wholly)) => "compensated",
        (RunPhase::Ended(_), Some(Undone::Partly)) => "compensate_failed",
        (RunPhase::Ended(Outcome::Failed(_)), None) => "failed",
        (RunPhase::Ended(Outcome::Cancelled(_)), None) => "cancelled",
        (RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)), None) => "completed",
    }
}

pub fn steps(view: &View) -> IndexMap<String, Shown> {
    let mut all = IndexMap::new();
    let plan = &view.program().plan;
    let instances = super::instances(view);
    for (number, step) in (0u32..).map(StepId).zip(&plan.steps) {
        let own = instances.get(&number).map(Vec::as_slice).unwrap_or_default();
        if step.implicit {
            all.extend(own.iter().map(|(path, item)| (ids::name(view, path).id, shown(view, path, item))));
            continue;
        }
        let shown = match super::last_called(own) {
            Some((path, instance)) => shown(view, path, &instance),
            None => super::unborn(view, &instances, number),
        };
        all.insert(step.id.to_string(), shown);
    }
    super::added(view, &mut all, shown);
    all
}

pub fn shown(view: &View, path: &Path, step: &StepView<'_>) -> Shown {
    let mut shown = Shown::of(view, path, step);
    shown.status = match &step.phase {
        StepPhase::Settled(Outcome::Failed(_)) if step.recovered => "recovered",
        StepPhase::Settled(_) if super::was_left(view, step) => "pending",
        StepPhase::Dormant if view.cancel_requested() && view.ended_at().is_some() => "cancelled",
        StepPhase::Dormant | StepPhase::Pending => "pending",
        StepPhase::Queued { .. } => "queued",
        StepPhase::Settled(outcome) => super::settled(&StatusWords::DAGNATS, outcome),
        StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined
        | StepPhase::Inside => "running",
    };
    shown.input = super::given(step);
    shown
}
