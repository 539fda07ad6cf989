//! One owner at a time: whoever holds the lock of a data folder drives its runs.

use crate::engine::Error;
use crate::ownership;
use rustix::fs::OFlags;
use std::fs::{File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use windlass_store::private;

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
        private::create_folder(folder).map_err(failed)?;
        ownership::check(folder, ownership::current_user())?;
        tighten(folder)?;
        let file = open(&folder.join("owner.lock")).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Owned(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

fn open(file: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    private::options()
        .create(true)
        .truncate(false)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(file)
}

/// What a data folder has in it that may have been created with wider modes.
const CONTENTS: [&str; 13] = [
    "journal.db",
    "journal.db-wal",
    "journal.db-shm",
    "view.db",
    "view.db-wal",
    "view.db-shm",
    "head.json",
    "children",
    "owner.lock",
    "tidying.lock",
    "blobs",
    "logs",
    "artefacts",
];

/// Closes a data folder to other users. A folder that holds only other things is not ours to change.
fn tighten(folder: &Path) -> Result<(), Error> {
    let failed = |cause: String| Error::Folder { folder: folder.to_owned(), cause };
    let cannot = |error: std::io::Error| failed(format!("its mode cannot be changed to 0700: {error}"));
    if !private::is_open_to_others(folder).map_err(cannot)? {
        return Ok(());
    }
    let is_foreign = |entry: std::fs::DirEntry| !CONTENTS.iter().any(|name| entry.file_name() == *name);
    if !folder.join("journal.db").exists()
        && std::fs::read_dir(folder).map_err(cannot)?.flatten().any(is_foreign)
    {
        let help = "name a new or empty folder with `--data`, or run `chmod 700` on this one";
        return Err(failed(format!("it is not a data folder, and other users can open it: {help}")));
    }
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(cannot)?;
    if private::is_open_to_others(folder).map_err(cannot)? {
        let help = "name a folder on a local disk with `--data`";
        return Err(failed(format!("other users can open it, and its mode cannot be changed: {help}")));
    }
    for file in CONTENTS.map(|name| folder.join(name)).iter().filter(|file| file.exists()) {
        private::tighten(file).map_err(cannot)?;
    }
    Ok(())
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
        let file = open(&folder.join(TIDYING)).ok();
        Self { _file: file.filter(|file| file.lock_shared().is_ok()) }
    }

    /// None while somebody copies the folder.
    pub fn take(folder: &Path) -> std::io::Result<Option<Self>> {
        let file = open(&folder.join(TIDYING))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
