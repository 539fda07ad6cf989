//! Reads the keys of a Spec Kit mapping as strictly as Spec Kit does: a key that is present must have the right
//! shape, and an empty value is a value. Problems are `missing_field` or `bad_field`, with the key as the field.

use super::bind::Binder;
use super::expr::{parse_condition, parse_template};
use crate::table::{StepOf, Table};
use crate::text::{Kind, Locator, Node};
use std::sync::Arc;
use windlass_ir::expr::{Expr, Node as ExprNode, Template};
use windlass_ir::workflow::{Bound, Condition};
use windlass_ir::{Code, Diagnostic, Duration, Span, Spanned, Value};

/// What opens an expression; text without it is not parsed.
pub const OPENS: &str = "{{";

/// The value of a key, empty or not; marks the key as known.
pub fn present<'a>(table: &Table<'a>, key: &'static str) -> Option<&'a Node> {
    table.known(&[key]);
    table.lookup(key).map(|entry| &entry.value)
}

/// The value of a key that may be empty.
pub fn given<'a>(table: &Table<'a>, key: &'static str) -> Option<&'a Node> {
    table.node(key)
}

pub fn needed<'a>(table: &Table<'a>, key: &'static str, help: &str) -> Option<&'a Node> {
    let node = present(table, key);
    if node.is_none() {
        table.missing(key, help);
    }
    node
}

/// Reports an invalid value; `wanted` completes "must be …".
pub fn bad(table: &Table<'_>, key: &str, node: &Node, wanted: &str) {
    bad_with(table, key, node, wanted, format!("write {wanted}"));
}

fn bad_with(table: &Table<'_>, key: &str, node: &Node, wanted: &str, help: String) {
    let message = format!("`{}` must be {wanted}, not {}", table.place.field(key), what(table, node));
    table.report(table.error(Code::BadField, key, node.span, message).help(help));
}

/// A value for messages, as its author wrote it.
pub fn what(table: &Table<'_>, node: &Node) -> String {
    let written = || written(table, node.span);
    match node.to_value() {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) => format!("the boolean `{}`", written()),
        Value::Int(_) | Value::Float(_) => format!("the number `{}`", written()),
        Value::Text(_) | Value::Sealed(_) => format!("the string {}", written_text(&written())),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

fn written_text(text: &str) -> String {
    if text.starts_with(['"', '\'']) { text.to_owned() } else { format!("`{text}`") }
}

/// The first line of the source text.
pub fn written(table: &Table<'_>, span: Span) -> String {
    const CHARS_MAX: usize = 60;
    let text = &table.context.sources.get(span.source).text;
    let text = text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

pub fn as_text(node: &Node) -> Option<&Arc<str>> {
    match &node.kind {
        Kind::Scalar(scalar) => matches!(scalar.to_value(), Value::Text(_)).then_some(&scalar.text),
        Kind::List(_) | Kind::Map(_) => None,
    }
}

/// The text of a node; reports anything else.
pub fn text(table: &Table<'_>, key: &str, node: &Node) -> Option<Spanned<Arc<str>>> {
    let text = as_text(node).map(|text| Spanned::new(text.clone(), node.span));
    if text.is_none() {
        let help = match node.to_value() {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                format!("put it in quotes if you meant a string: \"{}\"", written(table, node.span))
            }
            Value::Null | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => {
                "write a string".to_owned()
            }
        };
        bad_with(table, key, node, "text", help);
    }
    text
}

pub fn list<'a>(table: &Table<'a>, key: &str, node: &'a Node, wanted: &str) -> Option<&'a [Node]> {
    match &node.kind {
        Kind::List(items) => Some(items),
        Kind::Scalar(_) | Kind::Map(_) => {
            bad(table, key, node, wanted);
            None
        }
    }
}

pub fn mapping<'a>(table: &Table<'a>, key: &str, node: &'a Node) -> Option<Table<'a>> {
    match &node.kind {
        Kind::Map(map) => Some(Table::new(table.context, map, node.span, table.place.child(key))),
        Kind::Scalar(_) | Kind::List(_) => {
            bad(table, key, node, "a mapping");
            None
        }
    }
}

/// A boolean: neither text that says so, nor a number.
pub fn boolean(table: &Table<'_>, key: &'static str) -> Option<bool> {
    let node = present(table, key)?;
    if let Value::Bool(flag) = node.to_value() {
        return Some(flag);
    }
    bad_with(table, key, node, "true or false", "write true or false, without quotes".to_owned());
    None
}

/// A number of seconds above zero.
pub fn seconds(table: &Table<'_>, key: &'static str) -> Option<Duration> {
    let node = present(table, key)?;
    let seconds = match node.to_value() {
        Value::Int(int) => Some(int as f64),
        Value::Float(float) => Some(float),
        Value::Null | Value::Bool(_) | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => {
            None
        }
    };
    match seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0) {
        // Casting a float to an integer saturates; fractions of a microsecond are rounded up.
        Some(seconds) => Some(Duration(((seconds * 1e6).round() as u64).max(1))),
        None => {
            bad(table, key, node, "a number of seconds above zero");
            None
        }
    }
}

/// A value whose text is evaluated. Anything else, and nested values, are passed on unchanged.
pub fn evaluated(table: &Table<'_>, key: &str, node: &Node, binder: Binder<'_>) -> Bound {
    let field: Arc<str> = table.place.field(key).into();
    let template = match (&node.kind, as_text(node)) {
        (Kind::Scalar(scalar), Some(text)) if text.contains(OPENS) => {
            let locator = Locator::of_scalar(scalar, node.span, table.context.sources.get(node.span.source));
            let (template, mut findings) = parse_template(text, &|range| locator.span(range));
            let template = binder.template(template, &mut findings);
            report(table, findings, &field);
            template
        }
        (_, _) => Template::Constant(node.to_value()),
    };
    Bound { template, field, span: node.span }
}

/// The same for a key that must be a string.
pub fn evaluated_text(table: &Table<'_>, key: &str, node: &Node) -> Option<Bound> {
    text(table, key, node).map(|_| evaluated(table, key, node, Binder::default()))
}

/// Text or a boolean used as a condition; invalid values count as true, so that the rest is still checked.
pub fn condition(table: &Table<'_>, key: &'static str) -> Condition {
    let field: Arc<str> = table.place.field(key).into();
    let node = needed(table, key, "write the condition: `condition: \"{{ inputs.ready }}\"`");
    let expr = node.and_then(|node| condition_of(table, key, node, &field));
    let always = || Expr::new(ExprNode::Literal(Value::Bool(true)), table.span.head());
    Condition { expr: expr.unwrap_or_else(always), field }
}

fn condition_of(table: &Table<'_>, key: &str, node: &Node, field: &Arc<str>) -> Option<Expr> {
    if let value @ Value::Bool(_) = node.to_value() {
        return Some(Expr::new(ExprNode::Literal(value), node.span));
    }
    let (Kind::Scalar(scalar), Some(text)) = (&node.kind, as_text(node)) else {
        bad(table, key, node, "an expression in `{{ }}`, true or false");
        return None;
    };
    let locator = Locator::of_scalar(scalar, node.span, table.context.sources.get(node.span.source));
    let (expr, mut findings) = parse_condition(text, &|range| locator.span(range));
    let expr = Binder::default().expr(expr, &mut findings);
    report(table, findings, field);
    Some(expr)
}

pub fn report(table: &Table<'_>, findings: Vec<Diagnostic>, field: &Arc<str>) {
    findings.into_iter().for_each(|finding| table.report(finding.step_of(&table.place).field(&**field)));
}

/// A placeholder for a missing value; the mistake has already been reported.
pub fn nothing(table: &Table<'_>, key: &str) -> Bound {
    let template = Template::Constant(Value::text(""));
    Bound { template, field: table.place.field(key).into(), span: table.span.head() }
}
