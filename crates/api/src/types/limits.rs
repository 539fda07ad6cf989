//! What runs share: slots, rates, idempotency keys, subscriptions and budgets.

use super::{Json, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    pub slots: Vec<Slot>,
    pub rates: Vec<Rate>,
    pub keys: Vec<Key>,
    pub subscriptions: Vec<Subscription>,
}

/// A limit on how many hold something at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slot {
    pub key: String,
    pub limit: Option<u32>,
    pub holders: Vec<Holder>,
    pub waiting: Vec<Waiter>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    pub run_id: String,
    pub step: Option<String>,
    pub attempt: u32,
    pub since: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    pub run_id: String,
    pub step: Option<String>,
    pub attempt: u32,
    pub since: Time,
    /// Its position in the queue, from 1.
    pub position: usize,
}

/// A rate limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    pub key: String,
    /// When everything that was taken will have come back.
    pub full_at: Time,
}

/// An idempotency key that several runs share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Key {
    pub key: String,
    /// Whether the step that owns it still works.
    pub pending: bool,
    /// The run and the step that do the work; null once the result is there.
    pub run_id: Option<String>,
    pub step: Option<String>,
    /// Until when the result is used; null without a limit.
    pub until: Option<Time>,
}

/// A step that waits for a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subscription {
    pub name: String,
    pub run_id: String,
    pub step: Option<String>,
    /// The members that a message must have to be received.
    #[serde(rename = "match")]
    pub matching: Json,
    pub until: Option<Time>,
}

/// What may be spent, and what was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// `all`, `day`, `workflow:ID` or `run:ID`.
    pub key: String,
    /// Null without a cap.
    pub cap: Option<Amounts>,
    pub spent: Amounts,
    /// Set aside for jobs at work.
    pub reserved: Amounts,
    pub window: Option<Window>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Amounts {
    pub tokens: Option<u64>,
    pub usd: Option<f64>,
    pub calls: Option<u64>,
    pub seconds: Option<f64>,
}

/// A period after which a budget starts over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    pub zone: String,
    pub ends_at: Option<Time>,
}
