//! The owner's socket: a process that does not own a data folder sends its calls to the one that does, a connection each, as
//! lines of JSON.
//!
//! The owner's first line says which version it is. Then comes one call, then the reply; a call that follows a run gets one
//! line for each thing that happens before the reply.

mod client;
mod executors;
mod listener;
mod ready;
mod wire;

pub use client::{Client, Remark, ask_executed};
pub use listener::Listener;
pub use ready::Needs;
pub use wire::{Execute, Surroundings};

const SOCKET: &str = "owner.sock";

/// The owner of a socket is looked for this often, and this long, if it holds the lock and does not listen yet.
pub(crate) const OWNER_WAIT: std::time::Duration = std::time::Duration::from_millis(10);
pub(crate) const OWNER_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(5);
