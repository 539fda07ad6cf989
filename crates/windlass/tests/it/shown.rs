//! How the native dialect shows steps with more than one instance, and how a mock script answers for each of them.

use serde_json::{Value as Json, json};
use windlass::RunStatus;
use windlass::{Clock, Engine, Patience, RunId, Script, Update, Value, Workflow};

struct Shown {
    result: Json,
    status: RunStatus,
    notices: Vec<String>,
}

impl Shown {
    fn check(&self, expected: &Json) {
        for (id, (status, output)) in
            expected.as_object().expect("steps").iter().map(|(id, step)| (id, (&step[0], &step[1])))
        {
            let step = &self.result["steps"][id];
            assert_eq!(
                (&step["dialect_status"], &step["output"]),
                (status, output),
                "{id} of {:#}",
                self.result
            );
        }
    }
}

/// Executes a workflow with a mock script and a clock that jumps.
async fn play(stages: &str, script: &Json) -> Shown {
    let text = format!("workflow: {{id: shown, name: Shown}}\nconfig: {{timeout: 3d}}\n{stages}");
    let workflow = Workflow::read("shown.yaml", text.into_bytes());
    let plan = workflow.plan().unwrap_or_else(|invalid| panic!("{invalid}: {:?}", workflow.validate()));
    let script = Script::parse(&Value::from(script)).expect("a good script");
    let engine = Engine::in_memory().with_script(script);
    let inputs = workflow.inputs([]).expect("no inputs");
    let mut run =
        engine.run_with(plan, inputs, Clock::starting_now(), Patience::Work).await.expect("a start");
    let (id, mut updates) = (run.id.clone(), std::mem::take(&mut run.events));
    let status = run.outcome().await.expect("no trouble");
    let mut notices = Vec::new();
    while let Some(update) = updates.try_recv() {
        if let Update::Notice(notice) = update {
            notices.push(notice);
        }
    }
    Shown { result: result(&engine, &id), status, notices }
}

fn result(engine: &Engine, id: &RunId) -> Json {
    serde_json::to_value(engine.result(id).expect("a run")).expect("JSON")
}

#[tokio::test]
async fn items_and_rounds_have_numbers() {
    let stages = r#"
stages:
  - id: each
    type: fan_out
    fan_out: {source: [a, b], stage_template: {type: task, task: one, input: "${{ item }}"}}
  - id: every
    type: fan_out
    fan_out: {source: [1, 2], stages: [{id: left, type: task, task: left}, {id: right, type: task, task: right, depends_on: [left]}]}
  - id: rounds
    type: loop
    loop: {until: "index == 1", max: 5, stages: [{id: again, type: task, task: again}]}
"#;
    let script = json!({"steps": {
        "each[1]": [{"output": "second"}], "each": [{"output": "any"}],
        "left": [{"output": 1}], "right[1]": [{"error": {"class": "auth_failure", "message": "no"}}], "right": [{"output": 2}],
        "again[0]": [{"output": "x"}], "again": [{"output": "y"}],
    }});
    let shown = play(stages, &script).await;
    shown.check(&json!({
        "each": ["success", ["any", "second"]], "each[0]": ["success", "any"], "each[1]": ["success", "second"],
        "left": ["success", 1], "left[0]": ["success", 1], "right": ["failed", null], "right[0]": ["success", 2],
        "right[1]": ["failed", null], "every": ["failed", null],
        "rounds": ["success", {"iterations": 2, "exhausted": false}],
        "again": ["success", "y"], "again[0]": ["success", "x"], "again[1]": ["success", "y"],
    }));
    assert_eq!(shown.result["steps"]["each[1]"]["input"], "b");
    assert_eq!(shown.result["error"]["step"], "right[1]");
    let order: Vec<&str> =
        shown.result["steps"].as_object().expect("steps").keys().map(String::as_str).collect();
    assert_eq!(order[..5], ["each", "each[0]", "each[1]", "every", "left"]);
}

#[tokio::test]
async fn undo_and_finally_steps_are_shown_next_to_their_step() {
    let stages = r#"
error_policy: {on_stage_failure: rollback, default_retry: {max_attempts: 1}}
stages:
  - id: charge
    type: task
    task: charge
    error_policy: {retry: {max_attempts: 2, initial_interval: 1s}}
    compensate: {type: task, task: refund}
    finally: {type: task, task: log}
  - {id: ship, type: task, task: ship, depends_on: [charge], error_policy: {on_failure: {goto: rescue}}}
  - {id: rescue, type: task, task: rescue}
  - {id: bill, type: task, task: bill, depends_on: [charge]}
  - {id: spare, type: task, task: spare, error_policy: {on_failure: {goto: unused}}}
  - {id: unused, type: task, task: unused}
"#;
    let failure = json!([{"error": {"class": "error", "message": "no"}}]);
    let script = json!({"steps": {
        "charge": [{"error": {"class": "transient"}}, {"output": 7}], "refund": [{"output": "back"}], "log": [{"output": "logged"}],
        "ship": failure, "rescue": [{"output": "saved"}], "bill": failure, "spare": [{"output": 1}],
    }});
    let shown = play(stages, &script).await;
    shown.check(&json!({
        "charge": ["success", 7], "charge.compensate": ["success", "back"], "charge.finally": ["success", "logged"],
        "ship": ["failed", null], "rescue": ["success", "saved"], "bill": ["failed", null], "unused": ["skipped", null],
    }));
    assert_eq!((&shown.result["status"], shown.status), (&json!("failed"), RunStatus::Failed));
    assert_eq!(shown.result["steps"]["charge"]["attempts"], 2, "of the step inside its guard");
    assert_eq!(shown.result["steps"]["charge"]["delays_seconds"], json!([1]));
}

#[tokio::test]
async fn a_gate_sends_back_and_the_script_continues() {
    let stages = r#"
stages:
  - {id: draft, type: task, task: write}
  - id: review
    depends_on: [draft]
    type: gate
    gate: {options: [approve, with changes, reject], on_reject: {back_to: draft, max: 2}}
  - {id: publish, type: assign, depends_on: [review], set: {text: "${{ stages.draft.outputs.text }}", how: "${{ stages.review.outputs.choice }}"}}
"#;
    let script = json!({
        "steps": {"draft": [{"outputs": {"text": "first"}}, {"outputs": {"text": "second"}}]},
        "gates": {"review": [{"action": "reject", "after": "1h"}, {"choice": "never"}, {"choice": "With Changes"}]},
    });
    let shown = play(stages, &script).await;
    shown.check(&json!({"draft": ["success", {"text": "second"}], "publish": ["success", {"text": "second", "how": "with changes"}]}));
    let steps = shown.result["steps"].as_object().expect("steps");
    assert_eq!(steps.len(), 3, "the passes are one step: {:?}", steps.keys());
    assert_eq!(shown.notices.len(), 1, "{:?}", shown.notices);
    assert!(shown.notices[0].contains("`never`"), "{:?}", shown.notices);
}

#[tokio::test]
async fn a_gate_that_asks_again_takes_the_next_decision() {
    let stages = "stages: [{id: ask, type: gate, gate: {on_reject: retry}}]\n";
    let no = json!({"action": "reject"});
    let shown = play(stages, &json!({"gates": {"ask": [no, no, {"action": "approve", "by": "dana"}]}})).await;
    assert_eq!(shown.result["steps"]["ask"]["output"]["by"], "dana", "{:#}", shown.result);
    let shown = play(stages, &json!({"gates": {"ask": [no, no]}})).await;
    assert_eq!(shown.status, RunStatus::Waiting, "the decisions are used up");
}

#[tokio::test]
async fn virtual_time_skips_waits_and_signals_arrive_in_time() {
    let stages = r#"
stages:
  - {id: nap, type: wait, wait: {for: 3h}}
  - {id: paid, type: wait, wait: {signal: paid, match: {order: 7}}, depends_on: [nap]}
  - {id: late, type: wait, wait: {signal: never}, depends_on: [paid]}
"#;
    let signals = json!([
        {"name": "paid", "value": {"order": 7, "n": 1}, "at": "1h"},
        {"name": "paid", "value": {"order": 8}, "at": "2h"},
    ]);
    let shown = play(stages, &json!({"signals": signals})).await;
    shown.check(&json!({"paid": ["success", {"value": {"order": 7, "n": 1}}], "late": ["waiting", null]}));
    assert_eq!(shown.result["steps"]["nap"]["duration_seconds"], json!(10_800));
    assert_eq!(shown.status, RunStatus::Waiting);
    let wait = &shown.result["waiting_on"][0];
    assert_eq!(
        (&wait["step"], &wait["kind"], &wait["message"]),
        (&json!("late"), &json!("signal"), &json!("never"))
    );
}

#[tokio::test]
async fn skipped_steps_give_the_reason() {
    let stages = r#"
stages:
  - {id: nothing, type: assign, set: {n: 0}}
  - id: pick
    type: branch
    depends_on: [nothing]
    branch:
      if: "stages.nothing.outputs.n == 0"
      then: [{id: taken, type: assign, set: {x: 1}}]
      else: [{id: other, type: assign, set: {x: 2}}]
  - id: off
    type: block
    condition: "stages.nothing.outputs.n == 1"
    depends_on: [nothing]
    stages: [{id: inner, type: assign, set: {x: 3}}]
"#;
    let shown = play(stages, &json!({})).await;
    shown.check(
        &json!({"taken": ["success", {"x": 1}], "other": ["skipped", null], "inner": ["skipped", null]}),
    );
    let because = |id: &str| shown.result["steps"][id]["skipped_because"].clone();
    assert_eq!((because("other"), because("inner")), (json!("branch_not_taken"), json!("condition_false")));
}
