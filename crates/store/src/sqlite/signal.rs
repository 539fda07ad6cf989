//! How far the journal is durable and how far the view has come: the writer tells, the view's thread listens.

use crate::error::Error;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Signal {
    /// Held for the lines of one call.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    durable: u64,
    /// Whether runs were removed since the view's thread last asked.
    removed: bool,
    /// Whether the view's thread may have something to do since it last looked.
    fresh: bool,
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

impl Signal {
    pub(super) fn new(durable: u64) -> Self {
        let state = State { durable, fresh: true, ..State::default() };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn publish(&self, durable: u64, removed: bool) {
        let mut state = self.state();
        (state.durable, state.fresh) = (durable, true);
        state.removed |= removed;
        drop(state);
        self.changed.notify_all();
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
            if std::mem::take(&mut state.fresh) {
                return Call::Apply { durable: state.durable };
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn rebuilt(&self, number: u64, result: Result<(), Error>) {
        let mut state = self.state();
        (state.rebuilds_done, state.fresh, state.trouble) = (number, true, result.err());
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
