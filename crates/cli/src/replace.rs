//! Writes a file anew so that nobody ever sees half of it: beside it first, then in its place.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A link stays a link: the file that it leads to is replaced. Permissions stay as they are, and a file that may not be
/// written is not replaced either.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = std::fs::canonicalize(path)?;
    let metadata = std::fs::metadata(&target)?;
    if metadata.permissions().readonly() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it may not be written"));
    }
    let (beside, file) = create_beside(&target)?;
    let done = fill(file, bytes, metadata.permissions()).and_then(|()| std::fs::rename(&beside, &target));
    if done.is_err() {
        // The first failure is the one to tell; what is left beside the file harms nobody.
        let _ = std::fs::remove_file(&beside);
    }
    done
}

fn fill(mut file: File, bytes: &[u8], permissions: std::fs::Permissions) -> io::Result<()> {
    file.write_all(bytes)?;
    file.set_permissions(permissions)?;
    file.sync_all()
}

/// In the same folder, as only there a rename is one step.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = std::ffi::OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = target.with_file_name(name);
    let file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    Ok((beside, file))
}
