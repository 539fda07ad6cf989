//! Runs with a follower: resumes and follows them, and waits for their end.

use super::{Engine, Error, finished};
use crate::clock::Clock;
use crate::follow::{Since, Updates, feed};
use crate::host::Host;
use crate::scheduler::{Message, Patience, Watch, Watching};
use crate::status;
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass_engine::{Input, Refused, Reply, Resume, RunId, View};
use windlass_ir::{RunStatus, Value};
use windlass_store::Entry;

/// How to continue a run.
#[derive(Debug)]
pub struct Resuming {
    /// Override its original inputs.
    pub changes: Value,
    pub by: Arc<str>,
    pub host: Host,
    pub clock: Clock,
    pub patience: Patience,
}

/// A run with a follower.
#[derive(Debug)]
pub struct Handle {
    pub id: RunId,
    pub updates: Updates,
    /// The status of the run when its follower leaves.
    pub done: oneshot::Receiver<Result<RunStatus, Error>>,
    engine: Arc<Engine>,
}

impl Handle {
    /// Sends an input to the run and waits until it is durable.
    pub async fn tell(&self, input: Input) -> Result<(), Error> {
        self.engine.tell(&self.id, input).await
    }

    /// Splits the handle into its updates and its final status.
    pub fn split(self) -> (Updates, impl Future<Output = Result<RunStatus, Error>>) {
        let (done, id, engine) = (self.done, self.id, self.engine);
        (self.updates, async move { ended(done, id, &engine).await })
    }

    /// Waits until the run ends or its follower leaves.
    pub async fn outcome(self) -> Result<RunStatus, Error> {
        drop(self.updates);
        ended(self.done, self.id, &self.engine).await
    }
}

/// The status of a run when its follower leaves. Reading a parked run returns the reason as an error.
async fn ended(
    done: oneshot::Receiver<Result<RunStatus, Error>>,
    id: RunId,
    engine: &Arc<Engine>,
) -> Result<RunStatus, Error> {
    match done.await {
        Ok(status) => status,
        Err(_) => {
            engine.check_run(&id).await?;
            Err(Error::OwnerGone(id))
        }
    }
}

impl Engine {
    pub(super) fn handle(
        self: &Arc<Self>,
        id: RunId,
        watching: Result<Watching, oneshot::error::RecvError>,
    ) -> Result<Handle, Error> {
        let Watching { updates, done } = watching.map_err(|_| Error::OwnerGone(id.clone()))?;
        Ok(Handle { id, updates, done, engine: self.clone() })
    }

    /// Continues a run after a crash, a pause or a failure. `changes` override its original inputs.
    pub async fn resume(
        self: &Arc<Self>,
        id: &RunId,
        changes: Value,
        by: &str,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let resuming = Resuming { changes, by: by.into(), host, clock, patience };
        self.resume_noting(id, resuming, Vec::new()).await
    }

    /// The same, and changes the ledger together with it.
    pub async fn resume_noting(
        self: &Arc<Self>,
        id: &RunId,
        resuming: Resuming,
        entries: Vec<Entry>,
    ) -> Result<Handle, Error> {
        let Resuming { changes, by, host, clock, patience } = resuming;
        let resume = Resume { wanted: Some((by, changes)), reopens: false };
        let (reply, watching) = oneshot::channel();
        let host = host.in_time(clock, patience);
        let watch = Watch { since: Since::Now, patience, reply };
        self.continue_noting(id, resume, host, Some(watch), entries).await?;
        self.handle(id.clone(), watching.await)
    }

    pub(crate) async fn continue_run(
        self: &Arc<Self>,
        id: &RunId,
        resume: Resume,
        host: Host,
        watch: Option<Watch>,
    ) -> Result<(), Error> {
        self.continue_noting(id, resume, host, watch, Vec::new()).await
    }

    async fn continue_noting(
        self: &Arc<Self>,
        id: &RunId,
        resume: Resume,
        host: Host,
        watch: Option<Watch>,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let host = self.equip(host);
        let run = id.clone();
        let was_active = self.presence.note_active(id);
        let reply = self.ask(entries, |reply| Message::Resume { run, resume, host, watch, reply }).await;
        // The refusal does not concern a run that was here before.
        if !was_active && !matches!(reply, Ok(Reply::Done)) {
            self.note_ended(id);
        }
        match reply? {
            Reply::Refused(Refused::NotFailed | Refused::Finished | Refused::Undoing) => {
                Err(finished(id, &self.view_of_run(id).await?))
            }
            reply => self.done(id, reply).await,
        }
    }

    /// Converts a reply to a result.
    pub(super) async fn done(self: &Arc<Self>, id: &RunId, reply: Reply) -> Result<(), Error> {
        match reply {
            Reply::Done | Reply::Published(_) | Reply::Earlier(_) => Ok(()),
            Reply::NoRun => Err(Error::NoRun(id.to_string())),
            Reply::NotShared(refused) => Err(Error::Budget(refused)),
            Reply::Refused(Refused::Finished) => Err(finished(id, &self.view_of_run(id).await?)),
            Reply::Refused(refused) => Err(Error::Refused(refused)),
            // Reading it finds out what is wrong with it.
            Reply::Unusable => self.check_run(id).await,
        }
    }

    /// Follows a run from one of its events on, without changing it. If no process executes the run, or it has ended, the follower
    /// receives only the events in the journal.
    pub async fn follow(
        self: &Arc<Self>,
        id: &RunId,
        since: Since,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let view = self.view_of_run(id).await?;
        if view.ended_at().is_some() {
            return Ok(self.follow_resting(id, &view, since));
        }
        let run = id.clone();
        let watch = |reply| Message::Watch { run, watch: Watch { since, patience, reply } };
        match self.request(watch).await {
            Ok(watching) => self.handle(id.clone(), Ok(watching)),
            Err(_) => {
                // The run may have ended since it was read.
                let view = self.view_of_run(id).await?;
                Ok(self.follow_resting(id, &view, since))
            }
        }
    }

    /// Follows a run that is not executed: the follower receives only the events in the journal.
    pub(super) fn follow_resting(self: &Arc<Self>, id: &RunId, view: &View, since: Since) -> Handle {
        let (sender, done) = oneshot::channel();
        let _ = sender.send(Ok(status::run_status(view, self.executed().contains(id))));
        let (follower, updates) = feed(self.clone(), id, since);
        follower.end();
        Handle { id: id.clone(), updates, done, engine: self.clone() }
    }
}
