//! Error policies, idempotency, budgets and concurrency, with the defaults of the language and the way a stage inherits
//! what it leaves out, field by field.

use super::names::is_name;
use super::table::{StepOf, Table, wrong_shape};
use crate::text::{Kind, Node};
use std::sync::Arc;
use windlass_ir::policy::{
    Backoff, Budget, Concurrency, Growth, Idempotency, IdempotencyScope, OnFailure, Policy, Retry, Spread,
};
use windlass_ir::workflow::Condition;
use windlass_ir::{Code, Duration, Spanned};

/// How long one attempt may take unless the file says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// How long a run may take unless the file says otherwise.
pub const RUN_TIMEOUT: Duration = Duration::from_secs(2 * 60 * 60);
/// Agent stages of one run at once unless the file allows more.
pub const AGENTS_PER_RUN: u32 = 3;
const ATTEMPTS_MAX: u64 = 1_000;

/// What is written about retrying; everything left out comes from further out.
#[derive(Clone, Debug, Default)]
pub struct RetryDraft {
    attempts_max: Option<u32>,
    initial: Option<Duration>,
    multiplier: Option<f64>,
    max: Option<Duration>,
    never: Option<Vec<Arc<str>>>,
    when: Option<Condition>,
}

impl RetryDraft {
    pub fn read(table: &Table<'_>) -> Self {
        let draft = Self {
            attempts_max: table.integer("max_attempts", 1, ATTEMPTS_MAX).map(|count| count as u32),
            initial: table.duration("initial_interval"),
            multiplier: table.number("backoff_multiplier", "a number above 0", |factor| factor > 0.0),
            max: table.duration("max_interval"),
            never: table.has("non_retryable_errors").then(|| table.plain_texts("non_retryable_errors")),
            when: table.condition("when"),
        };
        table.known(&["non_retryable_errors"]);
        table.finish_all();
        draft
    }

    /// This draft, with what it leaves out taken from `outer`.
    pub fn or(self, outer: &Self) -> Self {
        Self {
            attempts_max: self.attempts_max.or(outer.attempts_max),
            initial: self.initial.or(outer.initial),
            multiplier: self.multiplier.or(outer.multiplier),
            max: self.max.or(outer.max),
            never: self.never.or_else(|| outer.never.clone()),
            when: self.when.or_else(|| outer.when.clone()),
        }
    }

    fn finish(self) -> Retry {
        Retry {
            attempts_max: self.attempts_max.unwrap_or(2),
            backoff: Backoff {
                initial: self.initial.unwrap_or(Duration::from_secs(30)),
                growth: Growth::Exponential { multiplier: self.multiplier.unwrap_or(2.0) },
                min: Duration::ZERO,
                max: self.max.unwrap_or(Duration::from_secs(300)),
                jitter: 0.0,
                spread: Spread::Above,
            },
            only: Vec::new(),
            never: self.never.unwrap_or_default(),
            when: self.when,
        }
    }
}

/// What holds for stages that say nothing.
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

/// Which parts of an error policy mean something for a kind of stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// Attempts are made: everything.
    Attempts,
    /// A scope whose body makes the attempts, and takes over the retry policy.
    RetryInside,
    /// A scope: its timeout bounds the whole.
    Whole,
    /// Nothing is attempted and the kind has its own timeout.
    FailureOnly,
}

/// The policy of a stage, and the retry draft that the stages inside it may inherit.
pub fn of_stage(stage: &Table<'_>, defaults: &Defaults, applies: Applies) -> (Policy, RetryDraft) {
    let written = stage.table("error_policy");
    let mut draft = RetryDraft::default();
    let (mut timeout, mut on_failure) = (None, None);
    if let Some(table) = &written {
        if matches!(applies, Applies::Attempts | Applies::RetryInside) {
            draft = table.table("retry").map(|table| RetryDraft::read(&table)).unwrap_or_default();
        }
        if applies != Applies::FailureOnly {
            timeout = table.duration("timeout");
        }
        on_failure = table.node("on_failure").and_then(|node| read_on_failure(table, node));
        table.finish(&["retry", "timeout"], |_| ("on a stage of this type".into(), "take it out"));
    }
    let draft = draft.or(&defaults.retry);
    let attempts = applies == Applies::Attempts;
    let policy = Policy {
        retry: if attempts { draft.clone().finish() } else { once() },
        timeout: timeout.or(attempts.then_some(TIMEOUT)),
        on_failure: on_failure.unwrap_or_else(|| defaults.on_failure.clone()),
        idempotency: match attempts {
            true => stage.table("idempotency").and_then(|table| read_idempotency(&table)),
            false => None,
        },
        compensate: None,
        rate: None,
        task_jobs_max: None,
    };
    (policy, draft)
}

/// The policy of what is never attempted twice.
fn once() -> Retry {
    RetryDraft { attempts_max: Some(1), ..RetryDraft::default() }.finish()
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
                inner.missing("goto", "name the stage that takes over: `on_failure: {goto: STAGE}`");
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
            "give a key that is equal for equal work, such as `key: \"order-${{ parameters.id }}\"`",
        );
    }
    Some(Idempotency { key: key?, scope: scope.unwrap_or(IdempotencyScope::Run), ttl })
}

/// `config.concurrency`: a number for one run, or a mapping.
pub fn read_concurrency(config: &Table<'_>) -> Concurrency {
    let mut concurrency = Concurrency {
        agents_per_run: AGENTS_PER_RUN,
        steps_per_run: None,
        runs_per_workflow: None,
        key: None,
    };
    let Some(node) = config.node("concurrency") else { return concurrency };
    let limit = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let per_run = match &node.kind {
        Kind::Map(_) => config.table("concurrency").and_then(|table| {
            concurrency.runs_per_workflow = table.integer("per_workflow", 1, u64::from(u32::MAX)).map(limit);
            concurrency.key = table.bound_text("key");
            let per_run = table.integer("per_run", 1, u64::from(u32::MAX));
            table.finish_all();
            if let (Some(key), None) = (&concurrency.key, concurrency.runs_per_workflow) {
                let message = "`key` counts runs apart, but nothing limits the runs";
                let finding = table.error(Code::MissingField, "per_workflow", key.span, message);
                table.report(finding.help("add `per_workflow`, the number of runs at once for each key"));
            }
            per_run
        }),
        Kind::Scalar(_) | Kind::List(_) => config.integer("concurrency", 1, u64::from(u32::MAX)),
    };
    if let Some(count) = per_run.map(limit) {
        concurrency.agents_per_run = count;
        concurrency.steps_per_run = Some(count);
    }
    concurrency
}

pub fn read_budget(config: &Table<'_>) -> Budget {
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

/// The names of secrets, each with its place.
pub fn read_secrets(config: &Table<'_>) -> Vec<Spanned<Arc<str>>> {
    let names = config.texts("secrets");
    for name in names.iter().filter(|name| !is_name(&name.value)) {
        let finding =
            config.error(Code::BadName, "secrets", name.span, format!("`{}` is no good name", name.value));
        config.report(finding.reference(&*name.value).help(super::names::NAME_RULE));
    }
    names
}
