//! Looking after a data folder: what is damaged and what continues, copies of a folder, and removing what nobody needs.

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

struct House {
    scratch: Scratch,
}

impl House {
    fn new(test: &str) -> Self {
        let scratch = Scratch::new(test);
        std::fs::write(scratch.path().join("w.yaml"), GATE).expect("a folder of our own");
        Self { scratch }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// `windlass ARGS` with a data folder `data` and a home of its own.
    fn windlass(&self, args: &str) -> Seen {
        let args: Vec<&str> = args.split(' ').collect();
        let home = self.file("home").display().to_string();
        let call = windlass_in(self.scratch.path(), &args).env("PATH", "/usr/bin:/bin").env("HOME", &home);
        call.env("WINDLASS_DATA", "data").see()
    }

    fn check(&self, args: &str, status: i32, says: &str) -> Seen {
        let seen = self.windlass(args);
        assert_eq!(seen.status, status, "{seen}");
        assert!(seen.stderr.contains(says) || seen.stdout.contains(says), "{says:?} is missing\n{seen}");
        seen
    }

    fn json(&self, args: &str, status: i32) -> Json {
        let seen = self.check(&format!("{args} --json"), status, "");
        serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen}"))
    }

    /// Puts a copy in the place of the data folder.
    fn restore(&self, copy: &str) {
        std::fs::remove_dir_all(self.file("data")).expect("the folder");
        std::fs::rename(self.file(copy), self.file("data")).expect("the copy");
    }
}

/// Changes one byte of every place where this text stands.
fn spoil(file: &Path, text: &str) {
    let mut bytes = std::fs::read(file).expect("the file");
    let places: Vec<usize> = bytes
        .windows(text.len())
        .enumerate()
        .filter(|(_, part)| *part == text.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "{text} stands in the file");
    places.into_iter().for_each(|at| bytes[at] ^= 1);
    std::fs::write(file, bytes).expect("written");
}

#[test]
fn one_damaged_record_parks_one_run() {
    let house = House::new("upkeep-hurt");
    house.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    house.check("run w.yaml --run-id second", 3, "windlass approve second ask");
    house.check("approve second --by dana --reason spoilt-reason", 0, "recorded");
    house.check("doctor", 0, "2 runs");
    // In a copy the whole journal is one file.
    house.check("backup copy", 0, "copy");
    spoil(&house.file("copy/journal.db"), "spoilt-reason");
    house.restore("copy");
    let found = house.json("doctor", 1);
    let damaged: Vec<&Json> = found["findings"].as_array().expect("a list").iter().collect();
    assert_eq!(damaged.len(), 1, "{found}");
    assert_eq!(
        (damaged[0]["code"].as_str(), damaged[0]["run_id"].as_str()),
        (Some("damaged_run"), Some("second"))
    );
    house.check("resume second", 2, "error[damaged_run]");
    house.check("approve first --by dana", 0, "recorded");
    house.check("resume --all", 0, "run second is left alone");
    house.check("show first", 0, "success");
    house.check("doctor --rebuild", 1, "the lists of runs were rebuilt");
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
    let house = House::new("upkeep-contradiction");
    house.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    house.check("run w.yaml --run-id second", 3, "windlass approve second ask");
    house.check("backup copy", 0, "copy");
    let passes = r#"[{"at":9000000000000000,"event":"entered","path":["ask"],"decision":{"arm":{"arm":"then","value":true}}}]"#;
    append(&house.file("copy/journal.db"), "second", passes);
    house.restore("copy");
    let found = house.json("doctor", 1);
    let finding = &found["findings"][0];
    assert_eq!(
        (finding["code"].as_str(), finding["run_id"].as_str()),
        (Some("contradictory_journal"), Some("second"))
    );
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{found}");
    for refused in ["resume second", "cancel second"] {
        house.check(refused, 2, "event `entered` at /ask contradicts");
    }
    house.check("resume second", 2, "error[contradictory_journal]");
    house.check("approve first --by dana", 0, "recorded");
    house.check("resume --all", 3, "run second is left alone");
    house.check("show first", 0, "success");
    house.check("show second", 2, "error[contradictory_journal]");
    house.check("events second", 0, "entered");
    house.check("runs", 0, "second");
}

/// What runs share cannot be made up: nothing is driven without it, everything can be looked at, and one command begins it anew.
#[test]
fn a_damaged_limits_is_said_and_can_be_begun_anew() {
    let house = House::new("upkeep-limits");
    house.check("run w.yaml --run-id first", 3, "waiting");
    house.check("budget set workflow:spoilt --calls 1", 0, "set");
    house.check("backup copy", 0, "copy");
    spoil(&house.file("copy/journal.db"), "workflow:spoilt");
    house.restore("copy");
    for refused in ["approve first --by dana", "run w.yaml", "resume --all", "limits", "triggers history"] {
        house.check(refused, 2, "windlass doctor --renew-limits");
    }
    house.check("runs", 0, "first");
    house.check("show first", 0, "ask");
    house.check("doctor", 1, "damaged_limits");
    house.check("doctor --renew-desk", 0, "the limits were reset");
    house.check("approve first --by dana", 0, "recorded");
    house.check("resume first", 0, "run first success");
    house.check("limits", 0, "no limit is in use");
}

#[test]
fn an_older_copy_is_said_and_nothing_is_done_until_told() {
    let house = House::new("upkeep-older");
    house.check("run w.yaml --run-id first", 3, "windlass approve first ask");
    house.check("backup copy", 0, "copy");
    house.check("backup copy", 2, "error[data_folder]");
    house.check("approve first --by dana", 0, "recorded");
    house.check("resume first", 0, "run first success");
    house.restore("copy");
    house.check("approve first --by dana", 2, "error[older_copy]");
    house.check("run w.yaml", 2, "windlass doctor --accept-older");
    house.check("doctor", 1, "older_copy");
    house.check("show first", 0, "ask");
    house.check("doctor --accept-older", 0, "accepted");
    house.check("approve first --by dana", 0, "recorded");
    house.check("resume first", 0, "run first success");
}

#[test]
fn failed_runs_go_with_the_runs_they_called_and_their_values() {
    let house = House::new("upkeep-failed");
    let big = "head -c 300000 /dev/zero | tr '\\\\0' x; false";
    let child = format!(
        "workflow: {{ id: child, name: C }}\nstages: [{{ id: a, type: shell, run: \"{big}\", error_policy: {{ retry: {{ max_attempts: 1 }} }} }}]\n"
    );
    std::fs::write(house.file("child.yaml"), child).expect("a folder of our own");
    let parent = "workflow: { id: parent, name: P }\nstages: [{ id: c, type: workflow, workflow: child.yaml, error_policy: { retry: { max_attempts: 1 } } }]\n";
    std::fs::write(house.file("parent.yaml"), parent).expect("a folder of our own");
    house.check("run child.yaml --run-id alone", 1, "failed");
    house.check("run parent.yaml --run-id parent", 1, "failed");
    // The child of a failed run stays as long as that run can be resumed.
    let kept = house.json("gc --keep 1 --dry-run", 0);
    assert_eq!(kept["runs"].as_array().map(Vec::len), Some(1), "{kept}");
    let gone = house.json("gc --status failed", 0);
    assert_eq!(gone["runs"].as_array().map(Vec::len), Some(3), "{gone}");
    house.check("runs", 0, "");
    house.check("show alone", 2, "error[no_run]");
    house.check("doctor", 0, "all is well");
}

#[test]
fn artifacts_stay_as_long_as_a_run_refers_to_them() {
    let house = House::new("upkeep-artifacts");
    let flow = "name: files\nsteps:\n  - {id: make, tool: make}\n  - {id: ask, kind: approve, prompt: on?}\n";
    std::fs::write(house.file("files.workflow.yaml"), flow).expect("a folder of our own");
    let script = |run: &str, content: &str| {
        let entry = format!("{{ inline_b64: {content}, name: a }}");
        let text = format!(
            "steps:\n  make: [{{ output: {{ success: true, context: {{ file_refs: [{entry}] }} }} }}]\n"
        );
        std::fs::write(house.file("script.yaml"), text).expect("a folder of our own");
        house.check(&format!("run files.workflow.yaml --script script.yaml --run-id {run}"), 3, "ask");
    };
    let stored = || std::fs::read_dir(house.file("data/artefacts")).expect("a folder").count();
    script("first", "aGVsbG8=");
    script("second", "aGVsbG8=");
    script("third", "d29ybGQ=");
    assert_eq!(stored(), 2, "the same content once");
    std::fs::write(house.file("data/artefacts/unfinished-0-0"), "half").expect("a folder of our own");
    assert_eq!(house.json("gc", 0)["artifacts"], 1, "what a crash left behind");
    for run in ["first", "third"] {
        house.check(&format!("approve {run} --by dana"), 0, "success");
    }
    house.check("runs export third out", 0, "third");
    let would = house.json("gc --keep 0 --dry-run", 0);
    assert_eq!((&would["artifacts"], &would["artifact_bytes"]), (&1.into(), &5.into()), "{would}");
    assert_eq!(stored(), 2);
    house.check("gc --keep 0", 0, "1 artifact (5 B)");
    assert_eq!(stored(), 1, "the second run still refers to it");
    house.check("runs import out", 0, "third");
    assert_eq!(stored(), 2, "an export carries its artifacts");
    house.check("gc", 0, "0 artifacts");
    house.check("doctor", 0, "all is well");
}

/// Two steps, of which the second is large and never done.
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

/// A loop calls the same workflow in each round, then waits at a gate, and another process resumes it.
#[test]
fn the_plan_of_a_workflow_called_in_a_loop_is_stored_once() {
    let journal_bytes = |rounds: u32| {
        let house = House::new(&format!("upkeep-loop-{rounds}"));
        let installed = house.file(".specify/workflows/inside");
        std::fs::create_dir_all(&installed).expect("a folder of our own");
        let inside = INSIDE.replace("LARGE", &"x".repeat(50_000));
        std::fs::write(installed.join("workflow.yml"), inside).expect("a folder of our own");
        let outer = LOOP.replace("ROUNDS", &rounds.to_string());
        std::fs::write(house.file("workflow.yml"), outer).expect("a folder of our own");
        house.check("run workflow.yml --run-id looped", 3, "ask");
        let kept = house.json("gc", 0);
        assert_eq!((&kept["plans"], &kept["values"]), (&0.into(), &0.into()), "{kept}");
        house.check("approve looped --by dana", 0, "recorded");
        house.check("resume looped", 0, "run looped success");
        let sum = "SELECT sum(length(body)) FROM journal";
        let database = rusqlite::Connection::open(house.file("data/journal.db")).expect("a database");
        let bytes: i64 = database.query_row(sum, [], |row| row.get(0)).expect("a sum");
        drop(database);
        house.check("doctor", 0, "all is well");
        let gone = house.json("gc --keep 0", 0);
        assert_eq!((&gone["plans"], &gone["values"]), (&1.into(), &1.into()), "{gone}");
        bytes
    };
    let (few, many) = (journal_bytes(2), journal_bytes(20));
    assert!(few < 50_000 && many < 20 * 10_000, "{few} and {many} bytes");
}

#[test]
fn finished_runs_go_and_what_is_not_finished_stays() {
    let house = House::new("upkeep-gc");
    for run in ["first", "second", "third"] {
        house.check(&format!("run w.yaml --run-id {run}"), 3, "waiting");
    }
    for run in ["first", "second"] {
        house.check(&format!("approve {run} --by dana"), 0, "recorded");
        house.check(&format!("resume {run}"), 0, "success");
    }
    house.check("gc", 0, "removed: 0 runs, 0 plans");
    house.check("gc --status failed --keep 0", 0, "removed: 0 runs");
    house.check("gc --older-than 1d", 0, "removed: 0 runs");
    house.check("gc --older-than soon", 2, "error[bad_duration]");
    let would = house.json("gc --keep 1 --dry-run", 0);
    assert_eq!(would["runs"][0]["run_id"], "first");
    house.check("runs", 0, "first");
    let gone = house.json("gc --keep 1", 0);
    assert_eq!(gone["runs"], would["runs"]);
    house.check("show first", 2, "error[no_run]");
    house.check("gc --keep 0", 0, "removed: 1 run, 0 plans");
    house.check("runs", 0, "third");
    house.check("doctor", 0, "1 run,");
    house.check("approve third --by dana", 0, "recorded");
    house.check("resume third", 0, "run third success");
    house.check("gc --keep 0", 0, "removed: 1 run, 1 plan");
    house.check("run w.yaml --run-id first", 3, "waiting");
    house.check("doctor", 0, "all is well");
}
