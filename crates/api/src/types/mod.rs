//! The objects in requests and replies. Every declared member is present in a reply; `null` means none.

mod audit;
mod diagnostic;
mod event;
mod gate;
mod limits;
mod log;
mod page;
mod run;
mod seconds;
mod step;
mod stream;
mod token;
mod workflow;

pub use audit::{AuditEntry, AuditObject, AuditOutcome, Face};
pub use diagnostic::{Diagnostic, Label, Severity};
pub use event::{Event, EventKind};
pub use gate::{Decision, FormField, Gate, Quorum};
pub use limits::{Amounts, Budget, Holder, Key, Limits, Rate, Slot, Subscription, Waiter, Window};
pub use log::{LineKind, LogLine, Stream};
pub use page::Page;
pub use run::{Failure, Progress, ResultKind, Run, RunSummary, Undone, Wait, WaitKind};
pub use seconds::Seconds;
pub use step::{Children, StepView};
pub use stream::{CutReason, Sign, Streamed};
pub use token::{NewToken, Token};
pub use workflow::{
    Change, CronPattern, Dialect, Edit, Edited, Evaluated, FileKind, Graph, GraphFormat, NamedText,
    NextFirings, NextTrigger, Origin, Plan, Ref, Simulation, Target, TriggerKind, Validation, Workflow,
};

/// Data of a user: any JSON value, with integers and floats kept apart.
pub type Json = serde_json::Value;

/// An instant: RFC 3339, UTC, up to microseconds.
pub type Time = String;
