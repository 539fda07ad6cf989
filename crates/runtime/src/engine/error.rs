//! What can go wrong with a data folder and its runs: each with a word that programs match on, and the next action for people.

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
    #[error("there is already a run `{0}`: choose another id, or look at it with `windlass show {0}`")]
    RunExists(RunId),
    #[error("there is no run `{0}` in this data folder: `windlass runs` lists them")]
    NoRun(String),
    #[error("run `{run}` has no event {event}: it has 1 to {last}, see `windlass events {run}`")]
    NoEvent { run: RunId, event: u64, last: u64 },
    #[error("several runs begin with `{name}`, among them {}: write more of the id", .runs.join(" and "))]
    WhichRun { name: String, runs: Vec<String> },
    #[error("there is no run `{name}` in this data folder: did you mean `{near}`?")]
    NoRunNear { name: String, near: String },
    #[error(
        "the run `{run}` is finished ({status}): `windlass retry {run}` starts it once more, `--from` a step of it"
    )]
    RunFinished { run: RunId, status: windlass_ir::RunStatus },
    #[error("another process drives the runs of {0}: leave it to that one, or end it first")]
    Owned(PathBuf),
    #[error(
        "{} belongs to {}, but Windlass runs as {}: name a data folder of your own with `--data FOLDER`, or change the owner with `chown`",
        .file.display(), described(*.owner), described(*.user)
    )]
    Foreign { file: PathBuf, owner: u32, user: u32 },
    #[error("{folder}: {cause}")]
    Folder { folder: PathBuf, cause: String },
    #[error("{folder}: {cause}")]
    Export { folder: PathBuf, cause: String },
    #[error("the plan of run `{0}` is not in the data folder: restore it from a backup")]
    NoPlan(RunId),
    #[error(
        "the shared limits are damaged{}, so no run is executed: slots, rates, budgets and keys would not hold. Restore the data folder from a backup, or reset the limits with `windlass doctor --renew-limits`; you can still look at runs",
        .0.place().map(|lsn| format!(" at record {lsn}")).unwrap_or_default()
    )]
    Limits(windlass_store::Error),
    #[error(
        "executing run `{run}` crashed: {cause}. This is a bug in Windlass; please report it with the output of `windlass events {run}`"
    )]
    Crashed { run: RunId, cause: String },
    #[error("the budget is refused: {0}")]
    Budget(#[from] CoordinatorRefused),
    #[error(transparent)]
    Orphans(#[from] EndError),
    #[error("the script is wrong: {}", .0.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect::<Vec<_>>().join("; "))]
    Script(Vec<Problem>),
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// `task` where a worker's task is meant.
    #[error("nothing here does `{step}` (type {kind}): answer for it with `--script`{}", .task.as_ref().map(|task| format!(", or name a command for its task in windlass.toml: `[tasks.{task:?}]` with `command = [\"program\"]`")).unwrap_or_default())]
    NobodyFor { step: String, kind: String, task: Option<String> },
    /// `whose` is a run or a workflow, and `instead` what can be named.
    #[error("{whose} has no step `{step}`: {instead}")]
    NoStep { whose: String, step: String, instead: String },
    #[error("nothing failed in run `{0}` and nothing has changed: name the step to start from with `--from`")]
    NothingToRetry(RunId),
    #[error(
        "run `{0}` is not finished: go on with `windlass resume {0}`, or cancel it first with `windlass cancel {0}`"
    )]
    NotFinished(RunId),
    #[error(
        "run `{run}` has no result of `{needed}`, which `{step}` needs: take another run, or let that step run too"
    )]
    NoResult { run: RunId, step: String, needed: String },
    #[error(
        "`{step}` is inside the loop `{around}`, whose rounds depend on each other: name the loop instead"
    )]
    InLoop { step: String, around: String },
    #[error("no gate of run `{0}` waits for a decision")]
    NoGate(RunId),
    #[error("run `{run}` has no gate `{step}`: {instead}")]
    UnknownGate { run: RunId, step: String, instead: String },
    #[error("run `{run}` waits at several gates: name one of {}", .gates.join(", "))]
    WhichGate { run: RunId, gates: Vec<String> },
    #[error("the process that drove run `{0}` is gone: go on with `windlass resume {0}`")]
    OwnerGone(RunId),
    #[error("the owner of this data folder cannot be reached at {socket}: {cause}")]
    Unreachable { socket: PathBuf, cause: String },
    /// What the owner of the folder answered.
    #[error("{message}")]
    ByOwner { code: String, message: String },
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

    /// There is no such step among these; the nearest one was probably meant.
    pub fn no_step<'n>(whose: String, step: &str, names: impl Iterator<Item = &'n str>) -> Self {
        const NAMES_MAX: usize = 12;
        let names: indexmap::IndexSet<&str> = names.collect();
        let instead = match windlass_ir::suggest::nearest(step, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "nothing has happened in it yet".to_owned(),
            None => {
                let more = if names.len() > NAMES_MAX { ", …" } else { "" };
                let some: Vec<&str> = names.into_iter().take(NAMES_MAX).collect();
                format!("it has {}{more}", some.join(", "))
            }
        };
        Self::NoStep { whose, step: step.to_owned(), instead }
    }

    /// All words that [`Error::code`] gives, each of which has a page.
    pub const CODES: &'static [&'static str] = &[
        "storage",
        "older_copy",
        "damaged_run",
        "contradictory_journal",
        "internal_error",
        "damaged_limits",
        "bad_run_id",
        "not_runnable",
        "not_an_approver",
        "already_decided",
        "run_finished",
        "refused",
        "run_exists",
        "no_run",
        "no_event",
        "no_step",
        "owned",
        "wrong_owner",
        "data_folder",
        "no_plan",
        "bad_export",
        "bad_budget",
        "orphans",
        "bad_script",
        "bad_config",
        "no_gate",
        "nothing_to_retry",
        "run_not_finished",
        "no_result",
        "no_such_option",
        "bad_parameter",
        "owner_gone",
        "unreachable",
        "bad_request",
    ];

    /// The word that programs match on.
    pub fn code(&self) -> &str {
        match self {
            Self::Store(windlass_store::Error::Missing { .. }) => "no_run",
            Self::Store(windlass_store::Error::Older { .. } | windlass_store::Error::Forked { .. }) => {
                "older_copy"
            }
            Self::Store(windlass_store::Error::Contradictory { .. }) => "contradictory_journal",
            Self::Store(error) if error.is_of_one_run() => "damaged_run",
            Self::Store(_) => "storage",
            Self::Limits(_) => "damaged_limits",
            Self::Crashed { .. } => "internal_error",
            Self::RunId(_) => "bad_run_id",
            Self::Unrunnable(_) | Self::NobodyFor { .. } => "not_runnable",
            Self::Refused(Refused::NotAnApprover { .. } | Refused::OwnRun { .. }) => "not_an_approver",
            Self::Refused(Refused::AlreadyDecided { .. }) => "already_decided",
            Self::Refused(Refused::Finished) | Self::RunFinished { .. } => "run_finished",
            Self::Refused(Refused::NoGate(_)) => "no_gate",
            Self::Refused(Refused::NoSuchOption { .. }) => "no_such_option",
            Self::Refused(Refused::BadInput(_)) => "bad_parameter",
            Self::Refused(_) => "refused",
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
            Self::Script(_) => "bad_script",
            Self::Config(_) => "bad_config",
            Self::NoStep { .. } | Self::InLoop { .. } => "no_step",
            Self::NothingToRetry(_) => "nothing_to_retry",
            Self::NotFinished(_) => "run_not_finished",
            Self::NoResult { .. } => "no_result",
            Self::NoGate(_) | Self::UnknownGate { .. } | Self::WhichGate { .. } => "no_gate",
            Self::OwnerGone(_) => "owner_gone",
            Self::Unreachable { .. } => "unreachable",
            Self::ByOwner { code, .. } => code,
        }
    }
}
