//! What is wrong with a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One finding in a file, with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable word; `windlass explain CODE` prints its page.
    pub code: String,
    pub message: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub end_line: Option<u32>,
    pub end_column: Option<u32>,
    pub step: Option<String>,
    pub field: Option<String>,
    /// The name that could not be resolved.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    pub suggest: Option<String>,
    /// The number of the rule in the dialect's own specification.
    pub rule: Option<u8>,
    pub help: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Hint,
}

/// What `workflows.validate` found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    pub file: String,
    pub valid: bool,
    pub dialect: Option<String>,
    pub workflow: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}
