//! Ends: of scopes, of what will not be started any more, of the run, and the way back from a failure.

use super::state::{Doing, Instance, Phase, Place, RunClock, Stage};
use super::{Turn, merged};
use crate::event::What;
use crate::input::{Effect, Refused};
use crate::keys::Path;
use crate::outcome::{Failure, Outcome, SkipReason, class};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::Output;

impl Turn<'_> {
    /// Looks at one instance that something happened to: a scope that is complete, a gate whose time is up, an attempt that
    /// did not stop within its grace. While the run is paused, time changes nothing.
    pub(super) fn attend(&mut self) -> bool {
        let paused = self.state().paused;
        let place =
            self.state().attention.iter().copied().find(|place| !paused || self.ignores_pause(*place));
        let Some(place) = place else { return false };
        match &self.at(place).phase {
            Phase::Gate { .. } => self.gate_timed_out(place),
            Phase::Attempt(attempt) => match attempt.doing {
                Doing::Aborting(abort) => self.stopped(place, abort, true),
                Doing::Running | Doing::Backoff { .. } => return false,
            },
            Phase::Entered => self.scope_ends(place),
            Phase::Waiting | Phase::Ready | Phase::Settled { .. } => return false,
        }
        true
    }

    fn ignores_pause(&self, place: Place) -> bool {
        !matches!(self.at(place).phase, Phase::Gate { .. })
    }

    /// Every step of a scope has settled.
    fn scope_ends(&mut self, place: Place) {
        let program = self.run.program.clone();
        let step = program.plan.step(self.at(place).step);
        let outcome = match self.inner_failure(place) {
            Some(outcome) => outcome,
            None => match self.computed(Some(place), &step.outputs) {
                Ok(mut outputs) => {
                    let arm = self.at(place).inside.as_ref().and_then(|inside| inside.arm.clone());
                    outputs.extend(arm.map(|arm| (Arc::from("branch"), Value::Text(arm))));
                    Outcome::Done(Value::Map(Arc::new(outputs)))
                }
                Err(failure) => Outcome::Failed(failure),
            },
        };
        self.settle(place, outcome, false);
    }

    /// What went wrong inside a scope, if that is why it ends.
    fn inner_failure(&self, place: Place) -> Option<Outcome> {
        let inside = self.at(place).inside.as_ref()?;
        if let Some(failed) = inside.halted.or(inside.failed) {
            return self.at(failed).outcome().cloned();
        }
        let mut inner = (inside.first.0..inside.first.0 + inside.count).map(|number| self.at(Place(number)));
        self.state().cancelling.as_ref()?;
        inner.find_map(|instance| {
            instance.outcome().filter(|outcome| matches!(outcome, Outcome::Cancelled(_))).cloned()
        })
    }

    /// Outputs that are computed by expressions, as those of scopes and runs are.
    fn computed(&self, from: Option<Place>, outputs: &IndexMap<Arc<str>, Output>) -> Result<Map, Failure> {
        // Seen from the first step inside, so that what stands beside it is in sight.
        let inner = from.and_then(|place| self.at(place).inside.as_ref()).filter(|inside| inside.count > 0);
        let sight = self.bare_sight(inner.map_or(from, |inside| Some(inside.first)), self.environment(from)?);
        let mut values = Map::new();
        for (name, output) in outputs {
            let value = sight.optional(output.source.as_ref())?.unwrap_or(Value::Null);
            values.insert(name.clone(), value);
        }
        match super::values::contracted(&self.run.program, outputs, Value::Map(Arc::new(values)))? {
            Value::Map(map) => Ok((*map).clone()),
            _ => Ok(Map::new()),
        }
    }

    /// Settles one thing that will not be started any more.
    pub(super) fn stop_one(&mut self) -> bool {
        let waiting = self.state().draining.iter().find_map(|scope| {
            let inside = self.state().inside(*scope)?;
            let place = inside.unstarted.first().or(inside.gates.first())?;
            Some((*scope, *place))
        });
        let stopped = waiting.or_else(|| {
            self.state().cancelling.as_ref()?;
            let between = self.state().jobs.iter().find(|place| self.is_between_attempts(**place))?;
            Some((None, *between))
        });
        let Some((scope, place)) = stopped else { return false };
        let why = self.why_stopped(scope);
        self.settle(place, Outcome::Cancelled(why), false);
        true
    }

    fn why_stopped(&self, scope: Option<Place>) -> Arc<str> {
        if let Some(why) = &self.state().cancelling {
            return why.clone();
        }
        let failed = self.state().inside(scope).and_then(|inside| inside.halted);
        match (failed, scope) {
            (Some(failed), _) => {
                let step = self.run.program.plan.step(self.at(failed).step);
                format!("`{}` failed", step.id).into()
            }
            (None, Some(scope)) => self.why_stopped(self.at(scope).parent),
            (None, None) => "stopped".into(),
        }
    }

    fn is_between_attempts(&self, place: Place) -> bool {
        matches!(&self.at(place).phase, Phase::Attempt(attempt) if matches!(attempt.doing, Doing::Backoff { .. }))
    }

    /// Fixes the result once every step has settled.
    pub(super) fn conclude(&mut self) -> bool {
        if self.state().roots.open > 0 {
            return false;
        }
        let outcome =
            match (&self.state().cancelling, self.state().roots.halted.or(self.state().roots.failed)) {
                (Some(why), _) if self.state().clock == RunClock::Over => {
                    let limit = self.run.program.plan.policy.timeout.unwrap_or_default();
                    Outcome::Failed(Failure::new(class::TIMEOUT, format!("{why}: more than {limit}")))
                }
                (Some(why), _) => Outcome::Cancelled(why.clone()),
                (None, Some(halted)) => {
                    self.at(halted).outcome().cloned().unwrap_or(Outcome::Done(Value::Null))
                }
                (None, None) => {
                    let program = self.run.program.clone();
                    match self.computed(None, &program.plan.outputs) {
                        Ok(outputs) => Outcome::Done(Value::Map(Arc::new(outputs))),
                        Err(failure) => Outcome::Failed(failure),
                    }
                }
            };
        let failed = |instance: &Instance| matches!(instance.outcome(), Some(Outcome::Failed(_)));
        let has_failures = self.state().instances.iter().any(failed);
        self.emit(What::Concluded { outcome: outcome.clone(), has_failures });
        if !is_reopenable(&outcome) {
            self.emit(What::Closed);
        }
        self.answer.effects.push(Effect::Conclude(outcome));
        true
    }

    /// Opens a failed run again: the failures that ended it, what was cancelled because of them, and the scopes around.
    pub(super) fn reopen(&mut self, changes: &Value, by: Arc<str>) -> Result<(), Refused> {
        let Stage::Concluded(outcome) = &self.state().stage else { return Err(Refused::NotFailed) };
        if !is_reopenable(outcome) {
            return Err(Refused::NotFailed);
        }
        let inputs = merged(&self.state().inputs, changes);
        let mut paths = Vec::new();
        self.failed_below(None, &mut paths);
        self.emit(What::Reopened { paths, inputs, by });
        Ok(())
    }
}

impl Turn<'_> {
    /// What ended a scope badly: the failure, what was cancelled because of it, and the same inside each of them.
    fn failed_below(&self, scope: Option<Place>, paths: &mut Vec<Path>) {
        let Some(inside) = self.state().inside(scope) else { return };
        for place in (inside.first.0..inside.first.0 + inside.count).map(Place) {
            let open = match self.at(place).outcome() {
                Some(Outcome::Cancelled(_)) => true,
                Some(Outcome::Failed(_)) => self.at(place).counts_as_failed(),
                Some(Outcome::Skipped(skip)) => skip.reason == SkipReason::DependencyFailed,
                Some(Outcome::Done(_) | Outcome::Continue(_)) | None => false,
            };
            if open {
                paths.push(self.at(place).path.clone());
                self.failed_below(Some(place), paths);
            }
        }
    }
}

/// Only a failure that another try may mend leaves a run open. A person's "no" is final.
fn is_reopenable(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failure) if &*failure.class != class::GATE_REJECTED)
}
