//! Any text as a Spec Kit template and condition: reading and evaluating never panic, every span lies inside the text and
//! between characters, a predicted failure fails, and the native spelling of a tree is read as the same tree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use std::sync::LazyLock;
use windlass_dialects::speckit::expr::{parse_any_condition, parse_condition, parse_template, scope};
use windlass_dialects::swdl;
use windlass_ir::expr::{Expr, Limits, Namespace, Node, Printer, Read, Semantics, Template, holds, render};
use windlass_ir::{Diagnostic, SourceId, Span, Value};

/// Enough for everything a short text can ask for, and little enough to keep each execution short.
const LIMITS: Limits = Limits { steps_max: 100_000, depth_max: 272, bytes_max: 1 << 20 };

static CONTEXT: LazyLock<Value> = LazyLock::new(|| {
    let text = r#"{"inputs": {"a": [1, "2", null, {"b": 2.5}], "b": "{\"x\": [1, NaN]}", "": true}, "item": ["é'"], "run_id": "r"}"#;
    serde_json::from_str(text).expect("JSON")
});

fn locate(range: Range<usize>) -> Span {
    Span::new(SourceId(0), range.start, range.end)
}

fn check_span(text: &str, span: Span) {
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is no part of {text:?}");
}

fn check_diagnostics(text: &str, found: &[Diagnostic]) {
    for found in found {
        assert!(!found.message.is_empty() && !found.help.is_empty(), "{found:?}");
        check_span(text, found.span.expect("every finding has a place"));
    }
}

/// The house has no word for what a fan-in gathered, and an expression may be longer in its spelling than it allows.
fn has_house_form(expr: &Expr, printed: &str) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= part.node == Node::Read(Read::Namespace(Namespace::FanIn)));
    !found && printed.len() <= 64 << 10
}

fn check_expr(text: &str, expr: &Expr) {
    expr.walk(&mut |part| check_span(text, part.span));
    let printer = Printer { words: &swdl::WORDS, step: &|_| String::new() };
    let printed = printer.expr(expr);
    if has_house_form(expr, &printed) {
        let again = swdl::expr::parse_expression(&printed, &locate);
        let again = again.unwrap_or_else(|found| panic!("{printed}: {found:?}"));
        assert_eq!(serde_json::to_string(&again).ok(), serde_json::to_string(expr).ok(), "{printed}");
    }
}

fn check_template(text: &str, template: &Template, found: &[Diagnostic]) {
    check_diagnostics(text, found);
    template.expressions().into_iter().for_each(|expr| check_expr(text, expr));
    match render(template, &scope(&CONTEXT), &Semantics::SPECKIT, &LIMITS) {
        Ok(value) => {
            assert!(!found.iter().any(Diagnostic::is_error), "{text:?} was said to fail");
            assert!(holds(&value, &Semantics::SPECKIT).is_ok());
        }
        Err(error) => check_span(text, error.span),
    }
}

fuzz_target!(|text: &str| {
    for whole in [text.to_owned(), format!("{{{{{text}}}}}")] {
        let (template, found) = parse_template(&whole, &locate);
        check_template(&whole, &template, &found);
        let (template, found) = parse_any_condition(&whole, &locate);
        check_template(&whole, &template, &found);
        let (expr, found) = parse_condition(&whole, &locate);
        check_diagnostics(&whole, &found);
        check_expr(&whole, &expr);
    }
});
