//! Short shell jobs, their outcomes, and the folders and processes of tests.

use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use windlass_engine::{Assignment, Failure, Job, JobKey, Outcome, RunId, Work};
use windlass_executors::{Children, Context, Environment, Executor, Line, Notes, Output, Shell};
use windlass_ir::Value;
use windlass_ir::expr::{ProcessShape, ResultShapes, Semantics};
use windlass_ir::value::Sealable;
use windlass_ir::workflow::{Interpreter, ShellOutput};

/// Only reached by a test that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// One command and everything around it that a test may change.
pub struct Case {
    pub command: String,
    pub run: String,
    pub cwd: Option<Value>,
    pub stdin: Option<Value>,
    pub output: ShellOutput,
    pub env: Vec<(&'static str, Value)>,
    pub secrets: Vec<&'static str>,
    pub variables: Vec<(&'static str, &'static str)>,
    pub directory: PathBuf,
    pub grace: Duration,
    pub output_bytes_max: usize,
    pub children: Option<Arc<Children>>,
    pub rules: Semantics,
    pub shell: Interpreter,
}

/// Outputs exactly as printed, as in workflows of other dialects.
pub const EXACT: Semantics = Semantics {
    results: ResultShapes { process: ProcessShape::Exact, ..ResultShapes::HOUSE },
    ..Semantics::HOUSE
};

/// A unique name: processes of a job are found by its key.
pub fn own_run() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("r{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub fn sh(command: &str) -> Case {
    let Shell { grace, output_bytes_max, .. } = Shell::default();
    Case {
        command: command.into(),
        run: own_run(),
        cwd: None,
        stdin: None,
        output: ShellOutput::Text,
        env: Vec::new(),
        secrets: Vec::new(),
        variables: Vec::new(),
        directory: "/".into(),
        grace,
        output_bytes_max,
        children: None,
        rules: EXACT,
        shell: Interpreter::plain(),
    }
}

/// A running job.
pub struct Running {
    pub abort: CancellationToken,
    /// Stops it because of a timeout.
    pub overdue: CancellationToken,
    pub lines: Receiver<Line>,
    pub outcome: tokio::task::JoinHandle<Outcome>,
}

/// A caller with these variables and a `PATH`, and the output of its jobs.
pub fn context(variables: &[(&str, &str)], directory: &Path) -> (Context, Receiver<Line>) {
    let (output, lines) = Output::channel(16);
    let (notes, _) = Notes::channel();
    let mut variables: IndexMap<_, _> =
        variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    variables.entry("PATH".into()).or_insert_with(|| std::env::var_os("PATH").expect("there is a PATH"));
    let environment = Arc::new(Environment { variables, directory: directory.to_owned() });
    let overdue = CancellationToken::new();
    let abort = overdue.child_token();
    (Context { abort, overdue, output, notes, secrets: environment.clone(), environment }, lines)
}

impl Case {
    pub fn start(self) -> Running {
        let (context, lines) = context(&self.variables, &self.directory);
        let (abort, overdue) = (context.abort.clone(), context.overdue.clone());
        let shell = Shell {
            grace: self.grace,
            output_bytes_max: self.output_bytes_max,
            children: self.children.clone(),
        };
        let job = self.job();
        let outcome =
            tokio::spawn(async move { shell.start(job, context).await.outcome().expect("a report") });
        Running { abort, overdue, lines, outcome }
    }

    fn job(self) -> Job {
        let work = Work::Shell {
            command: Value::text(self.command),
            cwd: self.cwd,
            stdin: self.stdin.map(Sealable),
            output: self.output,
            shell: self.shell,
        };
        let env = self.env.into_iter().map(|(name, value)| (name.into(), Sealable(value))).collect();
        Job {
            key: key(&self.run),
            step: "build".into(),
            work: Arc::new(Assignment { input: Value::Null, work, env, key: None, claims: Vec::new() }),
            secrets: self.secrets.into_iter().map(Arc::from).collect(),
            timeout: None,
            notes: IndexMap::new(),
            round: None,
            feedback: None,
            rules: self.rules,
        }
    }

    /// Runs to the end; live output is one text per stream.
    pub async fn finish(self) -> (Outcome, Vec<Line>) {
        self.start().finish().await
    }

    /// The outputs of a command that succeeds.
    pub async fn done(self) -> Value {
        match self.finish().await.0 {
            Outcome::Done(outputs) => outputs,
            other => panic!("{other:?}"),
        }
    }

    pub async fn failed(self) -> Failure {
        match self.finish().await.0 {
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }
}

impl Running {
    pub async fn finish(mut self) -> (Outcome, Vec<Line>) {
        let mut lines = Vec::new();
        let all = async {
            while let Some(line) = self.lines.recv().await {
                lines.push(line);
            }
            self.outcome.await.expect("no panic")
        };
        let outcome = patiently(all).await;
        (outcome, lines)
    }

    /// The next line, without its line break.
    pub async fn line(&mut self) -> String {
        let line = patiently(self.lines.recv()).await.expect("a line");
        String::from_utf8(line.bytes).expect("UTF-8").trim_end().to_owned()
    }
}

pub async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

pub fn key(run: &str) -> JobKey {
    let path = windlass_engine::Path::default().child("build".into(), Some(2));
    JobKey { run: RunId::new(run).expect("a good id"), path, attempt: 3, delivery: 4 }
}

/// An empty folder for each test.
pub fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("a folder of ours");
    }
    std::fs::create_dir_all(&folder).expect("a writable target folder");
    folder.canonicalize().expect("it was just made")
}

/// Whether a process exists and has not ended.
pub fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z') && !rest.starts_with('X'))
}
