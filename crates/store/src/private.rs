//! Files and folders that no other user can open, regardless of the umask: inputs and outputs of runs may be secret.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Options for a file that is created with mode 0600.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Creates a file, or empties it.
pub fn create(path: &Path) -> io::Result<File> {
    options().write(true).create(true).truncate(true).open(path)
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    create(path)?.write_all(content.as_ref())
}

/// Creates an empty file for SQLite, whose other files inherit its mode. An existing file is not opened: closing it
/// would release the locks that SQLite holds on it in this process.
#[cfg(feature = "sqlite")]
pub(crate) fn reserve(path: &Path) {
    // SQLite itself reports what is wrong with the path.
    drop(options().write(true).create_new(true).open(path));
}

/// Creates a folder and its parents with mode 0700.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(path)
}

/// Whether other users have any permissions on a file or folder.
#[cfg(unix)]
pub fn is_open_to_others(path: &Path) -> io::Result<bool> {
    Ok(path.metadata()?.mode() & 0o077 != 0)
}

/// Removes the permissions of other users from a folder or file, recursively.
#[cfg(unix)]
pub fn tighten(path: &Path) -> io::Result<()> {
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_dir() {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
        return std::fs::read_dir(path)?.try_for_each(|entry| tighten(&entry?.path()));
    }
    match kind.is_file() {
        true => std::fs::set_permissions(path, Permissions::from_mode(0o600)),
        false => Ok(()),
    }
}
