//! The order of keys in each dialect. First who it is, then what it is given and configured with, then the work; in a
//! step first its id, name and kind, then what it waits for, then what it does, then its policies.
//!
//! What has no row here keeps the author's order: arguments, environments, cases, schemas, metadata.

use super::order::KeyOrder::{Author, Keys as In, Named};
use super::order::{KeyOrder, Keys};
use crate::{Dialect, FileKind};

pub(super) fn order(kind: FileKind) -> KeyOrder {
    match kind {
        FileKind::Workflow(Dialect::Swdl) => In(&SWDL),
        FileKind::Workflow(Dialect::Speckit) => In(&SPECKIT),
        FileKind::Workflow(Dialect::Dagnats) => In(&DAGNATS),
        FileKind::Workflow(Dialect::Dcc) => In(&DCC),
        FileKind::Schedules => In(&SCHEDULES),
    }
}

// swdl

static SWDL: Keys = Keys(&[
    (
        "workflow",
        In(&Keys(&[
            ("id", Author),
            ("name", Author),
            ("version", Author),
            ("description", Author),
            ("author", Author),
            ("tags", Author),
            ("ui", Author),
        ])),
    ),
    (
        "config",
        In(&Keys(&[
            ("parameters", Named(&SWDL_PORT)),
            ("timeout", Author),
            ("env", Author),
            ("secrets", Author),
            (
                "budget",
                In(&Keys(&[("tokens", Author), ("usd", Author), ("calls", Author), ("time", Author)])),
            ),
            ("concurrency", In(&Keys(&[("per_run", Author), ("per_workflow", Author), ("key", Author)]))),
        ])),
    ),
    ("context", In(&SWDL_CONTEXT)),
    ("triggers", In(&SWDL_TRIGGER)),
    ("stages", In(&SWDL_STAGE)),
    ("outputs", Named(&SWDL_PORT)),
    ("error_policy", In(&Keys(&[("default_retry", In(&SWDL_RETRY)), ("on_stage_failure", Author)]))),
    (
        "hooks",
        In(&Keys(&[
            ("on_start", In(&SWDL_HOOK)),
            ("on_complete", In(&SWDL_HOOK)),
            ("on_failure", In(&SWDL_HOOK)),
        ])),
    ),
]);

static SWDL_PORT: Keys = Keys(&[
    ("type", Author),
    ("schema", Author),
    ("source", Author),
    ("required", Author),
    ("default", Author),
    ("choices", Author),
    ("description", Author),
]);

static SWDL_CONTEXT: Keys = Keys(&[
    ("global_modules", Author),
    ("modules", Author),
    (
        "memory",
        In(&Keys(&[
            ("project_scope", Author),
            ("min_confidence", Author),
            ("categories", Author),
            ("max_tokens", Author),
        ])),
    ),
]);

static SWDL_TRIGGER: Keys = Keys(&[
    ("cron", Author),
    ("timezone", Author),
    ("webhook", In(&Keys(&[("path", Author), ("secret", Author)]))),
    ("message", Author),
    ("with", Author),
]);

static SWDL_HOOK: Keys = Keys(&[("notify", Author), ("run", Author), ("webhook", Author)]);

static SWDL_RETRY: Keys = Keys(&[
    ("max_attempts", Author),
    ("initial_interval", Author),
    ("backoff_multiplier", Author),
    ("max_interval", Author),
    ("non_retryable_errors", Author),
    ("when", Author),
]);

static SWDL_STAGE: Keys = Keys(&[
    ("id", Author),
    ("name", Author),
    ("description", Author),
    ("type", Author),
    ("depends_on", Author),
    ("condition", Author),
    ("parallel_group", Author),
    (
        "roles",
        In(&Keys(&[
            ("primary", In(&Keys(&[("artifact", Author), ("model", Author), ("instructions", Author)]))),
            ("tools", Author),
        ])),
    ),
    ("run", Author),
    ("tool", Author),
    ("server", Author),
    ("task", Author),
    ("group", Author),
    ("workflow", Author),
    ("gate", In(&SWDL_GATE)),
    ("http", In(&SWDL_HTTP)),
    (
        "wait",
        In(&Keys(&[
            ("for", Author),
            ("until", Author),
            ("signal", Author),
            ("message", Author),
            ("match", Author),
            ("timeout", Author),
        ])),
    ),
    ("cwd", Author),
    ("stdin", Author),
    ("output_format", Author),
    ("args", Author),
    ("input", Author),
    ("with", Author),
    ("set", Author),
    ("finish", In(&Keys(&[("status", Author), ("outputs", Author)]))),
    ("env", Author),
    ("inputs", Named(&SWDL_PORT)),
    ("fan_out", In(&SWDL_FAN_OUT)),
    ("loop", In(&SWDL_LOOP)),
    ("branch", In(&SWDL_BRANCH)),
    ("outputs", Named(&SWDL_PORT)),
    ("context", In(&SWDL_CONTEXT)),
    ("error_policy", In(&Keys(&[("retry", In(&SWDL_RETRY)), ("timeout", Author), ("on_failure", Author)]))),
    ("idempotency", In(&Keys(&[("key", Author), ("scope", Author), ("ttl", Author)]))),
    ("handoff", In(&Keys(&[("format", Author), ("include_run_log", Author), ("summary_prompt", Author)]))),
    ("compensate", In(&SWDL_STAGE)),
    ("finally", In(&SWDL_STAGE)),
    ("ui", Author),
]);

static SWDL_GATE: Keys = Keys(&[
    ("kind", Author),
    ("approvers", Author),
    ("timeout", Author),
    ("on_timeout", Author),
    ("message", Author),
    ("form", Named(&SWDL_PORT)),
]);

static SWDL_HTTP: Keys = Keys(&[
    ("method", Author),
    ("url", Author),
    ("query", Author),
    ("headers", Author),
    (
        "auth",
        In(&Keys(&[("bearer", Author), ("basic", In(&Keys(&[("user", Author), ("password", Author)])))])),
    ),
    ("json", Author),
    ("form", Author),
    ("body", Author),
    ("expect", Author),
]);

static SWDL_FAN_OUT: Keys = Keys(&[
    ("source", Author),
    ("matrix", Author),
    ("concurrency", Author),
    ("on_failure", Author),
    ("stage_template", In(&SWDL_STAGE)),
]);

static SWDL_LOOP: Keys = Keys(&[
    ("while", Author),
    ("until", Author),
    ("max", Author),
    ("delay", Author),
    ("stages", In(&SWDL_STAGE)),
]);

static SWDL_BRANCH: Keys = Keys(&[
    ("if", Author),
    ("then", In(&SWDL_STAGE)),
    ("else", In(&SWDL_STAGE)),
    ("switch", Author),
    ("cases", Named(&SWDL_STAGE)),
    ("default", In(&SWDL_STAGE)),
]);

// speckit

static SPECKIT: Keys = Keys(&[
    ("schema_version", Author),
    (
        "workflow",
        In(&Keys(&[
            ("id", Author),
            ("name", Author),
            ("version", Author),
            ("author", Author),
            ("description", Author),
            ("integration", Author),
            ("model", Author),
            ("options", Author),
        ])),
    ),
    ("requires", In(&Keys(&[("speckit_version", Author), ("integrations", Author)]))),
    ("inputs", Named(&SPECKIT_INPUT)),
    ("steps", In(&SPECKIT_STEP)),
    ("outputs", Author),
]);

static SPECKIT_INPUT: Keys = Keys(&[
    ("type", Author),
    ("required", Author),
    ("default", Author),
    ("enum", Author),
    ("prompt", Author),
]);

static SPECKIT_STEP: Keys = Keys(&[
    ("id", Author),
    ("name", Author),
    ("type", Author),
    ("wait_for", Author),
    ("condition", Author),
    ("expression", Author),
    ("run", Author),
    ("command", Author),
    ("prompt", Author),
    ("workflow", Author),
    ("operation", Author),
    ("target", Author),
    ("repository", Author),
    ("number", Author),
    ("label", Author),
    ("message", Author),
    ("show_file", Author),
    ("verdict_input", Author),
    ("project", Author),
    ("here", Author),
    ("integration", Author),
    ("model", Author),
    ("options", Author),
    ("integration_args", Author),
    ("integration_options", Author),
    ("script", Author),
    ("force", Author),
    ("ignore_agent_tools", Author),
    ("preset", Author),
    ("input", Author),
    ("on_reject", Author),
    ("items", Author),
    ("max_concurrency", Author),
    ("max_iterations", Author),
    ("then", In(&SPECKIT_STEP)),
    ("else", In(&SPECKIT_STEP)),
    ("cases", Named(&SPECKIT_STEP)),
    ("default", In(&SPECKIT_STEP)),
    ("step", In(&SPECKIT_STEP)),
    ("steps", In(&SPECKIT_STEP)),
    ("output_format", Author),
    ("output", Author),
    ("capture", Author),
    ("capture_max_bytes", Author),
    ("timeout", Author),
    ("continue_on_error", Author),
]);

// dagnats

static DAGNATS: Keys = Keys(&[
    ("name", Author),
    ("version", Author),
    ("timeout", Author),
    ("idempotency_key", Author),
    ("sticky", Author),
    ("priority", In(&Keys(&[("key", Author), ("rules", Author), ("default_offset", Author)]))),
    ("singleton", In(&Keys(&[("mode", Author), ("key", Author)]))),
    ("concurrency", In(&Keys(&[("max_runs", Author), ("max_steps", Author)]))),
    ("cancel_on", In(&Keys(&[("event", Author), ("match", In(&DAGNATS_MATCH)), ("timeout", Author)]))),
    ("default_retry", In(&DAGNATS_RETRY)),
    ("input_schema", Author),
    ("output_schema", Author),
    ("triggers", In(&DAGNATS_TRIGGER)),
    ("aux_steps", Author),
    ("steps", In(&DAGNATS_STEP)),
]);

static DAGNATS_RETRY: Keys = Keys(&[
    ("max_attempts", Author),
    ("strategy", Author),
    ("initial_delay", Author),
    ("max_delay", Author),
    ("multiplier", Author),
]);

static DAGNATS_MATCH: Keys = Keys(&[("left", Author), ("op", Author), ("right", Author)]);

static DAGNATS_LOOP: Keys = Keys(&[
    ("max_iterations", Author),
    ("max_duration", Author),
    ("loop_delay", Author),
    ("budget_warn_at", Author),
    ("budget_force_at", Author),
]);

static DAGNATS_STEP: Keys = Keys(&[
    ("id", Author),
    ("name", Author),
    ("type", Author),
    ("task", Author),
    ("depends_on", Author),
    ("skip_if", In(&Keys(&[("step_id", Author), ("field", Author), ("op", Author), ("value", Author)]))),
    ("config", In(&DAGNATS_CONFIG)),
    ("loop", In(&DAGNATS_LOOP)),
    ("worker_group", Author),
    ("required_capabilities", Author),
    ("metadata", Author),
    ("timeout", Author),
    ("retry", In(&DAGNATS_RETRY)),
    ("retries", Author),
    ("rate_limit", In(&DAGNATS_RATE)),
    ("keyed_rate_limit", In(&DAGNATS_RATE)),
    ("max_task_concurrency", Author),
    ("singleton", Author),
    ("on_failure", Author),
    ("compensate", Author),
]);

static DAGNATS_RATE: Keys =
    Keys(&[("key", Author), ("limit", Author), ("period", Author), ("units", Author)]);

/// The blocks of all types of steps; no key stands in two of them with another meaning.
static DAGNATS_CONFIG: Keys = Keys(&[
    ("workflow", Author),
    ("detach", Author),
    ("max_items", Author),
    ("max_iterations", Author),
    ("max_duration", Author),
    ("loop_delay", Author),
    ("budget_warn_at", Author),
    ("budget_force_at", Author),
    ("duration", Author),
    ("cron", Author),
    ("until_input_path", Author),
    ("event", Author),
    ("match", In(&DAGNATS_MATCH)),
    ("subject", Author),
    ("description", Author),
    ("timeout", Author),
    ("max_steps", Author),
    ("max_depth", Author),
    ("allowed_tasks", Author),
    ("status", Author),
    ("content_type", Author),
    ("headers", Author),
    ("body_from", Author),
    ("metadata", Author),
]);

static DAGNATS_TRIGGER: Keys = Keys(&[
    ("id", Author),
    ("workflow_id", Author),
    ("enabled", Author),
    ("cron", In(&Keys(&[("expression", Author), ("timezone", Author), ("backfill", Author)]))),
    ("subject", In(&Keys(&[("subject", Author)]))),
    ("webhook", In(&Keys(&[("path", Author), ("secret", Author)]))),
    (
        "http",
        In(&Keys(&[
            ("path", Author),
            ("method", Author),
            ("timeout_ms", Author),
            ("max_body_bytes", Author),
            ("idempotency_header", Author),
            ("authentication", Author),
            ("secret", Author),
        ])),
    ),
    ("external", In(&Keys(&[("kind", Author), ("config", Author)]))),
    ("debounce", In(&Keys(&[("period", Author), ("timeout", Author), ("key", Author)]))),
    ("source", Author),
]);

// dcc

static DCC: Keys =
    Keys(&[("name", Author), ("description", Author), ("inputs", Author), ("steps", In(&DCC_STEP))]);

static DCC_STEP: Keys = Keys(&[
    ("id", Author),
    ("name", Author),
    ("kind", Author),
    ("dcc", Author),
    ("tool", Author),
    ("on", Author),
    ("items", Author),
    ("as", Author),
    ("prompt", Author),
    ("args", Author),
    ("concurrency", Author),
    ("on_any_fail", Author),
    ("then", In(&DCC_STEP)),
    ("else", In(&DCC_STEP)),
    ("branches", In(&DCC_STEP)),
    ("steps", In(&DCC_STEP)),
    ("timeout_secs", Author),
    (
        "retry",
        In(&Keys(&[
            ("max_attempts", Author),
            ("backoff", Author),
            ("initial_delay_ms", Author),
            ("max_delay_ms", Author),
            ("jitter", Author),
            ("retry_on", Author),
        ])),
    ),
    ("idempotency_key", Author),
    ("idempotency_scope", Author),
    ("idempotency_ttl_secs", Author),
]);

static SCHEDULES: Keys = Keys(&[(
    "schedules",
    In(&Keys(&[
        ("id", Author),
        ("workflow", Author),
        ("enabled", Author),
        (
            "trigger",
            In(&Keys(&[
                ("kind", Author),
                ("expression", Author),
                ("timezone", Author),
                ("jitter_secs", Author),
                ("path", Author),
                ("secret_env", Author),
            ])),
        ),
        ("inputs", Author),
        ("max_concurrent", Author),
    ])),
)]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Tables refer to each other in circles, so each is looked at once.
    fn tables(order: KeyOrder, seen: &mut Vec<&'static Keys>) {
        let (In(keys) | Named(keys)) = order else { return };
        if seen.iter().any(|known| std::ptr::eq(*known, keys)) {
            return;
        }
        seen.push(keys);
        keys.0.iter().for_each(|(_, below)| tables(*below, seen));
    }

    #[test]
    fn no_key_has_two_places() {
        let mut seen = Vec::new();
        FileKind::ALL.into_iter().for_each(|kind| tables(order(kind), &mut seen));
        assert!(seen.len() > 20, "the tables must be found");
        for keys in seen {
            let names: HashSet<&str> = keys.0.iter().map(|(name, _)| *name).collect();
            assert_eq!(
                names.len(),
                keys.0.len(),
                "{:?}",
                keys.0.iter().map(|(name, _)| name).collect::<Vec<_>>()
            );
        }
    }
}
