//! `windlass completions`: the code that lets a shell complete.

use crate::answer::{Answer, Status};
use crate::{args, complete};

pub fn run(args: &args::Completions) -> Answer {
    match complete::registration(args.shell.name()) {
        Some(stdout) => Answer { stdout, ..Answer::new(Status::Done) },
        None => Answer::bug(&std::io::Error::other("there is no completion for this shell")),
    }
}
