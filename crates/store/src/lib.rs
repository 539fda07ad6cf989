//! The storage of Windlass: the journal of every run, the plans they are pinned to, large values, rows for lists of
//! runs, and a ledger of documents that are written together with records.
//!
//! This crate owns durability and nothing else: it stores records without knowing their meaning. Who may write to a
//! data folder, when a run is executed and what its events say is decided elsewhere. There are two backends:
//! [`Store::memory`] keeps everything in memory, [`Store::open`] uses a folder with a SQLite database. One test suite
//! covers both.

#![cfg_attr(
    not(feature = "sqlite"),
    expect(dead_code, reason = "some code shared by backends is only used by those on disk")
)]

mod apart;
mod blobs;
mod deep;
mod error;
mod journal;
mod ledger;
mod logs;
mod memory;
mod pending;
mod plans;
pub mod private;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod view;

pub use blobs::{BLOB_BYTES_MIN, BlobId, Blobs, ReadBlob};
pub use error::Error;
pub use journal::{Append, Appended, Journal, Lsn, Prev, Record, Tails, Ticket};
pub use ledger::{Entry, Ledger};
pub use logs::{JOB_BYTES_MAX, LogReader, LogWriter, Logs, Printed, Printing};
pub use pending::Pending;
pub use plans::{Plans, StoredPlan};
pub use record::{BODY_BYTES_MAX, FORMAT, named as named_in, read_event};
#[cfg(feature = "sqlite")]
pub use sqlite::glance;
pub use store::{Durability, Options, Store, Tuning};
pub use view::{
    Details, Progress, Projection, Query, Row, RowWait, RowWaitKind, RunRow, View, Wake, fold_all,
};
