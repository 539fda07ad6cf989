//! Records per second acknowledged to waiting callers: through the store, and through the least that could do the same, a
//! thread with one SQLite table and group commit. Both are measured in turns, beside what the disk itself can do.
//!
//! `cargo run --release -p windlass-store --example store_bench [FOLDER]`

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

use rusqlite::Connection;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use windlass_engine::{Event, RunId, Timestamp, What};
use windlass_store::{Append, Appended, Lsn, Options, Projection, Row, Store};

const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(450);
/// Before the first round, so that every log has its size and is written over again.
const WARM_UP: Duration = Duration::from_millis(400);
const CALLERS: [usize; 3] = [1, 64, 512];
const FRAME_BYTES: usize = 300;

fn main() {
    let base = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, Into::into);
    let folder = base.join(format!("windlass-store-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder to measure in");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    println!(
        "records of {FRAME_BYTES} bytes; medians of {ROUNDS} rounds of {} ms in turns, of rates and of ratios",
        ROUND.as_millis()
    );
    println!("fdatasync alone: {:.0} per second\n", median((0..ROUNDS).map(|_| flushes(&folder)).collect()));
    println!(
        "{:>7} {:>12} {:>12} {:>12} {:>7} {:>10}",
        "callers", "bare", "store", "with view", "ratio", "with view"
    );
    for callers in CALLERS {
        measure(&runtime, &folder, callers);
    }
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
}

fn measure(runtime: &Runtime, folder: &Path, count: usize) {
    let place = |name: &str| folder.join(format!("{name}-{count}"));
    let ways = [
        Way::bare(&place("bare")),
        Way::store(&place("store"), None),
        Way::store(&place("viewed"), Some(Arc::new(Few))),
    ];
    let mut rates = [const { Vec::new() }; 3];
    for round in 0..=ROUNDS {
        for (way, rates) in ways.iter().zip(&mut rates) {
            let rate = way.round(runtime, count, round);
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    // A shared machine changes its pace: each round is compared with the one beside it.
    let ratio =
        |part: &[f64]| median(part.iter().zip(&rates[0]).map(|(part, bare)| 100.0 * part / bare).collect());
    let (store_ratio, viewed_ratio) = (ratio(&rates[1]), ratio(&rates[2]));
    let [bare, store, viewed] = rates.map(median);
    println!(
        "{count:>7} {bare:>12.0} {store:>12.0} {viewed:>12.0} {store_ratio:>5.0} % {viewed_ratio:>8.0} %"
    );
    ways.into_iter().for_each(Way::end);
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// One way to have records written.
enum Way {
    Bare { sender: mpsc::Sender<Job>, writer: JoinHandle<()>, frame: Arc<[u8]> },
    Store { store: Store, events: Arc<[Event]> },
}

impl Way {
    fn bare(folder: &Path) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        let (sender, queue) = mpsc::channel();
        let path = folder.join("bare.db");
        let writer = std::thread::spawn(move || bare_writer(&path, &queue));
        Self::Bare { sender, writer, frame: vec![b'x'; FRAME_BYTES].into() }
    }

    fn store(folder: &Path, projection: Option<Arc<dyn Projection>>) -> Self {
        let store = Store::open(folder, Options { projection, ..Options::default() }).expect("a store");
        Self::Store { store, events: events().into() }
    }

    /// As many callers as told, each with one record on its way at a time, until the round is over.
    fn round(&self, runtime: &Runtime, count: usize, round: usize) -> f64 {
        let (start, length) = (Instant::now(), if round == 0 { WARM_UP } else { ROUND });
        let tasks: Vec<_> =
            (0..count).map(|n| self.caller(runtime, round * 1_000 + n, start + length)).collect();
        let done: u32 = tasks.into_iter().map(|task| runtime.block_on(task).expect("a caller")).sum();
        f64::from(done) / start.elapsed().as_secs_f64()
    }

    fn caller(&self, runtime: &Runtime, n: usize, end: Instant) -> tokio::task::JoinHandle<u32> {
        match self {
            Self::Bare { sender, frame, .. } => {
                runtime.spawn(bare_caller(sender.clone(), frame.clone(), n, end))
            }
            Self::Store { store, events } => {
                runtime.spawn(store_caller(store.clone(), events.clone(), n, end))
            }
        }
    }

    fn end(self) {
        match self {
            Self::Bare { sender, writer, .. } => {
                drop(sender);
                writer.join().expect("the writer");
            }
            Self::Store { store, .. } => store.close().expect("closed"),
        }
    }
}

async fn store_caller(store: Store, events: Arc<[Event]>, n: usize, end: Instant) -> u32 {
    let run = RunId::new(&format!("run-{n}")).expect("a run id");
    let (mut tail, mut done) = (None, 0);
    while Instant::now() < end {
        let append = Append::new(run.clone(), tail, &events).expect("a record");
        match store.journal.append(append).await {
            Ok(Appended::At(lsn)) => tail = Some(lsn),
            other => panic!("{other:?}"),
        }
        done += 1;
    }
    done
}

async fn bare_caller(sender: mpsc::Sender<Job>, frame: Arc<[u8]>, n: usize, end: Instant) -> u32 {
    let (mut prev, mut done) = (None, 0);
    while Instant::now() < end {
        let (answer, answered) = oneshot::channel();
        let job = Job { run: i64::try_from(n).expect("few callers"), prev, frame: frame.clone(), answer };
        sender.send(job).expect("the writer lives");
        prev = Some(answered.await.expect("the writer lives"));
        done += 1;
    }
    done
}

fn events() -> Vec<Event> {
    let of = |length: usize| {
        vec![Event {
            at: Timestamp(1_770_372_005_250_000),
            what: What::Paused { by: "x".repeat(length).into(), reached: false },
        }]
    };
    let run = RunId::new("r").expect("a run id");
    let around = Append::new(run, None, &of(0)).expect("a record").bytes();
    of(FRAME_BYTES - around)
}

/// About what a real one does: a few texts per run.
struct Few;

impl Projection for Few {
    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, run: &RunId, row: &mut Row, events: &[Event]) {
        if row.workflow.is_empty() {
            row.workflow = format!("workflow of {run}");
        }
        row.started_at = row.started_at.or(events.first().map(|event| event.at));
    }
}

struct Job {
    run: i64,
    prev: Option<Lsn>,
    frame: Arc<[u8]>,
    answer: oneshot::Sender<Lsn>,
}

fn bare_writer(path: &Path, queue: &mpsc::Receiver<Job>) {
    let connection = Connection::open(path).expect("a database");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE journal (lsn INTEGER PRIMARY KEY, run INTEGER NOT NULL, prev INTEGER, body BLOB NOT NULL);",
        )
        .expect("a table");
    let mut insert = connection.prepare("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)").expect("SQL");
    let (mut begin, mut commit) =
        (connection.prepare("BEGIN IMMEDIATE").expect("SQL"), connection.prepare("COMMIT").expect("SQL"));
    let mut next: i64 = 1;
    while let Ok(first) = queue.recv() {
        let batch: Vec<Job> = std::iter::once(first).chain(queue.try_iter()).collect();
        begin.execute([]).expect("a transaction");
        for (at, job) in (next..).zip(&batch) {
            let prev = job.prev.map(|lsn| lsn.0.cast_signed());
            insert.execute((at, job.run, prev, &*job.frame)).expect("inserted");
        }
        commit.execute([]).expect("committed");
        for job in batch {
            job.answer.send(Lsn(next.cast_unsigned())).expect("a caller waits");
            next += 1;
        }
    }
}

/// Writes of one page, each flushed, to a file that has its size already: what the disk allows a single caller at most.
fn flushes(folder: &Path) -> f64 {
    let mut file = std::fs::File::create(folder.join("flushes")).expect("a file");
    file.write_all(&[0; 4096]).and_then(|()| file.sync_all()).expect("written");
    let (start, mut done) = (Instant::now(), 0);
    while start.elapsed() < ROUND {
        std::io::Seek::rewind(&mut file).and_then(|()| file.write_all(&[1; 4096])).expect("written");
        file.sync_data().expect("flushed");
        done += 1;
    }
    f64::from(done) / start.elapsed().as_secs_f64()
}
