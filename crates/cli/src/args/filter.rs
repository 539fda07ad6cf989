//! Which runs are meant, where a command is about several: by status, workflow, dialect, time and text.

use super::Dialect;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use windlass_ir::RunStatus;
use windlass_runtime::{Clock, Query, Timestamp};

/// The runs that a command is about. Without any of these, all.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Filter {
    /// Only runs with this status; words of a dialect, such as `completed`, work as well
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = STATUSES)]
    pub status: Vec<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "ID")]
    pub workflow: Vec<String>,
    /// Only runs of workflows in this dialect
    #[arg(long, value_enum)]
    pub dialect: Option<Dialect>,
    /// Only those started at or after this: 2026-03-01, '2026-03-01 09:30', or so long ago: 90m, 2d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only those started before this, written likewise
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub before: Option<Timestamp>,
    /// Only with this text in their id, their workflow, their inputs, or the reason why they ended; capitals do not matter
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Only those that are not finished
    #[arg(long)]
    pub unfinished: bool,
}

/// The neutral words, and those that only dialects have.
const STATUSES: [&str; 13] = [
    "pending",
    "created",
    "running",
    "paused",
    "waiting",
    "success",
    "completed",
    "failed",
    "cancelled",
    "aborted",
    "compensated",
    "compensate_failed",
    "interrupted",
];

impl Filter {
    /// Whether every run is meant.
    pub fn is_empty(&self) -> bool {
        let Self { status, workflow, dialect, since, before, search, unfinished } = self;
        let lists = status.is_empty() && workflow.is_empty();
        lists && dialect.is_none() && since.is_none() && before.is_none() && search.is_none() && !unfinished
    }

    /// What the view is asked for: the last started first, at most so many.
    pub fn query(&self, limit: usize) -> Query {
        let dialect = self.dialect.map(|dialect| windlass_dialects::Dialect::from(dialect).name().to_owned());
        Query {
            limit,
            going_only: self.unfinished,
            statuses: self.status.iter().filter_map(|word| RunStatus::by_word(word)).collect(),
            dialect_statuses: self
                .status
                .iter()
                .filter(|word| RunStatus::by_word(word).is_none())
                .cloned()
                .collect(),
            workflows: self.workflow.clone(),
            dialect,
            since: self.since,
            before: self.before,
            search: self.search.clone(),
            ..Query::default()
        }
    }
}

/// A day, a day and a time of day where we are, an instant with its offset, or a length of time before now.
fn moment(text: &str) -> Result<Timestamp, String> {
    let text = text.trim();
    let local = |time: DateTime| time.to_zoned(TimeZone::system()).map(|zoned| zoned.timestamp());
    let instant = match (text.parse::<jiff::Timestamp>(), text.parse::<Date>(), text.parse::<DateTime>()) {
        (Ok(instant), _, _) => Ok(instant),
        (_, Ok(day), _) => local(day.to_datetime(jiff::civil::Time::midnight())),
        (_, _, Ok(time)) => local(time),
        (Err(_), Err(_), Err(_)) => return ago(text),
    };
    instant.map(|instant| Timestamp(instant.as_microsecond())).map_err(|error| error.to_string())
}

fn ago(text: &str) -> Result<Timestamp, String> {
    let length = windlass_ir::Duration::parse(text).ok_or_else(|| {
        "write a day (2026-03-01), a time ('2026-03-01 09:30', 2026-03-01T09:30:00Z) or how long ago (90m, 2d)".to_owned()
    })?;
    let micros = i64::try_from(length.0).map_err(|_| "that is too long ago".to_owned())?;
    Ok(Timestamp(Clock::Real.now().0.saturating_sub(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_instants_days_and_lengths_of_time() {
        let at = |text: &str| moment(text).map(|at| at.to_string());
        assert_eq!(at("2026-03-01T09:30:00Z").as_deref(), Ok("2026-03-01T09:30:00Z"));
        assert_eq!(at("2026-03-01T09:30:00+02:00").as_deref(), Ok("2026-03-01T07:30:00Z"));
        assert!(at("2026-03-01").is_ok() && at("2026-03-01 09:30").is_ok());
        let hour = moment("1h").expect("a length of time");
        let two = moment("2h").expect("a length of time");
        assert!(two < hour && hour < Clock::Real.now());
        assert!(moment("yesterday-ish").is_err_and(|help| help.contains("2026-03-01")));
        assert!(moment("99999999999999d").is_err());
    }

    #[test]
    fn without_conditions_all_runs_are_meant() {
        assert!(Filter::default().is_empty());
        assert!(!Filter { unfinished: true, ..Filter::default() }.is_empty());
        let query = Filter { status: vec!["waiting".into(), "aborted".into()], ..Filter::default() }.query(7);
        assert_eq!((query.limit, query.statuses), (7, vec![RunStatus::Waiting]));
        assert_eq!(query.dialect_statuses, ["aborted"]);
    }
}
