//! What happened in a run, as everyone outside the process sees it.

use super::{Json, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A public event. Every event of the journal has exactly one, so `seq` counts without gaps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Always `event`.
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub run_id: String,
    pub seq: u64,
    pub at: Time,
    /// What happened, such as `settled`.
    pub event: String,
    /// What its user calls the step; null for the run itself.
    pub step: Option<String>,
    pub path: Option<String>,
    /// The members of this kind of event.
    #[serde(flatten)]
    pub members: serde_json::Map<String, Json>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    #[default]
    Event,
}
