//! Timers: at most one per instance and reason.

use super::{Abort, Attempt, Doing, Misfit, Phase, Place, State, Stop, Within};
use crate::keys::{Reason, Timestamp};
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timers {
    queue: BTreeSet<(Timestamp, Place, Reason)>,
    of: HashMap<(Place, Reason), Timestamp>,
}

impl Timers {
    pub fn next(&self) -> Option<(Timestamp, Place, Reason)> {
        self.queue.first().copied()
    }

    pub fn at(&self, place: Place, reason: Reason) -> Option<Timestamp> {
        self.of.get(&(place, reason)).copied()
    }

    pub fn set(&mut self, place: Place, reason: Reason, until: Timestamp) {
        self.cancel(place, reason);
        self.queue.insert((until, place, reason));
        self.of.insert((place, reason), until);
    }

    pub fn cancel(&mut self, place: Place, reason: Reason) {
        if let Some(until) = self.of.remove(&(place, reason)) {
            self.queue.remove(&(until, place, reason));
        }
    }

    pub fn drop_all(&mut self, place: Place) {
        for reason in [Reason::Retry, Reason::Timeout, Reason::Wait, Reason::Grace] {
            self.cancel(place, reason);
        }
    }

    /// All instances with timers.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.queue.iter().map(|(_, place, _)| *place)
    }
}

impl State {
    pub(super) fn timer_set(&mut self, place: Place, reason: Reason, until: Timestamp) -> Result<(), Misfit> {
        let instance = self.at(place);
        let loops = matches!(instance.within.as_deref(), Some(Within::Rounds(_)));
        match (&instance.phase, reason) {
            (Phase::Attempt(_), Reason::Grace) if self.index.ungraced.contains(&place) => {
                self.index.ungraced.remove(&place);
            }
            (Phase::Gate(_), Reason::Wait) => {}
            (Phase::Wait(sleep), Reason::Wait) if sleep.on_wall.is_some() => {}
            (Phase::Entered, Reason::Timeout) if instance.frame.is_none() => {}
            (Phase::Entered, Reason::Wait) if loops && self.is_done_inside(place) => {
                self.index.delayed.insert(place);
                self.index.attention.remove(&place);
            }
            (_, _) => return Err(self.misfit_at(place, "a step that waits for this reason")),
        }
        self.timers.set(place, reason, until);
        Ok(())
    }

    pub(super) fn timer_fired(&mut self, place: Place, reason: Reason) -> Result<(), Misfit> {
        self.timers.cancel(place, reason);
        let instance = self.instances.at_mut(place);
        match (&instance.phase, reason) {
            (Phase::Attempt(Attempt { doing: Doing::Between { lost, .. }, .. }), Reason::Retry) => {
                let due = Doing::Between { lost: *lost, due: true };
                self.set_doing(place, due);
            }
            (Phase::Attempt(Attempt { doing: Doing::Running, .. }), Reason::Timeout) => {
                self.set_doing(place, Doing::Aborting(Abort::Timeout));
            }
            (Phase::Attempt(Attempt { doing: Doing::Aborting(_), .. }), Reason::Grace)
            | (Phase::Gate(_) | Phase::Wait(_), Reason::Wait) => {
                self.index.attention.insert(place);
            }
            (Phase::Entered, Reason::Wait) => {
                if let Some(Within::Rounds(rounds)) = instance.within.as_deref_mut() {
                    rounds.due = true;
                    self.index.attention.insert(place);
                }
            }
            (Phase::Entered, Reason::Timeout) => {
                self.stop_instance(place, &Stop { timed_out: true, ..Stop::unwind("it took too long") });
            }
            (_, _) => return Err(self.misfit_at(place, "a timer that is due")),
        }
        Ok(())
    }
}
