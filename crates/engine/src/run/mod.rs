//! One run: what it knows, what it decides, and what it still owes.
//!
//! `program` is the plan made ready, `state` the memory and the one function that changes it. The rest decides, one file for each
//! thing that there is to decide about: `start` what becomes of a step that can begin, `attempt` of the answers of executors, `end`
//! of scopes and of the run, and a file for each kind of step that is more than an attempt. `values` is what expressions see on
//! the way, `records` the shape in which steps are seen, `render` the work that is handed out. `view` is the state for
//! readers.

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
pub use state::Contradiction;
use state::{Abort, Attempt, Doing, Instance, Phase, Place, RunClock, Stage, State, evolve};
use std::sync::Arc;
use values::{Sight, check_size};
pub use view::{CHILD, RunPhase, StepPhase, StepView, View};
pub use wait::fits;
use windlass_ir::expr::{GateRule, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::{Sealable, VALUE_BYTES_MAX};
use windlass_ir::workflow::RunInput;
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
    /// Whether every job is asked for, because whoever drives the run has limits of its own.
    asks_always: bool,
    /// How far the wall clock is ahead of its time, in microseconds.
    wall_ahead: i64,
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
        Self { id, state: State::new(program.clone()), program, asks_always: false, wall_ahead: 0 }
    }

    /// The run that these events describe.
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

    /// The result, once it is fixed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state.stage {
            Stage::New | Stage::Running => None,
            Stage::Concluded(outcome) | Stage::Closed(outcome) => Some(outcome),
        }
    }

    /// From now on the run asks the coordinator for every job, also for those whose plan names no limit.
    pub fn ask_always(&mut self, always: bool) {
        self.asks_always = always;
    }

    /// Whether an attempt is under way, or one that failed will be followed by another.
    pub fn is_working(&self) -> bool {
        !self.state.index.jobs.is_empty() || !self.state.hooks.open.is_empty()
    }

    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    pub fn is_interrupted(&self) -> bool {
        self.state.interrupted
    }

    /// The earliest instant at which time alone changes something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        if self.state.stands_still() {
            return None;
        }
        let run = match self.state.clock {
            RunClock::Until(until) if self.outcome().is_none() && self.state.stop.is_none() => Some(until),
            RunClock::Until(_) | RunClock::None | RunClock::Still { .. } | RunClock::Over => None,
        };
        let begins = self.state.admission.begins_at.filter(|_| self.state.stop.is_none());
        self.state.timers.next().map(|(until, ..)| until).into_iter().chain(run).chain(begins).min()
    }

    /// The paths that time will do something to.
    pub fn timers(&self) -> impl Iterator<Item = &Path> {
        self.state.timers.places().map(|place| &self.state.at(place).path)
    }

    /// Effects that were decided and not answered yet.
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

    /// Whether something is outstanding, or would be if the run were executed.
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
            || ready.iter().any(|ready| !ready.is_empty()) && !state.stands_still()
            || state.index.jobs.iter().any(held)
    }

    /// Whether time alone moves it on: a sleep, a retry, the next round of a loop, a later start.
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
        moves && !state.stands_still() && self.outcome().is_none()
    }

    /// The time of its last event.
    pub fn last_at(&self) -> Timestamp {
        self.state.last_at
    }

    /// The run that the step at this path has called.
    pub fn called(&self, path: &Path) -> Option<RunId> {
        let place = self.state.find(path)?;
        let instance = self.state.at(place);
        view::called(instance, &instance.attempt()?.assignment)
    }

    /// What was recorded about the run when it was started.
    pub fn about(&self) -> &Value {
        &self.state.about
    }

    pub fn started_at(&self) -> Timestamp {
        self.state.started_at
    }

    /// The step of the plan at a path.
    pub fn plan_step(&self, path: &Path) -> Option<(StepId, &PlanStep)> {
        let place = self.state.find(path)?;
        let id = self.state.at(place).step;
        Some((id, self.state.program(place).step(id)))
    }

    /// How many attempts were made at the same step before a gate sent it back.
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

    /// The job with this key, if its report is waited for.
    pub fn job_at(&self, key: &JobKey) -> Option<Job> {
        if let Some(hook) = self.state.hooks.open.get(&key.path) {
            return Some(self.hook_job(&key.path, hook));
        }
        let place = self.state.find(&key.path)?;
        let attempt = self.state.at(place).attempt()?;
        let waits = matches!(attempt.doing, Doing::Running | Doing::Aborting(_));
        (waits && self.job_key(&key.path, attempt) == *key).then(|| self.job(place, attempt))
    }

    /// The job with this key, if somebody is at work on it.
    pub fn dispatched(&self, key: &JobKey) -> Option<Job> {
        let place = self.state.find(&key.path)?;
        let attempt = self.state.at(place).attempt()?;
        let same = matches!(attempt.doing, Doing::Running) && self.job_key(&key.path, attempt) == *key;
        same.then(|| self.job(place, attempt))
    }

    /// Whether this is the first attempt since a failed step was opened again.
    pub fn is_reopened(&self, job: &JobKey) -> bool {
        let before = self.state.find(&job.path).map_or(0, |place| self.state.at(place).attempts_before);
        before > 0 && job.attempt == before + 1
    }

    /// The runs that wait for this one, the outermost first.
    pub fn parents(&self) -> &[RunId] {
        &self.state.shares.parents
    }

    /// The budgets that it draws on: those of the runs that wait for it, and its own.
    pub fn budgets(&self) -> impl Iterator<Item = RunBudget> {
        let cap = &self.program.plan.policy.budget;
        let own = (!cap.is_unlimited()).then(|| RunBudget { run: self.id.clone(), cap: cap.clone() });
        self.state.shares.budgets.iter().cloned().chain(own)
    }

    /// Who has started it.
    pub fn by(&self) -> Option<&Arc<str>> {
        self.state.by.as_ref()
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

    /// Whether a job is told to stop because its time is up.
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
            round: rounds::standing(step, instance.rounds),
            feedback: feedback.map(|because| because.failure.clone()),
            rules: program.plan.semantics,
        }
    }

    /// The secrets that a step must not print: those of its own workflow, and those of the workflow that the run is about.
    fn secrets_of(&self, program: &Arc<Program>) -> Arc<[Arc<str>]> {
        let own = &program.plan.secrets;
        let run = self.program.plan.secrets.iter().filter(|name| !own.contains(name));
        own.iter().chain(run).cloned().collect()
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
    /// A decision that contradicts the run: a bug of the engine. Nothing is decided after it, and the run must be dropped.
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

    /// The program of an instance, to be held while the run changes.
    fn program(&self, place: Place) -> Arc<Program> {
        self.state().program(place).clone()
    }

    /// Writes a decision down and lives by it.
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
                self.taken_up();
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

    /// Once the result is fixed, only what is done around the run can report, and a failed run can be opened again.
    fn accept_after_end(&mut self, input: Input) -> Result<(), Refused> {
        match input {
            Input::Reported { job, .. } | Input::Lost { job, .. } if self.hook_of(&job) => {
                self.hook_reported(job.path);
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

    /// The environment is evaluated once, before the first step.
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
        let env = render::bindings(&Sight::at_start(&self.run.id, &state), &plan.env)
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
        self.start_hooks();
        Ok(())
    }

    /// Goes on until nothing can happen without the outside.
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
            // Whatever moves is written down; what moves and writes nothing would move for ever.
            let written = self.answer.events.len();
            debug_assert!(written > before, "something was decided and not written down");
            if written == before {
                return;
            }
        }
    }

    /// Fires one timer that is due, once nothing is left to do about the one before. While the run is paused none does; they act when it goes on.
    fn fire_timer(&mut self) -> bool {
        let Some((until, place, reason)) = self.state().timers.next() else { return false };
        if until > self.now || !self.ticking || self.state().stands_still() {
            return false;
        }
        let path = self.path(place);
        self.emit(What::TimerFired { path, reason });
        true
    }

    /// Tells an attempt to stop, and sets the time it may take to do so.
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

    /// Lays other inputs over those of the run; gates that look at one of them look again.
    fn change(&mut self, changes: &Value, by: Arc<str>) -> Result<(), Refused> {
        let inputs = merged(&self.state().units[0].inputs, changes);
        self.emit(What::InputsChanged { inputs, by });
        self.bind_calls_anew();
        self.look_at_verdicts();
        Ok(())
    }

    /// The eyes of a step, with the environment that it and the scopes around it add.
    fn sight(&self, from: Option<Place>) -> Result<Sight<'_>, Failure> {
        Ok(self.bare_sight(from, self.environment(from)?))
    }

    fn bare_sight(&self, from: Option<Place>, env: Value) -> Sight<'_> {
        Sight { from, env, ..Sight::at_start(&self.run.id, self.state()) }
    }

    /// The eyes of a scope, which sees the steps of its own list.
    fn inner_sight(&self, from: Option<Place>) -> Result<Sight<'_>, Failure> {
        Ok(Sight { inside: true, ..self.sight(from)? })
    }

    /// The environment of the workflow with what a step and the scopes around it add, outermost first.
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

/// A map with others laid over it.
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
