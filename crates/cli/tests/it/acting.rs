//! Commands that act on runs: retry, partial and delayed runs, several runs at once, workflows by name, and Spec Kit's output.

use crate::support::{Seen, folder, windlass_in};
use std::path::Path;

const FLOW: &str = r#"
workflow: { id: flow, name: Flow }
config: { parameters: { who: { type: string, default: ann } } }
stages:
  - { id: first, type: shell, run: "echo first >> done" }
  - { id: second, depends_on: [first], type: shell, run: "echo second >> done; test -e ok", error_policy: { retry: { max_attempts: 1 } } }
  - { id: third, depends_on: [second], type: shell, run: "echo third ${{ parameters.who }} >> done" }
  - { id: beside, depends_on: [first], type: shell, run: "echo beside >> done" }
"#;

fn call(folder: &Path, args: &[&str]) -> Seen {
    let data = folder.join("data");
    let call = windlass_in(folder, args).env("PATH", "/usr/bin:/bin").env("USER", "ann");
    call.env("WINDLASS_DATA", &data.display().to_string()).see()
}

/// Checks the exit status and a part of the output.
fn check(folder: &Path, args: &[&str], status: i32, part: &str) -> Seen {
    let seen = call(folder, args);
    assert_eq!(seen.status, status, "{seen}");
    assert!(seen.stdout.contains(part) || seen.stderr.contains(part), "no `{part}` in\n{seen}");
    seen
}

/// The steps that actually ran, sorted.
fn done(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("done")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn forecast(seen: &Seen) -> Vec<(String, String)> {
    let json = seen.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let steps = json["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|step| (text(&step["step"]), text(&step["fate"]))).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(step, fate)| ((*step).to_owned(), (*fate).to_owned())).collect()
}

#[test]
fn retry_starts_a_new_run_from_the_failed_step() {
    let here = folder("retry", &[("flow.yaml", FLOW)]);
    check(&here, &["run", "flow.yaml", "--run-id", "a"], 1, "failed in `second`");
    let dry = check(&here, &["retry", "a", "--dry-run", "--json"], 0, "retry_of");
    let expected = [("first", "kept"), ("second", "again"), ("third", "again"), ("beside", "kept")];
    assert_eq!(forecast(&dry), pairs(&expected));
    assert_eq!(done(&here), ["beside", "first", "second"], "nothing ran");
    check(&here, &["retry", "a", "--from", "secnd"], 2, "did you mean `second`?");
    std::fs::write(here.join("ok"), "").expect("a file");
    let again =
        check(&here, &["retry", "a", "--run-id", "b", "--json=final"], 0, "\"status\":\"success\"").json();
    assert_eq!((&again["retry_of"], &again["steps"]["first"]["kept"]), (&"a".into(), &true.into()));
    assert_eq!(done(&here), ["beside", "first", "second", "second", "third ann"]);
    check(&here, &["retry", "b"], 2, "error[nothing_to_retry]");
    // Only steps with changed inputs run again.
    check(&here, &["retry", "b", "-p", "who=bob"], 0, "succeeded");
    assert_eq!(done(&here), ["beside", "first", "second", "second", "third ann", "third bob"]);
}

#[test]
fn retry_compares_a_recorded_run_with_an_edited_file() {
    let edited = FLOW
        .replace("echo beside", "echo BESIDE")
        .replace("stages:", "stages:\n  - { id: zero, type: shell, run: \"true\" }")
        .replace("id: third,", "id: third, name: The third,");
    let here = folder("retry_plan", &[("flow.yaml", FLOW), ("edited.yaml", &edited), ("ok", "")]);
    check(&here, &["run", "flow.yaml", "--run-id", "a"], 0, "succeeded");
    let dry = check(&here, &["retry", "a", "--plan", "edited.yaml", "--dry-run", "--json"], 0, "retry_of");
    let expected =
        [("first", "kept"), ("second", "kept"), ("third", "kept"), ("beside", "again"), ("zero", "again")];
    assert_eq!(forecast(&dry), pairs(&expected));
    check(&here, &["retry", "a", "--plan", "edited.yaml"], 0, "succeeded");
    assert_eq!(done(&here), ["BESIDE", "beside", "first", "second", "third ann"]);
}

#[test]
fn a_run_stops_after_a_step_or_runs_only_one() {
    let here = folder("in_part", &[("flow.yaml", FLOW), ("ok", "")]);
    check(&here, &["run", "flow.yaml", "--until", "second", "--run-id", "u"], 3, "is paused");
    assert_eq!(done(&here), ["beside", "first", "second"]);
    check(&here, &["run", "flow.yaml", "--only", "third", "--inputs-from", "u"], 0, "succeeded");
    check(&here, &["resume", "u"], 0, "succeeded");
    assert_eq!(done(&here), ["beside", "first", "second", "third ann", "third ann"]);
    check(&here, &["run", "flow.yaml", "--until", "fith"], 2, "error[no_step]");
    check(&here, &["run", "flow.yaml", "--only", "third", "--inputs-from", "uu"], 2, "did you mean `u`?");
    std::fs::remove_file(here.join("ok")).expect("a file");
    check(&here, &["run", "flow.yaml", "--run-id", "failed"], 1, "failed");
    check(&here, &["run", "flow.yaml", "--only", "third", "--inputs-from", "failed"], 2, "error[no_result]");
}

#[test]
fn a_run_begins_at_the_given_time() {
    let here = folder("later", &[("flow.yaml", FLOW), ("ok", ""), ("script.yaml", "steps: {}")]);
    let jump = ["run", "flow.yaml", "--at", "+9h", "--script", "script.yaml", "--virtual-time", "--json"];
    let seen = check(&here, &jump, 0, "\"event\":\"timer_fired\"");
    assert!(seen.stdout.contains("\"event\":\"timer_set\""), "{seen}");
    check(&here, &["run", "flow.yaml", "--at", "soon"], 2, "15:30");
}

#[test]
fn canceling_several_runs_needs_confirmation() {
    let waits = "workflow: { id: waits, name: Waits }\nstages:\n  - { id: gate, type: gate, gate: { timeout: 1h } }\n";
    let here = folder("several", &[("waits.yaml", waits), ("flow.yaml", FLOW), ("ok", "")]);
    for run in ["one", "two"] {
        check(&here, &["run", "waits.yaml", "--run-id", run], 3, "is waiting at `gate` for a decision");
    }
    check(&here, &["run", "flow.yaml", "--run-id", "other"], 0, "succeeded");
    let dry = check(&here, &["cancel", "--workflow", "waits", "--dry-run"], 0, "this would cancel");
    assert_eq!(dry.stdout.lines().count(), 2, "{dry}");
    check(&here, &["cancel", "--workflow", "waits"], 2, "confirm with `--yes`");
    check(&here, &["show", "one"], 0, "waiting");
    check(&here, &["cancel", "--workflow", "waits", "--yes"], 0, "canceled: run one");
    check(&here, &["show", "two"], 0, "cancelled");
    check(&here, &["cancel", "one"], 2, "`one` is finished (cancelled)");
    check(&here, &["cancel"], 2, "<RUN>");
    check(&here, &["retry", "--workflow", "waits", "--dry-run"], 0, "retry of two");
}

#[test]
fn invalid_decisions_are_refused() {
    let gates = r#"
workflow: { id: gates, name: Gates }
stages:
  - { id: one, type: gate, gate: { timeout: 1h, approvers: [dana, eve] } }
  - { id: two, type: gate, gate: { timeout: 1h } }
"#;
    let here = folder("decisions", &[("gates.yaml", gates)]);
    check(&here, &["run", "gates.yaml", "--run-id", "g"], 3, "is waiting at `one`");
    check(&here, &["approve", "g"], 2, "name one of one, two");
    check(&here, &["approve", "g", "on"], 2, "did you mean `one`?");
    check(&here, &["approve", "g", "one", "--by", "mallory"], 2, "mallory is not an approver");
    check(&here, &["approve", "g", "one", "--by", "dana"], 0, "approved");
    check(&here, &["approve", "g", "one", "--by", "eve"], 2, "already decided by dana");
    check(&here, &["approve", "gg", "one"], 2, "did you mean `g`?");
    check(&here, &["retry", "g"], 2, "error[run_not_finished]");
    check(&here, &["approve", "g"], 0, "it has succeeded");
    for args in
        [&["reject", "g"][..], &["signal", "g", "x"], &["pause", "g"], &["cancel", "g"], &["resume", "g"]]
    {
        check(&here, args, 2, "error[run_finished]: run `g` is finished (success)");
    }
}

const KIT: &str = r#"
schema_version: "1.0"
workflow: { id: kit, name: Kit, version: "1.2.0" }
inputs: { verdict: { type: string, default: "" } }
steps:
  - { id: before, type: shell, run: "true" }
  - { id: review, type: gate, message: "Ship?", options: [approve, reject], on_reject: abort, verdict_input: verdict }
"#;

#[test]
fn a_workflow_runs_by_name_with_spec_kit_output() {
    let here = folder("by_name", &[(".specify/workflows/kit/workflow.yml", KIT), ("deep/er/x", "")]);
    let deep = here.join("deep/er");
    check(&deep, &["run", "kti"], 2, "did you mean `kit`?");
    check(&deep, &["run", "kit", "--run-id", "plain"], 3, "is waiting at `review`");
    let compat = ["run", "kit", "--run-id", "k", "--compat", "speckit"];
    let seen = check(&deep, &compat, 0, "Running workflow: Kit");
    assert!(seen.stdout.contains("Status: paused\nRun ID: k\n"), "{seen}");
    let json = check(&deep, &["resume", "k", "--compat", "speckit", "--json"], 0, "{\n").json();
    let expected = serde_json::json!({
        "run_id": "k", "workflow_id": "kit", "status": "paused", "current_step_id": "review", "current_step_index": 1,
        "gate": {"step_id": "review", "message": "Ship?", "options": ["approve", "reject"], "choice": null},
    });
    assert_eq!(json, expected);
    let rejected = ["resume", "k", "-p", "verdict=reject", "--compat", "speckit", "--json"];
    assert_eq!(check(&deep, &rejected, 1, "aborted").json()["gate"]["choice"], "reject");
    let over = check(&deep, &["resume", "k", "--compat", "speckit", "--json"], 1, "Error: ");
    assert_eq!(over.stdout, "");
    let registry = r#"{"workflows": {"kit": {"enabled": false}}}"#;
    std::fs::write(here.join(".specify/workflows/workflow-registry.json"), registry).expect("a file");
    check(&deep, &["run", "kit"], 2, "disabled");
}
