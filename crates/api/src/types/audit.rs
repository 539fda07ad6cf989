//! Who changed what.

use super::{Json, Time};
use crate::code::Code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call that changed something, or was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: u64,
    pub at: Time,
    /// Who acted: the principal, or the name that it gave.
    pub by: String,
    pub principal: String,
    pub face: Face,
    pub operation: String,
    pub objects: Vec<AuditObject>,
    pub request_id: Option<String>,
    pub outcome: AuditOutcome,
    /// Why the call was refused.
    pub code: Option<Code>,
    /// The members of the request; texts and data are masked.
    pub changed: serde_json::Map<String, Json>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditObject {
    pub kind: String,
    pub id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    Done,
    Refused,
}

/// Where a call came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Face {
    /// The command line, here or over the owner's socket.
    #[default]
    Socket,
    Http,
}
