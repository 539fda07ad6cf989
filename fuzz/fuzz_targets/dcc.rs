//! Any text as a dcc workflow: reading never panics, every finding has words, and each place lies inside the text. What is
//! valid has a plan that can be stored and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_dialects::{Dialect, Options, Text, load};
use windlass_ir::{Plan, Span};

fn check_span(text: &str, span: Span) {
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} is no part of {text:?}");
}

fuzz_target!(|text: &str| {
    // A header, so that most inputs get as far as the steps.
    let file = format!("name: fuzz\ninputs: {{scene: string}}\nsteps:\n  - {{id: list, tool: echo}}\n{text}");
    let options = Options { dialect: Some(Dialect::Dcc), ..Options::default() };
    let loaded = load(Text { name: "fuzz.yaml".into(), bytes: file.into_bytes() }, options);
    let source = loaded.sources.iter().next().expect("one file was read").text.clone();
    for found in &loaded.diagnostics {
        assert!(!found.message.is_empty() && !found.help.is_empty(), "{found:?}");
        found.span.into_iter().for_each(|span| check_span(&source, span));
        found.labels.iter().for_each(|label| check_span(&source, label.span));
    }
    assert_eq!(loaded.is_valid(), !loaded.diagnostics.iter().any(|found| found.is_error()));
    if let Some(plan) = &loaded.plan {
        let stored = serde_json::to_string(plan).expect("a plan can be stored");
        let back: Plan = serde_json::from_str(&stored).expect("a stored plan can be read");
        assert_eq!(back.digest, plan.digest);
    }
});
