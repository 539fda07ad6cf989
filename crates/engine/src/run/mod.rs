//! One run: its state and its decisions.
//!
//! `program` prepares a plan for execution. `state` holds the state of a run and the only function that changes it.
//! The other modules make decisions: `start` about steps that are ready, `attempt` about reports of executors, `end`
//! about finished scopes and the finished run, and one module for each kind of step with several parts. `values` is
//! what expressions can read, `records` builds the results of steps, and `render` prepares jobs. `view` presents the
//! state to readers.

mod ask;
mod attempt;
mod call;
mod choose;
mod clock;
mod end;
mod finish;
mod for_each;
mod gate;
mod guard;
mod hook;
mod join;
mod occurrences;
mod parallel;
mod planner;
mod program;
mod records;
mod render;
mod reopen;
mod repeat;
mod rounds;
mod start;
mod state;
mod undo;
mod values;
mod view;
mod wait;

use crate::event::{Event, RunBudget, What};
use crate::input::{Effect, Input, Refused, Start};
use crate::job::Job;
use crate::keys::{JobKey, Path, Reason, RunId, Timestamp};
use crate::outcome::{Failure, Outcome};
pub use ask::budget_of;
pub use attempt::Fnv;
pub use end::{is_abort, is_raised};
pub use program::{Program, Unrunnable, says_no};
use state::{Abort, Attempt, Doing, Instance, Phase, Place, RunClock, Stage, State, evolve};
pub use state::{CancelRequest, Contradiction, FailedAttempt, GateVote, HookTrace};
use std::sync::Arc;
use values::{Sight, check_size};
pub use view::{CHILD, RunPhase, StepPhase, StepView, View};
pub use wait::fits;
use windlass_ir::expr::{GateRule, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::{Sealable, VALUE_BYTES_MAX};
use windlass_ir::workflow::{HookMoment, RunInput};
use windlass_ir::{Duration, Value};

/// The most events in one answer. Beyond that, the caller must tick again at once.
const EVENTS_MAX: usize = 1_000;

/// How long a job may take to stop before the run abandons it.
const GRACE: Duration = Duration::from_secs(10);

/// A run of a program, as a state machine that takes its inputs through [`Run::handle`].
///
/// It records each decision as an event and applies the event to its own state before it decides further. The caller
/// must make the returned events durable before it carries out any effect. If that fails, drop the run and replay it,
/// because the state in memory is ahead of the journal.
///
/// [`Run::outstanding`] lists every job that was dispatched and has not reported, so a queue may lose or repeat jobs.
/// Only `handle` changes a run, and only [`Run::replay`] restores one.
#[derive(Clone, Debug)]
pub struct Run {
    id: RunId,
    program: Arc<Program>,
    state: State,
    /// Whether to ask the coordinator for every job, because the caller has limits of its own.
    asks_always: bool,
    /// How far the wall clock is ahead of the run's clock, in microseconds.
    wall_ahead: i64,
}

/// Two runs are equal if their state is equal.
impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.state == other.state
    }
}

/// The result of one input.
#[derive(Debug, Default)]
pub struct Answer {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    /// There is more to decide: tick again once the events are durable.
    pub again: bool,
}

impl Run {
    pub fn new(id: RunId, program: Arc<Program>) -> Self {
        Self { id, state: State::new(program.clone()), program, asks_always: false, wall_ahead: 0 }
    }

    /// Restores the run from its events.
    pub fn replay<'e>(
        id: RunId,
        program: Arc<Program>,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Self, Contradiction> {
        let mut run = Self::new(id, program);
        events.into_iter().try_for_each(|event| evolve(&mut run.state, event))?;
        Ok(run)
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The result, once it is final.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state.stage {
            Stage::New | Stage::Running => None,
            Stage::Concluded(outcome) | Stage::Closed(outcome) => Some(outcome),
        }
    }

    /// Makes the run ask the coordinator for every job, even if its plan names no limit.
    pub fn ask_always(&mut self, always: bool) {
        self.asks_always = always;
    }

    /// Whether an attempt is running, or a failed one will be retried.
    pub fn is_working(&self) -> bool {
        !self.state.index.jobs.is_empty() || !self.state.hooks.open.is_empty()
    }

    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// Whether the whole run was canceled or has timed out, and has not ended yet.
    pub fn is_stopping(&self) -> bool {
        self.state.stop.is_some() && self.outcome().is_none()
    }

    pub fn is_interrupted(&self) -> bool {
        self.state.interrupted
    }

    /// The earliest instant at which a timer fires.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.state.is_suspended() {
            return None;
        }
        let run = match self.state.clock {
            RunClock::Until(until) if self.outcome().is_none() && self.state.stop.is_none() => Some(until),
            RunClock::Until(_) | RunClock::None | RunClock::Still { .. } | RunClock::Over => None,
        };
        let begins = self.state.admission.begins_at.filter(|_| self.state.stop.is_none());
        self.state.timers.next().map(|(until, ..)| until).into_iter().chain(run).chain(begins).min()
    }

    /// The paths with timers.
    pub fn timers(&self) -> impl Iterator<Item = &Path> {
        self.state.timers.places().map(|place| &self.state.at(place).path)
    }

    /// Effects that are still unanswered.
    pub fn outstanding(&self) -> Vec<Effect> {
        let steps = self.state.index.jobs.iter().filter_map(|place| {
            let attempt = self.state.at(*place).attempt()?;
            match attempt.doing {
                Doing::Asking { granted: true } => None,
                Doing::Asking { granted: false } => Some(self.ask_of(*place, attempt)),
                Doing::Running => Some(Effect::Dispatch(Box::new(self.job(*place, attempt)))),
                Doing::Aborting(_) => Some(Effect::Abort(self.job_key(&self.state.at(*place).path, attempt))),
                Doing::Between { .. } => None,
            }
        });
        let hooks = self.state.hooks.open.iter();
        let hooks = hooks.map(|(path, hook)| Effect::Dispatch(Box::new(self.hook_job(path, hook))));
        self.application().into_iter().chain(steps).chain(hooks).collect()
    }

    /// Whether effects are outstanding, or would be if a process executed the run.
    pub fn owes(&self) -> bool {
        let state = &self.state;
        let held = |place: &Place| {
            let attempt = state.at(*place).attempt();
            attempt.is_some_and(|attempt| !matches!(attempt.doing, Doing::Between { lost: false, .. }))
        };
        let ready = [
            &state.index.ready,
            &state.index.ready_actions,
            &state.index.ready_agents,
            &state.index.due,
            &state.index.attention,
        ];
        self.application().is_some()
            || !state.hooks.open.is_empty()
            || ready.iter().any(|ready| !ready.is_empty()) && !state.is_suspended()
            || state.index.jobs.iter().any(held)
    }

    /// Whether the run continues without outside input after a sleep, a retry delay, a loop delay or a delayed start.
    pub fn moves_by_itself(&self) -> bool {
        let state = &self.state;
        let sleeps =
            |place: &Place| matches!(&state.at(*place).phase, Phase::Wait(sleep) if sleep.signal.is_none());
        let retries = |place: &Place| {
            let attempt = state.at(*place).attempt();
            attempt.is_some_and(|attempt| matches!(attempt.doing, Doing::Between { .. }))
        };
        let moves = state.admission.begins_at.is_some()
            || !state.index.delayed.is_empty()
            || state.index.sleeping.iter().any(sleeps)
            || state.index.jobs.iter().any(retries);
        moves && !state.is_suspended() && self.outcome().is_none()
    }

    pub fn last_at(&self) -> Timestamp {
        self.state.last_at
    }

    /// The run that the step at this path called.
    pub fn called(&self, path: &Path) -> Option<RunId> {
        let place = self.state.find(path)?;
        let instance = self.state.at(place);
        view::called(instance, &instance.attempt()?.assignment)
    }

    /// The caller's data from the start of the run.
    pub fn about(&self) -> &Value {
        &self.state.about
    }

    pub fn started_at(&self) -> Timestamp {
        self.state.started_at
    }

    pub fn plan_step(&self, path: &Path) -> Option<(StepId, &PlanStep)> {
        let place = self.state.find(path)?;
        let id = self.state.at(place).step;
        Some((id, self.state.program(place).step(id)))
    }

    /// The number of attempts at the same step before a gate sent it back.
    pub fn attempts_in_earlier_passes(&self, path: &Path) -> u32 {
        self.state.attempts_in_earlier_passes(path)
    }

    /// The gates that wait for a decision.
    pub fn open_gates(&self) -> impl Iterator<Item = &Path> {
        self.state.index.asking.iter().map(|place| &self.state.at(*place).path)
    }

    /// Whether resuming this run asks its open gates again.
    pub fn asks_again_on_resume(&self) -> bool {
        self.program.plan.semantics.gates == GateRule::AskAgain
    }

    /// The job with this key, if the run waits for its report.
    pub fn job_at(&self, key: &JobKey) -> Option<Job> {
        if let Some(hook) = self.state.hooks.open.get(&key.path) {
            return Some(self.hook_job(&key.path, hook));
        }
        let place = self.state.find(&key.path)?;
        let attempt = self.state.at(place).attempt()?;
        let waits = matches!(attempt.doing, Doing::Running | Doing::Aborting(_));
        (waits && self.job_key(&key.path, attempt) == *key).then(|| self.job(place, attempt))
    }

    /// Whether this is the first attempt since a failed step was reopened.
    pub fn is_reopened(&self, job: &JobKey) -> bool {
        let before = self.state.find(&job.path).map_or(0, |place| self.state.at(place).attempts_before);
        before > 0 && job.attempt == before + 1
    }

    /// The runs that wait for this one, outermost first.
    pub fn parents(&self) -> &[RunId] {
        &self.state.shares.parents
    }

    /// The budgets that it draws on: those of its callers and its own.
    pub fn budgets(&self) -> impl Iterator<Item = RunBudget> {
        let cap = &self.program.plan.policy.budget;
        let own = (!cap.is_unlimited()).then(|| RunBudget { run: self.id.clone(), cap: cap.clone() });
        self.state.shares.budgets.iter().cloned().chain(own)
    }

    /// Who started it.
    pub fn by(&self) -> Option<&Arc<str>> {
        self.state.by.as_ref()
    }

    /// Handles an input and makes all decisions that follow from it.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Result<Answer, Refused> {
        self.turn(now, input, false)
    }

    /// Handles an input without starting any steps, for a process that only records. The next input continues.
    pub fn record(&mut self, now: Timestamp, input: Input) -> Result<Answer, Refused> {
        self.turn(now, input, true)
    }

    fn turn(&mut self, now: Timestamp, input: Input, quiet: bool) -> Result<Answer, Refused> {
        let now = now.max(self.state.last_at);
        let ticking = input == Input::Tick;
        let mut turn = Turn { run: self, now, ticking, quiet, answer: Answer::default(), broken: None };
        let accepted = turn.accept(input);
        if accepted.is_ok() {
            turn.advance();
        }
        match turn.broken {
            Some(broken) => Err(Refused::Broken(broken)),
            None => accepted.map(|()| turn.answer),
        }
    }

    /// Whether a job must stop because it timed out.
    pub fn is_overdue(&self, job: &JobKey) -> bool {
        let place = self.state.find(&job.path).filter(|_| job.run == self.id);
        let attempt = place.and_then(|place| self.state.at(place).attempt());
        attempt.is_some_and(|attempt| {
            let same = (attempt.attempt, attempt.delivery) == (job.attempt, job.delivery);
            same && matches!(attempt.doing, Doing::Aborting(Abort::Timeout))
        })
    }

    fn job_key(&self, path: &Path, attempt: &Attempt) -> JobKey {
        JobKey {
            run: self.id.clone(),
            path: path.clone(),
            attempt: attempt.attempt,
            delivery: attempt.delivery,
        }
    }

    fn job(&self, place: Place, attempt: &Attempt) -> Job {
        let instance = self.state.at(place);
        let program = self.state.program(place);
        let step = program.step(instance.step);
        let feedback = instance.because.as_ref().filter(|_| instance.pass > 1);
        Job {
            key: self.job_key(&instance.path, attempt),
            step: step.id.clone(),
            work: attempt.assignment.clone(),
            secrets: self.secrets_of(program),
            timeout: step.policy.timeout,
            notes: instance.notes.clone(),
            round: rounds::current(step, instance.rounds),
            feedback: feedback.map(|because| because.failure.clone()),
            rules: program.plan.semantics,
        }
    }

    /// The secrets that a step must not print: those of its own workflow and of the run's workflow.
    fn secrets_of(&self, program: &Arc<Program>) -> Arc<[Arc<str>]> {
        let own = &program.plan.secrets;
        let run = self.program.plan.secrets.iter().filter(|name| !own.contains(name));
        own.iter().chain(run).cloned().collect()
    }
}

/// One call of `handle`.
struct Turn<'a> {
    run: &'a mut Run,
    now: Timestamp,
    /// Timers fire only on a tick, so that a run loaded after a crash first learns which jobs were lost.
    ticking: bool,
    /// Start no steps.
    quiet: bool,
    answer: Answer,
    /// The first decision that contradicts the state, which is a bug in the engine. No decision follows, and the
    /// caller must drop the run.
    broken: Option<Box<Contradiction>>,
}

impl Turn<'_> {
    fn state(&self) -> &State {
        &self.run.state
    }

    fn at(&self, place: Place) -> &Instance {
        self.run.state.at(place)
    }

    fn path(&self, place: Place) -> Path {
        self.at(place).path.clone()
    }

    /// The program of an instance, as an owned reference.
    fn program(&self, place: Place) -> Arc<Program> {
        self.state().program(place).clone()
    }

    /// Records a decision and applies it.
    fn emit(&mut self, what: What) {
        if self.broken.is_some() {
            return;
        }
        let event = Event { at: self.now, what };
        match evolve(&mut self.run.state, &event) {
            Ok(()) => self.answer.events.push(event),
            Err(contradiction) => self.broken = Some(Box::new(contradiction)),
        }
    }

    fn accept(&mut self, input: Input) -> Result<(), Refused> {
        match &self.state().stage {
            Stage::New if !matches!(input, Input::Start(_)) => return Err(Refused::NotStarted),
            Stage::New => {}
            _ if matches!(input, Input::Start(_)) => return Err(Refused::AlreadyStarted),
            Stage::Running => {}
            Stage::Concluded(_) | Stage::Closed(_) => return self.accept_after_end(input),
        }
        match input {
            Input::Start(start) => self.start_run(*start),
            Input::Reported { job, outcome } => self.reported(&job, outcome),
            Input::Lost { job, started } => self.lost(&job, started),
            Input::Answered { asker, answer } => self.answered(asker, answer),
            Input::Spent { job, used } => {
                let path = self.path(self.outstanding(&job)?);
                self.emit(What::Spent { path, used });
                Ok(())
            }
            Input::Noted { job, key, value } => {
                let path = match self.hook_of(&job) {
                    true => job.path,
                    false => self.path(self.outstanding(&job)?),
                };
                self.emit(What::Noted { path, key, value });
                Ok(())
            }
            Input::Decide { id, path, decision } => self.decided(&id, &path, decision),
            Input::Signal { id, name, by, value, to } => self.signalled(id, name, by, value, to),
            Input::TakenUp => {
                self.skip_downtime();
                Ok(())
            }
            Input::Tick => Ok(()),
            Input::ClockSet => {
                self.clock_set();
                Ok(())
            }
            Input::Interrupt => {
                if !self.state().interrupted {
                    self.emit(What::Interrupted);
                }
                Ok(())
            }
            Input::Continue => {
                if self.state().interrupted {
                    self.emit(What::Continued);
                }
                Ok(())
            }
            Input::Cancel { path, why, by } => self.cancel(path, why, by),
            Input::Pause { .. } if self.state().paused => Err(Refused::AlreadyPaused),
            Input::Pause { by } => {
                self.emit(What::Paused { by, reached: false });
                Ok(())
            }
            Input::Resume { .. } if !self.state().paused => Err(Refused::NotPaused),
            Input::Resume { by } => {
                self.emit(What::Resumed { by });
                Ok(())
            }
            Input::Change { inputs, by } => self.change(&inputs, by),
            Input::Reopen { .. } => Err(Refused::NotFailed),
            Input::Close => Err(Refused::NotEnded),
        }
    }

    /// After the result is final, only hooks can report, and a failed run can be reopened.
    fn accept_after_end(&mut self, input: Input) -> Result<(), Refused> {
        match input {
            Input::Reported { job, outcome } if self.hook_of(&job) => {
                self.hook_reported(job.path, outcome);
                Ok(())
            }
            Input::Lost { job, .. } if self.hook_of(&job) => {
                self.hook_lost(job.path);
                Ok(())
            }
            Input::Noted { job, .. } if self.hook_of(&job) => Ok(()),
            Input::Reported { job, .. }
            | Input::Lost { job, .. }
            | Input::Noted { job, .. }
            | Input::Spent { job, .. } => Err(Refused::StaleJob(job)),
            Input::Answered { asker, .. } => Err(Refused::NotAsked(asker)),
            Input::Tick | Input::TakenUp | Input::ClockSet | Input::Interrupt | Input::Continue => Ok(()),
            Input::Decide { id, path, .. } => self.known_decision(&id, &path)?.ok_or(Refused::Finished),
            Input::Reopen { inputs, by } => self.reopen(&inputs, by),
            Input::Close => self.close(),
            Input::Signal { id, .. } if self.state().signals.ids.contains(&id) => Ok(()),
            Input::Start(_)
            | Input::Signal { .. }
            | Input::Cancel { .. }
            | Input::Pause { .. }
            | Input::Resume { .. }
            | Input::Change { .. } => Err(Refused::Finished),
        }
    }

    /// Starts the run. The environment is evaluated once, before the first step.
    fn start_run(&mut self, start: Start) -> Result<(), Refused> {
        let program = self.run.program.clone();
        let plan = &program.plan;
        if let RunInput::Open(ty) = &plan.input
            && let Err(violation) = program.check(ty, &start.inputs)
        {
            return Err(Refused::BadInput(format!("{}{}", violation.path, violation.message)));
        }
        if let Err(failure) = check_size(|| "the input of the run".into(), &start.inputs, VALUE_BYTES_MAX) {
            return Err(Refused::BadInput(failure.message.to_string()));
        }
        let depth_max = plan.semantics.calls_deep_max;
        if start.lineage.0.len() > depth_max as usize {
            let message = format!("workflows call each other more than {depth_max} deep");
            return Err(Refused::BadInput(message));
        }
        if start.lineage.0.contains(&plan.header.id) {
            return Err(Refused::BadInput(format!("`{}` calls itself", plan.header.id)));
        }
        let mut state = State::new(program.clone());
        state.units[0].inputs = start.inputs.clone();
        state.units[0].folder = state::folder_in(&start.about);
        state.started_at = self.now;
        let sight = Sight { now: Some(self.now), ..Sight::at_start(&self.run.id, &state) };
        let env = render::bindings(&sight, &plan.env)
            .map_err(|failure| Refused::BadEnvironment(failure.message))?;
        let shares =
            self.shares(&state, &start).map_err(|failure| Refused::BadInput(failure.message.to_string()))?;
        let Start { inputs, seed, about, by, lineage, keep, at, reach, .. } = start;
        self.emit(What::Started {
            inputs,
            env: Sealable(Value::Map(Arc::new(env))),
            seed,
            about,
            by,
            lineage,
            shares,
            reach,
        });
        if let Some(until) = at.filter(|at| *at > self.now) {
            self.emit(What::TimerSet { path: Path::default(), reason: Reason::Wait, until });
        }
        self.apply();
        keep.into_iter().for_each(|kept| self.emit(What::Kept(Box::new(kept))));
        self.hooks_at(HookMoment::Start);
        Ok(())
    }

    /// Makes decisions until the run needs outside input.
    fn advance(&mut self) {
        loop {
            let before = self.answer.events.len();
            if before >= EVENTS_MAX {
                self.answer.again = true;
                return;
            }
            let moved = match self.state().stage {
                Stage::Running => {
                    self.grace_one()
                        || self.stop_one()
                        || self.answer_one()
                        || self.attend()
                        || !self.quiet && self.start_one()
                        || self.conclude()
                        || self.begin()
                        || self.set_clock()
                        || self.run_out()
                        || self.fire_timer()
                }
                Stage::Concluded(_) => self.end_hooks(),
                Stage::New | Stage::Closed(_) => false,
            };
            if !moved || self.broken.is_some() {
                return;
            }
            // A decision without an event would repeat forever.
            let written = self.answer.events.len();
            debug_assert!(written > before, "a decision without an event");
            if written == before {
                return;
            }
        }
    }

    /// Fires one due timer, after the consequences of the previous one. Timers of a paused run fire when it resumes.
    fn fire_timer(&mut self) -> bool {
        let Some((until, place, reason)) = self.state().timers.next() else { return false };
        if until > self.now || !self.ticking || self.state().is_suspended() {
            return false;
        }
        let path = self.path(place);
        self.emit(What::TimerFired { path, reason });
        true
    }

    /// Aborts one attempt and starts its grace period.
    fn grace_one(&mut self) -> bool {
        let Some(place) = self.state().index.ungraced.first().copied() else { return false };
        if let Some(attempt) = self.at(place).attempt() {
            let key = self.run.job_key(&self.at(place).path, attempt);
            self.answer.effects.push(Effect::Abort(key));
        }
        let (path, until) = (self.path(place), self.now.plus(GRACE));
        self.emit(What::TimerSet { path, reason: Reason::Grace, until });
        true
    }

    fn cancel(&mut self, path: Path, why: Arc<str>, by: Arc<str>) -> Result<(), Refused> {
        if !path.is_run() {
            let place = self.state().find(&path);
            let is_open = |place| !matches!(self.at(place).phase, Phase::Settled(_) | Phase::Dormant);
            if !place.is_some_and(is_open) {
                return Err(Refused::NothingThere(path));
            }
        }
        self.emit(What::CancelRequested { path, why, by, inside: false });
        Ok(())
    }

    /// Merges values into the inputs of the run. Gates that read their decision from an input check it again.
    fn change(&mut self, changes: &Value, by: Arc<str>) -> Result<(), Refused> {
        let inputs = merged(&self.state().units[0].inputs, changes);
        self.emit(What::InputsChanged { inputs, by });
        self.rebind_calls();
        self.look_at_verdicts();
        Ok(())
    }

    /// What the expressions of a step can read, including the environment of the step and its scopes.
    fn sight(&self, from: Option<Place>) -> Result<Sight<'_>, Failure> {
        Ok(self.bare_sight(from, self.environment(from)?))
    }

    fn bare_sight(&self, from: Option<Place>, env: Value) -> Sight<'_> {
        Sight { from, env, now: Some(self.now), ..Sight::at_start(&self.run.id, self.state()) }
    }

    /// What the expressions of a scope can read: also the steps of its own list.
    fn inner_sight(&self, from: Option<Place>) -> Result<Sight<'_>, Failure> {
        Ok(Sight { inside: true, ..self.sight(from)? })
    }

    /// The environment of the workflow, extended by that of each scope and of the step, outermost first.
    fn environment(&self, of: Option<Place>) -> Result<Value, Failure> {
        let unit = of.map_or(0, |place| self.at(place).unit);
        let outwards = std::iter::successors(of, |place| self.at(*place).parent);
        let own = outwards.take_while(|place| self.at(*place).unit == unit);
        let mut chain: Vec<Place> = own.filter(|place| self.at(*place).frame.is_none()).collect();
        chain.reverse();
        let mut env = self.state().units[unit as usize].env.clone();
        for place in chain {
            let step = self.state().program(place).step(self.at(place).step);
            if !step.env.is_empty() {
                let added = render::bindings(&self.bare_sight(Some(place), env.clone()), &step.env)?;
                env = merged(&env, &Value::Map(Arc::new(added)));
            }
        }
        Ok(env)
    }
}

/// A map with the entries of another one added or replaced.
pub(crate) fn merged(under: &Value, over: &Value) -> Value {
    match (under, over) {
        (Value::Map(under), Value::Map(over)) => {
            let mut merged = (**under).clone();
            merged.extend(over.iter().map(|(name, value)| (name.clone(), value.clone())));
            Value::Map(Arc::new(merged))
        }
        (Value::Null, Value::Map(_)) => over.clone(),
        (_, _) => under.clone(),
    }
}
