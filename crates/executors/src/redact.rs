//! Redaction: replaces every secret of a job in its output, even if it arrives in pieces.

use std::borrow::Cow;
use std::sync::Arc;
use windlass_ir::Value;

const MASK: &str = "***";

/// Shorter secrets would mask much of any text and protect nothing.
const SECRET_CHARS_MIN: usize = 4;

/// The patterns to find. Cheap to clone.
#[derive(Clone)]
pub struct Redactor {
    patterns: Arc<[Vec<u8>]>,
    /// Whether a pattern starts with this byte, which rules out most positions.
    first: Arc<[bool; 256]>,
}

/// Whether a secret starts at a position.
enum Look {
    Nothing,
    /// The longest match has this many bytes.
    Secret(usize),
    /// It depends on the next bytes.
    Undecided,
}

impl Redactor {
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: Vec<Vec<u8>> =
            secrets.into_iter().flat_map(forms).map(String::into_bytes).collect();
        patterns.sort();
        patterns.dedup();
        let mut first = [false; 256];
        for pattern in &patterns {
            first[usize::from(pattern[0])] = true;
        }
        Self { patterns: patterns.into(), first: first.into() }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    fn look(&self, rest: &[u8], is_all: bool) -> Look {
        if !self.first[usize::from(rest[0])] {
            return Look::Nothing;
        }
        if !is_all && self.patterns.iter().any(|p| p.len() > rest.len() && p.starts_with(rest)) {
            return Look::Undecided;
        }
        let found = self.patterns.iter().filter(|p| rest.starts_with(p)).map(Vec::len).max();
        found.map_or(Look::Nothing, Look::Secret)
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return text.into();
        }
        let (mut flow, mut clean) = (Flow::new(self.clone()), Vec::new());
        flow.push(text.as_bytes(), &mut clean);
        flow.finish(&mut clean);
        String::from_utf8_lossy(&clean).into_owned().into()
    }

    /// The same for data. A number that contains a secret becomes text.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            _ if self.is_empty() => value.clone(),
            Value::Null | Value::Bool(_) | Value::Sealed(_) => value.clone(),
            Value::Int(int) => self.number(value, &int.to_string()),
            Value::Float(float) => self.number(value, &float.to_string()),
            Value::Text(text) => Value::text(self.text(text)),
            Value::List(items) => Value::list(items.iter().map(|item| self.value(item))),
            Value::Map(map) => Value::map(map.iter().map(|(key, value)| (self.text(key), self.value(value)))),
        }
    }

    fn number(&self, value: &Value, shown: &str) -> Value {
        let clean = self.text(shown);
        if clean == shown { value.clone() } else { Value::text(clean) }
    }
}

/// A secret as it may be printed: without a trailing newline from a file, plain or inside JSON.
fn forms(secret: &str) -> Vec<String> {
    let plain = secret.trim();
    if plain.chars().count() < SECRET_CHARS_MIN {
        return Vec::new();
    }
    let quoted = serde_json::Value::from(plain).to_string();
    vec![plain.to_owned(), quoted[1..quoted.len() - 1].to_owned()]
}

/// One stream of bytes being redacted. A possible start of a secret is held back until it is decided.
pub struct Flow {
    redactor: Redactor,
    held: Vec<u8>,
    /// The number of held bytes that belong to an already masked secret.
    covered: usize,
}

impl Flow {
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), covered: 0 }
    }

    pub fn push(&mut self, bytes: &[u8], clean: &mut Vec<u8>) {
        if self.redactor.is_empty() {
            clean.extend_from_slice(bytes);
        } else {
            self.held.extend_from_slice(bytes);
            self.advance(false, clean);
        }
    }

    /// Nothing follows, so held bytes are not a secret.
    pub fn finish(&mut self, clean: &mut Vec<u8>) {
        self.advance(true, clean);
    }

    /// Secrets may overlap: the bytes of both are masked, and adjacent ones share one mask.
    fn advance(&mut self, is_all: bool, clean: &mut Vec<u8>) {
        let mut at = 0;
        while let Some(byte) = self.held.get(at) {
            match self.redactor.look(&self.held[at..], is_all) {
                Look::Undecided => break,
                Look::Nothing if at < self.covered => {}
                Look::Nothing => clean.push(*byte),
                Look::Secret(bytes) => {
                    if at >= self.covered {
                        clean.extend_from_slice(MASK.as_bytes());
                    }
                    self.covered = self.covered.max(at + bytes);
                }
            }
            at += 1;
        }
        self.held.drain(..at);
        self.covered = self.covered.saturating_sub(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to split the text in two must give the same result.
    fn check(secrets: &[&str], text: &str, expected: &str) {
        let redactor = Redactor::new(secrets.iter().copied());
        for cut in 0..=text.len() {
            let (mut flow, mut clean) = (Flow::new(redactor.clone()), Vec::new());
            flow.push(&text.as_bytes()[..cut], &mut clean);
            flow.push(&text.as_bytes()[cut..], &mut clean);
            flow.finish(&mut clean);
            assert_eq!(String::from_utf8_lossy(&clean), expected, "cut at {cut}");
        }
        assert_eq!(redactor.text(text), expected);
    }

    #[test]
    fn secrets_are_masked_wherever_the_text_is_split() {
        check(&[], "nothing to hide", "nothing to hide");
        check(&["hush"], "say hush, hushhush, hus", "say ***, ******, hus");
        check(&["hush\n"], "from a file: hush", "from a file: ***");
        check(&["abc"], "abc is too short", "abc is too short");
        check(&["aaab"], "aaaaaab", "aaa***");
        check(&["line one\nline two"], "<line one\nline two>", "<***>");
        check(&["p\"ss"], r#"p"ss {"a":"p\"ss"}"#, r#"*** {"a":"***"}"#);
        check(&["grün"], "grün", "***");
    }

    #[test]
    fn secrets_may_share_a_prefix_or_overlap() {
        check(&["abcd", "abcdef"], "abcd abcde abcdef", "*** ***e ***");
        check(&["abcXYZ", "XYZdef"], "-abcXYZdef-", "-***-");
        check(&["abcd", "bc d"], "abcd", "***");
    }

    #[test]
    fn a_stream_is_not_delayed_by_text_that_cannot_be_a_secret() {
        let (mut flow, mut clean) = (Flow::new(Redactor::new(["hush"])), Vec::new());
        flow.push(b"ready? hus", &mut clean);
        assert_eq!(clean, b"ready? ");
        flow.push(b"ky\n", &mut clean);
        assert_eq!(clean, b"ready? husky\n");
    }

    #[test]
    fn data_is_masked_in_keys_strings_and_numbers() {
        let redactor = Redactor::new(["12345", "hush"]);
        let value: Value =
            serde_json::from_str(r#"{"hush":[12345,1234,0.12345,"a hush b",null]}"#).expect("JSON");
        let expected = r#"{"***":["***",1234,"0.***","a *** b",null]}"#;
        assert_eq!(redactor.value(&value).to_json_text().as_deref(), Some(expected));
    }
}
