//! What became of a step, of an attempt, or of a run.

use crate::keys::RunId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done(Value),
    /// Done for now: a loop goes on with this.
    Continue(Value),
    Failed(Failure),
    Skipped(Skip),
    Cancelled(Arc<str>),
}

impl Outcome {
    /// What the result of a called run means for the step that called it.
    #[must_use]
    pub fn of_called(self, run: &RunId, workflow: &str) -> Self {
        match self {
            Self::Done(value) | Self::Continue(value) => Self::Done(value),
            Self::Skipped(_) => Self::Done(Value::Null),
            Self::Cancelled(why) => {
                let message = format!("the run {run} of `{workflow}` was cancelled: {why}");
                Self::Failed(Failure::new(class::CANCELLED, message))
            }
            Self::Failed(failure) => {
                let message = format!("the run {run} of `{workflow}` failed: {}", failure.message);
                Self::Failed(Failure { message: message.into(), field: None, ..failure })
            }
        }
    }
}

/// Why an attempt or a step failed. `class` is one word of the list in the documentation, or the executor's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub class: Arc<str>,
    pub message: Arc<str>,
    /// Where in the step, in the words of its file: `outputs.count`.
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

/// The failure classes that the engine and its executors use themselves.
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
    pub const NO_SCRIPTED_ANSWER: &str = "no_scripted_answer";
    /// Trying again cannot change it: a program, a file or a folder is missing, or the command cannot be started as it is.
    pub const NOT_RUNNABLE: &str = "not_runnable";
    pub const ERROR: &str = "error";

    /// All of the above, each of which has a page.
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
        NO_SCRIPTED_ANSWER,
        NOT_RUNNABLE,
        ERROR,
    ];

    /// The class whose name is part of a message, for failures that name none.
    pub fn told_by(message: &str) -> &'static str {
        [TIMEOUT, TRANSIENT].into_iter().find(|class| message.contains(class)).unwrap_or(ERROR)
    }

    /// Never tried again unless a policy names them.
    pub const NOT_RETRIED: [&str; 7] = [
        AUTH_FAILURE,
        EXPRESSION_ERROR,
        GATE_REJECTED,
        BUDGET_EXCEEDED,
        CANCELLED,
        NO_SCRIPTED_ANSWER,
        NOT_RUNNABLE,
    ];
}

/// Why a step did not have to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    pub reason: SkipReason,
    /// The step that is the cause, where another one is.
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
    /// A place where others put steps, and nobody did.
    EmptySlot,
    /// The run is about another step only.
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
