//! Parses the text of a workflow, YAML 1.2 or JSON, into a tree in which every node has a location.
//!
//! The tree represents what was written, not its meaning: scalars keep their text and style, and only
//! [`Scalar::to_value`] applies the YAML core schema. Every problem becomes a diagnostic. Parsing continues where
//! possible and stays within [`Limits`] for any input.

mod decode;
mod json;
mod locator;
mod mapping;
mod scalar;
mod syntax;
mod tree;
mod yaml;

pub use decode::{decode, decode_within};
pub use locator::Locator;

use mapping::Reports;
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic, Source, SourceId, Span, Value};

/// One value of the file. An alias is a copy of its anchor at the location of the alias; the nodes inside the copy
/// keep their original locations.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub span: Span,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Mapping),
}

/// A value without parts: its text after escapes and folds, and its style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub text: Arc<str>,
    pub style: Style,
    /// The full tag given in the file: `tag:yaml.org,2002:str` for `!!str`.
    pub tag: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
}

/// Entries in the order of the file. Keys are unique; merged entries are at the position of the `<<`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    pub entries: Vec<Entry>,
    /// The location of the `<<` that merged some of them.
    pub merged: Option<Span>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub key: Key,
    pub value: Node,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub text: Arc<str>,
    pub style: Style,
    pub span: Span,
}

impl Mapping {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| &*entry.key.text == key)
    }
}

impl Node {
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.to_value(),
            Kind::List(items) => Value::list(items.iter().map(Node::to_value)),
            Kind::Map(map) => {
                Value::map(map.entries.iter().map(|entry| (entry.key.text.clone(), entry.value.to_value())))
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Yaml,
    Json,
}

/// How a file is parsed, and the limits beyond which it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes_max: usize,
    /// The maximum nesting of lists and mappings. Trees are walked recursively, so it never exceeds
    /// [`Limits::DEPTH_CEILING`].
    pub depth_max: usize,
    /// The maximum number of nodes that all aliases of a file may copy.
    pub alias_nodes_max: usize,
    /// Whether `1` and `"1"` are different keys of a mapping, as in languages with typed keys.
    pub typed_keys: bool,
}

impl Limits {
    pub const DEPTH_CEILING: usize = 1024;

    fn depth(&self) -> usize {
        self.depth_max.min(Self::DEPTH_CEILING)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes_max: 16 << 20, depth_max: 256, alias_nodes_max: 100_000, typed_keys: false }
    }
}

/// The result of parsing. `root` is present if the structure could be parsed, even with errors, so that semantic
/// problems are reported in the same pass.
#[derive(Clone, Debug)]
pub struct Read {
    pub root: Option<Node>,
    pub diagnostics: Vec<Diagnostic>,
}

pub fn read(source: &Source, id: SourceId, format: Format, limits: &Limits) -> Read {
    let mut reports = Reports::new(id);
    let root = check_size(source, id, limits).and_then(|()| match format {
        Format::Yaml => yaml::read(&source.text, &mut reports, limits),
        Format::Json => json::read(&source.text, &mut reports, limits),
    });
    match root {
        Ok(root) => Read { root, diagnostics: reports.into_list() },
        Err(fatal) => Read { root: None, diagnostics: reports.into_list_with(*fatal) },
    }
}

/// A finding that ends parsing. Boxed, because it is large and rare.
type Fatal = Box<Diagnostic>;

fn check_size(source: &Source, id: SourceId, limits: &Limits) -> Result<(), Fatal> {
    if source.text.len() <= limits.bytes_max {
        return Ok(());
    }
    Err(Box::new(decode::too_large(source.text.len(), limits).at(Span::new(id, 0, 0))))
}

fn empty_file(id: SourceId) -> Fatal {
    let empty = Diagnostic::error(Code::Syntax, "the file is empty");
    Box::new(empty.at(Span::new(id, 0, 0)).help("write a workflow into it, or pass another file"))
}

fn too_deep(span: Span, limits: &Limits) -> Fatal {
    let message = format!("lists and mappings are nested more than {} levels deep", limits.depth());
    Box::new(Diagnostic::error(Code::TooDeep, message).at(span).help("flatten the file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses `text` in both formats and returns the value as compact JSON.
    fn check(text: &str, expected: &str) {
        for format in [Format::Yaml, Format::Json] {
            let read = read(&Source::new("f", text), SourceId(0), format, &Limits::default());
            assert_eq!(read.diagnostics, [], "{text}");
            let value = read.root.expect("read without findings").to_value();
            assert_eq!(value.to_json_text().as_deref(), Some(expected), "{format:?} {text}");
        }
    }

    #[test]
    fn json_means_the_same_in_both_formats() {
        check(
            r#"{"b": [1, -2.5, 1e3, true, null], "a": {"<<": "x"}}"#,
            r#"{"b":[1,-2.5,1000.0,true,null],"a":{"<<":"x"}}"#,
        );
        check(r#""é\u00e9\ud83d\ude00\n\/""#, r#""éé😀\n/""#);
        check("[\r\n  []\t,\n {}]", "[[],{}]");
        check("-0", "0");
        check("123456789012345678901", "1.2345678901234568e+20");
    }

    #[test]
    fn get_finds_an_entry_by_its_key() {
        let read = read(&Source::new("f", "a: 1\nb: 2"), SourceId(0), Format::Yaml, &Limits::default());
        let Some(Node { kind: Kind::Map(map), .. }) = read.root else { panic!("a mapping") };
        assert_eq!(map.get("b").map(|entry| entry.value.to_value()), Some(Value::Int(2)));
        assert_eq!(map.get("c"), None);
    }

    #[test]
    fn a_text_over_the_limit_is_not_parsed() {
        let limits = Limits { bytes_max: 4, ..Limits::default() };
        for format in [Format::Yaml, Format::Json] {
            let read = read(&Source::new("f", "12345"), SourceId(0), format, &limits);
            assert_eq!(read.root, None);
            assert_eq!(read.diagnostics[0].code, Code::TooLarge);
            assert_eq!(read.diagnostics[0].message, "the file has 5 bytes; the limit is 4");
        }
    }
}
