//! Executes every behavior case of every dialect with the program beside it: `make conformance`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test for people prints what it found")]

use std::process::ExitCode;
use windlass_tools::conformance::{Program, check_all};
use windlass_tools::windlass_beside;

fn main() -> ExitCode {
    let scratch = std::env::temp_dir().join(format!("windlass-conformance-{}", std::process::id()));
    let table = check_all(&Program::new(&windlass_beside(), &scratch));
    for (case, how) in table.differing() {
        eprintln!("{} {}:\n{how}\n", case.dialect, case.name);
    }
    print!("{table}");
    if table.differing().next().is_some() {
        eprintln!("the folders of the cases are in {}", scratch.display());
        return ExitCode::FAILURE;
    }
    // The system clears away the rest.
    let _ = std::fs::remove_dir_all(&scratch);
    ExitCode::SUCCESS
}
