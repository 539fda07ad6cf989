//! Starting a run.

use super::super::workflows::{Opened, parameters, shown};
use super::execute::{Launch, ended, instant, laid_over, texts, wait};
use crate::code::Code;
use crate::operation::{About, Operation, Role, Route, Subject};
use crate::perform::{Context, Perform, off_thread, value};
use crate::refusal::Refusal;
use crate::types::{Json, Plan, Ref, Run};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use windlass_ir::plan::PlanStep;
use windlass_runtime::{Beginning, Config, Error, Reach, only};

/// Start a run of a workflow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct StartRun {
    #[serde(flatten)]
    pub of: Ref,
    /// The inputs by name. Some dialects take any value as a whole.
    #[serde(default)]
    pub inputs: Option<Json>,
    /// Another name for `inputs`.
    #[serde(default)]
    pub parameters: Option<Json>,
    /// Another name for `inputs`.
    #[serde(default)]
    pub input: Option<Json>,
    #[serde(default)]
    pub run_id: Option<String>,
    /// Start nothing before this instant.
    #[serde(default)]
    pub at: Option<String>,
    /// Pause when this step is over.
    #[serde(default)]
    pub until: Option<String>,
    /// Run only this step, with the results of `inputs_from`.
    #[serde(default)]
    pub only: Option<String>,
    /// The run that has the inputs and the results for `only`.
    #[serde(default)]
    pub inputs_from: Option<String>,
    /// Mock responses.
    #[serde(default)]
    pub mock: Option<Json>,
    /// Skip all waiting; only with mock responses.
    #[serde(default)]
    pub virtual_time: bool,
    /// Wait up to 60 seconds for the run to end or to need a person.
    #[serde(default)]
    pub wait_seconds: Option<f64>,
    /// Only show what the run would do.
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub by: Option<String>,
}

/// The run, or with `dry_run` its plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StartedRun {
    Run(Box<Run>),
    Plan(Box<Plan>),
}

impl Operation for StartRun {
    type Reply = StartedRun;
    const ABOUT: About = About {
        name: "runs.start",
        summary: "Start a run of a workflow",
        subject: Subject::RunAndWorkflow,
        errors: &[
            Code::InvalidWorkflow,
            Code::BadParameter,
            Code::MissingParameter,
            Code::RunExists,
            Code::NotRunnable,
            Code::BadMock,
            Code::NoStep,
            Code::NoResult,
        ],
        http: &[Route::post("/workflows/{id}/run")],
        cli: &["run"],
        executes: true,
        ..About::CHANGES
    };

    fn example() -> Self {
        let source =
            "workflow: { id: hello, name: Hello }\nstages: [{ id: say, type: shell, run: echo hello }]\n";
        Self {
            of: Ref::text("hello.yaml", source),
            run_id: Some("sample-started".into()),
            wait_seconds: Some(10.0),
            ..Self::default()
        }
    }
}

impl StartRun {
    /// The inputs, which have three names.
    fn inputs(&mut self) -> Result<Option<windlass_ir::Value>, Refusal> {
        let names =
            [("inputs", &mut self.inputs), ("parameters", &mut self.parameters), ("input", &mut self.input)];
        let mut given = names.into_iter().filter_map(|(name, inputs)| Some((name, inputs.take()?)));
        let first = given.next();
        if let (Some((first, _)), Some((second, _))) = (&first, given.next()) {
            let message = format!("`{first}` and `{second}` mean the same");
            return Err(Refusal::new(Code::BadRequest, message).field(second).help("send one of them"));
        }
        first.map(|(_, inputs)| value(inputs)).transpose()
    }

    fn check(&self) -> Result<(), Refusal> {
        let wrong = |message: &str, field: &str| Err(Refusal::new(Code::BadRequest, message).field(field));
        match (&self.only, &self.inputs_from) {
            (Some(_), None) => return wrong("`only` needs the results of a run in `inputs_from`", "only"),
            (None, Some(_)) => return wrong("`inputs_from` needs a step in `only`", "inputs_from"),
            (Some(_), Some(_)) if self.until.is_some() => {
                return wrong("`only` and `until` exclude each other", "until");
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        if self.virtual_time && self.mock.is_none() {
            return wrong("virtual time needs mock responses", "virtual_time");
        }
        Ok(())
    }
}

impl Perform for StartRun {
    async fn perform(mut self, cx: &Context) -> Result<StartedRun, Refusal> {
        self.check()?;
        let wait = wait(self.wait_seconds)?;
        let at = self.at.as_deref().map(|text| instant(text, "at")).transpose()?;
        // A text in a request is code.
        if self.of.has_text() {
            cx.permit(Role::Author)?;
        }
        let given = self.inputs()?;
        let (of, found) = self.of.resolved(cx).await?;
        let file = found.and_then(|found| std::path::absolute(found.file).ok());
        let (source, overrides, opened) = off_thread(move || {
            let (source, overrides) = texts(&of);
            Ok((source, overrides, of.open_to_start()?))
        })
        .await?;
        let (beginning, inputs) = match (&self.only, self.inputs_from) {
            (Some(step), Some(run)) => {
                let (run, step, plan) = (cx.run_id(&run)?, step.clone(), opened.plan.clone());
                let (before, beginning) = cx
                    .read(move |engine| {
                        let before = engine.view(&run)?.inputs().clone();
                        Ok((before, only(engine, &run, &step, &plan)?))
                    })
                    .await?;
                (beginning, laid_over(&opened.plan, &before, given)?)
            }
            _ => {
                let reach = match &self.until {
                    Some(step) if opened.plan.find(step).is_none() => {
                        return Err(Error::no_step_in(&opened.plan, step).into());
                    }
                    Some(step) => Some(Reach::Until(step.as_str().into())),
                    None => None,
                };
                let inputs = parameters(&opened.plan, opened.words, given, IndexMap::new())?;
                (Beginning { reach, ..Beginning::default() }, inputs)
            }
        };
        let mut from = cx.surroundings();
        from.mock = self.mock.map(value).transpose()?;
        from.virtual_time = self.virtual_time;
        let around = file.as_deref().and_then(Path::parent).map(Path::to_owned);
        from.config = from.config.or_else(|| Config::find(around)).or_else(|| cx.config(&from.directory));
        let only = self.only;
        let runs = |step: &PlanStep| only.as_ref().is_none_or(|only| **only == *step.id);
        let launch = Launch {
            run: self.run_id,
            by: cx.actor(self.by)?,
            source,
            overrides,
            file,
            inputs: inputs.to_value(),
            beginning: Beginning { at, ..beginning },
            from,
        };
        launch.check(&opened.plan, &opened.loaded.sources, runs)?;
        if self.dry_run {
            let (file, from) = (launch.file.as_deref(), &launch.from);
            return Ok(StartedRun::Plan(Box::new(shown(&opened, &inputs, file, from))));
        }
        let Opened { plan, .. } = opened;
        let handle = launch.start(cx, &plan).await?;
        Ok(StartedRun::Run(Box::new(ended(cx, handle, wait).await?)))
    }

    async fn done(self, cx: &Context) -> Result<StartedRun, Refusal> {
        let id = self.run_id.clone().or_else(|| cx.new_run_id()).unwrap_or_default();
        match cx.run(&cx.run_id(&id)?).await {
            // The workflow's own start key named an earlier run, which it names again.
            Err(refusal) if refusal.code == Code::NoRun => self.perform(cx).await,
            run => Ok(StartedRun::Run(Box::new(run?))),
        }
    }
}
