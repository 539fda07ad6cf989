//! A run as its user sees it.

use super::step::StepView;
use super::{FormField, Json, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::RunStatus;

/// A run with its steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Always `result`.
    #[serde(rename = "type")]
    pub kind: ResultKind,
    pub run_id: String,
    pub workflow: String,
    /// The digest of the plan.
    pub version: String,
    pub dialect: String,
    pub status: RunStatus,
    /// The status in the words of the dialect.
    pub dialect_status: String,
    /// One sentence: why it failed, what it waits for, or how it ended.
    pub headline: String,
    pub has_failures: bool,
    /// Mock responses answered for some of its steps.
    pub mocked: bool,
    pub inputs: Json,
    pub outputs: Json,
    pub current_step: Option<String>,
    pub waiting_on: Vec<Wait>,
    pub error: Option<Failure>,
    pub steps: IndexMap<String, StepView>,
    /// How many steps `steps` leaves out because the run has too many.
    pub steps_left_out: usize,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub duration_seconds: Option<f64>,
    pub by: Option<String>,
    pub tags: Vec<String>,
    pub priority: i32,
    pub undone: Option<Undone>,
    pub trigger: Option<RunTrigger>,
    /// What the caller named as the parent at the start.
    pub parent: Option<String>,
    pub parent_run_id: Option<String>,
    pub root_run_id: String,
    pub retry_of: Option<String>,
    pub usage: Usage,
    pub hooks: Vec<StepView>,
    /// The number of its last event.
    pub seq: u64,
    pub resumable: bool,
}

/// Marks a run object in a stream of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultKind {
    #[default]
    Result,
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    pub run_id: String,
    pub workflow: String,
    pub version: String,
    pub dialect: String,
    pub status: RunStatus,
    pub dialect_status: String,
    pub headline: String,
    pub has_failures: bool,
    pub waiting_on: Vec<String>,
    pub error: Option<Failure>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub duration_seconds: Option<f64>,
    pub failed_step: Option<String>,
    /// Its journal is damaged; `windlass doctor` says more.
    pub damaged: bool,
}

/// How many steps of a run are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Whether completed work was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    All,
    Part,
}

/// The trigger firing that started a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunTrigger {
    pub id: String,
    pub kind: String,
    pub firing_id: String,
    pub due_at: Time,
    pub fired_at: Time,
}

/// What a run or a step waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    pub step: Option<String>,
    pub kind: WaitKind,
    pub message: Option<String>,
    pub options: Option<Vec<String>>,
    pub until: Option<Time>,
    pub since: Option<Time>,
    pub approvers: Option<Vec<String>>,
    pub form: Option<IndexMap<String, FormField>>,
    /// Its position in the queue, from 1.
    pub position: Option<usize>,
    pub child_run_id: Option<String>,
    pub task: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    Gate,
    Signal,
    Timer,
    Slot,
    Run,
}

/// Why a run or a step failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The failure class.
    pub code: String,
    pub message: String,
    pub step: Option<String>,
    pub field: Option<String>,
}

/// What calls have cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub tokens: u64,
    pub usd: f64,
    pub calls: u64,
    pub seconds: f64,
}
