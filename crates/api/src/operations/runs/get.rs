//! One run.

use super::super::sample;
use super::execute::wait;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::Run;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Show a run with its steps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetRun {
    pub run_id: String,
    /// The run as it was after this event.
    #[serde(default)]
    pub event: Option<u64>,
    /// `none` leaves the steps out.
    #[serde(default)]
    pub steps: Steps,
    /// Wait up to 60 seconds for the run to end or to need a person.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
}

/// Which steps a reply has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Steps {
    #[default]
    All,
    None,
}

impl GetRun {
    /// A run as it is now, with all its steps.
    pub fn of(run_id: &str) -> Self {
        Self { run_id: run_id.to_owned(), event: None, steps: Steps::All, wait_seconds: None }
    }
}

impl Operation for GetRun {
    type Reply = Run;
    const ABOUT: About = About {
        name: "runs.get",
        summary: "Show a run with its steps",
        subject: Subject::Run,
        errors: &[Code::NoEvent],
        http: &[Route::get("/workflow-runs/{run_id}")],
        cli: &["show", "wait"],
        ..About::READS
    };

    fn example() -> Self {
        Self::of(sample::FINISHED)
    }
}

impl Perform for GetRun {
    async fn perform(self, cx: &Context) -> Result<Run, Refusal> {
        let (run, wait) = (cx.run_id(&self.run_id)?, wait(self.wait_seconds)?);
        let found = match self.event {
            None => {
                cx.wait(&run, wait).await?;
                cx.run(&run).await?
            }
            Some(event) => cx.run_at(&run, event).await?,
        };
        Ok(match self.steps {
            Steps::All => found,
            Steps::None => Run { steps: IndexMap::new(), ..found },
        })
    }
}
