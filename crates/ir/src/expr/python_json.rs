//! JSON as Python's library reads and writes it: `NaN` and `Infinity` are accepted, a float may overflow, and `-0` is
//! an integer. Keys keep their order, and commas and colons are followed by blanks.

use super::eval::{EvalError, Meter, sealed};
use super::python::{PLAIN_BYTES, float_text, number};
use crate::value::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

/// The maximum nesting of lists and objects. Expressions refuse deeper values as well.
const DEPTH_MAX: usize = 256;

/// Parses a text, or says why it is invalid. The caller has already been charged for the elements.
pub fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.blanks();
    if reader.at < text.len() { Err(reader.wrong("unexpected text after the value")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn wrong(&self, what: &str) -> String {
        let line = self.text[..self.at].matches('\n').count() + 1;
        let before = self.text[..self.at].rsplit('\n').next().unwrap_or_default();
        format!("{what} at line {line} column {}", before.chars().count() + 1)
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn value(&mut self) -> Result<Value, String> {
        const WORDS: [(&str, Value); 6] = [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
            ("NaN", Value::Float(f64::NAN)),
            ("Infinity", Value::Float(f64::INFINITY)),
            ("-Infinity", Value::Float(f64::NEG_INFINITY)),
        ];
        self.blanks();
        match self.rest().bytes().next() {
            Some(b'"') => self.string().map(Value::text),
            Some(b'[') => self.nested(Self::list),
            Some(b'{') => self.nested(Self::object),
            _ => match WORDS.into_iter().find(|(word, _)| self.take(word)) {
                Some((_, value)) => Ok(value),
                None => self.number(),
            },
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong("the value is nested too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        self.blanks();
        let value = inside(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        if self.take("]") {
            return Ok(Value::list(items));
        }
        loop {
            items.push(self.value()?);
            if !self.goes_on("]")? {
                return Ok(Value::list(items));
            }
        }
    }

    /// A repeated key keeps its first position and its last value.
    fn object(&mut self) -> Result<Value, String> {
        let mut map = Map::new();
        if self.take("}") {
            return Ok(Value::Map(Arc::new(map)));
        }
        loop {
            self.blanks();
            if !self.rest().starts_with('"') {
                return Err(self.wrong("expected a key in double quotes"));
            }
            let key = self.string()?;
            self.blanks();
            if !self.take(":") {
                return Err(self.wrong("`:` is missing"));
            }
            map.insert(key.into(), self.value()?);
            if !self.goes_on("}")? {
                return Ok(Value::Map(Arc::new(map)));
            }
        }
    }

    fn goes_on(&mut self, close: &str) -> Result<bool, String> {
        self.blanks();
        if self.take(close) {
            Ok(false)
        } else if self.take(",") {
            Ok(true)
        } else {
            Err(self.wrong(&format!("expected `,` or `{close}`")))
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let length = number_length(self.rest());
        let digits = &self.rest()[..length];
        let value = match digits.contains(['.', 'e', 'E']) {
            true => digits.parse().ok().map(Value::Float),
            false => number(digits),
        };
        let value = value.ok_or_else(|| self.wrong("expected a value"))?;
        self.at += length;
        Ok(value)
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|c: char| matches!(c, '"' | '\\') || c < ' ').unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.rest().bytes().next() {
                Some(b'"') => break,
                Some(b'\\') => out.push(self.escape()?),
                Some(_) => return Err(self.wrong("control character in a string")),
                None => return Err(self.wrong("unterminated string")),
            }
        }
        self.at += 1;
        Ok(out)
    }

    fn escape(&mut self) -> Result<char, String> {
        let found = match self.rest().as_bytes().get(1) {
            Some(b'"') => Some(('"', 2)),
            Some(b'\\') => Some(('\\', 2)),
            Some(b'/') => Some(('/', 2)),
            Some(b'b') => Some(('\u{8}', 2)),
            Some(b'f') => Some(('\u{c}', 2)),
            Some(b'n') => Some(('\n', 2)),
            Some(b'r') => Some(('\r', 2)),
            Some(b't') => Some(('\t', 2)),
            Some(b'u') => unicode_escape(self.rest()),
            Some(_) | None => None,
        };
        let (letter, length) = found.ok_or_else(|| self.wrong("invalid escape sequence"))?;
        self.at += length;
        Ok(letter)
    }
}

/// The longest number at the start; a decimal point or exponent without digits is not part of it.
fn number_length(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with('-'));
    let whole = if text[sign..].starts_with('0') { 1 } else { digits(sign) };
    let mut end = sign + whole;
    if whole > 0 && text[end..].starts_with('.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if whole > 0 && text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        let exponent = digits(end + 1 + sign);
        end += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    end
}

/// Parses `\u` and four digits, or two of them for a character beyond 16 bits. Half of a surrogate pair is invalid.
fn unicode_escape(text: &str) -> Option<(char, usize)> {
    let high = code_unit(text)?;
    if let Some(letter) = char::from_u32(high.into()) {
        return Some((letter, 6));
    }
    let low = code_unit(text.get(6..)?)?;
    let letter = char::decode_utf16([high, low]).next()?.ok()?;
    Some((letter, 12))
}

fn code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Why a value cannot be written as JSON.
pub enum Unwritable {
    /// JSON cannot represent this number.
    Number(f64),
    Error(EvalError),
}

impl From<EvalError> for Unwritable {
    fn from(error: EvalError) -> Self {
        Self::Error(error)
    }
}

/// Appends the JSON of a value.
pub fn write(value: &Value, out: &mut String, meter: &mut Meter) -> Result<(), Unwritable> {
    meter.make(PLAIN_BYTES)?;
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Value::Float(float) if float.is_finite() => float_text(*float, out),
        Value::Float(float) => return Err(Unwritable::Number(*float)),
        Value::Text(text) => quoted(text, out, meter)?,
        Value::Sealed(_) => return Err(sealed("converted to JSON").into()),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                out.push_str(if place > 0 { ", " } else { "" });
                write(item, out, meter)?;
            }
            out.push(']');
        }
        Value::Map(map) => write_object(map, out, meter)?,
    }
    Ok(())
}

fn write_object(map: &Map, out: &mut String, meter: &mut Meter) -> Result<(), Unwritable> {
    let mut entries: Vec<(&Arc<str>, &Value)> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (place, (key, item)) in entries.into_iter().enumerate() {
        out.push_str(if place > 0 { ", " } else { "" });
        quoted(key, out, meter)?;
        out.push_str(": ");
        write(item, out, meter)?;
    }
    out.push('}');
    Ok(())
}

/// Characters beyond ASCII are not escaped.
fn quoted(text: &str, out: &mut String, meter: &mut Meter) -> Result<(), EvalError> {
    meter.make(text.len())?;
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Limits, Semantics, text_form};

    /// Compares with Python's own text form, which distinguishes all numbers.
    fn check(text: &str, expected: Option<&str>) {
        let shown = read(text).ok().map(|value| text_form(&value, &Semantics::SPECKIT).expect("no secrets"));
        assert_eq!(shown.as_deref(), expected, "{text}");
    }

    #[test]
    fn parses_values() {
        check(
            " {\"b\" : [1, 2.0 ,-0, -0.0, 1e2, 1E400]\n, \"a\":{} , \"b\":[ ]} ",
            Some("{'b': [], 'a': {}}"),
        );
        check("[1, 2.0, -0, -0.0, 1e2, 1E400]", Some("[1, 2.0, 0, -0.0, 100.0, inf]"));
        check("[NaN, Infinity, -Infinity, null, true]", Some("[nan, inf, -inf, None, True]"));
        check(r#"["\ud83d\udc4d\u00e9\/\b\f", "é"]"#, Some(r"['👍é/\x08\x0c', 'é']"));
        check("12345678901234567890", Some("1.2345678901234567e+19"));
        for text in [
            "",
            "{oops",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{1:2}",
            "[1 2]",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "- 1",
            "-",
            "nan",
            "'a'",
            "\"a",
            "\"\n\"",
            r#""\x""#,
            r#""\ud800""#,
            r#""\u12""#,
            r#""\u+123""#,
            "1 1",
            "\u{feff}1",
            "tru",
        ] {
            check(text, None);
        }
        let deep = |levels: usize| read(&("[".repeat(levels) + &"]".repeat(levels))).is_ok();
        assert_eq!((deep(DEPTH_MAX), deep(DEPTH_MAX + 1), deep(1 << 20)), (true, false, false));
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(read("{\n \"é\": x}"), Err("expected a value at line 2 column 7".into()));
    }

    #[test]
    fn writes_values() {
        let value: Value =
            serde_json::from_str(r#"{"b": [1, 1e20, 1.0], "a": "é\"\\\n\u0001\u007f"}"#).expect("JSON");
        let mut out = String::new();
        assert!(write(&value, &mut out, &mut Meter::new(&Limits::default())).is_ok());
        assert_eq!(out, "{\"a\": \"é\\\"\\\\\\n\\u0001\u{7f}\", \"b\": [1, 1e+20, 1.0]}");
        let infinite = Value::list([Value::Float(f64::INFINITY)]);
        let refused = write(&infinite, &mut out, &mut Meter::new(&Limits::default()));
        assert!(matches!(refused, Err(Unwritable::Number(_))));
    }
}
