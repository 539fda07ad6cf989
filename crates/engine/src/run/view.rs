//! A run for readers: the state after its events, including details that decisions no longer need.

use super::program::Program;
use super::state::{
    CancelRequest, Contradiction, Doing, FailedAttempt, GateVote, HookTrace, Instance, List, Phase, Place,
    Role, Stage, State, Trace, Within, evolve,
};
use super::values::Sight;
use crate::coordinator::Claim;
use crate::event::{Assignment, Decision, Event, Undone};
use crate::job::Work;
use crate::keys::{Path, Reason, RunId, Timestamp};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Limits, Namespace, Node, Read, StepId, evaluate};
use windlass_ir::plan::PlanStep;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct View {
    state: State,
    /// The number of events applied.
    pub events: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunPhase<'v> {
    Pending,
    Running,
    Ended(&'v Outcome),
}

/// One step at one path, or one item or round of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepView<'v> {
    /// The workflow that the step belongs to; 0 is the run's own.
    pub unit: u32,
    pub step: StepId,
    /// The number of the item or round.
    pub frame: Option<u32>,
    pub phase: StepPhase<'v>,
    pub attempts: u32,
    /// The rounds of a loop, or those that a task asked for.
    pub rounds: u32,
    /// The delays between attempts.
    pub delays: &'v [Duration],
    pub input: Option<&'v Value>,
    /// The work of the last attempt.
    pub assignment: Option<&'v Arc<Assignment>>,
    /// The decision that started it: an arm, items, the question of a gate, or the condition of a wait.
    pub entered: Option<&'v Decision>,
    /// The last decision at a gate that did not settle it.
    pub decided: Option<&'v Value>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub recovered: bool,
    pub abandoned: bool,
    /// An earlier run completed it.
    pub kept: bool,
    /// When the last attempt was dispatched.
    pub attempt_at: Option<Timestamp>,
    /// The attempts that failed before the last one.
    pub failures: &'v [FailedAttempt],
    /// The decisions at a gate, in order.
    pub votes: &'v [GateVote],
    /// Whether it was undone; `false` while that is under way, and if it failed.
    pub undone: Option<bool>,
    instance: &'v Instance,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepPhase<'v> {
    /// It runs only on demand, for another step.
    Dormant,
    Pending,
    /// Waits for a slot, a rate or a budget.
    Queued {
        since: Timestamp,
    },
    Running,
    /// Between two attempts, or two rounds of a task.
    Backoff {
        until: Timestamp,
    },
    /// Waits for a decision at a gate.
    Asking {
        message: Option<&'v Value>,
        until: Option<Timestamp>,
    },
    /// Waits for time, a signal or a message.
    Waiting {
        signal: Option<&'v str>,
        until: Option<Timestamp>,
    },
    /// Waits for another step with the same key.
    Joined,
    /// A scope with open steps.
    Inside,
    Settled(&'v Outcome),
}

/// The name of the note in which a calling step stores the id of the called run.
pub const CHILD: &str = "run";

/// The run that a call with these notes started.
pub(super) fn called(instance: &Instance, assignment: &Assignment) -> Option<RunId> {
    let calls = matches!(assignment.work, Work::Call { .. });
    let note = instance.notes.get(CHILD).filter(|_| calls)?;
    note.as_str().and_then(RunId::written)
}

impl StepView<'_> {
    /// The run that a call started.
    pub fn child(&self) -> Option<RunId> {
        self.assignment.and_then(|assignment| called(self.instance, assignment))
    }
}

impl View {
    pub fn new(program: Arc<Program>) -> Self {
        Self { state: State::traced(program), events: 0 }
    }

    /// Builds the view from events.
    pub fn of<'e>(
        program: Arc<Program>,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Self, Contradiction> {
        let mut view = Self::new(program);
        events.into_iter().try_for_each(|event| view.apply(event))?;
        Ok(view)
    }

    /// Applies one event. After an error, drop the view.
    pub fn apply(&mut self, event: &Event) -> Result<(), Contradiction> {
        self.events += 1;
        evolve(&mut self.state, event)
    }

    fn trace(&self) -> &Trace {
        self.state.trace.as_ref().expect("the state of a view is traced")
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.state.units[0].program
    }

    /// The program of an instance's workflow.
    pub fn program_of(&self, step: &StepView<'_>) -> &Arc<Program> {
        &self.state.units[step.unit as usize].program
    }

    pub fn plan_step(&self, step: &StepView<'_>) -> &PlanStep {
        self.program_of(step).step(step.step)
    }

    pub fn phase(&self) -> RunPhase<'_> {
        match &self.state.stage {
            Stage::New => RunPhase::Pending,
            Stage::Running if self.state.admission.is_pending() => RunPhase::Pending,
            Stage::Running => RunPhase::Running,
            Stage::Concluded(outcome) | Stage::Closed(outcome) => RunPhase::Ended(outcome),
        }
    }

    pub fn inputs(&self) -> &Value {
        &self.state.units[0].inputs
    }

    /// The caller's data from the start of the run.
    pub fn about(&self) -> &Value {
        &self.state.about
    }

    /// Who started the run.
    pub fn by(&self) -> Option<&Arc<str>> {
        self.state.by.as_ref()
    }

    /// The runs that wait for this one, the outermost first.
    pub fn parents(&self) -> &[RunId] {
        &self.state.shares.parents
    }

    pub fn started_at(&self) -> Option<Timestamp> {
        (self.state.stage != Stage::New).then_some(self.state.started_at)
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        let is_over = matches!(self.phase(), RunPhase::Ended(_));
        self.trace().conclusion.filter(|_| is_over).map(|conclusion| conclusion.at)
    }

    pub fn has_failures(&self) -> bool {
        self.trace().conclusion.is_some_and(|conclusion| conclusion.has_failures)
    }

    pub fn undone(&self) -> Option<Undone> {
        self.trace().conclusion.and_then(|conclusion| conclusion.undone)
    }

    /// Whether the run waits for someone to resume it after its process died.
    pub fn is_interrupted(&self) -> bool {
        self.state.interrupted
    }

    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// The earliest time to begin.
    pub fn begins_at(&self) -> Option<Timestamp> {
        self.state.admission.begins_at.filter(|_| self.state.stage == Stage::Running)
    }

    pub fn cancel_requested(&self) -> bool {
        self.trace().cancel.is_some()
    }

    /// Who canceled the run, and why.
    pub fn cancel(&self) -> Option<&CancelRequest> {
        self.trace().cancel.as_ref()
    }

    /// The hooks that have started, in order.
    pub fn hooks(&self) -> impl Iterator<Item = (&Path, &HookTrace)> {
        self.trace().hooks.iter()
    }

    /// The values that an expression of a step reads, each with the part of the expression that reads it. They are the
    /// values of now: those that decided, unless a step ran again since. Leaves out the environment, and everything
    /// that cannot be evaluated.
    pub fn reads<'e>(
        &self,
        run: &RunId,
        path: &Path,
        expr: &'e Expr,
        inside: bool,
    ) -> Vec<(&'e Expr, Value)> {
        let Some(from) = self.trace().shown.get(path) else { return Vec::new() };
        let sight = Sight { from: Some(*from), inside, ..Sight::at_start(run, &self.state) };
        let semantics = &sight.program().plan.semantics;
        let mut found: Vec<(&Expr, Value)> = Vec::new();
        for part in paths(expr) {
            let is_new = found.iter().all(|(known, _)| known.node != part.node);
            if let (true, Ok(value)) = (is_new, evaluate(part, &sight, semantics, &Limits::default())) {
                found.push((part, value));
            }
        }
        found
    }

    /// The keys of the slots that the run needs before it begins.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<str>> {
        self.state.shares.claims.iter().map(Claim::key)
    }

    /// Who has approved at a gate, in order.
    pub fn approvals(&self, path: &Path) -> impl Iterator<Item = &Arc<str>> {
        self.state.decisions.get(path).into_iter().flatten().map(|(_, by)| by)
    }

    /// The path of the original failure, found by descending into the scopes that failed.
    pub fn failed_at(&self) -> Option<&Path> {
        let roots = &self.state.roots;
        let failed = roots.halted.or(roots.failed).filter(|_| self.ended_at().is_some());
        let innermost = std::iter::successors(failed, |scope| self.failed_inside(*scope)).last();
        innermost.map(|place| &self.state.at(place).path)
    }

    fn failed_inside(&self, scope: Place) -> Option<Place> {
        let instance = self.state.at(scope);
        if let Some(Within::Items(items)) = instance.within.as_deref() {
            return items.failed.and_then(|number| self.state.find(&instance.path.frame(number)));
        }
        let lists = [Role::TakeOver, Role::Body, Role::Finally].into_iter();
        let mut lists = lists.filter_map(|role| self.state.list(Some(scope), role));
        lists.find_map(|list| list.halted.or(list.failed))
    }

    /// Every instance, in order of appearance. An item or round appears with its first event.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = (&Path, StepView<'_>)> + ExactSizeIterator {
        self.trace().shown.iter().map(|(path, place)| (path, self.at(*place)))
    }

    pub fn step(&self, path: &Path) -> Option<StepView<'_>> {
        self.trace().shown.get(path).map(|place| self.at(*place))
    }

    /// The number of a path in order of appearance, which never changes.
    pub fn index_of(&self, path: &Path) -> Option<usize> {
        self.trace().shown.get_index_of(path)
    }

    pub fn step_at(&self, index: usize) -> Option<(&Path, StepView<'_>)> {
        self.trace().shown.get_index(index).map(|(path, place)| (path, self.at(*place)))
    }

    /// The number of attempts at the same step before a gate sent it back.
    pub fn attempts_in_earlier_passes(&self, path: &Path) -> u32 {
        self.state.attempts_in_earlier_passes(path)
    }

    fn at(&self, place: Place) -> StepView<'_> {
        let (instance, trace) = (self.state.at(place), self.trace().step(place));
        let settlement = instance.settlement();
        let outcome = settlement.map(|settlement| &settlement.outcome);
        let is_result = matches!(outcome, Some(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Failed(_)));
        let asked = match trace.entered.as_deref() {
            Some(Decision::Gate(question)) => Some(&question.input),
            Some(_) | None => None,
        };
        StepView {
            unit: instance.unit,
            step: instance.step,
            frame: instance.frame,
            phase: self.phase_of(place, instance),
            attempts: trace.attempts,
            rounds: match instance.within.as_deref() {
                Some(Within::Rounds(rounds)) => rounds.begun,
                Some(_) | None => instance.rounds,
            },
            delays: &trace.delays,
            input: trace.assignment.as_ref().map(|assignment| &assignment.input).or(asked),
            assignment: trace.assignment.as_ref(),
            entered: trace.entered.as_deref(),
            decided: trace.decided.as_ref(),
            started_at: trace.started_at,
            ended_at: trace.ended_at,
            recovered: settlement.is_some_and(|settlement| settlement.recovered),
            abandoned: trace.abandoned,
            attempt_at: trace.attempt_at,
            failures: &trace.failures,
            votes: &trace.votes,
            undone: trace.is_undone.then(|| self.is_undone(place)),
            kept: is_result && trace.started_at.is_none() && self.state.kept.contains_key(&instance.path),
            instance,
        }
    }

    /// Whether every step that undoes this one has succeeded.
    fn is_undone(&self, place: Place) -> bool {
        let places = self.state.list(Some(place), Role::Undo).into_iter().flat_map(List::places);
        places.into_iter().all(|place| {
            let settlement = self.state.at(place).settlement();
            settlement.is_some_and(|settlement| matches!(settlement.outcome, Outcome::Done(_)))
        })
    }

    fn phase_of<'v>(&'v self, place: Place, instance: &'v Instance) -> StepPhase<'v> {
        let until = || self.state.timers.at(place, Reason::Wait);
        match &instance.phase {
            Phase::Dormant => StepPhase::Dormant,
            Phase::Waiting | Phase::Ready => StepPhase::Pending,
            Phase::Attempt(attempt) => match &attempt.doing {
                Doing::Asking { .. } => {
                    let since = instance.asked.as_ref().map(|asked| asked.since);
                    StepPhase::Queued { since: since.unwrap_or_default() }
                }
                Doing::Running | Doing::Aborting(_) => StepPhase::Running,
                Doing::Between { .. } => {
                    let due = self.state.timers.at(place, Reason::Retry);
                    StepPhase::Backoff { until: due.unwrap_or(self.state.last_at) }
                }
            },
            Phase::Gate(asking) => {
                StepPhase::Asking { message: asking.question.message.as_ref(), until: until() }
            }
            Phase::Wait(sleep) => {
                let signal = sleep.signal.as_ref().map(|signal| &*signal.name);
                StepPhase::Waiting { signal, until: sleep.on_wall.or_else(until) }
            }
            Phase::Joined(_) => StepPhase::Joined,
            Phase::Entered => StepPhase::Inside,
            Phase::Settled(settlement) => StepPhase::Settled(&settlement.outcome),
        }
    }
}

/// The parts of an expression that read something, each as a whole path.
fn paths(expr: &Expr) -> Vec<&Expr> {
    fn root(expr: &Expr) -> Option<&Read> {
        match &expr.node {
            Node::Read(read) => Some(read),
            Node::Member { of, .. } | Node::Index { of, .. } => root(of),
            _ => None,
        }
    }
    match root(expr) {
        Some(Read::Namespace(Namespace::Env)) => Vec::new(),
        Some(_) => vec![expr],
        None => expr.children().into_iter().flat_map(paths).collect(),
    }
}
