//! Dotted paths: `steps.build.output.items[-1]`. Any text after a dot is a key; a path that starts with an unknown
//! word is null.

use super::meant;
use super::parse::{Parsed, Parser};
use std::ops::Range;
use windlass_ir::expr::{Expr, Namespace, Node, Read, python};
use windlass_ir::{Code, Diagnostic, Value};

const ROOTS: [(&str, Namespace); 5] = [
    ("inputs", Namespace::Inputs),
    ("steps", Namespace::Steps),
    ("item", Namespace::Item),
    ("fan_in", Namespace::FanIn),
    ("context", Namespace::Context),
];

pub(super) fn roots() -> impl Iterator<Item = &'static str> {
    ROOTS.iter().map(|(word, _)| *word)
}

/// A part of a path between dots: a key, or a key and an index into its list.
struct Segment<'a> {
    key: &'a str,
    index: Option<i64>,
    range: Range<usize>,
}

impl<'a> Segment<'a> {
    fn read(text: &'a str, range: Range<usize>) -> Self {
        match indexed(text) {
            Some((key, index)) => Self { key, index: Some(index), range },
            None => Self { key: text, index: None, range },
        }
    }

    fn is_plain(&self) -> bool {
        is_plain(self.key)
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| python::is_word(c) || c == '-')
}

/// `name[0]`: only plain names can have an index, and only one.
fn indexed(text: &str) -> Option<(&str, i64)> {
    let (key, index) = text.strip_suffix(']')?.split_once('[')?;
    if is_plain(key) { Some((key, python::index(index)?)) } else { None }
}

fn segments(text: &str, start: usize) -> Vec<Segment<'_>> {
    let mut at = start;
    let parts = text.split('.').map(|part| {
        let range = at..at + part.len();
        at = range.end + 1;
        Segment::read(part, range)
    });
    parts.collect()
}

impl Parser<'_> {
    pub(super) fn path(&mut self, range: Range<usize>) -> Parsed {
        let text = self.text(&range);
        let segments = segments(text, range.start);
        let namespace = segments.first().and_then(|first| ROOTS.iter().find(|(word, _)| *word == first.key));
        let Some((_, namespace)) = namespace else { return self.silent_null(text, range) };
        self.check_plain(text, &segments, *namespace, &range);
        let mut parsed = self.root(*namespace, &segments[0]);
        for segment in &segments[1..] {
            let node = Node::Member { of: parsed.expr, name: segment.key.into() };
            parsed = self.link(node, segment, range.start, parsed.height);
        }
        parsed
    }

    fn root(&mut self, namespace: Namespace, segment: &Segment<'_>) -> Parsed {
        self.link(Node::Read(Read::Namespace(namespace)), segment, segment.range.start, 0)
    }

    /// A node and its index, if there is one.
    fn link(&mut self, node: Node, segment: &Segment<'_>, start: usize, below: usize) -> Parsed {
        let Range { start: key, end } = segment.range;
        let named = self.node(node, start..key + segment.key.len(), below);
        let Some(index) = segment.index else { return named };
        let digits = key + segment.key.len() + 1..end - 1;
        let at = Expr::new(Node::Literal(Value::Int(index)), self.body.span(digits));
        self.node(Node::Index { of: named.expr, at: Box::new(at) }, start..end, named.height)
    }

    /// A key may contain anything, so an odd one is only checked for what it probably means.
    fn check_plain(
        &mut self,
        text: &str,
        segments: &[Segment<'_>],
        namespace: Namespace,
        range: &Range<usize>,
    ) {
        let indexed_root = segments[0].index.is_some() && namespace != Namespace::Item;
        if !indexed_root && segments.iter().all(Segment::is_plain) {
            return;
        }
        self.plain = false;
        if let Some(meant) = meant::guess(text) {
            let message = format!(
                "`{}` is read as the name of a value, and is null unless there is one with that name",
                meant::shortened(text)
            );
            let finding =
                Diagnostic::warning(Code::SilentNull, message).suggest(meant.suggest).help(meant.help);
            self.report(finding.reference(text), range.clone());
        }
    }

    fn silent_null(&mut self, text: &str, range: Range<usize>) -> Parsed {
        self.plain = false;
        let meant = meant::guess(text).unwrap_or_else(|| meant::unknown_root(text));
        let message = match text {
            "" => "a value is missing here, so this is null".to_owned(),
            text => format!("`{}` is not a value, so this is null", meant::shortened(text)),
        };
        let finding = Diagnostic::warning(Code::SilentNull, message).suggest(meant.suggest).help(meant.help);
        self.report(finding.reference(text), range.clone());
        self.null(range)
    }
}
