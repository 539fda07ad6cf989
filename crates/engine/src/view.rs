//! What an onlooker knows: the same events, folded for reading instead of deciding.

use crate::event::{Decision, Event, What};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::Outcome;
use crate::run::Program;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug)]
pub struct View {
    program: Arc<Program>,
    pub phase: RunPhase,
    pub inputs: Value,
    /// What was said about the run when it was started.
    pub about: Value,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub has_failures: bool,
    pub paused: bool,
    pub cancel_requested: bool,
    /// Where the failure that ended the run happened.
    pub failed_at: Option<Path>,
    /// For each scope that a failure ended, the step that failed in it.
    halted: IndexMap<Path, Path>,
    /// How many events were applied.
    pub events: u64,
    /// Every instance that exists, in the order in which they came into being.
    pub steps: IndexMap<Path, StepView>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RunPhase {
    Pending,
    Running,
    Ended(Outcome),
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    pub step: StepId,
    pub phase: StepPhase,
    pub attempts: u32,
    /// The waits that were decided between attempts.
    pub delays: Vec<Duration>,
    pub input: Option<Value>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub abandoned: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StepPhase {
    Pending,
    Running,
    /// Between two attempts.
    Backoff {
        until: Timestamp,
    },
    /// At a gate.
    Asking {
        message: Option<Value>,
        until: Option<Timestamp>,
    },
    /// A scope with steps at work.
    Inside,
    Settled(Outcome),
}

impl View {
    pub fn new(program: Arc<Program>) -> Self {
        Self {
            program,
            phase: RunPhase::Pending,
            inputs: Value::Null,
            about: Value::Null,
            started_at: None,
            ended_at: None,
            has_failures: false,
            paused: false,
            cancel_requested: false,
            failed_at: None,
            halted: IndexMap::new(),
            events: 0,
            steps: IndexMap::new(),
        }
    }

    pub fn of<'e>(program: Arc<Program>, events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut view = Self::new(program);
        events.into_iter().for_each(|event| view.apply(event));
        view
    }

    /// Whether two views of the same program show the same.
    pub fn same_as(&self, other: &Self) -> bool {
        let key = |view: &Self| {
            (
                view.phase.clone(),
                view.inputs.clone(),
                (view.started_at, view.ended_at),
                (view.has_failures, view.paused, view.cancel_requested, view.events),
                view.failed_at.clone(),
            )
        };
        key(self) == key(other) && self.steps == other.steps
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    pub fn apply(&mut self, event: &Event) {
        self.events += 1;
        let at = event.at;
        match &event.what {
            What::Started { inputs, about, .. } => {
                self.phase = RunPhase::Running;
                self.inputs = inputs.clone();
                self.about = about.clone();
                self.started_at = Some(at);
                let program = self.program.clone();
                self.open(&Path::default(), &program.plan.roots);
            }
            What::Entered { path, decision } => self.entered(path, decision, at),
            What::Scheduled { path, attempt, assignment, .. } => self.change(path, |step| {
                step.phase = StepPhase::Running;
                step.attempts = *attempt;
                step.started_at.get_or_insert(at);
                if let Some(assignment) = assignment {
                    step.input = Some(assignment.input.clone());
                }
            }),
            What::AttemptFailed { path, delay, .. } => self.change(path, |step| {
                step.delays.push(*delay);
                step.phase = StepPhase::Backoff { until: at.plus(*delay) };
            }),
            What::TimerSet { path, reason: Reason::Wait, until: end } => self.change(path, |step| {
                if let StepPhase::Asking { until, .. } = &mut step.phase {
                    *until = Some(*end);
                }
            }),
            What::CancelRequested { .. } => self.cancel_requested = true,
            What::Paused { .. } => self.paused = true,
            What::Resumed { .. } => self.paused = false,
            What::Reopened { paths, inputs, .. } => {
                self.phase = RunPhase::Running;
                self.ended_at = None;
                self.failed_at = None;
                self.inputs = inputs.clone();
                self.halted.clear();
                for path in paths {
                    let scope = self.is_scope(path);
                    self.change(path, |step| {
                        step.phase = if scope && step.started_at.is_some() {
                            StepPhase::Inside
                        } else {
                            StepPhase::Pending
                        };
                        step.ended_at = None;
                    });
                }
            }
            What::Settled { path, outcome, halts, fails, abandoned } => {
                if let (true, Some(scope)) = (*fails, path.parent()) {
                    match halts {
                        true => drop(self.halted.insert(scope, path.clone())),
                        false => drop(self.halted.entry(scope).or_insert_with(|| path.clone())),
                    }
                }
                self.change(path, |step| {
                    step.phase = StepPhase::Settled(outcome.clone());
                    step.ended_at = Some(at);
                    step.abandoned = *abandoned;
                });
            }
            What::Concluded { outcome, has_failures } => {
                self.phase = RunPhase::Ended(outcome.clone());
                self.ended_at = Some(at);
                self.has_failures = *has_failures;
                self.failed_at = self.first_failure();
            }
            What::Noted { .. }
            | What::TimerSet { .. }
            | What::TimerFired { .. }
            | What::Signalled { .. }
            | What::Closed => {}
        }
    }

    fn open(&mut self, around: &Path, list: &[StepId]) {
        for id in list {
            let path = around.child(self.program.plan.step(*id).id.clone(), None);
            self.steps.insert(
                path,
                StepView {
                    step: *id,
                    phase: StepPhase::Pending,
                    attempts: 0,
                    delays: Vec::new(),
                    input: None,
                    started_at: None,
                    ended_at: None,
                    abandoned: false,
                },
            );
        }
    }

    fn entered(&mut self, path: &Path, decision: &Decision, at: Timestamp) {
        let Some(id) = self.steps.get(path).map(|step| step.step) else { return };
        let program = self.program.clone();
        let kind = &program.plan.step(id).kind;
        let (phase, input) = match decision {
            Decision::Gate(question) => {
                let phase = StepPhase::Asking { message: question.message.clone(), until: None };
                (phase, Some(question.input.clone()))
            }
            Decision::Steps | Decision::Arm(_) => (StepPhase::Inside, None),
        };
        self.change(path, |step| {
            step.phase = phase;
            step.input = input;
            step.started_at = Some(at);
        });
        let taken = |word: &str| match decision {
            Decision::Steps => true,
            Decision::Arm(arm) => **arm == *word,
            Decision::Gate(_) => false,
        };
        kind.bodies().into_iter().filter(|(word, _)| taken(word)).for_each(|(_, list)| self.open(path, list));
    }

    /// The failure behind the end of the run: inside the scope that failed, inside the scope in it, and so on.
    fn first_failure(&self) -> Option<Path> {
        let mut failed = self.halted.get(&Path::default())?;
        while let Some(inner) = self.halted.get(failed) {
            failed = inner;
        }
        Some(failed.clone())
    }

    fn is_scope(&self, path: &Path) -> bool {
        let step = self.steps.get(path).map(|step| self.program.plan.step(step.step));
        step.is_some_and(|step| matches!(step.kind, Kind::Block(_) | Kind::Choose(_)))
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(&mut StepView)) {
        if let Some(step) = self.steps.get_mut(path) {
            change(step);
        }
    }
}
