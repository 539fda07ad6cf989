//! What users of DCC-MCP see of a run. Every step is listed once, as its last iteration left it.

use super::WORDS;
use windlass_ir::RunStatus;
use windlass_ir::dialect::{
    CurrentStep, Dialect, Listing, Occurrence, Reporting, RunFacts, ShownInput, ShownOutput, StepFacts,
    StepPhase,
};
use windlass_ir::workflow::Words;

#[derive(Debug)]
pub struct Dcc;

impl Dialect for Dcc {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn run_word(&self, run: &RunFacts) -> &'static str {
        match run.status {
            RunStatus::Pending => "pending",
            RunStatus::Interrupted if run.marked => "interrupted",
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Interrupted => "running",
            RunStatus::Success => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    /// There is no word for a step that was skipped or not reached.
    fn step_word(&self, step: &StepFacts) -> &'static str {
        match step.phase {
            _ if step.unborn || step.left => "pending",
            StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued | StepPhase::Skipped => "pending",
            StepPhase::Done => "completed",
            StepPhase::Failed => "failed",
            StepPhase::Cancelled => "cancelled",
            _ if step.run.status == RunStatus::Interrupted && step.run.marked => "interrupted",
            StepPhase::Running
            | StepPhase::Backoff
            | StepPhase::Asking
            | StepPhase::Waiting
            | StepPhase::Joined
            | StepPhase::Inside => "running",
        }
    }

    fn step_id(&self, step: &Occurrence<'_>) -> String {
        step.plain.to_owned()
    }

    fn shares_ids(&self) -> bool {
        true
    }

    fn reporting(&self) -> Reporting {
        Reporting {
            listing: Listing::Once,
            input: ShownInput::Given,
            output: ShownOutput::Progress,
            current: CurrentStep::Active,
            hides_missing_inputs: false,
        }
    }
}
