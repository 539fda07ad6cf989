//! Reads the description of inputs. It is documentation only: a run accepts any input, and nothing here is enforced.

use super::table::{Table, is_null};
use crate::text::{Kind, Mapping, Node};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::workflow::Parameter;
use windlass_ir::{Code, Diagnostic, Type, Value};

/// The inputs by name: the keys of `properties` if `inputs` is a schema, otherwise its own keys.
pub fn parameters(node: &Node) -> IndexMap<Arc<str>, Parameter> {
    let declared = declarations(node).map(|map| map.entries.as_slice()).unwrap_or_default();
    declared.iter().map(|entry| (entry.key.text.clone(), parameter(&entry.value))).collect()
}

fn declarations(node: &Node) -> Option<&Mapping> {
    let own = mapping(node)?;
    Some(own.get("properties").and_then(|entry| mapping(&entry.value)).unwrap_or(own))
}

fn mapping(node: &Node) -> Option<&Mapping> {
    match &node.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

/// Every key of `inputs` and of its `properties`.
pub fn words(node: &Node) -> HashSet<Arc<str>> {
    let maps = mapping(node).into_iter().chain(declarations(node));
    maps.flat_map(|map| &map.entries).map(|entry| entry.key.text.clone()).collect()
}

fn parameter(node: &Node) -> Parameter {
    let text = |key: &str| match mapping(node)?.get(key)?.value.to_value() {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let word = match node.to_value() {
        Value::Text(word) => Some(word),
        _ => text("type"),
    };
    Parameter {
        ty: word.as_deref().and_then(type_of).unwrap_or(Type::Any),
        required: false,
        default: None,
        choices: Vec::new(),
        description: text("description"),
        span: node.span,
    }
}

/// The keywords of JSON Schema.
fn type_of(word: &str) -> Option<Type> {
    match word {
        "string" => Some(Type::String),
        "number" => Some(Type::Number),
        "integer" => Some(Type::Integer),
        "boolean" => Some(Type::Boolean),
        "object" => Some(Type::Object),
        "array" => Some(Type::Array(Box::new(Type::Any))),
        _ => None,
    }
}

/// Warns that `default` and `required` are documentation only.
pub fn check(top: &Table<'_>) {
    let Some(node) = top.node("inputs") else { return };
    let is_schema = mapping(node).is_some_and(|map| map.get("properties").is_some());
    if let Some(entry) = mapping(node).filter(|_| is_schema).and_then(|map| map.get("required")) {
        top.report(not_enforced("required", entry.key.span).field("inputs.required"));
    }
    for entry in declarations(node).map(|map| map.entries.as_slice()).unwrap_or_default() {
        let Some(declared) = mapping(&entry.value) else { continue };
        for key in ["default", "required"] {
            if let Some(found) = declared.get(key).filter(|found| !is_null(&found.value)) {
                let between = if is_schema { "inputs.properties" } else { "inputs" };
                let field = format!("{between}.{}.{key}", entry.key.text);
                top.report(not_enforced(key, found.key.span).field(field));
            }
        }
    }
}

fn not_enforced(key: &str, span: windlass_ir::Span) -> Diagnostic {
    let (message, help) = match key {
        "default" => (
            "`default` only documents the input; a run started without it reads null",
            "pass the value when you start the run",
        ),
        _ => (
            "`required` only documents the input; a run starts without it",
            "check required inputs in the first step",
        ),
    };
    Diagnostic::hint(Code::IgnoredKey, message).at(span).reference(key).help(help)
}
