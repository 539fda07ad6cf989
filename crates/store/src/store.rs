//! The door: opening a data folder, or a store that lives in memory.

use crate::blobs::Blobs;
use crate::error::Error;
use crate::journal::Journal;
use crate::memory::Memory;
use crate::pending::Pending;
use crate::plans::Plans;
use crate::view::{Projection, View};
use std::sync::Arc;

/// What an acknowledged record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The loss of power: every commit is flushed to the disk.
    #[default]
    Disk,
    /// The death of the process, not of the machine.
    Process,
}

/// How often the store tidies up. The defaults fit; tests take smaller ones to see more happen.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The most bytes of records in one commit.
    pub batch_bytes: usize,
    /// The write-ahead log is folded into the database when it has grown by this much.
    pub log_bytes: u64,
    /// The rows of lists may be this many records behind while the store is busy, and up to eight times as many with many runs
    /// at work. Opening a journal reads as many.
    pub row_records: u64,
    /// With this set the journal is full when it has so many pages.
    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) pages_max: Option<u32>,
    /// With a number of SQLite in it commits fail with that.
    #[cfg(all(test, feature = "sqlite"))]
    pub(crate) fault: Arc<std::sync::atomic::AtomicI32>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            batch_bytes: 4 << 20,
            // A log that is written over again needs no new blocks: keeping it short makes flushes cheaper.
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
    /// What the view shows; without it the view stays empty.
    pub projection: Option<Arc<dyn Projection>>,
    pub tuning: Tuning,
    /// A folder outside of all data folders in which is written down how far each journal has come, so that an older copy of a
    /// whole folder is known for what it is.
    pub heads: Option<std::path::PathBuf>,
    /// Go on from a journal that is older than what is known of it. It gets another name and is a copy of no other from then on.
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

/// Everything that is remembered. Clones share it; it is closed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    pub journal: Arc<dyn Journal>,
    pub plans: Arc<dyn Plans>,
    pub blobs: Arc<dyn Blobs>,
    pub view: Arc<dyn View>,
    #[cfg(feature = "sqlite")]
    folder: Option<Arc<crate::sqlite::Sqlite>>,
}

impl Store {
    /// A store that is gone with its last clone.
    pub fn memory(options: Options) -> Self {
        let memory = Arc::new(Memory::new(options.projection));
        Self {
            journal: memory.clone(),
            plans: memory.clone(),
            blobs: memory.clone(),
            view: memory,
            #[cfg(feature = "sqlite")]
            folder: None,
        }
    }

    /// Opens a data folder to write to it; makes it when it is not there. The caller holds the lock of the owner.
    #[cfg(feature = "sqlite")]
    pub fn open(folder: &std::path::Path, options: Options) -> Result<Self, Error> {
        crate::sqlite::Sqlite::open(folder, options).map(Self::of)
    }

    /// Opens a data folder that another process may own. Whatever would write is answered with [`Error::ReadOnly`].
    #[cfg(feature = "sqlite")]
    pub fn open_read_only(folder: &std::path::Path, options: Options) -> Result<Self, Error> {
        crate::sqlite::Sqlite::open_read_only(folder, options).map(Self::of)
    }

    /// Copies the journal of a data folder, as it is at one moment, into a file; somebody may be writing to it meanwhile.
    #[cfg(feature = "sqlite")]
    pub fn copy_journal(folder: &std::path::Path, to: &std::path::Path) -> Result<(), Error> {
        crate::sqlite::copy_journal(folder, to)
    }

    /// What is wrong with the database as such, whatever its records say.
    #[cfg(feature = "sqlite")]
    pub fn check_files(&self) -> Pending<Vec<String>> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok(Vec::new())), |folder| folder.check_files())
    }

    /// Whether the journal in this folder is the one that was written there last, and all of it. [`Store::open`] refuses others.
    #[cfg(feature = "sqlite")]
    pub fn check_head(&self, folder: &std::path::Path, options: &Options) -> Pending<()> {
        let check = |store: &Arc<crate::sqlite::Sqlite>| store.check_head(folder, options);
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok(())), check)
    }

    /// How many records there are, and how many there have to be.
    #[cfg(feature = "sqlite")]
    pub fn count(&self) -> Pending<(u64, u64)> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok((0, 0))), |store| store.count())
    }

    /// How many bytes the journal takes, and how many of those are free.
    #[cfg(feature = "sqlite")]
    pub fn room(&self) -> Pending<(u64, u64)> {
        self.folder.as_ref().map_or_else(|| Pending::ready(Ok((0, 0))), |store| store.room())
    }

    /// Waits for what is on its way and leaves the folder tidy, the log folded in. A store that is only dropped waits
    /// too, and leaves the tidying to whoever opens it next.
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
            folder: Some(folder),
        }
    }
}
