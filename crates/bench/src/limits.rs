//! The limits of the machine at power-safe durability: flushes alone, and a bare SQLite table. The only parts of
//! Windlass in here are the columns of its journal and the size of its records.

use crate::setting::Setting;
use crate::stats::{median, per_second};
use rusqlite::Connection;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The number of callers of the group commits shown next to every part.
pub const CALLERS: usize = 64;
/// How long one of the limits is measured next to a part.
const GLANCE: Duration = Duration::from_millis(150);
/// The approximate size of a step's record, for the limits next to a part; each measurement has its own size.
const GLANCE_BYTES: usize = 300;

/// The machine at one moment, in operations per second.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub flushes: f64,
    /// One row per commit, passed from one waiting thread to another that commits.
    pub single: f64,
    /// Rows in commits shared by [`CALLERS`] callers.
    pub grouped: f64,
}

impl Limits {
    pub fn now(setting: &Setting) -> Self {
        // Sizes that are measured quickly on this machine.
        let flushes = flushes(&setting.place());
        let records = ((flushes * GLANCE.as_secs_f64()) as usize).max(10);
        Self {
            flushes,
            single: single(setting, records, GLANCE_BYTES),
            grouped: grouped(setting, CALLERS, records * 16, GLANCE_BYTES),
        }
    }
}

/// Writes of one page, each flushed, to a file of fixed size: the maximum that a disk allows a single caller.
fn flushes(folder: &Path) -> f64 {
    let mut file = std::fs::File::create(folder.join("flushes")).expect("a file");
    file.write_all(&[0; 4096]).and_then(|()| file.sync_all()).expect("written");
    let (started, mut done) = (Instant::now(), 0);
    while started.elapsed() < GLANCE {
        file.rewind().and_then(|()| file.write_all(&[1; 4096])).expect("written");
        file.sync_data().expect("flushed");
        done += 1;
    }
    per_second(done, started.elapsed())
}

/// Commits per second of one record each, between two threads.
pub fn single(setting: &Setting, records: usize, bytes: usize) -> f64 {
    let commits = commits(setting, records, bytes);
    per_second(records, commits.iter().sum())
}

/// How long each of this many commits took for its caller.
pub fn commits(setting: &Setting, records: usize, bytes: usize) -> Vec<Duration> {
    let bare = Bare::open(setting.place(), bytes);
    let commits = (0..records).map(|_| {
        let started = Instant::now();
        bare.hand_over().blocking_recv().expect("the writer lives");
        started.elapsed()
    });
    let commits = commits.collect();
    bare.close();
    commits
}

/// The median time of a single commit.
pub fn commit(setting: &Setting, records: usize, bytes: usize) -> Duration {
    let times = commits(setting, records, bytes);
    Duration::from_secs_f64(median(times.iter().map(Duration::as_secs_f64).collect()))
}

/// Records per second committed for this many callers, each of which waits for one at a time.
pub fn grouped(setting: &Setting, callers: usize, records: usize, bytes: usize) -> f64 {
    let bare = Arc::new(Bare::open(setting.place(), bytes));
    let started = Instant::now();
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let (bare, own) = (bare.clone(), (caller..records).step_by(callers).len());
            setting.runtime.spawn(async move {
                for _ in 0..own {
                    bare.hand_over().await.expect("the writer lives");
                }
            })
        })
        .collect();
    for caller in callers {
        setting.runtime.block_on(caller).expect("a caller");
    }
    let rate = per_second(records, started.elapsed());
    Arc::into_inner(bare).expect("every caller is done").close();
    rate
}

/// A thread that writes records of one size; all that arrive during a commit share the next one.
#[derive(Debug)]
struct Bare {
    queue: mpsc::Sender<oneshot::Sender<()>>,
    writer: JoinHandle<()>,
    folder: PathBuf,
}

impl Bare {
    fn open(folder: PathBuf, bytes: usize) -> Self {
        let (queue, waiting) = mpsc::channel();
        let (opened, ready) = mpsc::channel();
        let path = folder.join("bare.db");
        let writer = std::thread::spawn(move || {
            let database = database(&path);
            opened.send(()).expect("a caller waits for it");
            write(&database, &waiting, &vec![7; bytes]);
        });
        ready.recv().expect("a database");
        Self { queue, writer, folder }
    }

    fn hand_over(&self) -> oneshot::Receiver<()> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(answer).expect("the writer lives");
        answered
    }

    fn close(self) {
        drop(self.queue);
        self.writer.join().expect("the writer");
        std::fs::remove_dir_all(&self.folder).expect("the folder was ours");
    }
}

/// As durable as the journal, with its columns, and like it checkpointed every 4 MiB, which is SQLite's default.
pub fn database(path: &Path) -> Connection {
    let database = Connection::open(path).expect("a database");
    let table = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE journal (lsn INTEGER PRIMARY KEY, run INTEGER NOT NULL, prev INTEGER, body BLOB NOT NULL)";
    database.execute_batch(table).expect("a table");
    database
}

fn write(database: &Connection, waiting: &mpsc::Receiver<oneshot::Sender<()>>, body: &[u8]) {
    let prepare = |sql| database.prepare(sql).expect("SQL");
    let mut insert = prepare("INSERT INTO journal (run, prev, body) VALUES (1, 1, ?1)");
    let (mut begin, mut commit) = (prepare("BEGIN IMMEDIATE"), prepare("COMMIT"));
    while let Ok(first) = waiting.recv() {
        let group: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
        begin.execute([]).expect("a transaction");
        for _ in &group {
            insert.execute([body]).expect("inserted");
        }
        commit.execute([]).expect("committed");
        group.into_iter().for_each(|answer| answer.send(()).expect("the caller waits"));
    }
}
