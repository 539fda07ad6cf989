//! The commands for workflow authors: check, format, plan, draw, convert and evaluate.

use super::name_and_value;
use clap::ValueEnum;
use std::path::PathBuf;

/// Check files and report everything that is wrong with them
///
/// Checks workflows of every dialect, schedules, SKILL.md files, overlays, overrides, test cases and windlass.toml. A folder
/// with one WORKFLOW file means that workflow; in any other folder Windlass checks every such file, folders inside it included. Files checked together must not use a trigger id or a webhook path twice.
/// Exit status: 0 all valid, 1 an error was found, 2 a file could not be read.
#[derive(Debug, clap::Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub struct Validate {
    /// Files, folders, names of workflows of this project, or `-` for standard input; the current folder by default
    #[arg(value_name = "FILE", default_value = ".", hide_default_value = true)]
    pub files: Vec<PathBuf>,
    /// Print JSON: {file, valid, dialect, workflow, diagnostics, kind, …}; a list of these for several files or a folder
    #[arg(long)]
    pub json: bool,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub reading: Reading,
}

/// Format workflow files
///
/// Orders keys, and indents and quotes values the same way everywhere. Comments and meaning stay; line endings become those of
/// Unix. In a folder without a WORKFLOW file, Windlass formats every workflow, folders inside it included. Exit status: 0
/// done, 1 a file would change (with --check or --diff), 2 a file was refused and left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = FMT_EXAMPLES)]
pub struct Fmt {
    /// Workflow files, folders, names of workflows of this project, or `-` to read standard input and write standard output
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// List the files that would change, and change nothing
    #[arg(long)]
    pub check: bool,
    /// Show what would change as a diff, and change nothing
    #[arg(long)]
    pub diff: bool,
    /// Print JSON: {file, changed, changes, source, etag, diagnostics, …}; a list of these for several files
    #[arg(long)]
    pub json: bool,
}

/// A workflow and its inputs.
#[derive(Debug, clap::Args)]
pub struct Plan {
    /// A workflow file, a folder that contains a WORKFLOW.yaml, the name of a workflow of this project, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Set a parameter; lists and objects as JSON
    #[arg(
        short = 'p',
        long = "param",
        visible_short_alias = 'i',
        visible_alias = "input",
        value_name = "NAME=VALUE",
        value_parser = name_and_value
    )]
    pub params: Vec<(String, String)>,
    /// Read parameters from a JSON or YAML file; `-p` takes precedence
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
}

/// Show what would run, in which order and with which inputs and limits
///
/// Nothing runs. Exit status: 0 done, 2 the file or a parameter was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = PLAN_EXAMPLES)]
pub struct PlanCommand {
    #[command(flatten)]
    pub what: Plan,
    /// Print JSON: {workflow, dialect, parameters, batches, steps, estimate, diagnostics, …}
    #[arg(long)]
    pub json: bool,
}

/// Draw the steps of a workflow and their dependencies
///
/// Exit status: 0 done, 2 the file was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = GRAPH_EXAMPLES)]
pub struct Graph {
    /// A workflow file, a folder that contains a WORKFLOW.yaml, the name of a workflow of this project, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The language of the drawing
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print JSON: {format, text, dialect, diagnostics}
    #[arg(long)]
    pub json: bool,
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
    /// A workflow file, a folder that contains a WORKFLOW.yaml, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The dialect or the syntax to write
    #[arg(long, value_enum, default_value_t = Target::Swdl)]
    pub to: Target,
    /// Write to this file [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Print JSON: {file, changes, source, etag, diagnostics, comments_lost}; `file` is the file written, or null
    #[arg(long)]
    pub json: bool,
    /// The dialect of the file [default: detected]
    #[arg(long, visible_alias = "from", value_enum)]
    pub dialect: Option<Dialect>,
    /// Apply overrides to a swdl workflow
    #[arg(long, value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Apply an overlay to a speckit workflow, in addition to those of its project if it is installed
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

/// Evaluate one expression and print its value as JSON
///
/// swdl: with or without `${{ }}`; speckit: text with `{{ }}`; dcc: text with `{{ }}`, or a JSONPath; dagnats: a
/// `skip_if` object, true if the step would be skipped. An expression with text around it gives text.
///
/// Exit status: 0 done, 1 the expression failed, 2 the context was refused.
#[derive(Debug, clap::Args)]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// The expression; write `--` before one that starts with a dash
    #[arg(value_name = "EXPR", allow_negative_numbers = true)]
    pub expression: String,
    /// The dialect of the expression
    #[arg(long, value_enum, default_value_t = Dialect::Swdl)]
    pub dialect: Dialect,
    /// A JSON or YAML file with the values that the expression can read: parameters, stages, … (swdl), inputs, steps, item, … (speckit, dcc), outputs by step id (dagnats)
    #[arg(long, value_name = "FILE")]
    pub context: Option<PathBuf>,
    /// Print true or false, as a condition would read the value
    #[arg(long)]
    pub condition: bool,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Print JSON: {value, diagnostics}
    #[arg(long)]
    pub json: bool,
}

/// Print the JSON Schema of a kind of file, for editors
///
/// The schema accepts everything that `windlass validate` accepts. It cannot check names that must exist, cycles and
/// expressions; `windlass validate` does.
#[derive(Debug, clap::Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// The kind of file
    #[arg(value_enum, value_name = "KIND")]
    pub language: Language,
    /// Refuse keys that have no effect, as `windlass validate --strict` does
    #[arg(long)]
    pub strict: bool,
    /// Print JSON: the schema is JSON with and without this option
    #[arg(long)]
    pub json: bool,
}

/// How to read a workflow file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Reading {
    /// The dialect of the file [default: detected]
    #[arg(long, value_enum)]
    pub dialect: Option<Dialect>,
    /// Apply overrides to a swdl workflow [default: .skillmeat-workflow-overrides.yaml of the project]
    #[arg(long, value_name = "FILE")]
    pub overrides: Option<PathBuf>,
    /// Apply an overlay to a speckit workflow, in addition to those of its project if it is installed
    #[arg(long = "overlay", value_name = "FILE")]
    pub overlays: Vec<PathBuf>,
    /// Ignores the overlays of the project.
    #[arg(skip)]
    pub as_written: bool,
    /// Also reports errors that Spec Kit finds only during a run.
    #[arg(skip)]
    pub raises_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For the terminal
    Text,
    Mermaid,
    Dot,
}

impl From<Format> for windlass_api::types::GraphFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Mermaid => Self::Mermaid,
            Format::Dot => Self::Dot,
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

impl From<Target> for windlass_api::types::Target {
    fn from(target: Target) -> Self {
        match target {
            Target::Swdl => Self::Swdl,
            Target::Json => Self::Json,
            Target::Yaml => Self::Yaml,
        }
    }
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
        windlass_api::types::Dialect::from(dialect).into()
    }
}

impl From<Dialect> for windlass_api::types::Dialect {
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
    Mock,
    Config,
}

const VALIDATE_EXAMPLES: &str = "\
EXAMPLES:
  windlass validate WORKFLOW.yaml
  windlass validate .
  windlass validate --strict workflows/*.yaml schedules.yaml windlass.toml
  windlass validate --json WORKFLOW.yaml
  cat WORKFLOW.yaml | windlass validate -";

const FMT_EXAMPLES: &str = "\
EXAMPLES:
  windlass fmt WORKFLOW.yaml
  windlass fmt --check workflows
  windlass fmt --diff WORKFLOW.yaml
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
  windlass graph WORKFLOW.yaml --format dot | dot -Tsvg -o workflow.svg
  windlass graph WORKFLOW.yaml --json";

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
