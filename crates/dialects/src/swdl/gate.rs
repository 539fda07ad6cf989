//! Gates: approvers, timeout, question, and the effect of a rejection.

use super::ports;
use super::table::{StepOf, Table, wrong_shape};
use crate::text::Kind;
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::workflow::{Gate, OnReject, OnTimeout};
use windlass_ir::{Code, Duration};

/// The default timeout of a gate.
pub const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The default and the maximum number of times that a gate sends the run back.
pub const TIMES_BACK: u32 = 3;
const TIMES_BACK_MAX: u64 = 1_000;

pub const ON_TIMEOUT: [(&str, OnTimeout); 3] =
    [("halt", OnTimeout::Halt), ("auto_approve", OnTimeout::AutoApprove), ("reject", OnTimeout::Reject)];

pub const ON_REJECT: [(&str, OnReject); 4] = [
    ("fail", OnReject::Fail),
    ("abort", OnReject::Abort),
    ("skip", OnReject::Skip),
    ("retry", OnReject::Retry),
];

pub fn read(stage: &Table<'_>, run_timeout: Option<Duration>) -> Gate {
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
    let approvers = table.plain_texts("approvers");
    let gate = Gate {
        quorum: quorum(&table, &approvers),
        self_approval: table.boolean("self_approval").unwrap_or(true),
        approvers,
        timeout: table.timeout("timeout", (!stage.context.foreign).then_some(TIMEOUT)),
        on_timeout: table.word("on_timeout", &ON_TIMEOUT).unwrap_or(OnTimeout::Halt),
        message: table.bound_text("message"),
        form: ports::form(&table),
        options: options(&table),
        on_reject: on_reject(&table).unwrap_or(OnReject::Fail),
        show_file: table.bound_text("show_file"),
        verdict_input: table.text("verdict_input"),
        subject: table.plain_text("subject"),
        metadata: texts(&table, "metadata"),
    };
    let help = "shorten `gate.timeout` or raise `config.timeout`; \
                time spent at a gate does not count toward the timeout of the run";
    table.check_gate_timeout(gate.timeout, run_timeout, help);
    table.finish_all();
    gate
}

/// The number of required approvals: at most the number of approvers.
fn quorum(table: &Table<'_>, approvers: &[Arc<str>]) -> u32 {
    let quorum = table.count("quorum").unwrap_or(1);
    let people = approvers.iter().collect::<HashSet<_>>().len();
    if people > 0 && quorum as usize > people {
        let span = table.node("quorum").map_or(table.span, |node| node.span);
        let message = format!("{quorum} approvals are required, but only {people} may decide");
        let finding = table.error(Code::BadNumber, "quorum", span, message).reference(quorum.to_string());
        let finding = finding.label(table.key_span("approvers"), "the approvers");
        table.report(finding.help(format!("write a number up to {people}, or add `approvers`")));
    }
    quorum
}

/// A word, or `{back_to: STAGE}`.
fn on_reject(table: &Table<'_>) -> Option<OnReject> {
    let node = table.node("on_reject")?;
    match &node.kind {
        Kind::Scalar(_) => table.word_or("on_reject", &ON_REJECT, &["{back_to: STAGE}"]),
        Kind::Map(_) => {
            let inner = table.table("on_reject")?;
            let (to, times) = (inner.text("back_to"), inner.integer("max", 1, TIMES_BACK_MAX));
            inner.demand("back_to", "name the stage to go back to: `on_reject: {back_to: STAGE}`");
            inner.finish_all();
            let times_max = times.map_or(TIMES_BACK, |times| u32::try_from(times).unwrap_or(u32::MAX));
            to.map(|to| OnReject::Back { to, times_max })
        }
        Kind::List(_) => {
            let finding = wrong_shape(node, "a word or `{back_to: STAGE}`");
            table.report(finding.step_of(&table.place).field(table.place.field("on_reject")));
            None
        }
    }
}

/// The options. If a rejection has an effect, one of them must reject.
fn options(table: &Table<'_>) -> Vec<Arc<str>> {
    let options = table.plain_texts("options");
    if !table.has("options") {
        return Gate::plain().options;
    }
    let says_no = |option: &Arc<str>| ["reject", "abort"].iter().any(|no| option.eq_ignore_ascii_case(no));
    if !table.context.foreign && table.list("options").is_some() && !options.iter().any(says_no) {
        let message = "none of these options rejects";
        let finding = table.error(Code::BadEnum, "options", table.key_span("options"), message);
        table.report(finding.help("add `reject` or `abort`; every other option approves"));
    }
    options
}

/// A mapping of names to strings.
pub fn texts(table: &Table<'_>, key: &'static str) -> IndexMap<Arc<str>, Arc<str>> {
    let Some(inner) = table.table(key) else { return IndexMap::new() };
    let entries = inner.map.entries.iter();
    entries.filter_map(|entry| Some((entry.key.text.clone(), inner.entry_text(entry)?))).collect()
}
