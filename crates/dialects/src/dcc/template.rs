//! The template syntax: `{{ path }}` in text, where a path is `name.name[0]` and nothing else.
//!
//! Paths start at the whole context ([`Namespace::Root`]); `bind` resolves them to the names of a file. An invalid
//! reference is a warning and fails when it is evaluated, because files with one are also accepted by the original.

use std::convert::Infallible;
use std::ops::Range;
use windlass_ir::expr::{Expr, Function, Namespace, Node, Piece, Read, Template};
use windlass_ir::{Code, Diagnostic, Span, Value};

pub const OPEN: &str = "{{";
pub const CLOSE: &str = "}}";
/// The maximum number of names and indices in one path.
const PARTS_MAX: usize = 256;
/// The maximum number of findings for one text.
const FINDINGS_MAX: usize = 50;
const FORM: &str = "write a path such as `{{inputs.files[0].name}}`";

/// Maps a range of the text to its location in the file.
pub type Locate<'a> = &'a dyn Fn(Range<usize>) -> Span;

/// Parses text with any number of references. A single reference with only blanks around it keeps its type.
pub fn parse_template(text: &str, locate: Locate<'_>) -> (Template, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let mut pieces = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(OPEN).map(|found| rest + found) {
        push_text(&mut pieces, &text[rest..start]);
        let body = start + OPEN.len();
        let close = text[body..].find(CLOSE).map(|found| body + found);
        rest = close.map_or(text.len(), |close| close + CLOSE.len());
        let parsed = match close {
            Some(close) => reference(text, body..close, start..rest, locate),
            None => Err(unclosed(locate(start..body))),
        };
        pieces.push(Piece::Expression(parsed.unwrap_or_else(|finding| {
            let failing = fail(&finding.message, locate(start..rest));
            if findings.len() < FINDINGS_MAX {
                findings.push(*finding);
            }
            failing
        })));
    }
    push_text(&mut pieces, &text[rest..]);
    (assemble(text, pieces), findings)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.into()));
    }
}

fn assemble(text: &str, pieces: Vec<Piece>) -> Template {
    let is_blank = |piece: &Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
    let mut visible = pieces.iter().filter(|piece| !is_blank(piece));
    match (visible.next(), visible.next()) {
        (Some(Piece::Expression(expr)), None) => Template::Expression(expr.clone()),
        _ if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) => {
            Template::Constant(Value::text(text))
        }
        _ => Template::Text(pieces),
    }
}

/// Parses one path. Repeated dots count as one.
fn reference(
    text: &str,
    body: Range<usize>,
    whole: Range<usize>,
    locate: Locate<'_>,
) -> Result<Expr, Box<Diagnostic>> {
    let written = &text[body.clone()];
    let start = body.start + (written.len() - written.trim_start().len());
    let end = start + written.trim().len();
    let mut expr = Expr::new(Node::Read(Read::Namespace(Namespace::Root)), locate(start..start));
    let (mut at, mut parts) = (start, 0);
    while at < end {
        let rest = &text[at..end];
        if rest.starts_with('.') {
            at += 1;
            continue;
        }
        parts += 1;
        if parts > PARTS_MAX {
            return Err(too_long(locate(whole)));
        }
        let of = Box::new(expr);
        let (node, length) = match rest.strip_prefix('[') {
            Some(_) if parts == 1 => return Err(no_name(locate(whole))),
            Some(inside) => index(of, inside).map_err(|message| bad_index(message, locate(at..end)))?,
            None => {
                let length = rest.find(['.', '[']).unwrap_or(rest.len());
                (Node::Member { of, name: rest[..length].into() }, length)
            }
        };
        at += length;
        expr = Expr::new(node, locate(start..at));
    }
    if parts == 0 { Err(no_name(locate(whole))) } else { Ok(expr) }
}

fn index(of: Box<Expr>, inside: &str) -> Result<(Node, usize), &'static str> {
    let length = inside.find(']').ok_or("`[` has no closing `]`")?;
    let digits = &inside[..length];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("only a number is allowed in brackets");
    }
    let place = digits.parse().map_err(|_| "the list index is too large")?;
    let at = Box::new(Expr::new(Node::Literal(Value::Int(place)), of.span));
    Ok((Node::Index { of, at }, length + 2))
}

fn problem(message: impl Into<String>, span: Span, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::warning(Code::ExpressionSyntax, message).at(span).help(help))
}

fn unclosed(span: Span) -> Box<Diagnostic> {
    problem("`{{` has no closing `}}`", span, "close it with `}}`")
}

fn no_name(span: Span) -> Box<Diagnostic> {
    problem("this reference is empty", span, FORM)
}

fn bad_index(message: &str, span: Span) -> Box<Diagnostic> {
    let help = "write the index of an element, starting at 0, or a name after a dot";
    problem(message, span, help)
}

fn too_long(span: Span) -> Box<Diagnostic> {
    let message = format!("the path has more than {PARTS_MAX} parts");
    Box::new(Diagnostic::error(Code::ExpressionLimit, message).at(span).help("use a shorter path"))
}

/// An expression that fails with this message when it is evaluated.
pub fn fail(message: &str, span: Span) -> Expr {
    let args = vec![Expr::new(Node::Literal(Value::text(message)), span)];
    Expr::new(Node::Call { function: Function::Fail, args }, span)
}

/// A standalone template: an unknown first word is an error, as it is in a run.
pub fn against(template: Template, context: &Value) -> Template {
    let known = |name: &str| name == "item" || context.get(name).is_some();
    let Ok(template) = template.map_expressions::<Infallible>(&mut |expr| {
        Ok(match first_name(&expr).filter(|name| !known(name)) {
            Some(name) => fail(&format!("unknown name `{name}`"), expr.span),
            None => expr,
        })
    });
    template
}

fn first_name(expr: &Expr) -> Option<&str> {
    match &expr.node {
        Node::Member { of, name } if of.node == Node::Read(Read::Namespace(Namespace::Root)) => Some(name),
        Node::Member { of, .. } | Node::Index { of, .. } => first_name(of),
        Node::Literal(_)
        | Node::List(_)
        | Node::Read(_)
        | Node::Call { .. }
        | Node::Query { .. }
        | Node::Not(_)
        | Node::Binary { .. }
        | Node::Choice { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dcc::scope;
    use windlass_ir::SourceId;
    use windlass_ir::expr::{Limits, Semantics, render};

    const CONTEXT: &str = r#"{
        "inputs": {"who": "Ada", "n": 3, "tags": ["x", "y"], "0": "zero", "my key": 1, "f": 2.5, "no": null, "ok": true},
        "steps": {"a-b": {"output": {"deep": [{"x": 1}]}, "file_refs": []}},
        "item": {"id": 7}
    }"#;

    fn locate(range: Range<usize>) -> Span {
        Span::new(SourceId(0), range.start, range.end)
    }

    fn eval(text: &str) -> Result<String, Code> {
        let context = serde_json::from_str(CONTEXT).expect("JSON");
        let (template, _) = parse_template(text, &locate);
        let template = against(template, &context);
        let value = render(&template, &scope(&context), &Semantics::DCC, &Limits::default());
        value.map(|value| value.to_json_text().expect("no secrets")).map_err(|error| error.code)
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(eval(text).as_deref(), Ok(expected), "{text}");
        assert_eq!(parse_template(text, &locate).1, [], "{text}");
    }

    #[test]
    fn a_whole_reference_keeps_its_type() {
        check("{{inputs.n}}", "3");
        check("  {{ inputs.tags }}\n", r#"["x","y"]"#);
        check("{{inputs.tags[1]}}", r#""y""#);
        check("{{steps.a-b.output.deep[0].x}}", "1");
        check("{{item.id}}", "7");
        check("{{inputs.my key}}", "1");
        check("{{inputs..who}}", r#""Ada""#);
        check("{{.inputs.who.}}", r#""Ada""#);
        check("{{inputs.0}}", r#""zero""#);
    }

    #[test]
    fn missing_values_are_null() {
        check("{{inputs.absent.deep}}", "null");
        check("{{inputs.tags.0}}", "null");
        check("{{inputs.tags[9]}}", "null");
        check("{{inputs.who[0]}}", "null");
        check("{{steps.other.output}}", "null");
    }

    #[test]
    fn surrounding_text_makes_a_string() {
        check("hi {{inputs.who}} #{{inputs.n}}", r#""hi Ada #3""#);
        check("{{inputs.who}}{{inputs.n}}", r#""Ada3""#);
        check("{{inputs.tags}} [{{inputs.no}}] {{inputs.f}} {{inputs.ok}}", r#""[\"x\",\"y\"] [] 2.5 true""#);
        check("{{inputs.n}}}", r#""3}""#);
        check("{{inputs.n}} }} { {", r#""3 }} { {""#);
    }

    #[test]
    fn text_without_references_stays_as_written() {
        for text in ["", " ", "no braces", "} }} {", "{ {x} }"] {
            check(text, &format!("{text:?}"));
        }
    }

    fn check_warns(text: &str, at: Range<usize>) {
        let (_, findings) = parse_template(text, &locate);
        let found: Vec<_> = findings.iter().map(|finding| (finding.code, finding.span)).collect();
        assert_eq!(found, [(Code::ExpressionSyntax, Some(locate(at)))], "{text}");
        assert!(findings.iter().all(|finding| !finding.is_error() && !finding.help.is_empty()));
        assert_eq!(eval(text), Err(Code::ExpressionValue), "{text}");
    }

    #[test]
    fn invalid_references_warn_and_fail() {
        check_warns("{{oops", 0..2);
        check_warns("a {{}} b", 2..6);
        check_warns("{{ . }}", 0..7);
        check_warns("{{[0].x}}", 0..9);
        check_warns("{{inputs[x]}}", 8..11);
        check_warns("{{inputs[-1]}}", 8..12);
        check_warns("{{inputs[]}}", 8..10);
        check_warns("{{inputs[1}}", 8..10);
        check_warns("{{inputs[99999999999999999999]}}", 8..30);
        check_warns("{{inputs.n}} {{", 13..15);
    }

    #[test]
    fn an_unknown_first_word_fails() {
        for text in ["{{nowhere.a}}", "x{{nowhere}}", "{{inputs .n}}"] {
            assert_eq!(eval(text), Err(Code::ExpressionValue), "{text}");
        }
    }

    #[test]
    fn long_texts_are_bounded() {
        let (_, findings) = parse_template(&format!("{{{{a{}}}}}", ".b".repeat(100_000)), &locate);
        assert_eq!(findings[0].code, Code::ExpressionLimit);
        let (_, findings) = parse_template(&"{{}}".repeat(1000), &locate);
        assert_eq!(findings.len(), FINDINGS_MAX);
        let (template, _) = parse_template(&format!("{{{{a{}}}}}", ".b".repeat(255)), &locate);
        assert_eq!(template.expressions().len(), 1);
    }
}
