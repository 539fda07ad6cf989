//! Resuming a run.

use super::super::sample;
use super::execute::{ended, wait};
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::types::{Json, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_ir::Value;
use windlass_runtime::{Config, Resuming};

/// Resume a run where it left off.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResumeRun {
    pub run_id: String,
    /// Inputs to change, for steps that have not started.
    #[serde(default)]
    pub inputs: Option<Json>,
    /// Wait up to 60 seconds for the run to end or to need a person.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    #[serde(default)]
    pub by: Option<String>,
}

impl Operation for ResumeRun {
    type Reply = Run;
    const ABOUT: About = About {
        name: "runs.resume",
        summary: "Resume a run where it left off",
        subject: Subject::Run,
        errors: &[Code::RunFinished, Code::NotResumable, Code::BadParameter, Code::NotRunnable],
        http: &[Route::post("/workflow-runs/{run_id}/resume")],
        cli: &["resume"],
        executes: true,
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { run_id: sample::WAITING.into(), inputs: None, wait_seconds: Some(10.0), by: None }
    }
}

impl Perform for ResumeRun {
    async fn perform(self, cx: &Context) -> Result<Run, Refusal> {
        let wait = wait(self.wait_seconds)?;
        let run = cx.run_id(&self.run_id)?;
        let whose = run.clone();
        let recorded = cx.read(move |engine| Ok(Config::recorded(engine.view(&whose)?.about()))).await?;
        let changes = self.inputs.map(value).transpose()?.unwrap_or_else(|| Value::map::<&str>([]));
        let mut from = cx.surroundings();
        from.config = recorded.or(from.config);
        let by = cx.actor(self.by)?;
        let engine = cx.owner()?;
        let (host, clock, patience) = (from.host()?, from.clock(), from.patience());
        let resuming = Resuming { changes, by: by.into(), host, clock, patience };
        let handle = engine.resume_noting(&run, resuming, cx.entries()).await?;
        ended(cx, handle, wait).await
    }

    async fn done(self, cx: &Context) -> Result<Run, Refusal> {
        cx.run(&cx.run_id(&self.run_id)?).await
    }
}
