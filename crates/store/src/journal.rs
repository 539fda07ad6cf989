//! The journal: the only truth about runs. A list of records, each of one run, each naming the record of the same run
//! before it. Everything else in a data folder can be made again from it or is pointed to by it.

use crate::blobs::{BlobId, Blobs};
use crate::error::Error;
use crate::pending::Pending;
use crate::record;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{DeskEvent, Event, RunId};

/// The number of a record in its journal, from 1: the order in which records became durable. Numbers have gaps only where runs were
/// removed, and none is ever given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The number that a record gets, known as soon as it is being written. With it the next record of the same run can be handed
/// over before the first is durable.
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

/// The record of the same run before one that is to be written.
#[derive(Clone, Debug)]
pub enum Prev {
    /// As the caller knows it; `None` when the run is to begin.
    At(Option<Lsn>),
    /// One that was handed over and may not be durable yet.
    After(Ticket),
}

/// A record that is to be written: what one `handle` produced.
#[derive(Clone, Debug)]
pub struct Append {
    run: RunId,
    prev: Prev,
    needs: Option<Ticket>,
    ticket: Ticket,
    frame: Arc<[u8]>,
}

impl Append {
    /// `prev` is the run's last record as the caller knows it; `None` when the run is to begin.
    pub fn new(run: RunId, prev: Option<Lsn>, events: &[Event]) -> Result<Self, Error> {
        let frame = record::encode(&run, events, record::closes(events))?;
        Ok(Self::of(run, Prev::At(prev), frame))
    }

    /// The same with values above 64 KiB kept apart, each once. They are durable when this returns, so it blocks.
    pub fn apart(run: RunId, prev: Prev, events: &[Event], blobs: &dyn Blobs) -> Result<Self, Error> {
        let frame = record::encode_apart(&run, events, record::closes(events), blobs)?;
        Ok(Self::of(run, prev, frame))
    }

    /// What happened at the desk.
    pub fn desk(prev: Prev, events: &[DeskEvent], blobs: &dyn Blobs) -> Result<Self, Error> {
        let run = RunId::desk();
        let frame = record::encode_apart(&run, events, false, blobs)?;
        Ok(Self::of(run, prev, frame))
    }

    fn of(run: RunId, prev: Prev, frame: Arc<[u8]>) -> Self {
        Self { run, prev, needs: None, ticket: Ticket::default(), frame }
    }

    /// It is written only if this other record is, and after it.
    #[must_use]
    pub fn needing(self, needs: Option<Ticket>) -> Self {
        Self { needs, ..self }
    }

    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// About how many bytes are stored.
    pub fn bytes(&self) -> usize {
        self.frame.len()
    }

    pub(crate) fn ends(&self) -> bool {
        record::ends(&self.frame)
    }

    /// The record before this one, if that is where the run stands and all that this one needs was written.
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

    pub(crate) fn at(self, lsn: Lsn, prev: Option<Lsn>) -> Record {
        let frame = record::sealed(&self.run, prev, &self.frame).into();
        Record { lsn, run: self.run, prev, frame }
    }
}

/// What became of an append that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// It is durable, and so is everything with a smaller number.
    At(Lsn),
    /// Nothing was written: the run's last record is another one than the caller thought. `None`: there is no such run.
    Conflict { tail: Option<Lsn> },
}

/// A record as it was written, its checksum verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub lsn: Lsn,
    pub run: RunId,
    pub prev: Option<Lsn>,
    frame: Arc<[u8]>,
}

impl Record {
    pub(crate) fn verified(lsn: Lsn, run: RunId, prev: Option<Lsn>, frame: &[u8]) -> Result<Self, Error> {
        if record::is_whole(&run, prev, frame) {
            Ok(Self { lsn, run, prev, frame: frame.into() })
        } else {
            Err(Error::Corrupt { run, lsn })
        }
    }

    /// The events with every value in its place.
    pub fn whole_events(&self, blobs: &dyn Blobs) -> Result<Vec<Event>, Error> {
        record::decode_whole(&self.frame, blobs).map_err(|cause| Error::Unreadable {
            run: self.run.clone(),
            lsn: self.lsn,
            cause,
        })
    }

    /// What happened at the desk.
    pub fn desk_events(&self, blobs: &dyn Blobs) -> Result<Vec<DeskEvent>, Error> {
        record::decode_whole(&self.frame, blobs).map_err(|cause| Error::Unreadable {
            run: self.run.clone(),
            lsn: self.lsn,
            cause,
        })
    }

    /// The events; where a large value is kept apart, a reference stands in its place.
    pub fn events(&self) -> Result<Vec<Event>, Error> {
        record::decode(&self.frame).map_err(|cause| Error::Unreadable {
            run: self.run.clone(),
            lsn: self.lsn,
            cause,
        })
    }

    /// Whether the run was closed with this record. It may have been opened again since.
    pub fn ends(&self) -> bool {
        record::ends(&self.frame)
    }

    /// The values kept apart that it names; those may name others, see [`crate::named_in`].
    pub fn names(&self) -> Vec<BlobId> {
        record::named(&self.frame)
    }

    pub fn frame(&self) -> &[u8] {
        &self.frame
    }
}

/// Finished runs that are to be removed, each with its last record and the numbers of all.
#[derive(Clone, Debug, Default)]
pub struct Forget(pub Vec<(RunId, Lsn, Vec<Lsn>)>);

/// Where every unfinished run stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tails {
    /// Opening the journal reads records from here on. The tails of unfinished runs that stand before it are kept apart.
    pub low_water: Lsn,
    /// The last record of all.
    pub last: Option<Lsn>,
    /// The last record of each unfinished run, in order of the runs' ids.
    pub unfinished: Vec<(RunId, Lsn)>,
}

/// The methods block while they read; `append` only hands over.
pub trait Journal: Send + Sync + std::fmt::Debug {
    /// A record of the same run, or one that this one needs, may have been handed over before and not be durable yet; if it is not
    /// written then this one is not either.
    /// Recovery relies on: an acknowledged record, and every record with a smaller number, is there after any crash; a
    /// record whose `prev` is not the run's last one is never written, whoever wins a race; records handed over by one
    /// thread get rising numbers. An error means that this record was not acknowledged; see [`Error::is_fatal`] for
    /// whether it may be tried again. A run may go on after a record that closed it.
    fn append(&self, append: Append) -> Pending<Appended>;

    /// The records of a run, newest first, at most `limit`: from its last one, or those before the given one of its own.
    /// Recovery relies on: all of them or an error, never a history with a hole; a damaged record is an error for its
    /// own run only. A run nobody has heard of has no records.
    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Result<Vec<Record>, Error>;

    /// Recovery relies on: every run whose last durable record does not close it is in the list, a damaged one too.
    fn tails(&self) -> Result<Tails, Error>;

    /// The records of all runs in order, from the given number on. May return fewer than `limit`; none only at the end.
    /// Whoever rebuilds something from the journal relies on: no record is left out, a damaged one is an error in its
    /// place and the rest goes on.
    fn scan(&self, from: Lsn, limit: usize) -> Result<Vec<Result<Record, Error>>, Error>;

    /// Removes finished runs with all their records and says which ones; one that has gone on, or ends with another record, is left
    /// as it is.
    /// Recovery relies on: each run is there whole or not at all after any crash; no number is given again; whatever else is in the
    /// journal is not touched. Files that belong to the run are removed afterwards, by whoever knows them.
    fn forget(&self, runs: Forget) -> Pending<Vec<RunId>>;

    /// Gives the room of what was removed back to the disk. Nothing is written meanwhile.
    fn compact(&self) -> Pending<()>;

    /// The history of a run, oldest first: all of it, or what came after a record.
    fn read(&self, run: &RunId, after: Option<Lsn>) -> Result<Vec<Record>, Error> {
        let mut records: Vec<Record> = Vec::new();
        loop {
            let before = records.last().map(|record| record.lsn);
            let page = self.back(run, before, 256)?;
            let full = page.len() == 256;
            let fresh = page.into_iter().take_while(|record| after.is_none_or(|after| record.lsn > after));
            let had = records.len();
            records.extend(fresh);
            if !full || records.len() - had < 256 {
                records.reverse();
                return Ok(records);
            }
        }
    }
}
