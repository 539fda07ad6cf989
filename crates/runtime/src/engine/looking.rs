//! Reading runs: everything comes from the journal, whichever process executes them.

use super::{Engine, Error, finished};
use crate::history::History;
use crate::ids;
use crate::report::{self, Report};
use crate::rows;
use std::sync::Arc;
use windlass_engine::{Event, Path, Program, Run, RunId, StepPhase, View};
use windlass_ir::plan::FORMAT;
use windlass_ir::{Plan, RunStatus};
use windlass_store::{Logs, Query, RunRow, StoredPlan};

/// Among so many of the last runs the one is looked for that was probably meant.
const RUNS_NEAR: usize = 1_000;

impl Engine {
    pub fn status(&self, id: &RunId) -> Result<RunStatus, Error> {
        Ok(self.report(id, &self.view(id)?).status())
    }

    /// What users are shown of a run. Asks the owner of the folder whether it executes a run without a result.
    pub fn report<'v>(&self, id: &'v RunId, view: &'v View) -> Report<'v> {
        // Only then does it matter.
        let executed = report::status(view, true) == RunStatus::Running && self.executed().contains(id);
        Report::new(self.dialects(), id, view, executed)
    }

    /// The result object of a run at this moment, with its positions in queues.
    pub fn result(&self, id: &RunId) -> Result<serde_json::Value, Error> {
        Ok(self.result_of(id, &self.view(id)?))
    }

    /// The same, of a run that was just looked at.
    pub fn result_of(&self, id: &RunId, view: &View) -> serde_json::Value {
        // Without the coordinator only the positions in queues are unknown.
        let shared = self.shared().ok();
        self.report(id, view).with_shared(shared.as_ref()).result()
    }

    /// The gate that a decision is meant for: the one of this step, or the only one that waits.
    pub fn gate(&self, id: &RunId, step: Option<&str>) -> Result<Path, Error> {
        let view = self.view(id)?;
        let meant = |path: &Path| {
            step.is_none_or(|step| {
                let name = ids::name(self.dialects(), &view, path);
                name.id == step
                    || *name.plain == *step
                    || ids::rough(path) == step
                    || path.to_string() == step
            })
        };
        let asking = view.steps().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        let gates: Vec<&Path> = asking.map(|(path, _)| path).filter(|path| meant(path)).collect();
        // A gate that was decided before can be named, too: the refusal says so.
        let settled = || view.steps().map(|(path, _)| path).rev().find(|path| step.is_some() && meant(path));
        match gates.as_slice() {
            [only] => Ok((*only).clone()),
            [] => match (settled(), step) {
                (Some(settled), _) => Ok(settled.clone()),
                (None, Some(step)) => Err(self.unknown_gate(id, &view, step)),
                (None, None) if view.ended_at().is_some() => Err(finished(id, &view)),
                (None, None) => Err(Error::NoGate(id.clone())),
            },
            several => Err(Error::WhichGate {
                run: id.clone(),
                gates: several.iter().map(|path| ids::name(self.dialects(), &view, path).id).collect(),
            }),
        }
    }

    /// A run as it stands.
    pub fn view(&self, id: &RunId) -> Result<View, Error> {
        let history = self.history(id)?;
        self.view_of(id, &history, &history.events)
    }

    fn view_of(&self, id: &RunId, history: &History, events: &[Event]) -> Result<View, Error> {
        View::of(self.program_of(id, history)?, events).map_err(|cause| Error::contradictory(id, cause))
    }

    /// Whether a run can be read and fits its plan.
    pub(crate) fn check(&self, id: &RunId) -> Result<(), Error> {
        let history = self.history(id)?;
        let replayed = Run::replay(id.clone(), self.program_of(id, &history)?, &history.events);
        replayed.map(drop).map_err(|cause| Error::contradictory(id, cause))
    }

    pub(crate) fn history(&self, id: &RunId) -> Result<History, Error> {
        let history = History::read(&self.store, id)?;
        if history.events.is_empty() { Err(Error::NoRun(id.to_string())) } else { Ok(history) }
    }

    pub(crate) fn program_of(&self, id: &RunId, history: &History) -> Result<Arc<Program>, Error> {
        self.program_at(id, history.plan().ok_or_else(|| Error::NoPlan(id.clone()))?)
    }

    /// A run as it stood after so many of its events.
    pub fn view_at(&self, id: &RunId, count: u64) -> Result<View, Error> {
        let history = self.history(id)?;
        let events = &history.events;
        let last = events.len() as u64;
        match usize::try_from(count) {
            Ok(count) if (1..=events.len()).contains(&count) => self.view_of(id, &history, &events[..count]),
            Ok(_) | Err(_) => Err(Error::NoEvent { run: id.clone(), event: count, last }),
        }
    }

    /// Where the runs of this folder keep what their jobs print; none where nothing is kept.
    pub fn logs(&self) -> Option<Logs> {
        (!self.folder.as_os_str().is_empty()).then(|| Logs::of(&self.folder))
    }

    pub fn events(&self, id: &RunId) -> Result<Vec<Event>, Error> {
        Ok(History::read(&self.store, id)?.events)
    }

    /// The runs that a query takes. The rows say what the journal says; whether a process executes a run is known only here.
    pub fn runs(&self, query: &Query) -> Result<Vec<RunRow>, Error> {
        // These depend on that.
        let unsure = |status: &RunStatus| matches!(status, RunStatus::Running | RunStatus::Interrupted);
        let decides = query.statuses.iter().any(unsure) || !query.dialect_statuses.is_empty();
        let stored = match decides {
            true => Query {
                limit: usize::MAX,
                statuses: Vec::new(),
                dialect_statuses: Vec::new(),
                ..query.clone()
            },
            false => query.clone(),
        };
        let mut rows = self.store.view.list(&stored).wait()?;
        let is_running = |row: &RunRow| row.row.status == RunStatus::Running;
        if rows.iter().any(is_running) {
            let executed = self.executed();
            let dead = rows.iter_mut().filter(|row| is_running(row) && !executed.contains(&row.run));
            dead.for_each(|row| rows::interrupt(&mut row.row, self.dialects()));
        }
        rows.retain(|row| query.takes_status(row.row.status, &row.row.dialect_status));
        rows.truncate(query.limit);
        Ok(rows)
    }

    /// The run with this id, the only one that begins so, or the one that was started `last`.
    pub fn find(&self, name: &str) -> Result<RunId, Error> {
        let first = |query: Query| -> Result<_, Error> {
            Ok(self.store.view.list(&query).wait()?.into_iter().map(|row| row.run))
        };
        let none = || Error::NoRun(name.to_owned());
        if name == "last" {
            return first(Query { limit: 1, ..Query::default() })?.next().ok_or_else(none);
        }
        let id = RunId::new(name).map_err(|_| none())?;
        if self.store.view.get(&id).wait()?.is_some() {
            return Ok(id);
        }
        let mut begins = first(Query { limit: 2, prefix: name.to_owned(), ..Query::default() })?;
        match (begins.next(), begins.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(second)) => Err(Error::WhichRun {
                name: name.to_owned(),
                runs: [first, second].map(|run| run.to_string()).to_vec(),
            }),
            (None, _) => {
                let known: Vec<RunId> = first(Query { limit: RUNS_NEAR, ..Query::default() })?.collect();
                let near = windlass_ir::suggest::nearest(name, known.iter().map(RunId::as_str));
                Err(near.map_or_else(none, |near| Error::NoRunNear { name: name.into(), near: near.into() }))
            }
        }
    }

    /// What the plan of a run was made of, and what was laid over that.
    pub fn stored_source(&self, id: &RunId) -> Result<(String, String), Error> {
        let StoredPlan { source, overrides, .. } = self.stored_plan(id)?;
        Ok((source, overrides))
    }

    pub(crate) fn program(&self, id: &RunId) -> Result<Arc<Program>, Error> {
        let row = self.store.view.get(id).wait()?.ok_or_else(|| Error::NoRun(id.to_string()))?;
        if let (Some(lsn), "") = (row.broken, row.row.plan.as_str()) {
            // Its beginning is damaged, which says more than that it has no plan.
            self.events(id)?;
            return Err(windlass_store::Error::Corrupt { run: id.clone(), lsn }.into());
        }
        self.program_at(id, &row.row.plan)
    }

    /// The program of the plan with this digest, which is that of the run.
    fn program_at(&self, id: &RunId, digest: &str) -> Result<Arc<Program>, Error> {
        if let Some(known) = self.programs().get(digest) {
            return Ok(known.clone());
        }
        let stored = self.store.plans.get(digest).wait()?.ok_or_else(|| Error::NoPlan(id.clone()))?;
        let program = Arc::new(Program::new(stored.read::<Plan>(FORMAT)?)?);
        self.programs().insert(digest.to_owned(), program.clone());
        Ok(program)
    }

    /// The plan of a run as it is kept.
    pub(crate) fn stored_plan(&self, id: &RunId) -> Result<StoredPlan, Error> {
        let row = self.store.view.get(id).wait()?.ok_or_else(|| Error::NoRun(id.to_string()))?;
        self.store.plans.get(&row.row.plan).wait()?.ok_or_else(|| Error::NoPlan(id.clone()))
    }

    /// No gate has this name: the one that was probably meant, or those that there are.
    fn unknown_gate(&self, id: &RunId, view: &View, step: &str) -> Error {
        let gates = view.steps().filter(|(_, found)| view.plan_step(found).kind.is_gate());
        let names: Vec<String> = gates.map(|(path, _)| ids::name(self.dialects(), view, path).id).collect();
        let instead = match windlass_ir::suggest::nearest(step, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "there is none in it".to_owned(),
            None => format!("it has {}", names.join(", ")),
        };
        Error::UnknownGate { run: id.clone(), step: step.to_owned(), instead }
    }
}
