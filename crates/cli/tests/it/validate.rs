//! `windlass validate`: findings as people and as programs see them.

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
fn everything_wrong_is_shown_at_once() {
    let folder = folder("validate_bad", &[("bad.yaml", BAD)]);
    insta::assert_snapshot!("validate_bad", windlass_in(&folder, &["validate", "bad.yaml"]).see());
}

#[test]
fn each_file_is_checked_and_the_worst_decides() {
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
    check(&["missing.yaml", "bad.yaml", "good.yaml"], 2);
    let seen =
        windlass_in(&folder, &["validate", "--strict", "good.yaml", "warned.yaml", "wared.yaml", "."]).see();
    insta::assert_snapshot!("validate_several", seen);
}

#[test]
fn programs_read_the_contract() {
    let folder = folder("validate_json", &[("good.yaml", GOOD), ("warned.yaml", WARNED), ("bad.yaml", BAD)]);
    let json = |args: &[&str]| windlass_in(&folder, &[&["validate", "--json"], args].concat()).see().json();
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();

    let bad = json(&["bad.yaml"]);
    assert_eq!(keys(&bad), ["file", "valid", "dialect", "workflow", "diagnostics"]);
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

/// What makes drawing hard: tabs, wide characters, line ends of two characters, places of no width, places at the end
/// of the file, places of many lines, lines without end.
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
fn a_flood_of_findings_is_cut() {
    let keys: String = (0..1_500).map(|number| format!("key{number}: 1\n")).collect();
    let folder = folder("validate_flood", &[("flood.yaml", &format!("{keys}{GOOD}"))]);
    let seen = windlass_in(&folder, &["validate", "flood.yaml"]).see();
    assert_eq!(seen.stdout.matches("warning[unknown_key]").count(), 1_000);
    assert!(
        seen.stdout.contains("... and 500 more; mend these first, or see all with --json\n"),
        "the rest is counted"
    );
    let json = windlass_in(&folder, &["validate", "--json", "flood.yaml"]).see().json();
    assert_eq!(json["diagnostics"].as_array().map(Vec::len), Some(1_500));
}

#[test]
fn colour_is_for_terminals_unless_forced() {
    let folder = folder("validate_colour", &[("bad.yaml", BAD)]);
    let coloured = |environment: &[(&str, &str)]| {
        let call = windlass_in(&folder, &["validate", "bad.yaml"]);
        let call = environment.iter().fold(call, |call, (name, value)| call.env(name, value));
        call.see().stdout.contains('\u{1b}')
    };
    assert!(!coloured(&[]));
    assert!(!coloured(&[("TERM", "xterm-256color"), ("CLICOLOR", "1")]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("NO_COLOR", "1")]));
}

/// Each finding of each fixture, as it stands on a person's screen.
#[test]
fn every_finding_as_a_person_sees_it() {
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
