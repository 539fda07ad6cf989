//! Finds called workflows: by path, or by name in the folders around the calling file.
//!
//! The layouts of the dialects add folders to search. A [`Reader`], set by the code that opens an engine, reads the files.

use crate::search::upwards;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_ir::Plan;
use windlass_ir::dialect::{Dialects, Installed};
use windlass_ir::workflow::Words;

/// Reads workflow files.
pub trait Reader: std::fmt::Debug + Send + Sync {
    /// Reads a workflow file, or the workflow file in a folder. The error is one line.
    fn read(&self, file: &Path) -> Result<Definition, String>;
}

/// A workflow file and its plan.
#[derive(Debug)]
pub struct Definition {
    pub file: PathBuf,
    pub plan: Plan,
    pub words: &'static Words,
    pub source: String,
    pub overrides: String,
}

/// Why a workflow was not found.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfound {
    NotThere {
        looked_in: PathBuf,
    },
    Several(Vec<PathBuf>),
    /// It is installed in its project, but disabled.
    Disabled {
        file: PathBuf,
    },
    Bad {
        file: PathBuf,
        cause: String,
    },
}

impl std::fmt::Display for Unfound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotThere { looked_in } => {
                write!(f, "there is none in {}: put its file there, or name its path", looked_in.display())
            }
            Self::Several(files) => {
                let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                write!(f, "it is in {}: keep one of them, or name its path", files.join(" and in "))
            }
            Self::Disabled { .. } => f.write_str("it is installed but disabled"),
            Self::Bad { file, cause } => write!(f, "{} cannot be used: {cause}", file.display()),
        }
    }
}

/// The file extensions of workflows.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// The search for a workflow by id stops after this many entries of a folder.
const ENTRIES_MAX: usize = 2_000;

/// Finds the workflow that a file in `folder` calls by this name.
pub fn find(
    reader: &dyn Reader,
    dialects: Dialects,
    name: &str,
    folder: &Path,
) -> Result<Definition, Unfound> {
    let read = |file: &Path| reader.read(file).map_err(|cause| Unfound::Bad { file: file.to_owned(), cause });
    let is_path = name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(&format!(".{ending}")));
    if is_path {
        let file = folder.join(name);
        return if file.exists() {
            read(&file)
        } else {
            Err(Unfound::NotThere { looked_in: folder.to_owned() })
        };
    }
    match installed(dialects, name, folder) {
        Some(file) if is_disabled(dialects, &file) => return Err(Unfound::Disabled { file }),
        Some(file) => return read(&file),
        None => {}
    }
    let mut files = named(dialects, name, folder);
    if files.is_empty() {
        files = holding(reader, name, folder);
    }
    match files.as_slice() {
        [only] => {
            let found = read(only)?;
            if *found.plan.header.id == *name {
                return Ok(found);
            }
            let cause = format!("it contains the workflow `{}`, not `{name}`", found.plan.header.id);
            Err(Unfound::Bad { file: only.clone(), cause })
        }
        [] => Err(Unfound::NotThere { looked_in: folder.to_owned() }),
        _ => Err(Unfound::Several(files)),
    }
}

fn layouts(dialects: Dialects) -> impl Iterator<Item = Installed> {
    dialects.layouts().filter_map(|layout| layout.installed)
}

/// The workflow installed under this name in the project around a folder.
fn installed(dialects: Dialects, name: &str, folder: &Path) -> Option<PathBuf> {
    let around = upwards(folder);
    layouts(dialects).find_map(|layout| {
        let project =
            around.iter().map(|folder| folder.join(layout.folder)).find(|folder| folder.is_dir())?;
        let file = project.join(name).join(layout.file);
        file.is_file().then_some(file)
    })
}

/// Whether a file is installed in its project, but disabled.
pub fn is_disabled(dialects: Dialects, file: &Path) -> bool {
    let Some((folder, name)) = file.parent().and_then(|folder| Some((folder, folder.file_name()?.to_str()?)))
    else {
        return false;
    };
    let is_off = |layout: Installed| {
        let registry = std::fs::read(folder.with_file_name(layout.registry)).ok()?;
        let registry: serde_json::Value = serde_json::from_slice(&registry).ok()?;
        Some(registry["workflows"][name]["enabled"] == false)
    };
    let is_installed =
        |layout: &Installed| folder.parent().is_some_and(|folder| folder.ends_with(layout.folder));
    layouts(dialects).filter(is_installed).any(|layout| is_off(layout) == Some(true))
}

/// Files named after the workflow next to the caller, and in folders of that name next to the caller or its folder.
fn named(dialects: Dialects, name: &str, folder: &Path) -> Vec<PathBuf> {
    let beside = ENDINGS.iter().flat_map(|ending| {
        [format!("{name}.{ending}"), format!("{name}.workflow.{ending}")].map(|file| folder.join(file))
    });
    let around = [Some(folder), folder.parent()].into_iter().flatten();
    let files: Vec<&str> = dialects.layouts().flat_map(|layout| layout.files).copied().collect();
    let folders = around.flat_map(|around| files.iter().map(move |file| around.join(name).join(file)));
    let found: BTreeSet<PathBuf> = beside.chain(folders).filter(|file| file.is_file()).collect();
    found.into_iter().collect()
}

/// Files next to the caller that contain a workflow of this name, whatever their file names.
fn holding(reader: &dyn Reader, name: &str, folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let is_workflow = |file: &PathBuf| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ENDINGS.contains(&ending)) && file.is_file()
    };
    // Searching for the name is cheaper than parsing the workflow.
    let mentions = |file: &PathBuf| {
        std::fs::read(file).is_ok_and(|bytes| bytes.windows(name.len()).any(|part| part == name.as_bytes()))
    };
    let holds = |file: &PathBuf| reader.read(file).is_ok_and(|found| *found.plan.header.id == *name);
    let files = entries.map(|entry| entry.path()).filter(is_workflow);
    let mut found: Vec<PathBuf> = files.filter(|file| mentions(file) && holds(file)).collect();
    found.sort();
    found
}
