//! Executes the runs of a folder: which ones, where their jobs run, and when to stop.

use super::{Engine, Error, lock};
use crate::config::Config;
use crate::coordinator::{Budgets, Machine};
use crate::host::Host;
use crate::presence::Executed;
use crate::scheduler::Message;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use windlass_engine::{CoordinatorState, RunId};
use windlass_executors::{Children, end_orphans, orphaned_runs};
use windlass_ir::Value;

/// The first and the longest pause between attempts to read the unfinished runs.
const UNREADABLE_FIRST: std::time::Duration = std::time::Duration::from_millis(50);

const UNREADABLE_MAX: std::time::Duration = std::time::Duration::from_secs(2);

/// What this process contributes to the execution of every run.
#[derive(Debug, Default)]
pub(super) struct Hosting {
    /// The host of runs that no client hosts.
    default: Mutex<Option<Host>>,
    pub budgets: Budgets,
    /// `None` without a data folder, and if it is open read-only.
    pub children: Option<Arc<Children>>,
    /// The last equipped host, which most runs share.
    last: Mutex<Weak<Host>>,
    /// The runs that an earlier owner left processes of, once the engine has searched for them.
    orphaned: OnceLock<BTreeSet<RunId>>,
}

impl Hosting {
    pub fn of(children: Option<Arc<Children>>) -> Self {
        Self { children, ..Self::default() }
    }
}

impl Engine {
    /// Executes every run of the folder from now on; `host` executes the jobs of runs that no client hosts. Loads all unfinished
    /// runs and returns those that cannot be executed.
    pub async fn serve_all(self: &Arc<Self>, host: Host) -> Result<Vec<(RunId, Error)>, Error> {
        self.set_default_host(host);
        let unfinished = self.unfinished().await?;
        self.presence.execute(Executed::anything());
        self.request(|reply| Message::ServeAll { unfinished, reply }).await
    }

    /// Executes every run of the folder from now on, except those that an earlier process left unfinished. Marks these as
    /// interrupted unless they were canceled, ends their processes and returns their number.
    pub async fn serve_new(self: &Arc<Self>, host: Host) -> Result<usize, Error> {
        self.set_default_host(host);
        let unfinished: Vec<RunId> = self.unfinished().await?.into_iter().map(|(run, _)| run).collect();
        let left = unfinished.clone();
        self.looking(move |engine| left.iter().try_for_each(|run| engine.end_orphans(run))).await?;
        let count = unfinished.len();
        self.presence.execute(Executed::AllBut(unfinished.iter().cloned().collect()));
        self.send(Message::ServeAllBut(unfinished));
        Ok(count)
    }

    /// The unfinished runs. Retries on errors, because the process may be briefly out of file descriptors.
    async fn unfinished(&self) -> Result<Vec<(RunId, windlass_store::Wake)>, Error> {
        let mut pause = UNREADABLE_FIRST;
        loop {
            match self.store.view.unfinished().await {
                Ok(unfinished) => return Ok(unfinished),
                Err(error) if pause > UNREADABLE_MAX => return Err(error.into()),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause *= 2;
        }
    }

    /// Sets the host of runs that no client hosts, such as those of triggers.
    pub fn set_default_host(&self, host: Host) {
        *lock(&self.hosting.default) = Some(host);
    }

    pub(super) fn default_host(&self) -> Option<Host> {
        lock(&self.hosting.default).clone()
    }

    /// The host of a run that no client hosts. `None` if this process cannot execute it.
    pub(crate) fn default_host_for(&self, about: &Value) -> Option<Host> {
        let mut host = self.default_host()?;
        let mocked = about.get("scripted") == Some(&Value::Bool(true));
        if mocked && host.script.is_none() {
            return None;
        }
        let limits = host.limits;
        if let Some(config) = Config::recorded(about).and_then(|file| Config::read(&file).ok()) {
            host = host.with_config(config);
            host.limits = limits;
        }
        Some(host)
    }

    /// Adds what this process contributes to the host of a run.
    pub(crate) fn equip(&self, mut host: Host) -> Arc<Host> {
        let mut last = lock(&self.hosting.last);
        let shared = last.upgrade();
        if let Some(children) = &self.hosting.children {
            host.note_children(children, shared.as_ref().map(|shared| &shared.shell));
        }
        shared.filter(|shared| shared.is_like(&host)).unwrap_or_else(|| {
            let host = Arc::new(host);
            *last = Arc::downgrade(&host);
            host
        })
    }

    pub(crate) fn policy(&self, host: Arc<Host>) -> Machine {
        Machine { host, budgets: self.hosting.budgets.clone(), dialects: self.dialects }
    }

    pub(crate) fn children(&self) -> Option<&Arc<Children>> {
        self.hosting.children.as_ref()
    }

    pub(crate) fn note_budgets(&self, state: &CoordinatorState) {
        self.hosting.budgets.note(state);
    }

    /// Ends the processes that an earlier owner left running, before their steps start again. Blocks.
    pub(crate) fn end_orphans(&self, run: &RunId) -> Result<(), Error> {
        if self.hosting.children.is_none() {
            return Ok(());
        }
        let orphaned = match self.hosting.orphaned.get() {
            Some(orphaned) => orphaned,
            None => {
                let found = orphaned_runs(&self.folder)?;
                self.hosting.orphaned.get_or_init(|| found)
            }
        };
        if orphaned.contains(run) {
            end_orphans(&self.folder, |other| other == run)?;
        }
        Ok(())
    }

    /// Waits until no run is busy and every client has received the end of its run. With `timers`, also waits until no run waits
    /// for a timer.
    pub async fn idle(&self, timers: bool) {
        loop {
            // If the scheduler has stopped, there is nothing to wait for.
            let _ = self.request(|reply| Message::Idle { timers, reply }).await;
            if self.guests.one_left().await {
                return;
            }
        }
    }

    /// Stops executing runs: starts nothing new and ends all jobs. Their outcomes are durable when this returns.
    pub async fn stop(&self) {
        // If the scheduler has stopped, there is nothing to wait for.
        let _ = self.request(Message::Stop).await;
        self.presence.execute(Executed::nothing());
    }

    /// Whether any run is busy in this process.
    pub async fn is_executing(&self) -> bool {
        self.read_runs(|runs| runs.present().any(|run| runs.is_busy(run))).await.unwrap_or(false)
    }

    /// Whether this process has started or resumed the run and it is unfinished.
    pub fn is_live(&self, id: &RunId) -> bool {
        self.presence.is_active(id)
    }

    /// The runs that the owner of the folder executes. Blocks if that is another process.
    pub fn executed(&self) -> Executed {
        self.presence.executed(&self.folder)
    }

    pub(crate) fn note_executed(&self, id: &RunId) {
        self.presence.note_executed(id);
    }

    pub(crate) fn note_ended(&self, id: &RunId) {
        self.presence.note_ended(id);
        self.artifacts.release(id);
    }
}
