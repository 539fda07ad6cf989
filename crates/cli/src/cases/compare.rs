//! What a case expects, held against what was seen. Only what is named is looked at: a mapping may have other keys, a list is
//! compared whole.

use serde_json::{Value as Json, json};
use windlass_dialects::text::{Kind, Node};
use windlass_ir::Span;
use windlass_ir::suggest::nearest;

/// Where a run or a step has the word of its dialect.
const DIALECT: &str = "dialect_status";

/// One thing that is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Such as `steps.plan.status`.
    pub at: String,
    pub expected: Json,
    pub seen: Json,
    /// Where the expectation stands; none where a case expects nothing at all.
    pub span: Option<Span>,
    pub place: Span,
    pub hint: Option<String>,
}

impl Difference {
    /// A case without expectations can only pass by mistake.
    pub fn nothing_expected(place: Span) -> Self {
        let hint = Some("write what is expected, or let `--update` write what was seen".to_owned());
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
                    let seen = &result["steps"][id];
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

/// The steps that a run waits at; a run that waits for its own time waits at none.
pub fn waiting(result: &Json) -> Json {
    result["waiting_on"].as_array().into_iter().flatten().map(|wait| wait["step"].clone()).collect()
}

fn no_step(result: &Json, id: &str) -> String {
    let names = result["steps"].as_object().into_iter().flat_map(|steps| steps.keys());
    match nearest(id, names.map(String::as_str)) {
        Some(near) => format!("the run has no step `{id}`; did you mean `{near}`?"),
        None => format!("the run has no step `{id}`"),
    }
}

/// A case may expect the dialect's word or the neutral one.
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

/// Numbers are the same when their values are.
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

/// What a case without expectations could expect of this run.
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
