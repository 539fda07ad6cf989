//! The tables of the ledger.

use super::codes::of;
use crate::error::Error;
use crate::ledger::Entry;
use rusqlite::{Connection, OptionalExtension as _};
use std::path::Path;
use windlass_engine::Timestamp;

/// A file from before the ledger has none of its tables. An owner creates them; a reader finds them empty.
pub(super) fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = 'documents'")?.exists([])
}

/// Within the transaction of the writer.
pub(super) fn write(connection: &Connection, entries: &[Entry]) -> rusqlite::Result<()> {
    for entry in entries {
        match entry {
            Entry::Log(body) => {
                connection.prepare_cached("INSERT INTO log (body) VALUES (?1)")?.execute([body])?;
            }
            Entry::Put { kind, key, body, until } => {
                let put = "INSERT OR REPLACE INTO documents (kind, key, body, until) VALUES (?1, ?2, ?3, ?4)";
                let until = until.map(|until| until.0);
                connection.prepare_cached(put)?.execute((kind, key, body, until))?;
            }
            Entry::Remove { kind, key } => {
                let remove = "DELETE FROM documents WHERE kind = ?1 AND key = ?2";
                connection.prepare_cached(remove)?.execute((kind, key))?;
            }
        }
    }
    Ok(())
}

pub(super) fn expire(connection: &Connection, now: Timestamp) -> rusqlite::Result<()> {
    let expire = "DELETE FROM documents WHERE until IS NOT NULL AND until <= ?1";
    connection.prepare_cached(expire)?.execute([now.0]).map(drop)
}

pub(super) fn get(
    connection: &Connection,
    path: &Path,
    kind: &str,
    key: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let get = || {
        if !exists(connection)? {
            return Ok(None);
        }
        let get = "SELECT body FROM documents WHERE kind = ?1 AND key = ?2";
        connection.prepare_cached(get)?.query_row((kind, key), |row| row.get(0)).optional()
    };
    get().map_err(of(path))
}

pub(super) fn list(
    connection: &Connection,
    path: &Path,
    kind: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let list = || {
        if !exists(connection)? {
            return Ok(Vec::new());
        }
        let list = "SELECT key, body FROM documents WHERE kind = ?1 AND (?2 IS NULL OR key > ?2) ORDER BY key LIMIT ?3";
        let mut list = connection.prepare_cached(list)?;
        let rows = list.query_map((kind, after, bounded(limit)), |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    list().map_err(of(path))
}

pub(super) fn log(
    connection: &Connection,
    path: &Path,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<(u64, Vec<u8>)>, Error> {
    let log = || {
        if !exists(connection)? {
            return Ok(Vec::new());
        }
        let log = "SELECT id, body FROM log WHERE id < ?1 ORDER BY id DESC LIMIT ?2";
        let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let mut log = connection.prepare_cached(log)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?));
        let rows = log.query_map((before, bounded(limit)), read)?;
        rows.collect()
    };
    log().map_err(of(path))
}

fn bounded(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
