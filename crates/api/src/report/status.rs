//! The status of a run and of its steps: neutral first, then in the words of the dialect.

use super::Report;
use windlass_ir::dialect::{StepFacts, StepPhase};
use windlass_ir::workflow::{Action, Choose, Kind};
use windlass_ir::{RunStatus, StepStatus};
use windlass_runtime::{Decision, Outcome, StepPhase as Phase, StepView, class};

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
