//! The entry point: opens a data folder, or a store in memory.

use crate::blobs::Blobs;
use crate::error::Error;
use crate::journal::Journal;
use crate::ledger::Ledger;
use crate::memory::Memory;
use crate::pending::Pending;
use crate::plans::Plans;
use crate::view::{Projection, View};
use std::sync::Arc;

/// What an acknowledged record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure: every commit is flushed to the disk.
    #[default]
    Disk,
    /// The end of the process, but not of the machine.
    Process,
}

/// Thresholds for maintenance. The defaults are fine; tests use smaller ones to trigger it more often.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The maximum size of records in one commit.
    pub batch_bytes: usize,
    /// The write-ahead log is checkpointed when it has grown by this much.
    pub log_bytes: u64,
    /// The rows of lists may lag this many records behind while the store is busy, and up to eight times as many with
    /// many active runs. Opening a journal reads as many.
    pub row_records: u64,
    /// If set, the journal is full at this many pages.
    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) pages_max: Option<u32>,
    /// If set, commits fail with this SQLite error code.
    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) fault: Arc<std::sync::atomic::AtomicI32>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            batch_bytes: 4 << 20,
            // Overwriting a short log needs no new blocks, which makes flushes cheaper.
            log_bytes: 1 << 20,
            row_records: 1_000,
            #[cfg(all(test, feature = "sqlite"))]
            pages_max: None,
            #[cfg(all(test, feature = "sqlite"))]
            fault: Arc::default(),
        }
    }
}

#[derive(Clone, Default)]
pub struct Options {
    pub durability: Durability,
    /// The projection of the view; without it the view stays empty.
    pub projection: Option<Arc<dyn Projection>>,
    pub tuning: Tuning,
    /// A folder outside of all data folders that records how far each journal got, so that an older copy of a whole
    /// folder is detected.
    pub heads: Option<std::path::PathBuf>,
    /// Continue from a journal that is older than expected. It gets a new name and is no longer a copy of any other.
    pub accept_older: bool,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("durability", &self.durability)
            .field("projection", &self.projection.as_ref().map(|projection| projection.version()))
            .field("tuning", &self.tuning)
            .field("heads", &self.heads)
            .field("accept_older", &self.accept_older)
            .finish()
    }
}

/// A handle to the store. Clones share it; it is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    pub journal: Arc<dyn Journal>,
    pub plans: Arc<dyn Plans>,
    pub blobs: Arc<dyn Blobs>,
    pub view: Arc<dyn View>,
    pub ledger: Arc<dyn Ledger>,
    #[cfg(feature = "sqlite")]
    folder: Option<Arc<crate::sqlite::Sqlite>>,
}

impl Store {
    /// A store that disappears with its last clone.
    pub fn memory(options: Options) -> Self {
        let memory = Arc::new(Memory::new(options.projection));
        Self {
            journal: memory.clone(),
            plans: memory.clone(),
            blobs: memory.clone(),
            view: memory.clone(),
            ledger: memory,
            #[cfg(feature = "sqlite")]
            folder: None,
        }
    }

    /// Opens a data folder for writing, and creates it if it does not exist. The caller holds the owner's lock.
    #[cfg(feature = "sqlite")]
    pub fn open(folder: &std::path::Path, options: Options) -> Result<Self, Error> {
        crate::sqlite::Sqlite::open(folder, options).map(Self::of)
    }

    /// Opens a data folder that another process may own. Writes are answered with [`Error::ReadOnly`].
    #[cfg(feature = "sqlite")]
    pub fn open_read_only(folder: &std::path::Path, options: Options) -> Result<Self, Error> {
        crate::sqlite::Sqlite::open_read_only(folder, options).map(Self::of)
    }

    /// Copies the journal of a data folder, in a consistent state, into a file, even while it is being written.
    #[cfg(feature = "sqlite")]
    pub fn copy_journal(folder: &std::path::Path, to: &std::path::Path) -> Result<(), Error> {
        crate::sqlite::copy_journal(folder, to)
    }

    /// Problems of the database itself, regardless of its records.
    #[cfg(feature = "sqlite")]
    pub fn check_files(&self) -> Pending<Vec<String>> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok(Vec::new())), |folder| folder.check_files())
    }

    /// Whether the journal in this folder is the latest one written there, and complete. [`Store::open`] refuses
    /// others.
    #[cfg(feature = "sqlite")]
    pub fn check_head(&self, folder: &std::path::Path, options: &Options) -> Pending<()> {
        let check = |store: &Arc<crate::sqlite::Sqlite>| store.check_head(folder, options);
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok(())), check)
    }

    /// The number of records, and the expected number.
    #[cfg(feature = "sqlite")]
    pub fn count(&self) -> Pending<(u64, u64)> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok((0, 0))), |store| store.count())
    }

    /// The size of the journal in bytes, and how much of it is free.
    #[cfg(feature = "sqlite")]
    pub fn room(&self) -> Pending<(u64, u64)> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok((0, 0))), |store| store.room())
    }

    /// Waits for pending work and leaves the folder clean, with the log checkpointed. A store that is only dropped
    /// waits too, and leaves the cleanup to the next process.
    pub fn close(self) -> Result<(), Error> {
        #[cfg(feature = "sqlite")]
        if let Some(folder) = &self.folder {
            return folder.close();
        }
        Ok(())
    }

    #[cfg(feature = "sqlite")]
    fn of(folder: crate::sqlite::Sqlite) -> Self {
        let folder = Arc::new(folder);
        Self {
            journal: folder.clone(),
            plans: folder.clone(),
            blobs: folder.clone(),
            view: folder.clone(),
            ledger: folder.clone(),
            folder: Some(folder),
        }
    }
}
