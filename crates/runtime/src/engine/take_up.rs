//! Runs that were left are taken up again, followed or joined.

use super::{Engine, Error, Handle, finished, lock, standing_still};
use crate::clock::Clock;
use crate::drive::{Driver, Fatal, Mail, Patience, Told, replayed};
use crate::host::Host;
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass_engine::{Effect, Input, Refused, RunId};
use windlass_executors::end_orphans;
use windlass_ir::Value;

impl Engine {
    /// Takes a run up again, whatever stopped it: a crash, a pause, a failure. `changes` are laid over what it was started with.
    pub async fn resume(
        &self,
        id: &RunId,
        changes: Value,
        by: &str,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        // One at a time, so that two who want the same run do not both drive it.
        let _taking_up = self.taking_up.lock().await;
        if let Some(driven) = self.join(id, &changes, by).await? {
            return Ok(driven);
        }
        self.take_up(id, Some((changes, by.into())), host, clock, patience).await
    }

    /// Drives a run that was left, as it is: what is paused stays so, and what has ended is not opened again.
    pub async fn drive(&self, id: &RunId) -> Result<Option<Handle>, Error> {
        let _taking_up = self.taking_up.lock().await;
        let view = self.view(id)?;
        let Some(host) = self.house_for(&view) else { return Ok(None) };
        if self.is_live(id) || view.ended_at.is_some() {
            return Ok(None);
        }
        self.take_up(id, None, host, Clock::Real, Patience::Work).await.map(Some)
    }

    /// Drives every run that is not finished and that nobody drives; those whose plan or journal is hurt are left alone.
    pub async fn drive_all(&self) -> Result<Vec<(RunId, Result<Option<Handle>, Error>)>, Error> {
        self.desk().attend();
        self.desk().orders().into_iter().for_each(|order| self.desk().start(order));
        let mut driven = Vec::new();
        for (run, _) in self.store.journal.tails()?.unfinished {
            let handle = self.drive(&run).await;
            driven.push((run, handle));
        }
        self.desk().all_taken_up();
        self.ended.notify_waiters();
        Ok(driven)
    }

    /// Held by whoever takes up runs that nobody drives.
    pub(crate) async fn taking_up(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.taking_up.lock().await
    }

    /// The caller holds `taking_up`.
    pub(crate) async fn take_up(
        &self,
        id: &RunId,
        goes_on: Option<(Value, Arc<str>)>,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let program = self.program(id)?;
        let replayed = replayed(&self.store, id, &program)?;
        let run = &replayed.run;
        if self.children.is_some() {
            // What an earlier owner left running must be gone before its step starts again.
            end_orphans(&self.folder, |run| run == id)?;
        }
        self.desk().attend();
        self.desk().settle_accounts(run);
        let (paused, ended) = (run.is_paused(), run.outcome().is_some());
        let host = host.where_started(&replayed.view);
        let mut opened = self.driver(replayed, host, clock, patience);
        let outstanding = opened.driver.run.outstanding().into_iter();
        let owed: Vec<Input> = outstanding.filter_map(|owed| lost(&opened.driver, owed)).collect();
        let mut inputs = vec![Input::TakenUp];
        if let Some((changes, by)) = goes_on {
            if ended {
                inputs.push(Input::Reopen { inputs: changes, by: by.clone() });
            } else if is_change(&changes) {
                inputs.push(Input::Change { inputs: changes, by: by.clone() });
            }
            if paused {
                inputs.push(Input::Resume { by });
            }
        }
        for input in inputs.into_iter().chain(owed) {
            match opened.driver.offer(input).await {
                Ok(Ok(())) => {}
                Ok(Err(Refused::NotFailed | Refused::Finished | Refused::Undoing)) => {
                    return Err(finished(id, &opened.driver.view));
                }
                Ok(Err(refused)) => return Err(Error::Refused(refused)),
                Err(Fatal(error)) => return Err(Error::Store(error)),
            }
        }
        opened.driver.hear_what_is_owed().await.map_err(|Fatal(error)| Error::Store(error))?;
        opened.driver.call_on();
        Ok(opened.go())
    }

    /// Follows a run that is driven here already, and lets it go on if it was paused. None when nobody drives it.
    async fn join(&self, id: &RunId, changes: &Value, by: &str) -> Result<Option<Handle>, Error> {
        let Some(driven) = self.driven(id) else { return Ok(None) };
        let (reply, answer) = oneshot::channel();
        if is_change(changes) {
            let change = Input::Change { inputs: changes.clone(), by: by.into() };
            // That the run has ended meanwhile is what the next answer tells.
            let _ = driven.mail.send(Mail { told: Told::Input(change, None), reply: None });
        }
        let told = Told::Input(Input::Resume { by: by.into() }, None);
        let sent = driven.mail.send(Mail { told, reply: Some(reply) }).is_ok();
        if sent && matches!(answer.await, Ok(Ok(()) | Err(Refused::NotPaused))) {
            return Ok(Some(driven));
        }
        // It is just being left. Once that is over it can be taken up as any other.
        let _ = driven.done.await;
        Ok(None)
    }

    /// A run that this process drives, to be followed until it does not any more.
    pub(crate) fn driven(&self, id: &RunId) -> Option<Handle> {
        let (mail, followers) = lock(&self.live).get(id).cloned()?;
        let (updates, mut ending) = (followers.add(), followers.add());
        let (store, run, program) = (self.store.clone(), id.clone(), self.program(id).ok()?);
        let done = tokio::spawn(async move {
            while ending.recv().await.is_some() {}
            let replayed = replayed(&store, &run, &program).map_err(Fatal)?;
            Ok(crate::report::standing(&replayed.view))
        });
        Some(Handle { id: id.clone(), updates, done, mail })
    }

    /// Follows a run without a word in it. One that nobody drives stands as it is.
    pub fn watch(&self, id: &RunId) -> Result<Handle, Error> {
        match self.driven(id) {
            Some(driven) => Ok(driven),
            None => Ok(standing_still(id, &self.view(id)?)),
        }
    }
}

/// Whether anything is to be changed.
fn is_change(changes: &Value) -> bool {
    matches!(changes, Value::Map(map) if !map.is_empty())
}

/// What a crash left unanswered is lost, except for runs that were called: these are as they were.
fn lost(driver: &Driver, owed: Effect) -> Option<Input> {
    match owed {
        Effect::Dispatch(job) if driver.calls_itself(&job) => None,
        Effect::Dispatch(job) => Some(Input::Lost { job: job.key }),
        Effect::Abort(job) if driver.called_run(&job).is_some() => None,
        Effect::Abort(job) => Some(Input::Lost { job }),
        Effect::Ask { .. }
        | Effect::Release { .. }
        | Effect::Listen(_)
        | Effect::Deaf(_)
        | Effect::Conclude(_) => None,
    }
}
