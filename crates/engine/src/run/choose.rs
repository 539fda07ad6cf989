//! Branches: choosing an arm.

use super::Turn;
use super::state::Place;
use super::values::expression_error;
use crate::event::Decision;
use crate::outcome::Failure;
use std::sync::Arc;
use windlass_ir::expr::{Expr, Function, Node, StepId, Template, text_form};
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::Choose;

impl Turn<'_> {
    pub(super) fn choose(
        &mut self,
        place: Place,
        step: &PlanStep,
        choose: &Choose<Vec<StepId>>,
    ) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let (arm, value) = match choose {
            Choose::If { condition, .. } => {
                let (holds, value) = sight.decide(condition)?;
                (Arc::from(if holds { "then" } else { "else" }), value)
            }
            Choose::Switch { value: bound, cases, .. } => {
                let value = sight.value(bound)?;
                let text = text_form(&value, &sight.program().plan.semantics)
                    .map_err(|error| expression_error(&error, &bound.field))?;
                let arm = if cases.contains_key(&text) { text } else { "default".into() };
                let value = match &bound.template {
                    Template::Expression(expr) => sight
                        .evaluate(before_text(expr))
                        .map_err(|error| expression_error(&error, &bound.field))?,
                    _ => value,
                };
                (arm, value)
            }
        };
        self.enter(place, step, Decision::Arm { arm, value });
        Ok(())
    }
}

/// Records contain the value itself, not the trimmed text that selects the arm.
fn before_text(expr: &Expr) -> &Expr {
    match &expr.node {
        Node::Call { function: Function::Trim | Function::Text, args } if args.len() == 1 => {
            before_text(&args[0])
        }
        _ => expr,
    }
}
