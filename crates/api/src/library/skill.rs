//! The files of a skill: those below its folder that match its patterns. Windlass opens nothing outside that folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_dialects::dcc::skill::{Pattern, Skill};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// More files and folders than this are skipped.
const ENTRIES_MAX: usize = 20_000;
/// Deeper folders are skipped.
const DEPTH_MAX: usize = 16;

/// The files below the folder of a skill, as sorted relative paths with slashes.
#[derive(Debug)]
pub struct SkillFiles {
    files: BTreeSet<String>,
    /// Links whose target is outside the folder.
    strays: BTreeSet<String>,
    is_cut: bool,
}

impl SkillFiles {
    pub fn list(folder: &Path, skill: &Skill) -> Self {
        let depth = depth(skill);
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        let mut tree = Self { files: BTreeSet::new(), strays: BTreeSet::new(), is_cut: false };
        let top = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let mut open = vec![(folder.to_owned(), String::new(), 0)];
        let mut seen = 0;
        while let Some((here, prefix, level)) = open.pop() {
            // A folder that cannot be listed contributes no files.
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

    /// A link to a file counts as that file; links to folders are not followed.
    fn add_link(&mut self, path: String, link: &Path, top: &PathBuf) {
        match std::fs::canonicalize(link) {
            Ok(target) if !target.starts_with(top) => drop(self.strays.insert(path)),
            Ok(target) if target.is_file() => drop(self.files.insert(path)),
            Ok(_) | Err(_) => {}
        }
    }

    /// The files that match any pattern, and a warning for each pattern that matches none.
    pub fn find(&self, patterns: &[Pattern], findings: &mut Vec<Diagnostic>) -> BTreeSet<String> {
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
        let finding = Diagnostic::warning(Code::Unreadable, format!("`{}` matches no file", glob.value));
        let finding = finding.at(glob.span).reference(&*glob.value);
        if self.is_cut {
            let message = format!("only the first {ENTRIES_MAX} files and folders were searched");
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

/// The deepest folder level that the patterns of a skill match.
fn depth(skill: &Skill) -> usize {
    let patterns = skill.workflows.iter().chain(&skill.schedules);
    let reach = |pattern: &Pattern| match pattern.glob.value.contains("**") {
        true => DEPTH_MAX,
        false => pattern.glob.value.matches('/').count().min(DEPTH_MAX),
    };
    patterns.map(reach).max().unwrap_or_default()
}
