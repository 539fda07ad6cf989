//! Durations: text in Go's format, and whole numbers of nanoseconds.

use crate::table::Table;
use crate::text::{Scalar, Style};
use windlass_ir::{Code, Duration, Span, Value};

const HELP: &str = "write hours, minutes and seconds, such as \"30s\", \"1h30m\" or \"500ms\", or a whole \
    number of nanoseconds";

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration that may be zero, which means none.
pub fn optional(table: &Table<'_>, key: &'static str) -> Option<Duration> {
    length(table, key).filter(|length| *length > Duration::ZERO)
}

/// A required duration above zero.
pub fn demanded(table: &Table<'_>, key: &'static str, max: Duration, help: &str) -> Option<Duration> {
    table.demand(key, help);
    bounded(table, key, max)
}

/// A duration above zero and up to `max`.
pub fn bounded(table: &Table<'_>, key: &'static str, max: Duration) -> Option<Duration> {
    let length = length(table, key)?;
    let span = table.node(key)?.span;
    let message = match length {
        Duration::ZERO => "the duration must be greater than zero".to_owned(),
        length if length > max => format!("{length} is longer than the limit of {max}"),
        length => return Some(length),
    };
    table.report(table.error(Code::BadDuration, key, span, message).help(HELP));
    None
}

/// A duration of zero or more.
pub fn length(table: &Table<'_>, key: &'static str) -> Option<Duration> {
    let (scalar, span) = table.scalar(key, "a duration")?;
    let Some(nanoseconds) = nanoseconds(scalar) else {
        let finding = table
            .error(Code::BadDuration, key, span, format!("invalid duration `{}`", scalar.text))
            .reference(&*scalar.text)
            .suggest(in_seconds(&scalar.text));
        table.report(finding.help(HELP));
        return None;
    };
    let Ok(nanoseconds) = u64::try_from(nanoseconds) else {
        let message = format!("negative duration `{}`", scalar.text);
        let finding = table.error(Code::BadDuration, key, span, message).reference(&*scalar.text);
        table.report(finding.help(HELP));
        return None;
    };
    Some(rounded(table, key, scalar, span, nanoseconds))
}

/// Durations are rounded up to microseconds, with a warning, because a bare number is often meant in another unit.
fn rounded(table: &Table<'_>, key: &str, scalar: &Scalar, span: Span, nanoseconds: u64) -> Duration {
    let length = Duration(nanoseconds.div_ceil(1_000));
    if !nanoseconds.is_multiple_of(1_000) {
        let message =
            format!("`{}` is {nanoseconds} nanoseconds, which is rounded up to {length}", scalar.text);
        let suggest = in_seconds(&scalar.text).filter(|_| nanoseconds < 1_000);
        let finding = table.warning(Code::BadDuration, key, span, message).reference(&*scalar.text);
        table.report(finding.suggest(suggest).help(match scalar.style {
            Style::Plain => "a bare number counts nanoseconds; add a unit to be explicit",
            _ => "use a duration of whole microseconds",
        }));
    }
    length
}

fn in_seconds(text: &str) -> Option<String> {
    let digits = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| format!("{text}s"))
}

fn nanoseconds(scalar: &Scalar) -> Option<i64> {
    match scalar.to_value() {
        Value::Int(count) if scalar.style == Style::Plain => Some(count),
        Value::Text(text) => parse(&text),
        _ => None,
    }
}

/// Parses a duration like Go's `time.ParseDuration`: a sign, then numbers with an optional fraction, each with a
/// unit.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let total = if digits == "0" { 0 } else { sum(digits)? };
    let total = i64::try_from(total).ok()?;
    Some(if negative { -total } else { total })
}

fn sum(text: &str) -> Option<u64> {
    let (mut rest, mut total) = (text, 0u64);
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// One number with its unit, and the rest of the text.
fn part(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (word, rest) = rest.split_at(end);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == word)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole.checked_mul(*unit)?.checked_add(share(fraction, *unit))?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The fraction `0.digits` of a unit, truncated to nanoseconds.
fn share(digits: &str, unit: u64) -> u64 {
    const DIGITS_MAX: usize = 18;
    let digits = &digits[..digits.len().min(DIGITS_MAX)];
    let (top, bottom) = digits
        .bytes()
        .fold((0u128, 1u128), |(top, bottom), digit| (top * 10 + u128::from(digit - b'0'), bottom * 10));
    // Less than one unit, so it fits.
    (top * u128::from(unit) / bottom) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_in_go() {
        let check = |text: &str, expected: Option<i64>| assert_eq!(parse(text), expected, "{text:?}");
        check("0", Some(0));
        check("30s", Some(30_000_000_000));
        check("1h30m", Some(5_400_000_000_000));
        check("30m1h", Some(5_400_000_000_000));
        check("1h1h", Some(7_200_000_000_000));
        check("1.5h", Some(5_400_000_000_000));
        check(".5s", Some(500_000_000));
        check("1.s", Some(1_000_000_000));
        check("1.0000000001s", Some(1_000_000_000));
        check("0.123456789s", Some(123_456_789));
        check("500ms", Some(500_000_000));
        check("7us", Some(7_000));
        check("7µs", Some(7_000));
        check("7μs", Some(7_000));
        check("9ns", Some(9));
        check("-5s", Some(-5_000_000_000));
        check("+5s", Some(5_000_000_000));
        check("2562047h47m16.854775807s", Some(i64::MAX));
        check("2562048h", None);
        let bad =
            ["", "-", "+", "s", ".s", "5", "30 s", "1d", "5S", "1h-5m", "1e3s", "1..5s", "é", "5sé", "--5s"];
        bad.into_iter().for_each(|text| check(text, None));
    }
}
