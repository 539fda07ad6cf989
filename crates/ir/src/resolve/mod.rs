//! From names to things: checks a whole workflow and ties every name in it to what it stands for.
//!
//! `graph` is one list of steps as a graph, `catalog` all steps at a glance, `back` the gates that let steps be done again,
//! `fields` the list of places where expressions stand, `names` the check of each of them, `gates` the question whether a gate
//! can be passed by, `simplify` gives what means the same one spelling. All findings come back together; afterwards a workflow
//! without errors can be lowered to a [`crate::Plan`].

mod back;
mod catalog;
mod fields;
mod gates;
mod graph;
mod names;
mod simplify;

use crate::contract::{Contract, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::expr::Visibility;
use crate::source::Span;
use crate::suggest::nearest;
use crate::trigger::{SigningSecret, Trigger, TriggerInput};
use crate::value::Value;
use crate::workflow::{FormField, Kind, Output, RunInput, Step, Workflow};
use catalog::Catalog;
pub(crate) use fields::{Slot, of_step};
pub use graph::Graph;
use names::{Declared, Names, Reader, Variable, variables};
pub use simplify::simplify;
use std::collections::HashMap;

/// More steps than this in one workflow are refused.
pub const STEPS_MAX: usize = 100_000;

/// Numbers the steps, ties reads of steps to those numbers, and reports everything that is wrong or suspicious.
pub fn resolve(workflow: &mut Workflow) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let declared = Declared::of(workflow);
    let mut steps = std::mem::take(&mut workflow.steps);
    let catalog = Catalog::build(&mut steps, workflow.words, &mut diagnostics);
    if catalog.cards.len() > STEPS_MAX {
        diagnostics.push(too_many(catalog.cards.len(), steps.first(), workflow.words.step));
    }
    let mut names = Names::new(&declared, &catalog);
    let mut env = declared.env.clone();
    walk(&mut steps, &mut names, &mut env);
    fields::of_workflow(workflow, &mut |slot, place| {
        let field = slot.field();
        names.slot(slot, &Reader { step: None, env: &declared.env, own_env: &[], place, field: &field });
    });
    diagnostics.extend(names.finish());
    workflow.steps = steps;
    check_defaults(workflow, &mut diagnostics);
    check_triggers(workflow, &mut diagnostics);
    if workflow.semantics.visibility == Visibility::Scoped {
        gates::check(workflow, &catalog, &mut diagnostics);
    }
    simplify(workflow);
    diagnostics
}

/// Checks the expressions of each step with the environment that stands around it.
fn walk(steps: &mut [Step], names: &mut Names<'_>, env: &mut Vec<Variable>) {
    for step in steps {
        let outer = env.len();
        env.extend(variables(&step.env));
        let number = Some(step.number);
        of_step(step, &mut |slot, place| {
            let field = slot.field();
            let visible = if place.own_env { &env[..] } else { &env[..outer] };
            names.slot(
                slot,
                &Reader { step: number, env: visible, own_env: &env[outer..], place, field: &field },
            );
        });
        step.kind.bodies_mut().into_iter().for_each(|body| walk(body, names, env));
        env.truncate(outer);
    }
}

fn too_many(count: usize, first: Option<&Step>, word: &str) -> Diagnostic {
    let finding = Diagnostic::error(
        Code::TooManySteps,
        format!("{count} {word}s are more than the limit of {STEPS_MAX}"),
    )
    .help("split the workflow, or let a fan-out make the steps while it runs");
    match first {
        Some(step) => finding.at(step.span.head()),
        None => finding,
    }
}

/// A default must itself keep the contract that it stands in for.
fn check_defaults(workflow: &Workflow, diagnostics: &mut Vec<Diagnostic>) {
    let mut contracts = Contracts::default();
    for (name, parameter) in &workflow.parameters {
        if let Some(default) = &parameter.default {
            let field = format!("config.parameters.{name}.default");
            diagnostics
                .extend(contracts.finding(&parameter.ty, default, parameter.span).map(|d| d.field(field)));
        }
    }
    for (name, output) in &workflow.outputs {
        diagnostics.extend(contracts.default_of(name, output));
    }
    default_outputs(&workflow.steps, &mut contracts, diagnostics);
}

fn default_outputs(steps: &[Step], contracts: &mut Contracts, diagnostics: &mut Vec<Diagnostic>) {
    for step in steps {
        for (name, output) in &step.outputs {
            diagnostics.extend(contracts.default_of(name, output).map(|d| d.step(&*step.id.value)));
        }
        if let Kind::Gate(gate) = &step.kind {
            let found = gate.form.iter().filter_map(|(name, field)| contracts.form_field(name, field));
            diagnostics.extend(found.map(|d| d.step(&*step.id.value)));
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| default_outputs(body, contracts, diagnostics));
    }
}

/// Validators by the name of their type: a file repeats few types many times.
#[derive(Default)]
struct Contracts(HashMap<String, Option<Contract>>);

impl Contracts {
    fn default_of(&mut self, name: &str, output: &Output) -> Option<Diagnostic> {
        let finding = self.finding(&output.ty, output.default.as_ref()?, output.span)?;
        Some(finding.field(format!("outputs.{name}.default")))
    }

    /// The default and the choices of a field must be values of its type, and the default one of the choices.
    fn form_field(&mut self, name: &str, field: &FormField) -> Option<Diagnostic> {
        let wrong = field.default.as_ref().and_then(|value| self.finding(&field.ty, value, field.span));
        let wrong = wrong.or_else(|| {
            let mut choices = field.choices.iter();
            let mut finding = choices.find_map(|choice| self.finding(&field.ty, choice, field.span))?;
            finding.message = format!("a choice is not of type {}", field.ty);
            Some(finding)
        });
        let strange = field
            .default
            .as_ref()
            .filter(|default| !field.choices.is_empty() && !field.choices.contains(default));
        let strange = strange.map(|_| {
            Diagnostic::error(Code::BadDefault, "the default is none of the choices")
                .at(field.span)
                .help("add it to `choices`, or take another default")
        });
        wrong.or(strange).map(|finding| finding.field(format!("gate.form.{name}")))
    }

    fn finding(&mut self, ty: &Type, default: &Value, span: Span) -> Option<Diagnostic> {
        let violation = match ty {
            Type::Schema(_) => Contract::new(ty).ok()?.check(default).err()?,
            _ => {
                let contract = self.0.entry(ty.to_string()).or_insert_with(|| Contract::new(ty).ok());
                contract.as_ref()?.check(default).err()?
            }
        };
        let message = match violation.path.as_str() {
            path if matches!(ty, Type::Schema(_)) => {
                format!("the default{path} breaks the schema: {}", violation.message)
            }
            "" => format!("the default must be of type {ty}"),
            path => format!("the default must be of type {ty}, but at {path}: {}", violation.message),
        };
        Some(Diagnostic::error(Code::BadDefault, message).at(span).help("change the value or the type"))
    }
}

/// A trigger must be able to start a run: what it passes exists, and nothing required is missing.
fn check_triggers(workflow: &Workflow, diagnostics: &mut Vec<Diagnostic>) {
    for trigger in &workflow.triggers {
        if let Some(SigningSecret::Declared(secret)) = trigger.source.secret()
            && !workflow.secrets.contains_key(&secret.value)
        {
            let finding =
                Diagnostic::error(Code::UnknownSecret, format!("there is no secret `{}`", secret.value))
                    .at(secret.span)
                    .field("triggers")
                    .reference(&*secret.value)
                    .suggest(nearest(&secret.value, workflow.secrets.keys().map(|name| &**name)))
                    .help("list it under `config.secrets`");
            diagnostics.push(finding);
        }
        if workflow.input == RunInput::Declared {
            check_given(workflow, trigger, diagnostics);
        }
    }
}

fn check_given(workflow: &Workflow, trigger: &Trigger, diagnostics: &mut Vec<Diagnostic>) {
    let word = workflow.words.parameter;
    let TriggerInput::Parameters(with) = &trigger.input else { return };
    for (name, bound) in with.iter().filter(|(name, _)| !workflow.parameters.contains_key(*name)) {
        let finding = Diagnostic::error(Code::UnknownParameter, format!("there is no {word} `{name}`"))
            .at(bound.span)
            .field(&*bound.field)
            .reference(&**name)
            .suggest(nearest(name, workflow.parameters.keys().map(|key| &**key)));
        diagnostics.push(match finding.help.is_empty() {
            true => finding.help(format!("declare the {word}, or take it out of `with`")),
            false => finding,
        });
    }
    let missing = workflow
        .parameters
        .iter()
        .filter(|(name, p)| p.required && p.default.is_none() && !with.contains_key(*name));
    for (name, _) in missing {
        let message = format!("this trigger gives no value for the required {word} `{name}`");
        diagnostics.push(
            Diagnostic::error(Code::MissingParameter, message)
                .at(trigger.span)
                .field("triggers")
                .reference(&**name)
                .help(format!("add `{name}` under `with` of the trigger, or give the {word} a default")),
        );
    }
}
