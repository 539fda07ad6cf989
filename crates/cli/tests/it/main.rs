//! The integration tests of the program, and of the repository as a whole, in one binary.

mod acting;
mod bad_input;
mod cases;
mod commit_messages;
mod convert;
mod data_folder;
mod eval;
mod fmt;
mod graph;
mod help;
mod kill;
mod limits;
mod live;
mod local_tasks;
mod look;
mod plan;
mod programs;
mod recover;
mod schema;
mod specify;
mod support;
mod terminals;
mod tidy;
mod triggers;
mod upkeep;
mod validate;
mod voice;

use windlass_tools::{crash, pty, scratch};
