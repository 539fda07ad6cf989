//! Contracts: the types that values must have on their way into and out of a step.
//!
//! A [`Type`] is lowered to JSON Schema and checked by a JSON Schema validator, so the types of the native dialect
//! and the schemas of the other dialects share one code path. [`Type::accepts`] compares two declarations before a
//! run starts.

use crate::schema_cost::{Cost, EVALUATIONS_MAX};
use crate::value::Value;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// A declared type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    Any,
    String,
    Number,
    Integer,
    Boolean,
    Object,
    Array(Box<Type>),
    ArtifactRef,
    MemoryItem,
    ContextModule,
    /// A JSON Schema, for dialects that use one.
    Schema(Arc<serde_json::Value>),
}

/// Deeper nesting of `array<…>` is refused.
const ARRAY_DEPTH_MAX: usize = 32;

impl Type {
    /// The simple types; `array<T>` is the only compound.
    pub const WORDS: [&'static str; 9] = [
        "string",
        "number",
        "integer",
        "boolean",
        "object",
        "artifact_ref",
        "memory_item",
        "context_module",
        "any",
    ];

    /// Reads `string`, `array<integer>`, `array<array<string>>` and so on.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_nested(text.trim(), 0)
    }

    fn parse_nested(text: &str, depth: usize) -> Option<Self> {
        Some(match text {
            "any" => Self::Any,
            "string" => Self::String,
            "number" => Self::Number,
            "integer" => Self::Integer,
            "boolean" => Self::Boolean,
            "object" => Self::Object,
            "artifact_ref" => Self::ArtifactRef,
            "memory_item" => Self::MemoryItem,
            "context_module" => Self::ContextModule,
            _ => {
                let inner = text.strip_prefix("array")?.trim_start().strip_prefix('<')?.strip_suffix('>')?;
                if depth == ARRAY_DEPTH_MAX {
                    return None;
                }
                Self::Array(Box::new(Self::parse_nested(inner.trim(), depth + 1)?))
            }
        })
    }

    pub fn to_schema(&self) -> serde_json::Value {
        match self {
            Self::Any => json!(true),
            Self::String => json!({"type": "string"}),
            Self::Number => json!({"type": "number"}),
            Self::Integer => json!({"type": "integer"}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::Object => json!({"type": "object"}),
            Self::Array(item) => json!({"type": "array", "items": item.to_schema()}),
            Self::ArtifactRef => json!({"type": "string", "pattern": "^(agent|skill|mcp|command):.+$"}),
            Self::MemoryItem => json!({"type": "string", "minLength": 1}),
            Self::ContextModule => json!({"type": "string", "pattern": "^ctx:.+$"}),
            Self::Schema(schema) => (**schema).clone(),
        }
    }

    /// Whether every value of type `source` is valid here. Schemas are assumed to fit, because only a run can tell.
    pub fn accepts(&self, source: &Type) -> bool {
        match (self, source) {
            (Self::Any | Self::Schema(_), _) | (_, Self::Any | Self::Schema(_)) => true,
            (Self::Number, Self::Integer) => true,
            (Self::String, Self::ArtifactRef | Self::MemoryItem | Self::ContextModule) => true,
            (Self::Array(to), Self::Array(from)) => to.accepts(from),
            _ => self == source,
        }
    }

    /// Whether some value could belong to both types. If not, an equality test between them is never true.
    pub fn overlaps(&self, other: &Type) -> bool {
        let family = |ty: &Type| match ty {
            Self::Any | Self::Schema(_) => None,
            Self::String | Self::ArtifactRef | Self::MemoryItem | Self::ContextModule => Some(0),
            Self::Number | Self::Integer => Some(1),
            Self::Boolean => Some(2),
            Self::Object => Some(3),
            Self::Array(_) => Some(4),
        };
        match (family(self), family(other)) {
            (Some(a), Some(b)) => a == b,
            (None, _) | (_, None) => true,
        }
    }

    /// The type of a literal value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Any,
            Value::Bool(_) => Self::Boolean,
            Value::Int(_) => Self::Integer,
            Value::Float(_) => Self::Number,
            Value::Text(_) | Value::Sealed(_) => Self::String,
            Value::List(items) => {
                let first = items.first().map_or(Self::Any, Self::of);
                // The type of the first item is already known; computing it again would double the work at each
                // level.
                let uniform = items.iter().skip(1).all(|item| Self::of(item) == first);
                Self::Array(Box::new(if uniform { first } else { Self::Any }))
            }
            Value::Map(_) => Self::Object,
        }
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array(item) => return write!(f, "array<{item}>"),
            Self::ArtifactRef => "artifact_ref",
            Self::MemoryItem => "memory_item",
            Self::ContextModule => "context_module",
            Self::Schema(_) => "schema",
        })
    }
}

/// One way in which a value violates its contract. `path` is relative to the value: `[1]`, `.name`, or empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub path: String,
    pub message: String,
}

/// A type compiled for checking many values.
#[derive(Debug)]
pub struct Contract {
    validator: jsonschema::Validator,
    /// Present if the schema has references.
    cost: Option<Cost>,
}

/// Why a schema cannot be used as a contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    pub message: String,
}

impl Contract {
    pub fn new(ty: &Type) -> Result<Self, SchemaError> {
        let schema = ty.to_schema();
        let cost = Cost::of(&schema).map_err(|message| SchemaError { message })?;
        jsonschema::validator_for(&schema)
            .map(|validator| Self { validator, cost })
            .map_err(|error| SchemaError { message: error.to_string() })
    }

    /// The first violation, if any. A value that contains a secret cannot be inspected and is refused.
    pub fn check(&self, value: &Value) -> Result<(), Violation> {
        let Some(json) = value.to_json() else {
            return Err(Violation {
                path: String::new(),
                message: "a secret cannot be checked against a schema".into(),
            });
        };
        if self.cost.as_ref().is_some_and(|cost| !cost.allows(&json)) {
            let message = format!(
                "checking this value takes more than {EVALUATIONS_MAX} evaluations; nest the value less, or \
                    simplify its schema"
            );
            return Err(Violation { path: String::new(), message });
        }
        self.validator.validate(&json).map_err(|error| Violation {
            path: dotted(&error.instance_path().to_string(), &json),
            message: error.to_string(),
        })
    }
}

/// Turns a JSON pointer into the usual path notation: `/a/1` becomes `.a[1]`.
fn dotted(pointer: &str, root: &serde_json::Value) -> String {
    let mut here = Some(root);
    let mut path = String::new();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let in_list = here.is_some_and(serde_json::Value::is_array);
        path.push_str(&if in_list { format!("[{token}]") } else { format!(".{token}") });
        here = here.and_then(|value| match value {
            serde_json::Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
            other => other.get(&token),
        });
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_parsed_and_displayed() {
        let check = |text: &str, shown: Option<&str>| {
            assert_eq!(Type::parse(text).map(|ty| ty.to_string()).as_deref(), shown, "{text}");
        };
        for word in Type::WORDS {
            check(word, Some(word));
        }
        check("array<string>", Some("array<string>"));
        check(" array < array<integer> > ", Some("array<array<integer>>"));
        check("array", None);
        check("array<>", None);
        check("array<strng>", None);
        check("String", None);
        check(&format!("{}string{}", "array<".repeat(1000), ">".repeat(1000)), None);
    }

    #[test]
    fn violations_name_the_path_in_the_value() {
        let check = |ty: &str, json: &str, expected: Option<&str>| {
            let contract = Contract::new(&Type::parse(ty).expect("a type")).expect("a schema");
            let value: Value = serde_json::from_str(json).expect("JSON");
            assert_eq!(contract.check(&value).err().map(|v| v.path).as_deref(), expected, "{ty} {json}");
        };
        check("integer", "4", None);
        check("integer", "\"4\"", Some(""));
        check("integer", "4.5", Some(""));
        check("number", "4", None);
        check("array<number>", "[1, 2.5]", None);
        check("array<number>", "[1, \"two\"]", Some("[1]"));
        check("array<array<integer>>", "[[1], [2, \"x\"]]", Some("[1][1]"));
        check("artifact_ref", "\"agent:ann\"", None);
        check("artifact_ref", "\"person:ann\"", Some(""));
        check("context_module", "\"ctx:rules\"", None);
        check("memory_item", "\"\"", Some(""));
        check("object", "[]", Some(""));
        check("any", "null", None);
    }

    #[test]
    fn schema_violations_name_the_invalid_member() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
        let contract = Contract::new(&Type::Schema(Arc::new(schema))).expect("a schema");
        let value: Value = serde_json::from_str(r#"{"a": ["x", 1]}"#).expect("JSON");
        assert_eq!(contract.check(&value).expect_err("wrong").path, ".a[1]");
        assert!(Contract::new(&Type::Schema(Arc::new(json!({"type": "strng"})))).is_err());
    }

    #[test]
    fn checks_that_would_take_too_long_are_refused() {
        let mut definitions = serde_json::Map::new();
        for n in 0..40 {
            let next = format!("#/$defs/d{}", n + 1);
            definitions.insert(format!("d{n}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        }
        definitions.insert("d40".into(), json!({"type": "integer"}));
        let schema = json!({"$defs": definitions, "$ref": "#/$defs/d0"});
        let error = Contract::new(&Type::Schema(Arc::new(schema))).expect_err("too much work");
        assert!(error.message.starts_with("its references multiply"), "{error}");

        let again = json!({"properties": {"a": {"$ref": "#"}}});
        let schema = json!({"allOf": [again, again]});
        let contract = Contract::new(&Type::Schema(Arc::new(schema))).expect("a schema");
        let deep = (0..60).fold(Value::Int(1), |inner, _| Value::map([("a", inner)]));
        let violation = contract.check(&deep).expect_err("too much work");
        assert!(violation.message.starts_with("checking this value takes more than"), "{violation:?}");
    }

    #[test]
    fn declared_types_are_compared() {
        let check = |to: &str, from: &str, expected: bool| {
            let ty = |text| Type::parse(text).expect("a type");
            assert_eq!(ty(to).accepts(&ty(from)), expected, "{from} into {to}");
        };
        check("number", "integer", true);
        check("integer", "number", false);
        check("boolean", "string", false);
        check("array<number>", "array<integer>", true);
        check("array<string>", "array<integer>", false);
        check("string", "artifact_ref", true);
        check("artifact_ref", "string", false);
        check("any", "object", true);
        check("object", "any", true);
    }
}
