//! Workflows by name: those that Spec Kit has installed in a project, folders and files of workflows, and the workflows of skills.

use crate::files::WORKFLOW_FILES;
use crate::load::PROJECT_MARKS;
use crate::triggers::skill_workflows;
use std::path::{Path, PathBuf};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// Where Spec Kit installs workflows, below its project.
const INSTALLED: &str = ".specify/workflows";

/// Names there that are none of workflows.
const RESERVED: [&str; 3] = ["overlays", "runs", "steps"];

/// More folders and files than this are not looked at in one place.
const ENTRIES_MAX: usize = 1_000;

/// A workflow that can be named.
struct Known {
    name: String,
    file: PathBuf,
}

/// Whether a text could be meant as a name: no path, and no ending of a file.
pub fn is_name(text: &str) -> bool {
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
    let file = ending.is_some_and(|ending| matches!(ending, "yaml" | "yml" | "json" | "md" | "toml"));
    !text.is_empty() && !text.contains(['/', '\\']) && !text.starts_with(['-', '.']) && !file
}

/// The file of the workflow with this name; none when there is no such workflow.
pub fn find(name: &str) -> Result<Option<PathBuf>, Box<Diagnostic>> {
    let known = known();
    let mut found: Vec<PathBuf> =
        known.into_iter().filter(|known| known.name == name).map(|known| known.file).collect();
    found.dedup();
    match found.as_slice() {
        [] => Ok(None),
        [only] if is_disabled(only, name) => {
            let finding = Diagnostic::error(
                Code::Unreadable,
                format!("the workflow `{name}` is installed and disabled"),
            );
            Err(Box::new(
                finding.help(format!("enable it with `specify workflow enable {name}`, or name its file")),
            ))
        }
        [only] => Ok(Some(only.clone())),
        several => {
            let files: Vec<String> = several.iter().map(|file| file.display().to_string()).collect();
            let finding = Diagnostic::error(
                Code::Unreadable,
                format!("several workflows are called `{name}`: {}", files.join(", ")),
            );
            Err(Box::new(finding.help("name the file")))
        }
    }
}

/// The name that was probably meant.
pub fn near(name: &str) -> Option<String> {
    let known = known();
    nearest(name, known.iter().map(|known| known.name.as_str())).map(str::to_owned)
}

/// From here up to the top of the project; outside of one only here.
fn places() -> Vec<PathBuf> {
    let Ok(here) = std::env::current_dir() else { return Vec::new() };
    let ups: Vec<PathBuf> = here.ancestors().map(Path::to_owned).collect();
    let top = ups.iter().position(|folder| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists()));
    ups.into_iter().take(top.unwrap_or(0) + 1).collect()
}

fn known() -> Vec<Known> {
    let mut all = Vec::new();
    let project = std::env::var_os("SPECIFY_INIT_DIR").map(PathBuf::from);
    let places = places();
    for place in project.iter().chain(&places) {
        installed(&place.join(INSTALLED), &mut all);
    }
    for place in &places {
        folders(place, &mut all);
        folders(&place.join("workflows"), &mut all);
        files(&place.join("workflows"), &mut all);
        let skills = entries(&place.join("skills")).into_iter().chain([place.clone()]);
        for skill in skills.map(|folder| folder.join("SKILL.md")).filter(|skill| skill.is_file()) {
            all.extend(skill_workflows(&skill).into_iter().map(|(name, file)| Known { name, file }));
        }
    }
    // A workflow can be met on several ways.
    let mut seen = std::collections::HashSet::new();
    all.retain(|known| {
        let file = std::fs::canonicalize(&known.file).unwrap_or_else(|_| known.file.clone());
        seen.insert((known.name.clone(), file))
    });
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(str::to_owned)
}

fn installed(folder: &Path, all: &mut Vec<Known>) {
    for folder in entries(folder) {
        let file = folder.join("workflow.yml");
        if let Some(name) =
            name_of(&folder).filter(|name| !RESERVED.contains(&name.as_str()) && file.is_file())
        {
            all.push(Known { name, file });
        }
    }
}

fn folders(folder: &Path, all: &mut Vec<Known>) {
    for folder in entries(folder).into_iter().filter(|folder| folder.is_dir()) {
        let file = WORKFLOW_FILES.iter().map(|file| folder.join(file)).find(|file| file.is_file());
        if let (Some(name), Some(file)) = (name_of(&folder), file) {
            all.push(Known { name, file });
        }
    }
}

/// Files as they are, without the endings that say how they are written.
fn files(folder: &Path, all: &mut Vec<Known>) {
    for file in entries(folder).into_iter().filter(|file| file.is_file()) {
        let Some(name) = name_of(&file) else { continue };
        let stem = [".yaml", ".yml", ".json"].iter().find_map(|ending| name.strip_suffix(ending));
        if let Some(stem) = stem.filter(|stem| !stem.ends_with(".test") && !stem.ends_with(".schedules")) {
            let name = stem.strip_suffix(".workflow").unwrap_or(stem).to_owned();
            all.push(Known { name, file });
        }
    }
}

/// Whether the registry of Spec Kit says that an installed workflow is not to be used.
fn is_disabled(file: &Path, name: &str) -> bool {
    let registry = file.parent().and_then(Path::parent).filter(|folder| folder.ends_with(INSTALLED));
    let text =
        registry.and_then(|folder| std::fs::read_to_string(folder.join("workflow-registry.json")).ok());
    let json: Option<serde_json::Value> = text.and_then(|text| serde_json::from_str(&text).ok());
    json.is_some_and(|json| json["workflows"][name]["enabled"] == false)
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
