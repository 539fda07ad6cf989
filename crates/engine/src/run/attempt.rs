//! Attempts: reports of executors, and retries.

use super::Turn;
use super::state::{Abort, Doing, Place};
use super::values::{Sight, contracted};
use crate::event::{Assignment, Kept, What};
use crate::input::{Effect, Refused};
use crate::job::Work;
use crate::keys::{JobKey, Path};
use crate::outcome::{Failure, Outcome, class};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;
use windlass_ir::expr::FailedShape;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::{Backoff, RetryAfter, Spread};
use windlass_ir::workflow::{Action, CallMode, Kind};
use windlass_ir::{Duration, Value};

/// An attempt fails as lost after this many deliveries.
const DELIVERIES_MAX: u32 = 5;

/// The partial result of a job that was stopped.
fn left(outcome: Outcome) -> Option<Value> {
    match outcome {
        Outcome::Failed(failure) => failure.detail,
        Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => None,
    }
}

impl Turn<'_> {
    /// The instance of a job, if the run still waits for its report.
    pub(super) fn outstanding(&self, job: &JobKey) -> Result<Place, Refused> {
        let place = self.state().find(&job.path).filter(|_| job.run == self.run.id);
        let current = place.filter(|place| {
            self.at(*place).attempt().is_some_and(|attempt| {
                let waited_for = matches!(attempt.doing, Doing::Running | Doing::Aborting(_));
                waited_for && attempt.attempt == job.attempt && attempt.delivery == job.delivery
            })
        });
        current.ok_or_else(|| Refused::StaleJob(job.clone()))
    }

    pub(super) fn reported(&mut self, job: &JobKey, outcome: Outcome) -> Result<(), Refused> {
        if self.hook_of(job) {
            self.hook_reported(job.path.clone(), outcome);
            return Ok(());
        }
        let place = self.outstanding(job)?;
        match (self.aborting(place), outcome) {
            (Some(abort), outcome) => self.stopped(place, abort, false, left(outcome)),
            (None, Outcome::Done(value)) => self.produced(place, value),
            (None, Outcome::Continue(value)) => self.asks_for_more(place, value),
            (None, Outcome::Failed(failure)) => self.failed(place, failure),
            (None, Outcome::Cancelled(why)) => self.failed(place, Failure::new(class::CANCELLED, why)),
            (None, Outcome::Skipped(_)) => self.settle(place, Outcome::Done(Value::Null)),
        }
        Ok(())
    }

    /// Dispatches a lost job again, without counting an attempt. A job that may have started is dispatched only a few
    /// times.
    pub(super) fn lost(&mut self, job: &JobKey, started: bool) -> Result<(), Refused> {
        if self.hook_of(job) {
            self.hook_lost(job.path.clone());
            return Ok(());
        }
        let place = self.outstanding(job)?;
        let charged = self.charge_lost(place);
        let losses = self.at(place).attempt().map_or(0, |attempt| attempt.losses);
        match self.aborting(place) {
            Some(abort) => self.stopped(place, abort, false, None),
            None if !started || losses + 1 < DELIVERIES_MAX => {
                let (path, attempt, delivery) = (job.path.clone(), job.attempt, job.delivery);
                self.emit(What::Lost { path, attempt, delivery, charged, started });
            }
            None => {
                let message = format!("the job was lost {DELIVERIES_MAX} times");
                self.failed(place, Failure::new(class::LOST, message));
            }
        }
        Ok(())
    }

    fn aborting(&self, place: Place) -> Option<Abort> {
        match self.at(place).attempt()?.doing {
            Doing::Aborting(abort) => Some(abort),
            Doing::Asking { .. } | Doing::Running | Doing::Between { .. } => None,
        }
    }

    /// Renders and dispatches an action, unless its result is kept from an earlier run or another step does the same
    /// work.
    pub(super) fn start_action(
        &mut self,
        place: Place,
        step: &PlanStep,
        action: &Action,
    ) -> Result<(), Failure> {
        let assignment = Arc::new(self.assignment(place, step, action)?);
        let kept = self.state().kept.get(&self.at(place).path).cloned();
        let plan = &self.program(place).plan;
        let same =
            |kept: &Arc<Kept>| kept.unchanged || kept.seen == crate::keep::of_action(plan, step, &assignment);
        if let Some(kept) = kept.filter(same) {
            self.settle(place, kept.outcome.clone());
            return Ok(());
        }
        if self.joins(place, &assignment) {
            return Ok(());
        }
        let attempt = self.at(place).attempts + 1;
        self.ask_or_schedule(place, attempt, 1, Some(assignment));
        Ok(())
    }

    /// Starts a retry, the first attempt of another round, or another delivery of a lost attempt.
    pub(super) fn next_attempt(&mut self, place: Place) {
        let Some(before) = self.at(place).attempt() else { return };
        let (attempt, delivery) = (before.attempt, before.delivery);
        match before.doing {
            Doing::Asking { .. } => return self.schedule(place, attempt, delivery, None),
            // The cost of the lost job was charged, so the next delivery needs a new grant.
            Doing::Between { lost: true, .. } if self.at(place).asked.is_none() => {
                return self.ask_or_schedule(place, attempt, delivery + 1, None);
            }
            Doing::Between { lost: true, .. } => return self.schedule(place, attempt, delivery + 1, None),
            Doing::Between { lost: false, .. } | Doing::Running | Doing::Aborting(_) => {}
        }
        let program = self.program(place);
        let over = self.rounds_deadline(place, program.step(self.at(place).step));
        if over.is_some_and(|over| over <= self.now) {
            let failure = Failure::new(class::TIMEOUT, "the time for all rounds is up");
            return self.settle(place, Outcome::Failed(failure));
        }
        let assignment = before.again.clone().map(|input| {
            let mut assignment = Assignment::clone(&before.assignment);
            if let Work::Task { input: given, .. } = &mut assignment.work {
                *given = input;
            }
            Arc::new(assignment)
        });
        self.ask_or_schedule(place, attempt + 1, 1, assignment);
    }

    pub(super) fn schedule(
        &mut self,
        place: Place,
        attempt: u32,
        delivery: u32,
        assignment: Option<Arc<Assignment>>,
    ) {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        let path = self.path(place);
        let own = step.policy.timeout.map(|timeout| self.now.plus(timeout));
        let deadline = own.into_iter().chain(self.rounds_deadline(place, step)).min();
        self.emit(What::Scheduled { path, attempt, delivery, assignment, deadline });
        if let Some(attempt) = self.at(place).attempt() {
            let job = self.run.job(place, attempt);
            self.answer.effects.push(Effect::Dispatch(Box::new(job)));
        }
    }

    /// Checks the result of an action against the contract of the step.
    fn produced(&mut self, place: Place, value: Value) {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        match &step.kind {
            Kind::Action(Action::Call(call)) if call.mode == CallMode::Inline => {
                return self.enter_call(place, &value);
            }
            Kind::Action(Action::Task(task)) => {
                if let Some(planner) = &task.planner {
                    return self.planned(place, planner, value);
                }
            }
            _ => {}
        }
        match contracted(&program, &step.outputs, value.clone()) {
            Ok(outputs) => self.settle(place, Outcome::Done(outputs)),
            // Where outputs of failed steps can be read, those that are valid are not lost.
            Err(failure) if program.shapes().failed == FailedShape::Produced => {
                self.failed(place, Failure { detail: Some(value), ..failure });
            }
            Err(failure) => self.failed(place, failure),
        }
    }

    /// Handles a timed-out attempt. If the time for all rounds is up, there is no retry.
    pub(super) fn timed_out(&mut self, place: Place, failure: Failure) {
        let program = self.program(place);
        let over = self.rounds_deadline(place, program.step(self.at(place).step));
        match over.is_some_and(|over| over <= self.now) {
            true => {
                let failure = Failure::new(class::TIMEOUT, "the time for all rounds is up");
                self.settle(place, Outcome::Failed(failure));
            }
            false => self.failed(place, failure),
        }
    }

    /// Handles a failed attempt: retries it, or fails the step.
    pub(super) fn failed(&mut self, place: Place, failure: Failure) {
        match self.retry_delay(place, &failure) {
            Ok(Some(delay)) => {
                let (path, attempt) = (self.path(place), self.at(place).attempts);
                self.give_back(place, None);
                self.emit(What::AttemptFailed { path, attempt, failure, delay });
            }
            Ok(None) => self.settle(place, Outcome::Failed(failure)),
            Err(failure) => self.settle(place, Outcome::Failed(failure)),
        }
    }

    /// The delay before the next attempt, or `None` if there is none.
    fn retry_delay(&self, place: Place, failure: &Failure) -> Result<Option<Duration>, Failure> {
        let instance = self.at(place);
        let retry = &self.state().program(place).step(instance.step).policy.retry;
        let attempt = instance.attempts - instance.attempts_before;
        let named = |list: &[Arc<str>]| list.contains(&failure.class);
        let allowed = match (retry.only.is_empty(), class::NOT_RETRIED.contains(&&*failure.class)) {
            (true, by_nature) => !by_nature,
            (false, _) => named(&retry.only),
        };
        let stopping = self.state().is_unwound(place);
        if stopping || attempt >= retry.attempts_max || named(&retry.never) || !allowed {
            return Ok(None);
        }
        if let Some(when) = &retry.when {
            let sight = Sight { failed: Some((failure, attempt)), ..self.sight(Some(place))? };
            if !sight.holds(when)? {
                return Ok(None);
            }
        }
        let computed = jittered(&retry.backoff, attempt, self.draw(&instance.path, instance.attempts));
        Ok(Some(match (failure.retry_after, retry.after) {
            (None, _) => computed,
            (Some(asked), RetryAfter::AtLeast) => computed.max(asked),
            (Some(asked), RetryAfter::Instead { min, max }) => asked.max(min).min(max),
        }))
    }

    /// A random number from 0 to 1 that is reproducible for the same attempt.
    fn draw(&self, path: &Path, attempt: u32) -> f64 {
        let mut hasher = Fnv(self.state().seed ^ 0xcbf2_9ce4_8422_2325);
        path.to_string().hash(&mut hasher);
        attempt.hash(&mut hasher);
        // Spread the entropy over all bits: the last bytes of an FNV hash are the least mixed.
        let mixed = (hasher.finish() ^ (hasher.finish() >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The delay after a failed attempt, with random jitter.
fn jittered(backoff: &Backoff, attempt: u32, share: f64) -> Duration {
    let delay = backoff.delay_after(attempt);
    if backoff.jitter <= 0.0 {
        return delay;
    }
    let around = match backoff.spread {
        Spread::Above => share,
        Spread::Around => 2.0 * share - 1.0,
    };
    let changed = Duration((delay.0 as f64 * (1.0 + backoff.jitter * around)).round() as u64);
    match backoff.spread {
        Spread::Above => changed,
        Spread::Around => changed.max(backoff.min).min(backoff.max),
    }
}

/// FNV-1a: small, and the same on all machines and in all versions.
#[derive(Debug)]
pub struct Fnv(pub u64);

impl std::hash::Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
