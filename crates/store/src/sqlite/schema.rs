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
/// `journal` is the hot table and has no index but its row number. `runs` gives every run a small number to be
/// written in each of its records, and keeps the last record of a finished one. `idle` has the last records of those
/// unfinished runs that stand before the low-water mark, which is in `mark`. `identity` has one row: the name of this
/// journal, which copies of it share; how many records were removed on purpose; and a checksum of mark and idle runs.
const MIGRATIONS: [&str; 2] = ["
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
"];

/// How long to wait for a lock that another process holds for a moment.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// The connection of the writer. A file that is not ours, or newer than we are, is left exactly as it was.
pub(super) fn open_journal(path: &Path, durability: Durability) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    crate::private::reserve(path);
    let connection = connect(path, flags)?;
    let found = version(&connection, path)?;
    let synchronous = match durability {
        Durability::Disk => "FULL",
        Durability::Process => "NORMAL",
    };
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = {synchronous}; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
        ))
        .map_err(of(path))?;
    migrate(&connection, found).map_err(of(path))?;
    Ok(connection)
}

/// A connection that changes nothing of its own. It may write all the same: what a writer that was killed had begun has to be taken
/// back before anybody can read.
pub(super) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let reader = |path: &Path, more: OpenFlags| -> Result<Connection, Error> {
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more)?;
        connection.pragma_update(None, "query_only", true).map_err(of(path))?;
        // Only now is the file looked at.
        connection
            .pragma_query_value(None, "schema_version", |row| row.get::<_, i32>(0))
            .map_err(of(path))?;
        Ok(connection)
    };
    reader(path, OpenFlags::empty()).or_else(|error| match unchanging(path) {
        Some(uri) => reader(&uri, OpenFlags::SQLITE_OPEN_URI).map_err(|_| error),
        None => Err(error),
    })
}

/// In a folder where nothing can be written SQLite cannot make the files that it reads a log with. Where there is no log it needs
/// none: then nobody writes either, or there would be one.
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

/// Whether a connection that only reads can understand this file.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), Error> {
    match version(connection, path)? {
        // Made, and not yet filled: whoever makes it has not committed.
        0 => Err(Error::Missing { folder: path.parent().unwrap_or(path).display().to_string() }),
        _ => Ok(()),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(path, flags).map_err(of(path))?;
    // Closing must not checkpoint: that is the writer's to decide, and a refused file stays as it is.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(of(path))?;
    connection.busy_timeout(BUSY).map_err(of(path))?;
    keep_plans(&connection).map_err(of(path))?;
    Ok(connection)
}

/// A statement is compiled once, and not again for every value that is bound to it.
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
    for (done, step) in (0u32..).zip(MIGRATIONS).skip(found as usize) {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {step} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {}; COMMIT;",
            done + 1
        ))?;
    }
    Ok(())
}

/// Gives the journal another name: from now on it is no copy of any other.
pub(super) fn rename(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("UPDATE identity SET id = lower(hex(randomblob(16)))")
}
