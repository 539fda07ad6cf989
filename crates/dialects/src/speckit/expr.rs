//! The syntax of Spec Kit's expressions: `{{ … }}` in text, and conditions.
//!
//! The original splits text instead of parsing it, and turns anything it cannot read into null. This parser makes the
//! same splits once, so that the tree has exactly the original's meaning; silent nulls and errors are reported on the
//! way. `body` is the text of one block, `scan` skips quotes and brackets, `parse` is the grammar, `filter` and
//! `path` are its leaves, `meant` guesses what the author wanted, and `condition` checks conditions.

mod body;
mod condition;
mod filter;
mod meant;
mod parse;
mod path;
mod scan;
mod scope;

pub use condition::{parse_any_condition, parse_condition};
pub use scope::scope;

use body::Body;
use parse::Parser;
use std::ops::Range;
use windlass_ir::expr::{Expr, Function, Node, Piece, Template, python};
use windlass_ir::{Code, Diagnostic, Severity, Span, Value};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const BODY_BYTES_MAX: usize = 64 << 10;
/// The maximum number of findings for one text.
const FINDINGS_MAX: usize = 50;

/// Maps a range of the text to its location in the file.
type Locate<'a> = &'a dyn Fn(Range<usize>) -> Span;

/// Parses text with any number of `{{ … }}` blocks. A single block with only blanks around it keeps the type of its
/// value; otherwise the blocks become part of the text.
pub fn parse_template(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let template = match single_block(text) {
        Some(body) => Template::Expression(parse_body(text, body, locate, &mut findings)),
        None => interpolated(text, locate, &mut findings),
    };
    findings.truncate(FINDINGS_MAX);
    (template, findings)
}

/// Defers errors to evaluation, as the original does.
pub fn raise_late(finding: &mut Diagnostic) {
    if matches!(finding.code, Code::ExpressionSyntax | Code::BadArity | Code::UnknownFunction) {
        finding.severity = Severity::Warning;
    }
}

/// The range between the braces if the text is exactly one block that is not blank.
fn single_block(text: &str) -> Option<Range<usize>> {
    let inner = python::strip(text).strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
    let start = text.find(OPEN)? + OPEN.len();
    let closed_early = scan::find_close(inner).is_some();
    (!closed_early && !python::strip(inner).is_empty()).then(|| start..start + inner.len())
}

fn parse_body(text: &str, range: Range<usize>, locate: Locate<'_>, findings: &mut Vec<Diagnostic>) -> Expr {
    if range.len() > BODY_BYTES_MAX {
        let finding = too_long(locate(range));
        let expr = parse::fail(finding.message.clone(), finding.span.unwrap_or_default());
        findings.push(finding);
        return expr;
    }
    let body = Body::new(text, range, locate);
    let mut parser = Parser::new(&body);
    let expr = parser.whole();
    findings.extend(parser.into_findings());
    expr
}

fn too_long(span: Span) -> Diagnostic {
    let message = format!("the expression is longer than {BODY_BYTES_MAX} bytes");
    let help = "move data out of the expression, into an input or a file";
    Diagnostic::error(Code::ExpressionLimit, message).at(span).help(help)
}

/// A block of a text with more than one part, and how it was closed.
enum Block {
    Closed(Range<usize>),
    /// A quote hides the end: the first `}}` inside it is used instead.
    Cut(Range<usize>),
    Unclosed,
}

/// The block whose braces open at `start`.
fn block(text: &str, start: usize) -> Block {
    let body = start + OPEN.len();
    match (scan::find_close(&text[body..]), text[body..].find(CLOSE)) {
        (Some(length), _) => Block::Closed(body..body + length),
        (None, Some(length)) => Block::Cut(body..body + length),
        (None, None) => Block::Unclosed,
    }
}

fn interpolated(text: &str, locate: Locate<'_>, findings: &mut Vec<Diagnostic>) -> Template {
    let (mut pieces, mut plain) = (Vec::new(), String::new());
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        plain.push_str(&text[rest..start]);
        let body = match block(text, start) {
            Block::Closed(body) => body,
            Block::Cut(body) => {
                note(findings, || cut_block(locate(start..body.end + CLOSE.len())));
                body
            }
            Block::Unclosed => {
                note(findings, || unclosed_block(locate(start..start + OPEN.len())));
                rest = start;
                break;
            }
        };
        rest = body.end + CLOSE.len();
        if python::strip(&text[body.clone()]).is_empty() {
            note(findings, || empty_block(locate(start..rest)));
            continue;
        }
        push_text(&mut pieces, &mut plain);
        let mut found = Vec::new();
        pieces.push(Piece::Expression(parse_body(text, body, locate, &mut found)));
        found.into_iter().for_each(|finding| note(findings, || finding));
    }
    plain.push_str(&text[rest..]);
    push_text(&mut pieces, &mut plain);
    assemble(pieces)
}

fn note(findings: &mut Vec<Diagnostic>, make: impl FnOnce() -> Diagnostic) {
    if findings.len() < FINDINGS_MAX {
        findings.push(make());
    }
}

fn push_text(pieces: &mut Vec<Piece>, plain: &mut String) {
    if !plain.is_empty() {
        pieces.push(Piece::Text(std::mem::take(plain).into()));
    }
}

/// A single expression is still text here, because a blank block was next to it.
fn assemble(pieces: Vec<Piece>) -> Template {
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Expression(expr)]) => {
            let span = expr.span;
            Template::Expression(Expr::new(Node::Call { function: Function::Text, args: vec![expr] }, span))
        }
        Ok([Piece::Text(text)]) => Template::Constant(Value::Text(text)),
        Err(pieces) if pieces.is_empty() => Template::Constant(Value::text("")),
        Err(pieces) => Template::Text(pieces),
    }
}

fn empty_block(span: Span) -> Diagnostic {
    Diagnostic::warning(Code::SilentNull, "the block is empty, so its value is an empty string")
        .at(span)
        .help("write a value such as `inputs.name`, or remove the braces")
}

fn unclosed_block(span: Span) -> Diagnostic {
    Diagnostic::warning(
        Code::ExpressionSyntax,
        "`{{` has no closing `}}`, so everything from here on stays text",
    )
    .at(span)
    .help("close the block with `}}`")
}

fn cut_block(span: Span) -> Diagnostic {
    let message = "a quote is not closed, so the block ends at the first `}}` inside it";
    Diagnostic::warning(Code::ExpressionSyntax, message).at(span).help("close the quote before `}}`")
}
