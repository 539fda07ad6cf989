//! The result of a command: data for standard output, messages for standard error, and the exit status.

use crate::show::{Screen, Screens, diagnostics};
use std::io::{ErrorKind, Write};
pub use windlass_api::Exit;
use windlass_api::types::Sign;
use windlass_api::{Code, Refusal, Remark};
use windlass_ir::Sources;

/// Why a command did nothing, with the texts that its findings refer to.
#[derive(Debug)]
pub struct Refused {
    pub refusal: Box<Refusal>,
    pub sources: Sources,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal: Box::new(refusal), sources: Sources::default() }
    }
}

impl From<windlass_runtime::Error> for Refused {
    fn from(error: windlass_runtime::Error) -> Self {
        Refusal::from(error).into()
    }
}

#[derive(Debug)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub status: Exit,
}

impl Answer {
    pub fn new(status: Exit) -> Self {
        Self { stdout: String::new(), stderr: String::new(), status }
    }

    /// JSON, indented for readability.
    pub fn json(status: Exit, data: &impl serde::Serialize) -> Self {
        match serde_json::to_string_pretty(data) {
            Ok(text) => Self { stdout: text + "\n", ..Self::new(status) },
            Err(error) => Self::bug(&error),
        }
    }

    /// A refusal: a message and help for people, or one JSON object.
    pub fn refused(Refused { refusal, sources }: &Refused, json: bool, screen: &Screen) -> Self {
        let stdout = match json {
            true => format!("{}\n", serde_json::json!({"type": "refused", "error": refusal})),
            false => String::new(),
        };
        Self { stdout, stderr: diagnostics::refusal(refusal, sources, screen), status: refusal.code.exit() }
    }

    /// A usage error as JSON.
    pub fn usage(usage: &clap::Error) -> Self {
        let text = usage.render().to_string();
        // The message ends at the first empty line; the last line only names `--help`.
        let (message, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        let message: Vec<&str> = message.trim_start_matches("error: ").lines().map(str::trim).collect();
        let rest = rest.lines().map(str::trim).filter(|line| !line.is_empty());
        let rest: Vec<&str> = rest.filter(|line| !line.starts_with("For more information")).collect();
        let help = if rest.is_empty() { "add `--help` to see the usage".to_owned() } else { rest.join("; ") };
        let refusal = Refusal::new(Code::BadRequest, message.join(" ")).help(help);
        Self::refused(&refusal.into(), true, &Screen::default())
    }

    pub fn bug(error: &dyn std::error::Error) -> Self {
        let stderr =
            format!("windlass has a bug: {error}\nplease report it together with the command and the file\n");
        Self { stderr, ..Self::new(Exit::Bug) }
    }

    /// Writes the data first, so that warnings appear below it. A closed pipe is not an error.
    pub fn print(&self) -> Exit {
        match write(&mut anstream::stdout().lock(), &self.stdout) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) => {
                warn(&format!("cannot write the output: {error}\n"));
                return Exit::Refused;
            }
        }
        warn(&self.stderr);
        self.status
    }
}

/// Prints a line of data while a command runs. False if the reader closed the pipe.
pub fn line(text: &str) -> bool {
    write(&mut anstream::stdout().lock(), &format!("{text}\n")).is_ok()
}

/// Prints data line by line, for long or slow output. It buffers little, and nothing after a flush.
#[derive(Debug)]
pub struct Page(std::io::BufWriter<anstream::AutoStream<std::io::StdoutLock<'static>>>);

impl Page {
    pub fn new() -> Self {
        Self(std::io::BufWriter::with_capacity(64 << 10, anstream::stdout().lock()))
    }

    /// False if the reader closed the pipe.
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

/// Prints a message to the user while a command runs.
pub fn remark(text: &str) {
    warn(&format!("{text}\n"));
}

/// Prints a message as an object of the stream on standard output.
pub fn notice(code: &str, message: &str) {
    let (code, message) = (code.to_owned(), message.to_owned());
    line(&serde_json::to_string(&Sign::Notice { code, message }).unwrap_or_default());
}

/// How a command that prints a stream of objects, or one that does not, talks to its user meanwhile.
pub fn voice(is_stream: bool) -> Remark {
    match is_stream {
        true => |text| notice(NOTICE, text),
        false => remark,
    }
}

/// The code of a notice that has no other.
const NOTICE: &str = "notice";

/// Prints a prompt.
pub fn prompt(text: &str) {
    warn(text);
}

fn write(stream: &mut impl Write, text: &str) -> std::io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

fn warn(text: &str) {
    // There is no other place to report a failure to write to standard error.
    let _ = write(&mut anstream::stderr().lock(), text);
}

impl Screens {
    /// The abilities of both output streams.
    pub fn detect() -> Self {
        let color = |choice| choice != anstream::ColorChoice::Never;
        Self::with_colors(
            color(anstream::AutoStream::choice(&std::io::stdout())),
            color(anstream::AutoStream::choice(&std::io::stderr())),
        )
    }
}
