//! One process of a job: started in its own group, given input, captured, and ended together with its descendants.

use crate::capture::{Capture, LINGER};
use crate::children::{Children, FOLDER, Strays, marks};
use crate::context::{Context, Environment, Stream};
use crate::group::Group;
use crate::redact::Redactor;
use crate::secrets::Unsealer;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
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
use windlass_ir::workflow::OUTPUT_FILE;

/// Variables for a local task besides the marks that every process carries. They are never inherited.
pub const METADATA: &str = "WINDLASS_METADATA";
pub const NOTES: &str = "WINDLASS_NOTES";
pub const ROUND: &str = "WINDLASS_ROUND";
pub const ROUNDS_MAX: &str = "WINDLASS_ROUNDS_MAX";
const TASK_VARIABLES: [&str; 5] = [METADATA, NOTES, ROUND, ROUNDS_MAX, OUTPUT_FILE];

/// The default time that a process may take to end after SIGTERM before it is killed.
pub const GRACE: Duration = Duration::from_secs(5);

/// A process ready to be started.
pub struct Prepared<'a> {
    /// With its environment and working directory.
    pub command: Command,
    pub stdin: Option<Arc<str>>,
    pub redactor: Redactor,
    pub stdout_bytes_max: usize,
    pub stderr_bytes_max: usize,
    /// Standard output will be read as JSON.
    pub prints_data: bool,
    /// If it succeeds, its descendants may continue.
    pub may_leave: bool,
    pub grace: Duration,
    pub children: Option<&'a Children>,
    /// The advice if command and environment are too large for the system.
    pub too_long: &'static str,
}

/// How a process ended.
pub enum Ended {
    /// It ended by itself.
    Exited(Exited),
    /// It was stopped.
    Stopped(Printed),
}

pub struct Exited {
    pub status: ExitStatus,
    pub printed: Printed,
}

/// The output of a process.
pub struct Printed {
    pub stdout: Capture,
    pub stderr: Capture,
    redactor: Redactor,
}

/// The report about a process that was stopped. After a timeout it includes the output.
pub fn stopped(context: &Context, left: impl FnOnce() -> Map) -> Outcome {
    if !context.overdue.is_cancelled() {
        return Outcome::Cancelled("the command was stopped".into());
    }
    let failure = Failure::new(class::TIMEOUT, "the command timed out");
    Outcome::Failed(Failure { detail: Some(Value::Map(Arc::new(left()))), ..failure })
}

/// Sets the environment of a command: the caller's without the declared secrets of the workflow, then the step's own.
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
    // Last, so that the marks cannot be overridden; and without the folder of a run that this process may itself be a
    // step of.
    command.env_remove(FOLDER).envs(marks(job, children));
    Ok(())
}

fn inherited(job: &Job, environment: &Environment) -> impl Iterator<Item = (OsString, OsString)> {
    let is_secret = |name: &OsStr| job.secrets.iter().any(|secret| OsStr::new(&**secret) == name);
    let is_for_tasks = |name: &OsStr| TASK_VARIABLES.iter().any(|variable| OsStr::new(variable) == name);
    environment.variables.clone().into_iter().filter(move |(name, _)| !is_secret(name) && !is_for_tasks(name))
}

/// Reported here, because the system would only say "not found".
pub fn check_directory(directory: &Path) -> Result<(), Failure> {
    if directory.is_dir() {
        return Ok(());
    }
    let problem = if directory.exists() { "is not a directory" } else { "does not exist" };
    let message = format!("the working directory `{}` {problem}", directory.display());
    Err(Failure::new(class::NOT_RUNNABLE, message).in_field("cwd"))
}

/// A program by its name, in the caller's `PATH` as seen from the folder where it will run.
pub fn found(program: &str, folder: &Path, environment: &Environment) -> Option<PathBuf> {
    let path = environment.variables.get(OsStr::new("PATH"))?;
    std::env::split_paths(path).map(|entry| folder.join(entry).join(program)).find(|file| is_executable(file))
}

/// The same, or a path relative to the folder where the run was started.
pub fn located(program: &str, environment: &Environment) -> Option<PathBuf> {
    let directory = &environment.directory;
    match program.contains('/') {
        true => Some(directory.join(program)).filter(|file| is_executable(file)),
        false => found(program, directory, environment),
    }
}

/// There is no such program.
pub fn not_installed(program: &str, hint: &str) -> Failure {
    let place = match program.contains('/') {
        true => "that can be executed",
        false => "in the PATH of the user who started the run",
    };
    Failure::new(class::NOT_RUNNABLE, format!("there is no program `{program}` {place}: {hint}"))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

impl Prepared<'_> {
    /// Runs the process to its end.
    pub async fn run(mut self, job: &Job, context: &Context) -> Result<Ended, Failure> {
        let capture = |stream, bytes_max| {
            let (job, output) = (job.key.clone(), context.output.clone());
            Capture::new(job, stream, output, self.redactor.clone(), bytes_max)
        };
        let mut stdout = capture(Stream::Stdout, self.stdout_bytes_max);
        let mut stderr = capture(Stream::Stderr, self.stderr_bytes_max);
        if self.prints_data && !self.redactor.is_empty() {
            stdout = stdout.with_raw();
        }
        let status = match context.abort.is_cancelled() {
            true => None,
            false => self.attend(job, [&mut stdout, &mut stderr], &context.abort).await?,
        };
        let printed = Printed { stdout, stderr, redactor: self.redactor };
        Ok(match status {
            Some(status) => Ended::Exited(Exited { status, printed }),
            None => Ended::Stopped(printed),
        })
    }

    fn start(&mut self) -> Result<Child, Failure> {
        self.command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        self.command.process_group(0);
        self.command.spawn().map_err(|error| self.not_started(&error))
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let program = self.command.as_std().get_program().display();
        if let Some(failure) = exhausted(&format!("start {program}"), error) {
            return failure;
        }
        let hint = match error.kind() {
            ErrorKind::ArgumentListTooLong => self.too_long,
            ErrorKind::InvalidInput => "commands and environments cannot contain NUL characters",
            ErrorKind::PermissionDenied => "make it executable, or put its interpreter first",
            // The file itself is known to exist.
            ErrorKind::NotFound => "the interpreter in its first line does not exist",
            _ if is_unknown_format(error) => {
                "start it with a line such as `#!/bin/sh`, or put its interpreter first"
            }
            _ => "",
        };
        // The same file in the same folder would fail again; any other error may be temporary.
        let class = if hint.is_empty() { class::ERROR } else { class::NOT_RUNNABLE };
        let hint = if hint.is_empty() { String::new() } else { format!(": {hint}") };
        Failure::new(class, format!("cannot start {program}: {error}{hint}"))
    }

    /// Starts the process and stays with it until there is something to report. `None` if it was stopped.
    async fn attend(
        &mut self,
        job: &Job,
        [stdout, stderr]: [&mut Capture; 2],
        abort: &CancellationToken,
    ) -> Result<Option<ExitStatus>, Failure> {
        let mut child = self.start()?;
        let group = Group::led_by(&child);
        let strays = Strays::of(&job.key, self.children, child.id());
        if let (Some(children), Some(leader)) = (self.children, child.id()) {
            children.started(leader, &job.key);
        }
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
            // Processes that have left the group are signaled at the same time, and searched for again when it is
            // gone.
            let both = async {
                tokio::join!(group.end(Some(&mut child), self.grace), strays.clone().end(self.grace));
                strays.end(Duration::ZERO).await;
            };
            talk.during(both).await;
            exited.cancel();
            // Viewers may see the final output of the command, but must not delay it.
            let _ = timeout(LINGER * 2, talk.finish()).await;
            return Ok(None);
        };
        exited.cancel();
        let status =
            status.map_err(|error| Failure::new(class::ERROR, format!("the command was lost: {error}")))?;
        tokio::select! { () = talk.finish() => {}, () = abort.cancelled() => {} }
        match (status.success(), self.may_leave) {
            (true, true) => group.release(),
            (true, false) => group.end(None, self.grace).await,
            // Another attempt may follow at once.
            (false, _) => {
                tokio::join!(group.end(None, self.grace), strays.end(self.grace));
            }
        }
        Ok(Some(status))
    }
}

impl Printed {
    /// Standard output as data, or the error. Secrets are redacted afterwards, because a mask inside JSON would break
    /// it.
    pub fn data(&self) -> Result<Value, String> {
        let parsed = match self.stdout.raw() {
            Some(json) => serde_json::from_slice::<Value>(json).map_err(|error| error.to_string()),
            None => Err("it exceeds the output limit of a command".to_owned()),
        };
        let value = parsed.map_err(|problem| {
            format!("standard output is not valid JSON: {problem}; print one JSON value and nothing else")
        })?;
        Ok(self.redactor.value(&value))
    }

    /// The kept output of both streams, truncated without a mark.
    pub fn cut(&self) -> Map {
        let streams = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        let mut outputs: Map =
            streams.map(|(name, stream)| (name.into(), Value::text(stream.cut()))).into_iter().collect();
        self.add_base64(&mut outputs, usize::MAX);
        outputs
    }

    fn add_base64(&self, outputs: &mut Map, bytes_max: usize) {
        for (name, stream) in [("stdout_base64", &self.stdout), ("stderr_base64", &self.stderr)] {
            outputs.extend(stream.base64(bytes_max).map(|bytes| (name.into(), Value::text(bytes))));
        }
    }

    /// The exit code and the output, each stream up to a limit. A stream that is not UTF-8 is included byte for byte
    /// as well.
    pub fn outputs(&self, exit_code: i64, bytes_max: usize) -> Map {
        let mut outputs = Map::from_iter([
            ("exit_code".into(), Value::Int(exit_code)),
            ("stdout".into(), Value::text(self.stdout.head(bytes_max))),
            ("stderr".into(), Value::text(self.stderr.head(bytes_max))),
        ]);
        self.add_base64(&mut outputs, bytes_max);
        outputs
    }
}

impl Exited {
    /// As in a shell: 128 plus the signal for a killed command.
    pub fn exit_code(&self) -> i64 {
        let code = self.status.code().or_else(|| signal(self.status).map(|signal| 128 + signal));
        i64::from(code.unwrap_or(-1))
    }

    /// As in Python: the negated signal number for a killed command.
    pub fn return_code(&self) -> i64 {
        let code = self.status.code().or_else(|| signal(self.status).map(|signal| -signal));
        i64::from(code.unwrap_or(-1))
    }

    /// For a process that failed: how it ended, and its last message.
    pub fn failure(&self) -> Failure {
        let last_line = self.printed.stderr.last_line().map(|line| format!(": {line}")).unwrap_or_default();
        Failure::new(class::ERROR, format!("{}{last_line}", self.shown()))
    }

    pub fn shown(&self) -> String {
        match signal(self.status) {
            None => format!("exit status {}", self.exit_code()),
            Some(signal) => match signal_name(signal) {
                Some(name) => format!("killed by signal {signal} ({name})"),
                None => format!("killed by signal {signal}"),
            },
        }
    }
}

/// The failure with advice if processes, files or memory are exhausted, so that Windlass cannot do `this` now.
pub fn exhausted(this: &str, error: &std::io::Error) -> Option<Failure> {
    is_short(error).then(|| {
        let message = format!(
            "cannot {this} now: {error}: there are too many processes or open files; set `processes` under \
                `[limits]` in windlass.toml, or raise the limits of this user (`ulimit -n`, `ulimit -u`)"
        );
        Failure::new(class::TRANSIENT, message)
    })
}

/// Whether a resource is temporarily exhausted: processes, files, memory.
#[cfg(unix)]
fn is_short(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let short = [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    short.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(not(unix))]
fn is_short(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::OutOfMemory
}

/// An executable file of a type that the system does not know.
#[cfg(unix)]
fn is_unknown_format(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

#[cfg(not(unix))]
fn is_unknown_format(_error: &std::io::Error) -> bool {
    false
}

/// A future that continues while others are awaited.
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

/// Writes the input of the command.
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

/// Signals with the same number on all systems.
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn prepared() -> Prepared<'static> {
        Prepared {
            command: Command::new("/bin/agent"),
            stdin: None,
            redactor: Redactor::new([]),
            stdout_bytes_max: 0,
            stderr_bytes_max: 0,
            prints_data: false,
            may_leave: false,
            grace: GRACE,
            children: None,
            too_long: "say less",
        }
    }

    #[test]
    fn resource_exhaustion_may_be_temporary() {
        use rustix::io::Errno;
        for errno in [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            let failure = prepared().not_started(&std::io::Error::from_raw_os_error(errno.raw_os_error()));
            assert_eq!(&*failure.class, class::TRANSIENT, "{failure:?}");
            assert!(failure.message.starts_with("cannot start /bin/agent now: "), "{failure:?}");
            assert!(
                failure.message.contains("set `processes` under `[limits]` in windlass.toml"),
                "{failure:?}"
            );
        }
        let failure =
            prepared().not_started(&std::io::Error::from_raw_os_error(Errno::TOOBIG.raw_os_error()));
        assert_eq!(&*failure.class, class::NOT_RUNNABLE);
        assert!(failure.message.ends_with(": say less"), "{failure:?}");
    }
}
