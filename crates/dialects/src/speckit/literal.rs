//! Fields in which Spec Kit does not evaluate expressions although they look as if it did: only strings at the top
//! level of a few keys are evaluated, and braces anywhere else are passed on unchanged.

use super::field::OPENS;
use crate::table::Table;
use crate::text::{Kind, Node};
use windlass_ir::Code;

/// Keys whose value is taken literally, at any depth.
const AS_WRITTEN: [&str; 2] = ["command", "options"];
/// Keys whose strings are evaluated, but not nested ones.
const TOP_ONLY: [&str; 3] = ["input", "output", "integration_options"];

/// Warns about text with braces that is never evaluated.
pub fn check(step: &Table<'_>) {
    for key in AS_WRITTEN {
        step.lookup(key).iter().for_each(|entry| texts(step, key, &entry.value));
    }
    for key in TOP_ONLY {
        let entries = step.lookup(key).map(|entry| below(&entry.value)).unwrap_or_default();
        entries.into_iter().flat_map(below).for_each(|node| texts(step, key, node));
    }
    let items = step.lookup("items").map(|entry| below(&entry.value)).unwrap_or_default();
    items.into_iter().for_each(|node| texts(step, "items", node));
}

fn below(node: &Node) -> Vec<&Node> {
    match &node.kind {
        Kind::Scalar(_) => Vec::new(),
        Kind::List(items) => items.iter().collect(),
        Kind::Map(map) => map.entries.iter().map(|entry| &entry.value).collect(),
    }
}

fn texts(step: &Table<'_>, key: &str, node: &Node) {
    match &node.kind {
        Kind::Scalar(scalar) if scalar.text.contains(OPENS) => {
            let message =
                format!("expressions are not evaluated here: `{key}` receives the braces unchanged");
            let finding = step.warning(Code::NotAvailableHere, key, node.span, message);
            let help =
                "write the value itself, or pass it as a separate string where expressions are evaluated";
            step.report(finding.help(help));
        }
        Kind::Scalar(_) => {}
        Kind::List(_) | Kind::Map(_) => below(node).into_iter().for_each(|inner| texts(step, key, inner)),
    }
}
