//! Where runs are kept: finding the data folder, and the run that a name stands for.

use crate::args::Data;
use crate::files::STDIN;
use crate::load::PROJECT_MARKS;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Config, Engine, Error, RunId, current_user, upwards, user_name};

const FOLDER: &str = ".windlass";

/// The named folder, else the nearest one from here upwards, else a new one: beside what marks the project around the
/// workflow, or in the current folder.
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

/// The folder of a workflow, which may be a folder itself. None for one that is piped in.
fn around(workflow: &Path) -> Option<PathBuf> {
    if workflow == Path::new(STDIN) {
        return None;
    }
    let workflow = std::path::absolute(workflow).ok()?;
    if workflow.is_dir() { Some(workflow) } else { workflow.parent().map(Path::to_owned) }
}

/// The `windlass.toml` in force: the nearest one upwards from here, else from the workflow, else from the data folder.
pub fn config(workflow: Option<&Path>, data: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    Config::find([here, workflow.and_then(around), Some(data.to_owned())].into_iter().flatten())
}

/// Opens a folder for reading, whoever owns it.
pub fn look(folder: &Path) -> Result<Arc<Engine>, Error> {
    Engine::look(folder, DIALECTS)
}

/// Looks into a folder and finds a run by its id, the beginning of it, or `last`.
pub fn find(data: &Data, name: &str) -> Result<(PathBuf, Arc<Engine>, RunId), Error> {
    let folder = folder(data, None);
    let engine = look(&folder)?;
    let run = engine.find(name)?;
    Ok((folder, engine, run))
}

/// Who is at the keyboard.
pub fn login(by: Option<String>) -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    by.or_else(|| variable("USER"))
        .or_else(|| variable("LOGNAME"))
        .or_else(|| user_name(current_user()))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Where it is noted, apart from all data folders, how far their journals have come. None for whoever has no home.
pub fn heads() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("windlass").join("heads"))
}
