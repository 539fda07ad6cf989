//! Refusals of the commands that read workflows, as text and as JSON.

use crate::support::{folder, windlass_in};
use serde_json::{Value, json};

const BAD: &str = "workflow: {id: bad, name: Bad}\nstages: [{id: a, type: spiral}]\n";
const GOOD: &str = "workflow: {id: good, name: Good}\nstages: [{id: a, type: shell, run: \"true\"}]\n";

/// Each command with arguments that it refuses, the exit status and the code.
const REFUSED: &[(&[&str], i32, &str)] = &[
    (&["plan", "bad.yaml"], 2, "invalid_workflow"),
    (&["plan", "missing.yaml"], 2, "unreadable"),
    (&["plan", "good.yaml", "-p", "x=1"], 2, "bad_parameter"),
    (&["plan", "good.yaml", "--overrides", "missing.yaml"], 2, "unreadable"),
    (&["graph", "bad.yaml"], 2, "invalid_workflow"),
    (&["graph", "latin1.yaml"], 2, "invalid_workflow"),
    (&["convert", "bad.yaml"], 2, "invalid_workflow"),
    (&["convert", "good.yaml", "-o", "good.yaml"], 2, "unwritable"),
    (&["convert", "good.yaml", "--to", "json", "--overrides", "good.yaml"], 2, "bad_edit"),
    (&["fmt", "broken.yaml"], 2, "invalid_workflow"),
    (&["fmt", "missing.yaml"], 2, "unreadable"),
    (&["fmt", "-", "good.yaml"], 2, "bad_request"),
    (&["eval", "1 <"], 1, "expression_error"),
    (&["eval", "1", "--context", "missing.json"], 2, "unreadable"),
    (&["eval", "1", "--context", "list.json"], 2, "bad_request"),
    (&["plan", "good.yaml", "--input-file", "list.json"], 2, "bad_parameter"),
    (&["plan", "good.yaml", "--input-file", "broken.yaml"], 2, "bad_parameter"),
    (&["test", "good.yaml"], 2, "unreadable"),
    (&["triggers", "next", "bad.yaml"], 2, "invalid_workflow"),
    (&["triggers", "next", "missing.yaml"], 2, "unreadable"),
    (&["explain", "no_sutch_option"], 2, "no_code"),
];

#[test]
fn a_refusal_is_a_message_or_one_json_object() {
    let folder = folder(
        "refusals",
        &[("bad.yaml", BAD), ("good.yaml", GOOD), ("broken.yaml", "a: [\n"), ("list.json", "[1]")],
    );
    std::fs::write(folder.join("latin1.yaml"), b"workflow: {id: caf\xE9}\n").expect("a writable folder");
    let mut shown = String::new();
    for (args, status, code) in REFUSED {
        let json = windlass_in(&folder, &[*args, &["--json"]].concat()).see();
        let reply = json.json();
        assert_eq!(json.status, *status, "{args:?}: {json}");
        assert_eq!(
            (&reply["type"], &reply["error"]["code"]),
            (&json!("refused"), &json!(code)),
            "{args:?}: {json}"
        );
        let members: Vec<&String> = reply["error"].as_object().expect("an object").keys().collect();
        let expected =
            ["code", "message", "help", "step", "field", "place", "diagnostics", "retry_after_seconds"];
        assert_eq!(members, expected, "{args:?}");
        assert_ne!(reply["error"]["message"], json!(""), "{args:?}");

        let text = windlass_in(&folder, args).see();
        assert_eq!((text.status, text.stdout.as_str()), (*status, ""), "{args:?}: {text}");
        shown += &format!("{text}\n");
    }
    insta::assert_snapshot!("refusals", shown);
}

const UNGUARDED: &str = "
workflow: { id: unguarded, name: Unguarded }
stages:
  - { id: sign-off, type: gate, gate: { kind: manual_approval, timeout: 1h } }
  - { id: deploy, type: shell, depend_on: [sign-off], run: touch deployed }
";
const CALLER: &str = "
workflow: { id: caller, name: Caller }
stages: [{ id: inner, type: workflow, workflow: unguarded.yaml }]
";

#[test]
fn a_misspelled_dependency_beside_a_gate_is_a_warning_that_a_start_refuses() {
    let folder = folder("refusals_unguarded", &[("unguarded.yaml", UNGUARDED), ("caller.yaml", CALLER)]);
    let see =
        |args: &[&str]| windlass_in(&folder, args).env("PATH", "/usr/bin:/bin").env("USER", "ann").see();
    let start = |args: &[&str]| see(&[&["run", "--data", "data"], args].concat());
    let valid = see(&["validate", "unguarded.yaml", "--json"]);
    assert_eq!(valid.status, 0, "{valid}");
    let warning = &valid.json()["diagnostics"][0];
    assert_eq!(
        (&warning["severity"], &warning["message"]),
        (&json!("warning"), &json!("unknown key `depend_on`"))
    );
    let refused = start(&["unguarded.yaml"]);
    assert_eq!(refused.status, 2, "{refused}");
    insta::assert_snapshot!("unguarded", refused);
    assert_eq!(start(&["unguarded.yaml", "--json"]).json()["error"]["code"], "invalid_workflow");

    let called = start(&["caller.yaml"]);
    assert_eq!(called.status, 1, "{called}");
    assert!(called.to_string().contains("would not wait for the gate `sign-off`"), "{called}");
    assert!(!folder.join("deployed").exists(), "nothing behind the gate has run");

    let harmless = UNGUARDED
        .replace("type: gate, gate: { kind: manual_approval, timeout: 1h }", "type: shell, run: 'true'");
    std::fs::write(folder.join("unguarded.yaml"), harmless).expect("a writable folder");
    let ran = start(&["unguarded.yaml"]);
    assert_eq!(ran.status, 0, "{ran}");

    let lines = start(&["unguarded.yaml", "--json"]);
    let notice: Value = serde_json::from_str(lines.stdout.lines().next().unwrap_or_default()).expect("JSON");
    let expected = json!({"type": "notice", "code": "unknown_key", "message": "unknown key `depend_on`"});
    assert_eq!((notice, lines.stderr.as_str()), (expected, ""));
}

#[test]
fn a_refusal_has_a_position_and_all_findings() {
    let folder = folder("refusals_place", &[("bad.yaml", BAD)]);
    let reply = windlass_in(&folder, &["plan", "bad.yaml", "--json"]).see().json();
    let error = &reply["error"];
    assert_eq!(error["place"]["file"], "bad.yaml");
    assert_eq!((&error["place"]["line"], &error["step"]), (&json!(2), &json!("a")));
    assert_eq!(error["message"], error["diagnostics"][0]["message"]);
}

#[test]
fn the_data_of_each_command() {
    let folder = folder(
        "refusals_data",
        &[
            ("good.yaml", GOOD),
            (
                "good.test.yaml",
                "cases:\n  - {name: it works, run_commands: true, expect: {status: success}}\n",
            ),
        ],
    );
    let keys = |args: &[&str]| {
        let seen = windlass_in(&folder, args).see();
        assert_eq!(seen.status, 0, "{seen}");
        let json = seen.json();
        let object = if let Value::Array(list) = &json { list[0].clone() } else { json };
        object.as_object().expect("an object").keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&["graph", "good.yaml", "--json"]), ["format", "text", "dialect", "diagnostics"]);
    assert_eq!(keys(&["eval", "1", "--json"]), ["value", "diagnostics"]);
    let edited = ["changes", "source", "etag", "diagnostics", "comments_lost"];
    let with = |more: &[&'static str]| [more, edited.as_slice()].concat();
    assert_eq!(keys(&["convert", "good.yaml", "--json"]), with(&["file"]));
    assert_eq!(keys(&["fmt", "good.yaml", "--json"]), with(&["file", "changed"]));
    assert_eq!(keys(&["test", "good.yaml", "--json"]), ["file", "passed", "failed", "cases"]);
    assert_eq!(keys(&["test", ".", "--json"]), ["file", "passed", "failed", "cases"]);
    assert_eq!(keys(&["triggers", "next", "good.yaml", "--json"]), ["after", "triggers", "diagnostics"]);
    assert_eq!(keys(&["explain", "no_run", "--json"]), ["code", "title", "text"]);
}
