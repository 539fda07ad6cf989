//! Reading `journal.db`: connections that come and go, and the statements that need no writer.

use super::codes::of;
use super::schema;
use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::plans::StoredPlan;
use rusqlite::{Connection, OptionalExtension as _, Row};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use windlass_engine::RunId;

/// A scan stops when it has read this much.
const SCAN_BYTES: usize = 4 << 20;

/// Connections kept for the next one who reads.
const KEPT_MAX: usize = 4;

/// Connections to one file, opened when all others are in use.
pub(super) struct Readers {
    path: PathBuf,
    /// Held to take one or to give it back.
    free: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, free: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => schema::open_reader(&self.path)?,
        };
        let result = read(&connection)?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT_MAX {
            free.push(connection);
        }
        Ok(result)
    }
}

pub(super) fn number(lsn: Lsn) -> i64 {
    i64::try_from(lsn.0).unwrap_or(i64::MAX)
}

/// A negative number can only be damage; it becomes one that no record has.
pub(super) fn lsn(number: i64) -> Lsn {
    Lsn(u64::try_from(number).unwrap_or(0))
}

/// A run's id; `None` when there is none or it is damaged.
pub(super) fn run(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<RunId>> {
    let text = row.get_ref(column)?.as_bytes_or_null().ok().flatten();
    Ok(text.and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(RunId::written))
}

/// The record in a row whose columns are number, run, previous and body; and which record it says it follows. Types are
/// not trusted either: whatever the row holds, it is a record or damage.
pub(super) fn record(
    row: &Row<'_>,
    [at, name, before, body]: [usize; 4],
) -> rusqlite::Result<(Result<Record, Error>, Option<Lsn>)> {
    let (at, prev) = (lsn(row.get(at)?), row.get_ref(before)?.as_i64_or_null().ok().flatten().map(lsn));
    let Some(run) = run(row, name)? else { return Ok((Err(Error::Orphan { lsn: at }), prev)) };
    let frame = row.get_ref(body)?.as_bytes().unwrap_or_default();
    Ok((Record::verified(at, run, prev, frame), prev))
}

/// What can be read at this number: a record, damage, or nothing.
pub(super) fn at(
    connection: &Connection,
    path: &Path,
    lsn: Lsn,
) -> Result<Option<Result<Record, Error>>, Error> {
    let sql = "SELECT journal.lsn, runs.run, journal.prev, journal.body FROM journal
        LEFT JOIN runs ON runs.key = journal.run WHERE journal.lsn = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
    let mut rows = statement.query([number(lsn)]).map_err(of(path))?;
    match rows.next().map_err(of(path)) {
        Ok(Some(row)) => Ok(Some(record(row, [0, 1, 2, 3]).map_err(of(path))?.0)),
        Ok(None) => Ok(None),
        // The page that it stands on is damaged.
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

/// `unfinished` is the run's last record if the run is not finished; the last one of a finished run is in its own row.
pub(super) fn back(
    connection: &Connection,
    path: &Path,
    run: &RunId,
    before: Option<Lsn>,
    unfinished: Option<Lsn>,
    limit: usize,
) -> Result<Vec<Record>, Error> {
    // One look at the database, and not one for each record.
    let _look = connection.unchecked_transaction().map_err(of(path))?;
    let mut next = match (before, unfinished) {
        (Some(before), _) => prev_of(connection, path, run, before)?,
        (None, Some(tail)) => Some(tail),
        (None, None) => finished_tail(connection, path, run)?,
    };
    let mut found = Vec::new();
    while let Some(at) = next.filter(|_| found.len() < limit) {
        let record = of_run(connection, path, run, at)?;
        // A chain that does not lead back would never end.
        next = record.prev.filter(|prev| *prev < at);
        found.push(record);
    }
    Ok(found)
}

/// The record with this number, which has to be one of this run: anything else is a hole in its history.
fn of_run(connection: &Connection, path: &Path, run: &RunId, lsn: Lsn) -> Result<Record, Error> {
    match at(connection, path, lsn)? {
        Some(Ok(record)) if record.run == *run => Ok(record),
        Some(_) | None => Err(Error::Corrupt { run: run.clone(), lsn }),
    }
}

/// What came before a record of this run; nothing if it is not one of its own.
fn prev_of(connection: &Connection, path: &Path, run: &RunId, lsn: Lsn) -> Result<Option<Lsn>, Error> {
    match at(connection, path, lsn)? {
        Some(Ok(record)) if record.run == *run => Ok(record.prev),
        Some(Err(_)) => Err(Error::Corrupt { run: run.clone(), lsn }),
        Some(Ok(_)) | None => Ok(None),
    }
}

/// The record that closed a run. Its number stands in a row without a checksum, so it has to be one that closes.
fn finished_tail(connection: &Connection, path: &Path, run: &RunId) -> Result<Option<Lsn>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT tail FROM runs WHERE run = ?1").map_err(of(path))?;
    let tail = statement
        .query_row([run.as_str()], |row| row.get::<_, Option<i64>>(0))
        .optional()
        .map_err(of(path))?;
    let Some(tail) = tail.flatten().map(lsn) else { return Ok(None) };
    if of_run(connection, path, run, tail)?.ends() {
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
        // A page that cannot be read has its place like any other damage, and what stands behind it is read.
        let damaged = matches!(error, Error::Malformed { .. });
        if !damaged || last(connection, path)?.is_none_or(|last| next > last) {
            return Err(error);
        }
        found.push(Err(Error::Orphan { lsn: next }));
        next = Lsn(next.0 + 1);
    }
    Ok(found)
}

/// Reads from `next` on, which then is the number after the last one found.
fn scan_on(
    connection: &Connection,
    path: &Path,
    next: &mut Lsn,
    limit: usize,
    room: &mut usize,
    found: &mut Vec<Result<Record, Error>>,
) -> Result<(), Error> {
    let sql = "SELECT journal.lsn, runs.run, journal.prev, journal.body FROM journal
        LEFT JOIN runs ON runs.key = journal.run WHERE journal.lsn >= ?1 ORDER BY journal.lsn";
    let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
    let mut rows = statement.query([number(*next)]).map_err(of(path))?;
    while found.len() < limit && *room > 0 {
        let Some(row) = rows.next().map_err(of(path))? else { break };
        let (record, _) = record(row, [0, 1, 2, 3]).map_err(of(path))?;
        *room = room.saturating_sub(record.as_ref().map_or(0, |record| record.frame().len()));
        // Never back: on a damaged page numbers may stand in any order.
        let at = lsn(row.get(0).map_err(of(path))?);
        *next = (*next).max(Lsn(at.0 + 1));
        found.push(record);
    }
    Ok(())
}

pub(super) fn has_plan(connection: &Connection, path: &Path, digest: &str) -> Result<bool, Error> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM plans WHERE digest = ?1").map_err(of(path))?;
    statement.exists([digest]).map_err(of(path))
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

/// What this journal is called, and how many records were removed from it on purpose. One that was made before there were names
/// has none.
pub(super) fn identity(connection: &Connection) -> Option<(String, u64)> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, lsn(row.get(1)?).0));
    connection.prepare_cached("SELECT id, removed FROM identity").ok()?.query_row([], read).ok()
}

pub(super) fn plans(connection: &Connection, path: &Path) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare_cached("SELECT digest FROM plans").map_err(of(path))?;
    let digests = statement.query_map([], |row| row.get(0)).map_err(of(path))?;
    digests.collect::<rusqlite::Result<_>>().map_err(of(path))
}

/// The most faults of a file that are listed.
const FAULTS_MAX: usize = 20;

/// What SQLite itself finds wrong with a file.
pub(super) fn faults(connection: &Connection, path: &Path) -> Result<Vec<String>, Error> {
    let sql = format!("PRAGMA integrity_check({FAULTS_MAX})");
    let mut statement = connection.prepare(&sql).map_err(of(path))?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0)).map_err(of(path))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>().map_err(of(path))?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// How many records there are, and how many there have to be.
pub(super) fn count(connection: &Connection, path: &Path) -> Result<(u64, u64), Error> {
    let moment = connection.unchecked_transaction().map_err(of(path))?;
    let count = moment.query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).map_err(of(path))?;
    let mark = moment.query_row("SELECT low_water FROM mark", [], |row| row.get(0)).map_err(of(path))?;
    let last = last(&moment, path)?.map_or(0, |last| last.0).max(lsn(mark).0.saturating_sub(1));
    let removed = identity(&moment).map_or(0, |(_, removed)| removed);
    Ok((lsn(count).0, last.saturating_sub(removed)))
}

/// How many bytes the file has, and how many of those nothing stands on.
pub(super) fn room(connection: &Connection, path: &Path) -> Result<(u64, u64), Error> {
    let number = |pragma| {
        let read = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        read.map(|number| lsn(number).0).map_err(of(path))
    };
    let page = number("page_size")?;
    Ok((number("page_count")? * page, number("freelist_count")? * page))
}
