//! One scenario: a workflow, what it is given, who answers, what is done about it, and what must come of it.
//!
//! A scenario is JSON. It is lived with a clock that jumps, unless it kills the program:
//!
//! - `params` (given as `-p`) or `input` (a file); `agents` or `steps`, `gates` and `signals`: the script; `toml`: `windlass.toml`;
//!   `flags`: further words for `run`; `edit`: values written into the file, by their place; `beside`: files that it calls.
//! - `advance_clock`: the time of gates passes. `kill_server_while`: what must have happened when the program is killed.
//! - `then`: what is done afterwards, a list of `{"do": ["resume", "RUN"], …, "expect"}`, each with its own script.
//! - `expect`: see [`Seen::check`].

use super::Checked;
use super::journal;
use super::program::{Program, json};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The name of every run here.
pub const RUN: &str = "case";

/// The reports about one life of a run.
#[derive(Debug)]
struct Seen {
    status: Option<i32>,
    /// What the command printed last, for programs.
    said: Json,
    stderr: String,
    /// What is kept: the result as `show` tells it, and what happened.
    result: Json,
    events: Vec<Json>,
    /// The same events with what the public ones leave out.
    journal: Vec<Json>,
    /// What the command for a decision at a gate ended with, for each of them.
    decisions: Vec<i32>,
}

/// The expectations about a folder of cases. No file of it is forgotten in them.
pub fn read<const N: usize>(folder: &Path, names: [&str; N]) -> [Json; N] {
    let texts = names.map(|name| std::fs::read_to_string(folder.join(name)).expect("the cases"));
    for entry in std::fs::read_dir(folder).expect("the cases") {
        let file = entry.expect("a file").file_name().to_string_lossy().into_owned();
        let named = names.contains(&&*file) || texts.iter().any(|text| text.contains(&format!("\"{file}\"")));
        assert!(named, "nothing is expected of {file}");
    }
    texts.map(|text| {
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    })
}

/// Executes a scenario of a file in the folder `cases`, in a folder of its own.
pub fn execute(program: &Program, cases: &Path, file: &str, name: &str, scenario: &Json) -> Checked {
    let folder = program.folder(name);
    let text = std::fs::read_to_string(cases.join(file)).map_err(|error| format!("{file}: {error}"))?;
    write(&folder, file, &edited(text, scenario)?);
    for beside in texts(&scenario["beside"]) {
        std::fs::copy(cases.join(beside), folder.join(beside))
            .map_err(|error| format!("{beside}: {error}"))?;
    }
    if let Some(toml) = scenario["toml"].as_str() {
        write(&folder, "windlass.toml", toml);
    }
    let life = Life { program, folder };
    let seen = life.first(file, scenario)?;
    let mut problems = seen.check(&scenario["expect"]);
    for (number, step) in scenario["then"].as_array().into_iter().flatten().enumerate() {
        let seen = life.next(step)?;
        problems.extend(
            seen.check(&step["expect"]).into_iter().map(|problem| format!("then {number}: {problem}")),
        );
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// Values written into the text, each at its place: the names on the way to it stand above it, one after the other.
fn edited(mut text: String, scenario: &Json) -> Result<String, String> {
    for (place, value) in scenario["edit"].as_object().into_iter().flatten() {
        let mut at = 0;
        for name in place.split('.') {
            let found = [format!("{name}:"), format!("id: {name}\n")].into_iter();
            let found = found.filter_map(|word| Some(text[at..].find(&word)? + at + word.len())).min();
            at = found.ok_or_else(|| format!("there is no `{name}` of `{place}` in the file"))?;
        }
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        text.replace_range(at..end, &format!(" {value}"));
    }
    Ok(text)
}

pub fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a folder of our own");
}

pub fn texts(list: &Json) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str)
}

struct Life<'a> {
    program: &'a Program,
    folder: PathBuf,
}

impl Life<'_> {
    fn first(&self, file: &str, scenario: &Json) -> Result<Seen, String> {
        let killed = scenario["kill_server_while"].as_str();
        // Decisions are made by commands if a refusal is expected, or if the program was killed before.
        let by_command = killed.is_some() || scenario["expect"].get("http").is_some();
        let mut words = vec!["run".to_owned(), file.to_owned(), "--run-id".to_owned(), RUN.to_owned()];
        for (name, value) in scenario["params"].as_object().into_iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            words.extend(["-p".to_owned(), format!("{name}={value}")]);
        }
        if let Some(input) = scenario.get("input") {
            write(&self.folder, "input.json", &input.to_string());
            words.extend(["--input-file", "input.json"].map(str::to_owned));
        }
        words.extend(texts(&scenario["flags"]).map(str::to_owned));
        let Some(moment) = killed else {
            let waits = scenario.get("advance_clock").is_some();
            let output = self.run(&words, scenario, waits, !by_command);
            let decisions = if by_command { self.decide(scenario)? } else { Vec::new() };
            return self.seen(&output, decisions, true);
        };
        self.killed(&words, scenario, moment)?;
        if self.decide(scenario)?.iter().any(|status| *status != 0) {
            return Err("a decision was refused after the crash".to_owned());
        }
        let output = self.run(&["resume".to_owned(), RUN.to_owned()], scenario, false, false);
        self.seen(&output, Vec::new(), false)
    }

    fn next(&self, step: &Json) -> Result<Seen, String> {
        let words: Vec<String> = texts(&step["do"]).map(str::to_owned).collect();
        let goes_on = words.first().is_some_and(|word| ["run", "resume", "retry"].contains(&&**word));
        let output = match goes_on {
            true => self.run(&words, step, step.get("advance_clock").is_some(), true),
            false => self.command(&words).output().expect("the program starts"),
        };
        self.seen(&output, Vec::new(), false)
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = self.program.command(&self.folder);
        command.args(words);
        command
    }

    /// A run that is driven until nothing but people could bring it further.
    fn run(&self, words: &[String], scenario: &Json, waits: bool, gates: bool) -> Output {
        let mut command = self.command(words);
        command.arg("--json").args(waits.then_some("--wait"));
        if self.script(scenario, gates) {
            command.args(["--script", "script.json", "--virtual-time"]);
        }
        command.output().expect("the program starts")
    }

    /// Writes the script; a scenario with programs of its own has none.
    fn script(&self, scenario: &Json, gates: bool) -> bool {
        let mut script =
            json!({"steps": scenario.get("steps").or(scenario.get("agents")).unwrap_or(&json!({}))});
        for key in ["gates", "signals"] {
            if let Some(said) = scenario.get(key).filter(|_| gates || key != "gates") {
                script[key] = said.clone();
            }
        }
        write(&self.folder, "script.json", &script.to_string());
        scenario.get("toml").is_none()
    }

    /// Runs it in real time until the moment has come, and kills the program.
    fn killed(&self, words: &[String], scenario: &Json, moment: &str) -> Checked {
        let mut command = self.command(words);
        command.args(["--json", "--wait"]).stdout(Stdio::piped()).stderr(Stdio::null());
        if self.script(scenario, false) {
            command.args(["--script", "script.json"]);
        }
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("a piped stdout"));
        let mut lines = stdout.lines().map_while(Result::ok);
        let has_come =
            lines.any(|line| serde_json::from_str(&line).is_ok_and(|event| is_moment(&event, moment)));
        // It may have ended by itself, which is reported below.
        let _ = child.kill();
        let _ = child.wait();
        if has_come { Ok(()) } else { Err(format!("it ended before `{moment}`")) }
    }

    /// What people decide, each by a command.
    fn decide(&self, scenario: &Json) -> Result<Vec<i32>, String> {
        let mut statuses = Vec::new();
        for (gate, decisions) in scenario["gates"].as_object().into_iter().flatten() {
            for decision in decisions.as_array().into_iter().flatten() {
                let word = |key: &str| decision[key].as_str().map(str::to_owned);
                let action = word("action").ok_or("a decision without `action`")?;
                let mut words = vec![action, RUN.to_owned(), gate.clone()];
                for key in ["by", "reason", "choice"] {
                    words.extend(word(key).into_iter().flat_map(|said| [format!("--{key}"), said]));
                }
                let output = self.command(&words).output().expect("the program starts");
                statuses.push(output.status.code().unwrap_or(-1));
            }
        }
        Ok(statuses)
    }

    /// The reports about it. If the command printed every event, `events` need not be asked.
    fn seen(&self, output: &Output, decisions: Vec<i32>, is_all: bool) -> Result<Seen, String> {
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = || printed.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let show = self.program.run(&self.folder, &["show", RUN, "--json"]);
        let events = match is_all && decisions.is_empty() {
            true => printed.clone(),
            false => {
                let events = self.program.run(&self.folder, &["events", RUN, "--json"]);
                String::from_utf8_lossy(&events.stdout).into_owned()
            }
        };
        let events = events.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(Seen {
            status: output.status.code(),
            said: json(output).ok().or_else(last).unwrap_or(Json::Null),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            // There is none when the start was refused.
            result: json(&show).ok().filter(|shown| shown["type"] == "result").unwrap_or(Json::Null),
            events: events.filter(|event: &Json| event["type"] == "event").collect(),
            journal: journal::events(self.program, &self.folder, RUN),
            decisions,
        })
    }
}

/// Whether an event is about a step, or about the one that is in an item: `each[1]`, `each.map.1`.
fn is_of(event: &Json, step: &str) -> bool {
    let item = match step.split_once(".map.") {
        Some((map, number)) => format!("{map}[{number}]"),
        None => step.to_owned(),
    };
    let name = item.split('[').next().unwrap_or_default();
    plain(event) == step || event["step"] == step || event["path"] == format!("/{item}/{name}")
}

/// Whether this event is a moment such as `STEP waiting`, `STEP running`, `STEP waiting for attempt N`.
fn is_moment(event: &Json, moment: &str) -> bool {
    let Some((step, what)) = moment.split_once(' ') else { return false };
    if !is_of(event, step) {
        return false;
    }
    match what.strip_prefix("waiting for attempt ") {
        Some(next) => {
            let failed = event["attempt"].as_u64().map(|attempt| (attempt + 1).to_string());
            event["event"] == "attempt_failed" && failed.as_deref() == Some(next)
        }
        None if what == "running" => event["event"] == "scheduled",
        None => event["event"] == "entered" || event["event"] == "timer_set",
    }
}

impl Seen {
    /// What differs from what is expected. Only what is named is looked at; and whatever is expected, the exit status fits the
    /// result, and what the command printed is what is kept.
    fn check(&self, expect: &Json) -> Vec<String> {
        let mut problems = Problems::default();
        if expect["start_refused"] == true {
            self.check_refused(expect, &mut problems);
            return problems.shown(self);
        }
        let result = &self.result;
        if self.said["type"] == "result" && self.said["run_id"] == RUN && self.decisions.is_empty() {
            problems.same("what was printed and what is kept", &self.said, result);
        }
        let exit = expect.get("exit").cloned().unwrap_or_else(|| json!(exit_of(result)));
        if self.decisions.is_empty() {
            problems.same("the exit status", &json!(self.status), &exit);
        }
        if let Some(status) = expect.get("run_status") {
            problems.same("the status", &result["dialect_status"], status);
        }
        self.each(expect, "said", |key, value| problems.same(key, &self.said[key], value));
        let kept = [("output", "outputs"), ("has_failures", "has_failures"), ("given", "inputs")];
        for (key, field) in kept {
            if let Some(value) = expect.get(key) {
                problems.same(key, &result[field], value);
            }
        }
        for key in ["stages", "steps"] {
            self.each(expect, key, |step, value| {
                problems.same(step, &self.step(step)["dialect_status"], value);
            });
        }
        let fields = [("attempts", "attempts"), ("delays_seconds", "delays_seconds"), ("outputs", "output")];
        for (key, field) in fields.into_iter().chain([("duration_seconds", "duration_seconds")]) {
            self.each(expect, key, |step, value| {
                problems.same(&format!("{field} of {step}"), &self.step(step)[field], value);
            });
        }
        self.each(expect, "inputs", |step, value| problems.within(step, &self.step(step)["input"], value));
        self.each(expect, "reasons", |step, value| {
            let because = self.step(step)["skipped_because"].as_str().unwrap_or_default();
            let word = because.split([':', ' ']).next().unwrap_or_default();
            problems.same(&format!("why {step} was skipped"), &json!(word), value);
        });
        self.each(expect, "message", |step, value| {
            problems.same(&format!("the question of {step}"), &self.waits(step)["message"], value);
        });
        if let Some(error) = expect.get("error") {
            self.check_error(error, &mut problems);
        }
        self.check_doing(expect, &mut problems);
        self.check_people(expect, &mut problems);
        problems.shown(self)
    }

    fn each(&self, expect: &Json, key: &str, mut check: impl FnMut(&str, &Json)) {
        expect[key].as_object().into_iter().flatten().for_each(|(step, value)| check(step, value));
    }

    fn step(&self, id: &str) -> &Json {
        &self.result["steps"][id]
    }

    fn waits(&self, step: &str) -> &Json {
        let waiting = self.result["waiting_on"].as_array().into_iter().flatten();
        waiting.into_iter().find(|wait| wait["step"] == step).unwrap_or(&Json::Null)
    }

    /// Nothing was started, and the refusal names the wrong input.
    fn check_refused(&self, expect: &Json, problems: &mut Problems) {
        problems.same("the exit status", &json!(self.status), &json!(2));
        problems.same("what is printed", &self.said["type"], &json!("refused"));
        problems.same("what is kept", &self.result, &Json::Null);
        let error = &expect["error"];
        let found = refused_for(&self.said).into_iter().flatten();
        let same = |finding: &&Json| {
            [("code", "code"), ("parameter", "ref"), ("suggest", "suggest")]
                .iter()
                .all(|(key, field)| error.get(key).is_none_or(|value| *value == finding[field]))
        };
        if !found.into_iter().any(|finding| same(&finding)) {
            problems.add(&format!("the reason: {error} is not in {}", self.said));
        }
    }

    fn check_error(&self, expected: &Json, problems: &mut Problems) {
        let error = &self.result["error"];
        for (key, field) in [
            ("code", "code"),
            ("message", "message"),
            ("stage", "step"),
            ("step", "step"),
            ("field", "field"),
        ] {
            if let Some(value) = expected.get(key) {
                problems.same(&format!("{field} of the error"), &error[field], value);
            }
        }
        if let Some(part) = expected["mentions"].as_str() {
            problems.mentions("the error", &error.to_string(), part);
        }
    }

    /// What was handed out, in which order, when and with what.
    fn check_doing(&self, expect: &Json, problems: &mut Problems) {
        let handed = || self.events.iter().filter(|event| event["event"] == "scheduled");
        let first = || handed().filter(|event| event["attempt"] == 1 && event["delivery"] == 1);
        if let Some(dispatched) = expect.get("dispatched") {
            problems.same(
                "what was dispatched",
                &first().map(|event| json!(plain(event))).collect(),
                dispatched,
            );
        }
        self.each(expect, "dispatch_count", |step, count| {
            problems.same(
                &format!("how often {step} was dispatched"),
                &json!(handed().filter(|event| is_of(event, step)).count()),
                count,
            );
        });
        if let Some(calls) = expect.get("calls") {
            let seen: Json = handed().map(|event| json!([plain(event), event["input"]])).collect();
            problems.same("what was asked for", &seen, calls);
        }
        self.each(expect, "groups", |step, group| {
            let groups = self.works(step);
            let groups: Vec<&Json> = groups.map(|work| &work["task"]["group"]).collect();
            let all = !groups.is_empty() && groups.iter().all(|seen| *seen == group);
            problems.same(&format!("the groups of {step}: {groups:?}"), &json!(all), &json!(true));
        });
        self.each(expect, "work", |step, work| {
            let seen =
                self.works(step).next().and_then(Json::as_object).and_then(|kinds| kinds.values().next());
            problems.within(&format!("the work of {step}"), seen.unwrap_or(&Json::Null), work);
        });
        self.each(expect, "starts", |step, starts| {
            let seen = handed().filter(|event| is_of(event, step)).map(|event| self.seconds(event)).collect();
            problems.same(&format!("when {step} was dispatched"), &seen, starts);
        });
        self.each(expect, "env", |name, value| {
            problems.same(name, &self.journal[0]["env"]["plain"][name], value);
        });
        if let Some(most) = expect.get("at_once") {
            problems.same("the most attempts at once", &json!(self.most_at_once()), most);
        }
        if let Some(seconds) = expect.get("seconds") {
            let last = self.events.last().map_or(Json::Null, |event| self.seconds(event));
            problems.same("how long it took", &last, seconds);
        }
    }

    /// The work that a step was given. A later attempt repeats it only if it changed.
    fn works<'s>(&'s self, step: &'s str) -> impl Iterator<Item = &'s Json> {
        let scheduled =
            self.events.iter().zip(&self.journal).filter(|(event, _)| event["event"] == "scheduled");
        let of_step = scheduled.filter(move |(event, _)| is_of(event, step));
        of_step.filter_map(|(_, stored)| stored.get("assignment").map(|assignment| &assignment["work"]))
    }

    /// How long after the start of the run.
    fn seconds(&self, event: &Json) -> Json {
        let at = |event: &Json| event["at"].as_str().and_then(|at| at.parse::<jiff::Timestamp>().ok());
        match (at(event), self.events.first().and_then(at)) {
            (Some(at), Some(start)) => json!(at.duration_since(start).as_secs_f64()),
            _ => Json::Null,
        }
    }

    fn most_at_once(&self) -> usize {
        let (mut most, mut under_way) = (0, 0usize);
        for event in &self.events {
            match event["event"].as_str() {
                Some("scheduled") => under_way += 1,
                Some("settled" | "attempt_failed") => under_way = under_way.saturating_sub(1),
                _ => {}
            }
            most = most.max(under_way);
        }
        most
    }

    /// Who decided at gates, who may not, and who waits.
    fn check_people(&self, expect: &Json, problems: &mut Problems) {
        // What a web face would answer with is a refusal here.
        match expect["http"].as_u64() {
            Some(403 | 409) => problems.same("the last decision", &json!(self.decisions.last()), &json!(2)),
            Some(other) => problems.add(&format!("nothing here answers {other}")),
            None => {
                let refused = self.decisions.iter().filter(|status| **status != 0).count();
                problems.same("refused decisions", &json!(refused), &json!(0));
            }
        }
        if let Some(by) = expect.get("gate_decided_by") {
            let steps = self.result["steps"].as_object().into_iter().flatten();
            let decided = steps.into_iter().any(|(_, step)| step["output"]["by"] == *by);
            problems.same(&format!("whether {by} decided"), &json!(decided), &json!(true));
        }
        if let Some(waiting) = expect.get("waiting_on") {
            let seen = self.result["waiting_on"].as_array().into_iter().flatten();
            problems.same(
                "what it waits on",
                &seen.into_iter().map(|wait| wait["step"].clone()).collect(),
                waiting,
            );
        }
        for part in texts(&expect["stderr"]) {
            problems.mentions("standard error", &self.stderr, part);
        }
    }
}

/// The findings of a refusal.
pub fn refused_for(said: &Json) -> Option<&Vec<Json>> {
    said["error"]["diagnostics"].as_array()
}

/// The id of a step in its file.
pub(super) fn plain(event: &Json) -> &str {
    let path = event["path"].as_str().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    last.split('[').next().unwrap_or_default()
}

/// The exit status that belongs to how a run stands.
fn exit_of(result: &Json) -> i32 {
    match result["status"].as_str() {
        Some("success") => 0,
        Some("cancelled") => 4,
        Some("waiting" | "paused" | "pending") => 3,
        Some("running" | "interrupted") => 5,
        _ => 1,
    }
}

#[derive(Default)]
struct Problems(String);

impl Problems {
    fn add(&mut self, problem: &str) {
        writeln!(self.0, "  {problem}").expect("writing to a text cannot fail");
    }

    fn same(&mut self, what: &str, seen: &Json, expected: &Json) {
        if !is_same(seen, expected) {
            self.add(&format!("{what}: expected {expected}, seen {seen}"));
        }
    }

    /// What is named of an object is there; everything else is the same.
    fn within(&mut self, what: &str, seen: &Json, expected: &Json) {
        match (seen, expected) {
            (Json::Object(seen), Json::Object(expected)) => expected.iter().for_each(|(key, value)| {
                self.same(&format!("{key} of {what}"), seen.get(key).unwrap_or(&Json::Null), value);
            }),
            _ => self.same(what, seen, expected),
        }
    }

    fn mentions(&mut self, what: &str, text: &str, part: &str) {
        if !text.contains(part) {
            self.add(&format!("{what} does not mention `{part}`: {text}"));
        }
    }

    fn shown(self, seen: &Seen) -> Vec<String> {
        match self.0.is_empty() {
            true => Vec::new(),
            false => vec![format!("{}  of {}\n  {}", self.0, seen.result, seen.stderr.trim_end())],
        }
    }
}

/// Numbers are the same when their values are.
pub fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => one.as_f64() == other.as_f64(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_same(one, other)))
        }
        (one, other) => one == other,
    }
}
