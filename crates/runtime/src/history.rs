//! Reads all events of a run from the journal.

use crate::engine::PLAN;
use windlass_engine::{Event, RunId, What};
use windlass_ir::Value;
use windlass_store::{Error, Lsn, Record, Store};

/// All events of a run.
pub(crate) struct History {
    pub events: Vec<Event>,
    pub tail: Option<Lsn>,
}

impl History {
    /// Blocks.
    pub fn read(store: &Store, id: &RunId) -> Result<Self, Error> {
        let records = store.journal.read(id, None).wait()?;
        let events = Record::whole_events(&records, &*store.blobs).wait()?;
        Ok(Self { events, tail: records.last().map(|record| record.lsn) })
    }

    /// The digest of its plan.
    pub fn plan(&self) -> Option<&str> {
        about(&self.events).get(PLAN).and_then(Value::as_str)
    }
}

/// The facts that the start of a run recorded about it.
pub(crate) fn about(events: &[Event]) -> &Value {
    match events.first().map(|event| &event.what) {
        Some(What::Started { about, .. }) => about,
        _ => &Value::Null,
    }
}
