//! DagNats: `expected.json` says of every file whether it is valid, which rule it breaks, and in words what its runs do; `runs.json`
//! says the same for programs, and `ours.json` adds the files and runs that those do not show.

use super::case::decided;
use super::program::json;
use super::scenario::{self, read};
use super::{Case, Checked, Program, Source};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};

const DIALECT: &str = "dagnats";

/// What the program that the files come from does otherwise, and by which decision.
const DECIDED: [(&str, &str); 9] = [
    ("v06_on_failure_target_with_parent.json: valid", "D15"),
    ("v05_on_failure_recovers.json: nothing to take over", "D15"),
    ("v07_saga.json: undone, the last first", "D15"),
    ("v07_saga.json: one cannot be undone", "D31"),
    ("v08_agent_loop.json: goes round until it is done", "D17"),
    ("v11_groups_limits_schemas.json: the output breaks its schema", "D18"),
    ("v14_times.json: the run is out of time", "D29"),
    ("v15_retry_edges.json: valid", "D13"),
    ("v01_fan_out_fan_in.json: valid", "D13"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/dagnats/cases")
}

pub fn sources() -> Vec<Source> {
    vec![Source::new(DIALECT, "", cases)]
}

fn cases() -> Vec<Case> {
    let [expected, runs, ours] = read(&folder(), ["expected.json", "runs.json", "ours.json"]);
    let mut cases = Vec::new();
    for (file, case) in [&expected, &ours].into_iter().flat_map(|cases| cases.as_object().expect("files")) {
        let name = format!("{file}: {}", if case["valid"] == true { "valid" } else { "refused" });
        let (of, expected) = (file.clone(), case.clone());
        cases.push(Case::new(DIALECT, name, move |program, id| verdict(program, &of, id, &expected)));
        let scenarios =
            runs.get(file).into_iter().chain(case.get("runs")).filter_map(Json::as_array).flatten();
        for scenario in scenarios {
            let name = format!("{file}: {}", scenario["name"].as_str().expect("a name"));
            let (file, scenario) = (file.clone(), scenario.clone());
            let check = move |program: &Program, id: &str| {
                scenario::execute(program, &folder(), &file, id, &scenario)
            };
            cases.push(Case::new(DIALECT, name, check));
        }
    }
    cases.push(Case::new(DIALECT, "v11_groups_limits_schemas.json: a second run", second_waits));
    cases.push(Case::new(DIALECT, "v09_sub_workflow_parent.json: cancelled", cancel_goes_down));
    decided(cases, &DECIDED)
}

/// Whether the file may be run, and by which rule not; nothing comes of one that may not.
fn verdict(program: &Program, file: &str, id: &str, case: &Json) -> Checked {
    let output = program.run(&folder(), &["validate", "--json", file]);
    let said = json(&output)?;
    let exit = if case["valid"] == true { 0 } else { 1 };
    if said["valid"] != case["valid"] || output.status.code() != Some(exit) {
        return Err(format!("exit status {:?}: {said:#}", output.status.code()));
    }
    let found = said["diagnostics"].as_array().cloned().unwrap_or_default();
    for severity in ["error", "warning", "hint"] {
        let Some(codes) = case.get(severity) else { continue };
        let seen: Json =
            found.iter().filter(|one| one["severity"] == severity).map(|one| one["code"].clone()).collect();
        if seen != *codes {
            return Err(format!("expected {severity} {codes}: {found:#?}"));
        }
    }
    if case["valid"] == true {
        return Ok(());
    }
    let mut errors = found.iter().filter(|one| one["severity"] == "error");
    if !errors.all(|one| one["rule"] == case["rule"]) {
        return Err(format!("it breaks other rules than {}: {found:#?}", case["rule"]));
    }
    let scratch = program.folder(id);
    std::fs::copy(folder().join(file), scratch.join(file)).expect("a folder of our own");
    let refused = program.run(&scratch, &["run", file, "--json"]);
    let seen =
        json!([refused.status.code(), json(&refused)?["type"], scratch.join(".windlass-data").exists()]);
    if seen == json!([2, "refused", false]) { Ok(()) } else { Err(format!("seen {seen}")) }
}

/// Tasks that the test ends: each waits until its pipe is written to.
const HELD: &str =
    "command = [\"sh\", \"-c\", \"cat >/dev/null; cat held-${WINDLASS_OPERATION%%:*}; echo 1\"]\n";

fn show(program: &Program, folder: &Path, run: &str) -> Result<Json, String> {
    json(&program.run(folder, &["show", run, "--json"]))
}

fn pipe(folder: &Path, run: &str) {
    let made = std::process::Command::new("mkfifo").arg(folder.join(format!("held-{run}"))).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
}

/// The second run of a workflow that runs once at a time begins when the first has ended, by itself.
fn second_waits(program: &Program, id: &str) -> Checked {
    let folder = program.folder(id);
    let file = "v14_times.json";
    let text = std::fs::read_to_string(self::folder().join(file)).expect("a case");
    let limited =
        text.replace("\"timeout\": \"10m\",", "\"timeout\": \"10m\", \"concurrency\": {\"max_runs\": 1},");
    scenario::write(&folder, file, &limited);
    let toml = format!("[tasks.\"boat.row\"]\n{HELD}[tasks.\"boat.dock\"]\ncommand = [\"cat\"]\n");
    scenario::write(&folder, "windlass.toml", &toml);
    for run in ["first", "second"] {
        pipe(&folder, run);
        program.run(&folder, &["run", file, "--detach", "--run-id", run]);
    }
    let before = [show(program, &folder, "first")?, show(program, &folder, "second")?];
    let before = before.map(|shown| shown["dialect_status"].clone());
    // Opening waits for the reader, which reads until the pipe is closed.
    for run in ["first", "second"] {
        drop(std::fs::OpenOptions::new().write(true).open(folder.join(format!("held-{run}"))));
    }
    let waited = program.run(&folder, &["wait", "first", "second"]);
    let after = [show(program, &folder, "first")?, show(program, &folder, "second")?];
    let after = after.map(|shown| shown["dialect_status"].clone());
    let seen = json!([before, waited.status.code(), after]);
    match seen == json!([["running", "pending"], 0, ["completed", "completed"]]) {
        true => Ok(()),
        false => Err(format!("seen {seen}")),
    }
}

/// Who cancels a run cancels what it waits for, and not what it has only started.
fn cancel_goes_down(program: &Program, id: &str) -> Checked {
    let folder = program.folder(id);
    for file in ["v09_sub_workflow_parent.json", "v10_sub_workflow_child.json", "parcel-mail.json"] {
        std::fs::copy(self::folder().join(file), folder.join(file)).expect("a folder of our own");
    }
    let toml = "[tasks.\"parcel.sort\"]\ncommand = [\"cat\"]\n[tasks.\"parcel.close\"]\ncommand = [\"cat\"]\n\
        [tasks.\"parcel.sign\"]\ncommand = [\"cat\"]\n[tasks.\"parcel.photo\"]\ncommand = [\"cat\"]\n\
        [tasks.\"parcel.drive\"]\ncommand = [\"sh\", \"-c\", \"echo >drives; exec sleep 600\"]\n\
        [tasks.\"parcel.mail\"]\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo >mails; cat held; echo 1\"]\n";
    scenario::write(&folder, "windlass.toml", toml);
    for name in ["drives", "mails", "held"] {
        let made = std::process::Command::new("mkfifo").arg(folder.join(name)).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    }
    program.run(&folder, &["run", "v09_sub_workflow_parent.json", "--detach", "--run-id", "day"]);
    // Both children are at work once they have written.
    for name in ["drives", "mails"] {
        std::fs::read(folder.join(name)).map_err(|error| error.to_string())?;
    }
    let before = show(program, &folder, "day")?;
    let child = |step: &str| {
        let id = &before["steps"][step];
        id["child_run_id"].as_str().or(id["output"]["child_run_id"].as_str()).unwrap_or_default().to_owned()
    };
    let (deliver, notify) = (child("deliver"), child("notify"));
    let cancelled = program.run(&folder, &["cancel", "day"]);
    program.run(&folder, &["wait", "day", &deliver]);
    drop(std::fs::OpenOptions::new().write(true).open(folder.join("held")));
    program.run(&folder, &["wait", &notify]);
    let statuses = ["day", deliver.as_str(), notify.as_str()]
        .map(|run| show(program, &folder, run).map(|shown| shown["dialect_status"].clone()));
    let seen = json!([
        cancelled.status.code(),
        before["steps"]["deliver"]["dialect_status"],
        before["steps"]["notify"]["dialect_status"],
        statuses
    ]);
    let expected =
        json!([0, "running", "completed", [{"Ok": "cancelled"}, {"Ok": "cancelled"}, {"Ok": "completed"}]]);
    if seen == expected { Ok(()) } else { Err(format!("seen {seen}: {before:#}")) }
}
