//! Reads the files that the user names: regular files up to a size limit, workflow folders, and `-` for standard input.
//!
//! A file that cannot be read is a finding like any other, with its own cause and help.

use crate::named;
use std::fs::{File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use windlass_api::Refusal;
pub use windlass_api::library::WORKFLOW_FILES;
use windlass_dialects::text::Limits;
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

pub const STDIN: &str = "-";

/// A file that was read, with the name to show in messages.
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
    /// Why a name was refused; none for a file.
    pub code: Option<windlass_api::Code>,
}

impl Unreadable {
    pub fn new(name: impl Into<String>, finding: Box<Diagnostic>) -> Self {
        Self { name: name.into(), finding, code: None }
    }

    /// A name that means no workflow, or several.
    fn unfound(name: &str, refusal: Refusal) -> Self {
        let finding = Diagnostic::error(Code::UnknownWorkflow, refusal.message).reference(name);
        let finding = Box::new(finding.help(refusal.help.unwrap_or_default()));
        Self { code: Some(refusal.code), ..Self::new(name, finding) }
    }
}

/// Reads a workflow file, or the one in a folder.
pub fn read_workflow(path: &Path) -> Result<Content, Unreadable> {
    read(&find_workflow(path)?)
}

/// The file of the workflow with this name; none if a file or folder has that path.
pub fn by_name(path: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let Some(name) = path.to_str().filter(|text| named::is_name(text) && !path.exists()) else {
        return Ok(None);
    };
    match named::find(name) {
        Ok(Some(file)) => Ok(Some(file)),
        Ok(None) => Err(Unreadable::unfound(name, named::missing(name))),
        Err(refusal) => Err(Unreadable::unfound(name, refusal)),
    }
}

/// The same for Spec Kit, where an installed workflow takes precedence.
pub fn by_installed_name(path: &Path) -> Result<Option<PathBuf>, Unreadable> {
    let name = path.to_str().filter(|text| named::is_name(text));
    match name.and_then(named::installed) {
        Some(file) => Ok(Some(file)),
        None => by_name(path),
    }
}

/// Refuses a workflow that is disabled in Spec Kit.
pub fn enabled(path: &Path) -> Result<(), Unreadable> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match windlass_runtime::is_disabled(windlass_dialects::DIALECTS, &absolute) {
        false => Ok(()),
        true => Err(Unreadable::new(path.display().to_string(), named::disabled(&absolute))),
    }
}

/// The file itself, the one in the folder, or the file of the workflow with this name.
pub fn find_workflow(path: &Path) -> Result<PathBuf, Unreadable> {
    if let Some(found) = by_name(path)? {
        return Ok(found);
    }
    if path == Path::new(STDIN) || !path.is_dir() {
        return Ok(path.to_owned());
    }
    workflow_in(path).or_else(|unreadable| {
        // A folder may have the name of a workflow by chance.
        let name = path.to_str().filter(|text| named::is_name(text));
        match name.map(named::find) {
            Some(Ok(Some(file))) => Ok(file),
            Some(Ok(None) | Err(_)) | None => Err(unreadable),
        }
    })
}

/// The other files of a workflow folder: its documentation, and templates of overrides.
#[derive(Debug, Default)]
pub struct Companions {
    pub documentation: Option<String>,
    pub override_templates: Vec<String>,
}

/// Lists the companions of a workflow file. Only a workflow folder, whose file has one of the fixed names, has any.
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

/// Reads a file of any kind, but not a folder.
pub fn read(path: &Path) -> Result<Content, Unreadable> {
    let (name, read) = if path == Path::new(STDIN) {
        (STDIN.to_owned(), bounded(io::stdin().lock()))
    } else {
        (path.display().to_string(), read_file(path))
    };
    match read {
        Ok(bytes) => Ok(Content { name, bytes }),
        Err(finding) => Err(Unreadable::new(name, finding)),
    }
}

fn workflow_in(folder: &Path) -> Result<PathBuf, Unreadable> {
    let found: Vec<&str> = WORKFLOW_FILES.into_iter().filter(|name| folder.join(name).exists()).collect();
    let finding = match found.as_slice() {
        [only] => return Ok(folder.join(only)),
        [] => {
            let (last, others) = WORKFLOW_FILES.split_last().unwrap_or((&"", &[]));
            let cause = format!("this folder contains no {} or {last}", others.join(", "));
            unreadable(cause, "name a workflow file, or a folder that contains one")
        }
        several => {
            let cause = format!("this folder contains {}", several.join(" and "));
            unreadable(cause, "name the file instead of the folder")
        }
    };
    Err(Unreadable::new(folder.display().to_string(), finding))
}

/// Checks the file type before opening it, because opening a pipe would block.
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
            let finding =
                Diagnostic::error(Code::Unreadable, "there is no such file").suggest(similar_file(path));
            let help = "check the name, and the folder you are in";
            Box::new(if finding.help.is_empty() { finding.help(help) } else { finding })
        }
        ErrorKind::PermissionDenied => {
            unreadable("permission denied".into(), "change its permissions, or ask its owner")
        }
        _ => unreadable(format!("it cannot be read: {error}"), "name a file that can be read"),
    }
}

/// The file with the most similar name in the same folder. Extensions do not count, because they make any two names similar, and
/// very short names are similar to too many others.
fn similar_file(path: &Path) -> Option<String> {
    const ENTRIES_MAX: usize = 1_000;
    const LENGTH_MIN: usize = 3;
    let stem = |name: &str| name.split_once('.').map_or(name, |(stem, _)| stem).to_owned();
    let wanted = stem(path.file_name()?.to_str()?);
    if wanted.chars().count() < LENGTH_MIN {
        return None;
    }
    let folder = path.parent()?;
    let looked_in = if folder == Path::new("") { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(looked_in).ok()?.take(ENTRIES_MAX);
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    // The same name with another extension is the most similar one.
    let same = names.iter().find(|name| stem(name) == wanted);
    let near = || {
        let stems: Vec<String> = names.iter().map(|name| stem(name)).collect();
        let near = nearest(&wanted, stems.iter().map(String::as_str))?;
        names.iter().find(|name| stem(name) == near)
    };
    Some(folder.join(same.or_else(near)?).display().to_string())
}

fn too_large() -> Box<Diagnostic> {
    let mebibytes = Limits::default().bytes_max >> 20;
    let finding = Diagnostic::error(Code::TooLarge, format!("it is larger than {mebibytes} MiB"));
    Box::new(finding.help("split the workflow, or keep data out of it"))
}

fn unreadable(cause: String, help: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code::Unreadable, cause).help(help))
}
