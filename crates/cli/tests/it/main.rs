//! The integration tests of the program, and of the repository as a whole, in one binary.

mod acting;
mod bad_input;
mod cases;
mod convert;
mod crash;
mod desk;
mod eval;
mod fmt;
mod graph;
mod help;
mod kill;
mod live;
mod local_tasks;
mod look;
mod plan;
mod programs;
mod pty;
mod schema;
mod scratch;
mod support;
mod terminals;
mod tidy;
mod triggers;
mod upkeep;
mod validate;
