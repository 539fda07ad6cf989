//! Explains invalid YAML to people: turns the parser's terse errors into a location, a cause and a fix.

use super::yaml::find_indicator;
use super::{Fatal, Limits, too_deep};
use granit_parser::{ErrorKind, ScanError};
use std::ops::Range;
use windlass_ir::{Code, Diagnostic, SourceId, Span};

/// What was parsed before the error.
pub(super) struct Context<'a> {
    pub(super) text: &'a str,
    pub(super) id: SourceId,
    pub(super) limits: &'a Limits,
    pub(super) content_end: usize,
    pub(super) last_scalar: Range<usize>,
}

/// Location, cause and fix.
struct Finding {
    at: usize,
    message: String,
    help: String,
}

fn finding(at: usize, message: impl Into<String>, help: impl Into<String>) -> Finding {
    Finding { at, message: message.into(), help: help.into() }
}

const QUOTE_HELP: &str = "put quotes around the value if this is part of its text";

impl Context<'_> {
    pub(super) fn explain(&self, error: &ScanError) -> Fatal {
        let at = self.boundary(error.marker().byte_offset().unwrap_or(self.content_end));
        if *error.kind() == ErrorKind::RecursionLimitExceeded {
            return too_deep(self.span(at), self.limits);
        }
        let found = self.find(error.kind(), at);
        let at = self.boundary(found.at);
        Box::new(Diagnostic::error(Code::Syntax, found.message).at(self.span(at)).help(found.help))
    }

    fn find(&self, kind: &ErrorKind, at: usize) -> Finding {
        use ErrorKind as E;
        match kind {
            E::TabInBlockIndentation
            | E::TabInIndentation
            | E::TabInPlainScalar
            | E::TabNotAllowed
            | E::TabAtBlockScalarStart
            | E::InvalidBlockEntryWhitespace
            | E::InvalidMappingValueWhitespace => self.tab(at),
            E::UnclosedQuotedScalar | E::InvalidQuotedScalarIndent | E::DocumentIndicatorInQuotedScalar => {
                self.unclosed_quote(at)
            }
            E::UnclosedFlowCollection { open } => finding(
                at,
                format!("this `{open}` is never closed"),
                format!("add the missing `{}`", closer(*open)),
            ),
            E::MismatchedFlowCollectionEnd { open, close } => finding(
                at,
                format!("this `{open}` is closed by `{close}`"),
                format!("close it with `{}`", closer(*open)),
            ),
            E::MisplacedFlowCollectionEnd => finding(
                at,
                format!("unmatched `{}`", self.char_at(at)),
                format!("remove it, or {QUOTE_HELP}"),
            ),
            E::MappingValueNotAllowed | E::InvalidColonPlacement | E::FlowMappingValueAdjacentCollection => {
                self.misplaced_colon(at)
            }
            E::SimpleKeyExpected | E::InvalidSimpleKey => finding(
                at,
                "missing `:` after this key",
                "write it as `key: value`, with a space after the `:`",
            ),
            E::ExpectedBlockMappingKey | E::ExpectedBlockSequenceEntry => self.does_not_fit(kind, at),
            E::ExpectedFlowSequenceSeparator => self.missing_comma(at, ']'),
            E::ExpectedFlowMappingSeparator => self.missing_comma(at, '}'),
            E::BlockSequenceEntryNotAllowed | E::BlockEntryInFlowCollection => finding(
                at,
                "a list entry `- ` cannot start here",
                format!("start the list on a new line, or {QUOTE_HELP}"),
            ),
            E::UnexpectedCharacter { character } => {
                finding(at, format!("a value cannot start with `{character}`"), "put quotes around the value")
            }
            E::InvalidTrailingSingleQuotedScalar => finding(
                at,
                "unexpected text after the closing quote",
                "write a quote inside single quotes twice (''), or remove the text after the closing quote",
            ),
            E::InvalidTrailingDoubleQuotedScalar => finding(
                at,
                "unexpected text after the closing quote",
                "write a quote inside double quotes as \\\", or remove the text after the closing quote",
            ),
            E::UnknownQuotedScalarEscape
            | E::InvalidQuotedScalarHexEscape
            | E::InvalidUnicodeEscape
            | E::InvalidLowSurrogateHexEscape
            | E::InvalidLowSurrogate
            | E::MissingLowSurrogate
            | E::UnpairedLowSurrogate => self.bad_escape(at),
            E::MissingAnchorOrAliasName => finding(
                at,
                format!("`{}` needs a name after it", self.char_at(at)),
                format!("add the name, or {QUOTE_HELP}"),
            ),
            E::InvalidIndentation
            | E::InvalidFlowScalarIndent
            | E::InvalidBlockScalarIndent
            | E::ExpectedNodeContent => finding(
                at,
                "inconsistent indentation",
                "indent entries that belong together by the same number of spaces",
            ),
            E::CommentNotSeparated => {
                finding(at, "a comment needs a space before its `#`", format!("add a space, or {QUOTE_HELP}"))
            }
            E::CommentInterceptedScalar => {
                finding(at, "comment inside a multiline string", "move the comment, or use a `|` block")
            }
            E::UndeclaredTagHandle => {
                finding(at, "undeclared tag prefix", format!("remove the tag, or {QUOTE_HELP}"))
            }
            E::BomInsideDocument => {
                finding(at, "byte order mark inside the file", "remove the invisible character")
            }
            other => finding(at, format!("invalid YAML: {other}"), "correct this line"),
        }
    }

    /// The parser reports a tab at the start or the end of the affected text; the message points to the tab itself.
    fn tab(&self, at: usize) -> Finding {
        let before = self.text[..at].trim_end_matches([' ', '\t']).len();
        let tab = self.text[before..].find('\t').map_or(at, |offset| before + offset);
        finding(tab, "tab where YAML needs spaces", "replace the tab with spaces")
    }

    fn unclosed_quote(&self, at: usize) -> Finding {
        let bytes = self.text.as_bytes();
        let quote = match bytes.get(at) {
            Some(b'"' | b'\'') => at,
            _ => find_indicator(&bytes[..at], self.content_end, b"\"'").unwrap_or(at),
        };
        finding(
            quote,
            "unterminated string",
            "add the closing quote; if the string has several lines, indent all of them",
        )
    }

    fn misplaced_colon(&self, at: usize) -> Finding {
        let Range { start, end } = self.last_scalar;
        if end == at && self.text[start..end].contains(['\n', '\r']) {
            return finding(
                at,
                "this line continues the text of the line above, so it cannot contain a `:`",
                "indent the key like its neighbors, or add what is missing above (a `:`, a quote)",
            );
        }
        finding(
            at,
            "a second `: ` is not allowed in one value",
            "put quotes around the value if the `:` is part of its text, or start a new line for a new key",
        )
    }

    fn does_not_fit(&self, kind: &ErrorKind, at: usize) -> Finding {
        let before = self.text[..at].trim_ascii_end();
        if !self.text[before.len()..at].contains(['\n', '\r']) && !before.is_empty() {
            return finding(at, "unexpected text after the value", format!("remove it, or {QUOTE_HELP}"));
        }
        // A tab counts as one column for the parser but looks wider.
        let line_above = before.rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let indentation = before[line_above..].len() - before[line_above..].trim_start().len();
        if before[line_above..line_above + indentation].contains('\t') {
            return self.tab(line_above + indentation);
        }
        let message = match kind {
            ErrorKind::ExpectedBlockSequenceEntry => {
                "this line should start with `- ` like the list above it"
            }
            _ => "the indentation of this line does not match the lines above it",
        };
        finding(at, message, "indent entries that belong together by the same number of spaces")
    }

    fn missing_comma(&self, at: usize, closer: char) -> Finding {
        let help = "add it; inside brackets and braces, strings that contain any of []{}, need quotes, \
            including \"${{ … }}\"";
        finding(at, format!("missing `,` or `{closer}`"), help)
    }

    /// The parser reports the start of the string; this finds the escape.
    fn bad_escape(&self, at: usize) -> Finding {
        let mut place = at;
        let mut escapes = self.text[at..].match_indices('\\');
        while let Some((offset, _)) = escapes.next() {
            let rest = &self.text[at + offset + 1..];
            if !is_escape(rest) {
                place = at + offset;
                break;
            }
            if rest.starts_with('\\') {
                escapes.next();
            }
        }
        let shown: String = self.text[place..].chars().take(2).collect();
        let message = match self.text[place..].starts_with('\\') {
            true => format!("invalid escape sequence `{shown}`"),
            false => "invalid escape sequence in this string".to_owned(),
        };
        finding(place, message, "write a backslash as \\\\, or use single quotes")
    }

    fn char_at(&self, at: usize) -> char {
        self.text[at..].chars().next().unwrap_or(' ')
    }

    /// The character at `at`, or `None` at the end of a line or of the file.
    fn span(&self, at: usize) -> Span {
        let length =
            self.text[at..].chars().next().filter(|c| !matches!(c, '\n' | '\r')).map_or(0, char::len_utf8);
        Span::new(self.id, at, at + length)
    }

    fn boundary(&self, at: usize) -> usize {
        self.text.floor_char_boundary(at)
    }
}

fn closer(open: char) -> char {
    if open == '[' { ']' } else { '}' }
}

/// Whether `rest` can follow a backslash inside double quotes.
fn is_escape(rest: &str) -> bool {
    let digits = |count: usize| {
        rest.as_bytes().get(1..=count).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    match rest.as_bytes().first() {
        Some(b'x') => digits(2),
        Some(b'u') => digits(4),
        Some(b'U') => digits(8),
        Some(byte) => b"0abt\tnvfre \"/\\N_LP\r\n".contains(byte),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, read};
    use super::*;
    use windlass_ir::Source;

    /// `text` cannot be parsed; its only finding is at offset `at`.
    fn check(text: &str, at: usize, message: &str) {
        let read = read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default());
        assert_eq!(read.root, None, "{text:?}");
        let found = match &*read.diagnostics {
            [found] => found,
            others => panic!("{text:?}: {others:?}"),
        };
        assert_eq!(found.code, Code::Syntax, "{text:?}");
        assert_eq!(
            (found.span.map(|span| span.start as usize), &*found.message),
            (Some(at), message),
            "{text:?}"
        );
        assert_ne!(found.help, "", "{text:?}");
    }

    #[test]
    fn tabs() {
        let message = "tab where YAML needs spaces";
        check("a:\n\tb: c\n", 3, message);
        check("a:\n  b: 1\n\tc: 2\n", 10, message);
        check("a:\n  \tb: 1\n  c: 2\n", 5, message);
        check("- \t- b\n", 2, message);
        check("a: |\n\tx\n", 5, message);
    }

    #[test]
    fn quotes() {
        let message = "unterminated string";
        check("a: \"foo\nb: c\n", 3, message);
        check("a: 'foo\n", 3, message);
        check("a: \"foo", 3, message);
        check("x: 1\na: [\"foo, b]\nc: 1\n", 9, message);
        check("a: &x # 'c'\n  \"foo\nb: 1", 14, message);
        check("a: \"x\" y\n", 7, "unexpected text after the closing quote");
        check("a: 'it's'\n", 7, "unexpected text after the closing quote");
    }

    #[test]
    fn brackets() {
        check("a: {b: 1\n", 3, "this `{` is never closed");
        check("[a, [b]", 0, "this `[` is never closed");
        check("a: [1}\n", 3, "this `[` is closed by `}`");
        check("a: }\n", 3, "unmatched `}`");
        check("a: [${{ x }}]\n", 5, "missing `,` or `]`");
        check("a: {b: 1 c: 2}\n", 10, "missing `,` or `}`");
        check("a: {b: [] c: 2}\n", 10, "missing `,` or `}`");
        check("a: [x]-foo\n", 6, "unexpected text after the value");
    }

    #[test]
    fn indentation() {
        check("a:\n  b: 1\n c: 2\n", 11, "the indentation of this line does not match the lines above it");
        check("- a\nb: 1\n", 4, "this line should start with `- ` like the list above it");
        let continued = "this line continues the text of the line above, so it cannot contain a `:`";
        check("a: 1\n  b: 2\n", 8, continued);
        check("key\nother: 1\n", 9, continued);
        check("a:b\nc: d\n", 5, continued);
    }

    #[test]
    fn values() {
        check("a: b: c\n", 4, "a second `: ` is not allowed in one value");
        check("a: [1, 2\nb: 3\n", 10, "a second `: ` is not allowed in one value");
        check("a: - b\n", 3, "a list entry `- ` cannot start here");
        check("a: @x\n", 3, "a value cannot start with `@`");
        check("a: `x`\n", 3, "a value cannot start with ```");
        check("a: %x\n", 3, "a value cannot start with `%`");
        check("a: *\n", 3, "`*` needs a name after it");
        check("a: 'x'#y", 6, "a comment needs a space before its `#`");
        check("a: !e!x y\n", 3, "undeclared tag prefix");
        check("a: 1\n\u{FEFF}b: 2\n", 5, "byte order mark inside the file");
        check("a: b\nc\n", 5, "missing `:` after this key");
    }

    #[test]
    fn escapes() {
        check("a: \"x\\q\"\n", 5, "invalid escape sequence `\\q`");
        check("a: \"\\\\ \\n \\u00e9 \\d\"\n", 17, "invalid escape sequence `\\d`");
        check("a: \"\\x4\"\n", 4, "invalid escape sequence `\\x`");
        check("a: \"\\ud83d\"\n", 3, "invalid escape sequence in this string");
    }
}
