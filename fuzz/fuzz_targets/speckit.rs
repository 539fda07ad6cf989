//! Any text as the steps of a Spec Kit workflow, half of it as an overlay when there is a mark between: reading never panics,
//! every finding has words and a place inside its file, and what gives a plan gives one that reads back from its stored form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_dialects::{Dialect, Options, Text, load};
use windlass_ir::Plan;

const HEADER: &str = "schema_version: '1.0'\nworkflow: {id: fuzz, name: Fuzz, version: 1.0.0}\ninputs: {v: {default: x}}\nsteps:\n  - {id: one, type: shell, run: ls}\n";
const OVERLAY: &str = "id: over\nextends: fuzz\nedits:\n";
/// What stands between the steps and the edits of an overlay.
const MARK: &str = "\n=====\n";

fn file(name: &str, text: String) -> Text {
    Text { name: name.into(), bytes: text.into_bytes() }
}

fuzz_target!(|text: &str| {
    let (steps, edits) = text.split_once(MARK).map_or((text, None), |(steps, edits)| (steps, Some(edits)));
    let overlays = edits.map(|edits| file("over.yml", format!("{OVERLAY}{edits}"))).into_iter().collect();
    let options = Options { dialect: Some(Dialect::Speckit), overlays, ..Options::default() };
    let loaded = load(file("workflow.yml", format!("{HEADER}{steps}")), options);
    for found in &loaded.diagnostics {
        assert!(!found.message.is_empty() && !found.help.is_empty(), "{found:?}");
        for span in found.span.into_iter().chain(found.labels.iter().map(|label| label.span)) {
            let source = &loaded.sources.get(span.source).text;
            assert!(source.get(span.start as usize..span.end as usize).is_some(), "{found:?}");
        }
    }
    assert_eq!(loaded.is_valid(), !loaded.diagnostics.iter().any(|found| found.is_error()));
    if let Some(plan) = loaded.plan {
        let stored = serde_json::to_string(&plan).expect("a plan is data");
        let back: Plan = serde_json::from_str(&stored).expect("what was written can be read");
        assert_eq!(serde_json::to_string(&back).expect("a plan is data"), stored);
    }
});
