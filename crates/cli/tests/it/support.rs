//! Runs the program the way a user would and records the command, both streams and the exit status.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A call of the program in a folder, with an empty environment.
#[derive(Debug)]
pub struct Call {
    command: Command,
    shown: String,
    stdin: Vec<u8>,
}

#[derive(Debug)]
pub struct Seen {
    pub command: String,
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// `windlass ARGS` in the top folder of the repository.
pub fn windlass(args: &[&str]) -> Call {
    windlass_in(&root(), args)
}

pub fn windlass_in(folder: &Path, args: &[&str]) -> Call {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    // Servers of tests that run at once must not meet at the default address.
    command.args(args).current_dir(folder).env_clear().env("WINDLASS_LISTEN", "127.0.0.1:0");
    let words = args
        .iter()
        .map(|arg| if arg.contains([' ', '\'', '$']) { format!("{arg:?}") } else { (*arg).to_owned() });
    let shown = std::iter::once("windlass".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    Call { command, shown, stdin: Vec::new() }
}

impl Call {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    pub fn see(self) -> Seen {
        self.see_with_stdout(Stdio::piped())
    }

    pub fn see_with_stdout(mut self, stdout: Stdio) -> Seen {
        self.command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program is built");
        // A program that does not read its input may have ended already.
        let _ = child.stdin.take().expect("a piped stdin").write_all(&self.stdin);
        let output = child.wait_with_output().expect("the program ends");
        let text = |bytes| String::from_utf8(bytes).expect("the program prints UTF-8");
        let status = output.status.code().expect("the program was not killed");
        Seen { command: self.shown, status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Like `windlass … | head -0`: the reader closes the pipe at once. The program waits for its input until the reader is
    /// gone.
    pub fn see_without_reader(mut self) -> Seen {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().expect("the program is built");
        drop(child.stdout.take());
        child
            .stdin
            .take()
            .expect("a piped stdin")
            .write_all(&self.stdin)
            .expect("the program reads its input");
        let output = child.wait_with_output().expect("the program ends");
        let stderr = String::from_utf8(output.stderr).expect("the program prints UTF-8");
        let status = output.status.code().expect("the program was not killed");
        Seen { command: self.shown, status, stdout: String::new(), stderr }
    }
}

impl Seen {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.command)?;
        f.write_str(&self.stdout)?;
        if !self.stderr.is_empty() {
            writeln!(f, "--- stderr")?;
            f.write_str(&self.stderr)?;
        }
        writeln!(f, "--- exit status {}", self.status)
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An empty folder for one test, with these files in it.
pub fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("a writable folder");
    }
    std::fs::create_dir_all(&folder).expect("a writable folder");
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a writable folder");
        std::fs::write(file, text).expect("a writable folder");
    }
    folder
}
