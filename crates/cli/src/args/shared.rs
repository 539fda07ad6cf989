//! The commands for state that runs share, and for executing many runs.

use super::{Actor, Data, Once};
use std::path::PathBuf;

/// Publish a message to every step that waits for it
///
/// Every step that waits for a message of this name, and every run that it cancels, receives it once. A step that begins to wait
/// later does not; to reach one run at any time use `windlass signal`.
#[derive(Debug, clap::Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
pub struct Publish {
    /// The name of the message
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The value to send, as JSON [default: null]
    #[arg(value_name = "JSON")]
    pub value: Option<String>,
    /// The same id published twice is one message
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub once: Once,
    /// Print JSON: the id, and how many subscribers received it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Show the limits that runs share: slots, queues, rates, keys and subscriptions
#[derive(Debug, clap::Args)]
#[command(after_help = LIMITS_EXAMPLES)]
pub struct Limits {
    /// Print JSON: the limits
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
    /// Print JSON: a page of budgets, or the budget that was changed
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

/// Wait until runs have ended or wait for people
///
/// Exit status: as `windlass run`; of several runs the worst one. Returns at once for runs that no process executes.
#[derive(Debug, clap::Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub struct Wait {
    /// The runs: ids, unique parts of ids, or `last` [default: the last run]
    #[arg(value_name = "RUN")]
    pub runs: Vec<String>,
    #[command(flatten)]
    pub actor: Actor,
    /// Print JSON: one object per line, the result of each run
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Execute every run of a data folder, fire its triggers, and serve the HTTP API
///
/// Runs until Ctrl-C, or with `--until-idle` until no run is active and no timer is set. Other commands connect to it. The API needs
/// an access token: `serve` writes one to `server.token` in the data folder, and `windlass tokens` creates others.
#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// Serve the HTTP API at this address; port 0 picks a free port [default: WINDLASS_LISTEN or 127.0.0.1:7421; with --until-idle none]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<std::net::SocketAddr>,
    /// Look workflows up by name in this folder [default: the project around the data folder]
    #[arg(long, value_name = "FOLDER")]
    pub workflows: Vec<PathBuf>,
    /// Exit once no run is active and no timer is set
    #[arg(long)]
    pub until_idle: bool,
    /// Execute only the runs that clients start or resume here
    #[arg(long, hide = true)]
    pub asked_only: bool,
    /// Fire the cron triggers in this file: schedules, or a workflow with triggers
    #[arg(long, value_name = "FILE")]
    pub schedules: Vec<PathBuf>,
    /// Mock responses for agents, tools, tasks, requests and called workflows from FILE
    #[arg(long, alias = "script", value_name = "FILE")]
    pub mock: Option<PathBuf>,
    /// Print JSON: one object per line for each notice
    #[arg(long)]
    pub json: bool,
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
  windlass wait
  windlass wait 20260206 review-17 --json";

const SERVE_EXAMPLES: &str = "\
EXAMPLES:
  windlass serve
  windlass serve --listen 127.0.0.1:0 --workflows flows
  windlass serve --schedules nightly.schedules.yaml
  windlass serve --until-idle";
