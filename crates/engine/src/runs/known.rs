//! The runs that a process knows. Those in memory have their own index, so that iterating over them does not depend
//! on the number of resting runs.

use super::Entry;
use crate::keys::RunId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Known {
    entries: BTreeMap<RunId, Entry>,
    /// Loading or live runs.
    present: BTreeSet<RunId>,
    /// Live runs with a virtual clock.
    virtuals: BTreeSet<RunId>,
}

impl Known {
    pub fn get(&self, run: &RunId) -> Option<&Entry> {
        self.entries.get(run)
    }

    pub fn get_mut(&mut self, run: &RunId) -> Option<&mut Entry> {
        self.entries.get_mut(run)
    }

    pub fn contains_key(&self, run: &RunId) -> bool {
        self.entries.contains_key(run)
    }

    pub fn insert(&mut self, run: RunId, entry: Entry) {
        self.remove(&run);
        match &entry {
            Entry::Resting { .. } => {}
            Entry::Loading(_) => drop(self.present.insert(run.clone())),
            Entry::Live(live) => {
                self.present.insert(run.clone());
                if live.clock.is_virtual() {
                    self.virtuals.insert(run.clone());
                }
            }
        }
        self.entries.insert(run, entry);
    }

    pub fn remove(&mut self, run: &RunId) -> Option<Entry> {
        let entry = self.entries.remove(run)?;
        self.present.remove(run);
        self.virtuals.remove(run);
        Some(entry)
    }

    pub fn present(&self) -> impl Iterator<Item = &RunId> {
        self.present.iter()
    }

    /// Runs that may wait for a wall-clock instant. A loading run checks that clock anyway.
    pub fn on_wall(&self) -> impl Iterator<Item = &RunId> {
        let waits = |entry: &Entry| match entry {
            Entry::Resting { time, .. } => time.on_wall,
            Entry::Live(live) => live.run.waits_on_wall(),
            Entry::Loading(_) => false,
        };
        self.entries.iter().filter(move |(_, entry)| waits(entry)).map(|(run, _)| run)
    }

    pub fn virtuals(&self) -> impl Iterator<Item = &RunId> {
        self.virtuals.iter()
    }
}
