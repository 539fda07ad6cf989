//! How `windlass serve` handles unfinished runs after a `kill -9`, depending on `[runs] recover`.

use crate::scratch::Scratch;
use crate::support::windlass_in;
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use windlass_tools::watch;

/// A step that prints its process id and waits for the file `go`, and a step after it.
const WORKFLOW: &str = r#"
workflow: {id: w, name: W}
stages:
  - {id: a, type: shell, run: "echo a >> trace; test -e go && exit 0; echo $$ > started; exec sleep 1000"}
  - {id: b, type: shell, run: "echo b >> trace", depends_on: [a]}
"#;

struct Server(Child);

impl Server {
    fn start(folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(["serve", "--data", "data"])
            .current_dir(folder)
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("the program is built"))
    }

    fn kill(mut self) {
        self.0.kill().expect("a child process");
        self.0.wait().expect("a child process");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Kills a server during step `a` and starts another one. Returns it with the process id of the step.
fn killed_and_started_again(folder: &Path, config: &str) -> (Server, String) {
    let pid = killed(folder, config);
    (Server::start(folder), pid)
}

/// Kills a server during step `a`. Returns the process id of the step.
fn killed(folder: &Path, config: &str) -> String {
    std::fs::write(folder.join("windlass.toml"), config).expect("written");
    std::fs::write(folder.join("w.yaml"), WORKFLOW).expect("written");
    let fifo = folder.join("started");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let server = Server::start(folder);
    until(folder, || folder.join("data/owner.sock").exists());
    let started = windlass_in(folder, &["run", "w.yaml", "--detach", "--run-id", "r", "--data", "data"])
        .env("PATH", "/usr/bin:/bin")
        .see();
    assert_eq!(started.status, 0, "{started}");
    let pid = std::fs::read_to_string(&fifo).expect("the step writes its process id").trim().to_owned();
    server.kill();
    std::fs::write(folder.join("go"), "").expect("written");
    pid
}

fn until(folder: &Path, done: impl Fn() -> bool) {
    let seen = watch::until(&[folder, &folder.join("data")], || done().then_some(()));
    seen.expect("it happens before the timeout");
}

fn status(folder: &Path) -> String {
    let shown = windlass_in(folder, &["show", "r", "--json", "--data", "data"]).see();
    let shown: Json = serde_json::from_str(&shown.stdout).expect("JSON");
    shown["status"].as_str().expect("a status").to_owned()
}

/// Whether the new server has marked the run. Its status is `interrupted` as soon as no process executes it.
fn is_marked(folder: &Path) -> bool {
    let events = windlass_in(folder, &["events", "r", "--data", "data"]).see();
    events.stdout.lines().any(|line| line.ends_with("interrupted"))
}

fn trace(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("trace")).expect("a trace")
}

#[test]
fn unfinished_runs_are_resumed() {
    let scratch = Scratch::new("recover-resume");
    let (_server, _) = killed_and_started_again(scratch.path(), "");
    until(scratch.path(), || status(scratch.path()) == "success");
    assert_eq!(trace(scratch.path()), "a\na\nb\n");
}

#[test]
fn unfinished_runs_are_marked_as_interrupted_and_wait_for_a_resume() {
    let scratch = Scratch::new("recover-interrupt");
    let (_server, pid) = killed_and_started_again(scratch.path(), "[runs]\nrecover = 'interrupt'\n");
    until(scratch.path(), || is_marked(scratch.path()));
    assert_eq!(status(scratch.path()), "interrupted");
    // A zombie process has no command line.
    let command = std::fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
    assert!(command.is_empty(), "the new server ends leftover processes");
    assert_eq!(trace(scratch.path()), "a\n");
    let listed = windlass_in(scratch.path(), &["runs", "--status", "interrupted", "--data", "data"]).see();
    assert!(listed.stdout.contains("w"), "{listed}");
    let resumed =
        windlass_in(scratch.path(), &["resume", "r", "--data", "data"]).env("PATH", "/usr/bin:/bin").see();
    assert_eq!((resumed.status, status(scratch.path())), (0, "success".to_owned()), "{resumed}");
    assert_eq!(trace(scratch.path()), "a\na\nb\n");
}

#[test]
fn an_interrupted_run_can_be_cancelled() {
    let scratch = Scratch::new("recover-cancel");
    let (_server, _) = killed_and_started_again(scratch.path(), "[runs]\nrecover = 'interrupt'\n");
    until(scratch.path(), || is_marked(scratch.path()));
    assert_eq!(status(scratch.path()), "interrupted");
    let cancelled = windlass_in(scratch.path(), &["cancel", "r", "--data", "data"]).see();
    assert_eq!(cancelled.status, 0, "{cancelled}");
    until(scratch.path(), || status(scratch.path()) == "cancelled");
    assert_eq!(trace(scratch.path()), "a\n");
}

#[test]
fn a_run_canceled_without_an_owner_ends_instead_of_being_interrupted() {
    let scratch = Scratch::new("recover-canceled");
    killed(scratch.path(), "[runs]\nrecover = 'interrupt'\n");
    let canceled = windlass_in(scratch.path(), &["cancel", "r", "--data", "data"]).see();
    assert_eq!(canceled.status, 0, "{canceled}");
    assert_eq!(status(scratch.path()), "interrupted");
    let _server = Server::start(scratch.path());
    until(scratch.path(), || status(scratch.path()) == "cancelled");
    assert!(!is_marked(scratch.path()));
    assert_eq!(trace(scratch.path()), "a\n");
}
