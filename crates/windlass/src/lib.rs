//! Windlass as a library: load a workflow, run it in your own process with your own executors, follow what happens.
//!
//! A thin facade: reading is done by `windlass-dialects`, running by `windlass-runtime`. What a run has done is in its
//! data folder; a process that dies takes nothing with it, and [`Engine::resume`] goes on where it was.

use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use windlass_dialects::{Loaded, Options, Text};
use windlass_ir::plan::Given;
use windlass_runtime as runtime;

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

/// Why a workflow cannot be planned: the findings, of which at least one is an error.
#[derive(Debug, thiserror::Error)]
#[error("{} of the workflow's findings are errors; the first: {}", self.errors().count(), self.errors().next().map_or("", |finding| &finding.message))]
pub struct Invalid(pub Vec<Diagnostic>);

impl Invalid {
    fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter().filter(|finding| finding.is_error())
    }
}

impl Workflow {
    /// Reads a file. That it cannot be read is an error; that it is wrong is what [`Workflow::validate`] tells.
    pub fn load(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let path = path.as_ref();
        Ok(Self::read(&path.display().to_string(), std::fs::read(path)?))
    }

    /// Reads a workflow from bytes; the ending of `name` says how it is written.
    pub fn read(name: &str, bytes: Vec<u8>) -> Self {
        let source = String::from_utf8_lossy(&bytes).into_owned();
        Self {
            loaded: windlass_dialects::load(Text { name: name.to_owned(), bytes }, Options::default()),
            source,
        }
    }

    /// Everything that is wrong with it or suspicious, in the order of the file.
    pub fn validate(&self) -> &[Diagnostic] {
        &self.loaded.diagnostics
    }

    /// The files that findings point into.
    pub fn sources(&self) -> &Sources {
        &self.loaded.sources
    }

    pub fn plan(&self) -> Result<&Plan, Invalid> {
        self.loaded.plan.as_ref().ok_or_else(|| Invalid(self.loaded.diagnostics.clone()))
    }

    /// What a run would start with: converted by declared type, defaults filled in.
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
    /// Opens a data folder, which is made if it is not there. Only one process at a time can.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let engine = runtime::Engine::open(folder.as_ref(), runtime::Durability::Disk, DIALECTS)?;
        engine.read_with(Arc::new(Files));
        Ok(Self { engine, host: Host::new(here()), file: None })
    }

    /// An engine that forgets everything with itself.
    pub fn in_memory() -> Self {
        let engine = runtime::Engine::in_memory(DIALECTS);
        engine.read_with(Arc::new(Files));
        Self { engine, host: Host::new(here()), file: None }
    }

    /// Does everything that is no command with this.
    #[must_use]
    pub fn with_executor(mut self, executor: impl Executor + 'static) -> Self {
        self.host = self.host.with_others(executor);
        self
    }

    /// Answers with a script: for all that needs somebody else, and for the commands and calls that it mentions.
    #[must_use]
    pub fn with_script(mut self, script: Script) -> Self {
        self.host.script = Some(Arc::new(script));
        self
    }

    /// Does the tasks that a `windlass.toml` names commands for with these.
    pub fn with_config(mut self, file: impl AsRef<Path>) -> Result<Self, Error> {
        self.host = self.host.with_config(Config::read(file.as_ref())?);
        Ok(self)
    }

    /// Lets commands run elsewhere or with other variables than those of this process. Workflows that are called are looked for
    /// there, too.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.host.environment = Arc::new(environment);
        self
    }

    /// Says where the workflow stands that is run: for the workflows that it calls, and as `workflow.dir`, which Spec Kit
    /// calls `SPECKIT_WORKFLOW_DIR`.
    #[must_use]
    pub fn with_workflow_file(mut self, file: impl AsRef<Path>) -> Self {
        self.file = Some(file.as_ref().to_owned());
        self
    }

    /// Starts a run, which is durable when this returns.
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

    /// Goes on with a run, whatever stopped it, with changed inputs laid over the first ones.
    pub async fn resume(
        &self,
        run: &RunId,
        changes: Value,
        clock: Clock,
        patience: Patience,
    ) -> Result<RunHandle, Error> {
        self.engine.resume(run, changes, "host", self.host.clone(), clock, patience).await.map(RunHandle::of)
    }

    /// Follows a run from one of its events on, until only people can move it.
    pub async fn follow(&self, run: &RunId, since: Since) -> Result<RunHandle, Error> {
        self.engine.follow(run, since, Patience::Work).await.map(RunHandle::of)
    }

    /// A run as it stands.
    pub fn view(&self, run: &RunId) -> Result<View, Error> {
        self.engine.view(run)
    }

    /// The result object of a run: status, outputs, what it waits for, and its steps.
    pub fn result(&self, run: &RunId) -> Result<serde_json::Value, Error> {
        self.engine.result(run)
    }

    pub fn events(&self, run: &RunId) -> Result<Vec<Event>, Error> {
        self.engine.events(run)
    }
}

/// A run under way.
#[derive(Debug)]
pub struct RunHandle {
    pub id: RunId,
    /// What happens, as it becomes durable, and what jobs print meanwhile.
    pub events: Updates,
    handle: runtime::Handle,
}

impl RunHandle {
    fn of(mut handle: runtime::Handle) -> Self {
        let events = std::mem::take(&mut handle.updates);
        Self { id: handle.id.clone(), events, handle }
    }

    /// Stops the run: what is at work is told to end, nothing new is started.
    pub async fn cancel(&self, why: &str) -> Result<(), Error> {
        let path = runtime::Path::default();
        self.handle.tell(Input::Cancel { path, why: why.into(), by: "host".into() }).await
    }

    /// Tells the run something else.
    pub async fn tell(&self, input: Input) -> Result<(), Error> {
        self.handle.tell(input).await
    }

    /// Waits until the run has ended, or until only people could move it and nobody waits for them.
    pub async fn outcome(self) -> Result<RunStatus, Error> {
        drop(self.events);
        self.handle.outcome().await
    }
}

/// Reads the workflows that are called from files.
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

/// Where and with which variables this process runs.
fn here() -> Environment {
    Environment {
        variables: std::env::vars_os().collect(),
        directory: std::env::current_dir().unwrap_or_default(),
    }
}
