//! Runs per second, beside what the disk allows: many small runs in flight against group commit, and one long run against
//! a thread that commits one record at a time. Medians of rounds taken in turns; ratios, not times, are what counts.
//!
//! `cargo run --release -p windlass --example runs_bench [FOLDER]`
#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::time::Instant;
use windlass::{Context, Engine, Executor, Job, Outcome, Value, Workflow};

const ROUNDS: usize = 3;
const RUNS: usize = 1_000;
const IN_FLIGHT: usize = 64;
const STEPS: usize = 5;
const LONG: usize = 1_000;
/// About what one step writes: the end of one and the schedule of the next.
const RECORD_BYTES: usize = 420;

/// Answers at once.
struct Echo;

impl Executor for Echo {
    fn run(&self, _: Job, _: Context) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async { Outcome::Done(Value::map([("ok", Value::Bool(true))])) })
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let base = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = base.join(format!("windlass-runs-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder to measure in");
    let (mut grouped, mut many, mut sharing) = (Vec::new(), Vec::new(), Vec::new());
    let (mut single, mut long) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = |name: &str| folder.join(format!("{name}-{round}"));
        grouped.push(commits(&place("grouped"), IN_FLIGHT));
        many.push(many_runs(&place("many"), "").await);
        sharing.push(many_runs(&place("sharing"), ", task_concurrency: 64").await);
        single.push(commits(&place("single"), 1));
        long.push(one_long_run(&place("long")).await);
    }
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    let [grouped, many, sharing, single, long] = [grouped, many, sharing, single, long].map(median);
    println!("medians of {ROUNDS} rounds in turns, records of {RECORD_BYTES} bytes in the bare loops");
    println!("group commit, {IN_FLIGHT} callers      {grouped:>10.0} records/s");
    println!(
        "{RUNS} runs of {STEPS}, {IN_FLIGHT} in flight  {many:>10.0} steps/s    {:.0} % (aim 50 %)",
        100.0 * many / grouped
    );
    println!(
        "the same with a shared limit  {sharing:>10.0} steps/s    {:.0} % of without (aim 60 %)",
        100.0 * sharing / many
    );
    println!("one commit at a time          {single:>10.0} records/s");
    println!(
        "one run of {LONG} steps        {long:>10.0} steps/s    {:.0} % (aim 80 %)",
        100.0 * long / single
    );
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A chain of tasks, each with these keys too.
fn chain(steps: usize, more: &str) -> Workflow {
    let stages: String = (0..steps)
        .map(|n| match n {
            0 => format!("  - {{id: s0, type: task, task: echo{more}}}\n"),
            n => format!("  - {{id: s{n}, type: task, task: echo, depends_on: [s{}]{more}}}\n", n - 1),
        })
        .collect();
    let text = format!("workflow: {{id: chain, name: Chain}}\nconfig: {{timeout: 10h}}\nstages:\n{stages}");
    Workflow::read("chain.yaml", text.into_bytes())
}

async fn many_runs(folder: &Path, more: &str) -> f64 {
    let engine = Arc::new(Engine::open(folder).expect("a folder").with_executor(Echo));
    let plan = Arc::new(chain(STEPS, more).plan().expect("valid").clone());
    let started = Instant::now();
    let workers: Vec<_> = (0..IN_FLIGHT)
        .map(|worker| {
            let (engine, plan) = (engine.clone(), plan.clone());
            tokio::spawn(async move {
                for _ in (worker..RUNS).step_by(IN_FLIGHT) {
                    let run = engine.run(&plan, Value::map::<&str>([])).await.expect("a start");
                    run.outcome().await.expect("an end");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    (RUNS * STEPS) as f64 / started.elapsed().as_secs_f64()
}

async fn one_long_run(folder: &Path) -> f64 {
    let engine = Engine::open(folder).expect("a folder").with_executor(Echo);
    let workflow = chain(LONG, "");
    let plan = workflow.plan().expect("valid");
    let run = engine.run(plan, Value::map::<&str>([])).await.expect("a start");
    let started = Instant::now();
    run.outcome().await.expect("an end");
    LONG as f64 / started.elapsed().as_secs_f64()
}

/// Records per second that a bare writer thread acknowledges to so many waiting callers.
fn commits(folder: &Path, callers: usize) -> f64 {
    let records = if callers == 1 { LONG } else { RUNS * STEPS };
    std::fs::create_dir_all(folder).expect("a folder");
    let (sender, queue) = mpsc::channel::<mpsc::Sender<()>>();
    let path = folder.join("bare.db");
    let writer = std::thread::spawn(move || write(&path, &queue));
    let started = Instant::now();
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for _ in (caller..records).step_by(callers) {
                    let (answer, answered) = mpsc::channel();
                    sender.send(answer).expect("the writer lives");
                    answered.recv().expect("the writer lives");
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().expect("a caller"));
    let rate = records as f64 / started.elapsed().as_secs_f64();
    drop(sender);
    writer.join().expect("the writer");
    rate
}

fn write(path: &Path, queue: &mpsc::Receiver<mpsc::Sender<()>>) {
    let database = Connection::open(path).expect("a database");
    let table = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
        CREATE TABLE journal (lsn INTEGER PRIMARY KEY, run INTEGER, prev INTEGER, body BLOB NOT NULL)";
    database.execute_batch(table).expect("a table");
    let mut insert =
        database.prepare("INSERT INTO journal (run, prev, body) VALUES (1, 1, ?1)").expect("SQL");
    let body = vec![7u8; RECORD_BYTES];
    while let Ok(first) = queue.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(queue.try_iter()).collect();
        database.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
        for _ in &batch {
            insert.execute([&body]).expect("inserted");
        }
        database.execute_batch("COMMIT").expect("committed");
        batch.into_iter().for_each(|answer| answer.send(()).expect("the caller waits"));
    }
}
