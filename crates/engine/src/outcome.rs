//! Outcomes of attempts, steps and runs.

use crate::keys::RunId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done(Value),
    /// Done for now: the loop continues with this value.
    Continue(Value),
    Failed(Failure),
    Skipped(Skip),
    Cancelled(Arc<str>),
}

impl Outcome {
    /// The outcome of a calling step for the result of the called run.
    #[must_use]
    pub fn of_called(self, run: &RunId, workflow: &str) -> Self {
        match self {
            Self::Done(value) | Self::Continue(value) => Self::Done(value),
            Self::Skipped(_) => Self::Done(Value::Null),
            Self::Cancelled(why) => {
                let message = format!("the run {run} of `{workflow}` was canceled: {why}");
                Self::Failed(Failure::new(class::CANCELLED, message))
            }
            Self::Failed(failure) => {
                let message = format!("the run {run} of `{workflow}` failed: {}", failure.message);
                Self::Failed(Failure { message: message.into(), field: None, ..failure })
            }
        }
    }
}

/// Why an attempt or a step failed. `class` is one of the documented classes or one of the executor's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub class: Arc<str>,
    pub message: Arc<str>,
    /// The field of the step in the workflow file: `outputs.count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl Failure {
    pub fn new(class: &str, message: impl Into<Arc<str>>) -> Self {
        Self { class: class.into(), message: message.into(), field: None, detail: None, retry_after: None }
    }

    #[must_use]
    pub fn in_field(self, field: impl Into<Arc<str>>) -> Self {
        Self { field: Some(field.into()), ..self }
    }
}

/// The failure classes of the engine and its executors.
pub mod class {
    pub const TIMEOUT: &str = "timeout";
    pub const TRANSIENT: &str = "transient";
    pub const AUTH_FAILURE: &str = "auth_failure";
    pub const CONTRACT_VIOLATION: &str = "contract_violation";
    pub const EXPRESSION_ERROR: &str = "expression_error";
    pub const GATE_REJECTED: &str = "gate_rejected";
    pub const BUDGET_EXCEEDED: &str = "budget_exceeded";
    pub const CANCELLED: &str = "cancelled";
    pub const FAN_OUT_SOURCE: &str = "fan_out_source";
    pub const LOST: &str = "lost";
    pub const NO_MOCK_RESPONSE: &str = "no_mock_response";
    /// Retrying cannot help: a program, file or folder is missing, or the command is malformed.
    pub const NOT_RUNNABLE: &str = "not_runnable";
    pub const ERROR: &str = "error";

    /// All of the above. Each has a page in the documentation.
    pub const ALL: [&str; 13] = [
        TIMEOUT,
        TRANSIENT,
        AUTH_FAILURE,
        CONTRACT_VIOLATION,
        EXPRESSION_ERROR,
        GATE_REJECTED,
        BUDGET_EXCEEDED,
        CANCELLED,
        FAN_OUT_SOURCE,
        LOST,
        NO_MOCK_RESPONSE,
        NOT_RUNNABLE,
        ERROR,
    ];

    /// The class named in a message, for failures without one of their own.
    pub fn named_in(message: &str) -> &'static str {
        [TIMEOUT, TRANSIENT].into_iter().find(|class| message.contains(class)).unwrap_or(ERROR)
    }

    /// Not retried unless a policy names them.
    pub const NOT_RETRIED: [&str; 7] = [
        AUTH_FAILURE,
        EXPRESSION_ERROR,
        GATE_REJECTED,
        BUDGET_EXCEEDED,
        CANCELLED,
        NO_MOCK_RESPONSE,
        NOT_RUNNABLE,
    ];
}

/// Why a step was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    pub reason: SkipReason,
    /// The step that caused it, if another one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because_of: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    ConditionFalse,
    GateSkipped,
    DependencyFailed,
    BranchNotTaken,
    RunCancelled,
    /// A slot that no overlay filled.
    EmptySlot,
    /// The run was limited to another step.
    NotAsked,
}

impl SkipReason {
    pub fn word(self) -> &'static str {
        match self {
            Self::ConditionFalse => "condition_false",
            Self::GateSkipped => "gate_skipped",
            Self::DependencyFailed => "dependency_failed",
            Self::BranchNotTaken => "branch_not_taken",
            Self::RunCancelled => "run_cancelled",
            Self::EmptySlot => "empty_slot",
            Self::NotAsked => "not_asked_for",
        }
    }
}
