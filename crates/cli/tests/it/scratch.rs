//! A folder for one test in one process: two test runs in one checkout do not meet, and nothing is left of it.

use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// In the temporary folder of the system, as the path of a socket may not be long.
    pub fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("windlass-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Left behind it would be in the way of nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
