//! Reading what the user names: regular files up to a size, folders that hold a workflow, and `-` for standard input.
//!
//! What cannot be read is a finding like any other, with its own cause and a next action.

use crate::named;
use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use windlass_dialects::text::Limits;
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// The names under which a folder may hold its workflow.
pub const WORKFLOW_FILES: [&str; 4] = ["WORKFLOW.yaml", "WORKFLOW.yml", "WORKFLOW.json", "workflow.yml"];

pub const STDIN: &str = "-";

/// What was read, under the name that messages show.
#[derive(Debug)]
pub struct Content {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Why a file could not be read. The finding does not repeat the name.
#[derive(Debug)]
pub struct Unreadable {
    pub name: String,
    pub finding: Box<Diagnostic>,
}

/// A workflow file, or the one in a folder.
pub fn read_workflow(path: &Path) -> Result<Content, Unreadable> {
    read(&find_workflow(path)?)
}

/// The file of the workflow with this name, where that is a name and there is no such file.
pub fn by_name(path: &Path) -> Result<Option<PathBuf>, Unreadable> {
    match path.to_str().filter(|text| named::is_name(text) && !path.exists()) {
        None => Ok(None),
        Some(name) => {
            named::find(name).map_err(|finding| Unreadable { name: path.display().to_string(), finding })
        }
    }
}

/// The same for Spec Kit, where what is installed comes before a folder of that name.
pub fn by_installed_name(path: &Path) -> Result<Option<PathBuf>, Unreadable> {
    match path.to_str().filter(|text| named::is_name(text) && path.is_dir()) {
        None => by_name(path),
        Some(name) => {
            named::find(name).map_err(|finding| Unreadable { name: path.display().to_string(), finding })
        }
    }
}

/// Refuses what Spec Kit has switched off.
pub fn enabled(path: &Path) -> Result<(), Unreadable> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match windlass_runtime::is_disabled(windlass_dialects::DIALECTS, &absolute) {
        false => Ok(()),
        true => Err(Unreadable { name: path.display().to_string(), finding: named::disabled(&absolute) }),
    }
}

/// The file itself, the one in the folder, or that of the workflow with this name.
pub fn find_workflow(path: &Path) -> Result<PathBuf, Unreadable> {
    if let Some(found) = by_name(path)? {
        return Ok(found);
    }
    match path != Path::new(STDIN) && path.is_dir() {
        true => workflow_in(path),
        false => Ok(path.to_owned()),
    }
}

/// What lies beside the file of a workflow folder: its documentation, and templates of overrides.
#[derive(Debug, Default)]
pub struct Companions {
    pub documentation: Option<String>,
    pub override_templates: Vec<String>,
}

/// Looks around a workflow file. Only a workflow folder, whose file has one of the fixed names, has companions.
pub fn companions(file: &str) -> Companions {
    let file = Path::new(file);
    let in_folder = file.file_name().is_some_and(|name| WORKFLOW_FILES.iter().any(|fixed| name == *fixed));
    let Some(folder) = file.parent().filter(|_| in_folder) else { return Companions::default() };
    let documentation = Some(folder.join("WORKFLOW.md")).filter(|page| page.is_file());
    let entries = std::fs::read_dir(folder.join("overrides")).into_iter().flatten().flatten();
    let mut templates: Vec<String> = entries.map(|entry| entry.path().display().to_string()).collect();
    templates.sort();
    Companions {
        documentation: documentation.map(|page| page.display().to_string()),
        override_templates: templates,
    }
}

/// A file of any kind, but no folder.
pub fn read(path: &Path) -> Result<Content, Unreadable> {
    let (name, read) = if path == Path::new(STDIN) {
        (STDIN.to_owned(), bounded(io::stdin().lock()))
    } else {
        (path.display().to_string(), read_file(path))
    };
    match read {
        Ok(bytes) => Ok(Content { name, bytes }),
        Err(finding) => Err(Unreadable { name, finding }),
    }
}

fn workflow_in(folder: &Path) -> Result<PathBuf, Unreadable> {
    let found: Vec<&str> = WORKFLOW_FILES.into_iter().filter(|name| folder.join(name).exists()).collect();
    let finding = match found.as_slice() {
        [only] => return Ok(folder.join(only)),
        [] => {
            let (last, others) = WORKFLOW_FILES.split_last().unwrap_or((&"", &[]));
            let cause = format!("this is a folder, and it holds no {} or {last}", others.join(", "));
            unreadable(cause, "name a workflow file, or a folder that holds one")
        }
        several => {
            let cause = format!("this folder holds {}; which one is meant?", several.join(" and "));
            unreadable(cause, "name the file instead of the folder")
        }
    };
    Err(Unreadable { name: folder.display().to_string(), finding })
}

/// Looks before it opens: opening a pipe would wait for a writer.
fn read_file(path: &Path) -> Result<Vec<u8>, Box<Diagnostic>> {
    let metadata = std::fs::metadata(path).map_err(|error| failed(path, &error))?;
    if let Some(finding) = not_a_file(metadata.file_type()) {
        return Err(finding);
    }
    if metadata.len() > Limits::default().bytes_max as u64 {
        return Err(too_large());
    }
    bounded(File::open(path).map_err(|error| failed(path, &error))?)
}

fn bounded(from: impl Read) -> Result<Vec<u8>, Box<Diagnostic>> {
    let bytes_max = Limits::default().bytes_max;
    let mut bytes = Vec::new();
    let read = from.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(format!("it cannot be read: {error}"), "name a file that can be read"))?;
    if bytes.len() > bytes_max { Err(too_large()) } else { Ok(bytes) }
}

fn not_a_file(kind: FileType) -> Option<Box<Diagnostic>> {
    let what = match kind {
        _ if kind.is_file() => return None,
        _ if kind.is_dir() => "a folder",
        _ => special(kind),
    };
    Some(unreadable(
        format!("this is {what}, not a regular file"),
        "name a file; to read from a pipe, name `-`",
    ))
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "a device"
}

fn failed(path: &Path, error: &io::Error) -> Box<Diagnostic> {
    match error.kind() {
        ErrorKind::NotFound => {
            let name = path.to_str().filter(|text| named::is_name(text));
            let meant = neighbour(path).or_else(|| named::near(name?));
            let finding = Diagnostic::error(Code::Unreadable, "there is no such file").suggest(meant);
            let help = "check the name, and the folder you are in";
            Box::new(if finding.help.is_empty() { finding.help(help) } else { finding })
        }
        ErrorKind::PermissionDenied => unreadable(
            "you may not read it: permission denied".into(),
            "change its permissions, or ask its owner",
        ),
        _ => unreadable(format!("it cannot be read: {error}"), "name a file that can be read"),
    }
}

/// The file beside a missing one that was probably meant.
fn neighbour(path: &Path) -> Option<String> {
    const ENTRIES_MAX: usize = 1_000;
    let folder = path.parent()?;
    let looked_in = if folder == Path::new("") { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(looked_in).ok()?.take(ENTRIES_MAX);
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let name = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(folder.join(name).display().to_string())
}

fn too_large() -> Box<Diagnostic> {
    let mebibytes = Limits::default().bytes_max >> 20;
    let finding = Diagnostic::error(Code::TooLarge, format!("it is larger than {mebibytes} MiB"));
    Box::new(finding.help("split the workflow, or keep data out of it"))
}

fn unreadable(cause: String, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::Unreadable, cause).help(help))
}
