//! Error policies, idempotency and limits of stages, with the defaults of the language and inheritance field by
//! field.

use super::names::is_name;
use super::table::{StepOf, Table, wrong_shape};
use crate::text::{Kind, Node};
use std::sync::Arc;
use windlass_ir::policy::{
    Backoff, Growth, Idempotency, IdempotencyScope, OnFailure, Policy, Rate, Retry, RetryAfter, Spread,
};
use windlass_ir::workflow::Condition;
use windlass_ir::{Code, Duration, Spanned};

/// The default timeout of one attempt.
pub const TIMEOUT: Duration = Duration::from_secs(30 * 60);
const ATTEMPTS_MAX: u64 = 1_000;
const MULTIPLIER: f64 = 2.0;
/// The longest delay that a failure can request if no bounds are set.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);

/// The written retry settings; missing ones are inherited.
#[derive(Clone, Debug, Default)]
pub struct RetryDraft {
    /// A policy was written, here or further out.
    is_written: bool,
    attempts_max: Option<u32>,
    initial: Option<Duration>,
    growth: Option<GrowthWord>,
    multiplier: Option<f64>,
    min: Option<Duration>,
    max: Option<Duration>,
    jitter: Option<f64>,
    spread: Option<Spread>,
    only: Option<Vec<Arc<str>>>,
    never: Option<Vec<Arc<str>>>,
    when: Option<Condition>,
    after: Option<RetryAfter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GrowthWord {
    Fixed,
    Linear,
    Exponential,
}

impl RetryDraft {
    pub fn read(table: &Table<'_>) -> Self {
        let free = table.context.foreign;
        let attempts_max = if free { u64::from(u32::MAX) } else { ATTEMPTS_MAX };
        let multiplier =
            table.number("backoff_multiplier", "a number above 0", |factor| free || factor > 0.0);
        let draft = Self {
            is_written: true,
            attempts_max: table.integer("max_attempts", 1, attempts_max).map(|count| count as u32),
            initial: table.pause("initial_interval"),
            growth: read_growth(table, multiplier),
            multiplier,
            min: table.pause("min_interval"),
            max: table.pause("max_interval"),
            jitter: table.number("jitter", "a number from 0 to 1", |share| (0.0..=1.0).contains(&share)),
            spread: table.word("spread", &[("above", Spread::Above), ("around", Spread::Around)]),
            only: table.has("retryable_errors").then(|| table.plain_texts("retryable_errors")),
            never: table.has("non_retryable_errors").then(|| table.plain_texts("non_retryable_errors")),
            when: table.condition("when"),
            after: read_after(table),
        };
        table.known(&["retryable_errors", "non_retryable_errors"]);
        table.finish_all();
        draft
    }

    /// This draft, with missing settings taken from `outer`.
    pub fn or(self, outer: &Self) -> Self {
        Self {
            is_written: self.is_written || outer.is_written,
            attempts_max: self.attempts_max.or(outer.attempts_max),
            initial: self.initial.or(outer.initial),
            growth: self.growth.or(outer.growth),
            multiplier: self.multiplier.or(outer.multiplier),
            min: self.min.or(outer.min),
            max: self.max.or(outer.max),
            jitter: self.jitter.or(outer.jitter),
            spread: self.spread.or(outer.spread),
            only: self.only.or_else(|| outer.only.clone()),
            never: self.never.or_else(|| outer.never.clone()),
            when: self.when.or_else(|| outer.when.clone()),
            after: self.after.or(outer.after),
        }
    }

    fn finish(self, base: Retry) -> Retry {
        let exponential = Growth::Exponential { multiplier: self.multiplier.unwrap_or(MULTIPLIER) };
        Retry {
            attempts_max: self.attempts_max.unwrap_or(base.attempts_max),
            backoff: Backoff {
                initial: self.initial.unwrap_or(base.backoff.initial),
                growth: match self.growth {
                    Some(GrowthWord::Fixed) => Growth::Fixed,
                    Some(GrowthWord::Linear) => Growth::Linear,
                    Some(GrowthWord::Exponential) => exponential,
                    None => base.backoff.growth,
                },
                min: self.min.unwrap_or(base.backoff.min),
                max: self.max.unwrap_or(base.backoff.max),
                jitter: self.jitter.unwrap_or(base.backoff.jitter),
                spread: self.spread.unwrap_or(base.backoff.spread),
            },
            only: self.only.unwrap_or(base.only),
            never: self.never.unwrap_or(base.never),
            when: self.when,
            after: self.after.unwrap_or(base.after),
        }
    }
}

/// How delays grow. A multiplier alone implies it.
fn read_growth(table: &Table<'_>, multiplier: Option<f64>) -> Option<GrowthWord> {
    let words = [
        ("fixed", GrowthWord::Fixed),
        ("linear", GrowthWord::Linear),
        ("exponential", GrowthWord::Exponential),
    ];
    let growth = table.word("backoff", &words);
    if let Some(GrowthWord::Fixed | GrowthWord::Linear) = growth
        && multiplier.is_some()
    {
        let key = "backoff_multiplier";
        let message = "`backoff_multiplier` only has an effect on exponential delays";
        let finding = table.warning(Code::IgnoredKey, key, table.key_span(key), message);
        table.report(finding.reference(key).help("remove it, or write `backoff: exponential`"));
    }
    growth.or(multiplier.map(|_| GrowthWord::Exponential))
}

/// The effect of a delay requested by the failure: a word, or the bounds within which it replaces the computed delay.
fn read_after(table: &Table<'_>) -> Option<RetryAfter> {
    let node = table.node("retry_after")?;
    match &node.kind {
        Kind::Scalar(_) => {
            table.word_or("retry_after", &[("at_least", RetryAfter::AtLeast)], &["{min: 1s, max: 1h}"])
        }
        Kind::Map(_) => Some(read_bounds(&table.table("retry_after")?)),
        Kind::List(_) => {
            let finding = wrong_shape(node, "the word `at_least` or a mapping with `min` and `max`");
            table.report(finding.step_of(&table.place).field(table.place.field("retry_after")));
            None
        }
    }
}

fn read_bounds(table: &Table<'_>) -> RetryAfter {
    let min = table.pause("min").unwrap_or(Duration::ZERO);
    let max = table.duration("max").unwrap_or(RETRY_AFTER_MAX);
    table.finish_all();
    if let Some(node) = table.node("min").filter(|_| min > max) {
        let message = format!("the minimum of {min} is longer than the maximum of {max}");
        let finding = table.error(Code::BadDuration, "min", node.span, message);
        table.report(finding.help("`min` must be at most `max`, which is 1h by default"));
    }
    RetryAfter::Instead { min, max }
}

/// The default retry policy of other work: two attempts, or one under the rules of another dialect.
pub fn base_retry(foreign: bool) -> Retry {
    if foreign {
        return Retry::once();
    }
    let backoff = Backoff {
        initial: Duration::from_secs(30),
        growth: Growth::Exponential { multiplier: MULTIPLIER },
        min: Duration::ZERO,
        max: Duration::from_secs(300),
        jitter: 0.0,
        spread: Spread::Above,
    };
    Retry { attempts_max: 2, backoff, ..Retry::once() }
}

/// The default retry policy of commands, whose authors expect one attempt: only a written policy brings more.
pub fn retry_of_commands(foreign: bool, is_written: bool) -> Retry {
    if is_written { base_retry(foreign) } else { no_retry(foreign) }
}

/// The policy of stages that are never retried.
pub fn no_retry(foreign: bool) -> Retry {
    Retry { attempts_max: 1, ..base_retry(foreign) }
}

/// The defaults for stages.
#[derive(Clone, Debug)]
pub struct Defaults {
    pub retry: RetryDraft,
    pub on_failure: OnFailure,
}

impl Defaults {
    /// From the `error_policy` of the workflow.
    pub fn read(policy: Option<&Table<'_>>) -> Self {
        let Some(policy) = policy else {
            return Self { retry: RetryDraft::default(), on_failure: OnFailure::Halt };
        };
        let words = [("halt", 0), ("continue", 1), ("rollback", 2)];
        let on_failure = match policy.word("on_stage_failure", &words) {
            Some(1) => OnFailure::Continue,
            Some(2) => OnFailure::Rollback,
            Some(_) | None => OnFailure::Halt,
        };
        let retry = policy.table("default_retry").map(|table| RetryDraft::read(&table)).unwrap_or_default();
        policy.finish_all();
        Self { retry, on_failure }
    }
}

/// The parts of an error policy that apply to a kind of stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// With attempts: everything.
    Attempts,
    /// The same, but with one attempt unless a policy is written.
    Commands,
    /// The same as attempts, but without a default timeout, because the called workflow has its own.
    Calls,
    /// A scope whose body makes the attempts and inherits the retry policy.
    RetryInside,
    /// A scope: its timeout limits the whole.
    Whole,
    /// Nothing is attempted, and the kind has its own timeout.
    FailureOnly,
}

/// The policy of a stage, and the retry draft that inner stages may inherit. Under the rules of another dialect,
/// every part applies to every stage, and nothing is inherited.
pub fn of_stage(stage: &Table<'_>, defaults: &Defaults, applies: Applies) -> (Policy, RetryDraft) {
    let foreign = stage.context.foreign;
    let attempts = matches!(applies, Applies::Attempts | Applies::Commands | Applies::Calls);
    let limited = matches!(applies, Applies::Attempts | Applies::Commands);
    let written = stage.table("error_policy");
    let mut draft = RetryDraft::default();
    let mut timeout = (limited && !foreign).then_some(TIMEOUT);
    let mut on_failure = None;
    if let Some(table) = &written {
        if foreign || attempts || applies == Applies::RetryInside {
            draft = table.table("retry").map(|table| RetryDraft::read(&table)).unwrap_or_default();
        }
        if foreign || applies != Applies::FailureOnly {
            timeout = table.timeout("timeout", timeout);
        }
        on_failure = table.node("on_failure").and_then(|node| read_on_failure(table, node));
        table.finish(&["retry", "timeout"], |_| ("on a stage of this type".into(), "remove it"));
    }
    let inherits = attempts || (applies == Applies::RetryInside && !foreign);
    let draft = if inherits { draft.or(&defaults.retry) } else { draft };
    let retry = match attempts || foreign {
        true if applies == Applies::Commands => {
            draft.clone().finish(retry_of_commands(foreign, draft.is_written))
        }
        true => draft.clone().finish(base_retry(foreign)),
        false => no_retry(foreign),
    };
    let on_failure = on_failure.unwrap_or_else(|| defaults.on_failure.clone());
    let policy = Policy { retry, timeout, on_failure, compensate: read_compensate(stage), ..Policy::once() };
    let policy = if attempts || foreign { of_work(stage, policy) } else { policy };
    (policy, draft)
}

/// Keys that only apply where work is done.
fn of_work(stage: &Table<'_>, policy: Policy) -> Policy {
    Policy {
        idempotency: stage.table("idempotency").and_then(|table| read_idempotency(&table)),
        rate: stage.table("rate_limit").and_then(|table| read_rate(&table)),
        task_jobs_max: stage.count("task_concurrency"),
        ..policy
    }
}

/// The policy of a block that is not written as a stage.
pub fn of_block(defaults: &Defaults, foreign: bool) -> Policy {
    Policy { retry: no_retry(foreign), on_failure: defaults.on_failure.clone(), ..Policy::once() }
}

/// The name of the stage that undoes this one; an inline stage is read elsewhere.
fn read_compensate(stage: &Table<'_>) -> Option<Spanned<Arc<str>>> {
    match &stage.node("compensate")?.kind {
        Kind::Scalar(_) => stage.text("compensate"),
        Kind::List(_) | Kind::Map(_) => None,
    }
}

fn read_rate(table: &Table<'_>) -> Option<Rate> {
    let (limit, period) = (table.count("limit"), table.duration("per"));
    table.demand("limit", "set the number of starts: `limit: 10`");
    table.demand("per", "set the period: `per: 1m`");
    let (key, units) = (table.bound_text("key"), table.count("units").unwrap_or(1));
    table.finish_all();
    Some(Rate { limit: limit?, period: period?, key, units })
}

/// A word, or `{goto: STAGE}`.
fn read_on_failure(table: &Table<'_>, node: &Node) -> Option<OnFailure> {
    match &node.kind {
        Kind::Scalar(_) => {
            let words = [("halt", 0), ("continue", 1), ("skip_dependents", 2)];
            table.word("on_failure", &words).map(|word| match word {
                1 => OnFailure::Continue,
                2 => OnFailure::SkipDependents,
                _ => OnFailure::Halt,
            })
        }
        Kind::Map(_) => {
            let inner = table.table("on_failure")?;
            let target = inner.text("goto");
            inner.finish_all();
            if target.is_none() {
                inner.missing("goto", "name the stage that handles the failure: `on_failure: {goto: STAGE}`");
            }
            target.map(OnFailure::Goto)
        }
        Kind::List(_) => {
            let finding = wrong_shape(node, "a word or `{goto: STAGE}`");
            table.report(finding.step_of(&table.place).field(table.place.field("on_failure")));
            None
        }
    }
}

fn read_idempotency(table: &Table<'_>) -> Option<Idempotency> {
    let key = table.bound_text("key");
    let scope = table.word("scope", &[("run", IdempotencyScope::Run), ("global", IdempotencyScope::Global)]);
    let ttl = table.duration("ttl");
    table.finish_all();
    if key.is_none() {
        table.missing(
            "key",
            "write a key that is equal for equal work, such as `key: \"order-${{ parameters.id }}\"`",
        );
    }
    Some(Idempotency { key: key?, scope: scope.unwrap_or(IdempotencyScope::Run), ttl })
}

/// The names of secrets, with locations.
pub fn read_secrets(config: &Table<'_>) -> Vec<Spanned<Arc<str>>> {
    let names = config.texts("secrets");
    for name in names.iter().filter(|name| !config.context.foreign && !is_name(&name.value)) {
        let finding =
            config.error(Code::BadName, "secrets", name.span, format!("invalid name `{}`", name.value));
        config.report(finding.reference(&*name.value).help(super::names::NAME_RULE));
    }
    names
}
