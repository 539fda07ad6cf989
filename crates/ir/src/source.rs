//! Source locations: the files that make up one workflow, and byte ranges in them.
//!
//! Every node of the representation has a [`Span`]. Lines and columns are computed only when a diagnostic is shown,
//! so reading a file does not pay for them.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One of the files that were read together (a workflow and its overrides).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u16);

/// A byte range in one source. The end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub source: SourceId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(source: SourceId, start: usize, end: usize) -> Self {
        // Sources are limited to 16 MiB, so an offset always fits; a larger one is clamped instead of wrapping
        // around.
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { source, start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The part of this span from `start` to `end`, both relative to the start of the span.
    pub fn within(self, start: usize, end: usize) -> Self {
        let base = self.start as usize;
        Self::new(self.source, base + start, base + end)
    }

    /// An empty span at the start of this one.
    pub fn head(self) -> Self {
        Self { end: self.start, ..self }
    }
}

/// A value and its location. Only the value is stored with a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spanned<T> {
    pub value: T,
    #[serde(skip)]
    pub span: Span,
}

impl<T> Spanned<T> {
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// A location for people: lines and columns start at 1, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// One file: its name as the user wrote it, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    pub name: Arc<str>,
    pub text: Arc<str>,
    line_starts: Arc<[u32]>,
    /// The number of characters before each block of [`BLOCK`] bytes, so that columns in very long lines are fast to
    /// compute.
    chars_before: Arc<[u32]>,
}

const BLOCK: usize = 1024;

impl Source {
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let breaks = text.bytes().zip(1u32..).filter(|(byte, _)| *byte == b'\n').map(|(_, next)| next);
        let line_starts = std::iter::once(0).chain(breaks).collect();
        let blocks = text.as_bytes().chunks(BLOCK);
        let chars_before =
            blocks.scan(0, |before, block| Some(std::mem::replace(before, *before + chars(block)))).collect();
        Self { name: name.into(), text, line_starts, chars_before }
    }

    pub fn position(&self, offset: u32) -> Position {
        let line = self.line_starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.line_starts[line] as usize;
        let end = (offset as usize).min(self.text.len()).max(start);
        Position { line: line + 1, column: (self.chars_until(end) - self.chars_until(start)) as usize + 1 }
    }

    /// The byte offset of a position; the end of the line or of the text for a position beyond it.
    pub fn offset(&self, position: Position) -> usize {
        let line = position.line.saturating_sub(1);
        let Some(start) = self.line_starts.get(line).map(|start| *start as usize) else {
            return self.text.len();
        };
        let end = self.line_starts.get(line + 1).map_or(self.text.len(), |next| *next as usize);
        let letters = self.text.get(start..end).unwrap_or_default().char_indices();
        letters.map(|(at, _)| start + at).nth(position.column.saturating_sub(1)).unwrap_or(end)
    }

    fn chars_until(&self, offset: usize) -> u32 {
        let block = offset / BLOCK;
        let before = self.chars_before.get(block).copied();
        match before {
            Some(before) => before + chars(&self.text.as_bytes()[block * BLOCK..offset]),
            // The text ends with a full block, and the location is its end.
            None => chars(self.text.as_bytes()),
        }
    }
}

/// The number of characters that start in a piece of text.
fn chars(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(!is_continuation(*byte))).sum()
}

/// True for the second and later bytes of a character in UTF-8.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// All files that were read together, by [`SourceId`].
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    pub fn add(&mut self, source: Source) -> SourceId {
        let id = u16::try_from(self.files.len()).expect("a workflow is composed of a handful of files");
        self.files.push(source);
        SourceId(id)
    }

    pub fn get(&self, id: SourceId) -> &Source {
        &self.files[id.0 as usize]
    }

    /// The first file with this name.
    pub fn named(&self, name: &str) -> Option<SourceId> {
        let at = self.files.iter().position(|source| &*source.name == name)?;
        u16::try_from(at).ok().map(SourceId)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    pub fn start_of(&self, span: Span) -> Position {
        self.get(span.source).position(span.start)
    }

    pub fn end_of(&self, span: Span) -> Position {
        self.get(span.source).position(span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new("f", "ab\nçd\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 1, column: 3 });
        assert_eq!(source.position(3), Position { line: 2, column: 1 });
        assert_eq!(source.position(5), Position { line: 2, column: 2 }, "ç is one character in two bytes");
        assert_eq!(source.position(99), Position { line: 3, column: 1 }, "past the end is the end");
    }

    #[test]
    fn offsets_are_the_reverse_of_positions() {
        let source = Source::new("f", "ab\nçd\n");
        for offset in [0, 1, 2, 3, 5, 6, 7] {
            assert_eq!(source.offset(source.position(offset)), offset as usize, "{offset}");
        }
        assert_eq!(source.offset(Position { line: 1, column: 9 }), 3, "past the line is its end");
        assert_eq!(source.offset(Position { line: 9, column: 1 }), 7, "past the end is the end");
    }

    #[test]
    fn long_lines_are_counted_in_blocks() {
        let line = "é".repeat(BLOCK);
        let source = Source::new("f", format!("x\n{line}"));
        for characters in [0, 1, BLOCK / 2, BLOCK - 1, BLOCK] {
            let offset = (2 + 2 * characters) as u32;
            assert_eq!(source.position(offset), Position { line: 2, column: characters + 1 });
        }
        let whole = Source::new("f", "a".repeat(2 * BLOCK));
        assert_eq!(whole.position(2 * BLOCK as u32).column, 2 * BLOCK + 1);
    }
}
