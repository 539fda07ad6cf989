//! The time of the run as a whole: how long it may take, counted only while something other than a person can move it.

use super::Turn;
use super::state::{Place, Role, RunClock};
use crate::event::{Reach, What};
use crate::keys::{Path, Reason, Timestamp};

/// Who pauses a run that has come as far as it was to go.
const UNTIL: &str = "until";

impl Turn<'_> {
    /// The time has come that the run was to begin at: now it asks for what it shares.
    pub(super) fn begin(&mut self) -> bool {
        let Some(at) = self.state().admission.begins_at else { return false };
        if at > self.now || !self.ticking || self.state().stands_still() || self.state().stop.is_some() {
            return false;
        }
        self.emit(What::TimerFired { path: Path::default(), reason: Reason::Wait });
        self.apply();
        true
    }

    /// Pauses the run once the step has settled that it was to go to.
    pub(super) fn reached(&mut self, place: Place) {
        let Some(Reach::Until(step)) = &self.state().reach else { return };
        let instance = self.at(place);
        let is_own = instance.unit == 0 && instance.frame.is_none() && instance.role == Role::Body;
        let known = self.run.program.plan.steps.get(instance.step.index());
        if is_own && known.is_some_and(|known| known.id == *step && !known.implicit) {
            self.emit(What::Paused { by: UNTIL.into(), reached: true });
        }
    }

    /// The run has taken too long: everything at work is told to stop.
    pub(super) fn run_out(&mut self) -> bool {
        let RunClock::Until(until) = self.state().clock else { return false };
        if self.state().timers.next().is_some_and(|(other, ..)| other < until) {
            return false;
        }
        if until > self.now || !self.ticking || self.state().stands_still() || self.state().stop.is_some() {
            return false;
        }
        self.emit(What::TimerFired { path: Path::default(), reason: Reason::Timeout });
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
        let state = self.state();
        // A gate alone stops the time, and so do a pause and the undoing of what was done.
        let only_people =
            state.index.jobs.is_empty() && state.index.sleeping.is_empty() && state.index.delayed.is_empty();
        let still = state.stands_still() || only_people || state.undo.has_begun;
        let until = match (state.clock, still) {
            (RunClock::None, false) => self.now.plus(limit),
            (RunClock::Still { left }, false) => self.now.plus(left),
            // Time that is up already does not stand still any more.
            (RunClock::Until(until), true) if until > self.now => Timestamp::NEVER,
            (RunClock::None | RunClock::Still { .. }, true)
            | (RunClock::Until(_), _)
            | (RunClock::Over, _) => return false,
        };
        self.emit(What::TimerSet { path: Path::default(), reason: Reason::Timeout, until });
        true
    }
}
