//! Storage errors. Every error is `Clone`, because one failed commit is the answer to everyone who waited for it.

use crate::blobs::BlobId;
use crate::journal::Lsn;
use windlass_engine::{Contradiction, RunId};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes on the disk are not those that were written. Only this run is affected.
    #[error(
        "record {lsn} of run `{run}` is damaged: its checksum does not match; to continue this run, restore the \
            data folder from a backup; other runs are not affected"
    )]
    Corrupt { run: RunId, lsn: Lsn },
    /// The bytes are those that were written, but this program does not understand them. Only this run is affected.
    #[error(
        "record {lsn} of run `{run}` cannot be read: {cause}; use the version of windlass that wrote it, or a newer one"
    )]
    Unreadable { run: RunId, lsn: Lsn, cause: String },
    /// Every record can be read, but one of them cannot follow those before it. Only this run is affected.
    #[error(
        "the journal of run `{run}` contradicts itself: {contradiction}; to continue this run, restore the data \
            folder from a backup; other runs are not affected"
    )]
    Contradictory { run: RunId, contradiction: Box<Contradiction> },
    #[error(
        "record {lsn} belongs to no known run, so the journal is damaged there; restore the data folder from a \
            backup"
    )]
    Orphan { lsn: Lsn },
    #[error(
        "the stored plan `{digest}` is damaged: its checksum does not match; restore the data folder from a \
            backup"
    )]
    CorruptPlan { digest: String },
    #[error(
        "the stored plan `{digest}` cannot be read: {cause}; use the version of windlass that wrote it, or a newer one"
    )]
    UnreadablePlan { digest: String, cause: String },
    #[error(
        "the stored value `{id}` is damaged: its content does not match its name; restore the data folder from \
            a backup"
    )]
    CorruptBlob { id: BlobId },
    /// The record could not be read back, so it was not written.
    #[error("a record of run `{run}` cannot be stored: {cause}")]
    Unstorable { run: RunId, cause: String },
    /// The environment failed. Unless `fatal` is set, nothing was written and the call can be retried.
    #[error("{file}: {cause}{}", if *fatal { "; restart the program; everything that was acknowledged is safe" } else { "; \
        check whether the disk is full or failing, then try again" })]
    Io { file: String, cause: String, fatal: bool },
    /// The file cannot be traversed any more: pages are missing or damaged.
    #[error(
        "{file} is damaged: {cause}; `windlass doctor` shows what can still be read; restore the data folder \
            from a backup"
    )]
    Malformed { file: String, cause: String },
    /// The journal is not the latest one written here, or it is incomplete.
    #[error(
        "the journal in {folder} ends with record {found}, but record {known} was written before: an older copy \
            was restored over it, or its end is lost; nothing was changed. Restore the newer one, or continue \
            from the older state with `windlass doctor --accept-older`: work done since then is repeated"
    )]
    Older { folder: String, found: Lsn, known: Lsn },
    /// The journal has diverged from the latest one written here.
    #[error(
        "the journal in {folder} is not the latest one: its record {at} differs, so a copy was used elsewhere \
            and put here; nothing was changed. Restore the right one, or continue from this one with `windlass \
            doctor --accept-older`"
    )]
    Forked { folder: String, at: Lsn },
    #[error(
        "{file} has format {found}, but this version of windlass reads up to {known}: use a newer version; \
            nothing was changed"
    )]
    Newer { file: String, found: u32, known: u32 },
    #[error(
        "{file} was not created by windlass, or its beginning is damaged: choose another data folder, or \
            restore this one from a backup; nothing was changed"
    )]
    Foreign { file: String },
    #[error("there is no journal in {folder}: nothing has been run with this data folder yet")]
    Missing { folder: String },
    /// Another process wrote to the journal.
    #[error(
        "another process writes to {file}, but only one may own a data folder; stop the other one, then start \
            this one again"
    )]
    NotOwner { file: String },
    #[error("the data folder was opened for reading only")]
    ReadOnly,
    #[error("the store is closed, or its writer has stopped; restart the program")]
    Stopped,
    #[error(
        "SQLite {found} is built in, but 3.51.3 or newer is needed: build windlass with its bundled SQLite"
    )]
    OldSqlite { found: &'static str },
}

/// What an error affects.
#[derive(PartialEq)]
enum Reach {
    /// One run; all others can continue.
    Run,
    /// One call, or the folder as it is.
    Call,
    /// This process, which no longer knows the true state of the disk.
    Process,
}

impl Error {
    fn reach(&self) -> Reach {
        match self {
            Self::Corrupt { .. }
            | Self::Unreadable { .. }
            | Self::Contradictory { .. }
            | Self::CorruptPlan { .. }
            | Self::UnreadablePlan { .. }
            | Self::CorruptBlob { .. } => Reach::Run,
            Self::Io { fatal: true, .. } | Self::NotOwner { .. } | Self::Stopped | Self::Malformed { .. } => {
                Reach::Process
            }
            Self::Io { fatal: false, .. }
            | Self::Orphan { .. }
            | Self::Unstorable { .. }
            | Self::Older { .. }
            | Self::Forked { .. }
            | Self::Newer { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. }
            | Self::ReadOnly
            | Self::OldSqlite { .. } => Reach::Call,
        }
    }

    /// Whether this handle must not be used again: the process has to end and read the true state from the disk.
    pub fn is_fatal(&self) -> bool {
        self.reach() == Reach::Process
    }

    /// Whether only one run is affected and all others can continue.
    pub fn is_of_one_run(&self) -> bool {
        self.reach() == Reach::Run
    }

    /// The record that it is about.
    pub fn place(&self) -> Option<Lsn> {
        match self {
            Self::Corrupt { lsn, .. } | Self::Orphan { lsn } | Self::Unreadable { lsn, .. } => Some(*lsn),
            _ => None,
        }
    }

    pub(crate) fn io(file: &std::path::Path, cause: &std::io::Error) -> Self {
        Self::Io { file: file.display().to_string(), cause: cause.to_string(), fatal: false }
    }

    /// After a failed flush, the state of the disk is unknown. Only running out of space is reported reliably.
    pub(crate) fn flush(file: &std::path::Path, cause: &std::io::Error) -> Self {
        let full =
            matches!(cause.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        Self::Io { file: file.display().to_string(), cause: cause.to_string(), fatal: !full }
    }
}
