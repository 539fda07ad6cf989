//! A run of a workflow that exists only in memory, with mock responses and in virtual time.

use super::{Opened, parameters};
use crate::code::Code;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform, value};
use crate::refusal::Refusal;
use crate::report::{Projector, Report};
use crate::types::{Event, Json, Ref, Simulation, Time};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_dialects::DIALECTS;
use windlass_runtime::{
    Beginning, Clock, Engine, Environment, Error, Host, Lineage, Patience, Reader, RunId, Script, Start,
    Timestamp, Update,
};

/// Run a workflow in memory: mock responses answer for every step, time passes at once, and no process starts.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SimulateWorkflow {
    #[serde(flatten)]
    pub of: Ref,
    /// The inputs by name. Some dialects take any value as a whole.
    #[serde(default)]
    pub inputs: Option<Json>,
    /// Mock responses. A step without one fails with `no_mock_response`.
    #[serde(default)]
    pub mock: Option<Json>,
    /// When the run starts; 2026-01-01T00:00:00Z by default.
    #[serde(default)]
    pub now: Option<Time>,
    #[serde(default)]
    pub by: Option<String>,
    /// Let gates time out. Otherwise the simulation ends where only people can move the run.
    #[serde(default)]
    pub wait: bool,
    #[serde(skip)]
    pub local: Local,
}

/// What only a caller in the same process can add: it is not part of a request.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The file of the workflow.
    pub file: Option<PathBuf>,
    /// Reads the workflows that it calls.
    pub reader: Option<Arc<dyn Reader>>,
    pub directory: PathBuf,
    pub variables: IndexMap<OsString, OsString>,
    /// Run the commands that have no mock response.
    pub runs_commands: bool,
}

const RUN: &str = "test";
const NOW: &str = "2026-01-01T00:00:00Z";

impl Operation for SimulateWorkflow {
    type Reply = Simulation;
    const ABOUT: About = About {
        name: "workflows.simulate",
        summary: "Run a workflow in memory with mock responses",
        subject: Subject::RunAndWorkflow,
        errors: &[
            Code::InvalidWorkflow,
            Code::BadParameter,
            Code::MissingParameter,
            Code::BadMock,
            Code::NotRunnable,
        ],
        http: &[Route::post("/workflows/{id}/simulate")],
        cli: &["test"],
        ..About::PURE
    };

    fn example() -> Self {
        let mock = serde_json::json!({"steps": {"hello": [{"output": {"stdout": "hello\n"}}]}});
        Self {
            of: super::sample(),
            inputs: None,
            mock: Some(mock),
            now: None,
            by: None,
            wait: false,
            local: Local::default(),
        }
    }
}

impl Perform for SimulateWorkflow {
    async fn perform(self, cx: &Context) -> Result<Simulation, Refusal> {
        let clock = Clock::Virtual(instant(self.now.as_deref().unwrap_or(NOW))?);
        let (of, _) = self.of.resolved(cx).await?;
        let opened = of.open_to_start()?;
        let inputs = self.inputs.map(value).transpose()?;
        let inputs = parameters(&opened.plan, opened.words, inputs, IndexMap::new())?.to_value();
        let Opened { plan, .. } = opened;
        let Local { file, reader, directory, variables, runs_commands } = self.local;
        let mut host = Host::new(Environment { variables, directory });
        host.runs_commands = runs_commands;
        host.script = Some(Arc::new(script(self.mock)?));
        let start = Start {
            run: Some(RunId::new(RUN).map_err(Error::from)?),
            inputs,
            by: self.by.map(Into::into),
            source: String::new(),
            overrides: String::new(),
            file,
            host,
            clock,
            patience: if self.wait { Patience::Deadlines } else { Patience::Work },
            claims: Vec::new(),
            lineage: Lineage::default(),
            parents: Vec::new(),
            budgets: Vec::new(),
            // A fixed seed makes the results reproducible.
            beginning: Beginning { seed: Some(0), ..Beginning::default() },
        };
        let engine = Engine::in_memory(DIALECTS);
        if let Some(reader) = reader {
            engine.read_with(reader);
        }
        let mut handle = engine.start(&plan, start).await?;
        let mut notices = Vec::new();
        while let Some(update) = handle.updates.recv().await {
            if let Update::Notice(text) = update {
                notices.push(text);
            }
        }
        let run = handle.id.clone();
        handle.done.await.map_err(|_| Error::OwnerGone(run.clone()))??;
        let view = engine.view(&run)?;
        let shown = Report::of(&engine, &run, &view).run();
        Ok(Simulation { run: shown, events: events(&engine, run)?, notices })
    }
}

fn instant(text: &str) -> Result<Timestamp, Refusal> {
    let parsed = text.parse::<jiff::Timestamp>().map_err(|_| {
        let refusal = Refusal::new(Code::BadRequest, format!("`{text}` is not a time such as {NOW}"));
        refusal.field("now")
    });
    Ok(Timestamp(parsed?.as_microsecond()))
}

fn script(mock: Option<Json>) -> Result<Script, Refusal> {
    let Some(mock) = mock else { return Ok(Script::default()) };
    Script::parse(&value(mock)?).map_err(|problems| {
        let problems: Vec<String> =
            problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
        let message = format!("invalid mock responses: {}", problems.join("; "));
        Refusal::new(Code::BadMock, message).field("mock")
    })
}

fn events(engine: &Arc<Engine>, run: RunId) -> Result<Vec<Event>, Refusal> {
    let events = engine.events(&run)?;
    let mut projector = Projector::new(engine.clone(), run);
    let mut public = Vec::with_capacity(events.len());
    for (seq, event) in (1..).zip(&events) {
        public.extend(projector.next(seq, event)?);
    }
    Ok(public)
}
