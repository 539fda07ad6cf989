//! What users of DagNats see of a run. Every step is listed, the items of a map as `id.map.0`.

use super::WORDS;
use windlass_ir::RunStatus;
use windlass_ir::dialect::{
    CurrentStep, Dialect, Listing, Occurrence, Reporting, RunFacts, ShownInput, ShownOutput, StepFacts,
    StepPhase, Undone,
};
use windlass_ir::workflow::Words;

#[derive(Debug)]
pub struct Dagnats;

impl Dialect for Dagnats {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn run_word(&self, run: &RunFacts) -> &'static str {
        match (run.status, run.undone) {
            (RunStatus::Pending, _) => "pending",
            (RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Interrupted, _) => {
                "running"
            }
            (_, Some(Undone::All)) => "compensated",
            (_, Some(Undone::Part)) => "compensate_failed",
            (RunStatus::Success, None) => "completed",
            (RunStatus::Failed, None) => "failed",
            (RunStatus::Cancelled, None) => "cancelled",
        }
    }

    fn step_word(&self, step: &StepFacts) -> &'static str {
        match step.phase {
            StepPhase::Failed if step.recovered => "recovered",
            StepPhase::Cancelled if step.left => "pending",
            StepPhase::Dormant if step.cancel_requested && step.run.status.is_finished() => "cancelled",
            StepPhase::Dormant | StepPhase::Pending => "pending",
            StepPhase::Queued => "queued",
            StepPhase::Running
            | StepPhase::Backoff
            | StepPhase::Asking
            | StepPhase::Waiting
            | StepPhase::Joined
            | StepPhase::Inside => "running",
            StepPhase::Done => "completed",
            StepPhase::Failed => "failed",
            StepPhase::Skipped => "skipped",
            StepPhase::Cancelled => "cancelled",
        }
    }

    fn step_id(&self, step: &Occurrence<'_>) -> String {
        match step.numbers.last() {
            Some(number) => format!("{}.map.{number}", step.plain),
            None => step.plain.to_owned(),
        }
    }

    fn reporting(&self) -> Reporting {
        Reporting {
            listing: Listing::WithUnnamed,
            input: ShownInput::Given,
            output: ShownOutput::Done,
            current: CurrentStep::Active,
            hides_missing_inputs: false,
        }
    }
}
