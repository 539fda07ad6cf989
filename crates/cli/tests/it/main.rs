//! The integration tests of the program, and of the repository as a whole, in one binary.

mod bad_input;
mod eval;
mod graph;
mod help;
mod plan;
mod support;
mod tidy;
mod validate;
