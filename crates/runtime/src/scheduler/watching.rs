//! Followers of runs: updates them, and decides when each of them leaves. Each command chooses how long it waits.

use super::Scheduler;
use crate::clock::now;
use crate::engine::Error;
use crate::follow::{Followers, Since, Update, Updates, feed};
use crate::status;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_engine::{Event, Outcome, Presence, Run, RunId, Still, Timestamp, What};
use windlass_executors::Output;
use windlass_ir::{Duration, RunStatus};

/// How long a follower waits for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until the run has ended.
    Everything,
    /// Until only people can move the run. Waits for every deadline, including those of gates.
    Deadlines,
    /// Until the run waits for people: at a gate for more than a minute, for a signal, or paused.
    Work,
}

/// `Patience::Work` includes waits for people that end within this time.
const SHORT: Duration = Duration::from_secs(60);

/// The longest time that a leaving follower waits for remaining output.
const PRINTING_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// A request to follow a run.
#[derive(Debug)]
pub(crate) struct Watch {
    pub since: Since,
    pub patience: Patience,
    pub reply: oneshot::Sender<Watching>,
}

/// The reply to a [`Watch`].
#[derive(Debug)]
pub(crate) struct Watching {
    pub updates: Updates,
    /// The status of the run when the follower leaves.
    pub done: oneshot::Receiver<Result<RunStatus, Error>>,
}

/// The followers of one run, and where its jobs print.
#[derive(Default)]
pub(super) struct Watched {
    pub followers: Followers,
    waiting: Vec<Waiting>,
    output: Option<Output>,
    printing: Option<JoinHandle<()>>,
    /// The run is paused because it reached its target step.
    reached: bool,
}

struct Waiting {
    patience: Patience,
    follower: crate::follow::Follower,
    done: oneshot::Sender<Result<RunStatus, Error>>,
}

impl Watched {
    pub fn tell(&mut self, seq: u64, events: &Arc<Vec<Event>>) {
        for event in events.iter() {
            match event.what {
                What::Paused { reached, .. } => self.reached = reached,
                What::Resumed { .. } => self.reached = false,
                _ => {}
            }
        }
        self.followers.happened(seq, events);
    }

    pub fn notice(&self, text: &str) {
        self.followers.tell(&Update::Notice(text.to_owned()));
    }

    /// The output channel for jobs. The first job creates it.
    pub fn output(&mut self, make: impl FnOnce(Followers) -> (Output, JoinHandle<()>)) -> Output {
        if self.output.is_none() {
            let (output, printing) = make(self.followers.clone());
            (self.output, self.printing) = (Some(output), Some(printing));
        }
        self.output.clone().unwrap_or_else(Output::nowhere)
    }

    /// Closes the output channel.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// Removes the followers for which `enough` holds, after they have received the remaining output.
    fn release(&mut self, status: RunStatus, enough: impl Fn(Patience) -> bool) {
        let (leaving, staying) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting: &Waiting| enough(waiting.patience));
        self.waiting = staying;
        let leaving: Vec<Waiting> = leaving;
        if leaving.is_empty() {
            return;
        }
        self.output = None;
        let (printing, followers) = (self.printing.take(), self.followers.clone());
        let leave = move || {
            for Waiting { follower, done, .. } in leaving {
                followers.remove(&follower);
                // The client may have disconnected.
                let _ = done.send(Ok(status));
            }
        };
        match printing {
            None => leave(),
            Some(printing) => drop(tokio::spawn(async move {
                // The log has the rest.
                let _ = tokio::time::timeout(PRINTING_MAX, printing).await;
                leave();
            })),
        }
    }

    /// Removes all followers with an error.
    pub fn fail(self, error: &windlass_store::Error) {
        for Waiting { follower, done, .. } in self.waiting {
            self.followers.remove(&follower);
            // The client may have disconnected.
            let _ = done.send(Err(Error::Store(error.clone())));
        }
    }
}

impl Scheduler {
    pub(super) fn add_watch(&mut self, run: &RunId, watch: Watch) {
        let Some(engine) = self.engine() else { return };
        let watched = self.watched.entry(run.clone()).or_default();
        let (follower, updates) = feed(engine, run, watch.since);
        watched.followers.add(follower.clone());
        let (done, ended) = oneshot::channel();
        watched.waiting.push(Waiting { patience: watch.patience, follower, done });
        // The client may have disconnected.
        let _ = watch.reply.send(Watching { updates, done: ended });
    }

    /// Follows a run that is in memory. Also follows a resting run if the follower waits for its end.
    pub(super) fn watch(&mut self, run: &RunId, watch: Watch) {
        let waits = watch.patience == Patience::Everything && self.stops.is_empty();
        if waits || self.runs.presence(run) != Presence::Resting {
            self.add_watch(run, watch);
            self.release_late_follower(run);
        }
    }

    /// Removes the followers of resting runs, because the process is about to end. Other followers leave when their run rests.
    pub(super) fn release_resting(&mut self) {
        let resting = |run: &RunId| self.runs.presence(run) == Presence::Resting;
        let resting: Vec<RunId> = self.watched.keys().filter(|run| resting(run)).cloned().collect();
        for run in resting {
            if let Some(watched) = self.watched.get_mut(&run) {
                watched.release(RunStatus::Waiting, |_| true);
            }
            self.forget_unwatched(&run);
        }
    }

    /// Removes a new follower if the run has already come to rest.
    fn release_late_follower(&mut self, run: &RunId) {
        let Some(live) = self.runs.live(run) else { return };
        // The run releases its followers once its last events are durable.
        if self.runs.is_busy(run) {
            return;
        }
        match live.outcome().cloned() {
            Some(outcome) => self.concluded(run, &outcome),
            None => {
                let still = Still { due: live.next_deadline(), by_itself: live.moves_by_itself() };
                self.come_to_rest(run, still);
            }
        }
    }

    /// Only time or people can move the run. Removes followers that do not wait for that.
    pub(super) fn come_to_rest(&mut self, run: &RunId, still: Still) {
        // A mock client may have planned an input since.
        if self.runs.is_busy(run) {
            return;
        }
        let at = self.runs.time_of(run, now()).unwrap_or_default();
        let stopping = !self.stops.is_empty();
        let Some(watched) = self.watched.get_mut(run) else { return };
        let status = if still.by_itself { RunStatus::Running } else { RunStatus::Waiting };
        let reached = watched.reached;
        let soon = still.due.is_some_and(|due: Timestamp| due <= at.plus(SHORT));
        watched.release(status, |patience| match patience {
            _ if stopping || reached => true,
            Patience::Everything => false,
            Patience::Deadlines => still.due.is_none(),
            Patience::Work => !(still.by_itself || soon) || still.due.is_none(),
        });
        self.forget_unwatched(run);
    }

    pub(super) fn concluded(&mut self, run: &RunId, outcome: &Outcome) {
        // Followers stay until the hooks of the run have ended.
        if self.runs.live(run).is_some_and(Run::is_working) {
            return;
        }
        if self.decisions.values().any(|(mocked, _)| mocked == run) {
            // Followers see refused decisions before the end.
            self.ending.insert(run.clone(), outcome.clone());
            return;
        }
        if let Some(watched) = self.watched.get_mut(run) {
            watched.release(status::of_outcome(outcome), |_| true);
        }
        self.forget_unwatched(run);
    }

    fn forget_unwatched(&mut self, run: &RunId) {
        if self.watched.get(run).is_some_and(|watched| watched.waiting.is_empty() && watched.output.is_none())
        {
            self.watched.remove(run);
        }
    }

    pub(super) fn notice(&self, run: &RunId, text: &str) {
        if let Some(watched) = self.watched.get(run) {
            watched.notice(text);
        }
    }
}
