//! A copy of the journal as it is at one moment, made while others go on writing to it.

use super::codes::of;
use super::schema;
use crate::error::Error;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::path::Path;

/// As SQLite writes "all pages".
const ALL: std::ffi::c_int = -1;

/// Copies every page in one step. That holds one moment of the log for so long and stands in the way of nobody: were it done in
/// parts, each commit in between would make it begin anew. Damaged pages are copied as they are.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let source = schema::open_reader(from)?;
    schema::check(&source, from)?;
    crate::private::reserve(to);
    let mut target = Connection::open(to).map_err(of(to))?;
    // The source waits for locks by itself, so that whatever is in the way now is in the way to stay.
    let copied = Backup::new(&source, &mut target).and_then(|backup| backup.step(ALL)).map_err(of(to))?;
    if copied != StepResult::Done {
        let cause = "somebody else holds it".to_owned();
        return Err(Error::Io { file: from.display().to_string(), cause, fatal: false });
    }
    target.close().map_err(|(_, error)| of(to)(error))?;
    let file = std::fs::File::open(to).map_err(|error| Error::io(to, &error))?;
    file.sync_all().map_err(|error| Error::io(to, &error))
}
