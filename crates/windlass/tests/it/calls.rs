//! Workflows that call others: runs of their own, with an id derived from the caller, found by name next to its file.

use super::played::{Worker, cases, done, failed, play};
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use windlass::RunStatus;
use windlass::{
    Choice, Clock, Engine, Environment, GateDecision, Input, Patience, RunId, Script, Since, Value, Workflow,
};

/// A folder with workflows in it.
struct Shelf(PathBuf);

impl Shelf {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("calls-{name}"));
        // Left by an earlier test run.
        let _ = std::fs::remove_dir_all(&folder);
        for (file, text) in files {
            let file = folder.join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder of our own");
            std::fs::write(file, text).expect("a folder of our own");
        }
        Self(folder)
    }

    fn load(&self, file: &str) -> Workflow {
        Workflow::load(self.0.join(file)).expect("it was just written")
    }

    fn around(&self, engine: Engine) -> Engine {
        let variables = std::env::vars_os().collect();
        engine.with_environment(Environment { variables, directory: self.0.clone() })
    }

    fn engine(&self) -> Engine {
        self.around(Engine::in_memory())
    }
}

fn result(engine: &Engine, id: &RunId) -> Json {
    serde_json::to_value(engine.result(id).expect("a run")).expect("JSON")
}

fn child(result: &Json, step: &str) -> RunId {
    let id = result["steps"][step]["child_run_id"].as_str();
    RunId::new(id.unwrap_or_else(|| panic!("no run in {result:#}"))).expect("an id")
}

const MAIL: &str = r#"{"name": "parcel-mail", "version": "1", "steps": [{"id": "mail", "task": "mail"}]}"#;

/// v09 calls v10, and a third workflow that it does not wait for.
#[tokio::test]
async fn one_call_waits_and_one_only_starts_a_run() {
    let case = |file: &str| std::fs::read_to_string(cases("dagnats").join(file)).expect("a case");
    let (parent, round) = (case("v09_sub_workflow_parent.json"), case("v10_sub_workflow_child.json"));
    let files = [("day.json", &*parent), ("anything.json", &*round), ("parcel-mail.json", MAIL)];
    let shelf = Shelf::new("v09", &files);
    let worker = Worker::new(|seen, _| match &*seen.step {
        "sort" => done(&json!({"n": 2})),
        "drive" => done(&seen.input),
        step => done(&json!(step)),
    });
    let engine = shelf.engine().with_executor(worker.clone());
    let played = play(engine, &shelf.load("day.json"), &Json::Null).await;
    played.check("completed", &json!({"deliver": "completed", "notify": "completed", "close": "completed"}));
    assert_eq!(played.step("deliver")["output"], json!({"sign": "sign", "photo": "photo"}));
    let round = result(&played.engine, &child(&played.result, "deliver"));
    assert_eq!((&round["dialect_status"], &round["workflow"]), (&json!("completed"), &json!("parcel-round")));
    assert_eq!(round["inputs"], json!({"n": 2}));
    let mail = &played.step("notify")["output"]["child_run_id"];
    assert_eq!(*mail, played.step("notify")["child_run_id"]);
    assert_eq!(result(&played.engine, &child(&played.result, "notify"))["workflow"], "parcel-mail");
}

const OUTER: &str = "
workflow: { id: outer, name: Outer }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: before, type: task, task: before }
  - { id: call, type: workflow, workflow: inner, depends_on: [before] }
  - { id: after, type: task, task: after, depends_on: [call] }
";

const INNER: &str = "
workflow: { id: inner, name: Inner }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: first, type: task, task: first }
  - { id: ask, type: gate, gate: {}, depends_on: [first] }
  - { id: last, type: task, task: last, depends_on: [ask] }
";

fn steps(worker: &Worker) -> Vec<String> {
    worker.seen().iter().map(|seen| seen.step.clone()).collect()
}

/// A caller becomes idle with the run that it called, and continues with it; nothing runs twice.
#[tokio::test]
async fn a_run_that_waits_for_people_makes_its_caller_idle() {
    let shelf = Shelf::new("rest", &[("outer.yaml", OUTER), ("inner.yaml", INNER)]);
    let worker = Worker::new(|_, _| done(&json!(1)));
    let engine = shelf.engine().with_executor(worker.clone());
    let played = play(engine, &shelf.load("outer.yaml"), &json!({})).await;
    assert_eq!(played.status, RunStatus::Waiting, "{:#}", played.result);
    let inner = child(&played.result, "call");
    let waits = &played.result["waiting_on"][0];
    assert_eq!((&waits["step"], &waits["kind"]), (&json!("call"), &json!("run")));
    assert_eq!(waits["child_run_id"], json!(inner));
    let engine = &played.engine;
    let run = engine
        .resume(&inner, Value::Null, Clock::starting_now(), Patience::Everything)
        .await
        .expect("resumed");
    let view = engine.view(&inner).expect("a run");
    let (path, _) = view.steps().nth(1).expect("the gate");
    let decision =
        GateDecision { choice: Choice::Approve, by: "ann".into(), reason: None, form: Value::Null };
    run.tell(Input::Decide { id: "d".into(), path: path.clone(), decision }).await.expect("accepted");
    assert_eq!(run.outcome().await.expect("no trouble"), RunStatus::Success);
    // The caller continues by itself, because it was started in this process.
    let run = engine.follow(&played.id, Since::Now).await.expect("a run");
    assert_eq!(run.outcome().await.expect("no trouble"), RunStatus::Success);
    assert_eq!(steps(&worker), ["before", "first", "last", "after"]);
}

const PLAIN_INNER: &str = "
workflow: { id: inner, name: Inner }
error_policy: { default_retry: { max_attempts: 1 } }
stages:
  - { id: first, type: task, task: first }
  - { id: last, type: task, task: last, depends_on: [first] }
";

/// Resuming a run that failed because of a called run continues both.
#[tokio::test]
async fn a_failed_call_continues_where_it_was() {
    let shelf = Shelf::new("fails", &[("outer.yaml", OUTER), ("inner.yaml", PLAIN_INNER)]);
    let worker = Worker::new(|seen, count| match &*seen.step {
        "last" if count == 0 => failed("gone", "the disk is gone"),
        _ => done(&json!(1)),
    });
    let engine = shelf.engine().with_executor(worker.clone());
    let played = play(engine, &shelf.load("outer.yaml"), &json!({})).await;
    played.check("failed", &json!({"call": "failed", "after": "cancelled"}));
    let inner = child(&played.result, "call");
    let error = &played.step("call")["error"];
    assert_eq!(error["code"], "gone");
    assert_eq!(error["message"], format!("the run {inner} of `inner` failed: the disk is gone"));
    let engine = &played.engine;
    let run =
        engine.resume(&played.id, Value::Null, Clock::starting_now(), Patience::Work).await.expect("resumed");
    assert_eq!(run.outcome().await.expect("no trouble"), RunStatus::Success);
    assert_eq!(steps(&worker), ["before", "first", "last", "last", "after"]);
    assert_eq!(child(&result(engine, &played.id), "call"), inner);
}

/// Canceling a run also cancels the run that it waits for.
#[tokio::test]
async fn canceling_a_run_cancels_the_run_it_calls() {
    let shelf = Shelf::new("cancel", &[("outer.yaml", OUTER), ("inner.yaml", INNER)]);
    let engine = shelf.engine().with_executor(Worker::new(|_, _| done(&json!(1))));
    let played = play(engine, &shelf.load("outer.yaml"), &json!({})).await;
    let inner = child(&played.result, "call");
    let engine = &played.engine;
    let run =
        engine.resume(&played.id, Value::Null, Clock::Real, Patience::Everything).await.expect("resumed");
    run.cancel("enough").await.expect("canceled");
    assert_eq!(run.outcome().await.expect("no trouble"), RunStatus::Cancelled);
    assert_eq!(result(engine, &inner)["dialect_status"], "cancelled");
}

/// A workflow that cannot be called fails the step with the reason, and starts nothing.
#[tokio::test]
async fn a_failed_call_gives_the_reason() {
    let two = INNER.replace("id: inner, name", "id: inner, version: 2.0.0, name");
    let check = async |name: &str, files: &[(&str, &str)], code: &str, message: &str| {
        let shelf = Shelf::new(name, files);
        let engine = shelf.engine().with_executor(Worker::new(|_, _| done(&json!(1))));
        let played = play(engine, &shelf.load("outer.yaml"), &json!({})).await;
        played.check("failed", &json!({"call": "failed"}));
        let error = &played.step("call")["error"];
        assert_eq!(error["code"], code, "{error}");
        let expected = message.replace("FOLDER", &shelf.0.display().to_string());
        assert_eq!(error["message"], expected);
    };
    let none = "the workflow `inner` cannot be called: there is none in FOLDER: put its file there, or name its path";
    check("none", &[("outer.yaml", OUTER)], "not_runnable", none).await;
    let several = "the workflow `inner` cannot be called: it is in FOLDER/a.yaml and in FOLDER/b.yaml: keep one of them, or name its path";
    check("two", &[("outer.yaml", OUTER), ("a.yaml", INNER), ("b.yaml", &two)], "not_runnable", several)
        .await;
    let bad = "workflow: { id: inner, name: Inner }\nstages: []\n";
    let message = "the workflow `inner` cannot be called: FOLDER/inner.yaml cannot be used: invalid workflow: this workflow has no stages";
    check("bad", &[("outer.yaml", OUTER), ("inner.yaml", bad)], "not_runnable", message).await;
    let needy =
        format!("{PLAIN_INNER}config: {{ parameters: {{ n: {{ type: integer, required: true }} }} }}\n");
    let message = "the workflow `inner` refuses its input: missing required parameter `n`";
    check("needy", &[("outer.yaml", OUTER), ("inner.yaml", &needy)], "contract_violation", message).await;
    let circle = PLAIN_INNER.replace("type: task, task: last", "type: workflow, workflow: outer");
    let shelf = Shelf::new("circle", &[("outer.yaml", OUTER), ("inner.yaml", &circle)]);
    let engine = shelf.engine().with_executor(Worker::new(|_, _| done(&json!(1))));
    let played = play(engine, &shelf.load("outer.yaml"), &json!({})).await;
    let error = &played.step("call")["error"];
    assert_eq!(error["code"], "not_runnable", "{error}");
    assert!(
        error["message"].as_str().is_some_and(|message| message.contains("`outer` calls itself")),
        "{error}"
    );
}

/// All runs of a tree draw on the budget of the root run.
#[tokio::test]
async fn a_tree_of_runs_has_one_budget() {
    let outer = OUTER.replace("stages:", "config: { budget: { calls: 3 } }\nstages:");
    let shelf = Shelf::new("budget", &[("outer.yaml", &outer), ("inner.yaml", PLAIN_INNER)]);
    let steps = json!({"before": [{"output": 1}], "first": [{"output": 1}], "last": [{"output": 1}], "after": [{"output": 1}]});
    let script = Script::parse(&Value::from(&json!({"steps": steps}))).expect("a script");
    let played = play(shelf.engine().with_script(script), &shelf.load("outer.yaml"), &json!({})).await;
    played.check("failed", &json!({"before": "success", "call": "success", "after": "failed"}));
    assert_eq!(played.step("after")["error"]["code"], "budget_exceeded");
}
