//! What expressions read while a run goes on, and the contracts that values keep on their way in and out of a step.

use super::program::Program;
use super::state::{Place, State};
use crate::keys::RunId;
use crate::outcome::{Failure, Outcome, class};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::{EvalError, Expr, Limits, Namespace, Read, Scope, evaluate, holds, render};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Bound, Condition, Output};

/// The eyes of one step, or of the run itself.
pub struct Sight<'a> {
    pub run: &'a RunId,
    pub program: &'a Program,
    pub state: &'a State,
    pub from: Option<Place>,
    /// The environment around the step, rendered.
    pub env: Value,
    /// The failed attempt that a retry condition looks at.
    pub failed: Option<(&'a Failure, u32)>,
}

impl Scope for Sight<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(match read {
            Read::Namespace(namespace) => self.namespace(namespace),
            Read::StepRecord(_) | Read::LoopItem(_) | Read::LoopIndex(_) => Value::Null,
            Read::StepOutputs(step) => match self.state.seen_from(self.from, step, self.program) {
                Some(place) => self.outputs(place),
                None => Value::Null,
            },
            Read::StepStatus(step) => {
                let place = self.state.seen_from(self.from, step, self.program);
                let outcome = place.and_then(|place| self.state.at(place).outcome());
                Value::text(outcome.map_or("pending", status_word))
            }
        })
    }
}

impl Sight<'_> {
    fn namespace(&self, namespace: Namespace) -> Value {
        let header = &self.program.plan.header;
        match namespace {
            Namespace::Inputs => self.state.inputs.clone(),
            Namespace::Env => self.env.clone(),
            Namespace::Run => Value::map([
                ("id", Value::text(self.run.as_str())),
                ("started_at", Value::text(self.state.started_at.to_string())),
            ]),
            Namespace::Workflow => Value::map([
                ("id", Value::Text(header.id.clone())),
                ("name", Value::Text(header.name.clone())),
                ("version", Value::Text(header.version.clone())),
            ]),
            Namespace::Secrets => Value::map(
                self.program.plan.secrets.iter().map(|name| (name.clone(), Value::secret(name.clone()))),
            ),
            Namespace::Class => {
                self.failed.map_or(Value::Null, |(failure, _)| Value::Text(failure.class.clone()))
            }
            Namespace::Message => {
                self.failed.map_or(Value::Null, |(failure, _)| Value::Text(failure.message.clone()))
            }
            Namespace::Attempt => {
                self.failed.map_or(Value::Null, |(_, attempt)| Value::Int(i64::from(attempt)))
            }
            Namespace::ExitCode => {
                let detail = self.failed.and_then(|(failure, _)| failure.detail.as_ref());
                detail.and_then(|detail| detail.get("exit_code")).cloned().unwrap_or(Value::Null)
            }
            Namespace::Steps
            | Namespace::Context
            | Namespace::Item
            | Namespace::Index
            | Namespace::Loops
            | Namespace::Host
            | Namespace::Failure
            | Namespace::Undo
            | Namespace::FanIn
            | Namespace::Root => Value::Null,
        }
    }

    /// The outputs of a settled step. One that did not succeed has its declared defaults, and null for the rest.
    fn outputs(&self, place: Place) -> Value {
        let instance = self.state.at(place);
        match instance.outcome() {
            Some(Outcome::Done(value) | Outcome::Continue(value)) => value.clone(),
            Some(Outcome::Failed(_) | Outcome::Skipped(_) | Outcome::Cancelled(_)) | None => {
                let outputs = &self.program.plan.step(instance.step).outputs;
                Value::map(outputs.iter().map(|(name, output)| (name.clone(), fallback(output))))
            }
        }
    }

    pub fn value(&self, bound: &Bound) -> Result<Value, Failure> {
        render(&bound.template, self, &self.program.plan.semantics, &Limits::default())
            .map_err(|error| expression_error(&error, &bound.field))
    }

    pub fn optional(&self, bound: Option<&Bound>) -> Result<Option<Value>, Failure> {
        bound.map(|bound| self.value(bound)).transpose()
    }

    /// Whether a condition holds. An error is never taken for false.
    pub fn holds(&self, condition: &Condition) -> Result<bool, Failure> {
        let semantics = &self.program.plan.semantics;
        self.evaluate(&condition.expr)
            .and_then(|value| holds(&value, semantics))
            .map_err(|error| expression_error(&error, &condition.field))
    }

    pub fn evaluate(&self, expr: &Expr) -> Result<Value, EvalError> {
        evaluate(expr, self, &self.program.plan.semantics, &Limits::default())
    }

    /// The inputs of a step, each checked before anything is started.
    pub fn inputs(&self, step: &PlanStep) -> Result<Value, Failure> {
        let mut inputs = Map::with_capacity(step.inputs.len());
        for (name, input) in &step.inputs {
            let value = self.optional(input.source.as_ref())?.unwrap_or(Value::Null);
            let field = || format!("inputs.{name}");
            if value == Value::Null {
                if input.required {
                    let message = format!("the required input `{name}` is null");
                    return Err(Failure::new(class::CONTRACT_VIOLATION, message).in_field(field()));
                }
            } else if let Err(violation) = self.program.check(&input.ty, &value) {
                return Err(broken(&field(), &violation.path, &violation.message));
            }
            inputs.insert(name.clone(), value);
        }
        Ok(Value::Map(Arc::new(inputs)))
    }
}

fn fallback(output: &Output) -> Value {
    output.default.clone().unwrap_or(Value::Null)
}

/// The word that expressions compare with.
pub fn status_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => "success",
        Outcome::Failed(failure) if &*failure.class == class::TIMEOUT => "timed_out",
        Outcome::Failed(_) => "failed",
        Outcome::Skipped(_) => "skipped",
        Outcome::Cancelled(_) => "cancelled",
    }
}

fn expression_error(error: &EvalError, field: &Arc<str>) -> Failure {
    Failure::new(class::EXPRESSION_ERROR, error.message.as_str()).in_field(field.clone())
}

fn broken(field: &str, path: &str, message: &str) -> Failure {
    Failure::new(class::CONTRACT_VIOLATION, message).in_field(format!("{field}{path}"))
}

/// What a step produced, held against its contract: declared outputs first, with defaults filled in, then the rest.
pub fn contracted(
    program: &Program,
    outputs: &IndexMap<Arc<str>, Output>,
    produced: Value,
) -> Result<Value, Failure> {
    if outputs.is_empty() {
        return Ok(produced);
    }
    let Value::Map(produced) = produced else {
        let message = format!("the outputs must be an object, but they are {}", produced.kind());
        return Err(Failure::new(class::CONTRACT_VIOLATION, message).in_field("outputs"));
    };
    let mut checked = Map::with_capacity(outputs.len().max(produced.len()));
    for (name, output) in outputs {
        let given = produced.get(name).filter(|value| **value != Value::Null);
        let value = match (given, &output.default) {
            (Some(value), _) => {
                let field = format!("outputs.{name}");
                program
                    .check(&output.ty, value)
                    .map_err(|violation| broken(&field, &violation.path, &violation.message))?;
                value.clone()
            }
            (None, Some(default)) => default.clone(),
            (None, None) if output.required => {
                let message = format!("the required output `{name}` is missing");
                return Err(
                    Failure::new(class::CONTRACT_VIOLATION, message).in_field(format!("outputs.{name}"))
                );
            }
            (None, None) => Value::Null,
        };
        checked.insert(name.clone(), value);
    }
    for (name, value) in produced.iter().filter(|(name, _)| !outputs.contains_key(*name)) {
        checked.insert(name.clone(), value.clone());
    }
    Ok(Value::Map(Arc::new(checked)))
}
