//! The commands that act on runs, one or all that a filter means: cancel and retry.

use super::{Data, Driving, Filter, name_and_value};
use std::path::PathBuf;

/// How several runs at once are dealt with.
#[derive(Debug, clap::Args)]
pub struct Several {
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask before it is done to several runs
    #[arg(short, long)]
    pub yes: bool,
}

/// Stop a run for good, or all runs that a filter means
///
/// Exit status: 0 cancelled, 2 refused: no such run, or it is finished. Of several runs those that are finished are left out.
#[derive(Debug, clap::Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct Cancel {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", required_unless_present = "Filter", conflicts_with = "Filter")]
    pub run: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
    #[command(flatten)]
    pub several: Several,
    /// Who cancels it [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "cancelled")]
    pub reason: String,
    /// Print JSON: the runs and what was done
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Start a run once more from a step, and keep what was done before it
///
/// A new run with what is settled and does not come after the step, else after the steps that failed. With other parameters or
/// another plan a step is kept only if neither it nor what it is given has changed.
/// Exit status: as `windlass run`; of several runs the worst one.
#[derive(Debug, clap::Args)]
#[command(after_help = RETRY_EXAMPLES)]
pub struct Retry {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", required_unless_present = "Filter", conflicts_with = "Filter")]
    pub run: Option<String>,
    #[command(flatten)]
    pub filter: Filter,
    /// The step to start again from [default: those that failed]
    #[arg(long, value_name = "STEP")]
    pub from: Option<String>,
    /// Change a parameter
    #[arg(short = 'p', long = "param", visible_short_alias = 'i', visible_alias = "input", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub params: Vec<(String, String)>,
    /// The workflow as it is now, in place of the one that the run was started with
    #[arg(long, value_name = "FILE", conflicts_with = "Filter")]
    pub plan: Option<PathBuf>,
    #[command(flatten)]
    pub several: Several,
    /// Name the new run: letters, digits, dots, underscores and hyphens
    #[arg(long, value_name = "ID", conflicts_with_all = ["Filter", "dry_run"])]
    pub run_id: Option<String>,
    /// Leave the run to a process of its own, and return at once
    #[arg(long, conflicts_with_all = ["wait", "virtual_time"])]
    pub detach: bool,
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

const RETRY_EXAMPLES: &str = "\
EXAMPLES:
  windlass retry last
  windlass retry release-7 --from build -p target=staging
  windlass retry last --plan WORKFLOW.yaml --dry-run
  windlass retry --status failed --since 1d --dry-run";
