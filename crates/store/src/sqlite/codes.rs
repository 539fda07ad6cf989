//! Interprets SQLite's errors: which calls can be retried and which errors end the process.

use crate::error::Error;
use rusqlite::ffi;
use std::path::Path;

/// The first version without a race between a checkpoint and a commit that could damage a database in WAL mode.
const VERSION_MIN: i32 = 3_051_003;

pub(super) fn check_version() -> Result<(), Error> {
    if rusqlite::version_number() >= VERSION_MIN {
        Ok(())
    } else {
        Err(Error::OldSqlite { found: rusqlite::version() })
    }
}

/// Translates an error; for use as `.map_err(of(path))`.
pub(super) fn of(path: &Path) -> impl Fn(rusqlite::Error) -> Error + '_ {
    |error| translate(path, &error)
}

pub(super) fn translate(path: &Path, error: &rusqlite::Error) -> Error {
    let file = path.display().to_string();
    let Some(code) = error.sqlite_error().map(|inner| inner.extended_code) else {
        return Error::Io { file, cause: error.to_string(), fatal: false };
    };
    match code & 0xff {
        // Only this process assigns numbers, so a number that is taken was assigned by another process.
        ffi::SQLITE_CONSTRAINT => Error::NotOwner { file },
        ffi::SQLITE_NOTADB => Error::Foreign { file },
        // A damaged page can cause any error.
        ffi::SQLITE_CORRUPT => Error::Malformed { file, cause: error.to_string() },
        _ => Error::Io { file, cause: error.to_string(), fatal: is_fatal(code) },
    }
}

/// After a failed flush the state of the disk is unknown, and the system may have dropped the pages it could not
/// write: retrying could report a false success. All other errors leave nothing behind: the transaction was rolled
/// back.
fn is_fatal(code: i32) -> bool {
    matches!(code, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_errors_end_the_process() {
        let check = |code: i32, expected: &str| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let what = match translate(Path::new("j"), &error) {
                Error::Io { fatal: true, .. } => "fatal",
                Error::Io { fatal: false, .. } => "again",
                Error::Malformed { .. } => "malformed",
                Error::NotOwner { .. } => "not owner",
                Error::Foreign { .. } => "foreign",
                other => panic!("{other}"),
            };
            assert_eq!(what, expected, "{code}");
        };
        check(ffi::SQLITE_FULL, "again");
        check(ffi::SQLITE_BUSY, "again");
        check(ffi::SQLITE_IOERR_WRITE, "again");
        check(ffi::SQLITE_IOERR_FSYNC, "fatal");
        check(ffi::SQLITE_IOERR_DIR_FSYNC, "fatal");
        check(ffi::SQLITE_CORRUPT, "malformed");
        check(ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "not owner");
        check(ffi::SQLITE_NOTADB, "foreign");
    }
}
