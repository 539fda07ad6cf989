//! The time of the run as a whole: how long it may take, counted only while something other than a person can move it.

use super::Turn;
use super::state::{Place, RunClock};
use crate::event::What;
use crate::keys::{Path, Reason, Timestamp};

impl Turn<'_> {
    /// The run has taken too long: everything at work is told to stop.
    pub(super) fn run_out(&mut self) -> bool {
        let RunClock::Until(until) = self.state().clock else { return false };
        if until > self.now || !self.ticking || self.state().cancelling.is_some() {
            return false;
        }
        let running: Vec<Place> =
            self.state().jobs.iter().copied().filter(|place| self.is_running(*place)).collect();
        self.emit(What::TimerFired { path: Path::default(), reason: Reason::Timeout });
        running.into_iter().for_each(|place| self.abort(place));
        true
    }

    /// The clock goes on from where it was when the run was last heard of.
    pub(super) fn taken_up(&mut self) {
        if let RunClock::Until(until) = self.state().clock {
            let left = until.since(self.state().last_at);
            let until = self.now.plus(left);
            self.emit(What::TimerSet { path: Path::default(), reason: Reason::Timeout, until });
        }
    }

    /// Starts the clock of the run, stops it while only people can move the run, and lets it go on after that.
    pub(super) fn set_clock(&mut self) -> bool {
        let Some(limit) = self.run.program.plan.policy.timeout else { return false };
        let still = self.state().paused || self.state().jobs.is_empty();
        let until = match (self.state().clock, still) {
            (RunClock::None, false) => self.now.plus(limit),
            (RunClock::Still { left }, false) => self.now.plus(left),
            (RunClock::Until(_), true) => Timestamp::NEVER,
            (RunClock::None | RunClock::Still { .. }, true)
            | (RunClock::Until(_), false)
            | (RunClock::Over, _) => return false,
        };
        self.emit(What::TimerSet { path: Path::default(), reason: Reason::Timeout, until });
        true
    }
}
