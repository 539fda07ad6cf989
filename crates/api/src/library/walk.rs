//! Lists the files below a folder, nearest first, so that a search that reaches its limit has seen the top of the project.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Deeper folders are skipped.
const DEPTH_MAX: usize = 16;

/// Folders that are searched although their name starts with a dot.
const VISIBLE: [&str; 3] = [".specify", ".claude", ".agents"];
/// Folders that belong to other programs.
const SKIPPED: [&str; 2] = ["node_modules", "target"];
/// Folders of Spec Kit that contain copies and parts of workflows.
const SPECKIT: &str = ".specify/workflows";
const SPECKIT_SKIPPED: [&str; 3] = ["overlays", "runs", "steps"];

/// The files below a folder.
#[derive(Debug, Default)]
pub struct Walked {
    /// Sorted.
    pub files: Vec<PathBuf>,
    /// There are more files and folders than the limit.
    pub is_cut: bool,
}

/// The files whose path and name `keep` accepts. Links to files inside the folder count; other links are skipped.
pub fn walk(folder: &Path, entries_max: usize, keep: &dyn Fn(&Path, &str) -> bool) -> Walked {
    let mut walked = Walked::default();
    let top = std::fs::canonicalize(if folder == Path::new("") { Path::new(".") } else { folder });
    let mut open = VecDeque::from([(folder.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((here, depth)) = open.pop_front() {
        let listed = if here == Path::new("") { Path::new(".") } else { &here };
        // A folder that cannot be listed contributes no files.
        for entry in std::fs::read_dir(listed).into_iter().flatten().flatten() {
            seen += 1;
            if seen > entries_max {
                walked.is_cut = true;
                walked.files.sort();
                return walked;
            }
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            let path = here.join(&name);
            if kind.is_dir() {
                if depth < DEPTH_MAX && is_searched(&here, &name) {
                    open.push_back((path, depth + 1));
                }
                continue;
            }
            let is_inside = || {
                let target = std::fs::canonicalize(&path);
                matches!((&top, target), (Ok(top), Ok(target)) if target.starts_with(top))
            };
            if (!kind.is_symlink() || is_inside()) && keep(&path, &name) {
                walked.files.push(path);
            }
        }
    }
    walked.files.sort();
    walked
}

/// Whether a search skips folders of this name wherever they are.
pub fn is_skipped(name: &str) -> bool {
    name.starts_with('.') && !VISIBLE.contains(&name) || SKIPPED.contains(&name)
}

fn is_searched(around: &Path, name: &str) -> bool {
    let is_part = around.ends_with(SPECKIT) && SPECKIT_SKIPPED.contains(&name);
    !is_part && !is_skipped(name)
}
