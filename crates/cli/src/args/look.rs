//! The commands that inspect runs: list, show, follow, compare, export and import.

use super::{Data, Filter};
use std::path::PathBuf;
use windlass_runtime::Timestamp;

/// List runs, the last started first
///
/// `windlass runs RUN` is `windlass show RUN`, with `--logs` it is `windlass logs RUN`.
#[derive(Debug, clap::Args)]
#[command(after_help = RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// Show this run instead of a list: its id, a unique part of it, or `last`
    #[arg(
        value_name = "RUN",
        conflicts_with_all = ["status", "workflow", "dialect", "since", "before", "search", "unfinished", "limit"]
    )]
    pub run: Option<String>,
    /// Print the output of its steps
    #[arg(long, requires = "run")]
    pub logs: bool,
    #[command(flatten)]
    pub filter: Filter,
    /// The most runs to list
    #[arg(long, default_value_t = 50, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// List every run
    #[arg(long, conflicts_with_all = ["limit", "run"])]
    pub all: bool,
    /// Print JSON: a page of runs
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

impl Runs {
    pub fn json(&self) -> bool {
        match &self.command {
            Some(RunsCommand::Export { json, .. } | RunsCommand::Import { json, .. }) => *json,
            None => self.json,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
pub enum RunsCommand {
    /// Write runs into a folder, or into a SQLite file
    ///
    /// Each run gets a folder of its own in DIR, named by its id, with definition, plan, events, outputs and logs. With
    /// `--sqlite` the runs, by default all of them, become rows of the tables `workflows` and `workflow_steps` in a new
    /// file. The export contains the inputs and output of all steps, but no secret values.
    #[command(
        after_help = EXPORT_EXAMPLES,
        override_usage = "windlass runs export [OPTIONS] <RUN>... <DIR>\n       windlass runs export [OPTIONS] [RUN]... --sqlite <FILE>"
    )]
    Export {
        /// The runs: their ids, unique parts of them, or `last`; then the folder to write to, created if it does not exist
        #[arg(value_name = "RUN", required_unless_present = "sqlite", num_args = 1..)]
        names: Vec<String>,
        /// Write a SQLite file with a row for each run and for each transition of a step
        #[arg(long, value_name = "FILE")]
        sqlite: Option<PathBuf>,
        /// Print JSON: the runs, or with `--sqlite` the file and its rows
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
    /// Import finished runs that were exported
    ///
    /// Windlass refuses a run that exists already or is damaged, and imports the others.
    /// Exit status: 0 all were imported, 2 one was refused.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import {
        /// What `windlass runs export` wrote: the folder, or that of one run in it
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print JSON: the runs
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
}

/// Show a run with its steps, or a workflow
///
/// Prints the steps as a tree: status, attempts, duration, why a step was skipped, what it waits for, what went wrong. A name
/// that matches no run is looked up as a workflow.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    /// A run (its id, a unique part of it, or `last`), else a workflow (a file, or the name of one) [default: the last run]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Show the run as it was after event N; `windlass events` numbers them
    #[arg(long, visible_alias = "at", value_name = "N")]
    pub event: Option<u64>,
    /// Show all items and rounds; by default completed ones are only counted if there are many
    #[arg(long)]
    pub all: bool,
    /// Print JSON: the run; for a workflow its plan
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Print the output of the steps of a run
///
/// Lines come in the order in which they were printed. For a failed run the failing step comes first. Earlier attempts and canceled
/// steps are included.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct Logs {
    /// The run: its id, or a unique part of it [default: the last run]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Only this step: one instance, or a step of the file with all of its instances
    #[arg(value_name = "STEP")]
    pub step: Option<String>,
    /// Continue until the run is no longer executed
    #[arg(short, long)]
    pub follow: bool,
    /// Print when each line was printed
    #[arg(short, long)]
    pub timestamps: bool,
    /// Only the last COUNT lines, in the order in which they were printed
    #[arg(short = 'n', long, value_name = "COUNT")]
    pub tail: Option<usize>,
    /// Only lines printed since then: a day, a time, or how long ago, such as `90m`
    #[arg(long, value_name = "TIME", value_parser = super::filter::moment)]
    pub since: Option<Timestamp>,
    /// Print JSON: one object per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Print the events of a run, one per line
#[derive(Debug, clap::Args)]
#[command(after_help = EVENTS_EXAMPLES)]
pub struct Events {
    /// The run: its id, or a unique part of it [default: the last run]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Continue until the run is no longer executed
    #[arg(short, long)]
    pub follow: bool,
    /// Print JSON: one object per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Compare two runs: inputs, plans and the result of each step
#[derive(Debug, clap::Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// The run to compare with: its id, a unique part of it, or `last`
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The run that is compared
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Print JSON: the differences
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

const RUNS_EXAMPLES: &str = "\
EXAMPLES:
  windlass runs
  windlass runs --status failed --since 2d
  windlass runs --workflow release --unfinished --json
  windlass runs --search 'exit status 1'
  windlass runs last
  windlass runs last --logs";

const EXPORT_EXAMPLES: &str = "\
EXAMPLES:
  windlass runs export last /tmp/runs
  windlass runs export release-7 release-8 /tmp/runs
  windlass runs export --sqlite runs.db";

const IMPORT_EXAMPLES: &str = "\
EXAMPLES:
  windlass runs import /tmp/runs
  windlass runs import /tmp/runs/release-7 --data elsewhere/.windlass";

const SHOW_EXAMPLES: &str = "\
EXAMPLES:
  windlass show
  windlass show release-7 --json
  windlass show release-7 --event 12
  windlass show WORKFLOW.yaml
  windlass show my-workflow";

const LOGS_EXAMPLES: &str = "\
EXAMPLES:
  windlass logs
  windlass logs last build
  windlass logs release-7 -f
  windlass logs last --timestamps --tail 20
  windlass logs release-7 'build (mac, stable)' --since 10m
  windlass logs release-7 'images[3]' --json";

const EVENTS_EXAMPLES: &str = "\
EXAMPLES:
  windlass events
  windlass events last -f
  windlass events release-7 --json";

const DIFF_EXAMPLES: &str = "\
EXAMPLES:
  windlass diff release-7 release-8
  windlass diff release-7 last --json";
