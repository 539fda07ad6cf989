//! The oracle: a second interpreter of plans, written from `docs/internals/execution.md` and independent of the engine, so that
//! both do not share the same mistakes.
//!
//! It receives every input that the run accepted, in order, and computes the expected state. It is not optimized: it
//! stores only the tree of instances and searches all of it, so that each documented rule is in one place. It does
//! not refuse inputs, and produces no events, effects or messages.
//!
//! `tree` is the state, `reading` is what expressions see, `starting` and `ending` are the two halves of every step,
//! `attempts` are the actions between them, and `waiting` are gates and waits.
//!
//! Not supported: other workflows, planners, hooks, jitter, results of earlier runs, and result shapes other than
//! those of the native dialect.

mod attempts;
mod ending;
mod reading;
mod starting;
mod tree;
mod waiting;

use attempts::KeptKey;
use reading::laid_over;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tree::{At, Inside, Instance, ListKind, RUN, Rounds, State, Stop, Tree};
use windlass_engine::{Input, JobKey, Outcome, Path, RunId, Start, Timestamp};
use windlass_ir::expr::ResultShapes;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Kind, RunInput};
use windlass_ir::{Duration, Plan, Value};

/// The expected state of a run.
#[derive(Clone, Debug)]
pub struct Oracle {
    plan: Arc<Plan>,
    run: RunId,
    tree: Tree,
    inputs: Value,
    env: Value,
    started: Timestamp,
    /// The time of the last input.
    now: Timestamp,
    /// When the run times out, while its time counts.
    over_at: Option<Timestamp>,
    /// The time left while it does not count; all of it at first.
    left: Option<Duration>,
    paused: bool,
    /// Stored signals.
    signals: Vec<waiting::Kept>,
    /// The ids of all decisions and signals.
    heard: BTreeSet<Arc<str>>,
    /// The run was stopped more than once, so nothing more is undone.
    stopped_twice: bool,
    /// The accepted decisions.
    decisions: BTreeSet<(Path, Arc<str>)>,
    /// The results of steps with a key, in order.
    kept_keys: Vec<KeptKey>,
    /// The outcome that a finish step named.
    finished: Option<Outcome>,
    /// Numbers ends and other events whose order matters.
    turn: u64,
    outcome: Option<Outcome>,
}

/// A timer. Timers fire in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    instant: Timestamp,
    at: At,
    what: Due,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The next attempt or round of an action.
    Next,
    /// A delivery of an attempt timed out.
    Attempt,
    /// A scope or the run timed out.
    Whole,
    /// A gate or a wait is over.
    Wait,
    /// The next round of a loop.
    Round,
    /// The grace period of an aborted attempt is over.
    Grace,
}

impl Oracle {
    pub fn new(plan: Plan, run: RunId) -> Self {
        Self {
            plan: Arc::new(plan),
            run,
            tree: Tree::default(),
            inputs: Value::Null,
            env: Value::Null,
            started: Timestamp::default(),
            now: Timestamp(i64::MIN),
            over_at: None,
            left: None,
            paused: false,
            signals: Vec::new(),
            heard: BTreeSet::new(),
            stopped_twice: false,
            decisions: BTreeSet::new(),
            kept_keys: Vec::new(),
            finished: None,
            turn: 0,
            outcome: None,
        }
    }

    /// Handles an input that the run accepted at this time. If the input was only recorded (`quiet`), it starts
    /// nothing; the next input continues.
    pub fn accept(&mut self, now: Timestamp, heard: Timestamp, input: &Input, quiet: bool) {
        self.now = now;
        if matches!(input, Input::TakenUp) {
            // The time without an owner does not count.
            self.over_at = self.over_at.map(|over| now.plus(over.since(heard)));
        }
        self.take(input, quiet);
        self.advance(quiet);
        self.wind_clock();
    }

    /// Starts or suspends the timeout of the run.
    fn wind_clock(&mut self) {
        let Some(limit) = self.plan.policy.timeout else { return };
        match (self.over_at, self.clock_runs()) {
            (None, true) => self.over_at = Some(self.now.plus(self.left.take().unwrap_or(limit))),
            // A timeout that has already passed is not suspended.
            (Some(over), false) if over > self.now => {
                (self.over_at, self.left) = (None, Some(over.since(self.now)));
            }
            (None, false) | (Some(_), _) => {}
        }
    }

    /// Whether the oracle supports a plan: it knows only the result shapes of the native dialect, and no steps that
    /// are added at run time.
    pub fn knows(plan: &Plan) -> bool {
        let native = plan.semantics.results == ResultShapes::HOUSE && plan.input == RunInput::Declared;
        let own = |step: &PlanStep| match &step.kind {
            Kind::Action(Action::Call(_)) => false,
            Kind::Action(Action::Task(task)) => task.planner.is_none(),
            _ => true,
        };
        native && plan.steps.iter().all(|step| own(step) && step.policy.retry.backoff.jitter == 0.0)
    }

    /// The result, once it is final.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Every settled instance by path, including items and rounds.
    pub fn settled(&self) -> BTreeMap<Path, Outcome> {
        // The last instance at a path counts.
        let instances = self.tree.instances.iter().filter(|instance| instance.step.is_some());
        let last: BTreeMap<Path, Option<&Outcome>> =
            instances.map(|instance| (instance.path.clone(), instance.outcome())).collect();
        last.into_iter().filter_map(|(path, outcome)| Some((path, outcome?.clone()))).collect()
    }

    /// The running jobs, aborted or not.
    pub fn jobs(&self) -> BTreeSet<JobKey> {
        let out = self.tree.instances.iter().filter(|instance| matches!(instance.state, State::Out { .. }));
        out.map(|instance| JobKey {
            run: self.run.clone(),
            path: instance.path.clone(),
            attempt: instance.count.attempt,
            delivery: instance.count.delivery,
        })
        .collect()
    }

    fn take(&mut self, input: &Input, quiet: bool) {
        match input {
            Input::Start(start) => self.begin_run(start),
            Input::Reported { job, outcome } => {
                if let Some(at) = self.job(job) {
                    self.reported(at, outcome);
                }
            }
            Input::Lost { job, started } => {
                if let Some(at) = self.job(job) {
                    self.lost(at, *started);
                }
            }
            // The oracle ignores shared resources.
            Input::Noted { .. }
            | Input::Answered { .. }
            | Input::Spent { .. }
            | Input::TakenUp
            | Input::ClockSet
            | Input::Interrupt
            | Input::Continue => {}
            Input::Decide { id, path, decision } => {
                let asks = |at: &At| matches!(self.tree[*at].state, State::Asking { .. });
                let gate = self.at(path).filter(asks);
                if let Some(at) = gate.filter(|_| self.decisions.insert((path.clone(), id.clone()))) {
                    self.decide(at, decision);
                }
            }
            Input::Signal { id, name, value, to, .. } => {
                if self.heard.insert(id.clone()) {
                    match to {
                        Some(path) => self.deliver(path, value),
                        None => self.signal(name, value),
                    }
                }
            }
            Input::Tick if self.paused => {}
            Input::Tick => {
                // Steps that could begin earlier do so before timers fire.
                self.advance(quiet);
                self.fire_timers(quiet);
            }
            Input::Cancel { path, why, .. } => {
                if let Some(at) = self.at(path) {
                    self.paused &= !path.is_run();
                    self.stop(at, &Stop::Cancelled { why: why.clone(), by_user: true });
                }
            }
            Input::Pause { .. } => self.paused = true,
            Input::Resume { .. } => {
                self.paused = false;
            }
            Input::Change { inputs, .. } => {
                self.inputs = laid_over(&self.inputs, inputs);
                self.look_at_verdicts();
            }
            Input::Reopen { inputs, .. } => {
                self.inputs = laid_over(&self.inputs, inputs);
                self.outcome = None;
                (self.over_at, self.left) = (None, None);
                self.stopped_twice = false;
                self.reopen(RUN);
            }
            Input::Close => {}
        }
    }

    fn begin_run(&mut self, start: &Start) {
        self.started = self.now;
        self.inputs = start.inputs.clone();
        let run = Instance {
            state: State::Entered,
            inside: Some(Inside::Steps),
            ..Instance::new(Path::default(), None, None)
        };
        self.tree.instances.push(run);
        self.env = self.run_env();
        let plan = self.plan.clone();
        self.add_list(RUN, ListKind::Body, &plan.roots);
    }

    /// Continues until the run needs outside input: ends everything that can end, then starts one step, then repeats.
    fn advance(&mut self, quiet: bool) {
        let starts = !quiet && !self.paused;
        while self.outcome.is_none()
            && (self.open_items()
                || self.end_something()
                || self.open_rounds()
                || starts && (self.start_something() || self.hand_out_something()))
        {}
    }

    /// The open instance at a path.
    fn at(&self, path: &Path) -> Option<At> {
        self.tree.all().find(|at| self.tree[*at].path == *path && self.tree[*at].is_open())
    }

    /// The step of an instance other than the run.
    fn step(&self, at: At) -> &PlanStep {
        self.plan.step(self.tree[at].step.expect("only the run is not a step"))
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Whether time counts toward the run's timeout.
    fn clock_runs(&self) -> bool {
        let undoes = |instance: &Instance| {
            instance.undone || instance.undoing.as_ref().is_some_and(|left| !left.is_empty())
        };
        self.outcome.is_none() && !self.paused && self.is_moving() && !self.tree.instances.iter().any(undoes)
    }

    fn timers(&self) -> Vec<Timer> {
        let mut timers: Vec<Timer> = self.tree.all().flat_map(|at| self.timers_of(at)).collect();
        timers.extend(self.run_timer());
        timers.sort_unstable();
        timers
    }

    fn timers_of(&self, at: At) -> Vec<Timer> {
        let instance = &self.tree[at];
        let timer =
            |what: Due, instant: Option<Timestamp>| instant.map(|instant| Timer { instant, at, what });
        let own = match &instance.state {
            State::Out { grace: Some(grace), .. } => timer(Due::Grace, Some(*grace)),
            State::Out { deadline, grace: None } => timer(Due::Attempt, *deadline),
            State::Next { due } => timer(Due::Next, *due),
            State::Asking { until, .. } | State::Waiting { until, .. } => timer(Due::Wait, *until),
            State::Entered => match instance.inside {
                Some(Inside::Rounds(Rounds::Wanted { due })) => timer(Due::Round, due),
                Some(Inside::Steps | Inside::Arm(_) | Inside::Items(_) | Inside::Rounds(_)) | None => None,
            },
            State::Pending
            | State::Queued
            | State::Joined { .. }
            | State::TakenOver(_)
            | State::Settled(_)
            | State::Left => None,
        };
        let is_bounded = matches!(instance.state, State::Entered) && instance.stop.is_none();
        let whole = instance.deadline.filter(|_| is_bounded);
        own.into_iter().chain(timer(Due::Whole, whole)).collect()
    }

    /// The run times out when the time that counts is used up. That instant moves while time does not count.
    fn run_timer(&self) -> Option<Timer> {
        let instant = self.over_at.filter(|_| self.tree[RUN].stop.is_none())?;
        Some(Timer { instant, at: RUN, what: Due::Whole })
    }

    /// Fires due timers one by one, in order of time.
    fn fire_timers(&mut self, quiet: bool) {
        while let Some(timer) = self.timers().into_iter().next().filter(|timer| timer.instant <= self.now) {
            self.act(timer);
            self.advance(quiet);
        }
    }

    fn act(&mut self, timer: Timer) {
        let (at, now) = (timer.at, self.now);
        match timer.what {
            Due::Attempt => {
                let deadline = Some(timer.instant);
                let grace = Some(now.plus(ending::GRACE));
                self.tree[at].state = State::Out { deadline, grace };
            }
            Due::Grace => drop(self.stopped(at)),
            Due::Next => self.tree[at].state = State::Next { due: None },
            Due::Wait => self.waited(at),
            Due::Round => {
                self.tree[at].inside = Some(Inside::Rounds(Rounds::Wanted { due: None }));
            }
            Due::Whole => self.stop(at, &Stop::TimedOut),
        }
    }
}
