//! The text of one block with collapsed blanks, and the mapping back to the original positions.

use super::Locate;
use std::ops::Range;
use windlass_ir::Span;
use windlass_ir::expr::python;

pub(super) struct Body<'a> {
    /// Every run of blanks outside quotes is one space, with none at the ends.
    pub text: String,
    /// For each byte of `text`, its position in the original; and the end of the original.
    origin: Vec<usize>,
    locate: Locate<'a>,
}

impl<'a> Body<'a> {
    pub fn new(original: &str, range: Range<usize>, locate: Locate<'a>) -> Self {
        let part = &original[range.clone()];
        let start = range.end - part.trim_start_matches(python::is_space).len();
        let stripped = python::strip(part);
        let mut body = Self { text: String::with_capacity(stripped.len()), origin: Vec::new(), locate };
        body.collapse(stripped, start);
        body.origin.push(start + stripped.len());
        body
    }

    fn collapse(&mut self, text: &str, start: usize) {
        let (mut quote, mut space) = (None, None);
        for (at, letter) in text.char_indices() {
            if quote.is_none() && python::is_space(letter) {
                space = space.or(Some(start + at));
                continue;
            }
            if let Some(at) = space.take() {
                self.push(' ', at);
            }
            quote = match (quote, letter) {
                (None, '\'' | '"') => Some(letter),
                (Some(open), close) if open == close => None,
                (quote, _) => quote,
            };
            self.push(letter, start + at);
        }
    }

    fn push(&mut self, letter: char, at: usize) {
        self.text.push(letter);
        self.origin.extend(at..at + letter.len_utf8());
    }

    /// The range without blanks at its ends.
    pub fn strip(&self, range: Range<usize>) -> Range<usize> {
        let part = &self.text[range.clone()];
        let start = range.end - part.trim_start_matches(python::is_space).len();
        start..start + python::strip(part).len()
    }

    /// The location of a range in the file, without surrounding blanks: a space may stand for many of them.
    pub fn span(&self, range: Range<usize>) -> Span {
        let range = self.strip(range);
        let start = self.origin[range.start];
        let end = if range.is_empty() { start } else { self.origin[range.end - 1] + 1 };
        (self.locate)(start..end.max(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_ir::SourceId;

    fn locate(range: Range<usize>) -> Span {
        Span::new(SourceId(0), range.start, range.end)
    }

    #[test]
    fn blanks_collapse_outside_quotes_only() {
        let original = "x{{ \n a\u{3000}\t ==  'b  c' \u{1c}or d  }}";
        let body = Body::new(original, 3..original.len() - 2, &locate);
        assert_eq!(body.text, "a == 'b  c' or d");
        let under = |range: Range<usize>| {
            let span = body.span(range);
            &original[span.start as usize..span.end as usize]
        };
        assert_eq!(under(0..4), "a\u{3000}\t ==");
        assert_eq!(under(5..11), "'b  c'");
        assert_eq!(under(0..body.text.len()), "a\u{3000}\t ==  'b  c' \u{1c}or d");
        assert_eq!((under(4..4), under(16..16)), ("", ""));
        assert_eq!((under(1..2), under(0..2)), ("", "a"));
        assert_eq!(body.strip(4..12), 5..11);
        assert_eq!(body.strip(4..5), 5..5);
    }
}
