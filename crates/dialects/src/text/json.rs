//! Parses JSON (RFC 8259) into a tree. YAML parsers accept some invalid JSON and reject some valid JSON, so JSON has
//! its own parser.

use super::mapping::{MapBuilder, Reports, shorten};
use super::{Fatal, Key, Kind, Limits, Node, Scalar, Style, empty_file, too_deep};
use std::sync::Arc;
use windlass_ir::{Code, Diagnostic};

pub(super) fn read(text: &str, reports: &mut Reports, limits: &Limits) -> Result<Option<Node>, Fatal> {
    let at = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    let mut reader = Reader { text, at, depth: 0, reports, limits };
    reader.skip_blanks();
    if reader.peek().is_none() {
        return Err(empty_file(reader.reports.id));
    }
    let root = reader.value()?;
    reader.skip_blanks();
    match reader.peek() {
        None => Ok(Some(root)),
        Some(b'/' | b'#') => Err(reader.unexpected("the end of the file")),
        Some(_) => {
            Err(reader.error("unexpected text after the end of the value", "remove what follows here"))
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    reports: &'a mut Reports,
    limits: &'a Limits,
}

impl Reader<'_> {
    /// The depth limit bounds the recursion.
    fn value(&mut self) -> Result<Node, Fatal> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => scalar(self.string()?, Style::DoubleQuoted),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.word()?,
            Some(_) | None => return Err(self.unexpected("a value")),
        };
        Ok(Node { span: self.reports.span(start, self.at), kind })
    }

    fn nested(&mut self, content: fn(&mut Self) -> Result<Kind, Fatal>) -> Result<Kind, Fatal> {
        if self.depth >= self.limits.depth() {
            return Err(too_deep(self.reports.span(self.at, self.at + 1), self.limits));
        }
        self.depth += 1;
        let kind = content(self)?;
        self.depth -= 1;
        Ok(kind)
    }

    fn array(&mut self) -> Result<Kind, Fatal> {
        let open = self.at;
        let mut items = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.eat(b']') {
            return Ok(Kind::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.ends(open, b']')? {
                return Ok(Kind::List(items));
            }
        }
    }

    fn object(&mut self) -> Result<Kind, Fatal> {
        let open = self.at;
        let mut map = MapBuilder::default();
        self.at += 1;
        self.skip_blanks();
        if self.eat(b'}') {
            return Ok(Kind::Map(map.finish()));
        }
        loop {
            let key = self.key(open)?;
            self.skip_blanks();
            let value = self.value()?;
            if let Err((key, first)) = map.insert(key, value) {
                self.reports.duplicate_key(&key, first);
            }
            if self.ends(open, b'}')? {
                return Ok(Kind::Map(map.finish()));
            }
        }
    }

    /// A key with its colon.
    fn key(&mut self, open: usize) -> Result<Key, Fatal> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => {}
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$') => {
                return Err(self.error("a key needs double quotes", "write it as \"key\""));
            }
            Some(_) => return Err(self.unexpected("a key in double quotes")),
            None => return Err(self.unclosed(open)),
        }
        let key =
            Key { text: self.string()?, style: Style::DoubleQuoted, span: self.reports.span(start, self.at) };
        self.skip_blanks();
        match self.eat(b':') {
            true => Ok(key),
            false => Err(self.unexpected("`:` after the key")),
        }
    }

    /// After a member: true at the end of the collection, false if another member follows.
    fn ends(&mut self, open: usize, closer: u8) -> Result<bool, Fatal> {
        self.skip_blanks();
        if self.eat(closer) {
            return Ok(true);
        }
        let comma = self.at;
        if !self.eat(b',') {
            return Err(match self.peek() {
                None => self.unclosed(open),
                Some(_) => self.unexpected(&format!("`,` or `{}`", char::from(closer))),
            });
        }
        self.skip_blanks();
        match self.peek() {
            None => Err(self.unclosed(open)),
            Some(b'}' | b']') => {
                self.at = comma;
                Err(self.error("a comma after the last member is not allowed in JSON", "remove the comma"))
            }
            Some(_) => Ok(false),
        }
    }

    fn number(&mut self) -> Result<Kind, Fatal> {
        let start = self.at;
        self.eat(b'-');
        let whole = self.digits();
        let is_whole_valid = whole == 1 || (whole > 1 && self.text.as_bytes()[self.at - whole] != b'0');
        let is_fraction_valid = !self.eat(b'.') || self.digits() > 0;
        let is_exponent_valid = !(self.eat(b'e') || self.eat(b'E')) || {
            let _sign = self.eat(b'+') || self.eat(b'-');
            self.digits() > 0
        };
        let text = &self.text[start..self.at];
        let is_valid = is_whole_valid && is_fraction_valid && is_exponent_valid;
        let is_finite = || text.parse().is_ok_and(f64::is_finite);
        if is_valid && is_finite() {
            return Ok(scalar(text.into(), Style::Plain));
        }
        let shown = shorten(text);
        self.at = start;
        Err(match is_valid {
            true => self
                .error(format!("the number {shown} is too large"), "use a number below 1e308, or a string"),
            false => {
                self.error(format!("`{shown}` is not a number in JSON"), "write it like 0, -12, 0.5 or 1e6")
            }
        })
    }

    fn digits(&mut self) -> usize {
        let count = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self) -> Result<Kind, Fatal> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..end];
        let help = match word {
            "true" | "false" | "null" => {
                self.at += end;
                return Ok(scalar(word.into(), Style::Plain));
            }
            "True" | "TRUE" => "write true",
            "False" | "FALSE" => "write false",
            "None" | "Null" | "NULL" | "nil" | "undefined" => "write null",
            "NaN" | "Infinity" => "JSON cannot represent this number; use null or a string",
            _ => "put strings in double quotes",
        };
        Err(self.error(format!("invalid JSON value `{}`", shorten(word)), help))
    }

    fn string(&mut self) -> Result<Arc<str>, Fatal> {
        let open = self.at;
        self.at += 1;
        let mut decoded = String::new();
        loop {
            let plain = self.at;
            self.skip_plain_characters();
            let run = &self.text[plain..self.at];
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(if decoded.is_empty() { run.into() } else { (decoded + run).into() });
                }
                Some(b'\\') => {
                    decoded.push_str(run);
                    decoded.push(self.escape()?);
                }
                Some(_) | None => return Err(self.broken_string(open)),
            }
        }
    }

    /// Up to a quote, a backslash or a control character.
    fn skip_plain_characters(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
        self.at += rest.iter().position(is_special).unwrap_or(rest.len());
    }

    fn broken_string(&mut self, open: usize) -> Fatal {
        match self.peek() {
            Some(byte) if !matches!(byte, b'\n' | b'\r') => self.error(
                format!("control character 0x{byte:02X} in a string"),
                "write it as an escape, such as \\t or \\u001b",
            ),
            Some(_) | None => {
                self.at = open;
                let help = "add the closing quote; write a line break inside a string as \\n";
                self.error("this string is not terminated on its line", help)
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fatal> {
        let character = match self.text.as_bytes().get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            Some(_) | None => {
                let shown: String = self.text[self.at..].chars().take(2).collect();
                return Err(
                    self.error(format!("invalid escape sequence `{shown}`"), "write a backslash as \\\\")
                );
            }
        };
        self.at += 2;
        Ok(character)
    }

    /// `\u` and four digits, or two of them for a character beyond the first 65,536.
    fn unicode_escape(&mut self) -> Result<char, Fatal> {
        let bad = "\\u needs four hexadecimal digits, and two escapes for characters beyond U+FFFF";
        let decoded = match self.code_unit(self.at) {
            Some(high @ 0xD800..=0xDBFF) => match self.code_unit(self.at + 6) {
                Some(low @ 0xDC00..=0xDFFF) => {
                    char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).map(|c| (c, 12))
                }
                Some(_) | None => None,
            },
            Some(unit) => char::from_u32(unit).map(|c| (c, 6)),
            None => None,
        };
        let Some((character, length)) = decoded else {
            return Err(self.error("invalid Unicode escape", bad));
        };
        self.at += length;
        Ok(character)
    }

    fn code_unit(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// Reports unexpected text instead of `wanted`, with advice for common mistakes.
    fn unexpected(&self, wanted: &str) -> Fatal {
        let Some(found) = self.text[self.at..].chars().next() else {
            return self.error(format!("expected {wanted}, but the file ends here"), "add the missing part");
        };
        let help = match found {
            '\'' => "use double quotes; JSON has no single quotes",
            '/' | '#' => "remove the comment; JSON has no comments",
            '+' | '.' => "start a number with a digit or a minus sign",
            ',' => "remove the comma, or add what is missing before it",
            _ => "add what is missing, or remove this",
        };
        let shown = if found.is_control() { found.escape_debug().to_string() } else { found.to_string() };
        self.error(format!("expected {wanted}, found `{shown}`"), help)
    }

    fn unclosed(&self, open: usize) -> Fatal {
        let (bracket, closer) = if self.text[open..].starts_with('[') { ('[', ']') } else { ('{', '}') };
        let unclosed = Diagnostic::error(Code::Syntax, format!("this `{bracket}` is never closed"));
        Box::new(unclosed.at(self.reports.span(open, open + 1)).help(format!("add the missing `{closer}`")))
    }

    fn error(&self, message: impl Into<String>, help: &str) -> Fatal {
        let length = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        let span = self.reports.span(self.at, self.at + length);
        Box::new(Diagnostic::error(Code::Syntax, message).at(span).help(help))
    }
}

fn scalar(text: Arc<str>, style: Style) -> Kind {
    Kind::Scalar(Scalar { text, style, tag: None })
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Read, read};
    use super::*;
    use windlass_ir::{Source, SourceId};

    fn read_json(text: &str) -> Read {
        read(&Source::new("f", text), SourceId(0), Format::Json, &Limits::default())
    }

    /// Parses `text`; the value is compact JSON.
    fn check(text: &str, expected: &str) {
        let read = read_json(text);
        assert_eq!(read.diagnostics, [], "{text:?}");
        let value = read.root.expect("read without findings").to_value();
        assert_eq!(value.to_json_text().as_deref(), Some(expected), "{text:?}");
    }

    /// `text` cannot be parsed; its only finding is at offset `at`.
    fn check_error(text: &str, at: u32, message: &str) {
        let read = read_json(text);
        assert_eq!(read.root, None, "{text:?}");
        let shown: Vec<_> = read
            .diagnostics
            .iter()
            .map(|found| (found.code, found.span.map(|span| span.start), &*found.message))
            .collect();
        assert_eq!(shown, [(Code::Syntax, Some(at), message)], "{text:?}");
        assert_ne!(read.diagnostics[0].help, "", "{text:?}");
    }

    #[test]
    fn valid_texts() {
        check(" {} ", "{}");
        check("[]\n", "[]");
        check(
            r#"{"a": {"b": [1, "x", null, true, false]}, "": 0}"#,
            r#"{"a":{"b":[1,"x",null,true,false]},"":0}"#,
        );
        check("[0, -0, 1.50, 1e2, 1E+2, 1e-2, -1.5]", "[0,0,1.5,100.0,100.0,0.01,-1.5]");
        check(r#""\"\\\/\b\f\n\r\t\u0041\u00e9\uD83D\uDE00x""#, r#""\"\\/\b\f\n\r\tAé😀x""#);
        check("\"\u{7F}\u{2028}é\"", "\"\u{7F}\u{2028}é\"");
        check("\u{FEFF}\t\r\n1", "1");
        check("\"12\"", "\"12\"");
    }

    #[test]
    fn spans() {
        let text = r#" {"k": [12, "é\n"]} "#;
        let root = read_json(text).root.expect("valid");
        let under = |span: windlass_ir::Span| &text[span.start as usize..span.end as usize];
        assert_eq!(under(root.span), text.trim());
        let Kind::Map(map) = root.kind else { panic!("an object") };
        let entry = map.get("k").expect("it is there");
        assert_eq!((under(entry.key.span), under(entry.value.span)), ("\"k\"", r#"[12, "é\n"]"#));
        let Kind::List(items) = &entry.value.kind else { panic!("an array") };
        assert_eq!((under(items[0].span), under(items[1].span)), ("12", r#""é\n""#));
    }

    #[test]
    fn invalid_values() {
        check_error("", 0, "the file is empty");
        check_error(" \n", 0, "the file is empty");
        check_error("nul", 0, "invalid JSON value `nul`");
        check_error("[True]", 1, "invalid JSON value `True`");
        check_error("[NaN]", 1, "invalid JSON value `NaN`");
        check_error("['a']", 1, "expected a value, found `'`");
        check_error("[é]", 1, "expected a value, found `é`");
        check_error("1 2", 2, "unexpected text after the end of the value");
        check_error("{}}", 2, "unexpected text after the end of the value");
        check_error("{} // c", 3, "expected the end of the file, found `/`");
        check_error("\u{0}", 0, "expected a value, found `\\0`");
        check_error("[1]\u{A0}", 3, "unexpected text after the end of the value");
    }

    #[test]
    fn invalid_numbers() {
        for text in ["01", "-", "-01", "1.", "1.e1", "1e", "1e+", "00"] {
            check_error(text, 0, &format!("`{text}` is not a number in JSON"));
        }
        check_error("[.5]", 1, "expected a value, found `.`");
        check_error("[+1]", 1, "expected a value, found `+`");
        check_error("[1.5.2]", 4, "expected `,` or `]`, found `.`");
        check_error("[0x10]", 2, "expected `,` or `]`, found `x`");
        check_error("1e400", 0, "the number 1e400 is too large");
    }

    #[test]
    fn invalid_collections() {
        check_error("[1, 2", 0, "this `[` is never closed");
        check_error("[1, ", 0, "this `[` is never closed");
        check_error("[{\"a\": 1", 1, "this `{` is never closed");
        check_error("{", 0, "this `{` is never closed");
        check_error("[", 1, "expected a value, but the file ends here");
        check_error("[1, ]", 2, "a comma after the last member is not allowed in JSON");
        check_error("{\"a\": 1,}", 7, "a comma after the last member is not allowed in JSON");
        check_error("[,1]", 1, "expected a value, found `,`");
        check_error("[1 2]", 3, "expected `,` or `]`, found `2`");
        check_error("[1}", 2, "expected `,` or `]`, found `}`");
        check_error("{a: 1}", 1, "a key needs double quotes");
        check_error("{1: 1}", 1, "expected a key in double quotes, found `1`");
        check_error("{\"a\" 1}", 5, "expected `:` after the key, found `1`");
        check_error("{\"a\": }", 6, "expected a value, found `}`");
        check_error("{\"a\"", 4, "expected `:` after the key, but the file ends here");
    }

    #[test]
    fn invalid_strings() {
        let unclosed = "this string is not terminated on its line";
        check_error("[\"a", 1, unclosed);
        check_error("[\"a\nb\"]", 1, unclosed);
        check_error("\"a\\\"", 0, unclosed);
        check_error("\"a\tb\"", 2, "control character 0x09 in a string");
        check_error("\"a\u{0}\"", 2, "control character 0x00 in a string");
        check_error("\"a\\x41\"", 2, "invalid escape sequence `\\x`");
        check_error("\"a\\'\"", 2, "invalid escape sequence `\\'`");
        check_error("\"\\", 1, "invalid escape sequence `\\`");
        for text in [
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\u+123""#,
            r#""\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\u0041""#,
            r#""\ude00""#,
            "\"\\u00é\"",
        ] {
            check_error(text, 1, "invalid Unicode escape");
        }
    }

    #[test]
    fn all_duplicates_are_reported() {
        let read = read_json(r#"{"a": 1, "\u0061": 2, "b": {"c": 1, "c": 2}}"#);
        let shown: Vec<_> = read
            .diagnostics
            .iter()
            .map(|found| (found.code, found.span.map(|span| span.start), found.labels[0].span.start))
            .collect();
        assert_eq!(shown, [(Code::DuplicateKey, Some(9), 1), (Code::DuplicateKey, Some(36), 28)]);
        let value = read.root.expect("reading continues").to_value();
        assert_eq!(value.to_json_text().as_deref(), Some(r#"{"a":1,"b":{"c":1}}"#));
    }

    #[test]
    fn nesting_is_bounded() {
        let code = |text: &str| read_json(text).diagnostics.first().map(|found| found.code);
        assert_eq!(code(&("[".repeat(256) + &"]".repeat(256))), None);
        assert_eq!(code(&("[".repeat(257) + &"]".repeat(257))), Some(Code::TooDeep));
        for text in ["[".repeat(1_000_000), "{\"a\":".repeat(10_000), "[{\"a\":".repeat(10_000)] {
            assert_eq!(code(&text), Some(Code::TooDeep));
        }
    }
}
