//! Attempts: what the answer of an executor leads to, and whether another attempt is made.

use super::Turn;
use super::state::{Abort, Doing, Phase, Place};
use super::values::{Sight, contracted};
use crate::event::What;
use crate::input::{Effect, Refused};
use crate::keys::JobKey;
use crate::outcome::{Failure, Outcome, class};
use windlass_ir::policy::OnFailure;
use windlass_ir::{Duration, Value};

/// The same attempt is handed out at most this often; then it counts as lost.
const DELIVERIES_MAX: u32 = 5;

impl Turn<'_> {
    /// The instance that a job belongs to, if its answer is still waited for.
    pub(super) fn outstanding(&self, job: &JobKey) -> Result<Place, Refused> {
        let place = self.state().find(&job.path).filter(|_| job.run == self.run.id);
        let current = place.filter(|place| match &self.at(*place).phase {
            Phase::Attempt(attempt) => {
                let waited_for = !matches!(attempt.doing, Doing::Backoff { .. });
                waited_for && attempt.attempt == job.attempt && attempt.delivery == job.delivery
            }
            Phase::Waiting | Phase::Ready | Phase::Gate { .. } | Phase::Entered | Phase::Settled { .. } => {
                false
            }
        });
        current.ok_or_else(|| Refused::StaleJob(job.clone()))
    }

    pub(super) fn reported(&mut self, job: &JobKey, outcome: Outcome) -> Result<(), Refused> {
        let place = self.outstanding(job)?;
        match (self.aborting(place), outcome) {
            (Some(abort), _) => self.stopped(place, abort, false),
            (None, Outcome::Done(value) | Outcome::Continue(value)) => self.produced(place, value),
            (None, Outcome::Failed(failure)) => self.failed(place, failure),
            (None, Outcome::Cancelled(why)) => self.failed(place, Failure::new(class::CANCELLED, why)),
            (None, Outcome::Skipped(_)) => self.settle(place, Outcome::Done(Value::Null), false),
        }
        Ok(())
    }

    /// A job is gone. It used up no attempt, so it is handed out again, a few times.
    pub(super) fn lost(&mut self, job: &JobKey) -> Result<(), Refused> {
        let place = self.outstanding(job)?;
        match self.aborting(place) {
            Some(abort) => self.stopped(place, abort, false),
            None if job.delivery < DELIVERIES_MAX => self.dispatch(place, job.attempt, job.delivery + 1),
            None => {
                let message = format!("the job was lost {DELIVERIES_MAX} times");
                self.failed(place, Failure::new(class::LOST, message));
            }
        }
        Ok(())
    }

    fn aborting(&self, place: Place) -> Option<Abort> {
        match &self.at(place).phase {
            Phase::Attempt(attempt) => match attempt.doing {
                Doing::Aborting(abort) => Some(abort),
                Doing::Running | Doing::Backoff { .. } => None,
            },
            Phase::Waiting | Phase::Ready | Phase::Gate { .. } | Phase::Entered | Phase::Settled { .. } => {
                None
            }
        }
    }

    /// An attempt that was told to stop has stopped, or was given up.
    pub(super) fn stopped(&mut self, place: Place, abort: Abort, abandoned: bool) {
        match abort {
            Abort::Cancel => {
                let why = self.state().cancelling.clone().unwrap_or_else(|| "cancelled".into());
                self.settle(place, Outcome::Cancelled(why), abandoned);
            }
            Abort::Timeout => {
                let limit =
                    self.run.program.plan.step(self.at(place).step).policy.timeout.unwrap_or_default();
                self.failed(place, Failure::new(class::TIMEOUT, format!("took longer than {limit}")));
            }
        }
    }

    /// The work is done: its outputs are held against the contract of the step.
    fn produced(&mut self, place: Place, value: Value) {
        let program = self.run.program.clone();
        match contracted(&program, &program.plan.step(self.at(place).step).outputs, value) {
            Ok(outputs) => self.settle(place, Outcome::Done(outputs), false),
            Err(failure) => self.failed(place, failure),
        }
    }

    /// An attempt failed: another one is made, or the step has failed.
    fn failed(&mut self, place: Place, failure: Failure) {
        match self.retry_delay(place, &failure) {
            Ok(Some(delay)) => {
                let instance = self.at(place);
                let (path, attempt) = (instance.path.clone(), instance.attempts);
                self.emit(What::AttemptFailed { path, attempt, failure, delay });
            }
            Ok(None) => self.settle(place, Outcome::Failed(failure), false),
            Err(failure) => self.settle(place, Outcome::Failed(failure), false),
        }
    }

    /// How long to wait before the next attempt; none when there is none.
    fn retry_delay(&self, place: Place, failure: &Failure) -> Result<Option<Duration>, Failure> {
        let instance = self.at(place);
        let retry = &self.run.program.plan.step(instance.step).policy.retry;
        let attempt = instance.attempts - instance.attempts_before;
        let named = |list: &[std::sync::Arc<str>]| list.contains(&failure.class);
        let allowed = match (retry.only.is_empty(), class::NOT_RETRIED.contains(&&*failure.class)) {
            (true, by_nature) => !by_nature,
            (false, _) => named(&retry.only),
        };
        let stopping = self.state().cancelling.is_some();
        if stopping || attempt >= retry.attempts_max || named(&retry.never) || !allowed {
            return Ok(None);
        }
        if let Some(when) = &retry.when {
            let sight = Sight { failed: Some((failure, attempt)), ..self.sight(Some(place))? };
            if !sight.holds(when)? {
                return Ok(None);
            }
        }
        let delay = retry.backoff.delay_after(attempt);
        Ok(Some(delay.max(failure.retry_after.unwrap_or_default())))
    }

    /// Hands out an attempt whose assignment is known already.
    pub(super) fn dispatch(&mut self, place: Place, attempt: u32, delivery: u32) {
        let instance = self.at(place);
        let timeout = self.run.program.plan.step(instance.step).policy.timeout;
        let path = instance.path.clone();
        let deadline = timeout.map(|timeout| self.now.plus(timeout));
        self.emit(What::Scheduled { path, attempt, delivery, assignment: None, deadline });
        self.hand_out(place);
    }

    /// The effect that belongs to the attempt just scheduled.
    pub(super) fn hand_out(&mut self, place: Place) {
        if let Phase::Attempt(attempt) = &self.at(place).phase {
            let job = self.run.job(place, attempt);
            self.answer.effects.push(Effect::Dispatch(Box::new(job)));
        }
    }

    /// Writes the end of a step down, with what a failure means for the run.
    pub(super) fn settle(&mut self, place: Place, outcome: Outcome, abandoned: bool) {
        let instance = self.at(place);
        let path = instance.path.clone();
        let policy = &self.run.program.plan.step(instance.step).policy.on_failure;
        let ends_run = matches!(policy, OnFailure::Halt | OnFailure::Rollback | OnFailure::Goto(_));
        let failed = matches!(outcome, Outcome::Failed(_));
        let (halts, fails) = (failed && ends_run, failed && *policy != OnFailure::Continue);
        self.emit(What::Settled { path, outcome, halts, fails, abandoned });
    }
}
