//! The timeout of the run. The time counts only while the run does not wait for people alone.

use super::Turn;
use super::state::{Place, Role, RunClock};
use crate::event::{Reach, What};
use crate::keys::{Path, Reason, Timestamp};

/// The actor that pauses a run at the step it was to stop after.
const UNTIL: &str = "until";

impl Turn<'_> {
    /// Asks for admission when the start time of the run has come.
    pub(super) fn begin(&mut self) -> bool {
        let Some(at) = self.state().admission.begins_at else { return false };
        if at > self.now || !self.ticking || self.state().is_suspended() || self.state().stop.is_some() {
            return false;
        }
        self.emit(What::TimerFired { path: Path::default(), reason: Reason::Wait });
        self.apply();
        true
    }

    /// Pauses the run after the step it was to stop after.
    pub(super) fn reached(&mut self, place: Place) {
        let Some(Reach::Until(step)) = &self.state().reach else { return };
        let instance = self.at(place);
        let is_own = instance.unit == 0 && instance.frame.is_none() && instance.role == Role::Body;
        let known = self.run.program.plan.steps.get(instance.step.index());
        if is_own && known.is_some_and(|known| known.id == *step && !known.implicit) {
            self.emit(What::Paused { by: UNTIL.into(), reached: true });
        }
    }

    /// Stops all steps when the run times out.
    pub(super) fn run_out(&mut self) -> bool {
        let RunClock::Until(until) = self.state().clock else { return false };
        if self.state().timers.next().is_some_and(|(other, ..)| other < until) {
            return false;
        }
        if until > self.now || !self.ticking || self.state().is_suspended() || self.state().stop.is_some() {
            return false;
        }
        self.emit(What::TimerFired { path: Path::default(), reason: Reason::Timeout });
        true
    }

    /// Does not count the time since the last event of the run.
    pub(super) fn skip_downtime(&mut self) {
        if let RunClock::Until(until) = self.state().clock {
            let left = until.since(self.state().last_at);
            let until = self.now.plus(left);
            self.emit(What::TimerSet { path: Path::default(), reason: Reason::Timeout, until });
        }
    }

    /// Starts the timeout of the run, suspends it while only people can continue the run, and resumes it afterward.
    pub(super) fn set_clock(&mut self) -> bool {
        let Some(limit) = self.run.program.plan.policy.timeout else { return false };
        let state = self.state();
        // A pause, undoing, and gates without other work suspend the timeout.
        let only_people =
            state.index.jobs.is_empty() && state.index.sleeping.is_empty() && state.index.delayed.is_empty();
        let still = state.is_suspended() || only_people || state.undo.has_begun;
        let until = match (state.clock, still) {
            (RunClock::None, false) => self.now.plus(limit),
            (RunClock::Still { left }, false) => self.now.plus(left),
            // A timeout that has already passed is not suspended.
            (RunClock::Until(until), true) if until > self.now => Timestamp::NEVER,
            (RunClock::None | RunClock::Still { .. }, true)
            | (RunClock::Until(_), _)
            | (RunClock::Over, _) => return false,
        };
        self.emit(What::TimerSet { path: Path::default(), reason: Reason::Timeout, until });
        true
    }
}
