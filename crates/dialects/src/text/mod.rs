//! Reads the text of a workflow, YAML 1.2 or JSON, into a tree in which every node knows its place.
//!
//! The tree says what was written, not what it means: scalars keep their text and style, and only
//! [`Scalar::to_value`] applies the rules of YAML's core schema. Every problem becomes a diagnostic; reading
//! goes on where it can, and stays within [`Limits`] whatever the file contains.

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

/// One value of the file. An alias is a copy of what it stands for, placed where the alias stands; the nodes
/// inside the copy keep the places where they were written.
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

/// A value without parts: its text after escapes and folds, and how it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub text: Arc<str>,
    pub style: Style,
    /// The tag given in the file, in full: `tag:yaml.org,2002:str` for `!!str`.
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

/// Entries in the order of the file. Keys are unique; merged entries stand where the `<<` stood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    pub entries: Vec<Entry>,
    /// Where the `<<` stood that brought some of them in.
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

/// How a file is read, and how much of it before it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes_max: usize,
    /// How many lists and mappings may stand inside each other. Trees are walked by recursion, so more
    /// than [`Limits::DEPTH_CEILING`] is never allowed.
    pub depth_max: usize,
    /// How many nodes all aliases of a file together may copy.
    pub alias_nodes_max: usize,
    /// Whether `1` and `"1"` are two keys of a mapping, as they are in a language whose keys have types.
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

/// What became of a file. `root` is there whenever the structure could be read, even beside errors, so
/// that whoever looks at the meaning can report its findings in the same pass.
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

/// A finding after which nothing more can be read. Boxed, because it is large and rare.
type Fatal = Box<Diagnostic>;

fn check_size(source: &Source, id: SourceId, limits: &Limits) -> Result<(), Fatal> {
    if source.text.len() <= limits.bytes_max {
        return Ok(());
    }
    Err(Box::new(decode::too_large(source.text.len(), limits).at(Span::new(id, 0, 0))))
}

fn empty_file(id: SourceId) -> Fatal {
    let empty = Diagnostic::error(Code::Syntax, "the file is empty");
    Box::new(empty.at(Span::new(id, 0, 0)).help("write a workflow into it, or name another file"))
}

fn too_deep(span: Span, limits: &Limits) -> Fatal {
    let message = format!("lists and mappings stand more than {} deep inside each other", limits.depth());
    Box::new(Diagnostic::error(Code::TooDeep, message).at(span).help("make the file flatter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `text` in both formats' common part and gives the value as compact JSON.
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
    fn a_text_over_the_limit_is_not_read() {
        let limits = Limits { bytes_max: 4, ..Limits::default() };
        for format in [Format::Yaml, Format::Json] {
            let read = read(&Source::new("f", "12345"), SourceId(0), format, &limits);
            assert_eq!(read.root, None);
            assert_eq!(read.diagnostics[0].code, Code::TooLarge);
            assert_eq!(read.diagnostics[0].message, "the file has 5 bytes; the limit is 4");
        }
    }
}
