//! Writes actual results into a case file. It replaces each expectation that failed and adds a block to a case without
//! expectations. The rest of the file stays unchanged.

use super::compare::{differences, seen_in};
use super::{Done, Tested};
use serde_json::Value as Json;
use windlass_dialects::Text;
use windlass_dialects::cases::read_cases;
use windlass_ir::{SourceId, Span};

/// The updated text, or why the user must edit the file by hand. None if nothing changes.
pub fn updated(tested: &Tested) -> Result<Option<String>, String> {
    let text = &*tested.sources.get(SourceId(0)).text;
    let mut edits: Vec<(usize, usize, String)> = Vec::new();
    for done in &tested.cases {
        if done.case.expect.is_none() {
            edits.push(block(text, done)?);
        }
        let expected =
            done.differences.iter().filter_map(|difference| Some((difference.span?, &difference.seen)));
        edits.extend(expected.map(|(span, seen)| in_place(text, span, seen)));
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.sort();
    edits.dedup();
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, seen) in edits {
        let between = text
            .get(at..start)
            .ok_or("two cases share an expectation through an alias; write it out in each case")?;
        new.push_str(between);
        new.push_str(&seen);
        at = end;
    }
    new.push_str(text.get(at..).unwrap_or_default());
    match is_met(tested, &new) {
        true => Ok(Some(new)),
        false => {
            Err("the results cannot be written into this file automatically; edit it by hand".to_owned())
        }
    }
}

/// Whether the new text expects the actual results.
fn is_met(tested: &Tested, new: &str) -> bool {
    let text = Text { name: tested.file.display().to_string(), bytes: new.as_bytes().to_vec() };
    let read = read_cases(text);
    read.cases.len() == tested.cases.len()
        && read.cases.iter().zip(&tested.cases).all(|(case, done)| {
            case.name == done.name
                && case.expect.as_ref().is_some_and(|expect| differences(expect, &done.seen).is_empty())
        })
}

fn in_place(text: &str, span: Span, seen: &Json) -> (usize, usize, String) {
    let (start, end) = (span.start as usize, span.end as usize);
    let before = text.get(start..end).unwrap_or_default();
    // The span of a block may include its final newline.
    let written = before.trim_end();
    (start, start + written.len(), value(seen))
}

/// A value as YAML on one line.
fn value(json: &Json) -> String {
    match json {
        Json::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether YAML reads this text as the same string without quotes.
fn is_plain(text: &str) -> bool {
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(letters)
        && !words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A complete `expect` block, inserted below the last key of the case.
fn block(text: &str, done: &Done) -> Result<(usize, usize, String), String> {
    let span = done.case.span;
    let (start, end) = (span.start as usize, span.end as usize);
    let case = text.get(start..end).unwrap_or_default();
    if case.starts_with('{') {
        return Err(format!(
            "the case `{}` is written in braces; write it in block style, or add `expect` by hand",
            done.name
        ));
    }
    let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let indent = " ".repeat(text[line..start].chars().count());
    let last = start + case.trim_end().len();
    let at = text[last..].find('\n').map_or(text.len(), |next| last + next);
    let mut new = format!("\n{indent}expect:");
    let Json::Object(seen) = seen_in(&done.seen) else { return Err("the run has no results".to_owned()) };
    for (key, seen) in &seen {
        match seen {
            Json::Object(steps) if key == "steps" => {
                new += &format!("\n{indent}  steps:");
                for (id, status) in steps {
                    let id = Json::String(id.clone());
                    new += &format!("\n{indent}    {}: {}", value(&id), value(status));
                }
            }
            seen => new += &format!("\n{indent}  {key}: {}", value(seen)),
        }
    }
    Ok((at, at, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_unquoted() {
        for (text, expected) in [
            ("success", "success"),
            ("timed_out", "timed_out"),
            ("no", "\"no\""),
            ("a: b", "\"a: b\""),
            ("", "\"\""),
            ("1", "\"1\""),
        ] {
            assert_eq!(value(&Json::String(text.to_owned())), expected);
        }
        assert_eq!(value(&serde_json::json!({"a": [1, null]})), r#"{"a":[1,null]}"#);
    }
}
