//! Every operation of Windlass, declared once: its name, its typed request and reply, the role that it needs, the codes that it
//! may be refused with, and one async function. The owner's socket and the command line derive from these declarations.
//!
//! This crate owns the contract that programs read. It does not know how a workflow runs (that is `runtime` and below) nor how
//! people see the result (that is `cli`).

mod code;
mod exit;
mod operation;
mod refusal;
pub mod types;

pub use code::Code;
pub use exit::Exit;
pub use operation::{About, Effect, Operation, Role, Stability, Subject};
pub use refusal::{Place, Refusal};
