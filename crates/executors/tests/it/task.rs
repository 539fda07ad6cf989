//! Tasks done by commands, each a real process: their environment, the meaning of their answers, and cancellation.

use crate::support::{Running, context, folder, is_running, key, own_run, patiently};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{Assignment, Failure, Job, Outcome, Round, Work, class};
use windlass_executors::{Children, Executor, Stream, TaskCommand, Tasks, end_orphans};
use windlass_ir::Value;
use windlass_ir::expr::Semantics;
use windlass_ir::value::Sealable;

/// One command for the task `pack` and everything around it that a test may change.
struct Case {
    run: String,
    command: Vec<String>,
    folder: PathBuf,
    input: Value,
    metadata: Vec<(&'static str, &'static str)>,
    notes: Vec<(&'static str, Value)>,
    round: Option<Round>,
    env: Vec<(&'static str, Value)>,
    secrets: Vec<&'static str>,
    variables: Vec<(&'static str, &'static str)>,
    grace: Duration,
    output_bytes_max: usize,
    children: Option<Arc<Children>>,
}

fn command(words: &[&str]) -> Case {
    let Tasks { grace, output_bytes_max, .. } = Tasks::default();
    Case {
        run: own_run(),
        command: words.iter().map(|word| (*word).to_owned()).collect(),
        folder: "/".into(),
        input: Value::Null,
        metadata: Vec::new(),
        notes: Vec::new(),
        round: None,
        env: Vec::new(),
        secrets: Vec::new(),
        variables: Vec::new(),
        grace,
        output_bytes_max,
        children: None,
    }
}

fn sh(text: &str) -> Case {
    command(&["sh", "-c", text])
}

impl Case {
    fn start(self) -> Running {
        let (program, arguments) = self.command.split_first().expect("a program");
        let task = TaskCommand { program: program.clone(), arguments: arguments.to_vec() };
        let tasks = Tasks {
            grace: self.grace,
            output_bytes_max: self.output_bytes_max,
            children: self.children.clone(),
            ..Tasks::new(&self.folder, IndexMap::from([("pack".into(), task)]))
        };
        // The caller's folder does not matter.
        let (context, lines) = context(&self.variables, "/proc".as_ref());
        let (abort, overdue) = (context.abort.clone(), context.overdue.clone());
        let job = self.job();
        let outcome =
            tokio::spawn(async move { tasks.start(job, context).await.outcome().expect("a report") });
        Running { abort, overdue, lines, outcome }
    }

    fn job(self) -> Job {
        let metadata = self.metadata.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        let (task, capabilities) = ("pack".into(), Vec::new());
        let work = Work::Task { task, group: None, input: self.input, metadata, capabilities };
        let env = self.env.into_iter().map(|(name, value)| (name.into(), Sealable(value))).collect();
        Job {
            key: key(&self.run),
            step: "build".into(),
            work: Arc::new(Assignment { input: Value::Null, work, env, key: None, claims: Vec::new() }),
            secrets: self.secrets.into_iter().map(Arc::from).collect(),
            timeout: None,
            notes: self.notes.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            round: self.round,
            feedback: None,
            rules: Semantics::HOUSE,
        }
    }

    async fn outcome(self) -> Outcome {
        self.start().finish().await.0
    }

    async fn failed(self) -> Failure {
        match self.outcome().await {
            Outcome::Failed(failure) => failure,
            other => panic!("{other:?}"),
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn printed_json_is_the_output() {
    let check = async |printed: &str, expected: Outcome| {
        let case = Case { variables: vec![("PRINTED", leaked(printed))], ..sh("printf %s \"$PRINTED\"") };
        assert_eq!(case.outcome().await, expected, "{printed}");
    };
    check("", Outcome::Done(Value::Null)).await;
    check(" \n\t\n", Outcome::Done(Value::Null)).await;
    check("null", Outcome::Done(Value::Null)).await;
    check("[1, 2.0]\n", Outcome::Done(json("[1, 2.0]"))).await;
    check(r#"{"kg": 9}"#, Outcome::Done(json(r#"{"kg": 9}"#))).await;
    check(r#"{"continue": {"page": 2}}"#, Outcome::Continue(json(r#"{"page": 2}"#))).await;
    check(r#"{"continue": null}"#, Outcome::Continue(Value::Null)).await;
    // With more members it is an output that happens to have such a name.
    let both = r#"{"continue": 1, "done": false}"#;
    check(both, Outcome::Done(json(both))).await;
    let counted = r#"{"error": {"message": "one of three"}, "good": 2}"#;
    check(counted, Outcome::Done(json(counted))).await;
    check(r#"{"error": null}"#, Outcome::Done(json(r#"{"error": null}"#))).await;
}

/// A small limit for the test.
fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

#[tokio::test]
async fn an_error_is_reported_in_the_output() {
    let check = async |script: &str, class: &str, message: &str, retry_after: Option<u64>| {
        let failure = sh(script).failed().await;
        assert_eq!((&*failure.class, &*failure.message), (class, message), "{script}");
        assert_eq!(failure.retry_after.map(|wait| wait.0 / 1_000), retry_after, "{script}");
        failure
    };
    let rate = r#"echo '{"error": {"class": "rate_limit", "message": "slow", "retry_after": 1.5}}'"#;
    check(rate, "rate_limit", "slow", Some(1_500)).await;
    check(&format!("{rate}; exit 3"), "rate_limit", "slow", Some(1_500)).await;
    check(r#"echo '{"error": {"message": "m", "retry_after": "2m"}}'"#, "error", "m", Some(120_000)).await;
    check(r#"echo '{"error": {}}'"#, "error", "the command gave no reason", None).await;
    check(r#"echo broken >&2; echo '{"error": {}}'"#, "error", "broken", None).await;
    let more =
        check(r#"echo '{"error": {"class": "x", "message": "m", "status": 429}}'"#, "x", "m", None).await;
    assert_eq!(more.detail, Some(json(r#"{"status": 429}"#)));
    // A nonzero exit code is a failure, whatever else is printed.
    check(r#"echo '{"error": {"class": "x", "message": "m"}, "n": 1}'; exit 1"#, "x", "m", None).await;

    let bad = async |script: &str, message: &str| {
        check(script, class::CONTRACT_VIOLATION, message, None).await;
    };
    let shape = "`error` must be an object with `class`, `message` and `retry_after`, but it is string";
    bad(r#"echo '{"error": "no"}'"#, shape).await;
    bad(r#"echo '{"error": {"class": 4}}'"#, "error.class: expected a string, found integer").await;
    let wait = "error.retry_after: a wait must be at least zero seconds and at most ten years";
    bad(r#"echo '{"error": {"retry_after": -1}}'; exit 1"#, wait).await;
}

#[tokio::test]
async fn a_nonzero_exit_code_is_a_failure() {
    let check = async |script: &str, message: &str, detail: &str| {
        let failure = sh(script).failed().await;
        assert_eq!((&*failure.class, &*failure.message), (class::ERROR, message), "{script}");
        assert_eq!(failure.detail, Some(json(detail)), "{script}");
    };
    check("exit 3", "exit status 3", r#"{"exit_code": 3, "stdout": "", "stderr": ""}"#).await;
    let said = r#"{"exit_code": 1, "stdout": "{\"n\": 1}\n", "stderr": "no paper\n"}"#;
    check("echo '{\"n\": 1}'; echo no paper >&2; exit 1", "exit status 1: no paper", said).await;
    let more = r#"{"exit_code": 1, "stdout": "{\"continue\":1}\n", "stderr": ""}"#;
    check("echo '{\"continue\":1}'; exit 1", "exit status 1", more).await;
    let killed = r#"{"exit_code": 137, "stdout": "", "stderr": ""}"#;
    check("kill -9 $$", "killed by signal 9 (SIGKILL)", killed).await;
    let flood = sh("head -c 100000 /dev/zero | tr '\\0' x; exit 1").failed().await.detail.expect("a detail");
    let shown = flood.get("stdout").and_then(Value::as_str).expect("text");
    assert!(shown.len() < 20_000 && shown.ends_with("[… 83616 bytes left out]\n"), "{}", shown.len());
}

#[tokio::test]
async fn output_that_is_not_json_is_a_failure() {
    let check = async |script: &str, bytes_max: usize, expected: &str| {
        let failure = Case { output_bytes_max: bytes_max, ..sh(script) }.failed().await;
        let expected =
            format!("standard output is not valid JSON: {expected}; print one JSON value and nothing else");
        assert_eq!((&*failure.class, &*failure.message), (class::CONTRACT_VIOLATION, &*expected), "{script}");
        assert!(failure.detail.is_some_and(|detail| detail.get("stdout").is_some()));
    };
    check("echo done", 100, "expected value at line 1 column 1").await;
    check("echo 1; echo 2", 100, "trailing characters at line 2 column 1").await;
    check(r#"printf '"\377"'"#, 100, "invalid unicode code point at line 1 column 2").await;
    check("echo '[1234567]'", 5, "it exceeds the output limit of a command").await;
    let flood = "yes | head -c 5000000";
    check(flood, 1 << 20, "it exceeds the output limit of a command").await;
}

#[tokio::test]
async fn the_input_is_json_and_need_not_be_read() {
    let large = Value::list([Value::text("x".repeat(300_000))]);
    let with = |script: &str, input: Value| Case { input, ..sh(script) };
    assert_eq!(sh("cat").outcome().await, Outcome::Done(Value::Null));
    let input = json(r#"{"a": [1, "ü", null]}"#);
    assert_eq!(with("cat", input.clone()).outcome().await, Outcome::Done(input.clone()));
    assert_eq!(with("read -r line; echo \"$line\"", input.clone()).outcome().await, Outcome::Done(input));
    assert_eq!(with("cat", large.clone()).outcome().await, Outcome::Done(large.clone()));
    assert_eq!(with("exec <&-; echo 1", large.clone()).outcome().await, Outcome::Done(Value::Int(1)));
    assert_eq!(with("head -c 10 >/dev/null; echo 2", large).outcome().await, Outcome::Done(Value::Int(2)));
}

#[tokio::test]
async fn the_environment_describes_the_job() {
    let case = Case {
        run: "r".into(),
        metadata: vec![("channel", "pull \"requests\"")],
        notes: vec![("page", Value::Int(3)), ("seen", json("[1]"))],
        round: Some(Round { number: 1, rounds_max: 10, warn: false, force: false }),
        env: vec![("COUNT", Value::Int(3)), ("WINDLASS_NOTES", Value::text("mine"))],
        variables: vec![("PLAIN", "plain"), ("API", "hush-hush"), ("WINDLASS_FOLDER", "/outer")],
        secrets: vec!["API"],
        ..sh("env >&2")
    };
    let expected = [
        "PLAIN=plain",
        "COUNT=3",
        "WINDLASS_JOB=r:/build[2]#3.4",
        "WINDLASS_OPERATION=r:/build[2]",
        "WINDLASS_ATTEMPT=3",
        r#"WINDLASS_METADATA={"channel":"pull \"requests\""}"#,
        r#"WINDLASS_NOTES={"page":3,"seen":[1]}"#,
        "WINDLASS_ROUND=2",
        "WINDLASS_ROUNDS_MAX=10",
        "PWD=/",
    ];
    assert_eq!(variables(case).await, BTreeSet::from(expected.map(str::to_owned)));

    // Variables of an enclosing task are not passed on.
    let names = ["WINDLASS_NOTES", "WINDLASS_METADATA", "WINDLASS_ROUND", "WINDLASS_ROUNDS_MAX"];
    let variables_around = names.map(|name| (name, "outer")).to_vec();
    let inside = Case { run: "r".into(), variables: variables_around, ..sh("env >&2") };
    let expected = [
        "WINDLASS_JOB=r:/build[2]#3.4",
        "WINDLASS_OPERATION=r:/build[2]",
        "WINDLASS_ATTEMPT=3",
        "WINDLASS_METADATA={}",
        "WINDLASS_NOTES={}",
        "PWD=/",
    ];
    assert_eq!(variables(inside).await, BTreeSet::from(expected.map(str::to_owned)));
}

/// The output of `env` on standard error, without the `PATH`.
async fn variables(case: Case) -> BTreeSet<String> {
    let (outcome, lines) = case.start().finish().await;
    assert_eq!(outcome, Outcome::Done(Value::Null));
    let texts = lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).trim_end().to_owned());
    texts.filter(|text| !text.starts_with("PATH=")).collect()
}

#[tokio::test]
async fn both_streams_are_shown_live_without_secrets() {
    let case = Case {
        variables: vec![("API", "hush-12345")],
        secrets: vec!["API"],
        env: vec![("TOKEN", Value::secret("API"))],
        ..sh(r#"echo "key $TOKEN" >&2; printf '{"key": "%s", "n": %s}' "$TOKEN" "${#TOKEN}""#)
    };
    let (outcome, mut lines) = case.start().finish().await;
    assert_eq!(outcome, Outcome::Done(json(r#"{"key": "***", "n": 10}"#)));
    lines.sort_by_key(|line| line.stream == Stream::Stderr);
    let texts: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(&line.bytes).into_owned()).collect();
    assert_eq!(texts, [r#"{"key": "***", "n": 10}"#, "key ***\n"]);

    let case = Case {
        variables: vec![("API", "hush-12345")],
        env: vec![("TOKEN", Value::secret("API"))],
        ..sh(r#"printf '{"error": {"class": "x", "message": "bad %s"}}' "$TOKEN""#)
    };
    assert_eq!(&*case.failed().await.message, "bad ***");
}

#[tokio::test]
async fn commands_are_found_by_path_from_the_folder_or_by_name_in_path() {
    let folder = folder("commands_are_found");
    let file = |name: &str, text: &str, mode: u32| {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder of ours");
        std::fs::write(&file, text).expect("a new file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("our file");
    };
    file("bin/pack", "#!/bin/sh\nprintf '\"%s %s\"' \"$PWD\" \"$1\"", 0o755);
    file("bin/plain", "#!/bin/sh\n", 0o644);
    file("bin/lost", "#!/no/such/interpreter\n", 0o755);
    file("bin/none", "echo 1\n", 0o755);
    let at = |words: &[&str]| Case { folder: folder.clone(), ..command(words) };
    let shown = folder.display();
    let expected = Outcome::Done(Value::text(format!("{shown} a b")));
    assert_eq!(at(&["./bin/pack", "a b"]).outcome().await, expected);
    assert_eq!(at(&["bin/pack", "a b"]).outcome().await, expected);
    let in_path = Case { variables: vec![("PATH", "/nowhere:bin")], ..at(&["pack", "a b"]) };
    assert_eq!(in_path.outcome().await, expected);

    let check = async |case: Case, expected: &str| {
        let failure = case.failed().await;
        assert_eq!((&*failure.class, &*failure.message), (class::NOT_RUNNABLE, expected));
    };
    check(at(&["bin/gone"]), &format!("no such file: `{shown}/bin/gone`")).await;
    let unknown = "there is no command `no-such-command` in the PATH of the user who started the run: install it, or write the path of a file";
    check(at(&["no-such-command"]), unknown).await;
    let hidden = Case { variables: vec![("PATH", "bin")], ..at(&["plain"]) };
    check(hidden, &unknown.replace("no-such-command", "plain")).await;
    let not_started = |name: &str, why: &str| format!("cannot start {shown}/bin/{name}: {why}");
    let executable = "Permission denied (os error 13): make it executable, or put its interpreter first";
    check(at(&["bin/plain"]), &not_started("plain", executable)).await;
    let interpreter =
        "No such file or directory (os error 2): the interpreter in its first line does not exist";
    check(at(&["bin/lost"]), &not_started("lost", interpreter)).await;
    let first_line = "Exec format error (os error 8): start it with a line such as `#!/bin/sh`, or put its interpreter first";
    check(at(&["bin/none"]), &not_started("none", first_line)).await;
    let gone = Case { folder: folder.join("gone"), ..sh("true") };
    check(gone, &format!("the working directory `{shown}/gone` does not exist")).await;
}

#[tokio::test]
async fn notes_that_fit_into_no_environment_are_named() {
    let failure =
        Case { notes: vec![("all", Value::text("x".repeat(1 << 20)))], ..sh("true") }.failed().await;
    let hint = ": the notes or the metadata of the step are too large for an environment variable";
    assert!(failure.message.ends_with(hint), "{}", failure.message);
}

#[tokio::test]
async fn a_whole_tree_that_ignores_sigterm_is_killed() {
    let script = "trap '' TERM; sh -c 'sleep 1000 & echo $$ $!; wait' & wait";
    let mut running = Case { grace: Duration::from_millis(20), ..sh(script) }.start();
    let pids = running.line().await;
    assert!(pids.split(' ').all(is_running));
    running.abort.cancel();
    let outcome = patiently(running.outcome).await.expect("no panic");
    assert!(matches!(outcome, Outcome::Cancelled(_)), "{outcome:?}");
    assert!(!pids.split(' ').any(is_running), "{pids}");
}

#[tokio::test]
async fn nothing_is_left_even_after_a_success() {
    let outcome = sh("sleep 1000 >/dev/null 2>&1 & echo $!").outcome().await;
    let Outcome::Done(Value::Int(pid)) = outcome else { panic!("{outcome:?}") };
    assert!(!is_running(&pid.to_string()));
}

#[tokio::test]
async fn processes_of_a_crashed_owner_are_ended() {
    let folder = folder("a_task_of_a_crashed_owner");
    let children = Some(Arc::new(Children::open(&folder).expect("a folder of ours")));
    let mut running =
        Case { run: "crashed-task".into(), children, ..sh("echo $$ >&2; exec sleep 1000") }.start();
    let pid = running.line().await;
    let ended =
        tokio::task::spawn_blocking(move || end_orphans(&folder, |run| run.as_str() == "crashed-task"));
    assert_eq!(patiently(ended).await.expect("no panic").expect("they end"), 1);
    assert!(!is_running(&pid));
    assert!(matches!(patiently(running.outcome).await.expect("no panic"), Outcome::Failed(_)));
}
