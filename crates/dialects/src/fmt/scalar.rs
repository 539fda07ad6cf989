//! Quoting of scalars: none if every YAML reader, 1.1 or 1.2, sees the same string; otherwise double quotes, or
//! single quotes if the string contains backslashes or double quotes.

use super::tree::Scalar;
use crate::text::Style;
use std::borrow::Cow;

/// The position of a scalar. In flow collections and keys, more characters are special.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Block,
    Flow,
    Key,
}

/// A single-line scalar in canonical form. Plain scalars stay plain, because quotes would change their meaning,
/// unless they are strings that some readers only accept with quotes.
pub(super) fn canonical<'a>(scalar: &'a Scalar<'_>, is_tagged: bool, place: Place) -> Cow<'a, str> {
    let is_fixed = match scalar.style {
        Style::Plain => !(is_torn(&scalar.text, place) && is_text(&scalar.text)),
        Style::Literal | Style::Folded => true,
        Style::SingleQuoted => false,
        Style::DoubleQuoted => has_escapes(scalar.raw),
    };
    let text = &scalar.text;
    match () {
        () if is_fixed || is_tagged || !text.chars().all(is_visible) => Cow::Borrowed(scalar.raw),
        () if is_plain(text, place) => Cow::Borrowed(text),
        () if text.contains(['\\', '"']) => Cow::Owned(format!("'{}'", text.replace('\'', "''"))),
        () => Cow::Owned(format!("\"{text}\"")),
    }
}

/// An author who wrote `\u00e9` or `\t` wants to keep it; only `\\` and `\"` are a matter of quoting.
fn has_escapes(raw: &str) -> bool {
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && !matches!(bytes.next(), Some(b'\\' | b'"')) {
            return true;
        }
    }
    false
}

/// Not a control character, an invisible character or one that changes the writing direction.
fn is_visible(c: char) -> bool {
    let hidden = matches!(
        c,
        '\u{85}' | '\u{A0}' | '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}'
    );
    !c.is_control() && !hidden
}

/// Whether a string can be written without quotes and means the same to every reader.
pub(crate) fn is_bare(text: &str, place: Place) -> bool {
    text.chars().all(is_visible) && is_plain(text, place)
}

/// Some YAML readers end a plain scalar at a question mark inside a flow collection.
fn is_torn(text: &str, place: Place) -> bool {
    match place {
        Place::Block => false,
        Place::Flow | Place::Key => text.contains('?'),
    }
}

fn is_plain(text: &str, place: Place) -> bool {
    let begins = text.starts_with(|c: char| c.is_whitespace() || "-?:,[]{}#&*!|>'\"%@`".contains(c));
    // Expressions in braces are always quoted, so that they can be moved into brackets or extended with `: `.
    let marks =
        text.contains(": ") || text.contains(" #") || text.contains(['{', '}']) || text.ends_with(':');
    let more = match place {
        Place::Block => false,
        Place::Flow | Place::Key => text.contains([',', '[', ']', ':', '?']),
    };
    !begins && !marks && !more && !text.ends_with(char::is_whitespace) && is_text(text)
}

/// A number in any base.
fn is_digit(c: char) -> bool {
    c.is_ascii_hexdigit() || c == '_'
}

/// Whether the text without quotes is a string in both YAML 1.1 and 1.2, and not a number, date, boolean or null.
pub(super) fn is_text(text: &str) -> bool {
    const WORDS: [&str; 15] =
        ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "=", "<<", ".inf", ".nan"];
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_word = WORDS.iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let is_numeric = |c: char| c.is_ascii_digit() || "eE_.:,+- tTzZ".contains(c);
    let is_number = begins && text.chars().all(is_numeric);
    let is_based = ["0x", "0o", "0b"].iter().any(|base| {
        let start = unsigned.get(..base.len()).unwrap_or_default();
        start.eq_ignore_ascii_case(base) && unsigned.chars().skip(base.len()).all(is_digit)
    });
    !is_word && !is_number && !is_based
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(raw: &str) -> Scalar<'_> {
        let (style, text) = match raw.as_bytes()[0] {
            b'"' => (Style::DoubleQuoted, raw[1..raw.len() - 1].replace("\\\\", "\\").replace("\\\"", "\"")),
            b'\'' => (Style::SingleQuoted, raw[1..raw.len() - 1].replace("''", "'")),
            _ => (Style::Plain, raw.to_owned()),
        };
        Scalar { raw, text, style }
    }

    #[test]
    fn unnecessary_quotes_are_removed() {
        let check = |raw: &str, block: &str, flow: &str| {
            let scalar = scalar(raw);
            assert_eq!(canonical(&scalar, false, Place::Block), block, "{raw} in a block");
            assert_eq!(canonical(&scalar, false, Place::Flow), flow, "{raw} in brackets");
        };
        check("\"main\"", "main", "main");
        check("'agent:one'", "agent:one", "\"agent:one\"");
        check("\"a, b\"", "a, b", "\"a, b\"");
        check("\"30m\"", "30m", "30m");
        check("'it''s'", "it's", "it's");
        check("'./run.sh -x'", "./run.sh -x", "./run.sh -x");
        check("'say \"x\"'", "say \"x\"", "say \"x\"");
        check("\"\\\"x\\\": y\"", "'\"x\": y'", "'\"x\": y'");
        check("'C:\\x: '", "'C:\\x: '", "'C:\\x: '");
        check("'${{ a }}'", "\"${{ a }}\"", "\"${{ a }}\"");
        check("\"tab\\t\"", "\"tab\\t\"", "\"tab\\t\"");
        check("''", "\"\"", "\"\"");
        check("'why?'", "why?", "\"why?\"");
        check("why? so", "why? so", "\"why? so\"");
        for raw in ["'a: b'", "'a #b'", "'a:'", "' a'", "'a '", "'- a'", "'@a'", "'#a'", "'%a'"] {
            let quoted = raw.replace('\'', "\"");
            check(raw, &quoted, &quoted);
        }
        for raw in ["yes", "012", "1:30", "a b", "[", "~"] {
            check(raw, raw, raw);
        }
    }

    #[test]
    fn ambiguous_scalars_stay_quoted() {
        let others = [
            "yes",
            "No",
            "ON",
            "off",
            "y",
            "N",
            "true",
            "False",
            "null",
            "~",
            "",
            "=",
            "<<",
            "12",
            "-12",
            "+1",
            "012",
            "0o14",
            "0x1F",
            "0b11",
            "1_000",
            "1:30",
            "190:20:30.15",
            "1.5",
            ".5",
            "1e3",
            "1.",
            "-.inf",
            "+.INF",
            ".NaN",
            "2026-11-15",
            "2001-12-14t21:59:43.10-05:00",
            "2001-12-14 21:59:43",
            "1.0.0",
            "...",
            "---",
        ];
        others.iter().for_each(|text| assert!(!is_text(text), "{text}"));
        let texts = [
            "30m", "1d", "0a", "0xyz", "a", "yess", "v1", "./x", "1st", "nil", "None", "1 apple", "inf",
            "--flag",
        ];
        texts.iter().for_each(|text| assert!(is_text(text), "{text}"));
    }
}
