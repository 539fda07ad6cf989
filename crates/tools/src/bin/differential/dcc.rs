//! The same DCC-MCP workflow read by both programs: whether it is accepted, and what its steps are and how they are retried.
//! DCC-MCP as it is installed runs no workflow, so nothing is run here.

use super::decisions;
use super::dice::Dice;
use super::oracle::Oracle;
use super::report::{Disagreement, Report};
use super::shrink::shrink;
use super::workflow_trees::{smaller, yaml};
use serde_json::{Map, Value as Json, json};
use windlass_dialects::{Dialect, Options, Text, load};

/// Documents that share one question to the oracle.
pub const BATCH: u64 = 50;

pub const KINDS: &[&str] =
    &["dcc approve", "dcc branch", "dcc foreach", "dcc parallel", "dcc retry", "dcc tool", "dcc tool_remote"];

/// How many delays of a policy are compared.
const DELAYS: u32 = 7;

pub fn batch(seed: u64, number: u64, size: u64, oracle: &mut Oracle, report: &mut Report) {
    // Other throws than those of the workflows of the same number.
    let mut dice = Dice::of(!seed, number);
    let documents: Vec<Json> = (0..size).map(|_| document(&mut dice)).collect();
    let theirs = ask(oracle, &documents);
    for (document, theirs) in documents.into_iter().zip(theirs) {
        report.documents += 1;
        let ours = ours(&document);
        if same(&ours, &theirs) {
            count(&theirs, report);
        } else if let Some(decision) = decisions::of_dcc(&ours, &theirs) {
            *report.decided.entry(decision).or_default() += 1;
        } else {
            report.differ(number, || explain(oracle, document));
        }
    }
}

fn ask(oracle: &mut Oracle, documents: &[Json]) -> Vec<Json> {
    let texts: Vec<String> = documents.iter().map(yaml).collect();
    let answer = oracle.ask(&json!({"ask": "dcc", "texts": texts, "delays": DELAYS}));
    answer.as_array().expect("an answer for each").clone()
}

/// Each step by its id, or why the file is refused.
fn ours(document: &Json) -> Json {
    let text = Text { name: "random.workflow.yaml".into(), bytes: yaml(document).into_bytes() };
    let loaded = load(text, Options { dialect: Some(Dialect::Dcc), ..Options::default() });
    let Some(plan) = loaded.plan else {
        let errors = loaded.diagnostics.iter().filter(|found| found.is_error());
        let words = errors.map(|found| format!("error[{}] {}", found.code.as_str(), found.message));
        return json!({"refused": words.collect::<Vec<_>>().join("; ")});
    };
    let steps = plan.steps.iter().filter(|step| !step.implicit).map(|step| {
        let retry = &step.policy.retry;
        let delays: Vec<u64> =
            (1..DELAYS).map(|attempt| retry.backoff.delay_after(attempt).0 / 1_000).collect();
        let retry =
            (retry.attempts_max > 1).then(|| json!({"attempts": retry.attempts_max, "delays": delays}));
        let timeout = step.policy.timeout.map(|timeout| timeout.0 / 1_000_000);
        (step.id.to_string(), json!({"kind": step.word, "timeout": timeout, "retry": retry}))
    });
    json!({"steps": Json::Object(steps.collect())})
}

fn same(ours: &Json, theirs: &Json) -> bool {
    ours.get("steps") == theirs.get("steps")
}

fn count(theirs: &Json, report: &mut Report) {
    for step in theirs["steps"].as_object().into_iter().flat_map(|map| map.values()) {
        report.count(&format!("dcc {}", step["kind"].as_str().unwrap_or_default()));
        if !step["retry"].is_null() {
            report.count("dcc retry");
        }
    }
}

fn explain(oracle: &mut Oracle, document: Json) -> Disagreement {
    let differs = |document: &Json, theirs: &Json| {
        let ours = ours(document);
        !same(&ours, theirs) && decisions::of_dcc(&ours, theirs).is_none()
    };
    let document = shrink(document, 3_000, smaller, |documents| {
        let theirs = ask(oracle, documents);
        documents.iter().zip(&theirs).position(|(document, theirs)| differs(document, theirs))
    });
    let theirs = ask(oracle, std::slice::from_ref(&document));
    Disagreement {
        what: format!("DCC-MCP workflow\n{}", yaml(&document)),
        how: format!("ours:   {}\n  theirs: {}", ours(&document), theirs[0]),
    }
}

fn document(dice: &mut Dice) -> Json {
    let mut number = 0;
    let count = 1 + dice.roll(3);
    let steps: Vec<Json> = (0..count).map(|_| step(dice, 2, &mut number)).collect();
    let mut document =
        json!({"name": "random", "inputs": {"rows": {"type": "array"}, "folder": {}}, "steps": steps});
    if dice.chance(3) {
        spoil(dice, &mut document, "name");
    }
    document
}

#[rustfmt::skip]
const PATHS: &[&str] = &[
    "$.inputs.rows", "$.steps.s1.output", "$.steps.s1.output.files[*]", "$.item", "$", "$..a", "$['a'].b", "$.a[0:2]",
    "$.a[?@.b > 1]", "$.a[?@.b == 'x' && @.c]", "$.a[-1]", "$.a[?length(@.b) > 1]", "$[", "x", "$.x == 3", "", "$.a.",
    "$.a[?]", "$.a[01]", "$.a b", "$.ü", "$.a-b", "$[\"a\"]", "$.*", "$..*", "$.a[1,2]", "$.a[::2]",
];
const TOOLS: &[&str] = &["list", "maya__open", "a-b", "T_1", "9", "_"];
const BAD_TOOLS: &[&str] = &["", "a b", "ä", "a/b", "a:b", "ab\n"];
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "k", "", "row_{{inputs.folder}}", "{{inputs}}", "{{item.id}}", "{{steps.s1.output}}", "{{env.X}}",
    "{{ inputs.folder }}", "{{folder}}", "{{s1.x}}", "{{bogus.x}}", "{{", "{{}}", "{{inputs.rows[0]}}", "{{a-b}}",
    "{{1a}}", "}} {", "{{inputs..x}}", "{{inputs.}}",
];

fn step(dice: &mut Dice, depth: usize, number: &mut usize) -> Json {
    *number += 1;
    let mut step = json!({"id": format!("s{number}")});
    let mut list = |dice: &mut Dice| -> Json {
        let count = dice.roll(3);
        (0..count).map(|_| self::step(dice, depth - 1, number)).collect()
    };
    match dice.roll(if depth == 0 { 5 } else { 9 }) {
        0..=2 => {
            step["tool"] = json!(dice.pick(TOOLS));
            if dice.chance(50) {
                step["kind"] = json!("tool");
            }
        }
        3 => {
            step["kind"] = json!("tool_remote");
            step["dcc"] = json!("maya");
            step["tool"] = json!(dice.pick(TOOLS));
        }
        4 => step["kind"] = json!("approve"),
        5 | 6 => {
            step["kind"] = json!("foreach");
            step["items"] = json!(dice.pick(PATHS));
            step["steps"] = list(dice);
            if dice.chance(30) {
                step["as"] = json!("row");
            }
        }
        7 => {
            step["kind"] = json!("parallel");
            step["steps"] = list(dice);
        }
        _ => {
            step["kind"] = json!("branch");
            step["on"] = json!(dice.pick(PATHS));
            step["then"] = list(dice);
            if dice.chance(50) {
                step["else"] = list(dice);
            }
        }
    }
    if step.get("tool").is_some() {
        policies(dice, &mut step);
    }
    if dice.chance(12) {
        let keys: Vec<String> = step.as_object().expect("a step is an object").keys().cloned().collect();
        let key = dice.pick(&keys).clone();
        spoil(dice, &mut step, &key);
    }
    step
}

fn policies(dice: &mut Dice, step: &mut Json) {
    if dice.chance(30) {
        step["timeout_secs"] = dice
            .pick(&[json!(30), json!(1), json!(0), json!(86_400), json!(1.5), json!("5"), json!(-1)])
            .clone();
    }
    if dice.chance(40) {
        step["retry"] = retry(dice).into();
    }
    if dice.chance(25) {
        step["idempotency_key"] = json!(dice.pick(KEYS));
    }
    if dice.chance(10) {
        step["idempotency_scope"] =
            dice.pick(&[json!("workflow"), json!("global"), json!("Global"), json!("run")]).clone();
    }
    if dice.chance(10) {
        step["idempotency_ttl_secs"] = dice.pick(&[json!(0), json!(60), json!(-5), json!("1")]).clone();
    }
}

fn retry(dice: &mut Dice) -> Map<String, Json> {
    let numbers = |dice: &mut Dice| {
        dice.pick(&[json!(0), json!(1), json!(250), json!(1000), json!(60_000), json!(-1), json!(0.5)])
            .clone()
    };
    let mut retry = Map::new();
    if dice.chance(95) {
        retry.insert("max_attempts".into(), json!(dice.roll(6)));
    }
    for key in ["initial_delay_ms", "max_delay_ms"] {
        if dice.chance(50) {
            retry.insert(key.into(), numbers(dice));
        }
    }
    if dice.chance(60) {
        retry.insert("backoff".into(), json!(*dice.pick(&["fixed", "linear", "exponential", "Fixed"])));
    }
    if dice.chance(20) {
        retry.insert(
            "jitter".into(),
            dice.pick(&[json!(0.0), json!(0.5), json!(2), json!(-1), json!("x")]).clone(),
        );
    }
    if dice.chance(20) {
        let classes =
            [json!(["timeout"]), json!(["timeout", "transient"]), json!("timeout"), json!([1]), Json::Null];
        retry.insert("retry_on".into(), dice.pick(&classes).clone());
    }
    retry
}

/// Something that does not belong there, or nothing at all.
fn spoil(dice: &mut Dice, object: &mut Json, key: &str) {
    let wrong = match key {
        "id" => {
            dice.pick(&[json!(""), json!(5), json!("s1"), json!("a b"), json!("a.b"), Json::Null]).clone()
        }
        "tool" => json!(dice.pick(BAD_TOOLS)),
        "kind" => dice
            .pick(&[json!("Tool"), json!("loop"), Json::Null, json!(1), json!("tool"), json!("foreach")])
            .clone(),
        _ => dice.pick(&[Json::Null, json!(5), json!("x"), json!([]), json!({}), json!(true)]).clone(),
    };
    let map = object.as_object_mut().expect("it is an object");
    if dice.chance(25) {
        map.shift_remove(key);
    } else {
        map.insert(key.to_owned(), wrong);
    }
}
