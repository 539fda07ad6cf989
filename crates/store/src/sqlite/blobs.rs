//! Large values as files: `blobs/ab/abcd…`. A file appears under its name only when its content is on the disk.

use crate::blobs::BlobId;
use crate::error::Error;
use crate::private;
use crate::store::Durability;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Folder {
    path: PathBuf,
    durability: Durability,
    /// Makes the names of unfinished files differ within this process.
    unfinished: AtomicU64,
    /// Put by this process: the record that names one may be on its way. Held while one is removed, so that none is that is just
    /// being put.
    fresh: Mutex<HashSet<BlobId>>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability, unfinished: AtomicU64::new(0), fresh: Mutex::default() }
    }

    fn file(&self, id: &BlobId) -> PathBuf {
        self.path.join(&id.as_str()[..2]).join(id.as_str())
    }

    pub(super) fn put(&self, content: &[u8]) -> Result<BlobId, Error> {
        let id = BlobId::of(content);
        self.fresh().insert(id.clone());
        let file = self.file(&id);
        let shelf = file.parent().unwrap_or(&self.path);
        // Reading it is cheaper than trusting it: a damaged one is written again.
        if fs::read(&file).is_ok_and(|stored| stored == content) {
            return self.sync_folders(shelf).map(|()| id);
        }
        private::create_folder(shelf).map_err(|error| Error::io(shelf, &error))?;
        let number = self.unfinished.fetch_add(1, Ordering::Relaxed);
        let draft = self.path.join(format!("unfinished-{}-{number}", std::process::id()));
        let written = self
            .write(&draft, content)
            .and_then(|()| fs::rename(&draft, &file).map_err(|error| Error::io(&file, &error)))
            .and_then(|()| self.sync_folders(shelf));
        if written.is_err() {
            // It may not even exist; the error that matters is already on its way.
            drop(fs::remove_file(&draft));
        }
        written.map(|()| id)
    }

    pub(super) fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        let file = self.file(id);
        match fs::read(&file) {
            Ok(content) if BlobId::of(&content) == *id => Ok(Some(content)),
            Ok(_) => Err(Error::CorruptBlob { id: id.clone() }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&file, &error)),
        }
    }

    fn fresh(&self) -> MutexGuard<'_, HashSet<BlobId>> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        let mut found = Vec::new();
        for shelf in entries(&self.path)?.into_iter().filter(|entry| entry.path().is_dir()) {
            for entry in entries(&shelf.path())? {
                let id = entry.file_name().to_str().and_then(BlobId::parse);
                let bytes = entry.metadata().map_or(0, |about| about.len());
                found.extend(id.map(|id| (id, bytes)));
            }
        }
        Ok(found)
    }

    pub(super) fn forget(&self, id: &BlobId) -> Result<bool, Error> {
        let fresh = self.fresh();
        let file = self.file(id);
        if fresh.contains(id) {
            return Ok(false);
        }
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(&file, &error)),
        }
    }

    fn write(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        let mut file = private::create(path).map_err(|error| Error::io(path, &error))?;
        file.write_all(content).map_err(|error| Error::io(path, &error))?;
        match self.durability {
            Durability::Disk => file.sync_data().map_err(|error| Error::flush(path, &error)),
            Durability::Process => Ok(()),
        }
    }

    /// A name is durable when the folder it stands in is; a new shelf is a name in the folder of all blobs, and that one
    /// in the data folder.
    fn sync_folders(&self, shelf: &Path) -> Result<(), Error> {
        match self.durability {
            Durability::Disk => [Some(shelf), Some(&self.path), self.path.parent()]
                .into_iter()
                .flatten()
                .try_for_each(sync_folder),
            Durability::Process => Ok(()),
        }
    }
}

/// None in a folder that is not there.
fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.collect::<std::io::Result<_>>().map_err(|error| Error::io(folder, &error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(folder, &error)),
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), Error> {
    let opened = File::open(folder).map_err(|error| Error::io(folder, &error))?;
    opened.sync_all().map_err(|error| Error::flush(folder, &error))
}

/// Elsewhere a folder cannot be flushed and names are durable without.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<(), Error> {
    Ok(())
}
