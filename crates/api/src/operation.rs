//! What an operation is: its name, what it takes and returns, and who may call it.

use crate::code::Code;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An operation. The request type *is* the operation: its members are what the operation takes.
pub trait Operation: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    type Reply: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    const ABOUT: About;

    /// A request that works on the sample data folder.
    fn example() -> Self;
}

/// Everything about an operation but its types.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// `noun.verb`.
    pub name: &'static str,
    /// One line, beginning with a verb.
    pub summary: &'static str,
    pub effect: Effect,
    pub role: Role,
    /// What it refers to, which adds to the codes that it may return.
    pub subject: Subject,
    /// The codes that are special to it.
    pub errors: &'static [Code],
    /// Where it is found over HTTP.
    pub http: &'static [Route],
    /// The commands that offer it.
    pub cli: &'static [&'static str],
    /// Its steps run in the caller's folder, with the caller's variables.
    pub executes: bool,
    pub stability: Stability,
}

impl About {
    /// An operation for which no data folder is needed.
    pub const PURE: Self = Self {
        name: "",
        summary: "",
        effect: Effect::Pure,
        role: Role::Viewer,
        subject: Subject::None,
        errors: &[],
        http: &[],
        cli: &[],
        executes: false,
        stability: Stability::Stable,
    };
    pub const READS: Self = Self { effect: Effect::Reads, ..Self::PURE };
    pub const CHANGES: Self = Self { effect: Effect::Changes, role: Role::Operator, ..Self::PURE };

    /// Whether the operation may be refused with a code.
    pub fn declares(&self, code: Code) -> bool {
        let of_run = matches!(self.subject, Subject::Run | Subject::RunAndWorkflow);
        let of_workflow = matches!(self.subject, Subject::Workflow | Subject::RunAndWorkflow);
        self.errors.contains(&code)
            || Code::COMMON.contains(&code)
            || of_run && Code::OF_RUNS.contains(&code)
            || of_workflow && Code::OF_WORKFLOWS.contains(&code)
            || self.effect == Effect::Changes && Code::OF_CHANGES.contains(&code)
    }
}

/// A method and a path of the HTTP API. A part of the path in braces is a member of the request; `{id}` is the workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    /// Without the prefix of the API's version.
    pub path: &'static str,
}

impl Route {
    pub const fn get(path: &'static str) -> Self {
        Self { method: Method::Get, path }
    }

    pub const fn post(path: &'static str) -> Self {
        Self { method: Method::Post, path }
    }

    pub const fn put(path: &'static str) -> Self {
        Self { method: Method::Put, path }
    }

    pub const fn delete(path: &'static str) -> Self {
        Self { method: Method::Delete, path }
    }

    /// The members of the request that the path names, each with its part of the path.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parts = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        parts.map(|part| (part, if part == "id" { "workflow" } else { part }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

/// What a call does to the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does not look at the data folder.
    Pure,
    Reads,
    Changes,
    /// It changes a folder that may be damaged: the owner does it, or this process if there is none.
    Repairs,
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    None,
    Run,
    Workflow,
    RunAndWorkflow,
}

/// What a principal must be to call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Operator,
    Approver,
    Author,
    Admin,
    Worker,
}

impl Role {
    /// Whether a caller with this role may do what needs another.
    pub fn includes(self, needed: Self) -> bool {
        match self {
            Self::Admin => true,
            Self::Author => matches!(needed, Self::Author | Self::Operator | Self::Viewer),
            Self::Operator => matches!(needed, Self::Operator | Self::Viewer),
            Self::Approver => matches!(needed, Self::Approver | Self::Viewer),
            Self::Viewer | Self::Worker => self == needed,
        }
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// How much an operation may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    Stable,
    Preview,
    /// Only on the owner's socket, between processes of the same version.
    Internal,
}
