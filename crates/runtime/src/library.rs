//! Finds the workflows that others call: by a path, or by name in the folders around the calling file.
//!
//! This file knows where to look; the layouts of the dialects add their own places. A [`Reader`] knows what a file says: the code
//! that opens an engine brings one.

use crate::search::upwards;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_ir::Plan;
use windlass_ir::dialect::{Dialects, Installed};
use windlass_ir::workflow::Words;

/// Reads workflow files.
pub trait Reader: std::fmt::Debug + Send + Sync {
    /// A workflow file, or the one in a folder. What is wrong with it is said in one line.
    fn read(&self, file: &Path) -> Result<Definition, String>;
}

/// A workflow as it was found.
#[derive(Debug)]
pub struct Definition {
    pub file: PathBuf,
    pub plan: Plan,
    pub words: &'static Words,
    pub source: String,
    pub overrides: String,
}

/// Why there is no workflow to call.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfound {
    NotThere {
        looked_in: PathBuf,
    },
    Several(Vec<PathBuf>),
    /// It is installed in its project, and switched off.
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
            Self::Disabled { .. } => f.write_str("it is installed and disabled"),
            Self::Bad { file, cause } => write!(f, "{} cannot be used: {cause}", file.display()),
        }
    }
}

/// What files of workflows end with.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// Folders with more entries than this are not searched file by file.
const ENTRIES_MAX: usize = 2_000;

/// The workflow of this name as a file in `folder` means it.
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
            let cause = format!("it holds the workflow `{}`, not `{name}`", found.plan.header.id);
            Err(Unfound::Bad { file: only.clone(), cause })
        }
        [] => Err(Unfound::NotThere { looked_in: folder.to_owned() }),
        _ => Err(Unfound::Several(files)),
    }
}

fn layouts(dialects: Dialects) -> impl Iterator<Item = Installed> {
    dialects.layouts().filter_map(|layout| layout.installed)
}

/// The workflow that is installed under this name in the project around a folder.
fn installed(dialects: Dialects, name: &str, folder: &Path) -> Option<PathBuf> {
    let around = upwards(folder);
    layouts(dialects).find_map(|layout| {
        let project =
            around.iter().map(|folder| folder.join(layout.folder)).find(|folder| folder.is_dir())?;
        let file = project.join(name).join(layout.file);
        file.is_file().then_some(file)
    })
}

/// Whether a file is installed in its project, and switched off.
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

/// Files beside the caller, and folders beside it or its own folder, that are called like the workflow.
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

/// Files beside the caller that hold a workflow of this name, whatever they are called.
fn holding(reader: &dyn Reader, name: &str, folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let is_workflow = |file: &PathBuf| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| ENDINGS.contains(&ending)) && file.is_file()
    };
    // Reading a workflow costs more than looking whether its name stands there at all.
    let mentions = |file: &PathBuf| {
        std::fs::read(file).is_ok_and(|bytes| bytes.windows(name.len()).any(|part| part == name.as_bytes()))
    };
    let holds = |file: &PathBuf| reader.read(file).is_ok_and(|found| *found.plan.header.id == *name);
    let files = entries.map(|entry| entry.path()).filter(is_workflow);
    let mut found: Vec<PathBuf> = files.filter(|file| mentions(file) && holds(file)).collect();
    found.sort();
    found
}
