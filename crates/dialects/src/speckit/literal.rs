//! Places where Spec Kit reads no expression although they look as if it did: only texts at the top of a few keys are
//! evaluated, and braces anywhere else are passed on as they are.

use super::field::OPENS;
use crate::table::Table;
use crate::text::{Kind, Node};
use windlass_ir::Code;

/// Keys whose value is taken as it is, however deep.
const AS_WRITTEN: [&str; 2] = ["command", "options"];
/// Keys in which texts are evaluated, and what stands deeper is not.
const TOP_ONLY: [&str; 3] = ["input", "output", "integration_options"];

/// Warns about each text with braces that nothing will ever evaluate.
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
            let message = format!("no expression is read here: `{key}` gets the braces as they are");
            let finding = step.warning(Code::NotAvailableHere, key, node.span, message);
            let help = "write the value itself, or pass it as a text of its own where one is evaluated";
            step.report(finding.help(help));
        }
        Kind::Scalar(_) => {}
        Kind::List(_) | Kind::Map(_) => below(node).into_iter().for_each(|inner| texts(step, key, inner)),
    }
}
