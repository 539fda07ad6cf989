//! The same expression in both programs: its value and type, whether it holds as a condition, and whether it raises.

use super::decisions;
use super::dice::Dice;
use super::expression_texts;
use super::oracle::Oracle;
use super::report::{Disagreement, Report};
use super::shrink::{shorter, shrink};
use serde_json::Value as Json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windlass_dialects::speckit::expr::{parse_any_condition, parse_template, scope};
use windlass_ir::expr::{BinaryOp, Expr, Function, Limits, Node, Semantics, Template, holds, render};
use windlass_ir::{Span, Value};

/// Expressions that share one context and one question to the oracle.
pub const BATCH: u64 = 500;

/// A text, its context, and what each program makes of it.
struct Tried {
    text: String,
    ours: Answers,
    theirs: Answers,
}

/// The value and the condition, each as text that tells types apart; none where it raises.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answers {
    value: Option<String>,
    condition: Option<String>,
}

pub fn batch(seed: u64, number: u64, size: u64, oracle: &mut Oracle, report: &mut Report) {
    let mut dice = Dice::of(seed, number);
    let context = expression_texts::context(&mut dice);
    let texts: Vec<String> = (0..size).map(|_| expression_texts::text(&mut dice)).collect();
    for tried in attempt(oracle, &context, texts) {
        report.expressions += 1;
        if tried.ours == tried.theirs {
            count(&tried, report);
        } else if let Some(decision) = decisions::of_expression(&tried.text) {
            *report.decided.entry(decision).or_default() += 1;
        } else {
            report.differ(number, || explain(oracle, &context, tried.text));
        }
    }
}

fn attempt(oracle: &mut Oracle, context: &Json, texts: Vec<String>) -> Vec<Tried> {
    let theirs = oracle.expressions(context, &texts);
    let value = Value::from(context);
    let tried = texts.into_iter().zip(theirs);
    tried.map(|(text, theirs)| Tried { ours: ours(&text, &value), theirs: read(&theirs), text }).collect()
}

fn read(theirs: &Json) -> Answers {
    let one = |answer: &Json| answer.get("value").map(tagged);
    Answers { value: one(&theirs["value"]), condition: one(&theirs["condition"]) }
}

fn ours(text: &str, context: &Value) -> Answers {
    let scope = scope(context);
    let rendered =
        |template: &Template| render(template, &scope, &Semantics::SPECKIT, &Limits::default()).ok();
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let value = rendered(&parse_template(text, &nowhere).0);
        let condition = rendered(&parse_any_condition(text, &nowhere).0);
        let condition = condition.and_then(|value| holds(&value, &Semantics::SPECKIT).ok());
        Answers { value: value.as_ref().map(shown), condition: condition.map(|flag| flag.to_string()) }
    }));
    answered.unwrap_or_else(|_| Answers { value: Some("PANIC".into()), condition: Some("PANIC".into()) })
}

fn nowhere(_: std::ops::Range<usize>) -> Span {
    Span::default()
}

/// JSON, but that floats are as Rust shows them: `1.0` is no `1`, and what JSON cannot write can be told apart.
fn shown(value: &Value) -> String {
    match value {
        Value::Float(float) => format!("{float:?}"),
        Value::Int(int) => int.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Map(map) => {
            let entry =
                |(key, value): (&std::sync::Arc<str>, &Value)| format!("{}: {}", quoted(key), shown(value));
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::Text(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Sealed(_) => value.to_json_text().unwrap_or("a secret".into()),
    }
}

/// The same for what the oracle said.
fn tagged(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(tagged).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => match map.iter().next() {
            Some((tag, Json::String(text))) if tag == "~float" => {
                format!("{:?}", text.parse::<f64>().expect("Python's floats are Rust's"))
            }
            Some((tag, Json::String(text))) if tag.starts_with('~') => text.clone(),
            _ => {
                let entry = |(key, value): (&String, &Json)| format!("{}: {}", quoted(key), tagged(value));
                format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
            }
        },
        Json::String(text) => quoted(text),
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}

fn quoted(text: &str) -> String {
    Json::from(text).to_string()
}

/// Counts what stands at the root of an expression that has a value: that was certainly evaluated.
fn count(tried: &Tried, report: &mut Report) {
    if tried.ours.value.is_none() {
        report.raised += 1;
        return;
    }
    let (template, _) = parse_template(&tried.text, &nowhere);
    let kind = match &template {
        Template::Expression(expr) => {
            report.count(operation(expr));
            "one block"
        }
        Template::Text(_) => "text with blocks",
        Template::Constant(_) | Template::List(_) | Template::Map(_) => "text",
    };
    report.count(kind);
}

/// Every operation that must have had a value at least once.
#[rustfmt::skip]
pub const OPERATIONS: &[&str] = &[
    "one block", "text with blocks", "text", "literal", "list", "path", "not", "not in", "in", "and", "or", "==",
    "!=", "<", "<=", ">", ">=", "default", "join", "map", "contains", "split", "upper", "lower", "length",
    "from_json", "to_json",
];

fn operation(expr: &Expr) -> &'static str {
    match &expr.node {
        Node::Literal(_) => "literal",
        Node::List(_) => "list",
        Node::Not(inner) if matches!(&inner.node, Node::Call { function: Function::In, .. }) => "not in",
        Node::Not(_) => "not",
        Node::Binary { op: BinaryOp::And, .. } => "and",
        Node::Binary { op: BinaryOp::Or, .. } => "or",
        Node::Binary { op, .. } => op.symbol(),
        Node::Call { function, .. } => match function {
            Function::In => "in",
            Function::FromJson => "from_json",
            Function::ToJson => "to_json",
            function => function.name(),
        },
        Node::Read(_)
        | Node::Member { .. }
        | Node::Index { .. }
        | Node::Query { .. }
        | Node::Choice { .. } => "path",
    }
}

/// The disagreement as small as it gets: first the text, then the context.
fn explain(oracle: &mut Oracle, context: &Json, text: String) -> Disagreement {
    let differs =
        |tried: &Tried| tried.ours != tried.theirs && decisions::of_expression(&tried.text).is_none();
    let text = shrink(
        text,
        4_000,
        |text| shorter(text),
        |texts| attempt(oracle, context, texts.to_vec()).iter().position(differs),
    );
    let context = shrink(context.clone(), 20_000, smaller_contexts, |contexts| {
        contexts.iter().position(|context| attempt(oracle, context, vec![text.clone()]).iter().any(differs))
    });
    let theirs = oracle.expressions(&context, std::slice::from_ref(&text));
    let ours = ours(&text, &Value::from(&context));
    Disagreement {
        what: format!("expression {text:?}"),
        how: format!("context: {context}\n  ours:   {ours:?}\n  theirs: {}", theirs[0]),
    }
}

/// The context without one of the entries of its objects.
fn smaller_contexts(context: &Json) -> Vec<Json> {
    let mut found = Vec::new();
    for (key, value) in context.as_object().into_iter().flatten() {
        let mut without = context.clone();
        without.as_object_mut().expect("it is one").shift_remove(key);
        if key != "inputs" && key != "steps" {
            found.push(without);
        }
        for inner in value.as_object().into_iter().flat_map(|map| map.keys()) {
            let mut without = context.clone();
            without[key].as_object_mut().expect("it is one").shift_remove(inner);
            found.push(without);
        }
    }
    found
}
