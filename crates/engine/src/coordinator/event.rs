//! The events of the coordinator. Each event contains its decision.
//!
//! Aliases are names from journals of earlier versions.

use super::claim::{Amount, Ask, Asker, Claim, End, Key, current_key};
use crate::keys::{Path, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::value::Map;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoordinatorEvent {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: CoordinatorWhat,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CoordinatorWhat {
    /// The following events describe the whole state, so earlier events are not needed.
    #[serde(alias = "begun")]
    Snapshot,
    /// A request waits in the queue of `on`.
    Queued {
        ask: Box<Ask>,
        #[serde(deserialize_with = "current_key")]
        on: Key,
        #[serde(alias = "place")]
        position: Position,
    },
    /// It waits in another queue.
    Moved {
        asker: Asker,
        #[serde(deserialize_with = "current_key")]
        on: Key,
    },
    /// A request that was queued before is not repeated.
    Granted {
        asker: Asker,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Box<Ask>>,
    },
    /// It left the queue without a grant.
    Withdrawn {
        asker: Asker,
    },
    /// A newer run gets its slot once it has stopped.
    #[serde(alias = "evicted")]
    Replaced {
        asker: Asker,
    },
    Released {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// A step gave up the keys that it owned.
    #[serde(alias = "broken")]
    KeysFreed {
        run: RunId,
        path: Path,
    },
    /// The result of the work under a key.
    Kept {
        key: Key,
        value: Value,
        until: Option<Timestamp>,
    },
    /// The step that does the work under a key.
    #[serde(alias = "promised")]
    KeyTaken {
        key: Key,
        run: RunId,
        path: Path,
        ttl: Option<Duration>,
    },
    /// When a rate is unused again.
    RateIs {
        key: Key,
        whole_at: Timestamp,
    },
    #[serde(alias = "account_is")]
    BudgetIs {
        #[serde(alias = "account")]
        budget: Key,
        cap: Option<Budget>,
        spent: Amount,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        day: Option<Day>,
    },
    #[serde(alias = "listening")]
    Subscribed(Box<Subscription>),
    #[serde(alias = "deaf")]
    Unsubscribed {
        run: RunId,
        path: Path,
    },
    /// A message arrived for these subscribers.
    Published {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        to: Vec<Address>,
    },
    /// A run has received a message.
    #[serde(alias = "heard")]
    Acknowledged {
        id: Arc<str>,
        to: Address,
    },
    /// What a trigger did when it was due.
    Fired(Box<Fired>),
    /// The run that a trigger started has begun.
    Arrived {
        run: RunId,
    },
    /// Events of earlier versions about the order of a queue. They have no effect.
    #[serde(rename = "insisted", alias = "turns_are")]
    Retired,
}

/// The position of a request in its queue: oldest first, including `ahead`, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub since: Timestamp,
    pub number: u64,
}

/// The day of a budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    pub zone: Arc<str>,
    pub ends: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    pub run: RunId,
    /// The step that waits for it, or the run itself for a message that cancels it.
    pub path: Path,
}

/// A step or run that waits for a message that is not addressed to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    pub address: Address,
    pub name: Arc<str>,
    /// Dotted paths into the message, and the expected values.
    pub matching: Map,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Distinguishes the subscriptions of a run at one path.
    #[serde(default)]
    pub number: u32,
    /// Whether values that print alike are equal, such as `7` and `"7"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
}

/// One instant at which a trigger was due, and the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    pub trigger: Key,
    pub due: Timestamp,
    /// When it will fire next, as known at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    #[serde(flatten)]
    pub came: Came,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// Start this run.
    Started(Order),
    Skipped {
        because: Arc<str>,
    },
}

/// A run to start, with everything it needs, even if the file has changed since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub run: RunId,
    /// The digest of its plan.
    pub plan: Arc<str>,
    pub inputs: Value,
    /// The claims of the run in addition to those of its plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}
