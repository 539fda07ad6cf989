//! `windlass validate`: reports all problems of some files, each alone and all together.

use super::pure;
use crate::answer::{Answer, Exit, Refused};
use crate::args::{Reading, Validate};
use crate::files::{self, STDIN, Unreadable, WORKFLOW_FILES};
use crate::load;
use crate::show::words::{clean, count};
use crate::show::{Screen, Screens, diagnostics};
use crate::triggers::{self, What};
use crate::walk;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use windlass_api::Code;
use windlass_api::operations::ValidateWorkflow;
use windlass_api::types::{Diagnostic, FileKind, NamedText, Validation};
use windlass_dialects::dcc::skill::is_skill_file;
use windlass_dialects::{Dialect, Text};
use windlass_ir::Sources;
use windlass_runtime::{Config, Fault};

pub fn run(args: &Validate, screens: &Screens) -> Result<Answer, Refused> {
    let (paths, is_list) = expand(&args.files);
    let mut checked = Vec::new();
    for path in paths {
        checked.push(Checked::new(path, args)?);
    }
    check_together(&mut checked);
    checked.iter_mut().for_each(|file| file.found.judge(args.strict));
    let status = Exit::worst(checked.iter().map(Checked::status));
    if args.json {
        return Ok(match checked.as_slice() {
            [only] if !is_list => Answer::json(status, &only.found),
            several => Answer::json(status, &several.iter().map(|file| &file.found).collect::<Vec<_>>()),
        });
    }
    let mut stdout = String::new();
    for file in &checked {
        if !stdout.is_empty() && !file.found.diagnostics.is_empty() {
            stdout.push('\n');
        }
        stdout.push_str(&file.render(&screens.stdout));
    }
    if checked.iter().any(|file| !file.found.diagnostics.is_empty()) {
        stdout.push('\n');
        stdout.push_str(diagnostics::PAGES);
    }
    Ok(Answer { stdout, ..Answer::new(status) })
}

/// A file to check, or why there is none.
#[derive(Debug)]
enum Target {
    /// A file that the user named.
    Named(PathBuf),
    /// A file in a folder that the user named.
    Found(PathBuf),
    Nothing(Unreadable),
}

/// The files that the arguments name, each once, and whether the JSON is a list even for one file.
fn expand(named: &[PathBuf]) -> (Vec<Target>, bool) {
    let mut is_list = named.len() > 1;
    let mut targets = Vec::new();
    for path in named {
        match files_of(path) {
            Ok(None) => {
                let found = files::find_workflow(path).unwrap_or_else(|_| path.clone());
                targets.push(Target::Named(found));
            }
            Ok(Some(files)) => {
                is_list = true;
                targets.extend(files.into_iter().map(Target::Found));
            }
            Err(unreadable) => targets.push(Target::Nothing(unreadable)),
        }
    }
    let mut targets: Vec<Target> = targets.into_iter().flat_map(with_schedules).collect();
    let mut seen = HashSet::new();
    targets.retain(|target| match target {
        Target::Named(path) | Target::Found(path) => {
            std::fs::canonicalize(path).map_or(true, |place| seen.insert(place))
        }
        Target::Nothing(_) => true,
    });
    (targets, is_list)
}

/// The files in a folder, unless the folder stands for its only workflow.
fn files_of(path: &Path) -> Result<Option<Vec<PathBuf>>, Unreadable> {
    if path == Path::new(STDIN) || !path.is_dir() || files::by_name(path)?.is_some() {
        return Ok(None);
    }
    if WORKFLOW_FILES.iter().filter(|name| path.join(name).exists()).count() == 1 {
        return Ok(None);
    }
    let found = walk::files(path, &walk::is_checked);
    match found.is_empty() {
        true => Err(nothing_in(path)),
        false => Ok(Some(found)),
    }
}

fn nothing_in(folder: &Path) -> Unreadable {
    let message = "this folder contains no file that Windlass can check";
    let finding = windlass_ir::Diagnostic::error(windlass_ir::Code::Unreadable, message);
    let help = "name a workflow or a folder that contains one, or write one with `windlass init`";
    Unreadable::new(folder.display().to_string(), Box::new(finding.help(help)))
}

/// Adds the schedules files of a skill.
fn with_schedules(target: Target) -> Vec<Target> {
    let schedules = match &target {
        Target::Named(path) | Target::Found(path) if is_skill_file(&path.to_string_lossy()) => {
            files::read(path).map(|content| triggers::skill_schedules(path, &content.into()))
        }
        _ => Ok(Vec::new()),
    };
    let schedules = schedules.unwrap_or_default().into_iter().map(Target::Found);
    std::iter::once(target).chain(schedules).collect()
}

/// One file and its findings.
#[derive(Debug)]
struct Checked {
    found: Validation,
    sources: Sources,
    /// The text and the path, unless the file could not be read.
    text: Option<(NamedText, PathBuf)>,
    /// The number of workflows and of schedules files of a skill.
    skill: Option<(usize, usize)>,
}

impl Checked {
    fn new(target: Target, args: &Validate) -> Result<Self, Refused> {
        let (path, reading) = match target {
            Target::Named(path) => (path, args.reading.clone()),
            // `--dialect` applies only to files that the user names.
            Target::Found(path) => (path, Reading { dialect: None, ..args.reading.clone() }),
            Target::Nothing(unreadable) => return Ok(Self::unreadable(unreadable)),
        };
        let read = files::find_workflow(&path).and_then(|path| Ok((files::read(&path)?, path)));
        let (content, path) = match read {
            Ok(read) => read,
            Err(unreadable) => return Ok(Self::unreadable(unreadable)),
        };
        let named = match content.text() {
            Ok(named) => named,
            Err(not_utf8) => return Ok(Self::unreadable(not_utf8)),
        };
        let asked = match load::ask_about(named.clone(), &reading, false) {
            Ok(asked) => asked,
            Err(unreadable) => return Ok(Self::unreadable(unreadable)),
        };
        let request = ValidateWorkflow { of: asked.of.clone(), strict: false };
        let mut found = match pure(request) {
            Ok(found) => found,
            Err(refusal) => return Err(asked.refused(refusal)),
        };
        if found.kind == Some(FileKind::Config) && found.valid {
            found.diagnostics.extend(unusable(&path));
        }
        Ok(Self { found, sources: asked.sources, text: Some((named, path)), skill: None })
    }

    fn unreadable(unreadable: Unreadable) -> Self {
        let finding = Diagnostic::new(&unreadable.finding, &Sources::default(), Some(&unreadable.name));
        let found = Validation {
            file: unreadable.name,
            valid: false,
            dialect: None,
            workflow: None,
            diagnostics: vec![finding],
            kind: None,
            entries: 0,
            triggers: 0,
        };
        Self { found, sources: Sources::default(), text: None, skill: None }
    }

    fn is_unreadable(&self) -> bool {
        let not_utf8 = windlass_ir::Code::NotUtf8.as_str();
        self.found.kind.is_none() && self.found.diagnostics.iter().all(|finding| finding.code != not_utf8)
    }

    fn status(&self) -> Exit {
        match self.found.valid {
            true => Exit::Done,
            false if self.is_unreadable() => Exit::Refused,
            false => Exit::Failed,
        }
    }

    fn render(&self, screen: &Screen) -> String {
        let findings = diagnostics::list(&self.found.diagnostics, &self.sources, screen);
        format!("{findings}{}: {}\n", screen.bold(&clean(&self.found.file)), self.summary())
    }

    fn summary(&self) -> String {
        let findings = &self.found.diagnostics;
        let tally = diagnostics::tally(findings);
        match self.found.valid {
            true if tally.is_empty() => format!("valid ({})", self.contents()),
            true => format!("valid ({}), {tally}", self.contents()),
            false if self.is_unreadable() => "not read".to_owned(),
            false if findings.iter().any(Diagnostic::is_error) => tally,
            false => format!("{tally}; not valid under --strict"),
        }
    }

    /// A short description of the file's contents.
    fn contents(&self) -> String {
        let Validation { kind, entries, triggers, dialect, .. } = &self.found;
        match kind {
            Some(FileKind::Workflow) | None => {
                let dialect = dialect.as_deref().and_then(Dialect::by_name).unwrap_or(Dialect::Swdl);
                let steps = count(*entries, dialect.words().step);
                match triggers {
                    0 => format!("{}, {steps}", dialect.name()),
                    some => format!("{}, {steps}, {}", dialect.name(), count(*some, "trigger")),
                }
            }
            Some(FileKind::Schedules) => count(*entries, "schedule"),
            Some(FileKind::Skill) => {
                let (workflows, schedules) = self.skill.unwrap_or_default();
                format!("skill, {}, {}", count(workflows, "workflow"), count(schedules, "schedules file"))
            }
            Some(FileKind::Overlay) => format!("overlay, {}", count(*entries, "edit")),
            Some(FileKind::Overrides) => format!("overrides of {}", count(*entries, "workflow")),
            Some(FileKind::Cases) => count(*entries, "test case"),
            Some(FileKind::Config) => format!("configuration, {}", count(*entries, "task")),
        }
    }
}

/// Why a valid `windlass.toml` cannot be used, for example because it belongs to another user.
fn unusable(path: &Path) -> Vec<Diagnostic> {
    let Err(bad) = Config::read(path) else { return Vec::new() };
    let file = path.display().to_string();
    let finding = |fault: &Fault| Diagnostic::error(Code::BadConfig, &fault.message, &file, None);
    bad.faults.iter().map(finding).collect()
}

/// Adds findings that depend on several files: duplicate ids and paths, and workflows that a skill does not have.
fn check_together(checked: &mut [Checked]) {
    let takes_part = |file: &&Checked| match file.found.kind {
        Some(FileKind::Schedules | FileKind::Skill) => true,
        Some(FileKind::Workflow) => file.found.triggers > 0,
        Some(FileKind::Overlay | FileKind::Overrides | FileKind::Cases | FileKind::Config) | None => false,
    };
    let texts = checked.iter().filter(takes_part).filter_map(|file| file.text.clone());
    let texts = texts.map(|(named, path)| (Text { name: named.name, bytes: named.text.into_bytes() }, path));
    for found in triggers::read_texts(texts.collect()) {
        let Some(file) = checked.iter_mut().find(|file| file.found.file == found.file) else { continue };
        if let What::Skill { workflows, schedules } = found.what {
            file.skill = Some((workflows, schedules));
        }
        if !found.shared.is_empty() {
            let shared = Diagnostic::list(&found.shared, &found.sources, Some(&found.file));
            file.found.diagnostics.extend(shared);
            let place = |finding: &Diagnostic| (finding.line.is_none(), finding.line, finding.column);
            file.found.diagnostics.sort_by_key(place);
        }
    }
}
