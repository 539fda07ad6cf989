//! The binary `windlass`: reads arguments and files, calls the crates that know workflows, and renders what they say.
//!
//! A command is a function from its arguments to an [`answer::Answer`]; only this file, `answer` and `terminal` print anything.

mod answer;
mod args;
mod cases;
mod commands;
mod complete;
mod data;
mod files;
mod graph;
mod load;
mod named;
mod replace;
mod show;
mod specify;
mod terminal;
mod triggers;

use answer::Status;
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    hide_memory();
    if let Some(folder) = data::heads() {
        windlass_runtime::keep_heads_in(folder);
    }
    match complete::answer() {
        Ok(true) => return Status::Done.into(),
        Ok(false) => {}
        Err(error) => return explain(&error).into(),
    }
    match args::Args::try_parse() {
        Ok(args) => commands::run(args.command, show::Screens::detect()).print().into(),
        Err(usage) => explain(&usage).into(),
    }
}

/// Keeps secrets in memory out of core files, and away from other programs of the same user. A step can still raise the limit
/// for its own commands, which inherit it.
fn hide_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // A system that refuses this is no reason not to work.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) });
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Help, version or a mistake on the command line; clap knows where to print which.
fn explain(usage: &clap::Error) -> Status {
    // Nobody is left to tell when this fails.
    let _ = usage.print();
    match usage.exit_code() {
        0 => Status::Done,
        _ if specify::is_late(usage) => Status::Failed,
        _ => Status::Refused,
    }
}
