//! Tasks that commands in `windlass.toml` execute: their results, which file is in force, and what Windlass refuses.

use crate::scratch::Scratch;
use crate::support::{Seen, root, windlass_in};
use serde_json::json;
use std::path::Path;
use windlass_runtime::Config;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a file in a folder")).expect("a writable folder");
        std::fs::write(file, text).expect("a writable folder");
    }
}

fn windlass(folder: &Path, args: &[&str]) -> Seen {
    windlass_in(folder, args).env("PATH", PATH).see()
}

const SHOP: &str = r#"{
  "name": "shop", "version": "1",
  "steps": [
    { "id": "load", "task": "shop.load", "metadata": { "shelf": "a" } },
    { "id": "flaky", "task": "shop.flaky", "depends_on": ["load"],
      "retry": { "max_attempts": 2, "strategy": "fixed", "initial_delay": "1h", "max_delay": "1h" } },
    { "id": "count", "type": "agent_loop", "task": "shop.count", "depends_on": ["load"],
      "config": { "max_iterations": 5 } },
    { "id": "fire", "task": "shop.fire", "depends_on": ["flaky", "count"], "on_failure": "call" },
    { "id": "call", "task": "shop.call" }
  ]
}"#;

const SHOP_TASKS: &str = r#"
[tasks."shop.load"]
command = ["./bin/load", "--all"]

[tasks."shop.flaky"]
command = ["sh", "-c", '''
if [ "$WINDLASS_ATTEMPT" -lt 3 ]; then
    echo '{"error": {"class": "rate_limit", "message": "slow down", "retry_after": 0.1}}'
    exit 1
fi
echo "$WINDLASS_ATTEMPT"
''']

[tasks."shop.count"]
command = ["sh", "-c", '''
if [ "$WINDLASS_ROUND" -lt 3 ]; then
    echo "{\"continue\": {\"round\": $WINDLASS_ROUND, \"of\": $WINDLASS_ROUNDS_MAX}}"
else
    cat
fi
''']

[tasks."shop.fire"]
command = ["sh", "-c", "echo too hot >&2; exit 7"]

[tasks."shop.call"]
command = ["cat"]
"#;

const LOAD: &str = "#!/bin/sh\nprintf '{\"args\": \"%s\", \"metadata\": %s, \"input\": %s}' \"$*\" \"$WINDLASS_METADATA\" \"$(cat)\"\n";

fn shop(test: &str) -> Scratch {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new(test);
    write(
        scratch.path(),
        &[("shop.json", SHOP), ("windlass.toml", SHOP_TASKS), ("bin/load", LOAD), ("sub/.keep", "")],
    );
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(scratch.path().join("bin/load"), executable).expect("a writable file");
    scratch
}

#[test]
fn a_workflow_of_local_tasks_runs() {
    let shop = shop("local-tasks");
    // Started from a subfolder, the commands still run beside `windlass.toml`.
    let seen =
        windlass(&shop.path().join("sub"), &["run", "../shop.json", "-p", "bed=north", "--json=final"]);
    assert_eq!(seen.status, 0, "{seen}");
    let result = seen.json();
    assert_eq!(result["status"], "success", "{seen}");
    let steps = &result["steps"];
    let loaded = json!({"args": "--all", "metadata": {"shelf": "a"}, "input": {"bed": "north"}});
    assert_eq!(steps["load"]["output"], loaded, "{seen}");
    assert_eq!(steps["flaky"]["output"], 3);
    assert_eq!(steps["flaky"]["attempts"], 3);
    assert_eq!(steps["flaky"]["delays_seconds"], json!([0.1, 0.1]), "delays from the command");
    assert_eq!(
        steps["count"]["output"],
        json!({"round": 2, "of": 5}),
        "its third round is given the second's"
    );
    assert_eq!(steps["fire"]["status"], "recovered");
    assert_eq!(steps["call"]["output"], json!({"failed_step": "fire", "error": "exit status 7: too hot"}));
}

#[test]
fn mock_responses_take_precedence_over_tasks() {
    let shop = shop("script-first");
    let script = r#"{"steps": {"fire": [{"output": "warm"}], "shop.flaky": [{"output": 1}]}}"#;
    write(shop.path(), &[("script.json", script)]);
    let args = ["run", "shop.json", "--script", "script.json", "--json=final"];
    let seen = windlass(shop.path(), &args);
    let steps = &seen.json()["steps"];
    assert_eq!((seen.status, &steps["fire"]["output"]), (0, &json!("warm")), "{seen}");
    assert_eq!(steps["flaky"]["attempts"], 1);
    assert_eq!(steps["count"]["output"], json!({"round": 2, "of": 5}));
}

const ONE: &str = r#"{"name": "one", "version": "1", "steps": [{"id": "say", "task": "shop.say"}]}"#;
const SAY: &str = "[tasks.\"shop.say\"]\ncommand = [\"sh\", \"-c\", 'printf \\\"%s\\\" \"${PWD##*/}\"']\n";

#[test]
fn the_nearest_file_is_in_force() {
    let scratch = Scratch::new("nearest-config");
    let top = scratch.path();
    write(top, &[("flow/one.json", ONE), ("here/inner/.keep", ""), ("data/.keep", "")]);
    let run = |expected: Option<&str>| {
        let args = ["run", "../../flow/one.json", "--data", "../../data/runs", "--json=final"];
        let seen = windlass(&top.join("here/inner"), &args);
        match expected {
            Some(folder) => assert_eq!(seen.json()["outputs"], folder, "{seen}"),
            None => assert_eq!(seen.json()["error"]["code"], "not_runnable", "{seen}"),
        }
        seen
    };
    let refused = run(None);
    let hint = "or name a command for its task in windlass.toml: `[tasks.\"shop.say\"]` with `command = [\"program\"]`";
    let help = refused.json()["error"]["help"].as_str().unwrap_or_default().to_owned();
    assert!(help.contains(hint), "{refused}");
    for folder in ["data", "flow", "here", "here/inner"] {
        write(&top.join(folder), &[("windlass.toml", SAY)]);
        run(Some(folder.rsplit('/').next().expect("a name")));
    }
}

#[test]
fn a_resumed_run_keeps_its_configuration_file() {
    let scratch = Scratch::new("recorded-config");
    let top = scratch.path();
    let careful = SAY.replace("'printf", "'test -e ready || exit 1; printf");
    write(top, &[("flow/one.json", ONE), ("flow/windlass.toml", &careful)]);
    write(top, &[("elsewhere/windlass.toml", SAY)]);
    let started = windlass(top, &["run", "flow/one.json", "--run-id", "r", "--data", "data", "--json=final"]);
    assert_eq!(started.status, 1, "{started}");
    write(top, &[("flow/ready", "")]);
    let elsewhere = top.join("elsewhere");
    let args = ["resume", "r", "--data", "../data", "--json=final"];
    let resumed = windlass(&elsewhere, &args);
    assert_eq!((resumed.status, &resumed.json()["outputs"]), (0, &json!("flow")), "{resumed}");
}

#[test]
fn the_example_has_a_command_for_every_task() {
    let folder = root().join("examples/dagnats");
    let config = Config::read(&folder.join("windlass.toml")).expect("a valid file");
    for name in ["code-review.json", "greenhouse.json"] {
        let text = std::fs::read_to_string(folder.join(name)).expect("an example");
        let workflow: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let tasks =
            workflow["steps"].as_array().expect("steps").iter().filter_map(|step| step["task"].as_str());
        let missing: Vec<&str> = tasks.filter(|task| !config.tasks.contains_key(*task)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}

#[test]
fn an_invalid_configuration_is_refused_with_all_problems() {
    let scratch = Scratch::new("bad-config");
    let top = scratch.path();
    let text = "[tasks.\"shop.say\"]\ncomand = [\"say\"]\n\n[limit]\nruns = 2\n";
    write(top, &[("one.json", ONE), ("windlass.toml", text)]);
    let seen = windlass(top, &["run", "one.json", "--json"]);
    assert_eq!((seen.status, &seen.json()["error"]["code"]), (2, &json!("bad_config")), "{seen}");
    let file = top.join("windlass.toml");
    let places = ["1:8: ", "2:1: ", "4:2: "].map(|place| format!("{}:{place}", file.display()));
    let message = seen.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 3, "{seen}");
    assert!(lines.iter().zip(&places).all(|(line, place)| line.contains(place)), "{seen}");
    assert!(message.contains("did you mean `command`?") && message.contains("did you mean `limits`?"));
    assert!(!top.join(".windlass").exists(), "nothing was started");
}
