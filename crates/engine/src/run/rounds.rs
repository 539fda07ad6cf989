//! Tasks that may ask for another round, with their own result as the next input, within limits.

use super::Turn;
use super::state::Place;
use crate::event::{Decision, What};
use crate::job::Round;
use crate::keys::Timestamp;
use crate::outcome::{Failure, Outcome, class};
use windlass_ir::Value;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Kind, Rounds};

fn rounds_of(step: &PlanStep) -> Option<&Rounds> {
    match &step.kind {
        Kind::Action(Action::Task(task)) => task.rounds.as_ref(),
        _ => None,
    }
}

/// The round that a worker is in, and whether it should finish.
pub fn current(step: &PlanStep, number: u32) -> Option<Round> {
    let rounds = rounds_of(step)?;
    let reached = |at: Option<u32>| at.is_some_and(|at| number >= at);
    let rounds_max = rounds.rounds_max;
    Some(Round { number, rounds_max, warn: reached(rounds.warn_at), force: reached(rounds.force_at) })
}

impl Turn<'_> {
    /// The end of the time for all rounds of a step.
    pub(super) fn rounds_deadline(&self, place: Place, step: &PlanStep) -> Option<Timestamp> {
        let time_max = rounds_of(step)?.time_max?;
        let started_at = self.at(place).started_at.unwrap_or(self.now);
        Some(started_at.plus(time_max))
    }

    /// Starts another round with the worker's result as input.
    pub(super) fn asks_for_more(&mut self, place: Place, value: Value) {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        let number = self.at(place).rounds + 1;
        let failure = match rounds_of(step) {
            None => Failure::new(
                class::CONTRACT_VIOLATION,
                "the answer asks for another round, and this step has one",
            ),
            Some(rounds) if number >= rounds.rounds_max => {
                let message = format!(
                    "not complete after the most rounds that are allowed: max iterations {}",
                    rounds.rounds_max
                );
                Failure::new(class::ERROR, message)
            }
            Some(_) if self.rounds_deadline(place, step).is_some_and(|over| over <= self.now) => {
                Failure::new(class::TIMEOUT, "not complete within the time for all rounds")
            }
            Some(rounds) => {
                let delay = rounds.delay.unwrap_or_default();
                let path = self.path(place);
                let decision = Decision::Again { number, input: value, delay };
                self.give_back(place, None);
                return self.emit(What::Entered { path, decision });
            }
        };
        self.settle(place, Outcome::Failed(failure));
    }
}
