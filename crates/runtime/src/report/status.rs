//! The status of a run and of its steps: neutral first, then in the words of the dialect.

use super::Report;
use windlass_engine::{
    Decision, Outcome, Path, RunPhase, StepPhase as Phase, StepView, Undone as Undoing, View,
};
use windlass_engine::{class, is_abort};
use windlass_ir::dialect::{RunFacts, StepFacts, StepPhase, Undone};
use windlass_ir::workflow::{Action, Choose, Kind};
use windlass_ir::{RunStatus, StepStatus};

/// The status of a run. `executed` says whether a process executes it.
pub fn status(view: &View, executed: bool) -> RunStatus {
    match while_executed(view) {
        RunStatus::Running if waits(view) => RunStatus::Waiting,
        RunStatus::Running if !executed => RunStatus::Interrupted,
        status => status,
    }
}

/// The status of a run that is executed, without a look at its steps: a run that waits counts as running.
pub(super) fn while_executed(view: &View) -> RunStatus {
    match view.phase() {
        RunPhase::Ended(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => RunStatus::Success,
        RunPhase::Ended(Outcome::Failed(_)) => RunStatus::Failed,
        RunPhase::Ended(Outcome::Cancelled(_)) => RunStatus::Cancelled,
        RunPhase::Pending | RunPhase::Running if view.is_interrupted() => RunStatus::Interrupted,
        RunPhase::Pending | RunPhase::Running if view.is_paused() => RunStatus::Paused,
        RunPhase::Pending => RunStatus::Pending,
        RunPhase::Running => RunStatus::Running,
    }
}

/// Whether only others can bring the run further.
fn waits(view: &View) -> bool {
    view.steps().any(|(_, step)| is_for_others(&step)) && !moves_by_itself(view)
}

/// Whether a step waits for something outside the run.
fn is_for_others(step: &StepView<'_>) -> bool {
    matches!(step.phase, Phase::Asking { .. } | Phase::Queued { .. } | Phase::Waiting { signal: Some(_), .. })
        || is_calling(step)
}

/// Whether a step waits for a run that it has called, which alone can bring it further.
fn is_calling(step: &StepView<'_>) -> bool {
    step.phase == Phase::Running && step.child().is_some()
}

/// Whether work or time alone brings the run further.
fn moves_by_itself(view: &View) -> bool {
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

/// Whether a run can be resumed, as far as the view shows.
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

pub(super) fn facts(view: &View, status: RunStatus) -> RunFacts {
    let aborted = matches!(view.phase(), RunPhase::Ended(Outcome::Failed(failure)) if is_abort(failure));
    RunFacts { status, marked: view.is_interrupted(), aborted, undone: undone(view.undone()) }
}

impl Report<'_> {
    pub fn status(&self) -> RunStatus {
        self.facts.status
    }

    /// The status in the words of the dialect.
    pub fn dialect_status(&self) -> &'static str {
        self.dialect().run_word(&self.facts)
    }

    pub(super) fn step_facts(&self, step: &StepView<'_>) -> StepFacts {
        let view = self.view;
        let phase = match &step.phase {
            Phase::Dormant => StepPhase::Dormant,
            Phase::Pending => StepPhase::Pending,
            Phase::Queued { .. } => StepPhase::Queued,
            Phase::Running => StepPhase::Running,
            Phase::Backoff { .. } => StepPhase::Backoff,
            Phase::Asking { .. } => StepPhase::Asking,
            Phase::Waiting { .. } => StepPhase::Waiting,
            Phase::Joined => StepPhase::Joined,
            Phase::Inside => StepPhase::Inside,
            Phase::Settled(Outcome::Done(_) | Outcome::Continue(_)) => StepPhase::Done,
            Phase::Settled(Outcome::Failed(_)) => StepPhase::Failed,
            Phase::Settled(Outcome::Skipped(_)) => StepPhase::Skipped,
            Phase::Settled(Outcome::Cancelled(_)) => StepPhase::Cancelled,
        };
        let timed_out = matches!(step.phase, Phase::Settled(Outcome::Failed(failure)) if &*failure.class == class::TIMEOUT);
        let kind = &view.plan_step(step).kind;
        StepFacts {
            timed_out,
            recovered: step.recovered,
            left: phase == StepPhase::Cancelled && step.started_at.is_none() && !view.cancel_requested(),
            entered: is_entered(step, kind),
            calls: matches!(kind, Kind::Action(Action::Call(_))),
            cancel_requested: view.cancel_requested(),
            ..StepFacts::new(phase, self.facts)
        }
    }

    pub(super) fn words(&self, facts: &StepFacts) -> (StepStatus, &'static str) {
        (facts.status(), self.dialect().step_word(facts))
    }
}

/// Whether a branch, a loop or a fan-out has been entered.
pub(super) fn is_entered<B>(step: &StepView<'_>, kind: &Kind<B>) -> bool {
    matches!(
        (step.entered, kind),
        (Some(Decision::Arm { .. }), Kind::Choose(Choose::If { .. } | Choose::Switch { .. }))
            | (Some(Decision::Round { .. }), Kind::Repeat(_))
            | (Some(Decision::Items { .. }), Kind::ForEach(_))
    )
}
