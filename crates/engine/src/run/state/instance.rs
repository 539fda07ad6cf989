//! One step at one path: where it stands in the run, what it is doing, and what it remembers.

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
    /// Which of the workflows of this run it belongs to: the run's own is 0.
    pub unit: u32,
    pub step: StepId,
    pub path: Path,
    pub parent: Option<Place>,
    /// Which list of the parent it stands in.
    pub role: Role,
    /// The number of the item or round that this is.
    pub frame: Option<u32>,
    /// How many times it was begun: more than once after a gate has sent it back.
    pub pass: u32,
    /// How often it has sent others back, as a gate.
    pub sent_back: u32,
    /// Needs that have not settled.
    pub pending: u32,
    pub phase: Phase,
    /// How it continues with the steps inside, once it was entered.
    pub within: Option<Box<Within>>,
    pub lists: Vec<List>,
    pub notes: IndexMap<Arc<str>, Value>,
    /// Attempts made before the step was opened again, or in earlier rounds: they count for identity, not for its policy.
    pub attempts_before: u32,
    pub attempts: u32,
    pub rounds: u32,
    pub started_at: Option<Timestamp>,
    /// Why it runs at all, or again: a failure that it takes over, something that it undoes, a no at a gate.
    pub because: Option<Arc<Because>>,
    pub stop: Option<Stop>,
    /// The key of the work that it does for others as well.
    pub key: Option<Arc<str>>,
    /// What it has asked for and not given back.
    pub asked: Option<Asked>,
    /// How often it has asked.
    pub asks: u32,
    /// The last time that it has given back what it asked for, and what that cost.
    pub gave_back: Option<(u32, Amount)>,
    /// The steps of this item that have settled, for those that read by name.
    pub seen: Option<HashMap<StepId, Place>>,
}

/// What a step can be told about why it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Because {
    /// `step`, `class`, `message` and `detail`.
    pub failure: Value,
    /// `step` and `output` of what is undone.
    pub undo: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// It runs only when it is called for.
    Dormant,
    /// Something it needs has not settled.
    Waiting,
    Ready,
    Attempt(Attempt),
    Gate(Asking),
    Wait(Sleep),
    /// Another step with the same key does the work.
    Joined(Arc<str>),
    /// It has steps inside that are under way; `within` says which way.
    Entered,
    Settled(Settlement),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settlement {
    pub outcome: Outcome,
    pub fails: bool,
    pub recovered: bool,
}

/// What an instance with others inside is doing.
#[derive(Clone, Debug, PartialEq)]
pub enum Within {
    /// The steps of a list; of an arm, with the value that decided.
    Steps,
    Arm {
        arm: Arc<str>,
        value: Value,
    },
    Items(Items),
    Rounds(Rounds),
    /// It has failed, and another step takes over.
    TakenOver(Failure),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    pub items: Arc<[Value]>,
    pub at_once: Option<u32>,
    /// Whether an item that is done early keeps its slot until all items before it are done.
    pub in_order: bool,
    /// The first item that has no frame yet.
    pub next: u32,
    /// What came of each item that is done.
    pub results: BTreeMap<u32, Value>,
    /// As many from the first are done, with none missing among them.
    pub collected: u32,
    /// The item that failed first in the order of items.
    pub failed: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// How many have begun.
    pub begun: u32,
    /// The round under way, or the last one.
    pub last: Option<Place>,
    /// What the condition gave when the loop was entered.
    pub value: Value,
    /// The delay before the next round is over.
    pub due: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Asking {
    pub question: Box<Question>,
    /// Who has said yes so far, and with what.
    pub votes: Vec<(Arc<str>, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Sleep {
    pub signal: Option<Listening>,
    /// The instant on the wall clock that it waits for.
    pub on_wall: Option<Timestamp>,
    /// What was delivered.
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

/// What an attempt has asked the coordinator for.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Which time it asks, from 1.
    pub number: u32,
    pub since: Timestamp,
    /// When it was handed out.
    pub begun: Option<Timestamp>,
    /// What it said that it has cost.
    pub spent: Option<Amount>,
}

impl Asked {
    /// What it has cost until now: what it said, but at least one call, and the time that it took where it did not say.
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
}

#[derive(Clone, Debug, PartialEq)]
pub enum Doing {
    /// It waits for what runs share, or has it and is not handed out yet.
    Asking {
        granted: bool,
    },
    Running,
    /// Told to stop, because it took too long or the run is being cancelled.
    Aborting(Abort),
    /// Between two attempts. A job that was lost is the same attempt once more.
    Between {
        lost: bool,
        /// The next one can be handed out.
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

    /// Returns the slots that it asked for.
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
