//! Shell jobs by the native rules: trimmed output, the file of outputs, and other programs than `sh`.

use crate::support::{Case, patiently, sh};
use windlass_engine::{Outcome, class};
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::workflow::{Interpreter, ShellOutput};

fn native(command: &str) -> Case {
    Case { rules: Semantics::HOUSE, ..sh(command) }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn standard_output_is_trimmed_as_in_a_substitution() {
    let check = async |command: &str, expected: &str| {
        assert_eq!(native(command).done().await, json(expected), "{command}");
    };
    check("true", r#"{"exit_code": 0, "stdout": "", "stdout_raw": "", "stderr": ""}"#).await;
    check(
        "echo ready; echo oops >&2",
        r#"{"exit_code": 0, "stdout": "ready", "stdout_raw": "ready\n", "stderr": "oops\n"}"#,
    )
    .await;
    check(
        r"printf ' a \nb \n\n'",
        r#"{"exit_code": 0, "stdout": " a \nb ", "stdout_raw": " a \nb \n\n", "stderr": ""}"#,
    )
    .await;
    let failure = native("echo some; exit 3").failed().await;
    let detail = r#"{"exit_code": 3, "stdout": "some", "stdout_raw": "some\n", "stderr": ""}"#;
    assert_eq!(failure.detail, Some(json(detail)));
}

/// The outputs besides those that every command has.
fn added(outputs: &Value) -> Value {
    let Value::Map(outputs) = outputs else { panic!("{outputs:?}") };
    let own = ["exit_code", "stdout", "stdout_raw", "stderr", "data"];
    let added = outputs.iter().filter(|(name, _)| !own.contains(&&***name));
    Value::map(added.map(|(name, value)| (name.clone(), value.clone())))
}

#[tokio::test]
async fn outputs_can_be_left_in_a_file() {
    let check = async |command: &str, expected: &str| {
        assert_eq!(added(&native(command).done().await), json(expected), "{command}");
    };
    check("echo version=1.2 >> $WINDLASS_OUTPUT; echo log", r#"{"version": "1.2"}"#).await;
    check("printf 'notes<<END\na\nb=c\nEND\n' >> $WINDLASS_OUTPUT", r#"{"notes": "a\nb=c"}"#).await;
    check("echo '{\"count\": 3}' > $WINDLASS_OUTPUT", r#"{"count": 3}"#).await;
    check("rm $WINDLASS_OUTPUT", "{}").await;
    let both = Case {
        output: ShellOutput::Json,
        ..native("echo a=file >> $WINDLASS_OUTPUT; echo '{\"a\": \"printed\", \"b\": 2}'")
    };
    assert_eq!(added(&both.done().await), json(r#"{"a": "file", "b": 2}"#));
    let path =
        native("echo \"path=$WINDLASS_OUTPUT\" >> $WINDLASS_OUTPUT; ls -l $WINDLASS_OUTPUT").done().await;
    let file = path.get("path").and_then(Value::as_str).expect("its own name");
    assert!(!std::path::Path::new(file).exists(), "{file} is removed");
    assert!(path.get("stdout").and_then(Value::as_str).is_some_and(|mode| mode.starts_with("-rw-------")));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_violates_the_contract() {
    let check = async |command: &str, message: &str| {
        let failure = native(command).failed().await;
        assert_eq!((&*failure.class, &*failure.message), (class::CONTRACT_VIOLATION, message), "{command}");
        assert_eq!(failure.field.as_deref(), Some("outputs"));
        assert!(failure.detail.is_some_and(|detail| detail.get("exit_code") == Some(&Value::Int(0))));
    };
    check(
        "echo a=1 >> $WINDLASS_OUTPUT; echo b >> $WINDLASS_OUTPUT",
        "line 2 of $WINDLASS_OUTPUT is neither `name=value` nor `name<<END`",
    )
    .await;
    check(r"printf 'a=1\nb=\377\n' >> $WINDLASS_OUTPUT", "line 2 of $WINDLASS_OUTPUT is not UTF-8").await;
    check(
        "echo stdout=x >> $WINDLASS_OUTPUT",
        "$WINDLASS_OUTPUT sets `stdout`, which Windlass sets itself: use another name",
    )
    .await;
    check(
        "head -c 1048577 /dev/zero > $WINDLASS_OUTPUT",
        "$WINDLASS_OUTPUT is larger than 1048576 bytes: write large results to a file of your own and output its path",
    )
    .await;
    check(
        "rm $WINDLASS_OUTPUT; mkfifo $WINDLASS_OUTPUT",
        "$WINDLASS_OUTPUT is no longer a file: append to it instead of replacing it",
    )
    .await;
}

#[tokio::test]
async fn a_failed_or_stopped_command_leaves_its_outputs() {
    let failure = native("echo a=1 >> $WINDLASS_OUTPUT; exit 2").failed().await;
    assert_eq!(&*failure.message, "exit status 2");
    assert_eq!(added(&failure.detail.expect("the outputs")), json(r#"{"a": "1"}"#));
    let failure = native("echo nonsense >> $WINDLASS_OUTPUT; exit 2").failed().await;
    assert_eq!((&*failure.class, &*failure.message), (class::ERROR, "exit status 2"));
    let printed = Case { output: ShellOutput::Json, ..native("echo '{\"n\": 1}'; exit 2") };
    assert_eq!(added(&printed.failed().await.detail.expect("the outputs")), json(r#"{"n": 1}"#));

    let mut running = native("echo a=1 >> $WINDLASS_OUTPUT; echo on; exec sleep 1000").start();
    assert_eq!(running.line().await, "on");
    running.overdue.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(stopped) = outcome else { panic!("{outcome:?}") };
    assert_eq!(added(&stopped.detail.expect("the outputs")), json(r#"{"a": "1"}"#));
}

#[tokio::test]
async fn secrets_in_the_file_are_redacted() {
    let case = Case {
        env: vec![("TOKEN", Value::secret("TOKEN"))],
        secrets: vec!["TOKEN"],
        variables: vec![("TOKEN", "hush-hush")],
        ..native("echo \"a=<$TOKEN>\" >> $WINDLASS_OUTPUT")
    };
    assert_eq!(added(&case.done().await), json(r#"{"a": "<***>"}"#));
}

/// A secret of several lines looks like several outputs.
#[tokio::test]
async fn a_secret_of_several_lines_does_not_come_apart() {
    let case = Case {
        env: vec![("DOTENV", Value::secret("DOTENV"))],
        secrets: vec!["DOTENV"],
        variables: vec![("DOTENV", "user=bob\npass=hunter2")],
        ..native("printf 'a=%s\\n' \"$DOTENV\" >> $WINDLASS_OUTPUT")
    };
    assert_eq!(added(&case.done().await), json(r#"{"a": "***"}"#));
}

#[tokio::test]
async fn other_rules_have_no_file() {
    let outputs =
        Case { variables: vec![("WINDLASS_OUTPUT", "/outer")], ..sh("echo \"<$WINDLASS_OUTPUT>\"") };
    assert_eq!(outputs.done().await.get("stdout"), Some(&Value::text("<>\n")));
}

#[tokio::test]
async fn the_command_is_the_last_argument_of_its_program() {
    let with = |words: &[&str], command: &str| Case { shell: Interpreter::of(words), ..native(command) };
    let stdout =
        async |case: Case| case.done().await.get("stdout").and_then(Value::as_str).map(str::to_owned);
    assert_eq!(stdout(with(&["sh", "-c"], "false\necho on")).await.as_deref(), Some("on"));
    assert_eq!(&*with(&["sh", "-e", "-c"], "echo a\nfalse\necho on").failed().await.message, "exit status 1");
    assert_eq!(stdout(with(&["env", "printf", "%s-%s", "a"], "b c")).await.as_deref(), Some("a-b c"));
    let missing = with(&["no-such-program", "-c"], "x").failed().await;
    assert_eq!((&*missing.class, missing.field.as_deref()), (class::NOT_RUNNABLE, Some("shell")));
    assert_eq!(
        &*missing.message,
        "there is no program `no-such-program` in the PATH of the user who started the run: install it, or set another `shell`"
    );
    assert_eq!(&*with(&[], "x").failed().await.class, class::NOT_RUNNABLE);
}
