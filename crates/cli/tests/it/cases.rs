//! `windlass test`: cases pass, fail with a position, are refused with a cause, and are updated.

use crate::support::{folder, root, windlass, windlass_in};

#[test]
fn the_cases_of_all_examples_pass() {
    let seen = windlass(&["test", "examples"]).env("PATH", "/usr/bin:/bin").see();
    assert_eq!(seen.status, 0, "{seen}");
    assert!(!root().join("examples/.windlass").exists(), "nothing is recorded");
    let workflows = [
        "quick-review/WORKFLOW",
        "release-pipeline/WORKFLOW",
        "ship-a-feature/WORKFLOW",
        "speckit-tour/workflow",
        "dagnats/code-review",
        "dagnats/greenhouse",
        "dcc/vendor-intake.workflow",
        "examine-repository/WORKFLOW",
        "everyday/approval",
        "everyday/ci",
        "everyday/nightly",
        "everyday/polling",
        "everyday/saga",
        "scene-maintenance/workflows/scene_cleanup.workflow",
        "scene-maintenance/workflows/validate_upload.workflow",
    ];
    for workflow in workflows {
        assert!(seen.stdout.contains(&format!("examples/{workflow}.test.yaml\n")), "{workflow}\n{seen}");
    }
}

const FLOW: &str = "
workflow: { id: flow, name: Flow }
config: { parameters: { count: { type: integer, required: true } } }
stages:
  - { id: ask, type: task, task: t, input: { n: '${{ parameters.count }}' } }
  - { id: tell, depends_on: [ask], type: shell, run: echo told }
outputs: { said: { type: any, source: '${{ stages.ask.outputs }}' } }
";

const CASES: &str = "# Kept as it is.
cases:
  - name: it works
    inputs: { count: 3 } # three
    script:
      steps:
        ask: [{ output: yes indeed }]
        tell: [{ output: { exit_code: 0 } }]
    expect:
      status: failed   # wrong
      outputs: { said: no }
      steps:
        ask: { status: success, attempts: 2, input: { n: 4 } }
        tel: success
  - name: commands are not run
    inputs: { count: 1 }
    script: { steps: { ask: [{ output: 1 }] } }
    expect:
      status: failed
      error: { code: no_mock_response, step: tell }
";

#[test]
fn a_failed_case_shows_its_position_and_values() {
    let here = folder("cases_fail", &[("flow.yaml", FLOW), ("flow.test.yaml", CASES)]);
    let seen = windlass_in(&here, &["test", "flow.yaml"]).see();
    assert_eq!(seen.status, 1);
    insta::assert_snapshot!("test_fails", seen);
    let json = windlass_in(&here, &["test", ".", "--json"]).see();
    let file = &json.json()[0];
    assert_eq!((json.status, &file["passed"], &file["failed"]), (1, &1.into(), &1.into()));
    assert_eq!(file["cases"][0]["differences"][0]["line"], 10);
    assert!(!here.join(".windlass").exists(), "nothing is recorded");
}

const ASKING: &str = "
workflow: { id: asking, name: Asking }
stages:
  - id: sign-off
    type: gate
    gate:
      kind: manual_approval
      timeout: 1h
      form: { ticket: { type: string, required: true }, channel: { type: string, default: blog } }
outputs: { ticket: { type: string, source: '${{ stages.sign-off.outputs.ticket }}' } }
";

#[test]
fn a_case_fills_in_the_form_of_a_gate() {
    let cases = "
cases:
  - name: filled in
    script: { gates: { sign-off: [{ action: approve, by: ann, fields: { ticket: T-1 } }] } }
    expect: { status: success, outputs: { ticket: T-1 }, steps: { sign-off: { output: { channel: blog } } } }
";
    let here = folder("cases_form", &[("asking.yaml", ASKING), ("asking.test.yaml", cases)]);
    let seen = windlass_in(&here, &["test", "asking.yaml"]).see();
    assert_eq!(seen.status, 0, "{seen}");
}

#[test]
fn a_failed_case_says_why_the_run_failed_and_which_names_are_unknown() {
    let cases = "
cases:
  - name: a typo
    inputs: { count: 1 }
    script: { steps: { ask: [{ output: 1 }], tel: [{ output: {} }] }, gates: { nowhere: [] } }
    expect: { status: success, steps: { tall: success } }
";
    let here = folder("cases_why", &[("flow.yaml", FLOW), ("flow.test.yaml", cases)]);
    let seen = windlass_in(&here, &["test", "flow.yaml"]).see();
    assert_eq!(seen.status, 1);
    insta::assert_snapshot!("test_says_why", seen);
}

const MATRIX: &str = "
workflow: { id: matrix, name: Matrix }
stages:
  - id: test
    type: fan_out
    fan_out:
      matrix: { os: [linux, mac], python: ['3.11', '3.12'] }
      stage_template: { type: task, task: pytest }
";

#[test]
fn a_case_names_items_as_people_see_them() {
    let cases = "
cases:
  - name: names
    script: { steps: { pytest: [{ output: 1 }] } }
    expect: { steps: { 'test (mac, 3.12)': success, 'test[0]': { output: 1 } } }
  - name: an unknown one
    script: { steps: { pytest: [{ output: 1 }] } }
    expect: { steps: { 'test (mac, 3.13)': success } }
";
    let here = folder("cases_items", &[("matrix.yaml", MATRIX), ("matrix.test.yaml", cases)]);
    let seen = windlass_in(&here, &["test", "matrix.yaml"]).see();
    assert_eq!(seen.status, 1);
    insta::assert_snapshot!("test_items", seen);
}

#[test]
fn validate_and_test_mean_the_current_folder() {
    let cases =
        "cases: [{ name: one, script: { steps: { pytest: [{ output: 1 }] } }, expect: { status: success } }]";
    let here = folder("cases_here", &[("matrix.yaml", MATRIX), ("matrix.test.yaml", cases)]);
    let empty = folder("cases_nowhere", &[("readme.txt", "")]);
    for (command, expected) in
        [("validate", "matrix.yaml: valid (swdl, 1 stage)\n"), ("test", "1 case passed, 0 failed\n")]
    {
        let seen = windlass_in(&here, &[command]).see();
        assert!(seen.status == 0 && seen.stdout.ends_with(expected), "{seen}");
        let refused = windlass_in(&empty, &[command]).see();
        assert!(refused.status == 2 && refused.to_string().contains("this folder contains no"), "{refused}");
    }
}

#[test]
fn update_writes_actual_results_and_keeps_the_rest() {
    let cases = CASES.replace("        tel: success\n", "");
    let cases = format!(
        "{cases}  - name: nothing is expected yet\n    inputs: {{ count: 2 }}\n    script: {{ steps: {{ ask: [{{ output: 'no' }}], tell: [{{ output: {{}} }}] }} }} # said\n"
    );
    let here = folder("cases_update", &[("flow.yaml", FLOW), ("flow.test.yaml", &cases)]);
    let seen = windlass_in(&here, &["test", "flow.test.yaml", "--update"]).see();
    assert_eq!(seen.status, 0, "{seen}");
    insta::assert_snapshot!(
        "test_updated",
        std::fs::read_to_string(here.join("flow.test.yaml")).expect("the file")
    );
    assert_eq!(windlass_in(&here, &["test", "flow.test.yaml"]).see().status, 0);
}

#[test]
fn an_invalid_case_file_is_refused() {
    let bad = "
cases:
  - name: twice
    imputs: { count: 1 }
    expect: { status: success, stepps: {} }
  - name: twice
    expect: { steps: { ask: [success] } }
";
    let script = "
cases:
  - name: the script is wrong
    inputs: { count: 1 }
    script: { steps: { ask: [{ outputt: 1 }] } }
";
    let input = "
cases:
  - name: an input is missing
    expect: { status: success }
";
    let files = [
        ("flow.yaml", FLOW),
        ("bad/flow.test.yaml", bad),
        ("script/flow.test.yaml", script),
        ("input/flow.test.yaml", input),
        ("bad/flow.yaml", FLOW),
        ("script/flow.yaml", FLOW),
        ("input/flow.yaml", FLOW),
        ("lost/other.test.yaml", "cases: [{ name: alone }]"),
        ("empty/x", ""),
    ];
    let here = folder("cases_bad", &files);
    let seen = windlass_in(&here, &["test", "."]).see();
    assert_eq!(seen.status, 2);
    insta::assert_snapshot!("test_refused", seen);
    let seen = windlass_in(&here, &["test", "flow.yaml", "empty", "nothing.yaml"]).see();
    assert_eq!(seen.status, 2);
    insta::assert_snapshot!("test_none", seen);
}
