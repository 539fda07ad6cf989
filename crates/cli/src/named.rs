//! Finds workflows by name in the project around the current folder.

use crate::load::PROJECT_MARKS;
use std::path::{Path, PathBuf};
use windlass_api::Refusal;
use windlass_api::library::{Library, Lookup, ambiguous, is_skipped};
use windlass_ir::{Code, Diagnostic};
use windlass_runtime::upwards;

/// Where Spec Kit installs workflows, relative to its project.
const INSTALLED: &str = ".specify/workflows";

/// Whether this text could be a name: not a path, and without a file extension.
pub fn is_name(text: &str) -> bool {
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
    let file = ending.is_some_and(|ending| matches!(ending, "yaml" | "yml" | "json" | "md" | "toml"));
    !text.is_empty() && !text.contains(['/', '\\']) && !text.starts_with(['-', '.']) && !file
}

/// The folders whose workflows have names: the project around this folder, else this folder. A folder that a search of the project
/// would skip is a project of its own. An environment variable can set Spec Kit's project.
pub fn folders() -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let is_top = |folder: &PathBuf| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists());
    let ups = upwards(&here);
    let name = |folder: &PathBuf| folder.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let above = ups.iter().position(is_top).unwrap_or(0);
    let is_apart = ups.iter().take(above).filter_map(name).any(|name| is_skipped(&name));
    let above = if is_apart { 0 } else { above };
    let project = PathBuf::from("../".repeat(above).trim_end_matches('/'));
    std::iter::once(project).chain(named_project()).collect()
}

fn named_project() -> Option<PathBuf> {
    std::env::var_os("SPECIFY_INIT_DIR").map(PathBuf::from)
}

/// The file of the only workflow with this name; none if there is no such workflow.
pub fn find(name: &str) -> Result<Option<PathBuf>, Refusal> {
    match Library::about(&folders(), name).find(name) {
        Lookup::Found(entry) => Ok(Some(entry.file.clone())),
        Lookup::Ambiguous(entries) => Err(ambiguous(name, &entries)),
        Lookup::Missing => Ok(None),
    }
}

/// The refusal of a name that is neither a file nor a workflow.
pub fn missing(name: &str) -> Refusal {
    let message = format!("no file and no workflow is called `{name}`");
    Refusal { message, ..Library::scan(&folders()).missing(name) }
}

/// The workflow installed under this name in the Spec Kit project around this folder.
pub fn installed(name: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let projects = named_project().into_iter().chain(upwards(&here));
    let project = projects.map(|folder| folder.join(INSTALLED)).find(|folder| folder.is_dir())?;
    Some(project.join(name).join("workflow.yml")).filter(|file| file.is_file())
}

/// The error for a workflow that is disabled in Spec Kit.
pub fn disabled(file: &Path) -> Box<Diagnostic> {
    let name = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let message = format!("the workflow `{name}` is installed but disabled");
    let help = format!("enable it with `specify workflow enable {name}`");
    Box::new(Diagnostic::error(Code::Unreadable, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_a_path_or_file() {
        for name in ["release", "my-flow", "release.v2", "näher"] {
            assert!(is_name(name), "{name}");
        }
        for path in ["", "-", ".", "./x", "a/b", "x.yaml", "x.yml", "x.json", "..", "a\\b"] {
            assert!(!is_name(path), "{path}");
        }
    }
}
