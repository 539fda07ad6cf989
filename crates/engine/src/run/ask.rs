//! Requests to the coordinator, its answers, and the release of resources.

use super::state::{Attempt, Phase, Place, State};
use super::values::Sight;
use super::{Run, Turn, render};
use crate::coordinator::{
    Address, Amount, Ask, Asker, Claim, CoordinatorAnswer, Denial, End, Full, Subscription,
};
use crate::event::{Assignment, RunBudget, Shares, What};
use crate::input::{Effect, Refused, Start};
use crate::keys::{Path, RunId, Timestamp};
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::MessageRule;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::{IdempotencyScope, OnConflict};
use windlass_ir::workflow::{Action, Kind};

impl Run {
    fn asker(&self, place: Place, number: u32) -> Asker {
        Asker { run: self.id.clone(), path: self.state.at(place).path.clone(), attempt: number }
    }

    fn ask_with(&self, asker: Asker, claims: Vec<Claim>, since: Timestamp) -> Box<Ask> {
        let shares = &self.state.shares;
        Box::new(Ask { asker, claims, since, ahead: shares.ahead, ancestors: shares.parents.clone() })
    }

    pub(super) fn ask_of(&self, place: Place, attempt: &Attempt) -> Effect {
        let asked = self.state.at(place).asked.as_ref();
        let (number, since) = asked.map_or((0, self.state.last_at), |asked| (asked.number, asked.since));
        let ask = self.ask_with(self.asker(place, number), attempt.assignment.claims.clone(), since);
        Effect::Ask { ask, job: Some(Box::new(self.job(place, attempt))) }
    }

    /// The run's request for admission, until it is granted.
    pub(super) fn application(&self) -> Option<Effect> {
        let time = self.state.admission.request.filter(|_| self.outcome().is_none())?;
        let asker = Asker::start(self.id.clone(), time);
        let ask = self.ask_with(asker, self.state.shares.claims.clone(), self.state.admission.requested_at);
        Some(Effect::Ask { ask, job: None })
    }

    /// The askers that wait for the coordinator: the run itself, or attempts of its steps.
    pub fn asks(&self) -> impl Iterator<Item = Asker> {
        let start = self.state.admission.request.filter(|_| self.outcome().is_none());
        let start = start.map(|time| Asker::start(self.id.clone(), time));
        let steps = self.state.index.waiting.iter();
        let steps =
            steps.filter_map(|place| Some(self.asker(*place, self.state.at(*place).asked.as_ref()?.number)));
        start.into_iter().chain(steps)
    }

    /// The unanswered requests.
    pub fn owed_asks(&self) -> Vec<Effect> {
        let steps = self.state.index.waiting.iter();
        let steps = steps.filter_map(|place| Some(self.ask_of(*place, self.state.at(*place).attempt()?)));
        self.application().into_iter().chain(steps).collect()
    }

    /// Whether the run still needs what it asked for as this asker.
    pub fn needs(&self, asker: &Asker) -> bool {
        if self.outcome().is_some() {
            return false;
        }
        if asker.path.is_run() {
            // A slot that a trigger reserved for its run has the number 0.
            return asker.attempt == 0 || asker.attempt == self.state.admission.requests;
        }
        let place = self.state.find(&asker.path);
        let asked = place.and_then(|place| self.state.at(place).asked.as_ref());
        asked.is_some_and(|asked| asked.number == asker.attempt)
    }

    /// Whether a step needs nothing any more.
    pub fn is_over(&self, path: &Path) -> bool {
        let place = self.state.find(path);
        place.is_none_or(|place| matches!(self.state.at(place).phase, Phase::Settled(_)))
    }

    /// How the work of an asker ended, and its cost.
    pub fn ended(&self, asker: &Asker) -> (Amount, End) {
        let Some(place) = self.state.find(&asker.path) else { return (Amount::default(), End::Over) };
        let instance = self.state.at(place);
        let cost = instance.gave_back.filter(|(number, _)| *number == asker.attempt).map(|(_, used)| used);
        match (&instance.phase, cost) {
            (Phase::Settled(settlement), Some(used)) => (used, end_of(Some(&settlement.outcome))),
            (_, Some(used)) => (used, End::Attempt),
            (_, None) => (Amount::default(), End::Lost),
        }
    }

    /// The messages that the run waits for and that are not addressed to a run.
    pub fn subscriptions(&self) -> Vec<Subscription> {
        if self.outcome().is_some() {
            return Vec::new();
        }
        let waits = self.state.index.sleeping.iter().filter_map(|place| {
            let Phase::Wait(sleep) = &self.state.at(*place).phase else { return None };
            let signal = sleep.signal.as_ref().filter(|signal| signal.message && sleep.got.is_none())?;
            let path = self.state.at(*place).path.clone();
            let address = Address { run: self.id.clone(), path };
            let (name, matching) = (signal.name.clone(), signal.matching.clone());
            Some(Subscription { address, name, matching, until: None, number: 0, as_text: signal.as_text })
        });
        self.state.shares.cancelled_by.iter().cloned().chain(waits).collect()
    }

    /// The key that identifies repeated starts of this workflow with these inputs as one run.
    pub fn start_key(&self, inputs: &Value) -> Result<Option<Arc<str>>, Refused> {
        let Some(key) = &self.program.plan.policy.start_key else { return Ok(None) };
        let mut state = State::new(self.program.clone());
        state.units[0].inputs = inputs.clone();
        let sight = Sight::at_start(&self.id, &state);
        let wrong = |failure: Failure| Refused::BadInput(failure.message.to_string());
        if sight.value(key).map_err(wrong)? == Value::Null {
            return Ok(None);
        }
        let text = render::text(&sight, key).map_err(wrong)?;
        Ok(Some(format!("start:{}:{text}", self.program.plan.header.id).into()))
    }
}

impl Turn<'_> {
    /// The shared resources that an attempt of a step needs.
    pub(super) fn claims(
        &self,
        step: &PlanStep,
        action: &Action,
        sight: &Sight<'_>,
    ) -> Result<Vec<Claim>, Failure> {
        let workflow = &sight.program().plan.header.id;
        let mut claims = Vec::new();
        if let Some(key) =
            step.policy.idempotency.as_ref().filter(|key| key.scope == IdempotencyScope::Global)
        {
            let text = render::text(sight, &key.key)?;
            claims.push(Claim::Key { key: format!("key:{text}").into(), ttl: key.ttl });
        }
        if let (Some(limit), Action::Task(task)) = (step.policy.task_jobs_max, action) {
            let key = format!("task:{}", task.task).into();
            claims.push(Claim::Slot { key, limit, full: Full::Wait });
        }
        if let Some(rate) = &step.policy.rate {
            let key = match &rate.key {
                Some(key) => format!("rate:{workflow}/{}:{}", step.id, render::text(sight, key)?),
                None => format!("rate:{workflow}/{}", step.id),
            };
            let (limit, period, units) = (rate.limit, rate.period, rate.units);
            claims.push(Claim::Rate { key: key.into(), limit, period, units });
        }
        if spends(action) {
            let most = Amount { calls: 1, ..Amount::default() };
            let budgets = self.run.budgets();
            claims.extend(budgets.map(|RunBudget { run, cap }| Claim::Spend {
                budget: budget_of(&run),
                cap,
                most,
            }));
        }
        Ok(claims)
    }

    /// The shared resources of the run as a whole.
    pub(super) fn shares(&self, state: &State, start: &Start) -> Result<Option<Box<Shares>>, Failure> {
        let plan = &self.run.program.plan;
        let (id, policy) = (&plan.header.id, &plan.policy);
        let sight = Sight { now: Some(self.now), ..Sight::at_start(&self.run.id, state) };
        let named = |kind: &str, key: Option<&windlass_ir::workflow::Bound>| -> Result<Arc<str>, Failure> {
            Ok(match key {
                Some(key) => format!("{kind}:{id}:{}", render::text(&sight, key)?).into(),
                None => format!("{kind}:{id}").into(),
            })
        };
        let mut claims = start.claims.clone();
        if let Some(singleton) = &policy.singleton {
            let full = match singleton.on_conflict {
                OnConflict::Skip => Full::Deny,
                OnConflict::Cancel => Full::Replace,
            };
            let key = named("singleton", singleton.key.as_ref())?;
            claims.push(Claim::Slot { key, limit: 1, full });
        }
        if let Some(limit) = policy.concurrency.runs_per_workflow {
            let key = named("runs", policy.concurrency.key.as_ref())?;
            claims.push(Claim::Slot { key, limit, full: Full::Wait });
        }
        let ahead = match &policy.priority {
            Some(priority) => {
                let key = render::text(&sight, &priority.key)?;
                priority.offsets.get(&key).copied().unwrap_or(priority.default_offset)
            }
            None => 0,
        };
        let address = Address { run: self.run.id.clone(), path: Path::default() };
        let as_text = self.run.program.plan.semantics.messages == MessageRule::ByText;
        let mut cancelled_by = Vec::new();
        for (number, cancel) in (0u32..).zip(&policy.cancel_on) {
            let until = cancel.timeout.map(|timeout| self.now.plus(timeout));
            let (address, name) = (address.clone(), cancel.message.clone());
            let matching = render::bindings(&sight, &cancel.matching)?;
            cancelled_by.push(Subscription { address, name, matching, until, number, as_text });
        }
        let (parents, budgets) = (start.parents.clone(), start.budgets.clone());
        let shares = Shares { claims, ahead, cancelled_by, parents, budgets };
        Ok((shares != Shares::default()).then(|| Box::new(shares)))
    }

    /// Asks for the slots of a new or reopened run, and subscribes to the messages that cancel it.
    pub(super) fn apply(&mut self) {
        self.answer.effects.extend(self.run.application());
        let subscriptions = self.state().shares.cancelled_by.iter().cloned();
        let subscribe: Vec<Effect> =
            subscriptions.map(|subscription| Effect::Subscribe(Box::new(subscription))).collect();
        self.answer.effects.extend(subscribe);
    }

    /// Dispatches an attempt, or first asks the coordinator if the attempt needs shared resources.
    pub(super) fn ask_or_schedule(
        &mut self,
        place: Place,
        attempt: u32,
        delivery: u32,
        assignment: Option<Arc<Assignment>>,
    ) {
        let known = self.at(place).attempt().map(|before| before.assignment.clone());
        let shares = assignment.clone().or(known).is_some_and(|assignment| !assignment.claims.is_empty());
        // A call does no work of its own: the runs that it starts ask for themselves.
        let is_call = matches!(self.state().kind(place), Kind::Action(Action::Call(_)));
        if !shares && (!self.run.asks_always || is_call) {
            return self.schedule(place, attempt, delivery, assignment);
        }
        let path = self.path(place);
        self.emit(What::Asked { path, attempt, delivery, assignment });
        let ask = self.at(place).attempt().map(|attempt| self.run.ask_of(place, attempt));
        self.answer.effects.extend(ask);
    }

    pub(super) fn answered(&mut self, asker: Asker, answer: CoordinatorAnswer) -> Result<(), Refused> {
        if asker.path.is_run() {
            if self.state().admission.request != Some(asker.attempt) {
                return Err(Refused::NotAsked(asker));
            }
            match answer {
                CoordinatorAnswer::Granted | CoordinatorAnswer::Found(_) => {
                    self.emit(What::Admitted { path: asker.path, attempt: asker.attempt });
                }
                CoordinatorAnswer::Denied(denial) => {
                    let why = denial.to_string().into();
                    self.emit(What::CancelRequested {
                        path: asker.path,
                        why,
                        by: LIMITS.into(),
                        inside: false,
                    });
                }
            }
            return Ok(());
        }
        let Some(place) = self.waiting_for(&asker) else { return Err(Refused::NotAsked(asker)) };
        match answer {
            CoordinatorAnswer::Granted => {
                self.emit(What::Admitted { path: asker.path, attempt: asker.attempt });
            }
            CoordinatorAnswer::Found(value) => self.settle(place, Outcome::Done(value)),
            CoordinatorAnswer::Denied(denial) => self.settle(place, Outcome::Failed(refusal(&denial))),
        }
        Ok(())
    }

    /// The instance that waits for this answer.
    fn waiting_for(&self, asker: &Asker) -> Option<Place> {
        let place = self.state().find(&asker.path)?;
        let attempt = self.at(place).attempt()?;
        let waits = matches!(attempt.doing, super::state::Doing::Asking { granted: false });
        let number = self.at(place).asked.as_ref()?.number;
        (waits && number == asker.attempt && asker.run == self.run.id).then_some(place)
    }

    /// Releases the resources of an attempt. With an outcome, the step is over, so it also unsubscribes.
    pub(super) fn give_back(&mut self, place: Place, outcome: Option<&Outcome>) {
        if let (Phase::Wait(sleep), Some(_)) = (&self.at(place).phase, outcome)
            && sleep.signal.as_ref().is_some_and(|signal| signal.message)
        {
            let address = Address { run: self.run.id.clone(), path: self.path(place) };
            self.answer.effects.push(Effect::Unsubscribe(address));
        }
        let instance = self.at(place);
        let (number, used) = match (&instance.asked, outcome) {
            (Some(asked), _) => (asked.number, asked.used(self.now)),
            // Between two attempts a step holds nothing, but still owns its idempotency key.
            (None, Some(_)) if instance.attempt().is_some_and(Attempt::has_shared_key) => {
                (instance.asks, Amount::default())
            }
            (None, _) => return,
        };
        let asker = self.run.asker(place, number);
        self.answer.effects.push(Effect::Release { asker, used, end: end_of(outcome) });
    }

    /// Charges the maximum cost of a lost job. Returns whether the charge also goes to budgets outside its claims,
    /// which the coordinator adds if every job is asked for.
    pub(super) fn charge_lost(&mut self, place: Place) -> bool {
        let Some(asked) = &self.at(place).asked else { return false };
        let named = self.at(place).attempt().is_some_and(Attempt::spends);
        let costs = matches!(self.state().kind(place), Kind::Action(action) if spends(action));
        let unnamed = self.run.asks_always && costs && !named;
        if named || unnamed {
            let asker = self.run.asker(place, asked.number);
            self.answer.effects.push(Effect::Release { asker, used: Amount::default(), end: End::Lost });
        }
        unnamed
    }
}

/// The actor that cancels a run if its request for slots is denied.
const LIMITS: &str = "limits";

/// Whether an action has a cost that counts against budgets.
fn spends(action: &Action) -> bool {
    match action {
        Action::Agent(_) | Action::Tool(_) | Action::Task(_) | Action::Http(_) | Action::Assistant(_) => true,
        Action::Shell(_) | Action::Call(_) | Action::Builtin(_) => false,
    }
}

fn end_of(outcome: Option<&Outcome>) -> End {
    match outcome {
        None => End::Attempt,
        Some(Outcome::Done(value)) => End::Done(value.clone()),
        Some(Outcome::Continue(_) | Outcome::Failed(_) | Outcome::Skipped(_) | Outcome::Cancelled(_)) => {
            End::Over
        }
    }
}

fn refusal(denial: &Denial) -> Failure {
    let class = match denial {
        Denial::BudgetExceeded { .. } => class::BUDGET_EXCEEDED,
        Denial::Taken { .. } | Denial::WouldDeadlock { .. } | Denial::TooMuch { .. } => class::ERROR,
    };
    Failure::new(class, denial.to_string())
}

/// The key of the budget that a run shares with the runs it calls.
pub fn budget_of(root: &RunId) -> Arc<str> {
    format!("run:{root}").into()
}
