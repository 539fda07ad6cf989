//! The stack of open collections of a YAML file: each node becomes an item, a key, a value or something to merge.

use super::mapping::{MapBuilder, Reports, shorten};
use super::{Fatal, Key, Kind, Limits, Mapping, Node, Scalar, Style, too_deep};
use windlass_ir::{Code, Diagnostic, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    BlockMap,
    FlowMap,
}

#[derive(Debug)]
pub(super) struct Tree<'a> {
    text: &'a str,
    limits: &'a Limits,
    frames: Vec<Frame>,
    pub(super) root: Option<Node>,
}

/// A collection that is being read.
#[derive(Debug)]
struct Frame {
    start: usize,
    /// The location of the alias that this collection is a copy for.
    alias: Option<Span>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    List(Vec<Node>),
    BlockMap(OpenMap),
    FlowMap(OpenMap),
    /// A node that starts with `{{` and is not a mapping: a template without quotes.
    Template,
}

#[derive(Debug)]
struct OpenMap {
    map: MapBuilder,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Key,
    Value(Key),
    /// The value of a refused key.
    Refused,
}

/// Why a node could not be placed.
enum Problem {
    Duplicate { key: Key, first: Span },
    KeyShape(Span),
    MergeShape(Span),
}

impl<'a> Tree<'a> {
    pub(super) fn new(text: &'a str, limits: &'a Limits) -> Self {
        Self { text, limits, frames: Vec::new(), root: None }
    }

    pub(super) fn is_in_block_mapping(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { content: Content::BlockMap(_), .. }))
    }

    pub(super) fn scalar(&mut self, scalar: Scalar, span: Span, reports: &mut Reports) {
        self.place(Node { span, kind: Kind::Scalar(scalar) }, reports);
    }

    pub(super) fn open(
        &mut self,
        shape: Shape,
        start: usize,
        alias: Option<Span>,
        reports: &Reports,
    ) -> Result<(), Fatal> {
        if self.frames.len() >= self.limits.depth() {
            let span = alias.unwrap_or_else(|| reports.span(start, start));
            return Err(too_deep(span, self.limits));
        }
        let content = match shape {
            Shape::List => Content::List(Vec::new()),
            Shape::BlockMap => Content::BlockMap(OpenMap::new(self.limits)),
            Shape::FlowMap => Content::FlowMap(OpenMap::new(self.limits)),
        };
        self.frames.push(Frame { start, alias, content });
        Ok(())
    }

    pub(super) fn close(&mut self, end: usize, reports: &mut Reports) {
        let Some(frame) = self.frames.pop() else { return };
        let written = reports.span(frame.start, end);
        let kind = match frame.content {
            Content::List(items) => Kind::List(items),
            Content::BlockMap(open) | Content::FlowMap(open) => Kind::Map(open.map.finish()),
            Content::Template => self.bare_template(frame.start, end, reports),
        };
        self.place(Node { span: frame.alias.unwrap_or(written), kind }, reports);
    }

    /// Adds a finished node to the innermost open collection.
    fn place(&mut self, node: Node, reports: &mut Reports) {
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        let problem = match &mut frame.content {
            Content::List(items) => {
                items.push(node);
                return;
            }
            Content::BlockMap(open) | Content::FlowMap(open) => open.place(node),
            Content::Template => return,
        };
        match problem {
            None => {}
            Some(Problem::Duplicate { key, first }) => reports.duplicate_key(&key, first),
            Some(Problem::MergeShape(span)) => reports.push(bad_merge(span)),
            Some(Problem::KeyShape(_)) if is_template(frame, self.text) => frame.content = Content::Template,
            Some(Problem::KeyShape(span)) => reports.push(bad_key(span)),
        }
    }

    /// Reports the template and reads it as the text that its author meant.
    fn bare_template(&self, start: usize, end: usize, reports: &mut Reports) -> Kind {
        let text = &self.text[start..end];
        let shown = shorten(text);
        let message = format!("`{shown}` has no quotes, so YAML reads it as a mapping");
        let help = format!("put it in quotes: \"{shown}\"");
        reports.push(Diagnostic::error(Code::WrongShape, message).at(reports.span(start, end)).help(help));
        Kind::Scalar(Scalar { text: text.into(), style: Style::Plain, tag: None })
    }
}

impl OpenMap {
    fn new(limits: &Limits) -> Self {
        Self { map: MapBuilder::new(limits.typed_keys), state: State::Key }
    }

    fn place(&mut self, node: Node) -> Option<Problem> {
        match std::mem::take(&mut self.state) {
            State::Key => match node.kind {
                Kind::Scalar(scalar) => {
                    self.state =
                        State::Value(Key { text: scalar.text, style: scalar.style, span: node.span });
                    None
                }
                Kind::List(_) | Kind::Map(_) => {
                    self.state = State::Refused;
                    Some(Problem::KeyShape(node.span))
                }
            },
            State::Value(key) if key.style == Style::Plain && &*key.text == "<<" => self.merge(key, node),
            State::Value(key) => duplicate(self.map.insert(key, node)),
            State::Refused => None,
        }
    }

    fn merge(&mut self, key: Key, value: Node) -> Option<Problem> {
        let span = value.span;
        match mappings(value) {
            Some(maps) => duplicate(self.map.insert_merge(key, maps)),
            None => Some(Problem::MergeShape(span)),
        }
    }
}

fn duplicate(inserted: Result<(), (Key, Span)>) -> Option<Problem> {
    inserted.err().map(|(key, first)| Problem::Duplicate { key, first })
}

/// The mappings to merge: one, or a list of them.
fn mappings(value: Node) -> Option<Vec<Mapping>> {
    let mapping = |node: Node| match node.kind {
        Kind::Map(map) => Some(map),
        Kind::List(_) | Kind::Scalar(_) => None,
    };
    match value.kind {
        Kind::Map(map) => Some(vec![map]),
        Kind::List(items) => items.into_iter().map(mapping).collect(),
        Kind::Scalar(_) => None,
    }
}

fn is_template(frame: &Frame, text: &str) -> bool {
    matches!(frame.content, Content::FlowMap(_)) && text[frame.start..].starts_with("{{")
}

fn bad_key(span: Span) -> Diagnostic {
    let key = Diagnostic::error(Code::WrongShape, "a list or a mapping cannot be a key");
    key.at(span).help("use a string as the key; put quotes around it if it has brackets or braces")
}

fn bad_merge(span: Span) -> Diagnostic {
    let merge = Diagnostic::error(
        Code::WrongShape,
        "`<<` merges a mapping or a list of mappings, but this is neither",
    );
    merge
        .at(span)
        .help("use an alias of a mapping, such as `<<: *defaults`; quote the `<<` if it is an ordinary key")
}
