//! Executes one job: a shell command, a command-line agent, a task done by a command on this machine, or a mock
//! response.
//!
//! This crate owns processes and their output. It knows a [`Job`](windlass_engine::Job) and an
//! [`Outcome`](windlass_engine::Outcome) and nothing about the run around them: it decides no retries, keeps no
//! timeouts and writes no journal.

mod assistant;
mod builtin;
mod capture;
mod children;
mod context;
mod executor;
mod group;
#[cfg(target_os = "linux")]
mod proc;
mod process;
mod redact;
mod scripted;
mod secrets;
mod shell;
mod shell_outputs;
mod task;

pub use assistant::{Assistants, agent_program};
pub use builtin::Builtins;
pub use children::{Children, EndError, FINDS_ORPHANS, end_orphans, orphaned_runs};
pub use context::{Context, Environment, Line, NotKept, Notes, Output, Recorded, Stream, ToRecord};
pub use executor::{BoxFuture, Executor, Returned, Traits};
pub use scripted::{Answer, Asker, GateAnswer, Gates, Problem, Script, Signal};
pub use secrets::Secrets;
pub use shell::Shell;
pub use task::{TaskCommand, Tasks};
