//! One owner at a time: whoever holds the lock of a data folder drives its runs.

use crate::engine::Error;
use crate::ownership;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

/// Held as long as it lives; the operating system gives it back when the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder, which is created if it is not there.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            let help = match error.kind() {
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    "; its runs can be looked at, but nothing can be driven or told here: make it writable, or name another folder with `--data`"
                }
                _ => "",
            };
            Error::Folder { folder: folder.to_owned(), cause: format!("{error}{help}") }
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        ownership::check(folder, ownership::current_user())?;
        let file = File::options().create(true).truncate(false).write(true).open(folder.join("owner.lock"));
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Owned(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Held by whoever copies the folder, and alone by whoever removes something from it.
#[derive(Debug)]
pub(crate) struct Tidying {
    _file: Option<File>,
}

const TIDYING: &str = "tidying.lock";

impl Tidying {
    /// Where nothing can be written nothing can be removed either, and no lock is needed.
    pub fn share(folder: &Path) -> Self {
        let file = File::options().create(true).truncate(false).write(true).open(folder.join(TIDYING)).ok();
        Self { _file: file.filter(|file| file.lock_shared().is_ok()) }
    }

    /// None while somebody copies the folder.
    pub fn take(folder: &Path) -> std::io::Result<Option<Self>> {
        let file = File::options().create(true).truncate(false).write(true).open(folder.join(TIDYING))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
