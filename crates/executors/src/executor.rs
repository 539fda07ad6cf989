//! What every executor is to the runtime, and what recovery relies on.

use crate::context::Context;
use std::pin::Pin;
use windlass_engine::{Amount, Job, Outcome, Work};
use windlass_ir::Duration;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Does one job. Executors form a table, tried in order; hosts implement this for their own kinds of work.
///
/// What recovery relies on:
/// - **Returning is the report.** There is no other one. When `start` returns an outcome, nothing of the job runs any more, so
///   that another attempt may start at once. (A shell command that succeeded may leave a server behind on purpose.)
/// - **Told to abort, it returns soon**, whatever it returns. The run waits for that, for as long as its grace allows.
/// - **Dropped, it ends what it started.** That is what happens when the owner of the run goes away in good order.
/// - **The same job can come again.** After a crash its attempt is delivered again, with a higher `delivery` and all notes of
///   the earlier ones, unless `adopt` finds it. Whatever happens outside should carry [`Job::operation`] as its idempotency key,
///   which stays the same.
pub trait Executor: Send + Sync {
    /// Whether it does this work.
    fn takes(&self, _work: &Work) -> bool {
        true
    }

    fn traits(&self, _work: &Work) -> Traits {
        Traits::default()
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned>;

    /// Finds a job that an earlier owner started. None if it is lost; only work that may outlive its owner is ever found.
    fn adopt(&self, _job: Job, _context: Context) -> BoxFuture<'_, Option<Returned>> {
        Box::pin(std::future::ready(None))
    }

    /// Stops a job that is elsewhere. Its report is still waited for.
    fn recall(&self, _job: Job) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What is special about some work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// It starts a process of this machine.
    pub process: bool,
    /// It may outlive the process that started it, so that it is asked about after a crash.
    pub outlives: bool,
    /// Its executor answers at once, without blocking.
    pub immediate: bool,
}

/// How an executor is done with a job.
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
    /// What was reported; none if that is still to come.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Reported(outcome) | Self::Later { outcome, .. } => Some(outcome),
            Self::Elsewhere => None,
        }
    }
}
