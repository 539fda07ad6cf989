//! Compares the expectations of a case with the actual result. It checks only what the case names: a mapping may have other
//! keys, while a list must match completely.

use serde_json::{Value as Json, json};
use windlass_dialects::text::{Kind, Node};
use windlass_ir::Span;
use windlass_ir::suggest::nearest;

/// The key that holds the status in the words of the dialect.
const DIALECT: &str = "dialect_status";

/// A mismatch between an expected and an actual value.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// A path such as `steps.plan.status`.
    pub at: String,
    pub expected: Json,
    pub seen: Json,
    /// The position of the expectation; none if the case has no expectations.
    pub span: Option<Span>,
    pub place: Span,
    pub hint: Option<String>,
}

impl Difference {
    /// A case without expectations always fails, because it tests nothing.
    pub fn nothing_expected(place: Span) -> Self {
        let hint = Some("add `expect`, or let `--update` write the actual results".to_owned());
        Self { at: "expect".into(), expected: Json::Null, seen: Json::Null, span: None, place, hint }
    }
}

pub fn differences(expect: &Node, result: &Json) -> Vec<Difference> {
    let mut found = Vec::new();
    let Kind::Map(map) = &expect.kind else { return found };
    for entry in &map.entries {
        let key = &*entry.key.text;
        match (key, &entry.value.kind) {
            ("steps", Kind::Map(steps)) => {
                for step in &steps.entries {
                    let id = &*step.key.text;
                    let seen = step_named(result, id);
                    let at = format!("steps.{id}");
                    let before = found.len();
                    match &step.value.kind {
                        Kind::Scalar(_) => compare_status(&step.value, seen, at, &mut found),
                        Kind::Map(_) | Kind::List(_) => compare(&step.value, seen, at, &mut found),
                    }
                    if seen.is_null() {
                        let hint = no_step(result, id);
                        found[before..]
                            .iter_mut()
                            .for_each(|difference| difference.hint = Some(hint.clone()));
                    }
                }
            }
            ("status", _) => compare_status(&entry.value, result, key.to_owned(), &mut found),
            ("waiting_on", _) => compare(&entry.value, &waiting(result), key.to_owned(), &mut found),
            (_, _) => compare(&entry.value, &result[key], key.to_owned(), &mut found),
        }
    }
    found
}

/// The steps that a run waits at; none if the run waits for its start time.
pub fn waiting(result: &Json) -> Json {
    result["waiting_on"].as_array().into_iter().flatten().map(|wait| wait["step"].clone()).collect()
}

/// A step by its id, or by the name that `show` prints for an item, such as `test (mac, 3.12)`.
fn step_named<'r>(result: &'r Json, name: &str) -> &'r Json {
    let steps = &result["steps"];
    let is_named = |step: &&Json| item_name(step).is_some_and(|item| item == name);
    let named = || steps.as_object().into_iter().flat_map(|steps| steps.values()).find(is_named);
    steps.get(name).or_else(named).unwrap_or(&Json::Null)
}

fn item_name(step: &Json) -> Option<String> {
    let (id, item) = (step["id"].as_str()?, step["item"].as_str()?);
    let own = id.rsplit(['/', '.']).next().unwrap_or(id);
    Some(format!("{} ({item})", own.split('[').next().unwrap_or(own)))
}

fn no_step(result: &Json, id: &str) -> String {
    let steps = || result["steps"].as_object().into_iter().flatten();
    let items: Vec<String> = steps().filter_map(|(_, step)| item_name(step)).collect();
    let names = steps().map(|(id, _)| id.as_str()).chain(items.iter().map(String::as_str));
    match nearest(id, names) {
        Some(near) => format!("the run has no step `{id}`; did you mean `{near}`?"),
        None => format!("the run has no step `{id}`"),
    }
}

/// A case may use the status word of the dialect or the neutral one.
fn compare_status(expect: &Node, seen: &Json, at: String, found: &mut Vec<Difference>) {
    let expected = expect.to_value().to_json().unwrap_or_default();
    let own = &seen[DIALECT];
    compare(expect, if expected == seen["status"] { &seen["status"] } else { own }, at, found);
}

fn compare(expect: &Node, seen: &Json, at: String, found: &mut Vec<Difference>) {
    match (&expect.kind, seen) {
        (Kind::Map(map), Json::Object(_)) => {
            for entry in &map.entries {
                let (key, at) = (&*entry.key.text, format!("{at}.{}", entry.key.text));
                match key {
                    "status" if seen.get(DIALECT).is_some() => compare_status(&entry.value, seen, at, found),
                    _ => compare(&entry.value, &seen[key], at, found),
                }
            }
        }
        (Kind::List(items), Json::Array(seen)) if items.len() == seen.len() => {
            for (number, (item, seen)) in items.iter().zip(seen).enumerate() {
                compare(item, seen, format!("{at}[{number}]"), found);
            }
        }
        (Kind::Map(_) | Kind::List(_) | Kind::Scalar(_), _) => {
            let expected = expect.to_value().to_json().unwrap_or_default();
            if !is_same(&expected, seen) {
                let (seen, span) = (seen.clone(), Some(expect.span));
                found.push(Difference { at, expected, seen, span, place: expect.span, hint: None });
            }
        }
    }
}

/// Integers and floats are equal if their values are.
fn is_same(expected: &Json, seen: &Json) -> bool {
    match (expected, seen) {
        (Json::Number(expected), Json::Number(seen)) => {
            expected == seen || expected.as_f64() == seen.as_f64()
        }
        (Json::Array(expected), Json::Array(seen)) => {
            expected.len() == seen.len()
                && expected.iter().zip(seen).all(|(expected, seen)| is_same(expected, seen))
        }
        (Json::Object(expected), Json::Object(seen)) => {
            expected.len() == seen.len()
                && expected.iter().all(|(key, value)| seen.get(key).is_some_and(|seen| is_same(value, seen)))
        }
        (_, _) => expected == seen,
    }
}

/// Suggested expectations for a case that has none.
pub fn seen_in(result: &Json) -> Json {
    let steps = result["steps"].as_object().into_iter().flatten();
    let steps: serde_json::Map<String, Json> =
        steps.map(|(id, step)| (id.clone(), step[DIALECT].clone())).collect();
    let mut seen = json!({"status": result[DIALECT]});
    if !result["outputs"].is_null() {
        seen["outputs"] = result["outputs"].clone();
    }
    if !result["error"].is_null() {
        seen["error"] = json!({"code": result["error"]["code"], "step": result["error"]["step"]});
    }
    if waiting(result) != json!([]) {
        seen["waiting_on"] = waiting(result);
    }
    seen["steps"] = steps.into();
    seen
}
