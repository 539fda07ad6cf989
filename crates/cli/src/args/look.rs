//! The commands that only look at runs: list, show, follow, compare, and carry them elsewhere.

use super::{Data, Filter};
use std::path::PathBuf;

/// List runs, the last started first; show one, or carry runs to another data folder
///
/// `windlass runs RUN` is `windlass show RUN`, with `--logs` it is `windlass logs RUN`.
#[derive(Debug, clap::Args)]
#[command(after_help = RUNS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    /// Show this run instead of a list: its id, the beginning of it, or `last`
    #[arg(
        value_name = "RUN",
        conflicts_with_all = ["status", "workflow", "dialect", "since", "before", "search", "unfinished", "limit"]
    )]
    pub run: Option<String>,
    /// Print what its steps have printed
    #[arg(long, requires = "run")]
    pub logs: bool,
    #[command(flatten)]
    pub filter: Filter,
    /// How many at most
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    pub limit: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

#[derive(Debug, clap::Subcommand)]
pub enum RunsCommand {
    /// Write runs into a folder, or into a SQLite file
    ///
    /// Each run gets a folder of its own in DIR, named by its id, with definition, plan, events, outputs and logs. With
    /// `--sqlite` the runs, by default all of them, become rows of the tables `workflows` and `workflow_steps` in a new
    /// file. Values of secrets are in none of it; what steps were given and have printed is.
    #[command(
        after_help = EXPORT_EXAMPLES,
        override_usage = "windlass runs export [OPTIONS] <RUN>... <DIR>\n       windlass runs export [OPTIONS] [RUN]... --sqlite <FILE>"
    )]
    Export {
        /// The runs: their ids, the beginnings of them, or `last`; then the folder to write to, created if it does not exist
        #[arg(value_name = "RUN", required_unless_present = "sqlite", num_args = 1..)]
        names: Vec<String>,
        /// Write a SQLite file with a row for each run and for each transition of a step
        #[arg(long, value_name = "FILE")]
        sqlite: Option<PathBuf>,
        /// Print JSON: a list with one object for each run, or with `--sqlite` one object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
    /// Take over finished runs that were exported
    ///
    /// A run that is here already, or that is damaged, is refused and nothing is changed; the others are taken over.
    /// Exit status: 0 all were taken over, 2 one was refused.
    #[command(after_help = IMPORT_EXAMPLES)]
    Import {
        /// What `windlass runs export` wrote: the folder, or that of one run in it
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Print JSON: a list with one object for each run
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        data: Data,
    },
}

/// Show how a run stands, step by step; or what a workflow is
///
/// The steps as a tree: status, attempts, how long each took, why it was skipped, what it waits for, what went wrong. A name
/// that is no run is looked for as a workflow.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    /// A run (its id, the beginning of it, or `last`), else a workflow (a file, or the name of one)
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How the run stood after this event; `windlass events` numbers them
    #[arg(long, value_name = "EVENT")]
    pub at: Option<u64>,
    /// Show all items and rounds; otherwise, where there are many, those that are done are counted
    #[arg(long)]
    pub all: bool,
    /// Print the result as JSON; for a workflow its plan
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Print what the steps of a run have printed
///
/// In the order in which it was printed; of a run that has failed the failing step comes first. Output of earlier attempts, and of
/// what was cancelled, is there too.
#[derive(Debug, clap::Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct Logs {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Only this step: the id of one instance, or of the step in the file for all of them
    #[arg(value_name = "STEP")]
    pub step: Option<String>,
    /// Go on as long as somebody drives the run
    #[arg(short, long)]
    pub follow: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Print what happened in a run, one event a line
#[derive(Debug, clap::Args)]
#[command(after_help = EVENTS_EXAMPLES)]
pub struct Events {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Go on as long as somebody drives the run
    #[arg(short, long)]
    pub follow: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Compare two runs: what they were given, what they ran, and what became of each step
#[derive(Debug, clap::Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// The run to compare with: its id, the beginning of it, or `last`
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The run that is compared
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Print JSON
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
  windlass show last
  windlass show release-7 --json
  windlass show release-7 --at 12
  windlass show WORKFLOW.yaml";

const LOGS_EXAMPLES: &str = "\
EXAMPLES:
  windlass logs last
  windlass logs last build
  windlass logs release-7 -f
  windlass logs release-7 'images[3]' --json";

const EVENTS_EXAMPLES: &str = "\
EXAMPLES:
  windlass events last
  windlass events last -f
  windlass events release-7 --json";

const DIFF_EXAMPLES: &str = "\
EXAMPLES:
  windlass diff release-7 release-8
  windlass diff release-7 last --json";
