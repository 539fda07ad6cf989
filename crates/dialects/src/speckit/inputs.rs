//! Reads the declared inputs of a run: their types and choices, and their defaults, which are checked at once.

use super::document::python_text;
use super::field::{self, as_text, given, present, what};
use crate::table::Table;
use crate::text::{Entry, Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Semantics, is_truthy};
use windlass_ir::plan::Given;
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::Parameter;
use windlass_ir::{Code, Type, Value};

/// The input that accepts `auto`, the default integration of the project, whatever its choices are.
const INTEGRATION: &str = "integration";
const AUTO: &str = "auto";

/// `None` if the block itself is invalid.
pub fn read(top: &Table<'_>) -> Option<IndexMap<Arc<str>, Parameter>> {
    let Some(node) = present(top, "inputs") else { return Some(IndexMap::new()) };
    let table = field::mapping(top, "inputs", node)?;
    let entries = table.map.entries.iter();
    Some(entries.map(|entry| (entry.key.text.clone(), read_input(&table, entry))).collect())
}

fn read_input(inputs: &Table<'_>, entry: &Entry) -> Parameter {
    let name = &*entry.key.text;
    let mut parameter = Parameter {
        ty: Type::Any,
        required: false,
        default: None,
        choices: Vec::new(),
        description: None,
        span: entry.key.span,
    };
    let Kind::Map(map) = &entry.value.kind else {
        let message = format!("input `{name}` must be a mapping, not {}", what(inputs, &entry.value));
        let finding = inputs.error(Code::InputNotMapping, name, entry.value.span, message);
        inputs.report(finding.reference(name).help(format!("write `{name}: {{type: string}}`")));
        return parameter;
    };
    let table = Table::new(inputs.context, map, entry.value.span, inputs.place.child(name));
    parameter.ty = read_type(&table, name);
    parameter.choices = read_choices(&table, name);
    parameter.required = read_required(&table);
    parameter.description = read_description(&table);
    if let Some(node) = present(&table, "default") {
        parameter.default = read_default(&table, name, node, &parameter);
    }
    table.finish_all();
    parameter
}

fn read_type(table: &Table<'_>, name: &str) -> Type {
    const TYPES: [(&str, Type); 3] =
        [("string", Type::String), ("number", Type::Number), ("boolean", Type::Boolean)];
    const ALIASES: [(&str, &str); 6] = [
        ("text", "string"),
        ("str", "string"),
        ("int", "number"),
        ("integer", "number"),
        ("float", "number"),
        ("bool", "boolean"),
    ];
    let Some(node) = given(table, "type") else { return Type::String };
    let word = as_text(node).map_or("", |word| word);
    if let Some((_, ty)) = TYPES.iter().find(|(known, _)| *known == word) {
        return ty.clone();
    }
    if as_text(node).is_some_and(|word| word.is_empty()) {
        return Type::String;
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == word).map(|(_, word)| *word);
    let near = alias.or_else(|| nearest(word, TYPES.iter().map(|(known, _)| *known)));
    let message = format!("invalid type of input `{name}`: {}", what(table, node));
    let finding = table.error(Code::InputTypeUnknown, "type", node.span, message).reference(name);
    table.report(finding.suggest(near).help("use string, number or boolean"));
    Type::Any
}

fn read_choices(table: &Table<'_>, name: &str) -> Vec<Value> {
    let Some(node) = given(table, "enum") else { return Vec::new() };
    let Kind::List(items) = &node.kind else {
        let message = format!("`enum` of input `{name}` must be a list, not {}", what(table, node));
        let finding = table.error(Code::InputEnumNotList, "enum", node.span, message).reference(name);
        table.report(finding.help("write the values as a list: `enum: [a, b]`"));
        return Vec::new();
    };
    let auto = (name == INTEGRATION && !items.is_empty()).then(|| Value::text(AUTO));
    let choices = items.iter().map(Node::to_value);
    let known = items.iter().any(|item| as_text(item).is_some_and(|text| &**text == AUTO));
    choices.chain(auto.filter(|_| !known)).collect()
}

/// Anything that is truthy in Python; only true and false go without a warning.
fn read_required(table: &Table<'_>) -> bool {
    let Some(node) = given(table, "required") else { return false };
    let value = node.to_value();
    let truth = is_truthy(&value, &Semantics::SPECKIT).unwrap_or(false);
    if !matches!(value, Value::Bool(_)) {
        let message = format!("`required` is read as {truth}, because it is {}", what(table, node));
        let finding = table.warning(Code::BadField, "required", node.span, message);
        table.report(finding.help("write true or false, without quotes"));
    }
    truth
}

/// The prompt for people. Spec Kit never asks; programs that display the inputs show it.
fn read_description(table: &Table<'_>) -> Option<Arc<str>> {
    let prompt = given(table, "prompt");
    let description = given(table, "description");
    prompt.or(description).map(|node| python_text(&node.to_value()).into())
}

fn read_default(table: &Table<'_>, name: &str, node: &Node, parameter: &Parameter) -> Option<Value> {
    if parameter.ty == Type::Any {
        return Some(node.to_value());
    }
    match parameter.accept(&Given::Value(node.to_value()), &Semantics::SPECKIT) {
        Ok(value) => Some(value),
        Err(cause) => {
            let message = format!("invalid default of input `{name}`: {cause}");
            let finding = table.error(Code::InputDefaultInvalid, "default", node.span, message);
            let help = match parameter.choices.is_empty() {
                true => format!("write a {}, or change `type`", parameter.ty),
                false => format!("write a {} from `enum`, or change one of the two", parameter.ty),
            };
            table.report(finding.reference(name).help(help));
            None
        }
    }
}
