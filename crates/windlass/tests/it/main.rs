//! End-to-end tests from file to result, in process.

mod calls;
mod embed;
mod hooks;
mod large;
mod played;
mod shown;
mod triggers;
