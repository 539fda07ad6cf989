//! The policies of steps and of whole runs: retries, timeouts and limits.
//!
//! Dialects write policies in many ways and with different defaults; these types hold the effective values.

use crate::source::Spanned;
use crate::time::Duration;
use crate::workflow::{Bound, Condition};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The policies of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub retry: Retry,
    /// Limits one attempt of a leaf, or the whole of a scope.
    pub timeout: Option<Duration>,
    pub on_failure: OnFailure,
    pub idempotency: Option<Idempotency>,
    /// Another step of the same scope undoes this one and has no other purpose.
    pub compensate: Option<Spanned<Arc<str>>>,
    pub rate: Option<Rate>,
    /// Concurrent jobs of the same task, across all runs.
    pub task_jobs_max: Option<u32>,
}

/// At most `limit` starts in each `period`, counted per `key` if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub limit: u32,
    pub period: Duration,
    pub key: Option<Bound>,
    /// How much one start counts.
    pub units: u32,
}

impl Policy {
    /// One attempt without a timeout; a failure halts the run.
    pub fn once() -> Self {
        Self {
            retry: Retry::once(),
            timeout: None,
            on_failure: OnFailure::Halt,
            idempotency: None,
            compensate: None,
            rate: None,
            task_jobs_max: None,
        }
    }
}

/// The effect of a step's failure on the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    Halt,
    /// Halts the run and undoes completed steps that declare a compensation.
    Rollback,
    Continue,
    SkipDependents,
    /// Another step of the same scope handles the failure and has no other purpose.
    Goto(Spanned<Arc<str>>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// The total number of attempts, including the first; at least 1.
    pub attempts_max: u32,
    pub backoff: Backoff,
    /// Failure classes to retry; empty means all that are not excluded.
    pub only: Vec<Arc<str>>,
    /// Failure classes that are never retried.
    pub never: Vec<Arc<str>>,
    /// Retries only if this condition holds for the failed attempt.
    pub when: Option<Condition>,
    pub after: RetryAfter,
}

/// What to do if a failure states its own delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// Use the longer of the two delays.
    AtLeast,
    /// Use the stated delay, clamped to these bounds, instead of the computed one.
    Instead { min: Duration, max: Duration },
}

impl Retry {
    pub fn once() -> Self {
        let backoff = Backoff {
            initial: Duration::ZERO,
            growth: Growth::Fixed,
            min: Duration::ZERO,
            max: Duration::ZERO,
            jitter: 0.0,
            spread: Spread::Above,
        };
        Self {
            attempts_max: 1,
            backoff,
            only: Vec::new(),
            never: Vec::new(),
            when: None,
            after: RetryAfter::AtLeast,
        }
    }
}

/// The delay before attempt n + 1: `initial` scaled by `growth`, clamped to `min` and `max`, and varied by `jitter`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    pub initial: Duration,
    pub growth: Growth,
    pub min: Duration,
    pub max: Duration,
    /// The share of the delay, from 0 to 1, by which it varies at random; the engine records the value drawn.
    pub jitter: f64,
    pub spread: Spread,
}

/// On which side of the delay the jitter falls. If it falls around the delay, the result is clamped again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    Above,
    Around,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    Fixed,
    /// The n-th delay is n times the first.
    Linear,
    /// Each delay is `multiplier` times the one before.
    Exponential {
        multiplier: f64,
    },
}

impl Backoff {
    /// The delay after the failure of attempt `attempt` (counted from 1), without jitter.
    pub fn delay_after(&self, attempt: u32) -> Duration {
        let steps = f64::from(attempt.saturating_sub(1));
        let factor = match self.growth {
            Growth::Fixed => 1.0,
            Growth::Linear => steps + 1.0,
            Growth::Exponential { multiplier } => multiplier.powf(steps),
        };
        // Casting a float to an integer saturates, so a huge factor ends at `max`.
        Duration((self.initial.0 as f64 * factor).round() as u64).max(self.min).min(self.max)
    }
}

/// A step with the same key as an earlier success does not run again; it takes over the earlier outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idempotency {
    pub key: Bound,
    pub scope: IdempotencyScope,
    pub ttl: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdempotencyScope {
    Run,
    Global,
}

/// The policies of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPolicy {
    pub timeout: Option<Duration>,
    pub concurrency: Concurrency,
    pub budget: Budget,
    pub priority: Option<Priority>,
    pub singleton: Option<Singleton>,
    pub sticky: Option<Sticky>,
    pub cancel_on: Vec<CancelOn>,
    /// A start with the key of an earlier run returns that run.
    pub start_key: Option<Bound>,
    /// Whether canceling the run or exceeding its timeout also undoes completed steps.
    pub compensate_on_cancel: bool,
}

impl RunPolicy {
    /// No limits.
    pub fn unlimited() -> Self {
        Self {
            timeout: None,
            concurrency: Concurrency {
                agents_per_run: u32::MAX,
                steps_per_run: None,
                runs_per_workflow: None,
                key: None,
            },
            budget: Budget::default(),
            priority: None,
            singleton: None,
            sticky: None,
            cancel_on: Vec::new(),
            start_key: None,
            compensate_on_cancel: false,
        }
    }
}

/// Which waiting run goes first: each counts as older by the offset of its key, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Priority {
    pub key: Bound,
    pub offsets: IndexMap<Arc<str>, i32>,
    pub default_offset: i32,
}

/// One run at a time, per key if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Singleton {
    pub on_conflict: OnConflict,
    pub key: Option<Bound>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The new run does not start.
    Skip,
    /// The old run is canceled.
    Cancel,
}

/// All tasks of a run go to the worker that did the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sticky {
    /// Whether other workers may take them if it does not.
    Soft,
    Hard,
}

/// A message that cancels the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelOn {
    pub message: Arc<str>,
    /// Paths into the message and the values that must be there.
    pub matching: Bindings,
    /// The subscription ends after this time.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Concurrency {
    /// Concurrent agent steps of one run.
    pub agents_per_run: u32,
    /// Concurrent steps of any kind of one run; unlimited if absent.
    pub steps_per_run: Option<u32>,
    /// Concurrent runs of this workflow, counted per `key` if there is one.
    pub runs_per_workflow: Option<u32>,
    pub key: Option<Bound>,
}

/// Limits on what a run may spend. An absent value means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub tokens: Option<u64>,
    pub micro_usd: Option<u64>,
    pub calls: Option<u64>,
    pub time: Option<Duration>,
}

impl Budget {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// Values by name, in the order of the file.
pub type Bindings = IndexMap<Arc<str>, Bound>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_are_clamped() {
        let check = |growth, expected: [u64; 3]| {
            let backoff = Backoff {
                initial: Duration::from_secs(10),
                growth,
                min: Duration::ZERO,
                max: Duration::from_secs(35),
                jitter: 0.0,
                spread: Spread::Above,
            };
            let delays = [1, 2, 3].map(|attempt| backoff.delay_after(attempt));
            assert_eq!(delays, expected.map(Duration::from_secs), "{growth:?}");
        };
        check(Growth::Fixed, [10, 10, 10]);
        check(Growth::Linear, [10, 20, 30]);
        check(Growth::Exponential { multiplier: 2.0 }, [10, 20, 35]);
    }

    #[test]
    fn a_huge_exponent_is_clamped() {
        let backoff = Backoff {
            initial: Duration::from_secs(30),
            growth: Growth::Exponential { multiplier: 1e9 },
            min: Duration::ZERO,
            max: Duration::from_secs(300),
            jitter: 0.0,
            spread: Spread::Above,
        };
        assert_eq!(backoff.delay_after(u32::MAX), Duration::from_secs(300));
    }
}
