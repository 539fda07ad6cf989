//! What has happened: the only thing that is ever remembered about a run. Every decision is in its event, so that
//! applying one needs no expression, no policy and no clock.

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
        /// From which every random choice of this run is drawn.
        seed: u64,
        /// What whoever drives the run wants to know when it is taken up again; the engine never looks at it.
        about: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Lineage::is_root")]
        lineage: Lineage,
        /// What it has to share with other runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shares: Option<Box<Shares>>,
        /// How far it goes, where that is not to its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reach: Option<Reach>,
    },
    /// An earlier run has done this step, and it is not done again.
    Kept(Box<Kept>),
    /// A step that takes more than an attempt went on, with what was decided about it.
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
    /// An attempt needs what runs share. Later attempts leave out what has not changed.
    Asked {
        path: Path,
        attempt: u32,
        delivery: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        assignment: Option<Arc<Assignment>>,
    },
    /// What was asked for is there; for the path of the run, the run may begin.
    Admitted {
        path: Path,
        attempt: u32,
    },
    /// What an attempt has cost so far.
    Spent {
        path: Path,
        used: Amount,
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
    /// A job is gone. The same attempt is handed out again.
    Lost {
        path: Path,
        attempt: u32,
        delivery: u32,
        /// It is charged to budgets that its claims do not name, those of all runs or of its workflow, so that the next
        /// delivery asks anew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        charged: bool,
        /// Whether an executor may have started it.
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        started: bool,
    },
    /// The step has the key of another one, and takes over what becomes of it.
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
    /// Somebody decided at a gate.
    Decided {
        id: Arc<str>,
        path: Path,
        by: Arc<str>,
        value: Value,
    },
    /// A signal came: for the wait at `path`, or to be kept until a wait takes it.
    Signalled {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<Path>,
    },
    /// A step and everything in it is told to stop; the path of the run itself is the whole of it.
    CancelRequested {
        path: Path,
        why: Arc<str>,
        by: Arc<str>,
        /// Only what is in it is, because a part of it failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inside: bool,
    },
    Paused {
        by: Arc<str>,
        /// Because the step has settled that the run was to go to.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reached: bool,
    },
    Resumed {
        by: Arc<str>,
    },
    /// The process that executed the run is gone, and the next one did not continue it.
    Interrupted,
    /// A process executes the interrupted run again.
    Continued,
    /// What the run was started with is different from here on.
    InputsChanged {
        inputs: Value,
        by: Arc<str>,
    },
    /// What a workflow that was called is given is different from here on.
    Rebound {
        path: Path,
        inputs: Value,
    },
    /// The failed leaves and what was cancelled because of them are open again.
    Reopened {
        paths: Vec<Path>,
        inputs: Value,
        by: Arc<str>,
    },
    /// A no at a gate: these steps, from the one it goes back to up to the gate itself, are done once more.
    SentBack {
        gate: Path,
        steps: Vec<Repeated>,
        because: Value,
    },
    Settled(Box<Settled>),
    /// The result is fixed.
    Concluded {
        outcome: Outcome,
        has_failures: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        undone: Option<Undone>,
    },
    /// Nothing more will be written.
    Closed,
}

impl What {
    /// The name of the event, as the journal writes it.
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

    /// The path that the event is about; none if it is about the run as a whole.
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

/// How far a run goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// It pauses when the first instance of this step has settled.
    Until(Arc<str>),
    /// Only what is at this path is done. Everything else is as an earlier run has left it, or skipped.
    Only(Path),
}

/// What a run has to share with others from its start on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shares {
    /// What it needs before it may begin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// It is taken for older by so many seconds than it is.
    pub ahead: i32,
    /// The messages that cancel it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cancelled_by: Vec<Subscription>,
    /// The runs that wait for it, the outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<RunId>,
    /// The budgets of those runs, which it draws on, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<RunBudget>,
}

/// What a run and all that it calls may spend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunBudget {
    pub run: RunId,
    pub cap: Budget,
}

/// A step that is done once more, and which time that is, from 2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    pub path: Path,
    pub pass: u32,
}

/// The end of a step, and what it means for the steps around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub path: Path,
    pub outcome: Outcome,
    /// Nothing new is started in its scope because of this failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halts: bool,
    /// Its scope has failed because of this failure, even if the rest of it goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails: bool,
    /// Another step took over its failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
    /// The attempt did not answer within its grace and is not waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
    /// What it does can be undone, and now there is something to undo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoable: bool,
    /// The signal that it took from those that were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took: Option<Arc<str>>,
}

/// A step that an earlier run has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub path: Path,
    pub outcome: Outcome,
    /// Its place in the order of completion.
    pub order: u64,
    /// Digest of the step and of what it was given: it is kept only as long as that has not changed.
    pub seen: u64,
    /// Neither the plan nor the inputs changed, so the step is kept without comparing digests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

/// Whether what was done has been undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undone {
    /// All of it.
    Wholly,
    /// Some of it could not be, or a step that was to take over a failure failed itself.
    Partly,
}

/// What was decided about a step that takes more than an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// All steps of the scope.
    Steps,
    /// The arm that was taken, and the value that decided.
    Arm {
        arm: Arc<str>,
        value: Value,
    },
    /// The items of a fan-out, and how many are worked on at once.
    Items {
        items: Value,
        at_once: Option<u32>,
        /// Whether an item that is done early keeps its slot until all items before it are done. Journals of earlier versions
        /// leave it out: then the plan says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_order: Option<bool>,
    },
    /// Another round of a loop, from 0.
    Round {
        number: u32,
        value: Value,
    },
    /// Another round of a task that asked for one, from 1, with its input.
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
    /// Steps that a worker added, to run beside the one that added them.
    Planned {
        plan: AddedPlan,
        output: Value,
    },
    /// Another step takes over this failure.
    TakenOver {
        by: Arc<str>,
        failure: Failure,
    },
    /// What is done whatever became of the body.
    Finally,
    /// What was done is undone, because of the failure or the cancel that is told here.
    Undo {
        because: Value,
        /// The step was lost, so it may have had its effect or not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        uncertain: bool,
    },
    /// The run ends early.
    Finish {
        outcome: Outcome,
    },
}

impl Decision {
    /// Whether a step starts with it.
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
    /// The journal stores the plan once and refers to it. Only events read without what is stored beside their record have
    /// this.
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

/// What a gate asks, rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub message: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show_file: Option<Value>,
    pub input: Value,
    pub on_timeout: OnTimeout,
    /// An input that held the last answer and is empty from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empties: Option<Arc<str>>,
}

/// What a step waits for, rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// In the time of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The instant on the wall clock that `until` stands for. If that clock is set, the timer is set again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_wall: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Listening>,
}

/// A signal or a message that is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listening {
    pub name: Arc<str>,
    /// Dotted paths into the value, and what must stand there.
    pub matching: Map,
    /// Whether it is published to nobody in particular, so that one that came earlier is gone.
    pub message: bool,
    /// Whether values are the same when they read the same: `7` and `"7"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub as_text: bool,
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
    /// Serialized as in the first version: digests of work contain it.
    #[serde(default, rename = "promise", skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
    /// What it needs that runs share.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

/// While the outcome under this key is fresh, no other step with the key is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    pub key: Arc<str>,
    pub ttl: Option<Duration>,
}
