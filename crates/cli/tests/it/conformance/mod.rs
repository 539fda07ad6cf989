//! Every behaviour case of every dialect, lived by the real program: its exit status, what it prints for programs, and what it
//! keeps. The cases lie in the fixtures of the dialects, most of them as the program that a dialect comes from was seen to
//! behave. Runs with the tests, and as `make conformance`, which prints the table of `docs/conformance.md`.

mod dagnats;
mod dcc;
mod program;
mod speckit;
mod swdl;
mod table;

use program::Program;
use std::path::Path;
pub use table::Table;
use table::{Case, Verdict};

/// Lives every case with the program at `windlass`, each in a folder of its own below `scratch`.
pub fn conformance(windlass: &Path, scratch: &Path) -> Table {
    let program = Program::new(windlass, scratch);
    let cases = [speckit::cases, swdl::cases, dagnats::cases, dcc::cases];
    Table(cases.iter().flat_map(|cases| cases(&program)).collect())
}
