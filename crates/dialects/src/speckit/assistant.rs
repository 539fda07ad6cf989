//! Steps for a command-line agent: a named command or a prompt, with the defaults of the workflow block.

use super::bind::Binder;
use super::field::{
    self, as_text, bad, evaluated, evaluated_text, given, mapping, needed, nothing, present, seconds, text,
    what,
};
use super::step::{Around, Work};
use crate::table::Table;
use crate::text::Kind as NodeKind;
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::expr::Template;
use windlass_ir::policy::Bindings;
use windlass_ir::workflow::{Action, Ask, Assistant, Bound, Capture, Kind};
use windlass_ir::{Code, Diagnostic, Duration, Value};

const CAPTURED_TIMEOUT: Duration = Duration::from_secs(600);
const PROMPT_TIMEOUT: Duration = Duration::from_secs(300);
const CAPTURE_BYTES: u64 = 1 << 20;

/// The defaults that steps inherit from the workflow block.
#[derive(Debug, Default)]
pub struct Defaults {
    integration: Option<Bound>,
    model: Option<Bound>,
    options: IndexMap<Arc<str>, Value>,
    /// As the file has them, for the records of steps.
    pub said_integration: Option<Value>,
    pub said_model: Option<Value>,
}

impl Defaults {
    pub fn read(block: &Table<'_>) -> Self {
        Self {
            integration: default_text(block, "integration", Code::WorkflowIntegrationType),
            model: default_text(block, "model", Code::WorkflowModelType),
            options: default_options(block),
            said_integration: said(block, "integration"),
            said_model: said(block, "model"),
        }
    }

    pub fn integration(&self) -> Option<&Bound> {
        self.integration.as_ref()
    }
}

fn said(block: &Table<'_>, key: &str) -> Option<Value> {
    block.lookup(key).map(|entry| entry.value.to_value())
}

fn default_text(block: &Table<'_>, key: &'static str, code: Code) -> Option<Bound> {
    let node = given(block, key)?;
    if as_text(node).is_none() {
        let message = format!("`workflow.{key}` must be a string, not {}", what(block, node));
        block.report(block.error(code, key, node.span, message).help("write one name, or leave it out"));
        return None;
    }
    let bound = evaluated(block, key, node, Binder::default());
    Some(bound).filter(|bound| !is_blank(bound))
}

fn default_options(block: &Table<'_>) -> IndexMap<Arc<str>, Value> {
    let Some(node) = given(block, "options") else { return IndexMap::new() };
    match &node.kind {
        NodeKind::Map(map) => {
            map.entries.iter().map(|entry| (entry.key.text.clone(), entry.value.to_value())).collect()
        }
        NodeKind::Scalar(_) | NodeKind::List(_) => {
            let message = format!("`workflow.options` must be a mapping, not {}", what(block, node));
            let finding = block.error(Code::WorkflowOptionsType, "options", node.span, message);
            block.report(finding.help("write a mapping, or leave it out"));
            IndexMap::new()
        }
    }
}

fn is_blank(bound: &Bound) -> bool {
    bound.template == Template::Constant(Value::text(""))
}

/// The value of a step, or of the workflow if the step has none. An expression that evaluates to nothing counts as a
/// value.
pub fn inherited(
    table: &Table<'_>,
    key: &'static str,
    default: Option<&Bound>,
    around: &Around<'_>,
) -> Option<Bound> {
    let own = given(table, key).and_then(|node| evaluated_text(table, key, node));
    let Some(default) = default else { return own.filter(|own| !is_blank(own)) };
    if !around.document.budget.spend(weight(&default.template)) {
        table.report(too_much(table, key));
        return own;
    }
    match own {
        None => Some(default.clone()),
        Some(own) if is_blank(&own) => Some(default.clone()),
        Some(own) => Some(own),
    }
}

fn weight(template: &Template) -> usize {
    let mut count = 1;
    template.expressions().iter().for_each(|expr| expr.walk(&mut |_| count += 1));
    count
}

fn too_much(table: &Table<'_>, key: &str) -> Diagnostic {
    let message = format!("`workflow.{key}` is too large to be inherited by so many steps");
    let finding = table.error(Code::ExpressionLimit, key, table.span.head(), message);
    finding.help("make it smaller, or split the workflow")
}

pub fn command(table: &Table<'_>, around: &Around<'_>) -> Work {
    let command = needed(table, "command", "name the command: `command: speckit.plan`");
    let command = command.and_then(|node| text(table, "command", node));
    let ask = Ask::Command {
        command: command.map_or_else(|| "".into(), |command| command.value),
        input: bindings(table, "input"),
        arguments: arguments(table),
        settings: bindings(table, "integration_options"),
    };
    let capture = capture(table);
    let captured = says(table, "capture", true);
    let timeout = captured.then(|| seconds(table, "timeout")).flatten();
    if !captured && present(table, "timeout").is_some() {
        let message = "`timeout` has no effect on a command whose output is not captured";
        let finding = table.warning(Code::IgnoredKey, "timeout", table.key_span("timeout"), message);
        table.report(finding.reference("timeout").help("add `capture: true`, or remove it"));
    }
    let timeout = capture.map(|_| timeout.unwrap_or(CAPTURED_TIMEOUT));
    (assistant(table, ask, capture, options(table, around), around), timeout)
}

pub fn prompt(table: &Table<'_>, around: &Around<'_>) -> Work {
    let prompt = needed(table, "prompt", "write the prompt: `prompt: Summarize the changes`");
    let prompt = prompt.and_then(|node| evaluated_text(table, "prompt", node));
    let ask = Ask::Prompt(prompt.unwrap_or_else(|| nothing(table, "prompt")));
    let timeout = seconds(table, "timeout").unwrap_or(PROMPT_TIMEOUT);
    (assistant(table, ask, capture(table), IndexMap::new(), around), Some(timeout))
}

fn assistant(
    table: &Table<'_>,
    ask: Ask,
    capture: Option<Capture>,
    options: IndexMap<Arc<str>, Value>,
    around: &Around<'_>,
) -> Kind<Vec<windlass_ir::workflow::Step>> {
    let defaults = &around.document.defaults;
    Kind::Action(Action::Assistant(Box::new(Assistant {
        ask,
        integration: inherited(table, "integration", defaults.integration.as_ref(), around),
        model: inherited(table, "model", defaults.model.as_ref(), around),
        options,
        capture,
    })))
}

/// A mapping whose strings are evaluated.
fn bindings(table: &Table<'_>, key: &'static str) -> Bindings {
    let Some(node) = present(table, key) else { return IndexMap::new() };
    let Some(map) = mapping(table, key, node) else { return IndexMap::new() };
    let entries = map.map.entries.iter().map(|entry| {
        let name = &entry.key.text;
        (name.clone(), evaluated(&map, name, &entry.value, Binder::default()))
    });
    entries.collect()
}

fn arguments(table: &Table<'_>) -> Vec<Bound> {
    let key = "integration_args";
    let Some(node) = present(table, key) else { return Vec::new() };
    let items = field::list(table, key, node, "a list of strings").unwrap_or_default();
    let listed = items.iter().enumerate();
    listed.filter_map(|(index, item)| evaluated_text(table, &format!("{key}[{index}]"), item)).collect()
}

/// The options of the step override those of the workflow.
fn options(table: &Table<'_>, around: &Around<'_>) -> IndexMap<Arc<str>, Value> {
    let defaults = &around.document.defaults.options;
    let mut options = IndexMap::new();
    if around.document.budget.spend(defaults.len()) {
        options.clone_from(defaults);
    } else {
        table.report(too_much(table, "options"));
    }
    let own = present(table, "options").and_then(|node| mapping(table, "options", node));
    let own = own.iter().flat_map(|own| &own.map.entries);
    options.extend(own.map(|entry| (entry.key.text.clone(), entry.value.to_value())));
    options
}

fn capture(table: &Table<'_>) -> Option<Capture> {
    let capture = field::boolean(table, "capture").unwrap_or(false);
    let limit = given(table, "capture_max_bytes");
    let bytes_max = match limit.map(|node| (node, node.to_value())) {
        None => Some(CAPTURE_BYTES),
        Some((_, Value::Int(-1))) => None,
        Some((_, Value::Int(bytes))) if bytes > 0 => u64::try_from(bytes).ok(),
        Some((node, _)) => {
            bad(table, "capture_max_bytes", node, "a whole number above zero, or -1 for no limit");
            return None;
        }
    };
    if let Some(node) = limit.filter(|_| !capture) {
        // An invalid `capture` is reported on its own.
        if !table.has("capture") || says(table, "capture", false) {
            let message = "`capture_max_bytes` needs `capture: true`";
            let finding = table.error(Code::BadField, "capture_max_bytes", node.span, message);
            table.report(finding.help("add `capture: true`, or remove it"));
        }
        return None;
    }
    capture.then_some(Capture { bytes_max })
}

fn says(table: &Table<'_>, key: &str, flag: bool) -> bool {
    table.lookup(key).is_some_and(|entry| entry.value.to_value() == Value::Bool(flag))
}
