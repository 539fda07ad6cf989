//! What goes into the scheduler and what comes out of it.

use super::clock::{Clock, Now};
use crate::coordinator::{
    Address, Ask, Asker, CoordinatorAnswer, CoordinatorEvent, CoordinatorRefused, Message, Order as Ordered,
};
use crate::event::Event;
use crate::input::{Input, Refused, Start};
use crate::job::Job;
use crate::keys::{JobKey, RunId, Timestamp};
use crate::outcome::Outcome;
use crate::run::{Program, Run};
use std::sync::Arc;
use windlass_ir::{Duration, Value};

/// Who waits for the answer to a piece of mail. The caller of [`super::Runs::send`] chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// Something for one run.
#[derive(Clone, Debug)]
pub enum Mail {
    /// Begin this run.
    Begin(Box<Begin>),
    /// Execute the run from now on.
    Resume(Resume),
    Input(Input),
    /// The coordinator's answer, and the record that it rests on.
    Answered {
        asker: Asker,
        answer: CoordinatorAnswer,
        needs: Option<u64>,
    },
    /// A published message for a step that waits for it, or for the whole run.
    Message {
        to: Address,
        message: Message,
        needs: Option<u64>,
    },
    /// A called run has a result.
    Ended {
        child: RunId,
        outcome: Outcome,
        at: Timestamp,
    },
    /// The executor has handed the job to something that outlives this process, or found that an earlier owner did.
    Elsewhere {
        job: JobKey,
    },
    /// Give back what a run with a result holds at the coordinator: its last owner died before it could.
    Settle,
}

impl Mail {
    /// Whether the coordinator said this. After a failed write that may not be true any more, and is asked for again.
    pub(super) fn is_from_the_coordinator(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Message { .. })
    }

    /// Whether this is lost without harm when nothing executes the run: the run learns it when it is resumed.
    pub(super) fn is_for_the_living(&self) -> bool {
        match self {
            Self::Answered { .. }
            | Self::Ended { .. }
            | Self::Elsewhere { .. }
            | Self::Message { .. }
            | Self::Input(Input::Tick | Input::ClockSet) => true,
            Self::Begin(_) | Self::Resume(_) | Self::Settle | Self::Input(_) => false,
        }
    }
}

/// A run that does not exist yet.
#[derive(Clone, Debug)]
pub struct Begin {
    pub run: RunId,
    pub program: Arc<Program>,
    pub start: Start,
    pub execution: Execution,
    /// Nothing can have this id yet, so the journal is not asked.
    pub is_new: bool,
    /// Starts with the same key are one run for this long.
    pub once: Option<(Arc<str>, Duration)>,
}

/// How a run is to continue.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// Who wants it, and the inputs to lay over the first ones. None continues the run as it is: a paused run stays paused, and a
    /// failed one is not reopened. An interrupted run continues either way.
    pub wanted: Option<(Arc<str>, Value)>,
    /// Reopen the run if it has failed, although no one changed anything: a caller that was reopened calls again.
    pub reopens: bool,
}

/// What the host of a run adds to it.
#[derive(Clone, Debug)]
pub struct Execution {
    pub policy: Arc<dyn Policy>,
    /// None for the machine's time; else the run's time jumps from deadline to deadline, starting no earlier than this.
    pub virtual_from: Option<Timestamp>,
    /// Whether virtual time also jumps over long waits for people.
    pub patient: bool,
}

impl Execution {
    pub(super) fn clock(&self, now: Now) -> Clock {
        self.virtual_from.map_or_else(|| Clock::starting(now), Clock::Virtual)
    }
}

/// What the machine that executes a run asks for beside what its plan says.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// Whether every job needs the coordinator's permission.
    fn limits_jobs(&self) -> bool {
        false
    }

    /// Adds the limits of this machine to what a job asks for.
    fn add_claims(&self, _run: &Run, _job: &Job, _ask: &mut Ask) {}
}

/// A machine without limits of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLimits;

impl Policy for NoLimits {}

/// A run as its journal tells it.
#[derive(Debug)]
pub struct Loaded {
    pub run: Run,
    /// The number of its last record in the journal.
    pub tail: u64,
    /// The time of its last event.
    pub last_at: Timestamp,
    /// How many events it has.
    pub events: u64,
    /// None if this process cannot execute it.
    pub execution: Option<Execution>,
}

/// What reading a run's journal found.
#[derive(Debug)]
pub enum Found {
    Run(Box<Loaded>),
    /// There is no such run.
    Nothing,
    /// It cannot be read, or contradicts its plan.
    Unusable,
}

/// What must be done outside, in this order.
#[derive(Debug)]
pub enum Order {
    /// Read a run; [`super::Runs::loaded`] takes the result. With `execute`, first end what an earlier owner left running.
    Load {
        run: RunId,
        execute: bool,
    },
    /// Read the coordinator's stream; [`super::Runs::loaded_coordinator`] takes the result.
    LoadCoordinator,
    Start(Box<Job>),
    /// Ask the executor whether a job of an earlier owner is still under way: the answer is `Elsewhere` or `Input::Lost`.
    Adopt(Box<Job>),
    /// Stop a job that was started here.
    Abort {
        job: JobKey,
        overdue: bool,
    },
    /// Stop a job that is elsewhere.
    Recall(Box<Job>),
    /// These events are durable; `seq` is the number of the first.
    Happened {
        run: RunId,
        seq: u64,
        events: Arc<Vec<Event>>,
    },
    Reply(ReplyTo, Reply),
    /// Nothing moves this run but time, people, or runs that are not executed here.
    Still {
        run: RunId,
        still: Still,
    },
    /// The run has a result.
    Concluded {
        run: RunId,
        outcome: Outcome,
    },
    /// The run left memory.
    Evicted {
        run: RunId,
    },
    /// The run was found unusable and is left alone.
    Parked {
        run: RunId,
    },
    /// Start the run that a trigger ordered.
    Begin(Box<Ordered>),
    /// A budget of the coordinator may have a cap now, or none.
    Budgets,
}

/// What a run that does nothing at the moment waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Still {
    /// When time moves it on, in its own time.
    pub due: Option<Timestamp>,
    /// Whether that is a wait that needs no one: a sleep, a retry, a later start.
    pub by_itself: bool,
}

/// The answer to a piece of mail, sent when what it rests on is durable.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Done,
    /// A message reached this many subscribers.
    Published(usize),
    Refused(Refused),
    NotShared(CoordinatorRefused),
    NoRun,
    /// The run is parked.
    Unusable,
    /// This run was started with the same key before.
    Earlier(RunId),
}

/// One record on its way to the journal.
#[derive(Debug)]
pub struct Record {
    /// Counts all records that this process has handed over, from 1.
    pub number: u64,
    /// None for the coordinator's stream.
    pub run: Option<RunId>,
    pub after: After,
    /// It must not be written unless this record was.
    pub needs: Option<u64>,
    pub body: Body,
    pub wake: Wake,
}

#[derive(Debug)]
pub enum Body {
    Run(Arc<Vec<Event>>),
    Coordinator(Vec<CoordinatorEvent>),
}

/// The record of the same stream before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Its number in the journal; none if the stream begins.
    Stored(Option<u64>),
    /// Its number in this process; it may not be durable yet.
    Record(u64),
}

impl After {
    /// The number in this process; 0 for a record that was durable before.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Record(number) => number,
            Self::Stored(_) => 0,
        }
    }
}

/// When a run that is not in memory has to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// As soon as something executes it: jobs or answers are outstanding.
    Owes,
    At(Timestamp),
    /// Only if someone sends it something.
    Never,
}
