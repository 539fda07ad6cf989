//! Workflows that run inside the calling run. They can read only their inputs.

use super::Turn;
use super::end::is_abort;
use super::program::Program;
use super::render;
use super::state::{Place, Role, Unit};
use super::values::Sight;
use crate::event::{AddedPlan, Decision, What};
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::CallShape;
use windlass_ir::plan::Given;
use windlass_ir::value::{Map, Sealable};
use windlass_ir::workflow::{Action, Kind};

impl Turn<'_> {
    /// The ids of the workflows around an instance: the callers of this run, and the workflows called inside it.
    pub(super) fn lineage(&self, place: Place) -> Vec<Arc<str>> {
        let mut inner = Vec::new();
        let mut here = Some(place);
        while let Some(unit) = here.map(|place| self.state().unit(Some(place))) {
            if unit.planned.is_none() {
                inner.push(unit.program.plan.header.id.clone());
            }
            here = unit.call;
        }
        if inner.last() != Some(&self.run.program.plan.header.id) {
            inner.push(self.run.program.plan.header.id.clone());
        }
        self.state().lineage.0.iter().cloned().chain(inner.into_iter().rev()).collect()
    }

    /// Adds the steps of the called workflow to this run.
    pub(super) fn enter_call(&mut self, place: Place, found: &Value) {
        match self.fragment(place, found) {
            // Keep the program alive until the state holds it, so that it is compiled only once.
            Ok((decision, _program)) => self.emit(What::Entered { path: self.path(place), decision }),
            Err(failure) => {
                let failure = self.as_called(place, failure);
                self.failed(place, failure);
            }
        }
    }

    /// The outcome of a called workflow as its caller sees it.
    pub(super) fn seen_by_caller(&self, place: Place, outcome: Outcome) -> Outcome {
        match (outcome, self.state().kind(place)) {
            (Outcome::Failed(failure), Kind::Action(Action::Call(_))) => {
                Outcome::Failed(self.as_called(place, failure))
            }
            (outcome, _) => outcome,
        }
    }

    /// A report about a failed call contains the workflow and the error, but no results of its steps.
    fn as_called(&self, place: Place, failure: Failure) -> Failure {
        let program = self.state().program(place);
        let Kind::Action(Action::Call(call)) = self.state().kind(place) else { return failure };
        if program.shapes().call != CallShape::Report {
            return failure;
        }
        let name = match self.inside(place) {
            Some(unit) => Value::Text(unit.program.plan.header.id.clone()),
            None => {
                self.sight(Some(place)).and_then(|sight| sight.value(&call.workflow)).unwrap_or(Value::Null)
            }
        };
        let aborted = is_abort(&failure);
        let mut report = Map::from_iter([
            ("workflow".into(), name),
            ("status".into(), Value::text(if aborted { "aborted" } else { "failed" })),
        ]);
        if aborted {
            report.insert("aborted".into(), Value::Bool(true));
        }
        report.insert("error".into(), Value::Text(failure.message.clone()));
        Failure { detail: Some(Value::Map(Arc::new(report))), ..failure }
    }

    fn fragment(&self, place: Place, found: &Value) -> Result<(Decision, Arc<Program>), Failure> {
        let wrong = |message: String| Failure::new(class::ERROR, message).in_field("workflow");
        let endless = |message: String| Failure::new(class::NOT_RUNNABLE, message).in_field("workflow");
        let known = found.get("plan").and_then(|plan| plan.get("digest")?.as_str());
        let program = match known.and_then(|digest| self.run.program.added_before(digest)) {
            Some(program) => program,
            None => {
                let plan = found.get("plan").and_then(Value::to_json);
                let plan = plan.and_then(|json| serde_json::from_value(json).ok());
                let plan = plan.ok_or_else(|| {
                    wrong("the answer to a call must contain the plan of the workflow".into())
                })?;
                let added = self.run.program.added(&AddedPlan::Whole(plan));
                added.map_err(|error| wrong(error.to_string()))?
            }
        };
        let id = &program.plan.header.id;
        let lineage = self.lineage(place);
        if lineage.contains(id) {
            return Err(endless(format!("`{id}` calls itself")));
        }
        let depth_max = self.run.program.plan.semantics.calls_deep_max;
        if lineage.len() > depth_max as usize {
            return Err(endless(format!("workflows call each other more than {depth_max} deep")));
        }
        let inputs = found.get("inputs").cloned().unwrap_or(Value::Null);
        // As for a run, evaluate the environment before the first step.
        let mut state = super::state::State::new(program.clone());
        state.units[0].inputs = inputs.clone();
        state.started_at = self.state().started_at;
        let sight = Sight { now: Some(self.now), ..Sight::at_start(&self.run.id, &state) };
        let env = Sealable(Value::Map(Arc::new(render::bindings(&sight, &program.plan.env)?)));
        let plan = AddedPlan::Whole(program.plan.clone());
        Ok((Decision::Fragment { plan, inputs, env }, program))
    }

    /// Updates the inputs of called workflows that are still open. If the new inputs cannot be rendered or are
    /// invalid, the old ones remain.
    pub(super) fn rebind_calls(&mut self) {
        let calls: Vec<Place> = self.state().units.iter().filter_map(|unit| unit.call).collect();
        for place in calls {
            let open = !self.at(place).is_settled();
            if let Some(inputs) = self.rebound_inputs(place).filter(|_| open) {
                self.emit(What::Rebound { path: self.path(place), inputs });
            }
        }
    }

    fn rebound_inputs(&self, place: Place) -> Option<Value> {
        let program = self.state().program(place);
        let Kind::Action(Action::Call(call)) = &program.step(self.at(place).step).kind else { return None };
        let given = self.sight(Some(place)).and_then(|sight| sight.optional(call.input.as_ref())).ok()??;
        let unit = self.inside(place)?;
        let plan = &unit.program.plan;
        let taken = plan.parameters.iter().filter_map(|(name, parameter)| {
            let value = Given::Value(given.get(name)?.clone());
            Some(parameter.accept(&value, &plan.semantics).map(|value| (name.clone(), value)))
        });
        let taken: Map = taken.collect::<Result<_, _>>().ok()?;
        let inputs = super::merged(&unit.inputs, &Value::Map(Arc::new(taken)));
        (inputs != unit.inputs).then_some(inputs)
    }

    /// The called workflow. `None` if it has no steps.
    fn inside(&self, place: Place) -> Option<&Unit> {
        let first = self.state().list(Some(place), Role::Body)?.places().next()?;
        Some(self.state().unit(Some(first)))
    }

    /// The result of a call after its steps are done.
    pub(super) fn called(&self, place: Place) -> Result<Outcome, Failure> {
        let list = self.state().list(Some(place), Role::Body);
        let first = list.and_then(|list| list.places().next());
        let Some(first) = first else { return Ok(Outcome::Done(Value::Null)) };
        let program = self.program(first);
        let plan = &program.plan;
        // Evaluated at the first step, where the steps of the called workflow are in scope.
        let sight = self.sight(Some(first))?;
        if let Some(result) = &plan.result {
            let value = sight.optional(result.source.as_ref())?.unwrap_or(Value::Null);
            return super::values::checked(&program, "output", result, value).map(Outcome::Done);
        }
        let mut values = Map::new();
        for (name, output) in &plan.outputs {
            let value = sight.optional(output.source.as_ref())?.unwrap_or(Value::Null);
            values.insert(name.clone(), super::values::checked(&program, name, output, value)?);
        }
        if self.state().program(place).shapes().call == CallShape::Report {
            values.shift_insert(0, "workflow".into(), Value::Text(plan.header.id.clone()));
            values.shift_insert(1, "status".into(), Value::text("completed"));
        }
        Ok(Outcome::Done(Value::Map(Arc::new(values))))
    }
}
