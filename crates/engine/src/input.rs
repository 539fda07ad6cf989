//! The inputs and the effects of a run.

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
    /// An executor finished a job.
    Reported {
        job: JobKey,
        outcome: Outcome,
    },
    /// A job will never report, because its process or machine is gone.
    Lost {
        job: JobKey,
        /// Whether an executor may have started it. If not, the loss does not count as a delivery.
        started: bool,
    },
    /// The coordinator answers an ask.
    Answered {
        asker: Asker,
        answer: CoordinatorAnswer,
    },
    /// The cost of a job since its last report of this kind.
    Spent {
        job: JobKey,
        used: Amount,
    },
    /// A job stores a note before it continues.
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
    /// A signal to this run. `to` is the wait to deliver it to, if the caller has already matched it.
    Signal {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        to: Option<Path>,
    },
    /// A process loaded the run. The time since its last event does not count against its timeout.
    TakenUp,
    /// The wall clock was set; see [`crate::Run::follow_wall`].
    ClockSet,
    /// The process that executed the run is gone, and its successor does not continue the run until someone resumes
    /// it.
    Interrupt,
    /// Continue a run that was interrupted.
    Continue,
    /// Time has passed.
    Tick,
    /// Stop everything at or below a path. The path of the run stops the whole run.
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
    /// Merge these values into the inputs. Only expressions evaluated from now on see them.
    Change {
        inputs: Value,
        by: Arc<str>,
    },
    /// Continue a failed run, with these values merged into its inputs.
    Reopen {
        inputs: Value,
        by: Arc<str>,
    },
    /// End a failed run for good, so that it can be removed.
    Close,
}

/// How a run begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub inputs: Value,
    /// The seed of every random choice in the run.
    pub seed: u64,
    /// Data of the caller. Its `folder` is the folder of the workflow file.
    pub about: Value,
    pub by: Option<Arc<str>>,
    pub lineage: Lineage,
    /// Steps that an earlier run completed.
    pub keep: Vec<Kept>,
    /// Granted before the run begins, in addition to the limits in its plan.
    pub claims: Vec<Claim>,
    /// The runs that wait for it, outermost first.
    pub parents: Vec<RunId>,
    /// The budgets of those runs.
    pub budgets: Vec<RunBudget>,
    /// The earliest time to begin.
    pub at: Option<Timestamp>,
    /// Where to stop, if not at the end.
    pub reach: Option<Reach>,
}

impl Start {
    /// A run without a caller or an earlier run.
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

/// The workflow ids of the callers, outermost first.
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
    /// The submitted form.
    pub form: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The first option that approves.
    Approve,
    /// The first option that rejects.
    Reject,
    /// One of the options, ignoring case.
    Option(Arc<str>),
}

/// An action that the caller carries out once the events of the same answer are durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Dispatch(Box<Job>),
    /// Ask the coordinator, which grants the request before `job` is dispatched.
    Ask {
        ask: Box<Ask>,
        job: Option<Box<Job>>,
    },
    /// Release the resources of an asker.
    Release {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// Wait for a message that is not addressed to a run.
    Subscribe(Box<Subscription>),
    Unsubscribe(Address),
    /// Stop this job. The run still waits for its report.
    Abort(JobKey),
    /// The result is final: notify those who wait for it.
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

/// Why an input was refused. A refused input changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the run has already been started")]
    AlreadyStarted,
    #[error("cannot evaluate the environment of the run: {0}")]
    BadEnvironment(Arc<str>),
    #[error("invalid input for the run: {0}")]
    BadInput(String),
    #[error("the run has not been started")]
    NotStarted,
    #[error("the run is finished")]
    Finished,
    #[error("job {0} is not outstanding: it was reported, replaced or abandoned")]
    StaleJob(JobKey),
    #[error("{0} does not wait for anything")]
    NotAsked(Asker),
    #[error("no gate waits at {0}")]
    NoGate(Path),
    #[error("no step waits for this signal at {0}")]
    NoWait(Path),
    #[error("gate {path} was already decided by {by}")]
    AlreadyDecided { path: Path, by: Arc<str> },
    #[error("{by} is not an approver of {path}: {}", approvers.join(", "))]
    NotAnApprover { path: Path, by: Arc<str>, approvers: Vec<Arc<str>> },
    #[error("{by} started this run, so someone else must decide at gate {path}")]
    OwnRun { path: Path, by: Arc<str> },
    #[error("`{choice}` is not an option of gate {path}: {}", options.join(", "))]
    NoSuchOption { path: Path, choice: Arc<str>, options: Vec<Arc<str>> },
    #[error("invalid form for gate {path}: {problem}")]
    BadForm { path: Path, problem: String },
    #[error("no step is open at {0}")]
    NothingThere(Path),
    #[error("the run is not paused")]
    NotPaused,
    #[error("the run is already paused")]
    AlreadyPaused,
    #[error("the run has no result yet, so it cannot be closed")]
    NotEnded,
    #[error("the run has not failed, so it cannot be reopened")]
    NotFailed,
    #[error("the run has begun to undo its steps, so it cannot be reopened")]
    Undoing,
    /// The engine made an impossible decision: drop the run.
    #[error("bug in the engine: {0}")]
    Broken(Box<Contradiction>),
}
