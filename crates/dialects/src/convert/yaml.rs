//! Writes data as readable YAML. Short lists and mappings take one line, multiline text uses blocks, and quotes
//! appear only where a YAML reader needs them.

use crate::fmt::scalar::{Place, is_bare};
use std::fmt::Write;
use windlass_ir::Value;

/// The preferred maximum line length.
const WIDTH: usize = 100;
/// The maximum nesting of collections on one line.
const FLOW_DEPTH: usize = 3;
/// Longer keys need the explicit `?` form, because readers look for the colon only within a limited distance.
const KEY_CHARS_MAX: usize = 500;

#[derive(Clone, Debug, PartialEq)]
pub enum Yaml {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    /// A number, a boolean or null, as it is written without quotes.
    Plain(String),
    Text(String),
    List(Vec<Yaml>),
    /// A list whose entries each take their own lines, however short.
    Lines(Vec<Yaml>),
    Map(Map),
}

/// Entries in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: Vec<(String, Yaml)>,
    /// Whether it takes its own lines, however short.
    in_lines: bool,
}

impl Map {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn in_lines() -> Self {
        Self { entries: Vec::new(), in_lines: true }
    }

    pub fn put(&mut self, key: impl Into<String>, value: impl Into<Yaml>) {
        self.entries.push((key.into(), value.into()));
    }

    /// Adds a value if it is present.
    pub fn put_some(&mut self, key: &str, value: Option<impl Into<Yaml>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Adds a list or a mapping if it is not empty.
    pub fn put_filled(&mut self, key: &str, value: impl Into<Yaml>) {
        let value = value.into();
        if !value.is_empty() {
            self.put(key, value);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Yaml {
    fn is_empty(&self) -> bool {
        match self {
            Self::List(items) | Self::Lines(items) => items.is_empty(),
            Self::Map(map) => map.is_empty(),
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Plain(_) | Self::Text(_) => {
                false
            }
        }
    }
}

macro_rules! yaml_from {
    ($($from:ty => $make:expr),* $(,)?) => {
        $(impl From<$from> for Yaml {
            fn from(value: $from) -> Self {
                ($make)(value)
            }
        })*
    };
}

yaml_from! {
    bool => Yaml::Bool,
    u16 => |value| Yaml::Int(i128::from(value)),
    u32 => |value| Yaml::Int(i128::from(value)),
    u64 => |value| Yaml::Int(i128::from(value)),
    i32 => |value| Yaml::Int(i128::from(value)),
    f64 => Yaml::Float,
    &str => |value: &str| Yaml::Text(value.to_owned()),
    &std::sync::Arc<str> => |value: &std::sync::Arc<str>| Yaml::Text(value.to_string()),
    String => Yaml::Text,
    windlass_ir::Duration => |value: windlass_ir::Duration| Yaml::Text(value.to_string()),
    Vec<Yaml> => Yaml::List,
    Map => Yaml::Map,
}

/// Plain data, unchanged.
impl From<&Value> for Yaml {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null | Value::Sealed(_) => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Int(int) => Self::Int(i128::from(*int)),
            Value::Float(float) => Self::Float(*float),
            Value::Text(text) => text.into(),
            Value::List(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Map(map) => {
                let mut out = Map::new();
                map.iter().for_each(|(key, value)| out.put(&**key, value));
                Self::Map(out)
            }
        }
    }
}

/// The text of a file with this top-level mapping and an empty line between its entries.
pub fn document(map: &Map) -> String {
    let mut out = String::new();
    for (at, (key, value)) in map.entries.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        entry(key, value, 0, true, &mut out);
    }
    out
}

/// Writes `key: value` with its line break. The cursor is at the start of the key. `apart` puts empty lines between
/// the entries of a list.
fn entry(key: &str, value: &Yaml, indent: usize, apart: bool, out: &mut String) {
    let key_text = scalar(key, Place::Key);
    let marked = key_text.chars().count() > KEY_CHARS_MAX;
    if marked {
        let _ = write!(out, "? {key_text}\n{}:", " ".repeat(indent));
    } else {
        let _ = write!(out, "{key_text}:");
    }
    let used = if marked { indent + 2 } else { indent + key_text.chars().count() + 2 };
    after_key(value, indent, used, apart, out);
}

fn after_key(value: &Yaml, indent: usize, used: usize, apart: bool, out: &mut String) {
    if let Some(line) = one_line(value, used) {
        let _ = writeln!(out, " {line}");
        return;
    }
    match value {
        Yaml::Text(text) => literal(text, indent + 2, out),
        Yaml::List(_) | Yaml::Lines(_) | Yaml::Map(_) => {
            let _ = write!(out, "\n{}", " ".repeat(indent + 2));
            block(value, indent + 2, apart, out);
        }
        Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) | Yaml::Plain(_) => {}
    }
}

/// Writes a collection on its own lines; the cursor is at the start of the first line.
fn block(value: &Yaml, indent: usize, apart: bool, out: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Yaml::List(items) | Yaml::Lines(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(if apart && matches!(value, Yaml::Lines(_)) { "\n" } else { "" });
                    out.push_str(&margin);
                }
                list_item(item, indent, out);
            }
        }
        Yaml::Map(map) => {
            for (at, (key, value)) in map.entries.iter().enumerate() {
                out.push_str(if at > 0 { &margin } else { "" });
                entry(key, value, indent, false, out);
            }
        }
        Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) | Yaml::Plain(_) | Yaml::Text(_) => {}
    }
}

fn list_item(item: &Yaml, indent: usize, out: &mut String) {
    out.push('-');
    if let Some(line) = one_line(item, indent + 2) {
        let _ = writeln!(out, " {line}");
        return;
    }
    match item {
        Yaml::Text(text) => literal(text, indent + 2, out),
        _ => {
            out.push(' ');
            block(item, indent + 2, false, out);
        }
    }
}

/// The value on one line, if it fits. `used` is the width already taken.
fn one_line(value: &Yaml, used: usize) -> Option<String> {
    match value {
        Yaml::Text(text) if is_block_text(text) => None,
        Yaml::Text(text) => Some(scalar(text, Place::Block)),
        Yaml::Lines(items) if !items.is_empty() => None,
        Yaml::Map(map) if map.in_lines && !map.is_empty() => None,
        Yaml::List(_) | Yaml::Lines(_) | Yaml::Map(_) => {
            let room = WIDTH.saturating_sub(used);
            flow(value, FLOW_DEPTH).filter(|line| value.is_empty() || line.chars().count() <= room)
        }
        Yaml::Null | Yaml::Bool(_) | Yaml::Int(_) | Yaml::Float(_) | Yaml::Plain(_) => flow(value, 0),
    }
}

/// `[a, b]` and `{ a: b }`. `None` if it is nested too deeply, too long, or contains multiline text.
fn flow(value: &Yaml, depth: usize) -> Option<String> {
    let joined = |parts: Vec<String>| -> Option<String> {
        let length: usize = parts.iter().map(|part| part.len() + 2).sum();
        (length <= WIDTH * 4).then(|| parts.join(", "))
    };
    Some(match value {
        Yaml::Null => "null".to_owned(),
        Yaml::Bool(flag) => flag.to_string(),
        Yaml::Int(int) => int.to_string(),
        Yaml::Float(float) => number(*float),
        Yaml::Plain(text) => text.clone(),
        Yaml::Text(text) if text.contains('\n') => return None,
        Yaml::Text(text) => scalar(text, Place::Flow),
        Yaml::List(items) | Yaml::Lines(items) => {
            if items.is_empty() {
                return Some("[]".to_owned());
            }
            let lines = matches!(value, Yaml::Lines(_)) || items.len() > WIDTH;
            let inner = depth.checked_sub(1).filter(|_| !lines)?;
            let parts: Option<Vec<String>> = items.iter().map(|item| flow(item, inner)).collect();
            format!("[{}]", joined(parts?)?)
        }
        Yaml::Map(map) => {
            if map.is_empty() {
                return Some("{}".to_owned());
            }
            let inner = depth.checked_sub(1).filter(|_| !map.in_lines && map.entries.len() <= WIDTH)?;
            let parts: Option<Vec<String>> = map
                .entries
                .iter()
                .map(|(key, value)| Some(format!("{}: {}", scalar(key, Place::Key), flow(value, inner)?)))
                .collect();
            format!("{{ {} }}", joined(parts?)?)
        }
    })
}

fn number(float: f64) -> String {
    match float {
        float if float.is_nan() => ".nan".to_owned(),
        float if float.is_infinite() => if float > 0.0 { ".inf" } else { "-.inf" }.to_owned(),
        float => format!("{float:?}"),
    }
}

/// Whether a text is best written as a block, and survives it unchanged.
fn is_block_text(text: &str) -> bool {
    let body = text.trim_end_matches('\n');
    let is_plain = |line: &str| {
        !line.ends_with([' ', '\t']) && !line.starts_with('\t') && !line.chars().any(needs_escape)
    };
    // With more than one trailing line break, the empty lines before the next entry would become part of the text.
    text.contains('\n')
        && text.len() - body.len() <= 1
        && !body.is_empty()
        && !body.starts_with([' ', '\n'])
        && body.split('\n').all(is_plain)
}

/// Writes `|` and the lines below it; a hyphen means that the last line has no line break.
fn literal(text: &str, indent: usize, out: &mut String) {
    let body = text.trim_end_matches('\n');
    out.push_str(if body.len() == text.len() { " |-\n" } else { " |\n" });
    for line in body.split('\n') {
        if !line.is_empty() {
            let _ = write!(out, "{}{line}", " ".repeat(indent));
        }
        out.push('\n');
    }
}

/// Writes a text on one line: plain if that is safe, in single quotes if that avoids escapes, otherwise in double
/// quotes.
fn scalar(text: &str, place: Place) -> String {
    if is_bare(text, place) {
        return text.to_owned();
    }
    let escaped = text.chars().any(needs_escape);
    if text.contains(['"', '\\']) && !escaped {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    text.chars().for_each(|letter| escape(letter, &mut out));
    out.push('"');
    out
}

/// Characters that YAML readers reject or treat as line breaks.
fn needs_escape(letter: char) -> bool {
    let odd = matches!(letter, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    (letter.is_control() && letter != '\t') || odd
}

fn escape(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        '\r' => out.push_str("\\r"),
        letter if needs_escape(letter) => {
            let _ = write!(out, "\\u{:04x}", u32::from(letter));
        }
        letter => out.push(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, Limits, read};
    use windlass_ir::{Source, SourceId};

    fn text_of(value: &Value) -> String {
        let mut top = Map::in_lines();
        top.put("value", value);
        document(&top)
    }

    fn check_back(value: &Value) {
        let text = text_of(value);
        let read = read(&Source::new("f", text.as_str()), SourceId(0), Format::Yaml, &Limits::default());
        assert_eq!(read.diagnostics, [], "{text}");
        let back = read.root.expect("a tree").to_value();
        // Compared as text, because NaN is not equal to itself.
        assert_eq!(format!("{:?}", back.get("value")), format!("{:?}", Some(value)), "{text}");
    }

    #[test]
    fn text_is_written_readably() {
        let check = |value: &str, expected: &str| {
            assert_eq!(text_of(&Value::text(value)), format!("value:{expected}\n"), "{value:?}");
            check_back(&Value::text(value));
        };
        check("make test", " make test");
        check("./run --all | tee log", " ./run --all | tee log");
        check("echo \"a\" 'b'", " echo \"a\" 'b'");
        check("30m", " 30m");
        check("1.0.0", " \"1.0.0\"");
        check("12", " \"12\"");
        check("0o7", " \"0o7\"");
        check("yes", " \"yes\"");
        check("a: b", " \"a: b\"");
        check("a #b", " \"a #b\"");
        check("{{ \"x\" }}", " '{{ \"x\" }}'");
        check("${{ 'x' }}", " \"${{ 'x' }}\"");
        check("", " \"\"");
        check(" a", " \" a\"");
        check("a\nb", " |-\n  a\n  b");
        check("a\n\nb\n", " |\n  a\n\n  b");
        check("a\n\n", " \"a\\n\\n\"");
        check(" a\nb", " \" a\\nb\"");
        check("a\u{1}\u{2028}", " \"a\\u0001\\u2028\"");
    }

    #[test]
    fn short_data_takes_one_line() {
        let list = |count: usize| Value::list((0..count).map(|at| Value::text(format!("word-{at}"))));
        let map = Value::map([("a", list(2)), ("b c", Value::Null)]);
        assert_eq!(text_of(&map), "value: { a: [word-0, word-1], b c: null }\n");
        assert_eq!(text_of(&Value::list([map.clone(), list(9)])).lines().count(), 3);
        check_back(&Value::list([map, list(90), Value::list([list(90)])]));
    }

    #[test]
    fn written_data_reads_back_unchanged() {
        let mut seed = 7_u64;
        let mut roll = |sides: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % sides
        };
        let parts = [
            "a", "B", "1", ".", "-", ":", " ", "#", "\n", "\t", "\r", "'", "\"", "\\", "{", "}", "[", "]",
            ",", "&", "*", "!", "|", ">", "%", "@", "`", "?", "~", "é", "\u{0}", "\u{7f}", "\u{85}",
            "\u{feff}", "😀", "<<", "=",
        ];
        for _ in 0..20_000 {
            let length = roll(9);
            let word: String = (0..length).map(|_| parts[roll(parts.len() as u64) as usize]).collect();
            let text = || Value::text(word.clone());
            let value = match roll(4) {
                0 => text(),
                1 => Value::list([text(), Value::list([text()])]),
                2 => Value::map([(word.clone(), text())]),
                _ => Value::map([("k".to_owned(), Value::list([Value::map([(word.clone(), text())])]))]),
            };
            check_back(&value);
        }
        for float in [0.0, -0.0, 1e300, 1.5, f64::INFINITY, f64::NAN, -1e-7] {
            check_back(&Value::Float(float));
        }
        check_back(&Value::map([("k".repeat(3_000), Value::list([Value::Int(i64::MIN)]))]));
    }
}
