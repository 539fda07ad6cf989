//! Name resolution: checks a whole workflow and resolves every name in it.
//!
//! `graph` is one list of steps as a graph, `catalog` the index of all steps, `back` handles gates that repeat steps,
//! `fields` lists the fields that contain expressions, `names` checks each of them, `gates` finds gates that can be
//! bypassed, and `simplify` normalizes equivalent spellings. All problems are reported together; a workflow without
//! errors can be lowered to a [`crate::Plan`].

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

/// The maximum number of steps in one workflow.
pub const STEPS_MAX: usize = 100_000;

/// Numbers the steps, resolves references to steps, and reports everything that is wrong or suspicious.
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

/// Checks the expressions of each step with its environment.
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
    let finding =
        Diagnostic::error(Code::TooManySteps, format!("{count} {word}s exceed the limit of {STEPS_MAX}"))
            .help("split the workflow, or generate the steps at run time with a fan-out");
    match first {
        Some(step) => finding.at(step.span.head()),
        None => finding,
    }
}

/// A default must match the contract it stands in for.
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

/// Validators by type name: files use few types, but repeat them often.
#[derive(Default)]
struct Contracts(HashMap<String, Option<Contract>>);

impl Contracts {
    fn default_of(&mut self, name: &str, output: &Output) -> Option<Diagnostic> {
        let finding = self.finding(&output.ty, output.default.as_ref()?, output.span)?;
        Some(finding.field(format!("outputs.{name}.default")))
    }

    /// The default and the choices of a field must have its type, and the default must be one of the choices.
    fn form_field(&mut self, name: &str, field: &FormField) -> Option<Diagnostic> {
        let wrong = field.default.as_ref().and_then(|value| self.finding(&field.ty, value, field.span));
        let wrong = wrong.or_else(|| {
            let mut choices = field.choices.iter();
            let mut finding = choices.find_map(|choice| self.finding(&field.ty, choice, field.span))?;
            finding.message = format!("this choice is not of type {}", field.ty);
            Some(finding)
        });
        let strange = field
            .default
            .as_ref()
            .filter(|default| !field.choices.is_empty() && !field.choices.contains(default));
        let strange = strange.map(|_| {
            Diagnostic::error(Code::BadDefault, "the default is not one of the choices")
                .at(field.span)
                .help("add it to `choices`, or use another default")
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
                format!("the default{path} does not match the schema: {}", violation.message)
            }
            "" => format!("the default must be of type {ty}"),
            path => format!("the default must be of type {ty}, but at {path}: {}", violation.message),
        };
        Some(Diagnostic::error(Code::BadDefault, message).at(span).help("change the value or the type"))
    }
}

/// A trigger must be able to start a run: every value it passes must be declared, and none that is required may be
/// missing.
fn check_triggers(workflow: &Workflow, diagnostics: &mut Vec<Diagnostic>) {
    for trigger in &workflow.triggers {
        if let Some(SigningSecret::Declared(secret)) = trigger.source.secret()
            && !workflow.secrets.contains_key(&secret.value)
        {
            let finding =
                Diagnostic::error(Code::UnknownSecret, format!("unknown secret `{}`", secret.value))
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
        let finding = Diagnostic::error(Code::UnknownParameter, format!("unknown {word} `{name}`"))
            .at(bound.span)
            .field(&*bound.field)
            .reference(&**name)
            .suggest(nearest(name, workflow.parameters.keys().map(|key| &**key)));
        diagnostics.push(match finding.help.is_empty() {
            true => finding.help(format!("declare the {word}, or remove it from `with`")),
            false => finding,
        });
    }
    let missing = workflow
        .parameters
        .iter()
        .filter(|(name, p)| p.required && p.default.is_none() && !with.contains_key(*name));
    for (name, _) in missing {
        let message = format!("this trigger passes no value for the required {word} `{name}`");
        diagnostics.push(
            Diagnostic::error(Code::MissingParameter, message)
                .at(trigger.span)
                .field("triggers")
                .reference(&**name)
                .help(format!("add `{name}` to `with` of the trigger, or give the {word} a default")),
        );
    }
}
