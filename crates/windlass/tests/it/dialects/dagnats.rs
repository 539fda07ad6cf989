//! The runs that `fixtures/dagnats/cases/expected.json` describes. Where the reference program and its promise differ, what
//! Windlass does is said in its decisions D13 to D18 and D30 to D32.

use super::{Played, Worker, done, failed, play, script, workflow};
use serde_json::{Value as Json, json};
use windlass::report::Standing;
use windlass::{Clock, Engine, Patience, Value, Workflow};

async fn with_worker(file: &str, inputs: &Json, worker: &Worker) -> Played {
    play(Engine::in_memory().with_executor(worker.clone()), &workflow("dagnats", file), inputs).await
}

async fn with_script(file: &str, inputs: &Json, answers: &Json) -> Played {
    play(Engine::in_memory().with_script(script(answers)), &workflow("dagnats", file), inputs).await
}

#[tokio::test]
async fn v01_data_goes_from_step_to_step() {
    let worker = Worker::new(|seen, _| match &*seen.step {
        "load" => done(&json!({"kg": 9})),
        "weigh" => done(&json!({"w": 9})),
        "grade" => done(&json!({"g": "A"})),
        _ => done(&json!({"ok": true})),
    });
    let played = with_worker("v01_fan_out_fan_in.json", &json!({"bed": 4}), &worker).await;
    played.check("completed", &json!({"load": "completed", "weigh": "completed", "publish": "completed"}));
    assert_eq!(played.result["outputs"], json!({"ok": true}), "of the one last step");
    let expected = json!([
        ["load", {"bed": 4}],
        ["weigh", {"kg": 9}],
        ["grade", {"kg": 9}],
        ["publish", {"weigh": {"w": 9}, "grade": {"g": "A"}}],
    ]);
    assert_eq!(worker.calls(), expected);
    assert_eq!(played.step("publish")["input"], expected[3][1]);
    let text = serde_json::to_string(&played.engine.events(&played.id).expect("events")).expect("JSON");
    let together = text.find(r#""path":["weigh"]"#) < text.find(r#""event":"settled","path":["grade"]"#);
    assert!(together, "weigh and grade are dispatched together");
}

#[tokio::test]
async fn v02_each_step_has_the_retries_that_are_nearest() {
    let retriable = json!({"error": {"message": "again"}});
    let times = |count: usize, last: Json| -> Json {
        std::iter::repeat_n(retriable.clone(), count).chain([last]).collect()
    };
    let file = "v02_retry_resolution.json";
    let steps = json!({"pull": times(4, json!({"output": 1})), "convert": times(2, json!({"output": 2})), "store": [retriable]});
    let played = with_script(file, &Json::Null, &json!({"steps": steps})).await;
    played.check("failed", &json!({"pull": "completed", "convert": "completed", "store": "failed"}));
    assert_eq!(played.step("pull")["delays_seconds"], json!([0.1, 0.2, 0.35, 0.35]));
    assert_eq!(played.step("pull")["attempts"], 5);
    assert_eq!(played.step("convert")["delays_seconds"], json!([0.2, 0.4]));
    assert_eq!(played.step("convert")["attempts"], 3);
    assert_eq!(played.step("convert")["input"], 1);
    assert_eq!(played.step("store")["attempts"], 1);
    assert_eq!(played.result["error"]["step"], "store");
    let steps = json!({"pull": [{"output": 1}], "convert": [{"output": 2}], "store": [{"output": 3}]});
    with_script(file, &Json::Null, &json!({"steps": steps})).await.check("completed", &json!({}));
}

#[tokio::test]
async fn v03_retries_are_used_up() {
    let file = "v03_legacy_retries_exhausted.json";
    let ping = |error: Json| json!({"steps": {"ping": [{"error": error}], "note": [{"output": 1}]}});
    let played = with_script(file, &Json::Null, &ping(json!({"message": "dark"}))).await;
    played.check("failed", &json!({"ping": "failed", "note": "pending"}));
    assert_eq!(
        (&played.step("ping")["attempts"], &played.step("ping")["delays_seconds"]),
        (&json!(3), &json!([5, 5]))
    );
    assert_eq!(played.step("note")["attempts"], 0, "never dispatched");
    assert_eq!(played.result["error"]["message"], "dark");

    let played = with_script(file, &Json::Null, &ping(json!({"class": "non_retriable"}))).await;
    played.check("failed", &json!({"ping": "failed"}));
    assert_eq!(played.step("ping")["attempts"], 1);

    let played = with_script(file, &Json::Null, &ping(json!({"retry_after": "300ms"}))).await;
    assert_eq!(played.step("ping")["delays_seconds"], json!([0.3, 0.3]), "instead of 5 s");
    assert_eq!(played.step("ping")["attempts"], 3);
}

#[tokio::test]
async fn v05_another_step_takes_a_failure_over() {
    let file = "v05_on_failure_recovers.json";
    let worker = Worker::new(|seen, _| match &*seen.step {
        "fire" => failed("error", "too hot"),
        _ => done(&json!({})),
    });
    let played = with_worker(file, &Json::Null, &worker).await;
    let steps = json!({"fire": "recovered", "vent": "completed", "glaze": "skipped", "log": "completed"});
    played.check("completed", &steps);
    assert_eq!(played.step("fire")["attempts"], 2);
    assert_eq!(played.step("fire")["delays_seconds"], json!([0.05]));
    assert_eq!(played.step("vent")["input"], json!({"failed_step": "fire", "error": "too hot"}));

    let worker = Worker::new(|_, _| done(&json!({})));
    let played = with_worker(file, &Json::Null, &worker).await;
    played.check("completed", &json!({"fire": "completed", "glaze": "completed", "vent": "pending"}));

    // D30: as the reference, not as its documentation, which says failed.
    let worker = Worker::new(|seen, _| match &*seen.step {
        "fire" | "vent" => failed("error", "no"),
        _ => done(&json!({})),
    });
    let played = with_worker(file, &Json::Null, &worker).await;
    played.check("compensate_failed", &json!({"fire": "failed", "vent": "failed"}));
}

#[tokio::test]
async fn v06_a_step_that_takes_over_may_have_a_parent() {
    let file = "v06_on_failure_target_with_parent.json";
    let played = with_worker(file, &Json::Null, &Worker::new(|_, _| done(&json!({})))).await;
    played.check("completed", &json!({"sail": "completed", "radio": "pending"}));
    let worker = Worker::new(|seen, _| match &*seen.step {
        "sail" => failed("non_retriable", "storm"),
        _ => done(&json!({})),
    });
    let played = with_worker(file, &Json::Null, &worker).await;
    played.check("completed", &json!({"board": "completed", "sail": "recovered", "radio": "completed"}));
    assert_eq!(played.step("radio")["input"], json!({"failed_step": "sail", "error": "storm"}));
}

#[tokio::test]
async fn v08_an_agent_goes_round_until_it_is_done() {
    let file = "v08_agent_loop.json";
    let worker = Worker::new(|seen, count| match (&*seen.step, count) {
        ("draft", _) => done(&json!({"t": "x"})),
        ("polish", 0 | 1) => windlass::Outcome::Continue(Value::from(&json!({"t": format!("x{count}")}))),
        ("polish", _) => done(&json!({"t": "done"})),
        (_, _) => done(&json!("printed")),
    });
    let played = with_worker(file, &Json::Null, &worker).await;
    played.check("completed", &json!({"draft": "completed", "polish": "completed", "print": "completed"}));
    // D17: what a round continues with is the input of the next one.
    let expected = json!([
        ["draft", null],
        ["polish", {"t": "x"}],
        ["polish", {"t": "x0"}],
        ["polish", {"t": "x1"}],
        ["print", {"t": "done"}],
    ]);
    assert_eq!(worker.calls(), expected);
    let rounds: Vec<u32> = worker.seen().iter().filter_map(|seen| Some(seen.job.round?.number)).collect();
    assert_eq!(rounds, [0, 1, 2]);
    assert_eq!(played.starts("polish"), [0.0, 0.1, 0.2], "100 ms between two");

    let steps = json!({"draft": [{"output": 1}], "polish": [{"continue": 2}]});
    let played = with_script(file, &Json::Null, &json!({"steps": steps})).await;
    played.check("failed", &json!({"polish": "failed", "print": "pending"}));
    assert_eq!(played.starts("polish").len(), 4, "no retry after the last round");
    let message = played.result["error"]["message"].as_str().expect("a message");
    assert!(message.contains('4'), "{message}");
}

const SAGA: &str = r#"{"name": "saga", "version": "1", "steps": [
    {"id": "book", "task": "t.book", "timeout": "1m", "type": "normal", "compensate": "unbook"},
    {"id": "pay", "task": "t.pay", "timeout": "1m", "type": "normal", "depends_on": ["book"], "compensate": "refund"},
    {"id": "ship", "task": "t.ship", "timeout": "1m", "type": "normal", "depends_on": ["pay"]},
    {"id": "unbook", "task": "t.unbook", "timeout": "1m", "type": "normal"},
    {"id": "refund", "task": "t.refund", "timeout": "1m", "type": "normal"}
]}"#;

/// D15 and D31: strictly in reverse order of completion, and one that fails does not keep the rest from running.
#[tokio::test]
async fn what_was_done_is_undone_in_reverse() {
    let saga = Workflow::read("saga.json", SAGA.as_bytes().to_vec());
    let undone = async |bad: &'static [&'static str]| {
        let worker = Worker::new(move |seen, _| match bad.contains(&&*seen.step) {
            true => failed("non_retriable", "no"),
            false => done(&json!(seen.step)),
        });
        let played = play(Engine::in_memory().with_executor(worker.clone()), &saga, &Json::Null).await;
        let order: Vec<String> = worker.seen().iter().map(|seen| seen.step.clone()).collect();
        (played, order)
    };
    let (played, order) = undone(&["ship"]).await;
    played.check(
        "compensated",
        &json!({"book": "completed", "ship": "failed", "refund": "completed", "unbook": "completed"}),
    );
    assert_eq!(order, ["book", "pay", "ship", "refund", "unbook"]);
    let told = json!({"original_step": "pay", "original_output": "pay", "trigger_step": "ship", "trigger_error": "no"});
    assert_eq!(played.step("refund")["input"], told);
    let (played, order) = undone(&["ship", "refund"]).await;
    played.check("compensate_failed", &json!({"refund": "failed", "unbook": "completed"}));
    assert_eq!(order, ["book", "pay", "ship", "refund", "unbook"]);
    let (played, order) = undone(&[]).await;
    played.check("completed", &json!({"ship": "completed", "refund": "pending"}));
    assert_eq!(order, ["book", "pay", "ship"]);
}

/// A script can say what became of them; without one they have to be there.
#[tokio::test]
async fn v09_other_workflows_are_answered_for_by_a_script() {
    let file = "v09_sub_workflow_parent.json";
    let steps = json!({
        "sort": [{"output": {"n": 2}}],
        "parcel-round": [{"output": {"sign": "ok", "photo": "p.png"}, "takes": "3m"}],
        "notify": [{"output": {"child_run_id": "c"}}],
        "close": [{"output": "closed"}],
    });
    let played = with_script(file, &Json::Null, &json!({"steps": steps})).await;
    played.check("completed", &json!({"deliver": "completed", "notify": "completed", "close": "completed"}));
    assert_eq!(played.step("deliver")["input"], json!({"n": 2}));
    let expected = json!({"deliver": {"sign": "ok", "photo": "p.png"}, "notify": {"child_run_id": "c"}});
    assert_eq!(played.step("close")["input"], expected);

    let steps = json!({"sort": [{"output": 1}], "notify": [{"output": 1}]});
    let played = with_script(file, &Json::Null, &json!({"steps": steps})).await;
    played.check("failed", &json!({"deliver": "failed", "close": "pending"}));
    let error = &played.result["error"];
    assert_eq!((&error["code"], &error["step"]), (&json!("error"), &json!("deliver")));
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.starts_with("the workflow `parcel-round` cannot be called: there is none in "),
        "{message}"
    );
}

#[tokio::test]
async fn v10_several_last_steps_make_an_object() {
    let worker = Worker::new(|seen, _| match &*seen.step {
        "drive" => done(&json!(1)),
        "sign" => done(&json!("ok")),
        _ => done(&json!("p.png")),
    });
    let played = with_worker("v10_sub_workflow_child.json", &Json::Null, &worker).await;
    played.check("completed", &json!({}));
    assert_eq!(played.result["outputs"], json!({"sign": "ok", "photo": "p.png"}));
    assert_eq!(worker.calls(), json!([["drive", null], ["sign", 1], ["photo", 1]]));
}

#[tokio::test]
async fn v11_groups_limits_and_schemas() {
    let workflow = workflow("dagnats", "v11_groups_limits_schemas.json");
    let engine = Engine::in_memory();
    for bad in [json!({"tiles": "no"}), json!({})] {
        let start = engine.run(workflow.plan().expect("valid"), Value::from(&bad)).await;
        assert_eq!(start.expect_err("it breaks the schema").code(), "bad_parameter");
    }
    let worker = Worker::new(|seen, _| match &*seen.step {
        "join" => done(&json!({"url": "u"})),
        _ => done(&json!(1)),
    });
    let inputs = json!({"tiles": [1, 2], "title": "sky"});
    let played = play(Engine::in_memory().with_executor(worker.clone()), &workflow, &inputs).await;
    played.check("completed", &json!({"tile-a": "completed", "tile-d": "completed", "join": "completed"}));
    for seen in worker.seen().iter() {
        let windlass::Work::Task { group, .. } = &seen.job.work.work else { panic!("{seen:?}") };
        let expected = if seen.step == "join" { "cpu" } else { "gpu" };
        assert_eq!(group.as_deref(), Some(expected), "{}", seen.step);
    }
    assert_eq!(most_at_once(&played), 2);

    // D18: the output is held against its schema.
    let worker = Worker::new(|_, _| done(&json!(1)));
    let played = play(Engine::in_memory().with_executor(worker), &workflow, &inputs).await;
    played.check("failed", &json!({"join": "completed"}));
    assert_eq!(played.result["error"]["code"], "contract_violation");
}

/// The most attempts that were under way at once.
fn most_at_once(played: &Played) -> usize {
    let (mut most, mut under_way) = (0, 0usize);
    for event in played.engine.events(&played.id).expect("events") {
        match serde_json::to_value(&event).expect("JSON")["event"].as_str() {
            Some("scheduled") => under_way += 1,
            Some("settled") => under_way = under_way.saturating_sub(1),
            _ => {}
        }
        most = most.max(under_way);
    }
    most
}

fn greenhouse() -> Json {
    json!({
        "steps": {
            "scan": [{"output": [10, 20]}],
            "water.map.0": [{"output": "a"}],
            "water.map.1": [{"output": "b"}],
            "plan": [{"output": {"steps": [
                {"id": "d", "task": "green.dig"},
                {"id": "s", "task": "green.seed", "depends_on": ["d"]},
            ]}}],
            "green.dig": [{"output": "hole"}],
            "green.seed": [{"output": "sown"}],
            "reply": [{"output": {"status": 201}}],
            "tail": [{"output": "end"}],
        },
        "gates": {"chief": [{"action": "approve", "after": "1s"}]},
        "signals": [
            {"name": "weather", "value": {"zone": "z2"}, "at": "4s"},
            {"name": "weather", "value": {"zone": "z1", "mm": 3}, "at": "5s"},
        ],
    })
}

const GREENHOUSE: &str = "v12_head_step_types.json";

#[tokio::test]
async fn v12_every_type_of_step() {
    let played = with_script(GREENHOUSE, &json!({"zone": "z1"}), &greenhouse()).await;
    let all = ["scan", "water", "rest", "rain", "chief", "plan", "reply", "tail", "plan.d", "plan.s"];
    played.check("completed", &all.map(|step| (step, "completed")).into_iter().collect::<Json>());
    assert_eq!(played.step("water.map.0")["input"], 10);
    assert_eq!(played.step("water.map.1")["input"], 20);
    assert_eq!(played.step("water")["output"], json!(["a", "b"]));
    assert_eq!(
        (&played.step("rest")["duration_seconds"], &played.step("rest")["output"]),
        (&json!(2.0), &Json::Null)
    );
    assert_eq!(played.step("rain")["output"], json!({"zone": "z1", "mm": 3}), "not that of another zone");
    assert_eq!(played.step("rain")["duration_seconds"], json!(3.0), "5 s after the start of the run");
    assert_eq!(played.step("chief")["output"]["metadata"], json!({"bed": "7"}));
    let reply = &played.step("reply")["input"];
    assert_eq!((&reply["status"], &reply["headers"]), (&json!(201), &json!({"X-Bed": "7"})));
    assert_eq!(reply["body"], greenhouse()["steps"]["plan"][0]["output"]["steps"]);
    assert_eq!(played.step("plan.s")["input"], "hole");
}

#[tokio::test]
async fn v12_without_an_event_and_without_items() {
    let mut quiet = greenhouse();
    quiet["signals"] = json!([]);
    quiet["steps"]["scan"] = json!([{"output": []}]);
    let played = with_script(GREENHOUSE, &json!({"zone": "z1"}), &quiet).await;
    played.check("completed", &json!({"rain": "completed", "water": "completed"}));
    assert_eq!(played.step("water")["output"], json!([]), "the reference hangs");
    assert_eq!(played.step("rain")["output"], json!({"timeout": true}));
    assert_eq!(played.step("rain")["duration_seconds"], json!(60.0));
}

#[tokio::test]
async fn v12_a_no_and_no_answer_fail_the_run() {
    let mut rejected = greenhouse();
    rejected["gates"] = json!({"chief": [{"action": "reject", "reason": "frost"}]});
    let played = with_script(GREENHOUSE, &json!({"zone": "z1"}), &rejected).await;
    played.check("failed", &json!({"chief": "failed", "plan": "pending"}));
    assert_eq!(played.result["error"]["message"], "frost");

    let mut silent = greenhouse();
    silent["gates"] = json!({});
    let engine = Engine::in_memory().with_script(script(&silent));
    let played = play(engine, &workflow("dagnats", GREENHOUSE), &json!({"zone": "z1"})).await;
    assert_eq!(played.standing, Standing::Waiting, "nobody waits for people unless told so");
    assert_eq!(played.result["status"], "running");
    assert_eq!(played.result["waiting_on"][0]["step"], "chief");
    let resumed = played.engine.resume(&played.id, Value::Null, Clock::starting_now(), Patience::Everything);
    let standing = resumed.await.expect("goes on").outcome().await.expect("no trouble");
    assert_eq!(standing, Standing::Failed, "the hour is up");
    let result = windlass::report::result(&played.id, &played.engine.view(&played.id).expect("a run"));
    assert_eq!(result["error"]["code"], "timeout", "{result:#}");
    assert_eq!(result["steps"]["rain"]["output"]["mm"], 3, "no signal came twice");
}
