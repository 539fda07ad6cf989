//! The objects in requests and replies. Every declared member is present in a reply; `null` means none.

mod diagnostic;
mod event;
mod gate;
mod limits;
mod log;
mod page;
mod run;
mod step;

pub use diagnostic::{Diagnostic, Severity, Validation};
pub use event::Event;
pub use gate::{Decision, FormField, Gate, Quorum};
pub use limits::{Amounts, Budget, Holder, Key, Limits, Rate, Slot, Subscription, Waiter, Window};
pub use log::{LogLine, Stream};
pub use page::Page;
pub use run::{Failure, Progress, Run, RunSummary, RunTrigger, Undone, Usage, Wait, WaitKind};
pub use step::{Attempt, AttemptStatus, Children, ServedFrom, StepView};

/// Data of a user: any JSON value, with integers and floats kept apart.
pub type Json = serde_json::Value;

/// An instant: RFC 3339, UTC, up to microseconds.
pub type Time = String;
