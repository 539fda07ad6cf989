//! The native dialect: `expected.json` says what every file must give and how every scenario must end; `ours.json`, in the same form,
//! covers what the language describes and no case of the other shows.

use super::case::decided;
use super::journal;
use super::program::json;
use super::scenario::{self, is_same, read, refused_for, texts, write};
use super::{Case, Checked, Program, Source};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIALECT: &str = "swdl";

/// What the program that the language comes from does otherwise, and by which decision.
const DECIDED: [(&str, &str); 8] = [
    ("03-ancestor-reference.yaml: valid", "D1"),
    ("05-gate-guards-release.yaml: skipped gate must not open", "D2"),
    ("05-gate-guards-release.yaml: time out, halt", "D10"),
    ("04-conditions.yaml: a condition that fails", "D6"),
    ("07-failure-policies.yaml: continue", "D4"),
    ("07-failure-policies.yaml: halt", "D5"),
    ("08-expression-tour.yaml: values", "D7"),
    ("16-inputs.yaml: a required input that is null", "D11"),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/swdl/cases")
}

pub fn sources() -> Vec<Source> {
    vec![Source::new(DIALECT, "", cases)]
}

fn cases() -> Vec<Case> {
    let files = read(&folder(), ["expected.json", "ours.json"]);
    let all = files.iter().flat_map(|file| file["cases"].as_array().expect("cases"));
    decided(all.flat_map(of_file).collect(), &DECIDED)
}

type Check = Box<dyn Fn(&OfFile, &Program, &str) -> Checked + Send + Sync>;

/// All that is expected of one file.
fn of_file(case: &Json) -> Vec<Case> {
    let of = Arc::new(OfFile { file: case["file"].as_str().expect("a file").to_owned(), case: case.clone() });
    let mut cases = Vec::new();
    let mut add = |what: &str, check: Check| {
        let (name, of) = (format!("{}: {what}", of.file), Arc::clone(&of));
        cases.push(Case::new(DIALECT, name, move |program, id| check(&of, program, id)));
    };
    if case.get("valid").is_some() {
        add("valid", Box::new(|of, program, _| is_valid(program, &of.case)));
    }
    if case["plan"].is_object() {
        add("plan", Box::new(|of, program, _| plan(program, &of.case)));
    }
    if case["effective"].is_object() {
        add("defaults", Box::new(|of, program, _| effective(program, &of.file, &[], &of.case["effective"])));
    }
    if case["effective_after_overrides"].is_object() {
        add(
            "overrides",
            Box::new(|of, program, _| {
                let flags = ["--overrides", of.overrides()];
                effective(program, &of.file, &flags, &of.case["effective_after_overrides"])
            }),
        );
        add(
            "kept overrides",
            Box::new(|of, program, id| kept_overrides(program, &of.file, of.overrides(), id)),
        );
    }
    for number in 0..case["override_errors"].as_array().map_or(0, Vec::len) {
        add(
            &format!("override error {number}"),
            Box::new(move |of, program, id| {
                bad_overrides(program, &of.file, id, &of.case["override_errors"][number])
            }),
        );
    }
    let expressions = &case["expressions"];
    if expressions.is_object() {
        let more = if expressions["context"].is_object() { "more " } else { "" };
        add(&format!("{more}values"), Box::new(|of, program, id| values(program, id, &of.case)));
        add(
            &format!("{more}errors"),
            Box::new(|of, program, id| errors(program, id, &of.file, &of.case["expressions"]["errors"])),
        );
    }
    for (number, scenario) in case["scenarios"].as_array().into_iter().flatten().enumerate() {
        add(
            scenario["name"].as_str().expect("a name"),
            Box::new(move |of, program, id| {
                scenario::execute(program, &folder(), &of.file, id, &of.case["scenarios"][number])
            }),
        );
    }
    cases
}

/// A file, and the entry that lists what is expected of it.
struct OfFile {
    file: String,
    case: Json,
}

impl OfFile {
    fn overrides(&self) -> &str {
        self.case["companion"].as_str().expect("overrides")
    }
}

/// Every expected finding is there, each once, and no other.
fn is_valid(program: &Program, case: &Json) -> Checked {
    let output = program.run(&folder(), &["validate", "--json", case["file"].as_str().expect("a file")]);
    let said = json(&output)?;
    let exit = if case["valid"] == true { 0 } else { 1 };
    if said["valid"] != case["valid"] || output.status.code() != Some(exit) {
        return Err(format!("valid: {}, exit status {:?}: {said:#}", said["valid"], output.status.code()));
    }
    for (severity, key) in [("error", "errors"), ("warning", "warnings")] {
        let found = said["diagnostics"].as_array().into_iter().flatten();
        let mut found: Vec<&Json> = found.filter(|finding| finding["severity"] == severity).collect();
        for expected in case[key].as_array().into_iter().flatten() {
            let place = found.iter().position(|finding| is_finding(expected, finding));
            let place = place.ok_or_else(|| format!("no {key} {expected} in {found:#?}"))?;
            found.remove(place);
        }
        if !found.is_empty() {
            return Err(format!("unexpected {key}: {found:#?}"));
        }
    }
    Ok(())
}

fn is_finding(expected: &Json, finding: &Json) -> bool {
    let pairs =
        [("code", "code"), ("stage", "step"), ("field", "field"), ("suggest", "suggest"), ("ref", "ref")];
    let same =
        pairs.iter().all(|(key, field)| expected.get(key).is_none_or(|value| *value == finding[field]));
    let path: Vec<&str> = texts(&expected["path"]).collect();
    same && (path.is_empty() || is_circle(&path, finding["ref"].as_str().unwrap_or_default()))
}

/// Whether both name the same circle, wherever they begin.
fn is_circle(path: &[&str], said: &str) -> bool {
    let said: Vec<&str> = said.split(" -> ").collect();
    let (mut path, said) = (path[1..].to_vec(), &said[1..]);
    (0..path.len()).any(|_| {
        path.rotate_left(1);
        path == said
    })
}

fn planned(program: &Program, file: &str, more: &[&str]) -> Result<Json, String> {
    let args: Vec<&str> = ["plan", "--json", file].into_iter().chain(more.iter().copied()).collect();
    let output = program.run(&folder(), &args);
    match output.status.code() {
        Some(0) => json(&output),
        status => Err(format!("exit status {status:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn plan(program: &Program, case: &Json) -> Checked {
    let file = case["file"].as_str().expect("a file");
    let expected = &case["plan"];
    let given: Vec<String> = texts(&case["needs"]).map(|name| format!("{name}=x")).collect();
    let given: Vec<&str> = given.iter().flat_map(|pair| ["-p", pair]).collect();
    let given = if file.starts_with("01-") { vec!["-p", "topic=x"] } else { given };
    let plan = planned(program, file, &given)?;
    let mut wrong = String::new();
    let mut check = |what: &str, seen: &Json, expected: &Json| {
        if !expected.is_null() && !is_same(seen, expected) {
            writeln!(wrong, "{what}: expected {expected}, seen {seen}")
                .expect("writing to a text cannot fail");
        }
    };
    check("batches", &plan["batches"], &expected["batches"]);
    let sums = &expected["batch_timeout_sum_seconds"];
    check("agents", &plan["estimate"]["agents_seconds"], &sums["agents"]);
    check("gates", &plan["estimate"]["gates_seconds"], &sums["gates"]);
    for edge in expected["edges"].as_array().into_iter().flatten() {
        let needs = plan["steps"][edge[1].as_str().expect("an id")]["needs"].as_array();
        check("edge", &json!(needs.is_some_and(|needs| needs.contains(&edge[0]))), &json!(true));
    }
    for (stage, retry) in expected["effective_retry"].as_object().into_iter().flatten() {
        let seen = &plan["steps"][stage]["retry"];
        for key in ["max_attempts", "initial_interval", "max_interval", "non_retryable_errors"] {
            check(key, &seen[key], &retry[key]);
        }
        check("multiplier", &seen["growth"]["exponential"]["multiplier"], &retry["backoff_multiplier"]);
    }
    let found = plan["diagnostics"].as_array().cloned().unwrap_or_default();
    for warning in expected["warnings"].as_array().into_iter().flatten() {
        check("warning", &json!(found.iter().any(|finding| is_finding(warning, finding))), &json!(true));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// What holds once all defaults and overrides are filled in, as the plan shows it.
fn effective(program: &Program, file: &str, flags: &[&str], expected: &Json) -> Checked {
    let plan = planned(program, file, flags)?;
    let mut wrong = String::new();
    for (place, value) in expected.as_object().expect("places") {
        let value = value.get("v").unwrap_or(value);
        // The plan counts time in seconds.
        let value = &if place.ends_with(".timeout") { json!(seconds(value)) } else { value.clone() };
        let seen = at(&plan, place).ok_or_else(|| format!("nothing shows `{place}`"))?;
        if !is_same(&seen, value) {
            writeln!(wrong, "{place}: expected {value}, seen {seen}").expect("writing to a text cannot fail");
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// A length of time in one unit, such as `30m`.
fn seconds(text: &Json) -> Option<f64> {
    let text = text.as_str()?;
    let units = [("h", 3600.0), ("m", 60.0), ("s", 1.0)];
    units.iter().find_map(|(unit, seconds)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * seconds))
}

/// Where the plan shows what stands at a place of the file.
fn at(plan: &Json, place: &str) -> Option<Json> {
    let words: Vec<&str> = place.split('.').collect();
    // What holds for all stages is shown with each of them.
    let any =
        || plan["steps"].as_object().and_then(|steps| steps.values().next()).cloned().unwrap_or_default();
    Some(match words[..] {
        ["workflow", "version"] => plan["workflow"]["version"].clone(),
        ["config", "timeout"] => plan["timeout_seconds"].clone(),
        ["config", "parameters", name] => {
            let schema = &plan["parameters_schema"]["properties"][name];
            json!({"type": schema["type"], "default": schema["default"], "description": schema["description"]})
        }
        ["config", "parameters", name, "default"] => {
            plan["parameters_schema"]["properties"][name]["default"].clone()
        }
        ["context", "global_modules"] => any()["context"]["modules"].clone(),
        ["context", "memory", key] => any()["context"]["memory"][key].clone(),
        ["stages", id, ref rest @ ..] => {
            let step = &plan["steps"][id];
            match rest {
                ["type"] => step["kind"].clone(),
                ["depends_on"] => step["needs"].clone(),
                ["condition"] => step["condition"].clone(),
                ["roles", "primary", "artifact"] => step["runs"].clone(),
                ["roles", "primary", "model"] => step["model"].clone(),
                ["roles", "primary"] => {
                    json!({"artifact": step["runs"], "model": step["model"], "instructions": step["instructions"]})
                }
                ["roles", "tools"] => step["tools"].clone(),
                ["error_policy", "retry", "backoff_multiplier"] => {
                    step["retry"]["growth"]["exponential"]["multiplier"].clone()
                }
                ["error_policy", "retry", key] => step["retry"][key].clone(),
                ["error_policy", "on_failure"] => step["on_failure"].clone(),
                ["error_policy", "timeout"] | ["gate", "timeout"] => step["timeout_seconds"].clone(),
                ["handoff", key] => step["handoff"][key].clone(),
                // There is one kind, and a gate of it asks for an approval.
                ["gate", "kind"]
                    if texts(&json!([step["runs"]])).any(|runs| runs.starts_with("approval by ")) =>
                {
                    json!("manual_approval")
                }
                ["gate", key] => step["gate"][key].clone(),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn bad_overrides(program: &Program, file: &str, name: &str, expected: &Json) -> Checked {
    let folder = program.folder(name);
    std::fs::copy(self::folder().join(file), folder.join(file)).expect("a folder of our own");
    write(&folder, "overrides.yaml", &json!({"overrides": expected["overrides"]}).to_string());
    for command in ["plan", "run"] {
        let output = program.run(&folder, &[command, "--json", "--overrides", "overrides.yaml", file]);
        let said = json(&output)?;
        let found = refused_for(&said).cloned().unwrap_or_default();
        let there =
            found.iter().any(|finding| is_finding(expected, finding) && finding["file"] == "overrides.yaml");
        if !there || output.status.code() != Some(2) {
            return Err(format!(
                "{command}: exit status {:?}: {expected} not in {said:#}",
                output.status.code()
            ));
        }
    }
    Ok(())
}

/// A run has its workflow with the overrides laid over it, whatever becomes of the two files.
fn kept_overrides(program: &Program, file: &str, overrides: &str, name: &str) -> Checked {
    let folder = program.folder(name);
    std::fs::copy(self::folder().join(file), folder.join(file)).expect("a folder of our own");
    // Found by its name, without being named.
    std::fs::copy(self::folder().join(overrides), folder.join(".skillmeat-workflow-overrides.yaml"))
        .expect("a folder of our own");
    write(&folder, "windlass.toml", "");
    write(
        &folder,
        "s.json",
        &json!({"steps": {"study": [{"error": {"class": "auth_failure"}}]}}).to_string(),
    );
    let words = ["run", file, "--run-id", "o", "--script", "s.json", "--virtual-time", "--json=final"];
    let first = json(&program.run(&folder, &words))?;
    write(&folder, file, "gone");
    write(&folder, ".skillmeat-workflow-overrides.yaml", "gone");
    let answers = json!({"study": [{"outputs": {"summary": "S"}}], "act": [{"outputs": {}}]});
    write(&folder, "s.json", &json!({"steps": answers}).to_string());
    let words = ["resume", "o", "--script", "s.json", "--virtual-time", "--json=final"];
    let second = json(&program.run(&folder, &words))?;
    let events = journal::events(program, &folder, "o");
    let models: usize =
        events.iter().map(|event| event.to_string().matches(r#""model":"sonnet""#).count()).sum();
    let seen = json!([first["dialect_status"], first["inputs"]["branch"], second["dialect_status"], models]);
    match seen == json!(["failed", "develop", "success", 2]) {
        true => Ok(()),
        false => Err(format!("seen {seen}: {second:#}")),
    }
}

fn values(program: &Program, name: &str, case: &Json) -> Checked {
    let folder = program.folder(name);
    let expressions = &case["expressions"];
    write(&folder, "context.json", &tour(expressions).to_string());
    for expected in expressions["values"].as_array().into_iter().flatten() {
        let text = expected["e"].as_str().expect("an expression");
        let output = program.run(&folder, &["eval", "--context", "context.json", "--", text]);
        let seen = json(&output).map_err(|error| format!("{text}: {error}"))?;
        if !is_same(&seen, &expected["v"]) || output.status.code() != Some(0) {
            return Err(format!("{text}: expected {}, seen {seen}", expected["v"]));
        }
    }
    Ok(())
}

/// What the expressions of the tour read; ours bring their own.
fn tour(expressions: &Json) -> Json {
    match &expressions["context"] {
        Json::Object(_) => expressions["context"].clone(),
        _ => json!({
            "parameters": {"branch": "release-7", "limit": 3, "dry": false, "labels": ["red", "blue"],
                "blob": "{\"a\": {\"b-c\": [10, 20]}}"},
            "stages": {"pick-files": {"status": "success", "outputs": {"files": ["a", "b"], "meta": {"k": 1}, "note": null}}},
            "env": {"WHERE": "br/release-7"},
            "run": {"id": "r-1"},
            "workflow": {"id": "expression-tour", "version": "3.2.1"},
        }),
    }
}

/// What is wrong before the run is found in a file, what is wrong in the run when it is evaluated.
fn errors(program: &Program, name: &str, file: &str, expected: &Json) -> Checked {
    let folder = program.folder(name);
    let text = std::fs::read_to_string(self::folder().join(file)).expect("the tour");
    write(&folder, "context.json", &tour(&Json::Null).to_string());
    for expected in expected.as_array().into_iter().flatten() {
        let (e, code) = (expected["e"].as_str().expect("an expression"), &expected["code"]);
        let seen: Json = if expected["when"] == "run" {
            let output = program.run(&folder, &["eval", "--context", "context.json", "--", e]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code =
                said.split_once("error[").and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_owned()));
            json!([output.status.code(), code])
        } else {
            let quoted = format!("{:?}", format!("${{{{ {e} }}}}"));
            write(&folder, "w.yaml", &text.replace("\"${{ stages.pick-files.outputs.meta }}\"", &quoted));
            let output = program.run(&folder, &["validate", "--json", "w.yaml"]);
            let said = json(&output)?;
            let found = said["diagnostics"].as_array().into_iter().flatten();
            let codes: Vec<&Json> = found
                .filter(|finding| finding["severity"] == "error")
                .map(|finding| &finding["code"])
                .collect();
            if codes.len() == 1 { json!([output.status.code(), codes[0]]) } else { json!(codes) }
        };
        if seen != json!([1, code]) {
            return Err(format!("{e}: expected {code}, seen {seen}"));
        }
    }
    Ok(())
}
