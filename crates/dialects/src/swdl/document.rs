//! Reads the top level of a file: metadata, configuration, context, defaults, hooks, outputs and triggers.

use super::WORDS;
use super::agent::Surroundings;
use super::names::{VARIABLE_RULE, check_id, is_semver, is_variable};
use super::policy::{self, Defaults};
use super::ports::{self, Outputs};
use super::stage::{self, Document};
use super::table::{Context, Place, StepOf, Table, wrong_shape};
use super::work::{self, command};
use super::{config, neighbors, triggers};
use crate::speckit;
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::{RecordShape, Semantics};
use windlass_ir::policy::OnFailure;
use windlass_ir::suggest::nearest;
use windlass_ir::workflow::{
    Header, Hook, HookAction, HookMoment, Interpreter, Kind as StepKind, RunInput, Step, Workflow,
};
use windlass_ir::{Code, Diagnostic, Value};

pub const VERSION: &str = "1.0.0";

pub fn read<'a>(root: &'a Node, context: &'a Context<'a>) -> Option<Workflow> {
    let Kind::Map(map) = &root.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping with `workflow` and `stages`"));
        return None;
    };
    let top = Table::new(context, map, root.span, Place::default());
    let header = read_header(&top);
    let config = top.table("config");
    let defaults = Defaults::read(top.table("error_policy").as_ref());
    let around = Surroundings::read(top.table("context").as_ref());
    let policy = config.as_ref().map_or_else(config::default_policy, config::run_policy);
    let undoes = defaults.on_failure == OnFailure::Rollback || policy.compensate_on_cancel;
    let run_timeout = policy.timeout;
    let document = Document { defaults: &defaults, around: &around, undoes, run_timeout };
    let mut workflow = Workflow {
        words: &WORDS,
        semantics: config.as_ref().map_or(Semantics::HOUSE, config::semantics),
        header,
        parameters: config.as_ref().map(ports::parameters).unwrap_or_default(),
        input: config.as_ref().map_or(RunInput::Declared, config::input),
        secrets: config
            .as_ref()
            .map(policy::read_secrets)
            .unwrap_or_default()
            .into_iter()
            .map(|s| (s.value, s.span))
            .collect(),
        env: config.as_ref().map(|c| c.bindings_named("env", is_variable, VARIABLE_RULE)).unwrap_or_default(),
        policy,
        steps: read_stages(&top, &document),
        outputs: ports::outputs(&top, Outputs::Computed),
        result: ports::result(&top),
        hooks: read_hooks(&top),
        triggers: triggers::read(&top),
    };
    check_verdicts(&workflow.steps, &workflow, &top);
    if workflow.semantics.results.record == RecordShape::Everything {
        name_as_speckit(&mut workflow.steps);
    }
    config.iter().for_each(Table::finish_all);
    neighbors::of_top(&top);
    top.finish_all();
    Some(workflow)
}

/// Results in the shape of Spec Kit contain the type of each step in its words.
fn name_as_speckit(steps: &mut [Step]) {
    for step in steps {
        if let Some(ty) = speckit::type_of(&step.unguarded().kind) {
            step.word = ty;
        }
        step.kind.bodies_mut().into_iter().for_each(|body| name_as_speckit(body));
    }
}

fn read_header(top: &Table<'_>) -> Header {
    let Some(table) = top.table("workflow") else {
        top.demand("workflow", "start with `workflow: {id: my-workflow, name: My workflow}`");
        return Header {
            id: "".into(),
            name: "".into(),
            version: VERSION.into(),
            description: None,
            author: None,
            tags: Vec::new(),
            requires: IndexMap::new(),
        };
    };
    let id = table.text("id");
    match &id {
        Some(id) => check_id(&table, "id", id),
        None if !table.has("id") => {
            table.missing("id", "give the workflow an id in kebab-case, such as `ship-it`");
        }
        None => {}
    }
    let name = table.prose("name");
    table.demand("name", "give the workflow a readable name");
    let version = table.text("version");
    let free = top.context.foreign;
    if let Some(version) = version.as_ref().filter(|version| !free && !is_semver(&version.value)) {
        let text = &version.value;
        let padded =
            [format!("{text}.0"), format!("{text}.0.0")].into_iter().find(|padded| is_semver(padded));
        let finding =
            table.error(Code::BadVersion, "version", version.span, format!("invalid version `{text}`"));
        let finding = finding
            .reference(&**text)
            .suggest(padded)
            .help("write three numbers, such as \"1.0.0\", in quotes");
        table.report(finding);
    }
    let header = Header {
        id: id.map_or_else(|| "".into(), |id| id.value),
        name: name.unwrap_or_else(|| "".into()),
        version: version.map_or_else(|| VERSION.into(), |version| version.value),
        description: table.prose("description"),
        author: table.prose("author"),
        tags: table.plain_texts("tags"),
        requires: values(&table, "requires"),
    };
    table.known(&["ui"]);
    table.finish_all();
    header
}

fn read_stages(top: &Table<'_>, document: &Document<'_>) -> Vec<Step> {
    let items = top.list("stages");
    top.demand("stages", "add `stages` with at least one stage");
    if items.is_some_and(<[Node]>::is_empty) {
        let span = top.map.get("stages").map_or(top.span, |entry| entry.key.span);
        let finding = top.error(Code::NoStages, "stages", span, "this workflow has no stages");
        top.report(finding.help("add at least one stage"));
    }
    stage::list(items.unwrap_or_default(), &Place::default().child("stages"), document, top.context)
}

/// A mapping of names to plain data.
pub fn values(table: &Table<'_>, key: &'static str) -> IndexMap<Arc<str>, Value> {
    let entries = table.table(key).map(|table| table.map.entries.iter()).unwrap_or_default();
    entries.map(|entry| (entry.key.text.clone(), entry.value.to_value())).collect()
}

/// A gate that takes its decision from a parameter must name a declared one.
fn check_verdicts(steps: &[Step], workflow: &Workflow, top: &Table<'_>) {
    for step in steps {
        if let StepKind::Gate(gate) = &step.kind
            && let Some(name) = &gate.verdict_input
            && !workflow.parameters.contains_key(&name.value)
        {
            let place = Place { step: Some(step.id.value.clone()), prefix: String::new() };
            let finding =
                Diagnostic::error(Code::UnknownParameter, format!("unknown parameter `{}`", name.value))
                    .at(name.span)
                    .step_of(&place)
                    .field("gate.verdict_input")
                    .reference(&*name.value)
                    .suggest(nearest(&name.value, workflow.parameters.keys().map(|key| &**key)))
                    .help("name a parameter that `config.parameters` declares");
            top.report(finding);
        }
        step.kind.bodies().into_iter().for_each(|(_, body)| check_verdicts(body, workflow, top));
    }
}

fn usual_shell(top: &Table<'_>, action: &HookAction) -> Interpreter {
    match action {
        HookAction::Run(run) => work::usual_shell(run, top.context.foreign),
        HookAction::Notify(_) | HookAction::Webhook(_) => Interpreter::plain(),
    }
}

/// In a fixed order of moments and verbs, whatever the order in the file.
fn read_hooks(top: &Table<'_>) -> Vec<Hook> {
    let Some(table) = top.table("hooks") else { return Vec::new() };
    let moments = [
        ("on_start", HookMoment::Start),
        ("on_complete", HookMoment::Complete),
        ("on_failure", HookMoment::Failure),
    ];
    let mut hooks = Vec::new();
    for (key, on) in moments {
        let Some(moment) = table.table(key) else { continue };
        let actions = [
            moment.bound_text("notify").map(HookAction::Notify),
            moment.bound_text("run").map(|run| command(&moment, "run", run, None)).map(HookAction::Run),
            moment.bound_text("webhook").map(HookAction::Webhook),
        ];
        moment.finish_all();
        hooks.extend(actions.into_iter().flatten().map(|action| {
            let shell = usual_shell(top, &action);
            Hook { on, action, shell }
        }));
    }
    table.finish_all();
    hooks
}
