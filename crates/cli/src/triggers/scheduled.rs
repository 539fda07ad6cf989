//! Turns the triggers in files into triggers that can fire, each with the workflow that it starts.

use super::{Entry, Found, What, names_in, read};
use crate::answer;
use crate::args::Reading;
use crate::files;
use crate::load::{self, Opened};
use crate::show::{Screen, diagnostics};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_api::{Code as ApiCode, Refusal};
use windlass_dialects::dcc::schedules::is_schedules_file;
use windlass_dialects::dcc::skill::workflow_name;
use windlass_ir::expr::Semantics;
use windlass_ir::suggest::nearest;
use windlass_ir::trigger::TriggerSource;
use windlass_ir::{Code, Diagnostic};
use windlass_runtime::Scheduled;

/// Folders to search for workflows, relative to a schedules file.
const FOLDERS: [&str; 2] = ["", "workflows"];
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// The triggers in the named files.
#[derive(Debug, Default)]
pub struct Triggers {
    /// The enabled cron triggers.
    pub ready: Vec<Scheduled>,
    /// Those that this version cannot fire, with their kinds.
    pub cannot_fire: Vec<(Arc<str>, &'static str)>,
    pub disabled: usize,
    /// Findings about files and single triggers.
    pub report: String,
}

/// Reads triggers. A file that cannot be read, is not valid or has no trigger is refused; a trigger whose workflow is missing or
/// not valid is only reported.
pub fn scheduled(paths: &[PathBuf], screen: &Screen) -> Result<Triggers, Refusal> {
    let mut all = Triggers::default();
    let mut refused = Vec::new();
    for mut file in read(paths) {
        let is_valid = file.is_valid();
        let is_empty = file.entries.is_empty() && !matches!(file.what, What::Skill { .. });
        for (number, entry) in std::mem::take(&mut file.entries).into_iter().enumerate() {
            let id = id(&file, number, &entry);
            match (&entry.trigger.source, entry.trigger.enabled) {
                (_, false) => all.disabled += 1,
                (TriggerSource::Cron(_), true) => match one(&file, id, entry) {
                    Ok(found) => all.ready.extend(found),
                    Err(finding) => file.shared.push(*finding),
                },
                (
                    source @ (TriggerSource::Webhook { .. }
                    | TriggerSource::Http(_)
                    | TriggerSource::Message { .. }
                    | TriggerSource::External { .. }),
                    true,
                ) => all.cannot_fire.push((id, kind(source))),
            }
        }
        all.report += &diagnostics::render(&file.all(), &file.sources, Some(&file.file), screen);
        match (is_valid, is_empty) {
            (false, _) => refused.push(format!("{} is not valid", file.file)),
            (true, true) => refused.push(format!("{} has no triggers", file.file)),
            (true, false) => {}
        }
    }
    if !all.report.is_empty() {
        all.report += diagnostics::PAGES;
    }
    match refused.is_empty() {
        true => Ok(all),
        false => {
            if !all.report.is_empty() {
                answer::remark(all.report.trim_end());
            }
            let refusal = Refusal::new(ApiCode::BadRequest, refused.join("; ")).field("schedules");
            Err(refusal.help("name a schedules file or a workflow with triggers; `windlass triggers check FILE` shows all problems"))
        }
    }
}

fn kind(source: &TriggerSource) -> &'static str {
    match source {
        TriggerSource::Cron(_) => "cron",
        TriggerSource::Webhook { .. } => "webhook",
        TriggerSource::Http(_) => "http",
        TriggerSource::Message { .. } => "message",
        TriggerSource::External { .. } => "external",
    }
}

/// Its own id, or one derived from the workflow and the pattern, which stays the same if other triggers are added.
fn id(file: &Found, number: usize, entry: &Entry) -> Arc<str> {
    let workflow = entry.workflow.as_deref().unwrap_or(&file.file);
    match (&entry.trigger.id, &entry.trigger.source) {
        (Some(id), _) => id.value.clone(),
        (None, TriggerSource::Cron(cron)) => format!("{workflow}: {}", cron.pattern.value).into(),
        (
            None,
            TriggerSource::Webhook { .. }
            | TriggerSource::Http(_)
            | TriggerSource::Message { .. }
            | TriggerSource::External { .. },
        ) => format!("{workflow}: {}", number + 1).into(),
    }
}

/// None for a trigger without a clock.
fn one(file: &Found, id: Arc<str>, entry: Entry) -> Result<Option<Scheduled>, Box<Diagnostic>> {
    let Entry { trigger, workflow, workflow_span } = entry;
    let TriggerSource::Cron(cron) = trigger.source else { return Ok(None) };
    let parked = |finding: Diagnostic| Box::new(finding.at(workflow_span.unwrap_or(trigger.span)));
    let (path, semantics) = match &file.what {
        What::Schedules => {
            let name = workflow.unwrap_or_default();
            (find(file, &name).map_err(|finding| parked(*finding))?, Some(Semantics::DCC))
        }
        What::Workflow { .. } => (PathBuf::from(&file.file), None),
        // The file was not read.
        What::Skill { .. } | What::Unreadable => return Ok(None),
    };
    let reading = Reading::default();
    let Opened { plan, words, sources, .. } = load::open_to_start(&path, &reading).map_err(|refusal| {
        let cause = refusal.findings.iter().find(|finding| finding.is_error());
        let cause = cause.map(|finding| finding.message.clone()).unwrap_or_default();
        let message = format!("the trigger `{id}` is parked: {} is not valid: {cause}", path.display());
        parked(
            Diagnostic::error(Code::UnknownWorkflow, message)
                .help(format!("`windlass validate {}` shows all problems", path.display())),
        )
    })?;
    let mut texts = sources.iter().map(|source| source.text.to_string());
    Ok(Some(Scheduled {
        id,
        cron,
        input: trigger.input,
        runs_max: trigger.runs_max,
        overlap: trigger.overlap,
        semantics: semantics.unwrap_or(plan.semantics),
        plan,
        words,
        source: texts.next().unwrap_or_default(),
        overrides: texts.next().unwrap_or_default(),
    }))
}

/// The file of a workflow that a schedule names: one of the skill's, else one beside the schedules file.
fn find(file: &Found, name: &str) -> Result<PathBuf, Box<Diagnostic>> {
    let files = match &file.workflows {
        Some(files) => files.clone(),
        None => beside(Path::new(&file.file).parent().unwrap_or(Path::new(""))),
    };
    let named = |path: PathBuf| Some((workflow_name(&files::read(&path).ok()?.into()), path));
    let all: Vec<(String, PathBuf)> = files.into_iter().filter_map(named).collect();
    let mut meant = all.iter().filter(|(other, _)| other == name).map(|(_, path)| path.clone());
    let finding =
        |message: String| Diagnostic::error(Code::UnknownWorkflow, message).field("workflow").reference(name);
    let wrong = match (meant.next(), meant.next()) {
        (Some(only), None) => return Ok(only),
        (Some(first), Some(second)) => {
            let message = format!("both {} and {} are called `{name}`", first.display(), second.display());
            finding(message).help("give one of them another name")
        }
        (None, _) => finding(format!("there is no workflow `{name}`"))
            .suggest(nearest(name, all.iter().map(|(name, _)| name.as_str())))
            .help("put its file beside the file of schedules, or into `workflows` there"),
    };
    Err(Box::new(wrong))
}

fn beside(folder: &Path) -> Vec<PathBuf> {
    let in_folder = |part: &str| {
        let folder = if part.is_empty() { folder.to_owned() } else { folder.join(part) };
        let listed = if folder == Path::new("") { Path::new(".") } else { &folder };
        // A folder that cannot be listed contributes no files.
        let names = names_in(listed).unwrap_or_default().into_iter();
        let may_be =
            |name: &String| ENDINGS.iter().any(|ending| name.ends_with(ending)) && !is_schedules_file(name);
        names.filter(may_be).map(|name| folder.join(name)).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    FOLDERS.into_iter().flat_map(in_folder).collect()
}
