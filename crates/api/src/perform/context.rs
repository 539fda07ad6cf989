//! What an operation is performed with: the data folder, and who asks.

use super::admit::Call;
use crate::code::Code;
use crate::library::around;
use crate::operation::Role;
use crate::refusal::Refusal;
use crate::report::Report;
use crate::socket::{Surroundings, ask_executed};
use crate::types::{Face, Run};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use windlass_dialects::DIALECTS;
use windlass_ir::Value;
use windlass_runtime::{Clock, Config, Engine, Entry, Error, Input, RunId, check_folder};

/// Everything an operation needs beside its request.
#[derive(Clone, Debug)]
pub struct Context {
    folder: PathBuf,
    caller: Caller,
    access: Access,
    call: Option<Arc<Call>>,
    /// Where workflows are looked up by name.
    workflows: Arc<[PathBuf]>,
}

/// Who calls, and what they may do.
#[derive(Clone, Debug)]
pub struct Caller {
    pub name: Arc<str>,
    pub roles: Arc<[Role]>,
    /// Where a caller in another process is, and its variables. None for a caller whose runs are executed from here.
    pub from: Option<Arc<Surroundings>>,
    pub face: Face,
    pub request_id: Option<Arc<str>>,
    /// An idempotency key.
    pub key: Option<Arc<str>>,
}

impl Caller {
    /// The user at the keyboard, or the same user on the owner's socket, who may do everything.
    pub fn user(name: &str) -> Self {
        Self {
            name: name.into(),
            roles: [Role::Admin].into(),
            from: None,
            face: Face::Socket,
            request_id: None,
            key: None,
        }
    }

    #[must_use]
    pub fn with_key(self, key: Option<&str>) -> Self {
        Self { key: key.map(Into::into), ..self }
    }

    #[must_use]
    pub fn surrounded(self, from: Option<Surroundings>) -> Self {
        Self { from: from.map(Arc::new), ..self }
    }
}

#[derive(Clone, Debug)]
enum Access {
    /// This process owns the data folder.
    Owner(Arc<Engine>),
    /// It only reads the folder, which is opened when something is read.
    Reader(Arc<OnceLock<Arc<Engine>>>),
}

impl Context {
    /// For operations that change nothing.
    pub fn reading(folder: &Path, caller: Caller) -> Self {
        Self::new(folder, caller, Access::Reader(Arc::default()))
    }

    /// For every operation, in the process that owns the folder.
    pub fn owning(engine: Arc<Engine>, caller: Caller) -> Self {
        let folder = engine.folder().to_owned();
        Self::new(&folder, caller, Access::Owner(engine))
    }

    fn new(folder: &Path, caller: Caller, access: Access) -> Self {
        let workflows = around(folder).into();
        Self { folder: folder.to_owned(), caller, access, call: None, workflows }
    }

    /// Looks workflows up in these folders, instead of in the project around the data folder.
    #[must_use]
    pub fn with_workflows(self, folders: Vec<PathBuf>) -> Self {
        Self { workflows: folders.into(), ..self }
    }

    pub fn workflow_folders(&self) -> &[PathBuf] {
        &self.workflows
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The idempotency key of the call.
    pub fn key(&self) -> Option<&str> {
        self.caller.key.as_deref()
    }

    /// The same, while a call that changes something is performed.
    pub(super) fn calling(&self, call: Arc<Call>) -> Self {
        Self { call: Some(call), ..self.clone() }
    }

    /// The entries of the ledger that the commit of an effect must write too.
    pub fn entries(&self) -> Vec<Entry> {
        self.call.as_ref().map(|call| call.take_entries()).unwrap_or_default()
    }

    /// An effect was refused, so another one of the same call writes its entries.
    pub fn give_back(&self, entries: Vec<Entry>) {
        if let Some(call) = &self.call {
            call.give_back(entries);
        }
    }

    /// Writes down what the call acts on, for a repeated call with the same key.
    pub fn choose(&self, chosen: serde_json::Value) {
        if let Some(call) = &self.call {
            call.choose(chosen);
        }
    }

    /// What an earlier call with the same key has chosen to act on.
    pub fn chosen(&self) -> Option<&serde_json::Value> {
        self.call.as_ref()?.chosen()
    }

    /// Sends an input to a run, and waits until it is durable together with the key and the audit entry of the call.
    pub async fn tell(&self, run: &RunId, input: Input) -> Result<(), Refusal> {
        let entries = self.entries();
        let told = self.owner()?.tell_noting(run, input, entries.clone()).await;
        Ok(told.inspect_err(|_| self.give_back(entries))?)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The data folder, to look at. Blocks; see [`Context::read`].
    pub fn reader(&self) -> Result<Arc<Engine>, Refusal> {
        match &self.access {
            Access::Owner(engine) => Ok(engine.clone()),
            Access::Reader(known) => match known.get() {
                Some(engine) => Ok(engine.clone()),
                None => {
                    let engine = Engine::look(&self.folder, DIALECTS, ask_executed)?;
                    Ok(known.get_or_init(|| engine).clone())
                }
            },
        }
    }

    /// Reads the data folder, off the threads that serve others.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Arc<Engine>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let cx = self.clone();
        off_thread(move || read(&cx.reader()?)).await
    }

    /// Reads the data folder, or returns `empty` if there is none yet.
    pub async fn read_or<T: Send + 'static>(
        &self,
        empty: T,
        read: impl FnOnce(&Arc<Engine>) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let cx = self.clone();
        off_thread(move || match &cx.access {
            Access::Reader(_) if !cx.folder.join("journal.db").exists() => {
                check_folder(&cx.folder)?;
                Ok(empty)
            }
            Access::Owner(_) | Access::Reader(_) => read(&cx.reader()?),
        })
        .await
    }

    /// The run with this id.
    pub fn run_id(&self, id: &str) -> Result<RunId, Refusal> {
        RunId::new(id).map_err(|_| Error::NoRun(id.to_owned()).into())
    }

    /// A run as it is, with its positions in queues.
    pub async fn run(&self, run: &RunId) -> Result<Run, Refusal> {
        let run = run.clone();
        self.read(move |engine| {
            let view = engine.view(&run)?;
            // Without the coordinator only the positions in queues are unknown.
            let shared = match view.ended_at() {
                None => engine.shared().ok(),
                Some(_) => None,
            };
            Ok(Report::of(engine, &run, &view).with_shared(shared.as_ref()).run())
        })
        .await
    }

    /// Waits until a run has ended or needs a person, but not longer than this.
    pub async fn wait(&self, run: &RunId, longest: std::time::Duration) -> Result<(), Refusal> {
        if longest.is_zero() {
            return Ok(());
        }
        let following = match &self.access {
            Access::Owner(engine) => crate::door::Door::Owner(engine.clone()).follow(run, None).await?,
            Access::Reader(_) => match crate::door::Door::of_owner(&self.folder, |_| {}).await? {
                Some(door) => door.follow(run, None).await?,
                // No process executes the run, so nothing will happen.
                None => return Ok(()),
            },
        };
        // The updates are not of interest, only their end. If the time is over first, the run continues.
        drop(following.updates);
        let _ = tokio::time::timeout(longest, following.done).await;
        Ok(())
    }

    /// A run as it was after an event.
    pub async fn run_at(&self, run: &RunId, event: u64) -> Result<Run, Refusal> {
        let run = run.clone();
        self.read(move |engine| {
            let view = engine.view_at(&run, event)?;
            // At that moment a process executed the run.
            let shown = Report::new(engine.dialects(), &run, &view, true).run();
            Ok(Run { at_event: Some(event), ..shown })
        })
        .await
    }

    /// The data folder, to change.
    pub fn owner(&self) -> Result<&Arc<Engine>, Refusal> {
        match &self.access {
            Access::Owner(engine) => Ok(engine),
            Access::Reader(_) => {
                Err(Refusal::new(Code::Bug, "an operation that only reads tried to change something"))
            }
        }
    }

    /// Refuses a caller without a role.
    pub fn permit(&self, needed: Role) -> Result<(), Refusal> {
        match self.caller.roles.iter().any(|role| role.includes(needed)) {
            true => Ok(()),
            false => {
                let refusal = Refusal::new(Code::Forbidden, format!("this needs the role `{needed}`"));
                Err(refusal.help("ask an administrator for a token with that role"))
            }
        }
    }

    /// Where the runs of the caller are executed from.
    pub fn surroundings(&self) -> Surroundings {
        match &self.caller.from {
            Some(from) => Surroundings::clone(from),
            None => Surroundings::here(),
        }
    }

    /// The `windlass.toml` in force for a folder, else for the data folder.
    pub fn config(&self, folder: &Path) -> Option<PathBuf> {
        Config::find([folder.to_owned(), self.folder.clone()])
    }

    /// An id for something that the caller did not name.
    pub fn new_id(&self, by: &str) -> String {
        match &self.call {
            Some(call) => format!("{by}-{}", call.id),
            None => format!("{by}-{}", Clock::Real.now().0),
        }
    }

    /// The id of a run that the caller did not name.
    pub fn new_run_id(&self) -> Option<String> {
        self.call.as_ref().map(|call| call.id.clone())
    }

    /// Who acts: the caller, or the name that an administrator gives.
    pub fn actor(&self, by: Option<String>) -> Result<String, Refusal> {
        match by {
            Some(by) if *by != *self.caller.name => {
                self.permit(Role::Admin)?;
                Ok(by)
            }
            Some(_) | None => Ok(self.caller.name.to_string()),
        }
    }
}

/// Does something that blocks, off the threads that serve others.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Refusal::new(Code::Bug, "reading the data folder crashed")))
}

/// Data of a request as the engine knows it.
pub(crate) fn value(json: serde_json::Value) -> Result<Value, Refusal> {
    serde_json::from_value(json).map_err(|error| Refusal::new(Code::BadRequest, error.to_string()))
}
