//! One attempt of one step, handed to an executor: everything it needs and nothing about the run around it.

use crate::event::Assignment;
use crate::input::Lineage;
use crate::keys::{JobKey, OperationKey};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::expr::Semantics;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::{BuiltinKind, CallMode, Capture, HandoffFormat, ShellOutput};
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: JobKey,
    /// The id that the user knows the step by.
    pub step: Arc<str>,
    /// What to do, with what input and environment.
    pub work: Arc<Assignment>,
    /// The secrets that the run declares. They are taken out of the environment before `env` is added, and out of all output.
    pub secrets: Arc<[Arc<str>]>,
    pub timeout: Option<Duration>,
    /// What earlier deliveries, attempts and rounds of this step noted, by key.
    pub notes: IndexMap<Arc<str>, Value>,
    /// There for a task that may ask for another round.
    pub round: Option<Round>,
    /// Why the step is done again, after a no at a gate.
    pub feedback: Option<Value>,
    /// The rules of its workflow: how values read as text, and the shape of what it leaves behind.
    pub rules: Semantics,
}

/// Where a task that may ask for another round stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// From 0.
    pub number: u32,
    pub rounds_max: u32,
    /// Few rounds are left.
    pub warn: bool,
    /// It must come to an end.
    pub force: bool,
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
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<Arc<str>>,
        input: Value,
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        metadata: IndexMap<Arc<str>, Arc<str>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        capabilities: Vec<Arc<str>>,
    },
    Http(Box<Request>),
    /// Another workflow. One that runs inside this run is answered with an object of `plan` and `inputs`.
    Call {
        workflow: Value,
        input: Value,
        mode: CallMode,
        lineage: Lineage,
    },
    Assistant(Box<AssistantWork>),
    Builtin {
        what: BuiltinKind,
        args: Value,
    },
    /// Tell somebody; only done around a run.
    Notify {
        whom: Value,
    },
}

/// A request with every expression rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub method: Arc<str>,
    pub url: Sealable,
    pub headers: Sealable,
    pub query: Sealable,
    pub body: RequestBody,
    pub auth: Option<RequestAuth>,
    pub expect: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestBody {
    Empty,
    Json(Sealable),
    Form(Sealable),
    Text(Sealable),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestAuth {
    Bearer(Sealable),
    Basic { user: Sealable, password: Sealable },
}

/// A prompt or a command for a command line agent, with every expression rendered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantWork {
    pub ask: AssistantAsk,
    pub integration: Option<Value>,
    pub model: Option<Value>,
    pub options: IndexMap<Arc<str>, Value>,
    pub capture: Option<Capture>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssistantAsk {
    Prompt(Value),
    Command { command: Arc<str>, input: Value, arguments: Vec<Value>, settings: Value },
}

impl Work {
    /// The task or tool name, by which a script may answer for many steps at once.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Tool { tool, .. } => Some(tool),
            Self::Task { task, .. } => Some(task),
            Self::Call { workflow, .. } => workflow.as_str(),
            Self::Agent { .. }
            | Self::Shell { .. }
            | Self::Http(_)
            | Self::Assistant(_)
            | Self::Builtin { .. }
            | Self::Notify { .. } => None,
        }
    }
}
