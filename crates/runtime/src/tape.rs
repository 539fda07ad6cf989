//! Reads the events of a run in order, one page at a time, so that a long run takes little memory.

use std::collections::VecDeque;
use windlass_engine::{Event, RunId};
use windlass_store::{Error, Lsn, Record, Store};

/// The number of records in a page.
const PAGE: usize = 64;

#[derive(Debug)]
pub(crate) struct Tape {
    run: RunId,
    /// The number of the last event read.
    pub seq: u64,
    /// The last record read.
    at: Option<Lsn>,
    /// The ends of pages that were found but not read, the oldest last.
    ends: Vec<Lsn>,
    /// The newest page.
    newest: VecDeque<Record>,
}

impl Tape {
    /// Starts at the beginning of a run.
    pub fn new(run: RunId) -> Self {
        Self { run, seq: 0, at: None, ends: Vec::new(), newest: VecDeque::new() }
    }

    /// The next events; none at the end of the journal. The first one has the number `seq + 1`, with `seq` before the call.
    pub async fn page(&mut self, store: &Store) -> Result<Vec<Event>, Error> {
        if self.newest.is_empty() {
            self.find_pages(store).await?;
        }
        let records = match self.ends.pop() {
            Some(end) => self.back(store, Some(end)).await?,
            None => std::mem::take(&mut self.newest),
        };
        let records = Vec::from(records);
        let events = Record::whole_events(&records, &*store.blobs).await?;
        self.at = records.last().map(|record| record.lsn).or(self.at);
        self.seq += events.len() as u64;
        Ok(events)
    }

    /// Finds the pages between the last record read and the end. The journal links records backwards.
    async fn find_pages(&mut self, store: &Store) -> Result<(), Error> {
        self.newest = self.back(store, None).await?;
        let mut oldest = self.newest.front().map(|record| record.lsn);
        while let Some(end) = oldest {
            let page = self.back(store, Some(end)).await?;
            oldest = page.front().map(|record| record.lsn);
            if oldest.is_some() {
                self.ends.push(end);
            }
        }
        Ok(())
    }

    /// Up to a page of unread records before the given one, oldest first.
    async fn back(&self, store: &Store, before: Option<Lsn>) -> Result<VecDeque<Record>, Error> {
        let records = store.journal.back(&self.run, before, PAGE).await?;
        let is_new = |record: &Record| self.at.is_none_or(|at| record.lsn > at);
        let mut page = VecDeque::with_capacity(records.len());
        records.into_iter().take_while(is_new).for_each(|record| page.push_front(record));
        Ok(page)
    }
}
