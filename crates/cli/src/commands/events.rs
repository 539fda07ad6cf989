//! `windlass events`: the events of a run, one per line.

use super::tail;
use crate::answer::{Answer, Exit, Page, Refused};
use crate::show::progress::event_line;
use crate::{args, data};
use std::sync::Arc;
use windlass_api::Refusal;
use windlass_api::report::Projector;
use windlass_runtime::{Engine, Event, RunId, Update};

pub fn run(args: &args::Events) -> Result<Answer, Refused> {
    let (folder, engine, run) = data::find(&args.data, args.run.as_deref().unwrap_or(data::LAST))?;
    let projector = args.json.then(|| Projector::new(engine.clone(), run.clone()));
    let mut shown = Shown { page: Page::new(), run: run.clone(), projector, seen: 0 };
    let stderr = match args.follow {
        true => tail::follow(&folder, &engine, &run, |update| match update {
            Some(Update::Event { seq, event }) => Ok(shown.show(seq, &event)? && shown.page.flush()),
            Some(Update::Line(_) | Update::Notice(_)) => Ok(true),
            None => shown.catch_up(&engine),
        })?,
        false => shown.catch_up(&engine).map(|_| String::new())?,
    };
    Ok(Answer { stderr, ..Answer::new(Exit::Done) })
}

struct Shown {
    page: Page,
    run: RunId,
    /// Converts events to their public form for JSON.
    projector: Option<Projector>,
    /// The sequence number of the last event.
    seen: u64,
}

impl Shown {
    /// False if the reader closed the pipe.
    fn show(&mut self, seq: u64, event: &Event) -> Result<bool, Refusal> {
        if seq <= self.seen {
            return Ok(true);
        }
        self.seen = seq;
        let line = match &mut self.projector {
            Some(projector) => match projector.next(seq, event)? {
                Some(public) => serde_json::to_string(&public).unwrap_or_default(),
                None => return Ok(true),
            },
            None => format!("{seq:>5}  {}", event_line(event)),
        };
        Ok(self.page.line(&line))
    }

    fn catch_up(&mut self, engine: &Arc<Engine>) -> Result<bool, Refusal> {
        for (seq, event) in (1u64..).zip(&engine.events(&self.run)?) {
            if !self.show(seq, event)? {
                return Ok(false);
            }
        }
        Ok(self.page.flush())
    }
}
