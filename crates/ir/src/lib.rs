//! The meaning of workflows: the types that every dialect is parsed into, expressions and their evaluator, contracts,
//! policies, static checks, and the flat [`Plan`] that a run is pinned to.
//!
//! This crate does no IO, knows no file format and holds no state of a run. It has no access to time, randomness or
//! the outside world.

pub mod contract;
pub mod cron;
pub mod diagnostic;
pub mod dialect;
pub mod expr;
pub mod plan;
pub mod policy;
mod produces;
pub mod resolve;
mod schema_cost;
pub mod source;
pub mod status;
pub mod suggest;
pub mod time;
pub mod trigger;
pub mod value;
pub mod workflow;
pub mod zone;

pub use contract::Type;
pub use diagnostic::{Code, Diagnostic, Severity};
pub use plan::Plan;
pub use resolve::resolve;
pub use source::{Source, SourceId, Sources, Span, Spanned};
pub use status::{RunStatus, StepStatus};
pub use time::Duration;
pub use value::Value;
pub use workflow::Workflow;
