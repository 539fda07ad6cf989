//! Fan-outs: the items, and how many run at once.

use super::Turn;
use super::state::Place;
use super::values::Sight;
use crate::event::Decision;
use crate::outcome::{Failure, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::{FanOutRule, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::Bindings;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Bound, ForEach, Items};

/// The limit if the workflow sets no lower one.
const ITEMS_MAX: u64 = 1_000_000;

impl Turn<'_> {
    pub(super) fn fan_out(
        &mut self,
        place: Place,
        step: &PlanStep,
        each: &ForEach<Vec<StepId>>,
    ) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let limit = each.items_max.unwrap_or(ITEMS_MAX);
        let items = match &each.items {
            Items::List(bound) => list(&sight, bound)?,
            Items::Matrix(axes) => matrix(&sight, axes, limit)?,
        };
        if items.len() as u64 > limit {
            return Err(too_many(items.len() as u64, limit));
        }
        let in_order = (sight.program().plan.semantics.fan_out == FanOutRule::InOrder).then_some(true);
        let decision = Decision::Items { items: Value::List(items), at_once: each.concurrency, in_order };
        self.enter(place, step, decision);
        Ok(())
    }
}

fn too_many(count: u64, limit: u64) -> Failure {
    Failure::new(class::FAN_OUT_SOURCE, format!("{count} items are more than the {limit} that are allowed"))
}

fn list(sight: &Sight<'_>, bound: &Bound) -> Result<Arc<[Value]>, Failure> {
    match sight.value(bound)? {
        Value::List(items) => Ok(items),
        other => {
            let message = format!("the items must be a list, but they are {}", other.kind());
            Err(Failure::new(class::FAN_OUT_SOURCE, message).in_field(bound.field.clone()))
        }
    }
}

/// All combinations; the last axis varies fastest.
fn matrix(sight: &Sight<'_>, axes: &Bindings, limit: u64) -> Result<Arc<[Value]>, Failure> {
    let mut rows: Vec<Map> = vec![Map::new()];
    for (name, bound) in axes {
        let values = list(sight, bound)?;
        let count = rows.len() as u64 * values.len() as u64;
        if count > limit {
            return Err(too_many(count, limit));
        }
        let extended = rows.iter().flat_map(|row| {
            values.iter().map(|value| {
                let mut row = row.clone();
                row.insert(name.clone(), value.clone());
                row
            })
        });
        rows = extended.collect();
    }
    Ok(rows.into_iter().map(|row| Value::Map(Arc::new(row))).collect())
}
