//! `view.db`: the rows of the view, written by a thread of its own that follows the journal. Nothing in it is flushed:
//! whenever it may not be what was written it is thrown away and made again.

use super::codes::of;
use super::read::{self, Readers, lsn, number};
use super::signal::{Call, Signal};
use crate::error::Error;
use crate::journal::{Lsn, Record};
use crate::record::seal;
use crate::store::Durability;
use crate::view::{Projection, Query, Row, RunRow, fold};
use rusqlite::{Connection, OptionalExtension as _};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use windlass_engine::{RunId, Timestamp};

/// Another number makes every view anew.
const FORMAT: i64 = 3;

/// `applied` is the last record in the rows and `seal` its checksum: a view of another journal, or of one that has lost
/// its end, is found out by it. `removed` is how many records had been removed from the journal: while that differs, there are rows
/// of runs that are gone. `clean` is set while no process has it open and all of it is flushed; otherwise it is
/// good as long as the machine has not been started anew.
const SCHEMA: &str = "
    CREATE TABLE state (applied INTEGER NOT NULL, seal BLOB NOT NULL, removed INTEGER NOT NULL, projection INTEGER NOT NULL,
        boot TEXT NOT NULL, clean INTEGER NOT NULL);
    CREATE TABLE runs (run TEXT PRIMARY KEY, tail_lsn INTEGER NOT NULL, ended INTEGER NOT NULL, broken INTEGER,
        workflow TEXT NOT NULL, dialect TEXT NOT NULL, plan TEXT NOT NULL, status TEXT NOT NULL, started_at INTEGER,
        ended_at INTEGER, reason TEXT, has_failures INTEGER NOT NULL, waiting TEXT NOT NULL,
        inputs TEXT NOT NULL, failed_step TEXT) WITHOUT ROWID;
    CREATE INDEX runs_by_start ON runs (started_at DESC, run);
    CREATE INDEX runs_by_workflow ON runs (workflow, started_at DESC, run);
    CREATE INDEX runs_by_status ON runs (status, started_at DESC, run);
    CREATE INDEX runs_unfinished ON runs (started_at DESC, run) WHERE NOT ended;
    CREATE INDEX runs_going ON runs (started_at DESC, run) WHERE ended_at IS NULL;";

const COLUMNS: &str =
    "run, tail_lsn, ended, broken, workflow, dialect, plan, status, started_at, ended_at, reason,
    has_failures, waiting, inputs, failed_step";

/// Records folded in one transaction.
const CHUNK: usize = 1_000;

pub(super) fn start(
    path: &Path,
    journal: Arc<Readers>,
    projection: Arc<dyn Projection>,
    signal: &Arc<Signal>,
    durability: Durability,
) -> Result<JoinHandle<()>, Error> {
    let mut applier =
        Applier { connection: None, path: path.into(), journal, projection, durability, applied: 0 };
    match applier.glance() {
        Some(applied) => applier.applied = applied,
        None => applier.open()?,
    }
    signal.begin(applier.applied);
    let signal = signal.clone();
    std::thread::Builder::new()
        .name("view".into())
        .spawn(move || {
            // Should this thread panic, whoever waits for a rebuild is let go.
            let _ending = Ending(&signal);
            applier.work(&signal);
        })
        .map_err(|error| Error::io(path, &error))
}

struct Ending<'s>(&'s Signal);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

struct Applier {
    /// None until there is something to write: a process that is over before that leaves the view as it found it.
    connection: Option<Connection>,
    path: PathBuf,
    journal: Arc<Readers>,
    projection: Arc<dyn Projection>,
    durability: Durability,
    applied: u64,
}

impl Applier {
    fn work(&mut self, signal: &Signal) {
        loop {
            match signal.next() {
                // A view that cannot be written is behind, not wrong: readers fold in the rest. The next record tries again.
                Call::Apply { durable } => drop(self.catch_up(durable, signal)),
                Call::Rebuild { number, durable } => {
                    let result = self
                        .open()
                        .and_then(|()| removed(&self.journal))
                        .and_then(|removed| self.reset(removed))
                        .and_then(|()| self.catch_up(durable, signal));
                    signal.rebuilt(number, result);
                }
                Call::Stop => break,
            }
        }
        match (&self.connection, self.durability) {
            // If this fails the view is made anew, which is no loss.
            (Some(connection), Durability::Disk) => drop(leave(connection)),
            (Some(_), Durability::Process) | (None, _) => {}
        }
    }

    /// How far the rows go that are there, if they can be gone on with as they are. Nothing is written.
    fn glance(&self) -> Option<u64> {
        let view = self.path.exists().then(|| super::schema::open_reader(&self.path).ok())??;
        let good = is_good(&view, self.projection.version(), &boot()).unwrap_or(false);
        let removed = removed(&self.journal).ok().filter(|_| good)?;
        trusted(&view, &self.journal, &*self.projection, removed)
    }

    fn open(&mut self) -> Result<(), Error> {
        if self.connection.is_none() {
            self.connection = Some(open(&self.path, self.projection.version())?);
            self.take_up()?;
        }
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, Error> {
        self.connection.as_ref().ok_or(Error::Stopped)
    }

    fn catch_up(&mut self, durable: u64, signal: &Signal) -> Result<(), Error> {
        self.open()?;
        if signal.has_removed() {
            self.take_up()?;
        }
        while self.applied < durable && !signal.is_stopped() && self.apply_chunk()? {}
        Ok(())
    }

    /// Goes on with the rows that are there, or begins anew.
    fn take_up(&mut self) -> Result<(), Error> {
        let removed = removed(&self.journal)?;
        if let Some(applied) = trusted(self.connection()?, &self.journal, &*self.projection, removed) {
            self.applied = applied;
            return Ok(());
        }
        match self.tidied(removed)? {
            Some(applied) => self.applied = applied,
            None => self.reset(removed)?,
        }
        Ok(())
    }

    /// Takes out the rows of runs that were removed. None when these rows are not to be trusted otherwise.
    fn tidied(&mut self, removed: u64) -> Result<Option<u64>, Error> {
        let view = self.connection()?;
        let Ok(had) = view.query_row("SELECT removed FROM state", [], |row| row.get(0)) else {
            return Ok(None);
        };
        let Some(applied) = trusted(view, &self.journal, &*self.projection, lsn(had).0) else {
            return Ok(None);
        };
        let there: HashSet<String> = self.journal.with(|connection| {
            let mut statement =
                connection.prepare("SELECT run FROM runs").map_err(of(self.journal.path()))?;
            let names = statement.query_map([], |row| row.get(0)).map_err(of(self.journal.path()))?;
            names.collect::<rusqlite::Result<_>>().map_err(of(self.journal.path()))
        })?;
        let tidy = || {
            let transaction = view.unchecked_transaction()?;
            let mut statement = transaction.prepare("SELECT run FROM runs")?;
            let shown: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for run in shown.iter().filter(|run| !there.contains(*run)) {
                transaction.execute("DELETE FROM runs WHERE run = ?1", [run])?;
            }
            drop(statement);
            transaction.execute("UPDATE state SET removed = ?1", [number(Lsn(removed))])?;
            transaction.commit()
        };
        tidy().map_err(of(&self.path))?;
        Ok(Some(applied))
    }

    /// Whether there was anything to apply.
    fn apply_chunk(&mut self) -> Result<bool, Error> {
        let from = Lsn(self.applied + 1);
        let scanned =
            self.journal.with(|connection| read::scan(connection, self.journal.path(), from, CHUNK))?;
        let Some(last) = scanned.last() else { return Ok(false) };
        let (applied, seal) = position(last);
        // On a damaged page numbers may stand in any order.
        let applied = applied.max(Lsn(self.applied + 1));
        let mut rows = HashMap::new();
        for record in &scanned {
            fold(&*self.projection, record, |run| {
                row_in(&mut rows, Some(self.connection()?), &self.path, run)
            })?;
        }
        store(self.connection()?, rows.values(), applied, seal).map_err(of(&self.path))?;
        self.applied = applied.0;
        Ok(true)
    }

    fn reset(&mut self, removed: u64) -> Result<(), Error> {
        self.connection()?
            .execute_batch(&format!(
                "BEGIN IMMEDIATE; DELETE FROM runs; UPDATE state SET applied = 0, seal = x'', removed = {removed}; COMMIT;",
            ))
            .map_err(of(&self.path))?;
        self.applied = 0;
        Ok(())
    }
}

/// Writes rows, and how far they go.
fn store<'r>(
    view: &Connection,
    rows: impl Iterator<Item = &'r RunRow>,
    applied: Lsn,
    seal: &[u8],
) -> rusqlite::Result<()> {
    let transaction = view.unchecked_transaction()?;
    let sql = format!(
        "INSERT OR REPLACE INTO runs ({COLUMNS}) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)"
    );
    let mut statement = transaction.prepare_cached(&sql)?;
    for RunRow { run, tail, ended, broken, row } in rows {
        let waiting = serde_json::Value::from(row.waiting.clone()).to_string();
        statement.execute(rusqlite::params![
            run.as_str(),
            number(*tail),
            ended,
            broken.map(number),
            row.workflow,
            row.dialect,
            row.plan,
            row.status,
            row.started_at.map(|at| at.0),
            row.ended_at.map(|at| at.0),
            row.reason,
            row.has_failures,
            waiting,
            row.inputs,
            row.failed_step
        ])?;
    }
    transaction
        .prepare_cached("UPDATE state SET applied = ?1, seal = ?2")?
        .execute((number(applied), seal))?;
    drop(statement);
    transaction.commit()
}

fn leave(view: &Connection) -> rusqlite::Result<()> {
    view.execute_batch("PRAGMA synchronous = FULL; UPDATE state SET clean = 1;")?;
    view.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// The number of a record, and its fingerprint if it is whole.
fn position(scanned: &Result<Record, Error>) -> (Lsn, &[u8]) {
    match scanned {
        Ok(record) => (record.lsn, seal(record.frame())),
        Err(Error::Corrupt { lsn, .. } | Error::Orphan { lsn }) => (*lsn, &[]),
        // A scan has no other errors in it; this one makes the view anew.
        Err(_) => (Lsn(0), &[]),
    }
}

/// Opens the view to write to it. One that cannot be opened or trusted is deleted.
fn open(path: &Path, projection: u32) -> Result<Connection, Error> {
    let boot = boot();
    if let Ok(connection) = connect(path)
        && is_good(&connection, projection, &boot).unwrap_or(false)
        && enter(&connection, &boot).is_ok()
    {
        return Ok(connection);
    }
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io(&file, &error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    let connection = connect(path).map_err(of(path))?;
    create(&connection, projection, &boot).map_err(of(path))?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    crate::private::reserve(path);
    let connection = Connection::open(path)?;
    super::schema::keep_plans(&connection)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

fn is_good(connection: &Connection, projection: u32, boot: &str) -> rusqlite::Result<bool> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let sql = "SELECT projection = ?1 AND (clean OR (boot = ?2 AND boot <> '')) FROM state";
    Ok(format == FORMAT && connection.query_row(sql, (projection, boot), |row| row.get(0))?)
}

/// Says that somebody writes from now on. Taking back the word that all is flushed must itself be flushed; nothing that
/// follows is.
fn enter(connection: &Connection, boot: &str) -> rusqlite::Result<()> {
    let clean: bool = connection.query_row("SELECT clean FROM state", [], |row| row.get(0))?;
    let synchronous = if clean { "FULL" } else { "OFF" };
    connection.execute_batch(&format!("PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};"))?;
    connection.execute("UPDATE state SET clean = 0, boot = ?1", [boot])?;
    connection.execute_batch("PRAGMA synchronous = OFF;")
}

fn create(connection: &Connection, projection: u32, boot: &str) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {FORMAT};"
    ))?;
    connection.execute("INSERT INTO state VALUES (0, x'', 0, ?1, ?2, 0)", (projection, boot))?;
    connection.execute_batch("COMMIT;")
}

/// How many records were removed from the journal.
fn removed(journal: &Readers) -> Result<u64, Error> {
    journal.with(|connection| Ok(read::identity(connection).map_or(0, |(_, removed)| removed)))
}

/// Names this start of the machine; empty where it has no name.
pub(super) fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().into()).unwrap_or_default()
}

/// How far the rows of this view go, if it is one of this journal, after so many were removed from it, and of this projection.
fn trusted(view: &Connection, journal: &Readers, projection: &dyn Projection, removed: u64) -> Option<u64> {
    let format: i64 = view.pragma_query_value(None, "user_version", |row| row.get(0)).ok()?;
    let state = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, u32>(2)?, lsn(row.get(3)?).0))
    };
    let (applied, sealed, version, had) =
        view.query_row("SELECT applied, seal, projection, removed FROM state", [], state).ok()?;
    let applied = lsn(applied);
    if format != FORMAT || version != projection.version() || had != removed {
        return None;
    }
    if applied == Lsn(0) {
        return Some(0);
    }
    let scanned = journal.with(|connection| read::at(connection, journal.path(), applied)).ok()??;
    (position(&scanned) == (applied, &*sealed)).then_some(applied.0)
}

/// Calls `look` with one moment of the view and the rows of all runs that have gone on since. Without a view that can be
/// trusted all rows are among the latter.
fn at_one_moment<T>(
    views: &Readers,
    journal: &Readers,
    projection: &dyn Projection,
    look: impl FnOnce(Option<&Connection>, HashMap<RunId, RunRow>) -> Result<T, Error>,
) -> Result<T, Error> {
    let beyond = |view: Option<&Connection>, applied| {
        let mut rows = HashMap::new();
        let mut next = applied + 1;
        loop {
            let scanned =
                journal.with(|connection| read::scan(connection, journal.path(), Lsn(next), CHUNK))?;
            let Some(last) = scanned.last() else { return Ok(rows) };
            next = (next + 1).max(position(last).0.0 + 1);
            for record in &scanned {
                fold(projection, record, |run| row_in(&mut rows, view, views.path(), run))?;
            }
        }
    };
    // A view that cannot be opened is none; whatever goes wrong afterwards is not its fault.
    let usable = views.path().exists() && views.with(|_| Ok(())).is_ok();
    if !usable {
        return look(None, beyond(None, 0)?);
    }
    let removed = removed(journal)?;
    views.with(|view| {
        let moment = view.unchecked_transaction().map_err(of(views.path()))?;
        match trusted(&moment, journal, projection, removed) {
            Some(applied) => look(Some(&moment), beyond(Some(&moment), applied)?),
            None => look(None, beyond(None, 0)?),
        }
    })
}

pub(super) fn applied(
    views: &Readers,
    journal: &Readers,
    projection: &dyn Projection,
) -> Result<Option<Lsn>, Error> {
    if !views.path().exists() {
        return Ok(None);
    }
    let removed = removed(journal)?;
    views.with(|view| Ok(trusted(view, journal, projection, removed).filter(|applied| *applied > 0).map(Lsn)))
}

/// All rows as they are stored.
pub(super) fn stored_rows(
    views: &Readers,
    journal: &Readers,
    projection: &dyn Projection,
) -> Result<Option<Vec<RunRow>>, Error> {
    if !views.path().exists() {
        return Ok(None);
    }
    let removed = removed(journal)?;
    views.with(|view| match trusted(view, journal, projection, removed) {
        Some(_) => {
            let all = Query { limit: usize::MAX, ..Query::default() };
            stored_list(view, &all, &HashMap::new()).map(Some).map_err(of(views.path()))
        }
        None => Ok(None),
    })
}

pub(super) fn get(
    views: &Readers,
    journal: &Readers,
    projection: &dyn Projection,
    run: &RunId,
) -> Result<Option<RunRow>, Error> {
    at_one_moment(views, journal, projection, |view, mut beyond| match (beyond.remove(run), view) {
        (Some(row), _) => Ok(Some(row)),
        (None, Some(view)) => stored(view, run).map_err(of(views.path())),
        (None, None) => Ok(None),
    })
}

pub(super) fn list(
    views: &Readers,
    journal: &Readers,
    projection: &dyn Projection,
    query: &Query,
) -> Result<Vec<RunRow>, Error> {
    at_one_moment(views, journal, projection, |view, beyond| {
        let mut rows = match view {
            Some(view) => stored_list(view, query, &beyond).map_err(of(views.path()))?,
            None => Vec::new(),
        };
        rows.extend(beyond.into_values().filter(|row| query.takes(row)));
        rows.sort_by(|a, b| a.order().cmp(&b.order()));
        rows.truncate(query.limit);
        Ok(rows)
    })
}

/// The stored rows alone, as they were written last: quick, perhaps behind, and none where there is no view that this program can read.
pub(super) fn glance(path: &Path, query: &Query) -> Vec<RunRow> {
    let stored = || -> Result<Vec<RunRow>, Error> {
        let view = super::schema::open_reader(path)?;
        let format: i64 =
            view.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(of(path))?;
        match format == FORMAT {
            true => stored_list(&view, query, &HashMap::new()).map_err(of(path)),
            false => Ok(Vec::new()),
        }
    };
    if path.exists() { stored().unwrap_or_default() } else { Vec::new() }
}

/// The row of a run: the one at hand, else the stored one, else a new one.
fn row_in<'r>(
    rows: &'r mut HashMap<RunId, RunRow>,
    view: Option<&Connection>,
    path: &Path,
    run: &RunId,
) -> Result<&'r mut RunRow, Error> {
    if !rows.contains_key(run) {
        let row = match view {
            Some(view) => stored(view, run).map_err(of(path))?,
            None => None,
        };
        rows.insert(run.clone(), row.unwrap_or_else(|| RunRow::new(run.clone())));
    }
    Ok(rows.get_mut(run).expect("it was inserted above"))
}

fn stored(view: &Connection, run: &RunId) -> rusqlite::Result<Option<RunRow>> {
    let mut statement = view.prepare_cached(&format!("SELECT {COLUMNS} FROM runs WHERE run = ?1"))?;
    Ok(statement.query_row([run.as_str()], read_row).optional()?.flatten())
}

/// The stored rows that a query takes, less those of runs that have gone on since. What an index can tell is left to the
/// database; the query itself has the last word, row by row, until there are enough.
fn stored_list(
    view: &Connection,
    query: &Query,
    beyond: &HashMap<RunId, RunRow>,
) -> rusqlite::Result<Vec<RunRow>> {
    let (conditions, values) = conditions(query);
    let sql = format!("SELECT {COLUMNS} FROM runs WHERE {conditions} ORDER BY started_at DESC, run");
    let mut statement = view.prepare_cached(&sql)?;
    let rows = statement.query_map(rusqlite::params_from_iter(values), read_row)?;
    let rows = rows.filter_map(Result::transpose);
    let wanted = |row: &rusqlite::Result<RunRow>| match row {
        Ok(row) => !beyond.contains_key(&row.run) && query.takes(row),
        Err(_) => true,
    };
    rows.filter(wanted).take(query.limit).collect()
}

fn conditions(query: &Query) -> (String, Vec<rusqlite::types::Value>) {
    let mut parts: Vec<&str> = vec!["TRUE"];
    let mut values: Vec<rusqlite::types::Value> = Vec::new();
    if query.unfinished_only {
        parts.push("NOT ended");
    }
    if query.going_only {
        parts.push("ended_at IS NULL");
    }
    if !query.prefix.is_empty() {
        // Ids are ASCII, so all that begin so stand before this.
        parts.push("run >= ? AND run < ?");
        values.extend([query.prefix.clone().into(), format!("{}\u{7f}", query.prefix).into()]);
    }
    if let ([status], false) = (query.statuses.as_slice(), query.or_waiting) {
        parts.push("status = ?");
        values.push(status.clone().into());
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

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<RunRow>> {
    let Some(run) = read::run(row, 0)? else { return Ok(None) };
    let waiting: String = row.get(12)?;
    Ok(Some(RunRow {
        run,
        tail: lsn(row.get(1)?),
        ended: row.get(2)?,
        broken: row.get::<_, Option<i64>>(3)?.map(lsn),
        row: Row {
            workflow: row.get(4)?,
            dialect: row.get(5)?,
            plan: row.get(6)?,
            status: row.get(7)?,
            started_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
            ended_at: row.get::<_, Option<i64>>(9)?.map(Timestamp),
            reason: row.get(10)?,
            has_failures: row.get(11)?,
            waiting: serde_json::from_str(&waiting).unwrap_or_default(),
            inputs: row.get(13)?,
            failed_step: row.get(14)?,
        },
    }))
}
