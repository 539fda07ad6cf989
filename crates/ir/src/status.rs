//! How a run or a step is doing, in words that are the same for every dialect.

use serde::{Deserialize, Serialize};

/// The status of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It waits for its start time or for a slot.
    #[default]
    Pending,
    /// A process executes it.
    Running,
    /// Only a decision, a signal or a message can move it.
    Waiting,
    /// A person paused it.
    Paused,
    /// No process executes it; `windlass resume` continues it.
    Interrupted,
    Success,
    Failed,
    Cancelled,
}

impl RunStatus {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Interrupted,
        Self::Success,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Interrupted => "interrupted",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn by_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    pub fn is_finished(self) -> bool {
        match self {
            Self::Success | Self::Failed | Self::Cancelled => true,
            Self::Pending | Self::Running | Self::Waiting | Self::Paused | Self::Interrupted => false,
        }
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

/// The status of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    Pending,
    Running,
    /// For a slot, a worker, a timer, a decision or a signal.
    Waiting,
    Success,
    Failed,
    /// It failed, and another step took over.
    Recovered,
    Skipped,
    Cancelled,
}

impl StepStatus {
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Running,
        Self::Waiting,
        Self::Success,
        Self::Failed,
        Self::Recovered,
        Self::Skipped,
        Self::Cancelled,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Recovered => "recovered",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}

impl std::fmt::Display for StepStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_serde_writes() {
        for status in RunStatus::ALL {
            assert_eq!(serde_json::to_value(status).expect("a word"), status.word());
            assert_eq!(RunStatus::by_word(status.word()), Some(status));
        }
        for status in StepStatus::ALL {
            assert_eq!(serde_json::to_value(status).expect("a word"), status.word());
        }
    }
}
