//! What an onlooker knows: the same events, folded for reading instead of deciding.

use crate::event::{Assignment, Decision, Event, Repeated, Settled, Undone, What};
use crate::job::Work;
use crate::keys::{Path, Reason, RunId, Timestamp};
use crate::outcome::Outcome;
use crate::run::{Program, Role};
use indexmap::IndexMap;
use std::collections::HashSet;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug)]
pub struct View {
    /// The workflows of this run: its own, and those that run inside it.
    programs: Vec<Arc<Program>>,
    pub phase: RunPhase,
    pub inputs: Value,
    /// What was said about the run when it was started.
    pub about: Value,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub has_failures: bool,
    pub undone: Option<Undone>,
    pub paused: bool,
    /// No process continues it before someone resumes it.
    pub interrupted: bool,
    /// It is paused because it has come as far as it was to go.
    pub reached: bool,
    /// The instant that it waits for before it begins.
    pub begins_at: Option<Timestamp>,
    pub cancel_requested: bool,
    /// Where the failure that ended the run happened.
    pub failed_at: Option<Path>,
    /// For each scope that a failure ended, the step that failed in it.
    halted: IndexMap<Path, Path>,
    /// What it needs before it begins.
    pub applies: Vec<Arc<str>>,
    /// What an earlier run has done.
    kept: HashSet<Path>,
    /// How many events were applied.
    pub events: u64,
    /// Every instance that exists, in the order in which they came into being.
    pub steps: IndexMap<Path, StepView>,
    /// Items and rounds that are done and are taken out of the steps with the next ones; none where everything is kept.
    done: Option<HashSet<Path>>,
}

/// So many items and rounds are taken out at once.
const TAKEN_OUT: usize = 1_024;

#[derive(Clone, Debug, PartialEq)]
pub enum RunPhase {
    Pending,
    Running,
    Ended(Outcome),
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    /// Which workflow of the run it belongs to: the run's own is 0.
    pub unit: u32,
    pub step: StepId,
    /// The number of the item or round that this is.
    pub frame: Option<u32>,
    pub phase: StepPhase,
    pub attempts: u32,
    /// The rounds that a task has asked for.
    pub rounds: u32,
    /// The waits that were decided between attempts.
    pub delays: Vec<Duration>,
    pub input: Option<Value>,
    /// What its last attempt was given.
    pub assignment: Option<Arc<Assignment>>,
    /// What was decided when it was entered: the arm, the items, what was asked or is waited for.
    pub entered: Option<Arc<Decision>>,
    /// What was last decided at a gate, and has not let it go on.
    pub decided: Option<Value>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub recovered: bool,
    pub abandoned: bool,
    /// The run that a call has started.
    pub child: Option<RunId>,
    /// An earlier run has done it.
    pub kept: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepPhase {
    /// It runs only when it is called for.
    Dormant,
    Pending,
    /// For its turn at what runs share.
    Queued {
        since: Timestamp,
    },
    Running,
    /// Between two attempts, or two rounds.
    Backoff {
        until: Timestamp,
    },
    /// At a gate.
    Asking {
        message: Option<Value>,
        until: Option<Timestamp>,
    },
    /// For time, a signal or a message.
    Waiting {
        signal: Option<Arc<str>>,
        until: Option<Timestamp>,
    },
    /// Another step with the same key does the work.
    Joined,
    /// A scope with steps at work.
    Inside,
    Settled(Outcome),
}

/// What a step that calls another workflow notes the run under.
pub const CHILD: &str = "run";

impl StepView {
    fn calls(&self) -> bool {
        self.assignment.as_ref().is_some_and(|assignment| matches!(assignment.work, Work::Call { .. }))
    }
}

impl View {
    pub fn new(program: Arc<Program>) -> Self {
        Self {
            programs: vec![program],
            phase: RunPhase::Pending,
            inputs: Value::Null,
            about: Value::Null,
            started_at: None,
            ended_at: None,
            has_failures: false,
            undone: None,
            paused: false,
            interrupted: false,
            reached: false,
            begins_at: None,
            cancel_requested: false,
            failed_at: None,
            halted: IndexMap::new(),
            applies: Vec::new(),
            kept: HashSet::new(),
            events: 0,
            steps: IndexMap::new(),
            done: None,
        }
    }

    pub fn of<'e>(program: Arc<Program>, events: impl IntoIterator<Item = &'e Event>) -> Self {
        Self::new(program).after(events)
    }

    /// The view of whoever drives a run: of items and rounds that are done, and that nobody asks about, it keeps nothing.
    pub fn of_driver<'e>(program: Arc<Program>, events: impl IntoIterator<Item = &'e Event>) -> Self {
        Self { done: Some(HashSet::new()), ..Self::new(program) }.after(events)
    }

    fn after<'e>(mut self, events: impl IntoIterator<Item = &'e Event>) -> Self {
        events.into_iter().for_each(|event| self.apply(event));
        self
    }

    /// Whether two views of the same program show the same.
    pub fn same_as(&self, other: &Self) -> bool {
        let key = |view: &Self| {
            (
                view.phase.clone(),
                view.inputs.clone(),
                (view.started_at, view.ended_at),
                (view.has_failures, view.paused, view.cancel_requested, view.events, view.undone),
                view.failed_at.clone(),
            )
        };
        key(self) == key(other) && self.steps == other.steps
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.programs[0]
    }

    /// The workflow that an instance belongs to.
    pub fn program_of(&self, step: &StepView) -> &Arc<Program> {
        &self.programs[step.unit as usize]
    }

    /// The step of the plan that an instance is of.
    pub fn plan_step(&self, step: &StepView) -> &PlanStep {
        self.programs[step.unit as usize].step(step.step)
    }

    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        let at = event.at;
        if let What::Entered { path, .. }
        | What::Asked { path, .. }
        | What::Scheduled { path, .. }
        | What::Joined { path, .. } = &event.what
        {
            self.open_frames(path, at);
        }
        match &event.what {
            What::Started { inputs, about, shares, .. } => {
                let claims = shares.iter().flat_map(|shares| &shares.claims);
                self.applies = claims.map(|claim| claim.key().clone()).collect();
                self.phase = self.begun();
                self.inputs = inputs.clone();
                self.about = about.clone();
                self.started_at = Some(at);
                let program = self.program().clone();
                self.open(&Path::default(), 0, &program.plan.roots, Role::Body);
            }
            What::Entered { path, decision } => self.entered(path, decision, at),
            What::Scheduled { path, attempt, assignment, .. } => self.change(path, |step| {
                step.phase = StepPhase::Running;
                step.attempts = *attempt;
                step.started_at.get_or_insert(at);
                if let Some(assignment) = assignment {
                    step.input = Some(assignment.input.clone());
                    step.assignment = Some(assignment.clone());
                }
            }),
            What::Asked { path, assignment, .. } => self.change(path, |step| {
                step.phase = StepPhase::Queued { since: at };
                if let Some(assignment) = assignment {
                    step.input = Some(assignment.input.clone());
                    step.assignment = Some(assignment.clone());
                }
            }),
            What::Admitted { path, .. } if path.is_run() => self.phase = RunPhase::Running,
            What::AttemptFailed { path, delay, .. } => self.change(path, |step| {
                step.delays.push(*delay);
                step.phase = StepPhase::Backoff { until: at.plus(*delay) };
            }),
            What::Lost { path, .. } => {
                self.change(path, |step| step.phase = StepPhase::Backoff { until: at });
            }
            What::Joined { path, .. } => self.change(path, |step| {
                step.phase = StepPhase::Joined;
                step.started_at.get_or_insert(at);
            }),
            What::TimerSet { path, reason: Reason::Wait, until } if path.is_run() => {
                (self.phase, self.begins_at) = (RunPhase::Pending, Some(*until));
            }
            What::TimerFired { path, reason: Reason::Wait } if path.is_run() => {
                (self.phase, self.begins_at) = (self.begun(), None);
            }
            What::TimerSet { path, reason: Reason::Wait, until: end } => self.change(path, |step| {
                if let StepPhase::Asking { until, .. } = &mut step.phase {
                    *until = Some(*end);
                }
            }),
            What::CancelRequested { path, .. } => {
                self.cancel_requested |= path.is_run();
                self.paused &= !path.is_run();
                self.interrupted &= !path.is_run();
            }
            What::Paused { reached, .. } => (self.paused, self.reached) = (true, *reached),
            What::Resumed { .. } => (self.paused, self.reached) = (false, false),
            What::Interrupted => self.interrupted = true,
            What::Continued => self.interrupted = false,
            What::InputsChanged { inputs, .. } => {
                self.inputs = inputs.clone();
                self.steps.values_mut().for_each(|step| step.decided = None);
            }
            What::Reopened { paths, inputs, .. } => self.reopened(paths, inputs),
            What::SentBack { gate, steps, .. } => self.sent_back(gate, steps),
            What::Settled(settled) => self.settled(settled, at),
            What::Concluded { outcome, has_failures, undone } => {
                self.phase = RunPhase::Ended(outcome.clone());
                self.ended_at = Some(at);
                self.begins_at = None;
                self.has_failures = *has_failures;
                self.undone = *undone;
                self.failed_at = self.first_failure();
            }
            What::Noted { path, key, value } if **key == *CHILD => {
                let child = value.as_str().and_then(RunId::written);
                self.change(path, |step| step.child = child.filter(|_| step.calls()));
            }
            What::Kept(kept) => drop(self.kept.insert(kept.path.clone())),
            What::Decided { path, value, .. } => {
                self.change(path, |step| step.decided = Some(value.clone()));
            }
            What::Noted { .. }
            | What::Rebound { .. }
            | What::Admitted { .. }
            | What::Spent { .. }
            | What::TimerSet { .. }
            | What::TimerFired { .. }
            | What::Signalled { .. }
            | What::Closed => {}
        }
    }

    /// The steps of a list come into being. Those that only take over or undo sleep until they are called for.
    fn open(&mut self, around: &Path, unit: u32, list: &[StepId], role: Role) {
        let program = self.programs[unit as usize].clone();
        for id in list {
            let step = program.step(*id);
            let phase = match step.takes_over && role == Role::Body {
                true => StepPhase::Dormant,
                false => StepPhase::Pending,
            };
            self.add(around.child(role.name_of(&program, *id), None), unit, *id, phase);
        }
    }

    fn add(&mut self, path: Path, unit: u32, step: StepId, phase: StepPhase) {
        let attempts = self.steps.get(&path).map_or(0, |before| before.attempts);
        let view = StepView {
            unit,
            step,
            frame: None,
            phase,
            attempts,
            rounds: 0,
            delays: Vec::new(),
            input: None,
            assignment: None,
            entered: None,
            decided: None,
            started_at: None,
            ended_at: None,
            recovered: false,
            abandoned: false,
            child: None,
            kept: false,
        };
        self.steps.insert(path, view);
    }

    fn entered(&mut self, path: &Path, decision: &Decision, at: Timestamp) {
        let Some((unit, id)) = self.steps.get(path).map(|step| (step.unit, step.step)) else { return };
        let program = self.programs[unit as usize].clone();
        let kind = &program.step(id).kind;
        let body = |word: &str| {
            let bodies = kind.bodies().into_iter();
            bodies
                .into_iter()
                .find(|(name, _)| *name == word)
                .map(|(_, list)| list.clone())
                .unwrap_or_default()
        };
        match decision {
            Decision::Steps => {
                self.inside(path, decision, at);
                let word = match kind {
                    Kind::Parallel(_) => "branches",
                    Kind::Guard(_) => "body",
                    _ => "steps",
                };
                self.open(path, unit, &body(word), Role::Body);
            }
            Decision::Arm { arm, .. } => {
                self.inside(path, decision, at);
                self.open(path, unit, &body(arm), Role::Body);
            }
            Decision::Items { .. } => self.inside(path, decision, at),
            Decision::Round { number, .. } => {
                if *number == 0 {
                    self.inside(path, decision, at);
                }
                self.change(path, |step| step.rounds = number + 1);
            }
            Decision::Again { number, delay, .. } => self.change(path, |step| {
                step.rounds = *number;
                step.phase = StepPhase::Backoff { until: at.plus(*delay) };
            }),
            Decision::Gate(question) => {
                let own = self.steps.get(path).is_some_and(|step| step.unit == 0);
                if let Some(name) = question.empties.as_ref().filter(|_| own) {
                    let emptied = Value::map([(name.clone(), Value::text(""))]);
                    self.inputs = crate::run::merged(&self.inputs, &emptied);
                }
                self.change(path, |step| {
                    step.phase = StepPhase::Asking { message: question.message.clone(), until: None };
                    step.input = Some(question.input.clone());
                    step.entered = Some(Arc::new(decision.clone()));
                    step.started_at.get_or_insert(at);
                });
            }
            Decision::Wait(waiting) => self.change(path, |step| {
                let signal = waiting.signal.as_ref().map(|signal| signal.name.clone());
                step.phase = StepPhase::Waiting { signal, until: waiting.until };
                step.entered = Some(Arc::new(decision.clone()));
                step.started_at.get_or_insert(at);
            }),
            Decision::Fragment { plan, .. } => {
                let Ok(program) = Program::new((**plan).clone()) else { return };
                self.programs.push(Arc::new(program));
                self.change(path, |step| step.phase = StepPhase::Inside);
                self.open(path, self.programs.len() as u32 - 1, &plan.roots, Role::Body);
            }
            Decision::Planned { plan, .. } => {
                let Ok(program) = Program::new((**plan).clone()) else { return };
                self.programs.push(Arc::new(program));
                let around = path.parent().unwrap_or_default();
                self.open(&around, self.programs.len() as u32 - 1, &plan.roots, Role::Body);
            }
            Decision::TakenOver { by, .. } => {
                self.change(path, |step| step.phase = StepPhase::Inside);
                self.call_for(path, unit, by);
            }
            Decision::Finally => self.open(path, unit, &body("finally"), Role::Finally),
            Decision::Undo { .. } => {
                let list = body("compensate");
                match program.step(id).policy.compensate.as_ref().filter(|_| list.is_empty()) {
                    Some(target) => self.call_for(path, unit, &target.value),
                    None => self.open(path, unit, &list, Role::Undo),
                }
            }
            Decision::Finish { .. } => {}
        }
    }

    fn inside(&mut self, path: &Path, decision: &Decision, at: Timestamp) {
        self.change(path, |step| {
            step.phase = StepPhase::Inside;
            step.entered = Some(Arc::new(decision.clone()));
            step.started_at.get_or_insert(at);
        });
    }

    /// A step that takes over or undoes comes into being inside the one that calls for it.
    fn call_for(&mut self, caller: &Path, unit: u32, id: &Arc<str>) {
        let around = caller.parent().unwrap_or_default();
        let sleeper = self.steps.get(&around.child(id.clone(), None)).map(|step| step.step);
        if let Some(step) = sleeper {
            self.add(caller.child(id.clone(), None), unit, step, StepPhase::Pending);
        }
    }

    /// Items and rounds come into being when the first thing happens in them.
    fn open_frames(&mut self, path: &Path, at: Timestamp) {
        if self.steps.contains_key(path) {
            return;
        }
        for (frame, owner, number) in path.frames() {
            if self.steps.contains_key(&frame) {
                continue;
            }
            let Some((unit, id)) = self.steps.get(&owner).map(|step| (step.unit, step.step)) else { return };
            self.add(frame.clone(), unit, id, StepPhase::Inside);
            self.change(&frame, |step| (step.frame, step.started_at) = (Some(number), Some(at)));
            // What settles before anything happened in it has nothing inside.
            if frame != *path {
                self.open_body(&frame, unit, id);
            }
        }
    }

    fn open_body(&mut self, frame: &Path, unit: u32, id: StepId) {
        let program = self.programs[unit as usize].clone();
        let list = match &program.step(id).kind {
            Kind::ForEach(each) => &each.body,
            Kind::Repeat(repeat) => &repeat.body,
            _ => return,
        };
        self.open(frame, unit, list, Role::Body);
    }

    /// How a run stands that has just begun.
    fn begun(&self) -> RunPhase {
        if self.applies.is_empty() { RunPhase::Running } else { RunPhase::Pending }
    }

    fn reopened(&mut self, paths: &[Path], inputs: &Value) {
        self.phase = self.begun();
        self.ended_at = None;
        self.failed_at = None;
        self.inputs = inputs.clone();
        self.halted.clear();
        for path in paths {
            let inner = self.steps.get(path).is_some_and(|step| self.has_inside(step));
            self.change(path, |step| {
                step.phase = if inner { StepPhase::Inside } else { StepPhase::Pending };
                step.ended_at = None;
                step.recovered = false;
            });
        }
    }

    fn has_inside(&self, step: &StepView) -> bool {
        let scope = !self.plan_step(step).kind.bodies().is_empty();
        step.frame.is_some() || scope && step.started_at.is_some() && step.entered.is_some()
    }

    fn sent_back(&mut self, gate: &Path, steps: &[Repeated]) {
        self.change(gate, |step| step.phase = StepPhase::Dormant);
        for Repeated { path, pass } in steps {
            let Some((unit, id)) = self.steps.get(path).map(|step| (step.unit, step.step)) else { continue };
            let name = format!("{}#{pass}", self.programs[unit as usize].step(id).id);
            let around = path.parent().unwrap_or_default();
            self.add(around.child(name.into(), None), unit, id, StepPhase::Pending);
        }
    }

    fn settled(&mut self, settled: &Settled, at: Timestamp) {
        let path = &settled.path;
        self.open_frames(path, at);
        // The scope of an item or a round is the step that has it.
        let frame = path.frames().last().filter(|(frame, ..)| frame == path);
        let scope = frame.map(|(_, owner, _)| owner).or_else(|| path.parent());
        if let (true, Some(scope)) = (settled.fails, scope) {
            match settled.halts {
                true => drop(self.halted.insert(scope, path.clone())),
                false => drop(self.halted.entry(scope).or_insert_with(|| path.clone())),
            }
        }
        let Some(step) = self.steps.get_mut(path) else { return };
        step.phase = StepPhase::Settled(settled.outcome.clone());
        step.ended_at = Some(at);
        let skipped = matches!(settled.outcome, Outcome::Skipped(_) | Outcome::Cancelled(_));
        // Whatever was begun here was not taken over.
        step.kept = step.started_at.is_none() && !skipped && self.kept.contains(path);
        (step.abandoned, step.recovered) = (settled.abandoned, settled.recovered);
        let (unit, id) = (step.unit as usize, step.step);
        let is_done = step.frame.is_some() && matches!(settled.outcome, Outcome::Done(_));
        if is_done && self.programs[unit].forgets(id) {
            self.take_out(path);
        }
    }

    /// Takes an item or round out of the steps, together with others, so that each costs the same however many there are.
    fn take_out(&mut self, path: &Path) {
        let Some(done) = &mut self.done else { return };
        done.insert(path.clone());
        if done.len() >= TAKEN_OUT.max(self.steps.len() / 4) {
            self.steps.retain(|path, _| !path.frames().any(|(frame, ..)| done.contains(&frame)));
            done.clear();
        }
    }

    /// The failure behind the end of the run: inside the scope that failed, inside the scope in it, and so on.
    fn first_failure(&self) -> Option<Path> {
        let mut failed = self.halted.get(&Path::default())?;
        while let Some(inner) = self.halted.get(failed) {
            failed = inner;
        }
        Some(failed.clone())
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(&mut StepView)) {
        if let Some(step) = self.steps.get_mut(path) {
            change(step);
        }
    }
}
