//! Reads runs from the journal, whichever process executes them.

use super::{Engine, Error, finished};
use crate::history::History;
use crate::ids;
use crate::rows;
use crate::status;
use std::sync::Arc;
use windlass_engine::{Event, Path, Program, Run, RunId, StepPhase, View, What};
use windlass_ir::plan::FORMAT;
use windlass_ir::{Plan, RunStatus};
use windlass_store::{Logs, Query, RunRow, StoredPlan};

/// The number of recent runs to search for a similar id.
const RUNS_NEAR: usize = 1_000;

impl Engine {
    pub fn status(&self, id: &RunId) -> Result<RunStatus, Error> {
        let view = self.view(id)?;
        Ok(status::run_status(&view, self.executes(id, &view)))
    }

    /// Whether a process executes a run. Asks the owner of the folder only if the status depends on that.
    pub fn executes(&self, id: &RunId, view: &View) -> bool {
        status::run_status(view, true) == RunStatus::Running && self.executed().contains(id)
    }

    /// The gate that a decision is for: the gate of this step, or the only gate that waits.
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
        // Users can name a gate that already has a decision; the refusal then says so.
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

    /// The current state of a run.
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

    /// The state of a run after its first `count` events.
    pub fn view_at(&self, id: &RunId, count: u64) -> Result<View, Error> {
        let history = self.history(id)?;
        let events = &history.events;
        let last = events.len() as u64;
        match usize::try_from(count) {
            Ok(count) if (1..=events.len()).contains(&count) => self.view_of(id, &history, &events[..count]),
            Ok(_) | Err(_) => Err(Error::NoEvent { run: id.clone(), event: count, last }),
        }
    }

    /// The logs of this folder; none for an engine in memory.
    pub fn logs(&self) -> Option<Logs> {
        (!self.folder.as_os_str().is_empty()).then(|| Logs::of(&self.folder))
    }

    pub fn events(&self, id: &RunId) -> Result<Vec<Event>, Error> {
        Ok(History::read(&self.store, id)?.events)
    }

    /// Whether a step waited for a signal when the run received it.
    pub fn has_taken_signal(&self, id: &RunId, signal: &str) -> Result<bool, Error> {
        let is_it = |event: &Event| match &event.what {
            What::Signalled { id, path, .. } if **id == *signal => Some(path.is_some()),
            _ => None,
        };
        Ok(self.events(id)?.iter().rev().find_map(is_it).unwrap_or(false))
    }

    /// The runs that match a query. Stored rows reflect the journal; this adds whether a process executes each run.
    pub fn runs(&self, query: &Query) -> Result<Vec<RunRow>, Error> {
        // These statuses depend on whether a process executes the run.
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

    /// The run with this id, or the only run whose id begins with or contains this text. `last` is the newest run.
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
                let within = Query { search: Some(name.to_owned()), ..Query::default() };
                let within: Vec<RunId> = first(within)?.filter(|run| run.as_str().contains(name)).collect();
                match within.as_slice() {
                    [] => {}
                    [only] => return Ok(only.clone()),
                    [first, second, ..] => {
                        let runs = [first, second].map(ToString::to_string).to_vec();
                        return Err(Error::WhichRun { name: name.to_owned(), runs });
                    }
                }
                let known: Vec<RunId> = first(Query { limit: RUNS_NEAR, ..Query::default() })?.collect();
                let near = windlass_ir::suggest::nearest(name, known.iter().map(RunId::as_str));
                Err(near.map_or_else(none, |near| Error::NoRunNear { name: name.into(), near: near.into() }))
            }
        }
    }

    /// Documents of the ledger with their keys, ordered by key. Blocks.
    pub fn documents(
        &self,
        kind: &'static str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, Error> {
        Ok(self.store.ledger.list(kind, after, limit).wait()?)
    }

    /// The log of the ledger, the newest entry first. Blocks.
    pub fn log(&self, before: Option<u64>, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        Ok(self.store.ledger.log(before, limit).wait()?)
    }

    /// Where the decision with this id was made.
    pub fn decision_path(&self, id: &RunId, decision: &str) -> Result<Option<Path>, Error> {
        Ok(self.events(id)?.into_iter().find_map(|event| match event.what {
            What::Decided { id, path, .. } if *id == *decision => Some(path),
            _ => None,
        }))
    }

    /// The path of a step that a run has reached, by its visible id.
    pub fn step_path(&self, id: &RunId, step: &str) -> Result<Path, Error> {
        crate::retry::find(self.dialects(), id, &self.view(id)?, step)
    }

    /// The source of the plan of a run, and its overrides.
    pub fn stored_source(&self, id: &RunId) -> Result<(String, String), Error> {
        let StoredPlan { source, overrides, .. } = self.stored_plan(id)?;
        Ok((source, overrides))
    }

    pub fn program(&self, id: &RunId) -> Result<Arc<Program>, Error> {
        let row = self.store.view.get(id).wait()?.ok_or_else(|| Error::NoRun(id.to_string()))?;
        if let (Some(lsn), "") = (row.broken, row.row.plan.as_str()) {
            // Report that its beginning is damaged instead of a missing plan.
            self.events(id)?;
            return Err(windlass_store::Error::Corrupt { run: id.clone(), lsn }.into());
        }
        self.program_at(id, &row.row.plan)
    }

    /// The program of the plan with this digest, which the run uses.
    fn program_at(&self, id: &RunId, digest: &str) -> Result<Arc<Program>, Error> {
        if let Some(known) = self.programs().get(digest) {
            return Ok(known.clone());
        }
        let stored = self.store.plans.get(digest).wait()?.ok_or_else(|| Error::NoPlan(id.clone()))?;
        let program = Arc::new(Program::new(stored.read::<Plan>(FORMAT)?)?);
        self.programs().insert(digest.to_owned(), program.clone());
        Ok(program)
    }

    /// The stored plan of a run.
    pub fn stored_plan(&self, id: &RunId) -> Result<StoredPlan, Error> {
        let row = self.store.view.get(id).wait()?.ok_or_else(|| Error::NoRun(id.to_string()))?;
        self.store.plans.get(&row.row.plan).wait()?.ok_or_else(|| Error::NoPlan(id.clone()))
    }

    /// No gate has this name. Suggests the nearest gate, or lists all gates.
    fn unknown_gate(&self, id: &RunId, view: &View, step: &str) -> Error {
        let gates = view.steps().filter(|(_, found)| view.plan_step(found).kind.is_gate());
        let names: Vec<String> = gates.map(|(path, _)| ids::name(self.dialects(), view, path).id).collect();
        let instead = match windlass_ir::suggest::nearest(step, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it has no gates".to_owned(),
            None => format!("it has {}", names.join(", ")),
        };
        Error::UnknownGate { run: id.clone(), step: step.to_owned(), instead }
    }
}
