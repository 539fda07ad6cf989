//! The ledger: small documents beside the journal that must be written together with a record or not at all, such as
//! replies by idempotency key, access tokens and the audit log. The store does not know what they mean.

use crate::pending::Pending;
use windlass_engine::Timestamp;

/// A change of the ledger. Attached to a record, it is durable if and only if the record is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Adds to the log, which only grows.
    Log(Vec<u8>),
    /// Sets the document of this kind and key.
    Put {
        kind: &'static str,
        key: String,
        body: Vec<u8>,
        /// The document may be removed after this time.
        until: Option<Timestamp>,
    },
    /// Removes a document.
    Remove { kind: &'static str, key: String },
}

/// Reads and writes the ledger.
pub trait Ledger: Send + Sync + std::fmt::Debug {
    /// Writes all of the entries or none, without a record.
    fn write(&self, entries: Vec<Entry>) -> Pending<()>;

    fn get(&self, kind: &'static str, key: &str) -> Pending<Option<Vec<u8>>>;

    /// Documents of a kind with their keys, ordered by key; only those after a key, if one is given.
    fn list(&self, kind: &'static str, after: Option<&str>, limit: usize) -> Pending<Vec<(String, Vec<u8>)>>;

    /// The log with the number of each entry, the newest first; only entries before a number, if one is given.
    fn log(&self, before: Option<u64>, limit: usize) -> Pending<Vec<(u64, Vec<u8>)>>;

    /// Removes documents whose time has passed.
    fn expire(&self, now: Timestamp) -> Pending<()>;
}
