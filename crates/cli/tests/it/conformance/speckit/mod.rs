//! Spec Kit. A case is a folder with a workflow and `expected.json`: what Spec Kit was seen to print and to write down, phase by
//! phase. A phase runs the workflow in a fresh copy of the folder, or resumes the run of the phase before it.

mod compare;
mod expressions;
mod project;
mod validation;

use super::{Case, Program};
use compare::compare;
use project::Project;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

const DIALECT: &str = "speckit";

pub fn cases(program: &Program) -> Vec<Case> {
    let folders = folders();
    let mut cases = at_once(&folders, |folder| phases(program, folder));
    cases.extend(validation::cases(program));
    cases.extend(expressions::cases(program));
    cases
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dialects/fixtures/speckit/cases")
}

fn folders() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixtures()).expect("the cases");
    let folders = entries.map(|entry| entry.expect("a readable folder").path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.join("expected.json").is_file()).collect();
    folders.sort();
    folders
}

/// Does the same for all of them, a few at a time, and keeps their order.
fn at_once<T: Sync, U: Send>(all: &[T], one: impl Fn(&T) -> Vec<U> + Sync) -> Vec<U> {
    const THREADS: usize = 4;
    let one = &one;
    let mut done: Vec<(usize, Vec<U>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| {
                let own = all.iter().enumerate().skip(first).step_by(THREADS);
                scope.spawn(move || own.map(|(number, it)| (number, one(it))).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic in a case")).collect()
    });
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().flat_map(|(_, cases)| cases).collect()
}

fn phases(program: &Program, folder: &Path) -> Vec<Case> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let text = std::fs::read(folder.join("expected.json")).expect("expected.json");
    let case: Json = serde_json::from_slice(&text).expect("JSON");
    let mut project: Option<Project> = None;
    let phases = case["phases"].as_array().expect("phases").iter().enumerate();
    let lived = phases.map(|(number, phase)| {
        let name = format!("{name} {} {number}", phase["command"].as_str().unwrap_or_default());
        if phase["command"] == "run" {
            project = Some(Project::new(program, folder, &name, &case));
        }
        let project = project.as_mut().expect("a run comes first");
        let decision = phase["windlass"]["decision"].as_str();
        let expected = ours(phase);
        let checked = project.live(&expected).and_then(|seen| compare(&expected, &seen));
        let case = Case::new(DIALECT, name, checked);
        match decision {
            Some(number) => case.decided(number.to_owned().leak()),
            None => case,
        }
    });
    lived.collect()
}

/// What is expected of us: where a decision makes that something else, `windlass` says what.
fn ours(phase: &Json) -> Json {
    let mut expected = phase.clone();
    let other = phase["windlass"].as_object().into_iter().flatten();
    other.for_each(|(key, value)| expected[key] = value.clone());
    expected
}
