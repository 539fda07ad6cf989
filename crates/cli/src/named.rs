//! Workflows by name: those that Spec Kit has installed in a project, folders and files of workflows, and the workflows of skills.

use crate::files::WORKFLOW_FILES;
use crate::load::{self, PROJECT_MARKS};
use crate::triggers::skill_workflows;
use std::path::{Path, PathBuf};
use windlass_dialects::DIALECTS;
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};
use windlass_runtime::{Unfound, find_workflow, upwards};

/// Where Spec Kit installs workflows, below its project.
const INSTALLED: &str = ".specify/workflows";

/// More folders and files than this are not looked at in one place.
const ENTRIES_MAX: usize = 1_000;

/// Whether a text could be meant as a name: no path, and no ending of a file.
pub fn is_name(text: &str) -> bool {
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
    let file = ending.is_some_and(|ending| matches!(ending, "yaml" | "yml" | "json" | "md" | "toml"));
    !text.is_empty() && !text.contains(['/', '\\']) && !text.starts_with(['-', '.']) && !file
}

/// The file of the workflow with this name; none when there is no such workflow.
pub fn find(name: &str) -> Result<Option<PathBuf>, Box<Diagnostic>> {
    let places = places();
    for folder in places.iter().flat_map(|place| [place.clone(), place.join("workflows")]) {
        match find_workflow(&load::Files, DIALECTS, name, &folder) {
            Ok(found) => return Ok(Some(found.file)),
            // Whoever reads it says what is wrong with it; that it calls itself otherwise is no matter to a person.
            Err(Unfound::Bad { file, .. }) => return Ok(Some(file)),
            Err(Unfound::Disabled { file }) => return Err(disabled(&file)),
            Err(Unfound::NotThere { .. }) => {}
            Err(unfound @ Unfound::Several(_)) => {
                let finding =
                    Diagnostic::error(Code::Unreadable, format!("the workflow `{name}`: {unfound}"));
                return Err(Box::new(finding.help("name the file")));
            }
        }
    }
    let in_skill = |skill: PathBuf| skill_workflows(&skill).into_iter().find(|(found, _)| found == name);
    if let Some((_, file)) = skills(&places).into_iter().find_map(in_skill) {
        return Ok(Some(file));
    }
    Ok(None)
}

/// What is said of a workflow that Spec Kit has switched off.
pub fn disabled(file: &Path) -> Box<Diagnostic> {
    let name = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let message = format!("the workflow `{name}` is installed and disabled");
    let help = format!("enable it with `specify workflow enable {name}`");
    Box::new(Diagnostic::error(Code::Unreadable, message).help(help))
}

/// The name that was probably meant.
pub fn near(name: &str) -> Option<String> {
    let places = places();
    let folders =
        places.iter().flat_map(|place| [place.clone(), place.join("workflows"), place.join(INSTALLED)]);
    let mut names: Vec<String> =
        folders.flat_map(|folder| entries(&folder)).filter_map(|path| stem(&path)).collect();
    names.extend(skills(&places).iter().flat_map(|skill| skill_workflows(skill)).map(|(name, _)| name));
    nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
}

/// From here up to the top of the project; outside of one only here. Spec Kit can be told where its project is.
fn places() -> Vec<PathBuf> {
    let Ok(here) = std::env::current_dir() else { return Vec::new() };
    let ups = upwards(&here);
    let top = ups.iter().position(|folder| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists()));
    let project = std::env::var_os("SPECIFY_INIT_DIR").map(PathBuf::from);
    project.into_iter().chain(ups.into_iter().take(top.unwrap_or(0) + 1)).collect()
}

fn skills(places: &[PathBuf]) -> Vec<PathBuf> {
    let folders =
        places.iter().flat_map(|place| entries(&place.join("skills")).into_iter().chain([place.clone()]));
    folders.map(|folder| folder.join("SKILL.md")).filter(|skill| skill.is_file()).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// What a folder or a file of a workflow would be called: without the endings that say how it is written.
fn stem(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    if path.is_dir() {
        return WORKFLOW_FILES.iter().any(|file| path.join(file).is_file()).then(|| name.to_owned());
    }
    let stem = [".yaml", ".yml", ".json"].iter().find_map(|ending| name.strip_suffix(ending))?;
    Some(stem.strip_suffix(".workflow").unwrap_or(stem).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path_and_no_file() {
        for name in ["release", "my-flow", "release.v2", "näher"] {
            assert!(is_name(name), "{name}");
        }
        for path in ["", "-", ".", "./x", "a/b", "x.yaml", "x.yml", "x.json", "..", "a\\b"] {
            assert!(!is_name(path), "{path}");
        }
    }
}
