//! Compares the meaning of two files: their plans and triggers are equal except for the dialect, its vocabulary and
//! source locations. What steps record in their results is part of the meaning.

use crate::Loaded;
use crate::speckit;
use crate::swdl::defaults;
use serde_json::Value as Json;
use windlass_ir::Plan;
use windlass_ir::expr::RecordShape;
use windlass_ir::trigger::Trigger;

/// The first difference between two files: its path and both values.
pub fn difference(one: &Loaded, other: &Loaded) -> Option<String> {
    match (&one.plan, &other.plan) {
        (Some(a), Some(b)) => {
            plan_difference(a, b).or_else(|| trigger_difference(&one.triggers, &other.triggers))
        }
        (None, None) => None,
        (_, _) => Some("one of the files has no plan".to_owned()),
    }
}

pub fn plan_difference(one: &Plan, other: &Plan) -> Option<String> {
    differs("plan", &stripped(one), &stripped(other))
}

pub fn trigger_difference(one: &[Trigger], other: &[Trigger]) -> Option<String> {
    let json = |triggers: &[Trigger]| {
        let mut json = serde_json::to_value(triggers).unwrap_or(Json::Null);
        strip_fields(&mut json);
        json
    };
    differs("triggers", &json(one), &json(other))
}

fn stripped(plan: &Plan) -> Json {
    let mut json = serde_json::to_value(plan).unwrap_or(Json::Null);
    for key in ["digest", "dialect"] {
        json[key] = Json::Null;
    }
    // A file without a version has the first version in the native dialect.
    if json["header"]["version"] == "" {
        json["header"]["version"] = defaults::VERSION.into();
    }
    // Results in the shape of Spec Kit contain the type of each step; elsewhere it is only displayed.
    let records_types = plan.semantics.results.record == RecordShape::Everything;
    let steps = json["steps"].as_array_mut().into_iter().flatten();
    for (json, step) in steps.zip(&plan.steps) {
        if !records_types || speckit::type_of(&step.kind).is_none() {
            json["word"] = Json::Null;
        }
    }
    strip_fields(&mut json);
    json
}

/// Removes the names of keys that values and conditions keep for messages.
fn strip_fields(json: &mut Json) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(strip_fields),
        Json::Object(map) => {
            let keeps_field = map.len() == 2 && ["template", "expr"].iter().any(|key| map.contains_key(*key));
            if keeps_field {
                map.shift_remove("field");
            }
            map.values_mut().for_each(strip_fields);
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn differs(path: &str, a: &Json, b: &Json) -> Option<String> {
    match (a, b) {
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.into_iter().find_map(|(at, (a, b))| differs(&format!("{path}[{at}]"), a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            let missing = Json::String("nothing".into());
            let gone = b.iter().filter(|(key, _)| !a.contains_key(*key)).map(|(key, b)| (key, &missing, b));
            let kept = a.iter().map(|(key, a)| (key, a, b.get(key).unwrap_or(&missing)));
            kept.chain(gone).find_map(|(key, a, b)| differs(&format!("{path}.{key}"), a, b))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path}: {a} became {b}")),
    }
}
