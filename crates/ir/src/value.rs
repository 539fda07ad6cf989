//! The data that flows through a run: an immutable tree whose parts are shared, not copied.
//!
//! Integers and floats are different (`3` and `3.0` are two values that compare equal). A secret is an opaque leaf:
//! text that contains one is [`Value::Sealed`], a list of parts that only an executor can turn into text.

use indexmap::IndexMap;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Map = IndexMap<Arc<str>, Value>;

/// The largest value that a step may take or produce, that a run may start with, and that is displayed, measured as
/// written out. Parts are shared, so a value of a few bytes can stand for an enormous one.
pub const VALUE_BYTES_MAX: u64 = 64 << 20;

/// The same for the combined results of the steps inside a step.
pub const COLLECTED_BYTES_MAX: u64 = 512 << 20;

/// The size of every value besides its text: about what it takes in memory.
pub const NODE_BYTES: usize = 32;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    /// Text that contains at least one secret.
    Sealed(Arc<[SealedPart]>),
    List(Arc<[Value]>),
    Map(Arc<Map>),
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealedPart {
    Text(Arc<str>),
    Secret(Arc<str>),
}

impl SealedPart {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Secret(text) => text.len(),
        }
    }
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

    /// Whether it is null, false, zero, or a text, list or map without content: what Python calls false.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(flag) => !flag,
            Self::Int(int) => *int == 0,
            Self::Float(float) => *float == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Sealed(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
        }
    }

    /// The word for this kind of value in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "integer",
            Self::Float(_) => "number",
            Self::Text(_) => "string",
            Self::Sealed(_) => "secret",
            Self::List(_) => "list",
            Self::Map(_) => "object",
        }
    }

    /// Whether the value, written out, takes at most this many bytes. Stops counting at the limit.
    pub fn fits(&self, bytes_max: u64) -> bool {
        self.rest_of(bytes_max).is_some()
    }

    /// The bytes left after writing the value out.
    fn rest_of(&self, bytes: u64) -> Option<u64> {
        let bytes = bytes.checked_sub(self.own_bytes())?;
        match self {
            Self::List(items) => items.iter().try_fold(bytes, |left, item| item.rest_of(left)),
            Self::Map(map) => map
                .iter()
                .try_fold(bytes, |left, (key, value)| value.rest_of(left.checked_sub(key.len() as u64)?)),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => Some(bytes),
            Self::Text(_) | Self::Sealed(_) => Some(bytes),
        }
    }

    /// The size of the value when written out. Visits each shared part only once.
    pub fn expanded_bytes(&self) -> u64 {
        self.bytes_with(&mut BTreeMap::new())
    }

    fn bytes_with(&self, known: &mut BTreeMap<*const (), u64>) -> u64 {
        let shared = match self {
            Self::List(items) => Arc::as_ptr(items).cast(),
            Self::Map(map) => Arc::as_ptr(map).cast(),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => return self.own_bytes(),
            Self::Text(_) | Self::Sealed(_) => return self.own_bytes(),
        };
        if let Some(bytes) = known.get(&shared) {
            return *bytes;
        }
        let mut bytes = self.own_bytes();
        match self {
            Self::List(items) => {
                items.iter().for_each(|item| bytes = bytes.saturating_add(item.bytes_with(known)));
            }
            Self::Map(map) => map.iter().for_each(|(key, value)| {
                bytes = bytes.saturating_add(key.len() as u64).saturating_add(value.bytes_with(known));
            }),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => {}
            Self::Text(_) | Self::Sealed(_) => {}
        }
        known.insert(shared, bytes);
        bytes
    }

    /// Without the parts of a list or an object.
    fn own_bytes(&self) -> u64 {
        let text = match self {
            Self::Text(text) => text.len(),
            Self::Sealed(parts) => parts.iter().map(SealedPart::len).sum(),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
            Self::List(_) | Self::Map(_) => 0,
        };
        (NODE_BYTES + text) as u64
    }

    /// True if the value contains a secret anywhere.
    pub fn is_sealed(&self) -> bool {
        match self {
            Self::Sealed(_) => true,
            Self::List(items) => items.iter().any(Value::is_sealed),
            Self::Map(map) => map.values().any(Value::is_sealed),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => false,
        }
    }

    /// Compact JSON; `None` if the value contains a secret.
    pub fn to_json_text(&self) -> Option<String> {
        self.to_json().map(|json| json.to_string())
    }

    /// The same value as `serde_json`; `None` if it contains a secret.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(b) => (*b).into(),
            Self::Int(i) => (*i).into(),
            Self::Float(f) => (*f).into(),
            Self::Text(text) => (&**text).into(),
            Self::Sealed(_) => return None,
            Self::List(items) => {
                serde_json::Value::Array(items.iter().map(Self::to_json).collect::<Option<_>>()?)
            }
            Self::Map(map) => {
                let entries = map.iter().map(|(key, value)| Some((key.to_string(), value.to_json()?)));
                serde_json::Value::Object(entries.collect::<Option<_>>()?)
            }
        })
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
            Self::Sealed(_) => Err(S::Error::custom("a secret cannot be serialized")),
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
        // Beyond 64 signed bits only the magnitude is kept, as in other JSON readers without big integers.
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

/// A storable form of a value that may contain secrets: stores the names of secrets, never their contents.
///
/// This is the only place where stored data becomes a secret again. A plain [`Value`] from outside never does, so
/// data that looks like a reference to a secret cannot forge one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealable(pub Value);

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    /// Contains no secrets.
    Plain(Value),
    Sealed(Vec<SealedPart>),
    List(Vec<Stored>),
    Map(IndexMap<Arc<str>, Stored>),
}

impl Stored {
    fn of(value: &Value) -> Self {
        match value {
            value if !value.is_sealed() => Self::Plain(value.clone()),
            Value::Sealed(parts) => Self::Sealed(parts.to_vec()),
            Value::List(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Map(map) => {
                Self::Map(map.iter().map(|(key, value)| (key.clone(), Self::of(value))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => {
                Self::Plain(value.clone())
            }
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Plain(value) => value,
            Self::Sealed(parts) => Value::Sealed(parts.into()),
            Self::List(items) => Value::list(items.into_iter().map(Self::into_value)),
            Self::Map(map) => Value::map(map.into_iter().map(|(key, stored)| (key, stored.into_value()))),
        }
    }
}

impl Serialize for Sealable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Stored::of(&self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Sealable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer).map(|stored| Self(stored.into_value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_distinguishes_integers_and_floats() {
        let value: Value =
            serde_json::from_str(r#"{"a": 3, "b": 3.0, "c": [null, true, "x"]}"#).expect("valid");
        assert_eq!(value.to_json_text().as_deref(), Some(r#"{"a":3,"b":3.0,"c":[null,true,"x"]}"#));
    }

    #[test]
    fn shared_values_count_at_each_occurrence() {
        let text = Value::text("four");
        assert_eq!((text.expanded_bytes(), text.fits(36), text.fits(35)), (36, true, false));
        let map = Value::map([("key", Value::list([text.clone(), Value::Null]))]);
        assert_eq!((map.expanded_bytes(), map.fits(135), map.fits(134)), (135, true, false));
        let mut doubled = Value::Int(1);
        for _ in 0..40 {
            doubled = Value::list([doubled.clone(), doubled]);
        }
        assert_eq!(doubled.expanded_bytes(), 32 * ((1 << 41) - 1));
        assert!(!doubled.fits(VALUE_BYTES_MAX));
        for _ in 0..100 {
            doubled = Value::list([doubled.clone(), doubled]);
        }
        assert_eq!(doubled.expanded_bytes(), u64::MAX, "as many as can be counted");
    }

    #[test]
    fn secrets_are_never_serialized() {
        let value = Value::map([("token", Value::secret("API"))]);
        assert!(value.is_sealed());
        assert_eq!(value.to_json_text(), None);
        assert!(serde_json::to_string(&value).is_err());
    }

    #[test]
    fn names_of_secrets_are_stored_on_request() {
        let value = Sealable(Value::map([
            (
                "header",
                Value::Sealed(Arc::from([
                    SealedPart::Text("Bearer ".into()),
                    SealedPart::Secret("API".into()),
                ])),
            ),
            ("list", Value::list([Value::secret("X"), Value::Int(1)])),
            ("plain", Value::Float(2.0)),
        ]));
        let text = serde_json::to_string(&value).expect("storable");
        assert_eq!(serde_json::from_str::<Sealable>(&text).expect("readable"), value);
        let forged: Value = serde_json::from_str(&text).expect("JSON");
        assert!(!forged.is_sealed(), "data from outside never becomes a secret");
    }
}
