//! A step of a run as its user sees it.

use super::run::{Failure, Wait};
use super::{Json, Seconds, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::StepStatus;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepView {
    /// What its user calls it, such as `images[3]`.
    pub id: String,
    /// Where it is in the run, such as `/images[3]/resize`; null for a step that the run has not reached.
    pub path: Option<String>,
    pub name: String,
    /// The dialect's word for its kind.
    pub kind: String,
    pub status: StepStatus,
    pub dialect_status: String,
    pub attempts: u32,
    /// The delays between attempts, as decided.
    pub delays_seconds: Vec<Seconds>,
    pub input: Json,
    pub output: Json,
    pub error: Option<Failure>,
    /// Begins with a word: `condition_false`, `gate_skipped`, `dependency_failed`, `branch_not_taken` or `run_cancelled`.
    pub skipped_because: Option<String>,
    pub duration_seconds: Option<Seconds>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub wait: Option<Wait>,
    pub child_run_id: Option<String>,
    /// An earlier run did it, and this one kept the result.
    pub kept: bool,
    /// How often a loop or a task has begun.
    pub rounds: Option<u32>,
    /// The items of a fan-out or the rounds of a loop that have begun.
    pub children: Option<Children>,
    /// The name of the item it works on, such as `mac, stable`.
    pub item: Option<String>,
    /// Its work was undone.
    pub undone: bool,
    /// It did not stop within its grace period.
    pub abandoned: bool,
}

/// How many items or rounds there are, and how many with each status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Children {
    /// All items of a fan-out, also those that have not begun.
    pub total: usize,
    pub by_status: IndexMap<String, usize>,
}
