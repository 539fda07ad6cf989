//! The regular expressions of JSONPath (I-Regexp, RFC 9485), compiled once per search and with limits.

use super::eval::{EvalError, Meter};
use regex::{Regex, RegexBuilder};
use std::collections::HashMap;

/// The cost of compiling a pattern, in steps: far more work than visiting a node.
const COMPILE_STEPS: usize = 50_000;
/// Patterns that compile to more than this match nothing.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Longer patterns match nothing.
const PATTERN_BYTES_MAX: usize = 4096;

/// The compiled patterns of one search; `None` for invalid ones.
#[derive(Default)]
pub(super) struct Patterns(HashMap<(String, bool), Option<Regex>>);

impl Patterns {
    /// Whether a text matches, as a whole or somewhere inside. Invalid patterns match nothing.
    pub(super) fn matches(
        &mut self,
        text: &str,
        pattern: &str,
        entire: bool,
        meter: &mut Meter,
    ) -> Result<bool, EvalError> {
        meter.work(1 + text.len() / 16)?;
        if pattern.len() > PATTERN_BYTES_MAX {
            return Ok(false);
        }
        let key = (pattern.to_owned(), entire);
        if !self.0.contains_key(&key) {
            meter.work(COMPILE_STEPS)?;
            self.0.insert(key.clone(), compile(pattern, entire));
        }
        Ok(self.0.get(&key).is_some_and(|regex| regex.as_ref().is_some_and(|regex| regex.is_match(text))))
    }
}

fn compile(pattern: &str, entire: bool) -> Option<Regex> {
    let pattern = translated(pattern);
    let pattern = if entire { format!(r"\A(?:{pattern})\z") } else { pattern };
    RegexBuilder::new(&pattern).size_limit(COMPILED_BYTES_MAX).build().ok()
}

/// In I-Regexp a dot matches neither a line feed nor a carriage return; by default it would match the latter.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut escaped, mut in_class) = (false, false);
    for c in pattern.chars() {
        match c {
            '.' if !escaped && !in_class => out.push_str(r"[^\n\r]"),
            _ => out.push(c),
        }
        in_class = if escaped { in_class } else { c == '[' || (in_class && c != ']') };
        escaped = !escaped && c == '\\';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Limits;

    #[test]
    fn patterns_follow_the_rfc() {
        let check = |text: &str, pattern: &str, entire: bool, expected: bool| {
            let found =
                Patterns::default().matches(text, pattern, entire, &mut Meter::new(&Limits::default()));
            assert_eq!(found, Ok(expected), "{pattern} in {text}");
        };
        check("a\rb", "a.b", false, false);
        check("a.b", r"a\.b", true, true);
        check("axb", r"a\.b", true, false);
        check("a.b", "a[.]b", true, true);
        check("axb", "a[.]b", true, false);
        check("ab", "a|b", true, false);
        check("a\nb", "a", true, false);
        check("[", r"\[", true, true);
        check("x", "[", false, false);
        check("x", "(((x{1000}){1000}){1000})", false, false);
    }
}
