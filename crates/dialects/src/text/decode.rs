//! Decodes the bytes of a file: UTF-8 without a byte order mark and without control characters.
//!
//! A refused file has no text to point into, so the message contains the position.

use super::Limits;
use windlass_ir::{Code, Diagnostic};

/// [`decode_within`] the default limits.
pub fn decode(bytes: &[u8]) -> Result<String, Box<Diagnostic>> {
    decode_within(bytes, &Limits::default())
}

pub fn decode_within(bytes: &[u8], limits: &Limits) -> Result<String, Box<Diagnostic>> {
    if bytes.len() > limits.bytes_max {
        return Err(Box::new(too_large(bytes.len(), limits)));
    }
    if let Some(name) = foreign_encoding(bytes) {
        return Err(not_utf8(format!("the file is encoded as {name}, not UTF-8")));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| bad_byte(bytes, error.valid_up_to()))?;
    match text.bytes().position(is_control) {
        Some(at) => Err(control_character(text, at)),
        None => Ok(text.to_owned()),
    }
}

/// Control characters that neither YAML nor JSON allows.
pub(super) fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')
}

pub(super) fn too_large(bytes: usize, limits: &Limits) -> Diagnostic {
    let message = format!("the file has {bytes} bytes; the limit is {}", limits.bytes_max);
    Diagnostic::error(Code::TooLarge, message).help("split the workflow into several files")
}

fn foreign_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => Some("UTF-32"),
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => Some("UTF-16"),
        // The first character of a workflow is ASCII, so UTF-16 without a byte order mark shows as a zero next to it.
        [0, 1..=255, 0, 1..=255, ..] | [1..=255, 0, 1..=255, 0, ..] => Some("UTF-16"),
        _ => None,
    }
}

fn bad_byte(bytes: &[u8], at: usize) -> Box<Diagnostic> {
    let byte = bytes.get(at).copied().unwrap_or_default();
    not_utf8(format!("byte 0x{byte:02X} at offset {at} (line {}) is not valid UTF-8", line_of(bytes, at)))
}

fn not_utf8(message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::NotUtf8, message).help("save the file as UTF-8"))
}

fn control_character(text: &str, at: usize) -> Box<Diagnostic> {
    let byte = text.as_bytes()[at];
    let line = line_of(text.as_bytes(), at);
    let message = format!("control character (0x{byte:02X}) at offset {at} (line {line})");
    let help = match byte {
        0 => "this looks like a binary file; use a text file encoded as UTF-8",
        _ => "remove the character, or write it as an escape such as \"\\u001b\" inside double quotes",
    };
    Box::new(Diagnostic::error(Code::Syntax, message).help(help))
}

fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Result<&str, (Code, &str)>) {
        let decoded = decode(bytes);
        match (&decoded, expected) {
            (Ok(text), Ok(wanted)) => assert_eq!(text, wanted),
            (Err(found), Err((code, message))) => {
                assert_eq!((found.code, found.message.as_str()), (code, message));
                assert_ne!(found.help, "", "{message}");
            }
            (decoded, expected) => panic!("{bytes:?}: {decoded:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn the_byte_order_mark_is_removed() {
        check(b"a: \xC3\xA9\r\n\tb", Ok("a: é\r\n\tb"));
        check(b"\xEF\xBB\xBFa: 1", Ok("a: 1"));
        check(b"", Ok(""));
        check(b"\x7F", Ok("\u{7F}"));
    }

    #[test]
    fn the_first_invalid_byte_is_reported() {
        let not_utf8 = |message| Err((Code::NotUtf8, message));
        check(b"a: 1\nb: \xE9t\xE9", not_utf8("byte 0xE9 at offset 8 (line 2) is not valid UTF-8"));
        check(b"a: \xE2\x82", not_utf8("byte 0xE2 at offset 3 (line 1) is not valid UTF-8"));
        check(b"\xC0\x80", not_utf8("byte 0xC0 at offset 0 (line 1) is not valid UTF-8"));
        check(b"\xED\xA0\x80", not_utf8("byte 0xED at offset 0 (line 1) is not valid UTF-8"));
    }

    #[test]
    fn other_encodings_are_recognized() {
        check(b"\xFF\xFEa\0", Err((Code::NotUtf8, "the file is encoded as UTF-16, not UTF-8")));
        check(b"\xFE\xFF\0a", Err((Code::NotUtf8, "the file is encoded as UTF-16, not UTF-8")));
        check(b"a\0:\0", Err((Code::NotUtf8, "the file is encoded as UTF-16, not UTF-8")));
        check(b"\0a\0:", Err((Code::NotUtf8, "the file is encoded as UTF-16, not UTF-8")));
        check(b"\xFF\xFE\0\0", Err((Code::NotUtf8, "the file is encoded as UTF-32, not UTF-8")));
    }

    #[test]
    fn control_characters_are_refused() {
        let control = |message| Err((Code::Syntax, message));
        check(b"a: 1\n\0", control("control character (0x00) at offset 5 (line 2)"));
        check(b"a: \x1B[0m", control("control character (0x1B) at offset 3 (line 1)"));
    }

    #[test]
    fn a_large_file_is_refused_unread() {
        let limits = Limits { bytes_max: 3, ..Limits::default() };
        assert_eq!(decode_within(b"abc", &limits).as_deref(), Ok("abc"));
        let found = decode_within(b"\xFF\xFF\xFF\xFF", &limits).expect_err("too large");
        assert_eq!(
            (found.code, found.message.as_str()),
            (Code::TooLarge, "the file has 4 bytes; the limit is 3")
        );
    }
}
