//! When a run begins, where it stops, and whose output format it uses.

use clap::ValueEnum;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use windlass_runtime::{Clock, Timestamp};

#[derive(Debug, Default, clap::Args)]
pub struct Going {
    /// Begin later: 15:30, +2h, '2026-03-01 09:30' or 2026-03-01T09:30:00Z
    #[arg(long, value_name = "TIME", value_parser = coming)]
    pub at: Option<Timestamp>,
    /// Pause after this step; `windlass resume` continues from there
    #[arg(long, value_name = "STEP")]
    pub until: Option<String>,
    /// Run only this step, with the results recorded in the run of `--inputs-from`
    #[arg(long, value_name = "STEP", requires = "inputs_from", conflicts_with_all = ["until", "input_file"])]
    pub only: Option<String>,
    /// The run that provides inputs and step outputs to `--only`
    #[arg(long, value_name = "RUN", requires = "only")]
    pub inputs_from: Option<String>,
}

/// Another program to imitate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    Speckit,
}

/// Parses a time of day (today or tomorrow), a delay, a local date and time, or an instant with an offset.
fn coming(text: &str) -> Result<Timestamp, String> {
    let now = Clock::Real.now();
    let at = instant(text.trim(), now)?;
    match at > now {
        true => Ok(at),
        false => Err("this time is in the past".to_owned()),
    }
}

fn instant(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    const HELP: &str = "write a time of day (15:30), how much later (+2h), a day and a time ('2026-03-01 09:30') or an instant (2026-03-01T09:30:00Z)";
    if let Some(length) = text.strip_prefix('+') {
        let length = windlass_ir::Duration::parse(length).ok_or(HELP)?;
        return Ok(now.plus(length));
    }
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Ok(Timestamp(instant.as_microsecond()));
    }
    let zone = TimeZone::system();
    let wrong = |error: jiff::Error| error.to_string();
    let local = match (of_day(text), text.parse::<DateTime>()) {
        (Some(time), _) => {
            let here = jiff::Timestamp::from_microsecond(now.0).map_err(wrong)?.to_zoned(zone.clone());
            let today = here.datetime().date().to_datetime(time);
            let over = today.to_zoned(zone.clone()).map_err(wrong)?.timestamp() <= here.timestamp();
            if over { today.checked_add(jiff::Span::new().days(1)).map_err(wrong)? } else { today }
        }
        // A date without a time is ambiguous.
        (None, Ok(time)) if text.contains(':') => time,
        (None, _) => return Err(HELP.to_owned()),
    };
    Ok(Timestamp(local.to_zoned(zone).map_err(wrong)?.timestamp().as_microsecond()))
}

fn of_day(text: &str) -> Option<Time> {
    let plain = text.len() <= "00:00:00".len() && text.contains(':');
    text.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn future_times_are_parsed() {
        let now = Timestamp(1_800_000_000_000_000);
        let at = |text: &str| instant(text, now).map(|at| at.0 - now.0);
        assert_eq!(at("+2h"), Ok(7_200_000_000));
        assert_eq!(at("+90s"), Ok(90_000_000));
        assert_eq!(at("2027-01-15T08:00:01Z"), Ok(1_000_000));
        let day = at("15:30").expect("a time of day");
        assert!(day > 0 && day <= 25 * 3_600_000_000, "{day}");
        assert!(at("2027-03-01 09:30").is_ok_and(|later| later > 0));
        for wrong in ["", "soon", "25:00", "2027-03-01", "+", "+soon", "15"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
        assert!(coming("2001-01-01T00:00:00Z").is_err_and(|why| why.contains("past")));
    }
}
