//! How often, how long and at what price: the policies of steps and of whole runs.
//!
//! Dialects write policies in many ways and with many defaults; what stands here is the effective result.

use crate::source::Spanned;
use crate::time::Duration;
use crate::workflow::{Bound, Condition};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What surrounds the doing of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub retry: Retry,
    /// Bounds one attempt of a leaf, or the whole of a scope.
    pub timeout: Option<Duration>,
    pub on_failure: OnFailure,
    pub idempotency: Option<Idempotency>,
    /// Another step of the same scope undoes this one; it runs for nothing else.
    pub compensate: Option<Spanned<Arc<str>>>,
    pub rate: Option<Rate>,
    /// Jobs of the same task at once, over all runs.
    pub task_jobs_max: Option<u32>,
}

/// At most `limit` starts in each `period`, counted per `key` when there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    pub limit: u32,
    pub period: Duration,
    pub key: Option<Bound>,
    /// What one start counts.
    pub units: u32,
}

impl Policy {
    /// One attempt without a limit; its failure halts.
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

/// What the failure of a step means for the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    Halt,
    /// Halt, and undo what declared how to be undone.
    Rollback,
    Continue,
    SkipDependents,
    /// Another step of the same scope takes over; it runs for nothing else.
    Goto(Spanned<Arc<str>>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// All attempts, the first included; at least 1.
    pub attempts_max: u32,
    pub backoff: Backoff,
    /// Classes that are tried again; empty means all that are not excluded.
    pub only: Vec<Arc<str>>,
    /// Classes that are never tried again.
    pub never: Vec<Arc<str>>,
    /// Tried again only if this holds for the failed attempt.
    pub when: Option<Condition>,
    pub after: RetryAfter,
}

/// What it means when a failure itself says how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// The longer of the two waits.
    AtLeast,
    /// That wait, brought between these bounds, in place of the computed one.
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

/// The wait before attempt n + 1: `initial` shaped by `growth`, clamped to `min` and `max`, changed by up to `jitter` of
/// itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    pub initial: Duration,
    pub growth: Growth,
    pub min: Duration,
    pub max: Duration,
    /// A share from 0 to 1 of the delay by which it is changed at random; the engine records what it drew.
    pub jitter: f64,
    pub spread: Spread,
}

/// On which side of the delay jitter falls. Around it, the result is clamped once more.
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
    /// The delay decided after the failure of attempt `attempt` (counted from 1), without jitter.
    pub fn delay_after(&self, attempt: u32) -> Duration {
        let steps = f64::from(attempt.saturating_sub(1));
        let factor = match self.growth {
            Growth::Fixed => 1.0,
            Growth::Linear => steps + 1.0,
            Growth::Exponential { multiplier } => multiplier.powf(steps),
        };
        // A float-to-integer cast saturates, so a factor beyond all bounds ends at `max`.
        Duration((self.initial.0 as f64 * factor).round() as u64).max(self.min).min(self.max)
    }
}

/// A step with the same key as one that succeeded is not done again; its outcome is taken over.
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

/// What holds for a run as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPolicy {
    pub timeout: Option<Duration>,
    pub concurrency: Concurrency,
    pub budget: Budget,
    pub priority: Option<Priority>,
    pub singleton: Option<Singleton>,
    pub sticky: Option<Sticky>,
    pub cancel_on: Vec<CancelOn>,
    /// A start with the key of an earlier one is that run.
    pub start_key: Option<Bound>,
    /// Whether what was done is undone when the run is cancelled or runs out of time, too.
    pub compensate_on_cancel: bool,
}

impl RunPolicy {
    /// No bound on anything.
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

/// Which of the runs that wait goes first: each is taken for older by the offset of its key, in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Priority {
    pub key: Bound,
    pub offsets: IndexMap<Arc<str>, i32>,
    pub default_offset: i32,
}

/// One run at a time, for each key when there is one.
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
    /// The old run is cancelled.
    Cancel,
}

/// All tasks of a run go to the worker that did the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sticky {
    /// Others may take them when it does not.
    Soft,
    Hard,
}

/// A message that cancels the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelOn {
    pub message: Arc<str>,
    /// Paths into the message, and what must stand there.
    pub matching: Bindings,
    /// It is listened for only this long.
    pub timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Concurrency {
    /// Agent steps of one run at once.
    pub agents_per_run: u32,
    /// Steps of any kind of one run at once; unlimited when absent.
    pub steps_per_run: Option<u32>,
    /// Runs of this workflow at once, counted per `key` when there is one.
    pub runs_per_workflow: Option<u32>,
    pub key: Option<Bound>,
}

/// Caps on what a run may spend. An absent cap is no cap.
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

/// Values bound to names, in the order they were written.
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
    fn a_huge_exponent_ends_at_the_clamp() {
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
