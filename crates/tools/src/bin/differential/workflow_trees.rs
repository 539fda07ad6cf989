//! Random workflows: shell steps that leave a trace, inside branches, loops and fan-outs, with failures at random places.
//!
//! A workflow is a tree of JSON until it is written down, so that it can be made smaller without knowing its keys. A case of a
//! switch whose name begins with `~` is written without quotes: `~1` is the number.

use super::dice::Dice;
use super::expression_texts::expression;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// A workflow and what happens around it: inputs at the start, and before each resume the files that appear and new inputs.
#[derive(Clone)]
pub struct Scene {
    pub workflow: Json,
    pub inputs: Json,
    pub resumes: Vec<Resume>,
    /// Some steps run at once, so the order of the trace is random.
    pub concurrent: bool,
}

#[derive(Clone)]
pub struct Resume {
    pub files: Vec<String>,
    pub inputs: Json,
}

const INPUT_PATHS: &[&str] = &[
    "inputs.name",
    "inputs.n",
    "inputs.flag",
    "inputs.mode",
    "inputs.csv",
    "inputs.empty",
    "inputs.missing",
    "item",
];

pub fn scene(dice: &mut Dice) -> Scene {
    let mut growth = Growth {
        dice,
        ids: Vec::new(),
        paths: INPUT_PATHS.iter().map(|path| (*path).to_owned()).collect(),
        steps: 0,
        failures: 0,
        concurrent: false,
        loops: 0,
        tame: false,
        in_template: false,
    };
    let count = 2 + growth.dice.roll(5);
    let steps = growth.steps(3, count);
    let (failures, concurrent) = (growth.failures, growth.concurrent);
    let workflow = json!({
        "schema_version": "1.0",
        "workflow": {
            "id": "random",
            "name": "Random",
            "version": "1.0.0",
            "integration": *dice.pick(&[Some("claude"), Some(""), None]),
            "model": *dice.pick(&[Some("large"), None]),
        },
        "inputs": {
            "name": {"type": "string", "default": "Ada"},
            "n": {"type": "number", "default": dice.roll(4)},
            "flag": {"type": "boolean", "default": dice.chance(50)},
            "mode": {"type": "string", "enum": ["fast", "slow", "1"], "default": *dice.pick(&["fast", "slow", "1"])},
            "csv": {"default": *dice.pick(&["a,b", "x", "1,2,3", "é,ß"])},
            "empty": {"type": "string", "default": ""},
        },
        "steps": steps,
    });
    Scene { workflow, inputs: inputs(dice), resumes: resumes(dice, failures), concurrent }
}

fn inputs(dice: &mut Dice) -> Json {
    let choices = [
        ("name", &["Grace", "", "it's", "true", " 7 "][..]),
        ("n", &["5", "2.5", "1e3", "-0.0", " 3 "]),
        ("flag", &["yes", "FALSE", "1", "no"]),
        ("mode", &["slow", "1"]),
    ];
    let mut given = Map::new();
    for (name, values) in choices {
        if dice.chance(30) {
            given.insert(name.into(), json!(*dice.pick(values)));
        }
    }
    given.into()
}

/// The files that failing steps wait for appear one by one, and in the end all that are missing.
fn resumes(dice: &mut Dice, failures: usize) -> Vec<Resume> {
    let files: Vec<String> = (0..failures).map(|number| format!("go-{number}")).collect();
    let inputs = |dice: &mut Dice| if dice.chance(25) { inputs(dice) } else { json!({}) };
    let mut resumes: Vec<Resume> =
        files.iter().take(3).map(|file| Resume { files: vec![file.clone()], inputs: inputs(dice) }).collect();
    resumes.push(Resume { files, inputs: inputs(dice) });
    resumes
}

struct Growth<'a> {
    dice: &'a mut Dice,
    /// Steps that stand before, outside templates.
    ids: Vec<String>,
    /// What expressions can read.
    paths: Vec<String>,
    steps: usize,
    failures: usize,
    concurrent: bool,
    loops: usize,
    /// Inside something that runs at once with itself: nothing may fail or count there, or the result would be chance.
    tame: bool,
    in_template: bool,
}

impl Growth<'_> {
    fn steps(&mut self, depth: usize, count: usize) -> Vec<Json> {
        (0..count).map(|_| self.step(depth)).collect()
    }

    fn body(&mut self, depth: usize) -> Vec<Json> {
        let count = if self.dice.chance(5) { 0 } else { 1 + self.dice.roll(3) };
        self.steps(depth - 1, count)
    }

    fn step(&mut self, depth: usize) -> Json {
        self.steps += 1;
        let id = format!("s{}", self.steps);
        let nested = depth > 0 && self.steps < 22;
        let mut step = match self.dice.roll(if nested { 16 } else { 6 }) {
            0..=3 => self.shell(&id),
            4 | 5 if self.ids.is_empty() || self.in_template => self.shell(&id),
            4 | 5 => self.fan_in(&id),
            6..=7 => self.branch(depth),
            8..=9 => self.switch(&id, depth),
            10 | 11 => self.repeat("while", &id, depth),
            12 | 13 => self.repeat("do-while", &id, depth),
            _ => self.fan_out(&id, depth),
        };
        step["id"] = id.clone().into();
        // What can never succeed would end most runs early.
        let flag = match (step["type"] == "shell", step["run"].as_str().is_some_and(fails_for_good)) {
            (true, true) => 90,
            (true, false) => 30,
            (false, _) => 2,
        };
        if self.dice.chance(flag) {
            step["continue_on_error"] = self.dice.chance(90).into();
        }
        step.as_object_mut().expect("a step is an object").sort_keys();
        self.paths.extend(["status", "type", "output"].map(|key| format!("steps.{id}.{key}")));
        if !self.in_template {
            self.ids.push(id);
        }
        step
    }

    fn shell(&mut self, id: &str) -> Json {
        let traced = if self.dice.chance(70) { self.block() } else { String::new() };
        let mut run = format!("cat >> trace <<'TRACED'\n{id} {traced}\nTRACED\n");
        let mut step = json!({"type": "shell"});
        let fields =
            if self.tame { self.harmless(&mut run, &mut step) } else { self.act(id, &mut run, &mut step) };
        self.paths.extend(["stdout", "exit_code", "stderr"].map(|key| format!("steps.{id}.output.{key}")));
        self.paths.extend(fields.iter().map(|field| format!("steps.{id}.output.{field}")));
        step["run"] =
            if self.dice.chance(3) { "{{ inputs.name | default('true') }}".into() } else { run.into() };
        step
    }

    fn harmless(&mut self, run: &mut String, step: &mut Json) -> &'static [&'static str] {
        if self.dice.chance(50) {
            run.push_str("echo out");
            return &[];
        }
        step["output_format"] = "json".into();
        run.push_str("echo '{\"n\": 1, \"list\": [1, \"b\"]}'");
        &["data", "data.n", "data.list"]
    }

    fn act(&mut self, id: &str, run: &mut String, step: &mut Json) -> &'static [&'static str] {
        let counted = format!("n=$(cat c-{id} 2>/dev/null || echo 0); n=$((n + 1)); echo $n > c-{id}\n");
        match self.dice.roll(14) {
            0 | 1 => run.push_str("echo out; echo err >&2"),
            2..=4 => write!(run, "{counted}echo $n").expect("text"),
            5..=7 => {
                step["output_format"] = "json".into();
                let tail = self.dice.pick(&[
                    "1.5",
                    "true",
                    "null",
                    "\"\u{e9}\"",
                    "[[1], {}]",
                    "{\"k\": \"v\"}",
                    "1e3",
                    "-0.0",
                ]);
                write!(
                    run,
                    "{counted}echo '{{\"n\": '$n', \"list\": [1, \"b\", {tail}], \"more\": {tail}}}'"
                )
                .expect("text");
                return &["data", "data.n", "data.list", "data.more", "data.list[2]", "data.more.k"];
            }
            8 | 9 => {
                let file = self.failure();
                write!(run, "echo before\ntest -e {file} || exit 3\necho after").expect("text");
            }
            10 => {
                let file = self.failure();
                write!(run, "{counted}test $n -ne 2 || test -e {file} || exit 4\necho $n").expect("text");
            }
            11 => run.push_str("echo lost; exit 9"),
            12 => {
                step["output_format"] = "json".into();
                run.push_str("echo '{oops'");
            }
            _ => run.push_str("kill -9 $$"),
        }
        &[]
    }

    fn failure(&mut self) -> String {
        self.failures += 1;
        format!("go-{}", self.failures - 1)
    }

    fn branch(&mut self, depth: usize) -> Json {
        let condition = self.condition();
        let mut step = json!({"type": "if", "condition": condition, "then": self.body(depth)});
        match self.dice.roll(10) {
            0..=4 => step["else"] = self.body(depth).into(),
            5 => step["else"] = Json::Null,
            _ => {}
        }
        step
    }

    fn switch(&mut self, id: &str, depth: usize) -> Json {
        let expression = if self.dice.chance(90) { self.block() } else { "plain".to_owned() };
        let names = [
            "~true",
            "False",
            "~1",
            "2",
            "out",
            "fast",
            "b",
            "completed",
            "~2.50",
            "",
            "~null",
            "Ada",
            "~010",
            "[]",
            "~no",
        ];
        let mut cases = Map::new();
        for _ in 0..1 + self.dice.roll(3) {
            let name = *self.dice.pick(&names);
            // Two that are one key in Python: the second takes the place of the first there, and is refused or kept here.
            let twin =
                |a: &str, b: &str| name == a && cases.contains_key(b) || name == b && cases.contains_key(a);
            if !twin(name, name) && !twin("False", "~no") && !twin("~true", "~1") {
                cases.insert(name.to_owned(), self.body(depth).into());
            }
        }
        let mut step = json!({"type": "switch", "expression": expression, "cases": cases});
        if self.dice.chance(60) {
            step["default"] = self.body(depth).into();
        }
        self.paths.extend(["matched_case", "expression_value"].map(|key| format!("steps.{id}.output.{key}")));
        step
    }

    fn repeat(&mut self, kind: &str, id: &str, depth: usize) -> Json {
        let known = self.paths.len();
        self.loops += 1;
        let body = self.body(depth);
        self.loops -= 1;
        // Loops mostly look at what their own body did.
        let condition = match (self.dice.roll(4), self.paths.len() > known) {
            (0, _) | (_, false) => self.condition(),
            (_, true) => {
                let path = self.paths[known + self.dice.roll(self.paths.len() - known)].clone();
                let test = *self.dice.pick(&["< 3", "!= 2", "<= 1", "!= null", "== 'completed'", ">= 0"]);
                format!("{{{{ {path} {test} }}}}").into()
            }
        };
        let most = if self.loops == 0 { 4 } else { 2 };
        let mut step = json!({"type": kind, "condition": condition, "max_iterations": 1 + self.dice.roll(most), "steps": body});
        if self.loops == 0 && self.dice.chance(10) {
            step["max_iterations"] = Json::Null;
        }
        for inner in step["steps"].as_array().into_iter().flatten().filter_map(|inner| inner["id"].as_str()) {
            self.paths.push(format!("steps.{id}:{inner}:1.output.stdout"));
        }
        self.paths
            .extend(["condition_result", "max_iterations"].map(|key| format!("steps.{id}.output.{key}")));
        step
    }

    fn fan_out(&mut self, id: &str, depth: usize) -> Json {
        let items = self.items();
        let concurrency = match self.dice.roll(8) {
            0 => Some(json!(1)),
            1 => Some(json!(2)),
            2 => Some(json!("3")),
            3 => Some(json!(0)),
            _ => None,
        };
        let at_once = matches!(&concurrency, Some(limit) if *limit == 2 || *limit == "3");
        let outside = (self.paths.clone(), self.tame, self.in_template);
        self.concurrent |= at_once;
        self.tame |= at_once;
        self.in_template = true;
        self.paths.extend(["item", "item", "item.k"].map(str::to_owned));
        let template = self.step(depth - 1);
        (self.paths, self.tame, self.in_template) = outside;
        let inner = template["id"].as_str().expect("a step has an id").to_owned();
        let fields = ["results", "item_count", "items", "results[0]", "results[-1].stdout"];
        self.paths.extend(fields.map(|field| format!("steps.{id}.output.{field}")));
        self.paths.push(format!("steps.{id}:{inner}:0.output.stdout"));
        self.paths.push(format!("steps.{id}:{inner}:1.status"));
        let mut step = json!({"type": "fan-out", "items": items, "step": template});
        if let Some(limit) = concurrency {
            step["max_concurrency"] = limit;
        }
        step
    }

    fn items(&mut self) -> Json {
        match self.dice.roll(if self.tame { 4 } else { 8 }) {
            0 => json!(["x", "y", "z"]),
            1 => json!([1, 2.5, null, true, {"k": [1]}]),
            2 => json!("{{ inputs.csv | split(',') }}"),
            3 => json!("{{ ['p', inputs.n] }}"),
            4 => json!([]),
            5 => json!("[1, 2]"),
            _ => self.block().into(),
        }
    }

    fn fan_in(&mut self, id: &str) -> Json {
        let wanted: Vec<String> =
            (0..1 + self.dice.roll(3)).map(|_| self.dice.pick(&self.ids).clone()).collect();
        let mut output = Map::new();
        let mut step = json!({"type": "fan-in", "wait_for": &wanted});
        self.paths.push(format!("steps.{id}.output.results"));
        for key in ["first", "all", "plain"] {
            let value = match (key, self.dice.roll(3)) {
                (_, 0) => continue,
                ("first", _) => "{{ fan_in.results[0] }}".to_owned(),
                ("all", 1) => "{{ fan_in.results | map('stdout') | join('-') }}".to_owned(),
                ("all", _) => self.block(),
                (_, _) => "as it is".to_owned(),
            };
            output.insert(key.to_owned(), value.into());
            self.paths.push(format!("steps.{id}.output.{key}"));
        }
        // Others do not read it: errors have words of their own in each program.
        if self.dice.roll(2) == 0 {
            output.insert("record".to_owned(), format!("{{{{ steps.{} }}}}", wanted[0]).into());
        }
        if !output.is_empty() {
            step["output"] = output.into();
        }
        step
    }

    fn condition(&mut self) -> Json {
        match self.dice.roll(8) {
            0 => json!(true),
            1 => json!(false),
            2 => json!(*self.dice.pick(&["true", " False ", ""])),
            _ => self.block().into(),
        }
    }

    /// Mostly a value that is there, sometimes any expression over what is there.
    fn block(&mut self) -> String {
        let paths = &self.paths;
        let path = paths[self.dice.roll(paths.len())].clone();
        let inner = match self.dice.roll(if self.tame { 7 } else { 9 }) {
            0..=3 => path,
            4 => format!("{path} | default('none')"),
            5 => format!("{path} == {}", paths[self.dice.roll(paths.len())]),
            6 => format!(
                "{path} {} and not inputs.flag",
                self.dice.pick(&["!= null", "in inputs.csv", "> 1", "== 'out\n'"])
            ),
            _ => expression(self.dice, 1, &self.paths),
        };
        format!("{{{{ {inner} }}}}")
    }
}

fn fails_for_good(run: &str) -> bool {
    run.ends_with("exit 9") || run.ends_with("{oops'") || run.ends_with("kill -9 $$")
}

/// The workflow as a file.
pub fn yaml(workflow: &Json) -> String {
    let mut text = String::new();
    entries(&mut text, workflow.as_object().expect("a workflow is an object"), 0);
    // YAML 1.1 folds these as line breaks, which would compare readers of YAML and not workflows.
    let breaks = ['\u{85}', '\u{2028}', '\u{2029}'];
    breaks.iter().fold(text, |text, mark| text.replace(*mark, &format!("\\u{:04x}", u32::from(*mark))))
}

fn entries(text: &mut String, map: &Map<String, Json>, indent: usize) {
    for (key, value) in map {
        let key = key.strip_prefix('~').map_or_else(|| json!(key).to_string(), str::to_owned);
        write!(text, "{:indent$}{key}:", "").expect("text");
        match value {
            Json::Object(map) if !map.is_empty() => {
                text.push('\n');
                entries(text, map, indent + 2);
            }
            Json::Array(items) if items.iter().any(Json::is_object) => {
                text.push('\n');
                items.iter().for_each(|item| element(text, item, indent + 2));
            }
            scalar => writeln!(text, " {scalar}").expect("text"),
        }
    }
}

fn element(text: &mut String, item: &Json, indent: usize) {
    let mut inner = String::new();
    match item {
        Json::Object(map) if !map.is_empty() => entries(&mut inner, map, indent + 2),
        scalar => writeln!(inner, "{scalar}").expect("text"),
    }
    write!(text, "{:indent$}- {}", "", inner.trim_start()).expect("text");
}

/// Workflows that are a little smaller: without one of their steps, with what a step holds in its place, without one of its
/// keys, or with a shorter text, in this order.
pub fn smaller(workflow: &Json) -> Vec<Json> {
    let mut found: [Vec<Json>; 3] = Default::default();
    reduce(&workflow["steps"], &mut |rank, steps| {
        let mut smaller = workflow.clone();
        smaller["steps"] = steps;
        found[rank].push(smaller);
    });
    found.concat()
}

/// Keys without which a step is none.
const NEEDED: &[&str] =
    &["id", "type", "run", "condition", "then", "steps", "step", "items", "cases", "expression", "wait_for"];

/// Every smaller form of this value, each put in its place by `put`; those with a lower number save more.
fn reduce(value: &Json, put: &mut dyn FnMut(usize, Json)) {
    match value {
        Json::Array(items) => {
            for at in 0..items.len() {
                let with = |instead: &[Json]| Json::from([&items[..at], instead, &items[at + 1..]].concat());
                put(0, with(&[]));
                for inner in items[at].as_object().into_iter().flat_map(lists) {
                    put(0, with(inner));
                }
                reduce(&items[at], &mut |rank, smaller| put(rank, with(&[smaller])));
            }
        }
        Json::Object(map) => {
            for (key, value) in map {
                let mut without = map.clone();
                without.shift_remove(key);
                if !NEEDED.contains(&key.as_str()) {
                    put(1, without.into());
                }
                reduce(value, &mut |rank, smaller| {
                    let mut map = map.clone();
                    map[key] = smaller;
                    put(rank, map.into());
                });
            }
        }
        Json::String(text) if text.contains('\n') => {
            let lines: Vec<&str> = text.lines().collect();
            for at in 0..lines.len() {
                put(2, [&lines[..at], &lines[at + 1..]].concat().join("\n").into());
            }
        }
        Json::String(text) if text.contains("{{") => {
            for shorter in super::shrink::shorter(text).into_iter().take(12) {
                put(2, shorter.into());
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// The lists of steps directly inside a step.
fn lists(step: &Map<String, Json>) -> Vec<&[Json]> {
    let branches = step.get("cases").and_then(Json::as_object).into_iter().flat_map(Map::values);
    let direct = ["then", "else", "steps", "default"].into_iter().filter_map(|key| step.get(key));
    direct.chain(branches).filter_map(Json::as_array).map(Vec::as_slice).collect()
}
