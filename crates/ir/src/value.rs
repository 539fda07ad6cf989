//! The data that flows through a run: an immutable tree that is shared, not copied.
//!
//! Integers and floats differ (`3` and `3.0` are two values that compare equal). A secret is an opaque leaf:
//! text that contains one is [`Value::Sealed`], a list of parts that only an executor can turn into text.

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::sync::Arc;

pub type Map = IndexMap<Arc<str>, Value>;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    /// Text with at least one secret in it.
    Sealed(Arc<[SealedPart]>),
    List(Arc<[Value]>),
    Map(Arc<Map>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealedPart {
    Text(Arc<str>),
    Secret(Arc<str>),
}

impl Value {
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub fn secret(name: impl Into<Arc<str>>) -> Self {
        Self::Sealed(Arc::from([SealedPart::Secret(name.into())]))
    }

    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self::List(items.into_iter().collect())
    }

    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Self {
        Self::Map(Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The word for this kind of value in messages to people.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::Float(_) => "number",
            Self::Text(_) => "text",
            Self::Sealed(_) => "secret",
            Self::List(_) => "list",
            Self::Map(_) => "object",
        }
    }

    /// True if a secret stands anywhere in this value.
    pub fn is_sealed(&self) -> bool {
        match self {
            Self::Sealed(_) => true,
            Self::List(items) => items.iter().any(Value::is_sealed),
            Self::Map(map) => map.values().any(Value::is_sealed),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => false,
        }
    }

    /// Compact JSON; `None` when a secret stands in the value.
    pub fn to_json_text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// The same value for a library that speaks `serde_json`; `None` when a secret stands in it.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        serde_json::to_value(self).ok()
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(b) => Self::Bool(*b),
            serde_json::Value::Number(n) => match n.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(s) => Self::text(s.as_str()),
            serde_json::Value::Array(items) => Self::list(items.iter().map(Self::from)),
            serde_json::Value::Object(map) => Self::map(map.iter().map(|(k, v)| (k.as_str(), Self::from(v)))),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Int(i) => serializer.serialize_i64(*i),
            Self::Float(f) => serializer.serialize_f64(*f),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Sealed(_) => Err(S::Error::custom("a secret cannot be written down")),
            Self::List(items) => serializer.collect_seq(items.iter()),
            Self::Map(map) => serializer.collect_map(map.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, i: i64) -> Result<Value, E> {
        Ok(Value::Int(i))
    }

    fn visit_u64<E>(self, u: u64) -> Result<Value, E> {
        // Beyond 64 signed bits only the magnitude survives, as in every JSON reader without big numbers.
        Ok(i64::try_from(u).map_or(Value::Float(u as f64), Value::Int))
    }

    fn visit_f64<E>(self, f: f64) -> Result<Value, E> {
        Ok(Value::Float(f))
    }

    fn visit_str<E>(self, s: &str) -> Result<Value, E> {
        Ok(Value::text(s))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::List(items.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            map.insert(key.into(), value);
        }
        Ok(Value::Map(Arc::new(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_integers_and_floats_apart() {
        let value: Value = serde_json::from_str(r#"{"a": 3, "b": 3.0, "c": [null, true, "x"]}"#).expect("valid");
        assert_eq!(value.to_json_text().as_deref(), Some(r#"{"a":3,"b":3.0,"c":[null,true,"x"]}"#));
    }

    #[test]
    fn secrets_are_never_written() {
        let value = Value::map([("token", Value::secret("API"))]);
        assert!(value.is_sealed());
        assert_eq!(value.to_json_text(), None);
    }
}
