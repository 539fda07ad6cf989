//! The way to a data folder: this process owns it, or another one does.

use crate::operation::Effect;
use crate::perform::{Caller, Context, Perform, admit, audited};
use crate::refusal::Refusal;
use crate::socket::{Client, Execute, OWNER_WAIT, OWNER_WAIT_MAX, Remark};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use windlass_dialects::DIALECTS;
use windlass_ir::RunStatus;
use windlass_runtime::{
    Beginning, Clock, Durability, Engine, Error, Handle, Lineage, Patience, Resuming, RunId, Since, Start,
    Updates, check_folder, new_id,
};

/// A data folder as a command finds it.
#[derive(Clone, Debug)]
pub enum Door {
    /// This process is the owner.
    Owner(Arc<Engine>),
    /// Another one is.
    Client(Client),
}

/// A run that is followed: executed here, or by another process.
#[derive(Debug)]
pub struct Following {
    pub id: RunId,
    pub updates: Updates,
    /// How the run is doing when its follower has seen enough.
    pub done: tokio::task::JoinHandle<Result<RunStatus, Refusal>>,
}

impl Door {
    /// Becomes the owner of a folder, or the client of the one it has.
    pub async fn open(folder: &Path, durability: Durability, report: Remark) -> Result<Self, Refusal> {
        let client = Client::of(folder, report);
        let deadline = Instant::now() + OWNER_WAIT_MAX;
        loop {
            match Engine::open(folder, durability, DIALECTS) {
                Ok(engine) => return Ok(Self::Owner(engine)),
                Err(Error::Owned(_)) => {}
                Err(error) => return Err(error.into()),
            }
            if client.finds_owner().await || Instant::now() >= deadline {
                return Ok(Self::Client(client));
            }
            // The owner is about to listen, or about to end, or only writes something: that takes a moment.
            tokio::time::sleep(OWNER_WAIT).await;
        }
    }

    /// The owner of a folder, if it has one.
    pub async fn of_owner(folder: &Path, report: Remark) -> Result<Option<Self>, Refusal> {
        check_folder(folder)?;
        let client = Client::of(folder, report);
        Ok(client.finds_owner().await.then_some(Self::Client(client)))
    }

    /// Calls an operation, here or in the process that owns the folder.
    pub async fn call<T: Perform>(&self, request: T, caller: Caller) -> Result<T::Reply, Refusal> {
        match self {
            Self::Owner(engine) => admit(request, &Context::owning(engine.clone(), caller)).await,
            Self::Client(client) => client.call(&request, &caller).await,
        }
    }

    /// Has a run executed or followed.
    pub async fn execute(&self, asked: Execute) -> Result<Following, Refusal> {
        match self {
            Self::Owner(engine) => Ok(execute(engine, asked).await?),
            Self::Client(client) => client.execute(asked).await,
        }
    }

    /// Follows a run that a process executes.
    pub async fn follow(&self, run: &RunId, after: Option<u64>) -> Result<Following, Refusal> {
        self.execute(Execute::Follow { run: run.clone(), after, wait: false }).await
    }
}

/// Calls an operation on a data folder. One that changes nothing is performed in this process.
pub async fn call<T: Perform>(
    folder: &Path,
    request: T,
    caller: Caller,
    report: Remark,
) -> Result<T::Reply, Refusal> {
    match T::ABOUT.effect {
        Effect::Pure | Effect::Reads => admit(request, &Context::reading(folder, caller)).await,
        Effect::Repairs => match Door::of_owner(folder, report).await? {
            Some(door) => door.call(request, caller).await,
            None => admit(request, &Context::reading(folder, caller)).await,
        },
        Effect::Changes => Door::open(folder, Durability::Disk, report).await?.call(request, caller).await,
    }
}

/// Executes or follows a run in this process, which owns the folder.
pub(crate) async fn execute(engine: &Arc<Engine>, asked: Execute) -> Result<Following, Error> {
    let handle = match asked {
        Execute::Start { plan, source, overrides, file, inputs, by, run, from, beginning, .. } => {
            let run = match run {
                Some(run) => run,
                None => new_id(&Clock::Real)?,
            };
            let about = json!({"workflow": plan.header.id, "run_id": run});
            let entries = audited(engine, "runs.start", &about, by.as_deref().unwrap_or_default());
            let start = Start {
                run: Some(run),
                inputs,
                by: by.map(Into::into),
                source,
                overrides,
                file,
                host: from.host()?,
                clock: from.clock(),
                patience: from.patience(),
                claims: Vec::new(),
                lineage: Lineage::default(),
                parents: Vec::new(),
                budgets: Vec::new(),
                beginning: Beginning { entries, ..*beginning },
            };
            engine.start(&plan, start).await?
        }
        Execute::Resume { run, changes, by, from } => {
            let entries = audited(engine, "runs.resume", &json!({"run_id": run}), &by);
            let (host, clock, patience) = (from.host()?, from.clock(), from.patience());
            let resuming = Resuming { changes, by: by.into(), host, clock, patience };
            engine.resume_noting(&run, resuming, entries).await?
        }
        Execute::Follow { run, after, wait } => {
            let since = after.map_or(Since::Now, Since::Event);
            let patience = if wait { Patience::Everything } else { Patience::Work };
            engine.follow(&run, since, patience).await?
        }
    };
    Ok(following(handle))
}

fn following(handle: Handle) -> Following {
    let id = handle.id.clone();
    let (updates, done) = handle.split();
    Following { id, updates, done: tokio::spawn(async move { done.await.map_err(Refusal::from) }) }
}
