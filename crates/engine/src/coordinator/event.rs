//! What has happened at the coordinator. As with runs, each decision is in its event.
//!
//! Aliases are the words of earlier versions, whose journals stay readable.

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
    /// The events that follow describe the whole state again, and the earlier ones are not needed.
    #[serde(alias = "begun")]
    Snapshot,
    /// An ask waits in the queue of `on`.
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
    /// An ask that was queued is not repeated.
    Granted {
        asker: Asker,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Box<Ask>>,
    },
    /// It does not wait any more, and got nothing.
    Withdrawn {
        asker: Asker,
    },
    /// A newer run takes its slot once it has stopped.
    #[serde(alias = "evicted")]
    Replaced {
        asker: Asker,
    },
    Released {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// A step will not do the work under the keys that it owns.
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
    /// When all that was taken of a rate will have come back.
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
    /// A message came, and is to be delivered to these.
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
    /// What a trigger was due for at an instant.
    Fired(Box<Fired>),
    /// The run that a trigger started has begun.
    Arrived {
        run: RunId,
    },
    /// Events of earlier versions about the order of a queue. They change nothing.
    #[serde(rename = "insisted", alias = "turns_are")]
    Retired,
}

/// The position of an ask in its queue: the oldest first, `ahead` included, then the first that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub since: Timestamp,
    pub number: u64,
}

/// The day that a budget is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Day {
    pub zone: Arc<str>,
    pub ends: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    pub run: RunId,
    /// The step that waits for it; the run itself for a message that cancels it.
    pub path: Path,
}

/// A step or run that waits for a message that names no run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    pub address: Address,
    pub name: Arc<str>,
    /// Dotted paths into the message, and what must stand there.
    pub matching: Map,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Tells apart the subscriptions that a run has at one path.
    #[serde(default)]
    pub number: u32,
    /// Whether values are the same when they read the same: `7` and `"7"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
}

/// One instant at which a trigger was due, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fired {
    pub trigger: Key,
    pub due: Timestamp,
    /// When it will fire next, as far as was known then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    #[serde(flatten)]
    pub came: Came,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// This run is to be started.
    Started(Order),
    Skipped {
        because: Arc<str>,
    },
}

/// A run that is to be started: all that is needed for it, whatever has become of the file since.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub run: RunId,
    /// The digest of its plan.
    pub plan: Arc<str>,
    pub inputs: Value,
    /// What the run asks for beside what its plan says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}
