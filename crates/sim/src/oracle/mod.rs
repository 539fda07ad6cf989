//! The oracle: a second interpreter of plans, written from `docs/running.md` and apart from the engine, so that what one of them
//! gets wrong the other does not.
//!
//! It is told every input that the run has accepted, in order, and says what must have become of the run. It owns no promise about
//! speed: it keeps nothing but the tree of instances and looks through all of it whenever it wants to know something, so that each
//! rule of the page stands here in one place. It does not refuse inputs, writes no events, makes no effects and words no messages.
//!
//! `tree` is the memory, `reading` what expressions see, `starting` and `ending` the two halves of every step, `attempts` the
//! actions between them, `waiting` gates and waits.
//!
//! Left out: other workflows, planners, hooks, jitter, what earlier runs have kept, and results of other shapes than the house's.

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
use tree::{At, Inside, Instance, ListKind, RUN, Rounds, State, Told, Tree};
use windlass_engine::{Input, JobKey, Outcome, Path, RunId, Start, Timestamp};
use windlass_ir::expr::ResultShapes;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Kind, RunInput};
use windlass_ir::{Duration, Plan, Value};

/// What must become of a run.
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
    /// When the run will have taken too long, while its time counts.
    over_at: Option<Timestamp>,
    /// How much of its time is left, while it does not count; all of it at first.
    left: Option<Duration>,
    paused: bool,
    /// Signals that no wait has taken.
    signals: Vec<waiting::Kept>,
    /// The ids of decisions and signals that have been heard.
    heard: BTreeSet<Arc<str>>,
    /// The run was told to stop more than once: nothing is undone any more.
    snapshot: bool,
    /// The decisions that were taken.
    decisions: BTreeSet<(Path, Arc<str>)>,
    /// What steps with a key have done, in order.
    kept_keys: Vec<KeptKey>,
    /// What a finish has said.
    finished: Option<Outcome>,
    /// Counts ends and other things whose order matters.
    turn: u64,
    outcome: Option<Outcome>,
}

/// Something that happens at an instant. The order is that in which timers act.
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
    /// A delivery of an attempt has taken too long.
    Attempt,
    /// A scope, or the run, has taken too long.
    Whole,
    /// A gate or a wait is over.
    Wait,
    /// The next round of a loop.
    Round,
    /// What was told to stop has had its time.
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
            snapshot: false,
            decisions: BTreeSet::new(),
            kept_keys: Vec::new(),
            finished: None,
            turn: 0,
            outcome: None,
        }
    }

    /// An input that the run has accepted, at this time. When it was only written down (`quiet`) nothing new is started because of
    /// it; the next input goes on.
    pub fn accept(&mut self, now: Timestamp, heard: Timestamp, input: &Input, quiet: bool) {
        self.now = now;
        if matches!(input, Input::TakenUp) {
            // The time during which nobody drove the run does not count.
            self.over_at = self.over_at.map(|over| now.plus(over.since(heard)));
        }
        self.take(input, quiet);
        self.advance(quiet);
        self.wind_clock();
    }

    /// The time of the run begins to count, or stands still.
    fn wind_clock(&mut self) {
        let Some(limit) = self.plan.policy.timeout else { return };
        match (self.over_at, self.clock_runs()) {
            (None, true) => self.over_at = Some(self.now.plus(self.left.take().unwrap_or(limit))),
            // Time that is up already does not stand still any more.
            (Some(over), false) if over > self.now => {
                (self.over_at, self.left) = (None, Some(over.since(self.now)));
            }
            (None, false) | (Some(_), _) => {}
        }
    }

    /// Whether it can tell what should come of a plan: it knows the shapes of the house, and nothing of steps that come from
    /// elsewhere while a run goes on.
    pub fn knows(plan: &Plan) -> bool {
        let house = plan.semantics.results == ResultShapes::HOUSE && plan.input == RunInput::Declared;
        let own = |step: &PlanStep| match &step.kind {
            Kind::Action(Action::Call(_)) => false,
            Kind::Action(Action::Task(task)) => task.planner.is_none(),
            _ => true,
        };
        house && plan.steps.iter().all(|step| own(step) && step.policy.retry.backoff.jitter == 0.0)
    }

    /// The result, once it is fixed.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Every instance that is settled, items and rounds too, by its path.
    pub fn settled(&self) -> BTreeMap<Path, Outcome> {
        // The last one at a path is the one that counts.
        let instances = self.tree.instances.iter().filter(|instance| instance.step.is_some());
        let last: BTreeMap<Path, Option<&Outcome>> =
            instances.map(|instance| (instance.path.clone(), instance.outcome())).collect();
        last.into_iter().filter_map(|(path, outcome)| Some((path, outcome?.clone()))).collect()
    }

    /// The jobs that are out, told to stop or not.
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
            // What runs share is not its business.
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
                // What could begin earlier does so before time brings anything.
                self.advance(quiet);
                self.fire_timers(quiet);
            }
            Input::Cancel { path, why, .. } => {
                if let Some(at) = self.at(path) {
                    self.paused &= !path.is_run();
                    self.stop(at, &Told::Cancelled { why: why.clone(), by_user: true });
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
                self.snapshot = false;
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

    /// Goes on until nothing can happen without the outside: ends what has come to its end, then starts one thing, then looks again.
    fn advance(&mut self, quiet: bool) {
        let starts = !quiet && !self.paused;
        while self.outcome.is_none()
            && (self.open_items()
                || self.end_something()
                || self.open_rounds()
                || starts && (self.start_something() || self.hand_out_something()))
        {}
    }

    /// What is open at a path.
    fn at(&self, path: &Path) -> Option<At> {
        self.tree.all().find(|at| self.tree[*at].path == *path && self.tree[*at].is_open())
    }

    /// The step of an instance that is not the run.
    fn step(&self, at: At) -> &PlanStep {
        self.plan.step(self.tree[at].step.expect("only the run is no step"))
    }

    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Whether time counts towards what the run may take.
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
        let is_bounded = matches!(instance.state, State::Entered) && instance.told.is_none();
        let whole = instance.deadline.filter(|_| is_bounded);
        own.into_iter().chain(timer(Due::Whole, whole)).collect()
    }

    /// The run has taken too long once the time that counts is used up: that instant moves while it does not count.
    fn run_timer(&self) -> Option<Timer> {
        let instant = self.over_at.filter(|_| self.tree[RUN].told.is_none())?;
        Some(Timer { instant, at: RUN, what: Due::Whole })
    }

    /// Each timer that is due acts as if nothing else were due, in the order of their instants.
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
            Due::Whole => self.stop(at, &Told::TimedOut),
        }
    }
}
