//! Spec Kit. A case is a folder with a workflow and `expected.json`: what Spec Kit was seen to print and to write down, phase by
//! phase. A phase runs the workflow in a fresh copy of the folder, or resumes the run of the phase before it.

mod compare;
mod expressions;
mod project;
mod validation;

use super::{Case, Checked, Program, Source};
use compare::compare;
use project::Project;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIALECT: &str = "speckit";

pub fn sources() -> Vec<Source> {
    let folders = folders().into_iter().map(|folder| {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Source::new(DIALECT, format!("{name} "), move || phases(&folder, &name))
    });
    let tables = expressions::TABLES
        .map(|table| Source::new(DIALECT, format!("{table} "), move || expressions::cases(table)));
    folders.chain([Source::new(DIALECT, "validation ", validation::cases)]).chain(tables).collect()
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

/// A folder of a case, and its `expected.json`.
struct Recorded {
    folder: PathBuf,
    about: Json,
}

impl Recorded {
    fn phases(&self) -> &[Json] {
        self.about["phases"].as_array().expect("phases")
    }

    /// Executes the run that a phase belongs to as far as that phase, and compares that phase.
    fn check(&self, phase: usize, program: &Program, id: &str) -> Checked {
        let until = &self.phases()[..phase];
        let first = match self.phases()[phase]["command"] == "run" {
            true => phase,
            false => until.iter().rposition(|phase| phase["command"] == "run").expect("a run comes first"),
        };
        let mut project = Project::new(program, &self.folder, id, &self.about);
        for earlier in &until[first..] {
            project.live(&ours(earlier))?;
        }
        let expected = ours(&self.phases()[phase]);
        project.live(&expected).and_then(|seen| compare(&expected, &seen))
    }
}

fn phases(folder: &Path, folder_name: &str) -> Vec<Case> {
    let text = std::fs::read(folder.join("expected.json")).expect("expected.json");
    let about = serde_json::from_slice(&text).expect("JSON");
    let recorded = Arc::new(Recorded { folder: folder.to_owned(), about });
    let case = |(number, phase): (usize, &Json)| {
        let name = format!("{folder_name} {} {number}", phase["command"].as_str().unwrap_or_default());
        let recorded = Arc::clone(&recorded);
        Case::new(DIALECT, name, move |program, id| recorded.check(number, program, id))
            .decided(phase["windlass"]["decision"].as_str())
    };
    recorded.phases().iter().enumerate().map(case).collect()
}

/// What is expected of us: where a decision makes that something else, `windlass` says what.
fn ours(phase: &Json) -> Json {
    let mut expected = phase.clone();
    let other = phase["windlass"].as_object().into_iter().flatten();
    other.for_each(|(key, value)| expected[key] = value.clone());
    expected
}
