//! Every valid file keeps its meaning when it is converted to the native dialect: same plan, same triggers, and a
//! second conversion changes nothing.

use crate::generate;
use crate::support::{folder, read};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_dialects::convert::{self, difference, to_swdl, to_syntax};
use windlass_dialects::fmt::format_file;
use windlass_dialects::text::Format;
use windlass_dialects::{Dialect, Loaded, Options, Text, load};
use windlass_ir::{Plan, resolve};

fn swdl() -> Options {
    Options { dialect: Some(Dialect::Swdl), ..Options::default() }
}

fn file(text: &str) -> Text {
    Text { name: "WORKFLOW.yaml".into(), bytes: text.as_bytes().to_vec() }
}

/// Every problem with the conversion of one file.
fn problems(original: &Text, options: &Options) -> Vec<String> {
    let converted = match to_swdl(original.clone(), options.clone()) {
        Ok(converted) => converted,
        Err(loaded) => return vec![format!("not converted: {:#?}", loaded.diagnostics)],
    };
    let back = load(file(&converted.text), swdl());
    let mut problems: Vec<String> = errors(&back);
    problems.extend(difference(&converted.loaded, &back));
    problems.extend(not_in_form(&converted.text));
    match to_swdl(file(&converted.text), swdl()) {
        Ok(again) if again.text == converted.text => {}
        Ok(again) => problems.push(changed(&converted.text, &again.text)),
        Err(loaded) => problems.extend(errors(&loaded)),
    }
    match problems.is_empty() {
        true => problems,
        false => vec![format!("{}\n{}", problems.join("\n"), converted.text)],
    }
}

/// Changes that the formatter would make.
fn not_in_form(text: &str) -> Option<String> {
    match format_file(file(text)).text {
        Ok(formatted) if formatted == text => None,
        Ok(formatted) => Some(format!("in canonical form: {}", changed(text, &formatted))),
        Err(findings) => Some(format!("not formatted: {findings:#?}")),
    }
}

/// The first line that a second conversion changes.
fn changed(first: &str, second: &str) -> String {
    let pair = first.lines().zip(second.lines()).find(|(a, b)| a != b);
    format!("the second writing differs: {pair:#?}")
}

fn errors(loaded: &Loaded) -> Vec<String> {
    let errors = loaded.diagnostics.iter().filter(|finding| finding.is_error());
    errors.map(|finding| format!("{}: {}", finding.code, finding.message)).collect()
}

/// The files at or below a folder that may be workflows.
fn files(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries.map(|entry| entry.expect("a folder that can be listed").path()) {
        let ending = entry.extension().and_then(|ending| ending.to_str());
        if entry.is_dir() {
            found.extend(files(&entry));
        } else if matches!(ending, Some("yaml" | "yml" | "json")) {
            found.push(entry);
        }
    }
    found.sort_unstable();
    found
}

/// Every valid file of the fixtures and the examples.
fn valid_files() -> Vec<(PathBuf, Options)> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let dialects = Dialect::ALL.into_iter().map(|dialect| (dialect, folder(dialect.name())));
    let fixtures = dialects
        .filter(|(_, folder)| folder.is_dir())
        .flat_map(|(dialect, folder)| files(&folder).into_iter().map(move |path| (path, Some(dialect))));
    let all = fixtures.chain(files(&examples).into_iter().map(|path| (path, None)));
    let all = all.map(|(path, dialect)| (path, Options { dialect, ..Options::default() }));
    let valid: Vec<_> = all.filter(|(path, options)| load(read(path), options.clone()).is_valid()).collect();
    assert!(valid.len() > 60, "only {} valid files were found", valid.len());
    for dialect in [Dialect::Swdl, Dialect::Speckit, Dialect::Dagnats, Dialect::Dcc] {
        let is_there = valid.iter().any(|(_, options)| options.dialect == Some(dialect));
        assert!(is_there, "no valid file of {} was found", dialect.name());
    }
    valid
}

#[test]
fn every_valid_file_keeps_its_meaning() {
    let wrong = valid_files().into_iter().flat_map(|(path, options)| {
        let found = problems(&read(&path), &options);
        found.into_iter().map(move |problem| format!("{}: {problem}", path.display()))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn other_syntax(file: Text, dialect: Dialect, format: Format) -> Result<(Text, Loaded), String> {
    let converted = to_syntax(file, Some(dialect), format);
    let converted = converted.map_err(|loaded| format!("not converted: {:#?}", loaded.diagnostics))?;
    let name = match format {
        Format::Yaml => "workflow.yaml",
        Format::Json => "workflow.json",
    };
    Ok((Text { name: name.into(), bytes: converted.text.into_bytes() }, converted.loaded))
}

/// A file in the other syntax and back again, with the digests of all three plans.
fn there_and_back(original: Text, options: &Options) -> Result<(), String> {
    let loaded = load(original.clone(), options.clone());
    let (there, back) = match original.name.ends_with(".json") {
        true => (Format::Yaml, Format::Json),
        false => (Format::Json, Format::Yaml),
    };
    let (second, first) = other_syntax(original, loaded.dialect, there)?;
    let (third, second) = other_syntax(second, loaded.dialect, back)?;
    let third = load(third, Options { dialect: Some(loaded.dialect), ..Options::default() });
    let digest = |loaded: &Loaded| loaded.plan.as_ref().map(|plan| plan.digest.clone());
    match digest(&first) == digest(&second) && digest(&second) == digest(&third) {
        true => difference(&first, &third).map_or(Ok(()), Err),
        false => Err("the digests differ".to_owned()),
    }
}

#[test]
fn every_valid_file_has_the_same_plan_in_the_other_syntax() {
    let wrong = valid_files().into_iter().filter_map(|(path, options)| {
        let problem = there_and_back(read(&path), &options).err()?;
        let is_nan = problem.contains("JSON cannot represent the number .nan");
        (!is_nan).then(|| format!("{}: {problem}", path.display()))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn lost_comments_are_reported() {
    let workflow = "# Top.\nworkflow: {id: a, name: A}\nstages:\n  - {id: s, type: shell, run: make}";
    let with_another = format!("{workflow} # Inside.\n");
    let to_json = |text: &str| to_syntax(file(text), None, Format::Json).expect("valid").comments_lost;
    let to_swdl = |text: &str| to_swdl(file(text), swdl()).expect("valid").comments_lost;
    assert!(to_json(workflow) && to_json(&with_another));
    assert!(!to_json(workflow.trim_start_matches("# Top.\n")));
    assert!(!to_swdl(workflow) && to_swdl(&with_another));
}

/// Results of Spec Kit contain the type of a step, the text of a condition and the concurrency as written.
#[test]
fn recorded_outputs_survive_the_conversion() {
    let text = r#"
schema_version: "1.0"
workflow: {id: recorded, name: Recorded, version: "1.0.0"}
steps:
  - {id: l, type: do-while, condition: "{{ false }}", max_iterations: 2, steps: [{id: a, type: shell, run: "true"}]}
  - {id: f, type: fan-out, items: [1], max_concurrency: "2", step: {id: b, type: shell, run: "true"}}
  - {id: show, type: shell, run: "echo '{{ steps.l.output.condition }} {{ steps.l.type }}'"}
"#;
    let original = Text { name: "workflow.yml".into(), bytes: text.as_bytes().to_vec() };
    let options = Options { dialect: Some(Dialect::Speckit), ..Options::default() };
    let converted = to_swdl(original, options).unwrap_or_else(|loaded| panic!("{:#?}", loaded.diagnostics));
    assert!(converted.text.contains("recorded_condition: \"{{ false }}\""), "{}", converted.text);
    let back = load(file(&converted.text), swdl());
    let words = |loaded: &Loaded| -> Vec<String> {
        let steps = loaded.plan.iter().flat_map(|plan| &plan.steps);
        steps.map(|step| step.word.to_string()).collect()
    };
    assert_eq!(words(&back), words(&converted.loaded));
    assert_eq!(difference(&converted.loaded, &back), None);
    let changed = converted.text.replace("{{ false }}", "{{ true }}");
    let changed = difference(&converted.loaded, &load(file(&changed), swdl()));
    assert!(changed.is_some_and(|difference| difference.contains("as_written")), "a difference is found");
}

/// What is lost when a workflow is written and read again.
fn lost(seed: u64) -> Result<String, String> {
    let mut workflow = generate::workflow(seed);
    let text = convert::write(workflow.clone());
    let back = load(file(&text), swdl());
    let given = resolve(&mut workflow);
    let triggers = std::mem::take(&mut workflow.triggers);
    let wrong = given.iter().find(|finding| finding.is_error()).map(|finding| format!("given: {finding:?}"));
    let wrong = wrong.or_else(|| errors(&back).into_iter().next());
    let wrong = wrong.or_else(|| {
        let plan = back.plan.as_ref().expect("a file without errors has a plan");
        convert::plan_difference(&Plan::lower(workflow), plan)
            .or_else(|| convert::trigger_difference(&triggers, &back.triggers))
    });
    let again = wrong.or_else(|| not_in_form(&text)).or_else(|| match to_swdl(file(&text), swdl()) {
        Ok(again) if again.text == text => None,
        Ok(again) => Some(changed(&text, &again.text)),
        Err(loaded) => errors(&loaded).into_iter().next(),
    });
    match again {
        None => Ok(text),
        Some(wrong) => Err(format!("seed {seed}: {wrong}\n{text}")),
    }
}

/// One complete file of each dialect, as a person reads it.
#[test]
fn converted_files_read_as_if_written_by_hand() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder("convert"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in
            ["ship-a-feature/WORKFLOW.yaml", "dagnats/greenhouse.json", "dcc/vendor-intake.workflow.yaml"]
        {
            let converted = to_swdl(read(&examples.join(name)), Options::default());
            let Ok(converted) = converted else { panic!("{name} is not converted") };
            insta::assert_snapshot!(name.replace('/', "_"), converted.text);
        }
    });
}

/// Every construct, nested and with hostile texts. A failing seed reproduces the bug.
#[test]
fn nothing_is_lost_for_any_workflow() {
    let mut types = BTreeSet::new();
    let mut keys = BTreeSet::from(["back_to:", "quorum:", "self_approval:", "retry_after:"]);
    for seed in 0..100 {
        let text = lost(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
        keys.retain(|key| !text.contains(key));
        types.extend(text.lines().filter_map(|line| line.trim().strip_prefix("type: ").map(str::to_owned)));
    }
    for ty in ["gate", "fan_out", "shell", "tool", "task", "http", "workflow", "loop", "branch", "wait"] {
        assert!(types.contains(ty), "no {ty} was made");
    }
    for ty in ["assign", "finish", "block", "parallel", "assistant", "builtin", "slot"] {
        assert!(types.contains(ty), "no {ty} was made");
    }
    assert!(keys.is_empty(), "no workflow was made with {keys:?}");
}
