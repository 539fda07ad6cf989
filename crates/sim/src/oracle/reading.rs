//! The values that expressions read: steps by the rule of visibility, items and rounds, the environment, and
//! failures. Also checks contracts and collects outputs.

use super::Oracle;
use super::tree::{At, Inside, ListAt, ListKind, RUN, State};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_engine::{Failure, Outcome, Skip, SkipReason, class};
use windlass_ir::contract::{Contract, Type};
use windlass_ir::expr::{
    DoneWord, EvalError, FailedShape, Limits, Namespace, Read, RecoveredWord, Scope, StepId, Template,
    TimeoutWord, Visibility, evaluate, holds, render,
};
use windlass_ir::policy::Bindings;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Action, Condition, Kind, Output};
use windlass_ir::{Duration, Value};

/// The reader of an expression.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    oracle: &'a Oracle,
    at: At,
    /// A list inside the reader that it can also see.
    inside: Option<ListAt>,
    /// The number of the round that a loop condition reads.
    round: Option<u32>,
    /// The failed attempt, and the number of attempts.
    attempt: Option<(&'a Failure, u32)>,
    /// The surrounding environment, while evaluating the next level.
    env: Option<Value>,
}

impl<'a> Reader<'a> {
    pub fn new(oracle: &'a Oracle, at: At) -> Self {
        Self { oracle, at, inside: None, round: None, attempt: None, env: None }
    }

    pub fn with_inside(self, inside: Option<ListAt>) -> Self {
        Self { inside, ..self }
    }

    pub fn in_round(self, round: u32) -> Self {
        Self { round: Some(round), ..self }
    }

    pub fn after(self, failure: &'a Failure, tries: u32) -> Self {
        Self { attempt: Some((failure, tries)), ..self }
    }

    pub fn render(&self, template: &Template) -> Result<Value, Failure> {
        render(template, self, &self.oracle.plan.semantics, &Limits::default()).map_err(expression_error)
    }

    pub fn holds(&self, condition: &Condition) -> Result<bool, Failure> {
        let semantics = &self.oracle.plan.semantics;
        let value = evaluate(&condition.expr, self, semantics, &Limits::default());
        value.and_then(|value| holds(&value, semantics)).map_err(expression_error)
    }

    pub fn render_all(&self, bindings: &Bindings) -> Result<Map, Failure> {
        bindings.iter().map(|(name, bound)| Ok((name.clone(), self.render(&bound.template)?))).collect()
    }

    /// The declared outputs of a scope or of the run, each evaluated and checked.
    pub fn gather(&self, outputs: &IndexMap<Arc<str>, Output>) -> Result<Map, Failure> {
        let mut gathered = Map::new();
        for (name, output) in outputs {
            gathered.insert(name.clone(), self.gather_one(name, output)?);
        }
        Ok(gathered)
    }

    pub fn gather_one(&self, name: &str, output: &Output) -> Result<Value, Failure> {
        let source = output.source.as_ref();
        let value = source.map_or(Ok(Value::Null), |source| self.render(&source.template))?;
        kept(name, output, &value)
    }
}

impl Scope for Reader<'_> {
    fn read(&self, read: Read) -> Result<Value, EvalError> {
        let oracle = self.oracle;
        Ok(match read {
            Read::Namespace(namespace) => return self.namespace(namespace),
            Read::StepOutputs(step) => self.outputs(step),
            Read::StepStatus(step) => self.status(step),
            Read::StepOutcome(step) => self.outcome(step),
            Read::StepRecord(step) => self.record(step),
            Read::Now => Value::text(oracle.now.to_string()),
            Read::LoopItem(step) => {
                let frame = self.frame(|at| oracle.tree[at].step == Some(step));
                frame.map_or(Value::Null, |at| oracle.item(at))
            }
            Read::LoopIndex(step) => {
                let frame = self.frame(|at| oracle.tree[at].step == Some(step));
                frame.map_or(Value::Null, |at| oracle.number(at))
            }
        })
    }
}

impl Reader<'_> {
    fn namespace(&self, namespace: Namespace) -> Result<Value, EvalError> {
        let (oracle, header) = (self.oracle, &self.oracle.plan.header);
        let failed = |of: fn(&Failure) -> Value| self.attempt.map_or(Value::Null, |(failure, _)| of(failure));
        Ok(match namespace {
            Namespace::Inputs => oracle.inputs.clone(),
            Namespace::Steps => self.all_steps(),
            Namespace::Env => match &self.env {
                Some(env) => env.clone(),
                None => oracle.env_at(self.at)?,
            },
            Namespace::Run => Value::map([
                ("id", Value::text(oracle.run.as_str())),
                ("started_at", Value::text(oracle.started.to_string())),
            ]),
            Namespace::Workflow => Value::map([
                ("id", Value::Text(header.id.clone())),
                ("name", Value::Text(header.name.clone())),
                ("version", Value::Text(header.version.clone())),
            ]),
            Namespace::Item => self
                .frame(|at| matches!(oracle.step(at).kind, Kind::ForEach(_)))
                .map_or(Value::Null, |at| oracle.item(at)),
            Namespace::Index => match self.round {
                Some(round) => Value::Int(round.into()),
                None => self.frame(|_| true).map_or(Value::Null, |at| oracle.number(at)),
            },
            Namespace::Secrets => {
                let secrets = oracle.plan.secrets.iter();
                Value::map(secrets.map(|name| (name.clone(), Value::secret(name.clone()))))
            }
            Namespace::Failure => oracle.failure_seen(self.at),
            Namespace::Undo => oracle.undo_seen(self.at),
            Namespace::Class => failed(|failure| Value::Text(failure.class.clone())),
            Namespace::Message => failed(|failure| Value::Text(failure.message.clone())),
            Namespace::ExitCode => failed(|failure| {
                failure
                    .detail
                    .as_ref()
                    .and_then(|detail| detail.get("exit_code"))
                    .cloned()
                    .unwrap_or(Value::Null)
            }),
            Namespace::Attempt => self.attempt.map_or(Value::Null, |(_, tries)| Value::Int(tries.into())),
            Namespace::Context | Namespace::Loops | Namespace::Host | Namespace::FanIn | Namespace::Root => {
                Value::Null
            }
        })
    }

    /// The nearest matching item or round around the reader.
    fn frame(&self, wanted: impl Fn(At) -> bool) -> Option<At> {
        self.oracle.tree.outwards(self.at).find(|at| self.oracle.tree[*at].frame.is_some() && wanted(*at))
    }

    fn outputs(&self, step: StepId) -> Value {
        match self.seen(step) {
            Seen::Instance(at) => self.oracle.outputs_of(at),
            Seen::NotTaken => self.oracle.defaults(step),
            Seen::Nothing => Value::Null,
        }
    }

    fn status(&self, step: StepId) -> Value {
        match (self.seen(step), self.oracle.plan.semantics.visibility) {
            (Seen::Instance(at), _) => Value::text(self.oracle.status(at)),
            (Seen::NotTaken, _) => {
                let skip = Skip { reason: SkipReason::BranchNotTaken, because_of: None };
                Value::text(self.oracle.word(&Outcome::Skipped(skip), false))
            }
            (Seen::Nothing, Visibility::Scoped) => Value::text("pending"),
            (Seen::Nothing, Visibility::Flat) => Value::Null,
        }
    }

    fn outcome(&self, step: StepId) -> Value {
        let word = match self.seen(step) {
            Seen::Instance(at) => self.oracle.result(at).map(|outcome| match outcome {
                Outcome::Done(_) | Outcome::Continue(_) => "success",
                Outcome::Failed(_) => "failed",
                Outcome::Skipped(_) => "skipped",
                Outcome::Cancelled(_) => "cancelled",
            }),
            Seen::NotTaken => Some("skipped"),
            Seen::Nothing => None,
        };
        word.map_or(Value::Null, Value::text)
    }

    fn record(&self, step: StepId) -> Value {
        match self.seen(step) {
            Seen::Nothing => Value::Null,
            Seen::Instance(_) | Seen::NotTaken => {
                Value::map([("outputs", self.outputs(step)), ("status", self.status(step))])
            }
        }
    }

    fn all_steps(&self) -> Value {
        let numbered = (0u32..).zip(&self.oracle.plan.steps).filter(|(_, step)| !step.implicit);
        let records = numbered.map(|(number, step)| (step.id.clone(), self.record(StepId(number))));
        Value::map(records.filter(|(_, record)| *record != Value::Null))
    }

    fn seen(&self, step: StepId) -> Seen {
        match self.oracle.plan.semantics.visibility {
            Visibility::Scoped => self.seen_in_scope(step),
            Visibility::Flat => self.seen_anywhere(step),
        }
    }

    /// The instance in the reader's own list or in the nearest enclosing one. A step that handles a failure or undoes
    /// another is part of that step, not of a list.
    fn seen_in_scope(&self, step: StepId) -> Seen {
        let tree = &self.oracle.tree;
        for list in self.inside.into_iter().chain(tree.lists_around(self.at)) {
            let parts = tree.all().rev().find(|at| {
                let part = tree[*at].list.map(|list| &tree.lists[list]);
                let part = part.filter(|part| matches!(part.kind, ListKind::TakeOver | ListKind::Undo));
                tree[*at].step == Some(step) && part.is_some_and(|part| tree[part.owner].list == Some(list))
            });
            if let Some(at) = tree.member(list, step).or(parts) {
                return Seen::Instance(at);
            }
        }
        let around = self.oracle.plan.step(step).parent;
        let is_arm =
            around.is_some_and(|around| matches!(self.oracle.plan.step(around).kind, Kind::Choose(_)));
        if is_arm { Seen::NotTaken } else { Seen::Nothing }
    }

    /// The last settled instance among those that share the most items with the reader.
    fn seen_anywhere(&self, step: StepId) -> Seen {
        let tree = &self.oracle.tree;
        let shared = |at: At| tree.outwards(at).filter(|here| self.is_own_item(*here)).count();
        let settled = tree
            .all()
            .filter(|at| tree[*at].step == Some(step) && tree[*at].frame.is_none())
            .filter(|at| tree[*at].is_settled() && tree.outwards(*at).all(|here| self.sees_into(here)));
        let last = settled.max_by_key(|at| (shared(*at), tree[*at].order));
        // `finally` and undo steps see their own step before it has settled.
        let own = tree.outwards(self.at).find(|at| {
            tree[*at].step == Some(step) && tree[*at].frame.is_none() && self.oracle.result(*at).is_some()
        });
        own.or(last).map_or(Seen::Nothing, Seen::Instance)
    }

    fn is_own_item(&self, frame: At) -> bool {
        self.oracle.is_item(frame) && self.oracle.tree.is_inside(self.at, frame)
    }

    /// Whether the reader can see into this instance, if it is an item.
    fn sees_into(&self, here: At) -> bool {
        let (oracle, tree) = (self.oracle, &self.oracle.tree);
        if !oracle.is_item(here) || self.is_own_item(here) {
            return true;
        }
        let Kind::ForEach(each) = &oracle.step(here).kind else { return true };
        let beside =
            tree.outwards(self.at).any(|own| tree[own].frame.is_some() && tree[own].list == tree[here].list);
        !each.isolated && (!beside || each.concurrency == Some(1))
    }
}

/// The result of looking up a step.
enum Seen {
    Instance(At),
    /// It is in an arm that was not taken.
    NotTaken,
    Nothing,
}

impl Oracle {
    fn is_item(&self, at: At) -> bool {
        self.tree[at].frame.is_some() && matches!(self.step(at).kind, Kind::ForEach(_))
    }

    fn item(&self, frame: At) -> Value {
        self.tree[frame].frame.as_ref().map_or(Value::Null, |frame| frame.item.clone())
    }

    fn number(&self, frame: At) -> Value {
        self.tree[frame].frame.as_ref().map_or(Value::Null, |frame| Value::Int(frame.number.into()))
    }

    /// The outcome of a step, as its `finally` and undo steps see it even before it has settled.
    pub fn result(&self, at: At) -> Option<Outcome> {
        match &self.tree[at].state {
            State::Settled(outcome) => Some(outcome.clone()),
            State::TakenOver(failure) => Some(Outcome::Failed(failure.clone())),
            State::Entered if matches!(self.tree[at].inside, Some(Inside::Steps)) => {
                let Kind::Guard(_) = self.tree[at].step.map(|step| &self.plan.step(step).kind)? else {
                    return None;
                };
                let body = self.tree.list_of(at, ListKind::Body)?;
                self.tree.members(body).first().and_then(|body| self.result(*body))
            }
            State::Pending
            | State::Queued
            | State::Joined { .. }
            | State::Next { .. }
            | State::Out { .. }
            | State::Asking { .. }
            | State::Waiting { .. }
            | State::Entered
            | State::Left => None,
        }
    }

    /// The outputs of a step as others read them.
    pub fn outputs_of(&self, at: At) -> Value {
        match (self.result(at), self.tree[at].step) {
            (Some(Outcome::Done(value) | Outcome::Continue(value)), _) => value,
            (Some(Outcome::Failed(failure)), Some(step))
                if self.plan.semantics.results.failed == FailedShape::Produced =>
            {
                laid_over(&self.defaults(step), &self.left_by_failed(step, &failure))
            }
            (Some(Outcome::Failed(_) | Outcome::Skipped(_) | Outcome::Cancelled(_)), Some(step)) => {
                self.defaults(step)
            }
            (_, _) => Value::Null,
        }
    }

    /// The outputs of failed work: what a command printed, and declared outputs of the right type.
    fn left_by_failed(&self, step: StepId, failure: &Failure) -> Value {
        let step = self.plan.step(self.plan.unguarded(step));
        let printed: &[&str] = match &step.kind {
            Kind::Action(Action::Shell(_)) => &["exit_code", "stdout", "stdout_raw", "stderr"],
            Kind::Action(_) => &[],
            // A scope fails with the failure of a step inside.
            _ => return Value::map::<&str>([]),
        };
        let mut found = entries(failure.detail.as_ref().unwrap_or(&Value::Null));
        found.retain(|name, value| match step.outputs.get(name) {
            Some(output) => {
                *value != Value::Null && Contract::new(&output.ty).is_ok_and(|ty| ty.check(value).is_ok())
            }
            None => printed.contains(&&**name),
        });
        Value::Map(Arc::new(found))
    }

    /// The outputs of a step that is not done: their defaults, or null.
    fn defaults(&self, step: StepId) -> Value {
        let outputs = &self.plan.step(self.plan.unguarded(step)).outputs;
        let default = |output: &Output| output.default.clone().unwrap_or(Value::Null);
        Value::map(outputs.iter().map(|(name, output)| (name.clone(), default(output))))
    }

    pub fn status(&self, at: At) -> &'static str {
        match (self.result(at), &self.tree[at].state) {
            (Some(outcome), _) => self.word(&outcome, self.tree[at].recovered),
            (None, State::Pending | State::Queued) => "pending",
            (None, State::Asking { .. } | State::Waiting { .. } | State::Left) => "waiting",
            (
                None,
                State::Next { .. }
                | State::Joined { .. }
                | State::Out { .. }
                | State::Entered
                | State::TakenOver(_)
                | State::Settled(_),
            ) => "running",
        }
    }

    fn word(&self, outcome: &Outcome, recovered: bool) -> &'static str {
        let words = self.plan.semantics.status;
        match outcome {
            Outcome::Done(_) | Outcome::Continue(_) if words.done == DoneWord::Success => "success",
            Outcome::Done(_) | Outcome::Continue(_) => "completed",
            Outcome::Failed(_) if recovered && words.recovered == RecoveredWord::Recovered => "recovered",
            Outcome::Failed(failure)
                if &*failure.class == class::TIMEOUT && words.timeout == TimeoutWord::TimedOut =>
            {
                "timed_out"
            }
            Outcome::Failed(_) => "failed",
            Outcome::Skipped(_) => "skipped",
            Outcome::Cancelled(_) => "cancelled",
        }
    }

    /// The environment of a step: that of the run, extended by each enclosing step.
    fn env_at(&self, at: At) -> Result<Value, EvalError> {
        let Some(list) = self.tree[at].list else { return Ok(self.env.clone()) };
        let around = self.env_at(self.tree.lists[list].owner)?;
        if self.tree[at].frame.is_some() {
            return Ok(around);
        }
        let reader = Reader { env: Some(around.clone()), ..Reader::new(self, at) };
        let mut env = entries(&around);
        for (name, bound) in &self.step(at).env {
            let value = render(&bound.template, &reader, &self.plan.semantics, &Limits::default())?;
            env.insert(name.clone(), value);
        }
        Ok(Value::Map(Arc::new(env)))
    }

    /// The environment of the run, evaluated once from its inputs.
    pub fn run_env(&self) -> Value {
        let reader = Reader { env: Some(Value::Null), ..Reader::new(self, RUN) };
        reader.render_all(&self.plan.env).map_or(Value::Null, |env| Value::Map(Arc::new(env)))
    }

    /// The failure that the nearest handler or undo step reads, or the rejection that sent the step back.
    fn failure_seen(&self, at: At) -> Value {
        for here in self.tree.outwards(at) {
            if self.tree[here].feedback != Value::Null {
                return self.tree[here].feedback.clone();
            }
            let Some(list) = self.tree[here].list.map(|list| &self.tree.lists[list]) else { break };
            match (list.kind, &self.tree[list.owner].state) {
                (
                    ListKind::TakeOver,
                    State::TakenOver(failure) | State::Settled(Outcome::Failed(failure)),
                ) => {
                    return failed(&self.step(list.owner).id, failure);
                }
                (ListKind::Undo, _) => return self.why_undone(list.owner),
                (_, _) => {}
            }
        }
        Value::Null
    }

    /// The failure or cancellation that requires undoing a step.
    fn why_undone(&self, at: At) -> Value {
        let Some(undoer) = self
            .tree
            .outwards(at)
            .find(|here| self.tree[*here].undoing.as_ref().is_some_and(|undoing| undoing.contains(&at)))
        else {
            return Value::Null;
        };
        let body = self.tree.list_of(undoer, ListKind::Body);
        let halted = body.and_then(|body| self.tree.lists[body].halted);
        match halted.and_then(|halted| Some((halted, self.tree[halted].failure()?))) {
            Some((halted, failure)) => failed(&self.step(halted).id, failure),
            None => failed("", &Failure::new(class::CANCELLED, "cancelled")),
        }
    }

    fn undo_seen(&self, at: At) -> Value {
        let mut lists = self.tree.lists_around(at).map(|list| &self.tree.lists[list]);
        let Some(list) = lists.find(|list| list.kind == ListKind::Undo) else { return Value::Null };
        let step = Value::Text(self.step(list.owner).id.clone());
        let is_lost = self.is_lost(list.owner);
        let output = if is_lost { Value::Null } else { self.outputs_of(list.owner) };
        Value::map([("step", step), ("output", output), ("uncertain", Value::Bool(is_lost))])
    }
}

fn failed(step: &str, failure: &Failure) -> Value {
    Value::map([
        ("step", Value::text(step)),
        ("class", Value::Text(failure.class.clone())),
        ("message", Value::Text(failure.message.clone())),
        ("detail", failure.detail.clone().unwrap_or(Value::Null)),
    ])
}

pub fn expression_error(error: EvalError) -> Failure {
    Failure::new(class::EXPRESSION_ERROR, error.message)
}

pub fn violation(what: &str) -> Failure {
    Failure::new(class::CONTRACT_VIOLATION, format!("{what} does not keep its contract"))
}

pub fn fits(value: &Value, ty: &Type) -> bool {
    Contract::new(ty).is_ok_and(|contract| contract.check(value).is_ok())
}

/// Checks one output: null becomes its default, and a required output must be present and of its type.
fn kept(name: &str, output: &Output, value: &Value) -> Result<Value, Failure> {
    let value = match value {
        Value::Null => output.default.clone().unwrap_or(Value::Null),
        value => value.clone(),
    };
    let good = if value == Value::Null { !output.required } else { fits(&value, &output.ty) };
    if good { Ok(value) } else { Err(violation(name)) }
}

/// Checks the result of an action against its declared outputs. Without a declaration, anything is valid.
pub fn produced(value: &Value, outputs: &IndexMap<Arc<str>, Output>) -> Result<Value, Failure> {
    if outputs.is_empty() {
        return Ok(value.clone());
    }
    let Value::Map(given) = value else { return Err(violation("the answer")) };
    let mut all = (**given).clone();
    for (name, output) in outputs {
        let value = kept(name, output, given.get(name).unwrap_or(&Value::Null))?;
        all.insert(name.clone(), value);
    }
    Ok(Value::Map(Arc::new(all)))
}

/// The entries of an object; none for other values.
pub fn entries(value: &Value) -> Map {
    match value {
        Value::Map(map) => (**map).clone(),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Sealed(_)
        | Value::List(_) => Map::new(),
    }
}

/// Merges one object over another.
pub fn laid_over(below: &Value, above: &Value) -> Value {
    match (below, above) {
        (_, Value::Null) => below.clone(),
        (Value::Map(below), Value::Map(above)) => {
            let both = below.iter().chain(above.iter());
            Value::map(both.map(|(name, value)| (name.clone(), value.clone())))
        }
        (_, _) => above.clone(),
    }
}

/// A duration other than zero.
pub fn some_time(length: Option<Duration>) -> Option<Duration> {
    length.filter(|length| *length > Duration::ZERO)
}
