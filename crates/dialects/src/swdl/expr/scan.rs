//! Tokens, and the ends of expressions and string literals.

use super::parse::{Parser, Stop};
use std::ops::Range;
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic, Span};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Name,
    Number,
    Text(Arc<str>),
    /// One of the operators or any other single character.
    Symbol,
    End,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
}

/// Tokens.
impl Parser<'_> {
    pub(super) fn advance(&mut self) -> Result<(), Stop> {
        let rest = self.text[self.token.range.end..].trim_start();
        let start = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            // Points right after the last token, not after the whitespace that follows it.
            let end = self.token.range.end;
            self.token = Token { kind: Kind::End, range: end..end };
            return Ok(());
        };
        let (kind, length) = match first {
            '\'' | '"' => self.text_token(rest, start)?,
            '0'..='9' => (Kind::Number, self.number_length(rest, start)?),
            'A'..='Z' | 'a'..='z' | '_' => (Kind::Name, name_length(rest)),
            _ => (Kind::Symbol, symbol_length(rest)),
        };
        self.token = Token { kind, range: start..start + length };
        Ok(())
    }

    fn number_length(&mut self, rest: &str, start: usize) -> Result<usize, Stop> {
        let whole = digits_length(rest);
        let fraction = rest[whole..].strip_prefix('.').map_or(0, digits_length);
        let length = if fraction > 0 { whole + 1 + fraction } else { whole };
        let after = &rest[length..];
        if after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_' || next == '.') {
            let end = start
                + length
                + after.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(after.len());
            let help =
                "numbers are digits with an optional fraction, such as `12` or `0.5`; put strings in quotes";
            return Err(self.syntax(
                "this is neither a number nor a name",
                help,
                start..end.max(start + length + 1),
            ));
        }
        Ok(length)
    }

    fn text_token(&mut self, rest: &str, start: usize) -> Result<(Kind, usize), Stop> {
        let Some(length) = literal_length(rest) else {
            self.diagnostics.push(unclosed_literal((self.locate)(start..self.text.len())));
            return Err(Stop);
        };
        let inside = &rest[1..length - 1];
        match unescape(inside) {
            Ok(text) => Ok((Kind::Text(text.into()), length)),
            Err(bad) => {
                let range = start + 1 + bad.start..start + 1 + bad.end;
                let help = "write four hexadecimal digits after `\\u`, e.g. `\\u00e9`";
                Err(self.syntax("invalid escape sequence", help, range))
            }
        }
    }
}

fn digits_length(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A hyphen belongs to the name, anywhere after the first letter.
fn name_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')).count()
}

fn symbol_length(text: &str) -> usize {
    const PAIRS: [&str; 6] = ["==", "!=", "<=", ">=", "&&", "||"];
    if PAIRS.iter().any(|pair| text.starts_with(pair)) { 2 } else { char_length(text) }
}

/// The text between the quotes with its escapes resolved. A backslash before any other character stays, as in
/// `'\d+'`. The error is the range of an invalid escape.
fn unescape(raw: &str) -> Result<String, Range<usize>> {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let escape = &rest[at..];
        let start = raw.len() - escape.len();
        let (character, length) = match escape.as_bytes().get(1) {
            Some(b'n') => ('\n', 2),
            Some(b't') => ('\t', 2),
            Some(b'r') => ('\r', 2),
            Some(b'\\') => ('\\', 2),
            Some(b'\'') => ('\'', 2),
            Some(b'"') => ('"', 2),
            Some(b'u') => unicode_escape(escape).ok_or(start..raw.len().min(start + 2))?,
            Some(_) | None => ('\\', 1),
        };
        text.push(character);
        rest = &escape[length..];
    }
    text.push_str(rest);
    Ok(text)
}

/// `\u` and four digits, or two of them for a character beyond 16 bits, as in JSON.
fn unicode_escape(escape: &str) -> Option<(char, usize)> {
    let high = code_unit(escape)?;
    if let Some(character) = char::from_u32(high) {
        return Some((character, 6));
    }
    let low = code_unit(&escape[6..])?;
    let pair = [u16::try_from(high).ok()?, u16::try_from(low).ok()?];
    match char::decode_utf16(pair).collect::<Result<Vec<char>, _>>().ok()?.as_slice() {
        [character] => Some((*character, 12)),
        _ => None,
    }
}

fn code_unit(escape: &str) -> Option<u32> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

pub(super) fn unclosed_literal(span: Span) -> Diagnostic {
    Diagnostic::error(Code::ExpressionSyntax, "unterminated string")
        .at(span)
        .help("end it with the same quote; write a quote inside it as `\\'` or `\\\"`")
}

pub(super) fn char_length(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// The length of the string literal at the start of `text`, including both quotes; `None` if it is not terminated.
pub(super) fn literal_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = *bytes.first()?;
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}
