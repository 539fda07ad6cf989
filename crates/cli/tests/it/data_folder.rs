//! The data folder: how Windlass finds it, who can open it, and how owners and clients handle failures.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use windlass_runtime::current_user;
use windlass_tools::watch;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

const HELLO: &str = "workflow: { id: s, name: S }\nstages: [{ id: a, type: shell, run: \"echo hi\" }]\n";

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a writable folder");
    std::fs::write(file, text).expect("a writable folder");
}

fn windlass(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, args).env("PATH", PATH).see()
}

fn set_mode(file: &Path, mode: u32) {
    std::fs::set_permissions(file, Permissions::from_mode(mode)).expect("a writable file");
}

#[test]
fn a_data_folder_above_the_project_is_not_used() {
    let scratch = Scratch::new("search");
    let shared = scratch.path();
    set_mode(shared, 0o1777);
    std::fs::create_dir(shared.join(".windlass")).expect("a writable folder");
    for project in ["repository/.git", "plain"] {
        std::fs::create_dir_all(shared.join(project)).expect("a writable folder");
        let project = shared.join(project.trim_end_matches("/.git"));
        write(&project, "flows/s.yaml", HELLO);
        let seen = windlass(&project, &["run", "flows/s.yaml"]);
        assert_eq!(seen.status, 0, "{seen}");
        assert!(project.join(".windlass/journal.db").exists(), "{seen}");
    }
    assert!(!shared.join(".windlass/journal.db").exists());
}

/// Every file and folder below that other users could open.
fn open_to_others(folder: &Path) -> Vec<String> {
    let about = folder.symlink_metadata().expect("it exists");
    let mode = about.permissions().mode() & 0o777;
    let wide = (mode & 0o077 != 0).then(|| format!("{} {mode:o}", folder.display()));
    let below =
        if about.is_dir() { Some(std::fs::read_dir(folder).expect("a writable folder")) } else { None };
    let below = below.into_iter().flatten().flatten();
    below.flat_map(|entry| open_to_others(&entry.path())).chain(wide).collect()
}

/// A step that writes a log and a large value, and lists the data folder while its owner runs.
const LARGE: &str = r#"
workflow: { id: s, name: S }
stages: [{ id: a, type: shell, run: "umask; find data ! -type l -perm /077; head -c 100000 /dev/zero | tr '\\0' x" }]
"#;

#[test]
fn no_other_user_can_open_the_data_folder_whatever_the_umask() {
    let scratch = Scratch::new("modes");
    let folder = scratch.path();
    write(folder, "s.yaml", LARGE);
    let windlass = |args: &str| {
        let mut command = Command::new("sh");
        let call = format!("umask 0; exec '{}' {args}", env!("CARGO_BIN_EXE_windlass"));
        command.args(["-c", &call]).current_dir(folder).env_clear().env("PATH", PATH);
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{args}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let check = || {
        for name in ["data", "copy", "out"] {
            assert_eq!(open_to_others(&folder.join(name)), [""; 0]);
        }
    };
    windlass("run s.yaml --data data --run-id r1");
    assert!(folder.join("data/blobs").is_dir() && folder.join("data/logs").is_dir());
    windlass("backup copy --data data");
    windlass("runs export r1 out --data data");
    check();
    // Steps keep the umask of their caller, and find nothing that other users could open.
    let printed = windlass("logs r1 --data data");
    assert!(printed.contains("0000"), "{printed:.200}");
    assert!(!printed.contains("data/"), "{printed:.2000}");
    // Windlass restricts the permissions of an older folder.
    for name in ["", "journal.db", "blobs", "logs", "logs/r1.jsonl"] {
        set_mode(&folder.join("data").join(name), 0o777);
    }
    windlass("run s.yaml --data data");
    check();
    // Windlass does not change a folder with other contents.
    write(folder, "other/notes.txt", "mine");
    set_mode(&folder.join("other"), 0o755);
    let seen = windlass_in(folder, &["run", "s.yaml", "--data", "other"]).env("PATH", PATH).see();
    assert!(seen.status == 2 && seen.stderr.contains("chmod 700"), "{seen}");
    assert_eq!(std::fs::read_dir(folder.join("other")).expect("a folder").count(), 1);
}

const TASK: &str = "workflow: { id: s, name: S }\nstages: [{ id: a, type: task, task: t }]\n";

#[test]
fn commands_of_a_configuration_above_the_project_are_not_run() {
    let scratch = Scratch::new("config-above");
    let shared = scratch.path();
    set_mode(shared, 0o1777);
    write(shared, "windlass.toml", "[tasks.t]\ncommand = [\"touch\", \"ran\"]\n");
    for project in ["repository/.git", "plain"] {
        std::fs::create_dir_all(shared.join(project)).expect("a writable folder");
        let project = shared.join(project.trim_end_matches("/.git"));
        write(&project, "s.yaml", TASK);
        let seen = windlass(&project, &["run", "s.yaml", "--data", "data"]);
        assert!(seen.status == 2 && seen.stderr.contains("error[not_runnable]"), "{seen}");
    }
    assert!(!shared.join("ran").exists());
    if current_user() == 0 {
        // Only root can give a file to another user.
        let project = shared.join("plain");
        write(&project, "windlass.toml", "[tasks.t]\ncommand = [\"true\"]\n");
        std::os::unix::fs::chown(project.join("windlass.toml"), Some(65534), None).expect("root can");
        let seen = windlass(&project, &["run", "s.yaml", "--data", "data"]);
        assert!(seen.status == 2 && seen.stderr.contains("uid 65534"), "{seen}");
    }
}

/// A process that is killed at the end of a test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program in a folder and reads its standard error.
fn start(folder: &Path, program: &str, args: &[&str]) -> (Running, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env_clear().env("PATH", PATH);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("an installed program");
    let stderr = BufReader::new(child.stderr.take().expect("a piped stream"));
    (Running(child), stderr.lines().map_while(Result::ok))
}

/// Starts the owner of a folder and waits until it listens.
fn serving(folder: &Path, before: &str) -> (Running, impl Iterator<Item = String> + use<>) {
    let call =
        format!("{before} exec '{}' serve --data data --listen 127.0.0.1:0", env!("CARGO_BIN_EXE_windlass"));
    let started = start(folder, "sh", &["-c", &call]);
    let listens = || folder.join("data/owner.sock").exists().then_some(());
    watch::until(&[folder, &folder.join("data")], listens).expect("the owner listens");
    started
}

#[test]
fn an_owner_that_runs_out_of_files_listens_again() {
    let scratch = Scratch::new("accept");
    let folder = scratch.path();
    let (_owner, mut stderr) = serving(folder, "ulimit -n 64;");
    assert_eq!(stderr.next().as_deref(), Some("serving data: no triggers loaded"));
    assert!(stderr.next().is_some_and(|line| line.starts_with("listening on http://127.0.0.1:")));
    let clients: Vec<_> =
        (0..80).map(|_| UnixStream::connect(folder.join("data/owner.sock")).expect("it listens")).collect();
    let first = stderr.next().expect("the owner prints the reason");
    assert!(first.starts_with("other commands cannot connect: Too many open files"), "{first}");
    drop(clients);
    assert_eq!(stderr.next().as_deref(), Some("other commands can connect again"));
    let seen = windlass(folder, &["publish", "x", "1", "--data", "data"]);
    assert_eq!(seen.status, 0, "{seen}");
}

#[test]
fn a_client_reports_a_silent_owner_and_ends_on_a_signal() {
    let scratch = Scratch::new("silent");
    let folder = scratch.path();
    write(folder, "s.yaml", HELLO);
    let (owner, _stderr) = serving(folder, "");
    // Once it has answered, it certainly listens.
    assert_eq!(windlass(folder, &["publish", "x", "--data", "data"]).status, 0);
    signal(&owner, Signal::STOP);
    let (mut client, mut stderr) =
        start(folder, env!("CARGO_BIN_EXE_windlass"), &["run", "s.yaml", "--data", "data"]);
    let expected = format!("the owner of data (pid {}) has not answered for 3 seconds", owner.0.id());
    let first = stderr.next().expect("the client prints what it waits for");
    assert!(first.starts_with(&expected), "{first}");
    signal(&client, Signal::TERM);
    assert_eq!(client.0.wait().expect("it ends").code(), Some(5));
}

fn signal(process: &Running, signal: Signal) {
    let pid = Pid::from_child(&process.0);
    kill_process(pid, signal).expect("a child process");
}

#[test]
fn a_lock_that_is_a_pipe_is_refused() {
    let scratch = Scratch::new("pipe");
    let folder = scratch.path();
    write(folder, "s.yaml", HELLO);
    let made = Command::new("mkfifo").arg(folder.join("owner.lock")).status();
    assert!(made.expect("mkfifo").success());
    let seen = windlass(folder, &["run", "s.yaml", "--data", "."]);
    assert!(seen.status == 2 && seen.stderr.contains("owner.lock: it is not a regular file"), "{seen}");
}
