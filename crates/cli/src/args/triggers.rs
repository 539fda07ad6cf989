//! `windlass triggers`: what can be written behind it.

use super::Data;
use clap::Subcommand;
use jiff::Timestamp;
use std::path::PathBuf;

/// Check what starts runs by itself, and show when it will and when it did
///
/// Schedules, webhooks and messages, in files of schedules, in skills and in workflows; and what became of past firings. Nothing is
/// started.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Triggers {
    #[command(subcommand)]
    pub command: TriggersCommand,
}

#[derive(Debug, Subcommand)]
pub enum TriggersCommand {
    Check(TriggersCheck),
    Next(TriggersNext),
    History(TriggersHistory),
}

/// Check files of schedules, skills and the triggers of workflows, each and together
///
/// Together means: no id and no path is used twice, and the workflows that a skill's schedules start are there.
/// Exit status: 0 all valid, 1 an error was found, 2 a file could not be read.
#[derive(Debug, clap::Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct TriggersCheck {
    /// Files of schedules, SKILL.md files, folders with files of schedules in them, workflow files, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON: an object for one file, a list for several
    #[arg(long)]
    pub json: bool,
    /// Let warnings make a file invalid
    #[arg(long)]
    pub strict: bool,
}

/// Show the next firings of each trigger, in its own time zone and in that of this machine
///
/// Exit status: 0 done, 2 the file was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = NEXT_EXAMPLES)]
pub struct TriggersNext {
    /// A file of schedules, a SKILL.md, a folder with files of schedules in it, a workflow file, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How many firings of each
    #[arg(short = 'n', long = "count", default_value_t = 5, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub count: u16,
    /// Those after this instant [default: now]
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub from: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what became of each instant at which a trigger was due, the newest first
///
/// Either a run was started, whose id is shown, or the firing was skipped for the reason that is shown.
#[derive(Debug, clap::Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub struct TriggersHistory {
    /// Only the firings of this trigger
    #[arg(value_name = "TRIGGER")]
    pub trigger: Option<String>,
    /// How many at most
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
  windlass triggers check schedules.yaml
  windlass triggers next schedules.yaml -n 3
  windlass triggers history nightly_cleanup";

const CHECK_EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers check schedules.yaml
  windlass triggers check skills/*/SKILL.md
  windlass triggers check --json WORKFLOW.yaml schedules/";

const NEXT_EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers next schedules.yaml
  windlass triggers next SKILL.md -n 3 --from 2026-03-28T12:00:00Z
  TZ=Europe/Berlin windlass triggers next schedules.yaml --json";

const HISTORY_EXAMPLES: &str = "\
EXAMPLES:
  windlass triggers history
  windlass triggers history nightly_cleanup --limit 10
  windlass triggers history --json";
