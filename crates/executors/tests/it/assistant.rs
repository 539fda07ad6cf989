//! Command-line agents, each a script that reports how it was started: what runs, what is kept, what is refused.

use crate::support::{context, folder, is_running, key, own_run, patiently};
use indexmap::IndexMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Assignment, AssistantAsk, AssistantWork, Failure, Job, Outcome, Work, class};
use windlass_executors::{Assistants, Executor};
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::Capture;

const TELLS: &str =
    "#!/bin/sh\nprintf 'argc=%s\\n' \"$#\"\nfor a in \"$@\"; do printf 'arg=%s\\n' \"$a\"; done\n";

/// One step, in a project with these programs on its `PATH`.
struct Case {
    folder: PathBuf,
    ask: AssistantAsk,
    integration: Option<Value>,
    model: Option<Value>,
    capture: Option<Capture>,
    variables: Vec<(&'static str, String)>,
}

pub fn program(folder: &Path, name: &str, text: &str) {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).expect("a new folder");
    std::fs::write(bin.join(name), text).expect("a new file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join(name), mode).expect("our file");
}

fn prompt(test: &str, text: &str) -> Case {
    Case {
        folder: folder(test),
        ask: AssistantAsk::Prompt(Value::text(text)),
        integration: Some(Value::text("claude")),
        model: None,
        capture: Some(Capture { bytes_max: Some(1 << 20) }),
        variables: Vec::new(),
    }
}

fn command(test: &str, name: &str, input: &str) -> Case {
    let ask = AssistantAsk::Command {
        command: name.into(),
        input: json(input),
        arguments: Vec::new(),
        settings: json("{}"),
    };
    Case { ask, ..prompt(test, "") }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

impl Case {
    fn with(self, name: &str, text: &str) -> Self {
        program(&self.folder, name, text);
        self
    }

    fn start(self) -> crate::support::Running {
        let path = format!("{}/bin:/usr/bin:/bin", self.folder.display());
        let mut variables: Vec<(&str, &str)> = vec![("PATH", &path)];
        variables.extend(self.variables.iter().map(|(name, value)| (*name, &**value)));
        let (context, lines) = context(&variables, &self.folder);
        let (abort, overdue) = (context.abort.clone(), context.overdue.clone());
        let work = Work::Assistant(Box::new(AssistantWork {
            ask: self.ask,
            integration: self.integration,
            model: self.model,
            options: IndexMap::from([("k".into(), Value::Int(1))]),
            capture: self.capture,
        }));
        let env = IndexMap::from([("SPECKIT_WORKFLOW_DIR".into(), Sealable(Value::text("/flows")))]);
        let job = Job {
            key: key(&own_run()),
            step: "ask".into(),
            work: Arc::new(Assignment { input: Value::Null, work, env, key: None, claims: Vec::new() }),
            secrets: Arc::from([]),
            timeout: Some(windlass_ir::Duration::from_secs(300)),
            notes: IndexMap::new(),
            round: None,
            feedback: None,
            rules: Semantics::SPECKIT,
        };
        let agents = Assistants { grace: Duration::from_millis(20), children: None };
        crate::support::Running {
            abort,
            overdue,
            lines,
            outcome: tokio::spawn(
                async move { agents.start(job, context).await.outcome().expect("a report") },
            ),
        }
    }

    async fn outcome(self) -> Outcome {
        self.start().finish().await.0
    }

    async fn done(self) -> Value {
        match self.outcome().await {
            Outcome::Done(outputs) => outputs,
            other => panic!("{other:?}"),
        }
    }

    async fn failed(self) -> (Failure, Value) {
        match self.outcome().await {
            Outcome::Failed(mut failure) => {
                let detail = failure.detail.take().unwrap_or(Value::Null);
                (failure, detail)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_command_is_written_for_its_agent_and_its_answer_kept() {
    let case = command("agent_command", "speckit.plan", r#"{"args": "build it", "depth": 2}"#);
    let case = Case { model: Some(Value::text("m1")), ..case };
    let expected = json(
        r#"{"command": "speckit.plan", "integration": "claude", "model": "m1", "options": {"k": 1},
            "input": {"args": "build it", "depth": 2}, "integration_args": [], "integration_options": {},
            "exit_code": 0, "dispatched": true, "stderr": "",
            "stdout": "argc=4\narg=-p\narg=/speckit-plan build it\narg=--model\narg=m1\n",
            "stdout_truncated": false, "stderr_truncated": false, "timed_out": false, "interrupted": false}"#,
    );
    assert_eq!(case.with("claude", TELLS).done().await, expected);
}

#[tokio::test]
async fn without_capture_everything_is_shown_and_nothing_kept() {
    let case = Case { capture: None, ..prompt("agent_streamed", "hi") };
    let (outcome, lines) = case.with("claude", TELLS).start().finish().await;
    let expected = r#"{"prompt": "hi", "integration": "claude", "model": null, "exit_code": 0, "dispatched": true,
        "stdout": "", "stderr": ""}"#;
    assert_eq!(outcome, Outcome::Done(json(expected)));
    let seen: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect();
    assert_eq!(seen.concat(), "argc=2\narg=-p\narg=hi\n");
}

#[tokio::test]
async fn agents_run_in_the_project_with_the_callers_variables_and_no_input() {
    let script =
        "#!/bin/sh\ncat; pwd; echo $MINE $SPECKIT_WORKFLOW_DIR; test -n \"$WINDLASS_JOB\" && echo marked\n";
    let mut case = prompt("agent_surroundings", "hi").with("claude", script);
    case.variables = vec![("MINE", "mine".into())];
    let folder = case.folder.display().to_string();
    let outputs = case.done().await;
    assert_eq!(outputs.get("stdout"), Some(&Value::text(format!("{folder}\nmine /flows\nmarked\n"))));
}

#[tokio::test]
async fn captured_output_is_truncated_at_its_limit() {
    let capture = Some(Capture { bytes_max: Some(3) });
    let case = Case { capture, ..prompt("agent_cut", "hi") };
    let outputs = case.with("claude", "#!/bin/sh\nprintf 'aaü\\r\\n'; printf 'b\\r\\n' >&2\n").done().await;
    assert_eq!(outputs.get("stdout"), Some(&Value::text("aa")));
    assert_eq!(outputs.get("stderr"), Some(&Value::text("b\n")));
    let cut = ["stdout_truncated", "stderr_truncated"].map(|name| outputs.get(name).cloned());
    assert_eq!(cut, [Some(Value::Bool(true)), Some(Value::Bool(false))]);
}

#[tokio::test]
async fn a_failing_agent_is_reported_without_its_captured_output() {
    let fails = "#!/bin/sh\necho out; echo why >&2; exit 6\n";
    let (failure, outputs) = prompt("agent_fails", "hi").with("claude", fails).failed().await;
    assert_eq!((&*failure.class, &*failure.message), (class::ERROR, "claude: exit status 6"));
    assert_eq!(outputs.get("stderr"), Some(&Value::text("why\n")));
    assert_eq!(outputs.get("exit_code"), Some(&Value::Int(6)));

    let streamed = Case { capture: None, ..prompt("agent_fails_streamed", "hi") };
    let (failure, outputs) = streamed.with("claude", fails).failed().await;
    assert_eq!(&*failure.message, "claude: exit status 6: why");
    assert_eq!(outputs.get("stderr"), Some(&Value::text("")));

    let killed = prompt("agent_killed", "hi").with("claude", "#!/bin/sh\nkill -9 $$\n");
    let (failure, outputs) = killed.failed().await;
    assert_eq!(&*failure.message, "claude: killed by signal 9 (SIGKILL)");
    assert_eq!(outputs.get("exit_code"), Some(&Value::Int(-9)));
}

#[tokio::test]
async fn output_before_a_timeout_is_kept() {
    let waits = "#!/bin/sh\ntrap '' TERM\necho begun $$\nsleep 1000\n";
    let mut running = prompt("agent_time", "hi").with("claude", waits).start();
    let line = running.line().await;
    running.overdue.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    let outputs = failure.detail.expect("the outputs");
    assert_eq!(outputs.get("stdout"), Some(&Value::text(format!("{line}\n"))));
    assert_eq!(outputs.get("exit_code"), Some(&Value::Int(-1)));
    assert_eq!(outputs.get("timed_out"), Some(&Value::Bool(true)));
    assert!(!is_running(line.trim_start_matches("begun ")));

    let streamed = Case { capture: None, ..prompt("agent_time_streamed", "hi") };
    let mut running = streamed.with("claude", waits).start();
    running.line().await;
    running.overdue.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    let outputs = failure.detail.expect("the outputs");
    assert_eq!(outputs.get("stderr"), Some(&Value::text("Prompt timed out after 300 seconds.")));
}

#[tokio::test]
async fn variables_set_the_program_and_its_arguments() {
    let mut case = prompt("agent_variables", "hi").with("own", TELLS);
    let own = case.folder.join("bin/own").display().to_string();
    case.variables = vec![
        ("SPECKIT_INTEGRATION_CLAUDE_EXECUTABLE", own),
        ("SPECKIT_INTEGRATION_CLAUDE_EXTRA_ARGS", "--allow 'two words'".into()),
    ];
    case.model = Some(Value::text("m1"));
    let outputs = case.done().await;
    let expected = "argc=6\narg=-p\narg=hi\narg=--allow\narg=two words\narg=--model\narg=m1\n";
    assert_eq!(outputs.get("stdout"), Some(&Value::text(expected)));

    let mut case = prompt("agent_bad_variable", "hi").with("claude", TELLS);
    case.variables = vec![("SPECKIT_INTEGRATION_CLAUDE_EXTRA_ARGS", "'open".into())];
    let (failure, outputs) = case.failed().await;
    assert_eq!(&*failure.class, class::CONTRACT_VIOLATION);
    assert!(
        failure.message.starts_with("`SPECKIT_INTEGRATION_CLAUDE_EXTRA_ARGS` cannot be split into words")
    );
    assert_eq!(outputs.get("dispatched"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn auto_is_the_integration_of_the_project() {
    let auto = || Some(Value::text("auto"));
    let case = Case { integration: auto(), ..prompt("agent_auto", "hi") }.with("codex", TELLS);
    std::fs::create_dir(case.folder.join(".specify")).expect("a new folder");
    let state = r#"{"default_integration": "codex", "installed_integrations": ["claude"]}"#;
    std::fs::write(case.folder.join(".specify/integration.json"), state).expect("a new file");
    let outputs = case.done().await;
    assert_eq!(outputs.get("integration"), Some(&Value::text("codex")));
    assert_eq!(outputs.get("stdout"), Some(&Value::text("argc=2\narg=exec\narg=hi\n")));

    let (failure, _) = Case { integration: auto(), ..prompt("agent_no_auto", "hi") }.failed().await;
    assert!(failure.message.starts_with("unknown integration `auto`"), "{}", failure.message);
}

#[tokio::test]
async fn a_missing_agent_is_named_with_advice() {
    let (failure, outputs) = prompt("agent_missing", "hi").failed().await;
    let expected = "there is no program `claude` in the PATH of the user who started the run: install it, or set its path in SPECKIT_INTEGRATION_CLAUDE_EXECUTABLE";
    assert_eq!((&*failure.class, &*failure.message), (class::NOT_RUNNABLE, expected));
    let expected =
        r#"{"prompt": "hi", "integration": "claude", "model": null, "exit_code": 1, "dispatched": false}"#;
    assert_eq!(outputs, json(expected));

    let mut named = prompt("agent_missing_named", "hi").with("claude", TELLS);
    named.variables = vec![("SPECKIT_INTEGRATION_CLAUDE_EXECUTABLE", "/no/such/claude".into())];
    let (failure, _) = named.failed().await;
    assert!(failure.message.starts_with("there is no program `/no/such/claude` that can be executed: "));
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let check = async |case: Case, field: &str, expected: &str| {
        let (failure, outputs) = case.with("claude", TELLS).failed().await;
        assert_eq!((&*failure.class, failure.field.as_deref()), (class::CONTRACT_VIOLATION, Some(field)));
        assert!(failure.message.starts_with(expected), "{}", failure.message);
        outputs
    };
    let with = |integration: Value| Case { integration: Some(integration), ..prompt("agent_refused", "hi") };
    let unknown = check(with(Value::text("nosuch")), "integration", "unknown integration `nosuch`").await;
    assert_eq!(unknown.get("dispatched"), Some(&Value::Bool(false)));
    check(with(Value::text("zed")), "integration", "the integration `zed` runs in an editor").await;
    check(with(Value::Null), "integration", "no agent is set").await;
    check(with(Value::text("")), "integration", "no agent is set").await;
    let listed =
        check(with(json("[1]")), "integration", "`integration` must be a string, but it is list").await;
    assert_eq!(listed, Value::Null);
    check(prompt("agent_refused", ""), "prompt", "the prompt is empty").await;
    let arguments = |arguments: Vec<Value>, settings: &str| {
        let ask = AssistantAsk::Command {
            command: "plan".into(),
            input: json("{}"),
            arguments,
            settings: json(settings),
        };
        Case { ask, ..prompt("agent_refused", "") }
    };
    let takes_none = "the integration `claude` does not accept `integration_args`";
    check(arguments(vec![Value::text("a")], "{}"), "integration_args", takes_none).await;
    let takes_none = "the integration `claude` does not accept `integration_options`";
    check(arguments(vec![], r#"{"a": "b"}"#), "integration_options", takes_none).await;
    let text = "`integration_args` must be a string, but it is integer";
    check(arguments(vec![Value::Int(1)], "{}"), "integration_args", text).await;
}

#[tokio::test]
async fn docker_agent_may_be_a_plugin_of_docker() {
    let ask = || AssistantAsk::Command {
        command: "plan".into(),
        input: json("{}"),
        arguments: vec![Value::text("./agent.yaml")],
        settings: json(r#"{"safety": "strict"}"#),
    };
    let integration = || Some(Value::text("docker-agent"));
    let case = Case { ask: ask(), integration: integration(), ..prompt("agent_docker", "") };
    let outputs = case.with("docker", TELLS).done().await;
    let expected = "argc=8\narg=agent\narg=run\narg=--exec\narg=./agent.yaml\narg=--safety\narg=strict\narg=--\narg=/speckit-plan\n";
    assert_eq!(outputs.get("stdout"), Some(&Value::text(expected)));
    let case = Case { ask: ask(), integration: integration(), ..prompt("agent_docker_own", "") };
    let outputs = case.with("docker", TELLS).with("docker-agent", TELLS).done().await;
    assert_eq!(
        outputs.get("stdout"),
        Some(&Value::text(expected.replace("argc=8\narg=agent\n", "argc=7\n")))
    );
}
