//! The state of a run or a step at a glance: one mark and one color for each, the same in every command.

use super::Screen;
use super::cells::Tone;
use windlass_api::types::{Wait, WaitKind};
use windlass_ir::{RunStatus, StepStatus};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Pending,
    Running,
    /// Waits for time, a signal, a slot or the work of another step.
    Waiting,
    /// Waits for a decision.
    Asking,
    Paused,
    /// No process executes it.
    Interrupted,
    Done,
    /// It failed, and another step took over.
    Recovered,
    Failed,
    Skipped,
    Cancelled,
    /// No step has called it.
    Hidden,
}

impl State {
    pub fn of_step(status: StepStatus, wait: Option<&Wait>) -> Self {
        match status {
            StepStatus::Pending => Self::Pending,
            StepStatus::Running => Self::Running,
            StepStatus::Waiting => Self::waiting(wait),
            StepStatus::Success => Self::Done,
            StepStatus::Recovered => Self::Recovered,
            StepStatus::Failed => Self::Failed,
            StepStatus::Skipped => Self::Skipped,
            StepStatus::Cancelled => Self::Cancelled,
        }
    }

    pub fn of_run(status: RunStatus, waits: &[Wait]) -> Self {
        match status {
            RunStatus::Pending => Self::Pending,
            RunStatus::Running => Self::Running,
            RunStatus::Waiting => Self::waiting(waits.iter().find(|wait| wait.kind == WaitKind::Gate)),
            RunStatus::Paused => Self::Paused,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Success => Self::Done,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
        }
    }

    fn waiting(wait: Option<&Wait>) -> Self {
        match wait {
            Some(wait) if wait.kind == WaitKind::Gate => Self::Asking,
            Some(_) | None => Self::Waiting,
        }
    }

    /// Whether a step works or waits.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Running | Self::Waiting | Self::Asking)
    }

    /// The symbol in Unicode, in ASCII, and the color of both.
    fn mark(self) -> (&'static str, &'static str, Tone) {
        match self {
            Self::Pending | Self::Hidden => ("○", ".", Tone::Dim),
            Self::Running => ("●", ">", Tone::Busy),
            Self::Waiting => ("◷", "~", Tone::Plain),
            Self::Asking => ("◆", "?", Tone::Ask),
            Self::Paused => ("‖", "=", Tone::Plain),
            Self::Interrupted => ("◌", "!", Tone::Ask),
            Self::Done => ("✓", "+", Tone::Good),
            Self::Recovered => ("↻", "*", Tone::Good),
            Self::Failed => ("✗", "x", Tone::Bad),
            Self::Skipped => ("–", "-", Tone::Dim),
            Self::Cancelled => ("⊘", "/", Tone::Dim),
        }
    }

    pub fn tone(self) -> Tone {
        self.mark().2
    }

    /// The symbol for a screen.
    pub fn symbol(self, screen: &Screen) -> &'static str {
        let (fine, plain, _) = self.mark();
        if screen.unicode { fine } else { plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const ALL: [State; 11] = [
        State::Pending,
        State::Running,
        State::Waiting,
        State::Asking,
        State::Paused,
        State::Interrupted,
        State::Done,
        State::Recovered,
        State::Failed,
        State::Skipped,
        State::Cancelled,
    ];

    #[test]
    fn every_state_has_a_symbol_of_its_own() {
        for unicode in [true, false] {
            let screen = Screen { unicode, ..Screen::default() };
            let symbols: HashSet<&str> = ALL.iter().map(|state| state.symbol(&screen)).collect();
            assert_eq!(symbols.len(), ALL.len());
            assert!(symbols.iter().all(|symbol| super::super::cells::width(symbol) == 1));
        }
    }
}
