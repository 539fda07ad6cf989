//! The data folder: `journal.db` with one writer thread and a few reader threads, and `blobs/` with a file for each
//! large value.

mod backup;
mod blobs;
mod codes;
mod head;
mod ledger;
mod queue;
mod read;
mod rows;
mod schema;
mod tails;
mod writer;

use crate::blobs::{BlobId, Blobs, ReadBlob};
use crate::error::Error;
use crate::journal::{Append, Appended, Journal, Lsn, Record};
use crate::ledger::{Entry, Ledger};
use crate::pending::{Answer, Pending};
use crate::plans::{Plans, StoredPlan};
use crate::store::Options;
use crate::view::{Projection, Query, RunRow, View, Wake};
use queue::{Command, Queue};
use read::{Readers, Start};
use rows::Rows;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tails::Tails;
use windlass_engine::{RunId, Timestamp};

pub(crate) struct Sqlite {
    journal: Readers,
    blobs: Arc<blobs::Folder>,
    /// Changed by the writer after each commit, or, in a read-only process, by its reads.
    tails: Arc<Mutex<Tails>>,
    projection: Option<Arc<dyn Projection>>,
    /// `None` in a read-only process.
    owner: Option<Owner>,
}

/// The writer thread, and how to reach it.
struct Owner {
    queue: Arc<Queue>,
    /// Taken to wait for its end.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sqlite {
    pub(crate) fn open(folder: &Path, options: Options) -> Result<Self, Error> {
        codes::check_version()?;
        crate::private::create_folder(folder).map_err(|error| Error::io(folder, &error))?;
        let path = folder.join("journal.db");
        let connection = schema::open_journal(&path, options.durability)?;
        if options.accept_older {
            schema::rename(&connection).map_err(codes::of(&path))?;
        }
        let tails = Tails::load(&connection, &path)?;
        let heads = head::Heads::new(folder, options.heads.clone(), options.durability);
        heads.check(&connection, &path, &tails)?;
        remove_view(folder);
        let tails = Arc::new(Mutex::new(tails));
        let queue = Arc::new(Queue::default());
        let blobs = Arc::new(blobs::Folder::new(folder.join("blobs"), options.durability));
        let shared = writer::Shared {
            path: path.clone(),
            queue: queue.clone(),
            tails: tails.clone(),
            blobs: blobs.clone(),
            projection: options.projection.clone(),
            heads,
            durability: options.durability,
            tuning: options.tuning,
        };
        let thread = writer::start(connection, shared)?;
        let owner = Some(Owner { queue, thread: Mutex::new(Some(thread)) });
        Ok(Self { journal: Readers::new(path)?, blobs, tails, projection: options.projection, owner })
    }

    pub(crate) fn open_read_only(folder: &Path, options: Options) -> Result<Self, Error> {
        codes::check_version()?;
        let path = folder.join("journal.db");
        if !path.exists() {
            return Err(Error::Missing { folder: folder.display().to_string() });
        }
        let journal = Readers::new(path)?;
        let tails = journal.ask(|connection, path| {
            schema::check(connection, path)?;
            Tails::load(connection, path)
        });
        Ok(Self {
            tails: Arc::new(Mutex::new(tails.wait()?)),
            journal,
            blobs: Arc::new(blobs::Folder::new(folder.join("blobs"), options.durability)),
            projection: options.projection,
            owner: None,
        })
    }

    /// Whether the journal is the latest one written here, and complete.
    pub(crate) fn check_head(&self, folder: &Path, options: &Options) -> Pending<()> {
        let heads = head::Heads::new(folder, options.heads.clone(), options.durability);
        self.with_tails(Tails::clone, move |tails, connection, path| heads.check(connection, path, &tails))
    }

    /// Problems that SQLite itself finds in the journal.
    pub(crate) fn check_files(&self) -> Pending<Vec<String>> {
        self.journal.ask(read::faults)
    }

    /// The number of records, and the expected number.
    pub(crate) fn count(&self) -> Pending<(u64, u64)> {
        self.journal.ask(read::count)
    }

    /// The size of the journal in bytes, and how much of it is free.
    pub(crate) fn room(&self) -> Pending<(u64, u64)> {
        self.journal.ask(read::room)
    }

    pub(crate) fn close(&self) -> Result<(), Error> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let closed = self.send(Command::Close).wait();
        owner.end();
        closed
    }

    fn send<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Pending<T> {
        let Some(owner) = &self.owner else { return Pending::refused(Error::ReadOnly) };
        let (answer, pending) = Pending::waiting();
        owner.queue.push(command(answer));
        pending
    }

    /// Reads the database after the tails, so that everything they name is there. Without a writer that maintains
    /// them, they are updated first.
    fn with_tails<K, T: Send + 'static>(
        &self,
        look: impl FnOnce(&Tails) -> K + Send + 'static,
        read: impl FnOnce(K, &Connection, &Path) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T> {
        let (tails, owned) = (self.tails.clone(), self.owner.is_some());
        self.journal.ask(move |connection, path| {
            let mut tails = tails.lock().unwrap_or_else(PoisonError::into_inner);
            if !owned {
                tails.follow(connection, path)?;
            }
            let known = look(&tails);
            drop(tails);
            read(known, connection, path)
        })
    }

    /// Reads the rows within one transaction. Without a projection there are none.
    fn with_rows<K, T: Default + Send + 'static>(
        &self,
        look: impl FnOnce(&Tails) -> K + Send + 'static,
        read: impl FnOnce(K, &Rows<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Pending<T> {
        let Some(projection) = self.projection.clone() else { return Pending::ready(Ok(T::default())) };
        self.with_tails(
            move |tails| (look(tails), tails.whole),
            move |(known, whole), connection, path| {
                let _look = connection.unchecked_transaction().map_err(codes::of(path))?;
                read(known, &Rows::new(connection, path, &*projection, whole))
            },
        )
    }
}

/// Earlier versions had the rows in a separate file.
fn remove_view(folder: &Path) {
    for name in ["view.db", "view.db-wal", "view.db-shm"] {
        // Nothing reads it any more, so failing to remove it does no harm.
        drop(std::fs::remove_file(folder.join(name)));
    }
}

/// Copies the journal of a folder into a file.
pub(crate) fn copy_journal(folder: &Path, to: &Path) -> Result<(), Error> {
    codes::check_version()?;
    let path = folder.join("journal.db");
    if !path.exists() {
        return Err(Error::Missing { folder: folder.display().to_string() });
    }
    backup::copy(&path, to)
}

/// The rows of a folder as last written: for callers that prefer a quick answer to an exact one.
pub fn glance(folder: &Path, query: &Query) -> Vec<RunRow> {
    rows::glance(&folder.join("journal.db"), query)
}

impl Owner {
    fn end(&self) {
        self.queue.close();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // A thread that panicked has closed its queue on the way out, and everyone who waited has an answer.
            drop(thread.join());
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite")
            .field("journal", &self.journal.path())
            .field("owner", &self.owner.is_some())
            .finish_non_exhaustive()
    }
}

impl Journal for Sqlite {
    fn append(&self, append: Append) -> Pending<Appended> {
        self.send(|answer| Command::Append(append, answer))
    }

    fn append_all(&self, appends: Vec<Append>) -> Pending<Vec<Appended>> {
        self.send(|answer| Command::AppendAll(appends, answer))
    }

    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Pending<Vec<Record>> {
        let (run, name) = (run.clone(), run.clone());
        let start = move |tails: &Tails| before.map_or_else(|| Start::of(tails, &name), Start::Before);
        self.with_tails(start, move |start, connection, path| {
            read::back(connection, path, &run, start, limit, None)
        })
    }

    fn read(&self, run: &RunId, after: Option<Lsn>) -> Pending<Vec<Record>> {
        let (run, name) = (run.clone(), run.clone());
        let start = move |tails: &Tails| Start::of(tails, &name);
        self.with_tails(start, move |start, connection, path| {
            let mut records = read::back(connection, path, &run, start, usize::MAX, after)?;
            records.reverse();
            Ok(records)
        })
    }

    fn tails(&self) -> Pending<crate::journal::Tails> {
        self.with_tails(Tails::clone, |tails, connection, path| tails.shown(connection, path))
    }

    fn scan(&self, from: Lsn, limit: usize) -> Pending<Vec<Result<Record, Error>>> {
        self.journal.ask(move |connection, path| read::scan(connection, path, from, limit))
    }

    fn reclaim(&self) -> Pending<()> {
        self.send(Command::Reclaim)
    }

    fn compact(&self) -> Pending<()> {
        self.send(Command::Compact)
    }
}

impl Plans for Sqlite {
    fn put(&self, plan: StoredPlan) -> Pending<()> {
        match plan.check() {
            // An existing plan changes nothing, so its commit needs no flush.
            Ok(()) => self.send(|answer| Command::Plan(Box::new(plan), answer)),
            Err(error) => Pending::refused(error),
        }
    }

    fn list(&self) -> Pending<Vec<String>> {
        self.journal.ask(read::plans)
    }

    fn forget(&self, digests: Vec<String>) -> Pending<usize> {
        self.send(|answer| Command::ForgetPlans(digests, answer))
    }

    fn get(&self, digest: &str) -> Pending<Option<StoredPlan>> {
        let digest = digest.to_owned();
        self.journal.ask(move |connection, path| read::plan(connection, path, &digest))
    }
}

impl Blobs for Sqlite {
    fn lend(&self, reader: Box<dyn FnOnce(&ReadBlob<'_>) + Send>) {
        let blobs = self.blobs.clone();
        self.journal.run(Box::new(move |_, _| reader(&|id| blobs.get(id))));
    }

    fn list(&self) -> Pending<Vec<(BlobId, u64)>> {
        let blobs = self.blobs.clone();
        self.journal.ask(move |_, _| blobs.list())
    }

    fn begin_sweep(&self) -> Pending<Vec<(BlobId, u64)>> {
        let (begun, blobs) = (self.send(Command::BeginSweep), self.blobs.clone());
        self.journal.ask(move |_, _| begun.wait().and_then(|()| blobs.list()))
    }

    fn sweep(&self, unused: Vec<BlobId>) -> Pending<Vec<BlobId>> {
        self.send(|answer| Command::Sweep(unused, answer))
    }
}

impl Ledger for Sqlite {
    fn write(&self, entries: Vec<Entry>) -> Pending<()> {
        self.send(|answer| Command::Ledger(entries, answer))
    }

    fn get(&self, kind: &'static str, key: &str) -> Pending<Option<Vec<u8>>> {
        let key = key.to_owned();
        self.journal.ask(move |connection, path| ledger::get(connection, path, kind, &key))
    }

    fn list(&self, kind: &'static str, after: Option<&str>, limit: usize) -> Pending<Vec<(String, Vec<u8>)>> {
        let after = after.map(str::to_owned);
        self.journal
            .ask(move |connection, path| ledger::list(connection, path, kind, after.as_deref(), limit))
    }

    fn log(&self, before: Option<u64>, limit: usize) -> Pending<Vec<(u64, Vec<u8>)>> {
        self.journal.ask(move |connection, path| ledger::log(connection, path, before, limit))
    }

    fn expire(&self, now: Timestamp) -> Pending<()> {
        self.send(|answer| Command::Expire(now, answer))
    }
}

impl View for Sqlite {
    fn list(&self, query: &Query) -> Pending<Vec<RunRow>> {
        let query = query.clone();
        self.with_rows(|_| (), move |(), rows| rows.list(&query))
    }

    fn get(&self, run: &RunId) -> Pending<Option<RunRow>> {
        let (run, name) = (run.clone(), run.clone());
        let newer = move |tails: &Tails| tails.recent.get(&name).map(|tail| tail.lsn);
        self.with_rows(newer, move |newer, rows| rows.get(&run, newer))
    }

    fn unfinished(&self) -> Pending<Vec<(RunId, Wake)>> {
        self.with_rows(|tails| tails.recent.clone(), |recent, rows| rows.unfinished(&recent))
    }

    fn stored(&self) -> Pending<Option<(Lsn, Vec<RunRow>)>> {
        self.with_rows(|_| (), |(), rows| rows.all_stored())
    }

    fn rebuild(&self) -> Pending<()> {
        self.send(Command::Rebuild)
    }
}
