//! Steps that contain steps: branches and loops.

use super::bind::{Binder, call, text};
use super::document::python_text;
use super::field::{self, OPENS, as_text, bad, condition, evaluated, given, mapping, needed, nothing};
use super::step::{self, Around};
use super::yaml11::python_key;
use crate::table::Table;
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Node as ExprNode, Piece, Template};
use windlass_ir::workflow::{Bound, Choose, Repeat, RepeatTest, Step};
use windlass_ir::{Code, Span, Value};

const ROUNDS_MAX: u32 = 10;
const STEPS: &str = "a list of steps";

pub fn choose(table: &Table<'_>, around: &Around<'_>) -> Choose<Vec<Step>> {
    let condition = condition(table, "condition");
    let then = needed(table, "then", "write the steps: `then: [{id: …}]`");
    let then = then.map(|node| body(table, "then", node, around)).unwrap_or_default();
    let otherwise = given(table, "else").map(|node| body(table, "else", node, around));
    Choose::If { condition, then, otherwise: otherwise.unwrap_or_default() }
}

pub fn switch(table: &Table<'_>, around: &Around<'_>) -> Choose<Vec<Step>> {
    let node = needed(table, "expression", "write the deciding value: `expression: \"{{ inputs.kind }}\"`");
    let value = match node {
        Some(node) => switch_value(table, node),
        None => nothing(table, "expression"),
    };
    let node = needed(table, "cases", "write a list of steps for each value: `cases: {feature: […]}`");
    let table_of_cases = node.and_then(|node| mapping(table, "cases", node));
    let mut cases: IndexMap<Arc<str>, Vec<Step>> = IndexMap::new();
    for entry in table_of_cases.iter().flat_map(|cases| &cases.map.entries) {
        cases.insert(python_key(&entry.key), case(table, &entry.key.text, &entry.value, around));
    }
    // In alphabetical order, because the order of a mapping has no meaning.
    cases.sort_keys();
    let default = given(table, "default").map(|node| body(table, "default", node, around));
    Choose::Switch { value, cases, default: default.unwrap_or_default() }
}

fn case(table: &Table<'_>, key: &str, node: &Node, around: &Around<'_>) -> Vec<Step> {
    match &node.kind {
        Kind::List(items) => {
            let place = table.place.child("cases").child(key);
            step::list(items, &place, around, table.context)
        }
        Kind::Scalar(_) | Kind::Map(_) => {
            let message = format!("case `{key}` must be {STEPS}, not {}", field::what(table, node));
            let finding = table.error(Code::BadField, "case", node.span, message).reference(key);
            table.report(finding.help(format!("write {STEPS}; use `[]` for an empty one")));
            Vec::new()
        }
    }
}

/// The value to compare with the cases: its text form without surrounding blanks.
fn switch_value(table: &Table<'_>, node: &Node) -> Bound {
    let bound = evaluated(table, "expression", node, Binder::default());
    let span = bound.span;
    let trimmed = |expr: Expr| Template::Expression(call(Function::Trim, [expr], span));
    let template = match bound.template {
        Template::Constant(value) => {
            warn_constant(table, node);
            Template::Constant(Value::text(python_text(&value).trim()))
        }
        Template::Expression(expr) => trimmed(call(Function::Text, [expr], span)),
        Template::Text(pieces) => trimmed(joined(&pieces, span)),
        other @ (Template::List(_) | Template::Map(_)) => other,
    };
    Bound { template, ..bound }
}

/// Text without a block always selects the same case.
fn warn_constant(table: &Table<'_>, node: &Node) {
    let Some(text) = as_text(node).filter(|text| !text.contains(OPENS)) else { return };
    let message = format!("`{text}` is not evaluated, so every run takes the same case");
    let finding = table.warning(Code::ConditionWithoutBraces, "expression", node.span, message);
    let suggest = format!("{{{{ {} }}}}", text.trim());
    table.report(
        finding.reference(&**text).suggest(Some(suggest)).help("put the expression between `{{` and `}}`"),
    );
}

/// A template with several parts as a single expression.
pub fn joined(pieces: &[Piece], span: Span) -> Expr {
    let parts = pieces.iter().map(|piece| match piece {
        Piece::Text(part) => text(part, span),
        Piece::Expression(expr) => call(Function::Text, [expr.clone()], expr.span),
    });
    let list = Expr::new(ExprNode::List(parts.collect()), span);
    call(Function::Join, [list, text("", span)], span)
}

pub fn repeat_while(table: &Table<'_>, around: &Around<'_>) -> Repeat<Vec<Step>> {
    repeat(table, RepeatTest::While, around)
}

pub fn do_while(table: &Table<'_>, around: &Around<'_>) -> Repeat<Vec<Step>> {
    repeat(table, RepeatTest::DoWhile, around)
}

fn repeat(table: &Table<'_>, test: RepeatTest, around: &Around<'_>) -> Repeat<Vec<Step>> {
    let condition = condition(table, "condition");
    let rounds_max = rounds_max(table);
    let steps = needed(table, "steps", "write the steps of a round: `steps: [{id: …}]`");
    let body = steps.map(|node| body(table, "steps", node, around)).unwrap_or_default();
    // A loop that tests before each round records whether it started.
    let as_written = given(table, "condition").filter(|_| test == RepeatTest::DoWhile).map(Node::to_value);
    Repeat { test, condition, rounds_max, delay: None, body, as_written }
}

fn rounds_max(table: &Table<'_>) -> u32 {
    let Some(node) = given(table, "max_iterations") else { return ROUNDS_MAX };
    if let Value::Int(rounds @ 1..) = node.to_value() {
        return u32::try_from(rounds).unwrap_or(u32::MAX);
    }
    bad(table, "max_iterations", node, "a whole number of at least 1");
    ROUNDS_MAX
}

/// A list of steps under a key; it may be empty.
fn body(table: &Table<'_>, key: &str, node: &Node, around: &Around<'_>) -> Vec<Step> {
    match &node.kind {
        Kind::List(items) => step::list(items, &table.place.child(key), around, table.context),
        Kind::Scalar(_) | Kind::Map(_) => {
            bad(table, key, node, STEPS);
            Vec::new()
        }
    }
}
