//! A job: one attempt of one step, with everything that an executor needs.

use crate::event::Assignment;
use crate::input::Lineage;
use crate::keys::{JobKey, OperationKey};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use windlass_ir::expr::Semantics;
use windlass_ir::value::Sealable;
use windlass_ir::workflow::{BuiltinKind, CallMode, Capture, HandoffFormat, Interpreter, ShellOutput};
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub key: JobKey,
    /// The id of the step in the workflow file.
    pub step: Arc<str>,
    pub work: Arc<Assignment>,
    /// The declared secrets. Executors remove them from the environment before adding `env`, and from all output.
    pub secrets: Arc<[Arc<str>]>,
    pub timeout: Option<Duration>,
    /// Notes from earlier deliveries, attempts and rounds of this step.
    pub notes: IndexMap<Arc<str>, Value>,
    /// Present for a task that may ask for another round.
    pub round: Option<Round>,
    /// Why a gate sent the step back.
    pub feedback: Option<Value>,
    /// The rules of its workflow for text conversion and result shapes.
    pub rules: Semantics,
}

/// The current round of a task that may ask for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Starts at 0.
    pub number: u32,
    pub rounds_max: u32,
    /// Few rounds are left.
    pub warn: bool,
    /// The worker must finish in this round.
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
        #[serde(default, skip_serializing_if = "Interpreter::is_plain")]
        shell: Interpreter,
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
    /// Call another workflow. If it runs inside this run, the answer is an object with `plan` and `inputs`.
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
    /// Notify someone; used only by hooks.
    Notify {
        whom: Value,
    },
}

/// An HTTP request with all expressions rendered.
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

/// A prompt or a command for a command-line agent, with all expressions rendered.
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
    /// The task or tool name, which a mock can match for many steps at once.
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
