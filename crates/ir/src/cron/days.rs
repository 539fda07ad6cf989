//! The days that a pattern matches: sets of years, months, days and weekdays, or a pattern of the cron library used
//! by the native dialect.

use super::fields::Set;
use jiff::civil::{Date, Weekday};

/// The search for a matching day stays within these years.
pub(super) const YEAR_MIN: i16 = 1970;
pub(super) const YEAR_MAX: i16 = 2100;

#[derive(Clone, Debug)]
pub(super) enum Days {
    Sets {
        /// None means every year.
        years: Option<Set>,
        months: Set,
        days: Set,
        /// Sunday is 0.
        weekdays: Set,
        /// If set, a match in one of the two day fields is enough; otherwise both must match.
        either: bool,
    },
    House(Box<croner::Cron>),
}

impl Days {
    /// The first matching day on or after this one.
    pub(super) fn next(&self, from: Date) -> Option<Date> {
        let mut date = from.max(Date::constant(YEAR_MIN, 1, 1));
        while date.year() <= YEAR_MAX {
            date = match date {
                date if !self.has_year(date) => Date::new(date.year().checked_add(1)?, 1, 1).ok()?,
                date if !self.has_month(date) => date.last_of_month().tomorrow().ok()?,
                date if !self.has_day(date) => date.tomorrow().ok()?,
                date => return Some(date),
            };
        }
        None
    }

    fn has_year(&self, date: Date) -> bool {
        match self {
            Self::Sets { years, .. } => {
                years.as_ref().is_none_or(|years| years.has(date.year().unsigned_abs()))
            }
            Self::House(cron) => cron.pattern.year_match(date.year().into()).unwrap_or(false),
        }
    }

    fn has_month(&self, date: Date) -> bool {
        match self {
            Self::Sets { months, .. } => months.has(small(date.month())),
            Self::House(cron) => cron.pattern.month_match(small(date.month()).into()).unwrap_or(false),
        }
    }

    fn has_day(&self, date: Date) -> bool {
        match self {
            Self::Sets { days, weekdays, either, .. } => {
                let day = days.has(small(date.day()));
                let weekday = weekdays.has(small(date.weekday().to_sunday_zero_offset()));
                if *either { day || weekday } else { day && weekday }
            }
            Self::House(cron) => {
                let (month, day) = (small(date.month()).into(), small(date.day()).into());
                cron.pattern.day_match(date.year().into(), month, day, weekday(date)).unwrap_or(false)
            }
        }
    }
}

/// Converts months, days and the like, which are never negative.
fn small(number: i8) -> u16 {
    number.unsigned_abs().into()
}

fn weekday(date: Date) -> croner::Weekday {
    match date.weekday() {
        Weekday::Sunday => croner::Weekday::Sunday,
        Weekday::Monday => croner::Weekday::Monday,
        Weekday::Tuesday => croner::Weekday::Tuesday,
        Weekday::Wednesday => croner::Weekday::Wednesday,
        Weekday::Thursday => croner::Weekday::Thursday,
        Weekday::Friday => croner::Weekday::Friday,
        Weekday::Saturday => croner::Weekday::Saturday,
    }
}
