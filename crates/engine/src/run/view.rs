//! A run for reading: the state that its events lead to, with everything kept that a decision no longer needs.

use super::program::Program;
use super::state::{Contradiction, Doing, Instance, Phase, Place, Role, Stage, State, Trace, Within, evolve};
use crate::coordinator::Claim;
use crate::event::{Assignment, Decision, Event, Undone};
use crate::job::Work;
use crate::keys::{Path, Reason, RunId, Timestamp};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::plan::PlanStep;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct View {
    state: State,
    /// How many events were applied.
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
    /// The workflow of the run that the step belongs to; 0 is the run's own.
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
    /// The decision that started it: the arm, the items, the question of a gate, what a wait waits for.
    pub entered: Option<&'v Decision>,
    /// The last decision at a gate that did not settle it.
    pub decided: Option<&'v Value>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub recovered: bool,
    pub abandoned: bool,
    /// An earlier run did it.
    pub kept: bool,
    instance: &'v Instance,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepPhase<'v> {
    /// It runs only if another step needs it to.
    Dormant,
    Pending,
    /// For a slot, a rate or a budget.
    Queued {
        since: Timestamp,
    },
    Running,
    /// Between two attempts, or two rounds of a task.
    Backoff {
        until: Timestamp,
    },
    /// At a gate.
    Asking {
        message: Option<&'v Value>,
        until: Option<Timestamp>,
    },
    /// For time, a signal or a message.
    Waiting {
        signal: Option<&'v str>,
        until: Option<Timestamp>,
    },
    /// Another step with the same key does the work.
    Joined,
    /// A scope with steps at work.
    Inside,
    Settled(&'v Outcome),
}

/// The note under which a step that calls another workflow keeps the id of the called run.
pub const CHILD: &str = "run";

/// The run that a call with these notes has started.
pub(super) fn called(instance: &Instance, assignment: &Assignment) -> Option<RunId> {
    let calls = matches!(assignment.work, Work::Call { .. });
    let note = instance.notes.get(CHILD).filter(|_| calls)?;
    note.as_str().and_then(RunId::written)
}

impl StepView<'_> {
    /// The run that a call has started.
    pub fn child(&self) -> Option<RunId> {
        self.assignment.and_then(|assignment| called(self.instance, assignment))
    }
}

impl View {
    pub fn new(program: Arc<Program>) -> Self {
        Self { state: State::traced(program), events: 0 }
    }

    /// The run that these events describe.
    pub fn of<'e>(
        program: Arc<Program>,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> Result<Self, Contradiction> {
        let mut view = Self::new(program);
        events.into_iter().try_for_each(|event| view.apply(event))?;
        Ok(view)
    }

    /// Applies one event. After an error the view must be dropped.
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

    /// The workflow that an instance belongs to.
    pub fn program_of(&self, step: &StepView<'_>) -> &Arc<Program> {
        &self.state.units[step.unit as usize].program
    }

    /// The step of the plan that an instance is of.
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

    /// What was recorded about the run when it was started.
    pub fn about(&self) -> &Value {
        &self.state.about
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

    /// Whether no process continues it before someone resumes it.
    pub fn is_interrupted(&self) -> bool {
        self.state.interrupted
    }

    pub fn is_paused(&self) -> bool {
        self.state.paused
    }

    /// The instant before which the run does not begin.
    pub fn begins_at(&self) -> Option<Timestamp> {
        self.state.admission.begins_at.filter(|_| self.state.stage == Stage::Running)
    }

    pub fn cancel_requested(&self) -> bool {
        self.trace().cancel_requested
    }

    /// The keys of the slots that the run needs before it begins.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<str>> {
        self.state.shares.claims.iter().map(Claim::key)
    }

    /// Where the failure that ended the run happened: in the scope that failed, in the scope inside it, and so on.
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

    /// Every instance, in the order in which they appeared. An item or round appears with the first event in it.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = (&Path, StepView<'_>)> + ExactSizeIterator {
        self.trace().shown.iter().map(|(path, place)| (path, self.at(*place)))
    }

    pub fn step(&self, path: &Path) -> Option<StepView<'_>> {
        self.trace().shown.get(path).map(|place| self.at(*place))
    }

    /// The number of a path in the order of appearance, which never changes.
    pub fn index_of(&self, path: &Path) -> Option<usize> {
        self.trace().shown.get_index_of(path)
    }

    pub fn step_at(&self, index: usize) -> Option<(&Path, StepView<'_>)> {
        self.trace().shown.get_index(index).map(|(path, place)| (path, self.at(*place)))
    }

    /// How many attempts were made at the same step before a gate sent it back.
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
            kept: is_result && trace.started_at.is_none() && self.state.kept.contains_key(&instance.path),
            instance,
        }
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
