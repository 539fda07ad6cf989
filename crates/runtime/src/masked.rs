//! Values as JSON for people and programs: secrets are masked.

use serde_json::Value as Json;
use windlass_ir::value::{SealedPart, VALUE_BYTES_MAX, Value};

/// A value as JSON, with each secret masked. Replaces a value that would take too much memory with its size.
pub fn data(value: &Value) -> Json {
    match value.fits(VALUE_BYTES_MAX) {
        true => whole(value),
        false => format!("(not shown: {} MiB)", value.expanded_bytes().div_ceil(1 << 20)).into(),
    }
}

fn whole(value: &Value) -> Json {
    match value {
        Value::Sealed(parts) => {
            let text = parts.iter().map(|part| match part {
                SealedPart::Text(text) => text,
                SealedPart::Secret(_) => "***",
            });
            Json::String(text.collect())
        }
        Value::List(items) => Json::Array(items.iter().map(whole).collect()),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.to_string(), whole(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {
            value.to_json().unwrap_or_default()
        }
    }
}
