//! The words of the house dialect. Every step of the file is listed, and after it its items and rounds as `id[0]`.

use super::{Shown, ids};
use indexmap::IndexMap;
use serde_json::Value as Json;
use windlass_engine::{Outcome, Path, RunPhase, StepPhase, StepView, View};
use windlass_ir::expr::{StatusWords, StepId};
use windlass_ir::workflow::Kind;

pub fn run_status(view: &View) -> &'static str {
    match view.phase() {
        RunPhase::Pending => "pending",
        RunPhase::Running => "running",
        RunPhase::Ended(Outcome::Failed(_)) => "failed",
        RunPhase::Ended(Outcome::Cancelled(_)) => "cancelled",
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => "success",
    }
}

fn step_status(phase: &StepPhase<'_>) -> &'static str {
    match phase {
        StepPhase::Dormant | StepPhase::Pending => "pending",
        StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Inside | StepPhase::Joined => "running",
        StepPhase::Queued { .. } | StepPhase::Asking { .. } | StepPhase::Waiting { .. } => "waiting",
        StepPhase::Settled(outcome) => super::settled(&StatusWords::HOUSE, outcome),
    }
}

pub fn steps(view: &View) -> IndexMap<String, Shown> {
    let mut all = IndexMap::new();
    let plan = &view.program().plan;
    let instances = super::instances(view);
    let names = plan.names();
    for (number, _) in (0u32..).map(StepId).zip(&plan.steps).filter(|(_, step)| !step.implicit) {
        let own = instances.get(&number).map(Vec::as_slice).unwrap_or_default();
        let last = match super::last_called(own) {
            Some((path, instance)) => shown(view, path, &instance),
            None => super::unborn(view, &instances, number),
        };
        all.insert(names[number.index()].clone(), last);
        // The items of a step without a name inside are its own.
        let inner = inside(view, number).and_then(|inner| instances.get(&inner));
        let numbered = own.iter().chain(inner.into_iter().flatten());
        for (path, instance) in numbered.filter(|(path, _)| path.frames().next().is_some()) {
            all.insert(ids::name(view, path).id, shown(view, path, instance));
        }
    }
    for (path, instance) in super::handlers(view) {
        all.insert(ids::name(view, path).id, shown(view, path, &instance));
    }
    super::added(view, &mut all, shown);
    all
}

/// The only step of a loop's body, where it has no name of its own.
fn inside(view: &View, number: StepId) -> Option<StepId> {
    let plan = &view.program().plan;
    let body = match &plan.step(plan.unguarded(number)).kind {
        Kind::ForEach(each) => &each.body,
        Kind::Repeat(repeat) => &repeat.body,
        _ => return None,
    };
    body.first().copied().filter(|inner| plan.step(*inner).implicit)
}

pub fn shown(view: &View, path: &Path, step: &StepView<'_>) -> Shown {
    let mut shown = Shown::of(view, path, step);
    shown.status = step_status(&step.phase);
    let doing = super::doing(view, path, step);
    shown.input = match view.plan_step(&doing).inputs.is_empty() {
        true => super::given(&doing),
        false => doing.input.map_or(Json::Null, super::data),
    };
    if let (StepPhase::Dormant, RunPhase::Ended(_)) = (&step.phase, view.phase()) {
        (shown.status, shown.skipped) = ("skipped", Some("branch_not_taken".into()));
    }
    shown
}
