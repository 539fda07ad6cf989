//! Scans the text between the tokens of a YAML file: spaces, comments and indicators.

use super::tree::Line;

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Only spaces and comments lie between these two. Many collections may end at one place, and each asks for the
    /// next token.
    known_gap: (usize, usize),
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, known_gap: (0, 0) }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !is_skipped(*byte)).unwrap_or(rest.len());
    }

    pub(super) fn skip_space(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
    }

    /// The next comment, wherever it is.
    pub(super) fn comment(&mut self) -> Option<&'a str> {
        self.skip_space();
        (self.peek() == Some(b'#')).then(|| self.rest_of_line())
    }

    /// The next comment if it is on this line.
    pub(super) fn comment_on_line(&mut self) -> Option<&'a str> {
        self.skip(|byte| matches!(byte, b' ' | b'\t'));
        (self.peek() == Some(b'#')).then(|| self.rest_of_line())
    }

    pub(super) fn rest_of_line(&mut self) -> &'a str {
        let start = self.at;
        self.skip(|byte| byte != b'\n');
        self.text[start..self.at].trim_end()
    }

    /// Consumes the next indicator, skipping spaces.
    pub(super) fn eat(&mut self, mark: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(mark);
        self.at += usize::from(found);
        found
    }

    /// Consumes a `-` or `?`, which only count before a space.
    pub(super) fn eat_before_space(&mut self, mark: u8) -> bool {
        self.skip_space();
        let next = self.text.as_bytes().get(self.at + 1);
        next.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n')) && self.eat(mark)
    }

    /// An anchor or a tag.
    pub(super) fn property(&mut self) -> Option<&'a str> {
        let start = self.at;
        match self.peek()? {
            b'!' if self.text[start..].starts_with("!<") => {
                self.skip(|byte| byte != b'>' && byte != b'\n');
                self.at += usize::from(self.peek() == Some(b'>'));
            }
            b'&' | b'!' => {
                self.skip(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b',' | b'[' | b']' | b'{' | b'}'));
            }
            _ => return None,
        }
        Some(&self.text[start..self.at])
    }

    /// Comments and blank lines up to the next token.
    pub(super) fn above(&mut self) -> Vec<Line<'a>> {
        let mut lines = Vec::new();
        loop {
            self.skip_space();
            if self.follows_a_blank_line() {
                lines.push(Line::Blank);
            }
            match self.comment() {
                Some(comment) => lines.push(Line::Text(comment)),
                None => return lines,
            }
        }
    }

    /// Comments indented as far as a block collection that ends here, and further than the next token.
    pub(super) fn tail(&mut self, column: usize) -> Vec<Line<'a>> {
        let mut lines = Vec::new();
        let least = self.column_of_next_token().map_or(column, |next| column.max(next + 1));
        loop {
            let before = self.at;
            self.skip_space();
            if self.peek() != Some(b'#') || self.start_of_line().is_none() || self.column() < least {
                self.at = before;
                return lines;
            }
            if self.follows_a_blank_line() {
                lines.push(Line::Blank);
            }
            lines.extend(self.comment().map(Line::Text));
        }
    }

    /// `None` at the end of the file.
    fn column_of_next_token(&mut self) -> Option<usize> {
        let start = self.at;
        if !(self.known_gap.0..=self.known_gap.1).contains(&start) {
            while self.comment().is_some() {}
            self.known_gap = (start, self.at);
        }
        self.at = self.known_gap.1;
        let column = self.peek().map(|_| self.column());
        self.at = start;
        column
    }

    pub(super) fn column(&self) -> usize {
        self.at - self.text[..self.at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The start of the line if only spaces precede this position. Looks back only over those spaces, as lines may be
    /// long.
    fn start_of_line(&self) -> Option<usize> {
        let before = &self.text.as_bytes()[..self.at];
        let space = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let start = self.at - space;
        (start == 0 || before[start - 1] == b'\n').then_some(start)
    }

    fn follows_a_blank_line(&self) -> bool {
        let Some(end) = self.start_of_line().and_then(|start| start.checked_sub(1)) else { return false };
        let before = self.text[..end].trim_end_matches([' ', '\t']);
        before.is_empty() || before.ends_with('\n')
    }
}
