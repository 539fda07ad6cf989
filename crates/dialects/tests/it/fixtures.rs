//! A folder of files is a test suite: each file must produce the snapshot next to it, findings first, then the plan.
//!
//! `err_` files have an error, `warn_` files a warning or a hint and no error, `ok_` files none of them.
//! `NAME.overrides.yaml` applies to `NAME.yaml`, and the files in `NAME.overlays` edit `NAME.yml`. Each dialect has a
//! folder that determines how its files are read.

use crate::support::{folder, load_as, load_text, read};
use indexmap::IndexMap;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use windlass_dialects::text::{Format, Limits};
use windlass_dialects::{Dialect, Loaded, Options, Text, load, text};
use windlass_ir::plan::{Given, Parameters};
use windlass_ir::workflow::{Parameter, RunInput, Words};
use windlass_ir::{Code, Diagnostic, Plan, Severity, Source, SourceId, Sources, Span, Type, Value};

const OVERRIDES: &str = ".overrides.yaml";

/// Codes that no file in the folder can produce.
const WITHOUT_FIXTURE: [(Code, &str); 8] = [
    (Code::Unreadable, "a file that can be committed can be read"),
    (Code::TooLarge, "the file would have more than 16 MiB"),
    (Code::TooManySteps, "the file would have more than 100,000 stages"),
    (Code::NotFormatted, "only the formatter gives it; its fixtures are in a folder of their own"),
    (Code::BadParameter, "parameters come from the command line, not from a file"),
    (Code::BadPath, "only schedules and skills name paths"),
    (Code::UnknownWorkflow, "only a skill knows all workflows that its schedules may start"),
    (Code::NotConvertible, "only writing in another dialect gives it"),
];

pub fn files(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let paths = entries.map(|entry| entry.expect("a folder that can be listed").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
    files.sort_unstable();
    files
}

pub fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// The dialects that have a folder.
fn dialects() -> Vec<Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| folder(dialect.name()).is_dir()).collect()
}

/// Every workflow in the folder of a dialect, with its overrides and overlays applied.
fn fixtures_of(dialect: Dialect) -> Vec<(String, Loaded)> {
    let workflows =
        files(&folder(dialect.name())).into_iter().filter(|path| !name(path).ends_with(OVERRIDES));
    workflows
        .map(|path| {
            let overrides = path.with_extension(&OVERRIDES[1..]);
            let overrides = overrides.is_file().then(|| read(&overrides));
            let overlays = path.with_extension("overlays");
            let overlays = if overlays.is_dir() { files(&overlays) } else { Vec::new() };
            let overlays = overlays.iter().map(|path| read(path)).collect();
            (
                name(&path),
                load(
                    read(&path),
                    Options { dialect: Some(dialect), overrides, overlays, ..Options::default() },
                ),
            )
        })
        .collect()
}

fn fixtures() -> Vec<(String, Loaded)> {
    dialects().into_iter().flat_map(fixtures_of).collect()
}

pub fn show(loaded: &Loaded) -> String {
    let mut shown = String::new();
    for finding in &loaded.diagnostics {
        shown.push_str(&show_finding(finding, &loaded.sources));
    }
    if let Some(plan) = &loaded.plan {
        let mut outline = serde_json::to_value(outline(plan, loaded.words)).expect("an outline is data");
        let fields = outline.as_object_mut().expect("an outline is an object");
        fields.shift_remove("parameters_schema");
        fields.shift_remove("digest");
        shown.push_str(&serde_json::to_string_pretty(&outline).expect("JSON"));
    }
    shown
}

fn outline(plan: &Plan, words: &Words) -> windlass_ir::plan::Outline {
    let demanded = plan.parameters.iter().filter(|(_, p)| p.required && p.default.is_none());
    let given: IndexMap<String, Given> =
        demanded.map(|(name, p)| (name.to_string(), Given::Value(allowed(p)))).collect();
    let parameters = match plan.input {
        RunInput::Declared => plan.parameters(&given, words).expect("samples of the right types"),
        RunInput::Open(_) => Parameters::default(),
    };
    plan.outline(words, &parameters)
}

fn allowed(parameter: &Parameter) -> Value {
    parameter.choices.first().cloned().unwrap_or_else(|| sample(&parameter.ty))
}

fn sample(ty: &Type) -> Value {
    match ty {
        Type::Any | Type::String | Type::MemoryItem => Value::text("sample"),
        Type::Number => Value::Float(2.5),
        Type::Integer => Value::Int(3),
        Type::Boolean => Value::Bool(true),
        Type::Object | Type::Schema(_) => Value::map::<&str>([]),
        Type::Array(item) => Value::list([sample(item)]),
        Type::ArtifactRef => Value::text("agent:sample"),
        Type::ContextModule => Value::text("ctx:sample"),
    }
}

/// The kind and location, the source text, other locations, the cause and the fix.
pub fn show_finding(finding: &Diagnostic, sources: &Sources) -> String {
    let json = finding.to_json(sources);
    let mut shown = format!("{} {}", json["severity"].as_str().unwrap_or_default(), finding.code);
    if let Some(span) = finding.span {
        write!(shown, " {}", place(span, sources)).expect("text");
    }
    for key in ["step", "field", "ref", "suggest"] {
        if let Some(value) = json[key].as_str() {
            write!(shown, " {key}={value}").expect("text");
        }
    }
    if let Some(rule) = finding.rule {
        write!(shown, " rule={rule}").expect("text");
    }
    shown.push('\n');
    if let Some(span) = finding.span {
        writeln!(shown, "    | {}", excerpt(span, sources)).expect("text");
    }
    for label in &finding.labels {
        writeln!(shown, "    {} {}", place(label.span, sources), label.text).expect("text");
    }
    writeln!(shown, "    {}\n    help: {}", finding.message, finding.help).expect("text");
    shown
}

fn place(span: Span, sources: &Sources) -> String {
    let (start, end) = (sources.start_of(span), sources.end_of(span));
    let file = match span.source {
        SourceId(0) => String::new(),
        SourceId(_) => format!("{}:", sources.get(span.source).name),
    };
    format!("{file}{}:{}-{}:{}", start.line, start.column, end.line, end.column)
}

/// The line in which a span starts, with the span in brackets.
fn excerpt(span: Span, sources: &Sources) -> String {
    const CHARS_MAX: usize = 100;
    let text = &*sources.get(span.source).text;
    let (start, end) = (span.start as usize, span.end as usize);
    let from = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let to = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let inside = &text[start..end.min(to)];
    let after = if end > to { "…" } else { &text[end..to] };
    let line = format!("{}⟦{inside}⟧{after}", &text[from..start]);
    let line = line.trim();
    line.char_indices().nth(CHARS_MAX).map_or_else(|| line.to_owned(), |(at, _)| format!("{}…", &line[..at]))
}

/// If the file only declares dependencies, the data flow is shown as well.
fn data_flow(loaded: &Loaded) -> String {
    match (&loaded.plan, loaded.dialect) {
        (Some(plan), Dialect::Dagnats) => crate::dagnats::data_flow(loaded, plan),
        (_, Dialect::Swdl | Dialect::Speckit | Dialect::Dagnats | Dialect::Dcc) => String::new(),
    }
}

#[test]
fn each_file_produces_its_snapshot() {
    for dialect in dialects() {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(folder(dialect.name()).join("snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| {
            for (name, loaded) in fixtures_of(dialect) {
                insta::assert_snapshot!(name, show(&loaded) + &data_flow(&loaded));
            }
        });
    }
}

#[test]
fn file_names_match_the_findings() {
    let mut wrong = String::new();
    for (name, loaded) in fixtures() {
        let worst = loaded.diagnostics.iter().map(|finding| finding.severity).min();
        let prefix = match worst {
            Some(Severity::Error) => "err_",
            Some(Severity::Warning | Severity::Hint) => "warn_",
            None => "ok_",
        };
        if !name.starts_with(prefix) {
            writeln!(wrong, "{name} should start with {prefix}:\n{}", show(&loaded)).expect("text");
        }
        assert_eq!(loaded.is_valid(), prefix != "err_", "{name}");
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The codes that the files of a dialect produce.
pub fn codes_of(dialect: Dialect) -> BTreeSet<Code> {
    let loaded = fixtures_of(dialect);
    loaded.iter().flat_map(|(_, loaded)| &loaded.diagnostics).map(|finding| finding.code).collect()
}

#[test]
fn every_code_has_a_file() {
    let found: BTreeSet<Code> = dialects().into_iter().flat_map(codes_of).collect();
    for (code, reason) in WITHOUT_FIXTURE {
        assert!(!found.contains(&code), "{code} has a fixture, although {reason}");
    }
    let excused = |code: &Code| WITHOUT_FIXTURE.iter().any(|(without, _)| without == code);
    let missing: Vec<&str> = Code::ALL
        .iter()
        .filter(|code| !found.contains(code) && !excused(code))
        .map(|code| code.as_str())
        .collect();
    assert!(missing.is_empty(), "no fixture gives {}", missing.join(", "));
}

#[test]
fn every_snapshot_has_its_file() {
    for dialect in dialects() {
        let fixtures: BTreeSet<String> = fixtures_of(dialect).into_iter().map(|(name, _)| name).collect();
        let snapshots = files(&folder(dialect.name()).join("snapshots"));
        for snapshot in
            snapshots.iter().filter(|path| path.extension().is_some_and(|ending| ending == "snap"))
        {
            let name = name(snapshot);
            let file = name.strip_suffix(".snap").unwrap_or(&name);
            let file = file.strip_prefix("plan_").or(file.strip_prefix("triggers_")).unwrap_or(file);
            assert!(fixtures.contains(file), "{name} belongs to no fixture");
        }
    }
}

pub fn digest(loaded: &Loaded) -> &str {
    loaded.plan.as_ref().unwrap_or_else(|| panic!("{:#?}", loaded.diagnostics)).digest.as_str()
}

fn reversed(json: Json) -> Json {
    match json {
        Json::Array(items) => items.into_iter().map(reversed).collect(),
        Json::Object(map) => {
            Json::Object(map.into_iter().rev().map(|(key, value)| (key, reversed(value))).collect())
        }
        other @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => other,
    }
}

/// The same file as JSON, with the keys of every mapping in reverse order; `None` for a file with keys that differ
/// only in type, which JSON cannot represent.
pub fn turned_over(file: &Text) -> Option<Text> {
    let source = Source::new(&*file.name, String::from_utf8_lossy(&file.bytes));
    let format = if file.name.ends_with(".json") { Format::Json } else { Format::Yaml };
    let read = text::read(&source, SourceId(0), format, &Limits::default());
    let is_double = |finding: &Diagnostic| finding.code == Code::DuplicateKey;
    if read.diagnostics.iter().any(is_double) {
        return None;
    }
    let json =
        reversed(read.root.expect("a valid file").to_value().to_json().expect("a file holds no secret"));
    Some(Text { name: "turned-over.json".into(), bytes: json.to_string().into_bytes() })
}

#[test]
fn the_order_of_keys_and_the_format_do_not_matter() {
    for dialect in dialects() {
        let options = || Options { dialect: Some(dialect), ..Options::default() };
        for path in files(&folder(dialect.name())).into_iter().filter(|path| name(path).starts_with("ok_")) {
            let file = read(&path);
            if name(&path).ends_with(OVERRIDES) || path.with_extension(&OVERRIDES[1..]).is_file() {
                continue;
            }
            let Some(other) = turned_over(&file) else { continue };
            let other = load(other, options());
            assert_eq!(digest(&load(file, options())), digest(&other), "{}", name(&path));
        }
    }
}

#[test]
fn spelling_does_not_matter_but_the_order_of_lists_does() {
    const PLAIN: &str = "workflow: {id: w, name: W}\nstages:\n- {id: a, type: shell, run: make}\n- {id: b, type: shell, run: 'echo ${{ env.X }}', env: {X: y}}\n";
    let check = |text: &str, is_same: bool| {
        let (plain, other) = (load_text(PLAIN), load_text(text));
        assert_eq!(digest(&plain) == digest(&other), is_same, "{text}");
    };
    let replaced = |from: &str, to: &str| {
        assert!(PLAIN.contains(from), "{from}");
        PLAIN.replace(from, to)
    };
    check(&replaced("run: make", "run: \"make\""), true);
    check(&replaced("run: make", "run: 'make' "), true);
    check(&replaced("stages:\n", "# what is done\n\nstages:   # a list\n"), true);
    check(
        &replaced("- {id: a, type: shell, run: make}", "- id: a\n  run: |-\n    make\n  type: shell"),
        true,
    );
    check(&replaced("${{ env.X }}", "${{env.X}}"), true);
    check(&replaced("\n", "\r\n"), true);
    check(&replaced("stages:", "stages: !!seq"), true);
    check(&replaced("id: w", "id: w, version: 1.0.0"), true);
    check(&replaced("run: make}", "run: make, ui: {x: 1}}"), true);
    check(&replaced("run: make}", "run: make, condition: true}"), true);
    check(&replaced("run: make", "run: make all"), false);
    check(&replaced("name: W", "name: V"), false);
    check(&replaced("env: {X: y}", "env: {X: z}"), false);
    check(&replaced("id: b,", "id: b, depends_on: [a],"), false);
    let listed: Vec<&str> = PLAIN.lines().collect();
    check(&[listed[0], listed[1], listed[3], listed[2]].join("\n"), false);
}

/// The yaml blocks of a page, each with the words after its fence.
pub fn blocks(page: &str) -> Vec<(Vec<&str>, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(words) = line.strip_prefix("```") else { continue };
        let text: String =
            lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
        blocks.push((words.split(' ').collect(), text));
    }
    blocks
}

/// An example shows only the relevant part; the rest of a workflow is added around it.
fn whole(example: &str) -> String {
    let has = |key: &str| example.lines().any(|line| line.starts_with(key));
    let header = if has("workflow:") { "" } else { "workflow: {id: example, name: Example}\n" };
    let stages = if has("stages:") { "" } else { "stages: [{id: work, type: shell, run: make}]\n" };
    format!("{header}{example}{stages}")
}

/// `yaml fails CODE` has errors, `yaml warns CODE` warnings and `yaml hints CODE` hints of that code and nothing
/// else; `yaml` has no findings. The name of a dialect after `yaml` means that the block is a whole file of it.
#[test]
fn the_examples_on_error_pages_are_correct() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut wrong = String::new();
    for path in files(&docs.join("errors")).into_iter().chain([docs.join("dialects/dcc.md")]) {
        let page = std::fs::read_to_string(&path).expect("a page is text");
        for (words, text) in blocks(&page) {
            let dialect = words.get(1).and_then(|word| Dialect::by_name(word));
            let rest = words.get(if dialect.is_some() { 2 } else { 1 }..).unwrap_or_default();
            let expected: Option<(Severity, &str)> = match rest {
                _ if words.first() != Some(&"yaml") => continue,
                [] => None,
                ["fails", code] => Some((Severity::Error, *code)),
                ["warns", code] => Some((Severity::Warning, *code)),
                ["hints", code] => Some((Severity::Hint, *code)),
                _ => continue,
            };
            let expected: BTreeSet<_> = expected.into_iter().collect();
            let loaded = match dialect {
                Some(dialect) => load_as(dialect, &text),
                None => load_text(&whole(&text)),
            };
            let found =
                loaded.diagnostics.iter().map(|finding| (finding.severity, finding.code.as_str())).collect();
            if expected != found {
                writeln!(wrong, "{}: ```{}\n{text}{}", name(&path), words.join(" "), show(&loaded))
                    .expect("text");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
