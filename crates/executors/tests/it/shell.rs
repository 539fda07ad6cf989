//! Shell jobs, each a real process: their outputs, failures, cancellation and environment.

use crate::support::{Case, folder, is_running, key, patiently, sh};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use windlass_engine::{Outcome, class};
use windlass_executors::Stream;
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::value::SealedPart;
use windlass_ir::workflow::ShellOutput;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn outputs_are_exactly_what_was_printed() {
    let check = async |command: &str, expected: &str| {
        assert_eq!(sh(command).done().await, json(expected), "{command}");
    };
    check("true", r#"{"exit_code": 0, "stdout": "", "stderr": ""}"#).await;
    check("echo hello", r#"{"exit_code": 0, "stdout": "hello\n", "stderr": ""}"#).await;
    check("printf ' a '; echo oops >&2", r#"{"exit_code": 0, "stdout": " a ", "stderr": "oops\n"}"#).await;
    // Bytes that are not text are kept byte for byte as well.
    let bytes = r#"{"exit_code": 0, "stdout": "��!", "stderr": "", "stdout_base64": "//4h"}"#;
    check(r"printf '\377\376!'", bytes).await;
    let both = r#"{"exit_code": 0, "stdout": "ü", "stderr": "a�", "stderr_base64": "Yf8="}"#;
    check(r"printf 'ü'; printf 'a\377' >&2", both).await;
    check("cat", r#"{"exit_code": 0, "stdout": "", "stderr": ""}"#).await;
}

#[tokio::test]
async fn failures_tell_how_the_command_ended() {
    let check = async |command: &str, message: &str, exit_code: i64| {
        let failure = sh(command).failed().await;
        assert_eq!((&*failure.class, &*failure.message), (class::ERROR, message), "{command}");
        let detail = failure.detail.expect("the outputs");
        assert_eq!(detail.get("exit_code"), Some(&Value::Int(exit_code)), "{command}");
    };
    check("exit 3", "exit status 3", 3).await;
    check("echo one >&2; printf 'two\n\n' >&2; exit 4", "exit status 4: two", 4).await;
    check("kill -9 $$", "killed by signal 9 (SIGKILL)", 137).await;
    check("echo gone >&2; kill -TERM $$", "killed by signal 15 (SIGTERM): gone", 143).await;
    check("kill -USR1 $$", "killed by signal 10", 138).await;
    let failure = sh("echo some; echo more >&2; exit 1").failed().await;
    assert_eq!(failure.detail, Some(json(r#"{"exit_code": 1, "stdout": "some\n", "stderr": "more\n"}"#)));
}

#[tokio::test]
async fn for_spec_kit_outputs_match_its_python() {
    let speckit = |command: &str| Case { rules: Semantics::SPECKIT, ..sh(command) };
    let outputs = speckit(r"printf 'a\r\nb\rc'; printf '\r\n' >&2").done().await;
    assert_eq!(outputs, json(r#"{"exit_code": 0, "stdout": "a\nb\nc", "stderr": "\n"}"#));
    let killed = speckit("echo some; kill -9 $$").failed().await;
    assert_eq!(&*killed.message, "killed by signal 9 (SIGKILL)");
    assert_eq!(killed.detail, Some(json(r#"{"exit_code": -9, "stdout": "some\n", "stderr": ""}"#)));

    let mut running = speckit("echo some; exec sleep 1000").start();
    assert_eq!(running.line().await, "some");
    running.overdue.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(stopped) = outcome else { panic!("{outcome:?}") };
    assert_eq!(stopped.detail, Some(json(r#"{"exit_code": -1, "stdout": "", "stderr": "timeout"}"#)));
}

#[tokio::test]
async fn output_before_the_end_is_kept() {
    let mut running = sh("echo some; echo more >&2; exec sleep 1000").start();
    let (_, _) = (running.line().await, running.line().await);
    running.overdue.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    let Outcome::Failed(stopped) = outcome else { panic!("{outcome:?}") };
    assert_eq!(stopped.detail, Some(json(r#"{"exit_code": -1, "stdout": "some\n", "stderr": "more\n"}"#)));
}

#[tokio::test]
async fn json_becomes_data_and_its_members_outputs() {
    let check = async |printed: &str, expected: &str| {
        let case = Case { output: ShellOutput::Json, ..sh("cat") };
        let stdin = Some(Value::text(printed));
        let outputs = Case { stdin, ..case }.done().await;
        let Value::Map(outputs) = outputs else { panic!("{outputs:?}") };
        let others = ["exit_code", "stdout", "stderr"];
        let data: Vec<_> = outputs.iter().filter(|(name, _)| !others.contains(&&***name)).collect();
        assert_eq!(
            Value::map(data.into_iter().map(|(name, value)| (name.clone(), value.clone()))),
            json(expected)
        );
        assert_eq!(outputs.get("stdout"), Some(&Value::text(printed)));
    };
    check("[1, 2.0]\n", r#"{"data": [1, 2.0]}"#).await;
    check(r#"{"n": 1}"#, r#"{"data": {"n": 1}, "n": 1}"#).await;
    check(
        r#"{"stdout": "x", "data": 1, "exit_code": 9}"#,
        r#"{"data": {"stdout": "x", "data": 1, "exit_code": 9}}"#,
    )
    .await;
}

#[tokio::test]
async fn output_that_is_not_json_violates_the_contract() {
    let check = async |command: &str, bytes_max: usize, expected: &str| {
        let case = Case { output: ShellOutput::Json, output_bytes_max: bytes_max, ..sh(command) };
        let failure = case.failed().await;
        assert_eq!(
            (&*failure.class, failure.field.as_deref()),
            (class::CONTRACT_VIOLATION, Some("outputs.data"))
        );
        let expected =
            format!("standard output is not valid JSON: {expected}; print one JSON value and nothing else");
        assert_eq!(*failure.message, *expected);
        assert!(failure.detail.is_some());
    };
    check("true", 100, "EOF while parsing a value at line 1 column 0").await;
    check("echo '{\"a\": 1,'; echo x", 100, "key must be a string at line 2 column 1").await;
    check("echo 1; echo 2", 100, "trailing characters at line 2 column 1").await;
    check("echo '[1234567]'", 5, "it exceeds the output limit of a command").await;
    let deep = "head -c 100000 /dev/zero | tr '\\0' '['";
    check(deep, 1 << 20, "recursion limit exceeded at line 1 column 128").await;
}

#[tokio::test]
async fn a_flood_is_truncated_but_streamed_in_full() {
    let line = format!("{}\n", "y".repeat(99));
    let (outcome, lines) = sh(&format!("yes {} | head -c 5000000", line.trim())).finish().await;
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    let text = outputs.get("stdout").and_then(Value::as_str).expect("text");
    let (kept, mark) = text.split_at(1 << 20);
    assert!(line.repeat(kept.len() / line.len() + 1).starts_with(kept));
    assert_eq!(mark, format!("\n[… {} bytes left out]\n", 5_000_000 - (1 << 20)));
    assert_eq!(lines.len(), 50_000);
    assert!(lines.iter().all(|sent| sent.bytes == line.as_bytes()));
}

#[tokio::test]
async fn a_flood_on_standard_error_is_truncated_as_well() {
    let (outcome, lines) =
        sh("yes 0123456789012345678901234567890123456789 | head -c 4100000 >&2; echo done").finish().await;
    let Outcome::Done(outputs) = outcome else { panic!("{outcome:?}") };
    let text = |name: &str| outputs.get(name).and_then(Value::as_str).expect("text");
    assert_eq!(text("stdout"), "done\n");
    assert!(text("stderr").ends_with(&format!("[… {} bytes left out]\n", 4_100_000 - (1 << 20))));
    assert_eq!(lines.len(), 100_001);
}

#[tokio::test]
async fn lines_arrive_while_the_command_runs() {
    let folder = folder("lines_come_while_the_command_runs");
    let made = Command::new("mkfifo").arg(folder.join("go")).status().expect("mkfifo runs");
    assert!(made.success());
    let command = "echo ready; cat go; echo no >&2; printf end";
    let case = Case { run: "r".into(), directory: folder.clone(), ..sh(command) };
    let mut running = case.start();
    assert_eq!(running.line().await, "ready", "long before the end");
    std::fs::write(folder.join("go"), "on\n").expect("the command reads it");
    let mut rest = Vec::new();
    while let Some(line) = patiently(running.lines.recv()).await {
        assert_eq!(line.job, key("r"));
        rest.push((line.stream, String::from_utf8(line.bytes).expect("UTF-8")));
    }
    rest.sort_by_key(|(stream, _)| *stream == Stream::Stderr);
    let expected = [(Stream::Stdout, "on\n"), (Stream::Stdout, "end"), (Stream::Stderr, "no\n")];
    assert_eq!(rest, expected.map(|(stream, text)| (stream, text.to_owned())));
}

#[tokio::test]
async fn the_environment_is_the_callers_without_secrets_plus_the_steps() {
    let case = Case {
        run: "r".into(),
        variables: vec![
            ("PLAIN", "plain"),
            ("OVER", "caller"),
            ("API", "hush-hush"),
            ("OTHER", "o"),
            ("WINDLASS_JOB", "x"),
            ("WINDLASS_FOLDER", "/outer"),
        ],
        secrets: vec!["API", "OTHER"],
        env: vec![
            ("OVER", Value::text("step")),
            ("COUNT", Value::Int(3)),
            ("NONE", Value::Null),
            ("LIST", Value::list([Value::Bool(true), Value::text("a b")])),
            ("WINDLASS_ATTEMPT", Value::text("no")),
        ],
        ..sh("env")
    };
    let outputs = case.done().await;
    let found: BTreeSet<&str> =
        outputs.get("stdout").and_then(Value::as_str).expect("text").lines().collect();
    let path = format!("PATH={}", std::env::var("PATH").expect("a PATH"));
    let expected = [
        "PLAIN=plain",
        "OVER=step",
        "COUNT=3",
        "NONE=",
        r#"LIST=[true,"a b"]"#,
        "WINDLASS_JOB=r:/build[2]#3.4",
        "WINDLASS_OPERATION=r:/build[2]",
        "WINDLASS_ATTEMPT=3",
        &path,
        // The shell itself reports its folder.
        "PWD=/",
    ];
    assert_eq!(found, BTreeSet::from(expected));
}

#[tokio::test]
async fn the_working_directory_is_the_callers_unless_the_step_sets_it() {
    let folder = folder("the_working_directory");
    std::fs::create_dir(folder.join("inner")).expect("a new folder");
    std::fs::write(folder.join("file"), "").expect("a new file");
    let at = |cwd: Option<&str>| {
        let (directory, cwd) = (folder.clone(), cwd.map(Value::text));
        Case { directory, cwd, ..sh("pwd") }
    };
    let shown = folder.display();
    let check = async |cwd: Option<&str>, expected: String| {
        assert_eq!(at(cwd).done().await.get("stdout"), Some(&Value::text(expected)));
    };
    check(None, format!("{shown}\n")).await;
    check(Some("inner"), format!("{shown}/inner\n")).await;
    check(Some("/"), "/\n".into()).await;
    let bad = async |cwd: &str, problem: &str| {
        let failure = at(Some(cwd)).failed().await;
        let expected = format!("the working directory `{shown}/{cwd}` {problem}");
        assert_eq!((&*failure.class, &*failure.message), (class::NOT_RUNNABLE, &*expected));
    };
    bad("gone", "does not exist").await;
    bad("file", "is not a directory").await;
}

#[tokio::test]
async fn standard_input_is_complete_and_need_not_be_read() {
    let large = Value::text("x".repeat(300_000));
    let with = |command: &str, stdin: Value| Case { stdin: Some(stdin), ..sh(command) };
    assert_eq!(with("wc -c", large.clone()).done().await.get("stdout"), Some(&Value::text("300000\n")));
    assert_eq!(with("true", large.clone()).done().await.get("exit_code"), Some(&Value::Int(0)));
    assert_eq!(
        with("cat", Value::list([Value::Int(1)])).done().await.get("stdout"),
        Some(&Value::text("[1]"))
    );
    // The input continues although the output has ended.
    let folder = folder("standard_input");
    let silent = with("exec >&- 2>&-; wc -c > count", large);
    Case { directory: folder.clone(), ..silent }.done().await;
    assert_eq!(std::fs::read_to_string(folder.join("count")).expect("it was written").trim(), "300000");
}

#[tokio::test]
async fn secrets_reach_only_the_command() {
    let token = Value::Sealed([SealedPart::Text("Bearer ".into()), SealedPart::Secret("API".into())].into());
    let case = |command: &str| Case {
        variables: vec![("API", "hush\"12345"), ("PIN", "98765")],
        secrets: vec!["API", "PIN"],
        env: vec![("TOKEN", token.clone()), ("NUMBER", Value::secret("PIN"))],
        stdin: Some(Value::secret("API")),
        ..sh(command)
    };
    // Only the length shows that it arrives.
    let outputs =
        case("echo ${#TOKEN} $(wc -c); echo \"<$TOKEN>\"; printf \"$API\"; echo \"$TOKEN\" >&2").done().await;
    let expected = r#"{"exit_code": 0, "stdout": "17 10\n<Bearer ***>\n", "stderr": "Bearer ***\n"}"#;
    assert_eq!(outputs, json(expected));

    let (outcome, lines) =
        case("printf 'Bearer hush'; printf '\"123'; echo 45; echo $NUMBER >&2; exit 1").finish().await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(&*failure.message, "exit status 1: ***");
    let mut texts: Vec<_> =
        lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect();
    texts.sort();
    assert_eq!(texts, ["***\n", "Bearer ***\n"]);

    let print = r#"printf '{"pin": %s, "key": "hush\\"12345", "n": 1}' $NUMBER"#;
    let outputs = Case { output: ShellOutput::Json, ..case(print) }.done().await;
    assert_eq!(outputs.get("data"), Some(&json(r#"{"pin": "***", "key": "***", "n": 1}"#)));
    assert_eq!(outputs.get("stdout"), Some(&Value::text(r#"{"pin": ***, "key": "***", "n": 1}"#)));
}

#[tokio::test]
async fn a_secret_that_the_step_was_not_given_is_redacted_too() {
    let case = Case {
        variables: vec![("API", "hush-hush")],
        secrets: vec!["API", "UNSET"],
        ..sh("echo found hush-hush; echo hush-hush >&2")
    };
    let expected = r#"{"exit_code": 0, "stdout": "found ***\n", "stderr": "***\n"}"#;
    assert_eq!(case.done().await, json(expected));
}

#[tokio::test]
async fn a_missing_secret_is_named_and_nothing_is_started() {
    let folder = folder("a_missing_secret");
    let env = vec![("TOKEN", Value::secret("API"))];
    let case = Case { env, directory: folder.clone(), ..sh("touch started") };
    let failure = case.failed().await;
    let expected = "the secret `API` is not set: set the environment variable `API` where you start the run";
    assert_eq!((&*failure.class, &*failure.message), (class::AUTH_FAILURE, expected));
    assert!(!folder.join("started").exists());
}

#[tokio::test]
async fn failed_starts_say_why() {
    let check = async |command: &str, expected: &str| {
        let failure = sh(command).failed().await;
        assert_eq!(&*failure.class, class::NOT_RUNNABLE);
        assert!(failure.message.starts_with("cannot start /bin/sh: "), "{}", failure.message);
        assert!(failure.message.ends_with(expected), "{}", failure.message);
    };
    check("echo \0", ": commands and environments cannot contain NUL characters").await;
    let long = format!("true {}", "x".repeat(10 << 20));
    check(&long, ": pass large values in `stdin` instead of in the command or `env`").await;
}

#[tokio::test]
async fn a_whole_tree_that_ignores_sigterm_is_killed() {
    let command = "trap '' TERM; sh -c 'sleep 1000 & echo $$ $!; wait' & wait";
    let mut running = Case { grace: Duration::from_millis(20), ..sh(command) }.start();
    let pids = running.line().await;
    assert!(pids.split(' ').all(is_running));
    running.abort.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
    assert!(!pids.split(' ').any(is_running), "{pids}");
}

/// A process that has left its group, two levels below the shell, and prints its id.
fn stray(before: &str) -> String {
    format!("(setsid sh -c '{before} echo $$; exec sleep 1000' &)")
}

#[tokio::test]
async fn processes_that_have_left_the_group_are_ended_with_it() {
    let grace = Duration::from_millis(20);
    for before in ["", "trap \"\" TERM;"] {
        let mut running = Case { grace, ..sh(&format!("{}; sleep 1000", stray(before))) }.start();
        let pid = running.line().await;
        assert!(is_running(&pid));
        running.abort.cancel();
        let outcome = patiently(running.outcome).await.expect("no panic");
        assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
        assert!(!is_running(&pid), "{pid} {before}");
    }

    let folder = folder("those_that_have_left");
    let command = format!("{} > pid; while ! test -s pid; do :; done; exit 1", stray(""));
    patiently(Case { grace, directory: folder.clone(), ..sh(&command) }.failed()).await;
    let pid = std::fs::read_to_string(folder.join("pid")).expect("it was written");
    assert!(!is_running(pid.trim()), "{pid}");
}

#[tokio::test]
async fn processes_of_another_job_are_left_alone() {
    let mut other = sh(&format!("{}; sleep 1000", stray(""))).start();
    let pid = other.line().await;
    patiently(sh("exit 1").failed()).await;
    assert!(is_running(&pid));
    other.abort.cancel();
    patiently(other.outcome).await.expect("no panic");
    assert!(!is_running(&pid));
}

#[tokio::test]
async fn a_command_may_clean_up_before_it_ends() {
    let folder = folder("a_command_may_clean_up");
    // The leader ends at once; the child in its group takes as long as the fifo says. A new shell reports when it is
    // ready: one that is only being forked may swallow the signal.
    let child = "trap 'read go < go; echo bye; echo cleaned > trace; exit' TERM
        sh -c 'echo ready; exec sleep 1000' & wait";
    std::fs::write(folder.join("child"), child).expect("a new file");
    assert!(Command::new("mkfifo").arg(folder.join("go")).status().expect("mkfifo runs").success());
    let grace = Duration::from_secs(50);
    let case = Case { directory: folder.clone(), grace, ..sh("sh child & wait") };
    let mut running = case.start();
    assert_eq!(running.line().await, "ready");
    running.abort.cancel();
    let go = folder.join("go");
    tokio::task::spawn_blocking(move || std::fs::write(go, "go\n"))
        .await
        .expect("no panic")
        .expect("it is read");
    assert_eq!(running.line().await, "bye");
    let outcome = patiently(running.outcome).await.expect("no panic");
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(folder.join("trace")).expect("it was written"), "cleaned\n");
}

#[tokio::test]
async fn an_abort_before_the_start_starts_nothing() {
    let folder = folder("an_abort_before_the_start");
    let running = Case { directory: folder.clone(), ..sh("touch started") }.start();
    running.abort.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
    assert!(!folder.join("started").exists());
}

#[tokio::test]
async fn a_success_may_leave_something_running_and_a_failure_may_not() {
    let outputs = patiently(sh("sleep 1000 & echo $!").done()).await;
    let pid = outputs.get("stdout").and_then(Value::as_str).expect("text").trim().to_owned();
    assert!(is_running(&pid));
    assert!(Command::new("kill").arg(&pid).status().expect("kill runs").success());

    let failure = patiently(sh("sleep 1000 & echo $!; exit 1").failed()).await;
    let detail = failure.detail.expect("the outputs");
    let pid = detail.get("stdout").and_then(Value::as_str).expect("text").trim();
    assert!(!pid.is_empty() && !is_running(pid), "{pid}");
}

#[tokio::test]
async fn a_child_that_never_stops_printing_does_not_delay_the_step() {
    let outputs = patiently(sh("yes & echo started >&2").done()).await;
    assert_eq!(outputs.get("stderr"), Some(&Value::text("started\n")));
}

#[tokio::test]
async fn a_dropped_job_leaves_nothing_behind() {
    let folder = folder("a_dropped_job");
    let fifo = folder.join("alive");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    // Open as long as a member of the group is alive.
    let mut alive = tokio::net::unix::pipe::OpenOptions::new().open_receiver(fifo).expect("a fifo");
    let command = "exec 3> alive; trap '' TERM; sh -c 'echo ready; exec sleep 1000' & wait";
    let mut running = Case { directory: folder, ..sh(command) }.start();
    assert_eq!(running.line().await, "ready");
    running.outcome.abort();
    assert_eq!(patiently(alive.read(&mut [0])).await.expect("readable"), 0, "no process holds it any more");
}
