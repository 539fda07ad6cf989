//! A step of a run as its user sees it.

use super::run::{Failure, Usage, Wait};
use super::{Json, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::StepStatus;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// What its user calls it, such as `images[3]`.
    pub id: String,
    /// Where it is in the run, such as `/images[3]/resize`.
    pub path: String,
    pub name: String,
    pub kind: String,
    pub status: StepStatus,
    pub dialect_status: String,
    pub attempts: u32,
    /// The delays between attempts, as decided.
    pub delays_seconds: Vec<f64>,
    pub input: Json,
    pub output: Json,
    pub error: Option<Failure>,
    /// Begins with a word: `condition_false`, `gate_skipped`, `dependency_failed`, `branch_not_taken` or `run_cancelled`.
    pub skipped_because: Option<String>,
    pub duration_seconds: Option<f64>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub wait: Option<Wait>,
    pub child_run_id: Option<String>,
    /// An earlier run did it, and this one kept the result.
    pub kept: bool,
    /// The step whose result an idempotency key supplied.
    pub served_from: Option<ServedFrom>,
    pub rounds: Option<u32>,
    pub children: Option<Children>,
    /// The name of its item in a fan-out.
    pub item: Option<String>,
    pub undone: bool,
    /// It did not stop within its grace period.
    pub abandoned: bool,
    pub usage: Usage,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServedFrom {
    pub run_id: String,
    pub step: String,
}

/// The steps inside a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Children {
    pub total: usize,
    pub by_status: IndexMap<StepStatus, usize>,
}

/// One attempt at a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    pub attempt: u32,
    pub deliveries: u32,
    pub status: AttemptStatus,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub error: Option<Failure>,
    pub delay_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptStatus {
    Running,
    Success,
    Failed,
    Lost,
    Cancelled,
}
