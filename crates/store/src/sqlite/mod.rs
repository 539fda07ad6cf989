//! The data folder: `journal.db` and its one writer thread, `view.db` and its own, `blobs/` with a file each.
//!
//! Reading needs neither thread: connections that only read are opened as they are wanted, here and in processes that do
//! not own the folder.

mod backup;
mod blobs;
mod codes;
mod head;
mod queue;
mod read;
mod schema;
mod signal;
mod tails;
mod view;
mod writer;

use crate::blobs::{BlobId, Blobs};
use crate::error::Error;
use crate::journal::{Append, Appended, Forget, Journal, Lsn, Record};
use crate::pending::Pending;
use crate::plans::{Plans, StoredPlan};
use crate::store::Options;
use crate::view::{Projection, Query, RunRow, View};
use queue::{Command, Queue};
use read::Readers;
use signal::Signal;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use windlass_engine::RunId;

pub(crate) struct Sqlite {
    journal: Arc<Readers>,
    views: Readers,
    blobs: blobs::Folder,
    /// Where unfinished runs stand. Written by the writer after each commit, or by whoever reads when there is none.
    tails: Arc<Mutex<tails::Tails>>,
    projection: Option<Arc<dyn Projection>>,
    /// `None` in a process that only reads.
    owner: Option<Owner>,
}

/// The two threads that write, and how to speak to them.
struct Owner {
    queue: Arc<Queue>,
    signal: Arc<Signal>,
    /// Taken when they are waited for.
    threads: Mutex<Vec<JoinHandle<()>>>,
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
        let tails = tails::Tails::load(&connection, &path)?;
        let heads = head::Heads::new(folder, options.heads.clone(), options.durability);
        heads.check(&connection, &path, &tails)?;
        let signal = Arc::new(Signal::new(tails.last));
        let tails = Arc::new(Mutex::new(tails));
        let queue = Arc::new(Queue::default());
        let writer = writer::start(connection, &path, &queue, &tails, &signal, heads, options.tuning)?;
        // From here on dropping the owner ends and awaits its threads, whatever else fails.
        let owner = Owner { queue, signal, threads: Mutex::new(vec![writer]) };
        let journal = Arc::new(Readers::new(path));
        let view_path = folder.join("view.db");
        if let Some(projection) = &options.projection {
            let applier = view::start(
                &view_path,
                journal.clone(),
                projection.clone(),
                &owner.signal,
                options.durability,
            )?;
            owner.threads.lock().unwrap_or_else(PoisonError::into_inner).push(applier);
        }
        Ok(Self {
            journal,
            views: Readers::new(view_path),
            blobs: blobs::Folder::new(folder.join("blobs"), options.durability),
            tails,
            projection: options.projection,
            owner: Some(owner),
        })
    }

    pub(crate) fn open_read_only(folder: &Path, options: Options) -> Result<Self, Error> {
        codes::check_version()?;
        let path = folder.join("journal.db");
        if !path.exists() {
            return Err(Error::Missing { folder: folder.display().to_string() });
        }
        let journal = Readers::new(path);
        let tails = journal.with(|connection| {
            schema::check(connection, journal.path())?;
            tails::Tails::load(connection, journal.path())
        })?;
        Ok(Self {
            journal: Arc::new(journal),
            views: Readers::new(folder.join("view.db")),
            blobs: blobs::Folder::new(folder.join("blobs"), options.durability),
            tails: Arc::new(Mutex::new(tails)),
            projection: options.projection,
            owner: None,
        })
    }

    /// Whether the journal is the one that was written here last, and all of it.
    pub(crate) fn check_head(&self, folder: &Path, options: &Options) -> Result<(), Error> {
        let heads = head::Heads::new(folder, options.heads.clone(), options.durability);
        self.journal.with(|connection| {
            let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
            tails.follow(connection, self.journal.path())?;
            heads.check(connection, self.journal.path(), &tails)
        })
    }

    /// What SQLite itself finds wrong with its files, each with its name. A view that is not there is no fault.
    pub(crate) fn check_files(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for (name, readers) in [("journal.db", &*self.journal), ("view.db", &self.views)] {
            if !readers.path().exists() {
                continue;
            }
            match readers.with(|connection| read::faults(connection, readers.path())) {
                Ok(faults) => found.extend(faults.into_iter().map(|fault| (name, fault))),
                Err(error) => found.push((name, error.to_string())),
            }
        }
        found
    }

    /// How many records there are, and how many there have to be.
    pub(crate) fn count(&self) -> Result<(u64, u64), Error> {
        self.journal.with(|connection| read::count(connection, self.journal.path()))
    }

    /// How many bytes the journal takes, and how many of those nothing stands on.
    pub(crate) fn room(&self) -> Result<(u64, u64), Error> {
        self.journal.with(|connection| read::room(connection, self.journal.path()))
    }

    pub(crate) fn close(&self) -> Result<(), Error> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let (answer, pending) = Pending::waiting();
        owner.queue.push(Command::Close(answer));
        let closed = pending.wait();
        owner.end();
        closed
    }

    fn send<T>(&self, command: impl FnOnce(crate::pending::Answer<T>) -> Command) -> Pending<T> {
        let Some(owner) = &self.owner else { return Pending::ready(Err(Error::ReadOnly)) };
        let (answer, pending) = Pending::waiting();
        owner.queue.push(command(answer));
        pending
    }

    /// Looks at the tails. Without a writer that keeps them, they are first brought up to date.
    fn with_tails<T>(&self, look: impl FnOnce(&tails::Tails) -> T) -> Result<T, Error> {
        if self.owner.is_some() {
            return Ok(look(&self.tails.lock().unwrap_or_else(PoisonError::into_inner)));
        }
        self.journal.with(|connection| {
            let mut tails = self.tails.lock().unwrap_or_else(PoisonError::into_inner);
            tails.follow(connection, self.journal.path())?;
            Ok(look(&tails))
        })
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

/// The rows of a folder's view alone, as they were written last: for whoever would rather know little at once.
pub fn glance(folder: &Path, query: &Query) -> Vec<RunRow> {
    view::glance(&folder.join("view.db"), query)
}

impl Owner {
    fn end(&self) {
        self.queue.close();
        self.signal.stop();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A thread that panicked has closed its queue on the way out: whoever waited has been told.
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

    fn back(&self, run: &RunId, before: Option<Lsn>, limit: usize) -> Result<Vec<Record>, Error> {
        let unfinished = match before {
            Some(_) => None,
            None => self.with_tails(|tails| tails.lsn(run))?,
        };
        self.journal
            .with(|connection| read::back(connection, self.journal.path(), run, before, unfinished, limit))
    }

    fn tails(&self) -> Result<crate::journal::Tails, Error> {
        self.with_tails(tails::Tails::shown)
    }

    fn scan(&self, from: Lsn, limit: usize) -> Result<Vec<Result<Record, Error>>, Error> {
        self.journal.with(|connection| read::scan(connection, self.journal.path(), from, limit))
    }

    fn forget(&self, runs: Forget) -> Pending<Vec<RunId>> {
        self.send(|answer| Command::Forget(runs, answer))
    }

    fn compact(&self) -> Pending<()> {
        self.send(Command::Compact)
    }
}

impl Plans for Sqlite {
    fn put(&self, plan: StoredPlan) -> Pending<()> {
        let known = plan
            .check()
            .and_then(|()| self.journal.with(|c| read::has_plan(c, self.journal.path(), &plan.digest)));
        match known {
            Ok(false) => self.send(|answer| Command::Plan(Box::new(plan), answer)),
            Ok(true) => Pending::ready(Ok(())),
            Err(error) => Pending::ready(Err(error)),
        }
    }

    fn list(&self) -> Result<Vec<String>, Error> {
        self.journal.with(|connection| read::plans(connection, self.journal.path()))
    }

    fn forget(&self, digests: Vec<String>) -> Pending<usize> {
        self.send(|answer| Command::ForgetPlans(digests, answer))
    }

    fn get(&self, digest: &str) -> Result<Option<StoredPlan>, Error> {
        self.journal.with(|connection| read::plan(connection, self.journal.path(), digest))
    }
}

impl Blobs for Sqlite {
    fn put(&self, content: &[u8]) -> Result<BlobId, Error> {
        if self.owner.is_none() {
            return Err(Error::ReadOnly);
        }
        self.blobs.put(content)
    }

    fn list(&self) -> Result<Vec<(BlobId, u64)>, Error> {
        self.blobs.list()
    }

    fn forget(&self, id: &BlobId) -> Result<bool, Error> {
        if self.owner.is_none() {
            return Err(Error::ReadOnly);
        }
        self.blobs.forget(id)
    }

    fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, Error> {
        self.blobs.get(id)
    }
}

impl View for Sqlite {
    fn list(&self, query: &Query) -> Result<Vec<RunRow>, Error> {
        match &self.projection {
            None => Ok(Vec::new()),
            Some(projection) => view::list(&self.views, &self.journal, &**projection, query),
        }
    }

    fn get(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        match &self.projection {
            None => Ok(None),
            Some(projection) => view::get(&self.views, &self.journal, &**projection, run),
        }
    }

    fn applied(&self) -> Result<Option<Lsn>, Error> {
        match &self.projection {
            None => Ok(None),
            Some(projection) => view::applied(&self.views, &self.journal, &**projection),
        }
    }

    fn rebuild(&self) -> Result<(), Error> {
        match (&self.owner, &self.projection) {
            (None, _) => Err(Error::ReadOnly),
            (Some(_), None) => Ok(()),
            (Some(owner), Some(_)) => owner.signal.rebuild(),
        }
    }

    fn stored(&self) -> Result<Option<Vec<RunRow>>, Error> {
        match &self.projection {
            None => Ok(None),
            Some(projection) => view::stored_rows(&self.views, &self.journal, &**projection),
        }
    }
}
