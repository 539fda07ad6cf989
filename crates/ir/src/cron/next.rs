//! The next match of a pattern in a time zone.
//!
//! A pattern that names hours follows the wall clock. A time skipped by a change of the clock fires once, at the
//! first instant after the gap; a repeated time fires only the first time. A pattern for every hour follows elapsed
//! time: it fires during both passes of a repeated hour, and does not make up for skipped times.

use super::Cron;
use super::days::YEAR_MAX;
use jiff::civil::{DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

impl Cron {
    /// The first match after an instant, in UTC; both in microseconds since the Unix epoch.
    pub fn next_micros(&self, after: i64) -> Option<i64> {
        let after = Timestamp::from_microsecond(after).ok()?;
        self.next_after(after, &TimeZone::UTC).map(Timestamp::as_microsecond)
    }

    /// The first match after an instant; none if there is no match up to the year 2100.
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let every_hour = (0..24).all(|hour| self.hours.has(hour));
        if every_hour { self.next_passing(after, zone) } else { self.next_on_the_wall(after, zone) }
    }

    /// Later wall clock times are later instants, except during the second pass of a repeated hour. So the first
    /// match that is late enough is the answer.
    fn next_on_the_wall(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut from = next_second(zone.to_datetime(after))?;
        loop {
            let wall = self.next_wall(from, None)?;
            let instant = first_instant(wall, zone)?;
            if instant > after {
                return Some(instant);
            }
            from = next_second(wall)?;
        }
    }

    /// Between two changes of the zone's offset, wall clock time and elapsed time advance together.
    fn next_passing(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut from = after;
        let mut wall = next_second(zone.to_datetime(after))?;
        loop {
            let offset = zone.to_offset(from);
            let change = zone.following(from).find(|change| change.offset() != offset);
            let until = change.as_ref().map(|change| offset.to_datetime(change.timestamp()));
            if let Some(found) = self.next_wall(wall, until) {
                return offset.to_timestamp(found).ok();
            }
            let change = change?;
            from = change.timestamp();
            wall = change.offset().to_datetime(from);
            if wall.year() > YEAR_MAX {
                return None;
            }
        }
    }

    /// The first match in a range of wall clock times.
    fn next_wall(&self, from: DateTime, until: Option<DateTime>) -> Option<DateTime> {
        let mut date = self.days.next(from.date())?;
        let earliest = if date == from.date() { from.time() } else { Time::midnight() };
        let time = match self.next_time(earliest) {
            Some(time) => time,
            None => {
                date = self.days.next(date.tomorrow().ok()?)?;
                self.next_time(Time::midnight())?
            }
        };
        let found = date.to_datetime(time);
        until.is_none_or(|until| found < until).then_some(found)
    }

    /// The first matching time of day at or after the given one.
    fn next_time(&self, from: Time) -> Option<Time> {
        let [hour, minute, second] =
            [from.hour(), from.minute(), from.second()].map(|part| u16::from(part.unsigned_abs()));
        let same_minute =
            || Some((hour, minute, self.seconds.next(second, 59)?)).filter(|_| self.minutes.has(minute));
        let same_hour = || {
            let later = || Some((hour, self.minutes.next(minute + 1, 59)?, self.seconds.first(59)?));
            same_minute().or_else(later).filter(|_| self.hours.has(hour))
        };
        let later =
            || Some((self.hours.next(hour + 1, 23)?, self.minutes.first(59)?, self.seconds.first(59)?));
        let (hour, minute, second) = same_hour().or_else(later)?;
        let part = |number: u16| i8::try_from(number).ok();
        Time::new(part(hour)?, part(minute)?, part(second)?, 0).ok()
    }
}

/// Rounds up to the next whole second.
fn next_second(time: DateTime) -> Option<DateTime> {
    let whole = time.with().subsec_nanosecond(0).build().ok()?;
    whole.checked_add(1.second()).ok()
}

/// The first instant at which a wall clock shows this time, or would have shown it.
fn first_instant(wall: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok(),
        AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok(),
        AmbiguousOffset::Gap { after, .. } => {
            // With the later offset, a skipped time falls before the change, by less than the length of the gap.
            let before = after.to_timestamp(wall).ok()?;
            let mut changes = zone.following(before);
            changes
                .find(|change| change.offset().to_datetime(change.timestamp()) > wall)
                .map(|change| change.timestamp())
        }
    }
}
