//! Reads the top level of a file: the name, inputs and outputs of the workflow, and the defaults for its steps.

use super::field::{demanded, ignored, ruled};
use super::flow::Input;
use super::roster::Roster;
use super::step::{self, Document};
use super::{WORDS, retry, run_policy, trigger};
use crate::table::{Context, Place, Table, wrong_shape};
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::contract::Contract;
use windlass_ir::expr::{Semantics, Template};
use windlass_ir::workflow::{Bound, Header, Output, RunInput, Workflow};
use windlass_ir::{Code, Severity, Spanned, Type, Value};

pub fn read<'a>(root: &'a Node, context: &'a Context<'a>) -> Option<Workflow> {
    let Kind::Map(map) = &root.kind else {
        context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping with `name` and `steps`"));
        return None;
    };
    let top = Table::new(context, map, root.span, Place::default());
    let header = read_header(&top);
    let items = read_list(&top);
    let policy = run_policy::read(&top);
    let document = Document {
        roster: Roster::of(items, context),
        default_retry: top.table("default_retry").map(|table| retry::read(&table)),
        is_sticky: run_policy::is_sticky(&top),
        run_timeout: policy.timeout,
    };
    check_start(&top, &document.roster);
    let input = schema(&top, "input_schema");
    let workflow = Workflow {
        words: &WORDS,
        semantics: Semantics::DAGNATS,
        parameters: IndexMap::new(),
        input: RunInput::Open(input),
        secrets: IndexMap::new(),
        env: IndexMap::new(),
        policy,
        steps: step::list(items, &document, context),
        outputs: IndexMap::new(),
        result: Some(result(&top, &document.roster)),
        hooks: Vec::new(),
        triggers: trigger::list(&top, &header.id, &document.roster),
        header,
    };
    finish(&top);
    Some(workflow)
}

fn read_header(top: &Table<'_>) -> Header {
    let help = "give the workflow a name, such as \"code-review\"";
    let name = ruled(top, 1, || demanded(top, "name", help));
    if let Some(name) = &name {
        check_name(top, name);
    }
    let name = name.map_or_else(|| "".into(), |name| name.value);
    Header {
        id: name.clone(),
        name,
        version: top.plain_text("version").unwrap_or_else(|| "".into()),
        description: None,
        author: None,
        tags: Vec::new(),
        requires: IndexMap::new(),
    }
}

/// A workflow is stored under its name, and not every store accepts every character.
fn check_name(top: &Table<'_>, name: &Spanned<Arc<str>>) {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "-/_=.".contains(c);
    let is_key =
        name.value.chars().all(is_letter) && !name.value.starts_with('.') && !name.value.ends_with('.');
    if !is_key {
        let message = format!("invalid workflow name `{}`", name.value);
        let finding = top.error(Code::BadName, "name", name.span, message).reference(&*name.value);
        top.report(
            finding.help("use letters, digits and `-`, `_`, `=`, `/`, `.`, without a dot at either end"),
        );
    }
}

fn read_list<'a>(top: &Table<'a>) -> &'a [Node] {
    ruled(top, 2, || {
        let items = top.list("steps");
        top.demand("steps", "add \"steps\" with at least one step");
        if items.is_some_and(<[Node]>::is_empty) {
            let span = top.key_span("steps");
            let finding = top.error(Code::NoStages, "steps", span, "this workflow has no steps");
            top.report(finding.help("add at least one step"));
        }
        items.unwrap_or_default()
    })
}

/// At least one step must be able to start without the failure of another.
fn check_start(top: &Table<'_>, roster: &Roster<'_>) {
    if roster.is_stuck() {
        let message = "every step runs only when another one fails, so nothing can ever start";
        let finding = top.error(Code::BadTarget, "steps", top.key_span("steps"), message);
        top.report(finding.help("add a step that no other step names in `on_failure` or `compensate`"));
    }
}

/// A JSON Schema, or any value if there is none.
fn schema(top: &Table<'_>, key: &'static str) -> Type {
    let Some(node) = top.node(key) else { return Type::Any };
    let json = node.to_value().to_json().unwrap_or(serde_json::Value::Bool(true));
    let ty = Type::Schema(Arc::new(json));
    let Err(error) = Contract::new(&ty) else { return ty };
    let cause = match error.message.contains("resolve-") {
        true => "it refers to another document, and external documents are never loaded".to_owned(),
        false => error.message,
    };
    let finding = top.error(Code::BadSchema, key, node.span, format!("invalid JSON Schema: {cause}"));
    top.report(finding.help("correct the schema, or remove it"));
    Type::Any
}

/// The result of the run: the outputs of the steps without dependents.
fn result(top: &Table<'_>, roster: &Roster<'_>) -> Output {
    let span = top.key_span("steps");
    let mut last = roster.last();
    let source = match last.len() {
        0 => Bound { template: Template::Constant(Value::Null), field: "steps".into(), span },
        1 => Input::Step(last.swap_remove(0)).bound("steps", span),
        _ => Input::Several(last).bound("steps", span),
    };
    let ty = schema(top, "output_schema");
    Output { ty, required: false, default: None, description: None, source: Some(source), span }
}

/// Unlike in nested objects, an unknown key at the top level is an error.
fn finish(top: &Table<'_>) {
    top.known(&["$schema", "aux_steps"]);
    if top.has("aux_steps") {
        let why = ": `on_failure` and `compensate` already determine which steps run only after a failure";
        let span = top.key_span("aux_steps");
        top.report(ignored(top, Severity::Hint, "aux_steps", span, why, "remove it"));
    }
    let before = top.context.diagnostics.borrow().len();
    top.finish_all();
    let mut diagnostics = top.context.diagnostics.borrow_mut();
    for finding in diagnostics.iter_mut().skip(before).filter(|finding| finding.code == Code::UnknownKey) {
        finding.severity = Severity::Error;
    }
}
