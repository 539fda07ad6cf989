//! `${{ … }}` in text, and conditions with or without the braces.

use super::parse::Parser;
use super::scan::{char_length, literal_length, unclosed_literal};
use super::{FINDINGS_MAX, Locate};
use std::ops::Range;
use windlass_ir::expr::{Expr, Node, Piece, Template};
use windlass_ir::{Code, Diagnostic, Value};

const EXPRESSION_BYTES_MAX: usize = 64 << 10;
const OPEN: &str = "${{";
const CLOSE: &str = "}}";

/// Parses a bare expression, without braces.
pub fn parse_expression(text: &str, locate: Locate<'_>) -> Result<Expr, Vec<Diagnostic>> {
    parse_body(text, 0..text.len(), 0..text.len(), locate)
}

/// Parses text with any number of `${{ … }}`. A single expression with nothing around it keeps its type; a final line
/// break does not count, because folded blocks end with one. An invalid expression becomes null.
pub fn parse_template(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut pieces = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        push_text(&mut pieces, &text[rest..start]);
        rest = text.len();
        let parsed = find_end(text, start, locate).and_then(|body| {
            rest = body.end + CLOSE.len();
            parse_body(text, body, start..rest, locate)
        });
        pieces.push(Piece::Expression(parsed.unwrap_or_else(|found| {
            diagnostics.extend(found.into_iter().take(FINDINGS_MAX - diagnostics.len()));
            Expr::new(Node::Literal(Value::Null), locate(start..rest))
        })));
    }
    push_text(&mut pieces, &text[rest..]);
    (assemble(text, pieces), diagnostics)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
}

fn assemble(text: &str, mut pieces: Vec<Piece>) -> Template {
    if matches!(pieces.as_slice(), [Piece::Expression(_), Piece::Text(after)] if &**after == "\n") {
        pieces.pop();
    }
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Expression(expr)]) => Template::Expression(expr),
        Ok([Piece::Text(text)]) => Template::Constant(Value::Text(text)),
        Err(pieces) if pieces.is_empty() => Template::Constant(Value::text(text)),
        Err(pieces) => Template::Text(pieces),
    }
}

/// Parses a condition: one expression, bare or in one pair of braces.
pub fn parse_condition(text: &str, locate: Locate<'_>) -> Result<Expr, Vec<Diagnostic>> {
    let Range { start, end } = trimmed(text, 0..text.len());
    let Some(open) = find_open(&text[start..end]).map(|found| start + found) else {
        return parse_body(text, start..end, 0..text.len(), locate);
    };
    let body = find_end(&text[..end], open, locate)?;
    let close = body.end + CLOSE.len();
    let outside = if open > start { trimmed(text, start..open) } else { trimmed(text, close..end) };
    if outside.is_empty() {
        return parse_body(text, body, open..close, locate);
    }
    let second = text[outside.clone()].contains(OPEN);
    let message = if second {
        "this condition has more than one `${{ … }}`"
    } else {
        "a condition must be a single expression"
    };
    let help = "put the whole condition in one pair of braces, e.g. `${{ a && b }}`, or remove the braces";
    Err(vec![Diagnostic::error(Code::ExpressionSyntax, message).at(locate(outside)).help(help)])
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.end - part.trim_start().len();
    start..start + part.trim().len()
}

/// The position of the first `${{` outside a string literal.
fn find_open(text: &str) -> Option<usize> {
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(OPEN) {
            return Some(at);
        }
        at += match rest.as_bytes()[0] {
            // An unterminated literal is reported when the expression is parsed.
            b'\'' | b'"' => literal_length(rest)?,
            _ => char_length(rest),
        };
    }
    None
}

/// The range between the `${{` at `start` and its `}}`. Braces in string literals do not count.
fn find_end(text: &str, start: usize, locate: Locate<'_>) -> Result<Range<usize>, Vec<Diagnostic>> {
    let body = start + OPEN.len();
    let mut at = body;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(CLOSE) {
            return Ok(body..at);
        }
        at += match rest.as_bytes()[0] {
            b'\'' | b'"' => match literal_length(rest) {
                Some(length) => length,
                None => return Err(vec![unclosed_literal(locate(at..text.len()))]),
            },
            _ => char_length(rest),
        };
    }
    let message = "`${{` has no closing `}}`";
    let help = "close the expression with `}}`; to write the braces as text, use `${{ '${{' }}`";
    Err(vec![Diagnostic::error(Code::ExpressionSyntax, message).at(locate(start..body)).help(help)])
}

/// Parses the expression in `body`; `whole` is the location to report if it is empty.
fn parse_body(
    text: &str,
    body: Range<usize>,
    whole: Range<usize>,
    locate: Locate<'_>,
) -> Result<Expr, Vec<Diagnostic>> {
    if body.len() > EXPRESSION_BYTES_MAX {
        let message = format!("the expression is longer than {EXPRESSION_BYTES_MAX} bytes");
        let help = "move data out of the expression, into a parameter or a file";
        return Err(vec![Diagnostic::error(Code::ExpressionLimit, message).at(locate(whole)).help(help)]);
    }
    if text[body.clone()].trim().is_empty() {
        let help = "write a value such as `parameters.name`";
        return Err(vec![
            Diagnostic::error(Code::ExpressionSyntax, "the expression is empty").at(locate(whole)).help(help),
        ]);
    }
    Parser::new(&text[..body.end], body.start, locate).run()
}
