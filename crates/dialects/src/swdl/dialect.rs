//! What users of the native dialect see of a run.

use super::WORDS;
use windlass_ir::RunStatus;
use windlass_ir::dialect::{
    CurrentStep, Dialect, Layout, Listing, Occurrence, Reporting, RunFacts, ShownInput, ShownOutput,
    StepFacts, StepPhase,
};
use windlass_ir::workflow::Words;

#[derive(Debug)]
pub struct Swdl;

impl Dialect for Swdl {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn run_word(&self, run: &RunFacts) -> &'static str {
        match run.status {
            RunStatus::Pending => "pending",
            RunStatus::Running | RunStatus::Waiting | RunStatus::Paused | RunStatus::Interrupted => "running",
            RunStatus::Success => "success",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "cancelled",
        }
    }

    fn step_word(&self, step: &StepFacts) -> &'static str {
        match step.phase {
            StepPhase::Dormant if step.run.status.is_finished() => "skipped",
            StepPhase::Dormant | StepPhase::Pending => "pending",
            StepPhase::Running | StepPhase::Backoff | StepPhase::Inside | StepPhase::Joined => "running",
            StepPhase::Queued | StepPhase::Asking | StepPhase::Waiting => "waiting",
            StepPhase::Done => "success",
            StepPhase::Failed if step.timed_out => "timed_out",
            StepPhase::Failed => "failed",
            StepPhase::Skipped => "skipped",
            StepPhase::Cancelled => "cancelled",
        }
    }

    fn step_id(&self, step: &Occurrence<'_>) -> String {
        step.numbered()
    }

    fn reporting(&self) -> Reporting {
        Reporting {
            listing: Listing::WithItems,
            input: ShownInput::Declared,
            output: ShownOutput::Done,
            current: CurrentStep::Active,
            hides_missing_inputs: false,
        }
    }

    fn layout(&self) -> Layout {
        Layout { files: &["WORKFLOW.yaml", "WORKFLOW.yml", "WORKFLOW.json"], ..Layout::default() }
    }
}
