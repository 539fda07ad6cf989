//! A JSONPath (RFC 9535), parsed once and kept with its text.

use super::eval::{EvalError, Meter, sealed};
use crate::diagnostic::Code;
use crate::value::Value;
use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// Longer texts than this are refused before they are parsed.
const TEXT_MAX: usize = 4096;

#[derive(Clone, Debug)]
pub struct Query {
    text: Arc<str>,
    parsed: Arc<JpQuery>,
}

/// Why a text is no JSONPath.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QueryError(String);

impl Query {
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > TEXT_MAX {
            return Err(QueryError(format!("it is longer than {TEXT_MAX} bytes")));
        }
        let parsed = parse_json_path(text).map_err(|error| QueryError(error.to_string()))?;
        Ok(Self { text: text.into(), parsed: Arc::new(parsed) })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Null for no match, the value itself for one, a list for more.
    pub(super) fn find(&self, value: &Value, meter: &mut Meter) -> Result<Value, EvalError> {
        let Some(json) = value.to_json() else { return Err(sealed("searched")) };
        let found = js_path_process(&self.parsed, &json).map_err(|error| {
            let message = format!("`{}` cannot be evaluated: {error}", self.text);
            EvalError::new(Code::ExpressionValue, message, "simplify the path")
        })?;
        meter.make_elements(found.len())?;
        let mut values: Vec<Value> = found.into_iter().map(|found| Value::from(found.val())).collect();
        Ok(match values.len() {
            0 => Value::Null,
            1 => values.swap_remove(0),
            _ => Value::list(values),
        })
    }
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Query {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
