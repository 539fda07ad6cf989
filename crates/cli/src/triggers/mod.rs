//! Turns arguments into triggers: schedules files, skills with the files they name, folders and workflows. `skill` finds the
//! files of a skill, `shared` compares files with each other, `firings` shows the next firings and `history` the past ones.
//! `scheduled` prepares triggers for the process that owns a data folder.

pub mod firings;
pub mod history;
mod scheduled;
mod shared;
mod skill;

use crate::files::{self, STDIN, Unreadable, WORKFLOW_FILES};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_dialects::dcc::schedules::is_schedules_file;
use windlass_dialects::dcc::skill::SKILL_FILE;
use windlass_dialects::{Dialect, FileKind, Options, Text, file_kind, read_schedules};
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::trigger::Trigger;
use windlass_ir::{Code, Diagnostic, Sources, Span};

pub use scheduled::scheduled;
pub use skill::schedules as skill_schedules;

/// The result of reading one file.
#[derive(Debug)]
pub struct Found {
    pub file: String,
    pub sources: Sources,
    /// Findings in the file itself.
    pub findings: Vec<Diagnostic>,
    /// Findings that depend on other files.
    pub shared: Vec<Diagnostic>,
    pub what: What,
    pub entries: Vec<Entry>,
    /// The workflows that its schedules can name, if a skill lists them.
    workflows: Option<Vec<PathBuf>>,
    /// The canonical path; it keeps a file from being read twice.
    place: Option<PathBuf>,
}

/// The kind of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    Schedules,
    Skill { workflows: usize, schedules: usize },
    Workflow { dialect: Dialect, id: Option<String> },
    Unreadable,
}

/// A trigger and the workflow that it starts.
#[derive(Debug)]
pub struct Entry {
    pub trigger: Trigger,
    pub workflow: Option<Arc<str>>,
    /// The position at which a schedule names the workflow.
    pub workflow_span: Option<Span>,
}

impl Found {
    fn new(file: String, sources: Sources, findings: Vec<Diagnostic>, what: What) -> Self {
        let place = std::fs::canonicalize(&file).ok();
        Self {
            file,
            sources,
            findings,
            shared: Vec::new(),
            what,
            entries: Vec::new(),
            workflows: None,
            place,
        }
    }

    pub fn is_valid(&self) -> bool {
        !self.findings.iter().chain(&self.shared).any(Diagnostic::is_error)
    }

    /// All findings, in file order.
    pub fn all(&self) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> = self.findings.iter().chain(&self.shared).cloned().collect();
        sort_by_place(&mut all);
        all
    }

    /// The dialect of the file, if it is known.
    pub fn dialect(&self) -> Option<&'static str> {
        match &self.what {
            What::Schedules | What::Skill { .. } => Some(Dialect::Dcc.name()),
            What::Workflow { dialect, .. } => Some(dialect.name()),
            What::Unreadable => None,
        }
    }
}

impl From<Unreadable> for Found {
    fn from(unreadable: Unreadable) -> Self {
        Self::new(unreadable.name, Sources::default(), vec![*unreadable.finding], What::Unreadable)
    }
}

/// Reads all named files, and checks each of them and all of them together.
pub fn read(paths: &[PathBuf]) -> Vec<Found> {
    gather(paths.iter().flat_map(|path| read_path(path)))
}

/// The same for texts that are already in memory.
pub fn read_texts(texts: Vec<(Text, PathBuf)>) -> Vec<Found> {
    gather(texts.into_iter().flat_map(|(text, path)| read_text(text, &path)))
}

fn gather(files: impl Iterator<Item = Found>) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for next in files {
        let known = |other: &Found| next.place.is_some() && other.place == next.place;
        if !found.iter().any(known) {
            found.push(next);
        }
    }
    shared::check(&mut found);
    found
}

fn read_path(path: &Path) -> Vec<Found> {
    match files::by_name(path) {
        Ok(None) => {}
        Ok(Some(file)) => return read_path(&file),
        Err(unreadable) => return vec![unreadable.into()],
    }
    if path != Path::new(STDIN) && path.is_dir() {
        return read_folder(path);
    }
    match files::read(path) {
        Ok(content) => read_text(content.into(), path),
        Err(unreadable) => vec![unreadable.into()],
    }
}

fn read_text(text: Text, path: &Path) -> Vec<Found> {
    match file_kind(&text) {
        FileKind::Skill => skill::read(&text, path),
        FileKind::Schedules => vec![schedules(text)],
        FileKind::Workflow(_) | FileKind::Overlay => vec![workflow(text)],
    }
}

fn schedules(text: Text) -> Found {
    let file = text.name.clone();
    let read = read_schedules(text);
    let entries = read.schedules.into_iter().map(|schedule| Entry {
        trigger: schedule.trigger,
        workflow_span: Some(schedule.workflow.span),
        workflow: Some(schedule.workflow.value),
    });
    let found = Found::new(file, read.sources, read.diagnostics, What::Schedules);
    Found { entries: entries.collect(), ..found }
}

fn workflow(text: Text) -> Found {
    let file = text.name.clone();
    let loaded = windlass_dialects::load(text, Options::default());
    let workflow: Option<Arc<str>> = loaded.workflow.as_deref().map(Into::into);
    let entries = loaded.triggers.into_iter();
    let entries = entries.map(|trigger| Entry { trigger, workflow: workflow.clone(), workflow_span: None });
    let what = What::Workflow { dialect: loaded.dialect, id: loaded.workflow.clone() };
    let found = Found::new(file, loaded.sources, loaded.diagnostics, what);
    Found { entries: entries.collect(), ..found }
}

/// The schedules files directly in a folder; else its workflow.
fn read_folder(folder: &Path) -> Vec<Found> {
    let names = match names_in(folder) {
        Ok(names) => names,
        Err(error) => return vec![cannot_list(folder, &error)],
    };
    let schedules: Vec<&String> = names.iter().filter(|name| is_schedules_file(name)).collect();
    if !schedules.is_empty() {
        return schedules.into_iter().flat_map(|name| read_path(&folder.join(name))).collect();
    }
    let workflows: Vec<&&str> =
        WORKFLOW_FILES.iter().filter(|name| names.iter().any(|n| n == **name)).collect();
    if let [only] = workflows.as_slice() {
        return read_path(&folder.join(only));
    }
    let skill = names.iter().find(|name| name.eq_ignore_ascii_case(SKILL_FILE));
    let finding =
        Diagnostic::error(Code::Unreadable, "this folder contains no schedules file and no workflow");
    let finding = match skill {
        Some(skill) => finding.help(format!("name the skill: {}", folder.join(skill).display())),
        None => {
            finding.help("name a file; schedules files are called schedules.yaml or end with .schedules.yaml")
        }
    };
    vec![Unreadable::new(folder.display().to_string(), Box::new(finding)).into()]
}

/// The names in a folder, sorted, without those that are not UTF-8.
fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> =
        entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

fn cannot_list(folder: &Path, error: &std::io::Error) -> Found {
    let finding = Diagnostic::error(Code::Unreadable, format!("this folder cannot be read: {error}"));
    let finding = Box::new(finding.help("name a file, or a folder that can be read"));
    Unreadable::new(folder.display().to_string(), finding).into()
}
