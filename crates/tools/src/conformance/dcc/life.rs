//! One life of a workflow: it is run, and perhaps decided at, cancelled, killed or resumed; after each of these it is looked at what was
//! printed, what was called, and at last what is kept.

use super::super::Program;
use super::super::program::json;
use super::super::scenario::plain;
use super::{fires, fits, list, tools, yaml};
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

struct Life<'a> {
    program: &'a Program,
    folder: PathBuf,
    /// The file of the case, as a command is given it.
    file: &'a str,
    workflow: Json,
    /// What was printed last of a run.
    result: Option<Json>,
}

/// What one command printed, and how it ended.
struct Seen {
    lines: Vec<Json>,
    status: Option<i32>,
    stderr: String,
}

pub fn live(program: &Program, id: &str, file: &Path, expected: &Json) -> Result<(), String> {
    let folder = program.folder(id);
    std::fs::write(folder.join("inputs.json"), expected["inputs"].to_string()).expect("inputs");
    let (workflow, file) = (yaml(file), file.to_str().expect("text"));
    if let Some(expected) = expected.get("fires") {
        return fires::fire(program, &folder, file, expected);
    }
    let mut life = Life { program, folder, file, workflow, result: None };
    if let Some(codes) = expected.get("findings") {
        life.find(codes)?;
    }
    for phase in std::iter::once(expected).chain(list(&expected["then"])) {
        let words = life.words(phase.get("do"));
        let told = words.iter().filter(|word| **word != file).copied().collect::<Vec<_>>().join(" ");
        life.pass(&words, phase).map_err(|how| format!("{told}: {how}"))?;
    }
    life.look_back()
}

impl<'a> Life<'a> {
    /// A command, in which `FILE` is the file of the case. Without one the case is run.
    fn words<'w>(&self, words: Option<&'w Json>) -> Vec<&'w str>
    where
        'a: 'w,
    {
        match words {
            Some(words) => {
                let words = list(words).iter().filter_map(Json::as_str);
                words.map(|word| if word == "FILE" { self.file } else { word }).collect()
            }
            None => vec!["run", self.file, "--run-id", "r", "--input-file", "inputs.json"],
        }
    }

    /// The codes of all that is found in the file.
    fn find(&self, codes: &Json) -> Result<(), String> {
        let verdict = json(&self.program.run(&self.folder, &["validate", "--json", self.file]))?;
        let seen: Vec<&Json> = list(&verdict["diagnostics"]).iter().map(|found| &found["code"]).collect();
        fits(&json!(seen), codes, "findings")
    }

    /// One command, and what is expected of it.
    fn pass(&mut self, words: &[&str], expected: &Json) -> Result<(), String> {
        // A command that says itself how it prints is given as it is.
        let drives = matches!(words[0], "run" | "resume" | "retry") && !words.contains(&"--json");
        let mut args = words.to_vec();
        if drives {
            let script = tools::script(&self.workflow, list(&expected["calls"]), &expected["script"]);
            std::fs::write(self.folder.join("script.json"), script.to_string()).expect("a script");
            // The power stays on here.
            args.extend(["--script", "script.json", "--json", "--durability", "process"]);
            args.extend((expected["real_time"] != true).then_some("--virtual-time"));
        }
        let seen = self.see(&args, &expected["until"])?;
        let exit = if drives { exit_of(&expected["result"]["status"]) } else { json!(0) };
        self.check(&seen, expected, &exit).map_err(|how| format!("{how}\n{}", seen.stderr))?;
        let last = seen.lines.into_iter().next_back();
        self.result = last.filter(|last| drives && last["type"] == "result");
        Ok(())
    }

    /// Runs a command to its end. As soon as all events of `until` have been printed it is killed, or another command is given.
    fn see(&self, args: &[&str], until: &Json) -> Result<Seen, String> {
        let failed = |error: std::io::Error| error.to_string();
        let stderr = self.folder.join("stderr");
        let mut command = self.program.command(&self.folder);
        command.args(args).stdout(Stdio::piped()).stderr(File::create(&stderr).map_err(failed)?);
        let mut child = command.spawn().map_err(failed)?;
        let mut awaited = list(&until["events"]).to_vec();
        let (mut lines, mut text) = (Vec::new(), String::new());
        for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
            let line = line.map_err(failed)?;
            text.push_str(&line);
            let Ok(event) = serde_json::from_str::<Json>(&line) else { continue };
            if let Some(place) = awaited.iter().position(|awaited| fits(&event, awaited, "").is_ok()) {
                awaited.remove(place);
                match &until["do"] {
                    _ if !awaited.is_empty() => {}
                    Json::String(_) => child.kill().map_err(failed)?,
                    words => self.act(&self.words(Some(words)))?,
                }
            }
            lines.push(event);
        }
        if let Ok(whole) = serde_json::from_str(&text) {
            lines = vec![whole];
        }
        let status = child.wait().map_err(failed)?.code();
        Ok(Seen { lines, status, stderr: std::fs::read_to_string(stderr).map_err(failed)? })
    }

    fn act(&self, words: &[&str]) -> Result<(), String> {
        let output = self.program.run(&self.folder, words);
        let told = || format!("{}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(()) } else { Err(told()) }
    }

    fn check(&mut self, seen: &Seen, expected: &Json, exit: &Json) -> Result<(), String> {
        let last = seen.lines.last().unwrap_or(&Json::Null);
        let calls = Json::Array(self.calls(&seen.lines));
        if let Some(expected) = expected.get("calls") {
            exactly(&calls, expected, "calls")?;
        }
        let own = in_own_words(last.clone());
        if let Some(expected) = expected.get("result") {
            fits(&own, expected, "result")?;
        }
        if expected.get("unlike").is_some_and(|unlike| fits(&own, unlike, "").is_ok()) {
            return Err(format!("it is like {}", expected["unlike"]));
        }
        for (pointer, range) in expected["between"].as_object().into_iter().flatten() {
            let numbers = numbers_at(last, pointer);
            let within =
                |number: &f64| range[0].as_f64() <= Some(*number) && Some(*number) <= range[1].as_f64();
            if numbers.is_empty() || !numbers.iter().all(within) {
                return Err(format!("{pointer}: {numbers:?} is not between {range}"));
            }
        }
        let mut lines = seen.lines.iter();
        for event in list(&expected["events"]) {
            if !lines.any(|line| fits(line, event, "").is_ok()) {
                return Err(format!("nothing like this happened, or not in this order: {event}"));
            }
        }
        if let Some(text) = expected["stderr"].as_str().filter(|text| !seen.stderr.contains(text)) {
            return Err(format!("stderr has no `{text}`"));
        }
        if let Some(seconds) = expected.get("seconds") {
            fits(&json!(seconds_of(&seen.lines)), seconds, "seconds")?;
        }
        for (hash, content) in expected["artefacts"].as_object().into_iter().flatten() {
            let kept = std::fs::read_to_string(self.folder.join(".windlass-data/artefacts").join(hash));
            fits(&json!(kept.unwrap_or_else(|error| error.to_string())), content, hash)?;
        }
        fits(&json!(seen.status), expected.get("exit").unwrap_or(exit), "exit status")
    }

    /// Every attempt that was begun: which step in which iterations, and with which arguments.
    fn calls(&self, lines: &[Json]) -> Vec<Json> {
        let mut calls = Vec::new();
        for line in lines {
            let path = line["path"].as_str().unwrap_or_default();
            if line["event"] == "scheduled" {
                let numbers = path.split('[').skip(1).filter_map(|part| Some(part.split_once(']')?.0));
                let numbers: String = numbers.map(|number| format!("[{number}]")).collect();
                let address = format!("{}{numbers}", plain(line));
                calls.push(json!({address: line["input"]}));
            }
        }
        calls
    }

    /// What is kept of a run is what it printed last.
    fn look_back(&self) -> Result<(), String> {
        let Some(result) = &self.result else { return Ok(()) };
        let run = result["run_id"].as_str().unwrap_or_default();
        let shown = json(&self.program.run(&self.folder, &["show", run, "--json"]))?;
        exactly(&shown, result, "kept")
    }
}

/// A result with the words of the dialect in place of the neutral ones: the cases are written in these.
pub(super) fn in_own_words(mut result: Json) -> Json {
    let translate = |object: &mut Json| {
        if let Some(word) = object.get("dialect_status").cloned() {
            object["status"] = word;
        }
    };
    translate(&mut result);
    let steps = result.get_mut("steps").and_then(Json::as_object_mut);
    steps.into_iter().flat_map(|steps| steps.values_mut()).for_each(translate);
    result
}

fn numbers_at(result: &Json, pointer: &str) -> Vec<f64> {
    let found = result.pointer(pointer).map(list).unwrap_or_default();
    found.iter().filter_map(Json::as_f64).collect()
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
    let all = |how| format!("{how}\n  all expected: {expected}\n  all seen:     {seen}");
    fits(seen, expected, place).and_then(|()| fits(expected, seen, place)).map_err(all)
}

/// The time from the first event to the last.
fn seconds_of(lines: &[Json]) -> Option<f64> {
    let mut instants = lines.iter().filter_map(|line| line["at"].as_str()?.parse::<jiff::Timestamp>().ok());
    let first = instants.next()?;
    let last = instants.next_back().unwrap_or(first);
    Some((last.as_microsecond() - first.as_microsecond()) as f64 / 1e6)
}
