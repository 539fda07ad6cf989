//! `windlass events`: what happened in a run, one event a line.

use super::{refused, tail};
use crate::answer::{Answer, Page, Status};
use crate::show::progress::{event_json, event_line};
use crate::{args, data};
use windlass_runtime::{Engine, Error, Event, RunId, Update};

pub fn run(args: &args::Events) -> Answer {
    let (folder, engine, run) = match data::find(&args.data, &args.run) {
        Ok(found) => found,
        Err(error) => return refused(&error),
    };
    let mut shown = Shown { page: Page::new(), run, json: args.json, seen: 0 };
    let done = match args.follow {
        true => {
            let run = shown.run.clone();
            tail::follow(&folder, &engine, &run, |update| match update {
                Some(Update::Event { seq, event }) => Ok(shown.show(seq, &event) && shown.page.flush()),
                Some(Update::Line(_) | Update::Notice(_)) => Ok(true),
                None => shown.catch_up(&engine),
            })
        }
        false => shown.catch_up(&engine).map(|_| String::new()),
    };
    match done {
        Ok(stderr) => Answer { stderr, ..Answer::new(Status::Done) },
        Err(error) => refused(&error),
    }
}

struct Shown {
    page: Page,
    run: RunId,
    json: bool,
    /// The number of the last event.
    seen: u64,
}

impl Shown {
    /// False when nobody reads any more.
    fn show(&mut self, seq: u64, event: &Event) -> bool {
        if seq <= self.seen {
            return true;
        }
        self.seen = seq;
        self.page.line(&match self.json {
            true => event_json(&self.run, seq, event).to_string(),
            false => format!("{seq:>5}  {}", event_line(event)),
        })
    }

    fn catch_up(&mut self, engine: &Engine) -> Result<bool, Error> {
        let events = engine.events(&self.run)?;
        let read = (1u64..).zip(&events).all(|(seq, event)| self.show(seq, event));
        Ok(read && self.page.flush())
    }
}
