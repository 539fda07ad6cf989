//! The workflows of simulated runs, and the limits they share.

use crate::story::plan_of;
use std::sync::{Arc, OnceLock};
use windlass_engine::Program;

/// A workflow, with the possible inputs to its runs.
#[derive(Debug)]
pub struct Workflow {
    pub name: &'static str,
    dialect: &'static str,
    text: &'static str,
    /// The gates at the top level.
    pub gates: &'static [&'static str],
    pub signals: &'static [&'static str],
    /// Only other workflows call it.
    pub is_called: bool,
}

impl Workflow {
    const fn new(name: &'static str, dialect: &'static str, text: &'static str) -> Self {
        Self { name, dialect, text, gates: &[], signals: &[], is_called: false }
    }
}

pub const WORKFLOWS: &[Workflow] = &[
    Workflow::new(
        "limited",
        "dagnats",
        r#"{"name": "limited", "version": "1", "concurrency": {"max_runs": 2},
        "priority": {"key": "k", "rules": {"a": 60}, "default_offset": 0},
        "default_retry": {"max_attempts": 2, "strategy": "fixed", "initial_delay": "1s", "max_delay": "1s"},
        "steps": [{"id": "one", "task": "paint", "type": "normal", "max_task_concurrency": 1},
            {"id": "two", "task": "call", "type": "normal", "rate_limit": {"limit": 2, "period": "10s"}},
            {"id": "three", "task": "paint", "type": "normal", "max_task_concurrency": 1, "depends_on": ["one", "two"]}]}"#,
    ),
    Workflow::new(
        "keyed",
        "dcc",
        "name: keyed\nsteps:\n  - {id: e, tool: maya__export, idempotency_key: \"x_{{inputs.k}}\", idempotency_scope: global, idempotency_ttl_secs: 30, retry: {max_attempts: 2}}\n",
    ),
    Workflow::new(
        "alone",
        "dagnats",
        r#"{"name": "alone", "version": "1", "singleton": {"mode": "cancel", "key": "k"},
        "cancel_on": [{"event": "stop", "match": {"left": "k", "op": "eq", "right": "input.k"}}],
        "steps": [{"id": "w", "type": "wait_for_event", "config": {"event": "go", "match": {"left": "k", "op": "eq", "right": "input.k"}, "timeout": "1m"}},
            {"id": "t", "task": "paint", "type": "normal", "max_task_concurrency": 1, "depends_on": ["w"]}]}"#,
    ),
    Workflow::new(
        "spends",
        "swdl",
        "workflow: {id: spends, name: Spends}
config: {budget: {calls: 3}, timeout: none}
error_policy: {default_retry: {max_attempts: 2, initial_interval: 1s, jitter: 0}}
stages:
  - {id: a, type: task, task: a}
  - {id: b, type: task, task: b, task_concurrency: 2}
  - {id: c, type: task, task: c, depends_on: [a, b]}
",
    ),
    Workflow::new(
        "works",
        "swdl",
        "workflow: {id: works, name: Works}
config: {timeout: 2h}
error_policy: {default_retry: {max_attempts: 3, initial_interval: 2s, jitter: 0}}
stages:
  - {id: a, type: shell, run: make, timeout: 40s}
  - id: each
    depends_on: [a]
    type: fan_out
    fan_out:
      source: [x, y, z]
      concurrency: 2
      stage_template: {id: t, type: task, task: t}
  - id: again
    depends_on: [a]
    type: loop
    loop: {until: stages.step.outputs.ok, max: 3, stages: [{id: step, type: task, task: step}]}
  - {id: nap, depends_on: [each], type: wait, wait: {for: 90s}}
hooks: {on_complete: {run: echo done}, on_failure: {run: echo failed}}
",
    ),
    Workflow {
        gates: &["quick", "slow", "late", "ever"],
        ..Workflow::new(
            "asks",
            "swdl",
            "workflow: {id: asks, name: Asks}
config: {timeout: 30h}
error_policy: {default_retry: {max_attempts: 2, initial_interval: 5m, jitter: 0}}
stages:
  - {id: quick, type: gate, gate: {timeout: 20s, on_timeout: auto_approve}}
  - {id: slow, type: gate, gate: {timeout: 10m, on_timeout: reject}, error_policy: {on_failure: skip_dependents}}
  - {id: build, depends_on: [quick], type: task, task: far}
  - {id: late, depends_on: [quick], type: gate, gate: {timeout: 5h}}
  - {id: ever, depends_on: [build, late], type: gate, gate: {timeout: none, on_reject: fail}}
  - {id: ship, depends_on: [ever], type: shell, run: ship, timeout: 1m}
",
        )
    },
    Workflow {
        signals: &["paid", "sent"],
        ..Workflow::new(
            "waits",
            "swdl",
            "workflow: {id: waits, name: Waits}
config: {timeout: none}
stages:
  - {id: paid, type: wait, wait: {signal: paid, timeout: 2h, on_timeout: {value: {late: true}}}}
  - {id: sent, type: wait, wait: {signal: sent}}
  - {id: nap, depends_on: [paid], type: wait, wait: {for: 45m}}
  - {id: dawn, type: wait, wait: {until: '2026-01-01T06:00:00Z'}}
  - {id: far, depends_on: [sent], type: task, task: far}
  - {id: end, depends_on: [nap, far], type: task, task: end}
",
        )
    },
    Workflow {
        gates: &["ok"],
        ..Workflow::new(
            "outer",
            "swdl",
            "workflow: {id: outer, name: Outer}
config: {timeout: 40h}
error_policy: {default_retry: {max_attempts: 2, initial_interval: 3s, jitter: 0}}
stages:
  - {id: first, type: workflow, workflow: inner}
  - {id: ok, type: gate, gate: {timeout: 3h, on_timeout: auto_approve}}
  - {id: aside, type: workflow, workflow: leaf, mode: detached}
  - {id: second, depends_on: [first], type: workflow, workflow: leaf}
  - {id: last, depends_on: [second, ok], type: task, task: far, timeout: 20m}
",
        )
    },
    Workflow {
        signals: &["go"],
        is_called: true,
        ..Workflow::new(
            "inner",
            "swdl",
            "workflow: {id: inner, name: Inner}
config: {timeout: none}
error_policy: {default_retry: {max_attempts: 2, initial_interval: 3s, jitter: 0}}
stages:
  - {id: t, type: task, task: t}
  - {id: leaf, depends_on: [t], type: workflow, workflow: leaf}
  - {id: go, type: wait, wait: {signal: go, timeout: 30m, on_timeout: {value: {late: true}}}}
",
        )
    },
    Workflow {
        gates: &["sign"],
        is_called: true,
        ..Workflow::new(
            "leaf",
            "swdl",
            "workflow: {id: leaf, name: Leaf}
config: {timeout: 50h}
error_policy: {default_retry: {max_attempts: 2, initial_interval: 3s, jitter: 0}}
stages:
  - {id: work, type: task, task: work}
  - {id: sign, depends_on: [work], type: gate, gate: {timeout: 8m, on_timeout: auto_approve}}
",
        )
    },
];

/// The step that waits for a wall-clock instant, and that instant.
pub const DAWN: (&str, i64) = ("/dawn", 1_767_247_200_000_000);

/// The capacity of each slot.
pub const LIMITS: [(&str, usize); 4] =
    [("runs:limited", 2), ("task:paint", 1), ("task:b", 2), (MACHINE, MACHINE_JOBS)];

/// The slot for every job on a machine with limits.
pub const MACHINE: &str = "machine";
pub const MACHINE_JOBS: usize = 3;

/// The workflow with a budget of three calls per run, and the budget for all of its calls.
pub const SPENDS: &str = "spends";
pub const CALLS: u64 = 3;

pub fn named(name: &str) -> Option<usize> {
    WORKFLOWS.iter().position(|workflow| workflow.name == name)
}

pub fn program(number: usize) -> &'static Arc<Program> {
    static PROGRAMS: OnceLock<Vec<Arc<Program>>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let program = |workflow: &Workflow| {
            let plan = plan_of(workflow.dialect, workflow.text).expect("a valid workflow");
            Arc::new(Program::new(plan).expect("a plan that can be executed"))
        };
        WORKFLOWS.iter().map(program).collect()
    });
    &programs[number]
}
