//! Limits that runs share: slots and queues, keys, messages, budgets, and runs that another process executes.

use crate::scratch::Scratch;
use crate::support::{Seen, windlass_in};
use serde_json::{Value as Json, json};
use std::path::Path;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a writable folder");
}

fn windlass(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, args).env("PATH", PATH).env("WINDLASS_DATA", "data").see()
}

fn json_of(seen: &Seen) -> Json {
    serde_json::from_str(&seen.stdout).unwrap_or_else(|error| panic!("{error}: {seen}"))
}

#[test]
fn detached_runs_share_limits() {
    let scratch = Scratch::new("limits-detach");
    let folder = scratch.path();
    write(
        folder,
        "wf.json",
        r#"{"name": "wf", "version": "1", "concurrency": {"max_runs": 1}, "steps": [{"id": "a", "task": "work", "type": "normal"}]}"#,
    );
    // Each task waits for its fifo, so that the test can inspect the queue.
    write(
        folder,
        "windlass.toml",
        "[tasks.work]\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; cat gate-${WINDLASS_OPERATION%%:*}; echo 1\"]\n",
    );
    for id in ["first", "second"] {
        let made = std::process::Command::new("mkfifo").arg(folder.join(format!("gate-{id}"))).status();
        assert!(made.expect("mkfifo").success());
        let seen = windlass(folder, &["run", "wf.json", "--detach", "--run-id", id]);
        assert_eq!((seen.status, &*seen.stdout), (0, &*format!("{id}\n")), "{seen}");
    }
    let shown = json_of(&windlass(folder, &["show", "second", "--json"]));
    assert_eq!(shown["status"], "pending", "{shown}");
    let waits = &shown["waiting_on"][0];
    let expected = (json!("slot"), json!(1), json!("runs:wf"));
    assert_eq!(
        (waits["kind"].clone(), waits["position"].clone(), waits["message"].clone()),
        expected,
        "{shown}"
    );
    let limits = json_of(&windlass(folder, &["limits", "--json"]));
    let slot =
        limits["slots"].as_array().and_then(|slots| slots.iter().find(|slot| slot["key"] == "runs:wf"));
    let slot = slot.expect("the slot that both need");
    assert_eq!(
        (&slot["holders"][0]["run_id"], &slot["waiting"][0]["run_id"]),
        (&json!("first"), &json!("second"))
    );
    // Opening a fifo waits for its reader, which reads until the last writer closes it.
    let gates = ["first", "second"].map(|id| folder.join(format!("gate-{id}")));
    let opener = std::thread::spawn(move || {
        gates.iter().for_each(|gate| drop(std::fs::OpenOptions::new().write(true).open(gate)));
    });
    let waited = windlass(folder, &["wait", "first", "second", "--json"]);
    opener.join().expect("both have read");
    assert_eq!(waited.status, 0, "{waited}");
    assert_eq!(waited.stdout.lines().count(), 2, "{waited}");
    assert!(windlass(folder, &["desk"]).stdout.starts_with("no limits are in use"));
}

#[test]
fn a_detached_run_leaves_other_unfinished_runs_alone() {
    let scratch = Scratch::new("limits-others");
    let folder = scratch.path();
    let killed = "workflow: { id: a, name: A }\nstages:\n  - { id: work, type: shell, run: \"echo > begun; sleep 60\" }\n  - { id: deploy, type: shell, run: echo > deployed, depends_on: [work] }\n";
    write(folder, "a.yaml", killed);
    write(folder, "b.yaml", "workflow: { id: b, name: B }\nstages: [{ id: b, type: shell, run: echo hi }]\n");
    let made = std::process::Command::new("mkfifo").arg(folder.join("begun")).status();
    assert!(made.expect("mkfifo").success());
    let mut owner = std::process::Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["run", "a.yaml", "--run-id", "a", "--data", "data"])
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program is built");
    // Returns once the step has begun.
    std::fs::read(folder.join("begun")).expect("a pipe");
    owner.kill().and_then(|()| owner.wait()).expect("it was running");
    let seen = windlass(folder, &["run", "b.yaml", "--detach", "--run-id", "b"]);
    assert_eq!(seen.status, 0, "{seen}");
    assert_eq!(windlass(folder, &["wait", "b"]).status, 0);
    let left = json_of(&windlass(folder, &["show", "a", "--json"]));
    assert_eq!(left["steps"]["work"]["status"], "running", "{left}");
    let events = windlass(folder, &["events", "a", "--json"]).stdout;
    assert!(!events.contains("\"lost\"") && !folder.join("deployed").exists(), "{events}");
    // Unblocks the command that the killed owner left behind.
    assert_eq!(windlass(folder, &["cancel", "a"]).status, 0);
    assert_eq!(windlass(folder, &["resume", "a"]).status, 4);
}

#[test]
fn a_message_reaches_every_waiting_step_once() {
    let scratch = Scratch::new("limits-publish");
    let folder = scratch.path();
    write(
        folder,
        "wf.json",
        r#"{"name": "wf", "version": "1",
        "cancel_on": [{"event": "order.gone", "match": {"left": "id", "op": "eq", "right": "input.id"}}],
        "steps": [{"id": "w", "type": "wait_for_event", "config": {"event": "order.paid", "match": {"left": "id", "op": "eq", "right": "input.id"}, "timeout": "1h"}}]}"#,
    );
    for id in ["1", "2", "3"] {
        let name = format!("run-{id}");
        let seen = windlass(folder, &["run", "wf.json", "-i", &format!("id={id}"), "--run-id", &name]);
        assert_eq!(seen.status, 3, "{seen}");
    }
    let publish = |name: &str, value: &str, id: &str| {
        json_of(&windlass(folder, &["publish", name, value, "--id", id, "--json"]))["subscribers"].clone()
    };
    assert_eq!(publish("order.paid", r#"{"id": 1}"#, "m1"), 1);
    assert_eq!(publish("order.paid", r#"{"id": 1}"#, "m2"), 0, "it no longer waits");
    assert_eq!(publish("order.gone", r#"{"id": 2}"#, "m3"), 1);
    assert_eq!(publish("order.gone", r#"{"id": 9}"#, "m4"), 0);
    let all = windlass(folder, &["resume", "--all"]);
    assert_eq!(all.status, 4, "a canceled run is worse than one that waits: {all}");
    for (run, status) in [("run-1", "success"), ("run-2", "cancelled"), ("run-3", "waiting")] {
        let shown = json_of(&windlass(folder, &["show", run, "--json"]));
        assert_eq!(shown["status"], status, "{shown}");
    }
    let shown = json_of(&windlass(folder, &["show", "run-1", "--json"]));
    assert_eq!(shown["steps"]["w"]["output"], json!({"id": 1}), "{shown}");
}

#[test]
fn a_step_with_a_global_key_runs_once() {
    let scratch = Scratch::new("limits-key");
    let folder = scratch.path();
    let workflow = "name: export\nsteps:\n  - {id: e, tool: maya__export, idempotency_key: scene, idempotency_scope: global}\n";
    write(folder, "e.workflow.yaml", workflow);
    write(folder, "good.json", r#"{"steps": {"e": [{"output": {"file": "a"}}]}}"#);
    write(folder, "other.json", r#"{"steps": {"e": [{"output": {"file": "b"}}]}}"#);
    write(folder, "bad.json", r#"{"steps": {"e": [{"error": {"class": "broken"}}]}}"#);
    let run = |script: &str| {
        let seen = windlass(folder, &["run", "e.workflow.yaml", "--script", script, "--json=final"]);
        let result = json_of(&seen);
        (seen.status, result["steps"]["e"]["output"].clone())
    };
    assert_eq!(run("bad.json"), (1, Json::Null), "a key never keeps failures");
    assert_eq!(run("good.json"), (0, json!({"file": "a"})));
    assert_eq!(run("other.json"), (0, json!({"file": "a"})));
}

#[test]
fn budgets_are_enforced_and_shown() {
    let scratch = Scratch::new("limits-budget");
    let folder = scratch.path();
    let workflow = "workflow: {id: wf, name: Wf}\nstages:\n  - {id: a, type: agent, roles: {primary: {artifact: \"agent:x\"}}}\n";
    write(folder, "WORKFLOW.yaml", workflow);
    write(
        folder,
        "s.json",
        r#"{"steps": {"a": [{"outputs": {}, "used": {"tokens": 60}, "most": {"tokens": 80}}]}}"#,
    );
    let seen = windlass(folder, &["budgets", "set", "workflow:wf", "--tokens", "100"]);
    assert_eq!(seen.status, 0, "{seen}");
    let run = || windlass(folder, &["run", "WORKFLOW.yaml", "--script", "s.json", "--json=final"]);
    assert_eq!(run().status, 0);
    let second = run();
    assert_eq!((second.status, json_of(&second)["error"]["code"].clone()), (1, json!("budget_exceeded")));
    let shown = json_of(&windlass(folder, &["budget", "show", "workflow:wf", "--json"]));
    assert_eq!(
        (&shown["items"][0]["spent"]["tokens"], &shown["items"][0]["reserved"]["tokens"]),
        (&json!(60), &json!(0)),
        "{shown}"
    );
    let seen = windlass(folder, &["budgets", "reset", "workflow:wf"]);
    assert_eq!((seen.status, &*seen.stderr), (0, "reset: workflow:wf\n"), "{seen}");
    assert_eq!(run().status, 0);
    for bad in [["set", "unknown", "--tokens", "1"], ["set", "day", "--zone", "Mars/Base"]] {
        let seen = windlass(folder, &[&["budget"], &bad[..]].concat());
        assert!(seen.status == 2 && seen.stderr.starts_with("error[bad_budget]"), "{seen}");
    }
}

#[test]
fn a_rate_limit_uses_the_clock_of_the_run() {
    let scratch = Scratch::new("limits-rate");
    let folder = scratch.path();
    write(
        folder,
        "wf.json",
        r#"{"name": "wf", "version": "1", "steps": [{"id": "l", "task": "t", "type": "agent_loop", "config": {"max_iterations": 5}, "rate_limit": {"limit": 1, "period": "1h"}}]}"#,
    );
    write(folder, "s.json", r#"{"steps": {"l": [{"continue": 1}, {"continue": 2}, {"output": 3}]}}"#);
    let seen = windlass(folder, &["run", "wf.json", "--script", "s.json", "--virtual-time", "--run-id", "r"]);
    assert_eq!(seen.status, 0, "{seen}");
    let events = windlass(folder, &["events", "r", "--json"]).stdout;
    let at = |event: &Json| windlass_ir::time::instant(event["at"].as_str().unwrap_or_default());
    let scheduled: Vec<i64> = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok())
        .filter(|event| event["event"] == "scheduled")
        .filter_map(|event| at(&event))
        .collect();
    let waits: Vec<i64> = scheduled.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
    assert_eq!(waits, [3600, 3600], "{events}");
}
