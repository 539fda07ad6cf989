//! Searches for characters outside quotes and brackets. A quote ends at the next one of its kind, without escapes;
//! any closing bracket closes any opening one, and extra closing brackets are ignored.

use std::ops::Range;

/// The comparison operators in the order in which they are searched, regardless of their position in the text.
pub(super) const COMPARISONS: [&str; 8] = ["!=", "==", ">=", "<=", ">", "<", " not in ", " in "];
pub(super) const OR: &str = " or ";
pub(super) const AND: &str = " and ";

/// The positions of bytes outside quotes and brackets.
struct TopLevel<'a> {
    bytes: &'a [u8],
    at: usize,
    quote: Option<u8>,
    depth: usize,
}

fn top_level(text: &str) -> TopLevel<'_> {
    TopLevel { bytes: text.as_bytes(), at: 0, quote: None, depth: 0 }
}

impl Iterator for TopLevel<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while let Some(byte) = self.bytes.get(self.at) {
            let at = self.at;
            self.at += 1;
            match (self.quote, byte) {
                (Some(quote), byte) if quote == *byte => self.quote = None,
                (Some(_), _) => {}
                (None, b'\'' | b'"') => self.quote = Some(*byte),
                (None, b'(' | b'[' | b'{') => self.depth += 1,
                (None, b')' | b']' | b'}') => self.depth = self.depth.saturating_sub(1),
                (None, _) if self.depth == 0 => return Some(at),
                (None, _) => {}
            }
        }
        None
    }
}

/// The first positions of the operators in a text.
#[derive(Default)]
pub(super) struct Operators {
    pub pipe: Option<usize>,
    pub or: Option<usize>,
    pub and: Option<usize>,
    comparisons: [Option<usize>; COMPARISONS.len()],
}

impl Operators {
    pub fn find(text: &str) -> Self {
        let mut found = Self::default();
        for at in top_level(text)
            .filter(|at| matches!(text.as_bytes()[*at], b' ' | b'|' | b'!' | b'=' | b'<' | b'>'))
        {
            let rest = &text[at..];
            let meet = |slot: &mut Option<usize>, token: &str| {
                if slot.is_none() && rest.starts_with(token) {
                    *slot = Some(at);
                }
            };
            meet(&mut found.pipe, "|");
            meet(&mut found.or, OR);
            meet(&mut found.and, AND);
            for (slot, token) in found.comparisons.iter_mut().zip(COMPARISONS) {
                meet(slot, token);
            }
        }
        found
    }

    /// The comparison that splits the text, and its position.
    pub fn comparison(&self) -> Option<(&'static str, usize)> {
        self.comparisons.iter().zip(COMPARISONS).find_map(|(at, token)| at.map(|at| (token, at)))
    }

    /// Any operator that makes a filter after it ambiguous.
    pub fn ambiguous(&self) -> Option<&'static str> {
        let word = self.or.map(|_| OR).or(self.and.map(|_| AND));
        self.comparison().map(|(token, _)| token).or(word).map(str::trim)
    }
}

pub(super) fn has(text: &str, token: &str) -> bool {
    top_level(text).any(|at| text.as_bytes()[at..].starts_with(token.as_bytes()))
}

/// The parts between all occurrences of a token.
pub(super) fn split(text: &str, token: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in top_level(text) {
        if at >= start && text.as_bytes()[at..].starts_with(token.as_bytes()) {
            parts.push(start..at);
            start = at + token.len();
        }
    }
    parts.push(start..text.len());
    parts
}

/// The positions of bytes outside quotes, including those in brackets.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, u8)> + '_ {
    let mut quote = None;
    text.bytes().enumerate().filter(move |(_, byte)| match (quote, byte) {
        (Some(open), byte) => {
            quote = quote.filter(|_| open != *byte);
            false
        }
        (None, b'\'' | b'"') => {
            quote = Some(*byte);
            false
        }
        (None, _) => true,
    })
}

/// The position of the `}}` outside quotes that ends a block.
pub(super) fn find_close(text: &str) -> Option<usize> {
    unquoted(text).find(|(at, _)| text.as_bytes()[*at..].starts_with(b"}}")).map(|(at, _)| at)
}

/// The content, if the text is a single quoted string.
pub(super) fn literal(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let inner = text[1..].strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}

/// Where the bracket at the start of the text is closed. Only the given brackets count.
fn closed_at(text: &str, opening: &[u8], closing: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in unquoted(text) {
        if opening.contains(&byte) {
            depth += 1;
        } else if closing.contains(&byte) {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + 1);
            }
        }
    }
    None
}

/// The length in bytes of the group in parentheses at the start of the text; 0 if there is none.
pub(super) fn group_length(text: &str) -> usize {
    if text.starts_with('(') { closed_at(text, b"(", b")").unwrap_or(0) } else { 0 }
}

/// Whether the whole text is one group in parentheses.
pub(super) fn is_group(text: &str) -> bool {
    text.ends_with(')') && group_length(text) == text.len()
}

/// Whether the whole text is one list in brackets.
pub(super) fn is_list(text: &str) -> bool {
    text.starts_with('[') && text.ends_with(']') && closed_at(text, b"([{", b")]}") == Some(text.len())
}

/// Whether a quote is opened and never closed.
pub(super) fn has_open_quote(text: &str) -> bool {
    let mut quote = None;
    for byte in text.bytes() {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(_) | None, _) => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_brackets_hide_their_content() {
        let parts = |text: &'static str, token| {
            split(text, token).into_iter().map(|part| &text[part]).collect::<Vec<_>>()
        };
        assert_eq!(
            parts("a | b('|') | [c | d] | (e|f]|g", "|"),
            ["a ", " b('|') ", " [c | d] ", " (e|f]", "g"]
        );
        assert_eq!(parts("a or or b", OR), ["a", "or b"]);
        assert_eq!(parts("a)) or 'b or ", OR), ["a))", "'b or "]);
        assert!(!has("(a, b)", ","));
        assert_eq!(find_close("'}}' } }}"), Some(7));
        assert_eq!(find_close("'}}"), None);
    }

    #[test]
    fn the_order_of_comparisons_is_fixed() {
        let found = |text| Operators::find(text).comparison();
        assert_eq!(found("a < b == c != d"), Some(("!=", 11)));
        assert_eq!(found("a < b >= c"), Some((">=", 6)));
        assert_eq!(found("a not in b in c"), Some((" not in ", 1)));
        assert_eq!(found("a[b < c]"), None);
        assert_eq!(Operators::find("a and b or c").ambiguous(), Some("or"));
    }

    #[test]
    fn whole_groups_lists_and_strings_are_recognized() {
        assert_eq!(literal("'a\"b'"), Some("a\"b"));
        assert_eq!((literal("'a' 'b'"), literal("'"), literal("'a\"")), (None, None, None));
        assert!(is_group("(a or (b))") && !is_group("(a) and (b)"));
        assert!(is_group("('(')") && is_group("(a])") && !is_group("(a"));
        assert!(is_list("[1, [2]]") && !is_list("[1][0]") && !is_list("[1)]"));
        assert!(has_open_quote("a 'b\"") && !has_open_quote("'\"' \"'\""));
    }
}
