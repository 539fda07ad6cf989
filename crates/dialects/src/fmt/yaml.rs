//! Parses the text of a YAML file into a [`Document`]: the parser's events provide the nodes, and everything between
//! them is scanned and kept. Unexpected text there makes the file [`Unfit`], so nothing is ever lost.

use super::scan::Scanner;
use super::tree::{
    BlockScalar, Chomping, Collection, Content, Document, Layout, Line, Marker, Member, Node, Scalar, Shape,
};
use crate::text::{Limits, Style};
use granit_parser::{Event, Parser, ScalarStyle, StructureStyle};
use std::iter::Peekable;
use std::ops::Range;

/// The file uses syntax that this reader cannot preserve; contains the position.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) at: usize,
}

type Parsed<T> = Result<T, Unfit>;

/// The text has already been read without errors, so its nesting is bounded, and it has no `\r`.
pub(super) fn parse(text: &str) -> Parsed<Document<'_>> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: Limits::DEPTH_CEILING,
        block_nesting_limit: Limits::DEPTH_CEILING,
    };
    let events = Parser::new_from_str_with_options(text, options).map(|event| {
        let (event, span) = event.map_err(|_| Unfit { at: 0 })?;
        Ok((event, span.byte_range().unwrap_or_default()))
    });
    Builder { scan: Scanner::new(text), events: events.peekable() }.document()
}

struct Builder<'a, I: Iterator> {
    scan: Scanner<'a>,
    events: Peekable<I>,
}

type Place<'a> = (Event<'a>, Range<usize>);

impl<'a, I: Iterator<Item = Parsed<Place<'a>>>> Builder<'a, I> {
    fn unfit<T>(&self) -> Parsed<T> {
        Err(Unfit { at: self.scan.at })
    }

    fn expect(&self, holds: bool) -> Parsed<()> {
        if holds { Ok(()) } else { self.unfit() }
    }

    fn next(&mut self) -> Parsed<Place<'a>> {
        self.events.next().unwrap_or(Err(Unfit { at: self.scan.at }))
    }

    fn document(mut self) -> Parsed<Document<'a>> {
        let is_explicit = loop {
            match self.next()?.0 {
                Event::StreamStart => {}
                Event::DocumentStart(is_explicit, _) => break is_explicit,
                _ => return self.unfit(),
            }
        };
        let (before, marker) = if is_explicit { self.marker()? } else { (Vec::new(), None) };
        let mut head = self.scan.above();
        let mut root = self.node(&mut head)?;
        give_to_first_member(&mut head, &mut root);
        let foot = self.foot()?;
        Ok(Document { before, marker, head, root, foot })
    }

    fn marker(&mut self) -> Parsed<(Vec<Line<'a>>, Option<Marker<'a>>)> {
        let mut before = self.scan.above();
        while self.scan.peek() == Some(b'%') {
            before.push(Line::Text(self.scan.rest_of_line()));
            before.extend(self.scan.above());
        }
        self.expect(self.scan.text[self.scan.at..].starts_with("---"))?;
        self.scan.at += 3;
        Ok((before, Some(Marker { comment: self.scan.comment_on_line() })))
    }

    fn foot(&mut self) -> Parsed<Vec<Line<'a>>> {
        let mut lines = self.scan.above();
        while self.scan.text[self.scan.at..].starts_with("...") {
            self.scan.at += 3;
            lines.push(Line::Text("..."));
            lines.extend(self.scan.above());
        }
        self.expect(self.scan.peek().is_none())?;
        Ok(lines)
    }

    /// Reads one value. Comments in front of it that cannot stay there go to `lead`, above its member.
    fn node(&mut self, lead: &mut Vec<Line<'a>>) -> Parsed<Node<'a>> {
        let (event, range) = self.next()?;
        match event {
            Event::Alias(_) => {
                let raw = self.token(&range, lead)?;
                Ok(self.ended(Vec::new(), Content::Alias(raw), true))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let properties = self.properties(anchor, tag.is_some(), lead)?;
                self.scalar(properties, &text, style, anchor != 0, &range, lead)
            }
            Event::SequenceStart(style, anchor, tag) => {
                let properties = self.properties(anchor, tag.is_some(), lead)?;
                self.collection(Shape::List, style, properties, anchor != 0, &range, lead)
            }
            Event::MappingStart(style, anchor, tag) => {
                let properties = self.properties(anchor, tag.is_some(), lead)?;
                self.collection(Shape::Map, style, properties, anchor != 0, &range, lead)
            }
            // The other events concern the stream and never occur where a value is due.
            _ => self.unfit(),
        }
    }

    /// Anchor and tag, in any order.
    fn properties(&mut self, anchor: usize, tagged: bool, lead: &mut Vec<Line<'a>>) -> Parsed<Vec<&'a str>> {
        let count = usize::from(anchor != 0) + usize::from(tagged);
        let mut properties = Vec::new();
        while properties.len() < count {
            lead.extend(self.comments());
            match self.scan.property() {
                Some(property) => properties.push(property),
                None => return self.unfit(),
            }
        }
        Ok(properties)
    }

    fn comments(&mut self) -> Vec<Line<'a>> {
        std::iter::from_fn(|| self.scan.comment()).map(Line::Text).collect()
    }

    /// Advances to the start of a token, through spaces and comments only.
    fn reach(&mut self, start: usize, lead: &mut Vec<Line<'a>>) -> Parsed<()> {
        lead.extend(self.comments());
        self.expect(self.scan.at == start)
    }

    fn token(&mut self, range: &Range<usize>, lead: &mut Vec<Line<'a>>) -> Parsed<&'a str> {
        self.reach(range.start, lead)?;
        self.scan.at = range.end;
        Ok(&self.scan.text[range.clone()])
    }

    /// A node that ends here, with the comment after it.
    fn ended(&mut self, properties: Vec<&'a str>, content: Content<'a>, is_tied: bool) -> Node<'a> {
        Node { properties, content, comment: self.scan.comment_on_line(), is_tied }
    }

    fn scalar(
        &mut self,
        properties: Vec<&'a str>,
        text: &str,
        style: ScalarStyle,
        is_tied: bool,
        range: &Range<usize>,
        lead: &mut Vec<Line<'a>>,
    ) -> Parsed<Node<'a>> {
        let style = match style {
            ScalarStyle::Plain if range.is_empty() => {
                return Ok(self.ended(properties, Content::Absent, is_tied));
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                return self.block_scalar(properties, text, is_tied, range.end, lead);
            }
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::SingleQuoted,
            ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        };
        let raw = self.token(range, lead)?;
        let scalar = Scalar { raw, text: text.to_owned(), style };
        Ok(self.ended(properties, Content::Scalar(scalar), is_tied))
    }

    fn block_scalar(
        &mut self,
        properties: Vec<&'a str>,
        text: &str,
        is_tied: bool,
        end: usize,
        lead: &mut Vec<Line<'a>>,
    ) -> Parsed<Node<'a>> {
        lead.extend(self.comments());
        let mark = match self.scan.peek() {
            Some(b'|') => '|',
            Some(b'>') => '>',
            Some(_) | None => return self.unfit(),
        };
        let start = self.scan.at;
        let header = self.scan.text[start..].split([' ', '\t', '\n']).next().unwrap_or_default();
        self.scan.at += header.len();
        let comment = self.scan.comment_on_line();
        self.expect(matches!(self.scan.peek(), Some(b'\n') | None))?;
        let body = self.scan.text.get(self.scan.at + 1..end).unwrap_or_default();
        let Some(lines) = dedent(body, text) else { return self.unfit() };
        self.scan.at = self.scan.at.max(end);
        let scalar = BlockScalar { mark, chomping: chomping(header, text), lines };
        Ok(Node { properties, content: Content::Block(scalar), comment, is_tied })
    }

    fn collection(
        &mut self,
        shape: Shape,
        style: StructureStyle,
        properties: Vec<&'a str>,
        is_anchored: bool,
        range: &Range<usize>,
        lead: &mut Vec<Line<'a>>,
    ) -> Parsed<Node<'a>> {
        let (collection, comment) = match style {
            StructureStyle::Block => {
                let comment = self.scan.comment_on_line();
                (self.block(shape)?, comment)
            }
            StructureStyle::Flow => {
                let collection = self.flow(shape, range, lead)?;
                (collection, self.scan.comment_on_line())
            }
        };
        let is_tied = is_anchored || collection.members.iter().any(Member::is_tied);
        Ok(Node { properties, content: Content::Collection(collection), comment, is_tied })
    }

    /// Consumes the end of the innermost collection, if it is next.
    fn end(&mut self) -> Option<Range<usize>> {
        let is_end =
            |next: &Parsed<Place<'a>>| matches!(next, Ok((Event::SequenceEnd | Event::MappingEnd, _)));
        Some(self.events.next_if(is_end)?.ok()?.1)
    }

    fn block(&mut self, shape: Shape) -> Parsed<Collection<'a>> {
        let (mut members, mut column) = (Vec::new(), None);
        while self.end().is_none() {
            let mut above = self.scan.above();
            column.get_or_insert(self.scan.column());
            if shape == Shape::List {
                let is_item = self.scan.eat_before_space(b'-');
                self.expect(is_item)?;
            }
            members.push(self.member(shape, &mut above)?.below(above));
        }
        let Some(column) = column else { return self.unfit() };
        Ok(Collection { shape, layout: Layout::Block, members, tail: self.scan.tail(column) })
    }

    fn flow(
        &mut self,
        shape: Shape,
        range: &Range<usize>,
        lead: &mut Vec<Line<'a>>,
    ) -> Parsed<Collection<'a>> {
        lead.extend(self.comments());
        let start = self.scan.at;
        let is_open = self.scan.eat(if shape == Shape::List { b'[' } else { b'{' });
        // A single pair in a list, as in `[a: b]`, is a mapping without braces.
        self.expect(is_open || (shape == Shape::Map && range.start >= start))?;
        let (mut members, mut carried) = (Vec::new(), Vec::new());
        let closer = loop {
            if let Some(closer) = self.end() {
                break closer;
            }
            let mut above = std::mem::take(&mut carried);
            above.extend(self.scan.above());
            let mut member = self.member(shape, &mut above)?;
            if is_open {
                carried = self.comma(&mut member);
            }
            members.push(member.below(above));
        };
        let mut tail = carried;
        if is_open {
            tail.extend(self.scan.above());
            let is_closed = self.scan.eat(if shape == Shape::List { b']' } else { b'}' });
            self.expect(is_closed && self.scan.at == closer.end)?;
        }
        let is_one_line = !self.scan.text[start..self.scan.at].contains('\n');
        Ok(Collection {
            shape,
            layout: if is_one_line { Layout::Line } else { Layout::Lines },
            members,
            tail,
        })
    }

    /// Consumes the comma after a member. A comment after the comma belongs to the member; comments before a comma on
    /// its own line are returned, to be placed above the next member.
    fn comma(&mut self, member: &mut Member<'a>) -> Vec<Line<'a>> {
        let carried = self.comments();
        if self.scan.eat(b',') && member.value.comment.is_none() && carried.is_empty() {
            member.value.comment = self.scan.comment_on_line();
        }
        carried
    }

    fn member(&mut self, shape: Shape, above: &mut Vec<Line<'a>>) -> Parsed<Member<'a>> {
        let key = match shape {
            Shape::List => None,
            Shape::Map => Some(self.key(above)?),
        };
        Ok(Member { above: Vec::new(), key, value: self.node(above)? })
    }

    /// A key with its colon, if it has one.
    fn key(&mut self, above: &mut Vec<Line<'a>>) -> Parsed<Node<'a>> {
        self.scan.eat_before_space(b'?');
        let mut key = self.node(above)?;
        let is_simple = match &key.content {
            Content::Scalar(scalar) => !scalar.raw.contains('\n'),
            Content::Alias(_) => true,
            Content::Absent | Content::Block(_) | Content::Collection(_) => false,
        };
        self.expect(is_simple)?;
        above.extend(key.comment.take().map(Line::Text));
        let end = self.scan.at;
        let comments = self.comments();
        match self.scan.eat(b':') {
            true => above.extend(comments),
            false => self.scan.at = end,
        }
        Ok(key)
    }
}

impl<'a> Member<'a> {
    fn below(self, above: Vec<Line<'a>>) -> Self {
        Self { above, ..self }
    }

    pub(super) fn is_tied(&self) -> bool {
        self.value.is_tied || self.key.as_ref().is_some_and(|key| key.is_tied)
    }
}

/// Comments at the top describe the file. If a blank line divides them, the last ones belong to the first key.
fn give_to_first_member<'a>(head: &mut Vec<Line<'a>>, root: &mut Node<'a>) {
    let Content::Collection(Collection { layout: Layout::Block, members, .. }) = &mut root.content else {
        return;
    };
    let Some(first) = members.first_mut() else { return };
    match head.iter().rposition(|line| *line == Line::Blank) {
        Some(blank) if blank > 0 => {
            first.above.splice(0..0, head.split_off(blank)).for_each(drop);
            head.push(Line::Blank);
        }
        Some(_) | None => {}
    }
}

/// The lines of a block scalar without indentation, which the first line with text determines, and without trailing
/// blank lines. `None` if they do not match the text that the parser found.
fn dedent<'a>(body: &'a str, text: &str) -> Option<Vec<&'a str>> {
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let Some((number, first)) = text.split('\n').enumerate().find(|(_, line)| !line.is_empty()) else {
        return Some(Vec::new());
    };
    let indentation = spaces(body.split('\n').nth(number)?).checked_sub(spaces(first))?;
    let dedent = |line: &'a str| match line.as_bytes().get(..indentation) {
        Some(start) if start.iter().all(|byte| *byte == b' ') => Some(&line[indentation..]),
        Some(_) | None => line.trim_start_matches(' ').is_empty().then_some(""),
    };
    let mut lines = body.split('\n').map(dedent).collect::<Option<Vec<&str>>>()?;
    let kept = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines.truncate(kept);
    Some(lines)
}

/// Only at the end of a file can the final line break be missing.
fn chomping(header: &str, text: &str) -> Chomping {
    let ends = text.len() - text.trim_end_matches('\n').len();
    match () {
        () if header.contains('-') => Chomping::Strip,
        () if ends == 0 && !text.is_empty() => Chomping::Strip,
        () if header.contains('+') => Chomping::Keep(ends - usize::from(ends < text.len())),
        () => Chomping::Clip,
    }
}
