//! The environment of measurements: a folder, threads for the engine, the `echo` executor and the workflows.

use rusqlite::{Connection, OpenFlags};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;
use windlass::{
    BoxFuture, Clock, Context, Engine, Executor, Host, Job, Outcome, Patience, Plan, Returned, Value, Work,
    Workflow,
};
use windlass_runtime::{Beginning, Lineage, Start};

/// The input and output of an `echo` step.
const INPUT: &str = "input: {ok: true}";

#[derive(Debug)]
pub struct Setting {
    pub runtime: Runtime,
    folder: PathBuf,
    places: Cell<usize>,
}

impl Setting {
    /// Creates a folder below `base`, which should be on the disk to measure.
    pub fn new(base: &Path) -> std::io::Result<Self> {
        let folder = base.join(format!("windlass-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self { runtime: runtime(), folder, places: Cell::new(0) })
    }

    /// A new folder.
    pub fn place(&self) -> PathBuf {
        self.places.set(self.places.get() + 1);
        let place = self.folder.join(self.places.get().to_string());
        std::fs::create_dir(&place).expect("a folder to measure in");
        place
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // A leftover folder is removed with other temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("threads for the engine")
}

/// Returns its input at once.
#[derive(Clone, Copy, Debug)]
pub struct Echo;

impl Executor for Echo {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let given = match &job.work.work {
            Work::Task { input, .. } => input.clone(),
            other => unreachable!("the bench has only tasks, not {other:?}"),
        };
        Box::pin(std::future::ready(Outcome::Done(given).into()))
    }
}

pub fn engine(folder: &Path) -> Engine {
    Engine::open(folder).expect("a data folder").with_executor(Echo)
}

/// The program itself, which is next to this one.
pub fn windlass() -> PathBuf {
    std::env::current_exe().expect("this program has a path").with_file_name("windlass")
}

/// A run that stops when only people could continue it.
pub fn beginning(host: &Host, inputs: Value) -> Start {
    Start {
        run: None,
        inputs,
        by: None,
        source: String::new(),
        overrides: String::new(),
        file: None,
        host: host.clone(),
        clock: Clock::Real,
        patience: Patience::Work,
        claims: Vec::new(),
        lineage: Lineage::default(),
        parents: Vec::new(),
        budgets: Vec::new(),
        beginning: Beginning::default(),
    }
}

pub fn no_inputs() -> Value {
    Value::map::<&str>([])
}

/// Sequential stages, each with the content of `stage`.
pub fn chain(steps: usize, stage: &str) -> Plan {
    let stages: String = (0..steps)
        .map(|n| match n {
            0 => format!("  - {{id: s0, {stage}}}\n"),
            n => format!("  - {{id: s{n}, {stage}, depends_on: [s{}]}}\n", n - 1),
        })
        .collect();
    plan(&format!("config: {{timeout: 10h}}\nstages:\n{stages}"))
}

/// Steps that wait for their record.
pub fn strict(steps: usize) -> Plan {
    chain(steps, &format!("type: task, task: echo, {INPUT}"))
}

/// Steps that the engine does itself.
pub fn pure(steps: usize) -> Plan {
    chain(steps, "type: assign, set: {ok: true}")
}

/// One `echo` for each number of the parameter `items`, which returns the number.
pub fn fan_out(at_once: usize) -> Plan {
    plan(&format!(
        "config: {{timeout: 10h, parameters: {{items: {{type: array<integer>, required: true}}}}}}\n\
         stages:\n  - id: fan\n    type: fan_out\n    fan_out: {{source: \"${{{{ parameters.items }}}}\", \
         concurrency: {at_once}, stage_template: {{type: task, task: echo, input: \"${{{{ item }}}}\"}}}}\n"
    ))
}

pub fn items(count: usize) -> Value {
    let numbers = (0..count).map(|n| Value::Int(i64::try_from(n).expect("few items")));
    Value::map([("items", Value::list(numbers))])
}

/// Does something this many times, with a limit on concurrency.
pub async fn in_flight<F>(count: usize, at_once: usize, one: impl Fn() -> F + Clone + Send + 'static)
where
    F: Future<Output = ()> + Send,
{
    let workers = (0..at_once).map(|worker| {
        let (one, own) = (one.clone(), (worker..count).step_by(at_once).len());
        tokio::spawn(async move {
            for _ in 0..own {
                one().await;
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("a worker");
    }
}

/// A whole workflow, given everything after its name.
pub fn workflow(rest: &str) -> String {
    format!("workflow: {{id: bench, name: Bench}}\n{rest}")
}

/// The plan of a workflow, given everything after its name.
pub fn plan(rest: &str) -> Plan {
    let text = workflow(rest);
    let workflow = Workflow::read("bench.yaml", text.into_bytes());
    workflow.plan().expect("the workflows of the bench are valid").clone()
}

/// The total size of the records in the journal of a folder without a writer.
pub fn journal_bytes(folder: &Path) -> usize {
    let file = folder.join("journal.db");
    let journal = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a journal");
    let sum = "SELECT coalesce(sum(length(body)), 0) FROM journal";
    let sum: isize = journal.query_row(sum, [], |row| row.get(0)).expect("a table of records");
    sum.unsigned_abs()
}

/// The total size of the files in a folder.
pub fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let sizes = entries.map(|entry| {
        let entry = entry.expect("an entry");
        let about = entry.metadata().expect("an entry that stays");
        if about.is_dir() { folder_bytes(&entry.path()) } else { about.len() }
    });
    sizes.sum()
}
