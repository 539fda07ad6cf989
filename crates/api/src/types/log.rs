//! What steps print.

use super::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line that a step printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LogLine {
    /// Always `line`.
    #[serde(rename = "type")]
    pub kind: LineKind,
    pub run_id: String,
    pub step: String,
    pub path: String,
    pub attempt: u32,
    pub delivery: u32,
    pub at: Time,
    pub stream: Stream,
    pub text: String,
    /// The bytes in hexadecimal if they are not UTF-8.
    pub hex: Option<String>,
    /// The line was longer than Windlass keeps.
    pub cut: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    #[default]
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}
