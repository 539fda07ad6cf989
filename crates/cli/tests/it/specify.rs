//! `windlass specify workflow`: compares arguments, exit codes, JSON and run folders with those of Spec Kit 1.2.3 for the same
//! workflows. `specify/record.py` records them. Times are removed, and each program has its own error messages.

use crate::support::{Seen, folder, windlass_in};
use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, Stdio};

fn call(project: &Path, args: &[&str]) -> Seen {
    let args: Vec<&str> = ["specify", "workflow"].iter().chain(args).copied().collect();
    let path = format!("{}/bin:/usr/bin:/bin", project.display());
    let call = windlass_in(project, &args).env("PATH", &path).env("USER", "ann");
    call.env("WINDLASS_DATA", &project.join("data").display().to_string())
        .env("SPECKIT_WORKFLOW_RUN_ID", "run")
        .see()
}

/// A project with the files of a case.
fn project(name: &str) -> std::path::PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/specify").join(name);
    let project = folder(&format!("specify_{name}"), &[]);
    let copied = Command::new("cp").arg("-r").arg(source.join(".")).arg(&project).status();
    assert!(copied.expect("cp starts").success());
    std::fs::create_dir_all(project.join(".specify")).expect("a writable folder");
    if project.join("bin").exists() {
        let made = Command::new("chmod").args(["-R", "+x", "bin"]).current_dir(&project).status();
        assert!(made.expect("chmod starts").success());
    }
    project.canonicalize().expect("it exists")
}

/// JSON in a comparable form, with members in their order.
fn comparable(text: &str) -> String {
    let lines = text.trim_start().starts_with("{\"event\"");
    let documents: Vec<&str> = if lines { text.lines().collect() } else { vec![text] };
    let shown = documents.into_iter().filter(|text| !text.trim().is_empty()).map(|text| {
        let mut json: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        blur(&mut json);
        format!("{json:#}\n")
    });
    shown.collect()
}

fn blur(json: &mut Json) {
    match json {
        Json::Object(members) => members.iter_mut().for_each(|(name, member)| match name.as_str() {
            "timestamp" | "created_at" | "updated_at" => *member = "TIME".into(),
            "error" if member.is_string() => *member = "ERROR".into(),
            _ => blur(member),
        }),
        Json::Array(items) => items.iter_mut().for_each(blur),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn check(name: &str) {
    let project = project(name);
    let whole = |text: &str| text.replace(&project.display().to_string(), "PROJECT");
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/specify").join(format!("{name}.json"));
    let recorded: Vec<Json> =
        serde_json::from_slice(&std::fs::read(recorded).expect("recorded")).expect("JSON");
    for (number, phase) in recorded.iter().enumerate() {
        for file in phase["files"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            std::fs::write(project.join(file), "").expect("a file");
        }
        let args: Vec<&str> =
            phase["args"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let same = |what: &str, ours: &str, theirs: &Json| {
            let theirs = theirs.as_str().unwrap_or_default();
            assert_eq!(comparable(&whole(ours)), comparable(theirs), "{name}, phase {number}: {what}");
        };
        let seen = call(&project, &[&args[..], &["--json"]].concat());
        assert_eq!(phase["exit"], seen.status, "{name}, phase {number}\n{seen}");
        same("payload", &seen.stdout, &phase["stdout"]);
        same("status", &call(&project, &["status", "run", "--json"]).stdout, &phase["status"]);
        same("all runs", &call(&project, &["status", "--json"]).stdout, &phase["runs"]);
        let run = project.join(".specify/workflows/runs/run");
        let theirs = phase["folder"].as_object().expect("files");
        for (file, text) in theirs {
            let ours = std::fs::read_to_string(run.join(file)).expect("the same files");
            match file.as_str() {
                "workflow.yml" => assert_eq!(Some(&*ours), text.as_str(), "{name}"),
                file => same(file, &ours, text),
            }
        }
        let count = std::fs::read_dir(&run).expect("the run folder").count();
        assert_eq!(count, theirs.len(), "{name}: nothing else is in the run folder");
    }
}

#[test]
fn a_completed_run_matches_spec_kit() {
    check("completed");
}

#[test]
fn a_resumed_run_matches_spec_kit() {
    check("failed");
}

#[test]
fn a_run_pauses_at_gates_as_in_spec_kit() {
    check("paused");
}

#[test]
fn a_rejected_run_is_aborted_as_in_spec_kit() {
    check("aborted");
}

#[test]
fn an_expression_without_a_value_fails_the_run_as_in_spec_kit() {
    check("raised");
}

#[test]
fn called_workflows_are_in_the_folder_of_the_calling_run() {
    check("called");
}

#[test]
fn agents_are_recorded_as_in_spec_kit() {
    check("agents");
}

const HELLO: &str = r#"
schema_version: "1.0"
workflow: { id: hello, name: "Hello: é", version: "1.2.0" }
inputs: { verdict: { type: string, default: "" } }
steps:
  - { id: greet, type: shell, run: "echo hello" }
  - { id: review, type: gate, message: "Ship é?", verdict_input: verdict }
"#;

/// The text output without times.
fn seen(project: &Path, args: &[&str]) -> String {
    let text = call(project, args).to_string();
    let (times, last) = text.rsplit_once("+00:00").unwrap_or(("", &text));
    let timed = times.split("+00:00").filter(|part| !part.is_empty()).map(|part| {
        let start = part.rfind([' ', '"']).map_or(0, |end| end + 1);
        format!("{}TIME", &part[..start])
    });
    timed.chain([last.to_owned()]).collect()
}

#[test]
fn output_matches_spec_kit() {
    let project = folder("specify_words", &[("hello.yml", HELLO)]);
    let commands: [&[&str]; 12] = [
        &["status"],
        &["status", "--json"],
        &["status", "run"],
        &["run", "hello.yml"],
        &["status"],
        &["status", "run"],
        &["resume", "run", "--json"],
        &["resume", "run", "-i", "verdict=approve"],
        &["status", "run", "--json"],
        &["status", "--json"],
        &["resume", "run"],
        &["resume", "missing", "--json"],
    ];
    let story: String = commands.iter().map(|args| seen(&project, args) + "\n").collect();
    insta::assert_snapshot!("specify_words", story);
}

#[test]
fn mistakes_are_reported_with_the_exit_codes_of_spec_kit() {
    let bad = "schema_version: \"1.0\"\nworkflow: {id: bad, name: Bad}\nsteps: []\n";
    let files = [("hello.yml", HELLO), ("bad.yml", bad)];
    let project = folder("specify_mistakes", &files);
    let commands: [&[&str]; 8] = [
        &[],
        &["run"],
        &["run", "hello.yml", "--wat"],
        &["add", "x", "--dev"],
        &["run", "hello.yml", "-i", "verdict"],
        &["run", "bad.yml", "--json"],
        &["run", "absent", "--json"],
        &["run", "hello.yml", "--json", "-i", "other=1"],
    ];
    let story: String = commands.iter().map(|args| seen(&project, args) + "\n").collect();
    insta::assert_snapshot!("specify_mistakes", story);
}

const SLOW: &str = r#"
schema_version: "1.0"
workflow: { id: slow, name: Slow, version: "1.0.0" }
steps:
  - { id: first, type: shell, run: "echo first" }
  - { id: wait, type: shell, run: "test -e ok || { touch waiting; exec sleep 60; }" }
  - { id: last, type: shell, run: "echo last" }
"#;

#[test]
fn the_run_folder_follows_the_run_and_is_updated_after_a_crash() {
    let project = folder("specify_crash", &[("slow.yml", SLOW)]);
    let read = |name: &str| {
        let text = std::fs::read_to_string(project.join(".specify/workflows/runs/run").join(name));
        text.unwrap_or_default()
    };
    let mut running = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(["specify", "workflow", "run", "slow.yml", "--json"])
        .current_dir(&project)
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("SPECKIT_WORKFLOW_RUN_ID", "run")])
        .env("WINDLASS_DATA", project.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program is built");
    // Windlass writes the folder while the step waits.
    let below = [".specify", ".specify/workflows", ".specify/workflows/runs", ".specify/workflows/runs/run"];
    let folders: Vec<std::path::PathBuf> = below.iter().map(|name| project.join(name)).collect();
    let folders: Vec<&Path> =
        std::iter::once(&*project).chain(folders.iter().map(std::path::PathBuf::as_path)).collect();
    let state = || serde_json::from_str::<Json>(&read("state.json"));
    let at_second = || {
        let logged = read("log.jsonl").contains("\"step_id\": \"wait\"");
        (logged && state().is_ok_and(|state| state["current_step_id"] == "wait")).then_some(())
    };
    windlass_tools::watch::until(&folders, at_second).expect("the run reaches its second step");
    let state = state().expect("JSON");
    assert_eq!((&state["status"], &state["step_results"]["wait"]), (&"running".into(), &Json::Null));
    assert_eq!(state["step_results"]["first"]["output"]["stdout"], "first\n");
    running.kill().and_then(|()| running.wait()).expect("our own process");
    std::fs::remove_dir_all(project.join(".specify")).expect("a writable folder");
    std::fs::write(project.join("ok"), "").expect("a file");
    let resumed = call(&project, &["resume", "run", "--json"]);
    assert_eq!(resumed.status, 0, "{resumed}");
    let events: Vec<String> = read("log.jsonl")
        .lines()
        .map(|line| {
            let line: Json = serde_json::from_str(line).expect("JSON");
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            format!("{} {}{}", text("event"), text("step_id"), text("status"))
        })
        .collect();
    let expected = [
        "step_started first",
        "step_completed firstcompleted",
        "step_started wait",
        "workflow_interrupted ",
        "step_started wait",
        "step_completed waitcompleted",
        "step_started last",
        "step_completed lastcompleted",
        "workflow_finished completed",
    ];
    assert_eq!(events, expected);
    let state: Json = serde_json::from_str(&read("state.json")).expect("JSON");
    assert_eq!(state["status"], "completed");
}
