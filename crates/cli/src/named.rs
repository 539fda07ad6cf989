//! Workflows by their names: those that a project has where workflows are kept.

use crate::files::WORKFLOW_FILES;
use crate::load::PROJECT_MARKS;
use std::path::{Path, PathBuf};

/// How the name of a file goes on after that of its workflow.
const ENDINGS: [&str; 5] = [".workflow.yaml", ".workflow.yml", ".yaml", ".yml", ".json"];

/// So many files of a folder are looked at.
const ENTRIES_MAX: usize = 1_000;

/// The file of the workflow with this name; the nearest, where several folders have one.
pub fn find(name: &str) -> Option<PathBuf> {
    known().into_iter().find(|(known, _)| known == name).map(|(_, file)| file)
}

/// All workflows that can be named, the nearest first: in this folder, in `workflows` of the project, and installed in a Spec Kit project.
pub fn known() -> Vec<(String, PathBuf)> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_top = |folder: &&Path| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists());
    let top = here.ancestors().find(is_top).unwrap_or(&here);
    let mut found = in_folder(&here, false);
    for folder in here.ancestors().take_while(|folder| folder.starts_with(top)) {
        found.extend(in_folder(&folder.join("workflows"), true));
        found.extend(in_folder(&folder.join(".specify/workflows"), true));
    }
    found
}

/// In a folder for workflows every file with such an ending counts; elsewhere only what says that it is one.
fn in_folder(folder: &Path, all: bool) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut found: Vec<(String, PathBuf)> =
        entries.filter_map(|entry| named(&entry.path(), all).map(|name| (name, entry.path()))).collect();
    found.sort();
    found
}

fn named(path: &Path, all: bool) -> Option<String> {
    let name = path.file_name()?.to_str().filter(|name| !name.starts_with('.'))?;
    if path.is_dir() {
        return WORKFLOW_FILES.iter().any(|file| path.join(file).is_file()).then(|| name.to_owned());
    }
    let (ending, stem) = ENDINGS.iter().find_map(|ending| Some((*ending, name.strip_suffix(ending)?)))?;
    (all || ending.starts_with(".workflow")).then(|| stem.to_owned()).filter(|stem| !stem.is_empty())
}
