//! Writes stages: the common keys, and the stages that contain others.

use super::policy::{Shared, limits};
use super::values::{any, bindings, condition, stage_condition, switch};
use super::work;
use super::yaml::{Map, Yaml};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::workflow::{
    BranchFailure, Choose, ForEach, Guard, Input, ItemFailure, Items, Kind, Output, Parallel, Recorded,
    Repeat, RepeatTest, Step,
};
use windlass_ir::{Type, Value};

/// A list of stages, each on its own lines.
pub fn list(steps: &[Step], shared: &Shared) -> Yaml {
    Yaml::Lines(steps.iter().map(|step| stage(step, shared).into()).collect())
}

fn stage(step: &Step, shared: &Shared) -> Map {
    match &step.kind {
        Kind::Guard(guard) => guarded(step, guard, shared),
        _ => parts(step, step, shared),
    }
}

/// A guard is written as the stage inside it, with its `compensate` and `finally`.
fn guarded(step: &Step, guard: &Guard<Vec<Step>>, shared: &Shared) -> Map {
    let mut map = guard.body.first().map_or_else(Map::in_lines, |inner| parts(step, inner, shared));
    for (key, body) in [("compensate", &guard.compensate), ("finally", &guard.finally)] {
        map.put_some(key, body.as_ref().map(|body| handler(body, shared)));
    }
    map
}

fn handler(body: &[Step], shared: &Shared) -> Yaml {
    match body {
        [only] if only.implicit => stage(only, shared).into(),
        _ => list(body, shared),
    }
}

/// The members that are not as in every record.
fn recorded(recorded: &Recorded) -> Yaml {
    let plain = Recorded::default();
    let mut map = Map::in_lines();
    let members = [
        ("integration", &recorded.integration, &plain.integration),
        ("model", &recorded.model, &plain.model),
        ("options", &recorded.options, &plain.options),
        ("input", &recorded.input, &plain.input),
    ];
    for (name, value, _) in members.into_iter().filter(|(_, value, plain)| value != plain) {
        map.put(name, value);
    }
    map.into()
}

/// `outer` provides the identity and the condition, `inner` the work; they differ only if the stage is guarded.
fn parts(outer: &Step, inner: &Step, shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    if !outer.implicit {
        map.put("id", &outer.id.value);
    }
    if outer.name != outer.id.value {
        map.put("name", &outer.name);
    }
    map.put_some("description", outer.description.as_ref());
    let word = word(&inner.kind);
    if word != "agent" {
        map.put("type", word);
    }
    let needs = outer.needs.iter().map(|need| Yaml::from(&need.value)).collect::<Vec<_>>();
    map.put_filled("depends_on", needs);
    map.put_some("condition", outer.condition.as_ref().map(stage_condition));
    kind(&inner.kind, shared, &mut map);
    map.put_filled("inputs", ports(&inner.inputs, input));
    map.put_filled("outputs", ports(&inner.outputs, output));
    map.put_filled("env", bindings(&outer.env));
    map.put_some("recorded", outer.recorded.as_deref().map(recorded));
    map.put_filled("error_policy", shared.of_stage(outer, inner));
    map.put_some("compensate", outer.policy.compensate.as_ref().map(|target| &target.value));
    limits(&inner.policy, &mut map);
    map
}

fn word(kind: &Kind<Vec<Step>>) -> &'static str {
    match kind {
        Kind::Action(action) => work::word(action),
        Kind::Gate(_) => "gate",
        Kind::Wait(_) => "wait",
        Kind::Assign(_) => "assign",
        Kind::Finish(_) => "finish",
        Kind::Slot(_) => "slot",
        Kind::Parallel(_) => "parallel",
        Kind::ForEach(_) => "fan_out",
        Kind::Repeat(_) => "loop",
        Kind::Choose(_) => "branch",
        // A guard inside a guard has no syntax of its own, so its body is written as a block.
        Kind::Block(_) | Kind::Guard(_) => "block",
    }
}

fn kind(kind: &Kind<Vec<Step>>, shared: &Shared, map: &mut Map) {
    match kind {
        Kind::Action(action) => work::action(action, shared, map),
        Kind::Gate(gate) => map.put("gate", work::gate(gate, shared.foreign)),
        Kind::Wait(wait) => map.put("wait", work::wait(wait)),
        Kind::Assign(set) => map.put("set", bindings(set)),
        Kind::Finish(finish) => map.put_filled("finish", work::finish(finish)),
        Kind::Slot(name) => map.put("slot", name),
        Kind::Block(body) => map.put("stages", list(body, shared)),
        Kind::Parallel(parallel) => map.put("parallel", side_by_side(parallel, shared)),
        Kind::ForEach(each) => map.put("fan_out", fan_out(each, shared)),
        Kind::Repeat(repeat) => map.put("loop", repeated(repeat, shared)),
        Kind::Choose(choose) => map.put("branch", branch(choose, shared)),
        Kind::Guard(guard) => map.put("stages", list(&guard.body, shared)),
    }
}

fn side_by_side(parallel: &Parallel<Vec<Step>>, shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    match parallel.on_failure {
        BranchFailure::Wait => {}
        BranchFailure::Abort => map.put("on_failure", "abort"),
        BranchFailure::Continue => map.put("on_failure", "continue"),
    }
    let branches = parallel.branches.iter().map(|branch| match &branch.kind {
        Kind::Block(body) if is_bare(branch, shared) => list(body, shared),
        _ => stage(branch, shared).into(),
    });
    map.put("branches", Yaml::Lines(branches.collect()));
    map
}

/// Whether an unnamed step has no properties of its own.
fn is_bare(step: &Step, shared: &Shared) -> bool {
    step.implicit
        && step.name == step.id.value
        && step.description.is_none()
        && step.condition.is_none()
        && step.inputs.is_empty()
        && step.outputs.is_empty()
        && step.env.is_empty()
        && shared.is_plain(&step.policy)
}

fn fan_out(each: &ForEach<Vec<Step>>, shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    match &each.items {
        Items::List(source) => map.put("source", any(source)),
        Items::Matrix(axes) => map.put("matrix", bindings(axes)),
    }
    map.put_some("concurrency", each.concurrency);
    map.put_some("recorded_concurrency", each.as_written.as_ref().map(Yaml::from));
    if each.on_failure == ItemFailure::Continue {
        map.put("on_failure", "continue");
    }
    map.put_some("max_items", each.items_max);
    if each.isolated {
        map.put("isolated", true);
    }
    match each.body.as_slice() {
        [only] if only.needs.is_empty() => map.put("stage_template", stage(only, shared)),
        body => map.put("stages", list(body, shared)),
    }
    map
}

fn repeated(repeat: &Repeat<Vec<Step>>, shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    let key = match repeat.test {
        RepeatTest::While => "while",
        RepeatTest::Until => "until",
        RepeatTest::DoWhile => "do_while",
    };
    map.put(key, condition(&repeat.condition));
    map.put("max", repeat.rounds_max);
    map.put_some("delay", repeat.delay);
    map.put_some("recorded_condition", repeat.as_written.as_ref().map(Yaml::from));
    map.put("stages", list(&repeat.body, shared));
    map
}

fn branch(choose: &Choose<Vec<Step>>, shared: &Shared) -> Map {
    let mut map = Map::in_lines();
    match choose {
        Choose::If { condition: given, then, otherwise } => {
            map.put("if", condition(given));
            map.put("then", list(then, shared));
            map.put_filled("else", list(otherwise, shared));
        }
        Choose::Switch { value, cases, default } => {
            map.put("switch", switch(value));
            let mut arms = Map::in_lines();
            cases.iter().for_each(|(key, body)| arms.put(&**key, list(body, shared)));
            map.put("cases", arms);
            map.put_filled("default", list(default, shared));
        }
    }
    map
}

pub fn ports<T>(ports: &IndexMap<Arc<str>, T>, port: impl Fn(&T) -> Map) -> Yaml {
    let mut map = Map::in_lines();
    ports.iter().for_each(|(name, value)| map.put(&**name, port(value)));
    map.into()
}

fn input(input: &Input) -> Map {
    let mut map = Map::new();
    put_type(&input.ty, &mut map);
    map.put_some("source", input.source.as_ref().map(any));
    if !input.required {
        map.put("required", false);
    }
    map.put_some("description", input.description.as_ref());
    map
}

pub fn output(output: &Output) -> Map {
    let mut map = Map::new();
    put_type(&output.ty, &mut map);
    map.put_some("source", output.source.as_ref().map(any));
    if !output.required {
        map.put("required", false);
    }
    map.put_some("default", output.default.as_ref());
    map.put_some("description", output.description.as_ref());
    map
}

/// `type` or `schema`; a port of any type has neither.
pub fn put_type(ty: &Type, map: &mut Map) {
    match ty {
        Type::Any => {}
        Type::Schema(schema) => map.put("schema", &Value::from(&**schema)),
        ty => map.put("type", ty.to_string()),
    }
}
