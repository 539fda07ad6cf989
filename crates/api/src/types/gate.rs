//! A gate, and who decided at it.

use super::{Json, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gate that waits for a decision, or has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    pub run_id: String,
    pub workflow: String,
    pub step: String,
    pub path: String,
    pub message: Option<Json>,
    pub options: Vec<String>,
    pub approvers: Vec<String>,
    pub quorum: Quorum,
    pub form: IndexMap<String, FormField>,
    pub show_file: Option<Json>,
    pub asked_at: Option<Time>,
    pub until: Option<Time>,
    pub on_timeout: String,
    /// The decision that settled it.
    pub decided: Option<Decision>,
    /// Whether the caller may decide.
    pub can_decide: bool,
}

/// How many approvals a gate needs, and whose it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quorum {
    pub needed: u32,
    /// The approvals so far.
    pub have: Vec<Decision>,
}

/// A decision at a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// A person, `timeout`, or `input` for a gate that an input decides.
    pub by: String,
    pub choice: String,
    pub at: Time,
    pub reason: Option<String>,
    /// The fields of the form.
    pub fields: Json,
}

/// A field that an approver fills in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FormField {
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    pub default: Json,
    pub choices: Vec<Json>,
    pub description: Option<String>,
}
