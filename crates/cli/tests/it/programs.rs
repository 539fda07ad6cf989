//! Programs that steps start: agents on the `PATH`, a missing agent, and more processes than the system allows.

use crate::scratch::Scratch;
use crate::support::windlass_in;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn write(file: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a writable folder");
    std::fs::write(file, text).expect("a writable folder");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("a writable file");
}

const RELEASE: &str = r#"
schema_version: "1.0"
workflow: {id: release, name: Release, version: "1.0.0", integration: claude}
inputs: {who: {type: string, default: world}}
steps:
  - {id: plan, command: plan, input: {args: "for {{ inputs.who }}"}, capture: true}
  - {id: say, type: shell, run: "cat \"$SPECKIT_WORKFLOW_DIR/workflow.yml\" | head -1; echo '{{ steps.plan.output.stdout }}'"}
  - {id: slow, type: shell, run: "echo some; sleep 1000", timeout: 0.2, continue_on_error: true}
  - {id: after, type: shell, run: "echo {{ steps.slow.output.exit_code }} {{ steps.slow.output.stderr }}"}
  - {id: label, type: github, operation: add-label, target: issue, repository: a/b, number: 7, label: done}
"#;

#[test]
fn an_agent_runs_and_a_missing_program_is_named() {
    let scratch = Scratch::new("programs");
    let folder = scratch.path();
    write(&folder.join("flows/workflow.yml"), RELEASE, 0o644);
    write(&folder.join("bin/claude"), "#!/bin/sh\nprintf '%s|' \"$@\"\n", 0o755);
    let path = format!("{}:/usr/bin:/bin", folder.join("bin").display());
    let seen = windlass_in(folder, &["run", "flows/workflow.yml", "--json=final"]).env("PATH", &path).see();
    assert_eq!(seen.status, 1, "{seen}");
    let result = seen.json();
    let stdout = |step: &str| &result["steps"][step]["output"]["stdout"];
    assert_eq!(*stdout("plan"), json!("-p|/speckit-plan for world|"), "{seen}");
    assert_eq!(*stdout("say"), json!("\n-p|/speckit-plan for world|\n"), "{seen}");
    assert_eq!(*stdout("after"), json!("-1 timeout\n"), "{seen}");
    let error = &result["error"];
    assert_eq!((&error["code"], &error["step"]), (&json!("not_runnable"), &json!("label")), "{seen}");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("install the GitHub CLI")), "{seen}");
}

const CANARY: &str = r#"
workflow: {id: canary, name: Canary}
config: {secrets: [CANARY]}
stages:
  - {id: look, type: shell, run: "ulimit -Sc; (tr '\\0' '\\n' < /proc/$PPID/environ | grep CANARY) 2>&1 || true"}
"#;

/// A step without access to a secret looks for it in its parent process: root finds it there, and other users cannot look.
#[test]
fn a_secret_is_redacted_wherever_a_step_finds_it_and_no_core_file_is_written() {
    let scratch = Scratch::new("canary");
    write(&scratch.path().join("canary.yaml"), CANARY, 0o644);
    let run = format!(
        "ulimit -c $(ulimit -Hc); exec {} run canary.yaml --json=final",
        env!("CARGO_BIN_EXE_windlass")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &run]).current_dir(scratch.path()).env_clear().env("CANARY", "S3CR3T-1");
    let output = command.env("PATH", "/usr/bin:/bin").output().expect("the program is built");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let printed = result["steps"]["look"]["output"]["stdout"].as_str().expect("text");
    assert!(printed.starts_with("0\n"), "{result}");
    assert!(!printed.contains("S3CR3T"), "{result}");
    assert!(printed.contains("CANARY=***") || printed.contains("denied"), "{result}");
}

/// Two hundred concurrent items, each with its own process.
fn many_at_once(command: &str) -> String {
    let items: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    format!(
        r#"
workflow: {{id: many, name: Many}}
stages:
  - id: each
    type: fan_out
    fan_out: {{source: [{}], stage_template: {{type: shell, run: "{command}"}}}}
"#,
        items.join(", ")
    )
}

/// Runs the workflow with a low limit on open files.
fn many(folder: &Path) -> (Option<i32>, serde_json::Value, String) {
    let program = env!("CARGO_BIN_EXE_windlass");
    let command = format!("ulimit -n 100; exec {program} run WORKFLOW.yaml --json=final");
    let output = Command::new("sh").args(["-c", &command]).current_dir(folder).output().expect("sh runs");
    let result = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), result, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn too_many_processes_fail_with_advice() {
    let scratch = Scratch::new("many");
    let folder = scratch.path();
    write(&folder.join("WORKFLOW.yaml"), &many_at_once("sleep 1"), 0o644);
    let (status, result, stderr) = many(folder);
    assert_eq!((status, &result["error"]["code"]), (Some(1), &json!("transient")), "{result:#} {stderr}");
    let message = result["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("set `processes` under `[limits]` in windlass.toml"), "{message}");
    assert!(!stderr.contains("panicked"), "{stderr}");

    write(&folder.join("WORKFLOW.yaml"), &many_at_once("true"), 0o644);
    write(&folder.join("windlass.toml"), "[limits]\nprocesses = 8\n", 0o644);
    let (status, result, stderr) = many(folder);
    assert_eq!((status, &result["status"]), (Some(0), &json!("success")), "{result:#} {stderr}");
}
