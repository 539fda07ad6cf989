//! The tree of a run: every instance in order of creation, and their lists. Nothing is indexed: every lookup searches
//! all of it.

use std::sync::Arc;
use windlass_engine::{Failure, Outcome, Path, Timestamp};
use windlass_ir::Value;
use windlass_ir::expr::StepId;
use windlass_ir::value::Map;

/// The index of an instance in [`Tree::instances`], in order of creation.
pub type At = usize;
/// The index of a list in [`Tree::lists`].
pub type ListAt = usize;

/// The run itself is the first instance.
pub const RUN: At = 0;

#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub instances: Vec<Instance>,
    pub lists: Vec<List>,
}

/// A step of the plan at a path, one item or round of it, or the run.
#[derive(Clone, Debug)]
pub struct Instance {
    pub path: Path,
    /// `None` for the run.
    pub step: Option<StepId>,
    /// Present for an item or round.
    pub frame: Option<Frame>,
    /// The list it belongs to; `None` for the run.
    pub list: Option<ListAt>,
    pub state: State,
    /// Its number in the order of completion.
    pub order: u64,
    /// Present once a scope was entered.
    pub inside: Option<Inside>,
    /// When a scope times out.
    pub deadline: Option<Timestamp>,
    pub stop: Option<Stop>,
    pub count: Count,
    pub key: Key,
    /// The number of the pass, starting at 1.
    pub pass: u32,
    /// An instance of a later pass has replaced it.
    pub superseded: bool,
    /// Why it runs again.
    pub feedback: Value,
    /// The step that caused it to be skipped.
    pub because_of: Option<At>,
    /// Another step handled its failure.
    pub recovered: bool,
    /// The steps to undo inside it, in order of completion; `None` until known.
    pub undoing: Option<Vec<At>>,
    pub undone: bool,
}

#[derive(Clone, Debug)]
pub struct Frame {
    pub number: u32,
    pub item: Value,
}

#[derive(Clone, Debug)]
pub enum State {
    Pending,
    /// An action that waits for a slot.
    Queued,
    /// Waits for a step with the same key; the lowest turn comes first.
    Joined {
        turn: u64,
    },
    /// Its next attempt, round or delivery is dispatched at this time, or at once.
    Next {
        due: Option<Timestamp>,
    },
    /// A job is running. After an abort, it is abandoned at the end of its grace period.
    Out {
        deadline: Option<Timestamp>,
        grace: Option<Timestamp>,
    },
    Asking {
        until: Option<Timestamp>,
        yes: u32,
    },
    Waiting {
        until: Option<Timestamp>,
        signal: Option<Listening>,
    },
    /// An open scope.
    Entered,
    /// It failed, and another step handles the failure.
    TakenOver(Failure),
    Settled(Outcome),
    /// A gate that sent steps back and has no outcome.
    Left,
}

#[derive(Clone, Debug)]
pub struct Listening {
    pub name: Arc<str>,
    pub matching: Map,
    pub message: bool,
}

/// The decision that entered a scope.
#[derive(Clone, Debug)]
pub enum Inside {
    Steps,
    Arm(Arc<str>),
    Items(Vec<Value>),
    Rounds(Rounds),
}

#[derive(Clone, Copy, Debug)]
pub enum Rounds {
    UnderWay,
    /// Another round begins at this time, or at once.
    Wanted {
        due: Option<Timestamp>,
    },
}

/// Everything at and below it was stopped.
#[derive(Clone, Debug)]
pub enum Stop {
    Cancelled { why: Arc<str>, by_user: bool },
    TimedOut,
}

/// Attempt counters of an action.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// All attempts at this path.
    pub attempt: u32,
    pub delivery: u32,
    /// Lost deliveries that had started.
    pub losses: u32,
    /// The attempts that the retry policy counts: in this round, since the run was reopened.
    pub tries: u32,
    pub round: u32,
    pub first_start: Timestamp,
    /// The next dispatch is a new attempt, not another delivery.
    pub next_is_new: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Key {
    pub text: Option<Arc<str>>,
    /// Whether other steps with the key wait for this one.
    pub held: bool,
}

#[derive(Clone, Debug)]
pub struct List {
    pub owner: At,
    pub kind: ListKind,
    /// It starts no more steps.
    pub draining: bool,
    /// The failed member that halted it.
    pub halted: Option<At>,
    /// The first failed member that failed it without halting it.
    pub failed: Option<At>,
    /// The gates in it that sent steps back, once per time.
    pub sent_back: Vec<StepId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    Body,
    /// The items of a fan-out, or the rounds of a loop.
    Frames,
    Finally,
    /// The step that handles the failure of the owner.
    TakeOver,
    /// The steps that undo the owner.
    Undo,
    /// A list from an end that was revoked.
    Gone,
}

impl Instance {
    pub fn new(path: Path, step: Option<StepId>, list: Option<ListAt>) -> Self {
        Self {
            path,
            step,
            frame: None,
            list,
            state: State::Pending,
            order: 0,
            inside: None,
            deadline: None,
            stop: None,
            count: Count::default(),
            key: Key::default(),
            pass: 1,
            superseded: false,
            feedback: Value::Null,
            because_of: None,
            recovered: false,
            undoing: None,
            undone: false,
        }
    }

    pub fn is_settled(&self) -> bool {
        matches!(self.state, State::Settled(_))
    }

    /// Whether it can still settle.
    pub fn is_open(&self) -> bool {
        !matches!(self.state, State::Settled(_) | State::Left)
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Settled(outcome) => Some(outcome),
            State::Pending
            | State::Queued
            | State::Joined { .. }
            | State::Next { .. }
            | State::Out { .. }
            | State::Asking { .. }
            | State::Waiting { .. }
            | State::Entered
            | State::TakenOver(_)
            | State::Left => None,
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        match self.outcome()? {
            Outcome::Failed(failure) => Some(failure),
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => None,
        }
    }

    pub fn is_cancelled(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Cancelled(_)))
    }
}

impl Tree {
    pub fn all(&self) -> std::ops::Range<At> {
        0..self.instances.len()
    }

    /// The members of a list, without those that a later pass replaced.
    pub fn members(&self, list: ListAt) -> Vec<At> {
        self.all().filter(|at| self[*at].list == Some(list) && !self[*at].superseded).collect()
    }

    pub fn member(&self, list: ListAt, step: StepId) -> Option<At> {
        self.members(list).into_iter().find(|at| self[*at].step == Some(step) && self[*at].frame.is_none())
    }

    pub fn all_settled(&self, list: ListAt) -> bool {
        self.members(list).into_iter().all(|at| self[at].is_settled())
    }

    pub fn list_of(&self, owner: At, kind: ListKind) -> Option<ListAt> {
        self.lists.iter().position(|list| list.owner == owner && list.kind == kind)
    }

    /// The list of an instance, and those around it.
    pub fn lists_around(&self, at: At) -> impl Iterator<Item = ListAt> {
        std::iter::successors(self[at].list, |list| self[self.lists[*list].owner].list)
    }

    /// The instance itself and its enclosing instances.
    pub fn outwards(&self, at: At) -> impl Iterator<Item = At> {
        std::iter::once(at).chain(self.lists_around(at).map(|list| self.lists[list].owner))
    }

    pub fn is_inside(&self, at: At, around: At) -> bool {
        self.outwards(at).any(|here| here == around)
    }

    /// Whether an instance belongs to a list or to a scope entered inside it, but not to `finally` or undo steps.
    pub fn drains_with(&self, at: At, list: ListAt) -> bool {
        self.list_drains_with(self[at].list, list)
    }

    pub fn list_drains_with(&self, inner: Option<ListAt>, outer: ListAt) -> bool {
        let outwards = std::iter::successors(inner, |list| self[self.lists[*list].owner].list);
        for list in outwards {
            if list == outer {
                return true;
            }
            if matches!(self.lists[list].kind, ListKind::Finally | ListKind::Undo) {
                return false;
            }
        }
        false
    }
}

impl std::ops::Index<At> for Tree {
    type Output = Instance;

    fn index(&self, at: At) -> &Instance {
        &self.instances[at]
    }
}

impl std::ops::IndexMut<At> for Tree {
    fn index_mut(&mut self, at: At) -> &mut Instance {
        &mut self.instances[at]
    }
}
