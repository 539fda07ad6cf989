//! Why a step did not run, or a loop ended: the expression that decided, with the values that it read.

use super::{Report, data};
use crate::words::{one_line, shorten};
use windlass_dialects::Dialect;
use windlass_ir::Value;
use windlass_ir::expr::{Expr, Printer, StepId};
use windlass_ir::workflow::{Choose, Kind, RepeatTest};
use windlass_runtime::{Decision, Outcome, Path, SkipReason, StepPhase, StepView};

/// The longest value to print, in characters.
const VALUE_MAX: usize = 40;
const EXPRESSION_MAX: usize = 120;

impl Report<'_> {
    /// Why a step was skipped or canceled, for people.
    pub fn because(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        match &step.phase {
            StepPhase::Settled(Outcome::Skipped(skip)) => {
                let other = skip.because_of.as_deref().map(|other| format!("`{other}`"));
                Some(match (skip.reason, other) {
                    (SkipReason::ConditionFalse, None) => self.own_condition(path, step)?,
                    (SkipReason::ConditionFalse | SkipReason::BranchNotTaken, Some(other)) => {
                        format!("{other} was skipped")
                    }
                    (SkipReason::GateSkipped, Some(other)) => format!("{other} was not approved"),
                    (SkipReason::GateSkipped, None) => "its gate was not approved".to_owned(),
                    (SkipReason::DependencyFailed, Some(other)) => format!("{other} failed"),
                    (SkipReason::DependencyFailed, None) => "a step before it failed".to_owned(),
                    (SkipReason::BranchNotTaken, None) => "its branch was not taken".to_owned(),
                    (SkipReason::RunCancelled, _) => "the run was canceled".to_owned(),
                    (SkipReason::EmptySlot, _) => "nothing fills this slot".to_owned(),
                    (SkipReason::NotAsked, _) => "the run was limited to another step".to_owned(),
                })
            }
            StepPhase::Settled(Outcome::Cancelled(why)) => Some(one_line(why)),
            _ => None,
        }
    }

    /// The condition of a step, on itself or on the step that it guards.
    fn own_condition(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        let condition = self.view.plan_step(step).condition.as_ref()?;
        Some(format!(
            "{} is false{}",
            self.printed(step, &condition.expr),
            self.values(path, step, &condition.expr, false)
        ))
    }

    /// Which arm a branch took and why, or how a loop ended.
    pub fn decided(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        self.arm(path, step).or_else(|| self.loop_end(path, step))
    }

    fn arm(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        let (Kind::Choose(choose), Some(Decision::Arm { arm, value })) =
            (&self.view.plan_step(step).kind, step.entered)
        else {
            return None;
        };
        Some(match choose {
            Choose::If { condition, .. } => {
                let word = if **arm == *"then" { "true" } else { "false" };
                let values = self.values(path, step, &condition.expr, false);
                format!("{} is {word}{values}", self.printed(step, &condition.expr))
            }
            Choose::Switch { .. } => format!("took {} for {}", one_line(arm), shown(value)),
        })
    }

    /// How a loop ended: by its condition or by its limit. None while it runs.
    fn loop_end(&self, path: &Path, step: &StepView<'_>) -> Option<String> {
        let Kind::Repeat(repeat) = &self.view.plan_step(step).kind else { return None };
        let StepPhase::Settled(Outcome::Done(output)) = &step.phase else { return None };
        if step.frame.is_some() {
            return None;
        }
        let condition = self.printed(step, &repeat.condition.expr);
        let rounds = match step.rounds {
            1 => "1 round".to_owned(),
            rounds => format!("{rounds} rounds"),
        };
        let last = step.rounds.checked_sub(1).map(|number| path.frame(number));
        let values = match &last {
            Some(last) => self.values(last, step, &repeat.condition.expr, true),
            None => String::new(),
        };
        let exhausted = match output.get("exhausted") {
            Some(Value::Bool(exhausted)) => *exhausted,
            _ => step.rounds >= repeat.rounds_max,
        };
        let held = repeat.test == RepeatTest::Until;
        Some(match exhausted {
            true => format!(
                "stopped at the limit of {rounds}; {condition} is {}{values}",
                if held { "still false" } else { "still true" }
            ),
            false => {
                format!("{rounds}, until {condition} was {}{values}", if held { "true" } else { "false" })
            }
        })
    }

    fn printed(&self, step: &StepView<'_>, expr: &Expr) -> String {
        let program = self.view.program_of(step);
        let words = Dialect::by_name(&program.plan.dialect).unwrap_or(Dialect::Swdl).words();
        let id = |id: StepId| program.plan.step(id).id.to_string();
        let text = Printer { words, step: &id }.expr(expr);
        shorten(&one_line(&text), EXPRESSION_MAX).into_owned()
    }

    /// The values that an expression reads: ` (parameters.env = "prod")`.
    fn values(&self, path: &Path, step: &StepView<'_>, expr: &Expr, inside: bool) -> String {
        let reads = self.view.reads(self.run, path, expr, inside);
        let reads: Vec<String> = reads
            .iter()
            .map(|(part, value)| format!("{} = {}", self.printed(step, part), shown(value)))
            .collect();
        if reads.is_empty() { String::new() } else { format!(" ({})", reads.join(", ")) }
    }
}

fn shown(value: &Value) -> String {
    shorten(&one_line(&data(value).to_string()), VALUE_MAX).into_owned()
}
