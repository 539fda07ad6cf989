//! Gates: who decides, until when, what they are asked, and what a no means.

use super::ports;
use super::table::Table;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::workflow::{Gate, OnReject, OnTimeout};
use windlass_ir::{Code, Duration};

/// How long a gate waits unless the file says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

pub const ON_TIMEOUT: [(&str, OnTimeout); 3] =
    [("halt", OnTimeout::Halt), ("auto_approve", OnTimeout::AutoApprove), ("reject", OnTimeout::Reject)];

pub const ON_REJECT: [(&str, OnReject); 4] = [
    ("fail", OnReject::Fail),
    ("abort", OnReject::Abort),
    ("skip", OnReject::Skip),
    ("retry", OnReject::Retry),
];

pub fn read(stage: &Table<'_>) -> Gate {
    let Some(table) = stage.table("gate") else {
        if !stage.has("gate") {
            let finding = stage.error(
                Code::MissingGate,
                "gate",
                stage.span.head(),
                "a gate must say what it asks and whom",
            );
            stage.report(finding.help("add `gate: {kind: manual_approval, approvers: [NAME]}`"));
        }
        return Gate::plain();
    };
    table.word("kind", &[("manual_approval", ())]);
    let gate = Gate {
        approvers: table.plain_texts("approvers"),
        timeout: table.timeout("timeout", (!stage.context.foreign).then_some(TIMEOUT)),
        on_timeout: table.word("on_timeout", &ON_TIMEOUT).unwrap_or(OnTimeout::Halt),
        message: table.bound_text("message"),
        form: ports::form(&table),
        options: options(&table),
        on_reject: table.word("on_reject", &ON_REJECT).unwrap_or(OnReject::Fail),
        show_file: table.bound_text("show_file"),
        verdict_input: table.text("verdict_input"),
        subject: table.plain_text("subject"),
        metadata: texts(&table, "metadata"),
    };
    table.finish_all();
    gate
}

/// What can be chosen. Where a no means something, one of the choices must say no.
fn options(table: &Table<'_>) -> Vec<Arc<str>> {
    let options = table.plain_texts("options");
    if !table.has("options") {
        return Gate::plain().options;
    }
    let says_no = |option: &Arc<str>| ["reject", "abort"].iter().any(|no| option.eq_ignore_ascii_case(no));
    if !table.context.foreign && table.list("options").is_some() && !options.iter().any(says_no) {
        let message = "none of these options says no";
        let finding = table.error(Code::BadEnum, "options", table.key_span("options"), message);
        table.report(finding.help("add `reject` or `abort`; every other option says yes"));
    }
    options
}

/// A mapping of names to texts.
pub fn texts(table: &Table<'_>, key: &'static str) -> IndexMap<Arc<str>, Arc<str>> {
    let Some(inner) = table.table(key) else { return IndexMap::new() };
    let entries = inner.map.entries.iter();
    entries.filter_map(|entry| Some((entry.key.text.clone(), inner.entry_text(entry)?))).collect()
}
