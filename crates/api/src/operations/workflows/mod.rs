//! Operations on definitions: the text of a workflow travels in the request, or its name is looked up in the library.

mod edit;
mod evaluate;
mod get;
mod graph;
mod list;
mod plan;
mod simulate;
mod source;
mod validate;

pub use edit::EditWorkflow;
pub use evaluate::EvaluateExpression;
pub use get::GetWorkflow;
pub use graph::GraphWorkflow;
pub use list::{ListWorkflows, WorkflowFilter};
pub use plan::PlanWorkflow;
pub(super) use plan::{parameters, shown};
pub use simulate::{Local, SimulateWorkflow};
pub(super) use source::Opened;
pub use validate::ValidateWorkflow;

/// The workflow of the examples.
const SAMPLE: &str =
    "workflow: {id: sample, name: Sample}\nstages:\n  - {id: hello, type: shell, run: echo hello}\n";

/// A request about that workflow.
fn sample() -> crate::types::Ref {
    crate::types::Ref::text("sample.yaml", SAMPLE)
}
