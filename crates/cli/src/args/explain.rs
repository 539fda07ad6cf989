//! The command that explains codes.

/// Explain a code of an error or a warning
///
/// Prints what happened, how to fix it, and the usual causes. Exit status: 0 done, 2 unknown code.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub struct Explain {
    /// The word in brackets after `error` or `warning`
    #[arg(value_name = "CODE")]
    pub code: String,
    /// Print JSON: the code, its title and the page as Markdown
    #[arg(long)]
    pub json: bool,
}

const EXPLAIN_EXAMPLES: &str = "\
EXAMPLES:
  windlass explain no_run
  windlass explain unknown_key --json";
