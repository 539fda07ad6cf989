//! The commands that look after a data folder.

use super::Data;
use std::path::PathBuf;

/// Look whether a data folder is whole, which runs are hurt, and how to mend it
///
/// Journal, plans, large values, what runs share, and the view are read; nothing is changed unless one of the options says so. A run
/// that is hurt is parked: nothing drives it, and all others go on.
///
/// Exit status: 0 all is well, 1 something was found, 2 refused.
#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// Make the view anew from the journal
    #[arg(long)]
    pub rebuild: bool,
    /// Go on from an older copy of the folder; what was done since it was made will be done again
    #[arg(long)]
    pub accept_older: bool,
    /// Forget what runs share, if it cannot be read: places, rates, budgets, keys, past fires of triggers
    #[arg(long)]
    pub renew_desk: bool,
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
