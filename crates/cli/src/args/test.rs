//! The command that runs the test cases of workflows.

use std::path::PathBuf;

/// Run the test cases of workflows
///
/// A file `NAME.test.yaml` beside a workflow contains cases: inputs, mock responses, and the expected result of the run, its
/// steps and its outputs. Windlass executes them in memory and in virtual time. It records nothing, and starts a command only
/// if the case says so. Exit status: 0 all passed, 1 a case failed, 2 a file was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Test {
    /// Files of test cases, workflows with such a file beside them, or folders to search; the current folder by default
    #[arg(value_name = "FILE", default_value = ".", hide_default_value = true)]
    pub files: Vec<PathBuf>,
    /// Replace expectations by actual results
    #[arg(long)]
    pub update: bool,
    /// Print JSON: {file, passed, failed, cases}; a list of these for several files or a folder
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
EXAMPLES:
  windlass test WORKFLOW.yaml
  windlass test examples
  windlass test release.test.yaml --update";
