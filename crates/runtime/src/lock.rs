//! The locks of a data folder. The process that holds the owner lock executes its runs.

use crate::engine::Error;
use crate::ownership;
use rustix::fs::OFlags;
use std::fs::{File, Permissions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use windlass_store::private;

/// The owner lock. The operating system releases it when the process ends, even after a crash.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder, and creates the folder if necessary.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            let help = match error.kind() {
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    "; you can show its runs, but not execute or change them: make it writable, or name another folder with `--data`"
                }
                _ => "",
            };
            Error::Folder { folder: folder.to_owned(), cause: format!("{error}{help}") }
        };
        private::create_folder(folder).map_err(failed)?;
        ownership::check(folder, ownership::current_user())?;
        tighten(folder)?;
        let is_new = !folder.join("owner.lock").exists();
        let file = open(&folder.join("owner.lock")).map_err(failed)?;
        if is_new && folder.file_name().is_some_and(|name| name == ".windlass") {
            ignore(&folder.join(".gitignore"));
        }
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::Owned(folder.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

/// Keeps a data folder out of the repository around it.
fn ignore(file: &Path) {
    let created = private::options().write(true).create_new(true).open(file);
    // An existing file stays as it is, and Windlass works without one.
    let _ = created.and_then(|mut file| file.write_all(b"*\n"));
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

/// The contents of a data folder, which may have been created with wider modes.
const CONTENTS: [&str; 14] = [
    ".gitignore",
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

/// Closes a data folder to other users. Does not change a folder that contains other files but no journal.
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

/// The tidying lock: backups share it, and a sweep takes it exclusively.
#[derive(Debug)]
pub(crate) struct Tidying {
    _file: Option<File>,
}

const TIDYING: &str = "tidying.lock";

impl Tidying {
    /// Shares the lock. A read-only folder needs no lock, because no process can remove anything from it.
    pub fn share(folder: &Path) -> Self {
        let file = open(&folder.join(TIDYING)).ok();
        Self { _file: file.filter(|file| file.lock_shared().is_ok()) }
    }

    /// Takes the lock exclusively. `None` during a backup.
    pub fn take(folder: &Path) -> std::io::Result<Option<Self>> {
        let file = open(&folder.join(TIDYING))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
