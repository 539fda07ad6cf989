//! `state.json`: the state of a run in Spec Kit's format.

use super::log::Log;
use super::{python, tree};
use serde_json::{Map, Value as Json, json};
use std::path::{Path, PathBuf};
use windlass_api::report::Report;
use windlass_dialects::DIALECTS;
use windlass_dialects::speckit::Definition;
use windlass_ir::Value;
use windlass_runtime::{Outcome, RunId, RunPhase, View, ids};

/// Why the process that followed a run stops following it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It still follows the run.
    None,
    Over,
    Waiting,
    /// The user stopped the run, and can resume it.
    Interrupted,
}

/// The origin of a run.
#[derive(Debug, Default)]
pub struct Origin {
    pub definition: Option<Definition>,
    /// The working folder of its steps; none for a run of another dialect.
    project: Option<PathBuf>,
    workflow_dir: Option<PathBuf>,
    /// The installed workflow and its project.
    installed: Option<(String, PathBuf)>,
}

impl Origin {
    pub fn of(view: &View, source: &str, overlays: &str) -> Self {
        if &*view.program().plan.dialect != "speckit" {
            return Self::default();
        }
        let path = |name: &str| view.about().get(name).and_then(Value::as_str).map(PathBuf::from);
        let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let workflow_dir = path("file").map(resolved).and_then(|file| file.parent().map(Path::to_owned));
        let installed = workflow_dir.as_deref().and_then(|folder| {
            let project = folder.parent().filter(|all| all.ends_with(".specify/workflows"))?;
            Some((folder.file_name()?.to_str()?.to_owned(), project.parent()?.parent()?.to_owned()))
        });
        // Spec Kit finds an installed workflow by its id only below its project. Elsewhere, use the folder in which the run was
        // started.
        let here = path("directory");
        let below = |(_, root): &(String, PathBuf)| {
            let here = here.as_deref()?;
            (!here.join(".specify").is_dir() && here.starts_with(root)).then(|| root.clone())
        };
        let project = installed.as_ref().and_then(below).or_else(|| here.clone());
        Self { definition: Definition::read(source, overlays), project, workflow_dir, installed }
    }

    pub fn folder(&self, run: &RunId) -> Option<PathBuf> {
        Some(self.project.as_ref()?.join(".specify/workflows/runs").join(run.as_str()))
    }

    /// The project of the installed workflow, if it is not the project of the run.
    fn registry_root(&self) -> Option<&Path> {
        let (_, root) = self.installed.as_ref()?;
        let project = self.project.as_ref()?.canonicalize().ok()?;
        (*root != project).then_some(root)
    }

    /// An installed workflow that the run calls.
    pub fn called(&self, id: &str) -> Option<(Definition, PathBuf)> {
        let workflows = self.project.as_ref()?.join(".specify/workflows");
        let file = workflows.join(id).join("workflow.yml").canonicalize().ok()?;
        let (source, overlays) = crate::load::texts(&file).ok()?;
        Some((Definition::read(&source, &overlays)?, file.parent()?.to_owned()))
    }
}

pub fn of(run: &RunId, view: &View, origin: &Origin, log: &Log, rest: Rest) -> Json {
    let payload = report(run, view).payload();
    let error = match view.phase() {
        RunPhase::Ended(Outcome::Failed(failure)) => json!(failure.message),
        RunPhase::Ended(_) | RunPhase::Pending | RunPhase::Running => Json::Null,
    };
    let status = match rest {
        Rest::Interrupted => json!("paused"),
        Rest::None if payload["status"] == "paused" => json!("running"),
        Rest::None | Rest::Over | Rest::Waiting => payload["status"].clone(),
    };
    let mut state = json!({
        "run_id": run,
        "workflow_id": payload["workflow_id"],
        "installed_workflow_id": origin.installed.as_ref().map(|(id, _)| id),
        "installed_registry_root": origin.registry_root(),
        "status": status,
        "current_step_index": payload["current_step_index"],
        "current_step_id": payload["current_step_id"],
        "step_results": records(run, view, log),
        "workflow_dir": origin.workflow_dir,
        "created_at": python::isoformat(view.started_at().unwrap_or_default()),
        "updated_at": python::isoformat(log.last_at),
        "error": error,
        "inputs": report(run, view).inputs(),
    });
    if let Some(execution) = tree::execution(run, view, origin, log, rest) {
        state["execution"] = execution;
    }
    state
}

/// The records of each step, in the order in which the steps began.
pub fn records(run: &RunId, view: &View, log: &Log) -> Map<String, Json> {
    let report = report(run, view);
    let mut records = report.records();
    for (path, before) in &log.before {
        let name = report.id(path);
        if report.is_on_record(path) {
            records.entry(name).or_insert_with(|| before.record.clone());
        }
    }
    let rank = |name: &str| log.recorded.get_index_of(name).unwrap_or(usize::MAX);
    records.sort_by_cached_key(|name, _| rank(name));
    records.into_iter().collect()
}

/// The id of a step within its own workflow.
pub fn id_of(view: &View, path: &windlass_runtime::Path) -> String {
    ids::within(DIALECTS, view, path)
}

/// A run in the form that Spec Kit reports. A run whose process was killed counts as running.
pub fn report<'v>(run: &'v RunId, view: &'v View) -> Report<'v> {
    Report::new(DIALECTS, run, view, true)
}
