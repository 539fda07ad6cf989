//! Filters of runs: by status, workflow, dialect, time and text.

use super::Dialect;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use windlass_api::operations::RunFilter;
use windlass_runtime::{Clock, Timestamp};

/// Selects runs; without any option it selects all of them.
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
    /// Only runs started at or after this time: 2026-03-01, '2026-03-01 09:30', or an age such as 90m or 2d
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub since: Option<Timestamp>,
    /// Only runs started before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub before: Option<Timestamp>,
    /// Only runs with this text in their id, workflow, inputs or reason; case does not matter
    #[arg(long, value_name = "TEXT")]
    pub search: Option<String>,
    /// Only unfinished runs
    #[arg(long)]
    pub unfinished: bool,
}

/// Neutral status words, and those that only dialects use.
pub(super) const STATUSES: [&str; 13] = [
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
    /// Whether the filter selects every run.
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// The filter in the form that operations expect.
    pub fn members(&self) -> RunFilter {
        RunFilter {
            status: self.status.clone(),
            workflow: self.workflow.clone(),
            dialect: self.dialect.map(|dialect| windlass_dialects::Dialect::from(dialect).name().to_owned()),
            since: self.since.map(|at| at.to_string()),
            before: self.before.map(|at| at.to_string()),
            query: self.search.clone(),
            unfinished: self.unfinished,
        }
    }
}

/// Parses a date, a local date and time, an instant with an offset, or a duration before now.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
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
    fn moments_are_instants_dates_and_durations() {
        let at = |text: &str| moment(text).map(|at| at.to_string());
        assert_eq!(at("2026-03-01T09:30:00Z").as_deref(), Ok("2026-03-01T09:30:00Z"));
        assert_eq!(at("2026-03-01T09:30:00+02:00").as_deref(), Ok("2026-03-01T07:30:00Z"));
        assert!(at("2026-03-01").is_ok() && at("2026-03-01 09:30").is_ok());
        let hour = moment("1h").expect("a duration");
        let two = moment("2h").expect("a duration");
        assert!(two < hour && hour < Clock::Real.now());
        assert!(moment("yesterday-ish").is_err_and(|help| help.contains("2026-03-01")));
        assert!(moment("99999999999999d").is_err());
    }

    #[test]
    fn an_empty_filter_selects_all_runs() {
        assert!(Filter::default().is_empty());
        assert!(!Filter { unfinished: true, ..Filter::default() }.is_empty());
        let members =
            Filter { status: vec!["waiting".into(), "aborted".into()], ..Filter::default() }.members();
        assert_eq!(members.status, ["waiting", "aborted"]);
    }
}
