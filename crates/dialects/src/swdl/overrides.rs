//! A project's overrides, merged into the tree of a workflow before it is read: mappings merge, everything else
//! replaces.
//!
//! Only bindings can be overridden. The identity of the workflow (ids, types, dependencies) is protected, and an
//! unknown key or stage is an error, because an override without effect is misleading.

use super::table::{Context, wrong_shape};
use crate::text::{Entry, Kind, Mapping, Node};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Severity};

const ALLOWED: [&str; 5] = ["stages", "context", "config", "error_policy", "workflow"];
const PROTECTED_IN_WORKFLOW: [&str; 3] = ["id", "name", "version"];
const PROTECTED_IN_STAGE: [&str; 3] = ["id", "depends_on", "type"];

/// The tree with the block for this workflow merged in. Other blocks are for other workflows.
pub fn apply(mut root: Node, overrides: &Node, context: &Context<'_>) -> Node {
    let report = |finding: Diagnostic| context.diagnostics.borrow_mut().push(finding);
    let Some(id) = workflow_id(&root) else { return root };
    let Some(blocks) = blocks(overrides, &id, &report) else { return root };
    let Some(entry) = blocks.get(&id) else {
        report(
            Diagnostic::hint(
                Code::UnusedOverride,
                format!("the overrides have no block for workflow `{id}`"),
            )
            .at(overrides.span.head())
            .reference(&*id)
            .suggest(nearest(&id, blocks.entries.iter().map(|entry| &*entry.key.text))),
        );
        return root;
    };
    let Some(block) = as_map(&entry.value) else {
        report(wrong_shape(&entry.value, "a mapping"));
        return root;
    };
    let Kind::Map(base) = &mut root.kind else { return root };
    for entry in &block.entries {
        match &*entry.key.text {
            "stages" => merge_stages(base, entry, &report),
            "workflow" => merge_protected(base, entry, &PROTECTED_IN_WORKFLOW, "workflow", &report),
            key if ALLOWED.contains(&key) => merge_entry(base, entry),
            key => report(not_overridable(key, entry)),
        }
    }
    root
}

/// The blocks of an overrides file, by the id of their workflow.
fn blocks<'a>(overrides: &'a Node, id: &str, report: &impl Fn(Diagnostic)) -> Option<&'a Mapping> {
    let top = as_map(overrides);
    let blocks = top.and_then(|top| top.get("overrides")).and_then(|entry| as_map(&entry.value));
    if blocks.is_none() {
        report(
            Diagnostic::error(
                Code::MissingField,
                "an overrides file needs a mapping `overrides` with a block for each workflow",
            )
            .at(overrides.span.head())
            .field("overrides")
            .help(format!("write `overrides: {{{id}: {{…}}}}`")),
        );
        return None;
    }
    for entry in top.into_iter().flat_map(|top| &top.entries).filter(|entry| &*entry.key.text != "overrides")
    {
        let key = &*entry.key.text;
        report(
            Diagnostic::error(Code::UnknownOverrideKey, format!("unknown key `{key}` in an overrides file"))
                .at(entry.key.span)
                .field(key)
                .reference(key)
                .help("move everything under `overrides`, into the block of its workflow"),
        );
    }
    blocks
}

fn not_overridable(key: &str, entry: &Entry) -> Diagnostic {
    Diagnostic::error(Code::UnknownOverrideKey, format!("`{key}` cannot be overridden"))
        .at(entry.key.span)
        .field(key)
        .reference(key)
        .suggest(nearest(key, ALLOWED))
        .help(format!("override one of {}", ALLOWED.join(", ")))
}

/// Checks everything in an overrides file that does not depend on a workflow. Returns the workflows that it overrides.
pub fn check(overrides: &Node, context: &Context<'_>) -> Vec<String> {
    let report = |finding: Diagnostic| context.diagnostics.borrow_mut().push(finding);
    let Some(blocks) = blocks(overrides, "ID", &report) else { return Vec::new() };
    for block in &blocks.entries {
        let id = &*block.key.text;
        let Some(parts) = as_map(&block.value) else {
            report(wrong_shape(&block.value, "a mapping").field(format!("overrides.{id}")));
            continue;
        };
        for part in &parts.entries {
            match (&*part.key.text, as_map(&part.value)) {
                ("stages", None) => {
                    report(wrong_shape(&part.value, "a mapping from stage ids to changes").field("stages"));
                }
                ("stages", Some(stages)) => stages.entries.iter().for_each(|stage| {
                    let field = format!("stages.{}", stage.key.text);
                    check_protected(stage, &PROTECTED_IN_STAGE, &field, &report);
                }),
                ("workflow", _) => check_protected(part, &PROTECTED_IN_WORKFLOW, "workflow", &report),
                (key, _) if ALLOWED.contains(&key) => {}
                (key, _) => report(not_overridable(key, part)),
            }
        }
    }
    blocks.entries.iter().map(|block| block.key.text.to_string()).collect()
}

fn check_protected(entry: &Entry, protected: &[&str], field: &str, report: &impl Fn(Diagnostic)) {
    match as_map(&entry.value) {
        None => report(wrong_shape(&entry.value, "a mapping").field(field)),
        Some(fields) => {
            let entries = fields.entries.iter().filter(|entry| protected.contains(&&*entry.key.text));
            entries.for_each(|entry| report(protected_key(entry, field)));
        }
    }
}

/// Someone relies on an override, so a key without effect is an error here.
pub fn harden(finding: &mut Diagnostic, overrides: &Node) {
    let in_overrides = finding.span.is_some_and(|span| span.source == overrides.span.source);
    if in_overrides && finding.code == Code::UnknownKey {
        finding.code = Code::UnknownOverrideKey;
        finding.severity = Severity::Error;
    }
}

fn workflow_id(root: &Node) -> Option<String> {
    let id = &as_map(root)?.get("workflow")?.value;
    match &as_map(id)?.get("id")?.value.kind {
        Kind::Scalar(scalar) => Some(scalar.text.to_string()),
        Kind::List(_) | Kind::Map(_) => None,
    }
}

fn as_map(node: &Node) -> Option<&Mapping> {
    match &node.kind {
        Kind::Map(map) => Some(map),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

/// Overrides name stages by id; the workflow has them in a list.
fn merge_stages(base: &mut Mapping, entry: &Entry, report: &impl Fn(Diagnostic)) {
    let Some(changes) = as_map(&entry.value) else {
        return report(wrong_shape(&entry.value, "a mapping from stage ids to changes").field("stages"));
    };
    let stages = base.entries.iter_mut().find(|entry| &*entry.key.text == "stages");
    let Some(Kind::List(stages)) = stages.map(|entry| &mut entry.value.kind) else { return };
    for change in &changes.entries {
        let id = &*change.key.text;
        let ids: Vec<String> = stages.iter().filter_map(stage_id).collect();
        match stages.iter_mut().find(|stage| stage_id(stage).as_deref() == Some(id)) {
            Some(stage) => match (&mut stage.kind, as_map(&change.value)) {
                (Kind::Map(stage), Some(fields)) => {
                    let field = format!("stages.{id}");
                    merge_fields(stage, fields, &PROTECTED_IN_STAGE, &field, report);
                }
                _ => report(wrong_shape(&change.value, "a mapping").field(format!("stages.{id}"))),
            },
            None => report(unknown_stage(change, &ids)),
        }
    }
}

fn unknown_stage(change: &Entry, ids: &[String]) -> Diagnostic {
    let id = &*change.key.text;
    let finding = Diagnostic::error(Code::UnknownStage, format!("unknown stage `{id}` in overrides"))
        .at(change.key.span)
        .field(format!("stages.{id}"))
        .reference(id)
        .suggest(nearest(id, ids.iter().map(String::as_str)));
    match finding.help.is_empty() {
        true => finding.help(format!("use one of {}", ids.join(", "))),
        false => finding,
    }
}

fn stage_id(node: &Node) -> Option<String> {
    match &as_map(node)?.get("id")?.value.kind {
        Kind::Scalar(scalar) => Some(scalar.text.to_string()),
        Kind::List(_) | Kind::Map(_) => None,
    }
}

fn merge_protected(
    base: &mut Mapping,
    entry: &Entry,
    protected: &[&str],
    field: &str,
    report: &impl Fn(Diagnostic),
) {
    let Some(fields) = as_map(&entry.value) else {
        return report(wrong_shape(&entry.value, "a mapping").field(field));
    };
    let Some(Kind::Map(inner)) =
        base.entries.iter_mut().find(|own| own.key.text == entry.key.text).map(|own| &mut own.value.kind)
    else {
        return;
    };
    merge_fields(inner, fields, protected, field, report);
}

fn merge_fields(
    base: &mut Mapping,
    fields: &Mapping,
    protected: &[&str],
    field: &str,
    report: &impl Fn(Diagnostic),
) {
    for entry in &fields.entries {
        let key = &*entry.key.text;
        if protected.contains(&key) {
            report(protected_key(entry, field));
        } else {
            merge_entry(base, entry);
        }
    }
}

fn protected_key(entry: &Entry, field: &str) -> Diagnostic {
    let key = &*entry.key.text;
    let message =
        format!("`{field}.{key}` cannot be overridden because it is part of the workflow's identity");
    Diagnostic::error(Code::ProtectedKey, message)
        .at(entry.key.span)
        .field(format!("{field}.{key}"))
        .reference(key)
        .help("remove it, or change the workflow itself")
}

/// Mappings merge key by key; lists and scalars are replaced.
fn merge_entry(base: &mut Mapping, entry: &Entry) {
    let Some(own) = base.entries.iter_mut().find(|own| own.key.text == entry.key.text) else {
        base.entries.push(entry.clone());
        return;
    };
    match (&mut own.value.kind, &entry.value.kind) {
        (Kind::Map(inner), Kind::Map(changes)) => {
            changes.entries.iter().for_each(|change| merge_entry(inner, change));
        }
        _ => own.value = entry.value.clone(),
    }
}
