//! The policies of a whole run: timeout, concurrency, priority and early cancellation.

use super::field::{demanded, filled, optional_count, path};
use super::matching::{self, Sees};
use super::{duration, flow};
use crate::table::{Table, is_null};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Namespace;
use windlass_ir::policy::{CancelOn, Concurrency, OnConflict, Priority, RunPolicy, Singleton, Sticky};
use windlass_ir::workflow::Bound;
use windlass_ir::{Code, Spanned, Value};

const STEPS_MAX: u32 = 1_000;
const CANCEL_ON_MAX: usize = 5;
const RULES_MAX: usize = 20;
const OFFSET_MAX: u64 = 600;

pub fn read(top: &Table<'_>) -> RunPolicy {
    let unlimited = RunPolicy::unlimited();
    let timeout = duration::optional(top, "timeout");
    let sticky = sticky(top);
    if sticky == Some(Sticky::Hard) && timeout.is_none() {
        let span = top.node("sticky").map_or(top.span, |node| node.span);
        let message = "a workflow bound to a single worker needs a `timeout`";
        let finding = top.error(Code::MissingField, "timeout", span, message);
        top.report(finding.help("add \"timeout\": \"1h\" to the workflow, or write \"sticky\": \"soft\""));
    }
    RunPolicy {
        timeout,
        concurrency: concurrency(top, unlimited.concurrency),
        budget: unlimited.budget,
        priority: top.table("priority").and_then(|table| priority(&table)),
        singleton: top.table("singleton").and_then(|table| singleton(&table)),
        sticky,
        cancel_on: cancel_on(top),
        start_key: path(top, "idempotency_key").map(|key| into_input(top, "idempotency_key", &key)),
        // A key of the native dialect: DagNats itself does not undo canceled runs.
        compensate_on_cancel: top.boolean("compensate_on_cancel").unwrap_or(false),
    }
}

/// The value at a path into the input of the run.
fn into_input(table: &Table<'_>, key: &str, path: &Spanned<Arc<str>>) -> Bound {
    let input = flow::read(Namespace::Inputs, path.span);
    flow::computed(flow::along(input, &path.value), table.place.field(key))
}

fn sticky(top: &Table<'_>) -> Option<Sticky> {
    filled(top, "sticky")?;
    top.word("sticky", &[("soft", Sticky::Soft), ("hard", Sticky::Hard)])
}

fn concurrency(top: &Table<'_>, unlimited: Concurrency) -> Concurrency {
    let Some(table) = top.table("concurrency") else { return unlimited };
    let steps = optional_count(&table, "max_steps", 0, STEPS_MAX);
    let runs = runs_max(&table);
    table.finish_all();
    let limit = |count: Option<u32>| count.filter(|count| *count > 0);
    Concurrency { steps_per_run: limit(steps), runs_per_workflow: limit(runs), ..unlimited }
}

/// Zero and negative values mean no limit.
fn runs_max(table: &Table<'_>) -> Option<u32> {
    let node = table.node("max_runs")?;
    match node.to_value() {
        Value::Int(count) if count < 0 => {
            let message = format!("{count} concurrent runs means no limit");
            let finding = table.warning(Code::BadNumber, "max_runs", node.span, message);
            table.report(
                finding.reference(count.to_string()).help("write 0 for no limit, or a positive number"),
            );
            None
        }
        _ => optional_count(table, "max_runs", 0, u32::MAX),
    }
}

fn priority(table: &Table<'_>) -> Option<Priority> {
    let help = "name the deciding value: a path into the input, such as \"customer.tier\"";
    let key = demanded(table, "key", help).and_then(|_| path(table, "key"));
    table.demand("rules", "set an offset in seconds for each value, such as {\"gold\": 60}");
    let rules = table.table("rules");
    let offsets = rules.as_ref().map(offsets).unwrap_or_default();
    if let Some(rules) = rules.filter(|rules| !(1..=RULES_MAX).contains(&rules.map.entries.len())) {
        let message = format!("expected 1 to {RULES_MAX} rules, found {}", rules.map.entries.len());
        let finding = table.error(Code::BadNumber, "rules", rules.span, message);
        table.report(
            finding.help("write one rule for each value that matters; all others use `default_offset`"),
        );
    }
    let default_offset = table.node("default_offset").and_then(|node| offset(table, "default_offset", node));
    table.finish_all();
    let key = into_input(table, "key", &key?);
    Some(Priority { key, offsets, default_offset: default_offset.unwrap_or(0) })
}

fn offsets(rules: &Table<'_>) -> IndexMap<Arc<str>, i32> {
    let entries = rules.map.entries.iter();
    entries
        .filter_map(|entry| Some((entry.key.text.clone(), offset(rules, &entry.key.text, &entry.value)?)))
        .collect()
}

fn offset(table: &Table<'_>, key: &str, node: &crate::text::Node) -> Option<i32> {
    match node.to_value() {
        Value::Int(seconds) if seconds.unsigned_abs() <= OFFSET_MAX => i32::try_from(seconds).ok(),
        Value::Null if is_null(node) => Some(0),
        _ => {
            let message =
                format!("an offset must be a whole number of seconds from -{OFFSET_MAX} to {OFFSET_MAX}");
            let finding = table.error(Code::BadNumber, key, node.span, message);
            table.report(finding.help("use a number in that range; runs with a higher offset start first"));
            None
        }
    }
}

fn singleton(table: &Table<'_>) -> Option<Singleton> {
    table.demand("mode", "state what happens to a second run: \"skip\" or \"cancel\"");
    let mode = table.word("mode", &[("skip", OnConflict::Skip), ("cancel", OnConflict::Cancel)]);
    let key = path(table, "key").map(|key| into_input(table, "key", &key));
    table.finish_all();
    Some(Singleton { on_conflict: mode?, key })
}

fn cancel_on(top: &Table<'_>) -> Vec<CancelOn> {
    let items = top.list("cancel_on").unwrap_or_default();
    if items.len() > CANCEL_ON_MAX {
        let message =
            format!("{} events can cancel the run, but at most {CANCEL_ON_MAX} are allowed", items.len());
        let finding = top.error(Code::BadNumber, "cancel_on", top.key_span("cancel_on"), message);
        top.report(finding.help("remove the rest, or publish them as one event"));
    }
    let listed = items.iter().enumerate();
    let tables = listed.filter_map(|(index, node)| {
        Table::of(top.context, node, top.place.child(&format!("cancel_on[{index}]")))
    });
    tables.filter_map(|table| cancelled_by(&table)).collect()
}

fn cancelled_by(table: &Table<'_>) -> Option<CancelOn> {
    let message = demanded(table, "event", "name the event that cancels the run");
    let matching = table.table("match").map(|table| matching::read(&table, Sees::Input)).unwrap_or_default();
    let timeout = duration::optional(table, "timeout");
    table.finish_all();
    Some(CancelOn { message: message?.value, matching, timeout })
}

/// Whether tasks are bound to one worker, which leaves no choice of a group.
pub fn is_sticky(top: &Table<'_>) -> bool {
    filled(top, "sticky").is_some()
}
