//! The state of a run, and the only function that changes it.
//!
//! Live runs and replay both use `evolve`, so a run needs no other code to restore it. `evolve` never evaluates an
//! expression, reads a clock or consults a policy, because the event contains the decision.
//!
//! `evolve` applies events, and `contradiction` is the error for an impossible event. `instance` is one step at one
//! path, `instances` holds all of them, and `index` groups them by what they wait for. `list` holds the steps of a
//! scope and settles them, `frame` creates items and rounds, `stop` cancels steps, `again` reopens them, `key` shares
//! work by idempotency key, `timer` holds deadlines, `sight` resolves names to instances, and `trace` is only for
//! readers.

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
pub use trace::{CancelRequest, FailedAttempt, GateVote, HookTrace, Trace};
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

/// An accepted decision: its id and who made it.
pub type Vote = (Arc<str>, Arc<str>);

/// The timeout of the run. It is suspended while only people can continue the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunClock {
    None,
    Until(Timestamp),
    Still { left: Duration },
    Over,
}

/// A workflow in the run: its own, or one that was called and runs inside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    pub program: Arc<Program>,
    pub inputs: Value,
    pub env: Value,
    /// The folder of its file; null if unknown.
    pub folder: Value,
    /// The call that it belongs to.
    pub call: Option<Place>,
    /// The first of its instances, for steps that a planner added.
    pub planned: Option<Place>,
    /// The last settled instance of each step, for lookup by name.
    pub latest: HashMap<StepId, Place>,
}

/// The folder of the workflow file, as recorded at the start.
pub fn folder_in(about: &Value) -> Value {
    about.get("folder").cloned().unwrap_or(Value::Null)
}

/// Whether the run may begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// No step starts before this instant.
    pub begins_at: Option<Timestamp>,
    /// The number of the open request for the run's slots.
    pub request: Option<u32>,
    /// The number of requests, and the time of the last one.
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
    /// Stored signals, in order of arrival.
    pub unread: Vec<Unread>,
    /// The ids of all signals that arrived.
    pub ids: HashSet<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Undo {
    /// The steps that can be undone, in order of completion.
    pub steps: BTreeMap<u64, Place>,
    /// The steps being undone, by the guard that waits for it, or `None` for the run.
    pub under_way: BTreeMap<Option<Place>, Place>,
    pub has_begun: bool,
    /// A step could not be undone, or the step that should handle a failure failed.
    pub is_partial: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hooks {
    /// Hooks that have not reported.
    pub open: BTreeMap<Path, Attempt>,
    pub begun: u32,
    /// The hooks for the current end of the run have started.
    pub ended: bool,
}

/// A stored signal.
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
    /// The caller's data from the start of the run.
    pub about: Value,
    /// The time of the last event, which is the lower bound for `now`.
    pub last_at: Timestamp,
    pub units: Vec<Unit>,
    pub instances: Instances,
    by_path: HashMap<Path, Place>,
    /// The item that finished last.
    done_item: Option<Place>,
    pub roots: List,
    pub index: Index,
    pub timers: Timers,
    pub paused: bool,
    /// The run waits for someone to resume it after its process died.
    pub interrupted: bool,
    /// The run must stop.
    pub stop: Option<Stop>,
    /// The time left until the run times out.
    pub clock: RunClock,
    /// Accepted decisions, by gate.
    pub decisions: HashMap<Path, Vec<Vote>>,
    pub signals: Signals,
    pub keys: HashMap<Arc<str>, Held>,
    /// Steps whose key has a result, in the order in which they joined.
    pub answered: VecDeque<Place>,
    pub kept: HashMap<Path, Arc<Kept>>,
    /// Where to stop, if not at the end.
    pub reach: Option<Reach>,
    /// The number of settled steps, which gives the order of completion.
    pub completed: u64,
    pub undo: Undo,
    /// The outcome of a step that ended the run early.
    pub finish: Option<Outcome>,
    /// The number of failed instances.
    pub failures: u64,
    /// The number of steps that planners added.
    pub planned: u32,
    pub hooks: Hooks,
    /// Present only for readers.
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

    /// Whether no step starts and no timer fires.
    pub fn is_suspended(&self) -> bool {
        self.paused || self.interrupted
    }

    pub fn find(&self, path: &Path) -> Option<Place> {
        self.by_path.get(path).copied()
    }

    /// The workflow of an instance.
    pub fn unit(&self, place: Option<Place>) -> &Unit {
        &self.units[place.map_or(0, |place| self.at(place).unit as usize)]
    }

    pub fn program(&self, place: Place) -> &Arc<Program> {
        &self.unit(Some(place)).program
    }

    pub fn kind(&self, place: Place) -> &Kind<Vec<StepId>> {
        &self.program(place).step(self.at(place).step).kind
    }

    /// One of the lists of an instance, or of the run.
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

    /// Whether an instance or a scope around it must stop at once.
    pub fn is_unwound(&self, place: Place) -> bool {
        self.stop_of(place).is_some_and(|stop| stop.unwind)
    }

    /// Why an instance must stop: its own stop, or that of the nearest scope around it. `finally` and undo steps
    /// continue regardless.
    pub fn stop_of(&self, place: Place) -> Option<&Stop> {
        self.at(place).stop.as_ref().or_else(|| self.stop_around(place))
    }

    /// Why a scope around an instance must stop.
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
