//! A dialect for tests, with neutral words and numbered ids.

use windlass_ir::dialect::{
    CurrentStep, Dialect, Dialects, Listing, Occurrence, Reporting, RunFacts, ShownInput, ShownOutput,
    StepFacts,
};
use windlass_ir::workflow::Words;

pub(crate) const PLAIN: Dialects = Dialects(&[&Plain]);

#[derive(Debug)]
struct Plain;

static WORDS: Words = Words {
    dialect: "plain",
    step: "step",
    needs: "needs",
    parameter: "parameter",
    outputs: "outputs",
    opens: "${{",
    namespace: |_| "steps",
};

impl Dialect for Plain {
    fn words(&self) -> &'static Words {
        &WORDS
    }

    fn run_word(&self, run: &RunFacts) -> &'static str {
        run.status.word()
    }

    fn step_word(&self, step: &StepFacts) -> &'static str {
        step.status().word()
    }

    fn step_id(&self, step: &Occurrence<'_>) -> String {
        step.numbered()
    }

    fn reporting(&self) -> Reporting {
        Reporting {
            listing: Listing::Once,
            input: ShownInput::Given,
            output: ShownOutput::Done,
            current: CurrentStep::Active,
            hides_missing_inputs: false,
        }
    }
}
