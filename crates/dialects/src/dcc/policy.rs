//! Retries, timeouts and idempotency. The keys are on the step itself or in its `policy` block. Those of a scope
//! apply to the leaf steps inside that set none, except for `timeout_secs`, which limits the scope as a whole.

use super::inventory::Inventory;
use super::key::{self, KeyText};
use super::step::Around;
use super::table::{Context, StepOf as _, Table, whole, wrong_shape};
use crate::text::Kind;
use std::sync::Arc;
use windlass_ir::policy::{Backoff, Growth, Policy, Retry, RetryAfter, Spread};
use windlass_ir::{Code, Duration, Value};

pub const KEYS: [&str; 5] =
    ["timeout_secs", "retry", "idempotency_key", "idempotency_scope", "idempotency_ttl_secs"];
const INITIAL_DELAY_MS: u64 = 500;
const MAX_DELAY_MS: u64 = 10_000;

/// The policies that a step sets itself.
#[derive(Debug)]
pub struct Written<'a> {
    pub timeout: Option<Duration>,
    pub retry: Option<Retry>,
    pub key: Option<KeyText<'a>>,
    /// Whether any idempotency key is set.
    pub names_key: bool,
}

/// A step and its `policy` block, read as one.
struct Homes<'t, 'a> {
    own: &'t Table<'a>,
    block: Option<&'t Table<'a>>,
}

impl<'t, 'a> Homes<'t, 'a> {
    fn of(&self, key: &str) -> &'t Table<'a> {
        self.block.filter(|block| block.has(key) && !self.own.has(key)).unwrap_or(self.own)
    }

    fn check_conflicts(&self) {
        let Some(block) = self.block else { return };
        for key in KEYS.into_iter().filter(|key| self.own.has(key) && block.has(key)) {
            let value = |table: &Table<'_>| table.lookup(key).map(|entry| entry.value.to_value());
            if value(self.own) != value(block) {
                let message = format!("`{key}` is set on the step and in `policy`, with two values");
                let finding = block.error(Code::ConflictingKeys, key, block.key_span(key), message);
                let finding = finding.label(self.own.key_span(key), "also given here").reference(key);
                self.own.report(finding.help("keep one of the two"));
            }
        }
    }
}

pub fn read<'a>(table: &Table<'a>, inventory: &Inventory) -> Written<'a> {
    let block = table.table("policy");
    let homes = Homes { own: table, block: block.as_ref() };
    homes.check_conflicts();
    let written = Written {
        timeout: whole(homes.of("timeout_secs"), "timeout_secs", 1).map(Duration::from_secs),
        retry: homes.of("retry").table("retry").and_then(|retry| read_retry(&retry)),
        key: key::read(|key| homes.of(key), inventory),
        names_key: KEYS[2..].iter().any(|key| homes.of(key).has(key)),
    };
    table.known(&KEYS);
    if let Some(block) = &block {
        block.known(&KEYS);
        block.finish_all();
    }
    written
}

fn read_retry(table: &Table<'_>) -> Option<Retry> {
    table.demand("max_attempts", "set the total number of attempts: `max_attempts: 3`");
    let attempts = table.integer("max_attempts", 1, u32::MAX.into());
    let attempts = attempts.and_then(|count| u32::try_from(count).ok());
    let growths = [
        ("fixed", Growth::Fixed),
        ("linear", Growth::Linear),
        ("exponential", Growth::Exponential { multiplier: 2.0 }),
    ];
    let growth = table.word("backoff", &growths).unwrap_or(Growth::Exponential { multiplier: 2.0 });
    let initial = whole(table, "initial_delay_ms", 0).unwrap_or(INITIAL_DELAY_MS);
    let max = whole(table, "max_delay_ms", 0).unwrap_or(MAX_DELAY_MS);
    check_delays(table, initial, max);
    let classes = table.has("retry_on").then(|| table.plain_texts("retry_on"));
    check_classes(table);
    let nothing = classes.as_ref().is_some_and(Vec::is_empty) && table.list("retry_on").is_some();
    let jitter = jitter(table);
    let backoff = Backoff {
        initial: Duration::from_millis(initial),
        growth,
        min: Duration::ZERO,
        max: Duration::from_millis(max),
        jitter,
        spread: if jitter > 0.0 { Spread::Around } else { Spread::Above },
    };
    table.known(&["retry_on"]);
    table.finish_all();
    Some(Retry {
        attempts_max: if nothing { 1 } else { attempts? },
        backoff,
        only: classes.unwrap_or_default(),
        never: Vec::new(),
        when: None,
        after: RetryAfter::AtLeast,
    })
}

/// Numbers and booleans are not failure classes, although they could be read as text.
fn check_classes(table: &Table<'_>) {
    let Some(Kind::List(items)) = table.lookup("retry_on").map(|entry| &entry.value.kind) else { return };
    for item in items {
        let Kind::Scalar(scalar) = &item.kind else { continue };
        if !matches!(scalar.to_value(), Value::Text(_) | Value::Null) {
            let finding =
                wrong_shape(item, "text").step_of(&table.place).field(table.place.field("retry_on"));
            table.report(finding.help("put it in quotes if it is a failure class"));
        }
    }
}

/// The defaults count as well: a `max_delay_ms` below the default first delay needs an `initial_delay_ms`.
fn check_delays(table: &Table<'_>, initial: u64, max: u64) {
    if initial <= max {
        return;
    }
    let (key, by_default) = match (table.has("initial_delay_ms"), table.has("max_delay_ms")) {
        (true, false) => ("initial_delay_ms", "max_delay_ms"),
        (false, _) => ("max_delay_ms", "initial_delay_ms"),
        (true, true) => ("initial_delay_ms", ""),
    };
    let note = if by_default.is_empty() { String::new() } else { format!(" (`{by_default}` by default)") };
    let span = table.lookup(key).map_or(table.span, |entry| entry.value.span);
    let message = format!("the first delay of {initial} ms is longer than the longest of {max} ms{note}");
    let help = "set both `initial_delay_ms` and `max_delay_ms`, the second at least as large as the first";
    table.report(table.error(Code::BadNumber, key, span, message).help(help));
}

/// A share of the delay. Values outside of 0 to 1 are clamped, NaN is 0.
fn jitter(table: &Table<'_>) -> f64 {
    let Some((scalar, span)) = table.scalar("jitter", "a number") else { return 0.0 };
    let written = match scalar.to_value() {
        Value::Int(int) => int as f64,
        Value::Float(float) => float,
        _ => return table.number("jitter", "a number from 0 to 1", |_| true).unwrap_or(0.0),
    };
    let used = if written.is_finite() { written.clamp(0.0, 1.0) } else { 0.0 };
    if !(0.0..=1.0).contains(&written) {
        let message = format!("a jitter of {} is read as {used}", scalar.text);
        let finding = table.warning(Code::BadNumber, "jitter", span, message).reference(&*scalar.text);
        table.report(finding.help("write a number from 0 to 1"));
    }
    used
}

/// The policies that a leaf sets itself, and those it inherits from the steps around it.
pub fn of_leaf(written: &Written<'_>, around: &Around<'_>, context: &Context<'_>, id: &Arc<str>) -> Policy {
    let inherited = around.key.as_ref().filter(|_| !written.names_key);
    let key = written.key.as_ref();
    Policy {
        retry: written.retry.clone().or_else(|| around.retry.clone()).unwrap_or_else(Retry::once),
        timeout: written.timeout,
        idempotency: key
            .map(|key| key.bind(around, context))
            .or_else(|| inherited.map(|key| key.bind_for(id, around, context))),
        ..Policy::once()
    }
}

/// An approval is requested only once.
pub fn not_for_gates(table: &Table<'_>) {
    let block = table.lookup("policy").and_then(|_| table.table("policy"));
    for key in &KEYS[1..] {
        for home in std::iter::once(table).chain(&block).filter(|home| home.has(key)) {
            let message = format!("`{key}` has no effect on a step of kind approve");
            let finding = home.warning(Code::IgnoredKey, key, home.key_span(key), message).reference(*key);
            home.report(finding.help("remove it: an approval is requested only once"));
        }
    }
}
