//! The early end of a run.

use super::Turn;
use super::render;
use super::state::Place;
use crate::event::{Decision, What};
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Finish, FinishStatus};

impl Turn<'_> {
    /// Completes the step, starts no others, and ends the run with the outcome it names.
    pub(super) fn finish(&mut self, place: Place, finish: &Finish) -> Result<(), Failure> {
        let given = render::bindings(&self.sight(Some(place))?, &finish.outputs)?;
        let id = self.state().program(place).step(self.at(place).step).id.clone();
        let outcome = match finish.status {
            FinishStatus::Success => Outcome::Done(self.finished_with(&given)?),
            FinishStatus::Failed => {
                let message = format!("`{id}` ended the run as failed");
                let detail = Some(Value::Map(Arc::new(given)));
                Outcome::Failed(Failure { detail, ..Failure::new(class::ERROR, message) })
            }
            FinishStatus::Cancelled => Outcome::Cancelled(format!("`{id}` ended the run").into()),
        };
        let path = self.path(place);
        self.settle(place, Outcome::Done(Value::map::<&str>([])));
        if self.state().finish.is_none() {
            self.emit(What::Entered { path, decision: Decision::Finish { outcome } });
        }
        Ok(())
    }

    /// Checks the given outputs against those that the workflow declares, and fills in defaults.
    fn finished_with(&self, given: &Map) -> Result<Value, Failure> {
        let plan = &self.run.program.plan;
        let mut all = given.clone();
        for (name, output) in &plan.outputs {
            let value = given.get(name).cloned().unwrap_or(Value::Null);
            let optional = windlass_ir::workflow::Output { required: false, ..output.clone() };
            let field = format!("outputs.{name}");
            all.insert(name.clone(), super::values::checked(&self.run.program, &field, &optional, value)?);
        }
        Ok(Value::Map(Arc::new(all)))
    }
}
