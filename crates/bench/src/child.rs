//! Child processes, so that memory can be measured alone and a kill is real: this program starts itself as `child
//! ROLE`. A child prints lines to its standard output and continues when it receives a line; it ends with its input.

use crate::setting::{Echo, beginning, fan_out, in_flight, items, no_inputs, plan, runtime, strict};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use windlass::{
    BoxFuture, Context, DIALECTS, Environment, Executor, Host, Job, Outcome, Plan, Returned, Value,
};
use windlass_runtime::{Durability, Engine, Handle};

const AT_ONCE: usize = 256;

/// A child as its parent sees it. Dropping it ends it.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    said: BufReader<ChildStdout>,
    told: ChildStdin,
}

impl Child {
    pub fn start(role: &str, folder: &Path, count: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["child", role]).arg(folder).arg(count.to_string());
        Self::of(&mut command)
    }

    pub fn of(command: &mut Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a child process");
        let said = BufReader::new(process.stdout.take().expect("it is piped"));
        let told = process.stdin.take().expect("it is piped");
        Self { process, said, told }
    }

    /// The next line that it prints; `None` after its end.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("lines of text");
        line.ends_with('\n').then(|| line.trim_end().to_owned())
    }

    /// Waits for a line that must be this one.
    pub fn says(&mut self, expected: &str) {
        assert_eq!(self.line().as_deref(), Some(expected), "what a child process says");
    }

    /// Lets it continue.
    pub fn tell(&mut self) {
        self.told.write_all(b"\n").expect("a child that listens");
    }

    pub fn resident(&self) -> f64 {
        self.megabytes("VmRSS:")
    }

    /// Its peak memory.
    pub fn resident_most(&self) -> f64 {
        self.megabytes("VmHWM:")
    }

    fn megabytes(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.expect("Linux tells how much memory a process has");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("such a field");
        let kilobytes = line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number of kB");
        kilobytes * 1_024.0 / 1e6
    }

    /// `kill -9`; output from before can still be read.
    pub fn kill(&mut self) {
        self.process.kill().expect("it was running");
        self.process.wait().expect("it has ended");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The entry point of a child.
pub fn live(words: &[String]) {
    let [role, folder, count] = words else { panic!("child ROLE FOLDER COUNT, not {words:?}") };
    let (folder, count) = (PathBuf::from(folder), count.parse().expect("a number"));
    runtime().block_on(async {
        match role.as_str() {
            "runs" => runs(&folder, count).await,
            "gates" => gates(&folder, count).await,
            "fan" => fan(&folder, count).await,
            "hang" => hang(&folder, count).await,
            "long" => long(&folder, count).await,
            "recover" => recover(&folder, count).await,
            other => panic!("no child is a {other}"),
        }
    });
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("a parent that listens");
}

fn listen() {
    std::io::stdin().read_line(&mut String::new()).expect("a parent that talks");
}

/// An engine that executes all its runs, as `windlass serve` does.
fn open(folder: &Path, executor: impl Executor + 'static) -> (Arc<Engine>, Host) {
    let engine = Engine::open(folder, Durability::Disk, DIALECTS).expect("a data folder");
    let host = Host::new(Environment::default()).with_others(executor);
    engine.set_default_host(host.clone());
    (engine, host)
}

async fn start(engine: &Arc<Engine>, plan: &Plan, inputs: Value, host: &Host) -> Handle {
    engine.start(plan, beginning(host, inputs)).await.expect("a start")
}

/// Starts this many runs and waits until they are at rest.
async fn all(engine: &Arc<Engine>, host: &Host, plan: Plan, count: usize) {
    let (engine, host, plan) = (engine.clone(), host.clone(), Arc::new(plan));
    in_flight(count, AT_ONCE.min(count), move || {
        let (engine, host, plan) = (engine.clone(), host.clone(), plan.clone());
        async move {
            start(&engine, &plan, no_inputs(), &host).await.outcome().await.expect("an end");
        }
    })
    .await;
}

/// Idle, then after this many runs of five steps.
async fn runs(folder: &Path, count: usize) {
    let (engine, host) = open(folder, Echo);
    say("idle");
    listen();
    all(&engine, &host, strict(crate::many::STEPS), count).await;
    say("done");
    listen();
}

/// With half of the runs at a gate, then with all. The first half reaches the peak of the work in flight.
async fn gates(folder: &Path, count: usize) {
    let (engine, host) = open(folder, Echo);
    let plan = plan("stages:\n  - {id: sign-off, type: gate, gate: {timeout: 24h}}\n");
    all(&engine, &host, plan.clone(), count / 2).await;
    say("some wait");
    listen();
    all(&engine, &host, plan, count - count / 2).await;
    say("all wait");
    listen();
}

async fn fan(folder: &Path, count: usize) {
    let (engine, host) = open(folder, Echo);
    let handle = start(&engine, &fan_out(crate::fan_out::AT_ONCE), items(count), &host).await;
    handle.outcome().await.expect("an end");
    say("done");
    listen();
}

/// The step that is finished before a crash.
const FIRST: &str = "first";

fn hanging() -> Plan {
    plan(&format!(
        "config: {{timeout: 10h}}\nstages:\n  - {{id: {FIRST}, type: task, task: echo}}\n  \
         - {{id: second, type: task, task: hang, depends_on: [{FIRST}]}}\n"
    ))
}

/// This many runs, each with one finished step and one in progress.
async fn hang(folder: &Path, count: usize) {
    let all = Arc::new(Notify::new());
    let (engine, host) = open(folder, Hangs { left: AtomicUsize::new(count), all: all.clone() });
    let plan = Arc::new(hanging());
    // The engine executes runs as long as someone holds it.
    let _held = engine.clone();
    in_flight(count, AT_ONCE.min(count), move || {
        let (engine, host, plan) = (engine.clone(), host.clone(), plan.clone());
        async move { drop(start(&engine, &plan, no_inputs(), &host).await) }
    })
    .await;
    all.notified().await;
    say("hanging");
    listen();
}

/// One run of this many steps; each prints its name before it is done.
async fn long(folder: &Path, count: usize) {
    let (engine, host) = open(folder, Says);
    let handle = start(&engine, &strict(count), no_inputs(), &host).await;
    handle.outcome().await.expect("an end");
    say("done");
    listen();
}

/// Continues what was left: prints `next STEP` for the first step that is done, `last` for the one with this number,
/// and how many first steps of runs were done at all.
async fn recover(folder: &Path, count: usize) {
    let seen = Arc::new(Seen { expected: count, jobs: AtomicUsize::new(0), repeated: AtomicUsize::new(0) });
    let (engine, host) = open(folder, Recovers(seen.clone()));
    let left_alone = engine.serve_all(host).await.expect("runs to continue");
    assert!(left_alone.is_empty(), "a run that can continue: {left_alone:?}");
    engine.idle(false).await;
    say(&format!("repeated {}", seen.repeated.load(Ordering::Relaxed)));
    listen();
}

type Done<'a> = BoxFuture<'a, Returned>;

fn at_once<'a>() -> Done<'a> {
    Box::pin(std::future::ready(Outcome::Done(Value::Null).into()))
}

/// Never ends a second step.
struct Hangs {
    left: AtomicUsize,
    all: Arc<Notify>,
}

impl Executor for Hangs {
    fn start(&self, job: Job, _: Context) -> Done<'_> {
        if &*job.step == FIRST {
            return at_once();
        }
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.all.notify_one();
        }
        Box::pin(std::future::pending())
    }
}

struct Says;

impl Executor for Says {
    fn start(&self, job: Job, _: Context) -> Done<'_> {
        say(&job.step);
        at_once()
    }
}

struct Seen {
    expected: usize,
    jobs: AtomicUsize,
    repeated: AtomicUsize,
}

struct Recovers(Arc<Seen>);

impl Executor for Recovers {
    fn start(&self, job: Job, _: Context) -> Done<'_> {
        let before = self.0.jobs.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            say(&format!("next {}", job.step));
        }
        if &*job.step == FIRST {
            self.0.repeated.fetch_add(1, Ordering::Relaxed);
        }
        if before + 1 == self.0.expected {
            say("last");
        }
        at_once()
    }
}
