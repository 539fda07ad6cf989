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
    /// The commands that call it.
    pub cli: &'static [&'static str],
    pub stability: Stability,
}

impl About {
    /// Whether the operation may be refused with a code.
    pub fn declares(&self, code: Code) -> bool {
        let of_subject = match self.subject {
            Subject::None => &[][..],
            Subject::Run => Code::OF_RUNS,
            Subject::Workflow => Code::OF_WORKFLOWS,
            Subject::RunAndWorkflow => {
                return self.errors.contains(&code)
                    || Code::COMMON.contains(&code)
                    || Code::OF_RUNS.contains(&code)
                    || Code::OF_WORKFLOWS.contains(&code);
            }
        };
        self.errors.contains(&code) || Code::COMMON.contains(&code) || of_subject.contains(&code)
    }
}

/// What a call does to the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does not look at the data folder.
    Pure,
    Reads,
    Changes,
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

/// How much an operation may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    Stable,
    Preview,
    /// Only on the owner's socket, between processes of the same version.
    Internal,
}
