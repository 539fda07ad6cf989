//! A run as its user sees it.

use super::step::StepView;
use super::{FormField, Json, Seconds, Time};
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
    pub duration_seconds: Option<Seconds>,
    pub by: Option<String>,
    pub undone: Option<Undone>,
    /// The run that called it.
    pub parent_run_id: Option<String>,
    pub root_run_id: String,
    pub retry_of: Option<String>,
    pub hooks: Vec<StepView>,
    /// The number of its last event.
    pub seq: u64,
    pub resumable: bool,
    /// The run as it was after this event; null for the run as it is.
    pub at_event: Option<u64>,
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
    pub mocked: bool,
    /// Without approvers, forms and options, which are in the run.
    pub waiting_on: Vec<Wait>,
    pub error: Option<Failure>,
    pub created_at: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub duration_seconds: Option<Seconds>,
    pub by: Option<String>,
    pub undone: Option<Undone>,
    /// The run that called it.
    pub parent_run_id: Option<String>,
    pub root_run_id: String,
    pub retry_of: Option<String>,
    /// The number of its last event.
    pub seq: u64,
    pub resumable: bool,
    /// Null for runs of older versions.
    pub progress: Option<Progress>,
    pub failed_step: Option<String>,
    /// Its journal is damaged; `windlass doctor` says more.
    pub damaged: bool,
}

/// The outermost steps of a run, and how many of them are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Progress {
    pub done: u32,
    pub total: u32,
}

/// Whether completed work was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    All,
    Part,
}

/// What a run or a step waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    pub step: Option<String>,
    pub kind: WaitKind,
    /// The question of a gate, the name of a signal, the keys of a queue or the id of a called run.
    pub message: Option<Json>,
    pub options: Option<Vec<String>>,
    pub until: Option<Time>,
    pub since: Option<Time>,
    pub approvers: Option<Vec<String>>,
    pub form: Option<IndexMap<String, FormField>>,
    /// Its position in the queue, from 1.
    pub position: Option<usize>,
    pub child_run_id: Option<String>,
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

impl WaitKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Signal => "signal",
            Self::Timer => "timer",
            Self::Slot => "slot",
            Self::Run => "run",
        }
    }
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
