//! The rows that lists of runs show, in the table of runs, and the last record they include. Readers fold in newer
//! records within one snapshot of the database.

use super::codes::of;
use super::read::{self, lsn, number};
use super::tails::Tail;
use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::view::{Projection, Query, Row, RunRow, Wake, fold};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::HashMap;
use std::path::Path;
use windlass_engine::{RunId, Timestamp};
use windlass_ir::RunStatus;

/// Created after the rows are filled. None of them contains a run before its row is filled, so starting a run touches
/// no index except the one on names. The last two cover every column of their queries, so reading them does not touch
/// the table.
pub(super) const INDEXES: [(&str, &str); 5] = [
    ("runs_by_start", "(started_at DESC, run) WHERE closed IS NOT NULL"),
    ("runs_by_workflow", "(workflow, started_at DESC, run) WHERE closed IS NOT NULL"),
    ("runs_by_status", "(status, started_at DESC, run) WHERE closed IS NOT NULL"),
    (
        "runs_without_result",
        "(started_at DESC, run, wake, closed, ended_at) WHERE closed IS NOT NULL AND ended_at IS NULL",
    ),
    ("runs_not_closed", "(run, tail, closed) WHERE closed = 0"),
];

const COLUMNS: &str =
    "run, tail, closed, broken, workflow, dialect, plan, status, started_at, ended_at, reason,
    has_failures, waiting, inputs, failed_step, key, dialect_status, details";

pub(super) const UPDATE: &str =
    "UPDATE runs SET tail = ?2, closed = ?3, broken = ?4, workflow = ?5, dialect = ?6, plan = ?7,
    status = ?8, started_at = ?9, ended_at = ?10, reason = ?11, has_failures = ?12, waiting = ?13, inputs = ?14,
    failed_step = ?15, wake = ?16, dialect_status = ?17, details = ?18 WHERE key = ?1";

/// A row exists from the run's first record on, and is filled when the rows reach that record.
pub(super) const RESET: &str = "UPDATE runs SET tail = NULL, closed = NULL, broken = NULL, workflow = NULL, dialect = NULL,
    plan = NULL, status = NULL, started_at = NULL, ended_at = NULL, reason = NULL, has_failures = NULL, waiting = NULL,
    inputs = NULL, failed_step = NULL, wake = NULL, dialect_status = NULL, details = NULL";

/// The last record in the rows.
pub(super) struct Reach {
    pub(super) applied: u64,
    /// The version of the projection that made them.
    pub(super) projection: u32,
    /// Over `applied` and the last record of every run that is not closed.
    pub(super) seal: Vec<u8>,
}

/// `None` in a file of an older version.
pub(super) fn reach(connection: &Connection) -> Option<Reach> {
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Reach { applied: lsn(row.get(0)?).0, projection: row.get(1)?, seal: row.get(2)? })
    };
    connection.prepare_cached("SELECT applied, projection, seal FROM rows").ok()?.query_row([], read).ok()
}

/// A checksum over the last records of all runs that are not closed: if one of them is not as written, a run would
/// lose its end. It is a sum of checksums, so changing one run costs the same regardless of their number.
pub(super) fn sum(connection: &Connection) -> rusqlite::Result<u128> {
    let mut statement = connection.prepare("SELECT key, tail FROM runs WHERE closed = 0")?;
    let mut rows = statement.query([])?;
    let mut sum = 0;
    while let Some(row) = rows.next()? {
        sum ^= digest(row.get(0)?, lsn(row.get(1)?));
    }
    Ok(sum)
}

pub(super) fn digest(key: i64, tail: Lsn) -> u128 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.to_le_bytes());
    bytes[8..].copy_from_slice(&tail.0.to_le_bytes());
    let mut sum = [0; 16];
    sum.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
    u128::from_le_bytes(sum)
}

pub(super) fn seal(applied: u64, sum: u128) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&applied.to_le_bytes()).update(&sum.to_le_bytes());
    hasher.finalize().as_bytes()[..8].to_vec()
}

/// A stored row: its key, the row, and whether it has been filled.
pub(super) fn stored(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<(i64, RunRow)>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM runs WHERE run = ?1"))?;
    Ok(statement.query_row([run.as_str()], read_row).optional()?.flatten())
}

/// Writes a row. The run's last record and its wake come from `tail`.
pub(super) fn write(
    statement: &mut rusqlite::Statement<'_>,
    run: &RunRow,
    tail: &Tail,
) -> rusqlite::Result<usize> {
    let row = &run.row;
    statement.execute(rusqlite::params![
        tail.key,
        number(tail.lsn),
        tail.closed,
        run.broken.map(number),
        row.workflow,
        row.dialect,
        row.plan,
        row.status.word(),
        row.started_at.map(|at| at.0),
        row.ended_at.map(|at| at.0),
        row.reason,
        row.has_failures,
        json(&row.progress),
        row.inputs,
        row.failed_step,
        wake_number(tail.wake),
        row.dialect_status,
        json(&row.details),
    ])
}

/// None of these types has a map with keys that are not text, the only thing that JSON refuses.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

pub(super) fn wake_number(wake: Wake) -> Option<i64> {
    match wake {
        Wake::Unknown => None,
        Wake::Owes => Some(i64::MIN),
        Wake::At(at) => Some(at.0.clamp(i64::MIN + 1, i64::MAX - 1)),
        Wake::Never => Some(i64::MAX),
    }
}

fn wake(number: Option<i64>) -> Wake {
    match number {
        None => Wake::Unknown,
        Some(i64::MIN) => Wake::Owes,
        Some(i64::MAX) => Wake::Never,
        Some(at) => Wake::At(Timestamp(at)),
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<(i64, RunRow)>> {
    let Some(run) = read::run(row, 0)? else { return Ok(None) };
    let key = row.get(15)?;
    let Some(tail) = row.get::<_, Option<i64>>(1)?.map(lsn) else { return Ok(Some((key, RunRow::new(run)))) };
    let text = |column| row.get::<_, Option<String>>(column).map(Option::unwrap_or_default);
    let found = RunRow {
        run,
        tail,
        ended: row.get::<_, Option<bool>>(2)?.unwrap_or_default(),
        broken: row.get::<_, Option<i64>>(3)?.map(lsn),
        row: Row {
            workflow: text(4)?,
            dialect: text(5)?,
            plan: text(6)?,
            status: RunStatus::by_word(&text(7)?).unwrap_or_default(),
            dialect_status: text(16)?,
            started_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
            ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
            reason: row.get(10)?,
            has_failures: row.get::<_, Option<bool>>(11)?.unwrap_or_default(),
            progress: serde_json::from_str(&text(12)?).unwrap_or_default(),
            inputs: text(13)?,
            failed_step: row.get(14)?,
            details: serde_json::from_str(&text(17)?).unwrap_or_default(),
        },
    };
    Ok(Some((key, found)))
}

/// One snapshot of the rows, within a transaction.
pub(super) struct Rows<'c> {
    connection: &'c Connection,
    path: &'c Path,
    projection: &'c dyn Projection,
    /// `None` if the stored rows cannot be used.
    pub(super) applied: Option<u64>,
}

impl<'c> Rows<'c> {
    /// `whole` says whether the seal of the rows is valid.
    pub(super) fn new(
        connection: &'c Connection,
        path: &'c Path,
        projection: &'c dyn Projection,
        whole: bool,
    ) -> Self {
        let reach = reach(connection).filter(|reach| whole && reach.projection == projection.version());
        Self { connection, path, projection, applied: reach.map(|reach| reach.applied) }
    }

    /// The rows of all runs with records newer than the stored rows.
    fn beyond(&self) -> Result<HashMap<RunId, RunRow>, Error> {
        let mut rows = HashMap::new();
        let mut next = Lsn(self.applied.unwrap_or(0) + 1);
        loop {
            let scanned = read::scan(self.connection, self.path, next, 1_000)?;
            let Some(last) = scanned.last() else { return Ok(rows) };
            next = Lsn(next.0 + 1).max(Lsn(position(last).0 + 1));
            for record in &scanned {
                fold(self.projection, record, |run| {
                    if !rows.contains_key(run) {
                        rows.insert(
                            run.clone(),
                            self.stored(run)?.unwrap_or_else(|| RunRow::new(run.clone())),
                        );
                    }
                    Ok(rows.get_mut(run).expect("it was inserted above"))
                })?;
            }
        }
    }

    fn stored(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        match self.applied {
            Some(_) => Ok(stored(self.connection, run).map_err(of(self.path))?.map(|(_, row)| row)),
            None => Ok(None),
        }
    }

    /// `newer` is the run's last record if that is newer than the stored rows.
    pub(super) fn get(&self, run: &RunId, newer: Option<Lsn>) -> Result<Option<RunRow>, Error> {
        let Some(applied) = self.applied else { return Ok(self.beyond()?.remove(run)) };
        let stored = self.stored(run)?;
        let Some(tail) = newer.filter(|tail| tail.0 > applied) else {
            return Ok(stored.filter(|row| row.tail.0 > 0));
        };
        let mut row = stored.unwrap_or_else(|| RunRow::new(run.clone()));
        let (mut records, mut next): (Vec<Record>, _) = (Vec::new(), Some(tail));
        while let Some(at) = next.filter(|at| *at > row.tail) {
            match read::of_run(self.connection, self.path, run, at) {
                Ok(record) => {
                    next = record.prev.filter(|prev| *prev < at);
                    records.push(record);
                }
                // Around damage, only a scan finds what is left.
                Err(_) => return Ok(self.beyond()?.remove(run)),
            }
        }
        records.iter().rev().for_each(|record| row.fold(self.projection, record));
        Ok(Some(row))
    }

    pub(super) fn list(&self, query: &Query) -> Result<Vec<RunRow>, Error> {
        let beyond = self.beyond()?;
        let mut rows = match self.applied {
            Some(_) => stored_list(self.connection, query, &beyond).map_err(of(self.path))?,
            None => Vec::new(),
        };
        rows.extend(beyond.into_values().filter(|row| query.takes(row)));
        rows.sort_by(|a, b| a.order().cmp(&b.order()));
        rows.truncate(query.limit);
        Ok(rows)
    }

    /// Every run without a result. `recent` is what this process knows about records newer than the stored rows.
    pub(super) fn unfinished(&self, recent: &HashMap<RunId, Tail>) -> Result<Vec<(RunId, Wake)>, Error> {
        let beyond = self.beyond()?;
        let mut runs = Vec::new();
        if self.applied.is_some() {
            let sql = "SELECT run, wake FROM runs WHERE closed IS NOT NULL AND ended_at IS NULL";
            let mut statement = self.connection.prepare_cached(sql).map_err(of(self.path))?;
            let mut rows = statement.query([]).map_err(of(self.path))?;
            while let Some(row) = rows.next().map_err(of(self.path))? {
                let run = read::run(row, 0).map_err(of(self.path))?;
                let known = wake(row.get(1).map_err(of(self.path))?);
                let run = run.filter(|run| !run.is_coordinator() && !beyond.contains_key(run));
                runs.extend(run.map(|run| (run, known)));
            }
        }
        let open = beyond.into_values().filter(|row| row.row.ended_at.is_none());
        runs.extend(open.map(|row| {
            let known = recent.get(&row.run).filter(|tail| tail.lsn == row.tail);
            let wake = known.map_or(Wake::Unknown, |tail| tail.wake);
            (row.run, wake)
        }));
        runs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(runs)
    }

    pub(super) fn all_stored(&self) -> Result<Option<(Lsn, Vec<RunRow>)>, Error> {
        let Some(applied) = self.applied else { return Ok(None) };
        let rows = stored_list(self.connection, &Query::default(), &HashMap::new()).map_err(of(self.path))?;
        Ok(Some((Lsn(applied), rows)))
    }
}

/// The number of a record, damaged or not.
pub(super) fn position(scanned: &Result<Record, Error>) -> Lsn {
    scanned.as_ref().map_or_else(Error::place, |record| Some(record.lsn)).unwrap_or(Lsn(0))
}

/// The stored rows that match a query, without those of runs with newer records. The database filters by indexes; the
/// query itself checks each row until there are enough.
fn stored_list(
    connection: &Connection,
    query: &Query,
    beyond: &HashMap<RunId, RunRow>,
) -> rusqlite::Result<Vec<RunRow>> {
    let (conditions, values) = conditions(query);
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE {conditions} ORDER BY started_at DESC, run");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), read_row)?;
    let rows = rows.filter_map(|row| row.map(|row| row.map(|(_, row)| row)).transpose());
    let wanted = |row: &rusqlite::Result<RunRow>| match row {
        Ok(row) => !row.run.is_coordinator() && !beyond.contains_key(&row.run) && query.takes(row),
        Err(_) => true,
    };
    rows.filter(wanted).take(query.limit).collect()
}

fn conditions(query: &Query) -> (String, Vec<rusqlite::types::Value>) {
    let mut parts: Vec<&str> = vec!["closed IS NOT NULL"];
    let mut values: Vec<rusqlite::types::Value> = Vec::new();
    if query.unfinished_only {
        parts.push("closed = 0");
    }
    if query.going_only {
        parts.push("ended_at IS NULL");
    }
    if !query.prefix.is_empty() {
        // Ids are ASCII, so every id with this prefix sorts before the second bound.
        parts.push("run >= ? AND run < ?");
        values.extend([query.prefix.clone().into(), format!("{}\u{7f}", query.prefix).into()]);
    }
    if let ([status], []) = (query.statuses.as_slice(), query.dialect_statuses.as_slice()) {
        parts.push("status = ?");
        values.push(status.word().to_owned().into());
    }
    if let [workflow] = query.workflows.as_slice() {
        parts.push("workflow = ?");
        values.push(workflow.clone().into());
    }
    if let Some(since) = query.since {
        parts.push("started_at >= ?");
        values.push(since.0.into());
    }
    if let Some(before) = query.before {
        parts.push("started_at < ?");
        values.push(before.0.into());
    }
    (parts.join(" AND "), values)
}

/// The stored rows alone, as last written: quick, possibly outdated, and none if this program cannot read them.
pub(super) fn glance(path: &Path, query: &Query) -> Vec<RunRow> {
    let stored = || -> Option<Vec<RunRow>> {
        let connection = super::schema::open_reader(path).ok()?;
        stored_list(&connection, query, &HashMap::new()).ok()
    };
    if path.exists() { stored().unwrap_or_default() } else { Vec::new() }
}
