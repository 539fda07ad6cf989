//! Which runs are executed right now, as far as the owner of a data folder says. A run that no process executes is interrupted,
//! whatever its journal says last.

use crate::owner;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;
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

    /// Asks the owner of a folder. Without one nothing is executed. An owner that does not answer may execute anything.
    pub fn in_folder(folder: &Path) -> Self {
        match owner::ask_executed(folder) {
            Ok(Some(executed)) => executed,
            Ok(None) => Self::AllBut(HashSet::new()),
            Err(_) => Self::nothing(),
        }
    }

    pub fn contains(&self, run: &RunId) -> bool {
        match self {
            Self::Only(runs) => runs.contains(run),
            Self::AllBut(runs) => !runs.contains(run),
        }
    }

    pub(crate) fn add(&mut self, run: &RunId) {
        match self {
            Self::Only(runs) => runs.insert(run.clone()),
            Self::AllBut(runs) => runs.remove(run),
        };
    }

    /// The run has ended, which its journal says.
    pub(crate) fn forget(&mut self, run: &RunId) {
        if let Self::Only(runs) = self {
            runs.remove(run);
        }
    }
}
