//! Any text as an swdl template, condition and bare expression: reading and evaluating never panic, and every span
//! lies inside the text and between characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use windlass_dialects::swdl::expr::{parse_condition, parse_expression, parse_template};
use windlass_ir::expr::{EvalError, Expr, Limits, Namespace, Read, Scope, Semantics, evaluate, render};
use windlass_ir::{Diagnostic, SourceId, Span, Value};

/// Enough for everything a short text can ask for, and little enough to keep each execution short.
const LIMITS: Limits = Limits { steps_max: 100_000, depth_max: 272, bytes_max: 1 << 20 };

struct Fixed;

impl Scope for Fixed {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(match read {
            Read::Namespace(Namespace::Secrets) => Value::map([("a", Value::secret("a"))]),
            Read::Namespace(Namespace::Index) => Value::Int(1),
            Read::StepOutcome(_) | Read::Now => Value::text("2026-01-01T00:00:00Z"),
            Read::Namespace(Namespace::Item) => {
                Value::list([Value::Null, Value::Float(1.5), Value::text("é'\0"), Value::secret("b")])
            }
            Read::Namespace(_)
            | Read::StepOutputs(_)
            | Read::StepStatus(_)
            | Read::StepRecord(_)
            | Read::LoopItem(_)
            | Read::LoopIndex(_) => Value::map([
                ("a", Value::list([Value::Int(i64::MAX), Value::text("[1,{}]")])),
                ("b", Value::Bool(true)),
            ]),
        })
    }
}

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
        found.labels.iter().for_each(|label| check_span(text, label.span));
    }
}

fn check_expr(text: &str, expr: &Expr) {
    expr.walk(&mut |part| check_span(text, part.span));
    if let Err(error) = evaluate(expr, &Fixed, &Semantics::HOUSE, &LIMITS) {
        check_span(text, error.span);
    }
}

fn check_parsed(text: &str, parsed: Result<Expr, Vec<Diagnostic>>) {
    match parsed {
        Ok(expr) => check_expr(text, &expr),
        Err(found) => {
            assert!(!found.is_empty(), "refused without a reason: {text:?}");
            check_diagnostics(text, &found);
        }
    }
}

fuzz_target!(|text: &str| {
    check_parsed(text, parse_expression(text, &locate));
    check_parsed(text, parse_condition(text, &locate));
    let (template, found) = parse_template(text, &locate);
    check_diagnostics(text, &found);
    template.expressions().into_iter().for_each(|expr| check_expr(text, expr));
    if let Err(error) = render(&template, &Fixed, &Semantics::HOUSE, &LIMITS) {
        check_span(text, error.span);
    }
});
