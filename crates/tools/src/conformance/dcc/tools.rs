//! The tools that all files assume, as a script that answers exactly the calls that are expected. A call that is not expected has no
//! answer, and is seen in the list of calls besides.

use super::list;
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;

/// Answers by the address of a step (`pick[0][1]`), one for each expected call of it.
pub fn script(workflow: &Json, calls: &[Json], given: &Json) -> Json {
    let mut tools = HashMap::new();
    find_tools(workflow, &mut tools);
    let mut steps: Map<String, Json> = Map::new();
    let mut flaky: HashMap<String, u64> = HashMap::new();
    for (address, args) in calls.iter().filter_map(Json::as_object).flatten() {
        let id = address.split('[').next().unwrap_or_default();
        let tool = tools.get(id).map_or("", String::as_str);
        let answer = answer(tool, args, &mut flaky);
        let answers = steps.entry(address.clone()).or_insert_with(|| json!([]));
        answers.as_array_mut().expect("a list").extend(answer);
    }
    steps.retain(|_, answers| !list(answers).is_empty());
    for (address, answers) in given["steps"].as_object().into_iter().flatten() {
        steps.insert(address.clone(), answers.clone());
    }
    let mut script = given.as_object().cloned().unwrap_or_default();
    script.insert("steps".to_owned(), Json::Object(steps));
    Json::Object(script)
}

fn find_tools(node: &Json, tools: &mut HashMap<String, String>) {
    match node {
        Json::Object(map) => {
            if let (Some(Json::String(id)), Some(Json::String(tool))) = (map.get("id"), map.get("tool")) {
                tools.insert(id.clone(), tool.clone());
            }
            map.values().for_each(|value| find_tools(value, tools));
        }
        Json::Array(items) => items.iter().for_each(|item| find_tools(item, tools)),
        _ => {}
    }
}

/// What a tool says to its arguments; none for one that only a life's own script knows.
fn answer(tool: &str, args: &Json, flaky: &mut HashMap<String, u64>) -> Option<Json> {
    let fails = |default: &str| {
        let message = args["error"].as_str().unwrap_or(default);
        json!({"error": {"message": message}})
    };
    Some(match tool {
        "echo" => json!({"output": args}),
        "fail" => fails("boom"),
        "flaky" => {
            let calls = flaky.entry(args["key"].to_string()).or_default();
            *calls += 1;
            match *calls <= args["fail_times"].as_u64().unwrap_or_default() {
                true => fails("transient glitch"),
                false => json!({"output": {"attempt": calls}}),
            }
        }
        "sleep" => json!({"output": {"slept": args["ms"]}, "takes": format!("{}ms", args["ms"])}),
        "files" => json!({"output": {"file_refs": [
            {"inline_b64": "aGVsbG8=", "mime": "text/plain"},
            {"uri": "artefact://sha256/abc", "created_at": "2026-01-01T00:00:00Z"},
            {"uri": "no-created-at"},
        ]}}),
        _ => return None,
    })
}
