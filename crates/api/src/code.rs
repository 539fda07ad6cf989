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
    UnknownOperation,
    // Not allowed.
    Forbidden,
    NotAnApprover,
    WrongOwner,
    // Not found.
    NoRun,
    NoWorkflow,
    NoStep,
    NoEvent,
    NoGate,
    NoSchema,
    NoCode,
    NoTrigger,
    // State conflict.
    RunExists,
    RunFinished,
    RunNotFinished,
    NotResumable,
    AlreadyDecided,
    AlreadyPaused,
    NothingToRetry,
    Owned,
    // Gone.
    EventsGone,
    // Too large.
    TooLarge,
    // Content refused.
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
    ShuttingDown,
    OwnerGone,
    Unreachable,
    Busy,
    // Our bug.
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
        Self::UnknownOperation,
        Self::Forbidden,
        Self::NotAnApprover,
        Self::WrongOwner,
        Self::NoRun,
        Self::NoWorkflow,
        Self::NoStep,
        Self::NoEvent,
        Self::NoGate,
        Self::NoSchema,
        Self::NoCode,
        Self::NoTrigger,
        Self::RunExists,
        Self::RunFinished,
        Self::RunNotFinished,
        Self::NotResumable,
        Self::AlreadyDecided,
        Self::AlreadyPaused,
        Self::NothingToRetry,
        Self::Owned,
        Self::EventsGone,
        Self::TooLarge,
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
        Self::DamagedRun,
        Self::DamagedLimits,
        Self::ContradictoryJournal,
        Self::OlderCopy,
        Self::NoPlan,
        Self::Orphans,
        Self::Storage,
        Self::DataFolder,
        Self::ShuttingDown,
        Self::OwnerGone,
        Self::Unreachable,
        Self::Busy,
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
        Self::Busy,
        Self::Storage,
        Self::DataFolder,
        Self::DamagedLimits,
        Self::OlderCopy,
        Self::Owned,
        Self::ShuttingDown,
        Self::OwnerGone,
        Self::Unreachable,
        Self::UnknownOperation,
        Self::Bug,
    ];

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
    pub const OF_WORKFLOWS: &'static [Self] = &[Self::NoWorkflow, Self::Unreadable];

    /// How a command ends that was refused with it.
    pub fn exit(self) -> Exit {
        match self {
            Self::Bug => Exit::Bug,
            // The run continues where it was once someone resumes it.
            Self::OwnerGone => Exit::Stopped,
            Self::ExpressionError => Exit::Failed,
            _ => Exit::Refused,
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
