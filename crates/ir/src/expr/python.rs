//! Python's treatment of values: text form, order, numbers and whitespace, for workflows written against those rules.
//! Integers beyond 64 bits become floats here, unlike in Python.

use super::eval::{EvalError, Meter, compare_numbers, equals_within, sealed};
use super::semantics::Semantics;
use crate::value::Value;
use std::cmp::Ordering;
use std::fmt::Write;

/// Python refuses to parse longer integers.
const INTEGER_DIGITS_MAX: usize = 4300;

/// The zeros of all scripts with their own decimal digits; the other nine digits follow each zero.
const ZEROS: [u32; 65] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50,
    0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0,
    0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50,
    0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140,
    0x1e2f0, 0x1e950, 0x1fbf0,
];

/// Removes surrounding whitespace as `str.strip` does.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Unicode whitespace plus the four ASCII separators, which Python also counts as whitespace.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// A letter, a digit or `_`: a word character in Python's regular expressions.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The value of a decimal digit in any script.
fn digit(c: char) -> Option<u32> {
    if c.is_ascii() {
        return c.to_digit(10);
    }
    let before = ZEROS.partition_point(|zero| *zero <= u32::from(c));
    let distance = u32::from(c) - ZEROS.get(before.checked_sub(1)?)?;
    (distance < 10).then_some(distance)
}

/// Parses a number: a float if it has a decimal point, otherwise an integer. `1e3` and `0x10` are not numbers here.
/// ASCII separators do not count as whitespace around a number.
pub fn number(text: &str) -> Option<Value> {
    let plain = plain_digits(text.trim())?;
    if plain.contains('.') { plain.parse().ok().map(Value::Float) } else { whole(&plain) }
}

/// An integer that does not fit becomes the nearest float.
fn whole(plain: &str) -> Option<Value> {
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_integer || digits.len() > INTEGER_DIGITS_MAX {
        return None;
    }
    plain.parse().map(Value::Int).or_else(|_| plain.parse().map(Value::Float)).ok()
}

/// Converts digits of any script to ASCII and removes single underscores between digits.
fn plain_digits(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut after_digit = false;
    while let Some(letter) = letters.next() {
        let value = digit(letter);
        match (letter, value.and_then(|value| char::from_digit(value, 10))) {
            (_, Some(ascii)) => plain.push(ascii),
            ('_', None) if after_digit && letters.peek().copied().and_then(digit).is_some() => {}
            ('+' | '-' | '.' | 'e' | 'E', None) => plain.push(letter),
            (_, None) => return None,
        }
        after_digit = value.is_some();
    }
    Some(plain)
}

/// The integer in the brackets of `name[-1]`. An integer too large for any list stays too large.
pub fn index(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let values: Option<Vec<u32>> = digits.chars().map(digit).collect();
    let values = values.filter(|values| !values.is_empty())?;
    let size = values.iter().fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add((*digit).into()));
    Some(if negative { -size } else { size })
}

/// The order of two values, if they have one: numbers and numeric strings by value, otherwise two strings or two
/// lists.
pub(super) fn order(a: &Value, b: &Value, meter: &mut Meter) -> Result<Option<Ordering>, EvalError> {
    if matches!(a, Value::Sealed(_)) || matches!(b, Value::Sealed(_)) {
        return Err(sealed("compared"));
    }
    if let (Some(a), Some(b)) = (as_number(a), as_number(b)) {
        return Ok(compare_numbers(&a, &b));
    }
    raw_order(a, b, meter)
}

/// Lists are ordered by the first elements that differ; if one is a prefix of the other, the longer one comes later.
fn raw_order(a: &Value, b: &Value, meter: &mut Meter) -> Result<Option<Ordering>, EvalError> {
    meter.work(1)?;
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => Ok(Some(a.cmp(b))),
        (Value::List(a), Value::List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equals_within(a, b, &Semantics::SPECKIT, meter)? {
                    return raw_order(a, b, meter);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        (a, b) => match (plain_number(a), plain_number(b)) {
            (Some(a), Some(b)) => Ok(compare_numbers(&a, &b)),
            (_, _) => Ok(None),
        },
    }
}

fn plain_number(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(flag) => Some(Value::Int(i64::from(*flag))),
        Value::Int(_) | Value::Float(_) => Some(value.clone()),
        Value::Null | Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => None,
    }
}

fn as_number(value: &Value) -> Option<Value> {
    match value {
        Value::Text(text) => number(text),
        other => plain_number(other),
    }
}

/// `str(value)`.
pub(super) fn text(value: &Value, meter: &mut Meter) -> Result<String, EvalError> {
    let mut out = String::new();
    match value {
        Value::Text(text) => {
            meter.make(text.len())?;
            out.push_str(text);
        }
        other => repr(other, &mut out, meter)?,
    }
    Ok(out)
}

/// The most that a value other than a string can add to the surrounding text; strings are charged by length.
pub(super) const PLAIN_BYTES: usize = 8;

fn repr(value: &Value, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.make(PLAIN_BYTES)?;
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(flag) => out.push_str(if *flag { "True" } else { "False" }),
        Value::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Value::Float(float) => float_text(*float, out),
        Value::Text(text) => quoted(text, out, meter)?,
        Value::Sealed(_) => return Err(sealed("converted to text")),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                repr(item, out, meter)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (place, (key, item)) in map.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                quoted(key, out, meter)?;
                out.push_str(": ");
                repr(item, out, meter)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

/// The shortest digits that round-trip, with an exponent for very small or very large numbers.
pub(super) fn float_text(float: f64, out: &mut String) {
    let magnitude = float.abs();
    if float.is_nan() {
        out.push_str("nan");
    } else if float.is_infinite() {
        out.push_str(if float > 0.0 { "inf" } else { "-inf" });
    } else if float != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(rest) => ('-', rest),
            None => ('+', exponent),
        };
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{float:?}");
    }
}

/// Uses single quotes unless the text contains single quotes and no double quotes. Shared parts are charged each
/// time.
fn quoted(text: &str, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.make(text.len())?;
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => escape(c, out),
        }
    }
    out.push(quote);
    Ok(())
}

fn escape(c: char, out: &mut String) {
    let code = u32::from(c);
    let _ = match code {
        0..0x100 => write!(out, "\\x{code:02x}"),
        0x100..0x1_0000 => write!(out, "\\u{code:04x}"),
        0x1_0000.. => write!(out, "\\U{code:08x}"),
    };
}

/// Rust's `Debug` escapes the same characters as Python's `repr`, except that it treats the first character
/// differently. Putting another character in front avoids that.
fn is_printable(c: char) -> bool {
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..=length]).unwrap_or_default();
    matches!(c, '"' | '\'') || text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Limits;

    fn json(text: &str) -> Value {
        serde_json::from_str(text).expect("test data is JSON")
    }

    #[test]
    fn values_have_python_text_forms() {
        let check = |value: Value, expected: &str| {
            assert_eq!(text(&value, &mut Meter::new(&Limits::default())), Ok(expected.to_owned()));
        };
        check(json("null"), "None");
        check(json(r#"[true, false, null, 3, 3.0, "a"]"#), "[True, False, None, 3, 3.0, 'a']");
        check(json(r#"{"k": {"it's": "\"both' "}}"#), r#"{'k': {"it's": '"both\' '}}"#);
        check(json(r#"["a\n\t\r\\b"]"#), r"['a\n\t\r\\b']");
        check(
            Value::list([Value::text("\0\x1b\x7f\u{a0}\u{ad}é\u{301}")]),
            "['\\x00\\x1b\\x7f\\xa0\\xadé\u{301}']",
        );
        check(
            Value::list([Value::text("\u{200b}\u{3000}\u{e000}\u{10ffff}👍")]),
            r"['\u200b\u3000\ue000\U0010ffff👍']",
        );
        for (float, expected) in [
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-1.5e300, "-1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-0.0, "-0.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            check(Value::Float(float), expected);
        }
    }

    #[test]
    fn strings_parse_as_python_numbers() {
        let check = |text: &str, expected: Option<Value>| assert_eq!(number(text), expected, "{text}");
        for (text, int) in
            [("7", 7), ("+5", 5), ("-5", -5), ("007", 7), ("1_000", 1000), (" 10 ", 10), ("٣٤", 34)]
        {
            check(text, Some(Value::Int(int)));
        }
        for (text, float) in
            [("1.0e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("-1_0.2_5", -10.25), ("1.e2", 100.0)]
        {
            check(text, Some(Value::Float(float)));
        }
        check("9223372036854775807", Some(Value::Int(i64::MAX)));
        check("9223372036854775808", Some(Value::Float(9_223_372_036_854_775_808.0)));
        for text in [
            "", "-", "- 5", "1e3", "0x10", "1__0", "_1", "1_", "1_.5", "1._5", ".", ".e1", "nan.", "inf", "²",
        ] {
            check(text, None);
        }
        check("\u{a0}7\u{3000}", Some(Value::Int(7)));
        check("5\u{1f}", None);
        check(&"1".repeat(4300), Some(Value::Float(f64::INFINITY)));
        check(&"1".repeat(4301), None);
    }

    #[test]
    fn indices_are_parsed() {
        assert_eq!(["0", "-1", "01", "٢"].map(index), [Some(0), Some(-1), Some(1), Some(2)]);
        assert_eq!(["", "-", "+1", "1 ", "x"].map(index), [None; 5]);
        assert_eq!(index(&"9".repeat(100)), Some(i64::MAX));
    }

    #[test]
    fn values_are_ordered_as_in_python() {
        let check = |a: &str, b: &str, expected: Option<Ordering>| {
            assert_eq!(
                order(&json(a), &json(b), &mut Meter::new(&Limits::default())),
                Ok(expected),
                "{a} {b}"
            );
        };
        check("\"10\"", "\"9\"", Some(Ordering::Greater));
        check("\"10\"", "\"9a\"", Some(Ordering::Less));
        check("\"1e3\"", "5", None);
        check("\" 2.5 \"", "true", Some(Ordering::Greater));
        check("null", "null", None);
        check("{}", "{}", None);
        check("[null, 1]", "[null, 2]", Some(Ordering::Less));
        check("[null]", "[null]", Some(Ordering::Equal));
        check("[1]", "[\"1\"]", None);
        check(r#"["10"]"#, r#"["9"]"#, Some(Ordering::Less));
        check("[1, 2]", "[1]", Some(Ordering::Greater));
    }
}
