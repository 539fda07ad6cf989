//! Expressions between `{{` and `}}`: paths and plain literals. What else the language has is null here.

use std::ops::Range;
use windlass_ir::expr::{Expr, Namespace, Node, Piece, Read, Template};
use windlass_ir::{Code, Diagnostic, Span, Value};

type Locate<'a> = &'a dyn Fn(Range<usize>) -> Span;

/// A field: typed if it is exactly one block, text otherwise.
pub fn parse_template(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let start = text.len() - text.trim_start().len();
    let blocks = blocks(text);
    let template = match blocks.as_slice() {
        [] => Template::Constant(Value::text(text)),
        [only] if only.start == start && only.end == text.trim_end().len() => {
            Template::Expression(expression(text, only, locate))
        }
        blocks => Template::Text(pieces(text, blocks, locate)),
    };
    (template, Vec::new())
}

/// A condition: nothing, true, false, or exactly one block.
pub fn parse_condition(text: &str, locate: Locate<'_>) -> (Expr, Vec<Diagnostic>) {
    let whole = || locate(0..text.len());
    let literal = |value: Value| Expr::new(Node::Literal(value), whole());
    let trimmed = text.trim();
    match trimmed.to_lowercase().as_str() {
        "" => return (literal(Value::text("")), Vec::new()),
        "true" | "false" => return (literal(Value::Bool(trimmed.eq_ignore_ascii_case("true"))), Vec::new()),
        _ => {}
    }
    if let (Template::Expression(expr), _) = parse_template(text, locate) {
        return (expr, Vec::new());
    }
    let (code, message) = if blocks(text).is_empty() && text.contains("}}") && text.contains("{{") {
        (Code::ConditionBlockUnclosable, "a quote in this block is never closed")
    } else if blocks(text).is_empty() {
        (Code::ConditionWithoutBraces, "without `{{ }}` this is never evaluated, and always true")
    } else {
        (Code::ConditionNotOneBlock, "a condition is exactly one `{{ }}` block")
    };
    let help = "put the whole condition between one `{{` and one `}}`";
    let finding = Diagnostic::error(code, message).at(whole()).reference(text).help(help);
    (literal(Value::Bool(true)), vec![finding])
}

/// The blocks of a text, braces included; quotes protect what stands in them.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find("{{").map(|at| from + at) {
        let Some(end) = block_end(text, start + 2) else { break };
        found.push(start..end);
        from = end;
    }
    found
}

fn block_end(text: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text[from..].char_indices() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '}') if text[from + at..].starts_with("}}") => return Some(from + at + 2),
            (None, _) => {}
        }
    }
    None
}

fn pieces(text: &str, blocks: &[Range<usize>], locate: Locate<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for block in blocks {
        if block.start > from {
            pieces.push(Piece::Text(text[from..block.start].into()));
        }
        pieces.push(Piece::Expression(expression(text, block, locate)));
        from = block.end;
    }
    if from < text.len() {
        pieces.push(Piece::Text(text[from..].into()));
    }
    pieces
}

fn expression(text: &str, block: &Range<usize>, locate: Locate<'_>) -> Expr {
    let body = text[block.start + 2..block.end - 2].trim();
    let start = body.as_ptr() as usize - text.as_ptr() as usize;
    let span = locate(start..start + body.len());
    Expr::new(node(body, span), span)
}

fn node(body: &str, span: Span) -> Node {
    let quoted = ['\'', '"'].into_iter().find_map(|quote| body.strip_prefix(quote)?.strip_suffix(quote));
    if let Some(inner) = quoted {
        return Node::Literal(Value::text(inner));
    }
    if let Ok(int) = body.parse() {
        return Node::Literal(Value::Int(int));
    }
    let mut parts = body.split('.');
    let root = match parts.next().unwrap_or_default() {
        "inputs" => Namespace::Inputs,
        "steps" => Namespace::Steps,
        "item" => Namespace::Item,
        "fan_in" => Namespace::FanIn,
        "context" => Namespace::Context,
        "true" => return Node::Literal(Value::Bool(true)),
        "false" => return Node::Literal(Value::Bool(false)),
        _ => return Node::Literal(Value::Null),
    };
    if body.contains([' ', '[', '|', '(']) {
        return Node::Literal(Value::Null);
    }
    let first = Expr::new(Node::Read(Read::Namespace(root)), span);
    let path =
        parts.fold(first, |of, name| Expr::new(Node::Member { of: Box::new(of), name: name.into() }, span));
    path.node
}
