//! Gates that send the run back: each must depend on the step it names, and the steps between the two run again.

use super::catalog::Catalog;
use super::graph::Graph;
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::StepId;
use crate::source::Spanned;
use crate::workflow::{Kind, OnReject, Step, Words};
use std::collections::HashMap;
use std::sync::Arc;

const FIELD: &str = "gate.on_reject.back_to";

/// The steps of one list, with the position of each name.
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub steps: &'a [&'a Step],
    pub places: &'a HashMap<&'a str, u32>,
}

impl Catalog {
    /// Checks the gates of one list, once it is known which of its steps run only to handle failures or to undo.
    pub fn send_back(&mut self, list: List<'_>, words: &Words, diagnostics: &mut Vec<Diagnostic>) {
        let mut named = Vec::new();
        for (gate, step) in (0u32..).zip(list.steps) {
            let Some(target) = back_to(step) else { continue };
            if step.implicit {
                diagnostics.push(not_listed(step, target, words));
                continue;
            }
            match list.places.get(&*target.value) {
                None => diagnostics.push(self.not_beside(step, target, words, diagnostics.len())),
                Some(to) if *to == gate => diagnostics.push(to_itself(step, target, words)),
                Some(to) if self.takes_over.contains(&list.steps[*to as usize].number) => {
                    diagnostics.push(to_one_aside(step, target, words));
                }
                Some(to) => named.push((*to, gate)),
            }
        }
        if !named.is_empty() {
            let again = follow(&self.waits(list), &named, list, words, diagnostics);
            self.done_again.extend(again);
        }
    }

    /// The real dependencies: nothing depends on a step that runs only after a failure, and such a step depends on
    /// nothing.
    fn waits(&self, list: List<'_>) -> Graph {
        let is_aside = |step: &Step| self.takes_over.contains(&step.number);
        let needs = |step: &&Step| {
            let needs = step.needs.iter().filter_map(|need| list.places.get(&*need.value).copied());
            needs.filter(|need| !is_aside(step) && !is_aside(list.steps[*need as usize])).collect()
        };
        Graph::new(list.steps.iter().map(needs).collect())
    }

    fn not_beside(&self, step: &Step, target: &Spanned<Arc<str>>, words: &Words, found: usize) -> Diagnostic {
        let help = format!("name a {} of the same list that the gate depends on", words.step);
        self.unknown_sibling(step, target, FIELD, words, found).help(help)
    }
}

/// Reports gates that do not depend on the step they name; returns the steps that the other gates can repeat.
fn follow(
    graph: &Graph,
    named: &[(u32, u32)],
    list: List<'_>,
    words: &Words,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<StepId> {
    let (right, wrong): (Vec<_>, Vec<_>) =
        named.iter().copied().zip(graph.are_ancestors(named)).partition(|(_, waits)| *waits);
    let right: Vec<(u32, u32)> = right.into_iter().map(|(pair, _)| pair).collect();
    let turned: Vec<(u32, u32)> = wrong.into_iter().map(|((to, gate), _)| (gate, to)).collect();
    for ((gate, _), is_later) in turned.iter().zip(graph.are_ancestors(&turned)) {
        let step = list.steps[*gate as usize];
        diagnostics.extend(back_to(step).map(|target| not_waited_for(step, target, is_later, words)));
    }
    let again = graph.are_between(&right).into_iter().zip(list.steps).filter(|(again, _)| *again);
    again.map(|(_, step)| step.number).collect()
}

/// The step that a gate sends the run back to, if any.
fn back_to(step: &Step) -> Option<&Spanned<Arc<str>>> {
    let Kind::Gate(gate) = &step.kind else { return None };
    match &gate.on_reject {
        OnReject::Back { to, .. } => Some(to),
        OnReject::Fail | OnReject::Abort | OnReject::Skip | OnReject::Retry => None,
    }
}

fn bad_target(step: &Step, target: &Spanned<Arc<str>>, message: String) -> Diagnostic {
    Diagnostic::error(Code::BadTarget, message)
        .at(target.span)
        .step(&*step.id.value)
        .field(FIELD)
        .reference(&*target.value)
}

fn to_itself(step: &Step, target: &Spanned<Arc<str>>, words: &Words) -> Diagnostic {
    let message = format!("gate `{}` cannot send the run back to itself", step.id.value);
    let help =
        format!("write `on_reject: retry` to ask again, or name a {} that the gate depends on", words.step);
    bad_target(step, target, message).help(help)
}

fn to_one_aside(step: &Step, target: &Spanned<Arc<str>>, words: &Words) -> Diagnostic {
    let (id, to, stage) = (&step.id.value, &target.value, words.step);
    let message = format!(
        "gate `{id}` cannot send the run back to `{to}`, which runs only to handle a failure or to undo another"
    );
    bad_target(step, target, message)
        .help(format!("name the {stage} whose failure it handles, or that it undoes"))
}

fn not_listed(step: &Step, target: &Spanned<Arc<str>>, words: &Words) -> Diagnostic {
    let (id, stage) = (&step.id.value, words.step);
    let message = format!(
        "the gate of {stage} `{id}` cannot send the run back because it is not itself in a list of {stage}s"
    );
    let help =
        format!("put the gate into a list of {stage}s with its own id, without `compensate` and `finally`");
    bad_target(step, target, message).help(help)
}

fn not_waited_for(step: &Step, target: &Spanned<Arc<str>>, is_later: bool, words: &Words) -> Diagnostic {
    let (id, to) = (&step.id.value, &target.value);
    let message = format!("gate `{id}` does not depend on `{to}`, so it cannot send the run back to it");
    bad_target(step, target, message).help(match is_later {
        true => format!("`{to}` comes after the gate; name a {} that comes before it", words.step),
        false => format!("add `{to}` to `{}` of `{id}`, or of a {} before it", words.needs, words.step),
    })
}

/// If a gate can send the run back, the second pass of `draft` is called `draft#2`, so no other step may use that
/// name.
pub fn check_ids(steps: &[Step], diagnostics: &mut Vec<Diagnostic>) {
    if any(steps, &|step| back_to(step).is_some()) {
        refuse_marks(steps, diagnostics);
    }
}

fn any(steps: &[Step], wanted: &impl Fn(&Step) -> bool) -> bool {
    let inside = |step: &Step| step.kind.bodies().into_iter().any(|(_, body)| any(body, wanted));
    steps.iter().any(|step| wanted(step) || inside(step))
}

fn refuse_marks(steps: &[Step], diagnostics: &mut Vec<Diagnostic>) {
    for step in steps {
        let id = &step.id.value;
        if !step.implicit && id.contains('#') {
            let message = format!("invalid id `{id}` in a workflow with `back_to`: `#` numbers the passes");
            let finding = Diagnostic::error(Code::BadId, message).at(step.id.span).step(&**id).field("id");
            diagnostics.push(finding.reference(&**id).help("remove the `#` from the id"));
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| refuse_marks(body, diagnostics));
    }
}
