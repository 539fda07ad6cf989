//! Every valid file, written in the house dialect, means what it meant: same plan, same triggers, and the second writing
//! changes nothing.

use crate::generate;
use crate::support::{folder, read};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_dialects::convert::{self, difference, to_swdl};
use windlass_dialects::fmt::format_file;
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

/// What the formatter would change, as it would for a file that a person wrote.
fn not_in_form(text: &str) -> Option<String> {
    match format_file(file(text)).text {
        Ok(formatted) if formatted == text => None,
        Ok(formatted) => Some(format!("in canonical form: {}", changed(text, &formatted))),
        Err(findings) => Some(format!("not formatted: {findings:#?}")),
    }
}

/// The first line that the second writing changes.
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

#[test]
fn every_valid_file_keeps_its_meaning() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let dialects = Dialect::ALL.into_iter().map(|dialect| (dialect, folder(dialect.name())));
    let fixtures = dialects
        .filter(|(_, folder)| folder.is_dir())
        .flat_map(|(dialect, folder)| files(&folder).into_iter().map(move |path| (path, Some(dialect))));
    let all: Vec<_> = fixtures.chain(files(&examples).into_iter().map(|path| (path, None))).collect();
    let (mut converted, mut wrong) = (Vec::new(), Vec::new());
    for (path, dialect) in all {
        let options = Options { dialect, ..Options::default() };
        if load(read(&path), options.clone()).is_valid() {
            converted.extend(dialect);
            let found = problems(&read(&path), &options);
            wrong.extend(found.into_iter().map(|problem| format!("{}: {problem}", path.display())));
        }
    }
    assert!(converted.len() > 60, "only {} valid files were found", converted.len());
    for dialect in [Dialect::Swdl, Dialect::Dagnats, Dialect::Dcc] {
        assert!(converted.contains(&dialect), "no valid file of {} was found", dialect.name());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
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

/// One file of each dialect, whole, as a person reads it.
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

/// Every construct there is, nested and with hostile texts. A seed is a bug report.
#[test]
fn nothing_is_lost_whatever_a_workflow_holds() {
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
