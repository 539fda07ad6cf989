//! Calls of other workflows that run inside this run: they see nothing of the caller but their inputs.

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
    /// The ids of the workflows around an instance: of the runs that called this one, and of those that run inside it.
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

    /// The workflow that is called was found: its steps become steps of this run.
    pub(super) fn enter_call(&mut self, place: Place, found: &Value) {
        match self.fragment(place, found) {
            // The program lives until the state has it, so that it is compiled once.
            Ok((decision, _program)) => self.emit(What::Entered { path: self.path(place), decision }),
            Err(failure) => {
                let failure = self.as_called(place, failure);
                self.failed(place, failure);
            }
        }
    }

    /// What a caller sees of how a workflow ended badly that it has called.
    pub(super) fn seen_by_caller(&self, place: Place, outcome: Outcome) -> Outcome {
        match (outcome, self.state().kind(place)) {
            (Outcome::Failed(failure), Kind::Action(Action::Call(_))) => {
                Outcome::Failed(self.as_called(place, failure))
            }
            (outcome, _) => outcome,
        }
    }

    /// A report about a failed call says which workflow failed and why, and nothing of what its steps left behind.
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
        let mut told = Map::from_iter([
            ("workflow".into(), name),
            ("status".into(), Value::text(if aborted { "aborted" } else { "failed" })),
        ]);
        if aborted {
            told.insert("aborted".into(), Value::Bool(true));
        }
        told.insert("error".into(), Value::Text(failure.message.clone()));
        Failure { detail: Some(Value::Map(Arc::new(told))), ..failure }
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
                let plan = plan
                    .ok_or_else(|| wrong("the answer to a call must hold the plan of the workflow".into()))?;
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
        // The environment of the other workflow is evaluated as that of a run is, before its first step.
        let mut state = super::state::State::new(program.clone());
        state.units[0].inputs = inputs.clone();
        state.started_at = self.state().started_at;
        let sight = Sight::at_start(&self.run.id, &state);
        let env = Sealable(Value::Map(Arc::new(render::bindings(&sight, &program.plan.env)?)));
        let plan = AddedPlan::Whole(program.plan.clone());
        Ok((Decision::Fragment { plan, inputs, env }, program))
    }

    /// Inputs have changed: workflows that were called, and are not done, are given what the call gives them now. What cannot
    /// be rendered or taken leaves them as they were.
    pub(super) fn bind_calls_anew(&mut self) {
        let calls: Vec<Place> = self.state().units.iter().filter_map(|unit| unit.call).collect();
        for place in calls {
            let open = !self.at(place).is_settled();
            if let Some(inputs) = self.bound_anew(place).filter(|_| open) {
                self.emit(What::Rebound { path: self.path(place), inputs });
            }
        }
    }

    fn bound_anew(&self, place: Place) -> Option<Value> {
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

    /// The workflow that a call has found. `None` if it has no steps.
    fn inside(&self, place: Place) -> Option<&Unit> {
        let first = self.state().list(Some(place), Role::Body)?.places().next()?;
        Some(self.state().unit(Some(first)))
    }

    /// What a call leaves behind once its steps are done.
    pub(super) fn called(&self, place: Place) -> Result<Outcome, Failure> {
        let list = self.state().list(Some(place), Role::Body);
        let first = list.and_then(|list| list.places().next());
        let Some(first) = first else { return Ok(Outcome::Done(Value::Null)) };
        let program = self.program(first);
        let plan = &program.plan;
        // Seen from beside the first step, so that the list of the call is in sight.
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
