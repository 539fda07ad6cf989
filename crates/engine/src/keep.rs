//! What a new run keeps of an earlier one when it starts again from a step: everything that is settled and does not come
//! after that step.

use crate::event::{Assignment, Event, Kept, What};
use crate::keys::Path;
use crate::outcome::Outcome;
use crate::run::{Fnv, Program};
use std::collections::{HashMap, HashSet};
use std::hash::Hasher as _;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;

/// What a step is, as a number.
pub fn of_step(step: &PlanStep) -> u64 {
    let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
    hasher.write(serde_json::to_string(step).unwrap_or_default().as_bytes());
    hasher.finish()
}

/// What an action is and what it was given, as a number.
pub fn of_action(step: &PlanStep, assignment: &Assignment) -> u64 {
    let mut hasher = Fnv(of_step(step));
    hasher.write(serde_json::to_string(assignment).unwrap_or_default().as_bytes());
    hasher.finish()
}

/// What is kept of the run that these events describe when it is started again from the step at `from`.
pub fn kept(program: &Program, events: &[Event], from: &Path) -> Vec<Kept> {
    let again = steps_again(program, from);
    let mut given: HashMap<&Path, &Assignment> = HashMap::new();
    let mut kept: Vec<Kept> = Vec::new();
    for event in events {
        match &event.what {
            What::Scheduled { path, assignment: Some(assignment), .. } => {
                given.insert(path, assignment);
            }
            What::Reopened { paths, .. } => kept.retain(|kept| !paths.contains(&kept.path)),
            What::Settled(settled) => {
                let Some(step) = step_at(program, &settled.path) else { continue };
                let done = matches!(settled.outcome, Outcome::Done(_) | Outcome::Failed(_));
                if !done || is_again(&again, from, &settled.path) {
                    continue;
                }
                let step = program.step(step);
                let seen =
                    given.get(&settled.path).map_or_else(|| of_step(step), |given| of_action(step, given));
                let (path, outcome) = (settled.path.clone(), settled.outcome.clone());
                kept.push(Kept { path, outcome, order: kept.len() as u64, seen });
            }
            _ => {}
        }
    }
    kept
}

/// The step that a path stands for; none inside other workflows and for what was added while running.
fn step_at(program: &Program, path: &Path) -> Option<StepId> {
    let plan = &program.plan;
    let mut list: Vec<StepId> = plan.roots.clone();
    let mut found = None;
    for segment in path.segments() {
        let step = list.iter().copied().find(|step| plan.step(*step).id == segment.name)?;
        let bodies = plan.step(step).kind.bodies();
        list = bodies.into_iter().flat_map(|(_, body)| body.iter().copied()).collect();
        found = Some(step);
    }
    found
}

/// For each list on the way to a step: the names of those that are done again, which are the one on the way and all that wait
/// for it.
fn steps_again(program: &Program, from: &Path) -> Vec<HashSet<Arc<str>>> {
    let plan = &program.plan;
    let mut list: Vec<StepId> = plan.roots.clone();
    let mut levels = Vec::new();
    for segment in from.segments() {
        let Some(step) = list.iter().copied().find(|step| plan.step(*step).id == segment.name) else { break };
        let mut again = HashSet::from([step]);
        let mut queue = vec![step];
        while let Some(step) = queue.pop() {
            queue.extend(program.dependents(step).iter().filter(|next| again.insert(**next)));
        }
        levels.push(again.into_iter().map(|step| plan.step(step).id.clone()).collect());
        let bodies = plan.step(step).kind.bodies();
        list = bodies.into_iter().flat_map(|(_, body)| body.iter().copied()).collect();
    }
    levels
}

/// Whether what is at a path is done again. Inside a loop or a fan-out only whole rounds before that of the step are kept.
fn is_again(again: &[HashSet<Arc<str>>], from: &Path, path: &Path) -> bool {
    let pairs = path.segments().iter().zip(from.segments()).zip(again);
    for ((segment, start), names) in pairs {
        if !names.contains(&segment.name) {
            return false;
        }
        if segment.name != start.name {
            return true;
        }
        match (segment.ordinal, start.ordinal) {
            (Some(own), Some(first)) if own < first => return false,
            (Some(own), Some(first)) if own > first => return true,
            (None, Some(_)) => return true,
            _ => {}
        }
    }
    true
}
