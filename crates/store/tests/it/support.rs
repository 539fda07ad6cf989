//! Backends that can be reopened and crashed, and helpers that keep the tests short.

use std::sync::Arc;
use windlass_engine::{Event, Path, RunId, Timestamp, What};
use windlass_ir::{RunStatus, Value};
use windlass_store::{Append, Appended, Error, Lsn, Options, Projection, Record, Row, Store, StoredPlan};

pub trait Backend {
    /// Opens the store, or reopens it with everything that was acknowledged. Stores opened earlier have been dropped.
    fn open(&mut self) -> Store;

    /// From now on the store is what a machine that stopped at this instant would find. Called while it is open.
    fn crash(&mut self);
}

/// Memory has nothing to lose or to recover: it only must not lose anything by itself.
pub struct InMemory(Store);

impl InMemory {
    pub fn new() -> Self {
        Self(Store::memory(Options { projection: Some(Arc::new(Shown)), ..Options::default() }))
    }
}

impl Backend for InMemory {
    fn open(&mut self) -> Store {
        self.0.clone()
    }

    fn crash(&mut self) {}
}

#[cfg(feature = "sqlite")]
pub use on_disk::*;

#[cfg(feature = "sqlite")]
mod on_disk {
    use super::{Backend, Shown};
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use windlass_store::{Durability, Options, Store, Tuning};

    /// A temporary folder, removed at the end.
    pub struct Temp(PathBuf);

    impl Temp {
        pub fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name =
                format!("windlass-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }

        pub fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Temp {
        fn drop(&mut self) {
            // A leftover folder is acceptable; the failing test has better information.
            drop(std::fs::remove_dir_all(&self.0));
        }
    }

    pub fn calm() -> Options {
        Options { projection: Some(Arc::new(Shown)), ..Options::default() }
    }

    /// Maintenance happens often. A copy of the files shows everything written, flushed or not, so nothing waits for
    /// the disk.
    pub fn busy() -> Options {
        let tuning = Tuning { batch_bytes: 2_000, log_bytes: 100_000, row_records: 20 };
        Options { durability: Durability::Process, tuning, ..calm() }
    }

    pub struct InFolder(pub Temp, pub Options);

    impl Backend for InFolder {
        fn open(&mut self) -> Store {
            Store::open(self.0.path(), self.1.clone()).expect("a store")
        }

        fn crash(&mut self) {
            let image = Temp::new();
            copy_journal(self.0.path(), image.path());
            copy_folder(&self.0.file("blobs"), &image.file("blobs"));
            self.0 = image;
        }
    }

    /// Database and log of one moment: the writer may update its rows meanwhile.
    pub fn copy_journal(from: &Path, to: &Path) {
        let read = |name: &str| std::fs::read(from.join(name)).expect("a file");
        let (database, log) = loop {
            let (before, database, after) =
                (read("journal.db-wal"), read("journal.db"), read("journal.db-wal"));
            if before == after {
                break (database, after);
            }
        };
        std::fs::write(to.join("journal.db"), database).expect("a copy");
        std::fs::write(to.join("journal.db-wal"), log).expect("a copy");
    }

    fn copy_folder(from: &Path, to: &Path) {
        let Ok(entries) = std::fs::read_dir(from) else { return };
        std::fs::create_dir_all(to).expect("a folder");
        for entry in entries {
            let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("an entry");
            match path.is_dir() {
                true => copy_folder(&path, &to.join(name)),
                false => drop(std::fs::copy(&path, to.join(name)).expect("a copy")),
            }
        }
    }
}

/// Shows enough of the events to detect a record that is applied twice, left out or out of order.
pub struct Shown;

impl Projection for Shown {
    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, run: &RunId, row: &mut Row, events: &[Event]) {
        row.workflow = format!("workflow of {run}");
        for Event { at, what } in events {
            row.started_at.get_or_insert(*at);
            (row.ended_at, row.status) = (None, RunStatus::Running);
            match what {
                What::Noted { key, .. } => row.dialect_status.push_str(key),
                What::Paused { by, .. } => {
                    row.progress.waiting.insert(Path::default().child(by.clone(), None));
                }
                What::Closed => (row.ended_at, row.status) = (Some(*at), RunStatus::Success),
                other => row.reason = Some(format!("{other:?}")),
            }
        }
    }
}

pub fn run(name: &str) -> RunId {
    RunId::new(name).expect("a run id")
}

pub fn noted(at: i64, key: &str, value: Value) -> Event {
    Event { at: Timestamp(at), what: What::Noted { path: Path::default(), key: key.into(), value } }
}

pub fn closed(at: i64) -> Event {
    Event { at: Timestamp(at), what: What::Closed }
}

pub fn record(run: &RunId, prev: Option<Lsn>, events: &[Event]) -> Append {
    Append::new(run.clone(), prev, events).expect("a record")
}

/// Appends a small record, or one that closes the run, after the run's last one.
pub fn push(store: &Store, run: &RunId, key: &str) -> Lsn {
    let tail = tail(store, run);
    let event = if key == "end" { closed(1) } else { noted(1, key, Value::Null) };
    match store.journal.append(record(run, tail, &[event])).wait() {
        Ok(Appended::At(lsn)) => lsn,
        other => panic!("{run} {key}: {other:?}"),
    }
}

pub fn tail(store: &Store, run: &RunId) -> Option<Lsn> {
    store.journal.back(run, None, 1).wait().expect("records").first().map(|record| record.lsn)
}

/// Removes a run after its last record.
pub fn remove(store: &Store, run: &RunId) -> Appended {
    let removal = Append::removal(run.clone(), tail(store, run)).expect("a record");
    store.journal.append(removal).wait().expect("an answer")
}

/// A history as text: `1:a 4:b 7:end`.
pub fn shown(records: &[Record]) -> String {
    let tell = |record: &Record| {
        let events = record.events().expect("events");
        let keys = events.iter().map(|event| match &event.what {
            What::Noted { key, .. } => key.to_string(),
            What::Closed => "end".into(),
            other => format!("{other:?}"),
        });
        format!("{}:{}", record.lsn, keys.collect::<Vec<_>>().join("+"))
    };
    records.iter().map(tell).collect::<Vec<_>>().join(" ")
}

pub fn history(store: &Store, run: &RunId) -> String {
    shown(&store.journal.read(run, None).wait().expect("a history"))
}

/// The unfinished runs as text: `a@3 b@7`.
pub fn unfinished(store: &Store) -> String {
    let tails = store.journal.tails().wait().expect("tails").unfinished;
    tails.iter().map(|(run, lsn)| format!("{run}@{lsn}")).collect::<Vec<_>>().join(" ")
}

pub fn whole_scan(store: &Store) -> Vec<Result<Record, Error>> {
    let (mut all, mut next) = (Vec::new(), 1);
    loop {
        let part = store.journal.scan(Lsn(next), 7).wait().expect("a scan");
        if part.is_empty() {
            return all;
        }
        let last = part.last().map(|found| match found {
            Ok(record) => record.lsn,
            Err(error) => error.place().expect("damage has its place"),
        });
        next = last.map_or(next, |last| last.0 + 1);
        all.extend(part);
    }
}

pub fn plan(digest: &str, json: impl Into<String>) -> StoredPlan {
    StoredPlan {
        digest: digest.into(),
        format: 1,
        plan: json.into(),
        source: "name: x\n".into(),
        overrides: "{}".into(),
    }
}
