//! The policy of one step: retries, timeouts and limits.

use super::field::{count, demanded, ignored, optional_count, path};
use super::flow::{self, Input};
use super::step::{Draft, StepType};
use super::{duration, field, retry};
use crate::table::Table;
use windlass_ir::expr::Namespace;
use windlass_ir::policy::{OnFailure, Policy, Rate, Retry};
use windlass_ir::{Code, Duration, Severity, Value};

const RETRIES_MAX: u32 = 100_000;
const TASK_JOBS_MAX: u32 = 1_000;

pub fn of_step(draft: &Draft<'_>) -> Policy {
    let table = draft.table;
    let retries = retries(table);
    let works = draft.ty.has_task();
    if retries.is_some_and(|count| count > 0) && !works && draft.is_sure {
        let why = format!(" on a step of type {}", draft.ty.word());
        let span = table.key_span("retries");
        table.report(ignored(table, Severity::Warning, "retries", span, &why, "remove it"));
    }
    Policy {
        retry: if works { retry::of_step(draft, retries) } else { Retry::once() },
        timeout: match works || draft.ty == StepType::SubWorkflow {
            true => duration::optional(table, "timeout"),
            false => None,
        },
        on_failure: on_failure(draft),
        idempotency: None,
        compensate: field::filled(table, "compensate"),
        rate: if works { rate(draft) } else { None },
        task_jobs_max: match works {
            true => {
                optional_count(table, "max_task_concurrency", 0, TASK_JOBS_MAX).filter(|limit| *limit > 0)
            }
            false => None,
        },
    }
}

/// The policy of a map as a whole, and of the work on each item.
pub fn around_items(policy: Policy) -> (Policy, Policy) {
    let Policy { retry, timeout, on_failure, idempotency, compensate, rate, task_jobs_max } = policy;
    let inner = Policy { retry, rate, task_jobs_max, ..Policy::once() };
    (Policy { timeout, on_failure, idempotency, compensate, ..Policy::once() }, inner)
}

/// The older key for retries.
fn retries(table: &Table<'_>) -> Option<u32> {
    let node = table.node("retries")?;
    match node.to_value() {
        Value::Int(count) if count < 0 => {
            let message = format!("`retries` is {count}, but it cannot be negative");
            let finding = table.error(Code::BadNumber, "retries", node.span, message).rule(8);
            table.report(finding.reference(count.to_string()).help("write 0 or more"));
            None
        }
        _ => optional_count(table, "retries", 0, RETRIES_MAX),
    }
}

/// If no step handles the failure, completed steps with a compensation are undone.
fn on_failure(draft: &Draft<'_>) -> OnFailure {
    match field::filled(draft.table, "on_failure") {
        Some(target) => OnFailure::Goto(target),
        None if draft.document.roster.has_compensation => OnFailure::Rollback,
        None => OnFailure::Halt,
    }
}

fn rate(draft: &Draft<'_>) -> Option<Rate> {
    let table = draft.table;
    let plain = table.table("rate_limit").map(|limit| plain_rate(&limit));
    let keyed = table.table("keyed_rate_limit").map(|limit| keyed_rate(draft, &limit));
    if plain.is_some() && keyed.is_some() {
        let message = "`rate_limit` and `keyed_rate_limit` both limit this step";
        let span = table.key_span("keyed_rate_limit");
        let finding = table.error(Code::ConflictingKeys, "keyed_rate_limit", span, message);
        table.report(
            finding.label(table.key_span("rate_limit"), "the other limit").help("keep one of the two"),
        );
    }
    keyed.or(plain).flatten()
}

fn limit_and_period(table: &Table<'_>) -> Option<(u32, Duration)> {
    let limit = count(table, "limit", 1, u32::MAX, "set how many starts are allowed in each period");
    let period =
        duration::demanded(table, "period", Duration(u64::MAX), "set the length of a period, such as \"1m\"");
    Some((limit?, period?))
}

fn plain_rate(table: &Table<'_>) -> Option<Rate> {
    let found = limit_and_period(table);
    table.finish_all();
    let (limit, period) = found?;
    Some(Rate { limit, period, key: None, units: 1 })
}

fn keyed_rate(draft: &Draft<'_>, table: &Table<'_>) -> Option<Rate> {
    let key = demanded(
        table,
        "key",
        "name the key to count by: a path into the input of the step, such as \"customer.id\"",
    );
    let key = key.and_then(|_| path(table, "key"));
    let found = limit_and_period(table);
    let units = count(table, "units", 1, u32::MAX, "set how much one start counts, such as 1");
    table.finish_all();
    let (key, (limit, period), units) = (key?, found?, units?);
    // The worker of a map receives the item.
    let input = match draft.ty {
        StepType::Map => flow::read(Namespace::Item, key.span),
        _ => Input::expr(draft.input, key.span),
    };
    let key = flow::computed(flow::along(input, &key.value), table.place.field("key"));
    Some(Rate { limit, period, key: Some(key), units })
}
