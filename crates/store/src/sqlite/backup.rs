//! A copy of the journal as it is at one moment, made while others go on writing to it.

use super::codes::of;
use super::schema;
use crate::error::Error;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use std::path::Path;

/// Copies every page in one step. That holds one moment of the log for so long and stands in the way of nobody: were it done in
/// parts, each commit in between would make it begin anew. Damaged pages are copied as they are.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let source = schema::open_reader(from)?;
    schema::check(&source, from)?;
    let mut target = Connection::open(to).map_err(of(to))?;
    let copied =
        Backup::new(&source, &mut target).and_then(|backup| backup.run_to_completion(-1, schema::BUSY, None));
    copied.map_err(of(to))?;
    target.close().map_err(|(_, error)| of(to)(error))?;
    let file = std::fs::File::open(to).map_err(|error| Error::io(to, &error))?;
    file.sync_all().map_err(|error| Error::io(to, &error))
}
