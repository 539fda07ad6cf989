//! What was written down about a run, and the run as that tells it.

use super::SCRIPT;
use crate::engine::PLAN;
use crate::report::ids;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_engine::{Event, Program, Run, RunId, Timestamp, View, What};
use windlass_ir::Value;
use windlass_store::{Error, Lsn, Store};

/// All that was written down about a run.
pub(crate) struct History {
    pub events: Vec<Event>,
    pub tail: Option<Lsn>,
}

impl History {
    pub fn read(store: &Store, id: &RunId) -> Result<Self, Error> {
        let records = store.journal.read(id, None).wait()?;
        let mut events: Vec<Event> = Vec::with_capacity(2 * records.len());
        for record in &records {
            events.extend(record.whole_events(&*store.blobs).wait()?);
        }
        Ok(Self { events, tail: records.last().map(|record| record.lsn) })
    }

    /// The digest of the plan that it was started with.
    pub fn plan(&self) -> Option<&str> {
        match &self.events.first()?.what {
            What::Started { about, .. } => about.get(PLAN).and_then(Value::as_str),
            _ => None,
        }
    }
}

/// A run as its journal tells it.
pub(crate) struct Replayed {
    pub run: Run,
    pub view: View,
    pub tail: Option<Lsn>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// How many decisions of a script each gate has had, by the id that the user sees.
    pub decided: HashMap<String, usize>,
}

impl Replayed {
    pub fn of(id: &RunId, program: &Arc<Program>, history: &History) -> Result<Self, Error> {
        let History { events, tail } = history;
        let run = Run::replay(id.clone(), program.clone(), events).map_err(|contradiction| {
            Error::Contradictory { run: id.clone(), contradiction: Box::new(contradiction) }
        })?;
        let view = View::of_driver(program.clone(), events);
        let mut decided = HashMap::new();
        for event in events {
            if let What::Decided { id, path, .. } = &event.what
                && id.starts_with(SCRIPT)
            {
                *decided.entry(ids::name(&view, path).id).or_default() += 1;
            }
        }
        let last_at = events.last().map(|event| event.at);
        Ok(Self { run, view, tail: *tail, last_at, decided })
    }
}
