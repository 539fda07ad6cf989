//! Tests of schedules and skills: folders of files, a table of what the original scheduler accepts and refuses, and
//! the values of placeholders.

use crate::fixtures::show_finding;
use crate::support::{folder, read};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use windlass_dialects::dcc::skill::{Skill, read_skill, workflow_name};
use windlass_dialects::{Dialect, FileKind, Options, Schedules, Text, file_kind, load, read_schedules};
use windlass_ir::expr::{EvalError, Limits, Namespace, Read, Scope, Semantics, render};
use windlass_ir::trigger::{Schedule, SigningSecret, TriggerInput, TriggerSource};
use windlass_ir::{Code, Diagnostic, Severity, Value};

fn file(name: &str, text: &str) -> Text {
    Text { name: name.into(), bytes: text.as_bytes().to_vec() }
}

fn schedules(text: &str) -> Schedules {
    read_schedules(file("test.schedules.yaml", text))
}

fn files(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("the fixtures");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort_unstable();
    files
}

fn snapshots(name: &str, show: impl Fn(Text) -> (Vec<Diagnostic>, String)) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(name).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut names = BTreeSet::new();
    for path in files(&folder(name)) {
        let text = read(&path);
        let file = text.name.clone();
        let (findings, shown) = show(text);
        let prefix = match findings.iter().map(|finding| finding.severity).min() {
            Some(Severity::Error) => "err_",
            Some(Severity::Warning | Severity::Hint) => "warn_",
            None => "ok_",
        };
        assert!(file.starts_with(prefix), "{file} should start with {prefix}:\n{shown}");
        settings.bind(|| insta::assert_snapshot!(file.clone(), shown));
        names.insert(format!("{file}.snap"));
    }
    let orphans: Vec<PathBuf> = files(&folder(name).join("snapshots"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "snap"))
        .filter(|path| !path.file_name().is_some_and(|name| names.contains(&*name.to_string_lossy())))
        .collect();
    assert!(orphans.is_empty(), "snapshots without a file: {orphans:?}");
}

#[test]
fn each_schedules_file_produces_its_snapshot() {
    snapshots("schedules", |text| {
        let read = read_schedules(text);
        let mut shown: String =
            read.diagnostics.iter().map(|found| show_finding(found, &read.sources)).collect();
        for schedule in &read.schedules {
            writeln!(shown, "{}", serde_json::to_string_pretty(&outline(schedule)).expect("data"))
                .expect("text");
        }
        (read.diagnostics, shown)
    });
}

fn outline(schedule: &Schedule) -> Json {
    let trigger = &schedule.trigger;
    let source = match &trigger.source {
        TriggerSource::Cron(cron) => json!({
            "cron": &*cron.pattern.value,
            "timezone": cron.timezone.as_deref(),
            "jitter": cron.jitter.map(|jitter| jitter.to_string()),
        }),
        TriggerSource::Webhook { path, secret } => json!({
            "webhook": &**path,
            "secret": secret.as_ref().map(|secret| match secret {
                SigningSecret::Variable(name) => format!("the variable {name}"),
                SigningSecret::Declared(_) | SigningSecret::Literal(_) => panic!("no schedule can say that"),
            }),
        }),
        other => panic!("no schedule can be fired by {other:?}"),
    };
    let TriggerInput::Whole(input) = &trigger.input else { panic!("the whole input") };
    json!({
        "id": trigger.id.as_ref().map(|id| &*id.value),
        "workflow": &*schedule.workflow.value,
        "enabled": trigger.enabled,
        "runs_max": trigger.runs_max,
        "source": source,
        "input": fired(input, &json!({"file_path": "/in/a.exr", "files": [{"name": "a.exr", "bytes": 12}]})),
    })
}

#[test]
fn each_skill_produces_its_snapshot() {
    snapshots("skills", |text| {
        let Skill { sources, name, workflows, schedules, search_hint, diagnostics } = read_skill(&text);
        let mut shown: String = diagnostics.iter().map(|found| show_finding(found, &sources)).collect();
        shown.extend(search_hint.map(|hint| format!("search hint {hint:?}\n")));
        let globs = |patterns: &[windlass_dialects::dcc::skill::Pattern]| {
            patterns.iter().map(|pattern| pattern.glob.value.to_string()).collect::<Vec<_>>()
        };
        writeln!(
            shown,
            "name: {name:?}\nworkflows: {:?}\nschedules: {:?}",
            globs(&workflows),
            globs(&schedules)
        )
        .expect("text");
        (diagnostics, shown)
    });
}

#[test]
fn patterns_stay_in_their_folder_and_stars_in_their_name() {
    let skill = read_skill(&read(&folder("skills").join("ok_flat.md")));
    let check = |path: &str, expected: bool| {
        assert_eq!(skill.workflows.iter().any(|pattern| pattern.matches(path)), expected, "{path}");
    };
    check("workflows/a.workflow.yaml", true);
    check("workflows/deeper/a.workflow.yaml", false);
    check("a.workflow.yaml", false);
    check("extra/b.yml", true);
    check("extra/deep/down/b.yaml", true);
    check("extra/b.json", false);
}

#[test]
fn a_workflow_has_its_own_name_or_that_of_its_file() {
    let check = |name: &str, text: &str, expected: &str| {
        assert_eq!(workflow_name(&file(name, text)), expected, "{name}: {text}");
    };
    check("flows/tidy.workflow.yaml", "name: scene_cleanup\nsteps: []", "scene_cleanup");
    check("flows/tidy.workflow.yaml", "steps: []", "tidy");
    check("tidy.yaml", "workflow: {id: clean, name: Clean}", "clean");
    check("tidy.workflow.yml", "name: ' '", "tidy");
    check("tidy.workflow.yml", "name: [", "tidy");
    check("tidy.json", "{\"name\": \"j\"}", "j");
}

/// One cron trigger with these fields, as JSON so that quoting loses nothing.
fn cron(fields: &Json) -> String {
    let mut trigger = json!({"kind": "cron", "expression": "0 0 3 * * *"});
    let object = trigger.as_object_mut().expect("an object");
    object.extend(fields.as_object().expect("an object").clone());
    entry(&json!({"trigger": trigger}))
}

fn expression(text: &str) -> String {
    cron(&json!({"expression": text}))
}

fn webhook(path: &str) -> String {
    entry(&json!({"trigger": {"kind": "webhook", "path": path}}))
}

/// One schedule with these keys instead of the usual ones; null removes a key.
fn entry(keys: &Json) -> String {
    let trigger = json!({"kind": "webhook", "path": "/x"});
    let mut entry = json!({"id": "a", "workflow": "w", "trigger": trigger});
    let object = entry.as_object_mut().expect("an object");
    object.extend(keys.as_object().expect("an object").clone());
    object.retain(|_, value| !value.is_null());
    json!({"schedules": [entry]}).to_string()
}

/// The codes of all findings, errors in capitals.
fn codes(text: &str) -> Vec<String> {
    let code = |finding: &Diagnostic| match finding.severity {
        Severity::Error => finding.code.as_str().to_uppercase(),
        Severity::Warning | Severity::Hint => finding.code.as_str().to_owned(),
    };
    schedules(text).diagnostics.iter().map(code).collect()
}

#[test]
fn the_table_of_the_scheduler_row_by_row() {
    let check = |text: &str, expected: &[&str]| assert_eq!(codes(text), expected, "{text}");
    let good = |texts: &[&str]| texts.iter().for_each(|text| check(&expression(text), &[]));
    let bad = |texts: &[&str]| texts.iter().for_each(|text| check(&expression(text), &["BAD_CRON"]));
    good(&["0 0 3 * * *", "0 0 3 * * * 2030", "*/5 * * * * *", "@daily", "@hourly"]);
    bad(&["0 3 * * *", "0 0 3 * * * 1969"]);
    good(&["0 0 3 * * MON-FRI", "0 0 3 * * 1-5", "0 0 3 * * Sunday", "0 0 3 * * 7"]);
    bad(&["0 0 3 * * 0", "0 0 3 * * 8", "0 0 3 * * 1#2"]);
    good(&["0 0 3 ? * *", "0 0 3 1,15 * *"]);
    bad(&["0 0 3 0 * *", "0 0 3 L * *", "0 0 3 1W * *"]);
    good(&["0 0 3 * JAN *", "0 0 0-23/2 * * *", "0 0 0 31 2 *", "  0  0   3 * *   * "]);
    bad(&["0 0 3 * 13 *", "0 0 24 * * *", "0 0 5-1 * * *", "60 0 3 * * *", ""]);
    check(
        &entry(&json!({"enabled": false, "trigger": {"kind": "cron", "expression": "nope"}})),
        &["BAD_CRON"],
    );
    for zone in ["UTC", "Europe/Berlin", "EST", "Etc/GMT+2"] {
        check(&cron(&json!({"timezone": zone})), &[]);
    }
    for zone in ["america/new_york", "Mars/Olympus", "", "GMT+2", "local", "+02:00"] {
        check(&cron(&json!({"timezone": zone})), &["BAD_TIME"]);
    }
    check(&cron(&json!({"jitter_secs": 120})), &[]);
    check(&cron(&json!({"jitter_secs": -1})), &["BAD_NUMBER"]);
    check(&cron(&json!({"jitter_secs": 1.5})), &["BAD_NUMBER"]);
    ["/x", "/", "//", "/mcp", "/ a", "/a/{id}"].iter().for_each(|path| check(&webhook(path), &[]));
    // Accepted by the original scheduler, which then crashes on startup.
    check(&webhook("/a/*rest"), &["BAD_PATH"]);
    ["x", "", " /x"].iter().for_each(|path| check(&webhook(path), &["BAD_PATH"]));
    check(&entry(&json!({"trigger": {"kind": "file"}})), &["BAD_ENUM"]);
    check(&entry(&json!({"trigger": {"kind": "Cron"}})), &["BAD_ENUM"]);
    check(&entry(&json!({"trigger": null})), &["MISSING_FIELD"]);
    check(&entry(&json!({"workflow": null})), &["MISSING_FIELD"]);
    check(&entry(&json!({"id": " "})), &["MISSING_FIELD"]);
    check(&entry(&json!({"workflow": ""})), &["MISSING_FIELD"]);
    check("schedules: []", &[]);
    check("", &[]);
    check("# nothing yet\n\n", &[]);
    check("---\n", &[]);
    check("schedules:\n", &[]);
    check("foo: 1", &["unknown_key"]);
    check("- {id: a}", &["WRONG_SHAPE"]);
    check(&entry(&json!({"max_concurrent": 0})), &[]);
    check(&entry(&json!({"max_concurrent": -1})), &["BAD_NUMBER"]);
    check(&entry(&json!({"inputs": 7})), &[]);
    check(&entry(&json!({"colour": "red"})), &["unknown_key"]);
    check(
        "schedules: [{id: a, workflow: w, enabled: yes, trigger: {kind: webhook, path: /x}}]",
        &["WRONG_SHAPE"],
    );
    check(
        "schedules: [{id: a, workflow: w, enabled: 'yes', trigger: {kind: webhook, path: /x}}]",
        &["WRONG_SHAPE"],
    );
}

#[test]
fn five_fields_suggest_the_intended_six() {
    let read = schedules(&expression("0 3 * * 1-5"));
    let finding = &read.diagnostics[0];
    assert_eq!(finding.suggest.as_deref(), Some("0 0 3 * * MON-FRI"));
    assert_eq!(finding.help, "add the seconds in front: `0 0 3 * * MON-FRI`");
}

/// The values of placeholders for a firing.
struct Fire<'a>(&'a Json);

impl Scope for Fire<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        assert_eq!(read, Read::Namespace(Namespace::Item));
        Ok(Value::from(&json!({"payload": self.0, "schedule_id": "hook", "workflow": "w"})))
    }
}

fn fired(input: &windlass_ir::workflow::Bound, payload: &Json) -> Json {
    let value = render(&input.template, &Fire(payload), &Semantics::DCC, &Limits::default());
    value.expect("placeholders never fail").to_json().expect("no secrets")
}

#[test]
fn placeholders_read_the_payload() {
    let payload = json!({
        "a": {"b": [10, {"c": true}], "n": null, "7": "seven"},
        "text": "some text",
        "list": ["b"],
    });
    let check = |inputs: Json, expected: Json| {
        let read = schedules(&entry(&json!({"inputs": inputs})));
        let [schedule] = read.schedules.as_slice() else { panic!("{inputs}: {:?}", read.diagnostics) };
        let TriggerInput::Whole(input) = &schedule.trigger.input else { panic!("the whole input") };
        assert_eq!(fired(input, &payload), expected, "{inputs}");
    };
    check(json!("{{trigger.payload}}"), payload.clone());
    check(json!(" {{ trigger.payload.a.b.0 }} "), json!(10));
    check(json!("{{trigger.payload.a.b.1.c}}"), json!(true));
    check(json!("{{trigger.payload.a.b}}"), json!([10, {"c": true}]));
    check(
        json!("b={{trigger.payload.a.b}}, c={{trigger.payload.a.b.1.c}}"),
        json!("b=[10,{\"c\":true}], c=true"),
    );
    check(json!("{{trigger.schedule_id}}/{{ trigger.workflow }}"), json!("hook/w"));
    // A null that is present is a value; in text it reads `null`.
    check(json!("{{trigger.payload.a.n}}"), json!(null));
    check(json!("n is {{trigger.payload.a.n}}"), json!("n is null"));
    // Missing values stay in the text, without the blanks.
    check(json!(" {{ trigger.payload.nope }}"), json!(" {{ trigger.payload.nope }}"));
    check(json!("x {{ trigger.payload.nope.deeper }}"), json!("x {{trigger.payload.nope.deeper}}"));
    check(json!("{{trigger.payload.a.b.9}}"), json!("{{trigger.payload.a.b.9}}"));
    check(json!("{{trigger.payload.text.length}}"), json!("{{trigger.payload.text.length}}"));
    // Digits are a list index, never a key.
    check(json!("{{trigger.payload.a.7}}"), json!("{{trigger.payload.a.7}}"));
    check(json!("{{trigger.payload.list.0}}"), json!("b"));
    // Unknown names stay too.
    check(json!("{{trigger.payloadX}} {{ other }}"), json!("{{trigger.payloadX}} {{other}}"));
    check(json!("{{ other }}"), json!("{{ other }}"));
    check(json!({"{{k}}": ["{{trigger.payload.text}}", 1]}), json!({"{{k}}": ["some text", 1]}));
    check(json!("a {{ b"), json!("a {{ b"));
}

#[test]
fn hostile_placeholders_are_bounded() {
    let deep = format!("{{{{trigger.payload{}}}}}", ".a".repeat(100_000));
    assert_eq!(codes(&entry(&json!({"inputs": deep}))), ["expression_limit"]);
    let long = format!("{{{{trigger.payload{}}}}}", ".a".repeat(100));
    assert_eq!(codes(&entry(&json!({"inputs": long}))), ["expression_limit"]);
    let many = "{{}}".repeat(100_000);
    assert_eq!(codes(&entry(&json!({"inputs": many}))).len(), 20);
}

#[test]
fn kinds_of_files_are_distinguished() {
    let check = |name: &str, text: &str, expected: FileKind| {
        assert_eq!(file_kind(&file(name, text)), expected, "{name}: {text}");
    };
    check("a.yaml", "schedules: []", FileKind::Schedules);
    check("a.yaml", "schedules: []\nsteps: []", FileKind::Workflow(Dialect::Dcc));
    check("schedules.yaml", "", FileKind::Schedules);
    check("x/night.schedules.yml", "{", FileKind::Schedules);
    check("schedules.yaml", "- a", FileKind::Schedules);
    check("schedules.yaml", "name: w\nsteps: []", FileKind::Workflow(Dialect::Dcc));
    check("w.json", r#"{"name": "w", "steps": []}"#, FileKind::Workflow(Dialect::Dagnats));
    check("WORKFLOW.json", r#"{"workflow": {}, "stage": []}"#, FileKind::Workflow(Dialect::Swdl));
    check("WORKFLOW.json", "", FileKind::Workflow(Dialect::Swdl));
    check("w.yaml", "steps: [{id: a, run: make}]", FileKind::Workflow(Dialect::Speckit));
    check("Skill.md", "", FileKind::Skill);
    check("o.yml", "id: o\nextends: w\nedits: []", FileKind::Overlay);
    check("w.yaml", "stages: []", FileKind::Workflow(Dialect::Swdl));
    check("w.yaml", "", FileKind::Workflow(Dialect::Swdl));
}

#[test]
fn files_that_are_not_workflows_are_explained() {
    let check = |name: &str, text: &str, expected: &str| {
        let loaded = load(file(name, text), Options::default());
        let [finding] = loaded.diagnostics.as_slice() else { panic!("{name}: {:?}", loaded.diagnostics) };
        assert_eq!((finding.code, finding.message.as_str()), (Code::NotAWorkflow, expected), "{name}");
        assert!(!loaded.is_valid());
    };
    check("a.yaml", "schedules: []", "this is a schedules file, not a workflow");
    check("skill.md", "---\n---\n", "this is a skill, not a workflow");
    check("o.yml", "extends: w\nedits: []", "this is an overlay, not a workflow: it edits the steps of `w`");
}

/// Blocks marked `yaml schedules` have no findings, or those that `warns CODE` and `fails CODE` name.
#[test]
fn the_examples_on_pages_are_correct() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = files(&docs.join("errors"));
    pages.push(docs.join("guides/triggers.md"));
    let mut checked = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        for block in text.split("\n```yaml schedules").skip(1) {
            let (words, block) = block.split_once('\n').expect("a block has lines");
            let block = block.split("\n```").next().expect("a block ends");
            let expected: Vec<String> = match words.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] => Vec::new(),
                ["fails", code] => vec![code.to_uppercase()],
                ["warns", code] => vec![(*code).to_owned()],
                other => panic!("{}: {other:?}", page.display()),
            };
            assert_eq!(codes(block), expected, "{}:\n{block}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 5, "only {checked} blocks were found");
}
