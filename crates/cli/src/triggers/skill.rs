//! A skill and its schedules files, checked together.

use super::{Found, What, schedules as read_text};
use crate::files;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use windlass_api::library::SkillFiles;
use windlass_dialects::Text;
use windlass_dialects::dcc::skill::{read_skill, workflow_name};
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic};

/// The skill itself, then its schedules files.
pub fn read(text: &Text, path: &Path) -> Vec<Found> {
    let skill = read_skill(text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let tree = SkillFiles::list(folder, &skill);
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
    let own = Found::new(text.name.clone(), skill.sources, skill.diagnostics, what);
    let mut found = vec![Found { shared: findings, ..own }];
    found.append(&mut files);
    found
}

/// The schedules files of a skill.
pub fn schedules(path: &Path, text: &Text) -> Vec<PathBuf> {
    let skill = read_skill(text);
    let folder = path.parent().unwrap_or(Path::new(""));
    let files = SkillFiles::list(folder, &skill).find(&skill.schedules, &mut Vec::new());
    files.into_iter().map(|name| folder.join(name)).collect()
}

fn read_schedules(path: &Path) -> Found {
    match files::read(path) {
        Ok(content) => read_text(content.into()),
        Err(unreadable) => unreadable.into(),
    }
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
        file.shared.push(finding.help(match names.is_empty() {
            true => "the patterns in its SKILL.md match no workflow".to_owned(),
            false => format!("it has {}", names.iter().cloned().collect::<Vec<_>>().join(", ")),
        }));
    }
}
