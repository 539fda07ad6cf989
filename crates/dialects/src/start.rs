//! Warnings that a start refuses, although `validate` accepts the file: a misspelled dependency lets a step run before a gate.

use windlass_ir::workflow::{Kind, Words};
use windlass_ir::{Code, Diagnostic, Plan, Severity};

/// Turns the warnings that make a start unsafe into errors, and returns whether there are any.
pub fn harden_for_start(plan: &Plan, words: &Words, findings: &mut [Diagnostic]) -> bool {
    let gate = plan.steps.iter().find(|step| matches!(step.kind, Kind::Gate(_)));
    let Some(gate) = gate else { return false };
    let is_dependency = |finding: &Diagnostic| {
        finding.code == Code::UnknownKey
            && finding.step.is_some()
            && finding.suggest.as_deref() == Some(words.needs)
    };
    let mut is_unsafe = false;
    for finding in findings.iter_mut().filter(|finding| is_dependency(finding)) {
        let step = finding.step.as_deref().unwrap_or_default();
        finding.message =
            format!("{}: {} `{step}` would not wait for the gate `{}`", finding.message, words.step, gate.id);
        finding.severity = Severity::Error;
        is_unsafe = true;
    }
    is_unsafe
}
