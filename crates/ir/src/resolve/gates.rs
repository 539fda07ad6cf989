//! Gate safety: can a step behind a gate start without an approval?
//!
//! A skipped gate skips its dependents and a rejected gate stops the run, so a gate protects the steps that depend on
//! it. Four things can bypass it: a policy that continues after a rejection; a scope around the gate that can end
//! without asking, through another arm, no rounds, no items or a condition; a step that handles a failure although it
//! depends on the gate; and, which is an error, an input that approves unless someone changes it. A gate that approves
//! itself needs a value for every field of its form.

use super::catalog::Catalog;
use super::graph::Graph;
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::{Node, Read, StepId};
use crate::policy::OnFailure;
use crate::workflow::{
    BranchFailure, Choose, FormField, Gate, Kind, OnReject, OnTimeout, RepeatTest, Step, Words, Workflow,
};
use std::collections::HashMap;

pub fn check(workflow: &Workflow, catalog: &Catalog, diagnostics: &mut Vec<Diagnostic>) {
    list(&workflow.steps, workflow.words, catalog, diagnostics);
    decisions(&workflow.steps, workflow, diagnostics);
}

/// Checks one list of steps and the lists inside it.
fn list(steps: &[Step], words: &Words, catalog: &Catalog, diagnostics: &mut Vec<Diagnostic>) {
    for step in steps {
        if let Some(leak) = leak(step, Beside::Dependents) {
            let dependents =
                catalog.scope_of(step.number).graph.dependents(catalog.card(step.number).place as usize);
            let behind = dependents.iter().map(|dependent| &steps[*dependent as usize]);
            // A handler of the rejection is reported below, and a condition may read the decision.
            let behind = behind.filter(|behind| !takes_over(behind, step));
            let behind = behind.filter(|behind| leak.fix != Fix::Rejection || !reads(behind, step.number));
            diagnostics.extend(behind.map(|behind| bypassed(behind, &leak, words)));
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| list(body, words, catalog, diagnostics));
    }
    handlers(steps, words, diagnostics);
}

/// Whether the condition of a step reads another step.
fn reads(step: &Step, read: StepId) -> bool {
    let mut found = false;
    if let Some(condition) = &step.condition {
        condition.expr.walk(&mut |part| {
            found |= matches!(part.node, Node::Read(
                Read::StepOutputs(id) | Read::StepStatus(id) | Read::StepOutcome(id)
            ) if id == read);
        });
    }
    found
}

/// A step that handles a failure does not wait for the gates that it depends on. It is safe only if the step that fails
/// comes after the gate.
fn handlers(steps: &[Step], words: &Words, diagnostics: &mut Vec<Diagnostic>) {
    if !steps.iter().any(|step| step.unguarded().kind.is_gate()) {
        return;
    }
    let places: HashMap<&str, u32> = (0u32..).zip(steps).map(|(at, step)| (&*step.id.value, at)).collect();
    // The graph of the scope also has an edge from each failure to its handler.
    let needs =
        |step: &Step| step.needs.iter().filter_map(|need| places.get(&*need.value).copied()).collect();
    let graph = Graph::new(steps.iter().map(needs).collect());
    let behind = graph.nearest_before(|place| steps[place].unguarded().kind.is_gate());
    let mut found = Vec::new();
    for (failing, step) in (0u32..).zip(steps) {
        let OnFailure::Goto(target) = &step.policy.on_failure else { continue };
        let Some(target) = places.get(&*target.value) else { continue };
        found.extend(behind[*target as usize].map(|gate| (gate, failing, *target)));
    }
    let pairs: Vec<(u32, u32)> = found.iter().map(|(gate, failing, _)| (*gate, *failing)).collect();
    for ((gate, failing, target), approved) in found.into_iter().zip(graph.are_ancestors(&pairs)) {
        if !approved {
            let [gate, failing, target] = [gate, failing, target].map(|place| &steps[place as usize]);
            let fails = if gate.number == failing.number { "is rejected" } else { "fails" };
            let way = vec![format!("`{}` {fails}, and `{}` handles it", failing.id.value, target.id.value)];
            let leak = Leak { gate, way, fix: Fix::Handler };
            diagnostics.push(bypassed(target, &leak, words));
        }
    }
}

/// Gates that are approved without a person: by an input, or when their time is up.
fn decisions(steps: &[Step], workflow: &Workflow, diagnostics: &mut Vec<Diagnostic>) {
    for step in steps {
        if let Kind::Gate(gate) = &step.kind {
            diagnostics.extend(approved_by_default(step, gate, workflow));
            if gate.on_timeout == OnTimeout::AutoApprove && gate.timeout.is_some() {
                let empty = |field: &&FormField| field.required && field.default.is_none();
                let fields = gate.form.iter().filter(|(_, field)| empty(field));
                diagnostics.extend(fields.map(|(name, field)| no_value(step, name, field)));
            }
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| decisions(body, workflow, diagnostics));
    }
}

fn approved_by_default(step: &Step, gate: &Gate, workflow: &Workflow) -> Option<Diagnostic> {
    let name = gate.verdict_input.as_ref()?;
    let parameter = workflow.parameters.get(&name.value)?;
    let default = parameter.default.as_ref()?.as_str()?;
    let option = gate.options.iter().find(|option| option.to_lowercase() == default.to_lowercase())?;
    let rejects = ["reject", "abort"].iter().any(|no| option.eq_ignore_ascii_case(no));
    (!rejects).then(|| {
        let (id, word) = (&step.id.value, workflow.words.parameter);
        let message = format!(
            "gate `{id}` approves itself: {word} `{}`, which decides, is `{default}` by default",
            name.value
        );
        Diagnostic::error(Code::GateBypassed, message)
            .at(name.span)
            .label(parameter.span, "its default approves")
            .help(format!("remove the default of `{}`, so that someone has to decide", name.value))
            .step(&**id)
            .field("gate.verdict_input")
            .reference(&*name.value)
    })
}

fn no_value(step: &Step, name: &str, field: &FormField) -> Diagnostic {
    let message = format!("the field `{name}` is required, but has no value if the gate approves itself");
    Diagnostic::error(Code::MissingField, message)
        .at(field.span)
        .help("give it a `default`, or write `required: false`")
        .step(&*step.id.value)
        .field(format!("gate.form.{name}.default"))
        .reference(name)
}

fn takes_over(behind: &Step, failing: &Step) -> bool {
    matches!(&failing.policy.on_failure, OnFailure::Goto(target) if target.value == behind.id.value)
}

fn bypassed(behind: &Step, leak: &Leak<'_>, words: &Words) -> Diagnostic {
    let (stage, id, gate) = (words.step, &behind.id.value, &leak.gate.id.value);
    let path = leak.way.iter().map(String::as_str).chain([&**id]).collect::<Vec<_>>().join(" -> ");
    let which = if leak.gate.implicit { "the gate in" } else { "gate" };
    let message = format!("{stage} `{id}` can start without the approval of {which} `{gate}`: {path}");
    let help = match leak.fix {
        Fix::Handler => {
            format!("let a {stage} that does not depend on `{gate}` handle the failure")
        }
        Fix::Rejection => format!(
            "set `on_reject` of `{gate}` to `fail`, or give `{id}` a condition that reads the decision of `{gate}`"
        ),
        Fix::Policy => format!("set `on_failure` of `{gate}` to `halt`, so that a rejection ends the run"),
        Fix::Place if leak.gate.implicit => {
            format!("put a separate gate before `{id}` and add it to its `{}`", words.needs)
        }
        Fix::Place => format!(
            "put `{gate}` next to `{id}` and add it to its `{}`: a skipped gate skips its dependents",
            words.needs
        ),
    };
    Diagnostic::warning(Code::GateBypassed, message)
        .at(behind.id.span)
        .label(leak.gate.id.span, "this gate can be bypassed")
        .help(help)
        .step(&**id)
        .field(words.needs)
        .reference(&**gate)
}

/// A way for a step with a gate inside to succeed without an approval.
struct Leak<'a> {
    gate: &'a Step,
    /// The events, in order.
    way: Vec<String>,
    fix: Fix,
}

/// The change that would prevent it.
#[derive(Clone, Copy, PartialEq)]
enum Fix {
    Policy,
    Rejection,
    Handler,
    Place,
}

/// Who observes the end of a step: its dependents, or the enclosing scope.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Dependents,
    /// Inside a scope the gate may have no dependents, so a skipped gate lets the scope end.
    ScopeEnd,
}

fn leak(step: &Step, beside: Beside) -> Option<Leak<'_>> {
    let inner = step.unguarded();
    let gate = first_gate(inner)?;
    let id = &step.id.value;
    let found = |what: String| Some(Leak { gate, way: vec![what], fix: Fix::Place });
    let rejected = |what: String| {
        Some(Leak {
            gate,
            way: vec![format!("`{}` is rejected, and {what}", gate.id.value)],
            fix: Fix::Policy,
        })
    };
    match &step.policy.on_failure {
        OnFailure::Continue => return rejected(format!("on_failure of `{id}` is continue")),
        OnFailure::Goto(target) => {
            return rejected(format!("`{}` handles the failure of `{id}`", target.value));
        }
        OnFailure::SkipDependents if beside == Beside::ScopeEnd => {
            return rejected(format!("on_failure of `{id}` is skip_dependents"));
        }
        OnFailure::Halt | OnFailure::Rollback | OnFailure::SkipDependents => {}
    }
    let skippable = step.condition.is_some() && !(inner.kind.is_gate() && beside == Beside::Dependents);
    if skippable {
        return found(format!("`{id}` is skipped by its condition"));
    }
    match &inner.kind {
        Kind::Block(body) => inside(id, "", body),
        Kind::ForEach(each) => match each.body.iter().find_map(first_gate) {
            Some(_) => found(format!("the list of `{id}` is empty")),
            None => None,
        },
        Kind::Repeat(repeat) if repeat.test == RepeatTest::While => found(format!("`{id}` runs no rounds")),
        Kind::Repeat(repeat) => inside(id, "", &repeat.body),
        Kind::Parallel(parallel) if parallel.on_failure == BranchFailure::Continue => {
            rejected(format!("`{id}` continues when a branch fails"))
        }
        Kind::Parallel(parallel) => inside(id, "", &parallel.branches),
        Kind::Choose(choose) => arms(id, gate, choose),
        Kind::Gate(Gate { on_reject: OnReject::Skip, .. }) => Some(Leak {
            gate,
            way: vec![format!("`{id}` is rejected, and its `on_reject` is skip")],
            fix: Fix::Rejection,
        }),
        Kind::Action(_)
        | Kind::Gate(_)
        | Kind::Wait(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Guard(_) => None,
    }
}

fn first_gate(step: &Step) -> Option<&Step> {
    // Steps that run after a step do not guard it.
    let step = step.unguarded();
    if step.kind.is_gate() {
        return Some(step);
    }
    step.kind.bodies().into_iter().find_map(|(_, body)| body.iter().find_map(first_gate))
}

/// The scope can end without approval if one of the gates in its body can be bypassed.
fn inside<'a>(id: &str, arm: &str, body: &'a [Step]) -> Option<Leak<'a>> {
    let mut found = body.iter().find_map(|step| leak(step, Beside::ScopeEnd))?;
    found.way.push(format!("`{id}`{arm} ends"));
    Some(found)
}

/// A choice can be bypassed through any arm without a gate.
fn arms<'a>(id: &str, gate: &'a Step, choose: &'a Choose<Vec<Step>>) -> Option<Leak<'a>> {
    choose.arms().into_iter().find_map(|(arm, body)| {
        match body.iter().any(|step| first_gate(step).is_some()) {
            false => Some(Leak { gate, way: vec![format!("`{id}` takes `{arm}`")], fix: Fix::Place }),
            true => inside(id, &format!(" takes `{arm}` and"), body),
        }
    })
}
