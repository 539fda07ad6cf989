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
    /// The last record of all, 0 when there is none.
    pub(super) last: u64,
}

impl Tails {
    pub(super) fn load(connection: &Connection, path: &Path) -> Result<Self, Error> {
        // One transaction: mark, idle runs and records have to be of one moment.
        let moment = connection.unchecked_transaction().map_err(of(path))?;
        let mark: i64 =
            moment.query_row("SELECT low_water FROM mark", [], |row| row.get(0)).map_err(of(path))?;
        let low_water = lsn(mark).0;
        let mut tails = Self {
            unfinished: HashMap::new(),
            idle: HashMap::new(),
            low_water,
            last: low_water.saturating_sub(1),
        };
        tails.load_idle(&moment, path)?;
        tails.follow(&moment, path)?;
        Ok(tails)
    }

    fn load_idle(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let sql = "SELECT idle.run, idle.tail, runs.run FROM idle JOIN runs ON runs.key = idle.run";
        let mut statement = connection.prepare(sql).map_err(of(path))?;
        let mut rows = statement.query([]).map_err(of(path))?;
        while let Some(row) = rows.next().map_err(of(path))? {
            let (key, tail) = (row.get(0).map_err(of(path))?, lsn(row.get(1).map_err(of(path))?));
            self.idle.insert(key, tail);
            if let Some(run) = read::run(row, 2).map_err(of(path))? {
                self.unfinished.insert(run, Tail { key, lsn: tail });
            }
        }
        Ok(())
    }

    /// Reads every record after the last one that is known.
    pub(super) fn follow(&mut self, connection: &Connection, path: &Path) -> Result<(), Error> {
        let sql = "SELECT journal.lsn, journal.run, runs.run, journal.prev, journal.body FROM journal
            LEFT JOIN runs ON runs.key = journal.run WHERE journal.lsn > ?1 ORDER BY journal.lsn";
        let mut statement = connection.prepare_cached(sql).map_err(of(path))?;
        let mut rows = statement.query([number(Lsn(self.last))]).map_err(of(path))?;
        while let Some(row) = rows.next().map_err(of(path))? {
            let key: i64 = row.get(1).map_err(of(path))?;
            let (found, prev) = read::record(row, [0, 2, 3, 4]).map_err(of(path))?;
            match found {
                Ok(record) => self.step(&record.run, Tail { key, lsn: record.lsn }, record.ends()),
                Err(Error::Corrupt { run, lsn }) => {
                    self.hurt(connection, path, Tail { key, lsn }, run, prev)?;
                }
                Err(Error::Orphan { lsn }) => self.hurt_owner(connection, path, prev, lsn)?,
                Err(other) => return Err(other),
            }
            self.last = lsn(row.get(0).map_err(of(path))?).0;
        }
        Ok(())
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
