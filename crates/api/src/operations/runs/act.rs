//! Canceling, pausing and signaling a run.

use super::super::sample;
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::types::{Json, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::{Input, Path};

/// Cancel a run: running steps are stopped, and nothing new starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelRun {
    pub run_id: String,
    /// Only this step and what is inside it.
    #[serde(default)]
    pub step: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub by: Option<String>,
}

impl Operation for CancelRun {
    type Reply = Run;
    const ABOUT: About = About {
        name: "runs.cancel",
        summary: "Cancel a run",
        subject: Subject::Run,
        errors: &[Code::RunFinished, Code::NoStep],
        http: &[Route::post("/workflow-runs/{run_id}/cancel")],
        cli: &["cancel"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { run_id: sample::WAITING.into(), step: None, reason: None, by: None }
    }
}

impl Perform for CancelRun {
    async fn perform(self, cx: &Context) -> Result<Run, Refusal> {
        let run = cx.run_id(&self.run_id)?;
        let by = cx.actor(self.by)?;
        let why = self.reason.unwrap_or_else(|| format!("canceled by {by}"));
        let path = match self.step {
            None => Path::default(),
            Some(step) => {
                let whose = run.clone();
                cx.read(move |engine| Ok(engine.step_path(&whose, &step)?)).await?
            }
        };
        cx.tell(&run, Input::Cancel { path, why: why.into(), by: by.into() }).await?;
        cx.run(&run).await
    }

    async fn done(self, cx: &Context) -> Result<Run, Refusal> {
        cx.run(&cx.run_id(&self.run_id)?).await
    }
}

/// Pause a run: running steps finish, and nothing new starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PauseRun {
    pub run_id: String,
    #[serde(default)]
    pub by: Option<String>,
}

impl Operation for PauseRun {
    type Reply = Run;
    const ABOUT: About = About {
        name: "runs.pause",
        summary: "Pause a run: running steps finish, nothing new starts",
        subject: Subject::Run,
        errors: &[Code::RunFinished, Code::AlreadyPaused],
        http: &[Route::post("/workflow-runs/{run_id}/pause")],
        cli: &["pause"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { run_id: sample::WAITING.into(), by: None }
    }
}

impl Perform for PauseRun {
    async fn perform(self, cx: &Context) -> Result<Run, Refusal> {
        let run = cx.run_id(&self.run_id)?;
        cx.tell(&run, Input::Pause { by: cx.actor(self.by)?.into() }).await?;
        cx.run(&run).await
    }

    async fn done(self, cx: &Context) -> Result<Run, Refusal> {
        cx.run(&cx.run_id(&self.run_id)?).await
    }
}

/// Send a signal to a run. The run keeps it until a step waits for it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SignalRun {
    pub run_id: String,
    pub name: String,
    #[serde(default)]
    pub value: Json,
    /// The same id sent twice is one signal.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub by: Option<String>,
}

/// A signal that a run has received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signaled {
    pub id: String,
    /// Whether a step waited for it. Otherwise the run keeps it for a later wait.
    pub taken: bool,
}

impl Operation for SignalRun {
    type Reply = Signaled;
    const ABOUT: About = About {
        name: "runs.signal",
        summary: "Send a signal to a run",
        subject: Subject::Run,
        errors: &[Code::RunFinished],
        http: &[Route::post("/workflow-runs/{run_id}/signals")],
        cli: &["signal"],
        ..About::CHANGES
    };

    fn example() -> Self {
        let (run_id, name) = (sample::WAITING.into(), "build-finished".into());
        Self { run_id, name, value: Json::Null, id: None, by: None }
    }
}

impl Perform for SignalRun {
    async fn perform(self, cx: &Context) -> Result<Signaled, Refusal> {
        let run = cx.run_id(&self.run_id)?;
        let by = cx.actor(self.by)?;
        let id = self.id.unwrap_or_else(|| cx.new_id(&by));
        let signal = Input::Signal {
            id: id.as_str().into(),
            name: self.name.into(),
            by: by.into(),
            value: value(self.value)?,
            to: None,
        };
        cx.tell(&run, signal).await?;
        let sent = id.clone();
        let taken = cx.read(move |engine| Ok(engine.has_taken_signal(&run, &sent)?)).await?;
        Ok(Signaled { id, taken })
    }
}
