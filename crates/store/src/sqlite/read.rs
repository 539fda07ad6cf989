//! Reads `journal.db`: a few threads, each with a connection, and the statements that need no writer.

use super::codes::of;
use super::schema;
use super::tails;
use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::pending::Pending;
use crate::plans::StoredPlan;
use rusqlite::{Connection, Row};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use windlass_engine::RunId;

/// A scan stops after reading this much.
const SCAN_BYTES: usize = 4 << 20;

/// The number of reader threads.
const THREADS: usize = 3;

type Job = Box<dyn FnOnce(&mut Option<Connection>, &Path) + Send>;

/// The threads that read one file. They end with the last job after this is dropped.
pub(super) struct Readers {
    path: PathBuf,
    jobs: mpsc::Sender<Job>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, file) = (queue.clone(), path.clone());
            let work = move || {
                let mut connection = None;
                // Held while this thread waits for a job, so that one thread waits for the queue and the others for
                // that one.
                let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok(job) = next() {
                    job(&mut connection, &file);
                }
            };
            let thread = std::thread::Builder::new().name("reader".into()).spawn(work);
            thread.map_err(|error| Error::io(&path, &error))?;
        }
        Ok(Self { path, jobs })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads on one of the threads.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, &Path) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T> {
        let (answer, pending) = Pending::waiting();
        self.run(Box::new(move |connection, path| answer.send(with(connection, path, read))));
        pending
    }

    /// Runs a job on one of the threads. If they are gone, dropping the job reports that the store has stopped.
    pub(super) fn run(&self, job: Job) {
        drop(self.jobs.send(job));
    }
}

/// Reads with a connection, which is opened first if there is none and dropped after an error.
fn with<T>(
    kept: &mut Option<Connection>,
    path: &Path,
    read: impl FnOnce(&Connection, &Path) -> Result<T, Error>,
) -> Result<T, Error> {
    let connection = match kept.take() {
        Some(connection) => connection,
        None => schema::open_reader(path)?,
    };
    let found = read(&connection, path)?;
    *kept = Some(connection);
    Ok(found)
}

pub(super) fn number(lsn: Lsn) -> i64 {
    i64::try_from(lsn.0).unwrap_or(i64::MAX)
}

/// A negative number can only be damage; it becomes a number that no record has.
pub(super) fn lsn(number: i64) -> Lsn {
    Lsn(u64::try_from(number).unwrap_or(0))
}

/// A run's id; `None` if it is missing or damaged.
pub(super) fn run(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RunId>> {
    let text = row.get_ref(column)?.as_bytes_or_null().ok().flatten();
    Ok(text.and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(RunId::written))
}

/// Selects number, run, previous record, body, key of the run, and whether the run was removed.
pub(super) const RECORDS: &str =
    "SELECT journal.lsn, runs.run, journal.prev, journal.body, journal.run, removed.key
    FROM journal LEFT JOIN runs ON runs.key = journal.run LEFT JOIN removed ON removed.key = journal.run";

/// A record, or the damage in its place.
pub(super) type Found = Result<Record, Error>;

/// The record in a row of [`RECORDS`], `None` if its run was removed, and the record it claims to follow. Column
/// types are not trusted either: anything in the row is a record or damage.
pub(super) fn record(row: &Row<'_>) -> rusqlite::Result<(Option<Found>, Option<Lsn>)> {
    let (at, prev) = (lsn(row.get(0)?), row.get_ref(2)?.as_i64_or_null().ok().flatten().map(lsn));
    let found = match run(row, 1)? {
        Some(run) => {
            let frame = row.get_ref(3)?.as_bytes().unwrap_or_default();
            Some(Record::verified(at, run, prev, frame))
        }
        None if row.get::<_, Option<i64>>(5)?.is_some() => None,
        None => Some(Err(Error::Orphan { lsn: at })),
    };
    Ok((found, prev))
}

/// A record, damage, or nothing.
pub(super) fn at(
    connection: &Connection,
    path: &Path,
    lsn: Lsn,
) -> Result<Option<Result<Record, Error>>, Error> {
    let mut statement =
        connection.prepare_cached(&format!("{RECORDS} WHERE journal.lsn = ?1")).map_err(of(path))?;
    let mut rows = statement.query([number(lsn)]).map_err(of(path))?;
    match rows.next().map_err(of(path)) {
        Ok(Some(row)) => Ok(record(row).map_err(of(path))?.0),
        Ok(None) => Ok(None),
        // Its page is damaged.
        Err(Error::Malformed { .. }) => Ok(Some(Err(Error::Orphan { lsn }))),
        Err(error) => Err(error),
    }
}

/// The last record of all.
pub(super) fn last(connection: &Connection, path: &Path) -> Result<Option<Lsn>, Error> {
    let mut statement = connection.prepare_cached("SELECT max(lsn) FROM journal").map_err(of(path))?;
    let last = statement.query_row([], |row| row.get::<_, Option<i64>>(0)).map_err(of(path))?;
    Ok(last.map(lsn))
}

/// Where reading a run begins.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// At its last record, which is newer than its row.
    Tail(Lsn),
    /// At the record that its row names.
    Row,
    /// Before this record of its own.
    Before(Lsn),
}

impl Start {
    pub(super) fn of(tails: &tails::Tails, run: &RunId) -> Self {
        match tails.recent.get(run) {
            Some(tail) => Self::Tail(tail.lsn),
            None if tails.whole => Self::Row,
            // All existing runs would be recent.
            None => Self::Before(Lsn(0)),
        }
    }
}

/// Records of a run, newest first: at most `limit`, and only those after the given one.
pub(super) fn back(
    connection: &Connection,
    path: &Path,
    run: &RunId,
    start: Start,
    limit: usize,
    after: Option<Lsn>,
) -> Result<Vec<Record>, Error> {
    // One snapshot of the database, instead of one per record.
    let _look = connection.unchecked_transaction().map_err(of(path))?;
    let mut next = match start {
        Start::Before(before) => prev_of(connection, path, run, before)?,
        Start::Tail(tail) => Some(tail),
        Start::Row => stored_tail(connection, path, run)?,
    };
    let mut found = Vec::new();
    while let Some(at) = next.filter(|at| found.len() < limit && after.is_none_or(|after| *at > after)) {
        let record = of_run(connection, path, run, at)?;
        // A chain that does not lead back would never end.
        next = record.prev.filter(|prev| *prev < at);
        found.push(record);
    }
    Ok(found)
}

/// The record with this number, which must belong to this run: anything else is a gap in its history.
pub(super) fn of_run(connection: &Connection, path: &Path, run: &RunId, lsn: Lsn) -> Result<Record, Error> {
    match at(connection, path, lsn)? {
        Some(Ok(record)) if record.run == *run => Ok(record),
        Some(_) | None => Err(Error::Corrupt { run: run.clone(), lsn }),
    }
}

/// The record before one of this run; `None` if it is not one of its own.
fn prev_of(connection: &Connection, path: &Path, run: &RunId, lsn: Lsn) -> Result<Option<Lsn>, Error> {
    match at(connection, path, lsn)? {
        Some(Ok(record)) if record.run == *run => Ok(record.prev),
        Some(Err(_)) => Err(Error::Corrupt { run: run.clone(), lsn }),
        Some(Ok(_)) | None => Ok(None),
    }
}

/// The last record of a run according to its row. The rows of closed runs have no checksum, so the record must close
/// the run.
fn stored_tail(connection: &Connection, path: &Path, run: &RunId) -> Result<Option<Lsn>, Error> {
    let Some((tail, closed)) = tails::stored(connection, path, run)? else { return Ok(None) };
    if !closed || of_run(connection, path, run, tail)?.ends() {
        Ok(Some(tail))
    } else {
        Err(Error::Corrupt { run: run.clone(), lsn: tail })
    }
}

pub(super) fn scan(
    connection: &Connection,
    path: &Path,
    from: Lsn,
    limit: usize,
) -> Result<Vec<Result<Record, Error>>, Error> {
    let (mut found, mut next, mut room) = (Vec::new(), from, SCAN_BYTES);
    while let Err(error) = scan_on(connection, path, &mut next, limit, &mut room, &mut found) {
        // An unreadable page is reported in its place like any other damage, and the scan continues after it.
        let damaged = matches!(error, Error::Malformed { .. });
        if !damaged || last(connection, path)?.is_none_or(|last| next > last) {
            return Err(error);
        }
        found.push(Err(Error::Orphan { lsn: next }));
        next = Lsn(next.0 + 1);
    }
    Ok(found)
}

/// Reads from `next` on and sets it to the number after the last one found.
fn scan_on(
    connection: &Connection,
    path: &Path,
    next: &mut Lsn,
    limit: usize,
    room: &mut usize,
    found: &mut Vec<Result<Record, Error>>,
) -> Result<(), Error> {
    let sql = format!("{RECORDS} WHERE journal.lsn >= ?1 ORDER BY journal.lsn");
    let mut statement = connection.prepare_cached(&sql).map_err(of(path))?;
    let mut rows = statement.query([number(*next)]).map_err(of(path))?;
    while found.len() < limit && *room > 0 {
        let Some(row) = rows.next().map_err(of(path))? else { break };
        // Never backwards: on a damaged page, numbers may be in any order.
        let at = lsn(row.get(0).map_err(of(path))?);
        *next = (*next).max(Lsn(at.0 + 1));
        let Some(record) = record(row).map_err(of(path))?.0 else { continue };
        *room = room.saturating_sub(record.as_ref().map_or(0, |record| record.frame().len()));
        found.push(record);
    }
    Ok(())
}

pub(super) fn plan(connection: &Connection, path: &Path, digest: &str) -> Result<Option<StoredPlan>, Error> {
    let sql = "SELECT format, plan, source, overrides, checksum FROM plans WHERE digest = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
    let mut rows = statement.query([digest]).map_err(of(path))?;
    let row = match rows.next().map_err(of(path)) {
        Ok(Some(row)) => row,
        Ok(None) => return Ok(None),
        Err(Error::Malformed { .. }) => return Err(Error::CorruptPlan { digest: digest.into() }),
        Err(error) => return Err(error),
    };
    let stored = stored_plan(row, digest).ok().filter(|(plan, checksum)| plan.checksum() == **checksum);
    match stored {
        Some((plan, _)) => Ok(Some(plan)),
        None => Err(Error::CorruptPlan { digest: digest.into() }),
    }
}

fn stored_plan(row: &Row<'_>, digest: &str) -> rusqlite::Result<(StoredPlan, Vec<u8>)> {
    let (format, plan, source, overrides) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    Ok((StoredPlan { digest: digest.into(), format, plan, source, overrides }, row.get(4)?))
}

/// The name of this journal, and how many records were removed from it on purpose. Journals created before names were
/// introduced have none.
pub(super) fn identity(connection: &Connection) -> Option<(String, u64)> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, lsn(row.get(1)?).0));
    connection.prepare_cached("SELECT id, removed FROM identity").ok()?.query_row([], read).ok()
}

pub(super) fn plans(connection: &Connection, path: &Path) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached("SELECT digest FROM plans").map_err(of(path))?;
    let digests = statement.query_map([], |row| row.get(0)).map_err(of(path))?;
    digests.collect::<rusqlite::Result<_>>().map_err(of(path))
}

/// The maximum number of problems listed for a file.
const FAULTS_MAX: usize = 20;

/// Problems that SQLite itself finds in a file, and tables that contradict each other.
pub(super) fn faults(connection: &Connection, path: &Path) -> Result<Vec<String>, Error> {
    let sql = format!("PRAGMA integrity_check({FAULTS_MAX})");
    let mut statement = connection.prepare(&sql).map_err(of(path))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0)).map_err(of(path))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>().map_err(of(path))?;
    let mut faults: Vec<String> = lines.into_iter().filter(|line| line != "ok").collect();
    let both = "SELECT count(*) FROM removed WHERE key IN (SELECT key FROM runs)";
    let both: i64 = connection.query_row(both, [], |row| row.get(0)).map_err(of(path))?;
    if both > 0 {
        faults.push(format!("{both} runs are listed as removed, but still exist"));
    }
    Ok(faults)
}

/// The number of records, and the expected number.
pub(super) fn count(connection: &Connection, path: &Path) -> Result<(u64, u64), Error> {
    let moment = connection.unchecked_transaction().map_err(of(path))?;
    let count = moment.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).map_err(of(path))?;
    let applied = super::rows::reach(&moment).map_or(0, |reach| reach.applied);
    let last = last(&moment, path)?.map_or(0, |last| last.0).max(applied);
    let removed = identity(&moment).map_or(0, |(_, removed)| removed);
    Ok((lsn(count).0, last.saturating_sub(removed)))
}

/// The size of the file in bytes, and how much of it is free.
pub(super) fn room(connection: &Connection, path: &Path) -> Result<(u64, u64), Error> {
    let number = |pragma| {
        let read = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        read.map(|number| lsn(number).0).map_err(of(path))
    };
    let page = number("page_size")?;
    Ok((number("page_count")? * page, number("freelist_count")? * page))
}
