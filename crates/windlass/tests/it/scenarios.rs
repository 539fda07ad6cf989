//! The run scenarios of the house dialect: scripted agents, a clock that jumps, and what must come of it.

use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use windlass::report::Standing;
use windlass::{Clock, Engine, Patience, RunId, Script, Update, Value, Workflow, report};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/swdl/cases")
}

fn cases() -> Vec<Json> {
    let text = std::fs::read(folder().join("expected.json")).expect("the cases");
    let json: Json = serde_json::from_slice(&text).expect("JSON");
    json["cases"].as_array().expect("cases").clone()
}

/// The file of a case, with the edits of a scenario made in its text.
fn workflow(case: &Json, scenario: &Json) -> Workflow {
    let name = case["file"].as_str().expect("a file");
    let mut text = std::fs::read_to_string(folder().join(name)).expect("a file");
    for (field, value) in scenario["edit"].as_object().into_iter().flatten() {
        let key = field.rsplit('.').next().expect("a key");
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{key}:")))
            .expect("the key")
            .to_owned();
        let indent = line.len() - line.trim_start().len();
        text = text.replace(&line, &format!("{:indent$}{key}: {}", "", value.as_str().expect("text")));
    }
    Workflow::read(name, text.into_bytes())
}

fn script(scenario: &Json, with_gates: bool) -> Script {
    let mut json = json!({"agents": scenario.get("agents").cloned().unwrap_or(json!({}))});
    if with_gates && let Some(gates) = scenario.get("gates") {
        json["gates"] = gates.clone();
    }
    Script::parse(&Value::from(&json)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// What one scenario gave: the result object, the ids of dispatched stages in order, and what was refused on the way.
struct Seen {
    result: Json,
    dispatched: Vec<String>,
    notices: Vec<String>,
    standing: Standing,
}

async fn play(case: &Json, scenario: &Json) -> Result<Seen, Vec<String>> {
    let workflow = workflow(case, scenario);
    let given = scenario["params"].as_object().into_iter().flatten();
    let given = given.map(|(name, value)| (name.clone(), Value::from(value)));
    let inputs = workflow.inputs(given).map_err(|invalid| {
        invalid
            .0
            .iter()
            .map(|finding| format!("{} {}", finding.code, finding.reference.as_deref().unwrap_or("")))
            .collect::<Vec<_>>()
    })?;
    let plan = workflow.plan().expect("a valid case");
    let killed = scenario.get("kill_server_while").is_some();
    let engine = Engine::in_memory().with_script(script(scenario, !killed));
    let all = scenario.get("advance_clock").is_some();
    let patience = if all { Patience::Everything } else { Patience::Work };
    let mut handle = engine.run_with(plan, inputs, Clock::starting_now(), patience).await.expect("a start");
    let id = handle.id.clone();
    let mut notices = Vec::new();
    let mut standing = {
        let mut events = std::mem::take(&mut handle.events);
        let standing = handle.outcome().await.expect("no trouble");
        while let Ok(update) = events.try_recv() {
            if let Update::Notice(notice) = update {
                notices.push(notice);
            }
        }
        standing
    };
    let engine = if killed && standing == Standing::Waiting {
        let engine = engine.with_script(script(scenario, true));
        let resumed =
            engine.resume(&id, Value::Null, Clock::starting_now(), Patience::Work).await.expect("goes on");
        standing = resumed.outcome().await.expect("no trouble");
        engine
    } else {
        engine
    };
    Ok(Seen {
        result: report::result(&id, &engine.view(&id).expect("a run")),
        dispatched: dispatched(&engine, &id),
        notices,
        standing,
    })
}

fn dispatched(engine: &Engine, id: &RunId) -> Vec<String> {
    let events = engine.events(id).expect("events");
    let names = events.iter().filter_map(|event| {
        let json = serde_json::to_value(event).expect("JSON");
        let first = json["event"] == "scheduled" && json["attempt"] == 1 && json["delivery"] == 1;
        first.then(|| json["path"][0].as_str().expect("a name").to_owned())
    });
    names.collect()
}

fn check(case: &Json, scenario: &Json, seen: Result<Seen, Vec<String>>) {
    let what = format!("{} {}", case["file"], scenario["name"]);
    let expect = &scenario["expect"];
    let seen = match (seen, expect["start_refused"] == json!(true)) {
        (Err(refused), true) => {
            let error = &expect["error"];
            let wanted = format!(
                "{} {}",
                error["code"].as_str().expect("a code"),
                error["parameter"].as_str().unwrap_or("")
            );
            return assert!(refused.contains(&wanted), "{what}: {wanted} not in {refused:?}");
        }
        (Ok(seen), false) => seen,
        (Err(refused), false) => panic!("{what}: refused: {refused:?}"),
        (Ok(seen), true) => panic!("{what}: not refused: {:#}", seen.result),
    };
    let result = &seen.result;
    let show = || format!("{what}: {result:#}");
    if let Some(status) = expect.get("run_status") {
        assert_eq!(result["status"], *status, "{}", show());
    }
    let each = |key: &str| expect[key].as_object().cloned().unwrap_or_default();
    for (stage, status) in each("stages") {
        assert_eq!(result["steps"][&stage]["status"], status, "{stage} of {}", show());
    }
    for (stage, reason) in each("reasons") {
        let because = result["steps"][&stage]["skipped_because"].as_str().unwrap_or_default().to_owned();
        assert!(because.starts_with(reason.as_str().expect("a word")), "{stage} of {}", show());
    }
    for (stage, inputs) in each("inputs") {
        for (name, value) in inputs.as_object().expect("inputs") {
            assert_eq!(result["steps"][&stage]["input"][name], *value, "{stage}.{name} of {}", show());
        }
    }
    for (stage, outputs) in each("outputs") {
        assert_eq!(result["steps"][&stage]["output"], outputs, "{stage} of {}", show());
    }
    for (stage, attempts) in each("attempts") {
        assert_eq!(result["steps"][&stage]["attempts"], attempts, "{stage} of {}", show());
    }
    for (stage, delays) in each("delays_seconds") {
        assert_eq!(result["steps"][&stage]["delays_seconds"], delays, "{stage} of {}", show());
    }
    for (stage, count) in each("dispatch_count") {
        let times = seen.dispatched.iter().filter(|name| **name == stage).count();
        assert_eq!(json!(times), count, "{stage} of {}", show());
    }
    for (stage, message) in each("message") {
        let waiting = result["waiting_on"].as_array().cloned().unwrap_or_default();
        let asked = waiting.iter().find(|wait| wait["step"] == json!(stage)).expect("waits");
        assert_eq!(asked["message"], message, "{}", show());
    }
    if let Some(dispatched) = expect["dispatched"].as_array() {
        assert_eq!(json!(seen.dispatched), json!(dispatched), "{}", show());
    }
    if let Some(by) = expect.get("gate_decided_by") {
        let decided =
            result["steps"].as_object().expect("steps").values().any(|step| step["output"]["by"] == *by);
        assert!(decided, "{}", show());
    }
    if let Some(error) = expect.get("error") {
        for (key, field) in [("code", "code"), ("message", "message"), ("stage", "step"), ("field", "field")]
        {
            if let Some(value) = error.get(key) {
                assert_eq!(result["error"][field], *value, "{key} of {}", show());
            }
        }
    }
    match expect["http"].as_u64() {
        Some(403) => {
            assert!(
                seen.notices.iter().any(|notice| notice.contains("mallory")),
                "{what}: {:?}",
                seen.notices
            );
            assert_eq!(seen.standing, Standing::Waiting);
        }
        Some(409) => assert!(
            seen.notices.iter().any(|notice| notice.contains("already")),
            "{what}: {:?}",
            seen.notices
        ),
        _ => {}
    }
}

#[tokio::test]
async fn every_scenario_ends_as_it_must() {
    let mut played = 0;
    for case in cases() {
        for scenario in case["scenarios"].as_array().unwrap_or(&Vec::new()) {
            let seen = play(&case, scenario).await;
            check(&case, scenario, seen);
            played += 1;
        }
    }
    assert!(played >= 25, "only {played} scenarios were found");
}
