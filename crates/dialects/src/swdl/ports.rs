//! Contracts: parameters, inputs, outputs and the form fields of a gate.

use super::names::{NAME_RULE, is_name};
use super::table::Table;
use crate::text::{Entry, Kind, Node, Scalar};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::contract::Contract;
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{FormField, Input, Output, Parameter};
use windlass_ir::{Code, Spanned, Type, Value};

/// Reads a mapping of names to mappings with `read`.
fn each<T>(
    table: &Table<'_>,
    key: &'static str,
    read: impl Fn(&Table<'_>, &Entry) -> T,
) -> IndexMap<Arc<str>, T> {
    let Some(ports) = table.table(key) else { return IndexMap::new() };
    let mut found = IndexMap::with_capacity(ports.map.entries.len());
    for entry in &ports.map.entries {
        let name = &entry.key.text;
        if !is_name(name) && !table.context.foreign {
            let finding = ports.error(Code::BadName, name, entry.key.span, format!("invalid name `{name}`"));
            ports.report(finding.reference(&**name).help(NAME_RULE));
        }
        if let Kind::Scalar(scalar) = &entry.value.kind {
            let finding = ports.error(Code::WrongShape, name, entry.value.span, "this must be a mapping");
            ports.report(finding.help(format!("write `{name}: {{{}}}`", spelled_out(key, scalar))));
            continue;
        }
        if let Some(port) = Table::of(table.context, &entry.value, ports.place.child(name)) {
            found.insert(name.clone(), read(&port, entry));
        }
    }
    found
}

/// The keys that a value in the place of a mapping stands for: its type, if it names one, or a value.
fn spelled_out(key: &str, scalar: &Scalar) -> String {
    let text = &*scalar.text;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let quoted = || match scalar.to_value() {
        Value::Text(text) if text.is_empty() || !text.chars().all(plain) => format!("{:?}", &*text),
        _ => text.to_owned(),
    };
    let value = scalar.to_value();
    match (key, Type::parse(text)) {
        (_, Some(_)) => format!("type: {text}"),
        (_, None) if value == Value::Null => "type: string".to_owned(),
        ("inputs", None) => format!("source: {}", quoted()),
        ("outputs", None) => "type: string".to_owned(),
        (_, None) => format!("type: {}, default: {}", Type::of(&value), quoted()),
    }
}

pub fn parameters(config: &Table<'_>) -> IndexMap<Arc<str>, Parameter> {
    each(config, "parameters", |port, entry| {
        let parameter = Parameter {
            choices: choices(port),
            ty: read_type(port),
            required: port.boolean("required").unwrap_or(false),
            default: default(port),
            description: port.prose("description"),
            span: entry.key.span,
        };
        port.finish_all();
        if !port.context.foreign {
            check_choices(port, &parameter);
        }
        parameter
    })
}

pub fn inputs(stage: &Table<'_>) -> IndexMap<Arc<str>, Input> {
    each(stage, "inputs", |port, entry| {
        let input = Input {
            ty: read_type(port),
            source: port.bound("source"),
            required: port.boolean("required").unwrap_or(true),
            description: port.prose("description"),
            span: entry.key.span,
        };
        port.finish_all();
        if input.required && input.source.is_none() {
            let message = format!("required input `{}` has no source, so it is always null", entry.key.text);
            let finding = port.warning(Code::MissingField, "source", entry.key.span, message);
            port.report(finding.help("add a `source`, or write `required: false`"));
        }
        input
    })
}

/// Whether the outputs of a stage are computed by `source` expressions or produced by its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    Computed,
    Produced,
    /// The kind determines the outputs: nothing can be declared.
    Fixed,
    /// Under the rules of another dialect: anything can be declared.
    Free,
}

pub fn outputs(table: &Table<'_>, outputs: Outputs) -> IndexMap<Arc<str>, Output> {
    let outputs = if table.context.foreign { Outputs::Free } else { outputs };
    if outputs == Outputs::Fixed {
        return IndexMap::new();
    }
    each(table, "outputs", |port, entry| output(port, entry, outputs))
}

/// The result of a run as a single value.
pub fn result(top: &Table<'_>) -> Option<Output> {
    let port = top.table("output")?;
    let entry = top.lookup("output")?;
    Some(output(&port, entry, if top.context.foreign { Outputs::Free } else { Outputs::Computed }))
}

fn output(port: &Table<'_>, entry: &Entry, outputs: Outputs) -> Output {
    let computed = matches!(outputs, Outputs::Computed | Outputs::Free);
    let output = Output {
        ty: read_type(port),
        required: port.boolean("required").unwrap_or(true),
        default: default(port),
        description: port.prose("description"),
        source: if computed { port.bound("source") } else { None },
        span: entry.key.span,
    };
    port.finish(&["source"], |_| {
        ("on an output that the work itself produces".into(), "remove it: the work provides the value")
    });
    if outputs == Outputs::Computed && output.source.is_none() {
        port.missing("source", "state the source of the value: `source: \"${{ stages.x.outputs.y }}\"`");
    }
    output
}

/// The value that replaces a missing one. In other dialects a default may be null.
fn default(port: &Table<'_>) -> Option<Value> {
    let given = port.node("default");
    match port.context.foreign {
        true => port.lookup("default").map(|entry| entry.value.to_value()),
        false => given.map(Node::to_value),
    }
}

fn choices(port: &Table<'_>) -> Vec<Value> {
    port.list("choices").unwrap_or_default().iter().map(Node::to_value).collect()
}

/// Every choice must have the declared type, and the default must be one of the choices.
fn check_choices(port: &Table<'_>, parameter: &Parameter) {
    let Some(node) = port.node("choices").filter(|_| !parameter.choices.is_empty()) else { return };
    let contract = Contract::new(&parameter.ty).ok();
    let is_wrong =
        |choice: &&Value| contract.as_ref().is_some_and(|contract| contract.check(choice).is_err());
    if parameter.choices.iter().find(is_wrong).is_some() {
        let message = format!("this choice is not of type {}", parameter.ty);
        let finding = port.error(Code::BadDefault, "choices", node.span, message);
        port.report(finding.help("change the value or the type"));
    } else if parameter.default.as_ref().is_some_and(|default| !parameter.choices.contains(default)) {
        let message = "the default is not one of the choices";
        let finding = port.error(Code::BadDefault, "default", parameter.span, message);
        port.report(finding.help("add it to `choices`, or use another default"));
    }
}

pub fn form(gate: &Table<'_>) -> IndexMap<Arc<str>, FormField> {
    each(gate, "form", |port, entry| {
        let field = FormField {
            ty: read_type(port),
            required: port.boolean("required").unwrap_or(true),
            default: default(port),
            description: port.prose("description"),
            choices: choices(port),
            span: entry.key.span,
        };
        port.finish_all();
        field
    })
}

/// `type`, or a JSON Schema under `schema`. Without either, any value is valid.
pub fn read_type(port: &Table<'_>) -> Type {
    let word = port.text("type");
    let Some(node) = port.node("schema") else {
        return word.map_or(Type::Any, |word| parse_type(port, &word));
    };
    if let Some(word) = word {
        let finding =
            port.error(Code::ConflictingKeys, "type", word.span, "`type` and `schema` cannot both be given");
        port.report(finding.label(node.span, "the schema").help("keep one of the two"));
    }
    let ty = Type::Schema(Arc::new(node.to_value().to_json().unwrap_or(serde_json::Value::Bool(true))));
    match Contract::new(&ty) {
        Ok(_) => ty,
        Err(error) => {
            let cause = match error.message.contains("resolve-") {
                true => "it refers to another document, and external documents are never loaded".to_owned(),
                false => error.message,
            };
            let finding =
                port.error(Code::BadSchema, "schema", node.span, format!("invalid JSON Schema: {cause}"));
            port.report(finding.help("correct the schema, or use one of the simple types with `type`"));
            Type::Any
        }
    }
}

fn parse_type(port: &Table<'_>, word: &Spanned<Arc<str>>) -> Type {
    Type::parse(&word.value).unwrap_or_else(|| {
        let finding = port
            .error(Code::UnknownType, "type", word.span, format!("unknown type `{}`", word.value))
            .reference(&*word.value)
            .suggest(suggest_type(&word.value))
            .help(format!("use one of {} or array<T>", Type::WORDS.join(", ")));
        port.report(finding);
        Type::Any
    })
}

/// The closest type name, also inside `array<…>`.
fn suggest_type(text: &str) -> Option<String> {
    const ALIASES: [(&str, &str); 8] = [
        ("str", "string"),
        ("text", "string"),
        ("int", "integer"),
        ("float", "number"),
        ("bool", "boolean"),
        ("dict", "object"),
        ("map", "object"),
        ("array", "array<any>"),
    ];
    let text = text.trim().to_lowercase();
    let text = text.as_str();
    if let Some(item) = text.strip_suffix("[]") {
        return Some(format!("array<{}>", if Type::parse(item).is_some() { item } else { "any" }));
    }
    if let Some(inner) = text.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) {
        return suggest_type(inner).map(|inner| format!("array<{inner}>"));
    }
    let alias = ALIASES.iter().find(|(word, _)| *word == text || (*word == "array" && text == "list"));
    let exact = Type::WORDS.iter().find(|word| **word == text).copied();
    let near = alias.map(|(_, ty)| *ty).or(exact).or_else(|| nearest(text, Type::WORDS));
    near.map(str::to_owned)
}
