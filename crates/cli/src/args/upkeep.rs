//! The commands that maintain a data folder.

use super::Data;
use std::path::PathBuf;

/// Check a data folder for damage and suggest repairs
///
/// Reads the journal, plans, large values, shared limits and the lists of runs. Changes nothing without an option. Windlass parks a damaged
/// run: it does not execute that run, and continues all others.
///
/// Exit status: 0 no damage, 1 damage found, 2 refused.
#[derive(Debug, clap::Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct Doctor {
    /// Rebuild the lists of runs from the journal
    #[arg(long)]
    pub rebuild: bool,
    /// Continue from an older copy of the folder; steps done since then run again
    #[arg(long)]
    pub accept_older: bool,
    /// Reset damaged limits: slots, rates, budgets, keys, past firings of triggers
    #[arg(long, alias = "renew-desk")]
    pub renew_limits: bool,
    /// Print JSON: the state of the folder, with a list of findings
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// List who changed what, the newest first
///
/// Shows who made each change, and which run or workflow it concerned. Refused changes are listed with the reason.
#[derive(Debug, clap::Args)]
#[command(after_help = AUDIT_EXAMPLES)]
pub struct Audit {
    /// Only changes by this user
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Only this operation, such as runs.cancel
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Only changes of the run or workflow with this id
    #[arg(long, value_name = "ID")]
    pub object: Option<String>,
    /// Only changes at or after this time: 2026-03-01, '2026-03-01 09:30', or an age such as 90m or 2d
    #[arg(long, value_name = "TIME", value_parser = super::filter::moment)]
    pub since: Option<windlass_runtime::Timestamp>,
    /// The most changes to list
    #[arg(long, default_value_t = 50, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub limit: u16,
    /// Print JSON: a page of entries
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

const AUDIT_EXAMPLES: &str = "\
Examples:
  windlass audit
  windlass audit --by ann --since 2d
  windlass audit --operation gates.approve --json";

/// Remove finished runs and unused data
///
/// Removes runs for which every given option holds. Without one it only removes plans, large values and logs that no run uses.
/// Unfinished runs stay, and so do runs that others refer to. The journal shrinks if no process executes runs; otherwise new
/// records reuse its space.
#[derive(Debug, clap::Args)]
#[command(after_help = GC_EXAMPLES)]
pub struct Gc {
    /// Runs that ended at least this long ago, such as 30d
    #[arg(long, value_name = "DURATION")]
    pub older_than: Option<String>,
    /// All but the newest COUNT runs
    #[arg(long, value_name = "COUNT")]
    pub keep: Option<usize>,
    /// Runs with this status; words of a dialect, such as `completed`, work as well
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = super::filter::STATUSES)]
    pub status: Vec<String>,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON: the runs that were removed, and how much was freed
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

/// Back up a data folder, even while runs are executed
///
/// The copy is a data folder itself: inspect it with `--data`, or restore it by copying it back. It is a snapshot of one moment.
#[derive(Debug, clap::Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct Backup {
    /// The folder to create; it must not exist
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,
    /// Print JSON: the folder, and how much was copied
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

/// Create, list and revoke access tokens of the HTTP API
///
/// A token has a name, which decisions and the audit log show, and roles: `viewer` reads, `operator` starts and cancels runs, `approver`
/// decides at gates, `author` also runs texts that are not saved on the server, `admin` does everything.
#[derive(Debug, clap::Args)]
#[command(after_help = TOKENS_EXAMPLES)]
pub struct Tokens {
    #[command(subcommand)]
    pub command: TokenCommand,
    /// Print JSON: a page of tokens, or the token that was created or revoked
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub data: Data,
}

#[derive(Debug, clap::Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it once
    #[command(after_help = TOKENS_EXAMPLES)]
    Create {
        /// The name that decisions and the audit log show
        name: String,
        /// A role of the token; repeat it for several
        #[arg(long = "role", value_name = "ROLE", required = true, value_parser = role)]
        roles: Vec<windlass_api::Role>,
        /// How long the token is valid, such as 30d [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens, without their texts
    #[command(after_help = TOKENS_EXAMPLES)]
    List,
    /// Revoke a token: from now on it is refused
    #[command(after_help = TOKENS_EXAMPLES)]
    Revoke {
        /// The id, as `windlass tokens list` shows it
        #[arg(value_name = "ID")]
        token_id: String,
    },
}

fn role(text: &str) -> Result<windlass_api::Role, String> {
    serde_json::from_value(text.into())
        .map_err(|_| "the roles are viewer, operator, approver, author, admin and worker".to_owned())
}

const TOKENS_EXAMPLES: &str = "\
Examples:
  windlass tokens create dashboard --role viewer --expires 30d
  windlass tokens create ann --role operator --role approver
  windlass tokens list
  windlass tokens revoke 5f0c3a9be1d2477a";
