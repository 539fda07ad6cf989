//! The runs that the owner of a data folder executes right now. An unfinished run that no process executes is interrupted,
//! whatever its last event is.

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_engine::RunId;

/// The runs that the owner of a data folder executes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executed {
    Only(HashSet<RunId>),
    AllBut(HashSet<RunId>),
}

impl Executed {
    pub fn nothing() -> Self {
        Self::Only(HashSet::new())
    }

    /// For an owner that does not reply: it may execute any run.
    pub fn anything() -> Self {
        Self::AllBut(HashSet::new())
    }

    pub fn contains(&self, run: &RunId) -> bool {
        match self {
            Self::Only(runs) => runs.contains(run),
            Self::AllBut(runs) => !runs.contains(run),
        }
    }

    fn add(&mut self, run: &RunId) {
        match self {
            Self::Only(runs) => runs.insert(run.clone()),
            Self::AllBut(runs) => runs.remove(run),
        };
    }

    /// Removes a run that has ended.
    fn forget(&mut self, run: &RunId) {
        if let Self::Only(runs) = self {
            runs.remove(run);
        }
    }
}

/// Asks the owner of a folder which runs it executes.
pub type AskOwner = fn(&Path) -> Executed;

/// The runs of an open data folder that a process executes.
#[derive(Debug)]
pub(crate) enum Presence {
    Here(Mutex<Here>),
    /// The folder is open read-only.
    Elsewhere(AskOwner),
}

#[derive(Debug)]
pub(crate) struct Here {
    executed: Executed,
    /// Unfinished runs that this process has started or resumed.
    active: HashSet<RunId>,
}

impl Presence {
    /// The presence of an owner that executes nothing yet.
    pub fn here() -> Self {
        Self::Here(Mutex::new(Here { executed: Executed::nothing(), active: HashSet::new() }))
    }

    fn own(&self) -> Option<MutexGuard<'_, Here>> {
        match self {
            Self::Here(here) => Some(here.lock().unwrap_or_else(PoisonError::into_inner)),
            Self::Elsewhere(_) => None,
        }
    }

    /// Executes these runs. Starting or resuming a run adds it.
    pub fn execute(&self, runs: Executed) {
        if let Some(mut here) = self.own() {
            here.executed = runs;
        }
    }

    /// Returns whether the run was active before.
    pub fn note_active(&self, run: &RunId) -> bool {
        self.note_executed(run);
        self.own().is_some_and(|mut here| !here.active.insert(run.clone()))
    }

    pub fn note_executed(&self, run: &RunId) {
        if let Some(mut here) = self.own() {
            here.executed.add(run);
        }
    }

    pub fn note_ended(&self, run: &RunId) {
        if let Some(mut here) = self.own() {
            here.executed.forget(run);
            here.active.remove(run);
        }
    }

    pub fn is_active(&self, run: &RunId) -> bool {
        self.own().is_some_and(|here| here.active.contains(run))
    }

    /// Blocks if another process owns the folder.
    pub fn executed(&self, folder: &Path) -> Executed {
        match self {
            Self::Here(here) => here.lock().unwrap_or_else(PoisonError::into_inner).executed.clone(),
            Self::Elsewhere(ask) => ask(folder),
        }
    }
}
