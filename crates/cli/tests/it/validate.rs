//! `windlass validate`: findings as text and as JSON.

use crate::support::{folder, windlass, windlass_in};
use serde_json::Value;
use std::path::Path;

const GOOD: &str = "workflow: {id: good, name: Good}\nstages:\n  - {id: a, type: shell, run: \"true\"}\n";
const WARNED: &str =
    "workflow: {id: warned, name: Warned, colour: red}\nstages:\n  - {id: a, type: shell, run: \"true\"}\n";
const BAD: &str = r#"workflow: {id: bad, name: Bad}
config:
  parameters:
    topic: {type: string}
stages:
  - id: study
    name: Study
    roles: {primary: {artifact: "agent:scholar"}}
    inputs:
      topic: {type: string, source: "${{ parameters.topik }}"}
    outputs:
      summary: {type: string}
  - id: act
    name: Act
    depend_on: [study]
    roles: {primary: {artifact: "agent:doer"}}
    inputs:
      summary: {type: string, source: "${{ stages.study.outputs.sumary }}"}
  - id: act
    name: Act again
    type: spiral
"#;

#[test]
fn the_examples_are_valid() {
    let seen =
        windlass(&["validate", "examples/quick-review/WORKFLOW.yaml", "examples/ship-a-feature"]).see();
    insta::assert_snapshot!("validate_examples", seen);
}

#[test]
fn all_problems_are_shown_at_once() {
    let folder = folder("validate_bad", &[("bad.yaml", BAD)]);
    insta::assert_snapshot!("validate_bad", windlass_in(&folder, &["validate", "bad.yaml"]).see());
}

#[test]
fn the_exit_status_is_that_of_the_worst_file() {
    let folder =
        folder("validate_several", &[("good.yaml", GOOD), ("warned.yaml", WARNED), ("bad.yaml", BAD)]);
    let check = |args: &[&str], status: i32| {
        let seen = windlass_in(&folder, &[&["validate"], args].concat()).see();
        assert_eq!(seen.status, status, "{seen}");
    };
    check(&["good.yaml"], 0);
    check(&["good.yaml", "warned.yaml"], 0);
    check(&["--strict", "good.yaml"], 0);
    check(&["--strict", "good.yaml", "warned.yaml"], 1);
    check(&["good.yaml", "bad.yaml"], 1);
    check(&["missing.yaml", "good.yaml"], 2);
    check(&["missing.yaml", "bad.yaml", "good.yaml"], 1);
    let seen =
        windlass_in(&folder, &["validate", "--strict", "good.yaml", "warned.yaml", "wared.yaml"]).see();
    insta::assert_snapshot!("validate_several", seen);
}

#[test]
fn json_output_follows_the_contract() {
    let folder = folder("validate_json", &[("good.yaml", GOOD), ("warned.yaml", WARNED), ("bad.yaml", BAD)]);
    let json = |args: &[&str]| windlass_in(&folder, &[&["validate", "--json"], args].concat()).see().json();
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();

    let bad = json(&["bad.yaml"]);
    let members = ["file", "valid", "dialect", "workflow", "diagnostics", "kind", "entries", "triggers"];
    assert_eq!(keys(&bad), members);
    let finding = &bad["diagnostics"][0];
    let expected = [
        "severity",
        "code",
        "message",
        "file",
        "line",
        "column",
        "end_line",
        "end_column",
        "step",
        "field",
        "ref",
        "suggest",
        "rule",
        "help",
        "labels",
    ];
    assert_eq!(keys(finding), expected);
    assert_eq!(
        (&finding["code"], &finding["suggest"]),
        (&Value::from("unknown_parameter"), &Value::from("topic"))
    );
    assert_eq!((&finding["line"], &finding["column"]), (&Value::from(10), &Value::from(42)));

    let several = json(&["good.yaml", "missing.yaml", "bad.yaml"]);
    let summary = |entry: &Value| ["file", "valid", "dialect", "workflow"].map(|key| entry[key].clone());
    let summaries: Vec<Value> = several
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| summary(entry).into_iter().collect())
        .collect();
    let expected = serde_json::json!([
        ["good.yaml", true, "swdl", "good"],
        ["missing.yaml", false, null, null],
        ["bad.yaml", false, "swdl", "bad"],
    ]);
    assert_eq!(Value::from(summaries), expected);
    let unreadable = &several[1]["diagnostics"];
    assert_eq!(unreadable.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&unreadable[0]["code"], &unreadable[0]["file"]),
        (&Value::from("unreadable"), &Value::from("missing.yaml"))
    );

    assert_eq!(json(&["warned.yaml"])["valid"], true);
    assert_eq!(json(&["--strict", "warned.yaml"])["valid"], false);
}

/// Cases that are hard to draw: tabs, wide characters, CRLF, empty places, places at the end of the file, places of many lines,
/// very long lines.
#[test]
fn excerpts_stay_readable() {
    let long = format!(
        "workflow: {{id: long, name: Long}}\nstages: [{{id: a, type: shell, run: x, note: '{}', slip: 1}}]\n",
        "y".repeat(5_000)
    );
    let files = [
        (
            "tabs.yaml",
            "workflow: {id: tabs,\t\tname: Tabs,\tcolour: red}\nstages: [{id: a, type: shell, run: x}]\n",
        ),
        (
            "wide.yaml",
            "workflow: {id: wide, name: 漢字漢字, \"farbe é\": 赤}\nstages: [{id: a, type: shell, run: x}]\n",
        ),
        (
            "crlf.yaml",
            "workflow: {id: crlf, name: Crlf}\r\ncolour: red\r\nstages:\r\n  - {id: a, type: shell, run: x}\r\n",
        ),
        ("end.yaml", "workflow: {id: end, name: End}\nstages:\n  - {id: a, type: shell, run: [x\n"),
        ("no-newline.yaml", "workflow: {id: end, name: End}\nstages: 3"),
        (
            "escape.yaml",
            "workflow: {id: escape, name: Escape, \"\\e[31m\\u202e\": 1}\nstages: [{id: a, type: shell, run: x}]\n",
        ),
        (
            "lines.yaml",
            "workflow: {id: lines, name: Lines}\nstages:\n  - id: a\n    type: shell\n    run: x\n    compensate:\n      type: gate\n",
        ),
        ("long.yaml", &long),
    ];
    let folder = folder("validate_excerpts", &files);
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let seen = windlass_in(&folder, &[&["validate"], names.as_slice()].concat()).see();
    assert!(!seen.stdout.contains(['\u{1b}', '\u{202e}', '\r']), "nothing steers the terminal");
    assert!(seen.stdout.lines().all(|line| line.chars().count() < 300), "no line floods the terminal");
    insta::assert_snapshot!("validate_excerpts", seen);
}

#[test]
fn many_findings_are_cut() {
    let keys: String = (0..1_500).map(|number| format!("key{number}: 1\n")).collect();
    let folder = folder("validate_flood", &[("flood.yaml", &format!("{keys}{GOOD}"))]);
    let seen = windlass_in(&folder, &["validate", "flood.yaml"]).see();
    assert_eq!(seen.stdout.matches("warning[unknown_key]").count(), 1_000);
    assert!(
        seen.stdout.contains("... and 500 more; fix these first, or list all with --json\n"),
        "the rest is counted"
    );
    let json = windlass_in(&folder, &["validate", "--json", "flood.yaml"]).see().json();
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1_500));
}

#[test]
fn color_is_for_terminals_unless_forced() {
    let folder = folder("validate_color", &[("bad.yaml", BAD)]);
    let colored = |environment: &[(&str, &str)]| {
        let call = windlass_in(&folder, &["validate", "bad.yaml"]);
        let call = environment.iter().fold(call, |call, (name, value)| call.env(name, value));
        call.see().stdout.contains('\u{1b}')
    };
    assert!(!colored(&[]));
    assert!(!colored(&[("TERM", "xterm-256color"), ("CLICOLOR", "1")]));
    assert!(colored(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colored(&[("NO_COLOR", "1")]));
}

/// Each finding of each fixture as text.
#[test]
fn every_finding_as_text() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/swdl");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("err_") || name.starts_with("warn_"))
        .filter(|name| !name.contains(".overrides."))
        .collect();
    names.sort();
    assert!(names.len() > 50, "only {} fixtures were found", names.len());
    for name in names {
        let seen = windlass_in(&folder, &["validate", &name]).see();
        insta::assert_snapshot!(format!("seen_{name}"), seen);
    }
}

const SCHEDULES: &str =
    "schedules:\n  - {id: nightly, workflow: good, trigger: {kind: cron, expression: \"0 30 2 * * *\"}}\n";
const CASES: &str = "cases:\n  - {name: it works, expect: {status: success}}\n";
const OVERLAY: &str = "id: tighten\nextends: base-wf\nedits:\n  - remove: lint\n";
const OVERRIDES: &str = "overrides:\n  good: {config: {timeout: 1h}}\n";
const CONFIG: &str = "[tasks.lint]\ncommand = [\"make\", \"lint\"]\n";

/// Every kind of file, valid and invalid, in one folder with files of other programs.
#[test]
fn every_kind_of_file_is_checked() {
    let files = [
        ("a.yaml", GOOD),
        ("a.test.yaml", CASES),
        ("bad.test.yaml", "cases:\n  - {name: it works, expct: {status: success}}\n"),
        ("overlay.yml", OVERLAY),
        ("bad-overlay.yml", "id: tighten\nextends: base-wf\nedits:\n  - remov: lint\n"),
        (".skillmeat-workflow-overrides.yaml", OVERRIDES),
        ("bad-overrides.yaml", "overrides:\n  good: {stages: {a: {type: shell}}, colour: red}\nmore: 1\n"),
        ("schedules.yaml", SCHEDULES),
        ("skills/tidy/SKILL.md", "---\nname: tidy\nmetadata:\n  dcc-mcp.workflows: \"none/*.yaml\"\n---\n"),
        ("windlass.toml", CONFIG),
        ("inner/windlass.toml", "[limits]\nrun = 1\n[tasks.lint]\ncommand = \"make lint\"\n"),
        ("flow.json", r#"{"name": "f", "version": "1", "steps": [{"id": "a", "task": "t"}]}"#),
        ("compose.yaml", "services: {db: {image: postgres}}\n"),
        ("package.json", r#"{"name": "x", "version": "1.0.0"}"#),
        ("node_modules/x/workflow.yml", "not: [read\n"),
        (".git/workflow.yml", "not: [read\n"),
    ];
    let folder = folder("validate_kinds", &files);
    let seen = windlass_in(&folder, &["validate", "."]).see();
    assert_eq!(seen.status, 1, "{seen}");
    insta::assert_snapshot!("validate_kinds", seen);
    let json = windlass_in(&folder, &["validate", "--json", "."]).see().json();
    let kinds: Vec<(&str, &str, bool)> = json
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            (text("file"), text("kind"), entry["valid"] == true)
        })
        .collect();
    let expected = [
        ("./.skillmeat-workflow-overrides.yaml", "overrides", true),
        ("./a.test.yaml", "cases", true),
        ("./a.yaml", "workflow", true),
        ("./bad-overlay.yml", "overlay", false),
        ("./bad-overrides.yaml", "overrides", false),
        ("./bad.test.yaml", "cases", false),
        ("./flow.json", "workflow", true),
        ("./inner/windlass.toml", "config", false),
        ("./overlay.yml", "overlay", true),
        ("./schedules.yaml", "schedules", true),
        ("./skills/tidy/SKILL.md", "skill", true),
        ("./windlass.toml", "config", true),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_folder_means_its_only_workflow_or_all_its_files() {
    let folder = folder(
        "validate_folders",
        &[
            ("one/WORKFLOW.yaml", GOOD),
            ("one/other.yaml", BAD),
            ("two/WORKFLOW.yaml", GOOD),
            ("two/WORKFLOW.json", "{"),
            ("none/notes.txt", "nothing"),
        ],
    );
    let check = |args: &[&str], status: i32, files: &[&str]| {
        let seen = windlass_in(&folder, &[&["validate", "--json"], args].concat()).see();
        let json = seen.json();
        let entries: Vec<&Value> = json.as_array().map_or_else(|| vec![&json], |list| list.iter().collect());
        let named: Vec<&str> = entries.iter().filter_map(|entry| entry["file"].as_str()).collect();
        assert_eq!((seen.status, named.as_slice()), (status, files), "{seen}");
    };
    check(&["one"], 0, &["one/WORKFLOW.yaml"]);
    check(&["two"], 1, &["two/WORKFLOW.json", "two/WORKFLOW.yaml"]);
    check(&["none"], 2, &["none"]);
    check(&["one", "one/WORKFLOW.yaml"], 0, &["one/WORKFLOW.yaml"]);
    check(&["one", "none"], 2, &["one/WORKFLOW.yaml", "none"]);
}

#[test]
fn a_dialect_option_marks_a_file_as_a_workflow() {
    let folder = folder("validate_dialect", &[("a.yaml", OVERLAY)]);
    let json = |args: &[&str]| {
        windlass_in(&folder, &[&["validate", "--json", "a.yaml"], args].concat()).see().json()
    };
    assert_eq!(json(&[])["kind"], "overlay");
    let forced = json(&["--dialect", "speckit"]);
    assert_eq!(
        (&forced["kind"], &forced["diagnostics"][0]["code"]),
        (&"workflow".into(), &"not_a_workflow".into())
    );
}
