//! Calls: another installed workflow as part of this run, with its own input.

use super::bind::Binder;
use super::document::{RESERVED_IDS, is_id, to_id};
use super::field::{OPENS, evaluated, evaluated_text, mapping, needed, nothing, present};
use crate::table::Table;
use crate::text::Node;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Template;
use windlass_ir::workflow::{Bound, Call, CallMode};
use windlass_ir::{Code, Value};

pub fn read(table: &Table<'_>) -> Call {
    let target = needed(table, "workflow", "name the workflow: `workflow: run-tests`");
    let workflow = target.and_then(|node| {
        check_target(table, node);
        evaluated_text(table, "workflow", node)
    });
    Call {
        workflow: workflow.unwrap_or_else(|| nothing(table, "workflow")),
        input: present(table, "input").and_then(|node| input(table, node)),
        mode: CallMode::Inline,
    }
}

fn check_target(table: &Table<'_>, node: &Node) {
    let Some(id) = super::field::as_text(node).filter(|id| !id.contains(OPENS)) else { return };
    if is_id(id) && !RESERVED_IDS.contains(&&**id) {
        return;
    }
    let message = match RESERVED_IDS.contains(&&**id) {
        true => format!("`{id}` is reserved and cannot be the id of a workflow"),
        false => format!("invalid workflow id `{id}`"),
    };
    let finding = table.error(Code::WorkflowTargetId, "workflow", node.span, message).reference(&**id);
    let near = to_id(id).filter(|near| **near != **id);
    table.report(finding.suggest(near).help("use the id of an installed workflow"));
}

/// The strings of the mapping itself are evaluated; nested ones are passed on unchanged.
fn input(table: &Table<'_>, node: &Node) -> Option<Bound> {
    let map = mapping(table, "input", node)?;
    let entries = map.map.entries.iter().map(|entry| {
        let name = &entry.key.text;
        (name.clone(), evaluated(&map, name, &entry.value, Binder::default()).template)
    });
    let template = constant_or_map(entries.collect());
    Some(Bound { template, field: table.place.field("input").into(), span: node.span })
}

fn constant_or_map(entries: IndexMap<Arc<str>, Template>) -> Template {
    let constant = |template: &Template| match template {
        Template::Constant(value) => Some(value.clone()),
        Template::Expression(_) | Template::Text(_) | Template::List(_) | Template::Map(_) => None,
    };
    let values: Option<Vec<(Arc<str>, Value)>> =
        entries.iter().map(|(key, template)| Some((key.clone(), constant(template)?))).collect();
    match values {
        Some(values) => Template::Constant(Value::map(values)),
        None => Template::Map(entries),
    }
}
