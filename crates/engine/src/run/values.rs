//! The values that expressions read, and the contracts of inputs and outputs.

use super::program::Program;
use super::records;
use super::state::{Instance, Phase, Place, State, Within};
use crate::keys::{RunId, Timestamp};
use crate::outcome::{Failure, Outcome, class};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{EvalError, Expr, Limits, Namespace, Read, Scope, StepId, evaluate, holds, render};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::{Map, VALUE_BYTES_MAX};
use windlass_ir::workflow::{Bound, Condition, Kind, Output};
use windlass_ir::{Code, Value};

/// What the expressions of a step, or of the run itself, can read.
#[derive(Clone)]
pub struct Sight<'a> {
    pub run: &'a RunId,
    pub state: &'a State,
    pub from: Option<Place>,
    /// Evaluated inside the scope, where the steps of its own list are visible.
    pub inside: bool,
    /// The rendered environment around the step.
    pub env: Value,
    /// The failed attempt that a retry condition reads.
    pub failed: Option<(&'a Failure, u32)>,
    /// The round that a loop condition reads.
    pub round: Option<u32>,
    /// The time of the decision; none where its result is not recorded.
    pub now: Option<Timestamp>,
}

impl Scope for Sight<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        Ok(match read {
            Read::Namespace(namespace) => self.namespace(namespace),
            Read::StepOutputs(step) => self.seen(step).map_or(Value::Null, |place| self.outputs(place)),
            Read::StepStatus(step) => match self.seen(step) {
                Some(place) => Value::text(records::status(self.state, place)),
                None if self.program().is_flat() => Value::Null,
                None => Value::text("pending"),
            },
            Read::StepOutcome(step) => {
                let place = self.seen(step).and_then(|place| records::outcome(self.state, place));
                place.map_or(Value::Null, Value::text)
            }
            Read::StepRecord(step) => self.seen(step).map_or(Value::Null, |place| records::of(self, place)),
            Read::LoopItem(step) => self.frame_of(Some(step)).map_or(Value::Null, |frame| self.item(frame)),
            Read::LoopIndex(step) => self.index(Some(step)),
            Read::Now => match self.now {
                Some(now) => Value::text(now.to_string()),
                None => return Err(no_time()),
            },
        })
    }
}

impl<'a> Sight<'a> {
    /// What expressions can read before the first step.
    pub fn at_start(run: &'a RunId, state: &'a State) -> Self {
        Self { run, state, from: None, inside: false, env: Value::Null, failed: None, round: None, now: None }
    }

    pub fn program(&self) -> &'a Program {
        &self.state.unit(self.from).program
    }

    fn seen(&self, step: StepId) -> Option<Place> {
        self.state.seen_from(self.from, self.inside, step)
    }

    fn namespace(&self, namespace: Namespace) -> Value {
        let unit = self.state.unit(self.from);
        let header = &unit.program.plan.header;
        match namespace {
            Namespace::Inputs => unit.inputs.clone(),
            Namespace::Env => self.env.clone(),
            Namespace::Run => Value::map([
                ("id", Value::text(self.run.as_str())),
                ("started_at", Value::text(self.state.started_at.to_string())),
            ]),
            Namespace::Workflow => Value::map([
                ("id", Value::Text(header.id.clone())),
                ("name", Value::Text(header.name.clone())),
                ("version", Value::Text(header.version.clone())),
                ("dir", unit.folder.clone()),
            ]),
            Namespace::Secrets => Value::map(
                unit.program.plan.secrets.iter().map(|name| (name.clone(), Value::secret(name.clone()))),
            ),
            Namespace::Item => self.frame_of(None).map_or(Value::Null, |frame| self.item(frame)),
            Namespace::Index => self.index(None),
            Namespace::Steps => records::all(self),
            Namespace::Failure => self.because(|because| because.failure.clone()),
            Namespace::Undo => self.because(|because| because.undo.clone()),
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
            Namespace::Context | Namespace::Loops | Namespace::Host | Namespace::FanIn | Namespace::Root => {
                Value::Null
            }
        }
    }

    /// The instances from the reader outward, within the same workflow.
    fn outwards(&self) -> impl Iterator<Item = (Place, &'a Instance)> {
        let state = self.state;
        let unit = self.from.map_or(0, |from| state.at(from).unit);
        std::iter::successors(self.from, |place| state.at(*place).parent)
            .map(|place| (place, state.at(place)))
            .take_while(move |(_, instance)| instance.unit == unit)
    }

    /// The item around the reader: of this fan-out, or of the nearest one.
    fn frame_of(&self, step: Option<StepId>) -> Option<Place> {
        let mut frames = self.outwards().filter(|(_, instance)| instance.frame.is_some());
        let wanted = |(place, instance): &(Place, &Instance)| match step {
            Some(step) => instance.step == step,
            None => matches!(self.state.kind(*place), Kind::ForEach(_)),
        };
        frames.find(wanted).map(|(place, _)| place)
    }

    fn item(&self, frame: Place) -> Value {
        let instance = self.state.at(frame);
        let around = instance.parent.and_then(|parent| self.state.at(parent).within.as_deref());
        match (around, instance.frame) {
            (Some(Within::Items(items)), Some(number)) => {
                items.items.get(number as usize).cloned().unwrap_or(Value::Null)
            }
            (_, _) => Value::Null,
        }
    }

    /// The number of the item or round around the reader.
    fn index(&self, step: Option<StepId>) -> Value {
        if let (Some(round), None) = (self.round, step) {
            return Value::Int(i64::from(round));
        }
        let mut frames =
            self.outwards().filter(|(_, instance)| step.is_none_or(|step| instance.step == step));
        let number = frames.find_map(|(_, instance)| instance.frame);
        number.map_or(Value::Null, |number| Value::Int(i64::from(number)))
    }

    /// The reason for running the reader or a scope around it: a failure or an undo.
    fn because(&self, what: impl Fn(&super::state::Because) -> Value) -> Value {
        let because = self.outwards().find_map(|(_, instance)| instance.because.as_deref());
        because.map_or(Value::Null, what)
    }

    /// The outputs of a step.
    pub fn outputs(&self, place: Place) -> Value {
        let instance = self.state.at(place);
        match &instance.phase {
            Phase::Settled(settlement) => match &settlement.outcome {
                Outcome::Done(value) | Outcome::Continue(value) => value.clone(),
                Outcome::Failed(failure) => records::failed(self.state, place, failure),
                Outcome::Skipped(_) | Outcome::Cancelled(_) => records::undone(self.state, place),
            },
            Phase::Entered => records::so_far(self, place),
            Phase::Dormant
            | Phase::Waiting
            | Phase::Ready
            | Phase::Attempt(_)
            | Phase::Gate(_)
            | Phase::Wait(_)
            | Phase::Joined(_) => records::undone(self.state, place),
        }
    }

    pub fn value(&self, bound: &Bound) -> Result<Value, Failure> {
        render(&bound.template, self, &self.program().plan.semantics, &Limits::default())
            .map_err(|error| expression_error(&error, &bound.field))
    }

    pub fn optional(&self, bound: Option<&Bound>) -> Result<Option<Value>, Failure> {
        bound.map(|bound| self.value(bound)).transpose()
    }

    /// Whether a condition is true. An error never counts as false.
    pub fn holds(&self, condition: &Condition) -> Result<bool, Failure> {
        self.decide(condition).map(|(holds, _)| holds)
    }

    /// Whether a condition is true, and the value that decided.
    pub fn decide(&self, condition: &Condition) -> Result<(bool, Value), Failure> {
        let semantics = &self.program().plan.semantics;
        let value = self.evaluate(&condition.expr);
        let held = value.and_then(|value| Ok((holds(&value, semantics)?, value)));
        held.map_err(|error| expression_error(&error, &condition.field))
    }

    pub fn evaluate(&self, expr: &Expr) -> Result<Value, EvalError> {
        evaluate(expr, self, &self.program().plan.semantics, &Limits::default())
    }

    /// The inputs of a step, each checked against its type.
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
            } else if let Err(violation) = self.program().check(&input.ty, &value) {
                return Err(broken(&field(), &violation.path, &violation.message));
            }
            inputs.insert(name.clone(), value);
        }
        let inputs = Value::Map(Arc::new(inputs));
        check_size(|| format!("the input of `{}`", step.id), &inputs, VALUE_BYTES_MAX)?;
        Ok(inputs)
    }
}

/// Refuses a value that is too large when serialized. `what` names it in the message.
pub fn check_size(what: impl FnOnce() -> String, value: &Value, bytes_max: u64) -> Result<(), Failure> {
    if value.fits(bytes_max) {
        return Ok(());
    }
    let message = format!(
        "{} would take {} MiB of memory, more than the limit of {} MiB; pass on less, or the path of a file",
        what(),
        value.expanded_bytes().div_ceil(1 << 20),
        bytes_max >> 20
    );
    Err(Failure::new(class::EXPRESSION_ERROR, message))
}

fn no_time() -> EvalError {
    EvalError::new(Code::NotAvailableHere, "`now()` has no value here", "read it in a step")
}

pub fn expression_error(error: &EvalError, field: &Arc<str>) -> Failure {
    Failure::new(class::EXPRESSION_ERROR, error.message.as_str()).in_field(field.clone())
}

fn broken(field: &str, path: &str, message: &str) -> Failure {
    Failure::new(class::CONTRACT_VIOLATION, message).in_field(format!("{field}{path}"))
}

/// Checks a value against its declared type.
pub fn checked(program: &Program, field: &str, output: &Output, value: Value) -> Result<Value, Failure> {
    match (&value, &output.default) {
        (Value::Null, Some(default)) => Ok(default.clone()),
        (Value::Null, None) if output.required => {
            let message = format!("the required output `{field}` is missing");
            Err(Failure::new(class::CONTRACT_VIOLATION, message).in_field(field.to_owned()))
        }
        (Value::Null, None) => Ok(value),
        (_, _) => match program.check(&output.ty, &value) {
            Ok(()) => Ok(value),
            Err(violation) => Err(broken(field, &violation.path, &violation.message)),
        },
    }
}

/// Checks the outputs of a step against its contract: declared outputs first, with defaults filled in, then the rest.
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
    let mut all = Map::with_capacity(outputs.len().max(produced.len()));
    for (name, output) in outputs {
        let given = produced.get(name).cloned().unwrap_or(Value::Null);
        all.insert(name.clone(), checked(program, &format!("outputs.{name}"), output, given)?);
    }
    for (name, value) in produced.iter().filter(|(name, _)| !outputs.contains_key(*name)) {
        all.insert(name.clone(), value.clone());
    }
    Ok(Value::Map(Arc::new(all)))
}
