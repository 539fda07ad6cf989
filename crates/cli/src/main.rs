//! The binary `windlass`: reads arguments and files, calls the other crates, and renders their results.
//!
//! A command is a function from its arguments to an [`answer::Answer`]; only this file, `answer` and `terminal` print anything.

mod answer;
mod args;
mod cases;
mod commands;
mod complete;
mod data;
mod files;
mod load;
mod named;
mod replace;
mod show;
mod specify;
mod terminal;
mod triggers;
mod unified;
mod walk;

use answer::Exit;
use clap::{CommandFactory, FromArgMatches};
use std::process::ExitCode;

fn main() -> ExitCode {
    hide_memory();
    if let Some(folder) = data::heads() {
        windlass_runtime::keep_heads_in(folder);
    }
    match complete::answer() {
        Ok(true) => return Exit::Done.into(),
        Ok(false) => {}
        Err(error) => return explain(&error).into(),
    }
    match parsed() {
        Ok(args) => commands::run(args.command, show::Screens::detect()).print().into(),
        Err(usage) => explain(&usage).into(),
    }
}

fn parsed() -> Result<args::Args, clap::Error> {
    let mut matches = args::grouped(args::Args::command()).try_get_matches()?;
    args::Args::from_arg_matches_mut(&mut matches)
}

/// Keeps secrets in memory out of core dumps, and away from other processes of the same user. A step can still raise the limit
/// for its own commands, which inherit it.
fn hide_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Windlass works without this protection too.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Prints help, the version or a usage error. With `--json` a usage error becomes a refusal.
fn explain(usage: &clap::Error) -> Exit {
    let words = std::env::args_os().skip(1).take_while(|word| word != "--");
    let json =
        words.into_iter().any(|word| word == "--json" || word == "--json=final" || word == "--json=all");
    if json && usage.exit_code() != 0 && !specify::is_called() {
        return answer::Answer::usage(usage).print();
    }
    // There is no other place to report this failure.
    let _ = usage.print();
    match usage.exit_code() {
        0 => Exit::Done,
        _ if specify::is_late(usage) => Exit::Failed,
        _ => Exit::Refused,
    }
}
