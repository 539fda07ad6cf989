//! The commands that wait for the writer. It takes all of them at once, which makes a group commit.

use crate::blobs::BlobId;
use crate::journal::{Append, Appended};
use crate::ledger::Entry;
use crate::pending::Answer;
use crate::plans::StoredPlan;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windlass_engine::Timestamp;

pub(super) enum Command {
    Append(Append, Answer<Appended>),
    /// All of them or none.
    AppendAll(Vec<Append>, Answer<Vec<Appended>>),
    Plan(Box<StoredPlan>, Answer<()>),
    /// Change the ledger.
    Ledger(Vec<Entry>, Answer<()>),
    /// Remove documents of the ledger whose time has passed.
    Expire(Timestamp, Answer<()>),
    /// Remove plans that no run is pinned to.
    ForgetPlans(Vec<String>, Answer<usize>),
    /// From now on, remember which values new records refer to.
    BeginSweep(Answer<()>),
    /// Remove the values that no new record refers to.
    Sweep(Vec<BlobId>, Answer<Vec<BlobId>>),
    /// Rebuild all rows.
    Rebuild(Answer<()>),
    /// Delete the records of removed runs.
    Reclaim(Answer<()>),
    /// Return free space to the file system.
    Compact(Answer<()>),
    /// Finish, checkpoint, answer, end.
    Close(Answer<()>),
}

impl Command {
    pub(super) fn appends(&self) -> &[Append] {
        match self {
            Self::Append(append, _) => std::slice::from_ref(append),
            Self::AppendAll(appends, _) => appends,
            Self::Plan(..)
            | Self::Ledger(..)
            | Self::Expire(..)
            | Self::ForgetPlans(..)
            | Self::BeginSweep(_)
            | Self::Sweep(..)
            | Self::Rebuild(_)
            | Self::Reclaim(_)
            | Self::Compact(_)
            | Self::Close(_) => &[],
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Plan(plan, _) => plan.plan.len() + plan.source.len() + plan.overrides.len(),
            other => other.appends().iter().map(Append::bytes).sum(),
        }
    }
}

/// The result of waiting for commands.
pub(super) enum Taken {
    /// The batch is not empty.
    Batch,
    /// No command arrived in time.
    Idle,
    /// Nothing is left and nothing more will arrive.
    Closed,
}

#[derive(Default)]
pub(super) struct Queue {
    /// Held to add a command or to take a batch, never during a commit.
    line: Mutex<Line>,
    arrived: Condvar,
}

#[derive(Default)]
struct Line {
    waiting: VecDeque<Command>,
    /// Total of all waiting commands.
    bytes: usize,
    /// The writer waits for a signal; while it commits, none is needed.
    asleep: bool,
    closed: bool,
}

impl Queue {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After the end a command is dropped with its reply, so its caller learns that the store has stopped.
    pub(super) fn push(&self, command: Command) {
        let mut line = self.line();
        if line.closed {
            return;
        }
        line.bytes += command.bytes();
        line.waiting.push_back(command);
        if std::mem::take(&mut line.asleep) {
            drop(line);
            self.arrived.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.line().closed = true;
        self.arrived.notify_one();
    }

    /// Closes the queue and drops the remaining commands.
    pub(super) fn abandon(&self) {
        let mut line = self.line();
        line.closed = true;
        line.bytes = 0;
        line.waiting.clear();
    }

    /// Moves all waiting commands into the empty batch, up to `bytes_max` but at least one; waits for them at most
    /// for `patience`.
    pub(super) fn take(
        &self,
        batch: &mut VecDeque<Command>,
        bytes_max: usize,
        patience: Option<Duration>,
    ) -> Taken {
        let mut line = self.line();
        while line.waiting.is_empty() {
            if line.closed {
                return Taken::Closed;
            }
            line.asleep = true;
            let Some(patience) = patience else {
                line = self.arrived.wait(line).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (woken, timeout) =
                self.arrived.wait_timeout(line, patience).unwrap_or_else(PoisonError::into_inner);
            line = woken;
            if timeout.timed_out() && line.waiting.is_empty() && !line.closed {
                return Taken::Idle;
            }
        }
        line.asleep = false;
        line.fill(batch, bytes_max);
        Taken::Batch
    }
}

impl Line {
    /// Nearly always this is all of them: then the two are swapped, which keeps the lock short.
    fn fill(&mut self, batch: &mut VecDeque<Command>, bytes_max: usize) {
        if self.bytes <= bytes_max {
            std::mem::swap(&mut self.waiting, batch);
            self.bytes = 0;
            return;
        }
        let mut bytes = 0;
        while let Some(command) = self.waiting.front()
            && (batch.is_empty() || bytes + command.bytes() <= bytes_max)
        {
            bytes += command.bytes();
            batch.extend(self.waiting.pop_front());
        }
        self.bytes -= bytes;
    }
}
