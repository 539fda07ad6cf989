//! `windlass triggers`: problems of schedules, alone and together, and when they fire.

use crate::support::{Seen, folder, windlass, windlass_in};
use serde_json::{Value, json};
use std::path::Path;

const NIGHTLY: &str = "schedules:\n  - {id: nightly, workflow: tidy, trigger: {kind: cron, expression: \"0 30 2 * * *\", timezone: Europe/Berlin, jitter_secs: 30}}\n";
const HOOK: &str =
    "schedules:\n  - {id: hook, workflow: tidy, trigger: {kind: webhook, path: \"/hooks/{id}\"}}\n";
const SKILL: &str = "---\nname: s\nmetadata:\n  dcc-mcp.workflows: \"flows/*.yaml\"\n  dcc-mcp.workflow.schedules: \"*.schedules.yaml\"\n---\n";

/// Uses the time zone of New York.
fn next(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, &[&["triggers", "next"], args].concat()).env("TZ", "America/New_York").see()
}

#[test]
fn the_example_is_valid_and_fires() {
    insta::assert_snapshot!(
        "triggers_check_example",
        windlass(&["triggers", "check", "examples/scene-maintenance/SKILL.md"]).see()
    );
    let args = [
        "triggers",
        "next",
        "examples/scene-maintenance/SKILL.md",
        "-n",
        "3",
        "--from",
        "2026-03-27T12:00:00Z",
    ];
    insta::assert_snapshot!("triggers_next_example", windlass(&args).env("TZ", "Europe/Berlin").see());
}

/// Other programs read these files too: the name is that of the folder, and metadata contains only texts.
#[test]
fn example_skills_follow_the_public_format() {
    let examples = crate::support::root().join("examples");
    let folders = std::fs::read_dir(examples).expect("the examples").flatten().map(|entry| entry.path());
    let skills: Vec<_> = folders.filter(|folder| folder.join("SKILL.md").exists()).collect();
    assert!(!skills.is_empty());
    for folder in skills {
        let text = std::fs::read_to_string(folder.join("SKILL.md")).expect("a skill");
        let front = text.split("---\n").nth(1).expect("front matter");
        let of = |key: &str| front.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(of("name:"), Some(name));
        assert!(of("description:").is_some_and(|about| !about.is_empty() && about.len() <= 1024), "{name}");
        let keys =
            front.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.split(':').next());
        let known = ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];
        assert!(keys.clone().all(|key| known.contains(&key)), "{name}");
        for line in front.lines().filter(|line| line.starts_with(' ')) {
            let (_, value) = line.split_once(": ").unwrap_or_default();
            assert!(!value.is_empty() && !value.starts_with(['[', '{']), "{name}: {line}");
        }
    }
}

#[test]
fn firings_on_the_days_when_clocks_change() {
    let schedules = r#"schedules:
  - {id: gap, workflow: w, trigger: {kind: cron, expression: "0 30 2 28-30 3 *", timezone: Europe/Berlin}}
  - {id: overlap, workflow: w, trigger: {kind: cron, expression: "0 30 2 24-26 10 *", timezone: Europe/Berlin}}
  - {id: new york, workflow: w, trigger: {kind: cron, expression: "0 30 2 8 3 *", timezone: America/New_York}}
  - {id: half an hour, workflow: w, trigger: {kind: cron, expression: "0 15 2 4 10 *", timezone: Australia/Lord_Howe}}
  - {id: hourly, workflow: w, trigger: {kind: cron, expression: "0 0 * 25 10 *", timezone: Europe/Berlin}}
  - {id: leap day, workflow: w, trigger: {kind: cron, expression: "0 0 0 29 2 *"}}
  - {id: year end, workflow: w, trigger: {kind: cron, expression: "59 59 23 31 12 *"}}
  - {id: never, workflow: w, trigger: {kind: cron, expression: "0 0 0 31 2 *"}}
  - {id: once, workflow: w, trigger: {kind: cron, expression: "0 0 0 1 1 * 2030"}}
"#;
    let folder = folder("triggers_changes", &[("changes.schedules.yaml", schedules)]);
    let seen = next(&folder, &["changes.schedules.yaml", "-n", "4", "--from", "2026-01-01T00:00:00Z"]);
    insta::assert_snapshot!("triggers_next_changes", seen);
}

#[test]
fn triggers_without_a_clock_are_listed() {
    let workflow = r#"workflow: {id: w, name: W}
config: {secrets: [PUSH]}
stages: [{id: a, type: shell, run: "true"}]
triggers:
  - {cron: "0 9 * * 1-5", timezone: America/New_York}
  - {cron: "*/30 * * * *"}
  - webhook: {path: pushes, secret: PUSH}
  - {message: merged}
"#;
    let schedules = r#"schedules:
  - {id: off, workflow: w, enabled: false, trigger: {kind: cron, expression: "@daily", jitter_secs: 90}}
  - {id: hook, workflow: w, trigger: {kind: webhook, path: /x, secret_env: HOOK_SECRET}}
"#;
    let folder = folder(
        "triggers_named",
        &[("w.yaml", workflow), ("schedules.yaml", schedules), ("none.schedules.yaml", "")],
    );
    let from = ["-n", "2", "--from", "2026-11-16T12:00:00+01:00"];
    insta::assert_snapshot!(
        "triggers_next_workflow",
        next(&folder, &[&["w.yaml"], from.as_slice()].concat())
    );
    insta::assert_snapshot!("triggers_next_folder", next(&folder, &[&["."], from.as_slice()].concat()));
    insta::assert_snapshot!(
        "triggers_next_none",
        next(&folder, &[&["none.schedules.yaml"], from.as_slice()].concat())
    );
}

#[test]
fn firings_as_json() {
    let folder = folder("triggers_json", &[("a.schedules.yaml", NIGHTLY), ("b.schedules.yaml", HOOK)]);
    let json = next(&folder, &[".", "-n", "1", "--json", "--from", "2026-03-28T12:00:00Z"]).json();
    let expected = json!({
        "after": "2026-03-28T12:00:00Z",
        "triggers": [
            {
                "id": "nightly",
                "kind": "cron",
                "workflow": "tidy",
                "enabled": true,
                "file": "./a.schedules.yaml",
                "timezone": "Europe/Berlin",
                "cron": {"expression": "0 30 2 * * *", "timezone": "Europe/Berlin", "jitter_seconds": 30.0},
                "path": null,
                "method": null,
                "signed": false,
                "secret": null,
                "message": null,
                "next": ["2026-03-29T01:00:00Z"],
            },
            {
                "id": "hook",
                "kind": "webhook",
                "workflow": "tidy",
                "enabled": true,
                "file": "./b.schedules.yaml",
                "timezone": null,
                "cron": null,
                "path": "/hooks/{id}",
                "method": null,
                "signed": false,
                "secret": null,
                "message": null,
                "next": [],
            },
        ],
        "diagnostics": [],
    });
    assert_eq!(json, expected);
}

#[test]
fn all_problems_are_shown_at_once() {
    let bad = r#"schedules:
  - {id: five, workflow: w, trigger: {kind: cron, expression: "0 3 * * 1-5"}}
  - {id: zone, workflow: w, enabled: yes, trigger: {kind: cron, expression: "0 0 3 * * *", timezone: america/new_york}}
  - {id: hook, workflow: w, inputs: "{{trigger.payloadX}}", trigger: {kind: webhook, path: hooks}}
"#;
    let folder = folder("triggers_bad", &[("bad.schedules.yaml", bad), ("good.schedules.yaml", HOOK)]);
    let seen =
        windlass_in(&folder, &["triggers", "check", "bad.schedules.yaml", "good.schedules.yaml"]).see();
    insta::assert_snapshot!("triggers_check_bad", seen);
    let refused = next(&folder, &["bad.schedules.yaml"]);
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{refused}");
    assert!(refused.stderr.contains("error[bad_cron]"), "{refused}");
}

#[test]
fn files_are_compared_with_each_other() {
    let twice = NIGHTLY.to_owned() + &HOOK.replace("schedules:\n", "").replace("{id}", "{name}");
    let off = HOOK.replace("id: hook", "id: parked, enabled: false");
    let files = [
        ("a/nightly.schedules.yaml", NIGHTLY),
        ("a/hook.schedules.yaml", HOOK),
        ("b/schedules.yaml", &twice),
        ("c/schedules.yml", &off),
    ];
    let folder = folder("triggers_shared", &files);
    let seen = windlass_in(&folder, &["triggers", "check", "a", "b", "c", "a/hook.schedules.yaml"]).see();
    insta::assert_snapshot!("triggers_check_shared", seen);
}

#[test]
fn a_skill_knows_its_workflows() {
    let files = [
        ("SKILL.md", SKILL),
        ("a.schedules.yaml", NIGHTLY),
        ("b.schedules.yaml", &HOOK.replace("tidy", "tidi")),
        ("flows/one.yaml", "name: tidy\nsteps: [{id: a, tool: echo}]\n"),
        ("flows/two.workflow.yaml", "steps: [{id: a, tool: echo}]\n"),
        ("flows/deeper/three.yaml", "name: hidden\n"),
    ];
    let here = folder("triggers_skill", &files);
    insta::assert_snapshot!(
        "triggers_check_skill",
        windlass_in(&here, &["triggers", "check", "SKILL.md"]).see()
    );
    let strict = windlass_in(&here, &["triggers", "check", "--strict", "SKILL.md"]).see();
    assert_eq!(strict.status, 1, "{strict}");
    let bare = SKILL.replace("flows/*", "flow/*").replace("*.schedules", "../*.schedules");
    let here = folder("triggers_skill_astray", &[("skill/SKILL.md", &bare), ("a.schedules.yaml", NIGHTLY)]);
    insta::assert_snapshot!(
        "triggers_check_skill_astray",
        windlass_in(&here, &["triggers", "check", "skill/SKILL.md", "skill"]).see()
    );
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out_of_a_skill() {
    let here = folder(
        "triggers_link",
        &[("skill/SKILL.md", SKILL), ("a.schedules.yaml", NIGHTLY), ("flows/x.yaml", "")],
    );
    std::os::unix::fs::symlink("../a.schedules.yaml", here.join("skill/a.schedules.yaml")).expect("a link");
    std::os::unix::fs::symlink("../flows", here.join("skill/flows")).expect("a link");
    std::os::unix::fs::symlink(".", here.join("skill/circle")).expect("a link");
    let json = windlass_in(&here, &["triggers", "check", "--json", "skill/SKILL.md"]).see().json();
    let codes: Vec<&str> = json["diagnostics"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|found| found["code"].as_str())
        .collect();
    assert_eq!(codes, ["unreadable", "bad_path"], "{json:#}");
}

#[test]
fn each_file_has_its_own_result() {
    let files = [
        ("good.schedules.yaml", HOOK),
        ("warned.schedules.yaml", "version: 1\n"),
        ("bad.schedules.yaml", "schedules: 3\n"),
        (
            "w.yaml",
            "workflow: {id: w, name: W}\nstages: [{id: a, type: shell, run: x}]\ntriggers: [{cron: nope}]\n",
        ),
        ("o.yml", "id: o\nextends: w\nedits: [{remov: a}]\n"),
    ];
    let folder = folder("triggers_verdicts", &files);
    let check = |args: &[&str], status: i32| {
        let seen = windlass_in(&folder, &[&["triggers", "check"], args].concat()).see();
        assert_eq!(seen.status, status, "{seen}");
    };
    check(&["good.schedules.yaml"], 0);
    check(&["warned.schedules.yaml"], 0);
    check(&["--strict", "warned.schedules.yaml"], 1);
    check(&["bad.schedules.yaml"], 1);
    check(&["w.yaml"], 1);
    check(&["o.yml"], 1);
    check(&["missing.yaml", "good.schedules.yaml"], 2);
    let seen =
        windlass_in(&folder, &["triggers", "check", "--json", "warned.schedules.yaml", "w.yaml", "no.yaml"])
            .see();
    let summary = |entry: &Value| ["file", "valid", "dialect", "workflow"].map(|key| entry[key].clone());
    let summaries: Vec<_> = seen.json().as_array().expect("a list").iter().map(summary).collect();
    let expected = json!([
        ["warned.schedules.yaml", true, "dcc", null],
        ["w.yaml", false, "swdl", "w"],
        ["no.yaml", false, null, null],
    ]);
    assert_eq!(json!(summaries), expected);
    let piped = windlass_in(&folder, &["triggers", "check", "-"]).stdin(HOOK).see();
    assert_eq!((piped.status, piped.stdout.as_str()), (0, "-: valid (1 schedule)\n"));
}

#[test]
fn a_workflow_is_required_where_one_runs() {
    let folder = folder("triggers_validate", &[("schedules.yaml", HOOK), ("SKILL.md", SKILL)]);
    insta::assert_snapshot!(
        "validate_schedules",
        windlass_in(&folder, &["validate", "schedules.yaml", "SKILL.md"]).see()
    );
    let planned = windlass_in(&folder, &["plan", "schedules.yaml"]).see();
    assert_eq!(planned.status, 2, "{planned}");
    assert!(planned.stderr.contains("error[not_a_workflow]"), "{planned}");
}

#[test]
fn bad_usage_is_refused() {
    let check = |args: &[&str], part: &str| {
        let seen = windlass(&[&["triggers"], args].concat()).see();
        assert_eq!((seen.status, seen.stdout.as_str()), (2, ""), "{seen}");
        assert!(seen.stderr.contains(part), "{seen}");
    };
    check(&[], "Usage: windlass triggers <COMMAND>");
    check(&["nxt"], "'next'");
    check(&["next"], "<FILE>");
    check(&["next", "x.yaml", "-n", "0"], "0 is not in 1..=1000");
    check(&["next", "x.yaml", "--from", "tomorrow"], "such as 2026-03-29T00:00:00Z");
    check(&["next", "x.yaml", "--from", "2026-03-29"], "such as 2026-03-29T00:00:00Z");
}

#[test]
fn history_shows_firings_and_reports_a_damaged_entry() {
    let schedules = r#"schedules:
  - {id: nightly, workflow: tidy, trigger: {kind: cron, expression: "0 0 3 1 1 *"}}
  - {id: lost, workflow: nowhere, trigger: {kind: cron, expression: "@daily"}}
  - {id: off, workflow: tidy, enabled: false, trigger: {kind: cron, expression: "@daily"}}
"#;
    let tidy = "name: tidy\nsteps: [{id: a, kind: tool, tool: scene_tidy}]\n";
    let files = [("s.schedules.yaml", schedules), ("workflows/tidy.workflow.yaml", tidy)];
    let folder = folder("triggers_history", &files);
    let history = |args: &[&str]| {
        windlass_in(&folder, &[&["triggers", "history", "--data", "data"], args].concat()).see()
    };
    assert_eq!(history(&[]).stderr, "nothing has been run with the data folder data yet\nno firings\n");
    let driven =
        windlass_in(&folder, &["resume", "--all", "--data", "data", "--schedules", "s.schedules.yaml"]).see();
    assert_eq!(driven.status, 0, "{driven}");
    assert!(driven.stderr.contains("there is no workflow `nowhere`"), "{driven}");
    let all: Value = serde_json::from_str(&history(&["--json"]).stdout).expect("JSON");
    let [only] = all["items"].as_array().expect("a page").as_slice() else { panic!("{all}") };
    assert_eq!(only["trigger"], "nightly");
    assert_eq!((&only["run_id"], &only["reason"]), (&json!(null), &json!("loaded")));
    let line = history(&["nightly", "--limit", "1"]).stdout;
    assert!(line.ends_with("Z  nightly  skipped: loaded\n"), "{line}");
    assert_eq!(history(&["lost"]).stderr, "no firings\n");
}
