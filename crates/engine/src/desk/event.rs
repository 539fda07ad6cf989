//! What has happened at the desk. As with runs, every decision is in its event.

use super::claim::{Amount, Ask, Asker, Claim, End, Key};
use crate::keys::{Path, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::value::Map;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeskEvent {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: DeskWhat,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum DeskWhat {
    /// Everything before this is said again by the events that follow, as far as it still matters.
    Begun,
    /// Somebody has to wait, in the line of `on`.
    Queued {
        ask: Box<Ask>,
        on: Key,
        place: Place,
    },
    /// It waits in another line.
    Moved {
        asker: Asker,
        on: Key,
    },
    /// Told without the ask for one that has waited.
    Granted {
        asker: Asker,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Box<Ask>>,
    },
    /// It does not wait any more, and got nothing.
    Withdrawn {
        asker: Asker,
    },
    /// Somebody was told to make room.
    Evicted {
        asker: Asker,
    },
    Released {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// A step that promised something will not do it.
    Broken {
        run: RunId,
        path: Path,
    },
    /// What came of work that was promised.
    Kept {
        key: Key,
        value: Value,
        until: Option<Timestamp>,
    },
    /// Who does the work under a key.
    Promised {
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
    AccountIs {
        account: Key,
        cap: Option<Budget>,
        spent: Amount,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        day: Option<Day>,
    },
    Listening(Box<Listener>),
    /// Nobody listens there any more.
    Deaf {
        run: RunId,
        path: Path,
    },
    /// A message came, and these are owed it.
    Published {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        to: Vec<Address>,
    },
    /// A message has reached one of those who were owed it.
    Heard {
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
pub struct Place {
    pub since: Timestamp,
    pub number: u64,
}

/// The day that an account is for.
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

/// Somebody who waits for a message that names no run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    pub address: Address,
    pub name: Arc<str>,
    /// Dotted paths into the message, and what must stand there.
    pub matching: Map,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Which of several that one run has at one path.
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
