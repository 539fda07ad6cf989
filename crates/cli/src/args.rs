//! The arguments of the command line and their help.

mod act;
mod completions;
mod explain;
mod filter;
mod going;
mod groups;
mod list;
mod look;
mod shared;
mod specify;
mod test;
mod triggers;
mod upkeep;
mod write;

pub use act::{Cancel, Pause, Retry, Several};
pub use completions::Completions;
pub use explain::Explain;
pub use filter::Filter;
pub use going::{Compat, Going};
pub use groups::grouped;
pub use list::{Init, List};
pub use look::{Diff, Events, Logs, Runs, RunsCommand, Show};
pub use shared::{BudgetCommand, Budgets, Limits, Publish, Serve, Wait};
pub use specify::{Specify, SpecifyCommand, WorkflowCommand, WorkflowStatus};
pub use test::Test;
pub use triggers::{Triggers, TriggersCommand, TriggersHistory, TriggersNext};
pub use upkeep::{Audit, Backup, Doctor, Gc, TokenCommand, Tokens};
pub use write::{Convert, Dialect, Eval, Fmt, Graph, Plan, PlanCommand, Reading, Schema, Validate};

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Run workflows of agents, tools, shell commands and human decisions. Completed steps never run twice.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Init(Init),
    List(List),
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
    #[command(about = "Reject a run that waits at a gate", long_about = REJECT)]
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
    #[command(visible_alias = "token")]
    Tokens(Tokens),
    Audit(Audit),
    Doctor(Doctor),
    Gc(Gc),
    Backup(Backup),
    Specify(Specify),
    Explain(Explain),
    Completions(Completions),
}

impl Command {
    /// Whether a program reads the output.
    pub fn json(&self) -> bool {
        match self {
            Self::Init(args) => args.json,
            Self::List(args) => args.json,
            Self::Validate(args) => args.json,
            Self::Fmt(args) => args.json,
            Self::Plan(args) => args.json,
            Self::Run(args) => args.driving.json.is_some(),
            Self::Resume(args) => args.driving.json.is_some(),
            Self::Retry(args) => args.driving.json.is_some(),
            Self::Runs(args) => args.json(),
            Self::Show(args) => args.json,
            Self::Logs(args) => args.json,
            Self::Events(args) => args.json,
            Self::Diff(args) => args.json,
            Self::Approve(args) | Self::Reject(args) => args.json,
            Self::Signal(args) => args.json,
            Self::Publish(args) => args.json,
            Self::Wait(args) => args.json,
            Self::Serve(args) => args.json,
            Self::Limits(args) => args.json,
            Self::Budgets(args) => args.json,
            Self::Cancel(args) => args.json,
            Self::Pause(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Tokens(args) => args.json,
            Self::Audit(args) => args.json,
            Self::Gc(args) => args.json,
            Self::Backup(args) => args.json,
            Self::Graph(args) => args.json,
            Self::Convert(args) => args.json,
            Self::Eval(args) => args.json,
            Self::Schema(args) => args.json,
            Self::Test(args) => args.json,
            Self::Triggers(args) => args.command.json(),
            Self::Explain(args) => args.json,
            Self::Completions(args) => args.json,
            // Another program decides what its face prints.
            Self::Specify(_) => false,
        }
    }
}

/// Where Windlass stores runs.
#[derive(Debug, Default, clap::Args)]
pub struct Data {
    /// The data folder [default: the nearest .windlass, else in the project or here]
    #[arg(id = "data", long = "data", env = "WINDLASS_DATA", value_name = "FOLDER", global = true)]
    pub folder: Option<PathBuf>,
}

/// Who acts.
#[derive(Debug, Default, clap::Args)]
pub struct Actor {
    /// Who acts, and decides at gates on this terminal [default: the login name]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

/// A command that is safe to repeat.
#[derive(Debug, Default, clap::Args)]
pub struct Once {
    /// Act at most once for this KEY within a day
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// How a run is executed and shown.
#[derive(Debug, clap::Args)]
pub struct Driving {
    /// Wait for people too: gates, signals, pauses
    #[arg(long)]
    pub wait: bool,
    /// Mock responses for agents, tools, tasks, requests and called workflows from FILE
    #[arg(long, alias = "script", value_name = "FILE")]
    pub mock: Option<PathBuf>,
    /// Skip all waiting: the clock jumps from deadline to deadline (with --mock)
    #[arg(long, requires = "mock")]
    pub virtual_time: bool,
    /// Durability of completed steps: `disk` survives a power loss, `process` only a crash of Windlass
    #[arg(long, value_enum, default_value_t = Durability::Disk)]
    pub durability: Durability,
    /// Print JSON: one object per line, the result last; `--json=final` prints only the result
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub json: Option<Json>,
    /// Use the exit codes and words of another program: 0 completed or paused, 1 failed, 2 bad usage
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
/// Completed steps never run twice. After Ctrl-C, a crash or a power cut, `windlass resume` continues where the run left off.
/// Exit status: 0 success, 1 failed, 2 refused, 3 waiting, 4 canceled, 5 stopped.
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

/// Resume a run where it left off
///
/// A failed run repeats its failed steps; completed steps do not run again.
/// Exit status: as `windlass run`; with `--all` that of the worst run.
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct Resume {
    /// The run: its id, or a unique part of it [default: the last run]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Resume every unfinished run; paused runs stay paused
    #[arg(long, conflicts_with_all = ["run", "params", "wait", "virtual_time", "durability", "compat", "by"])]
    pub all: bool,
    /// Fire the cron triggers in this file meanwhile
    #[arg(long, value_name = "FILE", requires = "all")]
    pub schedules: Vec<PathBuf>,
    /// Change a parameter for steps that have not started
    #[arg(short = 'p', long = "param", visible_short_alias = 'i', visible_alias = "input", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub params: Vec<(String, String)>,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub driving: Driving,
    #[command(flatten)]
    pub data: Data,
}

/// Approve a run that waits at a gate
///
/// Without a run, the only gate that waits in the data folder is meant; on a terminal Windlass asks first.
///
/// Exit status: 0 approved, 2 refused: not an approver, already decided, no such gate.
#[derive(Debug, clap::Args)]
#[command(after_help = DECIDE_EXAMPLES)]
pub struct Decide {
    /// The run: its id, a unique part of it, or `last`; may be left out if only one gate waits
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// The gate; may be left out if only one waits
    #[arg(value_name = "STEP")]
    pub step: Option<String>,
    /// Choose one of the gate's options
    #[arg(long, value_name = "OPTION")]
    pub choice: Option<String>,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub once: Once,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Fill in a field of the gate's form; numbers, lists and objects as JSON
    #[arg(long = "field", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub fields: Vec<(String, String)>,
    /// Print JSON: the gate
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Send a signal to a run
///
/// The run keeps the signal until a step waits for it.
///
/// Exit status: 0 sent, 2 refused: no such run, or it is finished.
#[derive(Debug, clap::Args)]
#[command(after_help = SIGNAL_EXAMPLES)]
pub struct Signal {
    /// The run: its id, a unique part of it, or `last`
    #[arg(value_name = "RUN")]
    pub run: String,
    /// The name of the signal
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The value to send, as JSON [default: null]
    #[arg(value_name = "JSON")]
    pub value: Option<String>,
    /// The same id sent twice is one signal
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    #[command(flatten)]
    pub actor: Actor,
    #[command(flatten)]
    pub once: Once,
    /// Print JSON: the id of the signal, and whether a step took it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

const RUN_EXAMPLES: &str = "\
EXAMPLES:
  windlass run WORKFLOW.yaml -p feature=login
  windlass run WORKFLOW.yaml --mock responses.yaml --virtual-time --json=final
  windlass run WORKFLOW.yaml --run-id release-7 --wait
  windlass run WORKFLOW.yaml --detach --at 22:00
  windlass run WORKFLOW.yaml --until build
  windlass run WORKFLOW.yaml --only review --inputs-from last
  windlass run my-installed-workflow --compat speckit";

const RESUME_EXAMPLES: &str = "\
EXAMPLES:
  windlass resume
  windlass resume release-7 -p retries=5
  windlass resume --all";

const REJECT: &str = "\
Reject a run that waits at a gate

Without a run, the only gate that waits in the data folder is meant; on a terminal Windlass asks first.

Exit status: 0 rejected, 2 refused: not an approver, already decided, no such gate.";

const DECIDE_EXAMPLES: &str = "\
EXAMPLES:
  windlass approve
  windlass approve release-7 sign-off --by dana
  windlass approve release-7 review --choice 'approve with changes'
  windlass reject release-7 sign-off --reason 'too early'";

const SIGNAL_EXAMPLES: &str = "\
EXAMPLES:
  windlass signal last build-finished
  windlass signal release-7 payment '{\"order\": 12, \"paid\": true}'";

fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as NAME=VALUE".to_owned()),
    }
}

const EXAMPLES: &str = "\
EXAMPLES:
  windlass init
  windlass run WORKFLOW.yaml -p feature=login";

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
