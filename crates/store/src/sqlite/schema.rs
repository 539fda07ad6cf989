//! The tables of `journal.db`, their versions, and how connections to it are opened.

use super::codes::of;
use crate::error::Error;
use crate::store::Durability;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Marks the file as ours: `wndl`.
const APPLICATION: i32 = 0x776e_646c;

/// One step for each version of the tables; a file of version `n` has seen the first `n`. Steps are added, never
/// changed.
///
/// `journal` is the hot table and has no index except its row number. `runs` assigns every run a small number, which
/// each of its records has, and contains the row that lists show. A row is filled when the rows reach the run's first
/// record, and is correct up to the record `rows.applied`; `tail` is the run's last record up to there, and `closed`
/// is null before. `removed` has the runs whose records are to be deleted, and from which record on. `identity` has
/// one row: the name of this journal, which copies of it share, and how many records were deleted. `documents` and
/// `log` are the ledger.
const MIGRATIONS: [&str; 6] = ["
    CREATE TABLE journal (lsn INTEGER PRIMARY KEY, run INTEGER NOT NULL, prev INTEGER, body BLOB NOT NULL);
    CREATE TABLE runs (key INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, tail INTEGER);
    CREATE TABLE idle (run INTEGER PRIMARY KEY, tail INTEGER NOT NULL);
    CREATE TABLE mark (low_water INTEGER NOT NULL);
    INSERT INTO mark VALUES (1);
    CREATE TABLE plans (digest TEXT PRIMARY KEY, format INTEGER NOT NULL, plan TEXT NOT NULL, source TEXT NOT NULL,
        overrides TEXT NOT NULL, checksum BLOB NOT NULL);
", "
    CREATE TABLE identity (id TEXT NOT NULL, removed INTEGER NOT NULL, mark_seal BLOB NOT NULL);
    INSERT INTO identity VALUES (lower(hex(randomblob(16))), 0, x'');
", "
    DROP TABLE idle;
    DROP TABLE mark;
    ALTER TABLE identity DROP COLUMN mark_seal;
    UPDATE runs SET tail = NULL;
    ALTER TABLE runs ADD COLUMN closed INTEGER;
    ALTER TABLE runs ADD COLUMN broken INTEGER;
    ALTER TABLE runs ADD COLUMN workflow TEXT;
    ALTER TABLE runs ADD COLUMN dialect TEXT;
    ALTER TABLE runs ADD COLUMN plan TEXT;
    ALTER TABLE runs ADD COLUMN status TEXT;
    ALTER TABLE runs ADD COLUMN started_at INTEGER;
    ALTER TABLE runs ADD COLUMN ended_at INTEGER;
    ALTER TABLE runs ADD COLUMN reason TEXT;
    ALTER TABLE runs ADD COLUMN has_failures INTEGER;
    ALTER TABLE runs ADD COLUMN waiting TEXT;
    ALTER TABLE runs ADD COLUMN inputs TEXT;
    ALTER TABLE runs ADD COLUMN failed_step TEXT;
    ALTER TABLE runs ADD COLUMN wake INTEGER;
    CREATE TABLE rows (applied INTEGER NOT NULL, projection INTEGER NOT NULL, seal BLOB NOT NULL);
    INSERT INTO rows VALUES (0, 0, x'');
    CREATE TABLE removed (key INTEGER PRIMARY KEY, at INTEGER NOT NULL);
", "
    ALTER TABLE runs ADD COLUMN dialect_status TEXT;
", "
    CREATE TABLE documents (kind TEXT NOT NULL, key TEXT NOT NULL, body BLOB NOT NULL, until INTEGER,
        PRIMARY KEY (kind, key)) WITHOUT ROWID;
    CREATE INDEX documents_until ON documents (until) WHERE until IS NOT NULL;
    CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);
", "
    ALTER TABLE runs ADD COLUMN details TEXT;
"];

/// On macOS a plain flush leaves data in the cache of the disk; elsewhere these settings have no effect.
const FULL_FLUSH: &str = "PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;";

/// How long to wait for a lock that another process holds briefly.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// The connection of the writer. A foreign or newer file is left exactly as it was.
pub(super) fn open_journal(path: &Path, durability: Durability) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    crate::private::reserve(path);
    let connection = connect(path, flags)?;
    let found = version(&connection, path)?;
    let synchronous = synchronous(durability);
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = {synchronous}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; {FULL_FLUSH}"
        ))
        .map_err(of(path))?;
    migrate(&connection, found).map_err(of(path))?;
    Ok(connection)
}

pub(super) fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::Disk => "FULL",
        Durability::Process => "NORMAL",
    }
}

/// A connection that changes nothing of its own. It may still write: the unfinished work of a killed writer has to be
/// rolled back before anyone can read.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let reader = |path: &Path, more: OpenFlags| -> Result<Connection, Error> {
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more)?;
        // SQLite only reads the file now. A file of an older version has no table of removed runs, and needs none.
        let has_removed = "SELECT 1 FROM sqlite_schema WHERE name = 'removed'";
        if !connection.prepare(has_removed).and_then(|mut it| it.exists([])).map_err(of(path))? {
            let none =
                "PRAGMA temp_store = MEMORY; CREATE TEMP TABLE removed (key INTEGER PRIMARY KEY, at INTEGER)";
            connection.execute_batch(none).map_err(of(path))?;
        }
        connection.pragma_update(None, "query_only", true).map_err(of(path))?;
        Ok(connection)
    };
    reader(path, OpenFlags::empty()).or_else(|error| match unchanging(path) {
        Some(uri) => reader(&uri, OpenFlags::SQLITE_OPEN_URI).map_err(|_| error),
        None => Err(error),
    })
}

/// In a read-only folder SQLite cannot create the files it needs to read a log. Without a log it needs none: then no
/// one is writing either, or there would be one.
fn unchanging(path: &Path) -> Option<PathBuf> {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    let has_log = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let text = path.to_str().filter(|_| !has_log && path.exists())?;
    let escaped: String = text
        .chars()
        .map(|c| match c {
            '%' | '?' | '#' => format!("%{:02x}", c as u32),
            c => c.to_string(),
        })
        .collect();
    Some(format!("file:{escaped}?immutable=1").into())
}

/// Whether a read-only connection can understand this file.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Error> {
    match version(connection, path)? {
        // Created but not filled: its creator has not committed yet.
        0 => Err(Error::Missing { folder: path.parent().unwrap_or(path).display().to_string() }),
        _ => Ok(()),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, flags).map_err(of(path))?;
    // Closing must not checkpoint: the writer decides about that, and a refused file stays unchanged.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(of(path))?;
    connection.busy_timeout(BUSY).map_err(of(path))?;
    keep_plans(&connection).map_err(of(path))?;
    Ok(connection)
}

/// A statement is compiled once, not again for every bound value.
pub(super) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn version(connection: &Connection, path: &Path) -> Result<u32, Error> {
    let number =
        |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0)).map_err(of(path));
    let (application, version, tables) =
        (number("application_id")?, number("user_version")?, number("schema_version")?);
    let (file, known) = (path.display().to_string(), MIGRATIONS.len() as u32);
    match u32::try_from(version) {
        Ok(0) if application == 0 && tables == 0 => Ok(0),
        _ if application != APPLICATION => Err(Error::Foreign { file }),
        Ok(found) if found <= known => Ok(found),
        Ok(found) => Err(Error::Newer { file, found, known }),
        Err(_) => Err(Error::Foreign { file }),
    }
}

fn migrate(connection: &Connection, found: u32) -> rusqlite::Result<()> {
    let steps = MIGRATIONS.iter().skip(found as usize).copied().collect::<String>();
    if steps.is_empty() {
        return Ok(());
    }
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {steps} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}; COMMIT;",
        MIGRATIONS.len()
    ))
}

/// Renames the journal: from now on it is not a copy of any other.
pub(super) fn rename(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("UPDATE identity SET id = lower(hex(randomblob(16)))")
}
