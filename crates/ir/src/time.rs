//! Durations. The core counts whole microseconds.

use serde::{Deserialize, Serialize};

const UNITS: [(u64, &str); 6] = [
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "m"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
];

/// Parses an instant such as `2027-01-31T09:00:00Z` into microseconds since the Unix epoch.
pub fn instant(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// The end of the day that contains an instant in a zone, both in microseconds since the Unix epoch. `None` for an
/// unknown zone.
pub fn end_of_day(zone: &str, micros: i64) -> Option<i64> {
    let zone = crate::zone::zone(zone).ok()?;
    let at = jiff::Timestamp::from_microsecond(micros).ok()?.to_zoned(zone);
    let tomorrow = at.tomorrow().and_then(|tomorrow| tomorrow.start_of_day()).ok()?;
    Some(tomorrow.timestamp().as_microsecond())
}

/// The longest duration accepted from a file: ten years. Anything longer is a mistake.
const WRITTEN_MAX: u64 = 10 * 366 * 86_400 * 1_000_000;

/// A duration in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub u64);

impl Duration {
    pub const ZERO: Self = Self(0);

    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Parses days, hours, minutes, seconds and milliseconds in that order, each at most once: `1h30m`, `250ms`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_any(text).filter(|length| !text.ends_with("us") && length.0 <= WRITTEN_MAX)
    }

    /// Parses without an upper bound and down to microseconds, so that every displayed duration can be parsed.
    pub fn parse_any(text: &str) -> Option<Self> {
        let mut rest = text;
        let mut total: u64 = 0;
        let mut units = UNITS.iter();
        while !rest.is_empty() {
            let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
            let (unit, after) = after.split_at(letters);
            let (micros, _) = units.find(|(_, word)| *word == unit)?;
            total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*micros)?)?;
            rest = after;
        }
        (!text.is_empty()).then_some(Self(total))
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Formats durations as people write them: `1d2h`, `30m`, `1m30s`, `250ms`, `0s`.
impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (size, unit) in UNITS {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_displayed_as_people_write_them() {
        let check = |micros: u64, expected: &str| assert_eq!(Duration(micros).to_string(), expected);
        check(0, "0s");
        check(90_000_000, "1m30s");
        check(86_400_000_000, "1d");
        check(43_200_000_000, "12h");
        check(1_250_000, "1s250ms");
    }

    #[test]
    fn units_are_parsed_in_order() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(
                Duration::parse(text).map(|length| length.to_string()).as_deref(),
                expected,
                "{text:?}"
            );
        };
        check("30s", Some("30s"));
        check("90m", Some("1h30m"));
        check("1d2h3m4s5ms", Some("1d2h3m4s5ms"));
        check("0s", Some("0s"));
        let bad = [
            "",
            "soon",
            "5 minutes",
            "5",
            "m",
            "30m1h",
            "1h1h",
            "-5s",
            "1.5h",
            "5M",
            "5s ",
            "1ms2s",
            "3us",
            "4000d",
        ];
        bad.into_iter().for_each(|text| check(text, None));
        check("99999999999999999999s", None);
    }

    #[test]
    fn displayed_durations_can_be_parsed() {
        for micros in [0, 1, 999, 1_001, 60_000_001, WRITTEN_MAX + 1, u64::MAX] {
            let length = Duration(micros);
            assert_eq!(Duration::parse_any(&length.to_string()), Some(length));
        }
    }
}
