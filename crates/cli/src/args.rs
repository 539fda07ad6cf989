//! The command line: what can be written, and the help that says so.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Check, plan and draw workflows
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Validate(Validate),
    Plan(Plan),
    Graph(Graph),
    Eval(Eval),
}

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
}

/// Show what would run, in which order and with which inputs and limits
///
/// Nothing is executed. Exit status: 0 done, 2 the file or a parameter was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct Plan {
    /// A workflow file, a folder that holds a WORKFLOW.yaml, or `-` for standard input
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
    pub overrides: Overrides,
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
    pub overrides: Overrides,
}

/// Evaluate one expression and print its value as JSON
///
/// Exit status: 0 done, 1 the expression failed, 2 the context was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// The expression, with or without `${{ }}`; with text around it the result is text
    #[arg(value_name = "EXPR", allow_negative_numbers = true)]
    pub expression: String,
    /// The dialect whose expressions these are
    #[arg(long, value_enum, default_value_t = Dialect::Swdl)]
    pub dialect: Dialect,
    /// A JSON object with what the expression can read: parameters, stages, env, run, workflow, context, item, index
    #[arg(long, value_name = "FILE")]
    pub context: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub struct Overrides {
    /// Lay these overrides over the workflow [default: .skillmeat-workflow-overrides.yaml of the project]
    #[arg(id = "overrides", long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Mermaid,
    Dot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    Swdl,
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
  windlass graph WORKFLOW.yaml --format dot
  windlass eval \"length('abc') > 2\"";

const VALIDATE_EXAMPLES: &str = "\
EXAMPLES:
  windlass validate WORKFLOW.yaml
  windlass validate --strict workflows/*.yaml
  windlass validate --json WORKFLOW.yaml
  cat WORKFLOW.yaml | windlass validate -";

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

const EVAL_EXAMPLES: &str = "\
EXAMPLES:
  windlass eval \"length('abc') > 2\"
  windlass eval 'stages.test.outputs.passed && parameters.deploy' --context run.json
  windlass eval 'Deploying to ${{ parameters.target }}' --context run.json";

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
