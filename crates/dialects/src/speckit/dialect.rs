//! What users of Spec Kit see of a run: the words, ids and records of its state file, and its project folder.

use super::WORDS;
use windlass_ir::RunStatus;
use windlass_ir::dialect::{
    CurrentStep, Dialect, Installed, Layout, Listing, Occurrence, Reporting, RunFacts, ShownInput,
    ShownOutput, StepFacts, StepPhase, Uncallable,
};
use windlass_ir::workflow::Words;

#[derive(Debug)]
pub struct Speckit;

impl Dialect for Speckit {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn run_word(&self, run: &RunFacts) -> &'static str {
        match run.status {
            RunStatus::Pending => "created",
            RunStatus::Running | RunStatus::Interrupted => "running",
            RunStatus::Waiting | RunStatus::Paused => "paused",
            RunStatus::Success => "completed",
            RunStatus::Failed if run.aborted => "aborted",
            RunStatus::Failed => "failed",
            RunStatus::Cancelled => "aborted",
        }
    }

    /// A scope counts as completed from the moment it is entered, and there is no word for a step that was cancelled.
    fn step_word(&self, step: &StepFacts) -> &'static str {
        match step.phase {
            _ if step.entered => "completed",
            StepPhase::Inside if step.calls => self.run_word(&step.run),
            StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued => "pending",
            StepPhase::Running | StepPhase::Backoff | StepPhase::Joined | StepPhase::Inside => "running",
            StepPhase::Asking | StepPhase::Waiting => "paused",
            StepPhase::Done => "completed",
            StepPhase::Failed | StepPhase::Cancelled => "failed",
            StepPhase::Skipped => "skipped",
        }
    }

    /// `loop:step:2` is `step` in the third round of `loop`. The first round has plain ids, and so has everything that is not
    /// directly in the loop.
    fn step_id(&self, step: &Occurrence<'_>) -> String {
        match step.within {
            Some(within) if within.is_item || within.number > 0 => {
                format!("{}:{}:{}", within.owner, step.plain, within.number)
            }
            Some(_) | None => step.plain.to_owned(),
        }
    }

    fn reporting(&self) -> Reporting {
        Reporting {
            listing: Listing::Begun,
            input: ShownInput::Asked,
            output: ShownOutput::Record,
            current: CurrentStep::LastBegun,
            hides_missing_inputs: true,
        }
    }

    fn layout(&self) -> Layout {
        Layout {
            files: &["workflow.yml"],
            installed: Some(Installed {
                folder: ".specify/workflows",
                file: "workflow.yml",
                registry: "workflow-registry.json",
            }),
            directory_variable: Some("SPECIFY_INIT_DIR"),
        }
    }

    fn uncallable(&self, why: &Uncallable<'_>) -> Option<String> {
        Some(match why {
            Uncallable::NotFound { workflow } => format!("Workflow '{workflow}' is not installed"),
            Uncallable::Disabled { workflow } => format!("Workflow '{workflow}' is disabled"),
            Uncallable::UndeclaredInputs { workflow, names } => {
                let names: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                format!("Undeclared inputs for workflow '{workflow}': [{}]", names.join(", "))
            }
        })
    }
}
