//! Where the programs differ by decision: `docs/internals/differential.md` has the list.

use serde_json::{Map, Value as Json};

const BIG_INTEGERS: &str = "integers beyond 64 bits are floats";
const HALF_PAIRS: &str = "half of a surrogate pair is not text";

/// The decision by which this expression may differ.
pub fn of_expression(text: &str) -> Option<&'static str> {
    if has_half_pair(text) {
        return Some(HALF_PAIRS);
    }
    has_big_integer(text).then_some(BIG_INTEGERS)
}

/// An escape of JSON that is, or may be, one half of a letter.
fn has_half_pair(text: &str) -> bool {
    let after = text.match_indices("\\u").map(|(at, _)| &text[at + 2..]);
    after.map(str::to_ascii_lowercase).any(|digits| {
        digits
            .strip_prefix('d')
            .is_some_and(|rest| rest.starts_with(['8', '9', 'a', 'b', 'c', 'd', 'e', 'f']))
    })
}

/// Whether this is a number that JSON has no word for. What is recorded is JSON, and there it is null.
pub fn is_no_json(tagged: &Map<String, Json>) -> bool {
    let float = tagged.get("~float").and_then(Json::as_str).and_then(|text| text.parse::<f64>().ok());
    float.is_some_and(|float| !float.is_finite())
}

const NULL_IS_ABSENT: &str = "dcc: a key without a value is a key that is not there";

/// The decision by which a workflow of DCC-MCP may be read differently.
pub fn of_dcc(ours: &Json, theirs: &Json) -> Option<&'static str> {
    let refused =
        |side: &Json, words: &str| side["refused"].as_str().is_some_and(|said| said.contains(words));
    let absent = refused(theirs, "invalid type: null") || refused(ours, "`name` is missing");
    absent.then_some(NULL_IS_ABSENT)
}

/// Nineteen digits in a row may be more than 64 bits hold.
fn has_big_integer(text: &str) -> bool {
    let mut digits = 0;
    text.chars().any(|letter| {
        digits = match letter {
            '_' => digits,
            letter if letter.is_numeric() => digits + 1,
            _ => 0,
        };
        digits >= 19
    })
}
