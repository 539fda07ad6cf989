//! A YAML file as it was written: what the reader of workflows leaves out is kept here, and what the printer decides is
//! left out. Comments and blank lines belong to the member of a collection that they stand above.

use crate::text::Style;

#[derive(Debug)]
pub(super) struct Document<'a> {
    /// Directives and comments above the `---`.
    pub(super) before: Vec<Line<'a>>,
    pub(super) marker: Option<Marker<'a>>,
    /// Comments about the file, which stay on top whatever key comes first.
    pub(super) head: Vec<Line<'a>>,
    pub(super) root: Node<'a>,
    pub(super) foot: Vec<Line<'a>>,
}

/// The `---`, with the comment behind it.
#[derive(Debug)]
pub(super) struct Marker<'a> {
    pub(super) comment: Option<&'a str>,
}

/// A line without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// One or more of them.
    Blank,
    /// A comment, a directive or the `...` of the end, without the space around it.
    Text(&'a str),
}

#[derive(Debug)]
pub(super) struct Node<'a> {
    /// Anchor and tag in the order of the file, as written.
    pub(super) properties: Vec<&'a str>,
    pub(super) content: Content<'a>,
    /// On the line where the node ends, or, for collections and texts in block style, where it begins.
    pub(super) comment: Option<&'a str>,
    /// It holds an anchor or an alias, so that it cannot change places with another one.
    pub(super) is_tied: bool,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    /// A null that nobody wrote.
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

/// A literal or folded scalar, its lines without their indentation.
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
    /// The blank lines below are part of the text; so many of them.
    Keep(usize),
}

#[derive(Debug)]
pub(super) struct Collection<'a> {
    pub(super) shape: Shape,
    pub(super) layout: Layout,
    pub(super) members: Vec<Member<'a>>,
    /// What stands below the last member.
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
    /// Brackets on one line.
    Line,
    /// Brackets over several lines.
    Lines,
}

/// An item of a list, which has no key, or an entry of a mapping, which has one.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) above: Vec<Line<'a>>,
    pub(super) key: Option<Node<'a>>,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    /// A collection that is written without brackets.
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
