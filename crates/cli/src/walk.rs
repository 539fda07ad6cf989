//! Searches a folder recursively for files that Windlass reads.

use crate::files::{self, WORKFLOW_FILES};
use std::path::{Path, PathBuf};
use windlass_dialects::cases::ENDINGS;
use windlass_dialects::dcc::schedules::is_schedules_file;
use windlass_dialects::dcc::skill::is_skill_file;
use windlass_dialects::swdl::OVERRIDES_FILE;
use windlass_dialects::text::{self, Format, Limits};
use windlass_dialects::{FileKind, Text, is_overrides};
use windlass_ir::{Source, SourceId};

/// More files and folders than this are skipped.
const ENTRIES_MAX: usize = 50_000;

/// The files whose path and name `keep` accepts, sorted.
pub fn files(folder: &Path, keep: &dyn Fn(&Path, &str) -> bool) -> Vec<PathBuf> {
    windlass_api::library::walk(folder, ENTRIES_MAX, keep).files
}

/// Whether `windlass validate` checks this file, judging by its name, else by its keys.
pub fn is_checked(path: &Path, name: &str) -> bool {
    if is_named(name) {
        return true;
    }
    let format = match name.rsplit_once('.') {
        Some((stem, "yaml" | "yml")) if !stem.is_empty() => Format::Yaml,
        Some((stem, "json")) if !stem.is_empty() => Format::Json,
        _ => return false,
    };
    files::read(path).is_ok_and(|content| has_keys(&content.into(), format))
}

fn is_named(name: &str) -> bool {
    name == "windlass.toml"
        || name == OVERRIDES_FILE
        || WORKFLOW_FILES.contains(&name)
        || is_skill_file(name)
        || is_schedules_file(name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || [".workflow.yaml", ".workflow.yml"].iter().any(|ending| name.ends_with(ending))
}

/// Whether a file has the keys of a workflow or of a related file. A file with a syntax error has no keys, so its lines decide.
fn has_keys(file: &Text, format: Format) -> bool {
    let Ok(decoded) = text::decode(&file.bytes) else { return false };
    let source = Source::new(file.name.as_str(), decoded);
    match text::read(&source, SourceId(0), format, &Limits::default()).root {
        Some(root) => FileKind::guess(&root).is_some() || is_overrides(file),
        None => {
            let starts = ["workflow:", "stages:", "steps:", "schedules:"];
            source.text.lines().any(|line| starts.iter().any(|start| line.starts_with(start)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_distinguish_windlass_files_from_others() {
        let check = |name: &str, content: &str, format, expected: bool| {
            let file = Text { name: name.into(), bytes: content.as_bytes().to_vec() };
            assert_eq!(has_keys(&file, format), expected, "{content}");
        };
        check("a.yaml", "workflow: {id: a}\nstages: []\n", Format::Yaml, true);
        check("a.yaml", "overrides: {a: {}}\n", Format::Yaml, true);
        check("a.yaml", "stages:\n  - {id: a\n", Format::Yaml, true);
        check("a.yaml", "services: {db: {image: postgres}}\n", Format::Yaml, false);
        check("a.yaml", "{{ template }}: [\n", Format::Yaml, false);
        check("a.json", r#"{"name": "a", "version": "1.0.0", "scripts": {}}"#, Format::Json, false);
        check("a.json", r#"{"name": "a", "steps": [{"id": "b", "task": "c"}]}"#, Format::Json, true);
    }
}
