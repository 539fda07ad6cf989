//! Copies a data folder while its owner is running: first a snapshot of the journal, then the files that its records name.

use crate::engine::Error;
use crate::lock::Tidying;
use crate::ownership;
use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use windlass_store::{Store, private};

/// The folders to copy besides the journal. All other files describe processes of this machine.
const FOLDERS: [&str; 3] = ["blobs", "logs", "artefacts"];

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub folder: PathBuf,
    pub files: u64,
    pub bytes: u64,
}

/// Copies a data folder into a new one, which gets its name when all of it is on disk.
///
/// A value is on disk before the record that names it, so copying the journal first misses none. Extra values are harmless.
pub fn backup(folder: &Path, to: &Path) -> Result<Copied, Error> {
    if to.exists() {
        let cause = "this folder already exists; choose another name".to_owned();
        return Err(Error::Folder { folder: to.to_owned(), cause });
    }
    ownership::check(folder, ownership::current_user())?;
    // Keeps sweeps from removing files during the copy.
    let _tidying = Tidying::share(folder);
    let draft = PathBuf::from(format!("{}.unfinished-{}", to.display(), std::process::id()));
    private::create_folder(&draft).map_err(failed(&draft))?;
    let copied = fill(folder, &draft);
    let done = copied.and_then(|copied| {
        sync(&draft).map_err(failed(&draft))?;
        fs::rename(&draft, to).map_err(failed(to))?;
        let around = to.parent().filter(|around| !around.as_os_str().is_empty());
        sync(around.unwrap_or(Path::new("."))).map_err(failed(to))?;
        Ok(Copied { folder: to.to_owned(), ..copied })
    });
    if done.is_err() {
        // The first error matters, not this one.
        let _ = fs::remove_dir_all(&draft);
    }
    done
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<'_> {
    |error| Error::Folder { folder: path.to_owned(), cause: error.to_string() }
}

fn fill(folder: &Path, draft: &Path) -> Result<Copied, Error> {
    let journal = draft.join("journal.db");
    Store::copy_journal(folder, &journal)?;
    let bytes = fs::metadata(&journal).map_err(failed(&journal))?.len();
    let mut copied = Copied { folder: draft.to_owned(), files: 1, bytes };
    for name in FOLDERS {
        copy_folder(&folder.join(name), &draft.join(name), &mut copied)
            .map_err(failed(&folder.join(name)))?;
    }
    Ok(copied)
}

fn copy_folder(from: &Path, to: &Path, copied: &mut Copied) -> std::io::Result<()> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    private::create_folder(to)?;
    for entry in entries {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&path, &target, copied)?;
            continue;
        }
        match fs::File::open(&path) {
            Ok(mut file) => {
                let mut target = private::create(&target)?;
                let bytes = std::io::copy(&mut file, &mut target)?;
                target.sync_all()?;
                (copied.files, copied.bytes) = (copied.files + 1, copied.bytes + bytes);
            }
            // The owner has renamed an unfinished value since. No record of the copy names that value.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    sync(to)
}

fn sync(path: &Path) -> std::io::Result<()> {
    fs::File::open(path)?.sync_all()
}
