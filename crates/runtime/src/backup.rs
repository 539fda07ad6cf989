//! A copy of a data folder, made while its owner goes on: the journal as it is at one moment, then whatever its records name.

use crate::engine::Error;
use crate::lock::Tidying;
use crate::ownership;
use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use windlass_store::{Store, private};

/// What is copied beside the journal. All else is about processes of this machine.
const FOLDERS: [&str; 3] = ["blobs", "logs", "artefacts"];

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    pub folder: PathBuf,
    pub files: u64,
    pub bytes: u64,
}

/// Copies a data folder into one that is not there yet. It appears under its name when all of it is on the disk.
///
/// Values are on the disk before the record that names them, so copying the journal first misses none; what is copied beyond that
/// is named by nobody, and does no harm.
pub fn backup(folder: &Path, to: &Path) -> Result<Copied, Error> {
    if to.exists() {
        let cause = "it is there already: choose a name that is not taken".to_owned();
        return Err(Error::Folder { folder: to.to_owned(), cause });
    }
    ownership::check(folder, ownership::current_user())?;
    // Nothing is removed meanwhile.
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
        // What is wrong with the copy is on its way already.
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
            // A value that was just being written has its name by now, and no record names it yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    sync(to)
}

fn sync(path: &Path) -> std::io::Result<()> {
    fs::File::open(path)?.sync_all()
}
