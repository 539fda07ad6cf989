//! The commands that find workflows and write new ones.

use super::Dialect;
use std::path::PathBuf;

/// List the workflows of this project
///
/// Finds workflow files of every dialect, the workflows installed in a Spec Kit project, and those that skills declare. A file
/// that is not valid is listed with its first error. Exit status: 0 done.
#[derive(Debug, clap::Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// Only workflows with this text in their name, tags, description or the search hint of their skill
    #[arg(value_name = "QUERY")]
    pub query: Option<String>,
    /// Only workflows with this tag
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only workflows of this dialect
    #[arg(long, value_enum)]
    pub dialect: Option<Dialect>,
    /// Only workflows of this skill
    #[arg(long, value_name = "SKILL")]
    pub skill: Option<String>,
    /// Search this folder [default: the project around this folder]
    #[arg(long = "workflows", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Print JSON: a page of workflows
    #[arg(long)]
    pub json: bool,
}

/// Write a workflow, its test and a .gitignore to start from
///
/// The workflow runs as it is, without other programs than a shell. Existing files are never overwritten.
/// Exit status: 0 done, 2 refused: no such template, or a file exists.
#[derive(Debug, clap::Args)]
#[command(after_help = INIT_EXAMPLES)]
pub struct Init {
    /// The template; `--list` shows them [default: release]
    #[arg(value_name = "TEMPLATE")]
    pub template: Option<String>,
    /// The folder to write to, created if it does not exist [default: this folder]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
    /// List the templates
    #[arg(long, conflicts_with_all = ["template", "folder"])]
    pub list: bool,
    /// Print JSON: {template, files, kept, next}; with `--list` a page of templates
    #[arg(long)]
    pub json: bool,
}

const LIST_EXAMPLES: &str = "\
EXAMPLES:
  windlass list
  windlass list release
  windlass list --skill scene-maintenance --json
  windlass list --workflows ~/.skillmeat/collection/artifacts/workflows";

const INIT_EXAMPLES: &str = "\
EXAMPLES:
  windlass init
  windlass init --list
  windlass init ci my-project";
