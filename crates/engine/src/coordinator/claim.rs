//! What runs ask the coordinator for, and what it can answer.

use crate::keys::{Path, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// The name of something that runs share.
pub type Key = Arc<str>;

/// A key as this version writes it: the limits of the machine began with `house:` before.
pub(super) fn current_key<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
    let key = Key::deserialize(deserializer)?;
    Ok(key.strip_prefix("house:").map_or(key.clone(), |rest| format!("machine:{rest}").into()))
}

/// Who asks: a step, or a run that wants to begin. Each attempt asks for itself, and ignores the answer to an earlier one.
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

    /// The step that asks, whichever attempt it is.
    pub(super) fn step(&self) -> (RunId, Path) {
        (self.run.clone(), self.path.clone())
    }
}

impl std::fmt::Display for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}#{}", self.run, self.path, self.attempt)
    }
}

/// All that one attempt needs. It is granted together or not at all, so that no attempt holds one thing while it waits for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub asker: Asker,
    pub claims: Vec<Claim>,
    /// When it was asked for first, which decides its position in a queue. An ask that is repeated keeps its position.
    pub since: Timestamp,
    /// It counts as older by so many seconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: i32,
    /// The runs that wait for this one to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<RunId>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// A step's claims are part of the digest of its work, which must never change: the serialized words are those of the first version.
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
    /// An idempotency key: the first that asks does the work, and all others use its result.
    #[serde(rename = "promise")]
    Key { key: Key, ttl: Option<Duration> },
    /// `most` is reserved, and the real cost is charged in the end. `cap` applies to a budget without a cap of its own.
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

/// What happens when a slot is not free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Full {
    #[default]
    Wait,
    /// The newcomer is refused.
    Deny,
    /// The holders are canceled, and the newcomer waits until they have stopped.
    Replace,
}

impl Full {
    fn waits(&self) -> bool {
        *self == Self::Wait
    }
}

/// What work costs.
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

    /// What of it is above a cap.
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
    /// Another step has done the work, with this result.
    Found(Value),
    Denied(Denial),
}

/// Why an ask is refused.
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
    /// It asks for more than the limit allows.
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

/// How an asker returns what it was granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The attempt is over and the step is not: it stays the owner of its keys.
    Attempt,
    /// The same, at an unknown cost: the reserved amount is charged.
    Lost,
    /// The work is done, with this result.
    Done(Value),
    /// It failed or was canceled.
    Over,
}
