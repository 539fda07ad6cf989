//! The workflows that are killed, of all dialects. Every step writes a line when it starts and one when it ends, and its answer
//! depends on nothing that a crash may change.

pub struct Workflow {
    pub name: &'static str,
    /// The first one is the workflow itself.
    pub files: &'static [(&'static str, &'static str)],
    /// The status that the program ends with.
    pub ends: i32,
}

impl Workflow {
    pub fn main(&self) -> &'static str {
        self.files[0].0
    }

    pub fn is_scripted(&self) -> bool {
        self.files.iter().any(|(name, _)| *name == "script.yaml")
    }
}

/// What lies beside every workflow.
pub const TOOLS: &[(&str, &str)] = &[("step", STEP), ("task", TASK), ("windlass.toml", CONFIG)];

/// What a step does: `sh ./step [SECONDS]`. It says so if the process that did the same before is still there.
const STEP: &str = r#"key=${WINDLASS_JOB%#*}
file=pid-$(printf %s "$key" | tr '/:' '__')
if read -r old < "$file"; then
  grep -q '^State:.[^ZX]' "/proc/$old/status" && echo "alive $key $WINDLASS_JOB" >> trace
fi 2> /dev/null
echo $$ > "$file"
echo "start $key $WINDLASS_JOB" >> trace
sleep "${1:-0.02}"
echo "end $key $WINDLASS_JOB" >> trace
echo "${key#*:} is done"
"#;

/// What a task does: the same, with JSON in and out. `rounds` asks for another round until it has counted to three, `fails` fails.
const TASK: &str = r#"read -r input
sh ./step > /dev/null
case $1 in
  rounds) if [ "$input" -lt 3 ]; then echo "{\"continue\": $((input + 1))}"; else echo '"enough"'; fi ;;
  fails) echo '{"error": {"class": "non_retriable", "message": "it does not go on"}}' ;;
  zero) echo 0 ;;
  list) echo '[1, 2, 3, 4]' ;;
  *) echo "{\"from\": \"$1\", \"given\": $input}" ;;
esac
"#;

const CONFIG: &str = r#"
[tasks.work]
command = ["sh", "./task", "work"]
[tasks.zero]
command = ["sh", "./task", "zero"]
[tasks.list]
command = ["sh", "./task", "list"]
[tasks.rounds]
command = ["sh", "./task", "rounds"]
[tasks.fails]
command = ["sh", "./task", "fails"]
"#;

const SWDL: &str = "WORKFLOW.yaml";
const SPECKIT: &str = "workflow.yml";
const DAGNATS: &str = "main.json";
const DCC: &str = "main.workflow.yaml";

pub const WORKFLOWS: &[Workflow] = &[
    Workflow { name: "chain", files: &[(SWDL, CHAIN)], ends: 0 },
    Workflow { name: "wide", files: &[(SWDL, WIDE)], ends: 0 },
    Workflow { name: "diamonds", files: &[(SWDL, DIAMONDS)], ends: 0 },
    Workflow { name: "retries", files: &[(SWDL, RETRIES)], ends: 0 },
    Workflow { name: "gate", files: &[(SWDL, GATE)], ends: 0 },
    Workflow { name: "nested", files: &[(SWDL, NESTED)], ends: 0 },
    Workflow { name: "calls", files: &[(SWDL, CALLS), ("inner.yaml", INNER)], ends: 0 },
    Workflow { name: "undone", files: &[(SWDL, UNDONE)], ends: 1 },
    Workflow { name: "tour", files: &[(SPECKIT, TOUR), (INSTALLED, CHILD)], ends: 0 },
    Workflow { name: "agents", files: &[(DAGNATS, AGENTS), ("child.json", AGENTS_CHILD)], ends: 0 },
    Workflow { name: "saga", files: &[(DAGNATS, SAGA)], ends: 1 },
    Workflow { name: "tools", files: &[(DCC, TOOLS_FLOW), ("script.yaml", TOOLS_SCRIPT)], ends: 0 },
];

/// A fan-out of fan-outs of loops, with a branch in each round and a wait in between.
const NESTED: &str = "\
workflow: { id: nested, name: Nested }
stages:
  - id: outer
    type: fan_out
    fan_out:
      source: [1, 2]
      stages:
        - id: inner
          type: fan_out
          fan_out: { source: [a, b], stage_template: { type: shell, run: sh ./step 0.01 } }
        - id: rounds
          depends_on: [inner]
          type: loop
          loop:
            until: index >= 2
            max: 5
            delay: 10ms
            stages:
              - id: odd
                type: branch
                branch:
                  if: index == 1
                  then: [{ id: one, type: shell, run: sh ./step 0.01 }]
                  else: [{ id: other, type: shell, run: sh ./step 0.01 }]
  - { id: breathe, type: wait, wait: { for: 50ms }, depends_on: [outer] }
  - id: both
    depends_on: [breathe]
    type: parallel
    parallel:
      branches:
        - { id: left, type: shell, run: sh ./step }
        - [{ id: first, type: shell, run: sh ./step 0.01 }, { id: then, depends_on: [first], type: shell, run: sh ./step 0.01 }]
  - { id: last, type: shell, run: sh ./step, depends_on: [both] }
";

/// Runs that are called by items of a fan-out, one after the other within each.
const CALLS: &str = "\
workflow: { id: calls, name: Calls }
stages:
  - { id: before, type: shell, run: sh ./step 0.01 }
  - id: each
    depends_on: [before]
    type: fan_out
    fan_out:
      source: [1, 2]
      stage_template: { id: call, type: workflow, workflow: inner, with: { n: '${{ item }}' } }
  - { id: once-more, type: workflow, workflow: inner, with: { n: 3 }, depends_on: [each] }
  - { id: after, type: shell, run: sh ./step 0.01, depends_on: [once-more] }
";

const INNER: &str = "\
workflow: { id: inner, name: Inner }
config: { parameters: { n: { type: integer, required: true } } }
stages:
  - { id: first, type: shell, run: sh ./step 0.01 }
  - { id: second, type: shell, run: sh ./step 0.03, depends_on: [first] }
outputs:
  n: { type: integer, source: '${{ parameters.n }}' }
";

/// What was done is undone when the last stage fails.
const UNDONE: &str = "\
workflow: { id: undone, name: Undone }
error_policy: { on_stage_failure: rollback, default_retry: { max_attempts: 1 } }
stages:
  - { id: a, type: shell, run: sh ./step 0.01, compensate: un-a }
  - { id: b, type: shell, run: sh ./step 0.01, compensate: un-b, depends_on: [a] }
  - { id: c, type: shell, run: 'sh ./step && exit 1', depends_on: [b] }
  - { id: un-a, type: shell, run: sh ./step }
  - { id: un-b, type: shell, run: sh ./step }
";

const INSTALLED: &str = ".specify/workflows/inside/workflow.yml";

const CHILD: &str = "\
schema_version: '1.0'
workflow: { id: inside, name: Inside, version: 1.0.0 }
inputs: { n: { type: number, required: true } }
outputs: { said: { value: '{{ steps.speak.output.stdout }}' } }
steps:
  - { id: speak, type: shell, run: sh ./step 0.01 }
";

/// Spec Kit: a loop, a fan-out, branches, a call inside the run, and a gate.
const TOUR: &str = "\
schema_version: '1.0'
workflow: { id: tour, name: Tour, version: 1.0.0 }
steps:
  - { id: begin, type: shell, run: sh ./step 0.01 }
  - id: loop
    type: do-while
    condition: '{{ false }}'
    max_iterations: 3
    steps:
      - { id: again, type: shell, run: sh ./step 0.01 }
  - id: fan
    type: fan-out
    items: [1, 2, 3]
    max_concurrency: 2
    step: { id: work, type: shell, run: sh ./step 0.02 }
  - id: choose
    type: if
    condition: '{{ steps.begin.output.exit_code == 0 }}'
    then: [{ id: upwards, type: shell, run: sh ./step 0.01 }]
    else: [{ id: downwards, type: shell, run: sh ./step 0.01 }]
  - { id: call, type: workflow, workflow: inside, input: { n: 1 } }
  - { id: sign-off, type: gate, message: 'ship it?', options: [approve, reject] }
  - { id: end, type: shell, run: sh ./step 0.01 }
";

/// DagNats: a map, a loop of rounds, a sleep, and a run that is called.
const AGENTS: &str = r#"{"name": "agents", "version": "1", "steps": [
  {"id": "items", "task": "list", "type": "normal"},
  {"id": "each", "task": "work", "type": "map", "depends_on": ["items"], "config": {"max_items": 10}},
  {"id": "zero", "task": "zero", "type": "normal"},
  {"id": "polish", "task": "rounds", "type": "agent_loop", "depends_on": ["zero"], "config": {"max_iterations": 6, "loop_delay": "10ms"}},
  {"id": "rest", "type": "sleep", "depends_on": ["polish"], "config": {"duration": "50ms"}},
  {"id": "child", "type": "sub_workflow", "depends_on": ["rest"], "config": {"workflow": "agents-child"}},
  {"id": "end", "task": "work", "type": "normal", "depends_on": ["child", "each"]}
]}"#;

const AGENTS_CHILD: &str = r#"{"name": "agents-child", "version": "1", "steps": [
  {"id": "one", "task": "work", "type": "normal"},
  {"id": "two", "task": "work", "type": "normal", "depends_on": ["one"]}
]}"#;

const SAGA: &str = r#"{"name": "saga", "version": "1", "steps": [
  {"id": "book", "task": "work", "type": "normal", "compensate": "unbook"},
  {"id": "pay", "task": "work", "type": "normal", "depends_on": ["book"], "compensate": "refund"},
  {"id": "ship", "task": "fails", "type": "normal", "depends_on": ["pay"]},
  {"id": "unbook", "task": "work", "type": "normal"},
  {"id": "refund", "task": "work", "type": "normal"}
]}"#;

/// dcc: loops in loops and branches beside each other, answered by a script.
const TOOLS_FLOW: &str = "\
name: tools
steps:
  - { id: groups, tool: list, args: {} }
  - id: outer
    kind: foreach
    items: $.steps.groups.output.groups
    as: group
    steps:
      - id: inner
        kind: foreach
        items: $.group.xs
        as: x
        steps: [{ id: pick, tool: echo, args: { x: '{{x}}' } }]
  - { id: pause, tool: echo, args: {} }
  - id: sign-off
    kind: approve
    prompt: ship it?
  - { id: after, tool: echo, args: { last: '{{steps.pick.output}}' } }
";

const TOOLS_SCRIPT: &str = "\
steps:
  list: [{ output: { groups: [{ xs: [1, 2] }, { xs: [3] }] } }]
  echo: [{ output: { said: true }, takes: 10ms }]
";

const CHAIN: &str = "\
workflow: { id: chain, name: Chain }
stages:
  - { id: a, type: shell, run: sh ./step }
  - { id: b, type: shell, run: sh ./step 0.005, depends_on: [a] }
  - { id: c, type: shell, run: sh ./step, depends_on: [b] }
  - { id: d, type: shell, run: sh ./step 0.04, depends_on: [c] }
  - { id: e, type: shell, run: sh ./step, depends_on: [d] }
  - { id: f, type: shell, run: sh ./step 0.001, depends_on: [e] }
  - { id: g, type: shell, run: sh ./step, depends_on: [f] }
  - { id: h, type: shell, run: sh ./step, depends_on: [g] }
outputs:
  last: { type: string, source: '${{ stages.h.outputs.stdout }}' }
";

const WIDE: &str = "\
workflow: { id: wide, name: Wide }
stages:
  - { id: root, type: shell, run: sh ./step }
  - { id: w0, type: shell, run: sh ./step, depends_on: [root] }
  - { id: w1, type: shell, run: sh ./step 0.01, depends_on: [root] }
  - { id: w2, type: shell, run: sh ./step 0.03, depends_on: [root] }
  - { id: w3, type: shell, run: sh ./step 0.05, depends_on: [root] }
  - { id: w4, type: shell, run: sh ./step, depends_on: [root] }
  - { id: w5, type: shell, run: sh ./step 0.07, depends_on: [root] }
  - { id: w6, type: shell, run: sh ./step, depends_on: [root] }
  - { id: w7, type: shell, run: sh ./step, depends_on: [w0] }
  - { id: w8, type: shell, run: sh ./step, depends_on: [w0, w1] }
  - { id: w9, type: shell, run: sh ./step, depends_on: [w3] }
  - { id: join, type: shell, run: sh ./step, depends_on: [w2, w4, w5, w6, w7, w8, w9] }
";

const DIAMONDS: &str = "\
workflow: { id: diamonds, name: Diamonds }
stages:
  - { id: top, type: shell, run: sh ./step }
  - { id: left, type: shell, run: sh ./step, depends_on: [top], condition: 'stages.top.outputs.exit_code == 0' }
  - { id: right, type: shell, run: sh ./step, depends_on: [top], condition: 'stages.top.outputs.exit_code != 0' }
  - { id: middle, type: shell, run: sh ./step, depends_on: [left, right] }
  - { id: west, type: shell, run: sh ./step, depends_on: [middle], condition: \"stages.right.status == 'success'\" }
  - { id: east, type: shell, run: sh ./step 0.04, depends_on: [middle], condition: \"stages.right.status == 'skipped'\" }
  - { id: bottom, type: shell, run: sh ./step, depends_on: [west, east] }
";

/// `forgets` fails the first time that it is done, whichever delivery that is; `counts` by the number of its attempt.
const RETRIES: &str = "\
workflow: { id: retries, name: Retries }
error_policy:
  default_retry: { max_attempts: 3, initial_interval: 10ms }
stages:
  - { id: first, type: shell, run: sh ./step }
  - { id: forgets, type: shell, run: 'sh ./step && { test -e been || { touch been; exit 1; }; }', depends_on: [first] }
  - { id: counts, type: shell, run: 'sh ./step && echo $WINDLASS_ATTEMPT && test $WINDLASS_ATTEMPT -ge 3', depends_on: [first] }
  - { id: last, type: shell, run: sh ./step, depends_on: [forgets, counts] }
";

const GATE: &str = "\
workflow: { id: gate, name: Gate }
stages:
  - { id: build, type: shell, run: sh ./step }
  - { id: test, type: shell, run: sh ./step, depends_on: [build] }
  - { id: sign-off, type: gate, gate: { approvers: [dana], timeout: 1h }, depends_on: [test] }
  - { id: release, type: shell, run: sh ./step, depends_on: [sign-off] }
  - { id: announce, type: shell, run: sh ./step, depends_on: [release] }
";
