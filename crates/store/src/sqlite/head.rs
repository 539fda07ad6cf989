//! A note next to the journal about how far it got: a journal that ends earlier is an older copy of itself, or has
//! lost its end. Nothing is flushed here, so the note may itself be outdated; then it says less, but never anything
//! wrong.

use super::read;
use super::tails::Tails;
use crate::error::Error;
use crate::journal::Lsn;
use crate::private;
use crate::store::Durability;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// In the data folder itself. A copy of the whole folder includes it, so there can be others elsewhere.
const FILE: &str = "head.json";

/// Where the heads of one journal are stored.
#[derive(Debug)]
pub(super) struct Heads {
    folder: PathBuf,
    elsewhere: Option<PathBuf>,
    durability: Durability,
    boot: String,
}

struct Head {
    id: String,
    last: Lsn,
    /// The fingerprint of the last record, if known.
    seal: String,
    /// Whether a journal up to this record survives a power failure.
    flushed: bool,
    boot: String,
}

impl Heads {
    pub(super) fn new(folder: &Path, elsewhere: Option<PathBuf>, durability: Durability) -> Self {
        Self { folder: folder.into(), elsewhere, durability, boot: boot() }
    }

    fn files(&self, id: &str) -> Vec<PathBuf> {
        let elsewhere = self.elsewhere.as_ref().map(|folder| folder.join(format!("{id}.json")));
        std::iter::once(self.folder.join(FILE)).chain(elsewhere).collect()
    }

    /// Failing to write the note must not stop the owner.
    pub(super) fn write(&self, id: &str, last: u64, seal: &[u8]) {
        let text = serde_json::json!({
            "id": id,
            "last": last,
            "seal": hexadecimal(seal),
            "flushed": self.durability == Durability::Disk,
            "boot": self.boot,
            "folder": self.folder.display().to_string(),
        });
        if let Some(elsewhere) = &self.elsewhere {
            drop(private::create_folder(elsewhere));
        }
        for file in self.files(id) {
            let draft = file.with_extension("new");
            drop(private::write(&draft, format!("{text}\n")).and_then(|()| std::fs::rename(&draft, &file)));
        }
    }

    /// Whether the journal is behind its note.
    pub(super) fn check(&self, connection: &Connection, path: &Path, tails: &Tails) -> Result<(), Error> {
        let Some(id) = &tails.id else { return Ok(()) };
        let known = self.files(id).into_iter().filter_map(|file| read_head(&file));
        for head in known.filter(|head| head.id == *id && (head.flushed || head.boot == self.boot)) {
            let folder = self.folder.display().to_string();
            if head.last.0 > tails.last {
                return Err(Error::Older { folder, found: Lsn(tails.last), known: head.last });
            }
            // A record that was removed since, or is damaged, proves nothing.
            if let Some(Ok(record)) = read::at(connection, path, head.last)?
                && !head.seal.is_empty()
                && hexadecimal(crate::record::seal(record.frame())) != head.seal
            {
                return Err(Error::Forked { folder, at: head.last });
            }
        }
        Ok(())
    }
}

/// Identifies this boot of the machine; empty if unknown.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().into()).unwrap_or_default()
}

/// `None` if there is none, or only part of one.
fn read_head(file: &Path) -> Option<Head> {
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file).ok()?).ok()?;
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    Some(Head {
        id: text("id")?,
        last: Lsn(json["last"].as_u64()?),
        seal: text("seal")?,
        flushed: json["flushed"].as_bool()?,
        boot: text("boot")?,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
