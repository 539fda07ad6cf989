//! Performing operations: the context that each one gets, and the table of all of them.

mod admit;
mod context;
mod page;
mod refuse;
#[cfg(test)]
mod repeated;
mod row;
mod stream;

use crate::operation::Operation;
use crate::refusal::Refusal;
pub use admit::admit;
pub(crate) use admit::audited;
pub use context::{Caller, Context};
pub(crate) use context::{off_thread, value};
pub(crate) use page::{Cursor, limit};
pub use row::{Row, row};
pub use stream::Stream;

/// How the owner of a data folder, or a process that only reads it, performs an operation.
pub trait Perform: Operation {
    fn perform(self, cx: &Context) -> impl Future<Output = Result<Self::Reply, Refusal>> + Send;

    /// The reply to a request whose effect was made durable by an earlier call with the same idempotency key. By default the
    /// request is performed again, which suits operations that do nothing the second time.
    fn done(self, cx: &Context) -> impl Future<Output = Result<Self::Reply, Refusal>> + Send {
        self.perform(cx)
    }

    /// What is kept of the reply for a call with the same idempotency key: all of it, unless it has a secret.
    fn kept(reply: &Self::Reply) -> Option<serde_json::Value> {
        serde_json::to_value(reply).ok()
    }
}
