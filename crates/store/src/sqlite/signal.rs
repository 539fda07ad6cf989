//! How far the journal is durable and how far the view has come: the writer tells, the view's thread listens.

use crate::error::Error;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The view may stay so many records behind, for so long: many records of one run then cost one row, and the writer is left
/// alone. Whoever reads folds in what is missing.
const BEHIND_MAX: u64 = 1_000;
const BEHIND_FOR: Duration = Duration::from_millis(50);

pub(super) struct Signal {
    /// Held for the lines of one call.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    durable: u64,
    /// What the view's thread has been told to apply.
    called: u64,
    /// Whether runs were removed since the view's thread last asked.
    removed: bool,
    /// When the view's thread is to look, where that is not at once; none while it has nothing to do.
    due: Option<Instant>,
    rebuilds_wanted: u64,
    rebuilds_done: u64,
    /// Why the last rebuild failed.
    trouble: Option<Error>,
    stopped: bool,
}

/// What the view's thread is to do next.
pub(super) enum Call {
    Apply { durable: u64 },
    Rebuild { number: u64, durable: u64 },
    Stop,
}

impl State {
    /// Says whether that changes when the view's thread looks.
    fn make_due(&mut self, at_once: bool) -> bool {
        let now = Instant::now();
        let far = at_once || self.durable.saturating_sub(self.called) >= BEHIND_MAX;
        let due = if far { now } else { now + BEHIND_FOR };
        let sooner = self.due.is_none_or(|planned| far && planned > now);
        if sooner {
            self.due = Some(due);
        }
        sooner
    }
}

impl Signal {
    pub(super) fn new(durable: u64) -> Self {
        let state = State { durable, called: durable, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// For the view's thread, before it begins: so far its rows go.
    pub(super) fn begin(&self, applied: u64) {
        let mut state = self.state();
        state.called = applied;
        if state.durable != applied {
            state.make_due(false);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn publish(&self, durable: u64, removed: bool) {
        let mut state = self.state();
        state.durable = durable;
        state.removed |= removed;
        if state.make_due(removed) {
            drop(state);
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn has_removed(&self) -> bool {
        std::mem::take(&mut self.state().removed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// For the view's thread: waits until there is something to do.
    pub(super) fn next(&self) -> Call {
        let mut state = self.state();
        loop {
            if state.stopped {
                return Call::Stop;
            }
            if state.rebuilds_wanted > state.rebuilds_done {
                return Call::Rebuild { number: state.rebuilds_wanted, durable: state.durable };
            }
            let Some(due) = state.due else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                (state.due, state.called) = (None, state.durable);
                return Call::Apply { durable: state.durable };
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn rebuilt(&self, number: u64, result: Result<(), Error>) {
        let mut state = self.state();
        (state.rebuilds_done, state.due, state.trouble) = (number, Some(Instant::now()), result.err());
        drop(state);
        self.changed.notify_all();
    }

    /// Asks for a rebuild and waits until it is done.
    pub(super) fn rebuild(&self) -> Result<(), Error> {
        let mut state = self.state();
        state.rebuilds_wanted += 1;
        let number = state.rebuilds_wanted;
        self.changed.notify_all();
        while state.rebuilds_done < number && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.trouble {
            Some(error) => Err(error.clone()),
            None if state.rebuilds_done < number => Err(Error::Stopped),
            None => Ok(()),
        }
    }
}
