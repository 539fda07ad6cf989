//! The commands that look after a data folder.

use super::Data;
use std::path::PathBuf;

/// Check a data folder for damage and suggest repairs
///
/// Reads the journal, plans, large values, shared limits and the view. Changes nothing without an option. Windlass parks a damaged
/// run: it does not execute that run, and continues all others.
///
/// Exit status: 0 no damage, 1 damage found, 2 refused.
#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// Rebuild the view from the journal
    #[arg(long)]
    pub rebuild: bool,
    /// Continue from an older copy of the folder; steps done since then run again
    #[arg(long)]
    pub accept_older: bool,
    /// Reset damaged limits: slots, rates, budgets, keys, past firings of triggers
    #[arg(long, alias = "renew-desk")]
    pub renew_limits: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Remove finished runs, and what belongs to no run
///
/// All that is given has to hold. With no choice of runs only plans, large values and logs go that belong to none. Runs that are not
/// finished stay, and so do runs that others refer to. The journal gives its room back to the disk when nothing is being driven;
/// otherwise new records take it.
#[derive(Debug, clap::Args)]
#[command(after_help = GC_EXAMPLES)]
pub struct Gc {
    /// Runs that ended at least so long ago, such as 30d
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<String>,
    /// All runs but the newest so many
    #[arg(long, value_name = "COUNT")]
    pub keep: Option<usize>,
    /// Runs that ended so, in the word that `windlass runs` shows
    #[arg(long = "status", value_name = "STATUS")]
    pub statuses: Vec<String>,
    /// Only say what would go
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Copy a data folder, also while its runs go on
///
/// The copy is a data folder itself: look into it with `--data`, or put it in the place of the one that is lost. It has everything up
/// to one moment, and nothing after it.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// The folder to make, which must not be there yet
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

const DOCTOR_EXAMPLES: &str = "\
EXAMPLES:
  windlass doctor
  windlass doctor --json
  windlass doctor --rebuild
  windlass doctor --data backup-monday";

const GC_EXAMPLES: &str = "\
EXAMPLES:
  windlass gc --older-than 30d --dry-run
  windlass gc --keep 100
  windlass gc --status success --older-than 7d
  windlass gc";

const BACKUP_EXAMPLES: &str = "\
EXAMPLES:
  windlass backup backup-monday
  windlass doctor --data backup-monday";
