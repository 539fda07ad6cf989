//! Actions: limits and keys, running jobs, their reports, and failures.

use super::Oracle;
use super::reading::{Reader, fits, produced, some_time, violation};
use super::tree::{At, Count, Inside, RUN, Rounds as Between, State, Stop};
use std::sync::Arc;
use windlass_engine::{Failure, JobKey, Outcome, Timestamp, class};
use windlass_ir::expr::FailedShape;
use windlass_ir::policy::RetryAfter;
use windlass_ir::workflow::{Action, Bound, Kind, Rounds};
use windlass_ir::{Duration, Value};

/// The most deliveries of an attempt that started and were lost.
const DELIVERIES_MAX: u32 = 5;

/// The result of a step with a key, and when it expires.
#[derive(Clone, Debug)]
pub struct KeptKey {
    pub key: Arc<str>,
    pub value: Value,
    pub until: Timestamp,
}

impl Oracle {
    /// Dispatches the first possible job; false if there is none. An action checks its dependencies, its condition
    /// and its key once there is room for it.
    pub fn hand_out_something(&mut self) -> bool {
        let can = |oracle: &Self, at: At| match oracle.tree[at].state {
            State::Pending if at != RUN => {
                oracle.is_action(at) && oracle.is_ready(at) && oracle.has_place(at)
            }
            State::Queued => oracle.has_place(at),
            State::Next { due } => due.is_none(),
            _ => false,
        };
        let Some(at) = self.tree.all().find(|at| can(self, *at)) else { return false };
        if matches!(self.tree[at].state, State::Pending) {
            self.begin(at);
            return true;
        }
        if matches!(self.tree[at].state, State::Queued) {
            if self.share_key(at) {
                return true;
            }
            if let Err(failure) = self.render_work(at) {
                self.end(at, Outcome::Failed(failure));
                return true;
            }
            let attempt = self.tree[at].count.attempt + 1;
            let first_start = self.now;
            self.tree[at].count = Count {
                attempt,
                delivery: 1,
                losses: 0,
                tries: 1,
                round: 0,
                first_start,
                next_is_new: false,
            };
            self.tree[at].key.held = self.tree[at].key.text.is_some();
        }
        let is_new = self.tree[at].count.next_is_new;
        if is_new && self.rounds_over_at(at).is_some_and(|over| over <= self.now) {
            self.end(at, Outcome::Failed(Failure::new(class::TIMEOUT, "the rounds took too long")));
            return true;
        }
        let count = &mut self.tree[at].count;
        if std::mem::take(&mut count.next_is_new) {
            (count.attempt, count.delivery, count.losses) = (count.attempt + 1, 1, 0);
        }
        let own = self.step(at).policy.timeout.map(|limit| self.now.plus(limit));
        let deadline = own.into_iter().chain(self.rounds_over_at(at)).min();
        self.tree[at].state = State::Out { deadline, grace: None };
        true
    }

    /// The end of the time for all rounds of a task.
    fn rounds_over_at(&self, at: At) -> Option<Timestamp> {
        let Kind::Action(Action::Task(task)) = &self.step(at).kind else { return None };
        let time_max = task.rounds.as_ref()?.time_max?;
        Some(self.tree[at].count.first_start.plus(time_max))
    }

    /// Whether the limits of the run allow one more action.
    fn has_place(&self, at: At) -> bool {
        let holding = |at: At| matches!(self.tree[at].state, State::Out { .. } | State::Next { .. });
        let holders: Vec<At> = self.tree.all().filter(|at| holding(*at)).collect();
        let agents = holders.iter().filter(|at| self.is_agent(**at)).count();
        let limits = &self.plan.policy.concurrency;
        limits.steps_per_run.is_none_or(|limit| holders.len() < limit as usize)
            && (!self.is_agent(at) || agents < limits.agents_per_run as usize)
    }

    fn is_agent(&self, at: At) -> bool {
        matches!(self.step(at).kind, Kind::Action(Action::Agent(_)))
    }

    /// Whether anything other than a gate is open: attempts, waits, or loops between two rounds.
    pub fn is_moving(&self) -> bool {
        self.tree.instances.iter().any(|instance| match instance.state {
            State::Out { .. } | State::Next { .. } | State::Waiting { .. } => true,
            State::Entered => {
                matches!(instance.inside, Some(Inside::Rounds(Between::Wanted { due: Some(_) })))
            }
            _ => false,
        })
    }

    /// Renders the input of a job and checks its types. The result itself is not compared.
    fn render_work(&self, at: At) -> Result<(), Failure> {
        let (step, reader) = (self.step(at), Reader::new(self, at));
        for (name, input) in &step.inputs {
            let source = input.source.as_ref();
            let value = source.map_or(Ok(Value::Null), |source| reader.render(&source.template))?;
            let good = if value == Value::Null { !input.required } else { fits(&value, &input.ty) };
            if !good {
                return Err(violation(name));
            }
        }
        reader.render_all(&step.env)?;
        let render = |bound: &Bound| reader.render(&bound.template).map(drop);
        match &step.kind {
            Kind::Action(Action::Agent(agent)) => agent.instructions.iter().try_for_each(render),
            Kind::Action(Action::Task(task)) => task.input.iter().try_for_each(render),
            _ => Ok(()),
        }
    }

    /// Handles a step whose key belongs to another one: it uses that result, or waits for it.
    pub fn share_key(&mut self, at: At) -> bool {
        let Some(key) = self.tree[at].key.text.clone().filter(|_| !self.tree[at].key.held) else {
            return false;
        };
        let now = self.now;
        let kept = self.kept_keys.iter().rfind(|kept| kept.key == key).filter(|kept| now < kept.until);
        if let Some(kept) = kept {
            let value = kept.value.clone();
            self.end(at, Outcome::Done(value));
            return true;
        }
        let same =
            |other: &At| self.tree[*other].key.held && self.tree[*other].key.text.as_ref() == Some(&key);
        if !self.tree.all().any(|other| same(&other)) {
            return false;
        }
        self.tree[at].state = State::Joined { turn: self.next_turn() };
        true
    }

    /// After the owner of a key has settled, the waiting steps use its result, or the first of them does the work.
    pub fn release_key(&mut self, at: At) {
        let Some(key) = self.tree[at].key.text.clone().filter(|_| self.tree[at].key.held) else { return };
        self.tree[at].key.held = false;
        let mut waiting: Vec<(u64, At)> = self
            .tree
            .all()
            .filter_map(|other| match self.tree[other].state {
                State::Joined { turn } if self.tree[other].key.text.as_ref() == Some(&key) => {
                    Some((turn, other))
                }
                _ => None,
            })
            .collect();
        waiting.sort_unstable();
        if let Some(Outcome::Done(value)) = self.tree[at].outcome().cloned() {
            let ttl = self.step(at).policy.idempotency.as_ref().and_then(|key| key.ttl);
            let until = ttl.map_or(Timestamp::NEVER, |ttl| self.now.plus(ttl));
            self.kept_keys.push(KeptKey { key, value: value.clone(), until });
            waiting.into_iter().for_each(|(_, other)| self.end(other, Outcome::Done(value.clone())));
        } else if let Some((_, first)) = waiting.first() {
            self.tree[*first].key.held = true;
            self.tree[*first].state = State::Queued;
        }
    }

    /// The instance of a job, while the job is running.
    pub fn job(&self, job: &JobKey) -> Option<At> {
        let is_it = |at: &At| {
            let (instance, count) = (&self.tree[*at], &self.tree[*at].count);
            matches!(instance.state, State::Out { .. })
                && instance.path == job.path
                && (count.attempt, count.delivery) == (job.attempt, job.delivery)
        };
        self.tree.all().find(is_it)
    }

    pub fn reported(&mut self, at: At, outcome: &Outcome) {
        if self.stopped(at) {
            return;
        }
        let plan = self.plan.clone();
        let step = plan.step(self.tree[at].step.expect("a job is of a step"));
        match outcome {
            Outcome::Done(value) => match produced(value, &step.outputs) {
                Ok(value) => self.end(at, Outcome::Done(value)),
                // The valid outputs of a failed step can be read.
                Err(failure) if plan.semantics.results.failed == FailedShape::Produced => {
                    self.attempt_failed(at, Failure { detail: Some(value.clone()), ..failure });
                }
                Err(failure) => self.attempt_failed(at, failure),
            },
            Outcome::Continue(_) => {
                let rounds = match &step.kind {
                    Kind::Action(Action::Task(task)) => task.rounds.as_ref(),
                    _ => None,
                };
                self.another_round(at, rounds);
            }
            Outcome::Failed(failure) => self.attempt_failed(at, failure.clone()),
            Outcome::Cancelled(why) => self.attempt_failed(at, Failure::new(class::CANCELLED, why.clone())),
            Outcome::Skipped(_) => {
                self.attempt_failed(at, Failure::new(class::ERROR, "an executor cannot skip"));
            }
        }
    }

    pub fn lost(&mut self, at: At, started: bool) {
        if self.stopped(at) {
            return;
        }
        let count = &mut self.tree[at].count;
        count.losses += u32::from(started);
        if count.losses < DELIVERIES_MAX {
            count.delivery += 1;
            self.tree[at].state = State::Next { due: None };
        } else {
            self.attempt_failed(at, Failure::new(class::LOST, "lost again and again"));
        }
    }

    /// An aborted attempt has reported, is lost or is abandoned: it counts as stopped regardless of its report.
    pub fn stopped(&mut self, at: At) -> bool {
        let State::Out { grace: Some(_), .. } = self.tree[at].state else { return false };
        match self.tree[at].stop.clone() {
            Some(Stop::Cancelled { why, .. }) => self.settle(at, Outcome::Cancelled(why)),
            Some(Stop::TimedOut) | None => {
                let failure = Failure::new(class::TIMEOUT, "the attempt took too long");
                match self.rounds_over_at(at).is_some_and(|over| over <= self.now) {
                    true => self.end(at, Outcome::Failed(failure)),
                    false => self.attempt_failed(at, failure),
                }
            }
        }
        true
    }

    fn another_round(&mut self, at: At, rounds: Option<&Rounds>) {
        let (count, now) = (&mut self.tree[at].count, self.now);
        if rounds.is_none() {
            return self.end(at, Outcome::Failed(Failure::new(class::CONTRACT_VIOLATION, "no rounds")));
        }
        let Some(rounds) = rounds.filter(|rounds| count.round + 1 < rounds.rounds_max) else {
            return self.end(at, Outcome::Failed(Failure::new(class::ERROR, "there is no further round")));
        };
        if rounds.time_max.is_some_and(|max| now >= count.first_start.plus(max)) {
            return self.end(at, Outcome::Failed(Failure::new(class::TIMEOUT, "the rounds took too long")));
        }
        (count.next_is_new, count.tries, count.round) = (true, 1, count.round + 1);
        self.tree[at].state = State::Next { due: some_time(rounds.delay).map(|delay| now.plus(delay)) };
    }

    fn attempt_failed(&mut self, at: At, failure: Failure) {
        match self.is_tried_again(at, &failure) {
            Ok(true) => {
                let delay = self.delay(at, &failure);
                let count = &mut self.tree[at].count;
                (count.next_is_new, count.tries) = (true, count.tries + 1);
                self.tree[at].state = State::Next { due: Some(self.now.plus(delay)) };
            }
            Ok(false) => self.end(at, Outcome::Failed(failure)),
            Err(error) => self.end(at, Outcome::Failed(error)),
        }
    }

    fn is_tried_again(&self, at: At, failure: &Failure) -> Result<bool, Failure> {
        let (retry, tries) = (&self.step(at).policy.retry, self.tree[at].count.tries);
        let named = retry.only.contains(&failure.class);
        let excluded = retry.never.contains(&failure.class)
            || (!retry.only.is_empty() && !named)
            || (class::NOT_RETRIED.contains(&&*failure.class) && !named);
        if tries >= retry.attempts_max || excluded {
            return Ok(false);
        }
        let reader = Reader::new(self, at).after(failure, tries);
        retry.when.as_ref().map_or(Ok(true), |when| reader.holds(when))
    }

    fn delay(&self, at: At, failure: &Failure) -> Duration {
        let retry = &self.step(at).policy.retry;
        let computed = retry.backoff.delay_after(self.tree[at].count.tries);
        match (failure.retry_after, retry.after) {
            (None, _) => computed,
            (Some(asked), RetryAfter::AtLeast) => computed.max(asked),
            (Some(asked), RetryAfter::Instead { min, max }) => asked.max(min).min(max),
        }
    }
}
