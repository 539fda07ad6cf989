//! The contract between executors and the runtime, and what recovery relies on.

use crate::context::Context;
use std::pin::Pin;
use windlass_engine::{Amount, Job, Outcome, Work};
use windlass_ir::Duration;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Executes one job. Executors form a table, tried in order; hosts implement this for their own kinds of work.
///
/// Recovery relies on:
/// - **Returning is the report.** There is no other one. When `start` returns an outcome, nothing of the job is still
///   running, so another attempt may start at once. (A shell command that succeeded may leave a server behind on
///   purpose.)
/// - **On abort, it returns soon**, with any result. The run waits for that, for as long as its grace period allows.
/// - **When dropped, it ends what it started.** That happens when the owner of the run shuts down cleanly.
/// - **The same job can be delivered again.** After a crash its attempt is delivered again, with a higher `delivery`
///   and all notes of the earlier ones, unless `adopt` finds it. External effects should carry [`Job::operation`] as
///   their idempotency key, which stays the same.
pub trait Executor: Send + Sync {
    /// Whether it handles this work.
    fn takes(&self, _work: &Work) -> bool {
        true
    }

    fn traits(&self, _work: &Work) -> Traits {
        Traits::default()
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned>;

    /// Finds a job that an earlier owner started. `None` if it is lost; only work that may outlive its owner is ever
    /// found.
    fn adopt(&self, _job: Job, _context: Context) -> BoxFuture<'_, Option<Returned>> {
        Box::pin(std::future::ready(None))
    }

    /// Stops a job that runs elsewhere. The run still waits for its report.
    fn recall(&self, _job: Job) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Special properties of some work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It starts a process on this machine.
    pub process: bool,
    /// It may outlive the process that started it, so recovery asks about it after a crash.
    pub outlives: bool,
    /// Its executor answers at once, without blocking.
    pub immediate: bool,
}

/// How an executor finishes a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    Reported(Outcome),
    /// Something that outlives this process has the job and will report.
    Elsewhere,
    /// Report this after some of the run's own time, which may be virtual.
    Later {
        after: Duration,
        outcome: Outcome,
        used: Option<Amount>,
    },
}

impl From<Outcome> for Returned {
    fn from(outcome: Outcome) -> Self {
        Self::Reported(outcome)
    }
}

impl Returned {
    /// The reported outcome; `None` if it is still to come.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Reported(outcome) | Self::Later { outcome, .. } => Some(outcome),
            Self::Elsewhere => None,
        }
    }
}
