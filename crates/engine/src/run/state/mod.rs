//! The state of a run, and the one function that changes it.
//!
//! `evolve` is shared by live running and replay, so there is no code that restores a run. It never evaluates an
//! expression, reads a clock or consults a policy: whatever was decided is in the event.
//!
//! `evolve` applies events, and `contradiction` is the error of one that cannot be applied. `instance` is one step at one path,
//! `instances` all of them, `index` which of them can move on. `list` holds steps that stand side by side and settles them,
//! `frame` makes items and rounds, `stop` ends what is under way, `again` opens what was settled, `key` shares work by idempotency key,
//! `timer` knows the deadlines, `sight` finds the instance that a name stands for, `trace` is what only readers need.

mod again;
mod contradiction;
mod evolve;
mod frame;
mod index;
mod instance;
mod instances;
mod key;
mod list;
mod sight;
mod stop;
mod timer;
mod trace;

use super::program::Program;
use crate::event::{Kept, Reach, Shares};
use crate::input::Lineage;
use crate::keys::{Path, Timestamp};
use crate::outcome::Outcome;
pub use contradiction::Contradiction;
use contradiction::Misfit;
pub use evolve::evolve;
use index::Index;
pub use instance::{
    Abort, Asked, Asking, Attempt, Because, Doing, Instance, Items, Phase, Place, Rounds, Settlement, Sleep,
    Within,
};
pub use instances::Instances;
pub use key::Held;
pub use list::{List, Role, failure_value};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
pub use stop::Stop;
use timer::Timers;
use trace::Conclusion;
pub use trace::Trace;
use windlass_ir::expr::StepId;
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
    /// The folder of its file; null if unknown.
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

/// Whether the run may begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// No step starts before this instant.
    pub begins_at: Option<Timestamp>,
    /// The number of the open request for the slots that the run needs.
    pub request: Option<u32>,
    /// How many requests were made, and when the last one was.
    pub requests: u32,
    pub requested_at: Timestamp,
}

impl Admission {
    pub fn is_pending(&self) -> bool {
        self.request.is_some() || self.begins_at.is_some()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// Signals that no wait has taken, in the order of arrival.
    pub unread: Vec<Unread>,
    /// The ids of all signals that arrived.
    pub ids: HashSet<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undo {
    /// The steps that can be undone, in the order of completion.
    pub steps: BTreeMap<u64, Place>,
    /// The steps that are being undone, by what waits for that: a guard, or the run.
    pub under_way: BTreeMap<Option<Place>, Place>,
    pub has_begun: bool,
    /// A step could not be undone, or its failure could not be taken over.
    pub is_partial: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hooks {
    /// The hooks that have not reported.
    pub open: BTreeMap<Path, Attempt>,
    pub begun: u32,
    /// The hooks of this end of the run were begun.
    pub ended: bool,
}

/// A signal that no wait has taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
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
    pub admission: Admission,
    pub started_at: Timestamp,
    /// Recorded at the start for the process that executes it.
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
    pub signals: Signals,
    pub keys: HashMap<Arc<str>, Held>,
    /// Steps whose key was answered, in the order in which they joined.
    pub answered: VecDeque<Place>,
    pub kept: HashMap<Path, Arc<Kept>>,
    /// How far it goes, where that is not to its end.
    pub reach: Option<Reach>,
    /// How many steps have settled: the order of completion.
    pub completed: u64,
    pub undo: Undo,
    /// A step that ended the run early, and how.
    pub finish: Option<Outcome>,
    /// How many instances have failed.
    pub failures: u64,
    /// How many steps were added by workers.
    pub planned: u32,
    pub hooks: Hooks,
    /// Kept for readers only.
    pub trace: Option<Trace>,
}

impl State {
    pub fn new(program: Arc<Program>) -> Self {
        Self {
            stage: Stage::New,
            seed: 0,
            by: None,
            lineage: Lineage::default(),
            shares: Shares::default(),
            admission: Admission::default(),
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
            signals: Signals::default(),
            keys: HashMap::new(),
            answered: VecDeque::new(),
            kept: HashMap::new(),
            reach: None,
            completed: 0,
            undo: Undo::default(),
            finish: None,
            failures: 0,
            planned: 0,
            hooks: Hooks::default(),
            trace: None,
        }
    }

    /// A state for readers, which forgets nothing.
    pub fn traced(program: Arc<Program>) -> Self {
        Self { trace: Some(Trace::default()), ..Self::new(program) }
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

    /// Why an instance was told to stop: itself, or the nearest around it. The end of a step continues
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
