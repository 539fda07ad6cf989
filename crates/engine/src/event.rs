//! What has happened: the only thing that is ever remembered about a run. Every decision is in its event, so that
//! applying one needs no expression, no policy and no clock.

use crate::job::Work;
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::{Failure, Outcome};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::OnTimeout;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    Started {
        inputs: Value,
        env: Sealable,
        /// From which every random choice of this run is drawn.
        seed: u64,
        /// What whoever drives the run wants to know when it is taken up again; the engine never looks at it.
        about: Value,
    },
    /// A scope or a gate was entered, with what was decided about it.
    Entered {
        path: Path,
        decision: Decision,
    },
    /// An attempt was decided. Later attempts and deliveries of the same step leave out what has not changed.
    Scheduled {
        path: Path,
        attempt: u32,
        delivery: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignment: Option<Arc<Assignment>>,
        /// When the attempt will have taken too long.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    Noted {
        path: Path,
        key: Arc<str>,
        value: Value,
    },
    /// An attempt failed and another one will be made after `delay`.
    AttemptFailed {
        path: Path,
        attempt: u32,
        failure: Failure,
        delay: Duration,
    },
    TimerSet {
        path: Path,
        reason: Reason,
        until: Timestamp,
    },
    TimerFired {
        path: Path,
        reason: Reason,
    },
    /// A decision was made at a gate.
    Signalled {
        id: Arc<str>,
        path: Path,
        by: Arc<str>,
        value: Value,
    },
    CancelRequested {
        why: Arc<str>,
        by: Arc<str>,
    },
    Paused {
        by: Arc<str>,
    },
    Resumed {
        by: Arc<str>,
    },
    /// The failed leaves and what was cancelled because of them are open again.
    Reopened {
        paths: Vec<Path>,
        inputs: Value,
        by: Arc<str>,
    },
    Settled {
        path: Path,
        outcome: Outcome,
        /// Whether nothing new is started in its scope because of this failure.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        halts: bool,
        /// Whether its scope has failed because of this failure, even if the rest of it goes on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fails: bool,
        /// The attempt did not answer within its grace and is not waited for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        abandoned: bool,
    },
    /// The result is fixed.
    Concluded {
        outcome: Outcome,
        has_failures: bool,
    },
    /// Nothing more will be written.
    Closed,
}

/// What was decided when a scope or a gate was entered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// All steps of the scope.
    Steps,
    /// The arm that was taken.
    Arm(Arc<str>),
    Gate(Question),
}

/// What a gate asks, rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub message: Option<Value>,
    pub input: Value,
    pub on_timeout: OnTimeout,
}

/// What an attempt is given, rendered once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The inputs of the step's contract, by name.
    pub input: Value,
    pub work: Work,
    /// Added to the environment of whatever is started; may hold secrets.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<Arc<str>, Sealable>,
}
