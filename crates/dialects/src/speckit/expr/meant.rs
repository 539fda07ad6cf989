//! Guesses what an author meant by something that silently becomes null: mostly words and operators of other
//! languages.

use super::{path, scan};
use windlass_ir::expr::python;
use windlass_ir::suggest::nearest;

pub(super) struct Meant {
    pub help: String,
    /// How to write it, if that is certain enough.
    pub suggest: Option<String>,
}

/// Functions and methods of other languages that are filters here, and the names of the filters.
const CALLS: [(&str, &str); 10] = [
    ("length", "length"),
    ("len", "length"),
    ("upper", "upper"),
    ("lower", "lower"),
    ("to_json", "to_json"),
    ("from_json", "from_json"),
    ("split", "split"),
    ("default", "default"),
    ("contains", "contains"),
    ("join", "join"),
];

fn say(help: &str) -> Option<Meant> {
    Some(Meant { help: help.into(), suggest: None })
}

fn write(suggest: String, help: &str) -> Option<Meant> {
    Some(Meant { help: help.into(), suggest: Some(suggest) })
}

/// Shortens a long text for messages.
pub(super) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first guess that matches; the more specific ones come first.
pub(super) fn guess(text: &str) -> Option<Meant> {
    const GUESSES: [fn(&str) -> Option<Meant>; 11] = [
        missing, open_quote, negation, words, comparison, choice, call, subscript, number, braces, arithmetic,
    ];
    GUESSES.iter().find_map(|guess| guess(text))
}

/// Text that does not start with a word that starts a path.
pub(super) fn unknown_root(text: &str) -> Meant {
    const FOREIGN: [(&str, &str); 6] = [
        ("parameters", "inputs"),
        ("params", "inputs"),
        ("vars", "inputs"),
        ("stages", "steps"),
        ("needs", "steps"),
        ("loop", "item"),
    ];
    let (root, rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    let foreign = FOREIGN.iter().find(|(other, _)| *other == root).map(|(_, ours)| *ours);
    let root = foreign.or_else(|| nearest(root, path::roots()));
    let help = match text.contains('.') {
        true => "a path starts with inputs, steps, item, fan_in or context",
        false => "a path starts with inputs, steps, item, fan_in or context; put strings in quotes",
    };
    Meant { help: help.into(), suggest: root.map(|root| format!("{root}{rest}")) }
}

fn missing(text: &str) -> Option<Meant> {
    if text.is_empty() {
        say("write a value on both sides of an operator and between brackets")
    } else {
        None
    }
}

fn open_quote(text: &str) -> Option<Meant> {
    if scan::has_open_quote(text) {
        say("close the quote; there are no escapes, so use the other kind of quote inside")
    } else {
        None
    }
}

/// `!x` and `not(x)`.
fn negation(text: &str) -> Option<Meant> {
    let inner =
        text.strip_prefix('!').or_else(|| text.strip_prefix("not").filter(|rest| rest.starts_with('(')))?;
    write(format!("not {}", python::strip(inner)), "`not` needs a space after it")
}

/// `&&`, `AND`, and words without spaces around them.
fn words(text: &str) -> Option<Meant> {
    for (sign, word) in
        [("&&", "and"), (" AND ", "and"), (" And ", "and"), (" OR ", "or"), (" Or ", "or"), (" IN ", "in")]
    {
        if scan::has(text, sign) {
            let suggest = text
                .replace(&format!(" {} ", sign.trim()), &format!(" {word} "))
                .replace(sign, &format!(" {word} "));
            return write(
                suggest,
                "operators are `and`, `or`, `not` and `in`, in lower case and with spaces around them",
            );
        }
    }
    for prefix in ["NOT ", "Not "] {
        if let Some(inner) = text.strip_prefix(prefix) {
            return write(format!("not {inner}"), "operators are in lower case");
        }
    }
    let glued =
        [")and", "and(", ")or", "or(", ")in", " in(", "]and", "]or"].iter().any(|glued| text.contains(glued));
    if glued { say("put spaces around `and`, `or` and `in`") } else { None }
}

/// A single `=`, the rest of `===`, and Jinja's `is`.
fn comparison(text: &str) -> Option<Meant> {
    if let Some((value, test)) = text.split_once(" is ") {
        let operator = if test.starts_with("not ") { "==" } else { "!=" };
        return match test.strip_prefix("not ").unwrap_or(test) {
            "defined" => write(format!("{value} {operator} null"), "`is` tests are not supported"),
            _ => say("`is` tests are not supported; compare with `==`, or with null"),
        };
    }
    if scan::has(text, " = ") {
        return write(text.replacen(" = ", " == ", 1), "equality is written `==`");
    }
    if scan::has(text, "=") { say("equality is written `==`") } else { None }
}

fn choice(text: &str) -> Option<Meant> {
    let python = scan::has(text, " if ") || text.starts_with("if ");
    if python || scan::has(text, "?") {
        say("conditional expressions are not supported; use an `if` step, or `| default(…)`")
    } else {
        None
    }
}

/// `length(x)`, `x.upper()`, `x.get('k')`.
fn call(text: &str) -> Option<Meant> {
    let (before, argument) = text.strip_suffix(')')?.split_once('(')?;
    let (value, name) = before.rsplit_once('.').map_or((None, before), |(value, name)| (Some(value), name));
    if name.is_empty() || !name.chars().all(python::is_word) {
        return say("nothing can follow a group in parentheses");
    }
    let filter = CALLS.iter().find(|(other, _)| *other == name).map(|(_, filter)| *filter);
    let suggest = match (filter, value, argument) {
        (Some(filter), Some(value), "") => Some(format!("{value} | {filter}")),
        (Some(filter), Some(value), argument) => Some(format!("{value} | {filter}({argument})")),
        (Some(filter), None, value) if !scan::has(value, ",") => Some(format!("{value} | {filter}")),
        (_, _, _) => None,
    };
    Some(Meant {
        help: "functions and methods are not supported; use filters after a value, as in `value | upper`"
            .into(),
        suggest,
    })
}

/// `x["k"]`, `x[i]`, `a[0][1]`, `[1, 2][0]`, `(x).y`.
fn subscript(text: &str) -> Option<Meant> {
    if let Some((before, rest)) = text.split_once('[') {
        let key = rest.split_once(']').map_or("", |(key, _)| key);
        if let Some(key) = scan::literal(key) {
            let after = rest.split_once(']').map_or("", |(_, after)| after);
            return write(format!("{before}.{key}{after}"), "write keys after a dot");
        }
        let twice =
            before.chars().all(|c| python::is_word(c) || matches!(c, '.' | '-')) && rest.contains("][");
        return match twice {
            true => say("only one index can follow a name; take the value apart in a step"),
            false => say("an index is a number directly after a name, as in `inputs.list[0]`"),
        };
    }
    if text.starts_with('(') || text.contains(").") {
        say("nothing can follow a group; write the path without parentheses")
    } else {
        None
    }
}

/// `1e3`, `0x10`.
fn number(text: &str) -> Option<Meant> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let hexadecimal = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let exponent = text.parse::<f64>().ok().filter(|float| float.is_finite());
    let suggest =
        hexadecimal.map(|int| int.to_string()).or_else(|| exponent.map(|float| format!("{float:.1}")));
    Some(Meant {
        help: "a number is digits with an optional decimal point; an exponent needs the point: `1.0e3`"
            .into(),
        suggest,
    })
}

fn braces(text: &str) -> Option<Meant> {
    if text.starts_with("${") || text.starts_with('$') {
        return say("write values without `$`");
    }
    if !text.contains(['{', '}']) {
        return None;
    }
    say("a block has two braces on each side and none inside; parse objects from text: `'{\"a\": 1}' | \
            from_json`")
}

fn arithmetic(text: &str) -> Option<Meant> {
    let signs = [" - ", "+", "*", "/", "%", "~"];
    if signs.iter().any(|sign| scan::has(text, sign)) {
        say("arithmetic is not supported; compute the value in a step")
    } else {
        None
    }
}
