//! Handling failures with another step, and undoing completed steps.

use super::Turn;
use super::state::{Place, Role, State};
use crate::event::{Decision, What};
use crate::outcome::{Failure, Outcome};
use windlass_ir::Value;
use windlass_ir::policy::OnFailure;

impl Turn<'_> {
    /// Starts the step that handles a failure, if one is named and its scope may still start steps.
    pub(super) fn hands_over(&mut self, place: Place, failure: &Failure) -> bool {
        let instance = self.at(place);
        let program = self.program(place);
        let Some(target) = program.goto(instance.step).filter(|_| instance.frame.is_none()) else {
            return false;
        };
        // A scope that timed out may still start the step that handles the timeout.
        let own = instance.stop.as_ref().filter(|stop| !stop.timed_out);
        let draining = self.state().list(instance.parent, instance.role).is_some_and(|list| list.draining);
        if own.or(self.state().stop_around(place)).is_some() || draining {
            return false;
        }
        let by = program.step(target).id.clone();
        let decision = Decision::TakenOver { by, failure: failure.clone() };
        self.emit(What::Entered { path: self.path(place), decision });
        true
    }

    /// Settles a step after another one handled its failure.
    pub(super) fn handed_over(&mut self, place: Place, failure: Failure) {
        let list = self.state().list(Some(place), Role::TakeOver);
        let target = list.and_then(|list| list.places().next());
        let outcome = target.and_then(|target| self.at(target).outcome()).cloned();
        if let Some(outcome) = self.stop_outcome(place) {
            return self.settle_as(place, outcome, |_| {});
        }
        let recovered = matches!(outcome, Some(Outcome::Done(_) | Outcome::Skipped(_)));
        self.settle_as(place, Outcome::Failed(failure), |settled| {
            if recovered {
                (settled.recovered, settled.halts, settled.fails) = (true, false, false);
            }
        });
    }

    /// Undoes the most recently completed step that is not undone yet, in the whole run or inside a guard.
    pub(super) fn undo_next(&mut self, guard: Option<Place>) -> bool {
        let Some(because) = self.undoes_because(guard) else { return false };
        let state = self.state();
        let mut last = state.undo.steps.values().rev();
        let next = last.find(|place| guard.is_none_or(|guard| is_under(state, **place, guard)));
        let Some(next) = next.copied() else { return false };
        let (path, uncertain) = (self.path(next), self.at(next).outcome().is_some_and(is_lost));
        self.emit(What::Entered { path, decision: Decision::Undo { because, uncertain } });
        true
    }

    /// The failure or cancellation that requires undoing, if any.
    fn undoes_because(&self, guard: Option<Place>) -> Option<Value> {
        let state = self.state();
        let unit = state.unit(guard);
        let list = state.list(guard, Role::Body)?;
        let stopped = guard.is_some_and(|guard| state.is_unwound(guard));
        if stopped {
            // After a cancellation, undoing starts at the end of the whole run.
            return None;
        }
        if let Some(stop) = state.stop.as_ref().filter(|stop| stop.unwind && guard.is_none()) {
            let wanted = unit.program.plan.policy.compensate_on_cancel;
            let entry = |name, text: &str| (name, Value::text(text));
            return wanted.then(|| {
                Value::map([
                    ("step", Value::Null),
                    entry("class", crate::outcome::class::CANCELLED),
                    entry("message", &stop.why),
                    ("detail", Value::Null),
                ])
            });
        }
        let halted = list.halted?;
        // The policy of the guard applies instead of that of its body.
        let policy = self.policy_of(guard.unwrap_or(halted));
        let rolls_back = match policy {
            OnFailure::Rollback => true,
            // The rest of the run continues, but a step inside may still ask for a rollback.
            OnFailure::Continue | OnFailure::SkipDependents => self.rolled_back_inside(halted),
            OnFailure::Halt | OnFailure::Goto(_) => false,
        };
        rolls_back.then(|| self.first_cause(halted))
    }

    fn policy_of(&self, place: Place) -> &OnFailure {
        self.state().program(place).on_failure(self.at(place).step)
    }

    /// Whether the step that halted the body of a guard asks for a rollback.
    fn rolled_back_inside(&self, body: Place) -> bool {
        let mut failed = body;
        while self.state().program(failed).is_guarded(self.at(failed).step) {
            let inner = self.state().list(Some(failed), Role::Body).and_then(|list| list.halted);
            let Some(inner) = inner else { return false };
            failed = inner;
        }
        *self.policy_of(failed) == OnFailure::Rollback
    }

    /// The original failure, found by descending into the scopes that failed.
    fn first_cause(&self, place: Place) -> Value {
        let mut failed = place;
        while let Some(inner) =
            self.state().list(Some(failed), Role::Body).and_then(|list| list.halted.or(list.failed))
        {
            failed = inner;
        }
        let step = &self.state().program(failed).step(self.at(failed).step).id;
        match self.at(failed).outcome() {
            Some(Outcome::Failed(failure)) => super::state::failure_value(step, failure),
            Some(_) | None => Value::Null,
        }
    }
}

/// Whether it is unknown if the step took effect.
pub(super) fn is_lost(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failure) if &*failure.class == crate::outcome::class::LOST)
}

fn is_under(state: &State, place: Place, scope: Place) -> bool {
    let mut outwards = std::iter::successors(state.at(place).parent, |place| state.at(*place).parent);
    outwards.any(|around| around == scope)
}
