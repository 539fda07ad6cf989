//! Checks every operation and every command against the contract: schemas, roles, codes, both ways to call an operation, and
//! JSON on success and on refusal.

use crate::help;
use crate::scratch::Scratch;
use crate::support::{root, windlass_in};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use windlass_api::operations::operations;
use windlass_api::{Caller, Code, Context, Effect, Listener, Role, Row, Subject};
use windlass_dialects::DIALECTS;
use windlass_runtime::{Durability, Engine};

const RELEASE: &str = "workflow: { id: release, name: Release }\nstages: [{ id: sign-off, type: gate, gate: { kind: manual_approval, approvers: [ann] } }]\n";

const WORKFLOWS: &[(&str, &str)] = &[
    (
        "sample-finished",
        "workflow: { id: build, name: Build }\nstages: [{ id: say, type: shell, run: echo done }]\n",
    ),
    (
        "sample-failed",
        "workflow: { id: broken, name: Broken }\nstages: [{ id: say, type: shell, run: exit 3 }]\n",
    ),
    ("sample-waiting", RELEASE),
    ("sample-asking", RELEASE),
];

/// Commands that call no operation, and the reason.
const WITHOUT_OPERATION: &[(&str, &str)] = &[
    ("run", "it hands its plan to the owner, which is internal"),
    ("resume", "the same"),
    ("retry", "the same"),
    ("serve", "it is the owner"),
    ("init", "it only writes files"),
    ("completions", "it is about the shell"),
    ("specify workflow run", "the face of another program"),
    ("specify workflow resume", "the face of another program"),
    ("specify workflow status", "the face of another program"),
];

/// A data folder with the runs that the examples name.
pub struct Sample {
    pub scratch: Scratch,
    pub token_id: String,
}

impl Sample {
    pub fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        for (run, workflow) in WORKFLOWS {
            let file = format!("{run}.yaml");
            std::fs::write(scratch.path().join(&file), workflow).expect("a writable folder");
            let args = ["run", &file, "--run-id", run, "--data", "data", "--json=final"];
            let seen = windlass_in(scratch.path(), &args).env("PATH", "/usr/bin:/bin").see();
            assert!(seen.stdout.contains("\"type\":\"result\""), "{seen}");
        }
        let args = ["tokens", "create", "sample", "--role", "viewer", "--json", "--data", "data"];
        let token = windlass_in(scratch.path(), &args).see().json();
        Self { token_id: token["token_id"].as_str().expect("an id").to_owned(), scratch }
    }

    /// A fresh copy of the data folder.
    pub fn copy(&self, name: &str) -> std::path::PathBuf {
        let to = self.scratch.path().join(name);
        windlass_runtime::backup(&self.scratch.path().join("data"), &to).expect("a copy");
        to
    }

    /// An example with its files in the folder of this test.
    pub fn example(&self, row: &Row, name: &str) -> Json {
        let mut example = row.example.clone();
        if let Some(id) = example.get_mut("token_id") {
            *id = json!(self.token_id);
        }
        for member in ["folder", "to"] {
            if let Some(path) = example.get(member).and_then(Json::as_str).map(str::to_owned) {
                example[member] = json!(self.scratch.path().join(name).join(path));
            }
        }
        example
    }
}

fn check(row: &Row, holds: bool, problem: &str) -> Option<String> {
    (!holds).then(|| format!("{}: {problem}", row.about.name))
}

#[test]
fn every_operation_is_declared_completely() {
    let rows = operations();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.about.name).collect();
    assert_eq!(names.len(), rows.len(), "names are unique");
    let pages: BTreeSet<String> = windlass_api::operations::codes().into_iter().collect();
    let mut problems = Vec::new();
    for row in rows {
        let (noun, verb) = row.about.name.split_once('.').unwrap_or_default();
        let snake = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        problems.extend(check(row, snake(noun) && snake(verb), "the name is not `noun.verb`"));
        let summary = row.about.summary;
        let verb_first = summary.starts_with(|c: char| c.is_ascii_uppercase()) && !summary.ends_with('.');
        problems.extend(check(row, verb_first, "the summary is not a request"));
        problems.extend(check(row, row.check(&row.example).is_ok(), "the example does not fit the schema"));
        let mut strange = row.example.clone();
        strange["no_such_member"] = json!(1);
        let refused = row.check(&strange).map_err(|refusal| refusal.code);
        problems.extend(check(row, refused == Err(Code::UnknownMember), "an unknown member is accepted"));
        problems.extend(check(row, row.reply.as_value().is_object(), "the reply has no schema"));
        let declared = Code::ALL.iter().filter(|code| row.about.declares(**code));
        let without_page = declared.filter(|code| !pages.contains(&code.to_string()));
        problems.extend(without_page.map(|code| format!("{}: `{code}` has no page", row.about.name)));
        let changes = matches!(row.about.effect, Effect::Changes | Effect::Repairs);
        problems.extend(check(
            row,
            !changes || row.about.role != Role::Viewer,
            "a viewer may change something",
        ));
        let of_runs = matches!(row.about.subject, Subject::Run | Subject::RunAndWorkflow);
        let about_run = row.example.get("run_id").is_none() || of_runs;
        problems.extend(check(row, about_run, "it names a run and declares no codes of runs"));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_command_calls_an_operation_and_every_operation_has_a_command() {
    let commands: BTreeSet<String> = help::leaves().into_iter().map(|words| words.join(" ")).collect();
    let rows = operations();
    let called: BTreeSet<String> =
        rows.iter().flat_map(|row| row.about.cli).map(ToString::to_string).collect();
    let alone: BTreeSet<String> =
        WITHOUT_OPERATION.iter().map(|(command, _)| (*command).to_owned()).collect();
    let known: BTreeSet<String> = called.union(&alone).cloned().collect();
    let parents: BTreeSet<String> = help::parents().into_iter().map(|words| words.join(" ")).collect();
    let missing: Vec<&String> = commands.difference(&known).collect();
    assert!(missing.is_empty(), "these commands call no operation: {missing:?}");
    let gone: Vec<&String> =
        known.iter().filter(|command| !commands.contains(*command) && !parents.contains(*command)).collect();
    assert!(gone.is_empty(), "there are no such commands: {gone:?}");
}

/// `UPDATE_DOCS=1` writes the table.
#[test]
fn the_documents_list_every_operation() {
    const TITLE: &str = "| operation | what it does | role | commands |\n|---|---|---|---|\n";
    let file = root().join("docs/reference/json.md");
    let text = std::fs::read_to_string(&file).expect("the page");
    let (before, _) = text.split_once("## Operations\n").expect("its section");
    let (_, section) = text.split_at(before.len());
    let prose = section.split("| operation").next().unwrap_or_default().trim_end();
    let rows = operations();
    let line = |row: &Row| {
        let commands: Vec<String> = row.about.cli.iter().map(|name| format!("`{name}`")).collect();
        let (name, summary, role) = (row.about.name, row.about.summary, row.about.role);
        format!("| `{name}` | {summary} | {role} | {} |\n", commands.join(", "))
    };
    let table: String = rows.iter().map(line).collect();
    let expected = format!("{before}{prose}\n\n{TITLE}{table}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &expected).expect("the page can be written");
    }
    assert!(text == expected, "UPDATE_DOCS=1 writes the table of operations in docs/reference/json.md");
}

#[tokio::test]
async fn roles_are_checked_before_anything_else() {
    let scratch = Scratch::new("operation-roles");
    for row in operations() {
        for role in [Role::Viewer, Role::Operator, Role::Approver, Role::Author, Role::Worker] {
            if role.includes(row.about.role) {
                continue;
            }
            let caller = Caller { roles: [role].into(), ..Caller::user("eve") };
            let context = Context::reading(&scratch.path().join("none"), caller);
            let refused =
                row.call(context, json!({"no_such_member": 1})).await.map_err(|refusal| refusal.code);
            assert_eq!(refused, Err(Code::Forbidden), "{} as {role}", row.about.name);
        }
    }
}

/// Sends the same request to equal folders: in this process, and over the owner's socket.
#[tokio::test]
async fn operations_reply_by_their_schema_in_process_and_over_the_socket() {
    let sample = Sample::new("operations");
    for row in operations() {
        let name = row.about.name;
        let here = sample.copy(&format!("{name}-here"));
        let engine = Engine::open(&here, Durability::Disk, DIALECTS).expect("a writable folder");
        let context = Context::owning(engine, Caller::user("ann"));
        let records = || windlass_runtime::examine(&here, DIALECTS).expect("a data folder").records;
        let before = records();
        let in_process = row.call(context, sample.example(row, "here")).await;
        if matches!(row.about.effect, Effect::Pure | Effect::Reads) {
            assert_eq!(records(), before, "{name} only reads");
        }
        let there = sample.copy(&format!("{name}-there"));
        let engine = Engine::open(&there, Durability::Disk, DIALECTS).expect("a writable folder");
        let requests = [sample.example(row, "there"), json!({"no_such_member": 1})];
        let [over_socket, bad] = ask(engine, name, requests).await;
        match (&in_process, over_socket.get("reply"), over_socket.get("refused")) {
            (Ok(reply), Some(other), None) => {
                let validator = jsonschema::validator_for(row.reply.as_value()).expect("a schema");
                for reply in [reply, other] {
                    let errors: Vec<String> =
                        validator.iter_errors(reply).map(|error| error.to_string()).collect();
                    assert!(errors.is_empty(), "{name}: {errors:?}\n{reply:#}");
                }
                if row.about.effect == Effect::Pure || name == "runs.get" || name == "events.list" {
                    assert_eq!(reply, other, "{name}");
                }
            }
            (Err(refusal), None, Some(other)) => {
                assert!(row.about.declares(refusal.code), "{name}: {refusal:?}");
                assert_eq!(other["code"], json!(refusal.code), "{name}");
            }
            _ => panic!("{name}: {in_process:?} in process, {over_socket} over the socket"),
        }
        assert_eq!(bad["refused"]["code"], "unknown_member", "{name}: {bad}");
    }
}

/// A change is recorded once with who made it, and a call that is repeated with its key does nothing.
#[tokio::test]
async fn a_change_is_audited_and_a_repeated_key_changes_nothing() {
    let sample = Sample::new("operation-keys");
    for row in operations().iter().filter(|row| row.about.effect == Effect::Changes) {
        let name = row.about.name;
        let folder = sample.copy(&format!("{name}-key"));
        let engine = Engine::open(&folder, Durability::Disk, DIALECTS).expect("a writable folder");
        let call = |key: &str, request: Json| {
            let caller = Caller::user("ann").with_key(Some(key));
            row.call(Context::owning(engine.clone(), caller), request)
        };
        let example = sample.example(row, "key");
        let first = match call("k-1", example.clone()).await {
            Ok(first) => first,
            // There is no folder to import.
            Err(refusal) => {
                assert_eq!((name, refusal.code), ("runs.import", Code::BadExport));
                continue;
            }
        };
        let logged = || {
            let log = engine.log(None, 10).expect("readable").into_iter().map(|(_, entry)| entry);
            let entries = log.map(|entry| serde_json::from_slice::<Json>(&entry).expect("JSON"));
            let done = entries.filter(|entry| entry["outcome"] == "done" && entry["principal"] == "ann");
            done.map(|entry| (entry["operation"].clone(), entry["principal"].clone())).collect::<Vec<_>>()
        };
        if example.get("dry_run") == Some(&json!(true)) {
            assert_eq!(logged(), [], "{name}");
            continue;
        }
        assert_eq!(logged(), [(json!(name), json!("ann"))], "{name}");
        let again = call("k-1", example.clone()).await.expect("the same reply");
        let mut expected = first;
        if let Some(token) = expected.get_mut("token") {
            // The text of a token is shown once.
            *token = Json::Null;
        }
        assert_eq!(again, expected, "{name}");
        assert_eq!(logged().len(), 1, "{name}");
        let mut other = example;
        let Some(members) = other.as_object_mut() else { panic!("{name}: a request is an object") };
        members.insert("limit".into(), json!(1));
        members.insert("by".into(), json!("lee"));
        members.retain(|member, _| row.request.as_value().to_string().contains(&format!("\"{member}\"")));
        if other != sample.example(row, "key") {
            let refused = call("k-1", other).await.map_err(|refusal| refusal.code);
            assert_eq!(refused, Err(Code::KeyReused), "{name}");
        }
    }
}

/// Only an administrator acts under another name, and a text in a request is for authors.
#[tokio::test]
async fn a_caller_acts_under_its_own_name_and_brings_no_code() {
    let sample = Sample::new("operation-names");
    let folder = sample.copy("names");
    let engine = Engine::open(&folder, Durability::Disk, DIALECTS).expect("a writable folder");
    let rows = operations();
    let call = |name: &str, role: Role, request: Json| {
        let row = rows.iter().find(|row| row.about.name == name).expect("an operation");
        let caller = Caller { roles: [role].into(), ..Caller::user("bob") };
        row.call(Context::owning(engine.clone(), caller), request)
    };
    let decision = json!({"run_id": "sample-waiting", "by": "ann"});
    let refused = call("gates.approve", Role::Approver, decision).await.map_err(|refusal| refusal.code);
    assert_eq!(refused, Err(Code::Forbidden));
    for code in [json!({"source": RELEASE}), json!({"overrides": {"name": "o.yaml", "text": ""}})] {
        let mut request = json!({"workflow": "-"});
        for (member, value) in code.as_object().into_iter().flatten() {
            request[member] = value.clone();
        }
        let refused = call("runs.start", Role::Operator, request).await.map_err(|refusal| refusal.code);
        assert_eq!(refused, Err(Code::Forbidden));
    }
    // Each retry of a call is a run of its own.
    let retries = json!({"action": "retry", "run_ids": ["sample-failed", "sample-failed"]});
    let retried = call("runs.bulk", Role::Operator, retries).await.expect("a reply");
    assert_eq!((&retried["items"][0]["done"], &retried["items"][1]["done"]), (&json!(true), &json!(true)));
    // A call whose first run is refused still leaves its entry.
    let runs = json!({"action": "cancel", "run_ids": ["sample-finished", "sample-waiting"]});
    call("runs.bulk", Role::Operator, runs).await.expect("a reply");
    let log = engine.log(None, 1).expect("readable");
    let entry: Json = serde_json::from_slice(&log[0].1).expect("JSON");
    assert_eq!((&entry["operation"], &entry["outcome"]), (&json!("runs.bulk"), &json!("done")));
    assert_eq!(entry["objects"][1]["id"], "sample-waiting");
}

/// A client that continues after an event receives the rest, then the result, then the end of the stream.
#[tokio::test]
async fn events_are_streamed_over_the_socket_without_a_gap_or_a_repeat() {
    let sample = Sample::new("operation-stream");
    let folder = sample.copy("stream");
    let engine = Engine::open(&folder, Durability::Disk, DIALECTS).expect("a writable folder");
    let all = engine
        .events(&windlass_runtime::RunId::new("sample-finished").expect("an id"))
        .expect("its events")
        .len();
    let socket = engine.folder().join("owner.sock");
    let listening = tokio::spawn(Listener::bind(engine).expect("a socket").serve(|_| {}));
    for after in [0, 2, all] {
        let request = json!({"run_id": "sample-finished", "after": after});
        let call = json!({"call": "events.list", "request": request, "stream": true});
        let mut stream = UnixStream::connect(&socket).await.expect("the owner listens");
        stream.write_all(format!("{call}\n").as_bytes()).await.expect("it reads");
        let mut lines = BufReader::new(stream).lines();
        let mut objects = Vec::new();
        while let Some(line) = lines.next_line().await.expect("it answers") {
            objects.push(serde_json::from_str::<Json>(&line).expect("JSON"));
        }
        let numbers: Vec<u64> = objects.iter().filter_map(|object| object["seq"].as_u64()).collect();
        let events = objects.iter().filter(|object| object["type"] == "event");
        let numbers_of_events: Vec<u64> = events.filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(numbers_of_events, (after as u64 + 1..=all as u64).collect::<Vec<_>>(), "{numbers:?}");
        let last: Vec<&Json> = objects.iter().rev().take(2).collect();
        assert_eq!(last[0], &json!({"reply": {}}));
        assert_eq!((&last[1]["type"], &last[1]["status"]), (&json!("result"), &json!("success")));
    }
    listening.abort();
    let _ = listening.await;
}

#[tokio::test]
async fn operations_look_workflows_up_by_name() {
    let scratch = Scratch::new("operations-by-name");
    let here = scratch.path();
    let hello = WORKFLOWS[0].1;
    std::fs::write(here.join("hello.yaml"), hello).expect("a writable folder");
    std::fs::write(here.join("a.yaml"), WORKFLOWS[2].1).expect("a writable folder");
    std::fs::write(here.join("b.yaml"), WORKFLOWS[2].1).expect("a writable folder");
    let engine =
        Engine::open(&here.join(".windlass"), Durability::Disk, DIALECTS).expect("a writable folder");
    let operator = Caller { roles: [Role::Operator].into(), ..Caller::user("olga") };
    let context = Context::owning(engine, operator);
    let rows = operations();
    let call = async |name: &str, request: Json| {
        let row = rows.iter().find(|row| row.about.name == name).expect("an operation");
        row.call(context.clone(), request).await
    };
    for name in ["workflows.get", "workflows.validate", "workflows.plan", "workflows.graph"] {
        // Both the id and the name of the file are names.
        for workflow in ["build", "hello"] {
            let reply = call(name, json!({"workflow": workflow})).await;
            assert!(reply.is_ok(), "{name}: {reply:?}");
        }
        let refused = |reply: Result<Json, windlass_api::Refusal>| reply.map_err(|refusal| refusal.code);
        let several = call(name, json!({"workflow": "release"})).await;
        assert_eq!(refused(several), Err(Code::AmbiguousWorkflow), "{name}");
        let none = call(name, json!({"workflow": "nosuch"})).await;
        assert_eq!(refused(none), Err(Code::NoWorkflow), "{name}");
        assert_eq!(refused(call(name, json!({"workflow": "-"})).await), Err(Code::NoWorkflow), "{name}");
    }
    let page = call("workflows.list", json!({"limit": 2})).await.expect("a page");
    let rest = call("workflows.list", json!({"limit": 2, "cursor": page["next"]})).await.expect("a page");
    let files: Vec<&str> = [&page, &rest]
        .into_iter()
        .flat_map(|page| page["items"].as_array().into_iter().flatten())
        .filter_map(|item| item["file"].as_str()?.rsplit('/').next())
        .collect();
    assert_eq!((files, &rest["next"]), (vec!["hello.yaml", "a.yaml", "b.yaml"], &Json::Null));
    let run = call("runs.start", json!({"workflow": "build", "wait_seconds": 20})).await.expect("a run");
    assert_eq!(run["status"], "success", "{run:#}");
    // A text is code, so it needs another role than a file of the project.
    let text = call("runs.start", json!({"workflow": "-", "source": hello})).await;
    assert_eq!(text.map_err(|refusal| refusal.code), Err(Code::Forbidden));
}

/// Calls an operation twice over the socket of an owner that exists only for these calls.
async fn ask(engine: Arc<Engine>, name: &str, requests: [Json; 2]) -> [Json; 2] {
    let socket = engine.folder().join("owner.sock");
    let listening = tokio::spawn(Listener::bind(engine).expect("a socket").serve(|_| {}));
    let [first, second] = requests;
    let answers = [exchange(&socket, name, first).await, exchange(&socket, name, second).await];
    listening.abort();
    let _ = listening.await;
    answers
}

async fn exchange(socket: &Path, name: &str, request: Json) -> Json {
    let mut stream = UnixStream::connect(socket).await.expect("the owner listens");
    let line = json!({"call": name, "request": request, "user": "ann"}).to_string() + "\n";
    stream.write_all(line.as_bytes()).await.expect("it reads");
    let mut lines = BufReader::new(stream).lines();
    let hello = lines.next_line().await.expect("it answers").expect("a line");
    assert!(hello.contains("\"api\":1"), "{hello}");
    let answer = lines.next_line().await.expect("it answers").expect("a line");
    serde_json::from_str(&answer).expect("JSON")
}

/// Arguments that succeed, for each command.
const SUCCEEDING: &[(&str, &[&str])] = &[
    ("init", &["ci", "new"]),
    ("list", &[]),
    ("validate", &["sample-finished.yaml"]),
    ("fmt", &["--check", "sample-finished.yaml"]),
    ("plan", &["sample-finished.yaml"]),
    ("graph", &["sample-finished.yaml"]),
    ("convert", &["sample-finished.yaml", "--to", "json"]),
    ("eval", &["1"]),
    ("schema", &["swdl"]),
    ("test", &["sample-finished.yaml"]),
    ("run", &["sample-finished.yaml"]),
    ("resume", &["sample-waiting"]),
    ("retry", &["sample-failed", "--dry-run"]),
    ("wait", &["sample-finished"]),
    ("serve", &["--until-idle", "--data", "empty"]),
    ("runs", &[]),
    ("runs export", &["sample-finished", "exported"]),
    ("runs import", &["exported", "--data", "imported"]),
    ("show", &["sample-finished"]),
    ("logs", &["sample-finished"]),
    ("events", &["sample-finished"]),
    ("diff", &["sample-finished", "sample-failed"]),
    ("signal", &["sample-waiting", "go"]),
    ("pause", &["sample-waiting"]),
    ("reject", &["sample-asking", "--reason", "no", "--by", "ann"]),
    ("approve", &["sample-waiting", "--by", "ann"]),
    ("publish", &["news"]),
    ("cancel", &["--workflow", "release", "--yes"]),
    ("cancel", &["--workflow", "broken", "--yes"]),
    ("limits", &[]),
    ("budgets", &[]),
    ("budgets show", &["day"]),
    ("budgets set", &["day", "--usd", "5"]),
    ("budgets reset", &["day"]),
    ("triggers check", &["s.schedules.yaml"]),
    ("triggers next", &["s.schedules.yaml"]),
    ("triggers history", &[]),
    ("tokens create", &["dashboard", "--role", "viewer", "--expires", "30d"]),
    ("tokens list", &[]),
    ("tokens revoke", &["TOKEN_ID"]),
    ("audit", &[]),
    ("doctor", &[]),
    ("gc", &["--dry-run"]),
    ("backup", &["copy"]),
    ("explain", &["no_run"]),
    ("completions", &["bash"]),
];

#[test]
fn every_command_prints_json_on_success_and_on_bad_usage() {
    let sample = Sample::new("command-json");
    let folder = sample.scratch.path();
    let cases =
        "cases: [{name: it works, script: {steps: {say: [{output: {}}]}}, expect: {status: success}}]\n";
    std::fs::write(folder.join("sample-finished.test.yaml"), cases).expect("a writable folder");
    let schedules =
        "schedules:\n  - {id: nightly, workflow: build, trigger: {kind: cron, expression: '0 0 3 * * *'}}\n";
    std::fs::write(folder.join("s.schedules.yaml"), schedules).expect("a writable folder");
    let call = |words: &str, args: &[&str]| {
        let args = args.iter().map(|arg| if *arg == "TOKEN_ID" { sample.token_id.as_str() } else { arg });
        let words = words.split(' ').chain(args).chain(["--json"]);
        let call = windlass_in(folder, &words.collect::<Vec<_>>());
        call.env("WINDLASS_DATA", "data").env("PATH", "/usr/bin:/bin").see()
    };
    let is_json = |text: &str| {
        let lines = || text.lines().all(|line| serde_json::from_str::<Json>(line).is_ok());
        !text.is_empty() && (serde_json::from_str::<Json>(text).is_ok() || lines())
    };
    for (command, args) in SUCCEEDING {
        let seen = call(command, args);
        assert!(is_json(&seen.stdout), "{seen}");
        assert!(!seen.stdout.contains("\"type\":\"refused\"") && seen.status != 2, "{seen}");
    }
    for words in help::leaves().iter().filter(|words| words[0] != "specify") {
        let command = words.join(" ");
        assert!(SUCCEEDING.iter().any(|(known, _)| *known == command), "add `{command}` to the list");
        let seen = call(&command, &["--no-such-option"]);
        let refused: Json = serde_json::from_str(&seen.stdout).unwrap_or_default();
        assert_eq!((seen.status, &refused["type"]), (2, &json!("refused")), "{seen}");
        assert_eq!(refused["error"]["code"], "bad_request", "{seen}");
    }
}

#[test]
fn a_refusal_is_one_json_object() {
    let sample = Sample::new("command-refusals");
    let folder = sample.scratch.path();
    for (words, code) in [
        ("show no-such-run", "no_run"),
        ("wait no-such-run", "no_run"),
        ("logs no-such-run", "no_run"),
        ("logs sample-finished no-such-step", "no_step"),
        ("events no-such-run", "no_run"),
        ("diff sample-finished no-such-run", "no_run"),
        ("show sample-finished --event 999", "no_event"),
        ("resume sample-finished", "run_finished"),
        ("resume no-such-run", "no_run"),
        ("retry sample-waiting", "run_not_finished"),
        ("retry sample-finished", "nothing_to_retry"),
        ("cancel sample-finished", "run_finished"),
        ("pause sample-finished", "run_finished"),
        ("approve sample-finished", "run_finished"),
        ("approve sample-waiting no-such-gate", "no_gate"),
        ("approve --data empty", "no_run"),
        ("approve sample-waiting --choice never --by ann", "no_such_option"),
        ("signal sample-finished go", "run_finished"),
        ("signal sample-waiting go nonsense", "bad_parameter"),
        ("publish news nonsense", "bad_parameter"),
        ("run no-such-file.yaml", "unreadable"),
        ("run no-such-workflow", "no_workflow"),
        ("init no-such-template", "bad_request"),
        ("list --workflows no-such-folder", "unreadable"),
        ("run sample-finished.yaml --run-id sample-finished", "run_exists"),
        ("run sample-finished.yaml --run-id last", "bad_run_id"),
        ("run sample-finished.yaml --until no-such-step", "no_step"),
        ("cancel --unfinished", "bad_request"),
        ("gc --older-than soon", "bad_request"),
        ("budgets set no-such-budget --usd 1", "bad_budget"),
        ("runs import no-such-folder", "bad_export"),
        ("doctor --data no-such-folder", "no_run"),
        ("backup copy --data no-such-folder", "no_run"),
        ("explain no-such-code", "no_code"),
    ] {
        let args: Vec<&str> = words.split(' ').chain(["--json"]).collect();
        let seen = windlass_in(folder, &args).env("WINDLASS_DATA", "data").env("PATH", "/usr/bin:/bin").see();
        let refused: Json = serde_json::from_str(&seen.stdout).unwrap_or_default();
        let shown = (seen.status, refused["type"].as_str(), refused["error"]["code"].as_str());
        assert_eq!(shown, (2, Some("refused"), Some(code)), "{seen}");
        let members: Vec<&String> =
            refused["error"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let expected =
            ["code", "message", "help", "step", "field", "place", "diagnostics", "retry_after_seconds"];
        assert_eq!(members, expected, "{seen}");
    }
    assert!(root().join("docs/errors/no_run.md").exists());
}
