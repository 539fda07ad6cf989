//! Where this program notes, outside of all data folders, how far their journals have come: an older copy of a whole folder is
//! known by that. A library that is part of another program notes nothing unless it is told to.

use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Names the folder, once for the whole process.
pub fn keep_heads_in(folder: PathBuf) {
    // Whoever was first has been believed already.
    let _ = FOLDER.set(folder);
}

pub(crate) fn folder() -> Option<PathBuf> {
    FOLDER.get().cloned()
}
