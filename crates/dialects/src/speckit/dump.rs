//! Data as PyYAML's `safe_dump` writes it with `sort_keys=False`: blocks, 80 columns, quotes only where they are needed. Spec Kit
//! keeps workflows in this form, so what is written here can be compared with it byte for byte.

use super::yaml11;
use crate::text::{Entry, Key, Kind, Node, Scalar, Style};
use windlass_ir::Value;
use windlass_ir::expr::{Semantics, text_form};

const WIDTH: usize = 80;
/// A longer key stands after a question mark.
const KEY_CHARS_MAX: usize = 128;

/// A list or a mapping, with a line break at its end. Without `unicode` everything beyond ASCII is escaped.
pub fn yaml(node: &Node, unicode: bool) -> String {
    let mut dump = Dump { out: String::new(), column: 0, unicode };
    dump.node(node, 0);
    dump.out.push('\n');
    dump.out
}

struct Dump {
    out: String,
    /// In characters.
    column: usize,
    unicode: bool,
}

/// One scalar, ready to be written.
struct Written {
    text: String,
    quotes: Quotes,
    /// What a simple key may not be.
    is_long: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

impl Dump {
    /// A collection whose first line begins where the cursor is, at column `indent`.
    fn node(&mut self, node: &Node, indent: usize) {
        match &node.kind {
            Kind::List(items) if items.is_empty() => self.put("[]"),
            Kind::Map(map) if map.entries.is_empty() => self.put("{}"),
            Kind::List(items) => self.list(items, indent),
            Kind::Map(map) => self.map(&map.entries, indent),
            Kind::Scalar(scalar) => self.scalar(&self.written(&value_of(scalar)), indent, true),
        }
    }

    fn list(&mut self, items: &[Node], indent: usize) {
        for (number, item) in items.iter().enumerate() {
            self.begin(number, indent);
            self.put("- ");
            self.node(item, indent + 2);
        }
    }

    fn map(&mut self, entries: &[Entry], indent: usize) {
        for (number, entry) in entries.iter().enumerate() {
            self.begin(number, indent);
            let key = self.written(&key_of(&entry.key));
            if key.is_long {
                self.put("? ");
                self.scalar(&key, indent + 2, true);
                self.line(indent);
                self.put(": ");
                self.node(&entry.value, indent + 2);
                continue;
            }
            self.scalar(&key, indent + 2, false);
            self.put(":");
            self.value(&entry.value, indent);
        }
    }

    /// A value on the line of its key, or below it. A list stands as far left as its key.
    fn value(&mut self, node: &Node, indent: usize) {
        match &node.kind {
            Kind::List(items) if !items.is_empty() => {
                self.line(indent);
                self.list(items, indent);
            }
            Kind::Map(map) if !map.entries.is_empty() => {
                self.line(indent + 2);
                self.map(&map.entries, indent + 2);
            }
            Kind::List(_) | Kind::Map(_) | Kind::Scalar(_) => {
                self.put(" ");
                self.node(node, indent + 2);
            }
        }
    }

    fn begin(&mut self, number: usize, indent: usize) {
        if number > 0 {
            self.line(indent);
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self, indent: usize) {
        self.out.push('\n');
        self.column = 0;
        self.put(&" ".repeat(indent));
    }

    fn written(&self, data: &Data) -> Written {
        let (text, quotes) = match data {
            Data::Word(word) => (word.clone(), Quotes::None),
            Data::Text(text) => (text.clone(), self.quotes(text)),
        };
        let is_long = text.is_empty() || text.contains(is_break) || text.chars().count() >= KEY_CHARS_MAX;
        Written { text, quotes, is_long }
    }

    fn scalar(&mut self, scalar: &Written, indent: usize, split: bool) {
        match scalar.quotes {
            Quotes::None => self.words(&scalar.text, indent, split),
            Quotes::Single => self.single(&scalar.text, indent, split),
            Quotes::Double => self.double(&scalar.text, indent, split),
        }
    }

    /// Which quotes a text needs to be read as this text.
    fn quotes(&self, text: &str) -> Quotes {
        let seen = Seen::of(text, self.unicode);
        let is_text = matches!(yaml11::plain(text), Value::Text(_))
            && !yaml11::is_date(text)
            && !matches!(text, "=" | "<<");
        match seen {
            Seen { plain: true, .. } if is_text => Quotes::None,
            Seen { single: true, .. } => Quotes::Single,
            Seen { .. } => Quotes::Double,
        }
    }

    fn single(&mut self, text: &str, indent: usize, split: bool) {
        self.put("'");
        for part in breaks(&text.replace('\'', "''")) {
            match part {
                Part::Breaks(breaks) => {
                    // A single break would be read as a space.
                    self.out.extend(breaks.starts_with('\n').then_some('\n'));
                    self.out.push_str(breaks);
                    self.column = 0;
                    self.put(&" ".repeat(indent));
                }
                Part::Line(line) => self.words(line, indent, split),
            }
        }
        self.put("'");
    }

    /// Words with the spaces between them. One space beyond the width becomes a line break.
    fn words(&mut self, text: &str, indent: usize, split: bool) {
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(' ').unwrap_or(rest.len());
            self.put(&rest[..word]);
            let after = &rest[word..];
            let spaces = after.len() - after.trim_start_matches(' ').len();
            let at_edge = (word == 0 && rest.len() == text.len()) || spaces == after.len();
            match spaces == 1 && split && self.column > WIDTH && !at_edge {
                true => self.line(indent),
                false => self.put(&after[..spaces]),
            }
            rest = &after[spaces..];
        }
    }

    fn double(&mut self, text: &str, indent: usize, split: bool) {
        let chars: Vec<char> = text.chars().collect();
        self.put("\"");
        let mut start = 0;
        for end in 0..=chars.len() {
            let next = chars.get(end).copied();
            if next.is_none_or(|next| !self.is_shown(next)) {
                self.put(&chars[start..end].iter().collect::<String>());
                start = end;
                if let Some(next) = next {
                    self.put(&escaped(next));
                    start = end + 1;
                }
            }
            let inside = end > 0 && end + 1 < chars.len();
            let may_break = next == Some(' ') || start >= end;
            // After an escape the start is one ahead, which PyYAML counts as a column less.
            if split && inside && may_break && self.column + end > WIDTH + start {
                if start < end {
                    self.put(&chars[start..end].iter().collect::<String>());
                    start = end;
                }
                self.put("\\");
                self.line(indent);
                if chars[start] == ' ' {
                    self.put("\\");
                }
            }
        }
        self.put("\"");
    }

    fn is_shown(&self, character: char) -> bool {
        match character {
            '"' | '\\' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' => false,
            ' '..='~' => true,
            '\u{a0}'..='\u{fffd}' => self.unicode,
            _ => false,
        }
    }
}

enum Data {
    /// A number, a boolean, null or a date.
    Word(String),
    Text(String),
}

fn value_of(scalar: &Scalar) -> Data {
    if scalar.style == Style::Plain && scalar.tag.is_none() && yaml11::is_date(&scalar.text) {
        return Data::Word(scalar.text.to_string());
    }
    data_of(scalar.to_value())
}

fn key_of(key: &Key) -> Data {
    match key.style {
        Style::Plain => data_of(yaml11::plain(&key.text)),
        _ => Data::Text(key.text.to_string()),
    }
}

fn data_of(value: Value) -> Data {
    match value {
        Value::Null => Data::Word("null".to_owned()),
        Value::Bool(flag) => Data::Word(flag.to_string()),
        Value::Int(int) => Data::Word(int.to_string()),
        Value::Float(float) => Data::Word(float_text(float)),
        Value::Text(text) => Data::Text(text.to_string()),
        // No scalar of a file is any of these.
        Value::Sealed(_) | Value::List(_) | Value::Map(_) => Data::Word("null".to_owned()),
    }
}

fn float_text(float: f64) -> String {
    match float {
        float if float.is_nan() => ".nan".to_owned(),
        f64::INFINITY => ".inf".to_owned(),
        f64::NEG_INFINITY => "-.inf".to_owned(),
        float => {
            let text = text_form(&Value::Float(float), &Semantics::SPECKIT).unwrap_or_default();
            if text.contains('.') { text.to_string() } else { text.replacen('e', ".0e", 1) }
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(character: Option<char>) -> bool {
    character.is_none_or(|character| matches!(character, '\0' | ' ' | '\t' | '\r') || is_break(character))
}

enum Part<'t> {
    Line(&'t str),
    Breaks(&'t str),
}

fn breaks(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let breaks = is_break(first);
        let end = rest.find(|next| is_break(next) != breaks).unwrap_or(rest.len());
        parts.push(if breaks { Part::Breaks(&rest[..end]) } else { Part::Line(&rest[..end]) });
        rest = &rest[end..];
    }
    parts
}

/// How a text may stand in a block.
struct Seen {
    plain: bool,
    single: bool,
}

impl Seen {
    fn of(text: &str, unicode: bool) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let pairs = || chars.iter().zip(chars.iter().skip(1));
        let edge = |character: Option<&char>| character.is_some_and(|edge| *edge == ' ' || is_break(*edge));
        let special = chars.iter().any(|character| match character {
            '\n' | ' '..='~' => false,
            '\u{feff}' => true,
            '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..='\u{10fffe}' => !unicode,
            _ => true,
        });
        let space_break = pairs().any(|(one, next)| *one == ' ' && is_break(*next));
        let break_space = pairs().any(|(one, next)| is_break(*one) && *next == ' ');
        let single = !special && !space_break && !break_space;
        let plain = single
            && !edge(chars.first())
            && !edge(chars.last())
            && !chars.iter().any(|character| is_break(*character))
            && !has_indicators(&chars);
        Self { plain, single }
    }
}

/// Whether something in it would be read as more than text.
fn has_indicators(chars: &[char]) -> bool {
    let starts = |mark: &str| chars.len() >= 3 && chars[..3].iter().copied().eq(mark.chars());
    let blank_after = |at: usize| is_blank(chars.get(at + 1).copied());
    let first = chars.first().is_some_and(|first| match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            true
        }
        '?' | ':' | '-' => blank_after(0),
        _ => false,
    });
    let later = (1..chars.len()).any(|at| match chars[at] {
        ':' => blank_after(at),
        '#' => is_blank(Some(chars[at - 1])),
        _ => false,
    });
    starts("---") || starts("...") || first || later
}

fn escaped(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => {
            let code = u32::from(other);
            return match code {
                0..=0xff => format!("\\x{code:02X}"),
                0x100..=0xffff => format!("\\u{code:04X}"),
                _ => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
