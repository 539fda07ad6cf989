//! A YAML file as written: contains what the workflow reader drops, and leaves out what the printer decides. Comments
//! and blank lines belong to the collection member below them.

use crate::text::Style;

#[derive(Debug)]
pub(super) struct Document<'a> {
    /// Directives and comments above the `---`.
    pub(super) before: Vec<Line<'a>>,
    pub(super) marker: Option<Marker<'a>>,
    /// Comments about the file, which stay at the top whatever key comes first.
    pub(super) head: Vec<Line<'a>>,
    pub(super) root: Node<'a>,
    pub(super) foot: Vec<Line<'a>>,
}

/// The `---`, with the comment after it.
#[derive(Debug)]
pub(super) struct Marker<'a> {
    pub(super) comment: Option<&'a str>,
}

/// A line without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// One or more blank lines.
    Blank,
    /// A comment, a directive or the final `...`, without surrounding spaces.
    Text(&'a str),
}

#[derive(Debug)]
pub(super) struct Node<'a> {
    /// Anchor and tag in the order of the file, as written.
    pub(super) properties: Vec<&'a str>,
    pub(super) content: Content<'a>,
    /// The comment on the line where the node ends, or, for collections and block scalars, where it begins.
    pub(super) comment: Option<&'a str>,
    /// Whether it contains an anchor or an alias, so that it cannot be reordered.
    pub(super) is_tied: bool,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    /// An implicit null.
    Absent,
    Alias(&'a str),
    Scalar(Scalar<'a>),
    Block(BlockScalar<'a>),
    Collection(Collection<'a>),
}

/// A plain or quoted scalar.
#[derive(Debug)]
pub(super) struct Scalar<'a> {
    pub(super) raw: &'a str,
    pub(super) text: String,
    pub(super) style: Style,
}

/// A literal or folded scalar, its lines without indentation.
#[derive(Debug)]
pub(super) struct BlockScalar<'a> {
    /// `|` or `>`.
    pub(super) mark: char,
    pub(super) chomping: Chomping,
    pub(super) lines: Vec<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chomping {
    Clip,
    Strip,
    /// The number of blank lines below that are part of the text.
    Keep(usize),
}

#[derive(Debug)]
pub(super) struct Collection<'a> {
    pub(super) shape: Shape,
    pub(super) layout: Layout,
    pub(super) members: Vec<Member<'a>>,
    /// Lines below the last member.
    pub(super) tail: Vec<Line<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Block,
    /// A flow collection on one line.
    Line,
    /// A flow collection over several lines.
    Lines,
}

/// An item of a list, without a key, or an entry of a mapping, with one.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) above: Vec<Line<'a>>,
    pub(super) key: Option<Node<'a>>,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// A collection written without brackets.
    pub(super) fn block(&self) -> Option<&Collection<'a>> {
        match &self.content {
            Content::Collection(collection) if collection.layout == Layout::Block => Some(collection),
            Content::Collection(_)
            | Content::Absent
            | Content::Alias(_)
            | Content::Scalar(_)
            | Content::Block(_) => None,
        }
    }

    /// The text of a key.
    pub(super) fn text(&self) -> &str {
        match &self.content {
            Content::Scalar(scalar) => &scalar.text,
            Content::Absent | Content::Alias(_) | Content::Block(_) | Content::Collection(_) => "",
        }
    }

    pub(super) fn is_tagged(&self) -> bool {
        self.properties.iter().any(|property| property.starts_with('!'))
    }
}
