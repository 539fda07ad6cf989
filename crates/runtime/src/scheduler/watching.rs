//! Followers of runs: what each is told, and when it has seen enough. How long a command waits is the command's own decision.

use super::Scheduler;
use crate::clock::now;
use crate::engine::Error;
use crate::follow::{Followers, Since, Update, Updates, feed};
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
    /// For every deadline, that of a gate too, but not for people alone.
    Deadlines,
    /// Not for people: gates that wait longer than a minute, signals, pauses.
    Work,
}

/// Waits for people that end within this are waited for.
const SHORT: Duration = Duration::from_secs(60);

/// What was printed before a follower leaves is shown within this.
const PRINTING_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Someone who wants to follow a run.
#[derive(Debug)]
pub(crate) struct Watch {
    pub since: Since,
    pub patience: Patience,
    pub reply: oneshot::Sender<Watching>,
}

/// One who follows a run.
#[derive(Debug)]
pub(crate) struct Watching {
    pub updates: Updates,
    /// How the run stands when the follower has seen enough.
    pub done: oneshot::Receiver<Result<RunStatus, Error>>,
}

/// The followers of one run, and where its jobs print.
#[derive(Default)]
pub(super) struct Watched {
    pub followers: Followers,
    waiting: Vec<Waiting>,
    output: Option<Output>,
    printing: Option<JoinHandle<()>>,
    /// It is paused because it was to go no further.
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

    /// Where jobs print; the channel is made when the first one needs it.
    pub fn output(&mut self, make: impl FnOnce(Followers) -> (Output, JoinHandle<()>)) -> Output {
        if self.output.is_none() {
            let (output, printing) = make(self.followers.clone());
            (self.output, self.printing) = (Some(output), Some(printing));
        }
        self.output.clone().unwrap_or_else(Output::nowhere)
    }

    /// Nothing prints any more.
    pub fn rest_output(&mut self) {
        self.output = None;
    }

    /// Lets those go who have seen enough, once everything that was printed before has been shown.
    fn let_go(&mut self, status: RunStatus, enough: impl Fn(Patience) -> bool) {
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
                // It may have gone away.
                let _ = done.send(Ok(status));
            }
        };
        match printing {
            None => leave(),
            Some(printing) => drop(tokio::spawn(async move {
                // What takes longer is in the log.
                let _ = tokio::time::timeout(PRINTING_MAX, printing).await;
                leave();
            })),
        }
    }

    /// Nothing more can be said about the run.
    pub fn fail(self, error: &windlass_store::Error) {
        for Waiting { follower, done, .. } in self.waiting {
            self.followers.remove(&follower);
            // It may have gone away.
            let _ = done.send(Err(Error::Store(error.clone())));
        }
    }
}

impl Scheduler {
    /// Follows a run.
    pub(super) fn add_watch(&mut self, run: &RunId, watch: Watch) {
        let Some(engine) = self.engine() else { return };
        let watched = self.watched.entry(run.clone()).or_default();
        let (follower, updates) = feed(engine, run, watch.since);
        watched.followers.add(follower.clone());
        let (done, ended) = oneshot::channel();
        watched.waiting.push(Waiting { patience: watch.patience, follower, done });
        // Whoever asked may have gone away.
        let _ = watch.reply.send(Watching { updates, done: ended });
    }

    /// Follows a run that is in memory, or one that the follower waits for as long as it takes.
    pub(super) fn watch(&mut self, run: &RunId, watch: Watch) {
        let waits = watch.patience == Patience::Everything && self.stops.is_empty();
        if waits || self.runs.presence(run) != Presence::Resting {
            self.add_watch(run, watch);
            self.look_at_followers(run);
        }
    }

    /// The process is about to end: followers of runs that rest leave. Those of other runs leave when their run comes to rest.
    pub(super) fn leave_resting(&mut self) {
        let resting = |run: &RunId| self.runs.presence(run) == Presence::Resting;
        let resting: Vec<RunId> = self.watched.keys().filter(|run| resting(run)).cloned().collect();
        for run in resting {
            if let Some(watched) = self.watched.get_mut(&run) {
                watched.let_go(RunStatus::Waiting, |_| true);
            }
            self.forget_unwatched(&run);
        }
    }

    /// A follower that came late sees a run that has come to rest already.
    fn look_at_followers(&mut self, run: &RunId) {
        let Some(live) = self.runs.live(run) else { return };
        // What is not durable yet is told when it is.
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

    /// Nothing moves the run but time or people: followers that do not wait for that leave.
    pub(super) fn come_to_rest(&mut self, run: &RunId, still: Still) {
        // A mock client may have planned something since.
        if self.runs.is_busy(run) {
            return;
        }
        let at = self.runs.time_of(run, now()).unwrap_or_default();
        let stopping = !self.stops.is_empty();
        let Some(watched) = self.watched.get_mut(run) else { return };
        let status = if still.by_itself { RunStatus::Running } else { RunStatus::Waiting };
        let reached = watched.reached;
        let soon = still.due.is_some_and(|due: Timestamp| due <= at.plus(SHORT));
        watched.let_go(status, |patience| match patience {
            _ if stopping || reached => true,
            Patience::Everything => false,
            Patience::Deadlines => still.due.is_none(),
            Patience::Work => !(still.by_itself || soon) || still.due.is_none(),
        });
        self.forget_unwatched(run);
    }

    pub(super) fn concluded(&mut self, run: &RunId, outcome: &Outcome) {
        let status = match outcome {
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => RunStatus::Success,
            Outcome::Failed(_) => RunStatus::Failed,
            Outcome::Cancelled(_) => RunStatus::Cancelled,
        };
        // Hooks are part of a run: its followers hear what becomes of them.
        if self.runs.live(run).is_some_and(Run::is_working) {
            return;
        }
        if self.decisions.values().any(|(mocked, _)| mocked == run) {
            // Refused decisions are shown before the end.
            self.ending.insert(run.clone(), outcome.clone());
            return;
        }
        if let Some(watched) = self.watched.get_mut(run) {
            watched.let_go(status, |_| true);
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
