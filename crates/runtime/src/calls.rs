//! Calls of other workflows: starts the called run and returns its result to the caller.
//!
//! The id of a called run derives from the calling step, so the run starts only once. The caller rests in the meantime; the
//! scheduler wakes it when the called run has a result.

use crate::clock::Clock;
use crate::engine::{Beginning, Engine, Error, FILE, Start};
use crate::host::Host;
use crate::library::{Definition, Unfound, find};
use crate::scheduler::Patience;
use crate::status;
use indexmap::IndexMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use windlass_engine::{
    CHILD, Failure, Input, Job, JobKey, Lineage, Outcome, Path, Resume, Run, RunBudget, RunId, RunPhase,
    Work, class,
};
use windlass_executors::{BoxFuture, Context, Executor, Notes, Returned, Traits};
use windlass_ir::dialect::{Dialect, Uncallable};
use windlass_ir::expr::CallShape;
use windlass_ir::plan::Given;
use windlass_ir::workflow::CallMode;
use windlass_ir::{Code, Diagnostic, Plan, Value};

/// The actor recorded when a caller cancels the runs that it called.
const CALLER: &str = "caller";

/// The calling run and its environment.
#[derive(Debug)]
struct Caller {
    /// The folder of its workflow file.
    folder: PathBuf,
    dialect: &'static dyn Dialect,
    shape: CallShape,
    /// The runs that wait for the called run, the caller last.
    parents: Vec<RunId>,
    budgets: Vec<RunBudget>,
    by: Option<Arc<str>>,
    /// The call failed before, and a user resumed the caller. The called run continues where it left off.
    reopened: bool,
    host: Host,
}

/// The executor of one call. A called run outlives the process that started it and reports its own result.
#[derive(Debug)]
pub(crate) struct Call {
    engine: Weak<Engine>,
    run: RunId,
    caller: Caller,
}

impl Call {
    pub fn of(engine: &Arc<Engine>, host: &Host, run: &Run, job: &Job) -> Self {
        let before = job.notes.get(CHILD).and_then(Value::as_str).and_then(RunId::written);
        let reopened = run.is_reopened(&job.key);
        // A reopened call continues its earlier run.
        let called = before.filter(|_| reopened).unwrap_or_else(|| run_of(&job.key));
        let file = run.about().get(FILE).and_then(Value::as_str).map(PathBuf::from);
        let folder = file.and_then(|file| file.parent().map(Into::into));
        let mut host = host.clone();
        if let Some(from) = &mut host.virtual_from {
            *from = (*from).max(run.last_at());
        }
        let caller = Caller {
            folder: folder.unwrap_or_else(|| host.environment.directory.clone()),
            dialect: engine.dialects().named(&run.program().plan.dialect),
            shape: run.program().plan.semantics.results.call,
            parents: run.parents().iter().cloned().chain([run.id().clone()]).collect(),
            budgets: run.budgets().collect(),
            by: run.by().cloned(),
            reopened,
            host,
        };
        Self { engine: Arc::downgrade(engine), run: called, caller }
    }

    async fn call(&self, job: &Job, context: Context) -> Option<Returned> {
        let Work::Call { workflow, input, mode, lineage } = &job.work.work else { return None };
        let Some(name) = workflow.as_str() else {
            let message = format!("the name of a workflow must be text, not {}", workflow.kind());
            return Some(failed(Failure::new(class::EXPRESSION_ERROR, message).in_field("workflow")));
        };
        let engine = self.engine.upgrade()?;
        let called = Called { name, input, lineage: lineage.clone(), caller: &self.caller };
        if *mode == CallMode::Inline {
            return Some(match called.definition(&engine) {
                Ok((definition, inputs)) => called.inline(&definition, inputs),
                Err(failure) => failed(failure),
            });
        }
        let detached = *mode == CallMode::Detached;
        let note = Note { job: &job.key, notes: &context.notes };
        match engine.begin_called(&self.run, &called, detached, &note).await {
            Ok(_) if detached => {
                let started = Value::map([("child_run_id", Value::text(self.run.as_str()))]);
                Some(Outcome::Done(started).into())
            }
            Ok(None) => Some(Returned::Elsewhere),
            Ok(Some(outcome)) => Some(outcome.of_called(&self.run, name).into()),
            Err(Begin::Failed(failure)) => Some(failed(failure)),
            Err(Begin::Lost) => None,
        }
    }
}

impl Executor for Call {
    fn traits(&self, _: &Work) -> Traits {
        Traits { outlives: true, ..Traits::default() }
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async move {
            let lost = || failed(Failure::new(class::LOST, "the called run could not be started"));
            self.call(&job, context).await.unwrap_or_else(lost)
        })
    }

    /// The id of a called run derives from the calling step, so starting it again finds the same run.
    fn adopt(&self, job: Job, context: Context) -> BoxFuture<'_, Option<Returned>> {
        Box::pin(async move { self.call(&job, context).await })
    }

    fn recall(&self, job: Job) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(engine) = self.engine.upgrade() else { return };
            let called = job.notes.get(CHILD).and_then(Value::as_str).and_then(RunId::written);
            let called = called.unwrap_or_else(|| self.run.clone());
            let why = "the calling run stopped waiting for it".into();
            let cancel = Input::Cancel { path: Path::default(), why, by: CALLER.into() };
            if let Err(Error::NoRun(_)) = engine.tell(&called, cancel).await {
                let outcome = Outcome::Cancelled("it was not started".into());
                engine.reported(job.key, outcome);
            }
        })
    }
}

/// The id of the called run, which is the same for all deliveries of an attempt.
fn run_of(job: &JobKey) -> RunId {
    let hash = blake3::hash(format!("{}:{}#{}", job.run, job.path, job.attempt).as_bytes());
    RunId::new(&hash.to_hex()[..24]).expect("hexadecimal digits are allowed")
}

fn failed(failure: Failure) -> Returned {
    Outcome::Failed(failure).into()
}

/// Records the called run in the journal of the caller, where reports find it.
struct Note<'c> {
    job: &'c JobKey,
    notes: &'c Notes,
}

/// The workflow to call.
struct Called<'c> {
    name: &'c str,
    input: &'c Value,
    lineage: Lineage,
    caller: &'c Caller,
}

/// Why the called run did not start.
enum Begin {
    Failed(Failure),
    Lost,
}

impl From<Error> for Begin {
    fn from(error: Error) -> Self {
        match error {
            Error::Store(_) => Self::Lost,
            Error::Refused(windlass_engine::Refused::BadInput(_)) => {
                Self::Failed(Failure::new(class::CONTRACT_VIOLATION, error.to_string()).in_field("input"))
            }
            error => Self::Failed(Failure::new(class::ERROR, error.to_string()).in_field("workflow")),
        }
    }
}

impl Called<'_> {
    /// Finds the workflow and converts its input: declared types, with defaults filled in.
    fn definition(&self, engine: &Engine) -> Result<(Definition, Value), Failure> {
        let unread =
            || self.failure(class::ERROR, "this process cannot read workflow files".into(), "workflow");
        let reader = engine.reader().ok_or_else(unread)?;
        let found = find(reader, engine.dialects(), self.name, &self.caller.folder);
        let definition = found.map_err(|unfound| self.unfound(&unfound))?;
        let mut given: IndexMap<String, Given> = IndexMap::new();
        let taken = match self.input {
            Value::Map(map) => {
                let values = map.iter().map(|(name, value)| (name.to_string(), Given::Value(value.clone())));
                given.extend(values);
                definition.plan.parameters(&given, definition.words)
            }
            Value::Null => definition.plan.parameters(&given, definition.words),
            whole => definition.plan.whole_input(whole.clone(), definition.words),
        };
        let inputs = taken.map_err(|findings| self.bad_input(&findings, &given, &definition))?.to_value();
        Ok((definition, inputs))
    }

    fn unfound(&self, unfound: &Unfound) -> Failure {
        let why = match unfound {
            Unfound::NotThere { .. } => Some(Uncallable::NotFound { workflow: self.name }),
            Unfound::Disabled { .. } => Some(Uncallable::Disabled { workflow: self.name }),
            Unfound::Several(_) | Unfound::Bad { .. } => None,
        };
        let message = why.and_then(|why| self.caller.dialect.uncallable(&why));
        let plainly = || format!("the workflow `{}` cannot be called: {unfound}", self.name);
        self.failure(class::NOT_RUNNABLE, message.unwrap_or_else(plainly), "workflow")
    }

    /// A failure here is final: a retry would not change it.
    fn check_depth(&self, plan: &Plan) -> Result<(), Failure> {
        let (id, depth_max) = (&plan.header.id, plan.semantics.calls_deep_max);
        let message = if self.lineage.0.contains(id) {
            format!("`{id}` calls itself")
        } else if self.lineage.0.len() > depth_max as usize {
            format!("workflows call each other more than {depth_max} deep")
        } else {
            return Ok(());
        };
        Err(self.failure(class::NOT_RUNNABLE, message, "workflow"))
    }

    fn bad_input(
        &self,
        findings: &[Diagnostic],
        given: &IndexMap<String, Given>,
        definition: &Definition,
    ) -> Failure {
        let declared = &definition.plan.parameters;
        let undeclared = given.keys().map(String::as_str).filter(|name| !declared.contains_key(*name));
        let undeclared: Vec<&str> = undeclared.collect();
        let causes: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.code == Code::BadParameter || finding.is_error())
            .map(|finding| &*finding.message)
            .collect();
        let why = Uncallable::UndeclaredInputs { workflow: self.name, names: &undeclared };
        let message = (!undeclared.is_empty()).then(|| self.caller.dialect.uncallable(&why)).flatten();
        let plainly = || format!("the workflow `{}` refuses its input: {}", self.name, causes.join("; "));
        self.failure(class::CONTRACT_VIOLATION, message.unwrap_or_else(plainly), "input")
    }

    fn failure(&self, class: &str, message: String, field: &str) -> Failure {
        let detail = match self.caller.shape {
            CallShape::Report => Some(Value::map([
                ("workflow", Value::text(self.name)),
                ("status", Value::text("failed")),
                ("error", Value::text(message.as_str())),
            ])),
            CallShape::Outputs => None,
        };
        Failure { detail, ..Failure::new(class, message).in_field(field) }
    }

    /// Makes the steps of the workflow steps of the calling run.
    fn inline(&self, definition: &Definition, inputs: Value) -> Returned {
        let plan = serde_json::to_value(&definition.plan).expect("all keys of a plan are text");
        let found = Value::map([("plan", Value::from(&plan)), ("inputs", inputs)]);
        Outcome::Done(found).into()
    }
}

impl Engine {
    /// Starts or continues the called run. Returns its outcome if it has already ended.
    async fn begin_called(
        self: &Arc<Self>,
        run: &RunId,
        called: &Called<'_>,
        detached: bool,
        note: &Note<'_>,
    ) -> Result<Option<Outcome>, Begin> {
        loop {
            let found = match self.exists(run).await? {
                true => None,
                false => Some(called.definition(self).map_err(Begin::Failed)?),
            };
            if let Some((definition, _)) = &found {
                called.check_depth(&definition.plan).map_err(Begin::Failed)?;
            }
            let noted = note.notes.keep(note.job, CHILD, Value::text(run.as_str())).await;
            noted.map_err(|_| Begin::Lost)?;
            let Some((definition, inputs)) = found else {
                return Ok(self.continue_called(run, called.caller).await?);
            };
            let Caller { parents, budgets, by, host, .. } = called.caller;
            let start = Start {
                run: Some(run.clone()),
                inputs,
                by: by.clone(),
                source: definition.source,
                overrides: definition.overrides,
                file: Some(definition.file),
                host: host.clone(),
                clock: host.virtual_from.map_or(Clock::Real, Clock::Virtual),
                patience: if host.patient { Patience::Everything } else { Patience::Work },
                claims: Vec::new(),
                lineage: called.lineage.clone(),
                // No run waits for a detached run, and it has its own budget.
                parents: if detached { Vec::new() } else { parents.clone() },
                budgets: if detached { Vec::new() } else { budgets.clone() },
                beginning: Beginning::default(),
            };
            match self.begin(&definition.plan, start, None).await {
                // Another delivery of the same call started it first.
                Err(Error::RunExists(_)) => {}
                begun => return begun.map(|_| None).map_err(Begin::from),
            }
        }
    }

    async fn continue_called(
        self: &Arc<Self>,
        run: &RunId,
        caller: &Caller,
    ) -> Result<Option<Outcome>, Error> {
        let view = self.view_of_run(run).await?;
        let reopens = match view.phase() {
            RunPhase::Ended(Outcome::Failed(_)) if caller.reopened && status::is_resumable(&view) => true,
            RunPhase::Ended(outcome) => return Ok(Some(outcome.clone())),
            RunPhase::Pending | RunPhase::Running => false,
        };
        let resume = Resume { wanted: None, reopens };
        self.continue_run(run, resume, caller.host.clone(), None).await.map(|()| None)
    }
}
