//! The words of the house dialect.

use windlass_engine::{Outcome, RunPhase, StepPhase, View, status_word};

pub fn run_status(view: &View) -> &'static str {
    match &view.phase {
        RunPhase::Pending => "pending",
        RunPhase::Running => "running",
        RunPhase::Ended(Outcome::Failed(_)) => "failed",
        RunPhase::Ended(Outcome::Cancelled(_)) => "cancelled",
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => "success",
    }
}

pub fn step_status(phase: &StepPhase) -> &'static str {
    match phase {
        StepPhase::Pending => "pending",
        StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Inside => "running",
        StepPhase::Asking { .. } => "waiting",
        StepPhase::Settled(outcome) => status_word(outcome),
    }
}
