//! The long form of the kill test: `make crash-test`. It kills the program beside it, built in the same profile.
//! `--kills N` sets how often, `--seed N` the seed of the random instants, `--shared N` how many runs share limits.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test for people prints what it did")]

use std::path::Path;
use std::process::ExitCode;
use windlass_tools::crash::{Power, crash_test, shared_test};
use windlass_tools::windlass_beside;

fn main() -> ExitCode {
    let (kills, seed) = (option("--kills").unwrap_or(500), option("--seed").unwrap_or(1));
    let folder = std::env::temp_dir().join(format!("windlass-crash-{}", std::process::id()));
    match test(&windlass_beside(), &folder, seed, kills) {
        Ok(()) => {
            // The system clears away the rest.
            let _ = std::fs::remove_dir_all(&folder);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}\nits folders are in {}", folder.display());
            ExitCode::FAILURE
        }
    }
}

fn test(windlass: &Path, folder: &Path, seed: u64, kills: u64) -> Result<(), String> {
    println!("killing {} {kills} times, seed {seed}", windlass.display());
    print!("{}", crash_test(windlass, &folder.join("alone"), seed, kills, Power::Stays)?);
    println!("losing power {kills} times");
    print!("{}", crash_test(windlass, &folder.join("power"), seed, kills, Power::Fails)?);
    let (runs, kills) = (option("--shared").unwrap_or(500), kills / 10);
    println!("killing the owner of {runs} runs that share limits {kills} times");
    print!("{}", shared_test(windlass, &folder.join("shared"), runs, kills)?);
    Ok(())
}

fn option(name: &str) -> Option<u64> {
    let mut words = std::env::args().skip_while(|word| word != name);
    words
        .nth(1)
        .map(|number| number.parse().unwrap_or_else(|_| panic!("{name} takes a number, not `{number}`")))
}
