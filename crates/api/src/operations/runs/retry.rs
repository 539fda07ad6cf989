//! Starting a new run that keeps results of an earlier one.

use super::super::sample;
use super::execute::{Launch, ended, laid_over, texts, wait};
use crate::code::Code;
use crate::operation::{About, Operation, Role, Route, Subject};
use crate::perform::{Context, Perform, off_thread, value};
use crate::refusal::Refusal;
use crate::types::{Dialect, Json, NamedText, Ref, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;
use windlass_ir::{Plan, Sources};
use windlass_runtime::{Config, Engine, Error, Fate, Forecast, RunId, again};

/// Start a new run that keeps the results of an earlier one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RetryRun {
    pub run_id: String,
    /// The step to start from; the steps that failed if it is left out.
    #[serde(default)]
    pub from_step: Option<String>,
    /// Inputs to change.
    #[serde(default)]
    pub inputs: Option<Json>,
    /// Another workflow than that of the run.
    #[serde(default)]
    pub workflow: Option<String>,
    /// The text of another workflow than that of the run.
    #[serde(default)]
    pub source: Option<String>,
    /// The name of its file, for diagnostics.
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub dialect: Option<Dialect>,
    /// Overrides of that workflow, or of the one that the run had.
    #[serde(default)]
    pub overrides: Option<NamedText>,
    #[serde(default)]
    pub overlays: Vec<NamedText>,
    #[serde(default)]
    pub new_run_id: Option<String>,
    /// Only show what would happen.
    #[serde(default)]
    pub dry_run: bool,
    /// Wait up to 60 seconds for the run to end or to need a person.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    #[serde(default)]
    pub by: Option<String>,
}

/// The new run, or with `dry_run` the plan for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Retried {
    Run(Box<Run>),
    Plan(RetryPlan),
}

/// What a retry would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetryPlan {
    pub retry_of: String,
    pub plan_changed: bool,
    pub inputs_changed: bool,
    pub steps: Vec<RetryStep>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetryStep {
    pub step: String,
    /// `kept`, `again`, `perhaps`, `skipped` or `gone`.
    pub fate: String,
    pub why: Option<String>,
}

impl RetryPlan {
    pub fn of(run: &RunId, found: &windlass_runtime::Again) -> Self {
        let step = |step: &Forecast| RetryStep {
            step: step.step.clone(),
            fate: step.fate.word().to_owned(),
            why: step.fate.why().map(str::to_owned),
        };
        Self {
            retry_of: run.to_string(),
            plan_changed: found.plan_changed,
            inputs_changed: found.inputs_changed,
            steps: found.steps.iter().map(step).collect(),
        }
    }
}

impl Operation for RetryRun {
    type Reply = Retried;
    const ABOUT: About = About {
        name: "runs.retry",
        summary: "Start a new run that keeps the results of an earlier one",
        subject: Subject::RunAndWorkflow,
        errors: &[
            Code::RunNotFinished,
            Code::NothingToRetry,
            Code::NoStep,
            Code::NoResult,
            Code::RunExists,
            Code::NotRunnable,
            Code::InvalidWorkflow,
            Code::BadParameter,
            Code::MissingParameter,
        ],
        http: &[Route::post("/workflow-runs/{run_id}/retry")],
        cli: &["retry"],
        executes: true,
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { run_id: sample::FAILED.into(), dry_run: true, ..Self::default() }
    }
}

impl RetryRun {
    /// The other workflow, if the request names one or changes that of the run.
    async fn other(&mut self, cx: &Context) -> Result<Option<(Plan, String, String)>, Refusal> {
        let mut of = Ref {
            workflow: self.workflow.take().unwrap_or_else(|| "-".to_owned()),
            source: self.source.take(),
            file: self.file.take(),
            dialect: self.dialect,
            overrides: self.overrides.take(),
            overlays: std::mem::take(&mut self.overlays),
        };
        // A text in a request is code.
        if of.has_text() {
            cx.permit(Role::Author)?;
        }
        if of.workflow == "-" && of.source.is_none() {
            if !of.has_text() {
                return Ok(None);
            }
            let run = cx.run_id(&self.run_id)?;
            of = cx.read(move |engine| of_run(of, engine, &run)).await?;
        }
        let (of, _) = of.resolved(cx).await?;
        off_thread(move || {
            let (source, overrides) = texts(&of);
            Ok(Some((of.open_to_start()?.plan, source, overrides)))
        })
        .await
    }
}

/// The workflow of a run with other texts on top.
fn of_run(of: Ref, engine: &Engine, run: &RunId) -> Result<Ref, Refusal> {
    let view = engine.view(run)?;
    let dialect = Json::from(&*view.program().plan.dialect);
    let file = view.about().get("file").and_then(|file| file.as_str().map(str::to_owned));
    Ok(Ref {
        source: Some(engine.stored_source(run)?.0),
        file: of.file.or(file),
        dialect: of.dialect.or_else(|| serde_json::from_value(dialect).ok()),
        ..of
    })
}

impl Perform for RetryRun {
    async fn perform(mut self, cx: &Context) -> Result<Retried, Refusal> {
        let wait = wait(self.wait_seconds)?;
        let run = cx.run_id(&self.run_id)?;
        let other = self.other(cx).await?;
        let changes = self.inputs.map(value).transpose()?;
        let (whose, step, dry_run) = (run.clone(), self.from_step, self.dry_run);
        let found = cx
            .read(move |engine| {
                let view = engine.view(&whose)?;
                if view.ended_at().is_none() && !dry_run {
                    return Err(Error::NotFinished(whose).into());
                }
                let (plan, source, overrides) = match other {
                    Some(other) => other,
                    None => {
                        let (source, overrides) = engine.stored_source(&whose)?;
                        (Plan::clone(&view.program().plan), source, overrides)
                    }
                };
                let same = changes.is_none() && plan.digest == view.program().plan.digest;
                let inputs = match same {
                    true => view.inputs().clone(),
                    false => laid_over(&plan, view.inputs(), changes)?.to_value(),
                };
                let found = again(engine, &whose, step.as_deref(), &plan, &inputs)?;
                let recorded = |what: &str| view.about().get(what)?.as_str().map(PathBuf::from);
                let (directory, file) = (recorded("directory"), recorded("file"));
                let config = Config::recorded(view.about());
                Ok(Found { plan, source, overrides, inputs, again: found, directory, file, config })
            })
            .await?;
        if dry_run {
            return Ok(Retried::Plan(RetryPlan::of(&run, &found.again)));
        }
        let mut from = cx.surroundings();
        from.config = found.config.or(from.config);
        // The new run works in the folder of the earlier one.
        from.directory = found.directory.filter(|folder| folder.is_dir()).unwrap_or(from.directory);
        let kept = found.again.steps.iter().filter(|step| matches!(step.fate, Fate::Kept));
        let kept: HashSet<String> = kept.map(|step| step.step.clone()).collect();
        let launch = Launch {
            run: self.new_run_id,
            by: cx.actor(self.by)?,
            source: found.source,
            overrides: found.overrides,
            file: found.file,
            inputs: found.inputs,
            beginning: found.again.beginning,
            from,
        };
        launch.check(&found.plan, &Sources::default(), |step| !kept.contains(&*step.id))?;
        let handle = launch.start(cx, &found.plan).await?;
        Ok(Retried::Run(Box::new(ended(cx, handle, wait).await?)))
    }

    async fn done(self, cx: &Context) -> Result<Retried, Refusal> {
        let id = self.new_run_id.or_else(|| cx.new_run_id()).unwrap_or_default();
        Ok(Retried::Run(Box::new(cx.run(&cx.run_id(&id)?).await?)))
    }
}

/// Everything about the earlier run that the new one needs.
struct Found {
    plan: Plan,
    source: String,
    overrides: String,
    inputs: windlass_ir::Value,
    again: windlass_runtime::Again,
    directory: Option<PathBuf>,
    /// The workflow file.
    file: Option<PathBuf>,
    config: Option<PathBuf>,
}
