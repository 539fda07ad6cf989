//! Formats JSON, strings and times the way Python does.

use serde_json::Value as Json;
use windlass_ir::Value;
use windlass_ir::expr::{Semantics, text_form};
use windlass_runtime::Timestamp;

/// Whether to keep non-ASCII characters unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters {
    Ascii,
    All,
}

/// Like `json.dumps` with an indent of 2.
pub fn pretty(json: &Json, letters: Letters) -> String {
    let mut out = String::new();
    write(&mut out, json, letters, Some(0));
    out
}

/// Like `json.dumps` on one line.
pub fn line(json: &Json, letters: Letters) -> String {
    let mut out = String::new();
    write(&mut out, json, letters, None);
    out
}

fn write(out: &mut String, json: &Json, letters: Letters, indent: Option<usize>) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Json::Number(number) => out.push_str(&shown(number)),
        Json::String(text) => string(out, text, letters),
        Json::Array(items) if items.is_empty() => out.push_str("[]"),
        Json::Object(members) if members.is_empty() => out.push_str("{}"),
        Json::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                separate(out, number, indent);
                write(out, item, letters, indent.map(|indent| indent + 2));
            }
            close(out, ']', indent);
        }
        Json::Object(members) => {
            out.push('{');
            for (number, (name, member)) in members.iter().enumerate() {
                separate(out, number, indent);
                string(out, name, letters);
                out.push_str(": ");
                write(out, member, letters, indent.map(|indent| indent + 2));
            }
            close(out, '}', indent);
        }
    }
}

fn separate(out: &mut String, number: usize, indent: Option<usize>) {
    match indent {
        Some(indent) => {
            out.push_str(if number > 0 { ",\n" } else { "\n" });
            out.push_str(&" ".repeat(indent + 2));
        }
        None if number > 0 => out.push_str(", "),
        None => {}
    }
}

fn close(out: &mut String, bracket: char, indent: Option<usize>) {
    if let Some(indent) = indent {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    }
    out.push(bracket);
}

fn shown(number: &serde_json::Number) -> String {
    let float = number.as_f64().filter(|_| number.is_f64());
    let text = float.and_then(|float| text_form(&Value::Float(float), &Semantics::SPECKIT).ok());
    text.map_or_else(|| number.to_string(), |text| text.to_string())
}

fn string(out: &mut String, text: &str, letters: Letters) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(letter),
            letter if letters == Letters::All && letter >= '\u{7f}' => out.push(letter),
            letter => {
                let mut units = [0; 2];
                letter.encode_utf16(&mut units).iter().for_each(|unit| *out += &format!("\\u{unit:04x}"));
            }
        }
    }
    out.push('"');
}

/// A quoted string.
pub fn repr(text: &str) -> String {
    let list = text_form(&Value::list([Value::text(text)]), &Semantics::SPECKIT).unwrap_or_default();
    list.trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// A time in UTC, without microseconds if they are zero.
pub fn isoformat(at: Timestamp) -> String {
    let Ok(time) = jiff::Timestamp::from_microsecond(at.0) else { return String::new() };
    let fraction = at.0.rem_euclid(1_000_000);
    let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    format!("{}{fraction}+00:00", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_written_as_python_writes_it() {
        let data =
            json!({"é": ["😀\n\u{7f}\u{1}", 1e20, 1.0, 3, null], "empty": {}, "list": [], "in": {"a": true}});
        let expected = "{\n  \"\\u00e9\": [\n    \"\\ud83d\\ude00\\n\\u007f\\u0001\",\n    1e+20,\n    1.0,\n    3,\n    null\n  ],\n  \"empty\": {},\n  \"list\": [],\n  \"in\": {\n    \"a\": true\n  }\n}";
        assert_eq!(pretty(&data, Letters::Ascii), expected);
        let one = line(&json!({"é": ["a", 1]}), Letters::All);
        assert_eq!(one, "{\"é\": [\"a\", 1]}");
        assert_eq!(repr("it's"), "\"it's\"");
    }

    #[test]
    fn times_are_in_utc() {
        assert_eq!(isoformat(Timestamp(1_800_000_000_000_000)), "2027-01-15T08:00:00+00:00");
        assert_eq!(isoformat(Timestamp(1_800_000_000_000_050)), "2027-01-15T08:00:00.000050+00:00");
    }
}
