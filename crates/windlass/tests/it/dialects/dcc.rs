//! What the headers of the files in `fixtures/dcc/cases` expect, with the tools that they assume.

use super::{Played, Seen, Worker, cases, done, failed, play, script, workflow};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use windlass::{
    Clock, Context, Engine, Event, Executor, Job, Outcome, Patience, RunHandle, RunId, Update, Value, report,
};

/// The tools that all files assume, as far as they need no time.
fn tools() -> Worker {
    Worker::new(|seen, _| answer(seen))
}

fn answer(seen: &Seen) -> Outcome {
    let args = &seen.input;
    let word = |key: &str, default: &str| args[key].as_str().unwrap_or(default).to_owned();
    match seen.job.work.work.name() {
        Some("echo") => done(args),
        Some("fail") => failed(class_of(&word("error", "boom")), &word("error", "boom")),
        Some("flaky") => {
            let message = word("error", "transient glitch");
            let attempt = seen.job.key.attempt;
            match u64::from(attempt) <= args["fail_times"].as_u64().unwrap_or_default() {
                true => failed(class_of(&message), &message),
                false => done(&json!({"attempt": attempt})),
            }
        }
        Some("sleep") => done(&json!({"slept": args["ms"]})),
        other => panic!("there is no tool {other:?}"),
    }
}

/// As the reference puts the messages of tools into classes.
fn class_of(message: &str) -> &'static str {
    if message.contains("transient") { "transient" } else { "error" }
}

async fn run(file: &str, inputs: &Json) -> (Played, Worker) {
    let worker = tools();
    let engine = Engine::in_memory().with_executor(worker.clone());
    (play(engine, &workflow("dcc", file), inputs).await, worker)
}

#[tokio::test]
async fn c01_values_go_from_step_to_step() {
    let inputs = json!({"who": "Ada", "n": 3, "tags": ["x", "y"]});
    let (played, worker) = run("01_linear_templates.workflow.yaml", &inputs).await;
    played.check("completed", &json!({"first": "completed", "second": "completed", "third": "completed"}));
    let first = json!({"n": 3, "label": "hi Ada #3", "tags": ["x", "y"], "second_tag": "y", "keep": true});
    let second = json!({"n": 3, "text": "tags=[\"x\",\"y\"] gone=[]", "gone": null, "all": first});
    let expected =
        json!([["first", first], ["second", second], ["third", {"padded": 3, "plain": "no braces"}]]);
    assert_eq!(worker.calls(), expected);
    assert_eq!(played.step("second")["input"], second);
    assert_eq!(played.step("second")["output"], second);
}

#[tokio::test]
async fn c02_an_unknown_name_fails_the_step_and_is_not_tried_again() {
    let (played, worker) = run("02_unknown_root.workflow.yaml", &json!({})).await;
    played.check("failed", &json!({"ok": "completed", "bad": "failed", "after": "pending"}));
    assert_eq!(worker.calls(), json!([["ok", {"a": 1}]]));
    assert_eq!(played.result["error"]["code"], "expression_error");
    assert_eq!(played.step("bad")["attempts"], 0);
}

#[tokio::test]
async fn c03_delays_grow_and_are_bounded() {
    let (played, worker) = run("03_retry_linear.workflow.yaml", &json!({})).await;
    played.check("completed", &json!({"wobbly": "completed"}));
    assert_eq!(worker.seen().len(), 4);
    assert_eq!(played.step("wobbly")["delays_seconds"], json!([0.04, 0.08, 0.1]));
    assert_eq!(played.step("wobbly")["output"], json!({"attempt": 4}));
    assert_eq!(played.seconds(), 0.22);
}

#[tokio::test]
async fn c04_only_the_classes_that_are_named_are_tried_again() {
    let (played, worker) = run("04_retry_filter.workflow.yaml", &json!({})).await;
    played.check("failed", &json!({"once": "failed"}));
    assert_eq!(worker.seen().len(), 1);
    assert_eq!(played.step("once")["error"]["message"], "disk full");
}

#[tokio::test]
async fn c05_each_attempt_has_its_time() {
    let answers = json!({"steps": {"slow": [{"hang": "5s"}], "never": [{"output": 1}]}});
    let engine = Engine::in_memory().with_script(script(&answers));
    let played = play(engine, &workflow("dcc", "05_timeout.workflow.yaml"), &json!({})).await;
    played.check("failed", &json!({"slow": "failed", "never": "pending"}));
    assert_eq!(played.starts("slow"), [0.0, 1.01]);
    assert_eq!(played.result["error"]["code"], "timeout");
    assert_eq!(played.seconds(), 2.01);
}

#[tokio::test]
async fn c06_loops_in_loops() {
    let inputs = json!({"groups": [{"name": "a", "xs": [1, 2]}, {"name": "b", "xs": [3]}]});
    let (played, worker) = run("06_foreach_nested.workflow.yaml", &inputs).await;
    played.check("completed", &json!({"outer": "completed", "inner": "completed", "pick": "completed"}));
    let pick = |g: &str, x: u32| json!({"g": g, "x": x, "inner": x});
    let expected = json!([
        ["pick", pick("a", 1)],
        ["pick", pick("a", 2)],
        ["pick", pick("b", 3)],
        ["after", {"last": pick("b", 3)}],
    ]);
    assert_eq!(worker.calls(), expected, "one after the other, and the last one is what stays");
    let iterations = &played.step("outer")["output"]["iterations"];
    assert_eq!(iterations.as_array().map(Vec::len), Some(2));
    assert_eq!(iterations[1]["inner"]["iterations"], json!([{"pick": pick("b", 3)}]));
    assert_eq!(played.step("pick")["output"], pick("b", 3), "the last iteration");
}

/// D19 and D34: the reference ignores `on_any_fail`, and its run fails.
#[tokio::test]
async fn c08_branches_that_fail_are_told_apart() {
    let (played, worker) = run("08_parallel_partial_failure.workflow.yaml", &json!({})).await;
    played.check(
        "completed",
        &json!({"fan": "completed", "slow": "completed", "broken": "failed", "quick": "completed"}),
    );
    let results = json!(["completed", "failed", "completed"]);
    assert_eq!(played.step("fan")["output"], json!({"branch_results": results}));
    assert_eq!(played.step("after")["input"], json!({"r": results}));
    assert_eq!(played.result["has_failures"], true);
    assert_eq!(worker.seen().len(), 4);
}

#[tokio::test]
async fn c10_somebody_approves() {
    let answers = |gate: Json| json!({"steps": {"ship": [{"output": 1}]}, "gates": {"gate": gate}});
    let decided = async |gate: Json| {
        let engine = Engine::in_memory().with_script(script(&answers(gate)));
        play(engine, &workflow("dcc", "10_approve.workflow.yaml"), &json!({"what": "release 7"})).await
    };
    let played = decided(json!([{"action": "approve", "reason": "fine"}])).await;
    played.check("completed", &json!({"gate": "completed", "ship": "completed"}));
    assert_eq!(played.step("ship")["input"], json!({"ok": true, "why": "fine"}));
    let played = decided(json!([{"action": "approve"}])).await;
    assert_eq!(played.step("ship")["input"], json!({"ok": true, "why": null}));
    // The reference writes "approval denied: " before the reason; here that is what the class says.
    let played = decided(json!([{"action": "reject", "reason": "too early"}])).await;
    played.check("failed", &json!({"gate": "failed", "ship": "pending"}));
    let error = &played.step("gate")["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!("gate_rejected"), &json!("too early")));
    let played = decided(json!([])).await;
    played.check("failed", &json!({"gate": "failed"}));
    assert_eq!(played.seconds(), 2.0, "nobody answered");
    let asked = played.engine.events(&played.id).expect("events");
    let asked = serde_json::to_string(&asked).expect("JSON");
    assert!(asked.contains("Ship release 7?"), "{asked}");
}

/// Sleeps until it is told to stop.
struct Sleepers;

impl Executor for Sleepers {
    fn run(&self, job: Job, context: Context) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            match job.work.work.name() {
                Some("sleep") => {
                    context.abort.cancelled().await;
                    Outcome::Cancelled("told to stop".into())
                }
                _ => failed("error", "boom"),
            }
        })
    }
}

/// Reads what happens until all of these have happened, each told by its event and its step.
async fn until(run: &mut RunHandle, mut wanted: Vec<(&str, &str)>) {
    while !wanted.is_empty() {
        let update = run.events.recv().await.expect("it goes on");
        if let Update::Event { event, .. } = update {
            let json = serde_json::to_value::<&Event>(&event).expect("JSON");
            let path = json["path"].as_array().and_then(|path| path.last()).and_then(Json::as_str);
            wanted.retain(|(word, step)| json["event"] != *word || path != Some(step));
        }
    }
}

#[tokio::test]
async fn c14_a_cancel_reaches_everything() {
    let engine = Engine::in_memory().with_executor(Sleepers);
    let workflow = workflow("dcc", "14_cancel.workflow.yaml");
    let mut run =
        engine.run(workflow.plan().expect("valid"), Value::from(&json!({}))).await.expect("a start");
    let id = run.id.clone();
    until(&mut run, vec![("scheduled", "long_a"), ("scheduled", "long_b"), ("attempt_failed", "waiting")])
        .await;
    run.cancel("enough").await.expect("it is heard");
    run.outcome().await.expect("no trouble");
    let result = report::result(&id, &engine.view(&id).expect("a run"));
    assert_eq!(result["status"], "cancelled", "{result:#}");
    for step in ["long_a", "long_b", "waiting", "fan", "tail"] {
        assert_eq!(result["steps"][step]["status"], "cancelled", "{step} of {result:#}");
    }
    assert_eq!(result["steps"]["waiting"]["attempts"], 1, "no other attempt");
    assert_eq!(result["steps"]["tail"]["attempts"], 0);
}

/// The tools, and a pause that never ends in the second iteration.
struct Stuck {
    tools: Worker,
    pauses: AtomicUsize,
}

impl Executor for Stuck {
    fn run(&self, job: Job, context: Context) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        let stuck = &*job.step == "pause" && self.pauses.fetch_add(1, Ordering::SeqCst) == 1;
        match stuck {
            true => Box::pin(std::future::pending()),
            false => self.tools.run(job, context),
        }
    }
}

/// A process of its own, which ends without a word when this returns.
fn process<T>(life: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let left = runtime.block_on(life);
    runtime.shutdown_background();
    left
}

fn first_life(folder: &Path, tools: &Worker) -> RunId {
    process(async {
        let stuck = Stuck { tools: tools.clone(), pauses: AtomicUsize::new(0) };
        let engine = Engine::open(folder).expect("a folder").with_executor(stuck);
        let workflow = workflow("dcc", "15_resume_loop.workflow.yaml");
        let inputs = Value::from(&json!({"xs": [1, 2, 3]}));
        let mut run = engine.run(workflow.plan().expect("valid"), inputs).await.expect("a start");
        until(&mut run, vec![("scheduled", "pause")]).await;
        until(&mut run, vec![("scheduled", "pause")]).await;
        run.id.clone()
    })
}

/// The reference marks no item after the second: it takes `mark` for done in the whole loop.
#[test]
fn c15_a_loop_goes_on_where_it_was() {
    assert!(cases("dcc").join("15_resume_loop.workflow.yaml").exists());
    let folder = std::env::temp_dir().join(format!("windlass-resume-loop-{}", std::process::id()));
    let before = tools();
    let id = first_life(&folder, &before);
    assert_eq!(before.calls().as_array().map(Vec::len), Some(4), "head, mark, pause, mark");
    let after = tools();
    let result = process(async {
        let engine = Arc::new(open_again(&folder).with_executor(after.clone()));
        let resumed =
            engine.resume(&id, Value::Null, Clock::Real, Patience::Everything).await.expect("goes on");
        resumed.outcome().await.expect("no trouble");
        report::result(&id, &engine.view(&id).expect("a run"))
    });
    assert_eq!(result["status"], "completed", "{result:#}");
    let expected = json!([
        ["pause", {"ms": 400}],
        ["mark", {"x": 3}],
        ["pause", {"ms": 400}],
        ["tail", {"last": 3}],
    ]);
    assert_eq!(after.calls(), expected, "what was done stays done");
    std::fs::remove_dir_all(folder).expect("ours");
}

/// The folder once the process before has really let go of it.
fn open_again(folder: &Path) -> Engine {
    loop {
        match Engine::open(folder) {
            Ok(engine) => return engine,
            Err(error) => assert_eq!(error.code(), "owned", "{error}"),
        }
    }
}

/// D20: a step id in front is taken for that step's output, with a warning. The reference finds nothing there.
#[tokio::test]
async fn c16_paths_as_the_guide_writes_them() {
    let (played, worker) = run("16_docs_style_paths.workflow.yaml", &json!({})).await;
    played.check("completed", &json!({"lost": "completed", "lost2": "completed", "good": "completed"}));
    let expected = json!([
        ["list", {"files": ["f1"], "passed": true}],
        ["lost", {"f": "f1"}],
        ["lost2", {"v": "then"}],
        ["good", {"f": "f1"}],
    ]);
    assert_eq!(worker.calls(), expected);
}
