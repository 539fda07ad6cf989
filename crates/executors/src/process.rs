//! One process of a job: started in a group of its own, fed, listened to, and ended together with what it started.

use crate::capture::{Capture, LINGER};
use crate::children::{Children, FOLDER, marks};
use crate::context::{Context, Environment, Stream};
use crate::group::Group;
use crate::redact::Redactor;
use crate::secrets::Unsealer;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_engine::{Failure, Job, Outcome, class};
use windlass_ir::Value;
use windlass_ir::value::Map;

/// What a local task is told in its environment beside the marks that every process carries. Nobody inherits them.
pub const METADATA: &str = "WINDLASS_METADATA";
pub const NOTES: &str = "WINDLASS_NOTES";
pub const ROUND: &str = "WINDLASS_ROUND";
pub const ROUNDS_MAX: &str = "WINDLASS_ROUNDS_MAX";
const TOLD: [&str; 4] = [METADATA, NOTES, ROUND, ROUNDS_MAX];

/// How long a process that was asked to end may take before it is killed, unless somebody says otherwise.
pub const GRACE: Duration = Duration::from_secs(5);

/// A process ready to be started.
pub struct Prepared<'a> {
    /// With its environment and its working directory.
    pub command: Command,
    pub stdin: Option<Arc<str>>,
    pub redactor: Redactor,
    pub stdout_bytes_max: usize,
    pub stderr_bytes_max: usize,
    /// Standard output will be read as JSON.
    pub prints_data: bool,
    /// When it succeeds, what it started may go on.
    pub may_leave: bool,
    pub grace: Duration,
    pub children: Option<&'a Children>,
    /// What to do when command and environment are too large for the system.
    pub too_long: &'static str,
}

/// A process that came to its end by itself.
pub struct Exited {
    pub status: ExitStatus,
    pub stdout: Capture,
    pub stderr: Capture,
    redactor: Redactor,
}

pub fn aborted() -> Outcome {
    Outcome::Cancelled("the command was told to stop".into())
}

/// Gives a command its environment: the caller's less the secrets that the workflow declares, then the step's own.
pub fn surround(
    command: &mut Command,
    job: &Job,
    environment: &Environment,
    unsealer: &mut Unsealer<'_>,
    children: Option<&Children>,
) -> Result<(), Failure> {
    command.env_clear().envs(inherited(job, environment));
    for (name, value) in &job.work.env {
        command.env(&**name, &*unsealer.text(&value.0)?);
    }
    // Last, so that nobody takes the marks off; and without the folder of a run that we may be a step of ourselves.
    command.env_remove(FOLDER).envs(marks(job, children));
    Ok(())
}

fn inherited(job: &Job, environment: &Environment) -> impl Iterator<Item = (OsString, OsString)> {
    let is_secret = |name: &OsStr| job.secrets.iter().any(|secret| OsStr::new(&**secret) == name);
    let is_told = |name: &OsStr| TOLD.iter().any(|told| OsStr::new(told) == name);
    environment.variables.clone().into_iter().filter(move |(name, _)| !is_secret(name) && !is_told(name))
}

/// Said here, as the system would only say "not found".
pub fn check_directory(directory: &Path) -> Result<(), Failure> {
    if directory.is_dir() {
        return Ok(());
    }
    let problem = if directory.exists() { "is no directory" } else { "does not exist" };
    let message = format!("the working directory `{}` {problem}", directory.display());
    Err(Failure::new(class::ERROR, message).in_field("cwd"))
}

impl Prepared<'_> {
    /// Runs the process to its end. None when it was told to stop before that.
    pub async fn run(mut self, job: &Job, context: &Context) -> Result<Option<Exited>, Failure> {
        if context.abort.is_cancelled() {
            return Ok(None);
        }
        let mut child = self.start()?;
        let group = Group::led_by(&child);
        if let (Some(children), Some(leader)) = (self.children, child.id()) {
            children.started(leader, &job.key);
        }
        let capture = |stream, bytes_max| {
            let (job, output) = (job.key.clone(), context.output.clone());
            Capture::new(job, stream, output, self.redactor.clone(), bytes_max)
        };
        let mut stdout = capture(Stream::Stdout, self.stdout_bytes_max);
        let mut stderr = capture(Stream::Stderr, self.stderr_bytes_max);
        if self.prints_data && !self.redactor.is_empty() {
            stdout = stdout.with_raw();
        }
        let status = self.attend(&mut child, group, [&mut stdout, &mut stderr], &context.abort).await?;
        Ok(status.map(|status| Exited { status, stdout, stderr, redactor: self.redactor }))
    }

    fn start(&mut self) -> Result<Child, Failure> {
        self.command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        self.command.process_group(0);
        self.command.spawn().map_err(|error| self.not_started(&error))
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let hint = match error.kind() {
            ErrorKind::ArgumentListTooLong => self.too_long,
            ErrorKind::InvalidInput => "commands and environments cannot hold NUL characters",
            ErrorKind::PermissionDenied => "make it executable, or name the program that reads it first",
            // That the file itself is there has been seen.
            ErrorKind::NotFound => "the program that its first line names is not there",
            _ if is_no_program(error) => {
                "begin it with a line such as `#!/bin/sh`, or name the program that reads it first"
            }
            _ => "",
        };
        let hint = if hint.is_empty() { String::new() } else { format!(": {hint}") };
        let program = self.command.as_std().get_program().display();
        Failure::new(class::ERROR, format!("{program} cannot be started: {error}{hint}"))
    }

    /// Stays with a child until there is something to report. None when it was told to stop.
    async fn attend(
        &self,
        child: &mut Child,
        group: Group,
        [stdout, stderr]: [&mut Capture; 2],
        abort: &CancellationToken,
    ) -> Result<Option<ExitStatus>, Failure> {
        let exited = CancellationToken::new();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (input, Some(out), Some(err)) = pipes else {
            return Err(Failure::new(class::ERROR, "the output of the command cannot be read"));
        };
        let text = self.stdin.as_deref().unwrap_or_default();
        let talk = pin!(async {
            tokio::join!(stdout.pump(out, &exited), stderr.pump(err, &exited), feed(input, text, &exited));
        });
        let mut talk = Beside { future: talk, is_done: false };
        let waited = talk.during(async {
            tokio::select! { status = child.wait() => Some(status), () = abort.cancelled() => None }
        });
        let Some(status) = waited.await else {
            talk.during(group.end(Some(child), self.grace)).await;
            exited.cancel();
            // Whoever watches may see what the command said about its end, but holds nobody up.
            let _ = timeout(LINGER * 2, talk.finish()).await;
            return Ok(None);
        };
        exited.cancel();
        let status =
            status.map_err(|error| Failure::new(class::ERROR, format!("the command is lost: {error}")))?;
        tokio::select! { () = talk.finish() => {}, () = abort.cancelled() => {} }
        if status.success() && self.may_leave {
            group.release();
        } else {
            group.end(None, self.grace).await;
        }
        Ok(Some(status))
    }
}

impl Exited {
    /// Standard output as data, or why it is none. Secrets are taken out afterwards: a mask in the middle of JSON would
    /// break it.
    pub fn data(&self) -> Result<Value, String> {
        let parsed = match self.stdout.raw() {
            Some(json) => serde_json::from_slice::<Value>(json).map_err(|error| error.to_string()),
            None => Err("there is more than the limit for the output of a command".to_owned()),
        };
        let value = parsed.map_err(|problem| {
            format!("standard output is not JSON: {problem}; print one JSON value and nothing else")
        })?;
        Ok(self.redactor.value(&value))
    }

    /// How it ended and what it printed, of each stream no more than so much.
    pub fn outputs(&self, bytes_max: usize) -> Map {
        Map::from_iter([
            ("exit_code".into(), Value::Int(exit_code(self.status))),
            ("stdout".into(), Value::text(self.stdout.head(bytes_max))),
            ("stderr".into(), Value::text(self.stderr.head(bytes_max))),
        ])
    }

    /// For a process that did not succeed: how it ended, and the last it said about that.
    pub fn failure(&self) -> Failure {
        let last_line = self.stderr.last_line().map(|line| format!(": {line}")).unwrap_or_default();
        Failure::new(class::ERROR, format!("{}{last_line}", shown(self.status)))
    }
}

/// A file that can be executed, and that the system does not know how to.
#[cfg(unix)]
fn is_no_program(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

#[cfg(not(unix))]
fn is_no_program(_error: &std::io::Error) -> bool {
    false
}

/// A future that goes on while others are waited for.
struct Beside<'a, F> {
    future: Pin<&'a mut F>,
    is_done: bool,
}

impl<F: Future<Output = ()>> Beside<'_, F> {
    async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                value = &mut other => return value,
                () = &mut self.future, if !self.is_done => self.is_done = true,
            }
        }
    }

    async fn finish(&mut self) {
        if !self.is_done {
            self.future.as_mut().await;
            self.is_done = true;
        }
    }
}

/// Gives the command its input, if it wants it.
async fn feed(pipe: Option<ChildStdin>, text: &str, exited: &CancellationToken) {
    let Some(mut pipe) = pipe else { return };
    tokio::select! {
        // A command need not read its input, and may close it early.
        _ = pipe.write_all(text.as_bytes()) => {}
        () = exited.cancelled() => {}
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// As a shell counts: 128 and the signal for a command that was killed.
fn exit_code(status: ExitStatus) -> i64 {
    let code = status.code().or_else(|| signal(status).map(|signal| 128 + signal));
    i64::from(code.unwrap_or(-1))
}

fn shown(status: ExitStatus) -> String {
    match signal(status) {
        None => format!("exit status {}", exit_code(status)),
        Some(signal) => match signal_name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
    }
}

/// Those that have the same number everywhere.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}
