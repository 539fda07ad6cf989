//! Retry policies: the step's own, otherwise the workflow's, otherwise the older `retries`, otherwise none.

use super::duration;
use super::field::{ignored, optional_count};
use super::step::Draft;
use crate::table::Table;
use windlass_ir::policy::{Backoff, Growth, Retry, RetryAfter, Spread};
use windlass_ir::{Code, Duration, Severity};

const ATTEMPTS_MAX: u32 = 100_000;
/// Every delay is clamped to these bounds.
const DELAY_MIN: Duration = Duration::from_millis(1);
const DELAY_MAX: Duration = Duration::from_secs(3_600);
/// A delay requested by a worker replaces the computed one, within these bounds.
const RETRY_AFTER: RetryAfter = RetryAfter::Instead { min: Duration::from_millis(100), max: DELAY_MAX };
/// The delay of the older `retries`.
const LEGACY_DELAY: Duration = Duration::from_secs(5);
/// The failure class by which a worker says that a retry is pointless.
const NEVER: &str = "non_retriable";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Fixed,
    Linear,
    Exponential,
}

const STRATEGIES: [(&str, Strategy); 3] =
    [("fixed", Strategy::Fixed), ("linear", Strategy::Linear), ("exponential", Strategy::Exponential)];

/// The policy of a step that also sets `retries`, or sets nothing.
pub fn of_step(draft: &Draft<'_>, retries: Option<u32>) -> Retry {
    let (table, default) = (draft.table, draft.document.default_retry.as_ref());
    let own = table.table("retry").map(|policy| read(&policy));
    let retries = retries.filter(|count| *count > 0);
    let winner = if own.is_some() { Some("retry") } else { default.map(|_| "default_retry") };
    if let (Some(_), Some(winner)) = (retries, winner) {
        let why = format!(": `{winner}` takes precedence");
        let span = table.key_span("retries");
        table.report(ignored(table, Severity::Warning, "retries", span, &why, "remove it"));
    }
    let legacy = || retries.map(|count| retry(count, LEGACY_DELAY, Growth::Fixed, DELAY_MAX));
    own.or_else(|| default.cloned()).or_else(legacy).unwrap_or_else(Retry::once)
}

/// `max_attempts` does not count the first execution.
pub fn read(table: &Table<'_>) -> Retry {
    let count = optional_count(table, "max_attempts", 0, ATTEMPTS_MAX);
    let strategy = table.word("strategy", &STRATEGIES).unwrap_or(Strategy::Fixed);
    let initial = duration::length(table, "initial_delay").unwrap_or(Duration::ZERO);
    let max = duration::optional(table, "max_delay").unwrap_or(DELAY_MAX);
    check_cap(table, "initial_delay", initial);
    check_cap(table, "max_delay", max);
    let multiplier = table.number("multiplier", "a number of at least 0", |factor| factor >= 0.0);
    table.finish_all();
    if !table.has("max_attempts") {
        let span = table.span.head();
        let message = format!("`{}` is missing, so nothing is retried", table.place.field("max_attempts"));
        let finding = table.warning(Code::MissingField, "max_attempts", span, message);
        table.report(finding.help("set the number of retries, such as \"max_attempts\": 3"));
    }
    let growth = match strategy {
        Strategy::Fixed => Growth::Fixed,
        Strategy::Linear => Growth::Linear,
        Strategy::Exponential => Growth::Exponential { multiplier: multiplier.unwrap_or(0.0) },
    };
    let retry = retry(count.unwrap_or(0), initial, growth, max);
    check_multiplier(table, strategy, multiplier, &retry);
    retry
}

fn retry(count: u32, initial: Duration, growth: Growth, max: Duration) -> Retry {
    if count == 0 {
        return Retry::once();
    }
    let max = max.min(DELAY_MAX).max(DELAY_MIN);
    let backoff = Backoff { initial, growth, min: DELAY_MIN, max, jitter: 0.0, spread: Spread::Above };
    let never = vec![NEVER.into()];
    Retry { attempts_max: 1 + count, backoff, never, after: RETRY_AFTER, ..Retry::once() }
}

/// A delay above the cap can be written, but never occurs.
fn check_cap(table: &Table<'_>, key: &'static str, delay: Duration) {
    if delay <= DELAY_MAX {
        return;
    }
    let Some((scalar, span)) = table.scalar(key, "a duration") else { return };
    let message = format!("`{}` is above the cap: no delay is longer than {DELAY_MAX}", scalar.text);
    let finding = table.warning(Code::BadDuration, key, span, message).reference(&*scalar.text);
    table.report(finding.help(format!("write at most {DELAY_MAX}")));
}

/// Without a multiplier the formula is zero from the second delay on.
fn check_multiplier(table: &Table<'_>, strategy: Strategy, multiplier: Option<f64>, retry: &Retry) {
    let given = table.has("multiplier");
    let key = "multiplier";
    if strategy != Strategy::Exponential && given {
        let help = "remove it, or write \"strategy\": \"exponential\"";
        let why = " with this strategy";
        table.report(ignored(table, Severity::Warning, key, table.key_span(key), why, help));
    }
    let is_wrong = given && multiplier.is_none();
    let grows = multiplier.is_some_and(|factor| factor > 0.0);
    if strategy == Strategy::Exponential && !grows && !is_wrong && retry.attempts_max > 2 {
        let (first, later) = (retry.backoff.delay_after(1), retry.backoff.delay_after(2));
        let what = if given { "is 0" } else { "is missing" };
        let message = format!(
            "`{}` {what}: the first delay is {first}, every later one {later}",
            table.place.field(key)
        );
        let span = if given { table.key_span(key) } else { table.span.head() };
        table.report(table.warning(Code::MissingField, key, span, message).help("add \"multiplier\": 2"));
    }
}
