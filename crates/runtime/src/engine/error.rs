//! The errors of a data folder and its runs. Each has a code for programs and a next action for people.

use crate::config::BadConfig;
use crate::ownership::described;
use std::path::PathBuf;
use windlass_engine::{BadRunId, Contradiction, CoordinatorRefused, Refused, RunId, Unrunnable};
use windlass_executors::{EndError, Problem};
use windlass_ir::Plan;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] windlass_store::Error),
    #[error(transparent)]
    RunId(#[from] BadRunId),
    #[error(transparent)]
    Unrunnable(#[from] Unrunnable),
    #[error("{0}")]
    Refused(#[from] Refused),
    #[error("run `{0}` already exists")]
    RunExists(RunId),
    #[error("unknown run `{0}`")]
    NoRun(String),
    #[error("run `{run}` has no event {event}; its events are 1 to {last}")]
    NoEvent { run: RunId, event: u64, last: u64 },
    #[error("several runs match `{name}`, among them {}", .runs.join(" and "))]
    WhichRun { name: String, runs: Vec<String> },
    #[error("unknown run `{name}`")]
    NoRunNear { name: String, near: String },
    #[error("run `{run}` is finished ({status})")]
    RunFinished { run: RunId, status: windlass_ir::RunStatus },
    #[error("another process owns {0}")]
    Owned(PathBuf),
    #[error(
        "{} belongs to {}, but Windlass runs as {}",
        .file.display(), described(*.owner), described(*.user)
    )]
    Foreign { file: PathBuf, owner: u32, user: u32 },
    #[error("{folder}: {cause}")]
    Folder { folder: PathBuf, cause: String },
    #[error("{folder}: {cause}")]
    Export { folder: PathBuf, cause: String },
    #[error("the data folder does not hold the plan of run `{0}`")]
    NoPlan(RunId),
    #[error(
        "limits and budgets cannot be read{}; refusing to execute runs",
        unreadable(.0)
    )]
    Limits(windlass_store::Error),
    #[error("invalid budget: {0}")]
    Budget(#[from] CoordinatorRefused),
    #[error(transparent)]
    Orphans(#[from] EndError),
    #[error("invalid mock file: {}", .0.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect::<Vec<_>>().join("; "))]
    Script(Vec<Problem>),
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// `task` is the worker task of the step, if it has one.
    #[error("no executor for step `{step}` (type {kind})")]
    NoExecutor { step: String, kind: String, task: Option<String> },
    /// `whose` names a run or a workflow; `instead` suggests a step.
    #[error("{whose} has no step `{step}`")]
    NoStep { whose: String, step: String, instead: String },
    #[error("nothing failed in run `{0}`, and neither its plan nor its inputs changed")]
    NothingToRetry(RunId),
    #[error("run `{0}` is not finished")]
    NotFinished(RunId),
    #[error("run `{run}` has no result of `{needed}`, which `{step}` needs")]
    NoResult { run: RunId, step: String, needed: String },
    #[error("`{step}` is inside the loop `{around}`, whose rounds depend on each other")]
    InLoop { step: String, around: String },
    #[error("no gate of run `{0}` waits for a decision")]
    NoGate(RunId),
    #[error("run `{run}` has no gate `{step}`")]
    UnknownGate { run: RunId, step: String, instead: String },
    #[error("run `{run}` waits at several gates")]
    WhichGate { run: RunId, gates: Vec<String> },
    #[error("the process that executed run `{0}` is gone")]
    OwnerGone(RunId),
    #[error("cannot reach the owner of this data folder at {socket}: {cause}")]
    Unreachable { socket: PathBuf, cause: String },
}

impl Error {
    /// The journal of a run does not fit its plan.
    pub fn contradictory(run: &RunId, contradiction: Contradiction) -> Self {
        let contradiction = Box::new(contradiction);
        windlass_store::Error::Contradictory { run: run.clone(), contradiction }.into()
    }

    /// A workflow has no step of this name.
    pub fn no_step_in(plan: &Plan, step: &str) -> Self {
        let names = plan.names();
        Self::no_step(format!("workflow `{}`", plan.header.id), step, names.iter().map(String::as_str))
    }

    /// None of these steps has this name. Suggests the nearest one.
    pub fn no_step<'n>(whose: String, step: &str, names: impl Iterator<Item = &'n str>) -> Self {
        const NAMES_MAX: usize = 12;
        let names: indexmap::IndexSet<&str> = names.collect();
        let instead = match windlass_ir::suggest::nearest(step, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it has no steps yet".to_owned(),
            None => {
                let more = if names.len() > NAMES_MAX { ", …" } else { "" };
                let some: Vec<&str> = names.into_iter().take(NAMES_MAX).collect();
                format!("it has {}{more}", some.join(", "))
            }
        };
        Self::NoStep { whose, step: step.to_owned(), instead }
    }

    /// What to do next.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::RunExists(run) => {
                format!("choose another id, or show the run with `windlass show {run}`")
            }
            Self::NoRun(_) => "`windlass runs` lists the runs of this data folder".to_owned(),
            Self::NoEvent { run, .. } => format!("`windlass events {run}` lists the events"),
            Self::WhichRun { .. } => "write more of the id".to_owned(),
            Self::NoRunNear { near, .. } => format!("did you mean `{near}`?"),
            Self::RunFinished { run, status: windlass_ir::RunStatus::Failed } => format!(
                "`windlass resume {run}` continues it at the steps that failed; `windlass retry {run}` starts it again"
            ),
            Self::RunFinished { run, .. } => format!(
                "`windlass retry {run}` starts it again; `--from-step STEP` keeps everything before a step"
            ),
            Self::Owned(_) => "let that process finish, or stop it first".to_owned(),
            Self::Foreign { .. } => {
                "name a data folder of your own with `--data FOLDER`, or change the owner with `chown`".to_owned()
            }
            Self::NoPlan(_) => "restore the data folder from a backup".to_owned(),
            Self::Limits(_) => "restore the data folder from a backup, or reset limits and budgets with `windlass doctor --renew-limits`; you can still show runs".to_owned(),
            Self::NoExecutor { task: Some(task), .. } => format!(
                "mock it with `--mock FILE`, or name a command for its task in windlass.toml: `[tasks.{task:?}]` with `command = [\"program\"]`"
            ),
            Self::NoExecutor { task: None, .. } => "mock it with `--mock FILE`".to_owned(),
            Self::NoStep { instead, .. } | Self::UnknownGate { instead, .. } => instead.clone(),
            Self::NothingToRetry(_) => "name the step to start from with `--from-step STEP`".to_owned(),
            Self::NotFinished(run) => format!(
                "continue it with `windlass resume {run}`, or cancel it first with `windlass cancel {run}`"
            ),
            Self::NoResult { .. } => "name another run, or let that step run too".to_owned(),
            Self::InLoop { around, .. } => format!("name the loop `{around}` instead"),
            Self::WhichGate { gates, .. } => format!("name one of {}", gates.join(", ")),
            Self::OwnerGone(run) => format!("continue it with `windlass resume {run}`"),
            Self::NoGate(run) => format!("`windlass show {run}` shows what the run waits for"),
            Self::Script(_) => "fix these entries of the file that `--mock` names".to_owned(),
            Self::Export { .. } => "name a folder that `windlass runs export` wrote".to_owned(),
            Self::Folder { .. } => "check that the folder exists and that you may write to it".to_owned(),
            Self::Unreachable { .. } => "run the command again; if it fails again, restart the process that owns the data folder".to_owned(),
            Self::Refused(refused) => return refused_help(refused),
            Self::Store(_)
            | Self::RunId(_)
            | Self::Unrunnable(_)
            | Self::Budget(_)
            | Self::Orphans(_)
            | Self::Config(_) => return None,
        })
    }

    /// The step that the error concerns.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::NoExecutor { step, .. }
            | Self::NoStep { step, .. }
            | Self::NoResult { step, .. }
            | Self::InLoop { step, .. }
            | Self::UnknownGate { step, .. } => Some(step),
            _ => None,
        }
    }

    /// The code that programs match on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(windlass_store::Error::Missing { .. }) => "no_run",
            Self::Store(windlass_store::Error::Older { .. } | windlass_store::Error::Forked { .. }) => {
                "older_copy"
            }
            Self::Store(windlass_store::Error::Contradictory { .. }) => "contradictory_journal",
            Self::Store(error) if error.is_of_one_run() => "damaged_run",
            Self::Store(_) => "storage",
            Self::Limits(_) => "damaged_limits",
            Self::RunId(_) => "bad_run_id",
            Self::Unrunnable(_) | Self::NoExecutor { .. } => "not_runnable",
            Self::Refused(refused) => refused_code(refused),
            Self::RunFinished { .. } => "run_finished",
            Self::RunExists(_) => "run_exists",
            Self::NoRun(_) | Self::NoRunNear { .. } | Self::WhichRun { .. } => "no_run",
            Self::NoEvent { .. } => "no_event",
            Self::Owned(_) => "owned",
            Self::Foreign { .. } => "wrong_owner",
            Self::Folder { .. } => "data_folder",
            Self::NoPlan(_) => "no_plan",
            Self::Export { .. } => "bad_export",
            Self::Budget(_) => "bad_budget",
            Self::Orphans(_) => "orphans",
            Self::Script(_) => "bad_mock",
            Self::Config(_) => "bad_config",
            Self::NoStep { .. } | Self::InLoop { .. } => "no_step",
            Self::NothingToRetry(_) => "nothing_to_retry",
            Self::NotFinished(_) => "run_not_finished",
            Self::NoResult { .. } => "no_result",
            Self::NoGate(_) | Self::UnknownGate { .. } | Self::WhichGate { .. } => "no_gate",
            Self::OwnerGone(_) => "owner_gone",
            Self::Unreachable { .. } => "unreachable",
        }
    }
}

/// What to do after the engine has refused an input. Some messages already say it.
fn refused_help(refused: &Refused) -> Option<String> {
    let help = match refused {
        Refused::NotAnApprover { .. } => "ask one of the approvers to decide",
        Refused::OwnRun { .. } => {
            "ask someone else to decide: this gate does not accept the user who started the run"
        }
        Refused::AlreadyDecided { .. } => "`windlass show` prints the decision",
        Refused::NothingThere(_) => "`windlass show` lists the steps of the run",
        Refused::AlreadyPaused => "continue the run with `windlass resume`",
        Refused::Undoing => {
            "a run that has begun to undo its steps cannot be resumed; start it again with `windlass retry`"
        }
        Refused::NotEnded => "cancel the run first, or let it end",
        Refused::Finished
        | Refused::NoGate(_)
        | Refused::NoWait(_)
        | Refused::NoSuchOption { .. }
        | Refused::BadForm { .. }
        | Refused::BadInput(_)
        | Refused::BadEnvironment(_)
        | Refused::AlreadyStarted
        | Refused::NotPaused
        | Refused::NotFailed
        | Refused::NotStarted
        | Refused::StaleJob(_)
        | Refused::NotAsked(_)
        | Refused::Broken(_) => return None,
    };
    Some(help.to_owned())
}

fn refused_code(refused: &Refused) -> &'static str {
    match refused {
        Refused::NotAnApprover { .. } | Refused::OwnRun { .. } => "not_an_approver",
        Refused::AlreadyDecided { .. } => "already_decided",
        Refused::Finished => "run_finished",
        Refused::NoGate(_) | Refused::NoWait(_) => "no_gate",
        Refused::NoSuchOption { .. } => "no_such_option",
        Refused::BadForm { .. } => "bad_form",
        Refused::BadInput(_) | Refused::BadEnvironment(_) => "bad_parameter",
        Refused::AlreadyStarted => "run_exists",
        Refused::AlreadyPaused => "already_paused",
        Refused::NothingThere(_) => "no_step",
        Refused::NotPaused | Refused::NotFailed | Refused::Undoing => "not_resumable",
        Refused::NotEnded => "run_not_finished",
        Refused::NotStarted | Refused::StaleJob(_) | Refused::NotAsked(_) | Refused::Broken(_) => "bug",
    }
}

/// Why the stream of the coordinator cannot be used.
fn unreadable(error: &windlass_store::Error) -> String {
    match (error, error.place()) {
        (windlass_store::Error::Contradictory { contradiction, .. }, _) => format!(" ({contradiction})"),
        (_, Some(lsn)) => format!(" (record {lsn} is damaged)"),
        (_, None) => String::new(),
    }
}
