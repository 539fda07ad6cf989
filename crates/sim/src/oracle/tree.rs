//! The tree of a run as the oracle keeps it: every instance in the order in which it came into being, and the lists that they
//! stand in. Nothing is indexed: whoever wants to know something looks through all of it.

use std::sync::Arc;
use windlass_engine::{Failure, Outcome, Path, Timestamp};
use windlass_ir::Value;
use windlass_ir::expr::StepId;
use windlass_ir::value::Map;

/// The place of an instance in [`Tree::instances`]: its number in the order of coming into being.
pub type At = usize;
/// The place of a list in [`Tree::lists`].
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
    /// None for the run.
    pub step: Option<StepId>,
    /// There for an item or a round of the step.
    pub frame: Option<Frame>,
    /// The list it stands in; none for the run.
    pub list: Option<ListAt>,
    pub state: State,
    /// The place of its end among all ends of the run.
    pub order: u64,
    /// There once it was entered, when it is a scope.
    pub inside: Option<Inside>,
    /// When the whole of a scope has taken too long.
    pub deadline: Option<Timestamp>,
    pub told: Option<Told>,
    pub count: Count,
    pub key: Key,
    /// Which time a gate lets it be done, from 1.
    pub pass: u32,
    /// A later pass has taken its place in the list.
    pub superseded: bool,
    /// Why it is done again.
    pub feedback: Value,
    /// The step because of which it was skipped.
    pub because_of: Option<At>,
    /// Another step took over its failure.
    pub recovered: bool,
    /// What is still to be undone inside it, in order of completion; none until that is known.
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
    /// An action that shall run, and waits for a place.
    Queued,
    /// Waits for what becomes of a step with the same key; who came first has the lowest turn.
    Joined {
        turn: u64,
    },
    /// Its next attempt, round or delivery is handed out at this time, or at once.
    Next {
        due: Option<Timestamp>,
    },
    /// A job is out; told to stop, it is given up at the end of its grace.
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
    /// A scope under way.
    Entered,
    /// It has failed with this, and another step takes over.
    TakenOver(Failure),
    Settled(Outcome),
    /// A gate that sent the run back: nothing becomes of it.
    Left,
}

#[derive(Clone, Debug)]
pub struct Listening {
    pub name: Arc<str>,
    pub matching: Map,
    pub message: bool,
}

/// What was decided when a scope was entered.
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

/// Everything at and below it was told to stop.
#[derive(Clone, Debug)]
pub enum Told {
    Cancelled { why: Arc<str>, by_user: bool },
    TimedOut,
}

/// How often an action was tried.
#[derive(Clone, Debug, Default)]
pub struct Count {
    /// Of all attempts at this path.
    pub attempt: u32,
    pub delivery: u32,
    /// Of the deliveries that started.
    pub losses: u32,
    /// Of the attempts that the retry policy counts: of this round, since the run was opened again.
    pub tries: u32,
    pub round: u32,
    pub first_start: Timestamp,
    /// What goes out next is another attempt, not the same one once more.
    pub next_is_new: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Key {
    pub text: Option<Arc<str>>,
    /// Whether others with the key wait for this one.
    pub held: bool,
}

#[derive(Clone, Debug)]
pub struct List {
    pub owner: At,
    pub kind: ListKind,
    /// Nothing new is started in it.
    pub draining: bool,
    /// The failed member that halted it.
    pub halted: Option<At>,
    /// The first failed member that made it fail without halting it.
    pub failed: Option<At>,
    /// How often each gate in it has sent the run back.
    pub sent_back: Vec<StepId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    Body,
    /// The items of a fan-out, or the rounds of a loop.
    Frames,
    Finally,
    /// The step that takes over the failure of the owner.
    TakeOver,
    /// What undoes the owner.
    Undo,
    /// What belonged to an end that was taken back.
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
            told: None,
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

    /// Whether something can still become of it.
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

    /// The members of a list, without those that a later pass has taken the place of.
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

    /// The list that an instance stands in, and those around it.
    pub fn lists_around(&self, at: At) -> impl Iterator<Item = ListAt> {
        std::iter::successors(self[at].list, |list| self[self.lists[*list].owner].list)
    }

    /// The instance itself and those that it is inside of.
    pub fn outwards(&self, at: At) -> impl Iterator<Item = At> {
        std::iter::once(at).chain(self.lists_around(at).map(|list| self.lists[list].owner))
    }

    pub fn is_inside(&self, at: At, around: At) -> bool {
        self.outwards(at).any(|here| here == around)
    }

    /// Whether an instance stands in a list or in a scope entered inside it, but in nothing that is done whatever happens.
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
