//! Gates: who decides, until when, what they are asked.

use super::ports;
use super::table::Table;
use windlass_ir::workflow::{Gate, OnTimeout};
use windlass_ir::{Code, Duration};

/// How long a gate waits unless the file says otherwise.
const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

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
    let words =
        [("halt", OnTimeout::Halt), ("auto_approve", OnTimeout::AutoApprove), ("reject", OnTimeout::Reject)];
    table.word("kind", &[("manual_approval", ())]);
    let gate = Gate {
        approvers: table.plain_texts("approvers"),
        timeout: if table.has("timeout") { table.duration("timeout") } else { Some(TIMEOUT) },
        on_timeout: table.word("on_timeout", &words).unwrap_or(OnTimeout::Halt),
        message: table.bound_text("message"),
        form: ports::form(&table),
        ..Gate::plain()
    };
    table.known(&["timeout"]);
    table.finish_all();
    gate
}
