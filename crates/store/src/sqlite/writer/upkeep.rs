//! The work of the writer between commits: updating the rows and deleting the records of removed runs. None of it is
//! flushed on its own; the next commit does that.

use super::super::codes::of;
use super::super::read::{self, lsn, number};
use super::super::rows::{self, digest, seal};
use super::super::schema;
use super::super::tails::Tail;
use super::{CHUNK, PAGE_BYTES, Writer};
use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::view::{RunRow, Wake, fold};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{HashMap, HashSet};
use windlass_engine::RunId;

/// The changes of updating the rows.
struct Applied {
    /// The last records of runs that are newer than the rows.
    recent: HashMap<RunId, Tail>,
    sum: u128,
    /// The runs whose last records are written.
    done: HashSet<i64>,
    rows: u64,
}

impl Applied {
    /// The last record of a run was `had`, 0 for none, and is `tail` now.
    fn change(&mut self, had: &Tail, tail: &Tail) {
        for of in [had, tail].into_iter().filter(|of| of.lsn.0 > 0 && !of.closed) {
            self.sum ^= digest(of.key, of.lsn);
        }
        self.rows += 1;
    }
}

impl Writer<'_> {
    /// Updates the rows.
    pub(super) fn apply(&mut self) -> Result<(), Error> {
        if !self.behind() {
            return Ok(());
        }
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let last = self.next_lsn - 1;
        // If this fails, the next attempt reads them from the database.
        let fresh = std::mem::take(&mut self.fresh);
        self.fresh_bytes = 0;
        let applied = self.unflushed(|writer| writer.apply_all(&fresh)).inspect_err(|_| self.roll_back())?;
        (self.fresh, self.stale) = (fresh, false);
        self.fresh.clear();
        self.sum = applied.sum;
        self.log_bytes += applied.rows * 1_024 + PAGE_BYTES;
        let mut tails = self.tails();
        (tails.applied, tails.whole) = (last, true);
        tails.recent.clear();
        Ok(())
    }

    /// Runs one transaction without a flush of its own.
    fn unflushed<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let path = &self.shared.path;
        let synchronous = |how: &str| {
            self.connection.execute_batch(&format!("PRAGMA synchronous = {how}")).map_err(of(path))
        };
        synchronous("NORMAL")?;
        let done = self
            .statements
            .begin
            .execute([])
            .map_err(of(path))
            .and_then(|_| body(self))
            .and_then(|done| self.statements.commit.execute([]).map(|_| done).map_err(of(path)));
        if done.is_err() {
            self.roll_back();
        }
        synchronous(schema::synchronous(self.shared.durability))?;
        done
    }

    fn apply_all(&mut self, fresh: &[Record]) -> Result<Applied, Error> {
        let (recent, reached, whole) = {
            let tails = self.tails();
            (tails.recent.clone(), tails.applied, tails.whole)
        };
        let mut applied = Applied { recent, sum: self.sum, done: HashSet::new(), rows: 0 };
        let path = &self.shared.path;
        let mut next = reached + 1;
        if self.stale {
            // The rows may be the only source of these last records: after damage they differ from the journal.
            let kept = "CREATE TEMP TABLE kept AS SELECT key, tail FROM runs WHERE closed = 0;";
            let kept = if whole { kept } else { "CREATE TEMP TABLE kept (key INTEGER, tail INTEGER);" };
            let drop_all: String =
                rows::INDEXES.iter().map(|(name, _)| format!("DROP INDEX IF EXISTS {name};")).collect();
            let sql = format!("DROP TABLE IF EXISTS temp.kept; {kept} {drop_all} {}", rows::RESET);
            self.connection.execute_batch(&sql).map_err(of(path))?;
            (next, applied.sum) = (1, 0);
        }
        let in_hand = fresh.first().map_or(self.next_lsn, |record| record.lsn.0);
        while self.shared.projection.is_some() && next < in_hand {
            let mut scanned = read::scan(self.connection, path, Lsn(next), CHUNK)?;
            scanned.retain(|record| rows::position(record).0 < in_hand);
            let Some(last) = scanned.last() else { break };
            next = (next + 1).max(rows::position(last).0 + 1);
            self.fold_rows(&scanned, &mut applied, false)?;
        }
        let fresh: Vec<_> = fresh.iter().cloned().map(Ok).collect();
        self.fold_rows(&fresh, &mut applied, true)?;
        for tail in std::mem::take(&mut applied.recent).into_values() {
            if !applied.done.contains(&tail.key) {
                self.set_tail(tail, &mut applied).map_err(of(path))?;
            }
        }
        if self.stale {
            self.keep_tails(&mut applied).map_err(of(path))?;
            for (name, columns) in rows::INDEXES {
                let sql = format!("CREATE INDEX {name} ON runs {columns}");
                self.connection.execute_batch(&sql).map_err(of(path))?;
            }
        }
        let reach =
            (number(Lsn(self.next_lsn - 1)), self.shared.version(), seal(self.next_lsn - 1, applied.sum));
        self.statements.reach.execute(reach).map_err(of(path))?;
        Ok(applied)
    }

    /// Folds records into the rows of their runs. `latest` says that there are no newer ones.
    fn fold_rows(
        &mut self,
        records: &[Result<Record, Error>],
        applied: &mut Applied,
        latest: bool,
    ) -> Result<(), Error> {
        let Some(projection) = &self.shared.projection else { return Ok(()) };
        let path = &self.shared.path;
        // Each with the last record that the row had; `None` for a run that was removed since.
        let mut found: HashMap<RunId, (Option<Tail>, RunRow)> = HashMap::new();
        let tail_of = |key, row: &RunRow| Tail { key, lsn: row.tail, closed: row.ended, wake: Wake::Unknown };
        for record in records {
            fold(&**projection, record, |run| {
                if !found.contains_key(run) {
                    let stored = rows::stored(self.connection, run).map_err(of(path))?;
                    let entry = match stored {
                        Some((key, row)) => (Some(tail_of(key, &row)), row),
                        None => (None, RunRow::new(run.clone())),
                    };
                    found.insert(run.clone(), entry);
                }
                Ok(&mut found.get_mut(run).expect("it was inserted above").1)
            })?;
        }
        for (run, (stored, row)) in &found {
            let Some(had) = *stored else { continue };
            let recent = applied.recent.get(run).copied().filter(|tail| latest && tail.key == had.key);
            let tail = recent.unwrap_or_else(|| tail_of(had.key, row));
            rows::write(&mut self.statements.row, row, &tail).map_err(of(path))?;
            applied.change(&had, &tail);
            applied.done.extend(latest.then_some(tail.key));
        }
        Ok(())
    }

    /// Writes the last record of a run and leaves the rest of its row unchanged.
    fn set_tail(&mut self, tail: Tail, applied: &mut Applied) -> rusqlite::Result<()> {
        let sql = "SELECT tail, closed FROM runs WHERE key = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            let had = row.get::<_, Option<i64>>(0)?.map_or(Lsn(0), lsn);
            Ok(Tail { lsn: had, closed: row.get::<_, Option<bool>>(1)?.unwrap_or_default(), ..tail })
        };
        let stored = self.connection.prepare_cached(sql)?.query_row([tail.key], read).optional()?;
        let Some(had) = stored else { return Ok(()) };
        let row = (tail.key, number(tail.lsn), tail.closed, rows::wake_number(tail.wake));
        self.statements.tail.execute(row)?;
        applied.change(&had, &tail);
        Ok(())
    }

    /// After a rebuild: the last records that the rows had and the journal does not show.
    fn keep_tails(&mut self, applied: &mut Applied) -> rusqlite::Result<()> {
        let sql = "SELECT kept.key, kept.tail FROM temp.kept JOIN runs USING (key)
            WHERE runs.tail IS NULL OR runs.tail < kept.tail";
        let mut statement = self.connection.prepare(sql)?;
        let read = |row: &rusqlite::Row<'_>| {
            Ok(Tail { key: row.get(0)?, lsn: lsn(row.get(1)?), closed: false, wake: Wake::Unknown })
        };
        let kept: Vec<Tail> = statement.query_map([], read)?.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for tail in kept {
            self.set_tail(tail, applied)?;
        }
        self.connection.execute_batch("DROP TABLE temp.kept")
    }

    /// Deletes some records of removed runs, and answers when none are left.
    pub(super) fn reclaim(&mut self) {
        let done = match &self.broken {
            Some(error) => Err(error.clone()),
            // Deleted records have to be older than the rows: a gap after those is damage.
            None => self.apply().and_then(|()| self.unflushed(Self::reclaim_some)),
        };
        match done {
            Ok(deleted) if deleted > 0 => {
                self.tails().removed += deleted;
                self.log_bytes += deleted * 1_024;
            }
            Ok(_) => {
                self.has_removed = false;
                self.reclaiming.drain(..).for_each(|answer| answer.send(Ok(())));
            }
            Err(error) => {
                // Retried when the folder is opened, or on request.
                self.has_removed = false;
                self.reclaiming.drain(..).for_each(|answer| answer.send(Err(error.clone())));
            }
        }
    }

    fn reclaim_some(&mut self) -> Result<u64, Error> {
        let run = |connection: &Connection| -> rusqlite::Result<u64> {
            let mut deleted = 0;
            while deleted < CHUNK as u64 {
                // A run that still exists was not removed: such an entry is damage, and its records must stay.
                let first = "SELECT key, at FROM removed WHERE key NOT IN (SELECT key FROM runs) LIMIT 1";
                let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
                let Some((key, at)) = connection.prepare_cached(first)?.query_row([], read).optional()?
                else {
                    break;
                };
                let delete = "DELETE FROM journal WHERE lsn = ?1 AND run = ?2 RETURNING prev";
                let prev: Option<Option<i64>> =
                    connection.prepare_cached(delete)?.query_row([at, key], |row| row.get(0)).optional()?;
                deleted += u64::from(prev.is_some());
                match prev.flatten().filter(|prev| *prev < at) {
                    Some(prev) => connection
                        .prepare_cached("UPDATE removed SET at = ?2 WHERE key = ?1")?
                        .execute([key, prev])?,
                    None => {
                        connection.prepare_cached("DELETE FROM removed WHERE key = ?1")?.execute([key])?
                    }
                };
            }
            let count = "UPDATE identity SET removed = removed + ?1";
            connection.prepare_cached(count)?.execute([number(Lsn(deleted))])?;
            Ok(deleted)
        };
        run(self.connection).map_err(of(&self.shared.path))
    }
}
