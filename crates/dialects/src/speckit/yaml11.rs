//! YAML 1.1 as read by Python's safe loader, for which Spec Kit files are written. The tree comes from a YAML 1.2
//! reader; this pass corrects every plain scalar that the two versions read differently.
//!
//! A corrected scalar states its type by its tag and, if needed, by a spelling that both versions share; its location
//! is kept. Keys stay as written; only keys that are equal in Python are reported here. Where a key is compared with
//! values, such as the cases of a switch, [`python_key`] provides the text to compare.

use crate::text::{Entry, Key, Kind, Mapping, Node, Scalar, Style};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::expr::{Semantics, text_form};
use windlass_ir::{Code, Diagnostic, Span, Value};

pub fn resolve(node: &mut Node, findings: &mut Vec<Diagnostic>) {
    match &mut node.kind {
        Kind::Scalar(scalar) => resolve_scalar(scalar, node.span, findings),
        Kind::List(items) => items.iter_mut().for_each(|item| resolve(item, findings)),
        Kind::Map(map) => {
            drop_equal_keys(map, findings);
            map.entries.iter_mut().for_each(|entry| resolve(&mut entry.value, findings));
        }
    }
}

/// Gives the scalars of a valid file the values that Python reads.
pub fn resolve_scalars(node: &mut Node) {
    resolve(node, &mut Vec::new());
}

fn resolve_scalar(scalar: &mut Scalar, span: Span, findings: &mut Vec<Diagnostic>) {
    if scalar.style != Style::Plain || scalar.tag.is_some() {
        return;
    }
    if is_date(&scalar.text) {
        let message = format!("YAML reads `{}` as a date; Windlass reads it as a string", scalar.text);
        let finding = Diagnostic::warning(Code::YamlDate, message).at(span).reference(&*scalar.text);
        findings.push(finding.help(format!("put it in quotes: \"{}\"", scalar.text)));
    }
    let value = plain(&scalar.text);
    if scalar.to_value() == value {
        return;
    }
    let (text, kind) = match value {
        Value::Null => (scalar.text.clone(), "null"),
        Value::Bool(flag) => (Arc::from(if flag { "true" } else { "false" }), "bool"),
        Value::Int(int) => (Arc::from(int.to_string()), "int"),
        Value::Float(float) => (float_text(float), "float"),
        Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => (scalar.text.clone(), "str"),
    };
    scalar.text = text;
    scalar.tag = Some(format!("tag:yaml.org,2002:{kind}").into());
}

/// A spelling that a YAML 1.2 reader reads as the same float.
fn float_text(float: f64) -> Arc<str> {
    match float {
        float if float.is_nan() => ".nan".into(),
        f64::INFINITY => ".inf".into(),
        f64::NEG_INFINITY => "-.inf".into(),
        float => format!("{float:?}").into(),
    }
}

/// The text of a key that is compared with values: what Python prints for it.
pub fn python_key(key: &Key) -> Arc<str> {
    printed(key).unwrap_or_else(|| key.text.clone())
}

/// The text that Python prints for a key that is not a string.
fn printed(key: &Key) -> Option<Arc<str>> {
    if key.style != Style::Plain {
        return None;
    }
    match plain(&key.text) {
        Value::Text(_) | Value::Sealed(_) | Value::List(_) | Value::Map(_) => None,
        Value::Null => Some("None".into()),
        value @ (Value::Bool(_) | Value::Int(_) | Value::Float(_)) => {
            text_form(&value, &Semantics::SPECKIT).ok()
        }
    }
}

/// `1` and `"1"`, or `yes` and `true`, are the same key once they are compared by their text.
fn drop_equal_keys(map: &mut Mapping, findings: &mut Vec<Diagnostic>) {
    if map.entries.iter().all(|entry| printed(&entry.key).is_none()) {
        return;
    }
    let mut first: HashMap<Arc<str>, Span> = HashMap::new();
    map.entries.retain(|Entry { key, .. }| {
        let text = python_key(key);
        let Some(earlier) = first.get(&text) else {
            first.insert(text, key.span);
            return true;
        };
        let message = format!("duplicate key `{}` in two spellings", key.text);
        let finding = Diagnostic::error(Code::DuplicateKey, message).at(key.span).reference(&*key.text);
        findings.push(finding.label(*earlier, "first given here").help("remove or rename one of them"));
        false
    });
}

/// The meaning of a plain scalar.
pub fn plain(text: &str) -> Value {
    let number = || integer(text).or_else(|| float(text).map(Value::Float));
    let value = match text.as_bytes().first() {
        None | Some(b'~') => null(text),
        Some(b'n' | b'N') => null(text).or_else(|| boolean(text)),
        Some(b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') => boolean(text),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number(),
        Some(_) => None,
    };
    value.unwrap_or_else(|| Value::text(text))
}

fn null(text: &str) -> Option<Value> {
    matches!(text, "" | "~" | "null" | "Null" | "NULL").then_some(Value::Null)
}

fn boolean(text: &str) -> Option<Value> {
    let is_one_case =
        [str::to_ascii_lowercase, str::to_ascii_uppercase].iter().any(|case| case(text) == text)
            || text.get(1..).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_lowercase()));
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" if is_one_case => Some(Value::Bool(true)),
        "no" | "false" | "off" if is_one_case => Some(Value::Bool(false)),
        _ => None,
    }
}

fn unsigned(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        Some(_) | None => (false, text),
    }
}

/// Binary, octal with a leading zero, decimal, hexadecimal, and base sixty (`1:30`), all with underscores.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = unsigned(text);
    let plain = digits.replace('_', "");
    let magnitude = match digits.as_bytes() {
        [b'0', b'b', ..] => in_radix(plain.get(2..)?, 2),
        [b'0', b'x', ..] => in_radix(plain.get(2..)?, 16),
        [b'0', ..] if plain == "0" => Some(Magnitude::ZERO),
        [b'0', ..] => in_radix(plain.get(1..)?, 8),
        [b'1'..=b'9', ..] if digits.contains(':') => base_sixty(digits),
        [b'1'..=b'9', ..] => in_radix(&plain, 10),
        _ => None,
    };
    magnitude.map(|magnitude| magnitude.signed(negative))
}

/// A number without its sign: exact if possible, otherwise the nearest float.
#[derive(Clone, Copy)]
enum Magnitude {
    Exact(u128),
    Rough(f64),
}

impl Magnitude {
    const ZERO: Self = Self::Exact(0);

    /// Appends a digit.
    fn then(self, base: u32, digit: u32) -> Self {
        let exact = match self {
            Self::Exact(number) => number.checked_mul(base.into()).and_then(|n| n.checked_add(digit.into())),
            Self::Rough(_) => None,
        };
        let rough = || Self::Rough(self.float() * f64::from(base) + f64::from(digit));
        exact.map_or_else(rough, Self::Exact)
    }

    fn float(self) -> f64 {
        match self {
            Self::Exact(number) => number as f64,
            Self::Rough(number) => number,
        }
    }

    /// An integer beyond 64 signed bits becomes a float.
    fn signed(self, negative: bool) -> Value {
        let exact = match self {
            Self::Exact(number) => i128::try_from(number).ok(),
            Self::Rough(_) => None,
        };
        let exact = exact.and_then(|number| i64::try_from(if negative { -number } else { number }).ok());
        let float = if negative { -self.float() } else { self.float() };
        exact.map_or(Value::Float(float), Value::Int)
    }
}

fn in_radix(digits: &str, radix: u32) -> Option<Magnitude> {
    if digits.is_empty() {
        return None;
    }
    let mut digits = digits.chars().map(|digit| digit.to_digit(radix));
    digits.try_fold(Magnitude::ZERO, |number, digit| Some(number.then(radix, digit?)))
}

/// `1:30` is ninety. All parts but the first are one or two digits below sixty.
fn base_sixty(digits: &str) -> Option<Magnitude> {
    let mut parts = digits.split(':');
    let first = in_radix(&parts.next()?.replace('_', ""), 10)?;
    parts.try_fold(first, |number, part| Some(number.then(60, sixtieth(part)?)))
}

fn sixtieth(part: &str) -> Option<u32> {
    let is_short = matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    if is_short { part.parse().ok() } else { None }
}

/// A decimal point is required, and an exponent must have a sign: `1e3` and `1.5e3` are strings.
fn float(text: &str) -> Option<f64> {
    let (negative, digits) = unsigned(text);
    let sign = if negative { -1.0 } else { 1.0 };
    match digits {
        ".inf" | ".Inf" | ".INF" => return Some(sign * f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if digits.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    let (whole, fraction) = digits.split_once('.')?;
    if whole.contains(':') {
        return Some(sign * (base_sixty(whole)?.float() + fraction_of(fraction)?));
    }
    let (fraction, exponent) = match fraction.find(['e', 'E']) {
        Some(at) => (&fraction[..at], Some(&fraction[at + 1..])),
        None => (fraction, None),
    };
    let whole_fits = whole.starts_with(|c: char| c.is_ascii_digit()) && is_digits(whole);
    // With a sign, a leading decimal point makes it a string; so does a fraction without digits.
    let point_first =
        whole.is_empty() && digits.len() == text.len() && fraction.starts_with(|c: char| c.is_ascii_digit());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    if !(whole_fits || point_first) || !is_digits(fraction) || !exponent_fits {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}

fn fraction_of(digits: &str) -> Option<f64> {
    if !is_digits(digits) {
        return None;
    }
    format!("0.{}", digits.replace('_', "")).parse().ok()
}

/// `2027-01-31`, optionally followed by a time.
pub fn is_date(text: &str) -> bool {
    let Some((date, time)) = split_date(text) else { return false };
    let padded = date.iter().skip(1).all(|part| part.len() == 2);
    match time {
        "" => padded,
        time => is_time(time),
    }
}

fn split_date(text: &str) -> Option<([&str; 3], &str)> {
    let (year, rest) = text.split_once('-')?;
    let (month, rest) = rest.split_once('-')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (day, time) = rest.split_at(end);
    let numbers = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    (numbers(year, 4..=4) && numbers(month, 1..=2) && numbers(day, 1..=2))
        .then_some(([year, month, day], time))
}

/// Hours, minutes and seconds after a `T` or blanks, then a fraction and an offset.
fn is_time(text: &str) -> bool {
    let time = text.strip_prefix(['T', 't']).unwrap_or_else(|| text.trim_start_matches([' ', '\t']));
    let starts = text.starts_with(['T', 't', ' ', '\t']);
    let parts: Vec<&str> = time.splitn(3, ':').collect();
    let [hour, minute, rest] = parts[..] else { return false };
    let seconds = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (second, rest) = rest.split_at(seconds);
    let rest =
        rest.strip_prefix('.').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    starts && is_number(hour, 2) && is_whole(minute) && is_whole(second) && is_offset(rest)
}

/// Nothing, `Z`, or hours and perhaps minutes after a sign.
fn is_offset(text: &str) -> bool {
    match text.trim_start_matches([' ', '\t']) {
        "" => text.is_empty(),
        "Z" => true,
        offset => offset.strip_prefix(['+', '-']).is_some_and(|offset| match offset.split_once(':') {
            Some((hour, minute)) => is_number(hour, 2) && is_whole(minute),
            None => is_number(offset, 2),
        }),
    }
}

fn is_number(text: &str, digits_max: usize) -> bool {
    (1..=digits_max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_whole(text: &str) -> bool {
    text.len() == 2 && is_number(text, 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, Limits, read};
    use windlass_ir::{Source, SourceId};

    fn resolved(yaml: &str) -> (String, Vec<&'static str>) {
        let source = Source::new("f", yaml);
        let mut root = read(&source, SourceId(0), Format::Yaml, &Limits::default()).root.expect("readable");
        let mut findings = Vec::new();
        resolve(&mut root, &mut findings);
        let codes = findings.iter().map(|finding| finding.code.as_str()).collect();
        (format!("{:?}", root.to_value()), codes)
    }

    fn check(texts: &str, expected: &Value) {
        for text in texts.split(' ') {
            let value = format!("{:?}", Value::list([expected.clone()]));
            assert_eq!(resolved(&format!("- {text}\n")).0, value, "{text}");
        }
    }

    #[test]
    fn booleans_and_nulls() {
        check("yes Yes YES on On ON true True TRUE", &Value::Bool(true));
        check("no No NO off Off OFF false False FALSE", &Value::Bool(false));
        check("~ null Null NULL", &Value::Null);
        for text in ["yES", "oN", "y", "n", "tRUE", "nUll"] {
            check(text, &Value::text(text));
        }
    }

    #[test]
    fn numbers() {
        check("12 +12 1_2 0b1100 014 0_14 0xC 0x_c", &Value::Int(12));
        check("-12 -0b1100 -014 -0xC", &Value::Int(-12));
        check("1:30 +1:30 0x5A", &Value::Int(90));
        check("1:30:00", &Value::Int(5400));
        check("9223372036854775807 0x7fffffffffffffff 0777777777777777777777", &Value::Int(i64::MAX));
        check("-9223372036854775808 -0x8000000000000000 -01000000000000000000000", &Value::Int(i64::MIN));
        check("9007199254740993 0x20000000000001 0400000000000000001", &Value::Int(9_007_199_254_740_993));
        check(&format!("0b1{}1", "0".repeat(52)), &Value::Int(9_007_199_254_740_993));
        check("150119987579016:33", &Value::Int(9_007_199_254_740_993));
        check("9223372036854775808 0x8000000000000000", &Value::Float(9_223_372_036_854_775_808.0));
        check(&format!("0x1{}", "0".repeat(64)), &Value::Float(2.0_f64.powi(256)));
        check("0 -0 00 0_", &Value::Int(0));
        check("1.5 +1.5 1.5_0 0.15e+1 15.e-1 01.5", &Value::Float(1.5));
        check(".5 0.5 5.0e-1", &Value::Float(0.5));
        check("1:30.5", &Value::Float(90.5));
        check(".inf +.inf", &Value::Float(f64::INFINITY));
        check(".nan", &Value::Float(f64::NAN));
    }

    #[test]
    fn strings_that_look_like_numbers() {
        for text in
            ["1e3", "1.5e3", "08", "0o14", "-.5", "1:60", "0b", "0x", "0xg", "1.2.3", "+", "_1", "1:30.x"]
        {
            check(text, &Value::text(text));
        }
    }

    #[test]
    fn quotes_and_tags_are_kept() {
        assert_eq!(
            resolved("[\"yes\", '1:30', !!str on, !!int 012]").0,
            "List([Text(\"yes\"), Text(\"1:30\"), Text(\"on\"), Int(12)])"
        );
    }

    #[test]
    fn dates_are_strings_with_a_warning() {
        for text in ["2027-01-31", "2027-1-3T4:05:06", "2027-01-31 04:05:06.7 +1:00", "2027-01-31t04:05:06Z"]
        {
            let (value, codes) = resolved(&format!("- {text}\n"));
            assert_eq!(
                (value, codes),
                (format!("{:?}", Value::list([Value::text(text)])), vec!["yaml_date"]),
                "{text}"
            );
        }
        for text in ["2027-1-3", "2027-01-31x", "27-01-31", "2027-01-31T04:05", "1-2-3"] {
            assert_eq!(resolved(&format!("- {text}\n")).1, [""; 0], "{text}");
        }
    }

    #[test]
    fn keys_are_kept_and_compared_as_python_prints_them() {
        let check = |written: &str, expected: &str| {
            let source = Source::new("f", format!("{written}: 1\n"));
            let mut root =
                read(&source, SourceId(0), Format::Yaml, &Limits::default()).root.expect("readable");
            resolve(&mut root, &mut Vec::new());
            let Kind::Map(map) = &root.kind else { panic!("a mapping") };
            let key = &map.entries[0].key;
            assert_eq!((&*key.text, &*python_key(key)), (written.trim_matches('"'), expected));
        };
        check("yes", "True");
        check("off", "False");
        check("~", "None");
        check("1", "1");
        check("0x10", "16");
        check("1.0", "1.0");
        check("1.50", "1.5");
        check("\"yes\"", "yes");
        check("feature", "feature");
        assert_eq!(resolved("{0x10: a, 16: b, yes: c, true: d}").1, ["duplicate_key", "duplicate_key"]);
    }
}
