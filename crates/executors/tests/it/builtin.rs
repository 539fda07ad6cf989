//! Functions of Spec Kit, with scripts in place of `gh` and `specify`.

use crate::assistant::program;
use crate::support::{context, folder, key, own_run};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_engine::{Assignment, Failure, Job, Outcome, Work, class};
use windlass_executors::{Builtins, Executor, Line};
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::workflow::BuiltinKind;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Runs one builtin in a folder, with its `bin` on the `PATH`.
async fn run(folder: &Path, what: BuiltinKind, args: &str, more: &[(&str, &str)]) -> (Outcome, Vec<Line>) {
    let path = format!("{}/bin:/usr/bin:/bin", folder.display());
    let mut variables = vec![("PATH", &*path)];
    variables.extend(more);
    let project = folder.join("project");
    std::fs::create_dir_all(&project).expect("a folder");
    let (context, lines) = context(&variables, &project);
    let work = Work::Builtin { what, args: json(args) };
    let env = IndexMap::new();
    let job = Job {
        key: key(&own_run()),
        step: "do".into(),
        work: Arc::new(Assignment { input: Value::Null, work, env, key: None, claims: Vec::new() }),
        secrets: Arc::from([]),
        timeout: None,
        notes: IndexMap::new(),
        round: None,
        feedback: None,
        rules: Semantics::SPECKIT,
    };
    let (abort, overdue) = (context.abort.clone(), context.overdue.clone());
    let outcome =
        tokio::spawn(
            async move { Builtins::default().start(job, context).await.outcome().expect("a report") },
        );
    crate::support::Running { abort, overdue, lines, outcome }.finish().await
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

const LABEL: &str = r#"{"target": "issue", "repository": "o/r", "number": "7", "label": "Ready"}"#;

/// A `gh` that records its calls and answers from files, and its folder.
fn github(test: &str, found: &str, after: &str) -> PathBuf {
    let folder = folder(test);
    let text = "#!/bin/sh\nhere=$(dirname \"$0\")/..\necho \"$@\" >> \"$here/calls\"\ncase $3 in\n\
        GET) cat \"$here/found\";;\nPOST) cat >> \"$here/calls\"; echo >> \"$here/calls\"; cat \"$here/after\";;\nesac\n\
        echo secret-token >&2\ntest ! -f \"$here/fails\"\n";
    program(&folder, "gh", text);
    std::fs::write(folder.join("found"), found).expect("a new file");
    std::fs::write(folder.join("after"), after).expect("a new file");
    folder
}

async fn label(folder: &Path, args: &str) -> Outcome {
    let (outcome, lines) = run(folder, BuiltinKind::GithubAddLabel, args, &[]).await;
    assert_eq!(lines, [], "the output of gh is not shown");
    outcome
}

#[tokio::test]
async fn a_missing_label_is_added() {
    let folder =
        github("label_added", r#"{"number": 7, "labels": [{"name": "bug"}]}"#, r#"[{"name": "ready"}]"#);
    let outputs = done(label(&folder, LABEL).await);
    let expected =
        r#"{"repository": "o/r", "target": "issue", "number": 7, "label": "Ready", "added": true}"#;
    assert_eq!(outputs, json(expected));
    let calls = std::fs::read_to_string(folder.join("calls")).expect("it was called");
    let expected = "api --method GET https://api.github.com/repos/o/r/issues/7\n\
        api --method POST https://api.github.com/repos/o/r/issues/7/labels --header Content-Type: application/json --input -\n\
        {\"labels\":[\"Ready\"]}\n";
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn an_existing_label_is_not_added_again() {
    let found = r#"{"number": 7, "labels": [{"name": "READY"}]}"#;
    let folder = github("label_there", found, "");
    let args = LABEL.replace("issue", "pull_request").replace("\"7\"", "7");
    let outputs = done(label(&folder, &args).await);
    assert_eq!(outputs.get("added"), Some(&Value::Bool(false)));
    let calls = std::fs::read_to_string(folder.join("calls")).expect("it was called");
    assert_eq!(calls, "api --method GET https://api.github.com/repos/o/r/pulls/7\n");
}

#[tokio::test]
async fn failures_of_github_are_failures() {
    let check = async |test: &str, found: &str, after: &str, expected: &str| {
        let failure = failed(label(&github(test, found, after), LABEL).await);
        assert!(failure.message.contains(expected), "{}", failure.message);
        assert!(!failure.message.contains("secret"), "{}", failure.message);
    };
    let pull = r#"{"number": 7, "pull_request": {}, "labels": []}"#;
    check("label_pull", pull, "", "o/r has no issue with the number 7").await;
    check("label_other", r#"{"number": 8, "labels": []}"#, "", "o/r has no issue with the number 7").await;
    check("label_no_json", "<html>", "", "is not valid JSON").await;
    check("label_no_list", r#"{"number": 7, "labels": [1]}"#, "", "has no list of labels").await;
    let issue = r#"{"number": 7, "labels": []}"#;
    check("label_not_put", issue, "[]", "did not add the label `Ready` to number 7").await;

    let folder = github("label_refused", issue, "[]");
    std::fs::write(folder.join("fails"), "").expect("a new file");
    let failure = failed(label(&folder, LABEL).await);
    let expected = "gh cannot request https://api.github.com/repos/o/r/issues/7: exit status 1; try `gh api https://api.github.com/repos/o/r/issues/7`, and check your account with `gh auth status`";
    assert_eq!((&*failure.class, &*failure.message, failure.detail), (class::ERROR, expected, None));
}

#[tokio::test]
async fn values_of_expressions_are_checked_before_any_request() {
    let folder = github("label_checked", "{}", "");
    let check = async |name: &str, value: &str| {
        let mut args: serde_json::Value = serde_json::from_str(LABEL).expect("JSON");
        args[name] = serde_json::from_str(value).expect("JSON");
        let failure = failed(label(&folder, &args.to_string()).await);
        assert_eq!(
            (&*failure.class, failure.field.as_deref()),
            (class::CONTRACT_VIOLATION, Some(name)),
            "{value}"
        );
    };
    check("target", "\"release\"").await;
    for repository in ["\"r\"", "\"o/r/x\"", "\"o/..\"", "\"o/r?x=1\"", "null"] {
        check("repository", repository).await;
    }
    for number in ["0", "-1", "\"07\"", "\"\"", "1.5", "null", "true"] {
        check("number", number).await;
    }
    let long = format!("\"{}\"", "x".repeat(51));
    for label in ["\"\"", "\" \"", "\"a\\nb\"", "1", &long] {
        check("label", label).await;
    }
    assert!(!folder.join("calls").exists());
}

#[tokio::test]
async fn a_missing_program_is_named_with_advice() {
    let folder = folder("builtin_missing");
    let failure = failed(label(&folder, LABEL).await);
    let expected = "there is no program `gh` in the PATH of the user who started the run: install the GitHub CLI (https://cli.github.com) and log in with `gh auth login`";
    assert_eq!((&*failure.class, &*failure.message), (class::NOT_RUNNABLE, expected));
    let (outcome, _) = run(&folder, BuiltinKind::InitProject, "{}", &[]).await;
    let failure = failed(outcome);
    let expected = "there is no program `specify` in the PATH of the user who started the run: install Spec Kit, which includes it: `uv tool install specify-cli`";
    assert_eq!((&*failure.class, &*failure.message), (class::NOT_RUNNABLE, expected));
}

/// A folder with a `specify` that prints its location and arguments.
fn specify(test: &str) -> PathBuf {
    let folder = folder(test);
    program(
        &folder,
        "specify",
        "#!/bin/sh\nprintf '%s\\r\\n' \"$(basename \"$PWD\")\" \"$*\"\nexit ${FAKE_RC:-0}\n",
    );
    folder
}

async fn init(folder: &Path, args: &str, more: &[(&str, &str)]) -> Outcome {
    run(folder, BuiltinKind::InitProject, args, more).await.0
}

#[tokio::test]
async fn a_project_is_set_up_with_the_settings_of_the_step() {
    let folder = specify("init_options");
    let check = async |args: &str, more: &[(&str, &str)], expected: &str| {
        let outputs = done(init(&folder, args, more).await);
        assert_eq!(outputs.get("stdout"), Some(&Value::text(format!("project\n{expected}\n"))), "{args}");
        let words = expected.split(' ').map(Value::text);
        assert_eq!(outputs.get("argv"), Some(&Value::list(words)), "{args}");
        outputs
    };
    let plain = check("{}", &[], "init . --integration copilot --ignore-agent-tools").await;
    let expected = r#"{"project": null, "here": false, "integration": "copilot", "integration_options": null,
        "script": null, "preset": null, "force": false, "ignore_agent_tools": true, "exit_code": 0, "stderr": ""}"#;
    let Value::Map(expected) = json(expected) else { panic!("an object") };
    for (name, value) in &*expected {
        assert_eq!(plain.get(name), Some(value), "{name}");
    }
    let all = r#"{"project": "app", "integration": "claude", "integration_options": "--skills", "script": "sh",
        "preset": "lean", "force": "yes", "ignore_agent_tools": "false"}"#;
    check(
        all,
        &[],
        "init app --integration claude --integration-options --skills --script sh --preset lean --force",
    )
    .await;
    let here = r#"{"here": true, "project": "app"}"#;
    check(here, &[], "init --here --integration copilot --ignore-agent-tools").await;
    let known = [("SPECKIT_INTEGRATION_DEFAULT", "gemini")];
    check("{}", &known, "init . --integration gemini --ignore-agent-tools").await;
    let unknown = [("SPECKIT_INTEGRATION_DEFAULT", "nosuch")];
    check("{}", &unknown, "init . --integration copilot --ignore-agent-tools").await;
}

#[tokio::test]
async fn a_folder_with_files_is_only_merged_into_with_force() {
    let folder = specify("init_not_empty");
    let project = folder.join("project");
    std::fs::create_dir_all(project.join(".windlass")).expect("a new folder");
    let own = done(init(&folder, r#"{"here": true}"#, &[]).await);
    assert_eq!(own.get("force"), Some(&Value::Bool(true)), "only what the run itself has put there");
    std::fs::write(project.join("README.md"), "").expect("a new file");
    let failure = failed(init(&folder, r#"{"here": true}"#, &[]).await);
    assert!(failure.message.ends_with("is not empty: write `force: true` to merge into it"), "{failure:?}");
    assert_eq!(failure.detail.and_then(|outputs| outputs.get("exit_code").cloned()), Some(Value::Int(1)));
    done(init(&folder, r#"{"here": true, "force": true}"#, &[]).await);
    done(init(&folder, r#"{"project": "elsewhere"}"#, &[]).await);
}

#[tokio::test]
async fn a_failing_setup_reports_its_errors() {
    let folder = specify("init_fails");
    let failure = failed(init(&folder, "{}", &[("FAKE_RC", "3")]).await);
    let argv = "init . --integration copilot --ignore-agent-tools";
    assert_eq!(&*failure.message, format!("specify: exit status 3: {argv}"));
    let outputs = failure.detail.expect("the outputs");
    assert_eq!(outputs.get("exit_code"), Some(&Value::Int(3)));
    assert_eq!(outputs.get("stderr"), Some(&Value::text(format!("project\n{argv}"))));
}
