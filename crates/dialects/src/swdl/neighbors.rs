//! Keys that people write because a neighbor of this language has them, with what they are called here. Each is reported
//! as unknown, with the right suggestion.

use super::table::Table;
use windlass_ir::Code;

/// A key, and its place in this language.
type Neighbor = (&'static str, &'static str);

/// Keys of a stage that exist here one level deeper.
const MISPLACED: [Neighbor; 7] = [
    ("timeout", "error_policy.timeout"),
    ("retry", "error_policy.retry"),
    ("on_failure", "error_policy.on_failure"),
    ("max_attempts", "error_policy.retry.max_attempts"),
    ("retries", "error_policy.retry.max_attempts"),
    ("artifact", "roles.primary.artifact"),
    ("approvers", "gate.approvers"),
];

/// Keys of a stage that have another name here.
const RENAMED: [Neighbor; 20] = [
    ("if", "condition"),
    ("when", "condition"),
    ("needs", "depends_on"),
    ("dependencies", "depends_on"),
    ("command", "run"),
    ("script", "run"),
    ("cmd", "run"),
    ("working-directory", "cwd"),
    ("workdir", "cwd"),
    ("environment", "env"),
    ("uses", "workflow"),
    ("steps", "stages"),
    ("strategy", "fan_out.matrix"),
    ("matrix", "fan_out.matrix"),
    ("foreach", "fan_out.source"),
    ("timeout-minutes", "error_policy.timeout"),
    ("timeout_seconds", "error_policy.timeout"),
    ("continue-on-error", "error_policy.on_failure"),
    ("continue_on_error", "error_policy.on_failure"),
    ("prompt", "roles.primary.instructions"),
];

/// Keys of the top level that have another name or place here.
const TOP: [Neighbor; 13] = [
    ("jobs", "stages"),
    ("steps", "stages"),
    ("tasks", "stages"),
    ("on", "triggers"),
    ("schedule", "triggers"),
    ("id", "workflow.id"),
    ("name", "workflow.name"),
    ("version", "workflow.version"),
    ("description", "workflow.description"),
    ("inputs", "config.parameters"),
    ("parameters", "config.parameters"),
    ("env", "config.env"),
    ("secrets", "config.secrets"),
];

pub fn of_stage(stage: &Table<'_>) {
    report(stage, &MISPLACED, |key| format!("`{key}` has no effect on the stage itself"));
    report(stage, &RENAMED, |key| format!("unknown key `{key}`"));
}

pub fn of_top(top: &Table<'_>) {
    report(top, &TOP, |key| format!("unknown key `{key}`"));
}

fn report(table: &Table<'_>, neighbors: &'static [Neighbor], message: impl Fn(&str) -> String) {
    for (key, here) in neighbors.iter().filter(|(key, _)| table.is_unread(key)) {
        let finding = table.warning(Code::UnknownKey, key, table.key_span(key), message(key));
        table.report(finding.reference(*key).suggest(Some(*here)));
        table.reported(key);
    }
}
