//! Durations as scripts write them: days, hours, minutes, seconds and milliseconds, in that order, each at most once.

use windlass_ir::Duration;

pub const HELP: &str =
    "write days, hours, minutes, seconds and milliseconds in that order, such as `3s`, `1h30m` or `250ms`";

/// Longer than this is a mistake: ten years.
const MAX: u64 = 10 * 366 * 86_400 * 1_000_000;

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];

pub fn parse(text: &str) -> Option<Duration> {
    let mut units = UNITS.iter();
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
        let (unit, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len()));
        let (_, micros) = units.find(|(word, _)| *word == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*micros)?)?;
        rest = after;
    }
    (!text.is_empty() && total <= MAX).then_some(Duration(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_order() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse(text).map(|length| length.to_string()).as_deref(), expected, "{text:?}");
        };
        check("3s", Some("3s"));
        check("0s", Some("0s"));
        check("90m", Some("1h30m"));
        check("1d2h3m4s5ms", Some("1d2h3m4s5ms"));
        for bad in [
            "",
            "3",
            "s",
            "soon",
            "3 s",
            "1.5s",
            "-1s",
            "1s1h",
            "1s1s",
            "3S",
            "3s ",
            "4000d",
            "99999999999999999999s",
        ] {
            check(bad, None);
        }
    }
}
