//! `shell`: a command, run by `sh -c` in a process group of its own.

use crate::capture::{Capture, LINGER};
use crate::children::{Children, FOLDER, marks};
use crate::context::{Context, Environment, Stream};
use crate::executor::{BoxFuture, Executor};
use crate::group::Group;
use crate::redact::Redactor;
use crate::secrets::Unsealer;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::ShellOutput;

/// With its folder: a name to be searched for in the child's own `PATH` would turn posix_spawn into a slow fork.
const SHELL: &str = "/bin/sh";

/// Runs shell commands.
///
/// The outputs are `exit_code`, `stdout` and `stderr`, exactly as printed as far as that is UTF-8, and with JSON output also
/// `data`, whose members are outputs too where no other has the name. A status other than zero is a failure of class
/// `error`.
///
/// A job that failed or was aborted leaves nothing behind: whatever is left of its group is ended, because another attempt
/// may follow at once. One that succeeded may leave something running, for instance a server for the steps after it; what
/// that still prints is not read.
#[derive(Clone, Debug)]
pub struct Shell {
    /// How long a command that was asked to end may take before it is killed.
    pub grace: Duration,
    /// What is kept of each of the two streams.
    pub output_bytes_max: usize,
    /// Where groups are written down, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

impl Default for Shell {
    fn default() -> Self {
        Self { grace: Duration::from_secs(5), output_bytes_max: 1024 * 1024, children: None }
    }
}

impl Executor for Shell {
    fn run(&self, job: Job, context: Context) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed) })
    }
}

/// A command ready to be started.
struct Prepared {
    command: Command,
    stdin: Option<Arc<str>>,
    redactor: Redactor,
    output: ShellOutput,
}

enum Ending {
    Exited(ExitStatus),
    Aborted,
}

impl Shell {
    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let mut prepared = self.prepare(job, context)?;
        if context.abort.is_cancelled() {
            return Ok(aborted());
        }
        let mut child = prepared.command.spawn().map_err(|error| not_started(&error))?;
        let group = Group::led_by(&child);
        if let (Some(children), Some(leader)) = (&self.children, child.id()) {
            children.started(leader, &job.key);
        }
        let capture = |stream| {
            let (job, output, redactor) =
                (job.key.clone(), context.output.clone(), prepared.redactor.clone());
            Capture::new(job, stream, output, redactor, self.output_bytes_max)
        };
        let (mut stdout, mut stderr) = (capture(Stream::Stdout), capture(Stream::Stderr));
        if prepared.output == ShellOutput::Json && !prepared.redactor.is_empty() {
            stdout = stdout.with_raw();
        }
        let ending =
            self.attend(&mut child, group, &prepared, [&mut stdout, &mut stderr], &context.abort).await?;
        match ending {
            Ending::Aborted => Ok(aborted()),
            Ending::Exited(status) => result(status, &stdout, &stderr, &prepared),
        }
    }

    fn prepare(&self, job: &Job, context: &Context) -> Result<Prepared, Failure> {
        let Work::Shell { command: text, cwd, stdin, output } = &job.work.work else {
            let message = format!("`{}` is no shell step, so no shell can run it", job.step);
            return Err(Failure::new(class::ERROR, message));
        };
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut command = Command::new(SHELL);
        command.arg("-c").arg(&*unsealer.text(text)?);
        command.env_clear().envs(inherited(job, &context.environment));
        for (name, value) in &job.work.env {
            command.env(&**name, &*unsealer.text(&value.0)?);
        }
        // Last, so that nobody takes the marks off; and without the folder of a run that we may be a step of ourselves.
        command.env_remove(FOLDER).envs(marks(job, self.children.as_deref()));
        let cwd = cwd.as_ref().map(|cwd| unsealer.text(cwd)).transpose()?;
        command.current_dir(directory(cwd.as_deref(), &context.environment)?);
        let stdin = stdin.as_ref().map(|stdin| unsealer.text(&stdin.0)).transpose()?;
        command.stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        Ok(Prepared { command, stdin, redactor: unsealer.redactor(), output: *output })
    }

    /// Stays with a child until there is something to report.
    async fn attend(
        &self,
        child: &mut Child,
        group: Group,
        prepared: &Prepared,
        [stdout, stderr]: [&mut Capture; 2],
        abort: &CancellationToken,
    ) -> Result<Ending, Failure> {
        let exited = CancellationToken::new();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (input, Some(out), Some(err)) = pipes else {
            return Err(Failure::new(class::ERROR, "the output of the command cannot be read"));
        };
        let text = prepared.stdin.as_deref().unwrap_or_default();
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
            return Ok(Ending::Aborted);
        };
        exited.cancel();
        let status =
            status.map_err(|error| Failure::new(class::ERROR, format!("the command is lost: {error}")))?;
        tokio::select! { () = talk.finish() => {}, () = abort.cancelled() => {} }
        if status.success() {
            group.release();
        } else {
            group.end(None, self.grace).await;
        }
        Ok(Ending::Exited(status))
    }
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

/// The environment of the caller less the secrets that the workflow declares.
fn inherited(job: &Job, environment: &Environment) -> impl Iterator<Item = (OsString, OsString)> {
    let is_secret = |name: &OsStr| job.secrets.iter().any(|secret| OsStr::new(&**secret) == name);
    environment.variables.clone().into_iter().filter(move |(name, _)| !is_secret(name))
}

/// Where the run was started, unless the step says otherwise. Said here, as the system would only say "not found".
fn directory(cwd: Option<&str>, environment: &Environment) -> Result<PathBuf, Failure> {
    let directory = environment.directory.join(cwd.unwrap_or_default());
    if directory.is_dir() {
        return Ok(directory);
    }
    let problem = if directory.exists() { "is no directory" } else { "does not exist" };
    let message = format!("the working directory `{}` {problem}", directory.display());
    Err(Failure::new(class::ERROR, message).in_field("cwd"))
}

fn not_started(error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::ArgumentListTooLong => ": pass large values by `stdin` instead of in the command or `env`",
        ErrorKind::InvalidInput => ": commands and environments cannot hold NUL characters",
        _ => "",
    };
    Failure::new(class::ERROR, format!("{SHELL} cannot be started: {error}{hint}"))
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

fn aborted() -> Outcome {
    Outcome::Cancelled("the command was told to stop".into())
}

fn result(
    status: ExitStatus,
    stdout: &Capture,
    stderr: &Capture,
    prepared: &Prepared,
) -> Result<Outcome, Failure> {
    let mut outputs = Map::from_iter([
        ("exit_code".into(), Value::Int(exit_code(status))),
        ("stdout".into(), Value::text(stdout.text())),
        ("stderr".into(), Value::text(stderr.text())),
    ]);
    let failed =
        |failure: Failure, outputs: Map| Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure };
    if !status.success() {
        let last_line = stderr.last_line().map(|line| format!(": {line}")).unwrap_or_default();
        let failure = Failure::new(class::ERROR, format!("{}{last_line}", shown(status)));
        return Err(failed(failure, outputs));
    }
    match prepared.output {
        ShellOutput::Text => {}
        ShellOutput::Json => match data(stdout, &prepared.redactor) {
            Ok(data) => add_data(&mut outputs, data),
            Err(failure) => return Err(failed(failure, outputs)),
        },
    }
    Ok(Outcome::Done(Value::Map(Arc::new(outputs))))
}

/// Standard output as data. Secrets are taken out afterwards: a mask in the middle of JSON would break it.
fn data(stdout: &Capture, redactor: &Redactor) -> Result<Value, Failure> {
    let parsed = match stdout.raw() {
        Some(json) => serde_json::from_slice::<Value>(json).map_err(|error| error.to_string()),
        None => Err("there is more than the limit for the output of a command".to_owned()),
    };
    let value = parsed.map_err(|problem| {
        let message =
            format!("standard output is not JSON: {problem}; print one JSON value and nothing else");
        Failure::new(class::CONTRACT_VIOLATION, message).in_field("outputs.data")
    })?;
    Ok(redactor.value(&value))
}

fn add_data(outputs: &mut Map, data: Value) {
    outputs.insert("data".into(), data.clone());
    if let Value::Map(members) = data {
        for (name, value) in &*members {
            outputs.entry(name.clone()).or_insert_with(|| value.clone());
        }
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
