//! The command line: what can be written, and the help that says so.

mod act;
mod completions;
mod filter;
mod going;
mod look;
mod shared;
mod specify;
mod test;
mod triggers;
mod upkeep;

pub use act::{Cancel, Retry, Several};
pub use completions::Completions;
pub use filter::Filter;
pub use going::{Compat, Going};
pub use look::{Diff, Events, Logs, Runs, RunsCommand, Show};
pub use shared::{BudgetCommand, Budgets, Limits, Publish, Serve, Wait};
pub use specify::{Specify, SpecifyCommand, WorkflowCommand, WorkflowStatus};
pub use test::Test;
pub use triggers::{Triggers, TriggersCheck, TriggersCommand, TriggersHistory, TriggersNext};
pub use upkeep::{Backup, Doctor, Gc};

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Check, plan, draw and run workflows
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Validate(Validate),
    Fmt(Fmt),
    Plan(PlanCommand),
    Graph(Graph),
    Convert(Convert),
    Eval(Eval),
    Schema(Schema),
    Run(Run),
    Resume(Resume),
    Retry(Retry),
    Test(Test),
    Runs(Runs),
    Show(Show),
    Logs(Logs),
    Events(Events),
    Diff(Diff),
    Approve(Decide),
    Reject(Decide),
    Signal(Signal),
    Publish(Publish),
    Wait(Wait),
    Serve(Serve),
    #[command(alias = "desk")]
    Limits(Limits),
    #[command(visible_alias = "budget")]
    Budgets(Budgets),
    Cancel(Cancel),
    Pause(Pause),
    Triggers(Triggers),
    Doctor(Doctor),
    Gc(Gc),
    Backup(Backup),
    Specify(Specify),
    Completions(Completions),
}

/// Where runs are kept.
#[derive(Debug, clap::Args)]
pub struct Data {
    /// The data folder [default: the nearest .windlass, else in the project or here]
    #[arg(id = "data", long = "data", env = "WINDLASS_DATA", value_name = "FOLDER", global = true)]
    pub folder: Option<PathBuf>,
}

/// How a run is driven and shown.
#[derive(Debug, clap::Args)]
pub struct Driving {
    /// Wait for people too: gates, signals, pauses
    #[arg(long)]
    pub wait: bool,
    /// Answer from a file for all that needs somebody else: agents, tools, tasks, requests, other workflows
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Let the clock jump from deadline to deadline (with --script)
    #[arg(long, requires = "script")]
    pub virtual_time: bool,
    /// What an acknowledged step survives: the loss of power (disk), or only the end of this program (process)
    #[arg(long, value_enum, default_value_t = Durability::Disk)]
    pub durability: Durability,
    /// Print JSON: one object a line, the result last; `--json=final` prints only the result
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub json: Option<Json>,
    /// Keep the exit status and the words of another program: 0 completed or paused, 1 failed, 2 bad usage
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub compat: Option<Compat>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Json {
    All,
    Final,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    Disk,
    Process,
}

/// Run a workflow
///
/// What is done stays done: a run that is stopped, by Ctrl-C, a crash or a power cut, goes on with `windlass resume`.
/// Exit status: 0 success, 1 failed, 2 refused, 3 waiting, 4 cancelled, 5 stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    pub what: Plan,
    /// Name the run: letters, digits, dots, underscores and hyphens
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    #[command(flatten)]
    pub going: Going,
    /// Leave the run to a process of its own, and return at once
    #[arg(long, conflicts_with_all = ["wait", "virtual_time"])]
    pub detach: bool,
    /// Who starts it, and decides at its gates on this terminal [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    #[command(flatten)]
    pub driving: Driving,
    #[command(flatten)]
    pub data: Data,
}

/// Go on with a run, whatever stopped it
///
/// A failed run starts its failed stages anew; finished ones are not run again.
/// Exit status: as `windlass run`.
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct Resume {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN", required_unless_present = "all")]
    pub run: Option<String>,
    /// Go on with every run that is not finished; what is paused stays so
    #[arg(long, conflicts_with_all = ["run", "params"])]
    pub all: bool,
    /// Fire the triggers of a clock in this file meanwhile
    #[arg(long, value_name = "FILE", requires = "all")]
    pub schedules: Vec<PathBuf>,
    /// Change a parameter, for what has not been evaluated yet
    #[arg(short = 'p', long = "param", visible_short_alias = 'i', visible_alias = "input", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub params: Vec<(String, String)>,
    /// Who goes on with it, and decides at its gates on this terminal [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    #[command(flatten)]
    pub driving: Driving,
    #[command(flatten)]
    pub data: Data,
}

/// Decide at a gate
///
/// Exit status: 0 decided, 2 refused: not an approver, already decided, no such gate.
#[derive(Debug, clap::Args)]
#[command(after_help = DECIDE_EXAMPLES)]
pub struct Decide {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The gate; may be left out when one waits
    #[arg(value_name = "STAGE")]
    pub step: Option<String>,
    /// What is chosen: one of the options of the gate; without it, what the command says
    #[arg(long, value_name = "OPTION")]
    pub choice: Option<String>,
    /// Who decides [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Fill in a field of the gate's form; numbers, lists and objects as JSON
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub fields: Vec<(String, String)>,
    #[command(flatten)]
    pub data: Data,
}

/// Send something to a run that waits for it, or will
///
/// Exit status: 0 sent, 2 refused: no such run, or it is finished.
#[derive(Debug, clap::Args)]
#[command(after_help = SIGNAL_EXAMPLES)]
pub struct Signal {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// What the run waits for
    #[arg(value_name = "NAME")]
    pub name: String,
    /// What is sent, as JSON [default: null]
    #[arg(value_name = "JSON")]
    pub value: Option<String>,
    /// Tells two signals of the same name apart; the same id sent twice is heard once
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Who sends it [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    #[command(flatten)]
    pub data: Data,
}

/// Let a run start nothing new until it is resumed
#[derive(Debug, clap::Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct Pause {
    /// The run: its id, the beginning of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Who pauses it [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    #[command(flatten)]
    pub data: Data,
}

const RUN_EXAMPLES: &str = "\
EXAMPLES:
  windlass run WORKFLOW.yaml -p feature=login
  windlass run WORKFLOW.yaml --script answers.yaml --virtual-time --json=final
  windlass run WORKFLOW.yaml --run-id release-7 --wait
  windlass run WORKFLOW.yaml --detach --at 22:00
  windlass run WORKFLOW.yaml --until build
  windlass run WORKFLOW.yaml --only review --inputs-from last
  windlass run my-installed-workflow --compat speckit";

const RESUME_EXAMPLES: &str = "\
EXAMPLES:
  windlass resume last
  windlass resume release-7 -p retries=5
  windlass resume --all";

const DECIDE_EXAMPLES: &str = "\
EXAMPLES:
  windlass approve last
  windlass approve release-7 sign-off --by dana
  windlass approve release-7 review --choice 'approve with changes'
  windlass reject release-7 sign-off --reason 'too early'";

const SIGNAL_EXAMPLES: &str = "\
EXAMPLES:
  windlass signal last build-finished
  windlass signal release-7 payment '{\"order\": 12, \"paid\": true}'";

const PAUSE_EXAMPLES: &str = "\
EXAMPLES:
  windlass pause last
  windlass resume last";

/// Check workflow files and report everything that is wrong with them
///
/// Exit status: 0 all valid, 1 an error was found, 2 a file could not be read.
#[derive(Debug, clap::Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Workflow files (.yaml, .yml, .json), folders that hold a WORKFLOW.yaml, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON: an object for one file, a list for several
    #[arg(long)]
    pub json: bool,
    /// Let warnings make a file invalid
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub reading: Reading,
}

/// Put workflow files into canonical form
///
/// Orders keys, indents and quotes alike everywhere. Comments and meaning stay; line ends become those of Unix.
/// Exit status: 0 done, 1 a file would change (with --check), 2 a file was refused and left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = FMT_EXAMPLES)]
pub struct Fmt {
    /// Workflow files, folders that hold a WORKFLOW.yaml, or `-` to go from standard input to standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Change nothing, but list the files that would change
    #[arg(long)]
    pub check: bool,
    /// Print JSON: a list with one object for each file
    #[arg(long)]
    pub json: bool,
}

/// A workflow and what it is given.
#[derive(Debug, clap::Args)]
pub struct Plan {
    /// A workflow file, a folder that holds a WORKFLOW.yaml, the name of a workflow of this project, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Give a parameter; lists and objects as JSON
    #[arg(
        short = 'p',
        long = "param",
        visible_short_alias = 'i',
        visible_alias = "input",
        value_name = "NAME=VALUE",
        value_parser = name_and_value
    )]
    pub params: Vec<(String, String)>,
    /// Take parameters from a JSON or YAML file; `-p` wins over it
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

/// Show what would run, in which order and with which inputs and limits
///
/// Nothing is executed. Exit status: 0 done, 2 the file or a parameter was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct PlanCommand {
    #[command(flatten)]
    pub what: Plan,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Draw the stages and what they wait for
///
/// Exit status: 0 done, 2 the file was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = GRAPH_EXAMPLES)]
pub struct Graph {
    /// A workflow file, a folder that holds a WORKFLOW.yaml, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    pub format: Format,
    #[command(flatten)]
    pub reading: Reading,
}

/// Convert a workflow to the native dialect, or between YAML and JSON
///
/// `--to json` and `--to yaml` keep the dialect and change only the syntax. The new file means the same: Windlass compares
/// its plan with the original before it writes anything. Exit status: 0 done, 2 the file was refused or the output could
/// not be written.
#[derive(Debug, clap::Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct Convert {
    /// A workflow file, a folder that holds a WORKFLOW.yaml, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The dialect or the syntax to write
    #[arg(long, value_enum, default_value_t = Target::Swdl)]
    pub to: Target,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long, requires = "output")]
    pub force: bool,
    /// The dialect of the file [default: found by looking at it]
    #[arg(long, visible_alias = "from", value_enum)]
    pub dialect: Option<Dialect>,
    /// Lay these overrides over a swdl workflow
    #[arg(long, value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Apply an overlay to a speckit workflow; an installed one has those of its project
    #[arg(long = "overlay", value_name = "FILE")]
    pub overlays: Vec<PathBuf>,
}

impl Convert {
    pub fn reading(&self) -> Reading {
        Reading {
            dialect: self.dialect,
            overrides: self.overrides.clone(),
            overlays: self.overlays.clone(),
            as_written: false,
            raises_late: false,
        }
    }
}

/// What a workflow can be converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// The native dialect
    Swdl,
    /// The same dialect as JSON; comments are lost
    Json,
    /// The same dialect as YAML
    Yaml,
}

/// Evaluate one expression and print its value as JSON
///
/// swdl: with or without `${{ }}`; speckit: text with `{{ }}`; dcc: text with `{{ }}`, or a JSONPath; dagnats: a
/// `skip_if` object, true when the step would be skipped. With text around an expression the result is text.
///
/// Exit status: 0 done, 1 the expression failed, 2 the context was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// The expression; `--` before one that starts with a dash
    #[arg(value_name = "EXPR", allow_negative_numbers = true)]
    pub expression: String,
    /// The dialect whose expressions these are
    #[arg(long, value_enum, default_value_t = Dialect::Swdl)]
    pub dialect: Dialect,
    /// A JSON object with what the expression can read: parameters, stages, … (swdl), inputs, steps, item, … (speckit, dcc), outputs by step id (dagnats)
    #[arg(long, value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Print true or false: what a condition would make of the value
    #[arg(long)]
    pub condition: bool,
    /// Let warnings be errors
    #[arg(long)]
    pub strict: bool,
}

/// Print the JSON Schema of a kind of file, for editors
///
/// The schema accepts what `windlass validate` accepts, and leaves to it what no schema can say: names that must exist,
/// cycles, expressions.
#[derive(Debug, clap::Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// The kind of file
    #[arg(value_enum, value_name = "DIALECT")]
    pub language: Language,
    /// Refuse keys that have no effect, as `windlass validate --strict` does
    #[arg(long)]
    pub strict: bool,
}

/// How a workflow file is read.
#[derive(Debug, Default, clap::Args)]
pub struct Reading {
    /// The dialect of the file [default: found by looking at it]
    #[arg(long, value_enum)]
    pub dialect: Option<Dialect>,
    /// Lay these overrides over a swdl workflow [default: .skillmeat-workflow-overrides.yaml of the project]
    #[arg(long, value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Apply an overlay to a speckit workflow; an installed one has those of its project
    #[arg(long = "overlay", value_name = "FILE")]
    pub overlays: Vec<PathBuf>,
    /// The overlays of its project are left away.
    #[arg(skip)]
    pub as_written: bool,
    /// What Spec Kit would find wrong only when it gets there is found there.
    #[arg(skip)]
    pub raises_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Mermaid,
    Dot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
}

impl From<Dialect> for windlass_dialects::Dialect {
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::Swdl => Self::Swdl,
            Dialect::Speckit => Self::Speckit,
            Dialect::Dagnats => Self::Dagnats,
            Dialect::Dcc => Self::Dcc,
        }
    }
}

/// The kinds of files that have a schema: the dialects, and what goes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
    Schedules,
    Cases,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

const EXAMPLES: &str = "\
EXAMPLES:
  windlass validate WORKFLOW.yaml
  windlass plan WORKFLOW.yaml -p feature=login
  windlass run WORKFLOW.yaml -p feature=login
  windlass graph WORKFLOW.yaml --format dot
  windlass eval \"length('abc') > 2\"";

const VALIDATE_EXAMPLES: &str = "\
EXAMPLES:
  windlass validate WORKFLOW.yaml
  windlass validate --strict workflows/*.yaml
  windlass validate --json WORKFLOW.yaml
  cat WORKFLOW.yaml | windlass validate -";

const FMT_EXAMPLES: &str = "\
EXAMPLES:
  windlass fmt WORKFLOW.yaml
  windlass fmt --check workflows/*.yaml
  cat WORKFLOW.yaml | windlass fmt -";

const PLAN_EXAMPLES: &str = "\
EXAMPLES:
  windlass plan WORKFLOW.yaml -p feature=login -p 'labels=[\"a\", \"b\"]'
  windlass plan WORKFLOW.yaml --input-file parameters.json
  windlass plan WORKFLOW.yaml --overrides staging.yaml
  windlass plan WORKFLOW.yaml --json";

const GRAPH_EXAMPLES: &str = "\
EXAMPLES:
  windlass graph WORKFLOW.yaml
  windlass graph WORKFLOW.yaml --format dot | dot -Tsvg -o workflow.svg";

const CONVERT_EXAMPLES: &str = "\
EXAMPLES:
  windlass convert .specify/workflows/feature/workflow.yml --to swdl
  windlass convert review.json --to swdl -o WORKFLOW.yaml
  windlass convert review.json --to yaml -o review.yaml
  windlass convert intake.yaml --from dcc --to swdl -o WORKFLOW.yaml --force";

const EVAL_EXAMPLES: &str = "\
EXAMPLES:
  windlass eval \"length('abc') > 2\"
  windlass eval 'stages.test.outputs.passed && parameters.deploy' --context run.json
  windlass eval 'Deploying to ${{ parameters.target }}' --context run.json
  windlass eval --dialect speckit \"{{ inputs.tags | join(', ') }}\" --context run.json
  windlass eval --dialect dcc '$.steps.list.output.files' --context run.json --condition
  windlass eval --dialect dagnats '{\"step_id\": \"lint\", \"field\": \"issues\", \"op\": \"==\", \"value\": 0}' --context outputs.json
  windlass eval -- -5";

const SCHEMA_EXAMPLES: &str = "\
EXAMPLES:
  windlass schema swdl > swdl.schema.json
  windlass schema dcc --strict > dcc.schema.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_parameter_is_a_name_and_a_value() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(name_and_value(text).ok(), expected, "{text}");
        };
        check("a=b", Some(("a", "b")));
        check("a=", Some(("a", "")));
        check(" a = b=c", Some(("a", " b=c")));
        check("a", None);
        check("=b", None);
    }
}
