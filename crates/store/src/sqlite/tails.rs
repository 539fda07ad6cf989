//! Where every unfinished run stands: kept in memory, found again by reading the journal from its low-water mark.

use super::codes::of;
use super::read::{self, lsn, number};
use crate::error::Error;
use crate::journal::Lsn;
use rusqlite::Connection;
use std::collections::HashMap;
use std::path::Path;
use windlass_engine::RunId;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The run's number in the table of runs.
    pub(super) key: i64,
    pub(super) lsn: Lsn,
}

#[derive(Debug)]
pub(super) struct Tails {
    pub(super) unfinished: HashMap<RunId, Tail>,
    /// The table `idle`: the last record of each unfinished run that stood before the mark when the mark was set. An
    /// entry may be outdated; then a newer record stands after the mark.
    pub(super) idle: HashMap<i64, Lsn>,
    pub(super) low_water: u64,
    /// The last record of all, 0 when there is none, and its fingerprint where that is known.
    pub(super) last: u64,
    pub(super) last_seal: Vec<u8>,
    /// What the journal is called; one that was made before there were names has none.
    pub(super) id: Option<String>,
    /// How many records were removed on purpose. All of them stood before the mark.
    pub(super) removed: u64,
    /// Whether every number after `last` has to be there.
    gapless: bool,
    /// Numbers that had a record which cannot be found.
    lost: Vec<Lsn>,
}

impl Tails {
    pub(super) fn load(connection: &Connection, path: &Path) -> Result<Self, Error> {
        // One transaction: mark, idle runs and records have to be of one moment.
        let moment = connection.unchecked_transaction().map_err(of(path))?;
        let identity = read::identity(&moment);
        let (id, removed) = identity.map_or((None, 0), |(id, removed)| (Some(id), removed));
        let mut tails = Self {
            unfinished: HashMap::new(),
            idle: HashMap::new(),
            low_water: 1,
            last: 0,
            last_seal: Vec::new(),
            id,
            removed,
            gapless: removed == 0,
            lost: Vec::new(),
        };
        if !tails.load_mark(&moment).unwrap_or(false) {
            // What cannot be trusted is found again by reading everything.
            (tails.unfinished, tails.idle, tails.low_water) = (HashMap::new(), HashMap::new(), 1);
        }
        tails.last = tails.low_water.saturating_sub(1);
        tails.read_on(&moment, path)?;
        tails.gapless = true;
        Ok(tails)
    }

    /// Whether mark and idle runs are what was written.
    fn load_mark(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let mark = connection.query_row("SELECT low_water FROM mark", [], |row| row.get(0))?;
        self.low_water = lsn(mark).0.max(1);
        let sql = "SELECT idle.run, idle.tail, runs.run FROM idle LEFT JOIN runs ON runs.key = idle.run";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (key, tail) = (row.get(0)?, lsn(row.get(1)?));
            self.idle.insert(key, tail);
            if let Some(run) = read::run(row, 2)? {
                self.unfinished.insert(run, Tail { key, lsn: tail });
            }
        }
        if self.low_water == 1 && self.idle.is_empty() {
            return Ok(true);
        }
        let sealed: Vec<u8> = connection.query_row("SELECT mark_seal FROM identity", [], |row| row.get(0))?;
        let whole = sealed == seal(self.low_water, &self.idle);
        self.gapless |= whole;
        Ok(whole)
    }

    /// Reads every record after the last one that is known.
    pub(super) fn follow(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let moment = connection.unchecked_transaction().map_err(of(path))?;
        if read::identity(&moment).is_some_and(|(_, removed)| removed != self.removed) {
            drop(moment);
            *self = Self::load(connection, path)?;
            return Ok(());
        }
        self.read_on(&moment, path)
    }

    fn read_on(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        while let Err(error) = self.read_rows(connection, path) {
            let damaged = matches!(error, Error::Malformed { .. });
            // Without its end nobody knows which number the next record gets.
            if !damaged || read::last(connection, path)?.is_none_or(|last| self.last >= last.0) {
                return Err(error);
            }
            self.last += 1;
            self.lost.push(Lsn(self.last));
        }
        self.settle_losses();
        Ok(())
    }

    fn read_rows(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let sql = "SELECT journal.lsn, journal.run, runs.run, journal.prev, journal.body FROM journal
            LEFT JOIN runs ON runs.key = journal.run WHERE journal.lsn > ?1 ORDER BY journal.lsn";
        let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
        let mut rows = statement.query([number(Lsn(self.last))]).map_err(of(path))?;
        while let Some(row) = rows.next().map_err(of(path))? {
            let at = lsn(row.get(0).map_err(of(path))?);
            if self.gapless && at.0 > self.last + 1 {
                self.lost.push(Lsn(self.last + 1));
            }
            let key: i64 = row.get(1).map_err(of(path))?;
            let (found, prev) = read::record(row, [0, 2, 3, 4]).map_err(of(path))?;
            self.last_seal.clear();
            match found {
                Ok(record) => {
                    self.last_seal.extend(crate::record::seal(record.frame()));
                    self.step(&record.run, Tail { key, lsn: record.lsn }, record.ends());
                }
                Err(Error::Corrupt { run, lsn }) => {
                    self.hurt(connection, path, Tail { key, lsn }, run, prev)?;
                }
                Err(Error::Orphan { lsn }) => self.hurt_owner(connection, path, prev, lsn)?,
                Err(other) => return Err(other),
            }
            self.last = self.last.max(at.0);
        }
        Ok(())
    }

    /// Nobody knows whose a lost record was. Runs that have gone on since are known by what they follow; any other may have lost its
    /// end and must not go on without: what was lost becomes its tail, so that reading the run finds the damage.
    fn settle_losses(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        let Some(latest) = lost.iter().max() else { return };
        for tail in self.unfinished.values_mut().filter(|tail| tail.lsn < *latest) {
            tail.lsn = lost.iter().copied().filter(|lost| *lost > tail.lsn).min().unwrap_or(tail.lsn);
        }
    }

    /// A record was added to a run.
    pub(super) fn step(&mut self, run: &RunId, tail: Tail, ends: bool) {
        if ends {
            self.unfinished.remove(run);
        } else if let Some(known) = self.unfinished.get_mut(run) {
            *known = tail;
        } else {
            self.unfinished.insert(run.clone(), tail);
        }
    }

    /// A damaged record becomes its run's tail, so that reading the run finds the damage. If it does not follow what that
    /// run had, the run's name itself may be what is damaged: then the run it follows must not go on without it either.
    fn hurt(
        &mut self,
        connection: &Connection,
        path: &Path,
        tail: Tail,
        run: RunId,
        prev: Option<Lsn>,
    ) -> Result<(), Error> {
        let follows = self.lsn(&run) == prev;
        self.unfinished.insert(run, tail);
        if follows { Ok(()) } else { self.hurt_owner(connection, path, prev, tail.lsn) }
    }

    fn hurt_owner(
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
            && self.lsn(&run) == Some(prev)
        {
            self.unfinished.insert(run, Tail { key, lsn: at });
        }
        Ok(())
    }

    pub(super) fn lsn(&self, run: &RunId) -> Option<Lsn> {
        self.unfinished.get(run).map(|tail| tail.lsn)
    }

    pub(super) fn shown(&self) -> crate::journal::Tails {
        let mut unfinished: Vec<_> = self
            .unfinished
            .iter()
            .filter(|(run, _)| !run.is_desk())
            .map(|(run, tail)| (run.clone(), tail.lsn))
            .collect();
        unfinished.sort_unstable();
        crate::journal::Tails {
            low_water: Lsn(self.low_water),
            last: (self.last > 0).then_some(Lsn(self.last)),
            unfinished,
        }
    }

    /// Which rows of `idle` are right once the mark is moved there: those of all unfinished runs that stand before it.
    pub(super) fn idle_before(&self, low_water: u64) -> HashMap<i64, Lsn> {
        let tails = self.unfinished.values().filter(|tail| tail.lsn.0 < low_water);
        tails.map(|tail| (tail.key, tail.lsn)).collect()
    }
}

/// A checksum of the mark and of the idle runs: if they are not what was written, runs would be forgotten or stand where they do not.
pub(super) fn seal(low_water: u64, idle: &HashMap<i64, Lsn>) -> Vec<u8> {
    let mut sorted: Vec<_> = idle.iter().collect();
    sorted.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&low_water.to_le_bytes());
    for (run, tail) in sorted {
        hasher.update(&run.to_le_bytes()).update(&tail.0.to_le_bytes());
    }
    hasher.finalize().as_bytes()[..8].to_vec()
}
