//! The folder in which Windlass records, outside of all data folders, how far each journal has progressed. This detects an older
//! copy of a whole data folder. As a library Windlass records nothing unless the program names a folder.

use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Names the folder, once for the whole process.
pub fn keep_heads_in(folder: PathBuf) {
    // The first call wins, because stores may already use its folder.
    let _ = FOLDER.set(folder);
}

pub(crate) fn folder() -> Option<PathBuf> {
    FOLDER.get().cloned()
}
