//! Maintaining a data folder: damage and what still works, copies of a folder, and removing unused data.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

const GATE: &str = "\
workflow: { id: gate, name: Gate }
stages:
  - { id: build, type: shell, run: echo $RUN is built, env: { RUN: built } }
  - { id: ask, type: gate, gate: { approvers: [dana], timeout: 1h }, depends_on: [build] }
  - { id: release, type: shell, run: echo released, depends_on: [ask] }
";

struct Setup {
    scratch: Scratch,
}

impl Setup {
    fn new(test: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("w.yaml"), GATE).expect("a writable folder");
        Self { scratch }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Runs `windlass ARGS` with a data folder `data` and its own home folder.
    fn windlass(&self, args: &str) -> Seen {
        let args: Vec<&str> = args.split(' ').collect();
        let home = self.file("home").display().to_string();
        let call = windlass_in(self.scratch.path(), &args).env("PATH", "/usr/bin:/bin").env("HOME", &home);
        call.env("WINDLASS_DATA", "data").see()
    }

    fn check(&self, args: &str, status: i32, part: &str) -> Seen {
        let seen = self.windlass(args);
        assert_eq!(seen.status, status, "{seen}");
        assert!(seen.stderr.contains(part) || seen.stdout.contains(part), "{part:?} is missing\n{seen}");
        seen
    }

    fn json(&self, args: &str, status: i32) -> Json {
        let seen = self.check(&format!("{args} --json"), status, "");
        serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen}"))
    }

    /// Replaces the data folder with a copy.
    fn restore(&self, copy: &str) {
        std::fs::remove_dir_all(self.file("data")).expect("the folder");
        std::fs::rename(self.file(copy), self.file("data")).expect("the copy");
    }
}

/// Changes one byte of every occurrence of this text.
fn damage(file: &Path, text: &str) {
    let mut bytes = std::fs::read(file).expect("the file");
    let places: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter(|(_, part)| *part == text.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "the file contains {text}");
    places.into_iter().for_each(|at| bytes[at] ^= 1);
    std::fs::write(file, bytes).expect("written");
}

#[test]
fn one_damaged_record_parks_one_run() {
    let setup = Setup::new("upkeep-damaged");
    setup.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    setup.check("run w.yaml --run-id second", 3, "windlass approve second ask");
    setup.check("approve second --by dana --reason spoilt-reason", 0, "continue it with");
    setup.check("doctor", 0, "2 runs");
    // A copy has its whole journal in one file.
    setup.check("backup copy", 0, "copy");
    damage(&setup.file("copy/journal.db"), "spoilt-reason");
    setup.restore("copy");
    let found = setup.json("doctor", 1);
    let damaged: Vec<&Json> = found["findings"].as_array().expect("a list").iter().collect();
    assert_eq!(damaged.len(), 1, "{found}");
    assert_eq!(
        (damaged[0]["code"].as_str(), damaged[0]["run_id"].as_str()),
        (Some("damaged_run"), Some("second"))
    );
    setup.check("resume second", 2, "error[damaged_run]");
    setup.check("approve first --by dana", 0, "continue it with");
    setup.check("resume --all", 2, "run second is not executed");
    setup.check("show first", 0, "success");
    setup.check("doctor --rebuild", 1, "rebuilt the lists of runs");
}

/// Appends a record to the journal of a run, with a correct checksum.
fn append(journal: &Path, run: &str, events: &str) {
    let journal = rusqlite::Connection::open(journal).expect("the journal");
    let key: i64 =
        journal.query_row("SELECT key FROM runs WHERE run = ?", [run], |row| row.get(0)).expect("the run");
    let prev: i64 = journal
        .query_row("SELECT max(lsn) FROM journal WHERE run = ?", [key], |row| row.get(0))
        .expect("its last record");
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(run.len() as u64).to_le_bytes()).update(run.as_bytes()).update(&prev.to_le_bytes());
    hasher.update(&[1, 0]).update(events.as_bytes());
    let mut frame = vec![1, 0];
    frame.extend(&hasher.finalize().as_bytes()[..8]);
    frame.extend(events.as_bytes());
    journal
        .execute("INSERT INTO journal (run, prev, body) VALUES (?, ?, ?)", (key, prev, frame))
        .expect("written");
}

#[test]
fn a_contradictory_journal_parks_one_run() {
    let setup = Setup::new("upkeep-contradiction");
    setup.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    setup.check("run w.yaml --run-id second", 3, "windlass approve second ask");
    setup.check("backup copy", 0, "copy");
    let passes = r#"[{"at":9000000000000000,"event":"entered","path":["ask"],"decision":{"arm":{"arm":"then","value":true}}}]"#;
    append(&setup.file("copy/journal.db"), "second", passes);
    setup.restore("copy");
    let found = setup.json("doctor", 1);
    let finding = &found["findings"][0];
    assert_eq!(
        (finding["code"].as_str(), finding["run_id"].as_str()),
        (Some("contradictory_journal"), Some("second"))
    );
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{found}");
    for refused in ["resume second", "cancel second"] {
        setup.check(refused, 2, "event `entered` at /ask contradicts");
    }
    setup.check("resume second", 2, "error[contradictory_journal]");
    setup.check("approve first --by dana", 0, "continue it with");
    setup.check("resume --all", 2, "run second is not executed");
    setup.check("show first", 0, "success");
    setup.check("show second", 2, "error[contradictory_journal]");
    setup.check("events second", 0, "entered");
    setup.check("runs", 0, "second");
}

/// Damaged limits cannot be reconstructed: Windlass executes nothing without them, can still show everything, and one command
/// resets them.
#[test]
fn damaged_limits_are_reported_and_can_be_reset() {
    let setup = Setup::new("upkeep-limits");
    setup.check("run w.yaml --run-id first", 3, "waiting");
    setup.check("budget set workflow:broken --calls 1", 0, "set");
    setup.check("backup copy", 0, "copy");
    damage(&setup.file("copy/journal.db"), "workflow:broken");
    setup.restore("copy");
    for refused in ["approve first --by dana", "run w.yaml", "resume --all", "limits", "triggers history"] {
        setup.check(refused, 2, "windlass doctor --renew-limits");
    }
    setup.check("runs", 0, "first");
    setup.check("show first", 0, "ask");
    setup.check("doctor", 1, "damaged_limits");
    setup.check("doctor --renew-desk", 0, "reset the limits");
    setup.check("approve first --by dana", 0, "continue it with");
    setup.check("resume first", 0, "run first succeeded");
    setup.check("limits", 0, "no limits are in use");
}

#[test]
fn contradictory_limits_are_damaged_limits() {
    let setup = Setup::new("upkeep-contradictory-limits");
    setup.check("run w.yaml --run-id first", 3, "waiting");
    setup.check("budget set workflow:w --calls 1", 0, "set");
    setup.check("backup copy", 0, "copy");
    let granted =
        r#"[{"at":9000000000000000,"event":"granted","asker":{"run":"first","path":["ask"],"attempt":1}}]"#;
    append(&setup.file("copy/journal.db"), ".desk", granted);
    setup.restore("copy");
    setup.check("resume first", 2, "event `granted` at /ask contradicts");
    let found = setup.json("doctor", 1);
    assert_eq!(found["findings"][0]["code"], "damaged_limits", "{found}");
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{found}");
    setup.check("doctor --renew-limits", 0, "reset the limits");
    setup.check("doctor", 0, "1 run");
}

#[test]
fn an_older_copy_is_refused_until_accepted() {
    let setup = Setup::new("upkeep-older");
    setup.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    setup.check("backup copy", 0, "copy");
    setup.check("backup copy", 2, "error[data_folder]");
    setup.check("approve first --by dana", 0, "continue it with");
    setup.check("resume first", 0, "run first succeeded");
    setup.restore("copy");
    setup.check("approve first --by dana", 2, "error[older_copy]");
    setup.check("run w.yaml", 2, "windlass doctor --accept-older");
    setup.check("doctor", 1, "older_copy");
    setup.check("show first", 0, "ask");
    setup.check("doctor --accept-older", 0, "accepted");
    setup.check("approve first --by dana", 0, "continue it with");
    setup.check("resume first", 0, "run first succeeded");
}

#[test]
fn gc_removes_failed_runs_with_their_child_runs_and_values() {
    let setup = Setup::new("upkeep-failed");
    let big = "head -c 300000 /dev/zero | tr '\\\\0' x; false";
    let child = format!(
        "workflow: {{ id: child, name: C }}\nstages: [{{ id: a, type: shell, run: \"{big}\", error_policy: {{ retry: {{ max_attempts: 1 }} }} }}]\n"
    );
    std::fs::write(setup.file("child.yaml"), child).expect("a writable folder");
    let parent = "workflow: { id: parent, name: P }\nstages: [{ id: c, type: workflow, workflow: child.yaml, error_policy: { retry: { max_attempts: 1 } } }]\n";
    std::fs::write(setup.file("parent.yaml"), parent).expect("a writable folder");
    setup.check("run child.yaml --run-id alone", 1, "failed");
    setup.check("run parent.yaml --run-id parent", 1, "failed");
    // The child of a failed run stays as long as that run can be resumed.
    let kept = setup.json("gc --keep 1 --dry-run", 0);
    assert_eq!(kept["runs"].as_array().map(Vec::len), Some(1), "{kept}");
    let gone = setup.json("gc --status failed", 0);
    assert_eq!(gone["runs"].as_array().map(Vec::len), Some(3), "{gone}");
    setup.check("runs", 0, "");
    setup.check("show alone", 2, "error[no_run]");
    setup.check("doctor", 0, "no damage found");
}

#[test]
fn artifacts_stay_as_long_as_a_run_refers_to_them() {
    let setup = Setup::new("upkeep-artifacts");
    let flow = "name: files\nsteps:\n  - {id: make, tool: make}\n  - {id: ask, kind: approve, prompt: on?}\n";
    std::fs::write(setup.file("files.workflow.yaml"), flow).expect("a writable folder");
    let script = |run: &str, content: &str| {
        let entry = format!("{{ inline_b64: {content}, name: a }}");
        let text = format!(
            "steps:\n  make: [{{ output: {{ success: true, context: {{ file_refs: [{entry}] }} }} }}]\n"
        );
        std::fs::write(setup.file("script.yaml"), text).expect("a writable folder");
        setup.check(&format!("run files.workflow.yaml --script script.yaml --run-id {run}"), 3, "ask");
    };
    let stored = || std::fs::read_dir(setup.file("data/artefacts")).expect("a folder").count();
    script("first", "aGVsbG8=");
    script("second", "aGVsbG8=");
    script("third", "d29ybGQ=");
    assert_eq!(stored(), 2, "the same content once");
    std::fs::write(setup.file("data/artefacts/unfinished-0-0"), "half").expect("a writable folder");
    assert_eq!(setup.json("gc", 0)["artifacts"], 1, "what a crash left behind");
    for run in ["first", "third"] {
        setup.check(&format!("approve {run} --by dana"), 0, "it has succeeded");
    }
    setup.check("runs export third out", 0, "third");
    let would = setup.json("gc --keep 0 --dry-run", 0);
    assert_eq!((&would["artifacts"], &would["artifact_bytes"]), (&1.into(), &5.into()), "{would}");
    assert_eq!(stored(), 2);
    setup.check("gc --keep 0", 0, "1 artifact (5 B)");
    assert_eq!(stored(), 1, "the second run still refers to it");
    setup.check("runs import out", 0, "third");
    assert_eq!(stored(), 2, "an export carries its artifacts");
    setup.check("gc", 0, "0 artifacts");
    setup.check("doctor", 0, "no damage found");
}

/// Two steps; the second one is large and never runs.
const INSIDE: &str = "\
schema_version: '1.0'
workflow: { id: inside, name: Inside, version: 1.0.0 }
steps:
  - { id: first, type: shell, run: 'true' }
  - { id: rare, type: if, condition: '{{ false }}', then: [{ id: never, type: shell, run: 'true # LARGE' }] }
";

const LOOP: &str = "\
schema_version: '1.0'
workflow: { id: looping, name: Looping, version: 1.0.0 }
steps:
  - id: loop
    type: do-while
    condition: '{{ true }}'
    max_iterations: ROUNDS
    steps: [{ id: call, type: workflow, workflow: inside }]
  - { id: ask, type: gate, message: on?, options: [approve, reject] }
  - { id: end, type: shell, run: 'true' }
";

/// A loop calls the same workflow in each round and then waits at a gate; another process resumes it.
#[test]
fn the_plan_of_a_workflow_called_in_a_loop_is_stored_once() {
    let journal_bytes = |rounds: u32| {
        let setup = Setup::new(&format!("upkeep-loop-{rounds}"));
        let installed = setup.file(".specify/workflows/inside");
        std::fs::create_dir_all(&installed).expect("a writable folder");
        let inside = INSIDE.replace("LARGE", &"x".repeat(50_000));
        std::fs::write(installed.join("workflow.yml"), inside).expect("a writable folder");
        let outer = LOOP.replace("ROUNDS", &rounds.to_string());
        std::fs::write(setup.file("workflow.yml"), outer).expect("a writable folder");
        setup.check("run workflow.yml --run-id looped", 3, "ask");
        let kept = setup.json("gc", 0);
        assert_eq!((&kept["plans"], &kept["values"]), (&0.into(), &0.into()), "{kept}");
        setup.check("approve looped --by dana", 0, "continue it with");
        setup.check("resume looped", 0, "run looped succeeded");
        let sum = "SELECT sum(length(body)) FROM journal";
        let database = rusqlite::Connection::open(setup.file("data/journal.db")).expect("a database");
        let bytes: i64 = database.query_row(sum, [], |row| row.get(0)).expect("a sum");
        drop(database);
        setup.check("doctor", 0, "no damage found");
        let gone = setup.json("gc --keep 0", 0);
        assert_eq!((&gone["plans"], &gone["values"]), (&1.into(), &1.into()), "{gone}");
        bytes
    };
    let (few, many) = (journal_bytes(2), journal_bytes(20));
    assert!(few < 50_000 && many < 20 * 10_000, "{few} and {many} bytes");
}

#[test]
fn gc_removes_finished_runs_and_keeps_unfinished_ones() {
    let setup = Setup::new("upkeep-gc");
    for run in ["first", "second", "third"] {
        setup.check(&format!("run w.yaml --run-id {run}"), 3, "waiting");
    }
    for run in ["first", "second"] {
        setup.check(&format!("approve {run} --by dana"), 0, "continue it with");
        setup.check(&format!("resume {run}"), 0, "succeeded");
    }
    setup.check("gc", 0, "removed: 0 runs, 0 plans");
    setup.check("gc --status failed --keep 0", 0, "removed: 0 runs");
    setup.check("gc --older-than 1d", 0, "removed: 0 runs");
    setup.check("gc --older-than soon", 2, "error[bad_request]: invalid duration");
    let would = setup.json("gc --keep 1 --dry-run", 0);
    assert_eq!(would["runs"][0]["run_id"], "first");
    setup.check("runs", 0, "first");
    let gone = setup.json("gc --keep 1", 0);
    assert_eq!(gone["runs"], would["runs"]);
    setup.check("show first", 2, "error[no_run]");
    setup.check("gc --keep 0", 0, "removed: 1 run, 0 plans");
    setup.check("runs", 0, "third");
    setup.check("doctor", 0, "1 run,");
    setup.check("approve third --by dana", 0, "continue it with");
    setup.check("resume third", 0, "run third succeeded");
    setup.check("gc --keep 0", 0, "removed: 1 run, 1 plan");
    setup.check("run w.yaml --run-id first", 3, "waiting");
    setup.check("doctor", 0, "no damage found");
}
