//! `windlass plan`: the text, the JSON, and what it refuses.

use crate::support::{Seen, folder, root, windlass, windlass_in};
use serde_json::Value;
use std::path::PathBuf;

const FLAGSHIP: &str = "examples/ship-a-feature/WORKFLOW.yaml";

const PARAMETERS: &str = r#"workflow: {id: typed, name: Typed, version: "2.1.0"}
config:
  parameters:
    feature: {type: string, required: true}
    depth: {type: integer, default: 1}
    labels: {type: "array<string>", default: [a]}
    note: {type: string, required: false}
stages:
  - {id: a, name: A, type: shell, run: "echo ${{ parameters.feature }}"}
"#;

const NESTED: &str = r#"workflow: {id: nested, name: Nested}
stages:
  - id: outer
    name: Outer loop
    type: loop
    loop:
      until: stages.probe.outputs.exit_code == 0
      max: 5
      stages:
        - {id: probe, name: Probe, type: shell, run: "probe\nagain"}
        - id: decide
          depends_on: [probe]
          type: branch
          branch:
            if: stages.probe.outputs.exit_code == 1
            then: [{id: small, type: assign, set: {size: 1}}, {id: also, type: assign, set: {size: 2}}]
            else: [{id: large, type: wait, wait: {for: 2m}}]
  - id: ask
    depends_on: [outer]
    type: gate
    gate: {kind: manual_approval, approvers: [ann, bob], timeout: 2h, on_timeout: reject, form: {why: {type: string}}}
  - id: each
    depends_on: [ask]
    condition: stages.outer.outputs.iterations > 1
    type: fan_out
    fan_out:
      source: [1, 2]
      stage_template: {type: shell, run: "x ${{ item }}"}
    error_policy: {on_failure: continue}
"#;

#[test]
fn the_flagship_as_text() {
    insta::assert_snapshot!(
        "plan_flagship",
        without_digest(windlass(&["plan", FLAGSHIP, "-p", "feature_name=auth-redesign"]).see())
    );
}

#[test]
fn scopes_show_their_steps() {
    let folder = folder("plan_nested", &[("nested.yaml", NESTED)]);
    insta::assert_snapshot!(
        "plan_nested",
        without_digest(windlass_in(&folder, &["plan", "nested.yaml"]).see())
    );
}

/// Removes the digest, which changes with every new field of a plan.
fn without_digest(mut seen: Seen) -> Seen {
    let digest =
        seen.stdout.lines().find_map(|line| line.strip_prefix("Digest:     ")).expect("a digest").to_owned();
    assert!(digest.len() == 12 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    seen.stdout = seen.stdout.replacen(&digest, "<digest>", 1);
    seen
}

#[test]
fn json_output_follows_the_contract() {
    let seen = windlass(&["plan", FLAGSHIP, "-p", "feature_name=auth-redesign", "--json"]).see();
    let json = seen.json();
    let has = |value: &Value, keys: &[&str]| {
        let missing: Vec<_> = keys.iter().filter(|key| value.get(**key).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} in {value}");
    };
    has(&json, &["workflow", "dialect", "parameters", "batches", "steps", "estimate", "diagnostics"]);
    has(&json["estimate"], &["agents_seconds", "gates_seconds", "basis"]);
    let step = [
        "name",
        "kind",
        "runs",
        "model",
        "tools",
        "needs",
        "inputs",
        "outputs",
        "condition",
        "timeout_seconds",
        "attempts_max",
        "context",
        "labels",
    ];
    json["steps"].as_object().expect("an object").values().for_each(|value| has(value, &step));

    let expected = serde_json::json!([
        ["research"],
        ["plan"],
        ["frontend-impl", "backend-impl"],
        ["test"],
        ["security-review"],
        ["review"],
        ["deploy-approval"],
        ["deploy"]
    ]);
    assert_eq!(json["batches"], expected);
    assert_eq!(json["estimate"]["agents_seconds"], 12_300.0);
    assert_eq!(json["estimate"]["gates_seconds"], 21_600.0);
    assert_eq!(json["parameters"]["target_branch"], "main");
    assert_eq!(json["diagnostics"], serde_json::json!([]));
}

fn typed(test: &str) -> PathBuf {
    folder(
        test,
        &[
            ("typed.yaml", PARAMETERS),
            ("input.json", r#"{"feature": "login", "depth": 3, "labels": ["x", "y"]}"#),
            ("input.yaml", "feature: login\ndepth: 3\n"),
            ("wrong.json", r#"{"feature": 3}"#),
            ("list.json", "[]"),
        ],
    )
}

#[test]
fn parameters_come_from_the_command_line_and_from_a_file() {
    let folder = typed("plan_parameters");
    let check = |args: &[&str], expected: &str| {
        let seen = windlass_in(&folder, &[&["plan", "typed.yaml"], args].concat()).see();
        let lines = expected.replace(", ", "\n            ");
        assert!(seen.stdout.contains(&format!("\nParameters: {lines}\n")), "{seen}");
        assert_eq!((seen.status, seen.stderr.as_str()), (0, ""), "{seen}");
    };
    check(
        &["-p", "feature=login"],
        "feature=login, depth=1 (default), labels=[\"a\"] (default), note (not given)",
    );
    check(
        &["-i", "feature=a=b", "--input", "depth=2"],
        "feature=a=b, depth=2, labels=[\"a\"] (default), note (not given)",
    );
    check(&["--input-file", "input.json"], "feature=login, depth=3, labels=[\"x\",\"y\"], note (not given)");
    check(
        &["--input-file", "input.yaml", "--param", "depth=9"],
        "feature=login, depth=9, labels=[\"a\"] (default), note (not given)",
    );
}

#[test]
fn a_bad_parameter_is_refused_by_name() {
    let folder = typed("plan_refused");
    let mut shown = String::new();
    let bad: [&[&str]; 6] = [
        &[],
        &["-p", "featur=x", "-p", "depth=many", "-p", "labels=a,b"],
        &["--input-file", "wrong.json"],
        &["--input-file", "list.json"],
        &["--input-file", "missing.json"],
        &["-p", "depth=many", "-p", "feature=x", "--json"],
    ];
    for args in bad {
        let seen = windlass_in(&folder, &[&["plan", "typed.yaml"], args].concat()).see();
        assert_eq!(seen.status, 2, "{seen}");
        shown += &format!("{seen}\n");
    }
    insta::assert_snapshot!("plan_refused", shown);
}

#[test]
fn an_invalid_file_is_refused() {
    let folder = folder("plan_invalid", &[("bad.yaml", "workflow: {id: x, name: X}\n")]);
    let plain = windlass_in(&folder, &["plan", "bad.yaml"]).see();
    assert_eq!((plain.status, plain.stdout.as_str()), (2, ""), "{plain}");
    let json = windlass_in(&folder, &["plan", "bad.yaml", "--json"]).see();
    assert_eq!((json.status, &json.json()["type"]), (2, &Value::from("refused")), "{json}");
    assert_eq!(json.json()["error"]["code"], "invalid_workflow");
}

const OVERRIDES: &str = "overrides:\n  typed:\n    config: {parameters: {depth: {default: 7}}}\n";
const OTHERS: &str = "overrides:\n  other: {config: {timeout: 9h}}\n";

#[test]
fn overrides_are_named_or_found_in_the_project() {
    let project = folder(
        "plan_overrides",
        &[
            ("project/.git/HEAD", ""),
            ("project/.skillmeat-workflow-overrides.yaml", OVERRIDES),
            ("project/flows/typed.yaml", PARAMETERS),
            ("project/flows/mine.yaml", OVERRIDES),
            ("project/flows/others.yaml", OTHERS),
            ("project/inner/windlass.toml", ""),
            ("project/inner/typed.yaml", PARAMETERS),
        ],
    );
    let check = |folder: &str, args: &[&str], depth: &str, named: Option<&str>| {
        let args = [&["plan", "typed.yaml", "-p", "feature=x"], args].concat();
        let seen = windlass_in(&project.join(folder), &args).see();
        assert!(seen.stdout.contains(&format!("depth={depth} (default)")), "{seen}");
        let shown = seen.stdout.lines().find_map(|line| line.strip_prefix("Overrides:  "));
        assert_eq!((seen.status, shown), (0, named), "{seen}");
    };
    check("project/flows", &[], "7", Some("../.skillmeat-workflow-overrides.yaml"));
    check("project/flows", &["--overrides", "mine.yaml"], "7", Some("mine.yaml"));
    check("project/flows", &["--overrides", "others.yaml"], "1", None);
    check("project/inner", &[], "1", None);

    let json =
        windlass_in(&project.join("project/flows"), &["plan", "typed.yaml", "-p", "feature=x", "--json"])
            .see();
    assert_eq!(json.json()["parameters"]["depth"], 7);
    let drawn = windlass_in(&project.join("project/flows"), &["graph", "typed.yaml"]).see();
    assert_eq!(drawn.stderr, "with the overrides of ../.skillmeat-workflow-overrides.yaml\n");
    let missing =
        windlass_in(&project.join("project/flows"), &["graph", "typed.yaml", "--overrides", "none.yaml"])
            .see();
    assert_eq!(missing.status, 2, "{missing}");
}

/// Windlass plans and draws every valid file of every dialect. It refuses a file with missing parameters.
#[test]
fn every_valid_file_is_planned_and_drawn() {
    let mut planned = 0;
    for dialect in ["swdl", "speckit", "dagnats", "dcc"] {
        let fixtures = root().join("crates/dialects/fixtures").join(dialect);
        let entries = std::fs::read_dir(&fixtures).expect("the fixtures of a dialect");
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        for path in paths.filter(|path| path.is_file()) {
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            if name.starts_with("err_") || name.contains(".overrides.") {
                continue;
            }
            let path = path.display().to_string();
            let seen = windlass(&["plan", &path, "--dialect", dialect]).see();
            let unfilled =
                ["missing_parameter", "bad_parameter"].iter().any(|code| seen.stderr.contains(code));
            assert!(seen.status == 0 || unfilled, "{seen}");
            planned += usize::from(seen.status == 0);
            let drawn = windlass(&["graph", &path, "--dialect", dialect]).see();
            assert_eq!(drawn.status, 0, "{drawn}");
        }
    }
    assert!(planned > 80, "only {planned} files were planned");
}
