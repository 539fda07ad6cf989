//! An open data folder: starts, resumes and controls runs.
//!
//! `starting` starts runs, `handle` resumes and follows them, `looking` reads them, and `serving` decides which ones this
//! process executes and where. `link` is the way to the scheduler, `plans` stores plans, `guests` counts clients, and `error`
//! defines the errors.

mod error;
mod guests;
mod handle;
mod link;
mod looking;
mod plans;
mod serving;
mod starting;

use crate::activity::{Activity, Observer};
use crate::artifacts::Shelf;
use crate::library::Reader;
use crate::lock::Lock;
use crate::ownership;
use crate::presence::{AskOwner, Presence};
use crate::rows::Rows;
use crate::status;
pub use error::Error;
pub use guests::Guest;
use guests::Guests;
pub use handle::{Handle, Resuming};
use link::{Link, Opening};
use plans::Plans;
use serving::Hosting;
pub use starting::{Beginning, Start, new_id};
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{Semaphore, watch};
use windlass_engine::{CoordinatorEvent, RunId, View};
use windlass_executors::{Children, Notes};
use windlass_ir::Value;
use windlass_ir::dialect::Dialects;
use windlass_store::{Durability, Options, Store};

/// An open data folder, either as its owner or read-only.
#[derive(Debug)]
pub struct Engine {
    store: Store,
    folder: PathBuf,
    /// A reference to itself, for the tasks that it starts.
    this: Weak<Self>,
    link: Link,
    /// Where jobs record notes and costs.
    pub(crate) notes: Notes,
    pub(crate) artifacts: Arc<Shelf>,
    /// Limits how many tasks read runs at a time.
    pub(crate) reading: Semaphore,
    hosting: Hosting,
    /// Reads called workflows.
    reader: OnceLock<Arc<dyn Reader>>,
    dialects: Dialects,
    presence: Presence,
    plans: Plans,
    /// Held while starting a run that a trigger ordered.
    ordered: tokio::sync::Mutex<()>,
    guests: Guests,
    pub(crate) observer: Observer,
    /// Why this process must stop using the folder, if it must.
    broken: watch::Sender<Option<windlass_store::Error>>,
    /// `None` if the folder is open read-only.
    _lock: Option<Lock>,
}

/// The keys under which a run records the digest of its plan and its workflow file.
pub(crate) const PLAN: &str = "plan";
pub(crate) const FILE: &str = "file";

/// The key under which a run records the run that it retries.
pub const RETRY_OF: &str = "retry_of";

/// The number of the outermost steps of a run's plan.
pub(crate) const STEPS: &str = "steps";

impl Engine {
    /// Opens a data folder as its owner, and creates it if necessary.
    pub fn open(folder: &FilePath, durability: Durability, dialects: Dialects) -> Result<Arc<Self>, Error> {
        let failed =
            |error: std::io::Error| Error::Folder { folder: folder.to_owned(), cause: error.to_string() };
        let lock = Lock::take(folder)?;
        let store = Store::open(folder, options(durability, dialects))?;
        let children = Children::open(folder).map_err(failed)?;
        Self::of(store, folder, dialects, Some(Arc::new(children)), Some(lock), Presence::here())
    }

    fn of(
        store: Store,
        folder: &FilePath,
        dialects: Dialects,
        children: Option<Arc<Children>>,
        lock: Option<Lock>,
        presence: Presence,
    ) -> Result<Arc<Self>, Error> {
        let (notes, recorded) = Notes::channel();
        let opening = match &presence {
            Presence::Here(_) => Some(Opening::of(&store, recorded)?),
            Presence::Elsewhere(_) => None,
        };
        let hosting = Hosting::of(children);
        opening.iter().for_each(|opening| hosting.budgets.note(opening.state()));
        let artifacts = Shelf::of(folder);
        Ok(Arc::new_cyclic(|this| Self {
            store,
            folder: folder.to_owned(),
            this: this.clone(),
            link: Link::new(opening),
            notes,
            artifacts,
            reading: Semaphore::new(READERS),
            hosting,
            reader: OnceLock::new(),
            dialects,
            presence,
            plans: Plans::default(),
            ordered: tokio::sync::Mutex::default(),
            guests: Guests::default(),
            observer: Observer::default(),
            broken: watch::Sender::new(None),
            _lock: lock,
        }))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Runs blocking code off tokio's workers.
    pub async fn looking<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = self.clone();
        let looked = tokio::task::spawn_blocking(move || look(&engine)).await;
        looked.unwrap_or(Err(Error::Store(windlass_store::Error::Stopped)))
    }

    /// Reads a run off tokio's workers.
    pub(crate) async fn view_of_run(self: &Arc<Self>, id: &RunId) -> Result<View, Error> {
        let id = id.clone();
        self.looking(move |engine| engine.view(&id)).await
    }

    async fn check_run(self: &Arc<Self>, id: &RunId) -> Result<(), Error> {
        let id = id.clone();
        self.looking(move |engine| engine.check(&id)).await
    }

    /// All events of the coordinator's stream, including those that snapshots repeat.
    pub fn shared_events(&self) -> Result<Vec<CoordinatorEvent>, Error> {
        let mut events = Vec::new();
        for record in self.store.journal.read(&RunId::coordinator(), None).wait()? {
            events.extend(record.coordinator_events(&*self.store.blobs).wait()?);
        }
        Ok(events)
    }

    /// Opens a data folder read-only. Another process may own it; `ask` asks that process which runs it executes, and may block.
    pub fn look(folder: &FilePath, dialects: Dialects, ask: AskOwner) -> Result<Arc<Self>, Error> {
        ownership::check(folder, ownership::current_user())?;
        let store = Store::open_read_only(folder, options(Durability::default(), dialects))?;
        Self::of(store, folder, dialects, None, None, Presence::Elsewhere(ask))
    }

    /// An engine without a data folder.
    pub fn in_memory(dialects: Dialects) -> Arc<Self> {
        let projection = Some(Arc::new(Rows { dialects }) as _);
        let store = Store::memory(Options { projection, ..Options::default() });
        Self::of(store, FilePath::new(""), dialects, None, None, Presence::here())
            .expect("an empty store can be read")
    }

    /// Sets the reader of called workflows.
    pub fn read_with(&self, reader: Arc<dyn Reader>) {
        // The first reader wins.
        let _ = self.reader.set(reader);
    }

    pub(crate) fn reads(&self) -> bool {
        self.reader.get().is_some()
    }

    pub(crate) fn reader(&self) -> Option<&dyn Reader> {
        self.reader.get().map(|reader| &**reader)
    }

    /// Reports what this process does from now on, to one observer.
    pub fn observe(&self) -> tokio::sync::mpsc::Receiver<Activity> {
        self.observer.observe()
    }

    /// Waits until this process must stop using the folder, and returns the reason.
    pub async fn broken(&self) -> Error {
        let mut broken = self.broken.subscribe();
        match broken.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => Error::Store(error),
            Ok(None) | Err(_) => Error::Store(windlass_store::Error::Stopped),
        }
    }

    /// Memory and disk may disagree, so this process must end and another one must read the disk.
    pub(crate) fn must_end(&self, error: &windlass_store::Error) {
        self.broken.send_replace(Some(error.clone()));
    }

    pub fn folder(&self) -> &FilePath {
        &self.folder
    }

    pub fn dialects(&self) -> Dialects {
        self.dialects
    }
}

/// How many tasks read runs at a time.
const READERS: usize = 4;

pub(crate) fn options(durability: Durability, dialects: Dialects) -> Options {
    let (projection, heads) = (Some(Arc::new(Rows { dialects }) as _), crate::heads::folder());
    Options { durability, projection, heads, ..Options::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn finished(id: &RunId, view: &View) -> Error {
    Error::RunFinished { run: id.clone(), status: status::run_status(view, false) }
}

/// Changes no inputs.
pub(crate) fn nothing() -> Value {
    Value::map::<&str>([])
}
