//! Selects the results that a new run keeps from an earlier one: everything that settled and does not depend on the
//! steps to repeat.
//!
//! If the plan or the inputs changed, the new run enters scopes again and keeps only actions, gates and waits whose
//! definition and input are unchanged.

use crate::event::{Assignment, Decision, Event, Kept, Question, Repeated, Settled, What};
use crate::keys::{Path, Segment};
use crate::outcome::Outcome;
use crate::run::{Fnv, Program};
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher as _;
use std::sync::Arc;
use windlass_ir::Plan;
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::Kind;

/// The digest of a step. It does not depend on the position of the step in the plan or on how the step is presented.
///
/// Journals contain it, so it must stay the same in every version of Windlass: leave a new field out of the serialized form
/// while it has its default.
pub fn of_step(plan: &Plan, step: &PlanStep) -> u64 {
    let mut json = serde_json::to_value(step).unwrap_or_default();
    if let Json::Object(fields) = &mut json {
        // `recorded` first: removing a field can reorder the fields after it, and not every step has this one.
        for excluded in ["recorded", "parent", "batch", "reads", "name", "description"] {
            fields.remove(excluded);
        }
    }
    name_steps(plan, &mut json);
    hashed(0xcbf2_9ce4_8422_2325, &json)
}

/// The digest of an action and its input.
pub fn of_action(plan: &Plan, step: &PlanStep, assignment: &Assignment) -> u64 {
    hashed(of_step(plan, step), assignment)
}

/// The digest of a gate and its question.
pub fn of_gate(plan: &Plan, step: &PlanStep, question: &Question) -> u64 {
    hashed(of_step(plan, step), &(&question.message, &question.show_file, &question.input))
}

fn hashed(seed: u64, what: &impl serde::Serialize) -> u64 {
    let mut hasher = Fnv(seed);
    hasher.write(serde_json::to_string(what).unwrap_or_default().as_bytes());
    hasher.finish()
}

/// Fields that contain step numbers, which mean nothing in another plan.
const NUMBERED: [&str; 6] =
    ["needs", "step_outputs", "step_status", "step_record", "loop_item", "loop_index"];

fn name_steps(plan: &Plan, json: &mut Json) {
    match json {
        Json::Object(fields) => {
            for (key, value) in fields {
                if NUMBERED.contains(&key.as_str()) {
                    name_numbers(plan, value);
                } else {
                    name_steps(plan, value);
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| name_steps(plan, item)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn name_numbers(plan: &Plan, json: &mut Json) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(|item| name_numbers(plan, item)),
        Json::Number(number) => {
            let step = number.as_u64().and_then(|number| u32::try_from(number).ok());
            if let Some(step) = step.map(StepId).filter(|step| step.index() < plan.steps.len()) {
                let outwards = std::iter::successors(Some(step), |step| plan.step(*step).parent);
                *json = outwards.map(|step| Json::from(&*plan.step(step).id)).collect();
            }
        }
        Json::Null | Json::Bool(_) | Json::String(_) | Json::Object(_) => {}
    }
}

/// The new run of which an earlier one is part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// It has the same plan and the same inputs.
    Same,
    /// It has another plan or other inputs, so it enters scopes and assigns values again.
    Changed,
    /// It runs a single step, and never enters the scopes beside that step.
    Only,
}

/// Selects what to keep from the run with these events if it restarts at the steps in `from`.
pub fn kept(program: &Program, events: &[Event], from: &[Path], renewed: Renewed) -> Vec<Kept> {
    let from: Vec<_> = from.iter().map(|from| (from, steps_again(program, from))).collect();
    let mut past = Past { read_into: read_into(&program.plan), ..Past::default() };
    for event in events {
        match &event.what {
            What::Kept(kept) => drop(past.before.insert(kept.path.clone(), kept.seen)),
            What::Scheduled { path, assignment: Some(assignment), .. }
            | What::Asked { path, assignment: Some(assignment), .. } => {
                past.given.insert(path.clone(), assignment.clone());
            }
            What::Entered { path, decision: Decision::Gate(question) } => {
                past.asked.insert(path.clone(), (**question).clone());
            }
            What::Entered { path, decision: Decision::Planned { plan, .. } } => {
                let Some(plan) = plan.whole() else { continue };
                let around = path.parent().unwrap_or_default();
                let added = plan.roots.iter().map(|step| around.child(plan.step(*step).id.clone(), None));
                past.planned.insert(path.clone(), added.collect());
            }
            What::Entered { path, decision: Decision::Undo { .. } } => past.undone(path),
            What::SentBack { steps, .. } => past.sent_back(program, steps),
            What::Reopened { paths, .. } => past.kept.retain(|kept| !paths.contains(&kept.path)),
            What::Settled(settled) => {
                let path = past.plain(&settled.path);
                let again = from.iter().any(|(from, names)| is_again(names, from, &path));
                past.settled(program, settled, path, renewed, again);
            }
            _ => {}
        }
    }
    past.kept(renewed == Renewed::Same)
}

/// The relevant history while reading events in order.
#[derive(Default)]
struct Past {
    /// Scopes that are entered again, because steps outside read steps inside.
    read_into: HashSet<StepId>,
    /// Digests of results that the run itself kept from an earlier one.
    before: HashMap<Path, u64>,
    given: HashMap<Path, Arc<Assignment>>,
    asked: HashMap<Path, Question>,
    /// Steps added by a planner.
    planned: HashMap<Path, Vec<Path>>,
    done: HashSet<Path>,
    undone: HashSet<Path>,
    /// A gate that sends steps back creates new instances. This maps them to the paths of the first instances.
    first: HashMap<Path, Path>,
    kept: Vec<Kept>,
}

impl Past {
    fn settled(&mut self, program: &Program, settled: &Settled, path: Path, renewed: Renewed, again: bool) {
        if matches!(settled.outcome, Outcome::Done(_)) {
            self.done.insert(settled.path.clone());
        }
        // A failure that ended its scope is the reason for the restart, so it is not kept.
        let is_end = match settled.outcome {
            Outcome::Done(_) => true,
            Outcome::Failed(_) => !settled.halts && !settled.fails,
            Outcome::Continue(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => false,
        };
        let undone = self.undone.iter().any(|undone| is_below(&path, undone));
        let Some(id) = step_at(program, &path).filter(|_| is_end && !again && !undone) else { return };
        let (plan, step) = (&program.plan, program.step(id));
        let before = self.before.get(&settled.path).copied();
        let seen = match &step.kind {
            Kind::Action(_) => {
                self.given.get(&settled.path).map(|given| of_action(plan, step, given)).or(before)
            }
            Kind::Gate(_) => self.asked.get(&settled.path).map(|asked| of_gate(plan, step, asked)).or(before),
            Kind::Wait(_) => Some(of_step(plan, step)),
            Kind::Assign(_) if renewed == Renewed::Only => Some(of_step(plan, step)),
            // Assignments are cheap to repeat, and the new run must decide its end again.
            Kind::Assign(_) | Kind::Finish(_) | Kind::Slot(_) => return,
            Kind::Block(_)
            | Kind::Parallel(_)
            | Kind::ForEach(_)
            | Kind::Repeat(_)
            | Kind::Choose(_)
            | Kind::Guard(_) => match renewed {
                Renewed::Same => !self.read_into.contains(&id),
                Renewed::Changed => false,
                Renewed::Only => true,
            }
            .then(|| of_step(plan, step)),
        };
        // A step that failed before it received its input did not run.
        let Some(seen) = seen else { return };
        self.kept.push(Kept { path, outcome: settled.outcome.clone(), order: 0, seen, unchanged: false });
    }

    /// A step that was undone must run again.
    fn undone(&mut self, path: &Path) {
        let path = self.plain(path);
        self.kept.retain(|kept| !is_below(&kept.path, &path));
        self.undone.insert(path);
    }

    /// Only the last pass counts.
    fn sent_back(&mut self, program: &Program, steps: &[Repeated]) {
        for Repeated { path, pass } in steps {
            let first = self.plain(path);
            self.kept.retain(|kept| !is_below(&kept.path, &first));
            if let Some(step) = step_at(program, &first) {
                let around = path.parent().unwrap_or_default();
                self.first.insert(around.pass(&program.step(step).id, *pass), first);
            }
        }
    }

    /// The path of the instance without the passes that gates added.
    fn plain(&self, path: &Path) -> Path {
        let mut seen = Path::default();
        let mut plain = Path::default();
        for Segment { name, ordinal } in path.segments() {
            let owner = seen.child(name.clone(), None);
            seen = seen.child(name.clone(), *ordinal);
            plain = match (self.first.get(&owner), ordinal) {
                (Some(first), Some(number)) => first.frame(*number),
                (Some(first), None) => first.clone(),
                (None, _) => plain.child(name.clone(), *ordinal),
            };
        }
        plain
    }

    /// A planner is kept only together with all steps it added.
    fn kept(self, unchanged: bool) -> Vec<Kept> {
        let Self { mut kept, planned, done, .. } = self;
        kept.retain(|kept| {
            planned.get(&kept.path).is_none_or(|added| added.iter().all(|step| done.contains(step)))
        });
        for (order, kept) in (0..).zip(&mut kept) {
            (kept.order, kept.unchanged) = (order, unchanged);
        }
        kept
    }
}

/// The scopes whose steps are read by steps outside. A scope that is kept as a whole has no steps inside.
fn read_into(plan: &Plan) -> HashSet<StepId> {
    let outwards = |step: StepId| std::iter::successors(Some(step), |step| plan.step(*step).parent);
    let mut found = HashSet::new();
    for (reader, step) in (0u32..).map(StepId).zip(&plan.steps) {
        for read in &step.reads {
            let scopes = outwards(*read).skip(1);
            let scopes = scopes.filter(|scope| !matches!(plan.step(*scope).kind, Kind::Guard(_)));
            found.extend(scopes.filter(|scope| outwards(reader).all(|around| around != *scope)));
        }
    }
    found
}

fn is_below(path: &Path, top: &Path) -> bool {
    path.segments().starts_with(top.segments())
}

/// The step at a path. `None` inside called workflows and for steps added at run time.
pub fn step_at(program: &Program, path: &Path) -> Option<StepId> {
    let plan = &program.plan;
    let mut list: Vec<StepId> = plan.roots.clone();
    let mut found = None;
    for segment in path.segments() {
        let named = |step: &StepId| plan.step(*step).id == segment.name;
        let inner = found.map_or_else(|| list.clone(), |step| inside(plan, step));
        // A step that handles a failure or undoes another is next to that step in the plan, but inside it in a path.
        let beside = || list.iter().copied().filter(|step| plan.step(*step).takes_over).find(named);
        let step = inner.iter().copied().find(named).or_else(beside)?;
        (list, found) = (inner, Some(step));
    }
    found
}

/// The steps inside a step. The `finally` steps of a guard are never kept on their own.
fn inside(plan: &Plan, step: StepId) -> Vec<StepId> {
    match &plan.step(step).kind {
        Kind::Guard(guard) => guard.body.clone(),
        kind => kind.bodies().into_iter().flat_map(|(_, body)| body.iter().copied()).collect(),
    }
}

/// For each list on the way to a step: the names of the steps to repeat, which are the step itself and its
/// dependents.
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
        list = inside(plan, step);
    }
    levels
}

/// Whether the step at a path must repeat. In a loop or a fan-out, earlier rounds and items are kept.
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
