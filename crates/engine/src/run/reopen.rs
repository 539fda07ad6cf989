//! Reopening a failed run.

use super::state::{Phase, Place, Role, Stage};
use super::{Turn, merged};
use crate::event::What;
use crate::input::Refused;
use crate::keys::Reason;
use crate::outcome::Outcome;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_ir::Value;

impl Turn<'_> {
    /// Reopens the failures that ended the run, the steps canceled because of them, and their scopes.
    pub(super) fn reopen(&mut self, changes: &Value, by: Arc<str>) -> Result<(), Refused> {
        let Stage::Concluded(outcome) = &self.state().stage else { return Err(Refused::NotFailed) };
        if !self.run.is_reopenable(outcome) {
            let undoing = self.state().undo.has_begun;
            return Err(if undoing { Refused::Undoing } else { Refused::NotFailed });
        }
        let inputs = merged(&self.state().units[0].inputs, changes);
        let mut places = Vec::new();
        self.failed_below(None, &mut places);
        let paths = places.iter().map(|place| self.path(*place)).collect();
        self.emit(What::Reopened { paths, inputs, by });
        self.rebind_calls();
        self.apply();
        places.into_iter().for_each(|place| self.restart_timeout(place));
        Ok(())
    }

    /// Restarts the timeout of a reopened scope.
    fn restart_timeout(&mut self, place: Place) {
        let instance = self.at(place);
        let timeout = self.state().program(place).step(instance.step).policy.timeout;
        let scope = !self.state().kind(place).bodies().is_empty() && instance.frame.is_none();
        if let (Phase::Entered, Some(timeout)) = (&instance.phase, timeout.filter(|_| scope)) {
            let (path, until) = (self.path(place), self.now.plus(timeout));
            self.emit(What::TimerSet { path, reason: Reason::Timeout, until });
        }
    }

    /// Collects the failures that ended a scope, the steps canceled or skipped because of them, and the same inside
    /// each of them.
    fn failed_below(&self, scope: Option<Place>, places: &mut Vec<Place>) {
        let Some(list) = self.state().list(scope, Role::Body) else { return };
        let mut queue: VecDeque<Place> = list.places().filter(|place| self.ended_it(*place)).collect();
        while let Some(place) = queue.pop_front() {
            places.push(place);
            self.failed_below(Some(place), places);
            let program = self.state().program(place);
            let id = &program.step(self.at(place).step).id;
            let waiting = program.dependents(self.at(place).step).iter();
            let waiting = waiting.filter_map(|dependent| self.state().beside(place, *dependent));
            queue.extend(waiting.filter(|waiting| self.is_skipped_by(*waiting, id)));
        }
    }

    fn ended_it(&self, place: Place) -> bool {
        let Phase::Settled(settlement) = &self.at(place).phase else { return false };
        match &settlement.outcome {
            Outcome::Cancelled(_) => !self.state().stop_of(place).is_some_and(|stop| stop.by_person),
            Outcome::Failed(_) => settlement.fails,
            Outcome::Skipped(_) | Outcome::Done(_) | Outcome::Continue(_) => false,
        }
    }

    fn is_skipped_by(&self, place: Place, id: &Arc<str>) -> bool {
        matches!(self.at(place).outcome(), Some(Outcome::Skipped(skip)) if skip.because_of.as_ref() == Some(id))
    }
}
