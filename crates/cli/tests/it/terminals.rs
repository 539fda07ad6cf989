//! Several terminals on one data folder: which process owns it, which are clients, what each of them prints, and what remains
//! if one of them ends. Every wait is for a line that a process prints or a fifo that a step opens.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A folder with a workflow and its data folder.
struct Setup {
    scratch: Scratch,
}

/// A command that runs in its own process and prints JSON.
struct Terminal {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<Json>,
}

impl Setup {
    fn new(test: &str, workflow: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("w.yaml"), workflow).expect("a writable folder");
        Self { scratch }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Runs `windlass ARGS` to its end.
    fn windlass(&self, args: &str) -> Seen {
        windlass_in(self.scratch.path(), &words(args)).see()
    }

    fn check(&self, args: &str, status: i32, part: &str) -> Seen {
        let seen = self.windlass(args);
        assert_eq!(seen.status, status, "{seen}");
        assert!(seen.stderr.contains(part), "{part:?} is missing\n{seen}");
        seen
    }

    /// Starts `windlass ARGS --json` without waiting for it.
    fn open(&self, args: &str) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(words(args)).arg("--json").current_dir(self.scratch.path()).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is built");
        let lines = BufReader::new(child.stdout.take().expect("a piped stdout")).lines();
        Terminal { child, lines, seen: Vec::new() }
    }

    /// Starts `windlass ARGS` with text output, and waits until it has printed which run it follows.
    fn follow(&self, args: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(words(args))
            .current_dir(self.scratch.path())
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program is built");
        let mut first = [0; "run r\n".len()];
        child
            .stderr
            .as_mut()
            .expect("a piped stderr")
            .read_exact(&mut first)
            .expect("it prints which run it follows");
        assert_eq!(&first, b"run r\n");
        child
    }

    fn result(&self, run: &str) -> Json {
        self.check(&format!("show {run} --json"), 0, "").json()
    }

    fn journal(&self, run: &str) -> String {
        self.check(&format!("events {run}"), 0, "").stdout
    }

    /// Creates a fifo; opening one end waits for the other.
    fn fifo(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.file(name)).status().expect("mkfifo is installed");
        assert!(made.success());
    }

    /// Waits for a step to write into a fifo, and returns the text.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("a step writes into it")
    }

    /// Unblocks the step that reads a fifo.
    fn release(&self, name: &str) {
        let pipe = std::fs::OpenOptions::new().write(true).open(self.file(name));
        pipe.and_then(|mut pipe| pipe.write_all(b"go\n")).expect("a step reads it");
    }

    /// Checks that the process of a step has ended; it may still be a zombie.
    fn gone(&self, pid: &str) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).map_or("Z", str::trim);
        assert!(state.starts_with(['Z', 'X']), "process {pid} is still there: {state}");
    }
}

impl Terminal {
    /// Reads up to an event of this kind about this step; an empty step means the run.
    fn until(&mut self, event: &str, step: &str) -> &Json {
        loop {
            let line = self
                .lines
                .next()
                .unwrap_or_else(|| panic!("it ended before `{event} {step}`: {:?}", self.seen));
            self.seen.push(serde_json::from_str(&line.expect("UTF-8")).expect("one JSON object a line"));
            let last = &self.seen[self.seen.len() - 1];
            if last["event"] == event && last["step"].as_str().unwrap_or_default() == step {
                return &self.seen[self.seen.len() - 1];
            }
        }
    }

    /// Reads the rest, checks the exit status, and returns the last object.
    fn ends(mut self, status: i32) -> (Json, String) {
        for line in self.lines.by_ref() {
            self.seen.push(serde_json::from_str(&line.expect("UTF-8")).expect("one JSON object a line"));
        }
        let mut stderr = String::new();
        self.child.stderr.take().expect("a piped stderr").read_to_string(&mut stderr).expect("UTF-8");
        let ended = self.child.wait().expect("a child process");
        assert_eq!(ended.code(), Some(status), "{:?}\n{stderr}", self.seen.last());
        (self.seen.pop().unwrap_or_default(), stderr)
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is installed").success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The process still exists only if the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(args: &str) -> Vec<&str> {
    args.split(' ').chain(["--data", "data"]).collect()
}

const GATE: &str = "\
workflow: { id: gate, name: Gate }
stages:
  - { id: build, type: shell, run: echo built }
  - { id: sign-off, type: gate, gate: { approvers: [dana, lee], timeout: 1h }, depends_on: [build] }
  - { id: release, type: shell, run: echo released >> released, depends_on: [sign-off] }
";

/// `work` writes its process id, and waits for the fifo `go`.
const HELD: &str = "\
workflow: { id: held, name: Held }
stages:
  - { id: before, type: shell, run: echo before >> trace }
  - { id: work, type: shell, run: 'echo $$ > pid; read go < go; echo work >> trace', depends_on: [before] }
  - { id: after, type: shell, run: echo after >> trace, depends_on: [work] }
";

fn held(test: &str) -> Setup {
    let setup = Setup::new(test, HELD);
    ["pid", "go"].iter().for_each(|fifo| setup.fifo(fifo));
    setup
}

#[test]
fn an_approval_from_another_terminal_continues_the_run() {
    let setup = Setup::new("approve", GATE);
    let mut owner = setup.open("run w.yaml --run-id r --wait");
    owner.until("entered", "sign-off");
    assert_eq!(setup.result("r")["waiting_on"][0]["step"], "sign-off");
    let listed = setup.check("runs", 0, "").stdout;
    assert!(
        listed.contains("r  ")
            && listed.contains("waiting")
            && listed.contains("at `sign-off` for a decision"),
        "{listed}"
    );
    let refused = setup.check("approve r --by eve", 2, "error[not_an_approver]: eve");
    assert!(refused.stderr.contains("dana") && refused.stderr.contains("lee"), "{refused}");
    assert!(!setup.file("released").exists());
    setup.check("approve r --by lee", 0, "approved: r");
    let (result, _) = owner.ends(0);
    assert_eq!(
        (&result["status"], &result["steps"]["sign-off"]["output"]["by"]),
        (&"success".into(), &"lee".into())
    );
    let journal = setup.journal("r");
    setup.check("approve r sign-off --by dana", 2, "error[");
    setup.check("reject r sign-off --by dana", 2, "error[");
    assert_eq!(setup.journal("r"), journal);
}

#[test]
fn a_second_decision_is_refused_and_names_the_first_approver() {
    let workflow = GATE.replace("echo released >> released", "'read go < go'");
    let setup = Setup::new("second", &workflow);
    setup.fifo("go");
    let mut owner = setup.open("run w.yaml --run-id r --wait");
    owner.until("entered", "sign-off");
    setup.check("approve r sign-off --by dana", 0, "approved: r");
    setup.check("reject r sign-off --by lee", 2, "error[already_decided]");
    setup.check("reject r sign-off --by lee", 2, "dana");
    setup.release("go");
    owner.ends(0);
}

#[test]
fn a_decision_without_an_owner_is_recorded_until_resume() {
    let setup = Setup::new("recorded", GATE);
    setup.check("run w.yaml --run-id r", 3, "windlass approve r sign-off");
    setup.check("approve r --by eve", 2, "dana");
    setup.check("approve r --by dana", 0, "continue it with `windlass resume r --data data`");
    assert!(!setup.file("released").exists());
    setup.check("resume r", 0, "");
    assert_eq!(setup.result("r")["status"], "success");
    assert!(setup.file("released").exists());
}

const PAID: &str = "\
workflow: { id: paid, name: Paid }
stages:
  - { id: pay, type: wait, wait: { signal: paid, match: { order: 7 } } }
  - { id: ship, type: shell, run: echo shipped >> shipped, depends_on: [pay] }
";

#[test]
fn a_signal_from_another_terminal_continues_the_run() {
    let setup = Setup::new("signal", PAID);
    let mut owner = setup.open("run w.yaml --run-id r --wait");
    owner.until("entered", "pay");
    let wait = setup.result("r")["waiting_on"][0].clone();
    assert_eq!((&wait["kind"], &wait["message"]), (&"signal".into(), &"paid".into()));
    setup.check("signal r paid {\"order\":8}", 0, "sent: r");
    assert!(!setup.file("shipped").exists(), "the signal was for another order");
    setup.check("signal r paid {\"order\":7,\"by\":\"card\"}", 0, "sent: r");
    let (result, _) = owner.ends(0);
    assert_eq!(result["steps"]["pay"]["output"]["value"]["by"], "card");
    setup.check("signal r paid", 2, "error[run_finished]");
}

#[test]
fn a_signal_without_an_owner_is_recorded_until_resume() {
    let setup = Setup::new("letter", PAID);
    setup.check("run w.yaml --run-id r", 3, "windlass signal r paid");
    setup.check("signal r paid nonsense", 2, "is not JSON");
    setup.check("signal r paid {\"order\":7}", 0, "continue it with `windlass resume r --data data`");
    assert!(!setup.file("shipped").exists());
    setup.check("resume r", 0, "");
    assert!(setup.file("shipped").exists());
}

/// A Spec Kit workflow whose gate reads an input.
const SPEC: &str = "\
schema_version: \"1.0\"
workflow: { id: spec, name: Spec, version: \"1.0.0\" }
inputs: { verdict: { type: string, default: \"\" } }
steps:
  - { id: draft, type: shell, run: echo d >> trace }
  - { id: review, type: gate, message: fine?, options: [approve, later, reject], on_reject: skip, verdict_input: verdict }
  - { id: done, type: shell, run: \"echo {{ steps.review.output.choice }} >> trace\" }
";

#[test]
fn a_gate_of_spec_kit_takes_an_option_or_an_input() {
    let setup = Setup::new("speckit", SPEC);
    let trace = || std::fs::read_to_string(setup.file("trace")).expect("a step ran");
    setup.check("run w.yaml --run-id a", 3, "waiting at `review` for a decision");
    let result = setup.result("a");
    assert_eq!((&result["dialect_status"], &result["current_step"]), (&"paused".into(), &"review".into()));
    assert_eq!(result["waiting_on"][0]["options"], serde_json::json!(["approve", "later", "reject"]));
    assert!(setup.check("runs", 0, "").stdout.contains("waiting"));
    setup.check("approve a --choice never", 2, "error[no_such_option]");
    setup.check("approve a review --choice LATER", 0, "LATER: run a");
    setup.check("resume a", 0, "run a succeeded");
    assert_eq!(trace(), "d\nlater\n");
    setup.check("run w.yaml --run-id b", 3, "");
    setup.check("resume b -p verdict=approve", 0, "run b succeeded");
    assert_eq!(trace(), "d\nlater\nd\napprove\n");
    assert_eq!(setup.result("b")["inputs"]["verdict"], "approve");
    assert!(setup.check("runs", 0, "").stdout.contains("success"));
}

#[test]
fn cancel_ends_the_running_step_and_the_run() {
    let setup = held("cancel");
    let owner = setup.open("run w.yaml --run-id r");
    let pid = setup.read("pid");
    setup.check("cancel r --by dana", 0, "canceled: run r");
    let (result, _) = owner.ends(4);
    setup.gone(&pid);
    assert_eq!(
        (&result["status"], &result["steps"]["work"]["status"]),
        (&"cancelled".into(), &"cancelled".into())
    );
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("one step ran"), "before\n");
    setup.check("cancel r --by dana", 2, "error[run_finished]");
}

#[test]
fn a_paused_run_finishes_its_step_and_continues_on_resume() {
    let setup = held("pause");
    let owner = setup.open("run w.yaml --run-id r");
    setup.read("pid");
    setup.check("pause r --by dana", 0, "paused: r");
    setup.release("go");
    let (result, _) = owner.ends(3);
    let steps = &result["steps"];
    assert_eq!((&steps["work"]["status"], &steps["after"]["status"]), (&"success".into(), &"pending".into()));
    setup.check("resume r", 0, "");
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn resume_from_another_terminal_continues_a_paused_run() {
    let setup = held("unpause");
    let mut owner = setup.open("run w.yaml --run-id r --wait");
    setup.read("pid");
    setup.check("pause r --by dana", 0, "paused: r");
    setup.release("go");
    owner.until("settled", "work");
    setup.check("resume r --by dana", 0, "");
    owner.ends(0);
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn resume_follows_a_run_that_has_an_owner() {
    let setup = held("follow");
    let owner = setup.open("run w.yaml --run-id r");
    let pid = setup.read("pid");
    let client = setup.follow("resume r");
    assert!(std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "the running step was ended");
    setup.release("go");
    owner.ends(0);
    let seen = client.wait_with_output().expect("a child process");
    assert_eq!(seen.status.code(), Some(0), "{}", String::from_utf8_lossy(&seen.stderr));
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn the_owner_executes_a_second_run_and_stays_for_it() {
    let workflow = "\
workflow: { id: two, name: Two }
config: { parameters: { name: { type: string, required: true } } }
stages:
  - { id: work, type: shell, run: 'echo $PPID > pid-${{ parameters.name }}; read go < go-${{ parameters.name }}' }
";
    let setup = Setup::new("two", workflow);
    ["pid-a", "pid-b", "go-a", "go-b"].iter().for_each(|fifo| setup.fifo(fifo));
    let first = setup.open("run w.yaml --run-id a -p name=a");
    let owner = setup.read("pid-a");
    let second = setup.open("run w.yaml --run-id b -p name=b");
    assert_eq!(setup.read("pid-b"), owner, "one process executes both runs");
    assert_eq!(owner.trim(), first.child.id().to_string());
    setup.release("go-a");
    // The owner has printed the end of its own run, and must still execute the other one.
    let mut first = first;
    first.until("closed", "");
    assert_eq!(first.child.try_wait().expect("a child process"), None);
    assert_eq!(setup.result("b")["status"], "running");
    setup.release("go-b");
    let (result, _) = second.ends(0);
    assert_eq!((&result["run_id"], &result["status"]), (&"b".into(), &"success".into()));
    let (result, _) = first.ends(0);
    assert_eq!((&result["run_id"], &result["status"]), (&"a".into(), &"success".into()));
}

#[test]
fn many_runs_at_once_in_a_fresh_folder_all_succeed() {
    let setup = Setup::new(
        "many",
        "workflow: { id: many, name: Many }\nstages: [{ id: a, type: shell, run: echo a }]\n",
    );
    let terminals: Vec<Terminal> =
        (0..6).map(|number| setup.open(&format!("run w.yaml --run-id r{number}"))).collect();
    for terminal in terminals {
        terminal.ends(0);
    }
    assert_eq!(setup.check("runs --json", 0, "").json()["items"].as_array().map(Vec::len), Some(6));
}

#[test]
fn a_client_of_a_killed_owner_shows_how_to_resume() {
    let setup = held("gone");
    setup.fifo("go-a");
    let other =
        "workflow: { id: other, name: Other }\nstages: [{ id: a, type: shell, run: 'read go < go-a' }]\n";
    std::fs::write(setup.file("other.yaml"), other).expect("a writable folder");
    let mut owner = setup.open("run other.yaml --run-id o");
    owner.until("scheduled", "a");
    let client = setup.open("run w.yaml --run-id r");
    let pid = setup.read("pid");
    owner.child.kill().expect("a child process");
    let (_, stderr) = client.ends(5);
    assert!(stderr.contains("windlass resume r"), "{stderr}");
    let resumed = setup.open("resume r");
    setup.read("pid");
    setup.gone(&pid);
    setup.release("go");
    resumed.ends(0);
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
    setup.check("cancel o --by dana", 0, "");
    setup.check("resume o", 4, "");
}

#[test]
fn an_id_is_used_once() {
    let setup = Setup::new("exists", GATE);
    setup.check("run w.yaml --run-id r", 3, "");
    let journal = setup.journal("r");
    setup.check("run w.yaml --run-id r", 2, "error[run_exists]");
    let refused = setup.open("run w.yaml --run-id r").ends(2).0;
    assert_eq!((&refused["type"], &refused["error"]["code"]), (&"refused".into(), &"run_exists".into()));
    assert_eq!(setup.journal("r"), journal);
}

#[test]
fn a_finished_run_does_not_change() {
    let setup = Setup::new(
        "finished",
        "workflow: { id: f, name: F }\nstages: [{ id: a, type: shell, run: echo a >> trace }]\n",
    );
    setup.check("run w.yaml --run-id r", 0, "");
    let journal = setup.journal("r");
    setup.check("resume r", 2, "error[run_finished]");
    setup.check("pause r --by dana", 2, "error[run_finished]");
    assert_eq!(setup.journal("r"), journal);
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("the step ran"), "a\n");
}

#[test]
fn a_failed_run_continues_with_a_changed_parameter() {
    let workflow = "\
workflow: { id: fails, name: Fails }
config: { parameters: { good: { type: boolean, default: false } } }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: shell, run: echo a >> trace }
  - { id: b, type: shell, run: 'test ${{ parameters.good }} = true && echo b >> trace', depends_on: [a] }
  - { id: c, type: shell, run: echo c >> trace, depends_on: [b] }
";
    let setup = Setup::new("changed", workflow);
    setup.check("run w.yaml --run-id r", 1, "windlass resume r");
    assert_eq!(setup.result("r")["steps"]["b"]["status"], "failed");
    setup.check("resume r -p good=perhaps", 2, "good");
    setup.check("resume r", 1, "");
    setup.check("resume r -p good=true", 0, "");
    assert_eq!(setup.result("r")["status"], "success");
    assert_eq!(std::fs::read_to_string(setup.file("trace")).expect("all steps ran"), "a\nb\nc\n");
}

#[test]
fn an_interrupted_or_terminated_run_can_be_resumed() {
    for signal in ["INT", "TERM"] {
        let setup = held(&format!("signal-{signal}"));
        let owner = setup.open("run w.yaml --run-id r");
        let pid = setup.read("pid");
        owner.signal(signal);
        let (_, stderr) = owner.ends(5);
        assert!(stderr.contains("windlass resume r"), "{stderr}");
        setup.gone(&pid);
        let resumed = setup.open("resume r");
        setup.read("pid");
        setup.release("go");
        resumed.ends(0);
        assert_eq!(
            std::fs::read_to_string(setup.file("trace")).expect("all steps ran"),
            "before\nwork\nafter\n"
        );
    }
}
