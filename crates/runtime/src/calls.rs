//! Calls of other workflows: the runs that they start, and how these come back.
//!
//! The run of a call has an id that follows from who calls it, so that it is started once however often it is asked for. Who calls
//! waits until it has ended, or rests with it while it waits for people, and asks again when something has happened to it.

use crate::clock::Clock;
use crate::drive::Patience;
use crate::engine::{Beginning, Engine, Error, Handle, Start, nothing};
use crate::host::Host;
use crate::library::{Definition, Unfound, find};
use crate::report::{self, Dialect};
use indexmap::IndexMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use tokio_util::sync::CancellationToken;
use windlass_engine::{
    CHILD, Failure, Input, Job, JobKey, Lineage, Outcome, Path, RunBudget, RunId, RunPhase, Timestamp, Work,
    class,
};
use windlass_executors::{Context, Notes};
use windlass_ir::plan::Given;
use windlass_ir::workflow::CallMode;
use windlass_ir::{Code, Diagnostic, Plan, Value};

/// Who acts for the caller in what its runs are told.
const CALLER: &str = "caller";

/// Who calls, and from where.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The folder of its file.
    pub folder: PathBuf,
    pub dialect: Dialect,
    /// The runs that wait for what is called, the caller last.
    pub parents: Vec<RunId>,
    pub budgets: Vec<RunBudget>,
    pub by: Option<Arc<str>>,
    /// The call has failed before, and is made once more because somebody wants to go on: its run goes on where it was.
    pub reopened: bool,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
}

/// What became of a job.
#[derive(Debug)]
pub(crate) enum Ended {
    Reported(Outcome),
    /// The run that was called has ended, by its own time, or waits for people.
    Called {
        run: RunId,
        outcome: Option<Outcome>,
        at: Option<Timestamp>,
    },
    /// Nobody can say.
    Lost,
}

/// The run of a call: the same for all deliveries of an attempt.
pub(crate) fn run_of(job: &JobKey) -> RunId {
    let hash = blake3::hash(format!("{}:{}#{}", job.run, job.path, job.attempt).as_bytes());
    RunId::new(&hash.to_hex()[..24]).expect("hexadecimal digits are allowed")
}

/// Makes a call and waits for what comes of it.
pub(crate) async fn call(
    engine: Weak<Engine>,
    run: RunId,
    job: Job,
    caller: Caller,
    context: Context,
) -> Ended {
    let Work::Call { workflow, input, mode, lineage } = &job.work.work else { return Ended::Lost };
    let Some(name) = workflow.as_str() else {
        let message = format!("the name of a workflow is text, not {}", workflow.kind());
        return failed(Failure::new(class::EXPRESSION_ERROR, message).in_field("workflow"));
    };
    let Some(owner) = engine.upgrade() else { return Ended::Lost };
    let called = Called { name, input, lineage: lineage.clone(), caller: &caller };
    if *mode == CallMode::Inline {
        return match called.definition(&owner) {
            Ok((definition, inputs)) => called.inline(&definition, inputs),
            Err(failure) => failed(failure),
        };
    }
    let detached = *mode == CallMode::Detached;
    let note = Note { job: &job.key, notes: &context.notes };
    let handle = match owner.begin(&run, &called, detached, &note).await {
        Ok(handle) => handle,
        Err(Begin::Failed(failure)) => return failed(failure),
        Err(Begin::Lost) => return Ended::Lost,
    };
    drop(owner);
    if detached {
        let started = Value::map([("child_run_id", Value::text(handle.id.as_str()))]);
        return Ended::Reported(Outcome::Done(started));
    }
    follow(engine, handle, name, context.abort).await
}

/// Ends the run of a call that is not wanted any more and that nobody drives.
pub(crate) async fn end(engine: Weak<Engine>, run: RunId, caller: Caller) -> Ended {
    let Some(owner) = engine.upgrade() else { return Ended::Lost };
    let Ok(handle) = owner.take_up_called(&run, &caller).await else { return Ended::Lost };
    drop(owner);
    let abort = CancellationToken::new();
    abort.cancel();
    follow(engine, handle, run.as_str(), abort).await
}

fn failed(failure: Failure) -> Ended {
    Ended::Reported(Outcome::Failed(failure))
}

/// Waits for a run, and passes on that it is to stop.
async fn follow(engine: Weak<Engine>, handle: Handle, name: &str, abort: CancellationToken) -> Ended {
    let Handle { id, mut done, updates, .. } = handle;
    // Nobody here listens to what it tells.
    drop(updates);
    let mut told = false;
    let standing = loop {
        tokio::select! {
            standing = &mut done => break standing,
            () = abort.cancelled(), if !told => {
                told = true;
                if let Some(engine) = engine.upgrade() {
                    engine.stop_called(&id).await;
                }
            }
        }
    };
    let (Ok(Ok(_)), Some(engine)) = (standing, engine.upgrade()) else { return Ended::Lost };
    let Ok(view) = engine.view(&id) else { return Ended::Lost };
    let outcome = match view.phase {
        RunPhase::Ended(outcome) => Some(as_seen_by_caller(&id, name, outcome, told)),
        RunPhase::Pending | RunPhase::Running => None,
    };
    Ended::Called { run: id, outcome, at: view.ended_at }
}

fn as_seen_by_caller(run: &RunId, name: &str, outcome: Outcome, told: bool) -> Outcome {
    match outcome {
        Outcome::Done(value) | Outcome::Continue(value) => Outcome::Done(value),
        Outcome::Skipped(_) => Outcome::Done(Value::Null),
        Outcome::Cancelled(why) if told => Outcome::Cancelled(why),
        Outcome::Cancelled(why) => {
            let message = format!("the run {run} of `{name}` was cancelled: {why}");
            Outcome::Failed(Failure::new(class::CANCELLED, message))
        }
        Outcome::Failed(failure) => {
            let message = format!("the run {run} of `{name}` failed: {}", failure.message);
            Outcome::Failed(Failure { message: message.into(), field: None, ..failure })
        }
    }
}

/// Where a step writes down which run it has called, so that it can be found from outside.
struct Note<'c> {
    job: &'c JobKey,
    notes: &'c Notes,
}

/// A workflow that is called.
pub(crate) struct Called<'c> {
    name: &'c str,
    input: &'c Value,
    lineage: Lineage,
    caller: &'c Caller,
}

/// Why there is no run.
pub(crate) enum Begin {
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
    /// The workflow, and its input converted by declared type with defaults filled in.
    fn definition(&self, engine: &Engine) -> Result<(Definition, Value), Failure> {
        let unread = || self.failure(class::ERROR, "nobody here reads workflows".into(), "workflow");
        let reader = engine.reader().ok_or_else(unread)?;
        let found = find(reader, self.name, &self.caller.folder);
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
        let message = match (self.caller.dialect, unfound) {
            (Dialect::Speckit, Unfound::NotThere { .. }) => {
                format!("Workflow '{}' is not installed", self.name)
            }
            (Dialect::Speckit, Unfound::Disabled { .. }) => format!("Workflow '{}' is disabled", self.name),
            _ => format!("the workflow `{}` cannot be called: {unfound}", self.name),
        };
        self.failure(class::NOT_RUNNABLE, message, "workflow")
    }

    /// Calling once more would not change it.
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
        let undeclared = given.keys().filter(|name| !definition.plan.parameters.contains_key(name.as_str()));
        let undeclared: Vec<String> = undeclared.map(|name| format!("'{name}'")).collect();
        let causes: Vec<&str> = findings
            .iter()
            .filter(|finding| finding.code == Code::BadParameter || finding.is_error())
            .map(|finding| &*finding.message)
            .collect();
        let message = match self.caller.dialect {
            Dialect::Speckit if !undeclared.is_empty() => {
                format!("Undeclared inputs for workflow '{}': [{}]", self.name, undeclared.join(", "))
            }
            Dialect::Speckit | Dialect::Swdl | Dialect::Dagnats | Dialect::Dcc => {
                format!("the workflow `{}` refuses its input: {}", self.name, causes.join("; "))
            }
        };
        self.failure(class::CONTRACT_VIOLATION, message, "input")
    }

    fn failure(&self, class: &str, message: String, field: &str) -> Failure {
        let detail = match self.caller.dialect {
            Dialect::Speckit => Some(Value::map([
                ("workflow", Value::text(self.name)),
                ("status", Value::text("failed")),
                ("error", Value::text(message.as_str())),
            ])),
            Dialect::Swdl | Dialect::Dagnats | Dialect::Dcc => None,
        };
        Failure { detail, ..Failure::new(class, message).in_field(field) }
    }

    /// Its steps become steps of the calling run.
    fn inline(&self, definition: &Definition, inputs: Value) -> Ended {
        let plan = serde_json::to_value(&definition.plan).expect("a plan holds no key but text");
        let found = Value::map([("plan", Value::from(&plan)), ("inputs", inputs)]);
        Ended::Reported(Outcome::Done(found))
    }
}

impl Engine {
    /// Starts the run of a call, or takes it up, or finds that it has ended.
    async fn begin(
        &self,
        run: &RunId,
        called: &Called<'_>,
        detached: bool,
        note: &Note<'_>,
    ) -> Result<Handle, Begin> {
        loop {
            let found = match self.exists(run)? {
                true => None,
                false => Some(called.definition(self).map_err(Begin::Failed)?),
            };
            if let Some((definition, _)) = &found {
                called.check_depth(&definition.plan).map_err(Begin::Failed)?;
            }
            let noted = note.notes.keep(note.job, CHILD, Value::text(run.as_str())).await;
            noted.map_err(|_| Begin::Lost)?;
            let Some((definition, inputs)) = found else {
                return Ok(self.take_up_called(run, called.caller).await?);
            };
            let Caller { parents, budgets, by, host, clock, patience, .. } = called.caller;
            let start = Start {
                run: Some(run.clone()),
                inputs,
                by: by.clone(),
                source: definition.source,
                overrides: definition.overrides,
                file: Some(definition.file),
                host: host.clone(),
                clock: *clock,
                patience: *patience,
                claims: Vec::new(),
                lineage: called.lineage.clone(),
                // Nobody waits for one that is only started, and it has an account of its own.
                parents: if detached { Vec::new() } else { parents.clone() },
                budgets: if detached { Vec::new() } else { budgets.clone() },
                beginning: Beginning::default(),
            };
            match self.start(&definition.plan, start).await {
                // Somebody else was faster.
                Err(Error::RunExists(_)) => {}
                started => return Ok(started?),
            }
        }
    }

    async fn take_up_called(&self, run: &RunId, caller: &Caller) -> Result<Handle, Error> {
        let _claimed = self.claim(run).await;
        if let Some(driven) = self.driven(run) {
            return Ok(driven);
        }
        let replayed = self.replayed(run)?;
        let view = &replayed.view;
        let goes_on = match &view.phase {
            RunPhase::Ended(Outcome::Failed(_)) if caller.reopened && report::is_resumable(view) => {
                Some((nothing(), Arc::from(CALLER)))
            }
            RunPhase::Ended(_) => return Ok(crate::engine::standing_still(run, view)),
            RunPhase::Pending | RunPhase::Running => None,
        };
        self.take_up(replayed, goes_on, caller.host.clone(), caller.clock, caller.patience).await
    }

    /// Tells the run of a call that nobody waits for it any more.
    async fn stop_called(&self, run: &RunId) {
        let why = "the run that called it has stopped waiting for it".into();
        let cancel = Input::Cancel { path: Path::default(), why, by: CALLER.into() };
        // One that has ended needs no telling.
        let _ = self.tell(run, cancel).await;
    }
}
