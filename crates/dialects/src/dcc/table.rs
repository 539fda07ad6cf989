//! Ways to read a mapping that only this dialect needs: strict strings, 64-bit integers, and values with references.

use super::bind::Binder;
use super::template::{Locate, OPEN, parse_template};
pub use crate::table::{Context, Place, StepOf, Table, is_null, wrong_shape};
use crate::text::{Kind, Locator, Node, Scalar, Style};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Template;
use windlass_ir::{Code, Diagnostic, Severity, Span, Value};

/// Text; a number or a word like `true` must be quoted.
pub fn strict_text<'a>(table: &Table<'a>, key: &'static str) -> Option<(&'a Scalar, Span)> {
    let (scalar, span) = table.scalar(key, "text")?;
    if let Value::Text(_) = scalar.to_value() {
        return Some((scalar, span));
    }
    let message = format!("`{}` is read as {}, not as a string", scalar.text, scalar.to_value().kind());
    let finding = table.error(Code::WrongShape, key, span, message).reference(&*scalar.text);
    table.report(finding.help(format!("put it in quotes: \"{}\"", scalar.text)));
    None
}

/// The same for a field without references.
pub fn plain_text(table: &Table<'_>, key: &'static str) -> Option<Arc<str>> {
    let (scalar, span) = strict_text(table, key)?;
    if scalar.text.contains(OPEN) {
        let message = format!("`{key}` is taken literally: references are not evaluated here");
        let finding = table.warning(Code::NotAvailableHere, key, span, message);
        table.report(finding.help("write the value itself"));
    }
    Some(scalar.text.clone())
}

/// A whole number of up to 64 bits, without quotes.
pub fn whole(table: &Table<'_>, key: &'static str, min: u64) -> Option<u64> {
    let (scalar, _) = table.scalar(key, "a whole number")?;
    match scalar.text.parse() {
        Ok(number) if scalar.style == Style::Plain && number >= min => Some(number),
        _ => table.integer(key, min, u64::MAX),
    }
}

/// Calls `f` with a function from a part of the text to its location in the file.
pub fn located<T>(scalar: &Scalar, span: Span, context: &Context<'_>, f: impl FnOnce(Locate<'_>) -> T) -> T {
    let locator = Locator::of_scalar(scalar, span, context.sources.get(span.source));
    f(&|range| locator.span(range))
}

/// A value whose strings may contain references; the keys of mappings are taken literally.
pub fn template(node: &Node, binder: &mut Binder<'_>, context: &Context<'_>) -> Template {
    match &node.kind {
        Kind::Scalar(scalar) => match scalar.to_value() {
            Value::Text(_) => text_template(scalar, node.span, binder, context),
            other => Template::Constant(other),
        },
        Kind::List(items) => list(items.iter().map(|item| template(item, binder, context)).collect()),
        Kind::Map(map) => {
            let entries = map.entries.iter().map(|entry| {
                let around = binder.field.len();
                binder.field.extend([".", &entry.key.text]);
                let value = template(&entry.value, binder, context);
                binder.field.truncate(around);
                (entry.key.text.clone(), value)
            });
            mapping(entries.collect())
        }
    }
}

pub fn text_template(
    scalar: &Scalar,
    span: Span,
    binder: &mut Binder<'_>,
    context: &Context<'_>,
) -> Template {
    if !scalar.text.contains(OPEN) {
        return Template::Constant(Value::Text(scalar.text.clone()));
    }
    let (template, findings) = located(scalar, span, context, |locate| parse_template(&scalar.text, locate));
    findings.into_iter().for_each(|finding| binder.note(finding));
    binder.template(template)
}

fn constant(template: &Template) -> Option<Value> {
    match template {
        Template::Constant(value) => Some(value.clone()),
        Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Map(_) => None,
    }
}

/// A list without references is plain data.
fn list(items: Vec<Template>) -> Template {
    match items.iter().map(constant).collect::<Option<Vec<Value>>>() {
        Some(values) => Template::Constant(Value::list(values)),
        None => Template::List(items),
    }
}

fn mapping(entries: IndexMap<Arc<str>, Template>) -> Template {
    match entries.iter().map(|(key, item)| Some((key.clone(), constant(item)?))).collect::<Option<Vec<_>>>() {
        Some(values) => Template::Constant(Value::map(values)),
        None => Template::Map(entries),
    }
}

/// Adds what happens to the step to each finding about an invalid reference.
pub fn with_consequence(findings: Vec<Diagnostic>, consequence: &str) -> Vec<Diagnostic> {
    let fails = |finding: &Diagnostic| {
        finding.severity == Severity::Warning
            && matches!(finding.code, Code::ExpressionSyntax | Code::UnknownNamespace)
    };
    findings
        .into_iter()
        .map(|finding| match fails(&finding) {
            true => Diagnostic { message: format!("{}: {consequence}", finding.message), ..finding },
            false => finding,
        })
        .collect()
}

pub const FAILS: &str = "the step fails when it runs";
