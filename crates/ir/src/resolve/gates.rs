//! Gate safety: can a step behind a gate start without an approval?
//!
//! A skipped gate skips its dependents and a rejected gate stops the run, so a gate protects the steps that depend on
//! it. Two things can bypass it: a policy that continues after a rejection, and a scope around the gate that can end
//! without asking, through another arm, no rounds, no items or a condition.

use super::catalog::Catalog;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::OnFailure;
use crate::workflow::{BranchFailure, Choose, Kind, RepeatTest, Step, Words, Workflow};

pub fn check(workflow: &Workflow, catalog: &Catalog, diagnostics: &mut Vec<Diagnostic>) {
    list(&workflow.steps, workflow.words, catalog, diagnostics);
}

/// Checks one list of steps and the lists inside it.
fn list(steps: &[Step], words: &Words, catalog: &Catalog, diagnostics: &mut Vec<Diagnostic>) {
    for step in steps {
        if let Some(leak) = leak(step, Beside::Dependents) {
            let dependents =
                catalog.scope_of(step.number).graph.dependents(catalog.card(step.number).place as usize);
            let behind = dependents.iter().map(|dependent| &steps[*dependent as usize]);
            // A handler of the rejection is supposed to run after it.
            let behind = behind.filter(|behind| !takes_over(behind, step));
            diagnostics.extend(behind.map(|behind| bypassed(behind, &leak, words)));
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| list(body, words, catalog, diagnostics));
    }
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
#[derive(Clone, Copy)]
enum Fix {
    Policy,
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
