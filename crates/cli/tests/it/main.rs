//! The integration tests of the program and of the whole repository, in one binary.

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
mod http;
mod kept;
mod kill;
mod limits;
mod live;
mod local_tasks;
mod look;
mod names;
mod operations;
mod plan;
mod printed;
mod programs;
mod recover;
mod reference;
mod refusals;
mod schema;
mod specify;
mod support;
mod terminals;
mod tidy;
mod triggers;
mod upkeep;
mod validate;
mod views;
mod voice;

use windlass_tools::{crash, pty, scratch};
