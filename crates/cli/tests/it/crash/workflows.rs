//! The workflows that are killed. Every stage writes a line when it starts and one when it ends, and its answer depends
//! on nothing that a crash may change.

pub struct Workflow {
    pub name: &'static str,
    pub text: &'static str,
}

/// What each stage does: `sh ./step ID [SECONDS]`. It says so if the process that did the same before is still there.
pub const STEP: &str = r#"id=$1
if read -r old < "pid-$id"; then
  grep -q '^State:.[^ZX]' "/proc/$old/status" && echo "alive $id $WINDLASS_JOB" >> trace
fi 2> /dev/null
echo $$ > "pid-$id"
echo "start $id $WINDLASS_JOB" >> trace
sleep "${2:-0.02}"
echo "end $id $WINDLASS_JOB" >> trace
echo "$id is done"
"#;

pub const WORKFLOWS: &[Workflow] = &[
    Workflow { name: "chain", text: CHAIN },
    Workflow { name: "wide", text: WIDE },
    Workflow { name: "diamonds", text: DIAMONDS },
    Workflow { name: "retries", text: RETRIES },
    Workflow { name: "gate", text: GATE },
];

const CHAIN: &str = "\
workflow: { id: chain, name: Chain }
stages:
  - { id: a, type: shell, run: sh ./step a }
  - { id: b, type: shell, run: sh ./step b 0.005, depends_on: [a] }
  - { id: c, type: shell, run: sh ./step c, depends_on: [b] }
  - { id: d, type: shell, run: sh ./step d 0.04, depends_on: [c] }
  - { id: e, type: shell, run: sh ./step e, depends_on: [d] }
  - { id: f, type: shell, run: sh ./step f 0.001, depends_on: [e] }
  - { id: g, type: shell, run: sh ./step g, depends_on: [f] }
  - { id: h, type: shell, run: sh ./step h, depends_on: [g] }
outputs:
  last: { type: string, source: '${{ stages.h.outputs.stdout }}' }
";

const WIDE: &str = "\
workflow: { id: wide, name: Wide }
stages:
  - { id: root, type: shell, run: sh ./step root }
  - { id: w0, type: shell, run: sh ./step w0, depends_on: [root] }
  - { id: w1, type: shell, run: sh ./step w1 0.01, depends_on: [root] }
  - { id: w2, type: shell, run: sh ./step w2 0.03, depends_on: [root] }
  - { id: w3, type: shell, run: sh ./step w3 0.05, depends_on: [root] }
  - { id: w4, type: shell, run: sh ./step w4, depends_on: [root] }
  - { id: w5, type: shell, run: sh ./step w5 0.07, depends_on: [root] }
  - { id: w6, type: shell, run: sh ./step w6, depends_on: [root] }
  - { id: w7, type: shell, run: sh ./step w7, depends_on: [w0] }
  - { id: w8, type: shell, run: sh ./step w8, depends_on: [w0, w1] }
  - { id: w9, type: shell, run: sh ./step w9, depends_on: [w3] }
  - { id: join, type: shell, run: sh ./step join, depends_on: [w2, w4, w5, w6, w7, w8, w9] }
";

const DIAMONDS: &str = "\
workflow: { id: diamonds, name: Diamonds }
stages:
  - { id: top, type: shell, run: sh ./step top }
  - { id: left, type: shell, run: sh ./step left, depends_on: [top], condition: 'stages.top.outputs.exit_code == 0' }
  - { id: right, type: shell, run: sh ./step right, depends_on: [top], condition: 'stages.top.outputs.exit_code != 0' }
  - { id: middle, type: shell, run: sh ./step middle, depends_on: [left, right] }
  - { id: west, type: shell, run: sh ./step west, depends_on: [middle], condition: \"stages.right.status == 'success'\" }
  - { id: east, type: shell, run: sh ./step east 0.04, depends_on: [middle], condition: \"stages.right.status == 'skipped'\" }
  - { id: bottom, type: shell, run: sh ./step bottom, depends_on: [west, east] }
";

/// `forgets` fails the first time that it is done, whichever delivery that is; `counts` by the number of its attempt.
const RETRIES: &str = "\
workflow: { id: retries, name: Retries }
error_policy:
  default_retry: { max_attempts: 3, initial_interval: 10ms }
stages:
  - { id: first, type: shell, run: sh ./step first }
  - { id: forgets, type: shell, run: 'sh ./step forgets && { test -e been || { touch been; exit 1; }; }', depends_on: [first] }
  - { id: counts, type: shell, run: 'sh ./step counts && echo $WINDLASS_ATTEMPT && test $WINDLASS_ATTEMPT -ge 3', depends_on: [first] }
  - { id: last, type: shell, run: sh ./step last, depends_on: [forgets, counts] }
";

const GATE: &str = "\
workflow: { id: gate, name: Gate }
stages:
  - { id: build, type: shell, run: sh ./step build }
  - { id: test, type: shell, run: sh ./step test, depends_on: [build] }
  - { id: sign-off, type: gate, gate: { approvers: [dana], timeout: 1h }, depends_on: [test] }
  - { id: release, type: shell, run: sh ./step release, depends_on: [sign-off] }
  - { id: announce, type: shell, run: sh ./step announce, depends_on: [release] }
";
