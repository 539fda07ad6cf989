//! What is asked of the desk: by whom, for what, and what the answer can be.

use crate::keys::{Path, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// The name of something that runs share.
pub type Key = Arc<str>;

/// Who asks: a step, or a run that wants to begin; and which time it does. What was said to an earlier time is nothing to a later one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asker {
    pub run: RunId,
    pub path: Path,
    pub attempt: u32,
}

impl Asker {
    /// A run that wants to begin, or to go on after it was opened again.
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

/// All that one attempt needs. It is given together or not at all, so that nobody holds one thing while waiting for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub asker: Asker,
    pub claims: Vec<Claim>,
    /// When it was asked for first, which decides who comes first; whoever asks again keeps its place.
    pub since: Timestamp,
    /// It is taken for older by so many seconds than it is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: i32,
    /// The runs that wait for this one to end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<RunId>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// At most `limit` holders of `key` at once.
    Slot {
        key: Key,
        limit: u32,
        #[serde(default, skip_serializing_if = "Full::waits")]
        full: Full,
    },
    /// At most `limit` units in each `period`.
    Rate { key: Key, limit: u32, period: Duration, units: u32 },
    /// Whoever has the key first does the work, and all others take over what comes of it.
    Promise { key: Key, ttl: Option<Duration> },
    /// `most` is set aside, and what was really used is taken in the end. `cap` is that of the account where its owner has set none.
    Spend { account: Key, cap: Budget, most: Amount },
}

impl Claim {
    pub fn key(&self) -> &Key {
        match self {
            Self::Slot { key, .. } | Self::Rate { key, .. } | Self::Promise { key, .. } => key,
            Self::Spend { account, .. } => account,
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
    /// Those who were there before are told to stop, and the newcomer waits until they have.
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

    /// What of it is above a cap, in words.
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

/// What an asker is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeskAnswer {
    Granted,
    /// The work has been done by somebody else, with this result.
    Found(Value),
    Denied(Denial),
}

/// Why something will not be granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Denial {
    /// Somebody else is there already.
    Taken {
        key: Key,
        by: RunId,
    },
    /// It is held by a run that waits for this one.
    WouldDeadlock {
        key: Key,
        by: RunId,
    },
    BudgetExceeded {
        account: Key,
        what: Arc<str>,
    },
    /// More than there ever is.
    TooMuch {
        key: Key,
    },
}

impl std::fmt::Display for Denial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { key, by } => write!(f, "`{key}` is held by run {by}"),
            Self::WouldDeadlock { key, by } => {
                write!(f, "`{key}` is held by run {by}, which waits for this one: neither could go on")
            }
            Self::BudgetExceeded { account, what } => {
                write!(f, "the cap of `{account}` leaves too little {what}")
            }
            Self::TooMuch { key } => write!(f, "more of `{key}` is asked for than there ever is"),
        }
    }
}

/// How an asker is done with what it was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The attempt is over, the step is not: it keeps what it promised.
    Attempt,
    /// The same, and what it has cost is not known: it is taken to be what was set aside.
    Lost,
    /// The work is done, with this result.
    Done(Value),
    /// It failed or was cancelled.
    Over,
}
