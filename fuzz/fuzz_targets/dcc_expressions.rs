//! Any text as a template and as a path of the dcc dialect: reading and evaluating never panic or hang, and every span lies
//! inside the text and between characters.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::ops::Range;
use windlass_dialects::dcc::path::parse_path;
use windlass_dialects::dcc::scope;
use windlass_dialects::dcc::template::{against, parse_template};
use windlass_ir::expr::{Limits, Semantics, evaluate, render};
use windlass_ir::{Diagnostic, SourceId, Span, Value};

/// Enough for everything a short text can ask for, and little enough to keep each execution short.
const LIMITS: Limits = Limits { steps_max: 100_000, depth_max: 272, bytes_max: 1 << 20 };

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

fn context() -> Value {
    let rows = Value::list([
        Value::Int(1),
        Value::Float(-2.5),
        Value::text("é'\n"),
        Value::secret("s"),
        Value::Null,
    ]);
    let deep = (0..20).fold(rows.clone(), |inner, _| Value::list([inner.clone(), inner]));
    Value::map([
        ("inputs", Value::map([("a", rows), ("b", deep)])),
        ("steps", Value::map([("s", Value::map([("output", Value::Bool(true))]))])),
        ("item", Value::Int(i64::MAX)),
    ])
}

fuzz_target!(|text: &str| {
    let context = context();
    let (template, found) = parse_template(text, &locate);
    check_diagnostics(text, &found);
    for expr in template.expressions() {
        expr.walk(&mut |part| check_span(text, part.span));
    }
    let _ = render(&against(template, &context), &scope(&context), &Semantics::DCC, &LIMITS);
    match parse_path(text, &locate) {
        Ok(expr) => drop(evaluate(&expr, &scope(&context), &Semantics::DCC, &LIMITS)),
        Err(found) => {
            assert!(!found.is_empty(), "refused without a reason: {text:?}");
            check_diagnostics(text, &found);
        }
    }
});
