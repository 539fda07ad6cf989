//! The meaning of scalars: the YAML 1.2 core schema, which includes JSON's.

use super::{Scalar, Style};
use windlass_ir::Value;

const TAG_PREFIX: &str = "tag:yaml.org,2002:";

impl Scalar {
    /// The value of this scalar. An explicit tag takes precedence over the style; text that does not match its tag
    /// stays text (the parser has reported it).
    pub fn to_value(&self) -> Value {
        match &self.tag {
            None if self.style == Style::Plain => plain(&self.text).unwrap_or_else(|| self.as_text()),
            None => self.as_text(),
            Some(tag) => tagged(tag, &self.text).unwrap_or_else(|| self.as_text()),
        }
    }

    /// Whether a core tag contradicts the text, as in `!!int abc`.
    pub(super) fn contradicts_its_tag(&self) -> bool {
        let Some(name) = self.tag.as_deref().and_then(|tag| tag.strip_prefix(TAG_PREFIX)) else {
            return false;
        };
        match name {
            "int" | "float" | "bool" | "null" => tagged_as(name, &self.text).is_none(),
            "map" | "seq" => true,
            _ => false,
        }
    }

    fn as_text(&self) -> Value {
        Value::Text(self.text.clone())
    }
}

fn tagged(tag: &str, text: &str) -> Option<Value> {
    tagged_as(tag.strip_prefix(TAG_PREFIX)?, text)
}

fn tagged_as(name: &str, text: &str) -> Option<Value> {
    match name {
        "null" => null(text),
        "bool" => boolean(text),
        "int" => integer(text),
        "float" => match number(text)? {
            Value::Int(int) => Some(Value::Float(int as f64)),
            float => Some(float),
        },
        _ => None,
    }
}

/// The value of a plain scalar unless it is a string. The first character determines which rule can apply.
fn plain(text: &str) -> Option<Value> {
    match text.as_bytes().first() {
        None | Some(b'~' | b'n' | b'N') => null(text),
        Some(b't' | b'T' | b'f' | b'F') => boolean(text),
        Some(b'0'..=b'9' | b'+' | b'-' | b'.') => number(text),
        Some(_) => None,
    }
}

fn null(text: &str) -> Option<Value> {
    matches!(text, "" | "~" | "null" | "Null" | "NULL").then_some(Value::Null)
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    integer(text).or_else(|| float(text).map(Value::Float))
}

/// An integer beyond 64 signed bits becomes a float.
fn integer(text: &str) -> Option<Value> {
    if let Some(digits) = text.strip_prefix("0o") {
        return in_radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return in_radix(digits, 16);
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::Float)).ok()
}

fn in_radix(digits: &str, radix: u32) -> Option<Value> {
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let large = || {
        digits
            .chars()
            .filter_map(|c| c.to_digit(radix))
            .fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(digit))
    };
    Some(i64::from_str_radix(digits, radix).map_or_else(|_| Value::Float(large()), Value::Int))
}

fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" if text.starts_with('-') => return Some(f64::NEG_INFINITY),
        ".inf" | ".Inf" | ".INF" => return Some(f64::INFINITY),
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == text.len() => return Some(f64::NAN),
        _ => {}
    }
    // At this point only digits, one decimal point and an exponent are left, which the standard library parses like
    // YAML; its words ("inf", "nan", "infinity") do not start like this.
    let starts_as_number = match unsigned.as_bytes() {
        [b'0'..=b'9', ..] => true,
        [b'.', second, ..] => second.is_ascii_digit(),
        _ => false,
    };
    if starts_as_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, style: Style, tag: Option<&str>, expected: &Value) {
        let tag = tag.map(|name| format!("{TAG_PREFIX}{name}").into());
        let value = Scalar { text: text.into(), style, tag }.to_value();
        // Compared as text, because NaN is not equal to itself and 3 is equal to 3.0.
        assert_eq!(format!("{value:?}"), format!("{expected:?}"), "{text:?}");
    }

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let plain = |texts: &[&str], expected: Value| {
            for text in texts {
                check(text, Style::Plain, None, &expected);
            }
        };
        plain(&["", "~", "null", "Null", "NULL"], Value::Null);
        plain(&["true", "True", "TRUE"], Value::Bool(true));
        plain(&["false", "False", "FALSE"], Value::Bool(false));
        plain(&["12", "+12", "012", "0o14", "0xC", "0xc"], Value::Int(12));
        plain(&["-12"], Value::Int(-12));
        plain(&["9223372036854775807"], Value::Int(i64::MAX));
        plain(&["-9223372036854775808"], Value::Int(i64::MIN));
        plain(&["9223372036854775808", "0x8000000000000000"], Value::Float(9_223_372_036_854_775_808.0));
        plain(&["1.5", "+1.5", "15e-1", ".15e1", "1.5E+0", "01.5"], Value::Float(1.5));
        plain(&["1.", "1e0"], Value::Float(1.0));
        plain(&["-.5"], Value::Float(-0.5));
        plain(&[".inf", ".Inf", "+.INF"], Value::Float(f64::INFINITY));
        plain(&["-.inf"], Value::Float(f64::NEG_INFINITY));
        plain(&[".nan", ".NaN", ".NAN"], Value::Float(f64::NAN));
    }

    #[test]
    fn everything_else_is_a_string() {
        let words = "yes no on off y n True? nUll tRUE inf nan infinity -inf +.nan -.nan . + - -- .e5 ._ 1e 1e+ 0o8 0o 0x \
                     0xg -0x1 0b1 1_000 1,000 12:30 1.2.3 0o-1 0x+1 2024-01-01 ~~ 1s ½ ٣";
        for text in words.split(' ').chain(["1 2", " ", "1\n"]) {
            check(text, Style::Plain, None, &Value::text(text));
        }
    }

    #[test]
    fn quoted_and_block_scalars_are_strings() {
        for style in [Style::SingleQuoted, Style::DoubleQuoted, Style::Literal, Style::Folded] {
            check("12", style, None, &Value::text("12"));
            check("", style, None, &Value::text(""));
            check("true", style, None, &Value::text("true"));
        }
    }

    #[test]
    fn a_tag_takes_precedence() {
        check("12", Style::Plain, Some("str"), &Value::text("12"));
        check("", Style::Plain, Some("str"), &Value::text(""));
        check("12", Style::DoubleQuoted, Some("int"), &Value::Int(12));
        check("3", Style::Plain, Some("float"), &Value::Float(3.0));
        check("true", Style::SingleQuoted, Some("bool"), &Value::Bool(true));
        check("", Style::DoubleQuoted, Some("null"), &Value::Null);
        check("12", Style::Plain, Some("timestamp"), &Value::text("12"));
        check("3.0", Style::Plain, Some("int"), &Value::text("3.0"));
    }

    #[test]
    fn contradicting_tags_are_detected() {
        let contradicts = |text: &str, tag: &str| {
            Scalar { text: text.into(), style: Style::Plain, tag: Some(tag.into()) }.contradicts_its_tag()
        };
        assert!(contradicts("abc", "tag:yaml.org,2002:int"));
        assert!(contradicts("yes", "tag:yaml.org,2002:bool"));
        assert!(contradicts("", "tag:yaml.org,2002:map"));
        assert!(!contradicts("12", "tag:yaml.org,2002:int"));
        assert!(!contradicts("abc", "tag:yaml.org,2002:str"));
        assert!(!contradicts("abc", "!own"));
    }
}
