//! A folder for one test. No other test shares it, in this process or another, and it is removed at the end.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// In the temporary folder of the system, as the path of a socket may not be long.
    pub fn new(test: &str) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("windlass-{test}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of our own");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it stays, it is in no one's way.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
