//! The end of steps, scopes and the run.

use super::records;
use super::state::{Abort, Doing, Phase, Place, Role, RunClock, Within};
use super::undo::is_lost;
use super::values::{check_size, checked, contracted};
use super::{Run, Turn};
use crate::event::{Reach, Settled, Undone, What};
use crate::input::Effect;
use crate::outcome::{Failure, Outcome, Skip, SkipReason, class};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::FailureRule;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::OnFailure;
use windlass_ir::value::{COLLECTED_BYTES_MAX, Map, VALUE_BYTES_MAX};
use windlass_ir::workflow::{Action, BranchFailure, ItemFailure, Kind, Output};

impl Turn<'_> {
    /// Settles a step, unless another step handles its failure.
    pub(super) fn settle(&mut self, place: Place, outcome: Outcome) {
        let outcome = self.checked_size(place, outcome).unwrap_or_else(Outcome::Failed);
        if let Outcome::Failed(failure) = &outcome
            && self.hands_over(place, failure)
        {
            return;
        }
        self.settle_as(place, outcome, |_| {});
    }

    /// Settles a step, with further fields of the event set by `more`.
    pub(super) fn settle_as(&mut self, place: Place, outcome: Outcome, more: impl FnOnce(&mut Settled)) {
        let (halts, fails) = self.weight(place, &outcome);
        let has_effect = matches!(outcome, Outcome::Done(_)) || is_lost(&outcome) && self.is_one_job(place);
        let undoable = has_effect && self.can_be_undone(place);
        let mut settled = Settled { halts, fails, undoable, ..Settled::new(self.path(place), outcome) };
        more(&mut settled);
        self.give_back(place, Some(&settled.outcome));
        self.emit(What::Settled(Box::new(settled)));
        self.abort_branches(place);
        self.reached(place);
    }

    /// The outcome, or a failure if its value is too large to store.
    fn checked_size(&self, place: Place, outcome: Outcome) -> Result<Outcome, Failure> {
        if let Outcome::Done(value) | Outcome::Continue(value) = &outcome {
            let instance = self.at(place);
            let collects = instance.frame.is_some() || instance.within.is_some();
            let bytes_max = if collects { COLLECTED_BYTES_MAX } else { VALUE_BYTES_MAX };
            let step = || self.state().program(place).step(instance.step);
            check_size(|| format!("the output of `{}`", step().id), value, bytes_max)?;
        }
        Ok(outcome)
    }

    /// Whether a failure halts its list, and whether it fails the list.
    fn weight(&self, place: Place, outcome: &Outcome) -> (bool, bool) {
        let Outcome::Failed(failure) = outcome else { return (false, false) };
        if self.is_beyond_policy(place, failure) {
            return (true, true);
        }
        let instance = self.at(place);
        if instance.frame.is_some() {
            return match self.state().kind(place) {
                Kind::ForEach(each) if each.on_failure == ItemFailure::Continue => (false, false),
                _ => (true, true),
            };
        }
        let policy = self.state().program(place).on_failure(instance.step);
        match (self.branch_rule(place), policy) {
            (_, OnFailure::Continue) | (Some(BranchFailure::Continue), _) => (false, false),
            (Some(BranchFailure::Wait), _) | (None, OnFailure::SkipDependents) => (false, true),
            (Some(BranchFailure::Abort), _)
            | (None, OnFailure::Halt | OnFailure::Rollback | OnFailure::Goto(_)) => (true, true),
        }
    }

    /// Whether a failure halts the run regardless of the step's policy.
    fn is_beyond_policy(&self, place: Place, failure: &Failure) -> bool {
        let from_inside = || {
            let entered = self.at(place).within.is_some();
            entered && !matches!(self.state().kind(place), Kind::Action(Action::Call(_)))
        };
        match self.state().program(place).plan.semantics.failures {
            FailureRule::ByPolicy => false,
            FailureRule::HaltInside => is_abort(failure) || is_raised(failure) || from_inside(),
        }
    }

    /// Whether a step is a single action, with or without a guard. A scope that failed because a step inside it was
    /// lost is not undone as a whole.
    fn is_one_job(&self, place: Place) -> bool {
        let program = self.state().program(place);
        let inner = program.plan.unguarded(self.at(place).step);
        matches!(program.step(inner).kind, Kind::Action(_))
    }

    fn can_be_undone(&self, place: Place) -> bool {
        let instance = self.at(place);
        let own = instance.frame.is_none() && instance.role != Role::Undo;
        own && self.state().program(place).compensation(instance.step).is_some()
    }

    /// Handles one instance whose timer fired or whose steps have all settled.
    pub(super) fn attend(&mut self) -> bool {
        let Some(place) = self.state().index.attention.first().copied() else { return false };
        match &self.at(place).phase {
            Phase::Gate(_) => self.gate_timed_out(place),
            Phase::Wait(_) => self.wait_over(place),
            Phase::Attempt(attempt) => match attempt.doing {
                Doing::Aborting(abort) => self.stopped(place, abort, true, None),
                Doing::Asking { .. } | Doing::Running | Doing::Between { .. } => return false,
            },
            Phase::Entered => self.scope_ends(place),
            Phase::Dormant | Phase::Waiting | Phase::Ready | Phase::Joined(_) | Phase::Settled(_) => {
                return false;
            }
        }
        true
    }

    /// Handles a scope in which every step has settled.
    fn scope_ends(&mut self, place: Place) {
        if let Some(Within::TakenOver(failure)) = self.at(place).within.as_deref() {
            let failure = failure.clone();
            return self.handed_over(place, failure);
        }
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        let is_frame = self.at(place).frame.is_some();
        if let Some(kept) = self.state().kept.get(&self.at(place).path).filter(|_| is_frame).cloned() {
            return self.settle(place, kept.outcome.clone());
        }
        if matches!(step.kind, Kind::Guard(_)) && !is_frame {
            return self.guard_ends(place, step);
        }
        if let Some(outcome) = self.ended_badly(place) {
            return self.settle(place, self.seen_by_caller(place, outcome));
        }
        if matches!(step.kind, Kind::Repeat(_)) && !is_frame {
            return self.round_over(place);
        }
        let outcome = self.ended_well(place, step).unwrap_or_else(Outcome::Failed);
        self.settle(place, outcome);
    }

    /// The failure or cancellation inside a scope that determines its outcome, if any.
    pub(super) fn ended_badly(&self, place: Place) -> Option<Outcome> {
        if let Some(outcome) = self.stop_outcome(place) {
            return Some(outcome);
        }
        let instance = self.at(place);
        let list = self.state().list(Some(place), Role::Body)?;
        let outcome_of = |place: Place| self.at(place).outcome().cloned();
        let of_item = match instance.within.as_deref() {
            Some(Within::Items(items)) if list.failed.is_some() => {
                let frame = items.failed.map(|number| instance.path.frame(number));
                frame.and_then(|path| self.state().find(&path)).and_then(outcome_of)
            }
            _ => None,
        };
        let halted = list.halted.and_then(outcome_of);
        let first = || match self.state().kind(place) {
            Kind::Parallel(_) if instance.frame.is_none() => self.first_failed_branch(place),
            _ => list.failed.and_then(outcome_of),
        };
        let failed = of_item.or(halted).or_else(first);
        let unstarted = match instance.within.as_deref() {
            Some(Within::Items(items)) => (items.next as usize) < items.items.len(),
            Some(Within::Rounds(_) | Within::Steps | Within::Arm { .. } | Within::TakenOver(_)) | None => {
                false
            }
        };
        let stopped = self.state().stop_of(place).filter(|_| unstarted);
        let cancelled = list.cancelled.and_then(outcome_of);
        failed.or(cancelled).or_else(|| stopped.map(|stop| Outcome::Cancelled(stop.why.clone())))
    }

    /// The outcome of a step that was stopped: a timeout or a cancellation.
    pub(super) fn stop_outcome(&self, place: Place) -> Option<Outcome> {
        let instance = self.at(place);
        let stop = instance.stop.as_ref().filter(|stop| stop.unwind)?;
        if !stop.timed_out {
            return Some(Outcome::Cancelled(stop.why.clone()));
        }
        let limit = self.state().program(place).step(instance.step).policy.timeout.unwrap_or_default();
        Some(Outcome::Failed(Failure::new(class::TIMEOUT, format!("took longer than {limit}"))))
    }

    fn ended_well(&self, place: Place, step: &PlanStep) -> Result<Outcome, Failure> {
        let state = self.state();
        if self.at(place).frame.is_some() {
            if matches!(step.kind, Kind::Repeat(_)) {
                // A round has no result of its own.
                return Ok(Outcome::Done(Value::Null));
            }
            let sight = self.inner_sight(Some(place))?;
            return Ok(Outcome::Done(records::frame_result(&sight, place)));
        }
        let left = match (&step.kind, self.at(place).within.as_deref()) {
            (Kind::Choose(_), Some(Within::Arm { arm, value })) => records::chosen(state, place, arm, value),
            (Kind::Parallel(_), _) => Value::map([("branch_results", records::branches(state, place))]),
            (Kind::ForEach(_), _) => {
                return Ok(Outcome::Done(records::items_result(state, place).unwrap_or(Value::Null)));
            }
            (Kind::Action(Action::Call(_)), _) => return self.called(place),
            (_, _) => Value::map::<&str>([]),
        };
        self.with_outputs(place, step, &left, None)
    }

    /// The declared outputs of a scope, together with its own result. A loop evaluates them in its last round.
    pub(super) fn with_outputs(
        &self,
        place: Place,
        step: &PlanStep,
        left: &Value,
        last: Option<Place>,
    ) -> Result<Outcome, Failure> {
        let mut outputs = self.computed(Some(last.unwrap_or(place)), &step.outputs)?;
        if let Value::Map(left) = left {
            outputs.extend(left.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        Ok(Outcome::Done(Value::Map(Arc::new(outputs))))
    }

    /// Evaluates the output expressions of a scope or a workflow.
    pub(super) fn computed(
        &self,
        from: Option<Place>,
        outputs: &IndexMap<Arc<str>, Output>,
    ) -> Result<Map, Failure> {
        let sight = self.inner_sight(from)?;
        let mut values = Map::new();
        for (name, output) in outputs {
            let value = sight.optional(output.source.as_ref())?.unwrap_or(Value::Null);
            values.insert(name.clone(), value);
        }
        let values = Value::Map(Arc::new(values));
        check_size(|| "the outputs".into(), &values, VALUE_BYTES_MAX)?;
        match contracted(sight.program(), outputs, values)? {
            Value::Map(map) => Ok((*map).clone()),
            _ => Ok(Map::new()),
        }
    }

    /// Settles one step that was canceled before it started.
    pub(super) fn stop_one(&mut self) -> bool {
        let Some(place) = self.state().index.stopping.first().copied() else { return false };
        let why = self.state().stop_of(place).map_or_else(|| "stopped".into(), |stop| stop.why.clone());
        self.settle_as(place, Outcome::Cancelled(why), |_| {});
        true
    }

    /// Settles an attempt that was stopped or abandoned. `left` is its partial result.
    pub(super) fn stopped(&mut self, place: Place, abort: Abort, abandoned: bool, left: Option<Value>) {
        match abort {
            Abort::Cancel => {
                let stop = self.state().stop_of(place);
                let why = stop.map_or_else(|| "cancelled".into(), |stop| stop.why.clone());
                self.settle_as(place, Outcome::Cancelled(why), |settled| settled.abandoned = abandoned);
            }
            Abort::Timeout => {
                let program = self.program(place);
                let limit = program.step(self.at(place).step).policy.timeout.unwrap_or_default();
                let failure = Failure::new(class::TIMEOUT, format!("took longer than {limit}"));
                self.timed_out(place, Failure { detail: left, ..failure });
            }
        }
    }

    /// Fixes the result after every step has settled and undoing is finished.
    pub(super) fn conclude(&mut self) -> bool {
        if self.state().roots.open > 0 || self.state().undo.under_way.contains_key(&None) {
            return false;
        }
        let waits = self.state().admission.is_pending();
        if waits && self.state().stop.is_none() {
            return false;
        }
        if self.undo_next(None) {
            return true;
        }
        let outcome = self.result();
        let state = self.state();
        let partly = state.undo.is_partial || state.undo.has_begun && !state.undo.steps.is_empty();
        let undone = match (&outcome, partly, state.undo.has_begun) {
            (Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_), _, _) | (_, false, false) => None,
            (_, true, _) => Some(Undone::Partly),
            (_, false, true) => Some(Undone::Wholly),
        };
        let has_failures = state.failures > 0;
        self.emit(What::Concluded { outcome: outcome.clone(), has_failures, undone });
        self.answer.effects.push(Effect::Conclude(outcome));
        true
    }

    fn result(&self) -> Outcome {
        let state = self.state();
        if let Some(stop) = &state.stop {
            if state.clock == RunClock::Over {
                let limit = self.run.program.plan.policy.timeout.unwrap_or_default();
                let message = format!("{}: more than {limit}", stop.why);
                return Outcome::Failed(Failure::new(class::TIMEOUT, message));
            }
            return Outcome::Cancelled(stop.why.clone());
        }
        let failed = state.roots.halted.or(state.roots.failed);
        if let Some(outcome) = failed.and_then(|failed| self.at(failed).outcome()) {
            return outcome.clone();
        }
        if let Some(outcome) = &state.finish {
            return outcome.clone();
        }
        if let Some(outcome) = state.roots.cancelled.and_then(|cancelled| self.at(cancelled).outcome()) {
            return outcome.clone();
        }
        if let Some(Reach::Only(path)) = &state.reach {
            let outcome = state.find(path).and_then(|place| self.at(place).outcome()).cloned();
            let never = || Outcome::Skipped(Skip { reason: SkipReason::BranchNotTaken, because_of: None });
            return outcome.unwrap_or_else(never);
        }
        self.outputs_of_run().map_or_else(Outcome::Failed, Outcome::Done)
    }

    fn outputs_of_run(&self) -> Result<Value, Failure> {
        let plan = &self.run.program.plan;
        let Some(result) = &plan.result else {
            return Ok(Value::Map(Arc::new(self.computed(None, &plan.outputs)?)));
        };
        let value = self.inner_sight(None)?.optional(result.source.as_ref())?.unwrap_or(Value::Null);
        checked(&self.run.program, "output", result, value)
    }
}

impl Run {
    /// Whether a failed run can be reopened: not if a person aborted it, nor after it began to undo steps.
    pub(super) fn is_reopenable(&self, outcome: &Outcome) -> bool {
        let Outcome::Failed(failure) = outcome else { return false };
        let undoes = self.state.undo.has_begun || self.state.undo.is_partial;
        !is_abort(failure) && !undoes && self.state.finish.is_none()
    }
}

/// Whether the original program would have raised an error instead of failing the step: an expression has no value,
/// or the output of a command is not text.
pub fn is_raised(failure: &Failure) -> bool {
    let no_text = matches!(failure.field.as_deref(), Some("stdout" | "stderr"));
    &*failure.class == class::EXPRESSION_ERROR || &*failure.class == class::CONTRACT_VIOLATION && no_text
}

/// Whether a rejection at a gate ended the run for good.
pub fn is_abort(failure: &Failure) -> bool {
    let aborted = failure.detail.as_ref().and_then(|detail| detail.get("aborted"));
    &*failure.class == class::GATE_REJECTED && aborted == Some(&Value::Bool(true))
}
