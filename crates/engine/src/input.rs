//! What the world says to a run, and what a run asks of the world.

use crate::coordinator::{Address, Amount, Ask, Asker, Claim, CoordinatorAnswer, End, Subscription};
use crate::event::{Kept, Reach, RunBudget};
use crate::job::Job;
use crate::keys::{JobKey, Path, RunId, Timestamp};
use crate::outcome::Outcome;
use crate::run::Contradiction;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Start(Box<Start>),
    /// An executor is done with a job.
    Reported {
        job: JobKey,
        outcome: Outcome,
    },
    /// A job is gone and will not report: its process or its machine has ended.
    Lost {
        job: JobKey,
        /// Whether an executor may have started it. If not, it uses up none of its deliveries.
        started: bool,
    },
    /// The coordinator answers an ask.
    Answered {
        asker: Asker,
        answer: CoordinatorAnswer,
    },
    /// A job has cost this, beside what it said before.
    Spent {
        job: JobKey,
        used: Amount,
    },
    /// A job wants something remembered before it goes on.
    Noted {
        job: JobKey,
        key: Arc<str>,
        value: Value,
    },
    /// A decision at a gate.
    Decide {
        id: Arc<str>,
        path: Path,
        decision: GateDecision,
    },
    /// Something that was sent to this run; `to` is the wait that it was delivered to, where somebody else has matched it.
    Signal {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        to: Option<Path>,
    },
    /// A process executes the run again after none did: the time in between does not count as its own.
    TakenUp,
    /// The wall clock was set, and [`crate::Run::follow_wall`] says to what.
    ClockSet,
    /// The process that executed the run is gone, and the next one leaves it alone until someone resumes it.
    Interrupt,
    /// Continue a run that was interrupted.
    Continue,
    /// Time has passed.
    Tick,
    /// Stop what is below a path; that of the run itself is all of it.
    Cancel {
        path: Path,
        why: Arc<str>,
        by: Arc<str>,
    },
    Pause {
        by: Arc<str>,
    },
    Resume {
        by: Arc<str>,
    },
    /// Lay these over what the run was started with, for whatever has not been evaluated yet.
    Change {
        inputs: Value,
        by: Arc<str>,
    },
    /// Go on with a failed run, with these inputs laid over the first ones.
    Reopen {
        inputs: Value,
        by: Arc<str>,
    },
    /// Give up the option to reopen a failed run, so that it can be removed.
    Close,
}

/// How a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub inputs: Value,
    /// What every random choice of the run is drawn from.
    pub seed: u64,
    /// Kept for whoever drives the run. Its `folder` is where the file of the workflow stands.
    pub about: Value,
    pub by: Option<Arc<str>>,
    pub lineage: Lineage,
    /// What an earlier run has done already.
    pub keep: Vec<Kept>,
    /// What it needs before it may begin, beside what its plan says.
    pub claims: Vec<Claim>,
    /// The runs that wait for it, the outermost first.
    pub parents: Vec<RunId>,
    /// The budgets of those runs.
    pub budgets: Vec<RunBudget>,
    /// It does not begin before.
    pub at: Option<Timestamp>,
    /// How far it goes, where that is not to its end.
    pub reach: Option<Reach>,
}

impl Start {
    /// A run that nobody called and that takes nothing over.
    pub fn with(inputs: Value) -> Self {
        Self {
            inputs,
            seed: 0,
            about: Value::Null,
            by: None,
            lineage: Lineage::default(),
            keep: Vec::new(),
            claims: Vec::new(),
            parents: Vec::new(),
            budgets: Vec::new(),
            at: None,
            reach: None,
        }
    }
}

/// The runs that a run was called by: the ids of their workflows, the outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(pub Vec<Arc<str>>);

impl Lineage {
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct GateDecision {
    pub choice: Choice,
    pub by: Arc<str>,
    pub reason: Option<Arc<str>>,
    /// What was filled into the form.
    pub form: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The first option that says yes.
    Approve,
    /// The first option that says no.
    Reject,
    /// One of the options, in any case.
    Option(Arc<str>),
}

/// What must be done because of what was decided. Carried out only once its record is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Dispatch(Box<Job>),
    /// Ask the coordinator; `job` is dispatched once it is granted.
    Ask {
        ask: Box<Ask>,
        job: Option<Box<Job>>,
    },
    /// What was asked for is not needed any more.
    Release {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// Wait for a message that names no run.
    Subscribe(Box<Subscription>),
    Unsubscribe(Address),
    /// Stop this job; its report is still waited for.
    Abort(JobKey),
    /// The result is known: tell whoever waits for it.
    Conclude(Outcome),
}

impl Effect {
    /// The job whose report the run waits for.
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            Self::Dispatch(job) => Some(&job.key),
            Self::Abort(key) => Some(key),
            Self::Ask { .. }
            | Self::Release { .. }
            | Self::Subscribe(_)
            | Self::Unsubscribe(_)
            | Self::Conclude(_) => None,
        }
    }
}

/// An input that changes nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the run has already been started")]
    AlreadyStarted,
    #[error("the environment of the run cannot be made: {0}")]
    BadEnvironment(Arc<str>),
    #[error("the input of the run is refused: {0}")]
    BadInput(String),
    #[error("the run has not been started")]
    NotStarted,
    #[error("the run is finished")]
    Finished,
    #[error("job {0} is not outstanding: it was reported, replaced or given up")]
    StaleJob(JobKey),
    #[error("{0} does not wait for anything")]
    NotAsked(Asker),
    #[error("no gate waits at {0}")]
    NoGate(Path),
    #[error("nothing waits for this at {0}")]
    NoWait(Path),
    #[error("gate {path} was already decided by {by}")]
    AlreadyDecided { path: Path, by: Arc<str> },
    #[error("{by} is not an approver of {path}: {}", approvers.join(", "))]
    NotAnApprover { path: Path, by: Arc<str>, approvers: Vec<Arc<str>> },
    #[error("{by} started this run, and gate {path} is for somebody else to decide")]
    OwnRun { path: Path, by: Arc<str> },
    #[error("`{choice}` is none of the options of gate {path}: {}", options.join(", "))]
    NoSuchOption { path: Path, choice: Arc<str>, options: Vec<Arc<str>> },
    #[error("the form of gate {path} is not filled in: {problem}")]
    BadForm { path: Path, problem: String },
    #[error("nothing is under way at {0}")]
    NothingThere(Path),
    #[error("the run is not paused")]
    NotPaused,
    #[error("the run is already paused")]
    AlreadyPaused,
    #[error("the run has no result yet, so it cannot be closed")]
    NotEnded,
    #[error("the run has not failed, so there is nothing to open again")]
    NotFailed,
    #[error("the run has begun to undo what it did, so it cannot be opened again")]
    Undoing,
    /// The engine has decided something that cannot be: drop the run.
    #[error("bug in the engine: {0}")]
    Broken(Box<Contradiction>),
}
