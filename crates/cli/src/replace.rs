//! Replaces a file atomically: writes a temporary file beside it, then renames it.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Follows a link and replaces its target. Keeps the permissions, and refuses a read-only file.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&target)?;
    if metadata.permissions().readonly() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let (beside, file) = create_beside(&target)?;
    let done = fill(file, bytes, metadata.permissions()).and_then(|()| std::fs::rename(&beside, &target));
    if done.is_err() {
        // Report the first error; a leftover temporary file does no harm.
        let _ = std::fs::remove_file(&beside);
    }
    done
}

fn fill(mut file: File, bytes: &[u8], permissions: std::fs::Permissions) -> io::Result<()> {
    file.write_all(bytes)?;
    file.set_permissions(permissions)?;
    file.sync_all()
}

/// A rename is atomic only within the same folder.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = target.with_file_name(name);
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    Ok((beside, file))
}
