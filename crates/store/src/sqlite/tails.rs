//! The last record of every run: in memory for runs with a record newer than the rows, in the row for all others.

use super::codes::of;
use super::read::{self, lsn, number};
use super::rows;
use crate::error::Error;
use crate::journal::Lsn;
use crate::view::Wake;
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::path::Path;
use windlass_engine::RunId;

/// A read-only process starts over when it holds this many.
const RECENT_MAX: usize = 10_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The run's number in the table of runs.
    pub(super) key: i64,
    pub(super) lsn: Lsn,
    pub(super) closed: bool,
    pub(super) wake: Wake,
}

#[derive(Clone, Debug)]
pub(super) struct Tails {
    /// Runs with a record newer than the rows.
    pub(super) recent: HashMap<RunId, Tail>,
    /// The last record in the rows.
    pub(super) applied: u64,
    /// Whether the rows are as written. If not, every run is in `recent`.
    pub(super) whole: bool,
    /// The last record of all, 0 if there is none, and its fingerprint if known.
    pub(super) last: u64,
    pub(super) last_seal: Vec<u8>,
    /// The name of the journal; journals created before names were introduced have none.
    pub(super) id: Option<String>,
    /// How many records of removed runs were deleted. All of them were before `applied`.
    pub(super) removed: u64,
    /// Whether every number after `last` must exist.
    gapless: bool,
    /// Numbers of records that cannot be found.
    lost: Vec<Lsn>,
}

impl Tails {
    pub(super) fn load(connection: &Connection, path: &Path) -> Result<Self, Error> {
        // One transaction: rows and records must be consistent.
        let moment = connection.unchecked_transaction().map_err(of(path))?;
        let identity = read::identity(&moment);
        let (id, removed) = identity.map_or((None, 0), |(id, removed)| (Some(id), removed));
        let sealed = |reach: &rows::Reach| {
            rows::sum(&moment).is_ok_and(|sum| reach.seal == rows::seal(reach.applied, sum))
        };
        let reach = rows::reach(&moment).filter(sealed);
        // Rows that are not as written are replaced by reading everything.
        let applied = reach.as_ref().map_or(0, |reach| reach.applied);
        let mut tails = Self {
            recent: HashMap::new(),
            applied,
            whole: reach.is_some(),
            last: applied,
            last_seal: Vec::new(),
            id,
            removed,
            gapless: reach.is_some() || removed == 0,
            lost: Vec::new(),
        };
        tails.read_on(&moment, path)?;
        tails.gapless = true;
        if tails.last_seal.is_empty()
            && let Some(Ok(last)) = read::at(&moment, path, Lsn(tails.last))?
        {
            tails.last_seal.extend(crate::record::seal(last.frame()));
        }
        Ok(tails)
    }

    /// Reads every record after the last known one.
    pub(super) fn follow(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let moment = connection.unchecked_transaction().map_err(of(path))?;
        let deleted = read::identity(&moment).is_some_and(|(_, removed)| removed != self.removed);
        if deleted || self.recent.len() > RECENT_MAX && self.whole {
            drop(moment);
            *self = Self::load(connection, path)?;
            return Ok(());
        }
        self.read_on(&moment, path)
    }

    fn read_on(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        while let Err(error) = self.read_rows(connection, path) {
            let damaged = matches!(error, Error::Malformed { .. });
            // Without its end, the number of the next record is unknown.
            if !damaged || read::last(connection, path)?.is_none_or(|last| self.last >= last.0) {
                return Err(error);
            }
            self.last += 1;
            self.lost.push(Lsn(self.last));
        }
        self.settle_losses(connection, path)
    }

    fn read_rows(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let sql = format!("{} WHERE journal.lsn > ?1 ORDER BY journal.lsn", read::RECORDS);
        let mut statement = connection.prepare_cached(&sql).map_err(of(path))?;
        let mut rows = statement.query([number(Lsn(self.last))]).map_err(of(path))?;
        while let Some(row) = rows.next().map_err(of(path))? {
            let at = lsn(row.get(0).map_err(of(path))?);
            if self.gapless && at.0 > self.last + 1 {
                self.lost.push(Lsn(self.last + 1));
            }
            let key: i64 = row.get(4).map_err(of(path))?;
            let (found, prev) = read::record(row).map_err(of(path))?;
            self.last_seal.clear();
            match found {
                Some(Ok(record)) => {
                    self.last_seal.extend(crate::record::seal(record.frame()));
                    let tail = Tail { key, lsn: record.lsn, closed: record.ends(), wake: Wake::Unknown };
                    self.recent.insert(record.run, tail);
                }
                // The run was removed.
                None => self.recent.retain(|_, tail| tail.key != key),
                Some(Err(Error::Corrupt { run, lsn })) => {
                    let tail = Tail { key, lsn, closed: false, wake: Wake::Unknown };
                    self.damage(connection, path, tail, run, prev)?;
                }
                Some(Err(Error::Orphan { lsn })) => self.damage_owner(connection, path, prev, lsn)?,
                Some(Err(other)) => return Err(other),
            }
            self.last = self.last.max(at.0);
        }
        Ok(())
    }

    /// A lost record may have belonged to any run. Runs with later records are checked by what those follow. Any
    /// other run may have lost its end and must not continue without it: the lost record becomes its tail, so that
    /// reading the run finds the damage.
    fn settle_losses(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let lost = std::mem::take(&mut self.lost);
        let Some(latest) = lost.iter().max() else { return Ok(()) };
        for (run, tail) in self.stored_open(connection, path)? {
            self.recent.entry(run).or_insert(tail);
        }
        for tail in self.recent.values_mut().filter(|tail| !tail.closed && tail.lsn < *latest) {
            tail.lsn = lost.iter().copied().filter(|lost| *lost > tail.lsn).min().unwrap_or(tail.lsn);
        }
        Ok(())
    }

    /// The runs whose rows say that they are not closed.
    fn stored_open(&self, connection: &Connection, path: &Path) -> Result<Vec<(RunId, Tail)>, Error> {
        if !self.whole {
            return Ok(Vec::new());
        }
        let sql = "SELECT run, tail, key FROM runs WHERE closed = 0";
        let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
        let read = |row: &rusqlite::Row<'_>| {
            let tail = Tail { key: row.get(2)?, lsn: lsn(row.get(1)?), closed: false, wake: Wake::Unknown };
            Ok(read::run(row, 0)?.map(|run| (run, tail)))
        };
        let found = statement.query_map([], read).map_err(of(path))?;
        found.filter_map(Result::transpose).collect::<rusqlite::Result<_>>().map_err(of(path))
    }

    /// A damaged record becomes its run's tail, so that reading the run finds the damage. If it does not follow the
    /// run's last record, the name of the run may be what is damaged: then the run it does follow must not continue
    /// either.
    fn damage(
        &mut self,
        connection: &Connection,
        path: &Path,
        tail: Tail,
        run: RunId,
        prev: Option<Lsn>,
    ) -> Result<(), Error> {
        let follows = self.lsn(connection, path, &run)? == prev;
        self.recent.insert(run, tail);
        if follows { Ok(()) } else { self.damage_owner(connection, path, prev, tail.lsn) }
    }

    fn damage_owner(
        &mut self,
        connection: &Connection,
        path: &Path,
        prev: Option<Lsn>,
        at: Lsn,
    ) -> Result<(), Error> {
        let sql = "SELECT journal.run, runs.run FROM journal JOIN runs ON runs.key = journal.run WHERE journal.lsn = ?1";
        let Some(prev) = prev else { return Ok(()) };
        let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
        let mut rows = statement.query([number(prev)]).map_err(of(path))?;
        let Some(row) = rows.next().map_err(of(path))? else { return Ok(()) };
        let key = row.get(0).map_err(of(path))?;
        if let Some(run) = read::run(row, 1).map_err(of(path))?
            && self.lsn(connection, path, &run)? == Some(prev)
        {
            self.recent.insert(run, Tail { key, lsn: at, closed: false, wake: Wake::Unknown });
        }
        Ok(())
    }

    /// The run's last record.
    fn lsn(&self, connection: &Connection, path: &Path, run: &RunId) -> Result<Option<Lsn>, Error> {
        if let Some(tail) = self.recent.get(run) {
            return Ok(Some(tail.lsn));
        }
        if !self.whole {
            return Ok(None);
        }
        Ok(stored(connection, path, run)?.map(|(lsn, _)| lsn))
    }

    pub(super) fn shown(&self, connection: &Connection, path: &Path) -> Result<crate::journal::Tails, Error> {
        let stored = self.stored_open(connection, path)?;
        let stored = stored.into_iter().filter(|(run, _)| !self.recent.contains_key(run));
        let recent = self.recent.iter().filter(|(_, tail)| !tail.closed);
        let all = stored.chain(recent.map(|(run, tail)| (run.clone(), *tail)));
        let mut unfinished: Vec<_> =
            all.filter(|(run, _)| !run.is_coordinator()).map(|(run, tail)| (run, tail.lsn)).collect();
        unfinished.sort_unstable();
        Ok(crate::journal::Tails {
            low_water: Lsn(self.applied + 1),
            last: (self.last > 0).then_some(Lsn(self.last)),
            unfinished,
        })
    }
}

/// The last record of a run according to its row, and whether it closes the run.
pub(super) fn stored(
    connection: &Connection,
    path: &Path,
    run: &RunId,
) -> Result<Option<(Lsn, bool)>, Error> {
    let sql = "SELECT tail, closed FROM runs WHERE run = ?1 AND closed IS NOT NULL";
    let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
    let read = |row: &rusqlite::Row<'_>| Ok((lsn(row.get(0)?), row.get(1)?));
    statement.query_row([run.as_str()], read).optional().map_err(of(path))
}
