//! Runs that were left are taken up again, followed or joined.

use super::claims::Claimed;
use super::{Engine, Error, Handle, finished, lock, standing_still};
use crate::clock::Clock;
use crate::drive::{Driver, Fatal, History, Mail, Patience, Replayed, Told};
use crate::host::Host;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use windlass_engine::{Effect, Input, Refused, RunId, View};
use windlass_executors::{end_orphans, orphaned_runs};
use windlass_ir::Value;
use windlass_ir::expr::ResultShapes;

/// So many runs are taken up at once; enough that they share commits.
const TAKEN_UP_AT_ONCE: usize = 256;

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
        let _claimed = self.claims.claim(id).await;
        if let Some(driven) = self.join(id, &changes, by).await? {
            return Ok(driven);
        }
        let replayed = self.replayed(id)?;
        self.take_up(replayed, Some((changes, by.into())), host, clock, patience).await
    }

    /// Drives a run that was left, as it is: what is paused stays so, and what has ended is not opened again.
    pub async fn drive(&self, id: &RunId) -> Result<Option<Handle>, Error> {
        let _claimed = self.claims.claim(id).await;
        if self.is_live(id) {
            return Ok(None);
        }
        let replayed = self.replayed(id)?;
        let Some((host, patience)) = self.house_for(&replayed.view) else { return Ok(None) };
        if replayed.view.ended_at.is_some() {
            return Ok(None);
        }
        self.take_up(replayed, None, host, Clock::Real, patience).await.map(Some)
    }

    /// Drives every run that is not finished and that nobody drives. Those whose plan or journal is hurt are left alone, which is
    /// said.
    pub async fn drive_all(self: &Arc<Self>) -> Result<Vec<(RunId, Error)>, Error> {
        self.desk().attend();
        self.desk().orders().into_iter().for_each(|order| self.desk().start(order));
        let (mut driven, mut left_alone) = (JoinSet::new(), Vec::new());
        for (run, _) in self.store.view.unfinished().await? {
            if driven.len() >= TAKEN_UP_AT_ONCE {
                left_alone.extend(driven.join_next().await.and_then(Result::ok).flatten());
            }
            let engine = self.clone();
            driven.spawn(async move {
                let drives = tokio::spawn({
                    let run = run.clone();
                    async move { engine.drive(&run).await }
                });
                let error = match drives.await {
                    Ok(driven) => driven.err()?,
                    Err(crash) => Error::Crashed { run: run.clone(), cause: crash.to_string() },
                };
                Some((run, error))
            });
        }
        while let Some(last) = driven.join_next().await {
            left_alone.extend(last.ok().flatten());
        }
        self.desk().all_taken_up();
        self.ended.notify_waiters();
        Ok(left_alone)
    }

    /// Held by whoever takes up a run that nobody drives.
    pub(crate) async fn claim(&self, run: &RunId) -> Claimed<'_> {
        self.claims.claim(run).await
    }

    /// What an earlier owner left running must be gone before its step starts again.
    fn end_orphans(&self, run: &RunId) -> Result<(), Error> {
        if self.children.is_none() {
            return Ok(());
        }
        let orphaned = match self.orphaned.get() {
            Some(orphaned) => orphaned,
            None => {
                let found = orphaned_runs(&self.folder)?;
                self.orphaned.get_or_init(|| found)
            }
        };
        if orphaned.contains(run) {
            end_orphans(&self.folder, |other| other == run)?;
        }
        Ok(())
    }

    /// The caller has claimed the run.
    pub(crate) async fn take_up(
        &self,
        replayed: Replayed,
        goes_on: Option<(Value, Arc<str>)>,
        host: Host,
        clock: Clock,
        patience: Patience,
    ) -> Result<Handle, Error> {
        let run = &replayed.run;
        self.end_orphans(run.id())?;
        self.desk().attend();
        self.desk().settle_accounts(run);
        let (paused, ended) = (run.is_paused(), run.outcome().is_some());
        // There a gate is done from its beginning whenever somebody goes on.
        let asks_anew = replayed.view.program().shapes() == ResultShapes::Speckit;
        let host = host.where_started(&replayed.view);
        let mut opened = self.driver(replayed, host, clock, patience);
        let outstanding = opened.driver.run.outstanding().into_iter();
        let owed: Vec<Input> = outstanding.filter_map(|owed| lost(&opened.driver, owed)).collect();
        let mut inputs = vec![Input::TakenUp];
        if let Some((changes, by)) = goes_on {
            if ended {
                inputs.push(Input::Reopen { inputs: changes, by: by.clone() });
            } else if is_change(&changes) || asks_anew {
                inputs.push(Input::Change { inputs: changes, by: by.clone() });
            }
            if paused {
                inputs.push(Input::Resume { by });
            }
        }
        inputs.extend(owed);
        match opened.driver.offer_all(inputs).await {
            Ok(Ok(())) => {}
            Ok(Err(Refused::NotFailed | Refused::Finished | Refused::Undoing)) => {
                return Err(finished(opened.driver.run.id(), &opened.driver.view));
            }
            Ok(Err(refused)) => return Err(Error::Refused(refused)),
            Err(Fatal(error)) => return Err(Error::Store(error)),
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
            let history = History::read(&store, &run).map_err(Fatal)?;
            Ok(crate::report::standing(&View::of(program, &history.events)))
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
        Effect::Dispatch(job) => Some(Input::Lost { job: job.key, started: true }),
        Effect::Abort(job) if driver.called_run(&job).is_some() => None,
        Effect::Abort(job) => Some(Input::Lost { job, started: true }),
        Effect::Ask { .. }
        | Effect::Release { .. }
        | Effect::Listen(_)
        | Effect::Deaf(_)
        | Effect::Conclude(_) => None,
    }
}
