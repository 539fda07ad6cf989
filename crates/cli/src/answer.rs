//! What a command answers: data for standard output, the rest for standard error, and the exit status.

use crate::show::Screens;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use windlass_ir::RunStatus;

/// The exit status, the same list for all commands, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Done, and what was asked about is in order.
    Done,
    /// An invalid file under `validate`, an expression that failed under `eval`, a run that failed.
    Failed,
    /// Nothing was done: bad usage, file, parameter or run name.
    Refused,
    /// The run waits for a person, or is paused.
    Waiting,
    Cancelled,
    /// Stopped from outside; the run can be taken up again.
    Stopped,
    /// A mistake of ours.
    Bug,
}

impl From<RunStatus> for Status {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Success => Self::Done,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Pending | RunStatus::Waiting | RunStatus::Paused => Self::Waiting,
            RunStatus::Running | RunStatus::Interrupted => Self::Stopped,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        match status {
            Status::Done => 0,
            Status::Failed => 1,
            Status::Refused => 2,
            Status::Waiting => 3,
            Status::Cancelled => 4,
            Status::Stopped => 5,
            Status::Bug => 70,
        }
        .into()
    }
}

#[derive(Debug)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub status: Status,
}

impl Answer {
    pub fn new(status: Status) -> Self {
        Self { stdout: String::new(), stderr: String::new(), status }
    }

    /// Data for programs, indented so that people can read it too.
    pub fn json(status: Status, data: &serde_json::Value) -> Self {
        match serde_json::to_string_pretty(data) {
            Ok(text) => Self { stdout: text + "\n", ..Self::new(status) },
            Err(error) => Self::bug(&error),
        }
    }

    pub fn bug(error: &dyn std::error::Error) -> Self {
        let stderr =
            format!("windlass has a bug: {error}\nplease report it together with the command and the file\n");
        Self { stderr, ..Self::new(Status::Bug) }
    }

    /// Data first, so that warnings stand below what they are about. A reader that closed the pipe has seen enough,
    /// which is no failure.
    pub fn print(&self) -> Status {
        match write(&mut anstream::stdout().lock(), &self.stdout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => {
                warn(&format!("cannot write the output: {error}\n"));
                return Status::Refused;
            }
        }
        warn(&self.stderr);
        self.status
    }
}

/// A line of data while a command is at work. False when nobody reads it any more.
pub fn line(text: &str) -> bool {
    write(&mut anstream::stdout().lock(), &format!("{text}\n")).is_ok()
}

/// Data line by line, for what may be long or takes its time: little is held back, and nothing once it is flushed.
#[derive(Debug)]
pub struct Page(std::io::BufWriter<anstream::AutoStream<std::io::StdoutLock<'static>>>);

impl Page {
    pub fn new() -> Self {
        Self(std::io::BufWriter::with_capacity(64 << 10, anstream::stdout().lock()))
    }

    /// False when nobody reads it any more.
    #[must_use]
    pub fn line(&mut self, text: &str) -> bool {
        self.0.write_all(text.as_bytes()).and_then(|()| self.0.write_all(b"\n")).is_ok()
    }

    /// The same.
    #[must_use]
    pub fn flush(&mut self) -> bool {
        self.0.flush().is_ok()
    }
}

/// A line for people while a command is at work.
pub fn remark(text: &str) {
    warn(&format!("{text}\n"));
}

/// What stands before an answer that is waited for.
pub fn prompt(text: &str) {
    warn(text);
}

fn write(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

fn warn(text: &str) {
    // When standard error cannot be written to, there is nowhere left to say so.
    let _ = write(&mut anstream::stderr().lock(), text);
}

impl Screens {
    /// How the two streams that an answer goes to can show it.
    pub fn detect() -> Self {
        let colour = |choice| choice != anstream::ColorChoice::Never;
        Self::with_colours(
            colour(anstream::AutoStream::choice(&std::io::stdout())),
            colour(anstream::AutoStream::choice(&std::io::stderr())),
        )
    }
}
