//! Windlass as a library: load a workflow, run it in your own process with your own executors, and follow its events.
//!
//! `windlass-dialects` reads workflows and `windlass-runtime` executes them; this crate is a thin facade. The data
//! folder stores the progress of each run, so [`Engine::resume`] continues a run after the process died.

use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_api::report::Report;
use windlass_api::types::Run;
use windlass_dialects::{Loaded, Options, Text};
use windlass_ir::plan::Given;
use windlass_runtime as runtime;

pub use windlass_api::types;
pub use windlass_dialects::DIALECTS;
pub use windlass_ir::{Code, Diagnostic, Duration, Plan, RunStatus, Severity, Sources, StepStatus, Value};
pub use windlass_runtime::{
    BadConfig, BoxFuture, Choice, Clock, Config, Context, Definition, Environment, Error, Event, Executor,
    Failure, GateDecision, Host, Input, Job, Outcome, Patience, Reader, Returned, RunId, Script, Since,
    Traits, Update, Updates, View, Work,
};

/// A workflow file, read and checked.
#[derive(Debug)]
pub struct Workflow {
    loaded: Loaded,
    source: String,
}

/// Why a workflow has no plan: its diagnostics, at least one of them an error.
#[derive(Debug, thiserror::Error)]
#[error("invalid workflow: {}", self.message())]
pub struct Invalid(pub Vec<Diagnostic>);

impl Invalid {
    fn message(&self) -> String {
        let mut errors = self.0.iter().filter(|finding| finding.is_error());
        let first = errors.next().map_or("", |error| &error.message);
        match errors.count() {
            0 => first.to_owned(),
            more => format!("{first} (and {more} more errors)"),
        }
    }
}

impl Workflow {
    /// Reads a file. Returns an error if it cannot be read; [`Workflow::validate`] lists problems in its content.
    pub fn load(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let path = path.as_ref();
        Ok(Self::read(&path.display().to_string(), std::fs::read(path)?))
    }

    /// Reads a workflow from bytes. The extension of `name` selects the format.
    pub fn read(name: &str, bytes: Vec<u8>) -> Self {
        let source = String::from_utf8_lossy(&bytes).into_owned();
        Self {
            loaded: windlass_dialects::load(Text { name: name.to_owned(), bytes }, Options::default()),
            source,
        }
    }

    /// All errors and warnings, in file order.
    pub fn validate(&self) -> &[Diagnostic] {
        &self.loaded.diagnostics
    }

    /// The files that diagnostics point into.
    pub fn sources(&self) -> &Sources {
        &self.loaded.sources
    }

    pub fn plan(&self) -> Result<&Plan, Invalid> {
        self.loaded.plan.as_ref().ok_or_else(|| Invalid(self.loaded.diagnostics.clone()))
    }

    /// The inputs of a run: converted to their declared types, with defaults filled in.
    pub fn inputs(&self, given: impl IntoIterator<Item = (String, Value)>) -> Result<Value, Invalid> {
        let given: IndexMap<String, Given> =
            given.into_iter().map(|(name, value)| (name, Given::Value(value))).collect();
        let parameters = self.plan()?.parameters(&given, self.loaded.words).map_err(Invalid)?;
        Ok(parameters.to_value())
    }

    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The owner of a data folder.
#[derive(Debug)]
pub struct Engine {
    engine: Arc<runtime::Engine>,
    host: Host,
    file: Option<PathBuf>,
}

impl Engine {
    /// Opens a data folder, and creates it if necessary. Only one process at a time can own it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let engine = runtime::Engine::open(folder.as_ref(), runtime::Durability::Disk, DIALECTS)?;
        engine.read_with(Arc::new(Files));
        Ok(Self { engine, host: Host::new(here()), file: None })
    }

    /// An engine that stores nothing on disk.
    pub fn in_memory() -> Self {
        let engine = runtime::Engine::in_memory(DIALECTS);
        engine.read_with(Arc::new(Files));
        Self { engine, host: Host::new(here()), file: None }
    }

    /// Uses this executor for all work other than commands.
    #[must_use]
    pub fn with_executor(mut self, executor: impl Executor + 'static) -> Self {
        self.host = self.host.with_others(executor);
        self
    }

    /// Uses mock responses for steps that need an executor, and for the commands and calls that the script mentions.
    #[must_use]
    pub fn with_script(mut self, script: Script) -> Self {
        self.host.script = Some(Arc::new(script));
        self
    }

    /// Executes the tasks that a `windlass.toml` names commands for.
    pub fn with_config(mut self, file: impl AsRef<Path>) -> Result<Self, Error> {
        self.host = self.host.with_config(Config::read(file.as_ref())?);
        Ok(self)
    }

    /// Sets the working directory and the variables of commands. Called workflows are also looked up in that
    /// directory.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.host.environment = Arc::new(environment);
        self
    }

    /// Sets the file of the workflow: the folder in which called workflows are looked up, and the value of
    /// `workflow.dir`, which Spec Kit calls `SPECKIT_WORKFLOW_DIR`.
    #[must_use]
    pub fn with_workflow_file(mut self, file: impl AsRef<Path>) -> Self {
        self.file = Some(file.as_ref().to_owned());
        self
    }

    /// Starts a run. It is durable when this returns.
    pub async fn run(&self, plan: &Plan, inputs: Value) -> Result<RunHandle, Error> {
        self.run_with(plan, inputs, Clock::Real, Patience::Everything).await
    }

    pub async fn run_with(
        &self,
        plan: &Plan,
        inputs: Value,
        clock: Clock,
        patience: Patience,
    ) -> Result<RunHandle, Error> {
        let start = runtime::Start {
            run: None,
            inputs,
            by: None,
            source: String::new(),
            overrides: String::new(),
            file: self.file.clone(),
            host: self.host.clone(),
            clock,
            patience,
            claims: Vec::new(),
            lineage: runtime::Lineage::default(),
            parents: Vec::new(),
            budgets: Vec::new(),
            beginning: runtime::Beginning::default(),
        };
        self.engine.start(plan, start).await.map(RunHandle::of)
    }

    /// Continues a stopped run, with changed inputs merged into the original ones.
    pub async fn resume(
        &self,
        run: &RunId,
        changes: Value,
        clock: Clock,
        patience: Patience,
    ) -> Result<RunHandle, Error> {
        self.engine.resume(run, changes, "host", self.host.clone(), clock, patience).await.map(RunHandle::of)
    }

    /// Follows a run from one of its events on, until it waits for people.
    pub async fn follow(&self, run: &RunId, since: Since) -> Result<RunHandle, Error> {
        self.engine.follow(run, since, Patience::Work).await.map(RunHandle::of)
    }

    /// The current state of a run.
    pub fn view(&self, run: &RunId) -> Result<View, Error> {
        self.engine.view(run)
    }

    /// A run: its status, outputs, steps and what it waits for.
    pub fn result(&self, run: &RunId) -> Result<Run, Error> {
        let view = self.engine.view(run)?;
        // Without the coordinator only the positions in queues are unknown.
        let shared = self.engine.shared().ok();
        Ok(Report::of(&self.engine, run, &view).with_shared(shared.as_ref()).run())
    }

    pub fn events(&self, run: &RunId) -> Result<Vec<Event>, Error> {
        self.engine.events(run)
    }
}

/// A run in progress.
#[derive(Debug)]
pub struct RunHandle {
    pub id: RunId,
    /// Events as they become durable, and output of jobs.
    pub events: Updates,
    handle: runtime::Handle,
}

impl RunHandle {
    fn of(mut handle: runtime::Handle) -> Self {
        let events = std::mem::take(&mut handle.updates);
        Self { id: handle.id.clone(), events, handle }
    }

    /// Cancels the run: stops running steps and starts no others.
    pub async fn cancel(&self, why: &str) -> Result<(), Error> {
        let path = runtime::Path::default();
        self.handle.tell(Input::Cancel { path, why: why.into(), by: "host".into() }).await
    }

    /// Sends the run another input.
    pub async fn tell(&self, input: Input) -> Result<(), Error> {
        self.handle.tell(input).await
    }

    /// Waits until the run has ended, or until it waits for people, depending on its [`Patience`].
    pub async fn outcome(self) -> Result<RunStatus, Error> {
        drop(self.events);
        self.handle.outcome().await
    }
}

/// Reads called workflows from files.
#[derive(Debug)]
struct Files;

impl Reader for Files {
    fn read(&self, file: &Path) -> Result<Definition, String> {
        let workflow = Workflow::load(file).map_err(|error| error.to_string())?;
        let plan = workflow.plan().map_err(|invalid| invalid.to_string())?.clone();
        Ok(Definition {
            file: file.to_owned(),
            plan,
            words: workflow.loaded.words,
            source: workflow.source,
            overrides: String::new(),
        })
    }
}

/// The variables and the working directory of this process.
fn here() -> Environment {
    Environment {
        variables: std::env::vars_os().collect(),
        directory: std::env::current_dir().unwrap_or_default(),
    }
}
