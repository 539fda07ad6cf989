//! Decisions at gates.

use crate::code::Code;
use crate::operation::{About, Operation, Role, Route, Subject};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::report::Report;
use crate::types::{Gate, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::{Choice, GateDecision, Input, Path, RunId};

/// A decision at a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Decide {
    pub run_id: String,
    /// May be left out if one gate waits.
    #[serde(default)]
    pub step: Option<String>,
    /// One of the gate's options.
    #[serde(default)]
    pub choice: Option<String>,
    /// The fields of the gate's form.
    #[serde(default)]
    pub fields: Json,
    #[serde(default)]
    pub reason: Option<String>,
    /// The same id sent twice is one decision.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub by: Option<String>,
}

impl Decide {
    async fn decide(self, otherwise: Choice, cx: &Context) -> Result<Gate, Refusal> {
        let run = cx.run_id(&self.run_id)?;
        let by = cx.actor(self.by)?;
        let id = self.id.unwrap_or_else(|| cx.new_id(&by));
        let (whose, step) = (run.clone(), self.step);
        let path = cx.read(move |engine| Ok(engine.gate(&whose, step.as_deref())?)).await?;
        let choice = self.choice.map_or(otherwise, |option| Choice::Option(option.into()));
        let (reason, form) = (self.reason.map(Into::into), value(self.fields)?);
        let decision = GateDecision { choice, by: by.as_str().into(), reason, form };
        cx.tell(&run, Input::Decide { id: id.into(), path: path.clone(), decision }).await?;
        shown(cx, run, path, by).await
    }

    /// The gate of a decision that an earlier call has made: the run may wait at another gate by now.
    async fn decided(self, otherwise: Choice, cx: &Context) -> Result<Gate, Refusal> {
        let run = cx.run_id(&self.run_id)?;
        let by = cx.actor(self.by.clone())?;
        let id = self.id.clone().unwrap_or_else(|| cx.new_id(&by));
        let whose = run.clone();
        let made = cx.read(move |engine| Ok(engine.decision_path(&whose, &id)?)).await?;
        match made {
            Some(path) => shown(cx, run, path, by).await,
            None => self.decide(otherwise, cx).await,
        }
    }
}

/// A gate as the user sees it.
async fn shown(cx: &Context, run: RunId, path: Path, by: String) -> Result<Gate, Refusal> {
    cx.read(move |engine| {
        let view = engine.view(&run)?;
        let gate = Report::of(engine, &run, &view).gate(&path, &by);
        gate.ok_or_else(|| Refusal::new(Code::NoGate, format!("run `{run}` has no gate at {path}")))
    })
    .await
}

const ERRORS: &[Code] = &[
    Code::NoGate,
    Code::AlreadyDecided,
    Code::NotAnApprover,
    Code::BadForm,
    Code::NoSuchOption,
    Code::RunFinished,
];

/// Approve at a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApproveGate(pub Decide);

/// Reject at a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RejectGate(pub Decide);

fn example() -> Decide {
    Decide {
        run_id: super::sample::WAITING.into(),
        step: None,
        choice: None,
        fields: Json::Null,
        reason: Some("looks good".into()),
        id: None,
        by: None,
    }
}

impl Operation for ApproveGate {
    type Reply = Gate;
    const ABOUT: About = About {
        name: "gates.approve",
        summary: "Approve at a gate",
        role: Role::Approver,
        subject: Subject::Run,
        errors: ERRORS,
        http: &[Route::post("/workflow-runs/{run_id}/gates/{step}/approve")],
        cli: &["approve"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self(example())
    }
}

impl Perform for ApproveGate {
    async fn perform(self, cx: &Context) -> Result<Gate, Refusal> {
        self.0.decide(Choice::Approve, cx).await
    }

    async fn done(self, cx: &Context) -> Result<Gate, Refusal> {
        self.0.decided(Choice::Approve, cx).await
    }
}

impl Operation for RejectGate {
    type Reply = Gate;
    const ABOUT: About = About {
        name: "gates.reject",
        summary: "Reject at a gate",
        role: Role::Approver,
        subject: Subject::Run,
        errors: ERRORS,
        http: &[Route::post("/workflow-runs/{run_id}/gates/{step}/reject")],
        cli: &["reject"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self(example())
    }
}

impl Perform for RejectGate {
    async fn perform(self, cx: &Context) -> Result<Gate, Refusal> {
        self.0.decide(Choice::Reject, cx).await
    }

    async fn done(self, cx: &Context) -> Result<Gate, Refusal> {
        self.0.decided(Choice::Reject, cx).await
    }
}
