//! The command that runs the cases beside workflows.

use std::path::PathBuf;

/// Run the test cases beside workflows
///
/// A file `NAME.test.yaml` beside a workflow holds cases: inputs, answers of a script, and what is expected of the run, its steps
/// and its outputs. They run in memory with a clock that jumps; nothing is recorded and no command is run unless a case says so.
/// Exit status: 0 all passed, 1 a case failed, 2 a file is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Test {
    /// Files of cases, workflows that have such a file beside them, or folders to look through
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write what was seen into the expectations
    #[arg(long)]
    pub update: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES:
  windlass test WORKFLOW.yaml
  windlass test examples
  windlass test release.test.yaml --update";
