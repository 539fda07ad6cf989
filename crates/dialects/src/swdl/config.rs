//! `config`: the rules that apply, the inputs of a run, and the limits on runs.

use super::ports;
use super::table::{StepOf, Table, wrong_shape};
use crate::text::{Kind, Mapping, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Semantics;
use windlass_ir::policy::{
    Budget, CancelOn, Concurrency, OnConflict, Priority, RunPolicy, Singleton, Sticky,
};
use windlass_ir::workflow::RunInput;
use windlass_ir::{Code, Duration, Value};

/// The default timeout of a run.
pub const RUN_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// The default number of concurrent agent stages of one run.
pub const AGENTS_PER_RUN: u32 = 3;

/// Whether a file selects the rules of another dialect; determined before anything else is read.
pub fn is_foreign(root: &Node) -> bool {
    let map = |node: &Node| -> Option<Mapping> {
        match &node.kind {
            Kind::Map(map) => Some(map.clone()),
            Kind::Scalar(_) | Kind::List(_) => None,
        }
    };
    let config = map(root).and_then(|root| map(&root.get("config")?.value));
    let word = config.and_then(|config| match &config.get("semantics")?.value.kind {
        Kind::Scalar(scalar) => Some(scalar.text.clone()),
        Kind::List(_) | Kind::Map(_) => None,
    });
    word.is_some_and(|word| Semantics::NAMED.iter().any(|(name, _)| **name == *word && *name != "house"))
}

pub fn semantics(config: &Table<'_>) -> Semantics {
    config.word("semantics", &Semantics::NAMED).unwrap_or(Semantics::HOUSE)
}

/// An object of the parameters, or with `input` any value of a type.
pub fn input(config: &Table<'_>) -> RunInput {
    let Some(table) = config.table("input") else { return RunInput::Declared };
    let ty = ports::read_type(&table);
    table.finish_all();
    RunInput::Open(ty)
}

/// The defaults without a `config`.
pub fn default_policy() -> RunPolicy {
    let unlimited = RunPolicy::unlimited();
    let concurrency = Concurrency { agents_per_run: AGENTS_PER_RUN, ..unlimited.concurrency };
    RunPolicy { timeout: Some(RUN_TIMEOUT), concurrency, ..unlimited }
}

pub fn run_policy(config: &Table<'_>) -> RunPolicy {
    RunPolicy {
        timeout: config.timeout("timeout", (!config.context.foreign).then_some(RUN_TIMEOUT)),
        concurrency: read_concurrency(config),
        budget: read_budget(config),
        priority: config.table("priority").and_then(|table| read_priority(&table)),
        singleton: config.table("singleton").map(|table| read_singleton(&table)),
        sticky: config.word("sticky", &[("soft", Sticky::Soft), ("hard", Sticky::Hard)]),
        cancel_on: read_cancel_on(config),
        start_key: config.bound_text("start_key"),
        compensate_on_cancel: config.boolean("compensate_on_cancel").unwrap_or(false),
    }
}

/// A number for one run, or a mapping.
fn read_concurrency(config: &Table<'_>) -> Concurrency {
    let agents = if config.context.foreign { u32::MAX } else { AGENTS_PER_RUN };
    let mut concurrency =
        Concurrency { agents_per_run: agents, steps_per_run: None, runs_per_workflow: None, key: None };
    let Some(node) = config.node("concurrency") else { return concurrency };
    let Kind::Map(_) = &node.kind else {
        concurrency.steps_per_run = config.count("concurrency");
        concurrency.agents_per_run = concurrency.steps_per_run.unwrap_or(agents);
        return concurrency;
    };
    let Some(table) = config.table("concurrency") else { return concurrency };
    concurrency.runs_per_workflow = table.count("per_workflow");
    concurrency.key = table.bound_text("key");
    concurrency.steps_per_run = table.count("per_run");
    concurrency.agents_per_run = read_agents(&table).unwrap_or(concurrency.steps_per_run.unwrap_or(agents));
    table.finish_all();
    if let (Some(key), None, false) =
        (&concurrency.key, concurrency.runs_per_workflow, config.context.foreign)
    {
        let message = "`key` groups runs, but nothing limits them";
        let finding = table.error(Code::MissingField, "per_workflow", key.span, message);
        table.report(finding.help("add `per_workflow`, the number of concurrent runs for each key"));
    }
    concurrency
}

/// A number, or `unlimited`.
fn read_agents(table: &Table<'_>) -> Option<u32> {
    match &table.node("agents")?.kind {
        Kind::Scalar(scalar) if &*scalar.text == "unlimited" => Some(u32::MAX),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => table.count("agents"),
    }
}

fn read_budget(config: &Table<'_>) -> Budget {
    let Some(table) = config.table("budget") else { return Budget::default() };
    let usd = table.number("usd", "an amount above 0", |amount| amount > 0.0 && amount < 1e12);
    let budget = Budget {
        tokens: table.integer("tokens", 1, u64::MAX),
        micro_usd: usd.map(|amount| (amount * 1e6).round() as u64),
        calls: table.integer("calls", 1, u64::MAX),
        time: table.duration("time"),
    };
    table.finish_all();
    budget
}

fn read_priority(table: &Table<'_>) -> Option<Priority> {
    let key = table.bound_text("key");
    table.demand("key", "name the value that determines the offset: `key: \"${{ parameters.customer }}\"`");
    let offsets = read_offsets(table);
    let default_offset = table.node("default").and_then(|node| offset(table, "default", node)).unwrap_or(0);
    table.finish_all();
    Some(Priority { key: key?, offsets, default_offset })
}

fn read_offsets(table: &Table<'_>) -> IndexMap<Arc<str>, i32> {
    let Some(offsets) = table.table("offsets") else { return IndexMap::new() };
    let entries = offsets.map.entries.iter();
    entries
        .filter_map(|entry| Some((entry.key.text.clone(), offset(&offsets, &entry.key.text, &entry.value)?)))
        .collect()
}

/// Seconds by which a run counts as older; negative ones make it younger.
fn offset(table: &Table<'_>, key: &str, node: &Node) -> Option<i32> {
    let seconds = match node.to_value() {
        Value::Int(seconds) => i32::try_from(seconds).ok(),
        _ => None,
    };
    if seconds.is_none() {
        let message = "invalid number of seconds";
        let finding = table.error(Code::BadNumber, key, node.span, message);
        table.report(finding.help("write a whole number, such as `60` or `-60`"));
    }
    seconds
}

fn read_singleton(table: &Table<'_>) -> Singleton {
    let words = [("skip", OnConflict::Skip), ("cancel", OnConflict::Cancel)];
    let singleton = Singleton {
        on_conflict: table.word("on_conflict", &words).unwrap_or(OnConflict::Skip),
        key: table.bound_text("key"),
    };
    table.finish_all();
    singleton
}

fn read_cancel_on(config: &Table<'_>) -> Vec<CancelOn> {
    let items = config.list("cancel_on").unwrap_or_default();
    items.iter().enumerate().filter_map(|(index, node)| cancel_on(config, index, node)).collect()
}

fn cancel_on(config: &Table<'_>, index: usize, node: &Node) -> Option<CancelOn> {
    let at = format!("cancel_on[{index}]");
    let Kind::Map(map) = &node.kind else {
        let finding = wrong_shape(node, "a mapping with `message`");
        config.report(finding.step_of(&config.place).field(config.place.field(&at)));
        return None;
    };
    let table = Table::new(config.context, map, node.span, config.place.child(&at));
    let message = table.plain_text("message");
    table.demand("message", "name the message that cancels the run");
    let (matching, timeout) = (table.bindings("match"), table.duration("timeout"));
    table.finish_all();
    Some(CancelOn { message: message?, matching, timeout })
}
