//! Reads the files that a search finds.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;
use windlass_dialects::text::Limits;

/// Reads a regular file up to the size limit of workflow files. Opening a pipe would block, so the type is checked first.
pub fn read(file: &Path) -> Result<Vec<u8>> {
    let bytes_max = Limits::default().bytes_max as u64;
    let about = std::fs::metadata(file)?;
    if !about.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "this is not a regular file"));
    }
    let too_large = || Error::new(ErrorKind::FileTooLarge, "the file is too large");
    if about.len() > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(too_large()) } else { Ok(bytes) }
}
