//! The events of a run, the only record of it. Each event contains its decision, so applying one needs no expression,
//! policy or clock.

use crate::coordinator::{Amount, Claim, Subscription};
use crate::input::Lineage;
use crate::job::Work;
use crate::keys::{Path, Reason, RunId, Timestamp};
use crate::outcome::{Failure, Outcome};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::value::{Map, Sealable};
use windlass_ir::workflow::OnTimeout;
use windlass_ir::{Duration, Plan, Value};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// The plan that this event adds to its run.
    pub fn added_plan(&self) -> Option<&AddedPlan> {
        match &self.what {
            What::Entered {
                decision: Decision::Fragment { plan, .. } | Decision::Planned { plan, .. },
                ..
            } => Some(plan),
            _ => None,
        }
    }

    pub fn added_plan_mut(&mut self) -> Option<&mut AddedPlan> {
        match &mut self.what {
            What::Entered {
                decision: Decision::Fragment { plan, .. } | Decision::Planned { plan, .. },
                ..
            } => Some(plan),
            _ => None,
        }
    }
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    Started {
        inputs: Value,
        env: Sealable,
        /// The seed of every random choice in this run.
        seed: u64,
        /// Data of the caller, returned when the run is loaded. The engine reads only `folder`.
        about: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Lineage::is_root")]
        lineage: Lineage,
        /// Slots, budgets and messages that it shares with other runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shares: Option<Box<Shares>>,
        /// Where to stop, if not at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reach: Option<Reach>,
    },
    /// An earlier run completed this step, so this run does not repeat it.
    Kept(Box<Kept>),
    /// A step with several parts advanced.
    Entered {
        path: Path,
        decision: Decision,
    },
    /// An attempt was dispatched. Later attempts and deliveries of the same step omit unchanged fields.
    Scheduled {
        path: Path,
        attempt: u32,
        delivery: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignment: Option<Arc<Assignment>>,
        /// When the attempt times out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    /// An attempt asked for shared resources. Later attempts omit unchanged fields.
    Asked {
        path: Path,
        attempt: u32,
        delivery: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignment: Option<Arc<Assignment>>,
    },
    /// The coordinator granted the request. At the path of the run, the run may begin.
    Admitted {
        path: Path,
        attempt: u32,
    },
    /// The cost of an attempt so far.
    Spent {
        path: Path,
        used: Amount,
    },
    Noted {
        path: Path,
        key: Arc<str>,
        value: Value,
    },
    /// An attempt failed, and the next one starts after `delay`.
    AttemptFailed {
        path: Path,
        attempt: u32,
        failure: Failure,
        delay: Duration,
    },
    /// A job was lost. The engine dispatches the same attempt again.
    Lost {
        path: Path,
        attempt: u32,
        delivery: u32,
        /// The loss is charged to budgets that the claims do not name (those of all runs or of the workflow), so the
        /// next delivery must ask again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        charged: bool,
        /// Whether an executor may have started it.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        started: bool,
    },
    /// The step has the same key as another one and uses its result.
    Joined {
        path: Path,
        key: Arc<str>,
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
    /// Someone decided at a gate.
    Decided {
        id: Arc<str>,
        path: Path,
        by: Arc<str>,
        value: Value,
    },
    /// A signal arrived, for the wait at `path` or to be stored until a wait takes it.
    Signalled {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<Path>,
    },
    /// A step and everything in it must stop. The path of the run stops the whole run.
    CancelRequested {
        path: Path,
        why: Arc<str>,
        by: Arc<str>,
        /// Only the steps inside stop, because one of them failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inside: bool,
    },
    Paused {
        by: Arc<str>,
        /// The run paused because it reached the step it was to stop after.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reached: bool,
    },
    Resumed {
        by: Arc<str>,
    },
    /// The process that executed the run is gone, and its successor did not continue the run.
    Interrupted,
    /// A process executes the interrupted run again.
    Continued,
    /// The inputs of the run changed.
    InputsChanged {
        inputs: Value,
        by: Arc<str>,
    },
    /// The inputs of a called workflow changed.
    Rebound {
        path: Path,
        inputs: Value,
    },
    /// The failed steps, and those canceled because of them, are open again.
    Reopened {
        paths: Vec<Path>,
        inputs: Value,
        by: Arc<str>,
    },
    /// A gate rejected: the steps from its target up to the gate run again.
    SentBack {
        gate: Path,
        steps: Vec<Repeated>,
        because: Value,
    },
    Settled(Box<Settled>),
    /// The result is final.
    Concluded {
        outcome: Outcome,
        has_failures: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undone: Option<Undone>,
    },
    /// No more events follow.
    Closed,
}

impl What {
    /// The name of the event in the journal.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::Kept(_) => "kept",
            Self::Entered { .. } => "entered",
            Self::Scheduled { .. } => "scheduled",
            Self::Asked { .. } => "asked",
            Self::Admitted { .. } => "admitted",
            Self::Spent { .. } => "spent",
            Self::Noted { .. } => "noted",
            Self::AttemptFailed { .. } => "attempt_failed",
            Self::Lost { .. } => "lost",
            Self::Joined { .. } => "joined",
            Self::TimerSet { .. } => "timer_set",
            Self::TimerFired { .. } => "timer_fired",
            Self::Decided { .. } => "decided",
            Self::Signalled { .. } => "signalled",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::Paused { .. } => "paused",
            Self::Resumed { .. } => "resumed",
            Self::Interrupted => "interrupted",
            Self::Continued => "continued",
            Self::InputsChanged { .. } => "inputs_changed",
            Self::Rebound { .. } => "rebound",
            Self::Reopened { .. } => "reopened",
            Self::SentBack { .. } => "sent_back",
            Self::Settled(_) => "settled",
            Self::Concluded { .. } => "concluded",
            Self::Closed => "closed",
        }
    }

    /// The path of the event, or `None` if it concerns the whole run.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Entered { path, .. }
            | Self::Scheduled { path, .. }
            | Self::Asked { path, .. }
            | Self::Admitted { path, .. }
            | Self::Spent { path, .. }
            | Self::Noted { path, .. }
            | Self::AttemptFailed { path, .. }
            | Self::Lost { path, .. }
            | Self::Joined { path, .. }
            | Self::TimerSet { path, .. }
            | Self::TimerFired { path, .. }
            | Self::Decided { path, .. }
            | Self::CancelRequested { path, .. }
            | Self::Rebound { path, .. } => Some(path),
            Self::SentBack { gate, .. } => Some(gate),
            Self::Kept(kept) => Some(&kept.path),
            Self::Settled(settled) => Some(&settled.path),
            Self::Signalled { path, .. } => path.as_ref(),
            Self::Started { .. }
            | Self::Paused { .. }
            | Self::Resumed { .. }
            | Self::Interrupted
            | Self::Continued
            | Self::InputsChanged { .. }
            | Self::Reopened { .. }
            | Self::Concluded { .. }
            | Self::Closed => None,
        }
    }
}

/// Where a run stops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Pause when the first instance of this step settles.
    Until(Arc<str>),
    /// Run only the step at this path. Other steps are taken from an earlier run or skipped.
    Only(Path),
}

/// Slots, messages and budgets that a run shares from its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// Granted before the run begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The run counts as this many seconds older.
    pub ahead: i32,
    /// Messages that cancel the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cancelled_by: Vec<Subscription>,
    /// The runs that wait for it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<RunId>,
    /// The budgets of those runs. This run draws on them, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<RunBudget>,
}

/// The most that a run and the runs it calls may spend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunBudget {
    pub run: RunId,
    pub cap: Budget,
}

/// A step that runs again, and the number of the pass, starting at 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    pub path: Path,
    pub pass: u32,
}

/// The outcome of a step, and its consequences for the enclosing scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub path: Path,
    pub outcome: Outcome,
    /// The scope starts no more steps because of this failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halts: bool,
    /// The scope has failed because of this failure, even if its other steps continue.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails: bool,
    /// Another step handled its failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// The attempt did not stop within its grace period, and the run no longer waits for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// The step can be undone, and now there is something to undo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoable: bool,
    /// The id of the stored signal that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<Arc<str>>,
}

impl Settled {
    /// An end without consequences for the enclosing scope.
    pub(crate) fn new(path: Path, outcome: Outcome) -> Self {
        Self {
            path,
            outcome,
            halts: false,
            fails: false,
            recovered: false,
            abandoned: false,
            undoable: false,
            took: None,
        }
    }
}

/// A step that an earlier run completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub path: Path,
    pub outcome: Outcome,
    /// Its number in the order of completion.
    pub order: u64,
    /// The digest of the step and its input. The result is kept only if it is unchanged.
    pub seen: u64,
    /// Neither the plan nor the inputs changed, so the step is kept without comparing digests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

/// Whether the run undid its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    Wholly,
    /// Undoing a step failed, or a step that was to handle a failure failed itself.
    Partly,
}

/// A decision about a step with several parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run all steps of the scope.
    Steps,
    /// The chosen arm and the value that decided.
    Arm {
        arm: Arc<str>,
        value: Value,
    },
    /// The items of a fan-out, and how many run at once.
    Items {
        items: Value,
        at_once: Option<u32>,
        /// Whether a finished item keeps its slot until all items before it are finished. Journals of earlier
        /// versions omit it, and the plan decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_order: Option<bool>,
    },
    /// The next round of a loop, starting at 0.
    Round {
        number: u32,
        value: Value,
    },
    /// The next round that a task asked for, starting at 1, with its input.
    Again {
        number: u32,
        input: Value,
        delay: Duration,
    },
    Gate(Box<Question>),
    Wait(Box<Waiting>),
    /// The steps of another workflow.
    Fragment {
        plan: AddedPlan,
        inputs: Value,
        env: Sealable,
    },
    /// Steps that a worker added next to its own step.
    Planned {
        plan: AddedPlan,
        output: Value,
    },
    /// Another step handles this failure.
    TakenOver {
        by: Arc<str>,
        failure: Failure,
    },
    /// The steps that run regardless of how the body ended.
    Finally,
    /// Undo completed steps because of this failure or cancellation.
    Undo {
        because: Value,
        /// The step was lost, so whether it took effect is unknown.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uncertain: bool,
    },
    /// The run ends early.
    Finish {
        outcome: Outcome,
    },
}

impl Decision {
    pub(crate) fn starts(&self) -> bool {
        match self {
            Self::Steps | Self::Arm { .. } | Self::Items { .. } | Self::Gate(_) | Self::Wait(_) => true,
            Self::Round { number, .. } => *number == 0,
            Self::Again { .. }
            | Self::Fragment { .. }
            | Self::Planned { .. }
            | Self::TakenOver { .. }
            | Self::Finally
            | Self::Undo { .. }
            | Self::Finish { .. } => false,
        }
    }
}

/// The plan of steps that were added to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AddedPlan {
    /// A reference to a plan that the journal stores once. Present only if the record was read without its blobs.
    Apart {
        #[serde(rename = "$blob")]
        id: Arc<str>,
    },
    Whole(Arc<Plan>),
}

impl AddedPlan {
    pub fn whole(&self) -> Option<&Arc<Plan>> {
        match self {
            Self::Whole(plan) => Some(plan),
            Self::Apart { .. } => None,
        }
    }
}

/// The rendered question of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub message: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show_file: Option<Value>,
    pub input: Value,
    pub on_timeout: OnTimeout,
    /// An input that contained the last decision and is now empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empties: Option<Arc<str>>,
}

/// The rendered condition of a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// By the clock of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The wall-clock time of `until`. If someone sets the wall clock, the engine resets the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_wall: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Listening>,
}

/// A signal or a message that a step waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listening {
    pub name: Arc<str>,
    /// Dotted paths into the value, and the expected values.
    pub matching: Map,
    /// Whether it is a published message, which is not stored if no step waits for it.
    pub message: bool,
    /// Whether values that print alike are equal, such as `7` and `"7"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
}

/// The input of an attempt, rendered once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The inputs of the step's contract, by name.
    pub input: Value,
    pub work: Work,
    /// Added to the environment of the process. Can contain secrets.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub env: IndexMap<Arc<str>, Sealable>,
    /// The serialized name is that of the first version, because digests of work contain it.
    #[serde(default, rename = "promise", skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// The shared resources that it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// No other step with this key runs while the outcome under the key is fresh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    pub key: Arc<str>,
    pub ttl: Option<Duration>,
}
