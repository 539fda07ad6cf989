//! The arguments of `windlass triggers`.

use super::{Data, Validate};
use clap::Subcommand;
use jiff::Timestamp;
use std::path::PathBuf;

/// Show when triggers fire, and what past firings started
///
/// Triggers are schedules, webhooks and messages, in schedules files, in skills and in workflows. `windlass validate` checks
/// them. Nothing starts.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Triggers {
    #[command(subcommand)]
    pub command: TriggersCommand,
}

#[derive(Debug, Subcommand)]
pub enum TriggersCommand {
    /// The older name of `windlass validate`
    #[command(hide = true)]
    Check(Validate),
    Next(TriggersNext),
    History(TriggersHistory),
}

impl TriggersCommand {
    /// Whether a program reads the output.
    pub fn json(&self) -> bool {
        match self {
            Self::Check(args) => args.json,
            Self::Next(args) => args.json,
            Self::History(args) => args.json,
        }
    }
}

/// Show the next firings of each trigger
///
/// Times are in the time zone of the trigger and in that of this machine. Exit status: 0 done, 2 the file was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = NEXT_EXAMPLES)]
pub struct TriggersNext {
    /// A schedules file, a SKILL.md, a folder that contains schedules files, a workflow file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many firings of each trigger
    #[arg(short = 'n', long = "count", default_value_t = 5, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub count: u16,
    /// Only firings after this time [default: now]
    #[arg(long, visible_alias = "from", value_name = "TIME", value_parser = instant)]
    pub after: Option<Timestamp>,
    /// Print JSON: {after, triggers: [{id, kind, workflow, enabled, file, cron, next, …}], diagnostics}
    #[arg(long)]
    pub json: bool,
}

/// List past trigger firings, the newest first
///
/// Shows the run that a firing started, or why the firing was skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub struct TriggersHistory {
    /// Only the firings of this trigger
    #[arg(value_name = "TRIGGER")]
    pub trigger: Option<String>,
    /// The most firings to list
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    pub limit: usize,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    let help = "write a date, a time and an offset, such as 2026-03-29T00:00:00Z";
    text.parse().map_err(|_| help.to_owned())
}

const EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers next schedules.yaml -n 3
  windlass triggers history nightly_cleanup";

const NEXT_EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers next schedules.yaml
  windlass triggers next SKILL.md -n 3 --after 2026-03-28T12:00:00Z
  TZ=Europe/Berlin windlass triggers next schedules.yaml --json";

const HISTORY_EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers history
  windlass triggers history nightly_cleanup --limit 10
  windlass triggers history --json";
