//! The same workflow in both programs, started and then resumed while it fails. Compared are the run folders that both write,
//! without times and the words of errors, and the trace that the steps left.

use super::decisions;
use super::dice::Dice;
use super::oracle::Oracle;
use super::report::{Disagreement, Report};
use super::shrink::shrink;
use super::workflow_trees::{Scene, scene, smaller, yaml};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kinds of steps that must have succeeded at least once.
pub const KINDS: &[&str] = &[
    "step do-while",
    "step fan-in",
    "step fan-out",
    "step if",
    "step shell",
    "step switch",
    "step while",
    "resume",
];

/// The program under test, and where it may leave things.
pub struct Workshop {
    pub windlass: PathBuf,
    pub scratch: PathBuf,
}

/// What one start or resume came to, in each program.
struct Phase {
    ours: Json,
    theirs: Json,
}

pub fn one(seed: u64, number: u64, workshop: &Workshop, oracle: &mut Oracle, report: &mut Report) {
    let scene = scene(&mut Dice::of(seed, number));
    report.workflows += 1;
    let phases = live(&scene, number, workshop, oracle);
    for phase in &phases {
        report.phases += 1;
        *report.ended.entry(word(&phase.theirs)).or_default() += 1;
    }
    match disagreement(&phases, scene.concurrent) {
        None => count(&phases, report),
        Some(_) => report.differ(number, || explain(&scene, number, workshop, oracle)),
    }
}

/// Executes one workflow and shows it, with the result of each phase in each program.
pub fn show(seed: u64, number: u64, workshop: &Workshop, oracle: &mut Oracle) -> String {
    let scene = scene(&mut Dice::of(seed, number));
    let mut text = format!("{}inputs: {}\n", yaml(&scene.workflow), scene.inputs);
    for phase in live(&scene, number, workshop, oracle) {
        let found = difference(&phase, scene.concurrent).unwrap_or("agrees".into());
        text += &format!("ours:   {}\ntheirs: {}\n  {found}\n", phase.ours, phase.theirs);
    }
    text
}

fn word(seen: &Json) -> String {
    seen["status"].as_str().unwrap_or("refused").to_owned()
}

/// Starts the workflow in both programs, and resumes it while both can go on.
fn live(scene: &Scene, number: u64, workshop: &Workshop, oracle: &mut Oracle) -> Vec<Phase> {
    let folder = workshop.scratch.join(number.to_string());
    // It may lie there from a larger form of the same workflow.
    let _ = std::fs::remove_dir_all(&folder);
    let [ours, theirs] = ["ours", "theirs"].map(|side| folder.join(side));
    for side in [&ours, &theirs] {
        std::fs::create_dir_all(side).expect("a folder");
        std::fs::write(side.join("workflow.yml"), yaml(&scene.workflow)).expect("a file");
    }
    let mut phases = Vec::new();
    let mut live = |resume: bool, inputs: &Json| {
        let request = json!({"ask": "workflow", "folder": theirs, "resume": resume, "inputs": inputs});
        let mut phase =
            Phase { ours: windlass(workshop, &ours, resume, inputs), theirs: oracle.ask(&request) };
        phase.ours["trace"] = trace(&ours, scene.concurrent);
        phase.theirs["trace"] = trace(&theirs, scene.concurrent);
        let more = word(&phase.theirs) == "failed" && difference(&phase, scene.concurrent).is_none();
        phases.push(phase);
        more
    };
    let mut more = live(false, &scene.inputs);
    for resume in &scene.resumes {
        if !more {
            break;
        }
        for file in &resume.files {
            [&ours, &theirs].iter().for_each(|side| std::fs::write(side.join(file), "").expect("a file"));
        }
        more = live(true, &resume.inputs);
    }
    // What the other runs need is more room.
    let _ = std::fs::remove_dir_all(&folder);
    phases
}

fn windlass(workshop: &Workshop, folder: &Path, resume: bool, inputs: &Json) -> Json {
    let mut run = Command::new(&workshop.windlass);
    run.current_dir(folder)
        .env("WINDLASS_DATA", folder.join(".data"))
        .env("SPECKIT_WORKFLOW_RUN_ID", "run")
        .stdin(std::process::Stdio::null())
        .args(["specify", "workflow"]);
    match resume {
        false => run.args(["run", "workflow.yml", "--json"]),
        true => run.args(["resume", "run", "--json"]),
    };
    for (name, value) in inputs.as_object().into_iter().flatten() {
        run.arg("-i").arg(format!("{name}={}", value.as_str().unwrap_or_default()));
    }
    let output = run.output().expect("windlass starts");
    let Ok(payload) = serde_json::from_slice::<Json>(&output.stdout) else {
        return json!({"refused": String::from_utf8_lossy(&output.stderr)});
    };
    let file = |name: &str| {
        let path = folder.join(".specify/workflows/runs/run").join(name);
        std::fs::read_to_string(path).expect("windlass writes the run folder")
    };
    let read = |text: &str| serde_json::from_str::<Json>(text).expect("windlass writes JSON");
    let state = read(&file("state.json"));
    json!({
        "status": payload["status"],
        "exit": output.status.code(),
        "current_step": payload["current_step_id"],
        "current_index": payload["current_step_index"],
        "error": payload.get("error"),
        "inputs": state["inputs"],
        "steps": state["step_results"],
        "execution": state["execution"],
        "log": file("log.jsonl").lines().map(read).collect::<Vec<_>>(),
        "definition": file("workflow.yml"),
    })
}

fn trace(folder: &Path, sorted: bool) -> Json {
    let text = std::fs::read_to_string(folder.join("trace")).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().collect();
    if sorted {
        lines.sort_unstable();
    }
    json!(lines)
}

fn disagreement(phases: &[Phase], concurrent: bool) -> Option<(usize, String)> {
    let differs = |phase| difference(phase, concurrent);
    phases.iter().enumerate().find_map(|(number, phase)| Some((number, differs(phase)?)))
}

fn ids(side: &Json) -> Vec<String> {
    side["steps"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
}

/// What the two programs see differently, one line each.
fn difference(phase: &Phase, concurrent: bool) -> Option<String> {
    let (ours, theirs) = (&phase.ours, &phase.theirs);
    let mut found = Vec::new();
    for key in ["status", "current_step", "current_index", "inputs", "execution", "definition", "trace"] {
        compare(key, &ours[key], &theirs[key], &mut found);
    }
    let has_error = |side: &Json| json!(!side["error"].is_null());
    compare("has_error", &has_error(ours), &has_error(theirs), &mut found);
    // Items that run at the same time end in any order.
    if !concurrent {
        compare("log", &ours["log"], &theirs["log"], &mut found);
        compare("the order of steps", &json!(ids(ours)), &json!(ids(theirs)), &mut found);
    }
    for id in ids(ours).into_iter().chain(ids(theirs)).collect::<std::collections::BTreeSet<_>>() {
        match (ours["steps"].get(&id), theirs["steps"].get(&id)) {
            (Some(ours), Some(theirs)) => compare(&format!("steps.{id}"), ours, theirs, &mut found),
            (ours, _) => found.push(format!(
                "steps.{id} is recorded only by {}",
                if ours.is_some() { "us" } else { "them" }
            )),
        }
    }
    let exit = if word(theirs) == "completed" || word(theirs) == "paused" { 0 } else { 1 };
    if ours.get("exit").is_some_and(|code| code != exit) {
        found.push(format!("exit status {} where {exit} is right", ours["exit"]));
    }
    (!found.is_empty()).then(|| found.join("\n  "))
}

fn compare(place: &str, ours: &Json, theirs: &Json, found: &mut Vec<String>) {
    if !same(ours, theirs) {
        found.push(format!("{place}\n    ours:   {ours}\n    theirs: {theirs}"));
    }
}

/// Equal, with the oracle's marked floats; an integer is no float. Members stand in the same order, times are left out, and an
/// error is there or not.
fn same(ours: &Json, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Json::Array(ours), Json::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Json::Number(number), Json::Object(map)) => {
            let float = map.get("~float").and_then(Json::as_str).and_then(|text| text.parse::<f64>().ok());
            number.is_f64() && number.as_f64().map(f64::to_bits) == float.map(f64::to_bits)
        }
        (Json::Null, Json::Object(theirs)) => decisions::is_no_json(theirs),
        (Json::Object(ours), Json::Object(theirs)) => {
            let alike = |(ours, theirs): ((&String, &Json), (&String, &Json))| {
                ours.0 == theirs.0
                    && match ours.0.as_str() {
                        "timestamp" => true,
                        "error" => ours.1.is_null() == theirs.1.is_null(),
                        _ => same(ours.1, theirs.1),
                    }
            };
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(alike)
        }
        (ours, theirs) => ours == theirs,
    }
}

/// Counts the kinds of steps that completed, and runs that completed after they had failed.
fn count(phases: &[Phase], report: &mut Report) {
    let Some(last) = phases.last() else { return };
    for step in last.theirs["steps"].as_object().into_iter().flat_map(|map| map.values()) {
        if step["status"] == "completed" {
            report.count(&format!("step {}", step["type"].as_str().unwrap_or_default()));
        }
    }
    if phases.len() > 1 && word(&last.theirs) == "completed" {
        report.count("resume");
    }
}

fn explain(scene: &Scene, number: u64, workshop: &Workshop, oracle: &mut Oracle) -> Disagreement {
    let with = |workflow: &Json| Scene { workflow: workflow.clone(), ..scene.clone() };
    let started = |phases: &[Phase]| phases.iter().all(|phase| phase.ours.get("refused").is_none());
    let begins = started(&live(scene, number, workshop, oracle));
    let mut differs = |workflow: &Json| {
        let phases = live(&with(workflow), number, workshop, oracle);
        // A form that is only refused shows something else.
        let refused = |phase: &Phase| phase.theirs.get("refused").is_some();
        let alike = started(&phases) == begins && !phases.iter().any(refused);
        alike && disagreement(&phases, scene.concurrent).is_some()
    };
    let workflow = match differs(&scene.workflow) {
        true => shrink(scene.workflow.clone(), 600, smaller, |some| some.iter().position(&mut differs)),
        false => scene.workflow.clone(),
    };
    let phases = live(&with(&workflow), number, workshop, oracle);
    let (phase, how) =
        disagreement(&phases, scene.concurrent).unwrap_or((0, "it agrees when tried again".into()));
    let seen = phases.get(phase).map_or(Json::Null, |phase| {
        json!([phase.ours["error"], phase.theirs["error"], phase.ours["refused"], phase.theirs["refused"]])
    });
    let files: Vec<_> =
        scene.resumes.iter().take(phase).map(|resume| json!([resume.files, resume.inputs])).collect();
    let steps = yaml(&json!({"steps": workflow["steps"]}));
    Disagreement {
        what: format!("workflow with inputs {}, resumed {}\n{steps}", scene.inputs, json!(files)),
        how: format!("{how}\n  said: {seen}"),
    }
}
