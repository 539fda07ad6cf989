//! Durations and instants for people: short, rounded down, in the local time zone.

use jiff::tz::TimeZone;
use windlass_api::types::Seconds;
use windlass_ir::Duration;
use windlass_runtime::Timestamp;

/// A measured duration: `40ms`, `1.2s`, `12s`, `3m 05s`, `2h 07m`, `3d 04h`.
pub fn length(length: Duration) -> String {
    match length.0 {
        ..1_000_000 => format!("{}ms", length.0 / 1_000),
        1_000_000..10_000_000 => format!("{}.{}s", length.0 / 1_000_000, length.0 / 100_000 % 10),
        10_000_000.. => ticking(length),
    }
}

/// A duration that grows or shrinks on the screen, in whole seconds.
pub fn ticking(length: Duration) -> String {
    let seconds = length.0 / 1_000_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A duration of a reply.
pub fn seconds(length: Seconds) -> String {
    self::length(Duration((length.0.max(0.0) * 1e6).round() as u64))
}

/// An instant: the time today, the day as well on other days, and the year as well in other years.
pub fn clock(at: Timestamp, now: Timestamp) -> String {
    clock_in(at, now, &TimeZone::system())
}

fn clock_in(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let local =
        |at: Timestamp| jiff::Timestamp::from_microsecond(at.0).ok().map(|at| at.to_zoned(zone.clone()));
    let (Some(there), Some(here)) = (local(at), local(now)) else { return at.to_string() };
    let form = match (there.date() == here.date(), there.year() == here.year()) {
        (true, _) => "%H:%M:%S",
        (false, true) => "%b %d %H:%M",
        (false, false) => "%Y-%m-%d %H:%M",
    };
    there.strftime(form).to_string()
}

/// An instant to the millisecond, for lists of events and lines.
pub fn precise(at: Timestamp) -> String {
    let local = jiff::Timestamp::from_microsecond(at.0).ok().map(|at| at.to_zoned(TimeZone::system()));
    local.map_or_else(|| at.to_string(), |local| local.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string())
}

/// An instant of a reply.
pub fn instant(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_down() {
        let check = |micros: u64, expected: &str| assert_eq!(length(Duration(micros)), expected);
        check(0, "0ms");
        check(40_900, "40ms");
        check(999_999, "999ms");
        check(1_299_999, "1.2s");
        check(59_999_999, "59s");
        check(60_000_000, "1m 00s");
        check(7_384_000_000, "2h 03m");
        check(100 * 3_600_000_000, "4d 04h");
    }

    #[test]
    fn instants_are_as_long_as_needed() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let at = |text: &str| instant(text).expect("an instant");
        let now = at("2026-11-18T22:30:00Z");
        let check = |text: &str, expected: &str| assert_eq!(clock_in(at(text), now, &zone), expected);
        check("2026-11-18T22:05:07.5Z", "00:05:07");
        check("2026-11-18T21:59:00Z", "Nov 18 23:59");
        check("2025-11-18T21:59:00Z", "2025-11-18 23:59");
    }
}
