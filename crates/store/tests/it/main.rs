//! Tests of the store as a whole: one list of checks for every backend, random work in a folder compared with memory, then
//! what only a folder on a disk can do.

#![expect(clippy::print_stdout, reason = "a test that fails shows which check or seed it was at")]

mod conformance;
#[cfg(feature = "sqlite")]
mod damage;
#[cfg(feature = "sqlite")]
mod folder;
mod model;
mod support;
