//! Large values as files: `blobs/ab/abcd…`. A file gets its name only after its content is on the disk.

use crate::blobs::BlobId;
use crate::error::Error;
use crate::private;
use crate::store::Durability;
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Folder {
    path: PathBuf,
    durability: Durability,
    /// Values whose names this process has flushed, so that repeated values are not flushed again.
    flushed: Mutex<HashSet<BlobId>>,
}

/// The maximum number of remembered names.
const FLUSHED_MAX: usize = 4_096;

impl Folder {
    pub(super) fn new(path: PathBuf, durability: Durability) -> Self {
        Self { path, durability, flushed: Mutex::default() }
    }

    fn file(&self, id: &BlobId) -> PathBuf {
        self.path.join(&id.as_str()[..2]).join(id.as_str())
    }

    /// Writes values; they are durable when this returns. Only the writer thread calls it.
    pub(super) fn put<'v>(
        &self,
        values: impl Iterator<Item = (&'v BlobId, &'v Vec<u8>)>,
    ) -> Result<(), Error> {
        let (mut folders, mut flushed) = (BTreeSet::new(), self.flushed());
        let mut new = Vec::new();
        for (id, content) in values {
            let file = self.file(id);
            let shelf = file.parent().unwrap_or(&self.path);
            // The file may be damaged, or its name may not be durable: an earlier process may have died in between.
            if !fs::read(&file).is_ok_and(|stored| stored == *content) {
                private::create_folder(shelf).map_err(|error| Error::io(shelf, &error))?;
                let draft = self.path.join(format!("unfinished-{}", std::process::id()));
                let written = self
                    .write(&draft, content)
                    .and_then(|()| fs::rename(&draft, &file).map_err(|error| Error::io(&file, &error)));
                if written.is_err() {
                    // It may not exist; the caller gets the more relevant error.
                    drop(fs::remove_file(&draft));
                }
                written?;
            } else if flushed.contains(id) {
                continue;
            }
            folders.insert(shelf.to_owned());
            new.push(id.clone());
        }
        if folders.is_empty() || self.durability == Durability::Process {
            return Ok(());
        }
        // A name is durable once its folder is flushed. A new subfolder is a name in the folder of all blobs, which
        // is a name itself.
        folders.extend([Some(&*self.path), self.path.parent()].into_iter().flatten().map(Path::to_owned));
        folders.iter().try_for_each(|folder| sync_folder(folder))?;
        if flushed.len() + new.len() > FLUSHED_MAX {
            flushed.clear();
        }
        flushed.extend(new);
        Ok(())
    }

    fn flushed(&self) -> MutexGuard<'_, HashSet<BlobId>> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Removes a value. Returns whether it was there.
    pub(super) fn remove(&self, id: &BlobId) -> Result<bool, Error> {
        let file = self.file(id);
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
}

/// Empty if the folder does not exist.
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

/// Other systems cannot flush a folder, and names are durable without it.
#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> Result<(), Error> {
    Ok(())
}
