//! A JSONPath (RFC 9535), parsed once and stored with its text. `search` evaluates it.
//!
//! The parser backtracks to the start of a call, so nested calls take exponential time. Paths that might be nested
//! too deeply are refused before they are parsed.

use super::eval::{EvalError, Meter};
use super::search;
use crate::value::Value;
use jsonpath_rust::parser::model::{JpQuery, Segment, Selector};
use jsonpath_rust::parser::parse_json_path;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::Range;
use std::sync::Arc;

/// Longer paths are refused before they are parsed.
const TEXT_MAX: usize = 4096;
/// The maximum nesting of brackets and parentheses.
const DEPTH_MAX: usize = 32;
/// The maximum nesting of function calls.
const CALLS_MAX: usize = 4;

#[derive(Clone, Debug)]
pub struct Query {
    text: Arc<str>,
    parsed: Arc<JpQuery>,
}

/// Why a text is not a valid JSONPath.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    #[error("the path is longer than {TEXT_MAX} bytes")]
    TooLong,
    #[error("the path is nested too deeply")]
    TooDeep,
    #[error("{0}")]
    Syntax(String),
}

impl QueryError {
    /// Whether the path may be valid but exceeds a limit.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::TooLong | Self::TooDeep => true,
            Self::Syntax(_) => false,
        }
    }
}

/// A segment of a path that selects exactly one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPart {
    Name(Arc<str>),
    /// Counts from the start.
    Index(i64),
}

impl Query {
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > TEXT_MAX {
            return Err(QueryError::TooLong);
        }
        check_depth(text)?;
        let parsed = parse_json_path(text).map_err(|error| QueryError::Syntax(error.to_string()))?;
        Ok(Self { text: text.into(), parsed: Arc::new(parsed) })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Null for no match, the value itself for one match, a list for several.
    pub(super) fn find(&self, value: &Value, meter: &mut Meter) -> Result<Value, EvalError> {
        let found = search::find(&self.parsed, value, meter)?;
        meter.make_elements(found.len())?;
        Ok(match found.as_slice() {
            [] => Value::Null,
            [one] => (*one).clone(),
            many => Value::list(many.iter().copied().cloned()),
        })
    }

    /// The leading segments that select exactly one place each, with their text.
    pub fn leading(&self) -> Vec<(PathPart, Range<usize>)> {
        let mut parts = Vec::new();
        let mut at = 1;
        for segment in &self.parsed.segments {
            let (Some(part), Some(range)) = (single(segment), segment_range(&self.text, at)) else { break };
            let written = self.text[range.clone()].strip_prefix('.');
            // The parser accepts blanks inside a name; leave such names to it.
            if written.is_some_and(|name| part != PathPart::Name(name.into())) {
                break;
            }
            at = range.end;
            parts.push((part, range));
        }
        parts
    }

    /// The rest of the path after byte `at`, as a path of its own; `None` if nothing follows.
    pub fn after(&self, at: usize) -> Option<Self> {
        let rest = self.text.get(at..).filter(|rest| !rest.trim().is_empty())?;
        Self::parse(&format!("${rest}")).ok()
    }

    /// Whether one of its filters refers to the root again.
    pub fn looks_back(&self) -> bool {
        outside_quotes(&self.text).filter(|(_, c)| *c == '$').count() > 1
    }
}

fn single(segment: &Segment) -> Option<PathPart> {
    match segment {
        Segment::Selector(Selector::Name(name)) => Some(PathPart::Name(name.as_str().into())),
        Segment::Selector(Selector::Index(index)) if *index >= 0 => Some(PathPart::Index(*index)),
        Segment::Selector(_) | Segment::Selectors(_) | Segment::Descendant(_) => None,
    }
}

/// The text of the segment at or after `at`, without leading blanks.
fn segment_range(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let start = at + (rest.len() - rest.trim_start().len());
    let rest = &text[start..];
    let length = if let Some(name) = rest.strip_prefix('.') {
        1 + name.find(|c: char| c == '.' || c == '[' || c.is_whitespace()).unwrap_or(name.len())
    } else {
        outside_quotes(rest).find(|(_, c)| *c == ']').map(|(at, _)| at + 1)?
    };
    Some(start..start + length)
}

/// The characters outside of quoted strings, without the quotes.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().filter(move |(_, c)| match quote {
        Some(open) => {
            let closes = !escaped && *c == open;
            escaped = !escaped && *c == '\\';
            quote = quote.filter(|_| !closes);
            false
        }
        None => {
            quote = matches!(c, '\'' | '"').then_some(*c);
            quote.is_none()
        }
    })
}

fn check_depth(text: &str) -> Result<(), QueryError> {
    let mut open: Vec<bool> = Vec::new();
    let mut before = ' ';
    for (_, c) in outside_quotes(text) {
        match c {
            '(' | '[' => open.push(c == '(' && (before.is_alphanumeric() || before == '_')),
            ')' | ']' => drop(open.pop()),
            _ => {}
        }
        let calls = || open.iter().filter(|is_call| **is_call).count();
        if open.len() > DEPTH_MAX || (c == '(' && calls() > CALLS_MAX) {
            return Err(QueryError::TooDeep);
        }
        before = c;
    }
    Ok(())
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Query {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_leading(text: &str, expected: &[&str], rest: Option<&str>) {
        let query = Query::parse(text).expect(text);
        let parts = query.leading();
        let shown: Vec<String> = parts
            .iter()
            .map(|(part, _)| match part {
                PathPart::Name(name) => name.to_string(),
                PathPart::Index(index) => format!("[{index}]"),
            })
            .collect();
        assert_eq!(shown, expected, "{text}");
        let end = parts.last().map_or(1, |(_, range)| range.end);
        assert_eq!(query.after(end).map(|rest| rest.text().to_owned()).as_deref(), rest, "{text}");
    }

    #[test]
    fn leading_static_segments_are_split_off() {
        check_leading("$", &[], None);
        check_leading("$.inputs.a", &["inputs", "a"], None);
        check_leading(
            "$.steps.list.output.files[0].x",
            &["steps", "list", "output", "files", "[0]", "x"],
            None,
        );
        check_leading("$['a b']['it\\'s']", &["a b", "it's"], None);
        check_leading("$[\"]\"][ 'x' ].y", &["]", "x", "y"], None);
        check_leading("$ .a [1] .b", &["a", "[1]", "b"], None);
        check_leading("$.größe.x", &["größe", "x"], None);
        check_leading("$.a[-1].b", &["a"], Some("$[-1].b"));
        check_leading("$.a[*].b", &["a"], Some("$[*].b"));
        check_leading("$.a.*", &["a"], Some("$.*"));
        check_leading("$.a..b", &["a"], Some("$..b"));
        check_leading("$..b", &[], Some("$..b"));
        check_leading("$.a[0, 1]", &["a"], Some("$[0, 1]"));
        check_leading("$.a[1:2]", &["a"], Some("$[1:2]"));
        check_leading("$.a[?@.b == ']']", &["a"], Some("$[?@.b == ']']"));
    }

    #[test]
    fn a_root_reference_inside_a_filter_is_detected() {
        let check = |text: &str, expected: bool| {
            assert_eq!(Query::parse(text).expect(text).looks_back(), expected, "{text}");
        };
        check("$.a[?@.b > 1]", false);
        check("$.a[?@.b == '$']", false);
        check("$['$'].b", false);
        check("$.a[?@.b == $.limit]", true);
        check("$.a[?$.limit]", true);
    }

    #[test]
    fn paths_nested_too_deeply_are_refused_at_once() {
        let refused = |text: &str| Query::parse(text).expect_err(text).to_string();
        for deep in [
            format!("$[?{}@{}]", "(".repeat(40), ")".repeat(40)),
            format!("$[?{}", "count(@[?".repeat(100)),
            format!("$[?{}", "length(".repeat(100)),
            format!("$[?{}@.a{}]", "length(".repeat(5), ")".repeat(5)),
            format!("${}", "[?@".repeat(1000)),
        ] {
            assert_eq!(refused(&deep), "the path is nested too deeply");
        }
        assert_eq!(refused(&format!("$.{}", "a".repeat(5000))), "the path is longer than 4096 bytes");
        for fits in [
            format!("$[?{}@.a{}]", "(".repeat(30), ")".repeat(30)),
            format!("$[?{}@.a{}]", "length(".repeat(4), ")".repeat(4)),
            format!("${}", "[*]".repeat(1000)),
        ] {
            assert!(Query::parse(&fits).is_ok(), "{fits}");
        }
        for wrong in
            [format!("$[?{}", "count(@[?".repeat(4)), format!("$[?{}", "length(".repeat(4)), "$[".repeat(16)]
        {
            assert!(Query::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
