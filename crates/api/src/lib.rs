//! Every operation of Windlass, declared once: its name, its typed request and reply, the role that it needs, the codes that it
//! may be refused with, and one async function. The owner's socket and the command line derive from these declarations.
//!
//! This crate owns the contract that programs read. It does not know how a workflow runs (that is `runtime` and below) nor how
//! people see the result (that is `cli`).

mod code;
#[cfg(feature = "perform")]
mod door;
mod exit;
#[cfg(feature = "perform")]
pub mod graph;
#[cfg(feature = "perform")]
pub mod library;
mod operation;
#[cfg(feature = "perform")]
pub mod operations;
#[cfg(feature = "perform")]
mod perform;
mod refusal;
#[cfg(feature = "perform")]
pub mod report;
#[cfg(feature = "perform")]
mod socket;
#[cfg(feature = "perform")]
mod tables;
pub mod types;
pub mod words;

pub use code::{Code, Family};
#[cfg(feature = "perform")]
pub use door::{Door, Following, call};
pub use exit::Exit;
pub use operation::{About, Effect, Method, Operation, Role, Route, Stability, Subject};
#[cfg(feature = "perform")]
pub use perform::{Caller, Context, Perform, Row, Stream, admit};
pub use refusal::{Place, Refusal};
#[cfg(feature = "perform")]
pub use socket::{Client, Execute, Listener, Needs, Remark, Surroundings, ask_executed};
#[cfg(feature = "perform")]
pub use tables::{Tables, export_tables};
