//! Text from files, made fit for one line or a terminal.

use std::borrow::Cow;

/// At most `length_max` characters; dots mark the cut.
pub fn shorten(text: &str, length_max: usize) -> Cow<'_, str> {
    const DOTS: &str = "...";
    match text.char_indices().nth(length_max) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept = length_max.saturating_sub(DOTS.len());
            let end = text.char_indices().nth(kept).map_or(text.len(), |(at, _)| at);
            Cow::Owned(text[..end].trim_end().to_owned() + DOTS)
        }
    }
}

/// The text on one line: line breaks and runs of spaces become one space.
pub fn one_line(text: &str) -> String {
    clean(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// Replaces control characters, and marks that change the writing direction: printed to a terminal, they could move the
/// cursor or hide text. Tabs and line breaks stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) {
        Cow::Owned(text.chars().map(|c| if is_unsafe(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_characters() {
        let check =
            |text: &str, length, expected: &str| assert_eq!(shorten(text, length), expected, "{text}");
        check("", 5, "");
        check("abcde", 5, "abcde");
        check("abcdef", 5, "ab...");
        check("ééééééé", 5, "éé...");
        check("ab cdef", 6, "ab...");
        check("abcdef", 2, "...");
    }

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        let check = |text: &str, expected: &str| assert_eq!(clean(text), expected);
        check("plain é 漢\t\n", "plain é 漢\t\n");
        check("\u{1b}[31mred\u{9b}0m\r\u{7f}", "\u{fffd}[31mred\u{fffd}0m\u{fffd}\u{fffd}");
        check("a\u{202e}b", "a\u{fffd}b");
        assert_eq!(one_line(" a\n  b\t\u{7}c "), "a b \u{fffd}c");
    }
}
