//! Large values: in the events of a record, every value above a size is replaced with the name of a blob that
//! contains it, so that a value passed from step to step is stored once.
//!
//! Only data is replaced, never the event around it. A record with references still parses as events, and code that
//! folds events without reading values needs no blobs.

use crate::blobs::{BLOB_BYTES_MIN, BlobId};
use serde_json::{Map, Value as Json, json};
use std::convert::Infallible;
use windlass_ir::value::{COLLECTED_BYTES_MAX, NODE_BYTES};

/// The fields of events that contain data of the workflow; everything below them is data.
const DATA: [&str; 16] = [
    "inputs",
    "about",
    "value",
    "input",
    "done",
    "continue",
    "detail",
    "plain",
    "cwd",
    "instructions",
    "because",
    "matching",
    "options",
    "output",
    "prompt",
    "settings",
];

/// Names that are also used for other things: they contain data only inside this field.
const DATA_INSIDE: [(&str, &str); 2] = [("shell", "command"), ("items", "items")];

fn is_data(around: &str, key: &str) -> bool {
    DATA.contains(&key) || DATA_INSIDE.contains(&(around, key))
}

/// A plan is not data: the record contains all of it, or a reference to it.
const WHOLE: &str = "plan";

/// Marks a value that is stored separately. Data that contains this key itself is wrapped, so that it reads back
/// unchanged.
const MARK: &str = "$blob";
const WRAPPED: &str = "map";

/// The approximate size of a reference.
const REFERENCE_BYTES: usize = 80;

pub(crate) fn take_out(json: Json, put: &mut dyn FnMut(Vec<u8>) -> BlobId) -> Json {
    let Ok(smaller) = each_data::<Infallible>("", json, &mut |data| Ok(smaller(data, put).0));
    smaller
}

/// Fails if a value would be larger than the maximum for writing.
pub(crate) fn put_back(
    json: Json,
    get: &mut dyn FnMut(&str) -> Result<Json, String>,
) -> Result<Json, String> {
    put_back_within(json, COLLECTED_BYTES_MAX, get)
}

fn put_back_within(
    json: Json,
    bytes_max: u64,
    get: &mut dyn FnMut(&str) -> Result<Json, String>,
) -> Result<Json, String> {
    each_data("", json, &mut |data| Back { get, bytes_left: bytes_max }.whole(data))
}

/// Changes the data in events and leaves the structure around it unchanged. `around` is the name of the enclosing
/// field.
fn each_data<E>(
    around: &str,
    json: Json,
    change: &mut dyn FnMut(Json) -> Result<Json, E>,
) -> Result<Json, E> {
    match json {
        Json::Array(items) => {
            let items = items.into_iter().map(|item| each_data(around, item, change));
            items.collect::<Result<_, _>>().map(Json::Array)
        }
        Json::Object(map) => {
            let fields = map.into_iter().map(|(key, field)| {
                let field = match key.as_str() {
                    WHOLE => field,
                    name if is_data(around, name) => change(field)?,
                    name => each_data(name, field, change)?,
                };
                Ok((key, field))
            });
            fields.collect::<Result<_, E>>().map(Json::Object)
        }
        other => Ok(other),
    }
}

/// The value with everything large in it taken out, innermost first, and its approximate size when written.
fn smaller(data: Json, put: &mut dyn FnMut(Vec<u8>) -> BlobId) -> (Json, usize) {
    let (data, bytes) = match data {
        Json::Array(mut items) => {
            let mut bytes = 2;
            for item in &mut items {
                let (kept, length) = smaller(item.take(), put);
                bytes += length + 1;
                *item = kept;
            }
            (Json::Array(items), bytes)
        }
        Json::Object(map) => {
            let mut bytes = 2;
            let mut kept = Map::new();
            let marked = map.contains_key(MARK);
            for (key, field) in map {
                let (field, length) = smaller(field, put);
                bytes += key.len() + length + 4;
                kept.insert(key, field);
            }
            let kept = Json::Object(kept);
            (if marked { json!({MARK: null, WRAPPED: kept}) } else { kept }, bytes)
        }
        Json::String(text) => {
            let bytes = text.len() + 2;
            (Json::String(text), bytes)
        }
        plain => (plain, 20),
    };
    if bytes <= BLOB_BYTES_MIN {
        return (data, bytes);
    }
    let id = put(data.to_string().into_bytes());
    (json!({MARK: id.as_str()}), REFERENCE_BYTES)
}

/// A value being restored. A record of a few bytes can stand for an enormous value, because each part is stored once,
/// and such records were written before there was a limit.
struct Back<'g> {
    get: &'g mut dyn FnMut(&str) -> Result<Json, String>,
    bytes_left: u64,
}

impl Back<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes_left.checked_sub(bytes as u64);
        self.bytes_left = left.ok_or("it contains a value that is too large for memory")?;
        Ok(())
    }

    /// The value with everything that was taken out of it.
    fn whole(&mut self, data: Json) -> Result<Json, String> {
        match data {
            Json::Array(items) => {
                self.take(NODE_BYTES)?;
                items.into_iter().map(|item| self.whole(item)).collect::<Result<_, _>>().map(Json::Array)
            }
            Json::Object(mut map) => match map.get(MARK) {
                Some(Json::String(id)) => {
                    let content = (self.get)(id)?;
                    self.whole(content)
                }
                Some(Json::Null) => match map.remove(WRAPPED) {
                    Some(Json::Object(inner)) => self.fields(inner),
                    other => Ok(other.unwrap_or(Json::Null)),
                },
                _ => self.fields(map),
            },
            other => {
                self.take(NODE_BYTES + other.as_str().map_or(0, str::len))?;
                Ok(other)
            }
        }
    }

    fn fields(&mut self, map: Map<String, Json>) -> Result<Json, String> {
        self.take(NODE_BYTES + map.keys().map(String::len).sum::<usize>())?;
        let fields = map.into_iter().map(|(key, field)| Ok((key, self.whole(field)?)));
        fields.collect::<Result<_, String>>().map(Json::Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Takes values out and puts them back; returns the intermediate form and the number of blobs.
    fn there_and_back(json: &Json) -> (Json, usize) {
        let mut blobs: HashMap<String, Json> = HashMap::new();
        let written = take_out(json.clone(), &mut |content| {
            let id = BlobId::of(&content);
            blobs.insert(id.to_string(), serde_json::from_slice(&content).expect("JSON"));
            id
        });
        let back = put_back(written.clone(), &mut |id| Ok(blobs[id].clone())).expect("put back");
        assert_eq!(back, *json);
        (written, blobs.len())
    }

    #[test]
    fn large_data_is_taken_out_and_put_back() {
        let large = "x".repeat(BLOB_BYTES_MIN);
        let check = |json: Json, blobs: usize| {
            assert_eq!(there_and_back(&json).1, blobs, "{:.100}", json.to_string());
        };
        check(json!([{"event": "noted", "value": "small"}]), 0);
        check(json!([{"event": "noted", "value": large}]), 1);
        check(json!([{"event": "noted", "value": {"a": large, "b": large}}]), 1);
        check(json!([{"event": "noted", "value": {"a": large, "b": 1, "c": [large.clone() + "y"]}}]), 2);
        check(json!([{"event": "noted", "value": (0..20_000).collect::<Vec<_>>()}]), 1);
        check(json!([{"event": "failed", "message": large}]), 0);
        check(json!([{"event": "entered", "decision": {"items": {"items": [large], "at_once": 1}}}]), 1);
        check(json!([{"event": "scheduled", "work": {"shell": {"command": large}}}]), 1);
        check(json!([{"event": "scheduled", "ask": {"command": {"command": large, "input": large}}}]), 1);
        check(
            json!([{"event": "entered", "decision": {"planned": {"plan": {"inputs": large}, "output": large}}}]),
            1,
        );
    }

    #[test]
    fn a_value_too_large_for_memory_is_not_restored() {
        let mut loads = 0;
        let mut get = |id: &str| {
            loads += 1;
            let level: usize = id.parse().expect("a number");
            let below = json!({MARK: (level + 1).to_string()});
            Ok(if level == 60 { json!(1) } else { json!([below, below]) })
        };
        let record = json!([{"event": "noted", "value": {MARK: "0"}}]);
        let back = put_back_within(record, 1 << 20, &mut get);
        assert!(back.is_err_and(|cause| cause.contains("too large for memory")));
        assert!(loads <= 2 * (1 << 20) / NODE_BYTES, "{loads}");
    }

    #[test]
    fn data_that_looks_like_a_reference_stays_data() {
        let large = "x".repeat(BLOB_BYTES_MIN);
        there_and_back(&json!([{"value": {"$blob": "abc"}, "about": large}]));
        there_and_back(&json!([{"plan": {"value": {"$blob": "abc"}}, "about": large}]));
        there_and_back(&json!([{"value": {"$blob": null, "map": {"$blob": {"$blob": 1}}}, "about": large}]));
    }
}
