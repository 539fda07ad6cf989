//! A consistent copy of the journal, made while others keep writing to it.

use super::codes::of;
use super::schema;
use crate::error::Error;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::path::Path;

/// SQLite's value for "all pages".
const ALL: std::ffi::c_int = -1;

/// Copies every page in one step. That pins one state of the log for the duration and blocks no one. In several
/// steps, each commit in between would restart the copy. Damaged pages are copied as they are.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let source = schema::open_reader(from)?;
    schema::check(&source, from)?;
    crate::private::reserve(to);
    let mut target = Connection::open(to).map_err(of(to))?;
    // The source already waits for locks, so a lock that is still held is not temporary.
    let copied = Backup::new(&source, &mut target).and_then(|backup| backup.step(ALL)).map_err(of(to))?;
    if copied != StepResult::Done {
        let cause = "it is locked by another process".to_owned();
        return Err(Error::Io { file: from.display().to_string(), cause, fatal: false });
    }
    target.close().map_err(|(_, error)| of(to)(error))?;
    let file = std::fs::File::open(to).map_err(|error| Error::io(to, &error))?;
    file.sync_all().map_err(|error| Error::io(to, &error))
}
