//! Maps part of a scalar's text back to the file, so that a caret inside an expression points to the right character
//! despite quotes, escapes, folds and indentation.

use super::{Kind, Node, Scalar, Style};
use std::ops::Range;
use windlass_ir::{Source, Span};

/// Knows the source position of each character of one scalar.
#[derive(Clone, Debug)]
pub struct Locator {
    whole: Span,
    map: Map,
}

#[derive(Clone, Debug)]
enum Map {
    /// The text is in the file unchanged, starting at this position.
    Verbatim(usize),
    Pieces(Vec<Piece>),
    /// The text cannot be found in the file (for example, an alias), so every part maps to the whole.
    Nowhere,
}

/// A part of the text and the part of the file that it came from. Parts of equal length correspond byte by byte,
/// others (an escape, a fold) only as a whole. No piece has an empty text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    text: usize,
    text_length: usize,
    source: usize,
    source_length: usize,
}

impl Locator {
    /// A node that is not a scalar has no text: every part maps to the whole.
    pub fn new(node: &Node, source: &Source) -> Self {
        match &node.kind {
            Kind::Scalar(scalar) => Self::of_scalar(scalar, node.span, source),
            Kind::List(_) | Kind::Map(_) => Self { whole: node.span, map: Map::Nowhere },
        }
    }

    pub fn of_scalar(scalar: &Scalar, span: Span, source: &Source) -> Self {
        Self { whole: span, map: align(scalar, span, &source.text).unwrap_or(Map::Nowhere) }
    }

    /// The location of the bytes `range` of the scalar's text.
    pub fn span(&self, range: Range<usize>) -> Span {
        let range = range.start..range.end.max(range.start);
        match &self.map {
            Map::Verbatim(base) => Span::new(self.whole.source, base + range.start, base + range.end),
            Map::Pieces(pieces) => self.in_pieces(pieces, &range).unwrap_or(self.whole),
            Map::Nowhere => self.whole,
        }
    }

    fn in_pieces(&self, pieces: &[Piece], range: &Range<usize>) -> Option<Span> {
        let start =
            pieces[..pieces.partition_point(|piece| piece.text <= range.start)].last()?.offset(range.start);
        let end = match range.is_empty() {
            true => start,
            // The end is where the last character of the range ends, not where the next one starts.
            false => {
                pieces[..pieces.partition_point(|piece| piece.text < range.end)].last()?.end_offset(range.end)
            }
        };
        Some(Span::new(self.whole.source, start, end.max(start)))
    }
}

impl Piece {
    fn is_verbatim(&self) -> bool {
        self.text_length == self.source_length
    }

    fn offset(&self, at: usize) -> usize {
        match at - self.text {
            inside if inside >= self.text_length => self.source + self.source_length,
            inside if self.is_verbatim() => self.source + inside,
            _ => self.source,
        }
    }

    fn end_offset(&self, at: usize) -> usize {
        match self.is_verbatim() {
            true => self.source + (at - self.text).min(self.source_length),
            false => self.source + self.source_length,
        }
    }
}

fn align(scalar: &Scalar, span: Span, source: &str) -> Option<Map> {
    let (start, end) = (span.start as usize, span.end as usize);
    let (start, end) = match scalar.style {
        Style::Plain | Style::Literal | Style::Folded => (start, end),
        Style::SingleQuoted | Style::DoubleQuoted => (start + 1, end.checked_sub(1)?),
    };
    let raw = source.get(start..end)?;
    let mut walk = Walk { text: &scalar.text, raw, base: start, text_at: 0, raw_at: 0, pieces: Vec::new() };
    let is_aligned = match scalar.style {
        Style::Literal | Style::Folded => walk.block(),
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted if raw == &*scalar.text => {
            return Some(Map::Verbatim(start));
        }
        Style::Plain | Style::SingleQuoted | Style::DoubleQuoted => walk.flow(scalar.style),
    };
    is_aligned?;
    Some(Map::Pieces(walk.pieces))
}

/// Walks through the text and its source in parallel. Every method returns `None` if they do not match.
struct Walk<'a> {
    text: &'a str,
    raw: &'a str,
    base: usize,
    text_at: usize,
    raw_at: usize,
    pieces: Vec<Piece>,
}

const BREAKS: [char; 2] = ['\n', '\r'];
const BLANKS: [char; 2] = [' ', '\t'];

impl Walk<'_> {
    /// Plain and quoted scalars: escapes, and folded lines.
    fn flow(&mut self, style: Style) -> Option<()> {
        while self.raw_at < self.raw.len() {
            let rest = &self.raw[self.raw_at..];
            let blanks = rest.len() - rest.trim_start_matches(BLANKS).len();
            if rest[blanks..].starts_with(BREAKS) {
                self.fold(gap_length(rest))?;
            } else if blanks > 0 {
                self.same(blanks)?;
            } else if style == Style::DoubleQuoted && rest.starts_with('\\') {
                self.escape(rest)?;
            } else if style == Style::SingleQuoted && rest.starts_with("''") {
                self.take(1, 2)?;
            } else {
                // Up to the next character that could be one of the above, and at least one.
                let first = rest.chars().next()?.len_utf8();
                let more = rest[first..].find([' ', '\t', '\n', '\r', '\\', '\'']);
                self.same(more.map_or(rest.len(), |more| first + more))?;
            }
        }
        (self.text_at == self.text.len()).then_some(())
    }

    /// One line break becomes a space; several become one fewer.
    fn fold(&mut self, raw_length: usize) -> Option<()> {
        let breaks = count_breaks(&self.raw[self.raw_at..self.raw_at + raw_length]);
        let folded = if breaks == 1 { 1 } else { breaks - 1 };
        self.take(folded, raw_length)
    }

    fn escape(&mut self, rest: &str) -> Option<()> {
        if rest[1..].starts_with(BREAKS) {
            // The line continues without a space; empty lines below still count.
            let length = 1 + gap_length(&rest[1..]);
            return self.take(count_breaks(&rest[..length]) - 1, length);
        }
        let length = match rest.as_bytes().get(1)? {
            b'x' => 4,
            b'u' if is_surrogate_pair(rest) => 12,
            b'u' => 6,
            b'U' => 10,
            _ => 2,
        };
        let character = self.text.get(self.text_at..)?.chars().next()?;
        self.take(character.len_utf8(), length)
    }

    /// Literal and folded scalars: each non-blank line is in the text without its indentation, regardless of the
    /// breaks and blanks in between.
    fn block(&mut self) -> Option<()> {
        let header = self.raw.find(BREAKS).unwrap_or(self.raw.len());
        self.raw_at = header;
        while self.raw_at < self.raw.len() {
            let line_start = self.raw_at + indentation(&self.raw[self.raw_at..]);
            let gap = indentation(&self.text[self.text_at..]);
            self.take(gap, line_start - self.raw_at)?;
            let rest = &self.raw[line_start..];
            self.same(rest.find(BREAKS).unwrap_or(rest.len()))?;
        }
        // Blanks at the end of the last line and the breaks after it are outside the span.
        let rest = self.text.len() - self.text_at;
        if gap_length(&self.text[self.text_at..]) != rest {
            return None;
        }
        self.take(rest, 0)
    }

    /// `length` bytes that are equal in both.
    fn same(&mut self, length: usize) -> Option<()> {
        let raw = self.raw.get(self.raw_at..self.raw_at + length)?;
        if !self.text.get(self.text_at..)?.starts_with(raw) {
            return None;
        }
        self.take(length, length)
    }

    fn take(&mut self, text_length: usize, source_length: usize) -> Option<()> {
        self.text.get(self.text_at..self.text_at + text_length)?;
        self.raw.get(self.raw_at..self.raw_at + source_length)?;
        let piece = Piece { text: self.text_at, text_length, source: self.base + self.raw_at, source_length };
        self.text_at += text_length;
        self.raw_at += source_length;
        match self.pieces.last_mut() {
            _ if text_length == 0 => {}
            Some(last)
                if last.is_verbatim()
                    && piece.is_verbatim()
                    && last.source + last.source_length == piece.source =>
            {
                last.text_length += text_length;
                last.source_length += source_length;
            }
            _ => self.pieces.push(piece),
        }
        Some(())
    }
}

/// The blanks and breaks at the start of `rest`.
fn gap_length(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len()
}

/// A carriage return and a line feed together are one break.
fn count_breaks(raw: &str) -> usize {
    let bytes = raw.as_bytes();
    let is_break =
        |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
    (0..bytes.len()).filter(is_break).count()
}

/// The breaks and spaces before the next line with content.
fn indentation(raw: &str) -> usize {
    raw.len() - raw.trim_start_matches([' ', '\n', '\r']).len()
}

fn is_surrogate_pair(rest: &str) -> bool {
    let is_high = matches!(rest.as_bytes(), [_, _, b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..]);
    is_high && rest.get(6..8) == Some("\\u")
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Limits, read};
    use super::*;
    use windlass_ir::SourceId;

    /// The value of the only key `a` of `yaml`; `part` of its text must be found at `expected` in the file.
    fn check(yaml: &str, part: &str, expected: &str) {
        let source = Source::new("f", yaml);
        let root = read(&source, SourceId(0), Format::Yaml, &Limits::default()).root.expect("readable");
        let Kind::Map(map) = root.kind else { panic!("a mapping") };
        let node = &map.get("a").expect("the key a").value;
        let Kind::Scalar(scalar) = &node.kind else { panic!("a scalar") };
        let start = scalar.text.find(part).unwrap_or_else(|| panic!("{part:?} in {:?}", scalar.text));
        let span = Locator::new(node, &source).span(start..start + part.len());
        assert_eq!(&yaml[span.start as usize..span.end as usize], expected, "{yaml:?}");
        // The text before both positions must match as well, or equal parts could be confused.
        let head = Locator::new(node, &source).span(start..start);
        assert_eq!((head.start, head.end), (span.start, span.start), "{yaml:?}");
    }

    #[test]
    fn verbatim_texts() {
        check("a: one two", "two", "two");
        check("a: 'one two'", "two", "two");
        check("a: \"one twé\"", "twé", "twé");
        check("a: \"one two\"", "one two", "one two");
    }

    #[test]
    fn escapes() {
        check(r#"a: "x\ty \"z\" end""#, "z", "z");
        check(r#"a: "x\ty \"z\" end""#, "\"z\"", r#"\"z\""#);
        check(r#"a: "\u00e9\x41\U0001F600\ud83d\ude00b""#, "b", "b");
        check(r#"a: "\u00e9\x41\U0001F600\ud83d\ude00b""#, "😀😀b", r"\U0001F600\ud83d\ude00b");
        check(r#"a: "\_\N\Lx""#, "x", "x");
        check("a: 'it''s ${{ x }}'", "x", "x");
        check("a: 'it''s'", "'", "''");
    }

    #[test]
    fn folded_lines() {
        check("a: one\n  two\n  three\n", "three", "three");
        check("a: one\n  two\n  three\n", "one two", "one\n  two");
        check("a: \"one  \n\n   two \\\n   three\"", "two", "two");
        check("a: \"one  \n\n   two \\\n   three\"", "three", "three");
        check("a: \"one\\\n\n  two\"", "two", "two");
        check("a: 'one\r\n  two'\r\n", "two", "two");
        check("a: 'one   two\n  three'", "   two", "   two");
    }

    #[test]
    fn block_scalars() {
        check("a: |\n  one\n  two\n", "two", "two");
        check("a: |\n  one\n  two\n", "one\ntwo", "one\n  two");
        check("a: | # two\n\n    one\n      two\n\n\n    three  \n\n", "two", "two");
        check("a: | # two\n\n    one\n      two\n\n\n    three  \n\n", "three", "three");
        check("a: >\n  one\n  two\n\n  three\n    four\n  five\n", "two", "two");
        check("a: >\n  one\n  two\n\n  three\n    four\n  five\n", "four", "four");
        check("a: >\n  one\n  two\n\n  three\n    four\n  five\n", "five", "five");
        check("a: >\n  one two\n  three\n", "two three", "two\n  three");
        check("a: |2-\n    one\n\n   two", "two", "two");
        check("a: |\r\n  one\r\n  two\r\nb: 1\r\n", "two", "two");
        check("a: |+\n  one\n\n\nb: 1\n", "\n\n\n", "");
        check("a: |\n  é\n  \tx\n", "x", "x");
    }

    #[test]
    fn ends_and_more() {
        let source = Source::new("f", "a: \"x\\ty\"");
        let root = read(&source, SourceId(0), Format::Yaml, &Limits::default()).root.expect("readable");
        let Kind::Map(map) = &root.kind else { panic!("a mapping") };
        let locator = Locator::new(&map.entries[0].value, &source);
        let range = |start, end| {
            let span = locator.span(start..end);
            (span.start, span.end)
        };
        assert_eq!(range(3, 3), (8, 8), "the end of the text is the closing quote");
        assert_eq!(range(1, 2), (5, 7), "the escape as a whole");
        assert_eq!(range(7, 99), (8, 8), "past the end is the end");
        assert_eq!(Locator::new(&root, &source).span(0..1), root.span, "a mapping has no text");
    }

    #[test]
    fn an_alias_is_located_as_a_whole() {
        let source = Source::new("f", "- &x one two\n- *x\n");
        let root = read(&source, SourceId(0), Format::Yaml, &Limits::default()).root.expect("readable");
        let Kind::List(items) = &root.kind else { panic!("a list") };
        assert_eq!(Locator::new(&items[1], &source).span(4..7), items[1].span);
    }

    #[test]
    fn a_span_of_another_file_does_not_panic() {
        let scalar = Scalar { text: "one".into(), style: Style::DoubleQuoted, tag: None };
        for (start, end) in [(0, 0), (0, 99), (5, 5), (1, 2)] {
            let span = Span::new(SourceId(0), start, end);
            assert_eq!(Locator::of_scalar(&scalar, span, &Source::new("f", "é\"x")).span(0..1), span);
        }
    }
}
