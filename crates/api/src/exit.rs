//! How a command ends: one list of exit codes, one map from the status of a run, one rule for several results.

use windlass_ir::RunStatus;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done; a run succeeded.
    Done,
    /// A run failed, or a check found something.
    Failed,
    /// Nothing was done: bad usage, file, parameter or name.
    Refused,
    /// A run waits for a person, a signal or a slot, or is paused.
    Waiting,
    Cancelled,
    /// No process executes the run; it can be resumed.
    Stopped,
    /// A bug in Windlass.
    Bug,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Waiting => 3,
            Self::Cancelled => 4,
            Self::Stopped => 5,
            Self::Bug => 70,
        }
    }

    /// Of several results, the worst decides.
    pub fn worst(results: impl IntoIterator<Item = Self>) -> Self {
        results.into_iter().min_by_key(|exit| exit.rank()).unwrap_or(Self::Done)
    }

    fn rank(self) -> u8 {
        match self {
            Self::Bug => 0,
            Self::Failed => 1,
            Self::Refused => 2,
            Self::Cancelled => 3,
            Self::Stopped => 4,
            Self::Waiting => 5,
            Self::Done => 6,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

impl From<RunStatus> for Exit {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Success => Self::Done,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Pending | RunStatus::Waiting | RunStatus::Paused => Self::Waiting,
            RunStatus::Running | RunStatus::Interrupted => Self::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_is_the_one_to_look_at_first() {
        let all = [
            Exit::Done,
            Exit::Waiting,
            Exit::Stopped,
            Exit::Cancelled,
            Exit::Refused,
            Exit::Failed,
            Exit::Bug,
        ];
        for (number, exit) in all.iter().enumerate() {
            assert_eq!(Exit::worst(all[..=number].iter().copied()), *exit);
        }
        assert_eq!(Exit::worst([]), Exit::Done);
    }
}
