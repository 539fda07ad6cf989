//! The journal: the only source of truth about runs. It is a list of records; each belongs to one run and names that
//! run's previous record. Everything else in a data folder is derived from it or referred to by it.

use crate::blobs::{BlobId, Blobs, ReadBlob};
use crate::error::Error;
use crate::ledger::Entry;
use crate::pending::Pending;
use crate::record::{self, Values};
use crate::view::Wake;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{CoordinatorEvent, Event, RunId};

/// The number of a record in its journal, from 1: the order in which records became durable. Gaps appear only where
/// runs were removed; no number is used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The number that a record will get. It allows appending the next record of the same run before the first is
/// durable.
#[derive(Clone, Debug, Default)]
pub struct Ticket(Arc<AtomicU64>);

impl Ticket {
    pub(crate) fn lsn(&self) -> Option<Lsn> {
        Some(self.0.load(Ordering::Acquire)).filter(|number| *number > 0).map(Lsn)
    }

    pub(crate) fn set(&self, lsn: Lsn) {
        self.0.store(lsn.0, Ordering::Release);
    }

    /// It was not written after all.
    pub(crate) fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The record that a new one follows in its run.
#[derive(Clone, Debug)]
pub enum Prev {
    /// As the caller knows it; `None` for the first record of a run.
    At(Option<Lsn>),
    /// One that was appended but may not be durable yet.
    After(Ticket),
}

impl From<Option<Lsn>> for Prev {
    fn from(prev: Option<Lsn>) -> Self {
        Self::At(prev)
    }
}

/// A record to write: the result of one `handle`.
#[derive(Clone, Debug)]
pub struct Append {
    run: RunId,
    prev: Prev,
    needs: Option<Ticket>,
    ticket: Ticket,
    frame: Arc<[u8]>,
    /// Values above 64 KiB that the frame refers to. They are written before the record.
    values: Arc<Values>,
    wake: Wake,
    /// Changes of the ledger that are written with the record.
    entries: Vec<Entry>,
    /// The content of the frame, if the caller shared it.
    events: Option<Arc<Vec<Event>>>,
}

impl Append {
    pub fn new(run: RunId, prev: impl Into<Prev>, events: &[Event]) -> Result<Self, Error> {
        let encoded = record::encode_run(&run, events)?;
        Ok(Self::of(run, prev.into(), encoded))
    }

    /// A record of the stream that runs share.
    pub fn coordinator(prev: impl Into<Prev>, events: &[CoordinatorEvent]) -> Result<Self, Error> {
        let run = RunId::coordinator();
        let encoded = record::encode(&run, events, 0, Values::new())?;
        Ok(Self::of(run, prev.into(), encoded))
    }

    /// Removes the run: once this record is durable the run does not exist, and its id is free again. The store
    /// deletes the run's records later.
    pub fn removal(run: RunId, prev: impl Into<Prev>) -> Result<Self, Error> {
        let encoded = record::encode::<Event>(&run, &[], record::REMOVES, Values::new())?;
        Ok(Self::of(run, prev.into(), encoded))
    }

    fn of(run: RunId, prev: Prev, (frame, values): (Arc<[u8]>, Values)) -> Self {
        let (ticket, values) = (Ticket::default(), Arc::new(values));
        Self {
            run,
            prev,
            needs: None,
            ticket,
            frame,
            values,
            wake: Wake::Unknown,
            entries: Vec::new(),
            events: None,
        }
    }

    /// The same as [`Append::new`], except that lists need not parse the record again.
    pub fn sharing(run: RunId, prev: impl Into<Prev>, events: Arc<Vec<Event>>) -> Result<Self, Error> {
        let append = Self::new(run, prev, &events)?;
        // Parsed, such a record has references in place of large values.
        let events = append.values.is_empty().then_some(events);
        Ok(Self { events, ..append })
    }

    /// It is written only if this other record is, and after it.
    #[must_use]
    pub fn needing(self, needs: Option<Ticket>) -> Self {
        Self { needs, ..self }
    }

    /// What the run needs from its owner after this record, until the next one. Unknown by default.
    #[must_use]
    pub fn resting(self, wake: Wake) -> Self {
        Self { wake, ..self }
    }

    /// Changes the ledger if and only if the record is written.
    #[must_use]
    pub fn noting(self, entries: Vec<Entry>) -> Self {
        Self { entries, ..self }
    }

    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The approximate number of stored bytes.
    pub fn bytes(&self) -> usize {
        self.frame.len() + self.values.values().map(Vec::len).sum::<usize>()
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn wake(&self) -> Wake {
        self.wake
    }

    pub(crate) fn ends(&self) -> bool {
        record::ends(&self.frame)
    }

    pub(crate) fn removes(&self) -> bool {
        record::removes(&self.frame)
    }

    /// Whether this one can be written while `tail` is the run's last record.
    pub(crate) fn follows(&self, tail: Option<Lsn>) -> bool {
        let needed = self.needs.as_ref().is_none_or(|needed| needed.lsn().is_some());
        let fits = match &self.prev {
            Prev::At(prev) => *prev == tail,
            Prev::After(ticket) => ticket.lsn().is_some_and(|lsn| tail == Some(lsn)),
        };
        needed && fits
    }

    /// The bytes that are stored after this record: header and body.
    pub(crate) fn sealed(&self, prev: Option<Lsn>) -> Vec<u8> {
        record::sealed(&self.run, prev, &self.frame)
    }

    /// The record that this becomes, its checksum left out.
    pub(crate) fn record(&self, lsn: Lsn, prev: Option<Lsn>) -> Record {
        let (frame, events) = (self.frame.clone(), self.events.clone());
        Record { lsn, run: self.run.clone(), prev, frame, events }
    }
}

/// The answer to an append that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is durable, and so is every record with a smaller number.
    At(Lsn),
    /// Nothing was written: this is the run's last record; `None` if there is no such run.
    Conflict { tail: Option<Lsn> },
}

/// A record as it was written, its checksum verified.
#[derive(Clone, Debug)]
pub struct Record {
    pub lsn: Lsn,
    pub run: RunId,
    pub prev: Option<Lsn>,
    frame: Arc<[u8]>,
    /// The content of the frame, if this process wrote it.
    events: Option<Arc<Vec<Event>>>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        (self.lsn, self.prev) == (other.lsn, other.prev) && self.run == other.run && self.frame == other.frame
    }
}

impl Record {
    pub(crate) fn verified(lsn: Lsn, run: RunId, prev: Option<Lsn>, frame: &[u8]) -> Result<Self, Error> {
        if record::is_whole(&run, prev, frame) {
            Ok(Self { lsn, run, prev, frame: frame.into(), events: None })
        } else {
            Err(Error::Corrupt { run, lsn })
        }
    }

    /// The events of records of one run, with every value in place.
    pub fn whole_events(records: &[Self], blobs: &dyn Blobs) -> Pending<Vec<Event>> {
        let mut plans = HashMap::new();
        Self::whole(records, blobs, move |frame, get| record::decode_run(frame, get, &mut plans))
    }

    /// The events of the stream that runs share.
    pub fn coordinator_events(&self, blobs: &dyn Blobs) -> Pending<Vec<CoordinatorEvent>> {
        Self::whole(std::slice::from_ref(self), blobs, record::decode_whole)
    }

    fn whole<E: Send + 'static>(
        records: &[Self],
        blobs: &dyn Blobs,
        mut decode: impl FnMut(&[u8], &ReadBlob<'_>) -> Result<Vec<E>, String> + Send + 'static,
    ) -> Pending<Vec<E>> {
        let mut all = move |records: &[Self], get: &ReadBlob<'_>| {
            let mut events = Vec::with_capacity(2 * records.len());
            for record in records {
                events.extend(decode(&record.frame, get).map_err(|cause| record.unreadable(cause))?);
            }
            Ok(events)
        };
        if !records.iter().any(|record| record::is_apart(&record.frame)) {
            return Pending::ready(all(records, &|_| Ok(None)));
        }
        let (records, (answer, pending)) = (records.to_vec(), Pending::waiting());
        blobs.lend(Box::new(move |get| answer.send(all(&records, get))));
        pending
    }

    /// The events; a large value is represented by a reference.
    pub fn events(&self) -> Result<Cow<'_, [Event]>, Error> {
        match &self.events {
            Some(events) => Ok(Cow::Borrowed(events)),
            None => record::decode(&self.frame).map(Cow::Owned).map_err(|cause| self.unreadable(cause)),
        }
    }

    fn unreadable(&self, cause: String) -> Error {
        Error::Unreadable { run: self.run.clone(), lsn: self.lsn, cause }
    }

    /// Whether this record closes the run. Later records may reopen it.
    pub fn ends(&self) -> bool {
        record::ends(&self.frame)
    }

    /// The values that it refers to; those may refer to others, see [`crate::named_in`].
    pub fn names(&self) -> Vec<BlobId> {
        record::named(&self.frame)
    }

    pub fn frame(&self) -> &[u8] {
        &self.frame
    }
}

/// The last record of every run that is not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tails {
    /// Opening the journal reads the records from here on.
    pub low_water: Lsn,
    /// The last record of all.
    pub last: Option<Lsn>,
    /// In order of the runs' ids.
    pub unfinished: Vec<(RunId, Lsn)>,
}

/// Every call enqueues its work and returns at once.
///
/// One journal is one partition: numbers, tickets and the stream that runs share are its own, and it is append-only.
/// A backend may reclaim the space of removed runs.
pub trait Journal: Send + Sync + std::fmt::Debug {
    /// Another record of the same run, or one that this one needs, may not be durable yet; if that one is not
    /// written, neither is this one. Recovery relies on: an acknowledged record, and every record with a smaller
    /// number, is there after any crash; a record whose `prev` is not the run's last one is never written; records
    /// appended by one thread get increasing numbers. After an error the record was not acknowledged;
    /// [`Error::is_fatal`] says whether to try again. A run may continue after a record that closed it.
    fn append(&self, append: Append) -> Pending<Appended>;

    /// Writes all of them or none, with consecutive numbers. If one does not match, every answer is a conflict with
    /// the run's actual last record.
    fn append_all(&self, appends: Vec<Append>) -> Pending<Vec<Appended>>;

    /// The records of a run, newest first, at most `limit`: from its last one, or those before the given one of its
    /// own. Recovery relies on: all of them or an error, never a history with a gap; a damaged record is an error for
    /// its own run only. An unknown run has no records.
    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Pending<Vec<Record>>;

    /// The history of a run, oldest first: all of it, or the records after the given one. Recovery relies on the same.
    fn read(&self, run: &RunId, after: Option<Lsn>) -> Pending<Vec<Record>>;

    /// Recovery relies on: every run whose last durable record does not close it is in the list, also a damaged one.
    fn tails(&self) -> Pending<Tails>;

    /// The records of all runs in order, from the given number on. May return fewer than `limit`; none only at the
    /// end. Rebuilding from the journal relies on: no record is left out, a damaged one is an error in its place, and
    /// the scan continues after it.
    fn scan(&self, from: Lsn, limit: usize) -> Pending<Vec<Result<Record, Error>>>;

    /// Deletes the records of removed runs without delaying appends.
    fn reclaim(&self) -> Pending<()>;

    /// Returns free space to the file system. Nothing is written meanwhile.
    fn compact(&self) -> Pending<()>;
}
