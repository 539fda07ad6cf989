//! The files of a skill: those that its patterns mean, read and held against each other. Nothing outside of the skill's
//! folder is opened.

use super::{Found, What, schedules};
use crate::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_dialects::Text;
use windlass_dialects::dcc::skill::{Pattern, Skill, read_skill, workflow_name};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// More files and folders than this are not looked at.
const ENTRIES_MAX: usize = 20_000;
/// Nor what lies deeper than this.
const DEPTH_MAX: usize = 16;

/// The skill itself, then its files of schedules.
pub fn read(text: &Text, path: &Path) -> Vec<Found> {
    let skill = read_skill(text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let tree = Tree::list(folder, depth(&skill));
    let mut findings = Vec::new();
    let workflows = tree.find(&skill.workflows, &mut findings);
    let scheduled = tree.find(&skill.schedules, &mut findings);
    let names = names(folder, &workflows, &mut findings);
    let mut files: Vec<Found> = scheduled.iter().map(|name| read_schedules(&folder.join(name))).collect();
    if !skill.workflows.is_empty() {
        let paths: Vec<PathBuf> = workflows.iter().map(|name| folder.join(name)).collect();
        for file in &mut files {
            check_workflows(file, &names);
            file.workflows = Some(paths.clone());
        }
    }
    let what = What::Skill { workflows: workflows.len(), schedules: scheduled.len() };
    let all = skill.diagnostics.into_iter().chain(findings).collect();
    let mut found = vec![Found::new(text.name.clone(), skill.sources, all, what)];
    found.append(&mut files);
    found
}

/// The workflows of a skill, by name.
pub fn workflows(path: &Path) -> Vec<(String, PathBuf)> {
    let Ok(content) = files::read(path) else { return Vec::new() };
    let skill = read_skill(&content.into());
    let folder = path.parent().unwrap_or(Path::new(""));
    // What is wrong with the skill is told by whoever checks it.
    let files = Tree::list(folder, depth(&skill)).find(&skill.workflows, &mut Vec::new());
    let files = files.into_iter().map(|name| folder.join(name));
    files.filter_map(|file| Some((workflow_name(&files::read(&file).ok()?.into()), file))).collect()
}

fn read_schedules(path: &Path) -> Found {
    match files::read(path) {
        Ok(content) => schedules(content.into()),
        Err(unreadable) => unreadable.into(),
    }
}

/// How many folders deep the patterns of a skill reach.
fn depth(skill: &Skill) -> usize {
    let patterns = skill.workflows.iter().chain(&skill.schedules);
    let reach = |pattern: &Pattern| match pattern.glob.value.contains("**") {
        true => DEPTH_MAX,
        false => pattern.glob.value.matches('/').count().min(DEPTH_MAX),
    };
    patterns.map(reach).max().unwrap_or_default()
}

/// The files below a folder, by their paths from there with slashes, sorted.
struct Tree {
    files: BTreeSet<String>,
    /// Links that lead out of the folder.
    strays: BTreeSet<String>,
    is_cut: bool,
}

impl Tree {
    fn list(folder: &Path, depth: usize) -> Self {
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        let mut tree = Self { files: BTreeSet::new(), strays: BTreeSet::new(), is_cut: false };
        let top = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let mut open = vec![(folder.to_owned(), String::new(), 0)];
        let mut seen = 0;
        while let Some((here, prefix, level)) = open.pop() {
            // A folder that cannot be listed has no files that could be read.
            for entry in std::fs::read_dir(&here).into_iter().flatten().flatten() {
                seen += 1;
                if seen > ENTRIES_MAX {
                    tree.is_cut = true;
                    return tree;
                }
                let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
                    continue;
                };
                let path = format!("{prefix}{name}");
                match () {
                    () if kind.is_dir() && level < depth => {
                        open.push((entry.path(), format!("{path}/"), level + 1));
                    }
                    () if kind.is_symlink() => tree.add_link(path, &entry.path(), &top),
                    () if kind.is_file() => drop(tree.files.insert(path)),
                    () => {}
                }
            }
        }
        tree
    }

    /// A link to a file counts where it stands; links to folders are not followed.
    fn add_link(&mut self, path: String, link: &Path, top: &PathBuf) {
        match std::fs::canonicalize(link) {
            Ok(target) if !target.starts_with(top) => drop(self.strays.insert(path)),
            Ok(target) if target.is_file() => drop(self.files.insert(path)),
            Ok(_) | Err(_) => {}
        }
    }

    /// The files that any of the patterns means. One that means nothing is worth a word.
    fn find(&self, patterns: &[Pattern], findings: &mut Vec<Diagnostic>) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for pattern in patterns {
            let meant = |path: &&String| pattern.matches(path);
            let before = findings.len();
            findings.extend(self.strays.iter().filter(meant).map(|path| stray(pattern, path)));
            let files: Vec<String> = self.files.iter().filter(meant).cloned().collect();
            if files.is_empty() && findings.len() == before {
                findings.push(self.nothing(pattern));
            }
            all.extend(files);
        }
        all
    }

    fn nothing(&self, pattern: &Pattern) -> Diagnostic {
        let glob = &pattern.glob;
        let finding = Diagnostic::warning(Code::Unreadable, format!("no file is meant by `{}`", glob.value));
        let finding = finding.at(glob.span).reference(&*glob.value);
        if self.is_cut {
            let message = format!("only the first {ENTRIES_MAX} files and folders were looked at");
            return finding.help(format!("{message}; keep the skill's folder small"));
        }
        let near = nearest(&glob.value, self.files.iter().map(String::as_str));
        finding.suggest(near).help("paths are relative to the folder of the skill")
    }
}

fn stray(pattern: &Pattern, path: &str) -> Diagnostic {
    let message = format!("`{path}` is a link that leads out of the skill's folder");
    let finding = Diagnostic::error(Code::BadPath, message).at(pattern.glob.span).reference(path);
    finding.help("put the file itself into the folder")
}

fn names(folder: &Path, files: &BTreeSet<String>, findings: &mut Vec<Diagnostic>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for name in files {
        match files::read(&folder.join(name)) {
            Ok(content) => drop(names.insert(workflow_name(&content.into()))),
            Err(unreadable) => {
                let message = format!("{}: {}", unreadable.name, unreadable.finding.message);
                findings.push(Diagnostic::warning(Code::Unreadable, message).help(unreadable.finding.help));
            }
        }
    }
    names
}

fn check_workflows(file: &mut Found, names: &BTreeSet<String>) {
    for entry in &file.entries {
        let (Some(name), Some(span)) = (&entry.workflow, entry.workflow_span) else { continue };
        if names.contains(&**name) {
            continue;
        }
        let message = format!("the skill has no workflow `{name}`");
        let finding = Diagnostic::warning(Code::UnknownWorkflow, message).at(span).field("workflow");
        let finding = finding.reference(&**name).suggest(nearest(name, names.iter().map(String::as_str)));
        file.findings.push(finding.help(match names.is_empty() {
            true => "the patterns of its SKILL.md mean no workflow at all".to_owned(),
            false => format!("it has {}", names.iter().cloned().collect::<Vec<_>>().join(", ")),
        }));
    }
}
