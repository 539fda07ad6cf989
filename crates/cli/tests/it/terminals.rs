//! Several terminals and one data folder: who owns it, who is a client, what each of them is told, and what is left when
//! one of them goes away. Every wait here is for a line that a process prints or a fifo that a step opens.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A data folder and the terminals around it.
struct Desk {
    scratch: Scratch,
}

/// A command under way in a terminal of its own, which prints JSON.
struct Terminal {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    seen: Vec<Json>,
}

impl Desk {
    fn new(test: &str, workflow: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("w.yaml"), workflow).expect("a folder of our own");
        Self { scratch }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// `windlass ARGS` to its end.
    fn windlass(&self, args: &str) -> Seen {
        windlass_in(self.scratch.path(), &words(args)).see()
    }

    fn check(&self, args: &str, status: i32, says: &str) -> Seen {
        let seen = self.windlass(args);
        assert_eq!(seen.status, status, "{seen}");
        assert!(seen.stderr.contains(says), "{says:?} is missing\n{seen}");
        seen
    }

    /// `windlass ARGS --json`, left to itself.
    fn open(&self, args: &str) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(words(args)).arg("--json").current_dir(self.scratch.path()).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program was built for this test");
        let lines = BufReader::new(child.stdout.take().expect("a piped stdout")).lines();
        Terminal { child, lines, seen: Vec::new() }
    }

    /// `windlass ARGS` as people see it, once it has said which run it follows.
    fn follow(&self, args: &str) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(words(args))
            .current_dir(self.scratch.path())
            .env_clear()
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program was built for this test");
        let mut first = [0; "run r\n".len()];
        child
            .stderr
            .as_mut()
            .expect("a piped stderr")
            .read_exact(&mut first)
            .expect("it says what it follows");
        assert_eq!(&first, b"run r\n");
        child
    }

    fn result(&self, run: &str) -> Json {
        self.check(&format!("show {run} --json"), 0, "").json()
    }

    fn journal(&self, run: &str) -> String {
        self.check(&format!("events {run}"), 0, "").stdout
    }

    /// A pipe with a name: whoever opens one end waits for the other.
    fn fifo(&self, name: &str) {
        let made =
            Command::new("mkfifo").arg(self.file(name)).status().expect("mkfifo is part of every Unix");
        assert!(made.success());
    }

    /// What a step writes into a fifo, as soon as it does.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("a step writes its answer")
    }

    /// Lets the step go on that reads a fifo.
    fn release(&self, name: &str) {
        let pipe = std::fs::OpenOptions::new().write(true).open(self.file(name));
        pipe.and_then(|mut pipe| pipe.write_all(b"go\n")).expect("a step reads it");
    }

    /// A process of a step is gone, or dead and only not waited for.
    fn gone(&self, pid: &str) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).map_or("Z", str::trim);
        assert!(state.starts_with(['Z', 'X']), "process {pid} is still there: {state}");
    }
}

impl Terminal {
    /// Reads until an event of this kind about this step (or about the run, when it is empty) has come.
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

    /// Reads the rest and checks how the command ends. Gives its last object.
    fn ends(mut self, status: i32) -> (Json, String) {
        for line in self.lines.by_ref() {
            self.seen.push(serde_json::from_str(&line.expect("UTF-8")).expect("one JSON object a line"));
        }
        let mut stderr = String::new();
        self.child.stderr.take().expect("a piped stderr").read_to_string(&mut stderr).expect("UTF-8");
        let ended = self.child.wait().expect("our own child");
        assert_eq!(ended.code(), Some(status), "{:?}\n{stderr}", self.seen.last());
        (self.seen.pop().unwrap_or_default(), stderr)
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill is part of every Unix").success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Only when a test fails is it still there.
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

/// `work` tells its process, and ends when it is let.
const HELD: &str = "\
workflow: { id: held, name: Held }
stages:
  - { id: before, type: shell, run: echo before >> trace }
  - { id: work, type: shell, run: 'echo $$ > pid; read go < go; echo work >> trace', depends_on: [before] }
  - { id: after, type: shell, run: echo after >> trace, depends_on: [work] }
";

fn held(test: &str) -> Desk {
    let desk = Desk::new(test, HELD);
    ["pid", "go"].iter().for_each(|fifo| desk.fifo(fifo));
    desk
}

#[test]
fn an_approver_in_another_terminal_lets_the_run_go_on() {
    let desk = Desk::new("approve", GATE);
    let mut owner = desk.open("run w.yaml --run-id r --wait");
    owner.until("entered", "sign-off");
    assert_eq!(desk.result("r")["waiting_on"][0]["step"], "sign-off");
    let listed = desk.check("runs", 0, "").stdout;
    assert!(listed.contains("r  ") && listed.contains("waiting at sign-off"), "{listed}");
    let stranger = desk.check("approve r --by eve", 2, "error[not_an_approver]: eve");
    assert!(stranger.stderr.contains("dana") && stranger.stderr.contains("lee"), "{stranger}");
    assert!(!desk.file("released").exists());
    desk.check("approve r --by lee", 0, "approved: r");
    let (result, _) = owner.ends(0);
    assert_eq!(
        (&result["status"], &result["steps"]["sign-off"]["output"]["by"]),
        (&"success".into(), &"lee".into())
    );
    let journal = desk.journal("r");
    desk.check("approve r sign-off --by dana", 2, "error[");
    desk.check("reject r sign-off --by dana", 2, "error[");
    assert_eq!(desk.journal("r"), journal);
}

#[test]
fn a_second_decision_names_who_made_the_first() {
    let workflow = GATE.replace("echo released >> released", "'read go < go'");
    let desk = Desk::new("second", &workflow);
    desk.fifo("go");
    let mut owner = desk.open("run w.yaml --run-id r --wait");
    owner.until("entered", "sign-off");
    desk.check("approve r sign-off --by dana", 0, "approved: r");
    desk.check("reject r sign-off --by lee", 2, "error[already_decided]");
    desk.check("reject r sign-off --by lee", 2, "dana");
    desk.release("go");
    owner.ends(0);
}

#[test]
fn a_decision_without_an_owner_is_recorded_and_resume_goes_on() {
    let desk = Desk::new("recorded", GATE);
    desk.check("run w.yaml --run-id r", 3, "windlass approve r sign-off");
    desk.check("approve r --by eve", 2, "dana");
    desk.check("approve r --by dana", 0, "`windlass resume r` goes on");
    assert!(!desk.file("released").exists());
    desk.check("resume r", 0, "");
    assert_eq!(desk.result("r")["status"], "success");
    assert!(desk.file("released").exists());
}

const PAID: &str = "\
workflow: { id: paid, name: Paid }
stages:
  - { id: pay, type: wait, wait: { signal: paid, match: { order: 7 } } }
  - { id: ship, type: shell, run: echo shipped >> shipped, depends_on: [pay] }
";

#[test]
fn a_signal_from_another_terminal_is_what_the_run_waited_for() {
    let desk = Desk::new("signal", PAID);
    let mut owner = desk.open("run w.yaml --run-id r --wait");
    owner.until("entered", "pay");
    let wait = desk.result("r")["waiting_on"][0].clone();
    assert_eq!((&wait["kind"], &wait["message"]), (&"signal".into(), &"paid".into()));
    desk.check("signal r paid {\"order\":8}", 0, "sent: r");
    assert!(!desk.file("shipped").exists(), "that was another order");
    desk.check("signal r paid {\"order\":7,\"by\":\"card\"}", 0, "sent: r");
    let (result, _) = owner.ends(0);
    assert_eq!(result["steps"]["pay"]["output"]["value"]["by"], "card");
    desk.check("signal r paid", 2, "error[run_finished]");
}

#[test]
fn a_signal_without_an_owner_is_kept_until_the_run_goes_on() {
    let desk = Desk::new("letter", PAID);
    desk.check("run w.yaml --run-id r", 3, "windlass signal r paid");
    desk.check("signal r paid nonsense", 2, "must be JSON");
    desk.check("signal r paid {\"order\":7}", 0, "`windlass resume r` goes on");
    assert!(!desk.file("shipped").exists());
    desk.check("resume r", 0, "");
    assert!(desk.file("shipped").exists());
}

/// Spec Kit: the gate of the second case looks at an input.
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
    let desk = Desk::new("speckit", SPEC);
    let trace = || std::fs::read_to_string(desk.file("trace")).expect("a step ran");
    desk.check("run w.yaml --run-id a", 3, "waiting at gate `review`");
    let result = desk.result("a");
    assert_eq!((&result["dialect_status"], &result["current_step"]), (&"paused".into(), &"review".into()));
    assert_eq!(result["waiting_on"][0]["options"], serde_json::json!(["approve", "later", "reject"]));
    assert!(desk.check("runs", 0, "").stdout.contains("waiting"));
    desk.check("approve a --choice never", 2, "error[no_such_option]");
    desk.check("approve a review --choice LATER", 0, "LATER: a");
    desk.check("resume a", 0, "run a success");
    assert_eq!(trace(), "d\nlater\n");
    desk.check("run w.yaml --run-id b", 3, "");
    desk.check("resume b -p verdict=approve", 0, "run b success");
    assert_eq!(trace(), "d\nlater\nd\napprove\n");
    assert_eq!(desk.result("b")["inputs"]["verdict"], "approve");
    assert!(desk.check("runs", 0, "").stdout.contains("success"));
}

#[test]
fn cancel_ends_the_step_at_work_and_the_run() {
    let desk = held("cancel");
    let owner = desk.open("run w.yaml --run-id r");
    let pid = desk.read("pid");
    desk.check("cancel r --by dana", 0, "cancelled: r");
    let (result, _) = owner.ends(4);
    desk.gone(&pid);
    assert_eq!(
        (&result["status"], &result["steps"]["work"]["status"]),
        (&"cancelled".into(), &"cancelled".into())
    );
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("one step ran"), "before\n");
    desk.check("cancel r --by dana", 2, "error[run_finished]");
}

#[test]
fn a_paused_run_lets_its_step_finish_and_goes_on_at_resume() {
    let desk = held("pause");
    let owner = desk.open("run w.yaml --run-id r");
    desk.read("pid");
    desk.check("pause r --by dana", 0, "paused: r");
    desk.release("go");
    let (result, _) = owner.ends(3);
    let steps = &result["steps"];
    assert_eq!((&steps["work"]["status"], &steps["after"]["status"]), (&"success".into(), &"pending".into()));
    desk.check("resume r", 0, "");
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn resume_from_another_terminal_moves_a_paused_run_that_is_waited_for() {
    let desk = held("unpause");
    let mut owner = desk.open("run w.yaml --run-id r --wait");
    desk.read("pid");
    desk.check("pause r --by dana", 0, "paused: r");
    desk.release("go");
    owner.until("settled", "work");
    desk.check("resume r --by dana", 0, "");
    owner.ends(0);
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn resume_of_a_run_that_is_driven_follows_it() {
    let desk = held("follow");
    let owner = desk.open("run w.yaml --run-id r");
    let pid = desk.read("pid");
    let client = desk.follow("resume r");
    assert!(std::path::Path::new(&format!("/proc/{}", pid.trim())).exists(), "the step at work was ended");
    desk.release("go");
    owner.ends(0);
    let seen = client.wait_with_output().expect("our own child");
    assert_eq!(seen.status.code(), Some(0), "{}", String::from_utf8_lossy(&seen.stderr));
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
}

#[test]
fn the_second_run_in_a_folder_is_driven_by_the_owner_who_stays_for_it() {
    let workflow = "\
workflow: { id: two, name: Two }
config: { parameters: { name: { type: string, required: true } } }
stages:
  - { id: work, type: shell, run: 'echo $PPID > pid-${{ parameters.name }}; read go < go-${{ parameters.name }}' }
";
    let desk = Desk::new("two", workflow);
    ["pid-a", "pid-b", "go-a", "go-b"].iter().for_each(|fifo| desk.fifo(fifo));
    let first = desk.open("run w.yaml --run-id a -p name=a");
    let owner = desk.read("pid-a");
    let second = desk.open("run w.yaml --run-id b -p name=b");
    assert_eq!(desk.read("pid-b"), owner, "both runs are driven by one process");
    assert_eq!(owner.trim(), first.child.id().to_string());
    desk.release("go-a");
    // The owner has said its last word about its own run, and must still be there for the other.
    let mut first = first;
    first.until("closed", "");
    assert_eq!(first.child.try_wait().expect("our own child"), None);
    assert_eq!(desk.result("b")["status"], "running");
    desk.release("go-b");
    let (result, _) = second.ends(0);
    assert_eq!((&result["run_id"], &result["status"]), (&"b".into(), &"success".into()));
    let (result, _) = first.ends(0);
    assert_eq!((&result["run_id"], &result["status"]), (&"a".into(), &"success".into()));
}

#[test]
fn many_runs_at_once_in_a_fresh_folder_all_succeed() {
    let desk = Desk::new(
        "many",
        "workflow: { id: many, name: Many }\nstages: [{ id: a, type: shell, run: echo a }]\n",
    );
    let terminals: Vec<Terminal> =
        (0..6).map(|number| desk.open(&format!("run w.yaml --run-id r{number}"))).collect();
    for terminal in terminals {
        terminal.ends(0);
    }
    assert_eq!(desk.check("runs --json", 0, "").json().as_array().map(Vec::len), Some(6));
}

#[test]
fn a_client_whose_owner_is_killed_is_told_how_to_go_on() {
    let desk = held("gone");
    desk.fifo("go-a");
    let other =
        "workflow: { id: other, name: Other }\nstages: [{ id: a, type: shell, run: 'read go < go-a' }]\n";
    std::fs::write(desk.file("other.yaml"), other).expect("a folder of our own");
    let mut owner = desk.open("run other.yaml --run-id o");
    owner.until("scheduled", "a");
    let client = desk.open("run w.yaml --run-id r");
    let pid = desk.read("pid");
    owner.child.kill().expect("our own child");
    let (_, stderr) = client.ends(5);
    assert!(stderr.contains("windlass resume r"), "{stderr}");
    let resumed = desk.open("resume r");
    desk.read("pid");
    desk.gone(&pid);
    desk.release("go");
    resumed.ends(0);
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("all steps ran"), "before\nwork\nafter\n");
    desk.check("cancel o --by dana", 0, "");
    desk.check("resume o", 4, "");
}

#[test]
fn an_id_is_used_once() {
    let desk = Desk::new("exists", GATE);
    desk.check("run w.yaml --run-id r", 3, "");
    let journal = desk.journal("r");
    desk.check("run w.yaml --run-id r", 2, "error[run_exists]");
    let refused = desk.open("run w.yaml --run-id r").ends(2).0;
    assert_eq!((&refused["type"], &refused["error"]["code"]), (&"refused".into(), &"run_exists".into()));
    assert_eq!(desk.journal("r"), journal);
}

#[test]
fn a_finished_run_stays_as_it_is() {
    let desk = Desk::new(
        "finished",
        "workflow: { id: f, name: F }\nstages: [{ id: a, type: shell, run: echo a >> trace }]\n",
    );
    desk.check("run w.yaml --run-id r", 0, "");
    let journal = desk.journal("r");
    desk.check("resume r", 2, "error[run_finished]");
    desk.check("pause r --by dana", 2, "error[run_finished]");
    assert_eq!(desk.journal("r"), journal);
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("the step ran"), "a\n");
}

#[test]
fn a_failed_run_goes_on_with_a_changed_parameter() {
    let workflow = "\
workflow: { id: fails, name: Fails }
config: { parameters: { good: { type: boolean, default: false } } }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: shell, run: echo a >> trace }
  - { id: b, type: shell, run: 'test ${{ parameters.good }} = true && echo b >> trace', depends_on: [a] }
  - { id: c, type: shell, run: echo c >> trace, depends_on: [b] }
";
    let desk = Desk::new("changed", workflow);
    desk.check("run w.yaml --run-id r", 1, "windlass resume r");
    assert_eq!(desk.result("r")["steps"]["b"]["status"], "failed");
    desk.check("resume r -p good=perhaps", 2, "good");
    desk.check("resume r", 1, "");
    desk.check("resume r -p good=true", 0, "");
    assert_eq!(desk.result("r")["status"], "success");
    assert_eq!(std::fs::read_to_string(desk.file("trace")).expect("all steps ran"), "a\nb\nc\n");
}

#[test]
fn a_run_that_is_interrupted_or_terminated_can_go_on() {
    for signal in ["INT", "TERM"] {
        let desk = held(&format!("signal-{signal}"));
        let owner = desk.open("run w.yaml --run-id r");
        let pid = desk.read("pid");
        owner.signal(signal);
        let (_, stderr) = owner.ends(5);
        assert!(stderr.contains("windlass resume r"), "{stderr}");
        desk.gone(&pid);
        let resumed = desk.open("resume r");
        desk.read("pid");
        desk.release("go");
        resumed.ends(0);
        assert_eq!(
            std::fs::read_to_string(desk.file("trace")).expect("all steps ran"),
            "before\nwork\nafter\n"
        );
    }
}
