//! The results of steps, in the shapes and words that the plan's rules name.

use super::state::{Instance, List, Phase, Place, Role, State, Within};
use super::values::Sight;
use crate::event::Question;
use crate::outcome::{Failure, Outcome, class};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::{
    BranchShape, FailedShape, GateShape, ItemShape, ItemsShape, Occurrences, RecordShape, RepeatShape,
    StepState, UndoneShape, WaitShape, is_truthy,
};
use windlass_ir::plan::PlanStep;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Action, Ask, Gate, Kind, OnReject, Recorded, RepeatTest};

/// The word for the status of a step.
pub fn status(state: &State, place: Place) -> &'static str {
    let so_far = || ended_so_far(state, place).map(|outcome| ended(&outcome, false));
    let current = match &state.at(place).phase {
        Phase::Settled(settlement) => ended(&settlement.outcome, settlement.recovered),
        Phase::Attempt(_) | Phase::Joined(_) => StepState::Running,
        Phase::Entered => so_far().unwrap_or(StepState::Entered),
        Phase::Gate(_) | Phase::Wait(_) => StepState::Waiting,
        Phase::Dormant | Phase::Waiting | Phase::Ready => StepState::Pending,
    };
    state.program(place).plan.semantics.status.word(current)
}

/// How a step ended: the same four words in all dialects. None before its end.
pub fn outcome(state: &State, place: Place) -> Option<&'static str> {
    let so_far = || ended_so_far(state, place);
    let outcome = state.at(place).outcome().cloned().or_else(so_far)?;
    Some(match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => "success",
        Outcome::Failed(_) => "failed",
        Outcome::Skipped(_) => "skipped",
        Outcome::Cancelled(_) => "cancelled",
    })
}

/// The outcome so far of a step that is not settled, as seen by the step that handles its failure and by its
/// `finally` steps.
fn ended_so_far(state: &State, place: Place) -> Option<Outcome> {
    match (state.at(place).within.as_deref(), state.kind(place)) {
        (Some(Within::TakenOver(failure)), _) => Some(Outcome::Failed(failure.clone())),
        (_, Kind::Guard(_)) => {
            let body = state.list(Some(place), Role::Body)?.places().next()?;
            let inner = || ended_so_far(state, body);
            state.at(body).outcome().cloned().or_else(inner)
        }
        (_, _) => None,
    }
}

fn ended(outcome: &Outcome, recovered: bool) -> StepState {
    match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => StepState::Done,
        Outcome::Failed(failure) => {
            StepState::Failed { timed_out: &*failure.class == class::TIMEOUT, recovered }
        }
        Outcome::Skipped(_) => StepState::Skipped,
        Outcome::Cancelled(_) => StepState::Cancelled,
    }
}

fn step_of(state: &State, place: Place) -> &PlanStep {
    state.program(place).step(state.at(place).step)
}

/// The outputs of a step that has not succeeded: its declared defaults, or nothing.
pub fn undone(state: &State, place: Place) -> Value {
    let program = state.program(place);
    match program.shapes().undone {
        UndoneShape::Defaults => {
            let outputs = &program.step(program.plan.unguarded(state.at(place).step)).outputs;
            let default = |output: &windlass_ir::workflow::Output| output.default.clone();
            Value::map(
                outputs.iter().map(|(name, output)| (name.clone(), default(output).unwrap_or(Value::Null))),
            )
        }
        UndoneShape::Nothing => match state.kind(place) {
            Kind::Slot(name) => Value::map([("slot", Value::Text(name.clone()))]),
            _ => Value::Null,
        },
    }
}

/// The outputs of a failed step.
pub fn failed(state: &State, place: Place, failure: &Failure) -> Value {
    match state.program(place).shapes().failed {
        FailedShape::Detail => match scope_so_far(state, place) {
            Value::Null if matches!(state.kind(place), Kind::ForEach(_)) => Value::map([
                ("items", Value::list([])),
                ("max_concurrency", at_once_of(state, place, None)),
                ("item_count", Value::Int(0)),
            ]),
            Value::Null => failure.detail.clone().unwrap_or_else(|| Value::map::<&str>([])),
            scope => scope,
        },
        FailedShape::Progress if matches!(state.kind(place), Kind::Parallel(_)) => {
            Value::map([("branch_results", branches(state, place))])
        }
        FailedShape::Progress => scope_so_far(state, place),
        FailedShape::AsUndone => undone(state, place),
        FailedShape::Produced => super::merged(&undone(state, place), &produced(state, place, failure)),
    }
}

/// What a command prints, whether it succeeds or fails.
const PRINTED: [&str; 4] = ["exit_code", "stdout", "stdout_raw", "stderr"];

/// The outputs that failed work has left behind: those of its kind, and the declared ones that satisfy their contract. The
/// failure of a scope is that of a step inside, whose outputs are not its own.
fn produced(state: &State, place: Place, failure: &Failure) -> Value {
    let program = state.program(place);
    let step = program.step(program.plan.unguarded(state.at(place).step));
    let is_command = matches!(step.kind, Kind::Action(Action::Shell(_)));
    let (Kind::Action(_), Some(Value::Map(left))) = (&step.kind, &failure.detail) else {
        return Value::map::<&str>([]);
    };
    let is_output = |(name, value): &(&Arc<str>, &Value)| match step.outputs.get(*name) {
        Some(output) => **value != Value::Null && program.check(&output.ty, value).is_ok(),
        None => is_command && PRINTED.contains(&&***name),
    };
    Value::map(left.iter().filter(is_output).map(|(name, value)| (name.clone(), value.clone())))
}

/// The outputs of a scope that is not settled.
pub fn so_far(sight: &Sight<'_>, place: Place) -> Value {
    let state = sight.state;
    match ended_so_far(state, place) {
        Some(Outcome::Done(value) | Outcome::Continue(value)) => value,
        Some(Outcome::Failed(failure)) => failed(state, place, &failure),
        Some(Outcome::Skipped(_) | Outcome::Cancelled(_)) => undone(state, place),
        None => match scope_so_far(state, place) {
            Value::Null => undone(state, place),
            value => value,
        },
    }
}

/// Some shapes are readable as soon as the scope is entered.
fn scope_so_far(state: &State, place: Place) -> Value {
    let shapes = state.program(place).shapes();
    let from_entry = match state.kind(place) {
        Kind::Choose(_) => shapes.branch != BranchShape::Name,
        Kind::Repeat(_) => shapes.repeat == RepeatShape::Test,
        Kind::ForEach(_) => shapes.items == ItemsShape::Report,
        _ => false,
    };
    match state.at(place).within.as_deref().filter(|_| from_entry) {
        Some(Within::Arm { arm, value }) => chosen(state, place, arm, value),
        Some(Within::Rounds(rounds)) => repeated(state, place, rounds.begun, &rounds.value),
        Some(Within::Items(_)) => items_result(state, place).unwrap_or(Value::Null),
        Some(_) | None => Value::Null,
    }
}

/// The result of a branch, in addition to its declared outputs.
pub fn chosen(state: &State, place: Place, arm: &Arc<str>, value: &Value) -> Value {
    use windlass_ir::workflow::Choose;
    match (state.program(place).shapes().branch, state.kind(place)) {
        (BranchShape::Case, Kind::Choose(Choose::If { .. })) => {
            Value::map([("condition_result", Value::Bool(&**arm == "then"))])
        }
        (BranchShape::Case, _) => {
            let default = Arc::from("__default__");
            let matched = if &**arm == "default" { &default } else { arm };
            Value::map([("matched_case", Value::Text(matched.clone())), ("expression_value", value.clone())])
        }
        (BranchShape::Condition, _) => {
            Value::map([("condition", value.clone()), ("taken", Value::Text(arm.clone()))])
        }
        (BranchShape::Name, _) => Value::map([("branch", Value::Text(arm.clone()))]),
    }
}

/// The result of a loop, in addition to its declared outputs.
pub fn repeated(state: &State, place: Place, rounds: u32, value: &Value) -> Value {
    let Kind::Repeat(repeat) = state.kind(place) else { return Value::Null };
    let semantics = &state.program(place).plan.semantics;
    let max = Value::Int(i64::from(repeat.rounds_max));
    match (semantics.results.repeat, repeat.test) {
        (RepeatShape::Test, RepeatTest::While) => Value::map([
            ("condition_result", Value::Bool(is_truthy(value, semantics).unwrap_or(false))),
            ("max_iterations", max),
            ("loop_type", Value::text("while")),
        ]),
        (RepeatShape::Test, RepeatTest::Until | RepeatTest::DoWhile) => Value::map([
            ("condition", repeat.as_written.clone().unwrap_or(Value::Null)),
            ("max_iterations", max),
            ("loop_type", Value::text("do-while")),
        ]),
        (RepeatShape::Count, _) => Value::map([
            ("iterations", Value::Int(i64::from(rounds))),
            ("exhausted", Value::Bool(*value == Value::Bool(true))),
        ]),
    }
}

/// The result of a fan-out.
pub fn items_result(state: &State, place: Place) -> Option<Value> {
    let Some(Within::Items(items)) = state.at(place).within.as_deref() else { return None };
    let shape = state.program(place).shapes().items;
    let count = items.items.len() as u32;
    // After a failed item, the results end, or contain null.
    let end = match shape {
        ItemsShape::Report => items.failed.unwrap_or(count).min(items.next),
        ItemsShape::List | ItemsShape::Iterations => count,
    };
    let result = |number: u32| items.results.get(&number).cloned().unwrap_or(Value::Null);
    let results = Value::list((0..end).map(result));
    Some(match shape {
        ItemsShape::List => results,
        ItemsShape::Iterations => Value::map([("iterations", results)]),
        ItemsShape::Report => Value::map([
            ("items", Value::List(items.items.clone())),
            ("max_concurrency", at_once_of(state, place, items.at_once)),
            ("item_count", Value::Int(items.items.len() as i64)),
            ("results", results),
        ]),
    })
}

/// The concurrency as written in the file.
fn at_once_of(state: &State, place: Place, at_once: Option<u32>) -> Value {
    let written = match state.kind(place) {
        Kind::ForEach(each) => each.as_written.clone(),
        _ => None,
    };
    written.unwrap_or_else(|| Value::Int(i64::from(at_once.unwrap_or(1))))
}

/// The result of one item: the outputs of its only step, or the outputs of each step by id.
pub fn frame_result(sight: &Sight<'_>, frame: Place) -> Value {
    let state = sight.state;
    let Some(list) = state.list(Some(frame), Role::Body) else { return Value::Null };
    let program = state.program(frame);
    // Steps that handle failures or undo others are not part of the result.
    let places: Vec<Place> = list.places().filter(|place| !step_of(state, *place).takes_over).collect();
    match (program.shapes().item, places.as_slice()) {
        (ItemShape::Steps, [only]) => sight.outputs(*only),
        (ItemShape::Steps, _) => {
            Value::map(places.iter().map(|place| (step_of(state, *place).id.clone(), sight.outputs(*place))))
        }
        (ItemShape::AllInside, _) => {
            let mut outputs = Map::new();
            gather(sight, &places, &mut outputs);
            Value::Map(Arc::new(outputs))
        }
    }
}

/// Collects the outputs of completed steps at any depth, by step id.
fn gather(sight: &Sight<'_>, places: &[Place], outputs: &mut Map) {
    let done = |place: &&Place| matches!(sight.state.at(**place).outcome(), Some(Outcome::Done(_)));
    for place in places.iter().filter(done) {
        let step = step_of(sight.state, *place);
        let output = sight.outputs(*place);
        if let (Kind::ForEach(_), Some(Value::List(iterations))) = (&step.kind, output.get("iterations")) {
            // The last iteration wins, and includes everything inside it.
            if let Some(Value::Map(last)) = iterations.last() {
                outputs.extend(last.iter().map(|(id, output)| (id.clone(), output.clone())));
            }
        } else if let Some(list) = sight.state.list(Some(*place), Role::Body) {
            gather(sight, &list.places().collect::<Vec<_>>(), outputs);
        }
        if !step.implicit {
            outputs.insert(step.id.clone(), output);
        }
    }
}

/// The status words of parallel branches.
pub fn branches(state: &State, place: Place) -> Value {
    let words = &state.program(place).plan.semantics.status;
    let list = state.list(Some(place), Role::Body);
    let outcomes = list.into_iter().flat_map(List::places).filter_map(|place| state.at(place).outcome());
    Value::list(outcomes.map(|outcome| Value::text(words.word(ended(outcome, false)))))
}

/// A decision at a gate.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    pub choice: &'a Arc<str>,
    pub approved: bool,
    pub by: &'a str,
    pub reason: Option<&'a Arc<str>>,
    pub form: &'a Map,
}

/// The result of a gate after a decision.
pub fn decided(state: &State, place: Place, gate: &Gate, verdict: Verdict<'_>) -> Value {
    let reason = verdict.reason.map_or(Value::Null, |reason| Value::Text(reason.clone()));
    let asked = match &state.at(place).phase {
        Phase::Gate(asking) => Some(&*asking.question),
        _ => None,
    };
    let message = asked.and_then(|question| question.message.clone()).unwrap_or(Value::Null);
    let choice = Value::Text(verdict.choice.clone());
    match state.program(place).shapes().gate {
        GateShape::Decision => {
            let mut outputs = Map::new();
            let word = if verdict.approved { "approved" } else { "rejected" };
            outputs.insert("decision".into(), Value::text(word));
            outputs.insert("by".into(), Value::text(verdict.by));
            outputs.insert("reason".into(), reason);
            outputs.insert("choice".into(), choice);
            outputs.extend(verdict.form.iter().map(|(name, value)| (name.clone(), value.clone())));
            Value::Map(Arc::new(outputs))
        }
        GateShape::Question => {
            let mut outputs = question_with(gate, asked, choice);
            if !verdict.approved && gate.on_reject == OnReject::Abort {
                outputs.insert("aborted".into(), Value::Bool(true));
            }
            Value::Map(Arc::new(outputs))
        }
        GateShape::Description => {
            let metadata = gate.metadata.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone())));
            Value::map([
                ("description", message),
                ("metadata", Value::map(metadata)),
                ("by", Value::text(verdict.by)),
                ("reason", reason),
            ])
        }
        GateShape::Approval => Value::map([("approved", Value::Bool(verdict.approved)), ("reason", reason)]),
    }
}

/// The result of a gate without a decision.
pub fn undecided(state: &State, place: Place, gate: &Gate) -> Option<Value> {
    let Phase::Gate(asking) = &state.at(place).phase else { return None };
    let is_kept = state.program(place).shapes().gate == GateShape::Question;
    is_kept.then(|| Value::Map(Arc::new(question_with(gate, Some(&asking.question), Value::Null))))
}

fn question_with(gate: &Gate, asked: Option<&Question>, choice: Value) -> Map {
    let part = |part: fn(&Question) -> &Option<Value>| asked.and_then(|asked| part(asked).clone());
    let options = gate.options.iter().map(|option| Value::Text(option.clone()));
    Map::from_iter([
        ("message".into(), part(|asked| &asked.message).unwrap_or(Value::Null)),
        ("options".into(), Value::list(options)),
        ("on_reject".into(), Value::text(reject_word(&gate.on_reject))),
        ("show_file".into(), part(|asked| &asked.show_file).unwrap_or(Value::Null)),
        ("choice".into(), choice),
    ])
}

/// The error of a gate whose result is an approval.
pub fn denied(reason: &str) -> Arc<str> {
    format!("approval denied: {reason}").into()
}

fn reject_word(on_reject: &OnReject) -> &'static str {
    match on_reject {
        OnReject::Fail => "fail",
        OnReject::Abort => "abort",
        OnReject::Skip => "skip",
        OnReject::Retry => "retry",
        OnReject::Back { .. } => "back",
    }
}

/// The result of a wait.
pub fn waited(state: &State, place: Place, value: Value) -> Value {
    match state.program(place).shapes().wait {
        WaitShape::Value => Value::map([("value", value)]),
        WaitShape::Plain => value,
    }
}

/// The full record of a step.
pub fn of(sight: &Sight<'_>, place: Place) -> Value {
    let state = sight.state;
    let instance = state.at(place);
    let output = sight.outputs(place);
    match state.program(place).shapes().record {
        RecordShape::WithFiles => {
            let refs =
                [output.get("file_refs"), output.get("context").and_then(|context| context.get("file_refs"))];
            let refs = Value::list(refs.into_iter().flatten().flat_map(well_formed));
            Value::map([("output", output), ("file_refs", refs)])
        }
        RecordShape::Everything => everything(state, place, instance, &output),
        RecordShape::Outputs => {
            Value::map([("outputs", output), ("status", Value::text(status(state, place)))])
        }
    }
}

/// A reference to a file needs an address and a time.
fn well_formed(refs: &Value) -> impl Iterator<Item = Value> {
    let is_whole = |entry: &&Value| {
        ["uri", "created_at"].iter().all(|key| entry.get(key).and_then(Value::as_str).is_some())
    };
    let entries = match refs {
        Value::List(entries) => &entries[..],
        _ => &[],
    };
    entries.iter().filter(is_whole).cloned()
}

fn everything(state: &State, place: Place, instance: &Instance, output: &Value) -> Value {
    let step = step_of(state, place);
    let error = match instance.outcome() {
        Some(Outcome::Failed(failure)) => Value::Text(failure.message.clone()),
        Some(_) | None => Value::Null,
    };
    let plain = Recorded::default();
    let beside = step.recorded.as_deref().unwrap_or(&plain).beside(|name| output.get(name).cloned());
    let mut record = Map::from_iter([("type".into(), Value::Text(step.word.clone()))]);
    record.extend(beside.map(|(name, value)| (name.into(), value)));
    record.extend([
        ("output".into(), output.clone()),
        ("status".into(), Value::text(status(state, place))),
        ("error".into(), error),
    ]);
    if let Kind::Action(Action::Assistant(assistant)) = &step.kind
        && matches!(assistant.ask, Ask::Command { .. })
    {
        let runtime = ["integration_args", "integration_options"];
        record.extend(runtime.into_iter().filter_map(|name| Some((name.into(), output.get(name)?.clone()))));
    }
    Value::Map(Arc::new(record))
}

/// The records of all steps by name, including rounds and items that have names.
pub fn all(sight: &Sight<'_>) -> Value {
    let state = sight.state;
    let unit = state.unit(sight.from);
    let mut records = Map::new();
    for number in 0..unit.program.plan.steps.len() as u32 {
        let step = windlass_ir::expr::StepId(number);
        let known = unit.program.step(step);
        let seen = state.seen_from(sight.from, sight.inside, step).filter(|_| !known.implicit);
        if let Some(place) = seen.filter(|place| state.at(*place).started_at.is_some()) {
            records.insert(known.id.clone(), of(sight, place));
        }
    }
    if unit.program.shapes().occurrences == Occurrences::Each {
        for (place, name) in super::occurrences::all(state, sight.from) {
            // No step of the plan has this name, so expressions read its outputs by the word that all dialects share.
            let outputs = Value::map([("outputs", sight.outputs(place))]);
            records.insert(name, super::merged(&of(sight, place), &outputs));
        }
    }
    Value::Map(Arc::new(records))
}
