//! One run: what it knows, what it decides, and what it still owes.
//!
//! `program` is the plan made ready, `state` the memory and the one function that changes it. The rest decides: `start` what
//! becomes of a step that can begin, `attempt` of the answers of executors, `gate` of decisions, `end` of scopes and of
//! the run; `values` is what expressions see on the way.

mod attempt;
mod clock;
mod end;
mod gate;
mod program;
mod start;
mod state;
mod values;

use crate::event::{Event, What};
use crate::input::{Effect, Input, Refused};
use crate::job::Job;
use crate::keys::{JobKey, Reason, RunId, Timestamp};
use crate::outcome::Outcome;
pub use program::{Program, Unrunnable};
use start::rendered;
use state::{Attempt, Doing, Instance, Phase, Place, RunClock, Stage, State, evolve};
use std::sync::Arc;
use values::Sight;
pub use values::status_word;
use windlass_ir::value::Sealable;
use windlass_ir::{Duration, Value};

/// More events than this in one answer are cut; the caller is asked to tick again at once.
const EVENTS_MAX: usize = 1_000;

/// How long something that was told to stop may take before it is given up.
const GRACE: Duration = Duration::from_secs(10);

/// A run of a program: a state machine that the world talks to through [`Run::handle`].
///
/// It decides, writes each decision down as an event, and applies the event to itself before it decides further. What it
/// returns must be made durable before any of the effects are carried out. If that fails, drop the run and replay it: the
/// state in memory is ahead of what is remembered.
///
/// Whatever was dispatched and not reported is owed: [`Run::outstanding`] lists it, so a queue may lose or repeat
/// anything. There is no other way to change a run than `handle`, and no other way to get one back than [`Run::replay`].
#[derive(Clone, Debug)]
pub struct Run {
    id: RunId,
    program: Arc<Program>,
    state: State,
}

/// Two runs are equal when they know the same.
impl PartialEq for Run {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.state == other.state
    }
}

/// What one input led to.
#[derive(Debug, Default)]
pub struct Answer {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
    /// There is more to decide: tick again once this is durable.
    pub again: bool,
}

impl Run {
    pub fn new(id: RunId, program: Arc<Program>) -> Self {
        Self { id, program, state: State::new() }
    }

    /// The run that these events describe.
    pub fn replay<'e>(id: RunId, program: Arc<Program>, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut run = Self::new(id, program);
        for event in events {
            evolve(&mut run.state, &run.program, event);
        }
        run
    }

    pub fn id(&self) -> &RunId {
        &self.id
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The result, once it is fixed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state.stage {
            Stage::New | Stage::Running => None,
            Stage::Concluded(outcome) | Stage::Closed(outcome) => Some(outcome),
        }
    }

    /// Whether an attempt is under way, or one that failed will be followed by another.
    pub fn is_working(&self) -> bool {
        !self.state.jobs.is_empty()
    }

    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// The earliest instant at which time alone changes something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let run = match self.state.clock {
            RunClock::Until(until) if self.outcome().is_none() && self.state.cancelling.is_none() => {
                Some(until)
            }
            RunClock::Until(_) | RunClock::None | RunClock::Still { .. } | RunClock::Over => None,
        };
        self.state.next_timer().map(|(until, ..)| until).into_iter().chain(run).min()
    }

    /// Effects that were decided and not answered yet.
    pub fn outstanding(&self) -> Vec<Effect> {
        let jobs = self.state.jobs.iter();
        jobs.filter_map(|place| match &self.state.at(*place).phase {
            Phase::Attempt(attempt) => match attempt.doing {
                Doing::Running => Some(Effect::Dispatch(Box::new(self.job(*place, attempt)))),
                Doing::Aborting(_) => Some(Effect::Abort(self.job_key(*place, attempt))),
                Doing::Backoff { .. } => None,
            },
            Phase::Waiting | Phase::Ready | Phase::Gate { .. } | Phase::Entered | Phase::Settled { .. } => {
                None
            }
        })
        .collect()
    }

    /// Takes an input and decides everything that can be decided because of it.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Result<Answer, Refused> {
        self.turn(now, input, false)
    }

    /// Takes an input and starts nothing because of it: for whoever only writes it down. The next input goes on.
    pub fn record(&mut self, now: Timestamp, input: Input) -> Result<Answer, Refused> {
        self.turn(now, input, true)
    }

    fn turn(&mut self, now: Timestamp, input: Input, quiet: bool) -> Result<Answer, Refused> {
        let now = now.max(self.state.last_at);
        let ticking = input == Input::Tick;
        let mut turn = Turn { run: self, now, ticking, quiet, answer: Answer::default() };
        turn.accept(input)?;
        turn.advance();
        Ok(turn.answer)
    }

    fn job_key(&self, place: Place, attempt: &Attempt) -> JobKey {
        let path = self.state.at(place).path.clone();
        JobKey { run: self.id.clone(), path, attempt: attempt.attempt, delivery: attempt.delivery }
    }

    fn job(&self, place: Place, attempt: &Attempt) -> Job {
        let instance = self.state.at(place);
        let step = self.program.plan.step(instance.step);
        Job {
            key: self.job_key(place, attempt),
            step: step.id.clone(),
            work: attempt.assignment.clone(),
            secrets: self.program.plan.secrets.clone().into(),
            timeout: step.policy.timeout,
            notes: instance.notes.clone(),
        }
    }
}

/// One call of `handle` under way.
struct Turn<'a> {
    run: &'a mut Run,
    now: Timestamp,
    /// Timers fire only when time is what came in, so that a run that is taken up again hears first what was lost.
    ticking: bool,
    /// Nothing is started.
    quiet: bool,
    answer: Answer,
}

impl Turn<'_> {
    fn state(&self) -> &State {
        &self.run.state
    }

    fn at(&self, place: Place) -> &Instance {
        self.run.state.at(place)
    }

    /// Writes a decision down and lives by it.
    fn emit(&mut self, what: What) {
        let event = Event { at: self.now, what };
        evolve(&mut self.run.state, &self.run.program, &event);
        self.answer.events.push(event);
    }

    fn accept(&mut self, input: Input) -> Result<(), Refused> {
        match (&self.state().stage, &input) {
            (Stage::New, Input::Start { .. }) => {}
            (Stage::New, _) => return Err(Refused::NotStarted),
            (_, Input::Start { .. }) => return Err(Refused::AlreadyStarted),
            (Stage::Running, Input::Reopen { .. }) => return Err(Refused::NotFailed),
            (Stage::Concluded(_), Input::Reopen { .. }) | (Stage::Running, _) => {}
            (
                Stage::Concluded(_) | Stage::Closed(_),
                Input::Reported { job, .. } | Input::Lost { job } | Input::Noted { job, .. },
            ) => {
                return Err(Refused::StaleJob(job.clone()));
            }
            (Stage::Concluded(_) | Stage::Closed(_), Input::Tick | Input::TakenUp) => return Ok(()),
            (Stage::Concluded(_) | Stage::Closed(_), Input::Decide { id, path, .. }) => {
                return match self.state().decisions.get(path) {
                    Some((known, _)) if known == id => Ok(()),
                    Some((_, by)) => Err(Refused::AlreadyDecided { path: path.clone(), by: by.clone() }),
                    None => Err(Refused::Finished),
                };
            }
            (Stage::Concluded(_) | Stage::Closed(_), _) => return Err(Refused::Finished),
        }
        match input {
            Input::Start { inputs, seed, about } => self.start_run(inputs, seed, about)?,
            Input::Reported { job, outcome } => self.reported(&job, outcome)?,
            Input::Lost { job } => self.lost(&job)?,
            Input::Noted { job, key, value } => {
                let place = self.outstanding(&job)?;
                let path = self.at(place).path.clone();
                self.emit(What::Noted { path, key, value });
            }
            Input::Decide { id, path, decision } => self.decided(&id, &path, decision)?,
            Input::TakenUp => self.taken_up(),
            Input::Tick => {}
            Input::Cancel { why, by } => self.cancel(why, by),
            Input::Pause { .. } if self.state().paused => return Err(Refused::AlreadyPaused),
            Input::Pause { by } => self.emit(What::Paused { by }),
            Input::Resume { .. } if !self.state().paused => return Err(Refused::NotPaused),
            Input::Resume { by } => self.emit(What::Resumed { by }),
            Input::Reopen { inputs, by } => self.reopen(&inputs, by)?,
        }
        Ok(())
    }

    /// The environment is evaluated once, before the first step.
    fn start_run(&mut self, inputs: Value, seed: u64, about: Value) -> Result<(), Refused> {
        let mut state = State::new();
        state.inputs = inputs.clone();
        state.started_at = self.now;
        let Run { id, program, .. } = &*self.run;
        let sight = Sight { run: id, program, state: &state, from: None, env: Value::Null, failed: None };
        let env = rendered(&sight, &program.plan.env)
            .map_err(|failure| Refused::BadEnvironment(failure.message))?;
        self.emit(What::Started { inputs, env: Sealable(Value::Map(Arc::new(env))), seed, about });
        Ok(())
    }

    /// Goes on until nothing can happen without the outside.
    fn advance(&mut self) {
        while matches!(self.state().stage, Stage::Running) {
            if self.answer.events.len() >= EVENTS_MAX {
                self.answer.again = true;
                return;
            }
            let moved = self.run_out()
                || self.fire_timer()
                || self.attend()
                || self.stop_one()
                || !self.quiet && self.start_one()
                || self.conclude()
                || !self.quiet && self.set_clock();
            if !moved {
                return;
            }
        }
    }

    /// Fires one timer that is due. What follows from it waits while the run is paused.
    fn fire_timer(&mut self) -> bool {
        let Some((until, place, reason)) = self.state().next_timer() else { return false };
        if until > self.now || !self.ticking {
            return false;
        }
        let path = self.at(place).path.clone();
        self.emit(What::TimerFired { path, reason });
        if reason == Reason::Timeout {
            self.abort(place);
        }
        true
    }

    /// Tells an attempt to stop, and sets the time it may take to do so.
    fn abort(&mut self, place: Place) {
        let Phase::Attempt(attempt) = &self.at(place).phase else { return };
        let key = self.run.job_key(place, attempt);
        let path = self.at(place).path.clone();
        self.answer.effects.push(Effect::Abort(key));
        self.emit(What::TimerSet { path, reason: Reason::Grace, until: self.now.plus(GRACE) });
    }

    fn cancel(&mut self, why: Arc<str>, by: Arc<str>) {
        let running: Vec<Place> =
            self.state().jobs.iter().copied().filter(|place| self.is_running(*place)).collect();
        self.emit(What::CancelRequested { why, by });
        running.into_iter().for_each(|place| self.abort(place));
    }

    fn is_running(&self, place: Place) -> bool {
        matches!(&self.at(place).phase, Phase::Attempt(attempt) if attempt.doing == Doing::Running)
    }
}

/// The inputs with changes laid over them.
fn merged(inputs: &Value, changes: &Value) -> Value {
    match (inputs, changes) {
        (Value::Map(inputs), Value::Map(changes)) => {
            let mut merged = (**inputs).clone();
            merged.extend(changes.iter().map(|(name, value)| (name.clone(), value.clone())));
            Value::Map(Arc::new(merged))
        }
        _ => inputs.clone(),
    }
}
