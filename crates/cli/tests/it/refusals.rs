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
