//! Finds the data folder, and a run in it by name.

use crate::args::Data;
use crate::files::STDIN;
use crate::load::PROJECT_MARKS;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_api::ask_executed;
use windlass_dialects::DIALECTS;
use windlass_runtime::{
    Config, Engine, Error, RunId, StoreError, check_folder, current_user, upwards, user_name,
};

const FOLDER: &str = ".windlass";

/// The name of the run that was started last.
pub const LAST: &str = "last";

/// The named folder, else the nearest one above, else a new one: at the top of the workflow's project, or in the current
/// folder.
pub fn folder(data: &Data, workflow: Option<&Path>) -> PathBuf {
    if let Some(named) = &data.folder {
        return named.clone();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let found = upwards(&here).into_iter().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir());
    found.unwrap_or_else(|| {
        let around = workflow.and_then(around).unwrap_or_else(|| here.clone());
        let is_marked = |folder: &PathBuf| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists());
        upwards(&around).into_iter().find(is_marked).unwrap_or(here).join(FOLDER)
    })
}

/// A message in which every command names the data folder, if the same command in this folder would use another one.
pub fn hinted(text: &str, folder: &Path) -> String {
    let place = |folder: &Path| folder.canonicalize().or_else(|_| std::path::absolute(folder)).ok();
    let usual = self::folder(&Data { folder: std::env::var_os("WINDLASS_DATA").map(PathBuf::from) }, None);
    if place(&usual) == place(folder) {
        return text.to_owned();
    }
    let name = folder.display().to_string();
    let name = if name.contains([' ', '\'']) { format!("'{}'", name.replace('\'', r"'\''")) } else { name };
    let parts =
        text.split('`').enumerate().map(|(at, part)| match at % 2 == 1 && part.starts_with("windlass ") {
            true => format!("{part} --data {name}"),
            false => part.to_owned(),
        });
    parts.collect::<Vec<_>>().join("`")
}

/// The same for a command that creates no folder. Refuses a named folder without a journal, which is probably a typo.
pub fn existing(data: &Data) -> Result<PathBuf, Error> {
    let folder = folder(data, None);
    match data.folder.is_none() || folder.join("journal.db").exists() {
        true => Ok(folder),
        false => {
            check_folder(&folder)?;
            Err(StoreError::Missing { folder: folder.display().to_string() }.into())
        }
    }
}

/// The same for a list, which is empty without a folder. Says so if the user named the folder.
pub fn listed(data: &Data) -> PathBuf {
    let folder = folder(data, None);
    if data.folder.is_some() && !folder.join("journal.db").exists() {
        crate::answer::remark(&format!("nothing has been run with the data folder {} yet", folder.display()));
    }
    folder
}

/// The folder of a workflow, which may be a folder itself. None for standard input.
fn around(workflow: &Path) -> Option<PathBuf> {
    if workflow == Path::new(STDIN) {
        return None;
    }
    let workflow = std::path::absolute(workflow).ok()?;
    if workflow.is_dir() { Some(workflow) } else { workflow.parent().map(Path::to_owned) }
}

/// The `windlass.toml` in force: the nearest one above this folder, else above the workflow, else above the data folder.
pub fn config(workflow: Option<&Path>, data: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    Config::find([here, workflow.and_then(around), Some(data.to_owned())].into_iter().flatten())
}

/// Opens a folder for reading, even if another process owns it.
pub fn look(folder: &Path) -> Result<Arc<Engine>, Error> {
    Engine::look(folder, DIALECTS, ask_executed)
}

/// Finds a run by its id, a unique part of it, or `last`.
pub fn find(data: &Data, name: &str) -> Result<(PathBuf, Arc<Engine>, RunId), Error> {
    let folder = folder(data, None);
    let engine = look(&folder)?;
    let run = engine.find(name)?;
    Ok((folder, engine, run))
}

/// The login name of the user.
pub fn login(by: Option<String>) -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    by.or_else(|| variable("USER"))
        .or_else(|| variable("LOGNAME"))
        .or_else(|| user_name(current_user()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Where Windlass records the lengths of journals, outside all data folders. None without a home folder.
pub fn heads() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("windlass").join("heads"))
}
