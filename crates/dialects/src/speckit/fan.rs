//! Fan-outs, which run one step for each item, and fan-ins, which combine the results of earlier steps.

use super::bind::{Binder, Budget, call, object, outputs_of};
use super::field::{as_text, evaluated, given, mapping, needed, nothing, present, what};
use super::step::{self, Around};
use crate::table::Table;
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Node as ExprNode, Template};
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Bound, ForEach, ItemFailure, Items, Step};
use windlass_ir::{Code, Diagnostic, Spanned, Value};

pub fn out(table: &Table<'_>, around: &Around<'_>) -> ForEach<Vec<Step>> {
    let items = needed(table, "items", "set the items: `items: \"{{ steps.list.output.data }}\"`");
    let items = match items {
        Some(node) => evaluated(table, "items", node, Binder::default()),
        None => nothing(table, "items"),
    };
    let step = needed(table, "step", "write the step for each item: `step: {id: …}`");
    let inner = step.and_then(|node| mapping(table, "step", node));
    ForEach {
        items: Items::List(items),
        body: inner.iter().filter_map(|inner| step::template(inner, "step", around)).collect(),
        concurrency: Some(concurrency(table)),
        on_failure: ItemFailure::Halt,
        items_max: None,
        isolated: true,
        as_written: given(table, "max_concurrency").map(Node::to_value),
    }
}

/// Sequential, unless there is a number above one. Text that contains a number counts as one.
fn concurrency(table: &Table<'_>) -> u32 {
    let Some(node) = given(table, "max_concurrency") else { return 1 };
    let number = match node.to_value() {
        Value::Bool(flag) => Some(f64::from(u8::from(flag))),
        Value::Int(int) => Some(int as f64),
        Value::Float(float) => Some(float),
        Value::Text(text) => text.trim().replace('_', "").parse().ok(),
        Value::Null | Value::Sealed(_) | Value::List(_) | Value::Map(_) => None,
    };
    match number.filter(|number| number.is_finite()) {
        // Casting a float to an integer saturates.
        Some(number) => (number as u32).max(1),
        None => {
            let message = format!("the items run one after the other, because this is {}", what(table, node));
            let finding = table.warning(Code::BadNumber, "max_concurrency", node.span, message);
            table.report(finding.help("write a whole number; expressions are not evaluated here"));
            1
        }
    }
}

/// The results of the named steps in order, and the values computed from them. A step that never ran yields an empty
/// object.
pub fn join(table: &Table<'_>, around: &Around<'_>) -> Bindings {
    let waited = wait_for(table, around);
    let span = table.key_span("wait_for");
    let results = waited
        .iter()
        .map(|id| call(Function::Default, [outputs_of(&id.value, id.span), object([], id.span)], id.span));
    let results = Expr::new(ExprNode::List(results.collect()), span);
    let field: Arc<str> = table.place.field("wait_for").into();
    let bound = Bound { template: Template::Expression(results.clone()), field, span };
    let mut set: Bindings = IndexMap::from([("results".into(), bound)]);
    set.extend(computed(table, &results, &around.document.budget));
    set
}

fn computed(table: &Table<'_>, results: &Expr, budget: &Budget) -> Bindings {
    let output = given(table, "output").and_then(|node| mapping(table, "output", node));
    let binder = Binder { results: Some((results, budget)) };
    let entries =
        output.iter().flat_map(|output| output.map.entries.iter().map(move |entry| (output, entry)));
    let bound = entries.map(|(output, entry)| {
        (entry.key.text.clone(), evaluated(output, &entry.key.text, &entry.value, binder))
    });
    bound.collect()
}

fn wait_for(table: &Table<'_>, around: &Around<'_>) -> Vec<Spanned<Arc<str>>> {
    let node = present(table, "wait_for");
    let items: &[Node] = match node.map(|node| &node.kind) {
        Some(Kind::List(items)) => items,
        Some(Kind::Scalar(_) | Kind::Map(_)) | None => &[],
    };
    if items.is_empty() {
        let span = node.map_or(table.span.head(), |node| node.span);
        let message = "`wait_for` must be a list with the id of at least one step";
        let finding = table.error(Code::WaitForEmptyOrNotList, "wait_for", span, message);
        table.report(finding.help("name the steps whose results you need: `wait_for: [fan]`"));
    }
    items.iter().filter_map(|item| waited(table, item, around)).collect()
}

fn waited(table: &Table<'_>, item: &Node, around: &Around<'_>) -> Option<Spanned<Arc<str>>> {
    let own = table.place.step.as_deref().unwrap_or_default();
    let error = |code, message: String| table.error(code, "wait_for", item.span, message);
    let finding: Diagnostic = match as_text(item) {
        None => {
            let message = format!("the id of a step must be a string, not {}", what(table, item));
            error(Code::WaitForEntryNotString, message).help("write the id of a step")
        }
        Some(id) if **id == *own => {
            let message = format!("`{id}` cannot wait for itself");
            error(Code::WaitForSelf, message).reference(&**id).help("name steps that come before it")
        }
        Some(id) if around.knows(id) => return Some(Spanned::new(id.clone(), item.span)),
        Some(id) => {
            let finding =
                error(Code::WaitForUnknownOrLater, format!("there is no step `{id}` before this one"));
            let help = match id.split_once(':') {
                Some((fan, _)) if around.knows(fan) => {
                    format!("wait for `{fan}`: its `results` contain those of all items")
                }
                Some(_) | None => "name a step that comes before this one".to_owned(),
            };
            let meant = table.may_guess().then(|| around.suggest(id, own)).flatten();
            finding.reference(&**id).suggest(meant).help(help)
        }
    };
    table.report(finding);
    None
}
