//! Guards: a body, its compensation, and the steps that always run after it.

use super::Turn;
use super::state::{Place, Role};
use crate::event::{Decision, What};
use crate::outcome::Outcome;
use windlass_ir::Value;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::Kind;

impl Turn<'_> {
    pub(super) fn guard_ends(&mut self, place: Place, step: &PlanStep) {
        let Kind::Guard(guard) = &step.kind else { return };
        if self.state().list(Some(place), Role::Finally).is_none() && guard.finally.is_some() {
            if self.state().undo.under_way.contains_key(&Some(place)) || self.undo_next(Some(place)) {
                return;
            }
            let path = self.path(place);
            return self.emit(What::Entered { path, decision: Decision::Finally });
        }
        let finally = self.state().list(Some(place), Role::Finally);
        let outcome_of = |place: Place| self.at(place).outcome().cloned();
        let failed = finally.and_then(|list| list.halted.or(list.failed)).and_then(outcome_of);
        let outcome = match (self.ended_badly(place), failed) {
            // A failure in `finally` is more useful than a canceled body, unless the whole guard was stopped.
            (Some(Outcome::Cancelled(_)), Some(failed)) if self.stop_outcome(place).is_none() => failed,
            (Some(outcome), _) | (None, Some(outcome)) => outcome,
            (None, None) => self.body_outcome(place),
        };
        self.settle(place, outcome);
    }

    fn body_outcome(&self, place: Place) -> Outcome {
        let body = self.state().list(Some(place), Role::Body).and_then(|list| list.places().next());
        let outcome = body.and_then(|body| self.at(body).outcome()).cloned();
        outcome.unwrap_or(Outcome::Done(Value::Null))
    }
}
