//! `windlass completions`: the code that lets a shell complete.

use crate::answer::{Answer, Exit};
use crate::{args, complete};

pub fn run(args: &args::Completions) -> Answer {
    match complete::registration(args.shell.name()) {
        Some(code) if args.json => {
            Answer::json(Exit::Done, &serde_json::json!({"shell": args.shell.name(), "code": code}))
        }
        Some(stdout) => Answer { stdout, ..Answer::new(Exit::Done) },
        None => Answer::bug(&std::io::Error::other("there is no completion for this shell")),
    }
}
