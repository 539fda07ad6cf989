//! One life of a workflow: it is run, and perhaps decided at, cancelled, killed or resumed; after each of these it is looked at what was
//! printed, what was called, and what is kept.

use super::super::Program;
use super::super::program::json;
use super::{fits, list, tools, yaml};
use serde_json::{Value as Json, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

const RUN: &str = "r";

/// What one command of a life printed, and how it ended.
struct Seen {
    lines: Vec<Json>,
    status: Option<i32>,
    stderr: String,
}

pub fn live(program: &Program, name: &str, file: &Path, expected: &Json) -> Result<(), String> {
    let folder = program.folder(&format!("dcc {name}"));
    let workflow = yaml(file);
    if let Some(codes) = expected.get("findings") {
        found(program, &folder, file, codes)?;
    }
    let file = file.to_str().expect("text");
    std::fs::write(folder.join("inputs.json"), expected["inputs"].to_string()).expect("inputs");
    for phase in std::iter::once(expected).chain(list(&expected["then"])) {
        let words = match phase.get("do") {
            Some(_) => words_of(&phase["do"], file),
            None => vec!["run", file, "--run-id", RUN, "--input-file", "inputs.json"],
        };
        let told = words[1..].iter().filter(|word| **word != file).copied().collect::<Vec<_>>().join(" ");
        let lived = live_phase(program, &folder, &workflow, &words, phase);
        lived.map_err(|how| format!("{} {told}: {how}", words[0]))?;
    }
    Ok(())
}

/// A command; `FILE` is the file of the case.
fn words_of<'a>(words: &'a Json, file: &'a str) -> Vec<&'a str> {
    let words = list(words).iter().filter_map(Json::as_str);
    words.map(|word| if word == "FILE" { file } else { word }).collect()
}

/// The codes of all that is found in a file, and whether it is valid.
fn found(program: &Program, folder: &Path, file: &Path, codes: &Json) -> Result<(), String> {
    let output = program.run(folder, &["validate", "--json", file.to_str().expect("text")]);
    let verdict = json(&output)?;
    let seen: Vec<&Json> = list(&verdict["diagnostics"]).iter().map(|found| &found["code"]).collect();
    fits(&json!(seen), codes, "findings")
}

/// One command, and what is expected of it.
fn live_phase(
    program: &Program,
    folder: &Path,
    workflow: &Json,
    words: &[&str],
    expected: &Json,
) -> Result<(), String> {
    // A command that says itself how it prints is given as it is.
    let drives = matches!(words[0], "run" | "resume" | "retry") && !words.contains(&"--json");
    let mut args = words.to_vec();
    if drives {
        let script = tools::script(workflow, list(&expected["calls"]), &expected["script"]);
        std::fs::write(folder.join("script.json"), script.to_string()).expect("a script");
        args.extend(["--script", "script.json", "--json"]);
        if expected["real_time"] != true {
            args.push("--virtual-time");
        }
    }
    let seen = see(program, folder, &args, &expected["until"])?;
    let exit = if drives { exit_of(&expected["result"]["status"]) } else { json!(0) };
    check(&seen, expected, &exit).map_err(|how| format!("{how}\n{}", seen.stderr))?;
    for (hash, content) in expected["artefacts"].as_object().into_iter().flatten() {
        let kept = std::fs::read_to_string(folder.join(".windlass-data/artefacts").join(hash));
        fits(&json!(kept.unwrap_or_else(|error| error.to_string())), content, &format!("artefact {hash}"))?;
    }
    match seen.lines.last().filter(|last| drives && last["type"] == "result") {
        Some(result) => kept(program, folder, result),
        None => Ok(()),
    }
}

/// Runs a command to its end. With `until` something happens as soon as it has printed so many events of a kind: it is killed, or another command
/// is given.
fn see(program: &Program, folder: &Path, args: &[&str], until: &Json) -> Result<Seen, String> {
    let mut command = program.command(folder);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut left: Vec<Json> = list(&until["events"]).to_vec();
    let (mut lines, mut text) = (Vec::new(), String::new());
    let stdout = child.stdout.take().expect("it is piped");
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|error| error.to_string())?;
        text.push_str(&line);
        let Ok(event) = serde_json::from_str::<Json>(&line) else { continue };
        let before = left.len();
        if let Some(found) = left.iter().position(|wanted| fits(&event, wanted, "").is_ok()) {
            left.remove(found);
        }
        lines.push(event);
        if before > 0 && left.is_empty() {
            match &until["do"] {
                Json::String(word) if word == "kill" => child.kill().map_err(|error| error.to_string())?,
                words => {
                    let words = words_of(words, "");
                    let output = program.run(folder, &words);
                    if !output.status.success() {
                        return Err(format!("`{words:?}`: {}", String::from_utf8_lossy(&output.stderr)));
                    }
                }
            }
        }
    }
    if let Ok(whole) = serde_json::from_str(&text) {
        lines = vec![whole];
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Seen { lines, status: ExitStatus::code(&output.status), stderr })
}

fn check(seen: &Seen, expected: &Json, exit: &Json) -> Result<(), String> {
    if let Some(calls) = expected.get("calls") {
        exactly(&Json::Array(calls_of(&seen.lines)), calls, "calls")?;
    }
    if let Some(result) = expected.get("result") {
        let none = Json::Null;
        fits(seen.lines.last().unwrap_or(&none), result, "result")?;
    }
    let mut lines = seen.lines.iter();
    for event in list(&expected["events"]) {
        if !lines.any(|line| fits(line, event, "").is_ok()) {
            return Err(format!("nothing like this happened, or not in this order: {event}"));
        }
    }
    if let Some(text) = expected["stderr"].as_str()
        && !seen.stderr.contains(text)
    {
        return Err(format!("stderr has no `{text}`"));
    }
    if let Some(seconds) = expected.get("seconds") {
        fits(&json!(seconds_of(&seen.lines)), seconds, "seconds")?;
    }
    fits(&json!(seen.status), expected.get("exit").unwrap_or(exit), "exit status")
}

/// The exit status that belongs to a status of a run.
fn exit_of(status: &Json) -> Json {
    match status.as_str() {
        Some("completed") | None => json!(0),
        Some("failed") => json!(1),
        Some("cancelled") => json!(4),
        Some(_) => json!(3),
    }
}

fn exactly(seen: &Json, expected: &Json, place: &str) -> Result<(), String> {
    fits(seen, expected, place)
        .and_then(|()| fits(expected, seen, place))
        .map_err(|how| format!("{how}\n  all expected: {expected}\n  all seen:     {seen}"))
}

/// Every attempt that was begun: which step in which iterations, and with which arguments.
fn calls_of(lines: &[Json]) -> Vec<Json> {
    let mut asked = serde_json::Map::new();
    let mut calls = Vec::new();
    for line in lines {
        let path = line["path"].as_str().unwrap_or_default();
        if let Some(tool) = line["assignment"]["work"].get("tool") {
            asked.insert(path.to_owned(), tool["args"].get("plain").cloned().unwrap_or_default());
        }
        if line["event"] == "scheduled" {
            let numbers: String = path
                .split('[')
                .skip(1)
                .filter_map(|part| Some(format!("[{}]", part.split_once(']')?.0)))
                .collect();
            let address = format!("{}{numbers}", line["step"].as_str().unwrap_or_default());
            calls.push(json!({address: asked.get(path).cloned().unwrap_or_default()}));
        }
    }
    calls
}

/// The time from the first event to the last.
fn seconds_of(lines: &[Json]) -> Option<f64> {
    let mut instants = lines.iter().filter_map(|line| line["at"].as_str()?.parse::<jiff::Timestamp>().ok());
    let first = instants.next()?;
    let last = instants.last().unwrap_or(first);
    Some((last.as_microsecond() - first.as_microsecond()) as f64 / 1e6)
}

/// What is kept of a run is what it printed last.
fn kept(program: &Program, folder: &Path, result: &Json) -> Result<(), String> {
    let shown = json(&program.run(folder, &["show", RUN, "--json"]))?;
    exactly(&shown, result, "kept")
}
