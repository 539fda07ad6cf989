//! Prints a [`Document`]: two spaces per level, lists indented below their key, comments after two spaces.

use super::scalar::{Place, canonical};
use super::tree::{
    BlockScalar, Chomping, Collection, Content, Document, Layout, Line, Member, Node, Scalar, Shape,
};
use crate::text::Style;
use std::borrow::Cow;

const STEP: usize = 2;
/// Flow collections written over several lines are joined if they fit into this width.
const WIDTH_MAX: usize = 100;
/// Bytes of UTF-8.
const CHAR_BYTES_MAX: usize = 4;

pub(super) fn print(document: &Document<'_>) -> String {
    let mut printer = Printer { out: String::new(), ends_in_kept_lines: false };
    printer.document(document);
    printer.out
}

struct Printer {
    out: String,
    /// The last lines belong to text that keeps its blank lines, so another blank line would become part of it.
    ends_in_kept_lines: bool,
}

impl Printer {
    fn document(&mut self, document: &Document<'_>) {
        self.lines(&document.before, 0);
        if let Some(marker) = &document.marker {
            self.out.push_str("---");
            self.end_line(marker.comment);
        }
        self.lines(&document.head, 0);
        self.root(&document.root);
        let foot = document.foot.strip_suffix(&[Line::Blank]).unwrap_or(&document.foot);
        self.lines(foot, 0);
    }

    fn root(&mut self, node: &Node<'_>) {
        match node.block() {
            Some(collection) if node.properties.is_empty() => {
                // There is no line left for the comment, so it gets its own.
                self.lines(&node.comment.map(Line::Text).into_iter().collect::<Vec<_>>(), 0);
                self.members(collection, 0, false);
            }
            Some(collection) => {
                self.out.push_str(&node.properties.join(" "));
                self.end_line(node.comment);
                self.members(collection, 0, false);
            }
            None => {
                let start = self.out.len();
                self.value(node, 0, Shape::Map);
                // A value starts with the space after its key, but here is none.
                self.out.replace_range(start..=start, "");
            }
        }
    }

    fn lines(&mut self, lines: &[Line<'_>], indent: usize) {
        for line in lines {
            match line {
                Line::Blank => self.blank(),
                Line::Text(text) => {
                    self.indent(indent);
                    self.out.push_str(text);
                    self.end_line(None);
                }
            }
        }
    }

    /// At most one, and none at the top.
    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") && !self.ends_in_kept_lines {
            self.out.push('\n');
        }
    }

    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn end_line(&mut self, comment: Option<&str>) {
        if let Some(comment) = comment {
            self.out.push_str("  ");
            self.out.push_str(comment);
        }
        self.out.push('\n');
        self.ends_in_kept_lines = false;
    }

    /// The members of a block collection. The first may continue the current line.
    fn members(&mut self, collection: &Collection<'_>, indent: usize, is_begun: bool) {
        for (number, member) in collection.members.iter().enumerate() {
            // A block starts right below its key; only at the top level may it start with a blank line.
            let above = match member.above.split_first() {
                Some((Line::Blank, rest)) if number == 0 && indent > 0 => rest,
                Some(_) | None => &member.above,
            };
            self.lines(above, indent);
            if number > 0 || !is_begun {
                self.indent(indent);
            }
            self.member(member, indent, collection.shape);
        }
        self.lines(&collection.tail, indent);
    }

    fn member(&mut self, member: &Member<'_>, indent: usize, shape: Shape) {
        match &member.key {
            Some(key) => self.key(key),
            None => self.out.push('-'),
        }
        self.value(&member.value, indent, shape);
    }

    fn key(&mut self, key: &Node<'_>) {
        self.out.push_str(&key_text(key));
        self.out.push(':');
    }

    /// A value after its colon or dash, with the end of its line.
    fn value(&mut self, node: &Node<'_>, indent: usize, shape: Shape) {
        for property in &node.properties {
            self.out.push(' ');
            self.out.push_str(property);
        }
        match &node.content {
            Content::Absent => self.end_line(node.comment),
            Content::Alias(name) => {
                self.out.push(' ');
                self.out.push_str(name);
                self.end_line(node.comment);
            }
            Content::Scalar(scalar) => {
                self.out.push(' ');
                self.scalar(scalar, node.is_tagged(), Place::Block, indent);
                self.end_line(node.comment);
            }
            Content::Block(scalar) => self.block_scalar(scalar, node.comment, indent),
            Content::Collection(collection) => match collection.layout {
                Layout::Block if shape == Shape::List && node.properties.is_empty() => {
                    self.out.push(' ');
                    self.members(collection, indent + STEP, true);
                }
                Layout::Block => {
                    self.end_line(node.comment);
                    self.members(collection, indent + STEP, false);
                }
                Layout::Line | Layout::Lines => {
                    self.out.push(' ');
                    self.flow(collection, indent);
                    self.end_line(node.comment);
                }
            },
        }
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, is_tagged: bool, place: Place, indent: usize) {
        if !scalar.raw.contains('\n') {
            self.out.push_str(&canonical(scalar, is_tagged, place));
            return;
        }
        // Line breaks in it mean a space, whatever the indentation, so the author's lines are kept.
        for (number, line) in scalar.raw.split('\n').enumerate() {
            let line = trim(line, number, scalar.style);
            if number > 0 {
                self.out.push('\n');
                self.indent(if line.is_empty() { 0 } else { indent + STEP });
            }
            self.out.push_str(line);
        }
    }

    fn block_scalar(&mut self, scalar: &BlockScalar<'_>, comment: Option<&str>, indent: usize) {
        let first = scalar.lines.iter().find(|line| !line.is_empty());
        let indicator = if first.is_some_and(|line| line.starts_with(' ')) { "2" } else { "" };
        let (chomping, kept) = match scalar.chomping {
            Chomping::Clip => ("", 0),
            Chomping::Strip => ("-", 0),
            Chomping::Keep(count) => ("+", count),
        };
        self.out.push_str(&format!(" {}{indicator}{chomping}", scalar.mark));
        self.end_line(comment);
        for line in &scalar.lines {
            self.indent(if line.is_empty() { 0 } else { indent + STEP });
            self.out.push_str(line);
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n('\n', kept));
        self.ends_in_kept_lines = matches!(scalar.chomping, Chomping::Keep(_));
    }

    /// Flow collections stay flow collections: on one line if they were, or if they fit and nothing needs its own
    /// line.
    fn flow(&mut self, collection: &Collection<'_>, indent: usize) {
        let start = self.out.len();
        let room = match collection.layout {
            Layout::Line => usize::MAX,
            Layout::Lines | Layout::Block => WIDTH_MAX.saturating_sub(self.column()),
        };
        let joined =
            write_line(collection, &mut self.out, start.saturating_add(room.saturating_mul(CHAR_BYTES_MAX)));
        if joined.is_none() || self.out[start..].chars().count() > room {
            self.out.truncate(start);
            self.flow_lines(collection, indent);
        }
    }

    fn column(&self) -> usize {
        let line = self.out.rfind('\n').map_or(0, |newline| newline + 1);
        self.out[line..].chars().count()
    }

    fn flow_lines(&mut self, collection: &Collection<'_>, indent: usize) {
        let (open, close) = brackets(collection.shape);
        let inner = indent + STEP;
        self.out.push(open);
        self.end_line(None);
        for (number, member) in collection.members.iter().enumerate() {
            self.lines(&without_blanks(&member.above), inner);
            self.indent(inner);
            self.flow_member(member, inner);
            if number + 1 < collection.members.len() {
                self.out.push(',');
            }
            self.end_line(member.value.comment);
        }
        self.lines(&without_blanks(&collection.tail), inner);
        self.indent(indent);
        self.out.push(close);
    }

    fn flow_member(&mut self, member: &Member<'_>, indent: usize) {
        let value = &member.value;
        let words = member_words(member);
        self.out.push_str(&words.join(" "));
        let is_absent = matches!(value.content, Content::Absent);
        self.out.push_str(if words.is_empty() || is_absent { "" } else { " " });
        match &value.content {
            // A block scalar cannot be inside a flow collection.
            Content::Absent | Content::Block(_) => {}
            Content::Alias(name) => self.out.push_str(name),
            Content::Scalar(scalar) => self.scalar(scalar, value.is_tagged(), Place::Flow, indent),
            Content::Collection(collection) => self.flow(collection, indent),
        }
    }
}

fn key_text(key: &Node<'_>) -> String {
    let mut words: Vec<Cow<'_, str>> =
        key.properties.iter().map(|property| Cow::Borrowed(*property)).collect();
    match &key.content {
        Content::Scalar(scalar) => words.push(canonical(scalar, key.is_tagged(), Place::Key)),
        // A colon directly after an alias would become part of its name.
        Content::Alias(name) => words.push(Cow::Owned(format!("{name} "))),
        Content::Absent | Content::Block(_) | Content::Collection(_) => {}
    }
    words.join(" ")
}

/// The key, anchor and tag before a value in a flow collection.
fn member_words<'a>(member: &'a Member<'_>) -> Vec<Cow<'a, str>> {
    let has_value = !matches!(member.value.content, Content::Absent) || !member.value.properties.is_empty();
    let key = member.key.as_ref().map(|key| key_text(key) + if has_value { ":" } else { "" });
    let properties = member.value.properties.iter().map(|property| Cow::Borrowed(*property));
    key.map(Cow::Owned).into_iter().chain(properties).collect()
}

fn brackets(shape: Shape) -> (char, char) {
    match shape {
        Shape::List => ('[', ']'),
        Shape::Map => ('{', '}'),
    }
}

fn without_blanks<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    lines.iter().copied().filter(|line| *line != Line::Blank).collect()
}

/// Writes a flow collection on one line. Returns `None`, after writing part of it, if it contains a comment or a line
/// break or exceeds the width.
fn write_line(collection: &Collection<'_>, out: &mut String, length_max: usize) -> Option<()> {
    let (open, close) = brackets(collection.shape);
    let has_lines = |lines: &[Line<'_>]| lines.iter().any(|line| *line != Line::Blank);
    let space = if collection.shape == Shape::Map && !collection.members.is_empty() { " " } else { "" };
    out.push(open);
    out.push_str(space);
    for (number, member) in collection.members.iter().enumerate() {
        if has_lines(&member.above) || member.value.comment.is_some() || out.len() > length_max {
            return None;
        }
        out.push_str(if number > 0 { ", " } else { "" });
        write_member(member, out, length_max)?;
    }
    out.push_str(space);
    out.push(close);
    (!has_lines(&collection.tail)).then_some(())
}

fn write_member(member: &Member<'_>, out: &mut String, length_max: usize) -> Option<()> {
    let words = member_words(member);
    out.push_str(&words.join(" "));
    let is_absent = matches!(member.value.content, Content::Absent);
    out.push_str(if words.is_empty() || is_absent { "" } else { " " });
    match &member.value.content {
        Content::Absent => {}
        Content::Alias(name) => out.push_str(name),
        Content::Scalar(scalar) if scalar.raw.contains('\n') => return None,
        Content::Scalar(scalar) => out.push_str(&canonical(scalar, member.value.is_tagged(), Place::Flow)),
        Content::Collection(collection) => write_line(collection, out, length_max)?,
        Content::Block(_) => return None,
    }
    Some(())
}

/// A line of a multiline scalar without insignificant spaces. In double quotes, a backslash at the end of a line may
/// protect a space.
fn trim(line: &str, number: usize, style: Style) -> &str {
    let line = if number > 0 { line.trim_start_matches([' ', '\t']) } else { line };
    let trimmed = line.trim_end_matches([' ', '\t']);
    if style == Style::DoubleQuoted && trimmed.ends_with('\\') { line } else { trimmed }
}
