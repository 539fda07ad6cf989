//! Stages for a command-line agent: a prompt or a named command, and how much of its output is captured.

use super::document::values;
use super::table::Table;
use crate::text::{Kind, Node};
use windlass_ir::expr::Template;
use windlass_ir::workflow::{Ask, Assistant, Bound, Capture};
use windlass_ir::{Code, Value};

pub fn read(stage: &Table<'_>) -> Assistant {
    let Some(table) = stage.table("assistant") else {
        stage.demand("assistant", "write the prompt: `assistant: {prompt: \"…\"}`");
        return nothing(stage);
    };
    let assistant = Assistant {
        ask: ask(&table),
        integration: table.bound_text("integration"),
        model: table.bound_text("model"),
        options: values(&table, "options"),
        capture: table.node("capture").and_then(|node| capture(&table, node)),
    };
    table.finish(&["input", "arguments", "settings"], |_| {
        ("without `command`".into(), "remove it, or use `command`")
    });
    assistant
}

fn nothing(table: &Table<'_>) -> Assistant {
    let template = Template::Constant(Value::text(""));
    let field = table.place.field("assistant").into();
    let prompt = Bound { template, field, span: table.span };
    Assistant {
        ask: Ask::Prompt(prompt),
        integration: None,
        model: None,
        options: indexmap::IndexMap::new(),
        capture: None,
    }
}

/// `prompt`, or `command` with its input.
fn ask(table: &Table<'_>) -> Ask {
    let prompt = table.bound_text("prompt");
    let command = table.plain_text("command");
    match (prompt, command) {
        (Some(prompt), None) => Ask::Prompt(prompt),
        (Some(prompt), Some(_)) => {
            let span = table.key_span("command");
            let message = "`prompt` and `command` cannot both be given";
            let finding = table.error(Code::ConflictingKeys, "command", span, message);
            table.report(finding.help("keep one of the two"));
            Ask::Prompt(prompt)
        }
        (None, Some(command)) => Ask::Command {
            command,
            input: table.bindings("input"),
            arguments: arguments(table),
            settings: table.bindings("settings"),
        },
        (None, None) => {
            if !table.has("prompt") && !table.has("command") {
                table.missing("prompt", "write a `prompt`, or a `command` with its `input`");
            }
            nothing(table).ask
        }
    }
}

fn arguments(table: &Table<'_>) -> Vec<Bound> {
    let items = table.list("arguments").unwrap_or_default().iter().enumerate();
    items.map(|(index, node)| table.bound_node(&format!("arguments[{index}]"), node)).collect()
}

/// `true` captures everything, `{max_bytes: N}` that much of each stream.
fn capture(table: &Table<'_>, node: &Node) -> Option<Capture> {
    match &node.kind {
        Kind::Map(_) => {
            let inner = table.table("capture")?;
            let bytes_max = inner.integer("max_bytes", 0, u64::MAX);
            inner.finish_all();
            Some(Capture { bytes_max })
        }
        Kind::Scalar(_) | Kind::List(_) => {
            table.boolean("capture").filter(|keep| *keep).map(|_| Capture { bytes_max: None })
        }
    }
}
