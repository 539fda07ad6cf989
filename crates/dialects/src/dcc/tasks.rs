//! The related language with `tasks` under the same file names: it describes work to an agent, and no program runs
//! it.

use super::table::Table;
use crate::text::{Kind, Mapping, Node};
use windlass_ir::Code;

/// Whether the file is written in that language.
pub fn is_tasks(map: &Mapping) -> bool {
    map.get("tasks").is_some() && map.get("steps").is_none()
}

/// The finding that explains how to convert it.
pub fn explain(top: &Table<'_>) {
    let span = top.key_span("tasks");
    let message = "this file lists `tasks`, which describe work to an agent; no program runs them";
    let finding = top.error(Code::TasksDialect, "tasks", span, message).reference("tasks");
    let help = format!(
        "write each task as a step, `steps: [{{{}}}]`, its `variables` as `inputs`, and read them with \
            `{{{{inputs.NAME}}}}` and results with `{{{{steps.ID.output.NAME}}}}`",
        first_step(top).unwrap_or_else(|| "id: first, tool: TOOL, args: {}".into())
    );
    top.report(finding.help(help));
}

/// The first task in the form of a step.
fn first_step(top: &Table<'_>) -> Option<String> {
    let Kind::List(tasks) = &top.node("tasks")?.kind else { return None };
    let Kind::Map(task) = &tasks.first()?.kind else { return None };
    let text = |key: &str| match &task.get(key)?.value {
        Node { kind: Kind::Scalar(scalar), .. } => Some(scalar.text.clone()),
        Node { kind: Kind::List(_) | Kind::Map(_), .. } => None,
    };
    Some(format!("id: {}, tool: {}, args: {{…}}", text("name")?, text("tool")?))
}
