//! Tests of whole DagNats definitions: a folder of files, with their findings, rules and plans.
//!
//! `err_` files have an error, `warn_` files a warning or a hint and no error, `ok_` files none of them. The files of
//! `cases` must be valid or break the rule stated in `expected.json`.

use crate::fixtures::{blocks, digest, files, name, show};
use crate::support::{folder, read};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use windlass_dialects::{Dialect, Loaded, Options, Text, load};
use windlass_ir::expr::{Printer, StepId};
use windlass_ir::workflow::{Action, Items, Kind};
use windlass_ir::{Code, Plan, Severity};

/// Only the number of the rule is checked in a case: its wording is in the snapshots.
const RULES: std::ops::RangeInclusive<u8> = 1..=13;

fn load_file(path: &Path) -> Loaded {
    load(read(path), Options::default())
}

fn load_json(json: &Json) -> Loaded {
    let text = Text { name: "test.json".into(), bytes: json.to_string().into_bytes() };
    load(text, Options { dialect: Some(Dialect::Dagnats), ..Options::default() })
}

fn fixtures() -> Vec<(String, Loaded)> {
    files(&folder("dagnats")).iter().map(|path| (name(path), load_file(path))).collect()
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dagnats");
    let json = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    files(&folder).into_iter().filter(json).collect()
}

/// The input of each step, one per line, and the result of the run.
pub fn data_flow(loaded: &Loaded, plan: &Plan) -> String {
    let step_id = |id: StepId| plan.step(id).id.to_string();
    let words = loaded.words;
    let printer = Printer { words, step: &step_id };
    let mut shown = String::from("\n");
    for step in &plan.steps {
        let input = match &step.kind {
            Kind::Action(Action::Task(task)) => task.input.as_ref(),
            Kind::Action(Action::Call(call)) => call.input.as_ref(),
            Kind::Action(Action::Builtin(builtin)) => builtin.args.get("body"),
            Kind::ForEach(each) => match &each.items {
                Items::List(list) => Some(list),
                Items::Matrix(_) => None,
            },
            _ => None,
        };
        if let Some(input) = input {
            let inside = if step.implicit { "[]" } else { "" };
            writeln!(shown, "{}{inside} <- {}", step.id, printer.template(&input.template)).expect("text");
        }
    }
    let source = plan.result.as_ref().and_then(|result| result.source.as_ref()).expect("a run has a result");
    writeln!(shown, "the run -> {}", printer.template(&source.template)).expect("text");
    shown
}

fn settings() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder("dagnats/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// Complete plans of the files that use most of the language.
#[test]
fn plans_are_complete() {
    settings().bind(|| {
        for file in ["ok_step_types.json", "ok_saga.json", "ok_run_policy.json", "ok_retry.json"] {
            let loaded = load_file(&folder("dagnats").join(file));
            let mut plan = serde_json::to_value(loaded.plan.expect(file)).expect("a plan is data");
            let digest = plan.as_object_mut().and_then(|plan| plan.shift_remove("digest"));
            assert!(digest.is_some(), "{file}");
            let shown = serde_json::to_string_pretty(&plan).expect("JSON");
            insta::assert_snapshot!(format!("plan_{file}"), shown);
        }
    });
}

#[test]
fn triggers_are_complete() {
    let loaded = load_file(&folder("dagnats/ok_triggers.json"));
    settings().bind(|| insta::assert_snapshot!("triggers_ok_triggers.json", show_triggers(&loaded)));
}

fn show_triggers(loaded: &Loaded) -> String {
    let shown = loaded.triggers.iter().map(|trigger| {
        let id = trigger.id.as_ref().map_or("", |id| &*id.value);
        let state = if trigger.enabled { "enabled" } else { "disabled" };
        format!("{id} {state} {:?}\n", trigger.input)
            + &format!("    {:?}\n    {:?}\n", trigger.source, trigger.debounce)
    });
    shown.collect()
}

#[test]
fn findings_have_help_and_occur_once() {
    for (name, loaded) in fixtures() {
        let mut places = BTreeSet::new();
        for finding in &loaded.diagnostics {
            assert!(finding.span.is_some() && !finding.message.is_empty(), "{name}: {finding:?}");
            assert!(!finding.help.is_empty(), "{name}: {finding:?}");
            let place = (finding.span, finding.code, finding.field.clone(), finding.reference.clone());
            assert!(places.insert(place), "{name} says it twice: {finding:?}");
        }
    }
}

/// Rule N has a file that breaks it and no other rule.
#[test]
fn every_rule_has_its_file() {
    let fixtures = fixtures();
    for rule in RULES {
        let prefix = format!("err_rule_{rule:02}_");
        let own: Vec<_> = fixtures.iter().filter(|(name, _)| name.starts_with(&prefix)).collect();
        assert_eq!(own.len(), 1, "{prefix}");
        for finding in own[0].1.diagnostics.iter().filter(|finding| finding.is_error()) {
            assert_eq!(finding.rule, Some(rule), "{prefix}: {finding:#?}");
        }
        assert!(!own[0].1.is_valid(), "{prefix}");
    }
}

#[test]
fn plans_read_back_from_their_stored_form() {
    let plans: Vec<Plan> = fixtures().into_iter().filter_map(|(_, loaded)| loaded.plan).collect();
    assert!(plans.len() > 10);
    for plan in plans {
        let stored = serde_json::to_string(&plan).expect("a plan is data");
        let back: Plan = serde_json::from_str(&stored).expect("what was written");
        assert_eq!(serde_json::to_string(&back).ok(), Some(stored));
    }
}

#[test]
fn examples_are_valid() {
    let examples = examples();
    assert_eq!(examples.len(), 2);
    for path in examples {
        let loaded = load_file(&path);
        let loud = loaded.diagnostics.iter().any(|finding| finding.severity != Severity::Hint);
        assert!(loaded.is_valid() && !loud, "{}:\n{}", path.display(), show(&loaded));
        assert_eq!(loaded.dialect, Dialect::Dagnats);
    }
}

/// One step with one additional key that does not change the plan.
#[test]
fn spelling_does_not_change_the_plan() {
    let plan = |step: Json| {
        let loaded = load_json(&json!({"name": "w", "version": "1", "steps": [step]}));
        digest(&loaded).to_owned()
    };
    let plain = plan(json!({"id": "a", "task": "t", "timeout": "90s"}));
    let check = |step: Json, is_same: bool| assert_eq!(plan(step.clone()) == plain, is_same, "{step}");
    check(json!({"id": "a", "task": "t", "timeout": 90_000_000_000_i64}), true);
    check(json!({"id": "a", "task": "t", "timeout": "1m30s", "type": "normal"}), true);
    check(json!({"ID": "a", "TASK": "t", "Timeout": "1.5m"}), true);
    check(
        json!({"id": "a", "task": "t", "timeout": "90s", "retries": 0, "depends_on": [], "on_failure": ""}),
        true,
    );
    check(json!({"id": "a", "task": "t", "timeout": "90s", "retry": {"max_attempts": 0}}), true);
    check(json!({"id": "a", "task": "t", "timeout": "90s", "worker_group": "", "skip_if": null}), true);
    check(json!({"id": "a", "task": "t", "timeout": "91s"}), false);
    check(json!({"id": "a", "task": "t", "timeout": "90s", "retries": 1}), false);
    check(json!({"id": "a", "task": "t", "timeout": "90s", "metadata": {"k": "v"}}), false);
}

/// `json fails CODE` has errors, `json warns CODE` warnings and `json hints CODE` hints of that code and nothing
/// else; `json` has no findings.
#[test]
fn the_examples_on_error_pages_are_correct() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let mut count = 0;
    for path in files(&pages) {
        let page = std::fs::read_to_string(&path).expect("a page is text");
        for (words, text) in blocks(&page) {
            let expected = match words.as_slice() {
                ["json"] => None,
                ["json", "fails", code] => Some((Severity::Error, *code)),
                ["json", "warns", code] => Some((Severity::Warning, *code)),
                ["json", "hints", code] => Some((Severity::Hint, *code)),
                _ => continue,
            };
            count += 1;
            let file = Text { name: "test.json".into(), bytes: text.into_bytes() };
            let loaded = load(file, Options { dialect: Some(Dialect::Dagnats), ..Options::default() });
            let found: BTreeSet<_> =
                loaded.diagnostics.iter().map(|finding| (finding.severity, finding.code.as_str())).collect();
            assert_eq!(found, expected.into_iter().collect(), "{}:\n{}", name(&path), show(&loaded));
        }
    }
    assert!(count > 0, "at least one page shows this dialect");
}

/// Hostile sizes are handled quickly.
#[test]
fn many_steps_are_read() {
    let step = |at: usize| {
        let needs: Vec<String> = (at.saturating_sub(3)..at).map(|before| format!("s{before}")).collect();
        json!({"id": format!("s{at}"), "task": "t", "depends_on": needs, "on_failure": "last"})
    };
    let mut steps: Vec<Json> = (0..3_000).map(step).collect();
    steps.push(json!({"id": "last", "task": "t"}));
    steps.reverse();
    let loaded = load_json(&json!({"name": "w", "version": "1", "steps": steps}));
    assert!(loaded.is_valid(), "{:?}", loaded.diagnostics.first());
    assert_eq!(loaded.diagnostics, []);
}

/// Excessively long values are refused with a code.
#[test]
fn long_values_are_refused() {
    let check = |key: &str, value: Json, code: Code| {
        let mut file = json!({"name": "w", "version": "1", "steps": [{"id": "a", "task": "t"}]});
        file[key] = value;
        let found = load_json(&file).diagnostics;
        assert_eq!(found.iter().map(|finding| finding.code).collect::<Vec<_>>(), [code], "{key}");
    };
    let path = vec!["a"; 100_000].join(".");
    check("idempotency_key", json!(path), Code::ExpressionLimit);
    check("timeout", json!("99999h".repeat(1_000)), Code::BadDuration);
    let right = format!("step.{}", ".output.".repeat(10_000));
    let config = json!({"event": "e", "timeout": "1s", "match": {"left": "a", "op": "eq", "right": right}});
    check("steps", json!([{"id": "a", "type": "wait_for_event", "config": config}]), Code::UnknownStage);
    let cron = json!({"id": "t", "cron": {"expression": "1,".repeat(1_000)}});
    check("triggers", json!([cron]), Code::BadCron);
}

/// Replaces every value of a file with strange ones, one at a time.
#[test]
fn any_value_in_any_place_is_handled() {
    let strange = [
        json!(null),
        json!(""),
        json!("a..b"),
        json!(-1),
        json!(1e99),
        json!(true),
        json!([]),
        json!({}),
        json!([{"id": "scan"}]),
        json!({"id": ["x"]}),
    ];
    for file in ["ok_step_types.json", "ok_saga.json", "ok_run_policy.json", "ok_triggers.json"] {
        let bytes = read(&folder("dagnats").join(file)).bytes;
        let whole: Json = serde_json::from_slice(&bytes).expect("JSON");
        for pointer in pointers(&whole, String::new()) {
            for value in &strange {
                let mut changed = whole.clone();
                *changed.pointer_mut(&pointer).expect("it was found there") = value.clone();
                check_answer(&load_json(&changed), &format!("{file}{pointer} = {value}"));
            }
        }
    }
}

fn pointers(json: &Json, at: String) -> Vec<String> {
    let inside: Vec<(String, &Json)> = match json {
        Json::Array(items) => items.iter().enumerate().map(|(key, item)| (key.to_string(), item)).collect(),
        Json::Object(map) => map.iter().map(|(key, item)| (key.clone(), item)).collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    };
    let deeper = inside.into_iter().flat_map(|(key, item)| pointers(item, format!("{at}/{key}")));
    let deeper: Vec<String> = deeper.collect();
    std::iter::once(at).chain(deeper).collect()
}

fn check_answer(loaded: &Loaded, what: &str) {
    let errors = loaded.diagnostics.iter().any(windlass_ir::Diagnostic::is_error);
    assert_eq!(loaded.is_valid(), !errors, "{what}");
    for finding in &loaded.diagnostics {
        assert!(finding.span.is_some() && !finding.help.is_empty(), "{what}: {finding:?}");
    }
}

#[test]
fn a_canceled_run_is_undone_if_the_file_says_so() {
    let check = |more: &Json, expected: Result<bool, &str>| {
        let mut file = json!({"name": "a", "version": "1", "steps": [{"id": "a", "task": "t"}]});
        let keys = more.as_object().expect("an object").clone();
        file.as_object_mut().expect("an object").extend(keys);
        let loaded = load_json(&file);
        let found = match (&loaded.plan, loaded.diagnostics.first()) {
            (Some(plan), None) => Ok(plan.policy.compensate_on_cancel),
            (_, Some(finding)) => Err(finding.code.as_str()),
            (None, None) => panic!("a plan or a finding"),
        };
        assert_eq!(found, expected, "{more}");
    };
    check(&json!({}), Ok(false));
    check(&json!({"compensate_on_cancel": false}), Ok(false));
    check(&json!({"compensate_on_cancel": true}), Ok(true));
    check(&json!({"compensate_on_cancel": "yes"}), Err("wrong_shape"));
}

#[test]
fn overrides_and_overlays_of_other_dialects_are_reported() {
    let file = |name: &str, text: &str| Text { name: name.into(), bytes: text.as_bytes().to_vec() };
    let workflow = r#"{"name": "a", "version": "1", "steps": [{"id": "a", "task": "t"}]}"#;
    let options = Options {
        dialect: None,
        overrides: Some(file("project.yaml", "overrides: {}")),
        overlays: vec![file("more.yml", "id: more\nextends: a\nedits: []")],
        ..Options::default()
    };
    let loaded = load(file("a.json", workflow), options);
    let found: Vec<(&str, &str)> =
        loaded.diagnostics.iter().map(|finding| (finding.code.as_str(), &*finding.message)).collect();
    let expected = [
        ("unused_override", "overrides apply to swdl workflows only, but this workflow is dagnats"),
        ("unused_override", "overlays apply to speckit workflows only, but this workflow is dagnats"),
    ];
    assert_eq!(found, expected);
    assert!(loaded.is_valid() && loaded.diagnostics.iter().all(|finding| !finding.help.is_empty()));
}
