//! The status of a run, derived from its events and from whether a process executes it.

use windlass_engine::is_abort;
use windlass_engine::{Outcome, Path, RunPhase, StepPhase as Phase, StepView, Undone as Undoing, View};
use windlass_ir::RunStatus;
use windlass_ir::dialect::{RunFacts, Undone};
use windlass_ir::workflow::Kind;

/// The status of a run. `executed` is whether a process executes it.
pub fn run_status(view: &View, executed: bool) -> RunStatus {
    match while_executed(view) {
        RunStatus::Running => {
            let unfinished = Unfinished { waits: waits(view), moves: moves(view), ..of(view) };
            match unfinished.status() {
                RunStatus::Running if !executed => RunStatus::Interrupted,
                status => status,
            }
        }
        status => status,
    }
}

/// The status of a run that a process executes, regardless of its steps: a run that waits counts as running.
pub fn while_executed(view: &View) -> RunStatus {
    match view.phase() {
        RunPhase::Ended(outcome) => of_outcome(outcome),
        RunPhase::Pending | RunPhase::Running => of(view).status(),
    }
}

/// What the status of an unfinished run depends on, if a process executes it. Lists and reports share this rule.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unfinished {
    pub interrupted: bool,
    pub paused: bool,
    pub pending: bool,
    /// A step waits for something outside the run.
    pub waits: bool,
    /// A step advances without outside input.
    pub moves: bool,
}

impl Unfinished {
    pub fn status(self) -> RunStatus {
        match self {
            Self { interrupted: true, .. } => RunStatus::Interrupted,
            Self { paused: true, .. } => RunStatus::Paused,
            Self { pending: true, .. } => RunStatus::Pending,
            Self { waits: true, moves: false, .. } => RunStatus::Waiting,
            Self { .. } => RunStatus::Running,
        }
    }
}

fn of(view: &View) -> Unfinished {
    Unfinished {
        interrupted: view.is_interrupted(),
        paused: view.is_paused(),
        pending: view.phase() == RunPhase::Pending,
        ..Unfinished::default()
    }
}

/// The status of a run with this outcome.
pub(crate) fn of_outcome(outcome: &Outcome) -> RunStatus {
    match outcome {
        Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => RunStatus::Success,
        Outcome::Failed(_) => RunStatus::Failed,
        Outcome::Cancelled(_) => RunStatus::Cancelled,
    }
}

fn waits(view: &View) -> bool {
    view.steps().any(|(_, step)| is_for_others(&step))
}

/// Whether a step waits for something outside the run.
fn is_for_others(step: &StepView<'_>) -> bool {
    matches!(step.phase, Phase::Asking { .. } | Phase::Queued { .. } | Phase::Waiting { signal: Some(_), .. })
        || is_calling(step)
}

/// Whether a step waits for a run that it has called.
fn is_calling(step: &StepView<'_>) -> bool {
    step.phase == Phase::Running && step.child().is_some()
}

fn moves(view: &View) -> bool {
    view.steps().any(|(path, step)| match step.phase {
        Phase::Running => !is_calling(&step),
        Phase::Backoff { .. } | Phase::Waiting { signal: None, .. } => true,
        Phase::Inside => is_between_rounds(view, path, &step),
        Phase::Dormant
        | Phase::Pending
        | Phase::Queued { .. }
        | Phase::Asking { .. }
        | Phase::Waiting { signal: Some(_), .. }
        | Phase::Joined
        | Phase::Settled(_) => false,
    })
}

/// Whether a loop waits for its next round.
fn is_between_rounds(view: &View, path: &Path, step: &StepView<'_>) -> bool {
    let repeats = step.frame.is_none() && matches!(view.plan_step(step).kind, Kind::Repeat(_));
    let last = step.rounds.checked_sub(1).filter(|_| repeats);
    let last = last.and_then(|number| view.step(&path.frame(number)));
    last.is_some_and(|round| matches!(round.phase, Phase::Settled(_)))
}

/// Whether a run can be resumed, judging by its view.
pub fn is_resumable(view: &View) -> bool {
    match view.phase() {
        RunPhase::Ended(Outcome::Failed(failure)) => !is_abort(failure) && view.undone().is_none(),
        RunPhase::Ended(_) => false,
        RunPhase::Pending | RunPhase::Running => true,
    }
}

/// Whether completed work was undone.
pub(crate) fn undone(undone: Option<Undoing>) -> Option<Undone> {
    undone.map(|undone| match undone {
        Undoing::Wholly => Undone::All,
        Undoing::Partly => Undone::Part,
    })
}

/// The facts from which a dialect derives its own status word.
pub fn facts(view: &View, status: RunStatus) -> RunFacts {
    let aborted = matches!(view.phase(), RunPhase::Ended(Outcome::Failed(failure)) if is_abort(failure));
    RunFacts { status, marked: view.is_interrupted(), aborted, undone: undone(view.undone()) }
}
