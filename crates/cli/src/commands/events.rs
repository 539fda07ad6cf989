//! `windlass events`: what happened in a run, one event a line.

use super::refused;
use crate::answer::{Answer, Status};
use crate::show::progress::{event_json, event_line};
use crate::{args, data};

pub fn run(args: &args::Events) -> Answer {
    let lines = data::find(&args.data, &args.run).and_then(|(_, engine, run)| {
        let events = engine.events(&run)?;
        let numbered = (1u64..).zip(&events);
        Ok(numbered
            .map(|(seq, event)| match args.json {
                true => format!("{}\n", event_json(&run, seq, event)),
                false => format!("{seq:>5}  {}\n", event_line(event)),
            })
            .collect::<String>())
    });
    match lines {
        Ok(stdout) => Answer { stdout, ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}
