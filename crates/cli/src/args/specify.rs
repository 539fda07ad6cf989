//! The arguments of `windlass specify`, which match those of Spec Kit's own program.

use super::Data;
use clap::Subcommand;
use std::path::PathBuf;

/// Run Spec Kit workflows with the arguments and the output of its own program
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Specify {
    #[command(subcommand)]
    pub command: SpecifyCommand,
}

#[derive(Debug, Subcommand)]
pub enum SpecifyCommand {
    /// Run, resume and inspect workflows
    #[command(subcommand, after_help = EXAMPLES)]
    Workflow(WorkflowCommand),
}

#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    Run(WorkflowRun),
    Resume(WorkflowResume),
    Status(WorkflowStatus),
    #[command(external_subcommand)]
    Other(Vec<String>),
}

/// Run a workflow from an installed ID or local YAML path
///
/// Exit status: 0 completed or paused, 1 failed, aborted or refused, 2 bad usage.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct WorkflowRun {
    /// Workflow ID or YAML file path
    pub source: PathBuf,
    /// Input values as key=value pairs
    #[arg(short, long = "input", value_name = "KEY=VALUE")]
    pub inputs: Vec<String>,
    /// Emit the run outcome as a single JSON object instead of formatted text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Resume a paused or failed workflow run
///
/// Exit status: 0 completed or paused, 1 failed, aborted or refused, 2 bad usage.
#[derive(Debug, clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct WorkflowResume {
    /// Run ID to resume
    pub run_id: String,
    /// Updated input values as key=value pairs
    #[arg(short, long = "input", value_name = "KEY=VALUE")]
    pub inputs: Vec<String>,
    /// Emit the resume outcome as a single JSON object instead of formatted text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Show workflow run status
///
/// Exit status: 0 shown, 1 no such run, 2 bad usage.
#[derive(Debug, clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct WorkflowStatus {
    /// Run ID to inspect (shows all if omitted)
    pub run_id: Option<String>,
    /// Emit run status as a single JSON object instead of formatted text
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

const EXAMPLES: &str = "\
Examples:
  windlass specify workflow run workflow.yml -i ticket=42 --json
  windlass specify workflow resume 1a2b3c4d -i verdict=approve
  windlass specify workflow status --json";

const RUN_EXAMPLES: &str = "\
Examples:
  windlass specify workflow run workflow.yml -i ticket=42
  windlass specify workflow run my-installed-workflow --json";

const RESUME_EXAMPLES: &str = "\
Examples:
  windlass specify workflow resume 1a2b3c4d -i verdict=approve";

const STATUS_EXAMPLES: &str = "\
Examples:
  windlass specify workflow status
  windlass specify workflow status 1a2b3c4d --json";
