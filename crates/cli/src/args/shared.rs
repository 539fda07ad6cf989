//! The commands about what runs share, and about executing many of them.

use super::Data;
use std::path::PathBuf;

/// Send a message to everybody who waits for it
///
/// Every step that waits for a message of this name, and every run that one cancels, hears it once. Whoever begins to wait
/// later does not: for one run use `windlass signal`.
#[derive(Debug, clap::Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
pub struct Publish {
    /// The name that it is waited for under
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What is sent, as JSON [default: null]
    #[arg(value_name = "JSON")]
    pub value: Option<String>,
    /// What tells it apart: sent twice under the same id it is one message
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Who sends it
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Print JSON: the id and how many listened
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Show what runs share: slots, queues, rates, keys, budgets, subscriptions and triggers
#[derive(Debug, clap::Args)]
#[command(after_help = LIMITS_EXAMPLES)]
pub struct Limits {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Show and set budgets
///
/// Budgets are `all`, `day` (which starts over every day), `workflow:ID`, and `run:ID` for a run and all runs below it. Windlass
/// reserves the most that a job can cost before the job starts; a job that does not fit fails with `budget_exceeded`.
#[derive(Debug, clap::Args)]
#[command(after_help = BUDGETS_EXAMPLES)]
pub struct Budgets {
    #[command(subcommand)]
    pub command: Option<BudgetCommand>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

#[derive(Debug, clap::Subcommand)]
pub enum BudgetCommand {
    /// Show all budgets, or one
    #[command(after_help = BUDGETS_EXAMPLES)]
    Show {
        #[arg(value_name = "BUDGET")]
        budget: Option<String>,
    },
    /// Set the caps of a budget; without an option there is no cap
    #[command(after_help = BUDGETS_EXAMPLES)]
    Set {
        /// `all`, `day`, `workflow:ID` or `run:ID`
        #[arg(value_name = "BUDGET")]
        budget: String,
        #[arg(long, value_name = "COUNT")]
        tokens: Option<u64>,
        #[arg(long, value_name = "DOLLARS")]
        usd: Option<f64>,
        #[arg(long, value_name = "COUNT")]
        calls: Option<u64>,
        /// How long all jobs together may take, such as 3h
        #[arg(long, value_name = "DURATION")]
        time: Option<String>,
        /// The zone in which the days of `day` begin
        #[arg(long, value_name = "ZONE")]
        zone: Option<String>,
    },
    /// Set what was spent from a budget to zero
    #[command(after_help = BUDGETS_EXAMPLES)]
    Reset {
        #[arg(value_name = "BUDGET")]
        budget: String,
    },
}

/// Wait until runs have ended, or wait for people
///
/// Exit status: as `windlass run`; of several runs the worst one. Runs that nobody drives are not waited for.
#[derive(Debug, clap::Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub struct Wait {
    /// The runs: ids, the beginnings of them, or `last`
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<String>,
    /// Print JSON: one result object for each run
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Drive every run of a data folder, and fire its schedules
///
/// Goes on until Ctrl-C, or with `--until-idle` until nothing is left that moves by itself. Other commands talk to it.
#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// End when nothing moves by itself any more
    #[arg(long)]
    pub until_idle: bool,
    /// Execute only the runs that clients start or resume here
    #[arg(long, hide = true)]
    pub asked_only: bool,
    /// Fire the triggers of a clock in this file: schedules, or a workflow with triggers
    #[arg(long, value_name = "FILE")]
    pub schedules: Vec<PathBuf>,
    /// Answer from a file for all that needs somebody else
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    #[command(flatten)]
    pub data: Data,
}

const PUBLISH_EXAMPLES: &str = "\
EXAMPLES:
  windlass publish order.paid '{\"order\": 17}'
  windlass publish order.cancelled '{\"order\": 17}' --id webhook-42";

const LIMITS_EXAMPLES: &str = "\
EXAMPLES:
  windlass limits
  windlass limits --json";

const BUDGETS_EXAMPLES: &str = "\
EXAMPLES:
  windlass budgets
  windlass budgets set day --usd 20 --zone Europe/Berlin
  windlass budgets set workflow:ship-a-feature --tokens 500000
  windlass budgets reset day";

const WAIT_EXAMPLES: &str = "\
EXAMPLES:
  windlass wait last
  windlass wait 20260206 review-17 --json";

const SERVE_EXAMPLES: &str = "\
EXAMPLES:
  windlass serve
  windlass serve --schedules nightly.schedules.yaml
  windlass serve --until-idle";
