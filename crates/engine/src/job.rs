//! One attempt of one step, handed to an executor: everything it needs and nothing about the run around it.

use crate::event::Assignment;
use crate::keys::{JobKey, OperationKey};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::{HandoffFormat, ShellOutput};
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: JobKey,
    /// The id that the user knows the step by.
    pub step: Arc<str>,
    /// What to do, with what input and environment.
    pub work: Arc<Assignment>,
    /// Names that are taken out of the environment before `env` is added.
    pub secrets: Arc<[Arc<str>]>,
    pub timeout: Option<Duration>,
    /// What earlier deliveries and attempts of this step noted, by key.
    pub notes: IndexMap<Arc<str>, Value>,
}

impl Job {
    pub fn operation(&self) -> OperationKey {
        OperationKey { run: self.key.run.clone(), path: self.key.path.clone() }
    }
}

/// The work itself, with every expression rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Agent {
        artifact: Arc<str>,
        model: Arc<str>,
        instructions: Option<Value>,
        tools: Vec<Arc<str>>,
        modules: Vec<Arc<str>>,
        handoff: HandoffFormat,
    },
    Shell {
        command: Value,
        cwd: Option<Value>,
        stdin: Option<Sealable>,
        output: ShellOutput,
    },
    Tool {
        tool: Arc<str>,
        server: Option<Arc<str>>,
        args: Sealable,
    },
    Task {
        task: Arc<str>,
        group: Option<Arc<str>>,
        input: Value,
    },
}

impl Work {
    /// The task or tool name, by which a script may answer for many steps at once.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { tool, .. } => Some(tool),
            Self::Task { task, .. } => Some(task),
            Self::Agent { .. } | Self::Shell { .. } => None,
        }
    }
}
