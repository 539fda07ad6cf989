//! The commands that act on several runs: cancel, pause and retry.

use super::{Actor, Data, Driving, Filter, Once, name_and_value};
use std::path::PathBuf;

/// Options for acting on several runs at once.
#[derive(Debug, clap::Args)]
pub struct Several {
    /// Only show what would happen
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,
}

/// Cancel a run, or all runs matching a filter
///
/// Running steps are stopped, and nothing new starts. Exit status: 0 canceled, 2 refused: no such run, or it is finished.
#[derive(Debug, clap::Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct Cancel {
    /// The runs: ids, unique parts of ids, or `last`
    #[arg(value_name = "RUN", required_unless_present = "Filter", conflicts_with = "Filter")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub several: Several,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub once: Once,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Print JSON: a page with one object for each run
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Pause a run: running steps finish, nothing new starts
///
/// `windlass resume` continues the run. Exit status: 0 paused, 2 refused: no such run, already paused, or finished.
#[derive(Debug, clap::Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct Pause {
    /// The runs: ids, unique parts of ids, or `last`
    #[arg(value_name = "RUN", required_unless_present = "Filter", conflicts_with = "Filter")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub several: Several,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub once: Once,
    /// Print JSON: a page with one object for each run
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Start a new run from a step, and keep the results before it
///
/// The new run keeps the results of every step before the one that it starts from; by default it starts from the steps that failed. With other
/// parameters or another plan it keeps a step only if neither the step nor its inputs changed.
/// Exit status: as `windlass run`; of several runs the worst one.
#[derive(Debug, clap::Args)]
#[command(after_help = RETRY_EXAMPLES)]
pub struct Retry {
    /// The runs: ids, unique parts of ids, or `last`
    #[arg(value_name = "RUN", required_unless_present = "Filter", conflicts_with = "Filter")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub filter: Filter,
    /// The step to start from [default: the steps that failed]
    #[arg(long, visible_alias = "from", value_name = "STEP")]
    pub from_step: Option<String>,
    /// Change a parameter
    #[arg(short = 'p', long = "param", visible_short_alias = 'i', visible_alias = "input", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub params: Vec<(String, String)>,
    /// Use this workflow file instead of the plan of the earlier run
    #[arg(long, value_name = "FILE", conflicts_with = "Filter")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub several: Several,
    /// Name the new run: letters, digits, dots, underscores and hyphens
    #[arg(long, value_name = "ID", conflicts_with_all = ["Filter", "dry_run"])]
    pub run_id: Option<String>,
    /// Execute the run in a process of its own, and return at once
    #[arg(long, conflicts_with_all = ["wait", "virtual_time"])]
    pub detach: bool,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub driving: Driving,
    #[command(flatten)]
    pub data: Data,
}

const CANCEL_EXAMPLES: &str = "\
EXAMPLES:
  windlass cancel last --reason 'wrong branch'
  windlass cancel --status waiting --workflow release --dry-run
  windlass cancel --unfinished --before 2d --yes";

const PAUSE_EXAMPLES: &str = "\
EXAMPLES:
  windlass pause last
  windlass pause --workflow release --yes
  windlass resume last";

const RETRY_EXAMPLES: &str = "\
EXAMPLES:
  windlass retry last
  windlass retry release-7 --from-step build -p target=staging
  windlass retry last --plan WORKFLOW.yaml --dry-run
  windlass retry --status failed --since 1d --dry-run";
