//! Durations as swdl writes them: days, hours, minutes, seconds and milliseconds, in that order, each at most once.

use windlass_ir::Duration;

pub const HELP: &str =
    "write days, hours, minutes and seconds in that order, such as `30s`, `5m`, `1h30m` or `2d`";

/// Longer than this is a mistake: ten years.
const MAX: u64 = 10 * 366 * 86_400 * 1_000_000;

const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];

pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: u64 = 0;
    let mut units = UNITS.iter();
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, micros) = units.find(|(word, _)| *word == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*micros)?)?;
        rest = after;
    }
    (!text.is_empty() && total <= MAX).then_some(Duration(total))
}

/// What was probably meant by a bare number.
pub fn suggest(text: &str) -> Option<String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    Some(format!("{text}s")).filter(|seconds| digits && parse(seconds).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_in_order() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(parse(text).map(|length| length.to_string()).as_deref(), expected, "{text:?}");
        };
        check("30s", Some("30s"));
        check("1h30m", Some("1h30m"));
        check("90m", Some("1h30m"));
        check("2d12h", Some("2d12h"));
        check("500ms", Some("500ms"));
        check("0s", Some("0s"));
        for bad in ["", "soon", "5 minutes", "5", "m", "30m1h", "1h1h", "-5s", "1.5h", "5M", "5s ", "1ms2s"] {
            check(bad, None);
        }
        check("99999999999999999999s", None);
        check("4000d", None);
    }
}
