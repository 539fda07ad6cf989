//! What can go wrong between us and the disk. Every error is `Clone`, because one failed commit is the answer to
//! everybody who waited for it.

use crate::blobs::BlobId;
use crate::journal::Lsn;
use windlass_engine::{Contradiction, RunId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes on the disk are not those that were written. Only this run is hurt.
    #[error(
        "record {lsn} of run `{run}` is damaged: its checksum does not fit; restore the data folder from a backup to go on with this run, all others are not affected"
    )]
    Corrupt { run: RunId, lsn: Lsn },
    /// The bytes are what was written, and this program does not understand them. Only this run is hurt.
    #[error(
        "record {lsn} of run `{run}` cannot be read: {cause}; use the version of windlass that wrote it, or a newer one"
    )]
    Unreadable { run: RunId, lsn: Lsn, cause: String },
    /// Every record can be read, and one of them cannot follow those before it. Only this run is affected.
    #[error(
        "the journal of run `{run}` contradicts itself: {contradiction}; restore the data folder from a backup to continue this run, all others are not affected"
    )]
    Contradictory { run: RunId, contradiction: Box<Contradiction> },
    #[error(
        "record {lsn} belongs to no known run: the journal is damaged there; restore the data folder from a backup"
    )]
    Orphan { lsn: Lsn },
    #[error(
        "the stored plan `{digest}` is damaged: its checksum does not fit; restore the data folder from a backup"
    )]
    CorruptPlan { digest: String },
    #[error(
        "the stored plan `{digest}` cannot be read: {cause}; use the version of windlass that wrote it, or a newer one"
    )]
    UnreadablePlan { digest: String, cause: String },
    #[error(
        "the stored value `{id}` is damaged: its content does not fit its name; restore the data folder from a backup"
    )]
    CorruptBlob { id: BlobId },
    /// What was to be written could not be read again. Nothing was written.
    #[error("a record of run `{run}` cannot be stored: {cause}")]
    Unstorable { run: RunId, cause: String },
    /// The environment failed. When `fatal` is not set nothing was written and the same call may be tried again.
    #[error("{file}: {cause}{}", if *fatal { "; the program must end now and start anew, what was acknowledged is safe" } else { "; look whether the disk is full or failing, then try again" })]
    Io { file: String, cause: String, fatal: bool },
    /// The file cannot be walked through any more: pages of it are missing or hold something else.
    #[error(
        "{file} is damaged: {cause}; `windlass doctor` says what can still be read; restore the data folder from a backup"
    )]
    Malformed { file: String, cause: String },
    /// The journal is not the one that was written here last, or not all of it.
    #[error(
        "the journal in {folder} ends with record {found}, and record {known} was written before: an older copy was restored over it, or its end is lost; nothing was done. Restore the newer one, or go on from the older state with `windlass doctor --accept-older`: what was done since then will be done again"
    )]
    Older { folder: String, found: Lsn, known: Lsn },
    /// The journal has gone another way than the one that was written here last.
    #[error(
        "the journal in {folder} is not the one that was written last: its record {at} is another one, so a copy has gone on elsewhere and was put here; nothing was done. Restore the right one, or go on from this one with `windlass doctor --accept-older`"
    )]
    Forked { folder: String, at: Lsn },
    #[error(
        "{file} has format {found} and this version of windlass reads up to {known}: use a newer version; nothing was changed"
    )]
    Newer { file: String, found: u32, known: u32 },
    #[error(
        "{file} was not made by windlass, or its beginning is damaged: choose another data folder, or restore this one from a backup; nothing was changed"
    )]
    Foreign { file: String },
    #[error("there is no journal in {folder}: nothing has been run with this data folder yet")]
    Missing { folder: String },
    /// Somebody else wrote to the journal behind our back.
    #[error(
        "another process writes to {file}: only one may own a data folder; end the other one, then start this one anew"
    )]
    NotOwner { file: String },
    #[error("the data folder was opened for reading only")]
    ReadOnly,
    #[error("the store has been closed, or its writer has stopped; start the program anew")]
    Stopped,
    #[error(
        "SQLite {found} is built in and 3.51.3 or newer is needed: build windlass with its bundled SQLite"
    )]
    OldSqlite { found: &'static str },
}

impl Error {
    /// Whether this handle must not be used again: the process has to end and read from the disk what is true.
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Io { fatal, .. } => *fatal,
            Self::NotOwner { .. } | Self::Stopped | Self::Malformed { .. } => true,
            Self::Corrupt { .. }
            | Self::Unreadable { .. }
            | Self::Contradictory { .. }
            | Self::Orphan { .. }
            | Self::CorruptPlan { .. }
            | Self::UnreadablePlan { .. }
            | Self::CorruptBlob { .. }
            | Self::Unstorable { .. }
            | Self::Older { .. }
            | Self::Forked { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. }
            | Self::ReadOnly
            | Self::OldSqlite { .. } => false,
        }
    }

    /// Whether only one run is hurt by this, and all others go on.
    pub fn is_of_one_run(&self) -> bool {
        match self {
            Self::Corrupt { .. }
            | Self::Unreadable { .. }
            | Self::Contradictory { .. }
            | Self::CorruptPlan { .. }
            | Self::UnreadablePlan { .. }
            | Self::CorruptBlob { .. } => true,
            Self::Orphan { .. }
            | Self::Unstorable { .. }
            | Self::Io { .. }
            | Self::Malformed { .. }
            | Self::Older { .. }
            | Self::Forked { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. }
            | Self::NotOwner { .. }
            | Self::ReadOnly
            | Self::Stopped
            | Self::OldSqlite { .. } => false,
        }
    }

    /// The record that it is about.
    pub fn place(&self) -> Option<Lsn> {
        match self {
            Self::Corrupt { lsn, .. } | Self::Orphan { lsn } | Self::Unreadable { lsn, .. } => Some(*lsn),
            Self::Contradictory { .. }
            | Self::CorruptPlan { .. }
            | Self::UnreadablePlan { .. }
            | Self::CorruptBlob { .. }
            | Self::Unstorable { .. }
            | Self::Io { .. }
            | Self::Malformed { .. }
            | Self::Older { .. }
            | Self::Forked { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. }
            | Self::NotOwner { .. }
            | Self::ReadOnly
            | Self::Stopped
            | Self::OldSqlite { .. } => None,
        }
    }

    pub(crate) fn io(file: &std::path::Path, cause: &std::io::Error) -> Self {
        Self::Io { file: file.display().to_string(), cause: cause.to_string(), fatal: false }
    }

    /// A flush failed: nobody knows what the disk holds. Only running out of space says so honestly.
    pub(crate) fn flush(file: &std::path::Path, cause: &std::io::Error) -> Self {
        let full =
            matches!(cause.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        Self::Io { file: file.display().to_string(), cause: cause.to_string(), fatal: !full }
    }
}
