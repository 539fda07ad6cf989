//! Whether this machine has an executor for every step of a plan.

use super::Surroundings;
use windlass_ir::Plan;
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, BuiltinKind, Kind};
use windlass_runtime::{Config, Error};

/// Refuses a plan with a step that has no executor here.
pub fn check_executors(
    plan: &Plan,
    from: &Surroundings,
    runs: impl Fn(&PlanStep) -> bool,
) -> Result<(), Error> {
    let config = from.config.as_deref().map(Config::read).transpose()?;
    let without = plan.steps.iter().find(|step| has_no_executor(step, config.as_ref()) && runs(step));
    match without.filter(|_| from.mock.is_none()) {
        None => Ok(()),
        Some(step) => {
            let kind = match server(step) {
                Some(server) => format!("`{}`, {server}", step.word),
                None => format!("`{}`", step.word),
            };
            Err(Error::NoExecutor { step: step.id.to_string(), kind, task: task(step) })
        }
    }
}

/// The task of a worker.
fn task(step: &PlanStep) -> Option<String> {
    let Kind::Action(Action::Task(task)) = &step.kind else { return None };
    Some(task.task.to_string())
}

/// The tool of a server, and the server.
fn server(step: &PlanStep) -> Option<String> {
    let Kind::Action(Action::Tool(tool)) = &step.kind else { return None };
    Some(format!("`{}` of `{}`", tool.tool, tool.server.as_ref()?))
}

/// Whether Windlass has no executor for a step.
fn has_no_executor(step: &PlanStep, config: Option<&Config>) -> bool {
    match &step.kind {
        Kind::Action(action) => match action {
            Action::Shell(_) | Action::Assistant(_) | Action::Call(_) => false,
            Action::Builtin(builtin) => match builtin.what {
                BuiltinKind::InitProject | BuiltinKind::GithubAddLabel => false,
                BuiltinKind::Respond => true,
            },
            Action::Task(task) => !config.is_some_and(|config| config.tasks.contains_key(&task.task)),
            Action::Agent(_) | Action::Tool(_) | Action::Http(_) => true,
        },
        Kind::Gate(_)
        | Kind::Wait(_)
        | Kind::Assign(_)
        | Kind::Finish(_)
        | Kind::Slot(_)
        | Kind::Block(_)
        | Kind::Parallel(_)
        | Kind::ForEach(_)
        | Kind::Repeat(_)
        | Kind::Choose(_)
        | Kind::Guard(_) => false,
    }
}
