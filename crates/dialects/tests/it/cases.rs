//! Behavior cases of the native dialect: what each file must produce before it runs.

use crate::support::{folder, read};
use indexmap::IndexMap;
use serde_json::{Value as Json, json};
use windlass_dialects::swdl::{WORDS, expr};
use windlass_dialects::{Loaded, Options, Text, load};
use windlass_ir::expr::{EvalError, Limits, Namespace, Read, Scope, Semantics, evaluate};
use windlass_ir::plan::{Given, Outline};
use windlass_ir::{Severity, Span, Value};

fn cases() -> Vec<Json> {
    let expected = std::fs::read(folder("swdl/cases/expected.json")).expect("the cases");
    let expected: Json = serde_json::from_slice(&expected).expect("JSON");
    expected["cases"].as_array().expect("cases").clone()
}

fn load_case(case: &Json) -> Loaded {
    load(read(&folder("swdl/cases").join(case["file"].as_str().expect("a file"))), Options::default())
}

fn outline(loaded: &Loaded) -> Outline {
    let plan = loaded.plan.as_ref().expect("a plan");
    let demanded = plan.parameters.iter().filter(|(_, p)| p.required && p.default.is_none());
    let given: IndexMap<String, Given> =
        demanded.map(|(name, _)| (name.to_string(), Given::Text("x".into()))).collect();
    plan.outline(&WORDS, &plan.parameters(&given, &WORDS).expect("parameters"))
}

/// Each expected finding occurs once; unexpected findings are shown.
fn check_findings(case: &Json, loaded: &Loaded, severity: Severity, key: &str) {
    let mut found: Vec<Json> = loaded
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == severity)
        .map(|diagnostic| diagnostic.to_json(&loaded.sources))
        .collect();
    for expected in case[key].as_array().unwrap_or(&Vec::new()) {
        let place = found.iter().position(|actual| matches(expected, actual));
        let place = place.unwrap_or_else(|| panic!("{}: no {key} {expected} in {found:#?}", case["file"]));
        found.remove(place);
    }
    assert!(found.is_empty(), "{}: unexpected {key}: {found:#?}", case["file"]);
}

fn matches(expected: &Json, actual: &Json) -> bool {
    let same = |key: &str, field: &str| expected.get(key).is_none_or(|value| *value == actual[field]);
    let path = expected["path"].as_array().is_none_or(|path| {
        let ids: Vec<&str> = path.iter().filter_map(Json::as_str).collect();
        actual["ref"] == json!(ids.join(" -> "))
    });
    same("code", "code")
        && same("stage", "step")
        && same("field", "field")
        && same("suggest", "suggest")
        && same("ref", "ref")
        && path
}

#[test]
fn files_are_valid_or_explain_why_not() {
    for case in cases() {
        let loaded = load_case(&case);
        assert_eq!(json!(loaded.is_valid()), case["valid"], "{}: {:#?}", case["file"], loaded.diagnostics);
        check_findings(&case, &loaded, Severity::Error, "errors");
        check_findings(&case, &loaded, Severity::Warning, "warnings");
    }
}

#[test]
fn plans_have_the_expected_batches_and_times() {
    for case in cases().into_iter().filter(|case| case["plan"].is_object()) {
        let outline = outline(&load_case(&case));
        assert_eq!(json!(outline.batches), case["plan"]["batches"], "{}", case["file"]);
        let sums = &case["plan"]["batch_timeout_sum_seconds"];
        if sums.is_object() {
            assert_eq!(Some(outline.estimate.agents_seconds), sums["agents"].as_f64(), "{}", case["file"]);
            assert_eq!(Some(outline.estimate.gates_seconds), sums["gates"].as_f64(), "{}", case["file"]);
        }
        for (stage, retry) in case["plan"]["effective_retry"].as_object().into_iter().flatten() {
            let actual = &outline.steps[stage].retry;
            for key in ["max_attempts", "initial_interval", "max_interval", "non_retryable_errors"] {
                assert_eq!(actual[key], retry[key], "{}: {stage}.{key}", case["file"]);
            }
            assert_eq!(actual["growth"]["exponential"]["multiplier"], retry["backoff_multiplier"]);
        }
    }
}

#[test]
fn defaults_are_filled_in() {
    let loaded = load(read(&folder("swdl/cases/11-defaults.yaml")), Options::default());
    let plan = serde_json::to_value(loaded.plan.as_ref().expect("valid")).expect("JSON");
    let work = &plan["steps"][0];
    let agent = &work["kind"]["action"]["agent"];
    let check = |actual: &Json, expected: Json| assert_eq!(*actual, expected);
    check(&plan["header"]["version"], json!("1.0.0"));
    check(&plan["policy"]["timeout"], json!(7_200_000_000_u64));
    check(&work["word"], json!("agent"));
    check(&work["needs"], json!([]));
    check(&work["condition"], json!(null));
    check(&agent["model"], json!("opus"));
    check(&work["policy"]["retry"]["attempts_max"], json!(2));
    check(&work["policy"]["retry"]["backoff"]["initial"], json!(30_000_000));
    check(&work["policy"]["retry"]["backoff"]["growth"], json!({"exponential": {"multiplier": 2.0}}));
    check(&work["policy"]["retry"]["backoff"]["max"], json!(300_000_000));
    check(&work["policy"]["on_failure"], json!("halt"));
    check(&work["policy"]["timeout"], json!(1_800_000_000));
    check(
        &agent["handoff"],
        json!({"format": "structured", "include_run_log": false, "summary_prompt": null}),
    );
    check(&agent["modules"], json!(["ctx:house-rules"]));
    let memory =
        json!({"project_scope": "current", "min_confidence": 0.7, "categories": [], "max_tokens": 2000});
    check(&agent["memory"], memory);
    check(&plan["steps"][1]["kind"]["gate"]["timeout"], json!(86_400_000_000_u64));
    check(&plan["steps"][1]["kind"]["gate"]["on_timeout"], json!("halt"));
}

#[test]
fn overrides_are_merged_deeply() {
    let base = read(&folder("swdl/cases/15-overrides-base.yaml"));
    let project = read(&folder("swdl/cases/15-overrides-project.yaml"));
    let loaded = load(base, Options::overridden(Some(project)));
    let plan = serde_json::to_value(loaded.plan.as_ref().expect("valid")).expect("JSON");
    let agent = &plan["steps"][0]["kind"]["action"]["agent"];
    assert_eq!(plan["parameters"]["branch"]["default"], "develop");
    assert_eq!(plan["parameters"]["branch"]["description"], "Where to land");
    assert_eq!(plan["parameters"]["depth"]["default"], 1);
    assert_eq!(plan["policy"]["timeout"], 7_200_000_000_u64);
    assert_eq!(agent["modules"], json!(["ctx:mine"]));
    assert_eq!(agent["memory"]["min_confidence"], 0.9);
    assert_eq!(agent["artifact"], "agent:scholar");
    assert_eq!(agent["model"], "sonnet");
    assert_eq!(agent["instructions"]["template"]["constant"], "Read widely.");
    assert_eq!(agent["tools"], json!(["skill:grep"]));
    assert_eq!(plan["steps"][0]["policy"]["timeout"], 1_200_000_000);
    assert_eq!(plan["steps"][0]["policy"]["retry"]["attempts_max"], 5);
    assert_eq!(plan["steps"][1]["kind"]["action"]["agent"]["artifact"], "agent:doer");
}

#[test]
fn invalid_overrides_are_errors() {
    for case in cases() {
        for expected in case["override_errors"].as_array().unwrap_or(&Vec::new()) {
            let text = json!({"overrides": expected["overrides"]}).to_string();
            let overrides = Text { name: "overrides.json".into(), bytes: text.into_bytes() };
            let file = read(&folder("swdl/cases").join(case["file"].as_str().expect("a file")));
            let loaded = load(file, Options::overridden(Some(overrides)));
            assert!(!loaded.is_valid(), "{expected}");
            let found: Vec<Json> = loaded.diagnostics.iter().map(|d| d.to_json(&loaded.sources)).collect();
            assert!(found.iter().any(|actual| matches(expected, actual)), "{expected} not in {found:#?}");
            assert!(found.iter().all(|actual| actual["file"] == "overrides.json"), "{found:#?}");
        }
    }
}

/// The context in which the expressions of the tour are evaluated.
struct Tour;

impl Scope for Tour {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let context = json!({
            "parameters": {"branch": "release-7", "limit": 3, "dry": false, "labels": ["red", "blue"],
                "blob": "{\"a\": {\"b-c\": [10, 20]}}"},
            "stages": {"pick-files": {"status": "success", "outputs": {"files": ["a", "b"], "meta": {"k": 1}}}},
            "env": {"WHERE": "br/release-7"},
            "run": {"id": "r-1"},
            "workflow": {"id": "expression-tour", "version": "3.2.1"},
        });
        let Read::Namespace(namespace) = read else { panic!("nothing is lowered here") };
        Ok(Value::from(&context[expr::namespace_word(namespace)]))
    }
}

fn eval(text: &str) -> Result<Value, String> {
    let parsed = expr::parse_expression(text, &|_| Span::default());
    let parsed = parsed.map_err(|findings| findings[0].code.to_string())?;
    evaluate(&parsed, &Tour, &Semantics::HOUSE, &Limits::default()).map_err(|error| error.code.to_string())
}

#[test]
fn expressions_have_the_expected_values() {
    for case in cases() {
        for expected in case["expressions"]["values"].as_array().unwrap_or(&Vec::new()) {
            let text = expected["e"].as_str().expect("an expression");
            let value = eval(text).unwrap_or_else(|code| panic!("{text}: {code}"));
            assert_eq!(value.to_json().expect("no secret"), expected["v"], "{text}");
        }
    }
}

/// Static errors of an expression are found in a file, others when it is evaluated.
#[test]
fn expressions_fail_with_the_expected_codes() {
    let tour = std::fs::read_to_string(folder("swdl/cases/08-expression-tour.yaml")).expect("the tour");
    for case in cases() {
        for expected in case["expressions"]["errors"].as_array().unwrap_or(&Vec::new()) {
            let (text, code) = (expected["e"].as_str().expect("an expression"), expected["code"].as_str());
            if expected["when"] == "run" {
                assert_eq!(eval(text).err().as_deref(), code, "{text}");
                continue;
            }
            let quoted = format!("{:?}", format!("${{{{ {text} }}}}"));
            let file = tour.replace("\"${{ stages.pick-files.outputs.meta }}\"", &quoted);
            let loaded = crate::support::load_text(&file);
            let errors: Vec<&str> =
                loaded.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
            assert_eq!(errors, [code.expect("a code")], "{text}");
        }
    }
}

#[test]
fn every_namespace_has_a_word_that_is_read_back() {
    for namespace in [Namespace::Inputs, Namespace::Steps, Namespace::Context, Namespace::Env, Namespace::Run]
    {
        let word = expr::namespace_word(namespace);
        assert!(expr::parse_expression(word, &|_| Span::default()).is_ok(), "{word}");
    }
}
