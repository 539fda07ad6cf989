//! Requests to the coordinator and their answers.

use crate::keys::{Path, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// The name of a shared resource.
pub type Key = Arc<str>;

/// Reads a key. Earlier versions wrote the limits of the machine with the prefix `house:`.
pub(super) fn current_key<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
    let key = Key::deserialize(deserializer)?;
    Ok(key.strip_prefix("house:").map_or(key.clone(), |rest| format!("machine:{rest}").into()))
}

/// A step, or a run that wants to begin. Each attempt asks for itself, and ignores answers to earlier ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asker {
    pub run: RunId,
    pub path: Path,
    pub attempt: u32,
}

impl Asker {
    /// A run that wants to begin, or to continue after it was reopened.
    pub fn start(run: RunId, time: u32) -> Self {
        Self { run, path: Path::default(), attempt: time }
    }

    /// The step that asks, regardless of the attempt.
    pub(super) fn step(&self) -> (RunId, Path) {
        (self.run.clone(), self.path.clone())
    }
}

impl std::fmt::Display for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}#{}", self.run, self.path, self.attempt)
    }
}

/// Everything that one attempt needs. The coordinator grants all of it or nothing, so no attempt holds one resource
/// while it waits for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub asker: Asker,
    pub claims: Vec<Claim>,
    /// When it was first asked for, which determines its position in a queue. A repeated request keeps its position.
    pub since: Timestamp,
    /// The request counts as this many seconds older.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: i32,
    /// The runs that wait for this one to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<RunId>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The digest of a step's work contains its claims and must never change, so the serialized names are those of the
/// first version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// At most `limit` holders of `key` at once.
    Slot {
        #[serde(deserialize_with = "current_key")]
        key: Key,
        limit: u32,
        #[serde(default, skip_serializing_if = "Full::waits")]
        full: Full,
    },
    /// At most `limit` units in each `period`.
    Rate { key: Key, limit: u32, period: Duration, units: u32 },
    /// An idempotency key: the first asker does the work, and all others use its result.
    #[serde(rename = "promise")]
    Key { key: Key, ttl: Option<Duration> },
    /// Reserves `most` and charges the real cost at the end. `cap` applies to a budget without a cap of its own.
    Spend {
        #[serde(rename = "account")]
        budget: Key,
        cap: Budget,
        most: Amount,
    },
}

impl Claim {
    pub fn key(&self) -> &Key {
        match self {
            Self::Slot { key, .. } | Self::Rate { key, .. } | Self::Key { key, .. } => key,
            Self::Spend { budget, .. } => budget,
        }
    }
}

/// What happens if no slot is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Full {
    #[default]
    Wait,
    /// Deny the request.
    Deny,
    /// Cancel the holders, and wait until they have stopped.
    Replace,
}

impl Full {
    fn waits(&self) -> bool {
        *self == Self::Wait
    }
}

/// The cost of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amount {
    #[serde(skip_serializing_if = "nothing")]
    pub tokens: u64,
    #[serde(skip_serializing_if = "nothing")]
    pub micro_usd: u64,
    #[serde(skip_serializing_if = "nothing")]
    pub calls: u64,
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub time: Duration,
}

fn nothing(amount: &u64) -> bool {
    *amount == 0
}

impl Amount {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            calls: self.calls.saturating_add(other.calls),
            time: Duration(self.time.0.saturating_add(other.time.0)),
        }
    }

    /// The first unit that exceeds a cap, if any.
    pub fn beyond(&self, cap: &Budget) -> Option<&'static str> {
        let over = |amount: u64, cap: Option<u64>| cap.is_some_and(|cap| amount > cap);
        let beyond = [
            (over(self.tokens, cap.tokens), "tokens"),
            (over(self.micro_usd, cap.micro_usd), "money"),
            (over(self.calls, cap.calls), "calls"),
            (over(self.time.0, cap.time.map(|time| time.0)), "time"),
        ];
        beyond.into_iter().find(|(over, _)| *over).map(|(_, what)| what)
    }
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoordinatorAnswer {
    Granted,
    /// Another step did the work, with this result.
    Found(Value),
    Denied(Denial),
}

/// Why a request was denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Another run holds it.
    Taken { key: Key, by: RunId },
    /// It is held by a run that waits for this one.
    WouldDeadlock { key: Key, by: RunId },
    BudgetExceeded {
        #[serde(alias = "account")]
        budget: Key,
        what: Arc<str>,
    },
    /// The request exceeds the limit.
    TooMuch { key: Key },
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { key, by } => write!(f, "`{key}` is held by run {by}"),
            Self::WouldDeadlock { key, by } => {
                write!(f, "`{key}` is held by run {by}, which waits for this one: a deadlock")
            }
            Self::BudgetExceeded { budget, what } => {
                write!(f, "budget `{budget}` exceeded: not enough {what} left")
            }
            Self::TooMuch { key } => write!(f, "it asks for more of `{key}` than the limit allows"),
        }
    }
}

/// How the work of an asker ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The attempt is over, but the step is not: it keeps its keys.
    Attempt,
    /// The same, at an unknown cost: the reserved amount is charged.
    Lost,
    /// The work is done, with this result.
    Done(Value),
    /// It failed or was canceled.
    Over,
}
