//! `windlass graph`: drawings in every language.

use crate::support::{folder, windlass, windlass_in};

const FLAGSHIP: &str = "examples/ship-a-feature/WORKFLOW.yaml";

/// Every shape, every arrow, and text with special characters.
const TORTURE: &str = r##"
workflow: {id: torture, name: "A \"quoted\" <b>#1</b> & `code` [a](b) {c} | ; %% \\N\nsecond line"}
config:
  parameters: {go: {type: boolean, default: true}}
stages:
  - {id: end, name: "1. first", type: shell, run: "true", condition: "parameters.go == true"}
  - id: subgraph
    name: "- item"
    depends_on: [end]
    type: shell
    run: 'echo "x" \ # not'
    error_policy: {on_failure: {goto: rescue}}
  - {id: rescue, name: "\e[31mred", type: shell, run: "true"}
  - {id: ask, depends_on: [subgraph], type: gate, gate: {kind: manual_approval, approvers: [ann]}}
  - id: each
    name: "漢字 é"
    depends_on: [ask]
    condition: "contains('\"#;', '\"')"
    type: fan_out
    fan_out: {source: [1, 2], stage_template: {type: shell, run: "x"}}
  - id: rounds
    depends_on: [each, end]
    condition: parameters.go
    type: loop
    loop:
      until: "true"
      max: 3
      stages:
        - {id: a, type: wait, wait: {for: 1m}}
        - {id: b, depends_on: [a], type: finish, finish: {status: success}}
  - id: choose
    depends_on: [rounds]
    type: branch
    branch:
      switch: run.id
      cases:
        "0": [{id: good, type: assign, set: {word: fine}}]
        "1": [{id: bad, type: assign, set: {word: bad}}]
      default: [{id: odd, type: assign, set: {word: odd}}]
  - id: pay
    depends_on: [choose]
    roles: {primary: {artifact: "agent:cashier"}}
    compensate:
      - {id: refund, type: task, task: refund}
error_policy: {on_stage_failure: rollback}
"##;

#[test]
fn the_flagship_in_every_language() {
    for format in ["text", "mermaid", "dot"] {
        let seen = windlass(&["graph", FLAGSHIP, "--format", format]).see();
        insta::assert_snapshot!(format!("graph_{format}"), seen);
    }
}

#[test]
fn shapes_arrows_and_labels() {
    let folder = folder("graph_torture", &[("torture.yaml", TORTURE)]);
    for format in ["text", "mermaid", "dot"] {
        let seen = windlass_in(&folder, &["graph", "torture.yaml", "--format", format]).see();
        insta::assert_snapshot!(format!("graph_torture_{format}"), seen);
    }
}

#[test]
fn text_is_the_default() {
    let plain = windlass(&["graph", FLAGSHIP]).see();
    assert_eq!(plain.stdout, windlass(&["graph", FLAGSHIP, "--format", "text"]).see().stdout);
}

#[test]
fn an_invalid_file_is_not_drawn() {
    let folder = folder("graph_invalid", &[("bad.yaml", "workflow: {id: x, name: X}\n")]);
    let seen = windlass_in(&folder, &["graph", "bad.yaml"]).see();
    assert_eq!((seen.status, seen.stdout.as_str()), (2, ""), "{seen}");
    assert!(seen.stderr.starts_with("error["), "{seen}");
}
