//! The inputs and outputs of the scheduler.

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

/// Identifies the caller that waits for a reply. The caller of [`super::Runs::send`] chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyTo(pub u64);

/// An input for one run.
#[derive(Clone, Debug)]
pub enum Mail {
    /// Begin this run.
    Begin(Box<Begin>),
    /// Execute the run from now on.
    Resume(Resume),
    Input(Input),
    /// The answer of the coordinator, and the record that it depends on.
    Answered {
        asker: Asker,
        answer: CoordinatorAnswer,
        needs: Option<u64>,
    },
    /// A published message for a waiting step or for the whole run.
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
    /// The executor handed the job to something that outlives this process, or found that an earlier owner did.
    Elsewhere {
        job: JobKey,
    },
    /// Release the resources of a finished run whose last owner died before it could.
    Settle,
}

impl Mail {
    /// Whether this came from the coordinator. After a failed write it may no longer be true, and the run asks again.
    pub(super) fn is_from_the_coordinator(&self) -> bool {
        matches!(self, Self::Answered { .. } | Self::Message { .. })
    }

    /// Whether this can be dropped if no process executes the run: the run learns it when it resumes.
    pub(super) fn is_droppable(&self) -> bool {
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
    /// The id is new, so the journal need not be read.
    pub is_new: bool,
    /// Starts with the same key return the same run for this long.
    pub once: Option<(Arc<str>, Duration)>,
}

/// How to continue a run.
#[derive(Clone, Debug, Default)]
pub struct Resume {
    /// Who resumes the run, and the inputs to merge. `None` continues the run as it is: a paused run stays paused,
    /// and a failed one is not reopened. An interrupted run continues either way.
    pub wanted: Option<(Arc<str>, Value)>,
    /// Reopen the run if it has failed, because a reopened caller calls it again.
    pub reopens: bool,
}

/// Settings of the process that executes a run.
#[derive(Clone, Debug)]
pub struct Execution {
    pub policy: Arc<dyn Policy>,
    /// `None` uses the machine's clock. Otherwise the clock of the run jumps from deadline to deadline, starting no
    /// earlier than this.
    pub virtual_from: Option<Timestamp>,
    /// Whether virtual time also skips long waits for people.
    pub patient: bool,
}

impl Execution {
    pub(super) fn clock(&self, now: Now) -> Clock {
        self.virtual_from.map_or_else(|| Clock::starting(now), Clock::Virtual)
    }
}

/// Limits of the machine that executes a run, in addition to those of its plan.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// Whether every job needs a grant of the coordinator.
    fn limits_jobs(&self) -> bool {
        false
    }

    /// Adds the limits of this machine to the request of a job.
    fn add_claims(&self, _run: &Run, _job: &Job, _ask: &mut Ask) {}
}

/// A machine without limits of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLimits;

impl Policy for NoLimits {}

/// A run restored from its journal.
#[derive(Debug)]
pub struct Loaded {
    pub run: Run,
    /// The number of its last record in the journal.
    pub tail: u64,
    pub last_at: Timestamp,
    pub events: u64,
    /// `None` if this process cannot execute it.
    pub execution: Option<Execution>,
}

/// The result of reading the journal of a run.
#[derive(Debug)]
pub enum Found {
    Run(Box<Loaded>),
    /// There is no such run.
    Nothing,
    /// It cannot be read, or it contradicts its plan.
    Unusable,
}

/// Actions for the caller to carry out, in this order.
#[derive(Debug)]
pub enum Order {
    /// Read a run and pass the result to [`super::Runs::loaded`]. With `execute`, first stop processes that an
    /// earlier owner left running.
    Load {
        run: RunId,
        execute: bool,
    },
    /// Read the coordinator's stream and pass the result to [`super::Runs::loaded_coordinator`].
    LoadCoordinator,
    Start(Box<Job>),
    /// Ask the executor whether a job of an earlier owner is still running. The reply is `Elsewhere` or
    /// `Input::Lost`.
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
    /// The run waits only for time, people, or runs that this process does not execute.
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
    /// The run is unusable, and no process touches it.
    Parked {
        run: RunId,
    },
    /// Start the run that a trigger ordered.
    Begin(Box<Ordered>),
    /// The cap of a budget may have changed.
    Budgets,
}

/// What an idle run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Still {
    /// When its next timer fires, by the run's clock.
    pub due: Option<Timestamp>,
    /// Whether that is a wait without people: a sleep, a retry or a delayed start.
    pub by_itself: bool,
}

/// A reply, sent after the records it depends on are durable.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Done,
    /// The number of subscribers that a message reached.
    Published(usize),
    Refused(Refused),
    NotShared(CoordinatorRefused),
    NoRun,
    /// The run is parked.
    Unusable,
    /// An earlier start with the same key created this run.
    Earlier(RunId),
}

/// One record for the journal.
#[derive(Debug)]
pub struct Record {
    /// Counts all records of this process, starting at 1.
    pub number: u64,
    /// `None` for the coordinator's stream.
    pub run: Option<RunId>,
    pub after: After,
    /// Must be written only if this record was.
    pub needs: Option<u64>,
    pub body: Body,
    pub wake: Wake,
}

#[derive(Debug)]
pub enum Body {
    Run(Arc<Vec<Event>>),
    Coordinator(Vec<CoordinatorEvent>),
}

/// The previous record of the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Its number in the journal; `None` at the beginning of the stream.
    Stored(Option<u64>),
    /// Its number in this process; it may not be durable yet.
    Record(u64),
}

impl After {
    /// The number in this process; 0 for a record of an earlier process.
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Record(number) => number,
            Self::Stored(_) => 0,
        }
    }
}

/// When to load a run that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// As soon as a process executes it: jobs or answers are outstanding.
    Owes,
    At(Timestamp),
    /// Only when it receives mail.
    Never,
}
