//! Where runs are kept: finding the data folder, and the run that a name stands for.

use crate::args::Data;
use crate::files::STDIN;
use crate::load::PROJECT_MARKS;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_runtime::{Config, Engine, Error, RunId};

const FOLDER: &str = ".windlass";

/// The folder that was named, else the nearest one upwards from here, else a new one: beside what marks the project above
/// the workflow, or beside the workflow itself.
pub fn folder(data: &Data, workflow: Option<&Path>) -> PathBuf {
    if let Some(named) = &data.folder {
        return named.clone();
    }
    let here = std::env::current_dir().unwrap_or_default();
    if let Some(found) = here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir()) {
        return found;
    }
    let file = workflow.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let around = file.as_deref().and_then(Path::parent).unwrap_or(&here);
    let marked =
        around.ancestors().find(|folder| PROJECT_MARKS.iter().any(|mark| folder.join(mark).exists()));
    marked.unwrap_or(around).join(FOLDER)
}

/// The `windlass.toml` in force: the nearest one upwards from here, else from the workflow, else from the data folder.
pub fn config(workflow: Option<&Path>, data: &Path) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let around = workflow.filter(|file| *file != Path::new(STDIN));
    let around = around.map(|file| std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    // A workflow may be a folder, which then is looked into too; of a file there is nothing inside to find.
    Config::find([here.as_deref(), around.as_deref(), Some(data)].into_iter().flatten())
}

/// Looks into a folder and finds a run by its id, the beginning of it, or `last`.
pub fn find(data: &Data, name: &str) -> Result<(PathBuf, Arc<Engine>, RunId), Error> {
    let folder = folder(data, None);
    let engine = Engine::look(&folder)?;
    let run = engine.find(name)?;
    Ok((folder, engine, run))
}

/// Who is at the keyboard.
pub fn login(by: Option<String>) -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    by.or_else(|| variable("USER"))
        .or_else(|| variable("LOGNAME"))
        .or_else(account)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The name of the account that this process belongs to.
fn account() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let uid = std::fs::metadata("/proc/self").ok()?.uid().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = accounts.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str()))?;
    line.split(':').next().map(str::to_owned)
}

/// Where it is noted, apart from all data folders, how far their journals have come. None for whoever has no home.
pub fn heads() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("windlass").join("heads"))
}
