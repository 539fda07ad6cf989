//! The state of a run, and the one function that changes it.
//!
//! `evolve` is shared by live running and replay, so there is no code that restores a run. It never evaluates an
//! expression, reads a clock or consults a policy: whatever was decided is in the event.
//!
//! `instance` is one step at one path, `instances` all of them, `index` which of them can move on, `list` holds steps that stand side by side and settles them, `frame` makes items and rounds, `stop` ends what is under way,
//! `again` opens what was settled, `promise` shares work by key, `timer` knows what time brings, `sight` finds the instance
//! that a name stands for, `fits` lists which events a run can take.

mod again;
mod fits;
mod frame;
mod index;
mod instance;
mod instances;
mod list;
mod promise;
mod sight;
mod stop;
mod timer;

use super::program::Program;
use crate::event::{Assignment, Decision, Event, Kept, Question, Reach, Shares, What};
use crate::input::Lineage;
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::Outcome;
pub use fits::Contradiction;
use fits::Misfit;
use index::Index;
pub use instance::{
    Abort, Asked, Asking, Attempt, Because, Doing, Instance, Items, Phase, Place, Rounds, Settlement, Sleep,
    Within,
};
pub use instances::Instances;
pub use list::{List, Role, failure_value};
pub use promise::Held;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
pub use stop::Stop;
use timer::Timers;
use windlass_ir::expr::{ResultShapes, StepId};
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    New,
    Running,
    Concluded(Outcome),
    Closed(Outcome),
}

/// A decision that was taken: its id, and who made it.
pub type Vote = (Arc<str>, Arc<str>);

/// The time of the run itself. It stands still while nothing but people can move the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    None,
    Until(Timestamp),
    Still { left: Duration },
    Over,
}

/// One workflow of the run: its own, or one that was called and runs inside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    pub program: Arc<Program>,
    pub inputs: Value,
    pub env: Value,
    /// Where its file stands; null when nobody has said.
    pub folder: Value,
    /// The call that it is the inside of.
    pub call: Option<Place>,
    /// The first of its instances, for steps that a worker added.
    pub planned: Option<Place>,
    /// The instance of each step that settled last, for those that read by name.
    pub latest: HashMap<StepId, Place>,
}

/// What was said about where the file of the workflow stands.
pub fn folder_in(about: &Value) -> Value {
    about.get("folder").cloned().unwrap_or(Value::Null)
}

/// A signal that nobody has taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub stage: Stage,
    pub seed: u64,
    pub by: Option<Arc<str>>,
    pub lineage: Lineage,
    pub shares: Shares,
    /// The time for which it has asked to begin and may not yet; none once it may.
    pub applies: Option<u32>,
    /// How often it has asked to begin.
    pub applied: u32,
    pub applied_at: Timestamp,
    pub started_at: Timestamp,
    /// What was recorded when it was started; for whoever executes it.
    pub about: Value,
    /// The time of the last event: `now` is never less.
    pub last_at: Timestamp,
    pub units: Vec<Unit>,
    pub instances: Instances,
    by_path: HashMap<Path, Place>,
    /// The item that was done last.
    done_item: Option<Place>,
    pub roots: List,
    pub index: Index,
    pub timers: Timers,
    pub paused: bool,
    /// No process continues the run before someone resumes it.
    pub interrupted: bool,
    /// The run was told to stop.
    pub stop: Option<Stop>,
    /// How long the run may still take, and whether that time is running.
    pub clock: RunClock,
    /// Decisions that were accepted, by gate.
    pub decisions: HashMap<Path, Vec<Vote>>,
    /// Signals that nobody has taken, in the order in which they came.
    pub letters: Vec<Letter>,
    /// The ids of all signals that came.
    pub signals: HashSet<Arc<str>>,
    pub promises: HashMap<Arc<str>, Held>,
    /// Steps whose key was answered, in the order in which they joined.
    pub answered: VecDeque<Place>,
    pub kept: HashMap<Path, Arc<Kept>>,
    /// It does nothing before.
    pub begins: Option<Timestamp>,
    /// How far it goes, where that is not to its end.
    pub reach: Option<Reach>,
    /// How many steps have settled: the order of completion.
    pub completed: u64,
    /// What can be undone, in the order of completion.
    pub undoable: BTreeMap<u64, Place>,
    /// What is being undone, by who waits for that: a guard, or the run.
    pub undoing: BTreeMap<Option<Place>, Place>,
    /// Something has been undone, or tried to be.
    pub has_undone: bool,
    /// Something could not be undone, or could not be taken over.
    pub undone_partly: bool,
    /// A step that ended the run early, and how.
    pub finish: Option<Outcome>,
    /// How many instances have failed.
    pub failures: u64,
    /// How many steps were added by workers.
    pub planned: u32,
    /// What is done around the run and has not reported.
    pub hooks: BTreeMap<Path, Attempt>,
    /// How many hooks were begun.
    pub hooks_begun: u32,
    /// The hooks of this end of the run were begun.
    pub hooked: bool,
}

impl State {
    pub fn new(program: Arc<Program>) -> Self {
        Self {
            stage: Stage::New,
            seed: 0,
            by: None,
            lineage: Lineage::default(),
            shares: Shares::default(),
            applies: None,
            applied: 0,
            applied_at: Timestamp::default(),
            started_at: Timestamp::default(),
            about: Value::Null,
            last_at: Timestamp(i64::MIN),
            units: vec![Unit {
                program,
                inputs: Value::Null,
                env: Value::Null,
                folder: Value::Null,
                call: None,
                planned: None,
                latest: HashMap::new(),
            }],
            instances: Instances::default(),
            by_path: HashMap::new(),
            done_item: None,
            roots: List::default(),
            index: Index::default(),
            timers: Timers::default(),
            paused: false,
            interrupted: false,
            stop: None,
            clock: RunClock::None,
            decisions: HashMap::new(),
            letters: Vec::new(),
            signals: HashSet::new(),
            promises: HashMap::new(),
            answered: VecDeque::new(),
            kept: HashMap::new(),
            begins: None,
            reach: None,
            completed: 0,
            undoable: BTreeMap::new(),
            undoing: BTreeMap::new(),
            has_undone: false,
            undone_partly: false,
            finish: None,
            failures: 0,
            planned: 0,
            hooks: BTreeMap::new(),
            hooks_begun: 0,
            hooked: false,
        }
    }

    pub fn at(&self, place: Place) -> &Instance {
        self.instances.at(place)
    }

    fn at_mut(&mut self, place: Place) -> &mut Instance {
        self.instances.at_mut(place)
    }

    /// Nothing new begins and no timer fires.
    pub fn stands_still(&self) -> bool {
        self.paused || self.interrupted
    }

    pub fn find(&self, path: &Path) -> Option<Place> {
        self.by_path.get(path).copied()
    }

    /// The workflow that an instance belongs to.
    pub fn unit(&self, place: Option<Place>) -> &Unit {
        &self.units[place.map_or(0, |place| self.at(place).unit as usize)]
    }

    pub fn program(&self, place: Place) -> &Arc<Program> {
        &self.unit(Some(place)).program
    }

    pub fn kind(&self, place: Place) -> &Kind<Vec<StepId>> {
        &self.program(place).step(self.at(place).step).kind
    }

    /// One of the lists inside an instance, or that of the run.
    pub fn list(&self, scope: Option<Place>, role: Role) -> Option<&List> {
        match scope {
            None => (role == Role::Body).then_some(&self.roots),
            Some(place) => self.at(place).lists.iter().find(|list| list.role == role),
        }
    }

    fn list_mut(&mut self, scope: Option<Place>, role: Role) -> Option<&mut List> {
        match scope {
            None => (role == Role::Body).then_some(&mut self.roots),
            Some(place) => self.at_mut(place).lists.iter_mut().find(|list| list.role == role),
        }
    }

    /// Whether an instance, or something around it, was told to stop at once.
    pub fn is_unwound(&self, place: Place) -> bool {
        self.stop_of(place).is_some_and(|stop| stop.unwind)
    }

    /// Why an instance was told to stop: itself, or the nearest around it. What belongs to the end of a step goes on
    /// whatever stopped the rest.
    pub fn stop_of(&self, place: Place) -> Option<&Stop> {
        self.at(place).stop.as_ref().or_else(|| self.stop_around(place))
    }

    /// Why what is around an instance was told to stop.
    pub fn stop_around(&self, place: Place) -> Option<&Stop> {
        let mut here = place;
        loop {
            let instance = self.at(here);
            let parent = match (instance.role, instance.parent) {
                (Role::Finally | Role::Undo, _) => return None,
                (Role::Body | Role::TakeOver, None) => return self.stop.as_ref(),
                (Role::Body | Role::TakeOver, Some(parent)) => parent,
            };
            if let Some(stop) = &self.at(parent).stop {
                return Some(stop);
            }
            here = parent;
        }
    }
}

/// Applies one event. An event that does not fit is an error, after which the state is of no use.
pub fn evolve(state: &mut State, event: &Event) -> Result<(), Contradiction> {
    apply(state, event).map_err(|misfit| misfit.at(event))
}

fn apply(state: &mut State, event: &Event) -> Result<(), Misfit> {
    state.fits(event)?;
    let at = event.at;
    state.last_at = state.last_at.max(at);
    match &event.what {
        What::Started { inputs, env, seed, about, by, lineage, shares, reach } => {
            state.reach.clone_from(reach);
            state.shares = shares.as_deref().cloned().unwrap_or_default();
            state.apply();
            state.stage = Stage::Running;
            (state.units[0].inputs, state.units[0].env) = (inputs.clone(), env.0.clone());
            state.units[0].folder = folder_in(about);
            state.about = about.clone();
            (state.seed, state.by, state.lineage) = (*seed, by.clone(), lineage.clone());
            state.started_at = at;
            let roots = state.units[0].program.plan.roots.clone();
            state.open_list(None, Role::Body, 0, &roots);
        }
        What::Kept(kept) => {
            state.completed = state.completed.max(kept.order + 1);
            state.kept.insert(kept.path.clone(), Arc::new((**kept).clone()));
        }
        What::Entered { path, decision } => {
            let place = state.target(path, event)?;
            state.entered(place, decision, at)?;
        }
        What::Scheduled { path, attempt, delivery, assignment: Some(assignment), .. } if path.is_hook() => {
            state.begin_hook(path, (*attempt, *delivery), assignment.clone());
        }
        What::Scheduled { path, attempt, delivery, assignment, deadline } => {
            let place = state.target(path, event)?;
            state.attempt(place, (*attempt, *delivery), assignment.as_ref(), Doing::Running, at);
            if let Some(deadline) = deadline {
                state.timers.set(place, Reason::Timeout, *deadline);
            }
        }
        What::Asked { path, attempt, delivery, assignment } => {
            let (place, doing) = (state.target(path, event)?, Doing::Asking { granted: false });
            state.attempt(place, (*attempt, *delivery), assignment.as_ref(), doing, at);
        }
        What::Admitted { path, .. } if path.is_run() => state.applies = None,
        What::Admitted { path, .. } => {
            let place = state.target(path, event)?;
            state.admitted(place);
        }
        What::Spent { path, used } => {
            let place = state.target(path, event)?;
            if let Some(asked) = &mut state.at_mut(place).asked {
                asked.spent = Some(asked.spent.unwrap_or_default().plus(*used));
            }
        }
        // Hooks are not handed out again, so nobody asks for their notes.
        What::Noted { path, .. } if path.is_hook() => {}
        What::Noted { path, key, value } => {
            let place = state.target(path, event)?;
            state.at_mut(place).notes.insert(key.clone(), value.clone());
        }
        What::AttemptFailed { path, delay, .. } => {
            let place = state.target(path, event)?;
            state.between(place);
            state.at_mut(place).give_back(at);
            state.timers.set(place, Reason::Retry, at.plus(*delay));
        }
        What::Lost { path, charged, started, .. } => {
            let place = state.target(path, event)?;
            if *charged || state.at(place).attempt().is_some_and(Attempt::spends) {
                state.at_mut(place).asked = None;
            }
            state.between(place);
            state.redeliver(place, *started);
        }
        What::Joined { path, key } => {
            let place = state.target(path, event)?;
            state.joined(place, key);
        }
        What::TimerSet { path, reason: Reason::Wait, until } if path.is_run() => {
            // It asks for what it shares when it begins.
            (state.begins, state.applies) = (Some(*until), None);
        }
        What::TimerSet { path, until, .. } if path.is_run() => state.set_clock(*until, at),
        What::TimerSet { path, reason, until } => {
            let place = state.target(path, event)?;
            state.timers.set(place, *reason, *until);
            if *reason == Reason::Grace {
                state.index.ungraced.remove(&place);
            }
            let loops = matches!(state.at(place).within.as_deref(), Some(Within::Rounds(_)));
            if loops && *reason == Reason::Wait {
                state.index.delayed.insert(place);
                state.index.attention.remove(&place);
            }
        }
        What::TimerFired { path, reason: Reason::Wait } if path.is_run() => {
            state.begins = None;
            state.apply();
        }
        What::TimerFired { path, .. } if path.is_run() => {
            state.clock = RunClock::Over;
            state.stop_run(&Stop::unwind("the run took too long"));
        }
        What::TimerFired { path, reason } => {
            let place = state.target(path, event)?;
            state.timer_fired(place, *reason);
        }
        What::Decided { id, path, by, value } => {
            let place = state.target(path, event)?;
            state.decisions.entry(path.clone()).or_default().push((id.clone(), by.clone()));
            if let Phase::Gate(asking) = &mut state.at_mut(place).phase {
                asking.votes.push((by.clone(), value.clone()));
            }
        }
        What::Signalled { id, name, value, path, .. } => {
            state.signals.insert(id.clone());
            match path {
                Some(path) => {
                    let place = state.target(path, event)?;
                    state.got(place, value);
                }
                None => {
                    state.letters.push(Letter { id: id.clone(), name: name.clone(), value: value.clone() });
                }
            }
        }
        What::CancelRequested { path, why, .. } if path.is_run() => {
            state.stop_run(&Stop::unwind(why.clone()));
        }
        What::CancelRequested { path, why, inside: true, .. } => {
            let place = state.target(path, event)?;
            state.stop_scope(Some(place), &Stop::unwind(why.clone()));
        }
        What::CancelRequested { path, why, .. } => {
            let place = state.target(path, event)?;
            state.stop_instance(place, &Stop { by_person: true, ..Stop::unwind(why.clone()) });
        }
        What::Paused { reached, .. } => {
            state.paused = true;
            if *reached {
                state.reach = None;
            }
        }
        What::Resumed { .. } => state.paused = false,
        What::Interrupted => state.interrupted = true,
        What::Continued => state.interrupted = false,
        What::InputsChanged { inputs, .. } => state.units[0].inputs = inputs.clone(),
        What::Rebound { path, inputs } => {
            let call = Some(state.target(path, event)?);
            for unit in state.units.iter_mut().filter(|unit| unit.call == call).take(1) {
                unit.inputs = inputs.clone();
            }
        }
        What::Reopened { paths, inputs, .. } => {
            state.reopen(paths, inputs)?;
            state.apply();
        }
        What::SentBack { gate, steps, because } => {
            let place = state.target(gate, event)?;
            state.send_back(place, steps, because);
        }
        What::Settled(settled) if settled.path.is_hook() => {
            if state.hooks.remove(&settled.path).is_none() {
                state.count_hook();
            }
        }
        What::Settled(settled) => {
            let place = state.target(&settled.path, event)?;
            state.settle(place, settled, at);
        }
        What::Concluded { outcome, .. } => state.stage = Stage::Concluded(outcome.clone()),
        What::Closed => {
            if let Stage::Concluded(outcome) = &state.stage {
                state.stage = Stage::Closed(outcome.clone());
            }
        }
    }
    Ok(())
}

impl State {
    fn entered(&mut self, place: Place, decision: &Decision, at: Timestamp) -> Result<(), Misfit> {
        let unit = self.at(place).unit;
        self.index.attention.remove(&place);
        match decision {
            Decision::Steps => {
                let list = match self.kind(place) {
                    Kind::Block(list) => list.clone(),
                    Kind::Parallel(parallel) => parallel.branches.clone(),
                    Kind::Guard(guard) => guard.body.clone(),
                    _ => Vec::new(),
                };
                self.enter(place, Within::Steps, at);
                self.open_list(Some(place), Role::Body, unit, &list);
            }
            Decision::Arm { arm, value } => {
                let arms = self.kind(place).bodies();
                let taken = arms.into_iter().find(|(name, _)| **name == **arm);
                let list = taken.map(|(_, list)| list.clone()).unwrap_or_default();
                self.enter(place, Within::Arm { arm: arm.clone(), value: value.clone() }, at);
                self.open_list(Some(place), Role::Body, unit, &list);
            }
            Decision::Items { items, at_once, in_order } => {
                let speckit = || self.program(place).shapes() == ResultShapes::Speckit;
                let in_order = in_order.unwrap_or_else(speckit);
                self.enter_items(place, items, *at_once, in_order, at);
            }
            Decision::Round { number, value } => self.enter_round(place, *number, value, at),
            Decision::Again { number, input, delay } => self.again(place, *number, input, *delay, at),
            Decision::Gate(question) => self.ask(place, question, at),
            Decision::Wait(waiting) => {
                self.begin(place, at);
                if let Some(until) = waiting.until {
                    self.timers.set(place, Reason::Wait, until);
                }
                let signal = waiting.signal.clone();
                self.set_phase(place, Phase::Wait(Sleep { signal, got: None }));
            }
            Decision::Fragment { plan, inputs, env } => {
                self.enter_fragment(place, plan, inputs, &env.0, at)?;
            }
            Decision::Planned { plan, .. } => self.add_planned(place, plan)?,
            Decision::TakenOver { failure, .. } => self.take_over(place, failure, at),
            Decision::Finally => {
                if let Kind::Guard(guard) = self.kind(place) {
                    let list = guard.finally.clone().unwrap_or_default();
                    self.open_list(Some(place), Role::Finally, unit, &list);
                }
            }
            Decision::Undo { because, uncertain } => self.undo(place, because, *uncertain),
            Decision::Finish { outcome } => {
                let id = self.program(place).step(self.at(place).step).id.clone();
                self.finish = Some(outcome.clone());
                self.stop_scope(None, &Stop::drain(format!("`{id}` ended the run")));
            }
        }
        Ok(())
    }

    /// A gate asks, for the first time or anew.
    fn ask(&mut self, place: Place, question: &Question, at: Timestamp) {
        self.begin(place, at);
        if let Some(name) = &question.empties {
            let emptied = Value::map([(name.clone(), Value::text(""))]);
            let unit = self.at(place).unit as usize;
            self.units[unit].inputs = super::merged(&self.units[unit].inputs, &emptied);
        }
        let (question, votes) = (Box::new(question.clone()), Vec::new());
        self.set_phase(place, Phase::Gate(Asking { question, votes }));
    }

    /// The instance is no longer waiting to be started, and has not settled.
    fn begin(&mut self, place: Place, at: Timestamp) {
        let instance = self.at_mut(place);
        instance.started_at.get_or_insert(at);
        let (parent, role) = (instance.parent, instance.role);
        if let Some(list) = self.list_mut(parent, role) {
            list.unstarted.remove(&place);
            list.active.insert(place);
        }
    }

    fn enter(&mut self, place: Place, within: Within, at: Timestamp) {
        self.begin(place, at);
        self.set_phase(place, Phase::Entered);
        self.at_mut(place).within = Some(Box::new(within));
        self.note_seen(place);
    }

    /// The run needs to be let in if it shares anything from its start on.
    fn apply(&mut self) {
        if !self.shares.claims.is_empty() {
            self.applied += 1;
            self.applied_at = self.last_at;
            self.applies = Some(self.applied);
        }
    }

    /// What an attempt has asked for is there: it can be handed out.
    fn admitted(&mut self, place: Place) {
        self.set_doing(place, Doing::Asking { granted: true });
    }

    fn count_hook(&mut self) {
        self.hooks_begun += 1;
        self.hooked = matches!(self.stage, Stage::Concluded(_));
    }

    fn begin_hook(&mut self, path: &Path, (attempt, delivery): (u32, u32), assignment: Arc<Assignment>) {
        self.count_hook();
        let doing = Doing::Running;
        let attempt = Attempt { attempt, delivery, assignment, doing, losses: 0, again: None };
        self.hooks.insert(path.clone(), attempt);
    }

    /// An attempt is asked for or handed out.
    fn attempt(
        &mut self,
        place: Place,
        (attempt, delivery): (u32, u32),
        assignment: Option<&Arc<Assignment>>,
        doing: Doing,
        at: Timestamp,
    ) {
        self.begin(place, at);
        self.timers.drop_all(place);
        self.index.attention.remove(&place);
        let before = self.at(place).attempt();
        let known = before.map(|before| before.assignment.clone());
        let same = before.filter(|before| before.attempt == attempt);
        let losses = same.map_or(0, |before| before.losses);
        let Some(assignment) = assignment.cloned().or(known) else { return };
        self.own_promise(place, &assignment);
        let instance = self.at_mut(place);
        instance.attempts = attempt;
        match &doing {
            Doing::Asking { .. } => {
                instance.asks += 1;
                instance.asked = Some(Asked { number: instance.asks, since: at, begun: None, spent: None });
            }
            Doing::Running | Doing::Aborting(_) | Doing::Between { .. } => {
                if let Some(asked) = &mut instance.asked {
                    asked.begun.get_or_insert(at);
                }
            }
        }
        let attempt = Attempt { attempt, delivery, assignment, doing, losses, again: None };
        self.set_phase(place, Phase::Attempt(attempt));
    }

    /// An attempt is over and another one will follow.
    fn between(&mut self, place: Place) {
        self.timers.drop_all(place);
        self.index.attention.remove(&place);
        self.set_doing(place, Doing::Between { lost: false, due: false });
    }

    /// A job was lost: its attempt can be handed out again at once.
    fn redeliver(&mut self, place: Place, started: bool) {
        if let Phase::Attempt(attempt) = &mut self.at_mut(place).phase {
            attempt.losses += u32::from(started);
        }
        self.set_doing(place, Doing::Between { lost: true, due: true });
    }

    /// A round of a task is over and the next one follows.
    fn again(&mut self, place: Place, number: u32, input: &Value, delay: Duration, at: Timestamp) {
        self.between(place);
        let instance = self.at_mut(place);
        instance.give_back(at);
        (instance.rounds, instance.attempts_before) = (number, instance.attempts);
        if let Phase::Attempt(attempt) = &mut instance.phase {
            attempt.again = Some(input.clone());
        }
        match delay {
            Duration::ZERO => self.timer_fired(place, Reason::Retry),
            delay => self.timers.set(place, Reason::Retry, at.plus(delay)),
        }
    }

    fn set_clock(&mut self, until: Timestamp, at: Timestamp) {
        self.clock = match self.clock {
            RunClock::Until(before) if until == Timestamp::NEVER => {
                RunClock::Still { left: before.since(at) }
            }
            RunClock::None | RunClock::Until(_) | RunClock::Still { .. } | RunClock::Over => {
                RunClock::Until(until)
            }
        };
    }
}
