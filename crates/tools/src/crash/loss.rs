//! The loss of power: what the program under test had written and not flushed when it was killed is taken back in part.
//!
//! `power_loss.c` is loaded into the program and writes down, for every change of a file in the data folder, what stood there
//! before, until the file is flushed. Here a random part of that is put back, sector by sector, each as it was at some moment
//! since the last flush: a disk writes in any order.

use super::Random;
use super::checks::Result;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SECTOR: u64 = 512;
const SOURCE: &str = include_str!("power_loss.c");

/// What makes losses possible, for one data folder.
#[derive(Clone)]
pub struct Power {
    library: PathBuf,
    data: PathBuf,
    undo: PathBuf,
}

/// A change that was not flushed.
struct Change {
    offset: u64,
    written: u64,
    before: Vec<u8>,
    size_before: u64,
}

/// Compiles the library. None where there is no compiler.
pub fn library(folder: &Path) -> Result<Option<PathBuf>> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let (source, library) = (folder.join("power_loss.c"), folder.join("power_loss.so"));
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    match compiled {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cc: {error}")),
        Ok(output) if output.status.success() => Ok(Some(library)),
        Ok(output) => Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

impl Power {
    pub fn new(library: &Path, data: &Path) -> Self {
        let undo = data.with_extension("undo");
        std::fs::create_dir_all(&undo).expect("a folder of our own");
        Self { library: library.to_owned(), data: data.to_owned(), undo }
    }

    pub fn around(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("POWER_ROOT", &self.data).env("POWER_UNDO", &self.undo);
    }

    /// Takes back a part of what was not flushed. Says how many sectors were lost.
    pub fn fails(&self, random: &mut Random) -> Result<u64> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.undo.display());
        let mut lost = 0;
        for entry in std::fs::read_dir(&self.undo).map_err(failed)?.flatten() {
            let name = entry.file_name().to_string_lossy().replace('%', "/");
            let changes = changes(&std::fs::read(entry.path()).map_err(failed)?);
            let file = self.data.join(name);
            if file.exists() && !changes.is_empty() {
                lost += take_back(&file, &changes, random).map_err(failed)?;
            }
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
        Ok(lost)
    }
}

/// The last one may be cut off: then the change itself was never made.
fn changes(mut bytes: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Some((header, rest)) = bytes.split_at_checked(32) {
        let number = |place: usize| {
            u64::from_ne_bytes(header[place * 8..place * 8 + 8].try_into().expect("eight bytes"))
        };
        let (offset, written, kept, size_before) = (number(0), number(1), number(2), number(3));
        let Some((before, rest)) = usize::try_from(kept).ok().and_then(|kept| rest.split_at_checked(kept))
        else {
            break;
        };
        changes.push(Change { offset, written, before: before.to_vec(), size_before });
        bytes = rest;
    }
    changes
}

fn take_back(file: &Path, changes: &[Change], random: &mut Random) -> std::io::Result<u64> {
    let disk = OpenOptions::new().read(true).write(true).open(file)?;
    let count = changes.len() as u64;
    // Everything was written, nothing was, or each sector and the length for themselves.
    let (all, nothing) = (random.below(4) == 0, random.below(3) == 0);
    let since = |random: &mut Random| match (all, nothing) {
        (true, _) => count,
        (false, true) => 0,
        (false, false) => random.below(count + 1),
    };
    let touched = changes.iter().flat_map(|change| {
        let end = change.offset + change.written.max(change.before.len() as u64);
        change.offset / SECTOR..end.div_ceil(SECTOR)
    });
    let sectors: std::collections::BTreeSet<u64> = touched.collect();
    let mut lost = 0;
    for sector in sectors {
        let first = usize::try_from(since(random)).unwrap_or(usize::MAX);
        let back = &changes[first.min(changes.len())..];
        lost += u64::from(!back.is_empty());
        for change in back.iter().rev() {
            put_back(&disk, change, sector * SECTOR)?;
        }
    }
    let first = usize::try_from(since(random)).unwrap_or(usize::MAX);
    if let Some(change) = changes.get(first) {
        disk.set_len(change.size_before)?;
    }
    Ok(lost)
}

/// Puts back the part of a change that is in one sector.
fn put_back(disk: &std::fs::File, change: &Change, sector: u64) -> std::io::Result<()> {
    let (from, to) = (change.offset.max(sector), (change.offset + change.written).min(sector + SECTOR));
    let cut = change.offset + change.before.len() as u64;
    for at in from..to {
        // What stood behind the end of the file is nothing.
        let byte = if at < cut { change.before[usize::try_from(at - change.offset).unwrap_or(0)] } else { 0 };
        disk.write_at(&[byte], at)?;
    }
    Ok(())
}
