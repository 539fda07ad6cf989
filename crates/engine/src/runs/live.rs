//! One run in memory: its mail, its decisions and its jobs.

use super::clock::{Clock, Now};
use super::mail::{After, Body, Execution, Loaded, Mail, Order, Reply, ReplyTo, Resume, Still, Wake};
use super::planted::{Bug, planted};
use super::rates::{Passed, Rates};
use super::work::{Landing, To, Work};
use crate::coordinator::{Ask, Asker, CoordinatorAnswer, CoordinatorInput, KeyState, Message};
use crate::input::{Effect, Input, Refused};
use crate::job::Job;
use crate::keys::{JobKey, RunId, Timestamp};
use crate::outcome::Outcome;
use crate::run::{Answer, Run};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use windlass_ir::{Duration, Value};

/// A virtual clock skips waits for people only if they are shorter than this, unless the execution is patient.
const SHORT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Live {
    pub run: Run,
    pub clock: Clock,
    /// `None` while the run only records its mail.
    pub execution: Option<Execution>,
    /// Whether this process can execute the run.
    pub can_execute: bool,
    pub tail: After,
    /// The number of durable events.
    pub durable: u64,
    pub jobs: BTreeMap<JobKey, Holder>,
    /// Aborted jobs. The run may have abandoned them before an executor receives the abort.
    pub aborted: BTreeMap<JobKey, Job>,
    /// Mail for later, by the run's clock. The number orders mail for the same instant.
    pub agenda: BTreeMap<(Timestamp, u64), (Mail, Option<ReplyTo>)>,
    planned: u64,
    /// Mail that waits until the last record is durable.
    pub waiting: VecDeque<(Mail, Option<ReplyTo>)>,
    /// The number of the last record when the run last repeated its requests to the coordinator. That record must be
    /// durable before the run leaves memory.
    pub shared: u64,
    /// The number of pending landings.
    pub underway: u32,
    pub held: bool,
    pub stopping: bool,
    pub alarm: Option<u64>,
    /// Rate limits of a run with a virtual clock, which no other run shares.
    pub rates: Option<Box<Rates>>,
    pub is_still: bool,
    /// It has not handled any mail since it was loaded.
    pub is_fresh: bool,
    /// It contradicted itself, which is a bug in the engine. The run is parked.
    pub is_broken: bool,
}

/// Who holds a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// An executor of this process.
    Here,
    /// Something that outlives this process.
    Elsewhere,
    /// An executor was asked whether it still knows the job.
    Asked { abort: bool },
    /// Its report is on the agenda.
    Planned,
}

impl Live {
    pub fn new(run: Run, execution: Option<Execution>, tail: After, durable: u64, clock: Clock) -> Self {
        Self {
            run,
            clock,
            can_execute: execution.is_some(),
            execution,
            tail,
            durable,
            jobs: BTreeMap::new(),
            aborted: BTreeMap::new(),
            agenda: BTreeMap::new(),
            planned: 0,
            waiting: VecDeque::new(),
            shared: 0,
            underway: 0,
            held: false,
            stopping: false,
            alarm: None,
            rates: None,
            is_still: false,
            is_fresh: true,
            is_broken: false,
        }
    }

    /// Replaces the run after a failed write. Its jobs, clock and agenda stay.
    pub fn reload(&mut self, loaded: Loaded) {
        (self.run, self.tail, self.durable) = (loaded.run, After::Stored(Some(loaded.tail)), loaded.events);
        (self.underway, self.held) = (0, false);
    }

    /// Whether the run only records its mail, but this process could execute it.
    pub fn only_records(&self) -> bool {
        self.execution.is_none() && self.can_execute
    }

    pub fn is_quiet(&self) -> bool {
        self.execution.is_none() || self.stopping
    }

    /// When to load the run again after it leaves memory.
    pub fn wake(&self) -> Wake {
        match self.run.next_deadline() {
            _ if self.run.owes() || self.run.is_interrupted() => Wake::Owes,
            Some(due) => Wake::At(due),
            None => Wake::Never,
        }
    }

    /// The time of the next timer, agenda entry or rate limit, by the run's clock.
    pub fn due(&self) -> Option<Timestamp> {
        let agenda = self.agenda.keys().next().map(|(at, _)| *at);
        let timer = match planted(Bug::FarTimers) && !self.run.moves_by_itself() {
            true => self.run.next_deadline().filter(|due| *due <= self.run.last_at().plus(SHORT)),
            false => self.run.next_deadline(),
        };
        agenda.into_iter().chain(timer).chain(self.rate_due()).min()
    }

    fn rate_due(&self) -> Option<Timestamp> {
        self.rates.as_ref()?.next()
    }

    /// Whether the run waits for nothing inside this process.
    pub fn is_at_rest(&self) -> bool {
        let rests = |holder: &Holder| matches!(holder, Holder::Elsewhere | Holder::Planned);
        self.underway == 0 && self.waiting.is_empty() && self.jobs.values().all(rests)
    }

    /// The instant that a virtual clock may jump to.
    pub fn jump(&self) -> Option<Timestamp> {
        let execution = self.execution.as_ref().filter(|_| self.clock.is_virtual() && !self.stopping)?;
        let due = self.due().filter(|_| self.is_at_rest())?;
        let planned = self.agenda.keys().next().is_some_and(|(at, _)| *at == due);
        let works = self.jobs.values().any(|holder| *holder == Holder::Planned);
        let moves = planned || works || self.run.moves_by_itself() || self.rate_due() == Some(due);
        let worth = execution.patient || moves;
        let Clock::Virtual(now) = self.clock else { return None };
        (worth || due <= now.plus(SHORT)).then_some(due)
    }

    pub fn plan(&mut self, at: Timestamp, mail: Mail, reply: Option<ReplyTo>) {
        if let Mail::Input(Input::Reported { job, .. }) = &mail
            && let Some(holder) = self.jobs.get_mut(job)
        {
            *holder = Holder::Planned;
        }
        self.planned += 1;
        self.agenda.insert((at, self.planned), (mail, reply));
    }

    pub fn still(&self) -> Still {
        Still { due: self.run.next_deadline(), by_itself: self.run.moves_by_itself() }
    }

    /// The runs that it called and waits for.
    pub fn called(&self) -> impl Iterator<Item = RunId> {
        let elsewhere = self.jobs.iter().filter(|(_, holder)| **holder == Holder::Elsewhere);
        elsewhere.filter_map(|(job, _)| self.run.called(&job.path))
    }
}

/// One delivery of mail to a run.
pub(super) struct Turn<'t> {
    pub live: &'t mut Live,
    pub work: &'t mut Work,
    pub now: Now,
}

impl Turn<'_> {
    fn id(&self) -> RunId {
        self.live.run.id().clone()
    }

    pub fn take(&mut self, mail: Mail, reply: Option<ReplyTo>) {
        let retry = Some(To::Run(self.id(), mail.clone()));
        match mail {
            Mail::Begin(_) => self.answer(reply, Err(Refused::AlreadyStarted), retry),
            Mail::Resume(resume) => self.resume(resume, reply, retry),
            Mail::Input(Input::Signal { id, name, by, value, to: None }) => {
                let to = self.live.run.subscriber(&name, &value);
                self.offer(Input::Signal { id, name, by, value, to }, None, reply, retry);
            }
            Mail::Input(input) => self.report_or_offer(input, reply, retry),
            // After a failed write, the run asks the coordinator again, so its answers are never retried.
            Mail::Answered { asker, answer, needs } => {
                self.offer(Input::Answered { asker, answer }, needs, reply, None);
            }
            Mail::Message { to, message, needs } => {
                let Message { id, name, by, value } = message;
                let acknowledged = CoordinatorInput::Acknowledge { id: id.clone(), to: to.clone() };
                let input = match to.path.is_run() {
                    true => Input::Cancel {
                        path: to.path,
                        why: format!("the message `{name}` arrived").into(),
                        by,
                    },
                    false => Input::Signal { id, name, by, value, to: Some(to.path) },
                };
                self.offer(input, needs, reply, None);
                self.work.tell(acknowledged, self.now);
            }
            Mail::Ended { child, outcome, at } => self.ended(&child, outcome, at, retry),
            Mail::Elsewhere { job } => self.elsewhere(&job),
            Mail::Settle => self.answer(reply, Ok(()), retry),
        }
    }

    /// Removes a finished job from this process, even if the run refuses its report.
    fn report_or_offer(&mut self, input: Input, reply: Option<ReplyTo>, retry: Option<To>) {
        let (job, done) = match &input {
            Input::Reported { job, outcome } => {
                (job, matches!(outcome, Outcome::Done(_) | Outcome::Continue(_)))
            }
            Input::Lost { job, .. } => (job, false),
            _ => return self.offer(input, None, reply, retry),
        };
        let held = self.live.jobs.remove(job);
        self.live.aborted.remove(job);
        // A job that was aborted because this process is shutting down is left to the next owner.
        if self.live.stopping && held == Some(Holder::Here) && !done {
            return;
        }
        self.offer(input, None, reply, retry);
    }

    fn ended(&mut self, child: &RunId, outcome: Outcome, at: Timestamp, retry: Option<To>) {
        let run = &self.live.run;
        // An abandoned job of the same call can still be in the list.
        let waits =
            |job: &&JobKey| run.called(&job.path).as_ref() == Some(child) && run.job_at(job).is_some();
        let Some(job) = self.live.jobs.keys().find(waits).cloned() else {
            return self.answer(None, Ok(()), retry);
        };
        let began = self.live.clock;
        self.live.clock = match (planted(Bug::CallerClock), began) {
            (true, Clock::Steady { began, at: read }) => Clock::Steady { began: began.max(at), at: read },
            (_, clock) => clock.not_before(at, self.now),
        };
        self.live.jobs.remove(&job);
        self.live.aborted.remove(&job);
        let name = self.live.run.job_at(&job).and_then(|job| job.work.work.name().map(str::to_owned));
        let outcome = outcome.of_called(child, name.as_deref().unwrap_or_default());
        let input = Input::Reported { job, outcome };
        let retry = Some(To::Run(self.id(), Mail::Input(input.clone())));
        self.offer(input, None, None, retry);
    }

    fn elsewhere(&mut self, job: &JobKey) {
        // A missing job has already reported.
        let Some(holder) = self.live.jobs.get_mut(job) else { return };
        let before = std::mem::replace(holder, Holder::Elsewhere);
        if before == (Holder::Asked { abort: true }) {
            self.recall(job);
        }
    }

    /// Resumes the run on request, or continues it as it is.
    fn resume(&mut self, resume: Resume, reply: Option<ReplyTo>, retry: Option<To>) {
        let ended = self.live.run.outcome().is_some();
        let failed = matches!(self.live.run.outcome(), Some(Outcome::Failed(_)));
        let Resume { wanted, reopens } = resume;
        let interrupted = self.live.run.is_interrupted().then_some(Input::Continue);
        let inputs = match wanted {
            None if failed && reopens => vec![Input::Reopen { inputs: nothing(), by: CALLER.into() }],
            None => interrupted.into_iter().collect(),
            Some((by, inputs)) if ended => vec![Input::Reopen { inputs, by }],
            Some((by, inputs)) => {
                let changes = matches!(&inputs, Value::Map(map) if !map.is_empty());
                let changes = changes
                    || self.live.run.asks_again_on_resume() && (self.live.is_fresh || self.live.is_still);
                let change = changes.then(|| Input::Change { inputs, by: by.clone() });
                let paused = self.live.run.is_paused().then_some(Input::Resume { by });
                interrupted.into_iter().chain(change).chain(paused).collect()
            }
        };
        if inputs.is_empty() {
            return self.answer(reply, Ok(()), retry);
        }
        let last = inputs.len() - 1;
        for (number, input) in inputs.into_iter().enumerate() {
            let retry = Some(To::Run(self.id(), Mail::Input(input.clone())));
            self.offer(input, None, reply.filter(|_| number == last), retry);
        }
    }

    /// Replies after all previous records are durable. Until then, the mail can be needed again, even without a
    /// reply: a late report is no longer late if the records that made it so are lost.
    fn answer(&mut self, reply: Option<ReplyTo>, result: Result<(), Refused>, retry: Option<To>) {
        if reply.is_some() || self.live.underway > 0 {
            let reply = reply.map(|to| (to, result.map_or_else(Reply::Refused, |()| Reply::Done)));
            let (number, run, effects) = (self.live.tail.number(), Some(self.id()), Vec::new());
            let landing = Landing { number, run, retry, reply, events: None, effects, again: false };
            self.live.underway += 1;
            self.work.landings.push_back(landing);
        }
    }

    /// Handles an input, followed by the answers of the coordinator.
    pub fn offer(&mut self, input: Input, needs: Option<u64>, reply: Option<ReplyTo>, retry: Option<To>) {
        if input == Input::Tick {
            // A timer based on an earlier wall clock must not fire.
            self.clock_set();
        }
        if let Some(execution) = &self.live.execution {
            self.live.run.ask_always(execution.policy.limits_jobs());
            self.live.run.follow_wall(self.live.clock.wall_ahead(self.now));
        }
        let mut inputs = VecDeque::from([(input, needs)]);
        let (mut first, mut reply, mut retry) = (true, reply, retry);
        while let Some((input, needs)) = inputs.pop_front() {
            let at = self.live.clock.read(self.now);
            let granted = match &input {
                Input::Answered { asker, answer: CoordinatorAnswer::Granted } => Some(asker.clone()),
                _ => None,
            };
            let handled = match self.live.is_quiet() {
                true => self.live.run.record(at, input),
                false => self.live.run.handle(at, input),
            };
            match (handled, granted) {
                (Ok(answer), _) => self.decided(answer, needs, reply.take(), retry.take(), &mut inputs),
                (Err(Refused::Broken(_)), _) => self.live.is_broken = true,
                (Err(_), Some(asker)) if !self.live.run.needs(&asker) => self.work.give_back(asker, self.now),
                (Err(refused), _) if first => self.answer(reply.take(), Err(refused), retry.take()),
                (Err(_), _) => {}
            }
            first = false;
        }
    }

    /// Records the decisions of the run and shares them with the coordinator. The records become durable in this
    /// order.
    fn decided(
        &mut self,
        answer: Answer,
        needs: Option<u64>,
        reply: Option<ReplyTo>,
        retry: Option<To>,
        inputs: &mut VecDeque<(Input, Option<u64>)>,
    ) {
        let Answer { events, effects, again } = answer;
        let events = (!events.is_empty()).then(|| Arc::new(events));
        if let Some(events) = &events {
            let (run, body) = (Some(self.id()), Body::Run(events.clone()));
            let number = self.work.record(run, self.live.tail, needs, body, self.live.wake());
            self.live.tail = After::Record(number);
        }
        let (mut outside, number) = (Vec::new(), self.live.tail.number());
        let rests_on = Some(number).filter(|number| *number > 0);
        for effect in effects {
            match effect {
                Effect::Dispatch(_) => outside.push(effect),
                Effect::Abort(ref key) => {
                    self.live.aborted.extend(self.live.run.job_at(key).map(|job| (key.clone(), job)));
                    outside.push(effect);
                }
                Effect::Conclude(_) => {
                    self.share(CoordinatorInput::Gone { run: self.id() }, rests_on, inputs);
                    outside.push(effect);
                }
                Effect::Ask { ask, job } => self.ask(ask, job.as_deref(), rests_on, inputs),
                Effect::Release { asker, used, end } => {
                    self.share(CoordinatorInput::Release { asker, used, end }, rests_on, inputs);
                }
                Effect::Subscribe(subscription) => {
                    self.share(CoordinatorInput::Subscribe(subscription), rests_on, inputs);
                }
                Effect::Unsubscribe(address) => {
                    self.share(CoordinatorInput::Unsubscribe(address), rests_on, inputs);
                }
            }
        }
        let reply = reply.map(|to| (to, Reply::Done));
        let run = Some(self.id());
        (self.live.underway, self.live.held) = (self.live.underway + 1, self.live.held || again);
        let landing = Landing { number, run, retry, reply, events, effects: outside, again };
        self.work.landings.push_back(landing);
    }

    fn ask(
        &mut self,
        mut ask: Box<Ask>,
        job: Option<&Job>,
        needs: Option<u64>,
        inputs: &mut VecDeque<(Input, Option<u64>)>,
    ) {
        if self.live.is_quiet() {
            return;
        }
        if let (Some(execution), Some(job)) = (&self.live.execution, job) {
            execution.policy.add_claims(&self.live.run, job, &mut ask);
        }
        let asker = ask.asker.clone();
        if let Clock::Virtual(now) = self.live.clock {
            match self.live.rates.get_or_insert_default().pass(now, &mut ask) {
                Passed::Through => {}
                Passed::Waits => return,
                Passed::Answered(answer) => {
                    return inputs.push_back((Input::Answered { asker, answer }, None));
                }
            }
        }
        self.share(CoordinatorInput::Ask(ask), needs, inputs);
    }

    fn share(
        &mut self,
        input: CoordinatorInput,
        needs: Option<u64>,
        inputs: &mut VecDeque<(Input, Option<u64>)>,
    ) {
        let id = self.id();
        let Ok(shared) = self.work.share(input, needs, Some(&id), self.now) else { return };
        let answers = shared.own.into_iter();
        inputs.extend(answers.map(|(asker, answer)| (Input::Answered { asker, answer }, shared.rests_on)));
    }

    /// Repeats all subscriptions and requests. The coordinator gives the same answers to repeated requests.
    pub fn ask_again(&mut self) {
        for subscription in self.live.run.subscriptions() {
            self.work.tell(CoordinatorInput::Subscribe(Box::new(subscription)), self.now);
        }
        let mut answers = VecDeque::new();
        for effect in self.live.run.owed_asks() {
            if let Effect::Ask { ask, job } = effect {
                self.ask(ask, job.as_deref(), None, &mut answers);
            }
        }
        self.live.shared = self.work.number;
        for (input, needs) in answers {
            self.offer(input, needs, None, None);
        }
    }

    /// Takes over a run from an earlier owner, or loads it again. Executors are asked about its jobs before these
    /// count as lost. Time out of memory counts toward the run's timeout only if this process has executed it before.
    pub fn recover(&mut self, executed: bool) {
        self.work.settle(&self.live.run, self.now);
        let outstanding = self.live.run.outstanding();
        if !executed {
            let retry = To::Run(self.id(), Mail::Input(Input::TakenUp));
            self.offer(Input::TakenUp, None, None, Some(retry));
        }
        self.clock_set();
        for effect in outstanding {
            let (job, abort) = match effect {
                Effect::Dispatch(job) => (Some(*job), false),
                Effect::Abort(key) => (self.live.run.job_at(&key), true),
                Effect::Ask { .. }
                | Effect::Release { .. }
                | Effect::Subscribe(_)
                | Effect::Unsubscribe(_)
                | Effect::Conclude(_) => (None, false),
            };
            if let Some(job) = job {
                self.live.jobs.insert(job.key.clone(), Holder::Asked { abort });
                if abort {
                    self.live.aborted.insert(job.key.clone(), job.clone());
                }
                self.work.orders.push(Order::Adopt(Box::new(job)));
            }
        }
        self.ask_again();
    }

    /// Resets the timers for wall-clock instants if the clock was set.
    pub fn clock_set(&mut self) {
        self.live.run.follow_wall(self.live.clock.wall_ahead(self.now));
        if self.live.run.astray().next().is_some() {
            self.offer(Input::ClockSet, None, None, None);
        }
    }

    /// Aborts the jobs in this process before it ends. Jobs elsewhere continue.
    pub fn stop(&mut self) {
        self.live.stopping = true;
        self.live.agenda.clear();
        self.live.jobs.retain(|_, holder| *holder != Holder::Planned);
        let jobs: Vec<(JobKey, Holder)> = self.live.jobs.clone().into_iter().collect();
        for (job, holder) in jobs {
            match holder {
                Holder::Here => self.work.orders.push(Order::Abort { job, overdue: false }),
                // The reply of the executor no longer matters.
                Holder::Asked { .. } => self.elsewhere(&job),
                Holder::Elsewhere | Holder::Planned => {}
            }
        }
    }

    /// Carries out durable effects that are still pending after a failed write.
    pub fn reconcile(&mut self) {
        for effect in self.live.run.outstanding() {
            match effect {
                Effect::Dispatch(job) if !self.live.jobs.contains_key(&job.key) => self.start(job),
                Effect::Abort(key) => {
                    self.live.aborted.extend(self.live.run.job_at(&key).map(|job| (key.clone(), job)));
                    self.abort(&key);
                }
                Effect::Dispatch(_)
                | Effect::Ask { .. }
                | Effect::Release { .. }
                | Effect::Subscribe(_)
                | Effect::Unsubscribe(_)
                | Effect::Conclude(_) => {}
            }
        }
    }

    /// Handles due agenda entries, rate limits and timers.
    pub fn wake(&mut self) {
        let now = self.live.clock.read(self.now);
        while let Some(entry) = self.live.agenda.first_entry().filter(|entry| entry.key().0 <= now) {
            let (mail, reply) = entry.remove();
            self.take(mail, reply);
            if self.live.held || self.live.clock.is_virtual() {
                return;
            }
        }
        if self.live.rates.as_mut().is_some_and(|rates| rates.tick(now)) {
            self.ask_again();
        }
        if self.live.run.next_deadline().is_some_and(|due| due <= now) {
            self.offer(Input::Tick, None, None, None);
        }
    }

    /// Carries out the effects of a durable record. The run may have advanced past `at`.
    pub fn carry_out(&mut self, effects: Vec<Effect>, at: Timestamp) {
        for effect in effects {
            match effect {
                Effect::Dispatch(_) if self.live.is_quiet() => {}
                Effect::Dispatch(job) => self.start(job),
                Effect::Abort(key) => self.abort(&key),
                Effect::Conclude(outcome) => self.conclude(outcome, at),
                Effect::Ask { .. }
                | Effect::Release { .. }
                | Effect::Subscribe(_)
                | Effect::Unsubscribe(_) => {}
            }
        }
    }

    fn start(&mut self, job: Box<Job>) {
        self.live.jobs.insert(job.key.clone(), Holder::Here);
        self.work.orders.push(Order::Start(job));
    }

    fn abort(&mut self, key: &JobKey) {
        match self.live.jobs.get_mut(key) {
            Some(Holder::Here) => {
                let overdue = self.live.run.is_overdue(key);
                self.work.orders.push(Order::Abort { job: key.clone(), overdue });
            }
            Some(Holder::Elsewhere) => self.recall(key),
            Some(Holder::Asked { abort }) => *abort = true,
            Some(Holder::Planned) => {
                let planned =
                    |mail: &Mail| matches!(mail, Mail::Input(Input::Reported { job, .. }) if job == key);
                self.live.agenda.retain(|_, (mail, _)| !planned(mail));
                let outcome = Outcome::Cancelled("told to stop".into());
                let now = self.live.clock.read(self.now);
                self.live.plan(now, Mail::Input(Input::Reported { job: key.clone(), outcome }), None);
            }
            None => {}
        }
    }

    fn recall(&mut self, key: &JobKey) {
        if let Some(job) = self.live.aborted.get(key) {
            self.work.orders.push(Order::Recall(Box::new(job.clone())));
        }
    }

    fn conclude(&mut self, outcome: Outcome, at: Timestamp) {
        if let Some(caller) = self.live.run.parents().last().cloned() {
            let child = self.id();
            self.work.post(caller, Mail::Ended { child, outcome: outcome.clone(), at }, None);
        }
        self.work.orders.push(Order::Concluded { run: self.id(), outcome });
    }
}

/// The actor in inputs from a calling run.
const CALLER: &str = "caller";

fn nothing() -> Value {
    Value::map::<&str>([])
}

/// Whether no run that this process executes can release the resource that an asker waits for.
pub(super) fn waits_in_vain(work: &Work, asker: &Asker, executes: impl Fn(&RunId) -> bool) -> bool {
    let state = work.coordinator.state();
    let Some(waiting) = state.waiting.get(asker) else { return false };
    if state.timed.contains(&waiting.on) {
        return false;
    }
    let holders = state.slots.get(&waiting.on).into_iter().flatten().map(|holder| &holder.run);
    let owner = match state.keys.get(&waiting.on) {
        Some(KeyState::Pending { run, .. }) => Some(run),
        Some(KeyState::Kept { .. }) | None => None,
    };
    !holders.chain(owner).any(executes)
}
