//! Any bytes as a DagNats definition: reading never panics, every finding has its place, its cause and its next action, and
//! what gives a plan gives one that reads back from its stored form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_dialects::{Dialect, Options, Text, load};
use windlass_ir::Plan;

/// A reader of JSON stops at some depth; a plan holds data a few levels deeper than the file.
const DEPTH_MAX: usize = 64;

fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut most) = (0usize, 0);
    for byte in bytes {
        match byte {
            b'{' | b'[' => now += 1,
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
        most = most.max(now);
    }
    most
}

fuzz_target!(|bytes: &[u8]| {
    let file = Text { name: "fuzz.json".into(), bytes: bytes.to_vec() };
    let loaded = load(file, Options { dialect: Some(Dialect::Dagnats), ..Options::default() });
    for finding in &loaded.diagnostics {
        let span = finding.span.expect("every finding has a place");
        let text = &*loaded.sources.get(span.source).text;
        assert!(
            text.get(span.start as usize..span.end as usize).is_some(),
            "{span:?} is no part of the text"
        );
        assert!(!finding.message.is_empty() && !finding.help.is_empty(), "{finding:?}");
    }
    if let Some(plan) = loaded.plan.filter(|_| depth(bytes) <= DEPTH_MAX) {
        let stored = serde_json::to_string(&plan).expect("a plan holds no secret");
        let back: Plan = serde_json::from_str(&stored).expect("what was written");
        assert_eq!(serde_json::to_string(&back).ok(), Some(stored));
    }
});
