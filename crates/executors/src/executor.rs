//! What every executor is to the runtime, and what recovery relies on.

use crate::context::Context;
use std::pin::Pin;
use windlass_engine::{Job, Outcome};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Does one job. Hosts implement it for their own kinds of work.
///
/// What recovery relies on:
/// - **Returning is the report.** There is no other one. When `run` returns, nothing of the job runs any more, so that
///   another attempt may start at once. (A shell command that succeeded may leave a server behind on purpose.)
/// - **Told to abort, it returns soon**, whatever it returns. The run waits for that, for as long as its grace allows.
/// - **Dropped, it ends what it started.** That is what happens when the owner of the run goes away in good order.
/// - **The same job can come again.** After a crash its attempt is delivered anew, with a higher `delivery` and all notes of
///   the earlier ones. Whatever happens outside should carry [`Job::operation`] as its idempotency key, which stays the same.
pub trait Executor: Send + Sync {
    fn run(&self, job: Job, context: Context) -> BoxFuture<'_, Outcome>;
}
