//! The codes that a refusal can have, and how a command ends that was refused with one.

use crate::exit::Exit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an operation was refused. Programs match on it; `windlass explain CODE` prints its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    // Malformed request.
    BadRequest,
    UnknownMember,
    BadCursor,
    BadRunId,
    BadConfig,
    Unreadable,
    Unwritable,
    UnknownOperation,
    // No valid token.
    Unauthorized,
    // Not allowed.
    Forbidden,
    NotAnApprover,
    WrongOwner,
    BadHost,
    BadOrigin,
    // Not found.
    NoRun,
    NoWorkflow,
    NoStep,
    NoEvent,
    NoGate,
    NoSchema,
    NoCode,
    NoToken,
    NoRoute,
    // Method or media type.
    MethodNotAllowed,
    UnsupportedMediaType,
    // State conflict.
    RunExists,
    RunFinished,
    RunNotFinished,
    NotResumable,
    AlreadyDecided,
    AlreadyPaused,
    NothingToRetry,
    Owned,
    KeyInUse,
    NameTaken,
    // Too large.
    TooLarge,
    // Content refused.
    AmbiguousWorkflow,
    InvalidWorkflow,
    BadParameter,
    MissingParameter,
    NotRunnable,
    BadMock,
    BadForm,
    NoSuchOption,
    BadEdit,
    NotConvertible,
    BadBudget,
    BadExport,
    ExpressionError,
    NoResult,
    KeyReused,
    // Damaged data.
    DamagedRun,
    DamagedLimits,
    ContradictoryJournal,
    OlderCopy,
    NoPlan,
    Orphans,
    // Not available.
    Storage,
    DataFolder,
    OwnerGone,
    Unreachable,
    // Our bug.
    Bug,
}

/// A kind of refusal. Each face answers all codes of a family alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    Malformed,
    /// No token, or one that is not valid.
    Unauthorized,
    NotAllowed,
    NotFound,
    /// The path exists, but not with this method.
    Method,
    /// The body has a type that is not read here.
    MediaType,
    /// The state of a run does not allow it.
    Conflict,
    TooLarge,
    /// The request can be read, but not what it contains.
    Content,
    /// An expression could not be evaluated: the answer to `eval`, not a misuse of it.
    Evaluation,
    Damaged,
    Unavailable,
    Bug,
}

impl Code {
    pub const ALL: &'static [Self] = &[
        Self::BadRequest,
        Self::UnknownMember,
        Self::BadCursor,
        Self::BadRunId,
        Self::BadConfig,
        Self::Unreadable,
        Self::Unwritable,
        Self::UnknownOperation,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotAnApprover,
        Self::WrongOwner,
        Self::BadHost,
        Self::BadOrigin,
        Self::NoRun,
        Self::NoWorkflow,
        Self::NoStep,
        Self::NoEvent,
        Self::NoGate,
        Self::NoSchema,
        Self::NoCode,
        Self::NoToken,
        Self::NoRoute,
        Self::MethodNotAllowed,
        Self::UnsupportedMediaType,
        Self::RunExists,
        Self::RunFinished,
        Self::RunNotFinished,
        Self::NotResumable,
        Self::AlreadyDecided,
        Self::AlreadyPaused,
        Self::NothingToRetry,
        Self::Owned,
        Self::KeyInUse,
        Self::NameTaken,
        Self::TooLarge,
        Self::AmbiguousWorkflow,
        Self::InvalidWorkflow,
        Self::BadParameter,
        Self::MissingParameter,
        Self::NotRunnable,
        Self::BadMock,
        Self::BadForm,
        Self::NoSuchOption,
        Self::BadEdit,
        Self::NotConvertible,
        Self::BadBudget,
        Self::BadExport,
        Self::ExpressionError,
        Self::NoResult,
        Self::KeyReused,
        Self::DamagedRun,
        Self::DamagedLimits,
        Self::ContradictoryJournal,
        Self::OlderCopy,
        Self::NoPlan,
        Self::Orphans,
        Self::Storage,
        Self::DataFolder,
        Self::OwnerGone,
        Self::Unreachable,
        Self::Bug,
    ];

    /// The codes that every operation may return.
    pub const COMMON: &'static [Self] = &[
        Self::BadRequest,
        Self::UnknownMember,
        Self::Forbidden,
        Self::WrongOwner,
        Self::BadConfig,
        Self::TooLarge,
        Self::Storage,
        Self::DataFolder,
        Self::DamagedLimits,
        Self::OlderCopy,
        Self::Owned,
        Self::OwnerGone,
        Self::Unreachable,
        Self::UnknownOperation,
        Self::Bug,
    ];

    /// The codes that every operation that changes something may return.
    pub const OF_CHANGES: &'static [Self] = &[Self::KeyInUse, Self::KeyReused];

    /// The codes that every operation on a run may return.
    pub const OF_RUNS: &'static [Self] = &[
        Self::NoRun,
        Self::BadRunId,
        Self::DamagedRun,
        Self::ContradictoryJournal,
        Self::NoPlan,
        Self::Orphans,
    ];

    /// The codes that every operation on a workflow may return.
    pub const OF_WORKFLOWS: &'static [Self] = &[Self::NoWorkflow, Self::AmbiguousWorkflow, Self::Unreadable];

    /// What kind of refusal it is.
    pub fn family(self) -> Family {
        match self {
            Self::BadRequest
            | Self::UnknownMember
            | Self::BadCursor
            | Self::BadRunId
            | Self::BadConfig
            | Self::Unreadable
            | Self::Unwritable
            | Self::UnknownOperation => Family::Malformed,
            Self::Unauthorized => Family::Unauthorized,
            Self::Forbidden | Self::NotAnApprover | Self::WrongOwner | Self::BadHost | Self::BadOrigin => {
                Family::NotAllowed
            }
            Self::MethodNotAllowed => Family::Method,
            Self::UnsupportedMediaType => Family::MediaType,
            Self::NoRun
            | Self::NoWorkflow
            | Self::NoStep
            | Self::NoEvent
            | Self::NoGate
            | Self::NoSchema
            | Self::NoCode
            | Self::NoToken
            | Self::NoRoute => Family::NotFound,
            Self::RunExists
            | Self::RunFinished
            | Self::RunNotFinished
            | Self::NotResumable
            | Self::AlreadyDecided
            | Self::AlreadyPaused
            | Self::NothingToRetry
            | Self::Owned
            | Self::KeyInUse
            | Self::NameTaken => Family::Conflict,
            Self::TooLarge => Family::TooLarge,
            Self::AmbiguousWorkflow
            | Self::InvalidWorkflow
            | Self::BadParameter
            | Self::MissingParameter
            | Self::NotRunnable
            | Self::BadMock
            | Self::BadForm
            | Self::NoSuchOption
            | Self::BadEdit
            | Self::NotConvertible
            | Self::BadBudget
            | Self::BadExport
            | Self::NoResult
            | Self::KeyReused => Family::Content,
            Self::ExpressionError => Family::Evaluation,
            Self::DamagedRun
            | Self::DamagedLimits
            | Self::ContradictoryJournal
            | Self::OlderCopy
            | Self::NoPlan
            | Self::Orphans => Family::Damaged,
            Self::Storage | Self::DataFolder | Self::OwnerGone | Self::Unreachable => Family::Unavailable,
            Self::Bug => Family::Bug,
        }
    }

    /// How a command ends that was refused with it.
    pub fn exit(self) -> Exit {
        match self.family() {
            Family::Evaluation => Exit::Failed,
            Family::Bug => Exit::Bug,
            Family::Malformed
            | Family::Unauthorized
            | Family::Method
            | Family::MediaType
            | Family::NotAllowed
            | Family::NotFound
            | Family::Conflict
            | Family::TooLarge
            | Family::Content
            | Family::Damaged
            | Family::Unavailable => Exit::Refused,
        }
    }

    /// The word that programs match on.
    pub fn word(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        }
    }

    pub fn by_word(word: &str) -> Option<Self> {
        serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_once_and_has_a_word() {
        let mut words: Vec<String> = Code::ALL.iter().map(ToString::to_string).collect();
        assert!(Code::ALL.iter().all(|code| Code::by_word(&code.word()) == Some(*code)));
        // Numbered by their declaration, so a code that is missing in the list leaves a gap.
        let numbers: Vec<usize> = Code::ALL.iter().map(|code| *code as usize).collect();
        assert_eq!(numbers, (0..Code::ALL.len()).collect::<Vec<_>>());
        assert_eq!(Code::Bug as usize + 1, Code::ALL.len(), "the last code is listed");
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }
}
