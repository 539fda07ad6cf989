//! What the world says to a run, and what a run asks of the world.

use crate::job::Job;
use crate::keys::{JobKey, Path};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::Value;

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// `seed` is what every random choice of the run is drawn from; `about` is kept for whoever drives the run.
    Start {
        inputs: Value,
        seed: u64,
        about: Value,
    },
    /// An executor is done with a job.
    Reported {
        job: JobKey,
        outcome: Outcome,
    },
    /// A job is gone and will not report: its process or its machine has ended.
    Lost {
        job: JobKey,
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
    /// Somebody drives the run again after nobody did: the time in between does not count as its own.
    TakenUp,
    /// Time has passed.
    Tick,
    Cancel {
        why: Arc<str>,
        by: Arc<str>,
    },
    Pause {
        by: Arc<str>,
    },
    Resume {
        by: Arc<str>,
    },
    /// Go on with a failed run, with these inputs laid over the first ones.
    Reopen {
        inputs: Value,
        by: Arc<str>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct GateDecision {
    pub approve: bool,
    pub by: Arc<str>,
    pub reason: Option<Arc<str>>,
    /// What was filled into the form.
    pub form: Value,
}

/// What must be done because of what was decided. Carried out only once its record is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Dispatch(Box<Job>),
    /// Stop this job; its report is still waited for.
    Abort(JobKey),
    /// The result is known: tell whoever waits for it.
    Conclude(Outcome),
}

/// An input that changes nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the run has already been started")]
    AlreadyStarted,
    #[error("the environment of the run cannot be made: {0}")]
    BadEnvironment(Arc<str>),
    #[error("the run has not been started")]
    NotStarted,
    #[error("the run is finished")]
    Finished,
    #[error("job {0} is not outstanding: it was reported, replaced or given up")]
    StaleJob(JobKey),
    #[error("no gate waits at {0}")]
    NoGate(Path),
    #[error("gate {path} was already decided by {by}")]
    AlreadyDecided { path: Path, by: Arc<str> },
    #[error("{by} is not an approver of {path}: {}", approvers.join(", "))]
    NotAnApprover { path: Path, by: Arc<str>, approvers: Vec<Arc<str>> },
    #[error("the form of gate {path} is not filled in: {problem}")]
    BadForm { path: Path, problem: String },
    #[error("the run is not paused")]
    NotPaused,
    #[error("the run is already paused")]
    AlreadyPaused,
    #[error("the run has not failed, so there is nothing to open again")]
    NotFailed,
}
