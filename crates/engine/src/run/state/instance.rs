//! One step at one path: its position in the run, its phase and its data.

use super::{List, Role, Stop};
use crate::coordinator::{Amount, Claim};
use crate::event::{Assignment, Listening, Question};
use crate::keys::{Path, Timestamp};
use crate::outcome::{Failure, Outcome};
use indexmap::IndexMap;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::StepId;

/// The number of a step instance in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

impl Place {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One step at one path, or one item or round of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// The index of its workflow in this run; the run's own is 0.
    pub unit: u32,
    pub step: StepId,
    pub path: Path,
    pub parent: Option<Place>,
    /// The list of the parent that it belongs to.
    pub role: Role,
    /// The number of the item or round, if this is one.
    pub frame: Option<u32>,
    /// The number of times a gate has started it.
    pub pass: u32,
    /// How often this gate has sent steps back.
    pub sent_back: u32,
    /// The number of dependencies that have not settled.
    pub pending: u32,
    pub phase: Phase,
    /// The progress of the steps inside, once it was entered.
    pub within: Option<Box<Within>>,
    pub lists: Vec<List>,
    pub notes: IndexMap<Arc<str>, Value>,
    /// Attempts before the step was reopened, or in earlier rounds. They count for identity, not for its policy.
    pub attempts_before: u32,
    pub attempts: u32,
    pub rounds: u32,
    pub started_at: Option<Timestamp>,
    /// Why it runs, or runs again: a failure that it handles, a step that it undoes, or a rejection at a gate.
    pub because: Option<Arc<Because>>,
    pub stop: Option<Stop>,
    /// The key under which it does work for other steps, too.
    pub key: Option<Arc<str>>,
    /// The resources that it asked for and has not released.
    pub asked: Option<Asked>,
    /// The number of requests.
    pub asks: u32,
    /// The number of the last request that it released, and the cost.
    pub gave_back: Option<(u32, Amount)>,
    /// The settled steps of this item, for lookup by name.
    pub seen: Option<HashMap<StepId, Place>>,
}

/// The reason that expressions of a step can read.
#[derive(Clone, Debug, PartialEq)]
pub struct Because {
    /// `step`, `class`, `message` and `detail`.
    pub failure: Value,
    /// `step` and `output` of the step to undo.
    pub undo: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It runs only on demand.
    Dormant,
    /// A dependency has not settled.
    Waiting,
    Ready,
    Attempt(Attempt),
    Gate(Asking),
    Wait(Sleep),
    /// Another step with the same key does the work.
    Joined(Arc<str>),
    /// Its inner steps are open; `within` describes them.
    Entered,
    Settled(Settlement),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    pub outcome: Outcome,
    pub fails: bool,
    pub recovered: bool,
}

/// The progress of an instance with steps inside.
#[derive(Clone, Debug, PartialEq)]
pub enum Within {
    /// The steps of a list.
    Steps,
    Arm {
        arm: Arc<str>,
        value: Value,
    },
    Items(Items),
    Rounds(Rounds),
    /// It failed, and another step handles the failure.
    TakenOver(Failure),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    pub items: Arc<[Value]>,
    pub at_once: Option<u32>,
    /// Whether a finished item keeps its slot until all items before it are finished.
    pub in_order: bool,
    /// The first item that was not opened yet.
    pub next: u32,
    /// The results of finished items.
    pub results: BTreeMap<u32, Value>,
    /// The number of finished items before the first unfinished one.
    pub collected: u32,
    /// The failed item with the lowest number.
    pub failed: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// The number of rounds begun.
    pub begun: u32,
    /// The current or last round.
    pub last: Option<Place>,
    /// The value of the condition when the loop was entered.
    pub value: Value,
    /// The delay before the next round is over.
    pub due: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    pub question: Box<Question>,
    /// The approvals so far.
    pub votes: Vec<(Arc<str>, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    pub signal: Option<Listening>,
    /// The wall-clock instant that it waits for.
    pub on_wall: Option<Timestamp>,
    /// The value that was delivered.
    pub got: Option<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub attempt: u32,
    pub delivery: u32,
    pub assignment: Arc<Assignment>,
    pub doing: Doing,
    /// How many deliveries of this attempt were lost after an executor may have started them.
    pub losses: u32,
    /// The input of the round that begins with the next attempt.
    pub again: Option<Value>,
}

/// A request of an attempt to the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The number of the request, starting at 1.
    pub number: u32,
    pub since: Timestamp,
    /// When the attempt was dispatched.
    pub begun: Option<Timestamp>,
    /// The cost it reported.
    pub spent: Option<Amount>,
}

impl Asked {
    /// The cost so far: as reported, but at least one call, and the elapsed time if none was reported.
    pub fn used(&self, now: Timestamp) -> Amount {
        let Some(begun) = self.begun else { return Amount::default() };
        let spent = self.spent.unwrap_or_default();
        let time = if spent.time.is_zero() { now.since(begun) } else { spent.time };
        Amount { time, calls: spent.calls.max(1), ..spent }
    }
}

impl Attempt {
    /// Whether its claims name a budget.
    pub fn spends(&self) -> bool {
        self.assignment.claims.iter().any(|claim| matches!(claim, Claim::Spend { .. }))
    }

    /// Whether it has an idempotency key that runs share.
    pub fn has_shared_key(&self) -> bool {
        self.assignment.claims.iter().any(|claim| matches!(claim, Claim::Key { .. }))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// It waits for the coordinator, or was granted its request and is not dispatched yet.
    Asking {
        granted: bool,
    },
    Running,
    /// Must stop, because it timed out or the run was canceled.
    Aborting(Abort),
    /// Between two attempts, or between two deliveries of a lost one.
    Between {
        lost: bool,
        /// The next one can be dispatched.
        due: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    Timeout,
    Cancel,
}

impl Instance {
    pub(super) fn new(unit: u32, step: StepId, path: Path, parent: Option<Place>, role: Role) -> Self {
        Self {
            unit,
            step,
            path,
            parent,
            role,
            frame: None,
            pass: 1,
            sent_back: 0,
            pending: 0,
            phase: Phase::Waiting,
            within: None,
            lists: Vec::new(),
            notes: IndexMap::new(),
            attempts_before: 0,
            attempts: 0,
            rounds: 0,
            started_at: None,
            because: None,
            stop: None,
            key: None,
            asked: None,
            asks: 0,
            gave_back: None,
            seen: None,
        }
    }

    /// Releases the resources that it asked for.
    pub(super) fn give_back(&mut self, at: Timestamp) {
        if let Some(asked) = self.asked.take() {
            self.gave_back = Some((asked.number, asked.used(at)));
        }
    }

    pub fn is_settled(&self) -> bool {
        self.settlement().is_some()
    }

    pub fn settlement(&self) -> Option<&Settlement> {
        if let Phase::Settled(settlement) = &self.phase { Some(settlement) } else { None }
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        self.settlement().map(|settlement| &settlement.outcome)
    }

    pub fn doing(&self) -> Option<&Doing> {
        self.attempt().map(|attempt| &attempt.doing)
    }

    pub fn attempt(&self) -> Option<&Attempt> {
        if let Phase::Attempt(attempt) = &self.phase { Some(attempt) } else { None }
    }
}
