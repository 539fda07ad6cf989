//! Loops: whether and when another round follows.

use super::Turn;
use super::records;
use super::state::{Place, Within};
use super::values::Sight;
use crate::event::{Decision, What};
use crate::keys::Reason;
use crate::outcome::{Failure, Outcome};
use windlass_ir::Value;
use windlass_ir::expr::{RepeatShape, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Kind, Repeat, RepeatTest};

impl Turn<'_> {
    pub(super) fn start_loop(
        &mut self,
        place: Place,
        step: &PlanStep,
        repeat: &Repeat<Vec<StepId>>,
    ) -> Result<(), Failure> {
        let mut value = Value::Null;
        if repeat.test == RepeatTest::While {
            let (holds, asked) =
                Sight { round: Some(0), ..self.sight(Some(place))? }.decide(&repeat.condition)?;
            value = asked;
            if !holds {
                let left = records::repeated(self.state(), place, 0, &Value::Bool(false));
                let outcome = self.with_outputs(place, step, &left, None)?;
                self.settle(place, outcome);
                return Ok(());
            }
        }
        self.enter(place, step, Decision::Round { number: 0, value });
        Ok(())
    }

    /// Handles the end of a round, or of the delay before the next one.
    pub(super) fn round_over(&mut self, place: Place) {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        let Kind::Repeat(repeat) = &step.kind else { return };
        let outcome = match self.next_round(place, step, repeat) {
            Ok(Some(outcome)) => outcome,
            Ok(None) => return,
            Err(failure) => Outcome::Failed(failure),
        };
        self.settle(place, outcome);
    }

    /// Starts the next round, or returns the outcome of the loop.
    fn next_round(
        &mut self,
        place: Place,
        step: &PlanStep,
        repeat: &Repeat<Vec<StepId>>,
    ) -> Result<Option<Outcome>, Failure> {
        let Some(Within::Rounds(rounds)) = self.at(place).within.as_deref() else { return Ok(None) };
        let (begun, last, due) = (rounds.begun, rounds.last, rounds.due);
        if !due {
            let another = match (begun < repeat.rounds_max, repeat.test) {
                (false, _) => false,
                (true, RepeatTest::While) => self.asks(last.unwrap_or(place), begun, repeat)?,
                (true, RepeatTest::DoWhile) => self.asks(last.unwrap_or(place), begun - 1, repeat)?,
                (true, RepeatTest::Until) => !self.asks(last.unwrap_or(place), begun - 1, repeat)?,
            };
            if !another {
                let exhausted =
                    begun >= repeat.rounds_max && self.would_continue(last.unwrap_or(place), begun, repeat);
                let left = self.loop_result(place, begun, exhausted);
                return self.with_outputs(place, step, &left, last).map(Some);
            }
            if let Some(delay) = repeat.delay.filter(|_| self.state().stop_of(place).is_none()) {
                let (path, until) = (self.path(place), self.now.plus(delay));
                self.emit(What::TimerSet { path, reason: Reason::Wait, until });
                return Ok(None);
            }
        }
        if let Some(stop) = self.state().stop_of(place) {
            return Ok(Some(Outcome::Cancelled(stop.why.clone())));
        }
        let path = self.path(place);
        self.emit(What::Entered { path, decision: Decision::Round { number: begun, value: Value::Null } });
        Ok(None)
    }

    fn asks(&self, from: Place, round: u32, repeat: &Repeat<Vec<StepId>>) -> Result<bool, Failure> {
        let sight = Sight { round: Some(round), ..self.inner_sight(Some(from))? };
        sight.holds(&repeat.condition)
    }

    /// Whether the limit ended the loop rather than its condition. A condition that cannot be evaluated counts as the
    /// end.
    fn would_continue(&self, from: Place, begun: u32, repeat: &Repeat<Vec<StepId>>) -> bool {
        let wanted = repeat.test != RepeatTest::Until;
        let round = if repeat.test == RepeatTest::While { begun } else { begun - 1 };
        self.asks(from, round, repeat).is_ok_and(|holds| holds == wanted)
    }

    fn loop_result(&self, place: Place, rounds: u32, exhausted: bool) -> Value {
        let entry = match self.at(place).within.as_deref() {
            Some(Within::Rounds(rounds)) => rounds.value.clone(),
            _ => Value::Null,
        };
        let value = match self.state().program(place).shapes().repeat {
            RepeatShape::Test => entry,
            RepeatShape::Count => Value::Bool(exhausted),
        };
        records::repeated(self.state(), place, rounds, &value)
    }
}
