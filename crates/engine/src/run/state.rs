//! The state of a run, and the one function that changes it.
//!
//! `evolve` is shared by live running and replay, so there is no code that restores a run. It never evaluates an
//! expression, reads a clock or consults a policy: whatever was decided is in the event.

use super::program::{Lane, Program};
use crate::event::{Assignment, Decision, Event, Question, What};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::{Failure, Outcome};
use indexmap::IndexMap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, Value};

/// The number of a step instance in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

impl Place {
    fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    New,
    Running,
    Concluded(Outcome),
    Closed(Outcome),
}

/// One step at one path.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub step: StepId,
    pub path: Path,
    pub parent: Option<Place>,
    /// Needs that have not settled.
    pub pending: u32,
    pub phase: Phase,
    /// The steps inside, once it was entered.
    pub inside: Option<Inside>,
    pub notes: IndexMap<Arc<str>, Value>,
    /// Attempts made before the step was opened again: they count for identity, not for its retry policy.
    pub attempts_before: u32,
    pub attempts: u32,
}

/// The steps of one scope, or of the run itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Inside {
    pub first: Place,
    pub count: u32,
    pub open: u32,
    pub arm: Option<Arc<str>>,
    /// The step whose failure ends this scope.
    pub halted: Option<Place>,
    /// The first step because of which this scope has failed, ended by it or not.
    pub failed: Option<Place>,
    /// Neither started nor settled.
    pub unstarted: BTreeSet<Place>,
    /// Waiting for a person.
    pub gates: BTreeSet<Place>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Something it needs has not settled.
    Waiting,
    Ready,
    Attempt(Attempt),
    Gate {
        question: Question,
        timed_out: bool,
    },
    Entered,
    Settled {
        outcome: Outcome,
        fails: bool,
    },
}

/// What a failure means for the scope it happens in.
#[derive(Clone, Copy, Debug)]
struct Weight {
    halts: bool,
    fails: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub attempt: u32,
    pub delivery: u32,
    pub assignment: Arc<Assignment>,
    pub doing: Doing,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    Running,
    /// Told to stop, because it took too long or the run is being cancelled.
    Aborting(Abort),
    /// Failed; the next attempt is due at a timer, or due now.
    Backoff {
        failure: Failure,
        due: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    Timeout,
    Cancel,
}

/// The time of the run itself. It stands still while nothing but people can move the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    None,
    Until(Timestamp),
    Still { left: Duration },
    Over,
}

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub stage: Stage,
    pub inputs: Value,
    pub env: Value,
    pub seed: u64,
    pub started_at: Timestamp,
    /// The time of the last event: `now` is never less.
    pub last_at: Timestamp,
    pub instances: Vec<Instance>,
    by_path: HashMap<Path, Place>,
    pub roots: Inside,
    /// Instances that can start, in the order of the file, by what they wait for.
    pub ready: BTreeSet<Place>,
    pub ready_actions: BTreeSet<Place>,
    pub ready_agents: BTreeSet<Place>,
    /// Attempts in flight, and those between two attempts.
    pub jobs: BTreeSet<Place>,
    /// Scopes in which nothing new is started: one of their steps failed, or the run is being cancelled. The run itself is
    /// the one without a place.
    pub draining: BTreeSet<Option<Place>>,
    /// Gates whose time is up, scopes whose steps have all settled, attempts whose grace is over.
    pub attention: BTreeSet<Place>,
    pub agents: u32,
    timers: BTreeSet<(Timestamp, Place, Reason)>,
    timer_of: HashMap<(Place, Reason), Timestamp>,
    pub paused: bool,
    pub cancelling: Option<Arc<str>>,
    /// How long the run may still take, and whether that time is running.
    pub clock: RunClock,
    /// Decisions that were accepted, by id.
    pub decisions: HashMap<Path, (Arc<str>, Arc<str>)>,
}

impl State {
    pub fn new() -> Self {
        Self {
            stage: Stage::New,
            inputs: Value::Null,
            env: Value::Null,
            seed: 0,
            started_at: Timestamp::default(),
            last_at: Timestamp(i64::MIN),
            instances: Vec::new(),
            by_path: HashMap::new(),
            roots: Inside {
                first: Place(0),
                count: 0,
                open: 0,
                arm: None,
                halted: None,
                failed: None,
                unstarted: BTreeSet::new(),
                gates: BTreeSet::new(),
            },
            ready: BTreeSet::new(),
            ready_actions: BTreeSet::new(),
            ready_agents: BTreeSet::new(),
            jobs: BTreeSet::new(),
            draining: BTreeSet::new(),
            attention: BTreeSet::new(),
            agents: 0,
            timers: BTreeSet::new(),
            timer_of: HashMap::new(),
            paused: false,
            cancelling: None,
            clock: RunClock::None,
            decisions: HashMap::new(),
        }
    }

    pub fn at(&self, place: Place) -> &Instance {
        &self.instances[place.index()]
    }

    fn at_mut(&mut self, place: Place) -> &mut Instance {
        &mut self.instances[place.index()]
    }

    pub fn find(&self, path: &Path) -> Option<Place> {
        self.by_path.get(path).copied()
    }

    /// The steps of a scope that was entered, or of the run.
    pub fn inside(&self, scope: Option<Place>) -> Option<&Inside> {
        scope.map_or(Some(&self.roots), |place| self.at(place).inside.as_ref())
    }

    pub fn is_gate_open(&self, place: Place) -> bool {
        matches!(self.at(place).phase, Phase::Gate { .. })
    }

    pub fn next_timer(&self) -> Option<(Timestamp, Place, Reason)> {
        self.timers.first().copied()
    }

    /// The instance of a step that a reader at `from` sees: in its own scope or the nearest one around it.
    pub fn seen_from(&self, from: Option<Place>, step: StepId, program: &Program) -> Option<Place> {
        let wanted = program.plan.step(step).parent;
        let mut inside = from;
        loop {
            let scope = inside.and_then(|place| self.at(place).parent);
            let owner = scope.map(|place| self.at(place).step);
            if owner == wanted {
                let list = self.inside(scope)?;
                let place = Place(list.first.0 + program.place(step));
                return (program.place(step) < list.count && self.at(place).step == step).then_some(place);
            }
            inside = Some(scope?);
        }
    }
}

/// Applies one event.
pub fn evolve(state: &mut State, program: &Program, event: &Event) {
    state.last_at = state.last_at.max(event.at);
    match &event.what {
        What::Started { inputs, env, seed, .. } => {
            state.stage = Stage::Running;
            state.inputs = inputs.clone();
            state.env = env.0.clone();
            state.seed = *seed;
            state.started_at = event.at;
            state.roots = state.open(None, &program.plan.roots, None, program);
        }
        What::Entered { path, decision } => state.entered(path, decision, program),
        What::Scheduled { path, attempt, delivery, assignment, deadline } => {
            state.scheduled(path, *attempt, *delivery, assignment.as_ref(), program);
            let place = state.find(path);
            if let (Some(place), Some(deadline)) = (place, deadline) {
                state.set_timer(place, Reason::Timeout, *deadline);
            }
        }
        What::Noted { path, key, value } => {
            if let Some(place) = state.find(path) {
                state.at_mut(place).notes.insert(key.clone(), value.clone());
            }
        }
        What::AttemptFailed { path, failure, delay, .. } => {
            if let Some(place) = state.find(path) {
                state.drop_timers(place);
                state.attention.remove(&place);
                if let Phase::Attempt(attempt) = &mut state.at_mut(place).phase {
                    attempt.doing = Doing::Backoff { failure: failure.clone(), due: false };
                }
                state.set_timer(place, Reason::Retry, event.at.plus(*delay));
            }
        }
        What::TimerSet { path, until, .. } if path.is_run() => {
            state.clock = match state.clock {
                RunClock::Until(before) if *until == Timestamp::NEVER => {
                    RunClock::Still { left: before.since(event.at) }
                }
                RunClock::None | RunClock::Until(_) | RunClock::Still { .. } | RunClock::Over => {
                    RunClock::Until(*until)
                }
            };
        }
        What::TimerFired { path, .. } if path.is_run() => {
            state.clock = RunClock::Over;
            state.cancel(&"the run took too long".into());
        }
        What::TimerSet { path, reason, until } => {
            if let Some(place) = state.find(path) {
                state.set_timer(place, *reason, *until);
            }
        }
        What::TimerFired { path, reason } => {
            if let Some(place) = state.find(path) {
                state.timer_fired(place, *reason);
            }
        }
        What::Signalled { id, path, by, .. } => {
            state.decisions.insert(path.clone(), (id.clone(), by.clone()));
        }
        What::CancelRequested { why, .. } => state.cancel(why),
        What::Paused { .. } => state.paused = true,
        What::Resumed { .. } => state.paused = false,
        What::Reopened { paths, inputs, .. } => state.reopen(paths, inputs, program),
        What::Settled { path, outcome, halts, fails, .. } => {
            if let Some(place) = state.find(path) {
                state.settle(place, outcome, Weight { halts: *halts, fails: *fails }, program);
            }
        }
        What::Concluded { outcome, .. } => state.stage = Stage::Concluded(outcome.clone()),
        What::Closed => {
            if let Stage::Concluded(outcome) = &state.stage {
                state.stage = Stage::Closed(outcome.clone());
            }
        }
    }
}

impl State {
    /// Makes instances of a list of steps. Steps that need nothing are ready at once.
    fn open(
        &mut self,
        parent: Option<Place>,
        list: &[StepId],
        arm: Option<Arc<str>>,
        program: &Program,
    ) -> Inside {
        let first =
            Place(u32::try_from(self.instances.len()).expect("a run has fewer than 2^32 step instances"));
        let around = parent.map_or_else(Path::default, |place| self.at(place).path.clone());
        for id in list {
            let step = program.plan.step(*id);
            let place = Place(first.0 + program.place(*id));
            let path = around.child(step.id.clone(), None);
            let pending = u32::try_from(step.needs.len()).expect("a plan has at most 100,000 steps");
            self.by_path.insert(path.clone(), place);
            self.instances.push(Instance {
                step: *id,
                path,
                parent,
                pending,
                phase: Phase::Waiting,
                inside: None,
                notes: IndexMap::new(),
                attempts_before: 0,
                attempts: 0,
            });
            if pending == 0 {
                self.make_ready(place, program);
            }
        }
        let count = list.len() as u32;
        let unstarted = (first.0..first.0 + count).map(Place).collect();
        Inside {
            first,
            count,
            open: count,
            arm,
            halted: None,
            failed: None,
            unstarted,
            gates: BTreeSet::new(),
        }
    }

    fn make_ready(&mut self, place: Place, program: &Program) {
        self.at_mut(place).phase = Phase::Ready;
        let lane = match program.lane(self.at(place).step) {
            Lane::Free => &mut self.ready,
            Lane::Actions => &mut self.ready_actions,
            Lane::Agents => &mut self.ready_agents,
        };
        lane.insert(place);
    }

    /// The step is no longer waiting to be started.
    fn begin(&mut self, place: Place) {
        self.ready.remove(&place);
        self.ready_actions.remove(&place);
        self.ready_agents.remove(&place);
        let siblings = self.siblings_mut(place);
        siblings.unstarted.remove(&place);
        siblings.gates.remove(&place);
    }

    fn entered(&mut self, path: &Path, decision: &Decision, program: &Program) {
        let Some(place) = self.find(path) else { return };
        self.begin(place);
        let kind = &program.plan.step(self.at(place).step).kind;
        let (list, arm) = match decision {
            Decision::Gate(question) => {
                self.at_mut(place).phase = Phase::Gate { question: question.clone(), timed_out: false };
                self.siblings_mut(place).gates.insert(place);
                return;
            }
            Decision::Steps => match kind {
                Kind::Block(list) => (list.as_slice(), None),
                _ => (&[][..], None),
            },
            Decision::Arm(arm) => {
                let arms = kind.bodies().into_iter();
                let taken =
                    arms.into_iter().find(|(name, _)| **name == **arm).map_or(&[][..], |(_, list)| list);
                (taken, Some(arm.clone()))
            }
        };
        let inside = self.open(Some(place), list, arm, program);
        if inside.open == 0 {
            self.attention.insert(place);
        }
        let instance = self.at_mut(place);
        instance.phase = Phase::Entered;
        instance.inside = Some(inside);
    }

    fn scheduled(
        &mut self,
        path: &Path,
        attempt: u32,
        delivery: u32,
        assignment: Option<&Arc<Assignment>>,
        program: &Program,
    ) {
        let Some(place) = self.find(path) else { return };
        self.begin(place);
        self.drop_timers(place);
        let known = match &self.at(place).phase {
            Phase::Attempt(before) => Some(before.assignment.clone()),
            _ => None,
        };
        if self.jobs.insert(place) && program.lane(self.at(place).step) == Lane::Agents {
            self.agents += 1;
        }
        let Some(assignment) = assignment.cloned().or(known) else { return };
        let instance = self.at_mut(place);
        instance.attempts = attempt;
        instance.phase = Phase::Attempt(Attempt { attempt, delivery, assignment, doing: Doing::Running });
    }

    fn set_timer(&mut self, place: Place, reason: Reason, until: Timestamp) {
        self.drop_timer(place, reason);
        self.timers.insert((until, place, reason));
        self.timer_of.insert((place, reason), until);
    }

    fn drop_timer(&mut self, place: Place, reason: Reason) {
        if let Some(until) = self.timer_of.remove(&(place, reason)) {
            self.timers.remove(&(until, place, reason));
        }
    }

    fn drop_timers(&mut self, place: Place) {
        for reason in [Reason::Retry, Reason::Timeout, Reason::Wait, Reason::Grace] {
            self.drop_timer(place, reason);
        }
    }

    fn timer_fired(&mut self, place: Place, reason: Reason) {
        self.drop_timer(place, reason);
        match (&mut self.at_mut(place).phase, reason) {
            (Phase::Attempt(Attempt { doing: Doing::Backoff { due, .. }, .. }), Reason::Retry) => {
                *due = true;
                // An agent keeps its place among the agents between attempts, so it waits for no other.
                self.ready.insert(place);
            }
            (Phase::Attempt(Attempt { doing: doing @ Doing::Running, .. }), Reason::Timeout) => {
                *doing = Doing::Aborting(Abort::Timeout);
            }
            (Phase::Gate { timed_out, .. }, Reason::Wait) => {
                *timed_out = true;
                self.attention.insert(place);
            }
            (Phase::Attempt(Attempt { doing: Doing::Aborting(_), .. }), Reason::Grace) => {
                self.attention.insert(place);
            }
            _ => {}
        }
    }

    fn cancel(&mut self, why: &Arc<str>) {
        self.cancelling = Some(why.clone());
        self.drain(None);
        for place in self.jobs.clone() {
            self.drop_timer(place, Reason::Timeout);
            if let Phase::Attempt(attempt) = &mut self.at_mut(place).phase
                && attempt.doing == Doing::Running
            {
                attempt.doing = Doing::Aborting(Abort::Cancel);
            }
        }
    }

    fn settle(&mut self, place: Place, outcome: &Outcome, weight: Weight, program: &Program) {
        self.begin(place);
        self.drop_timers(place);
        self.attention.remove(&place);
        self.draining.remove(&Some(place));
        let step = self.at(place).step;
        if self.jobs.remove(&place) && program.lane(step) == Lane::Agents {
            self.agents -= 1;
        }
        if matches!(outcome, Outcome::Failed(_)) {
            if weight.fails {
                self.siblings_mut(place).failed.get_or_insert(place);
            }
            if weight.halts {
                self.siblings_mut(place).halted.get_or_insert(place);
                self.drain(self.at(place).parent);
            }
        }
        self.at_mut(place).phase = Phase::Settled { outcome: outcome.clone(), fails: weight.fails };
        let first = self.siblings(place).first;
        for dependent in program.dependents(step) {
            let dependent = Place(first.0 + program.place(*dependent));
            let instance = self.at_mut(dependent);
            instance.pending = instance.pending.saturating_sub(1);
            if instance.pending == 0 && instance.phase == Phase::Waiting {
                self.make_ready(dependent, program);
            }
        }
        let parent = self.at(place).parent;
        let inside = self.siblings_mut(place);
        inside.open = inside.open.saturating_sub(1);
        if let (0, Some(parent)) = (inside.open, parent) {
            self.attention.insert(parent);
        }
    }

    /// Nothing new is started in a scope, nor in those that were entered inside it.
    fn drain(&mut self, scope: Option<Place>) {
        self.draining.insert(scope);
        let Some(inside) = self.inside(scope) else { return };
        let entered = (inside.first.0..inside.first.0 + inside.count).map(Place);
        let entered: Vec<Place> = entered.filter(|place| self.at(*place).phase == Phase::Entered).collect();
        entered.into_iter().for_each(|place| self.drain(Some(place)));
    }

    fn siblings(&self, place: Place) -> &Inside {
        let parent = self.at(place).parent.and_then(|parent| self.at(parent).inside.as_ref());
        parent.unwrap_or(&self.roots)
    }

    fn siblings_mut(&mut self, place: Place) -> &mut Inside {
        match self.at(place).parent {
            Some(parent) if self.at(parent).inside.is_some() => {
                self.at_mut(parent).inside.as_mut().expect("looked at in the guard")
            }
            _ => &mut self.roots,
        }
    }

    /// Opens settled instances again: a scope goes on where it was, a leaf starts anew.
    fn reopen(&mut self, paths: &[Path], inputs: &Value, program: &Program) {
        self.stage = Stage::Running;
        self.inputs = inputs.clone();
        self.draining.clear();
        self.cancelling = None;
        self.clock = RunClock::None;
        self.roots.halted = None;
        self.roots.failed = None;
        let places: Vec<Place> = paths.iter().filter_map(|path| self.find(path)).collect();
        paths.iter().for_each(|path| drop(self.decisions.remove(path)));
        for place in &places {
            let instance = self.at_mut(*place);
            instance.attempts_before = instance.attempts;
            instance.phase = if instance.inside.is_some() { Phase::Entered } else { Phase::Waiting };
            if let Some(inside) = &mut instance.inside {
                inside.halted = None;
                inside.failed = None;
            }
            self.siblings_mut(*place).open += 1;
        }
        for place in places {
            if self.at(place).phase != Phase::Waiting {
                continue;
            }
            let first = self.siblings(place).first;
            let needs = &program.plan.step(self.at(place).step).needs;
            let open = |need: &&StepId| !self.at(Place(first.0 + program.place(**need))).is_settled();
            let pending = needs.iter().filter(open).count() as u32;
            self.at_mut(place).pending = pending;
            self.siblings_mut(place).unstarted.insert(place);
            if pending == 0 {
                self.make_ready(place, program);
            }
        }
    }
}

impl Instance {
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Settled { .. })
    }

    /// Whether it failed in a way that its scope has failed with.
    pub fn counts_as_failed(&self) -> bool {
        matches!(self.phase, Phase::Settled { fails: true, .. })
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Settled { outcome, .. } => Some(outcome),
            Phase::Waiting | Phase::Ready | Phase::Attempt(_) | Phase::Gate { .. } | Phase::Entered => None,
        }
    }
}
