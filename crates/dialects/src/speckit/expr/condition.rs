//! Conditions: true, false, or exactly one block. For the original, anything else is text, and text is always true,
//! so it is an error.

use super::body::Body;
use super::parse::Parser;
use super::{Block, CLOSE, Locate, OPEN, block, parse_body, parse_template, scan, single_block};
use std::ops::Range;
use windlass_ir::expr::{Expr, Node, Template, python};
use windlass_ir::{Code, Diagnostic, Severity, Value};

/// Parses the condition of a step. Invalid braces are an error; such a condition counts as true, as the original
/// would treat most of them.
pub fn parse_condition(text: &str, locate: Locate<'_>) -> (Expr, Vec<Diagnostic>) {
    let constant = |flag: bool| Expr::new(Node::Literal(Value::Bool(flag)), locate(0..text.len()));
    if let Some(flag) = spoken(text) {
        return (constant(flag), Vec::new());
    }
    let mut findings = Vec::new();
    match whole_block(text) {
        Some(body) => (parse_body(text, body, locate, &mut findings), findings),
        None => (constant(true), vec![braces(text, Severity::Error, locate)]),
    }
}

/// Parses a condition as the original evaluates it: text is true unless it says false or is empty. Conditions that a
/// step would refuse are warnings.
pub fn parse_any_condition(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let (template, mut findings) = parse_template(text, locate);
    if spoken(text).is_none() && whole_block(text).is_none() {
        findings.insert(0, braces(text, Severity::Warning, locate));
    }
    (template, findings)
}

/// Empty text is false; blanks are not empty.
fn spoken(text: &str) -> Option<bool> {
    let word = python::strip(text);
    if text.is_empty() || word.eq_ignore_ascii_case("false") {
        return Some(false);
    }
    word.eq_ignore_ascii_case("true").then_some(true)
}

/// The range between the braces if the text is one properly closed block.
fn whole_block(text: &str) -> Option<Range<usize>> {
    single_block(text).filter(|_| unclosable(text).is_none())
}

/// How the first block that cannot be closed ends, if there is one.
fn unclosable(text: &str) -> Option<Block> {
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        match block(text, start) {
            Block::Closed(body) => rest = body.end + CLOSE.len(),
            open @ (Block::Cut(_) | Block::Unclosed) => return Some(open),
        }
    }
    None
}

/// Explains a condition that is neither a word nor one block.
fn braces(text: &str, severity: Severity, locate: Locate<'_>) -> Diagnostic {
    let stripped = python::strip(text);
    let start = text.len() - text.trim_start_matches(python::is_space).len();
    let place = if stripped.is_empty() { 0..text.len() } else { start..start + stripped.len() };
    let (code, message, help) = match unclosable(stripped) {
        Some(Block::Cut(_)) => (
            Code::ConditionBlockUnclosable,
            "a quote hides the end of the block, so only the part before the first `}}` would be evaluated",
            "close the quote before `}}`",
        ),
        None if stripped.contains(OPEN) => (
            Code::ConditionNotOneBlock,
            "the block is not alone, so the condition becomes text, and almost all text is true",
            "put the whole condition in one pair of braces, e.g. `{{ inputs.a and inputs.b }}`",
        ),
        Some(Block::Closed(_) | Block::Unclosed) | None => (
            Code::ConditionWithoutBraces,
            "the condition is not in braces, so it is text, and this text is always true",
            "put the whole condition in one pair of braces, e.g. `{{ inputs.count > 1 }}`, or write true or \
                false",
        ),
    };
    let suggest = if code == Code::ConditionWithoutBraces { correction(stripped) } else { None };
    Diagnostic::new(severity, code, message).at(locate(place)).suggest(suggest).help(help)
}

/// The same condition in one block, if that is clearly the intent: everything in it parses as written.
fn correction(text: &str) -> Option<String> {
    let core = without_braces(text);
    let core = python::strip(&core);
    if core.is_empty() || scan::has_open_quote(core) {
        return None;
    }
    let nowhere = |_| windlass_ir::Span::default();
    let body = Body::new(core, 0..core.len(), &nowhere);
    let mut parser = Parser::new(&body);
    parser.whole();
    let plain = parser.plain;
    (plain && parser.into_findings().is_empty()).then(|| format!("{OPEN} {core} {CLOSE}"))
}

/// The text without any braces outside quotes, and with one space in their place.
fn without_braces(text: &str) -> String {
    let mut out = String::new();
    let (mut rest, mut quote) = (text, None);
    while let Some(letter) = rest.chars().next() {
        if quote.is_none() && (rest.starts_with(OPEN) || rest.starts_with(CLOSE)) {
            rest = rest[OPEN.len()..].trim_start_matches(python::is_space);
            out.truncate(out.trim_end_matches(python::is_space).len());
            out.push(' ');
            continue;
        }
        quote = match (quote, letter) {
            (None, '\'' | '"') => Some(letter),
            (Some(open), close) if open == close => None,
            (quote, _) => quote,
        };
        out.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    out
}
