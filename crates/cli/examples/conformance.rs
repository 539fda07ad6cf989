//! Lives every behaviour case of every dialect with the program beside it: `make conformance`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test for people prints what it found")]

#[path = "../tests/it/conformance/mod.rs"]
mod conformance;

use std::process::ExitCode;

fn main() -> ExitCode {
    let here = std::env::current_exe().expect("this program lies somewhere");
    let windlass = here.ancestors().nth(2).expect("examples lie below the programs").join("windlass");
    let scratch = std::env::temp_dir().join(format!("windlass-conformance-{}", std::process::id()));
    let table = conformance::conformance(&windlass, &scratch);
    for (case, how) in table.differing() {
        eprintln!("{} {}:\n{how}\n", case.dialect, case.name);
    }
    print!("{table}");
    if table.differing().next().is_some() {
        eprintln!("what they left is in {}", scratch.display());
        return ExitCode::FAILURE;
    }
    // The system clears away what this cannot.
    let _ = std::fs::remove_dir_all(&scratch);
    ExitCode::SUCCESS
}
