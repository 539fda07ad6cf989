//! The operations, one file for each noun, and the table of all of them.

mod audit;
mod budgets;
mod codes;
mod data;
mod events;
mod firings;
mod gates;
mod limits;
mod logs;
mod messages;
mod runs;
mod sample;
mod schemas;
mod steps;
mod tokens;
mod triggers;
mod workflows;

pub use audit::ListAudit;
pub use budgets::{ListBudgets, SetBudget};
pub use codes::{CodePage, GetCode, codes};
pub use data::{
    BackUp, BackedUp, CheckData, CollectGarbage, DataFinding, DataReport, GcReport, KeptRun, RemovedRun,
    RepairData,
};
pub use events::{EventExtra, ListEvents};
pub use firings::{Firing, FiringOutcome, ListFirings};
pub use gates::{ApproveGate, Decide, RejectGate};
pub use limits::GetLimits;
pub use logs::ListLogs;
pub use messages::{PublishMessage, Published};
pub use runs::{
    Bulk, BulkAction, BulkItem, BulkRuns, CancelRun, CarriedRun, CarriedRuns, DiffRuns, ExportRuns, GetRun,
    ImportRuns, ListRuns, PauseRun, ResumeRun, Retried, RetryPlan, RetryRun, RetryStep, RunDiff, RunFilter,
    SignalRun, Signaled, StartRun, StartedRun, Steps, members,
};
pub use schemas::GetSchema;
pub use steps::ListSteps;
pub use tokens::{CreateToken, ListTokens, RevokeToken, caller_of};
pub use triggers::NextTriggers;
pub use workflows::{
    EditWorkflow, EvaluateExpression, GetWorkflow, GraphWorkflow, ListWorkflows, Local, PlanWorkflow,
    SimulateWorkflow, ValidateWorkflow, WorkflowFilter,
};

use crate::perform::{Row, row};
use std::sync::LazyLock;

/// Every operation: the contract that faces derive from.
pub fn operations() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(declared);
    &ROWS
}

fn declared() -> Vec<Row> {
    vec![
        row::<ListWorkflows>(),
        row::<GetWorkflow>(),
        row::<ValidateWorkflow>(),
        row::<PlanWorkflow>(),
        row::<GraphWorkflow>(),
        row::<EditWorkflow>(),
        row::<EvaluateExpression>(),
        row::<SimulateWorkflow>(),
        row::<GetSchema>(),
        row::<NextTriggers>(),
        row::<StartRun>(),
        row::<ListRuns>(),
        row::<GetRun>(),
        row::<CancelRun>(),
        row::<PauseRun>(),
        row::<ResumeRun>(),
        row::<RetryRun>(),
        row::<SignalRun>(),
        row::<BulkRuns>(),
        row::<DiffRuns>(),
        row::<ExportRuns>(),
        row::<ImportRuns>(),
        row::<ListSteps>(),
        row::<ListEvents>(),
        row::<ListLogs>(),
        row::<ApproveGate>(),
        row::<RejectGate>(),
        row::<PublishMessage>(),
        row::<GetLimits>(),
        row::<ListBudgets>(),
        row::<SetBudget>(),
        row::<ListFirings>(),
        row::<ListTokens>(),
        row::<CreateToken>(),
        row::<RevokeToken>(),
        row::<ListAudit>(),
        row::<CheckData>(),
        row::<RepairData>(),
        row::<CollectGarbage>(),
        row::<BackUp>(),
        row::<GetCode>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caller, Code, Context, Effect};
    use serde_json::{Value as Json, json};
    use std::path::Path;

    fn call(row: &Row, request: Json) -> Result<Json, crate::Refusal> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let cx = Context::reading(Path::new("nowhere"), Caller::user("ann"));
        runtime.block_on(row.call(cx, request))
    }

    fn named(name: &str) -> &'static Row {
        operations().iter().find(|row| row.about.name == name).expect("an operation")
    }

    #[test]
    fn examples_of_pure_operations_work_and_fit_their_schemas() {
        for row in operations().iter().filter(|row| row.about.effect == Effect::Pure) {
            let reply = call(row, row.example.clone());
            let reply = reply.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", row.about.name));
            let validator = jsonschema::validator_for(row.reply.as_value()).expect("a schema");
            let problems: Vec<String> =
                validator.iter_errors(&reply).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{}: {problems:?} in {reply:#}", row.about.name);
        }
    }

    #[test]
    fn a_request_is_checked_before_it_is_performed() {
        let check = |name: &str, request: Json, code: Code, field: &str| {
            let refusal = call(named(name), request).expect_err("a refusal");
            assert_eq!((refusal.code, refusal.field.as_deref()), (code, Some(field)), "{refusal:?}");
        };
        check("workflows.plan", json!({"workflow": "-", "sorce": ""}), Code::UnknownMember, "sorce");
        check("workflows.validate", json!({"workflow": "-", "strict": 1}), Code::BadRequest, "strict");
        check("workflows.validate", json!({"workflow": "release"}), Code::NoWorkflow, "workflow");
        check("schemas.get", json!({"kind": "swld"}), Code::NoSchema, "kind");
        check("triggers.next", json!({"source": "", "count": 0}), Code::BadRequest, "count");
        check("triggers.next", json!({"source": "", "after": "soon"}), Code::BadRequest, "after");
        let request = json!({"dialect": "swdl", "expression": "1", "context": [1]});
        check("workflows.evaluate", request, Code::BadRequest, "context");
    }

    #[test]
    fn an_invalid_workflow_is_refused_with_its_findings() {
        let text = "workflow: {id: x, name: X}\nstages: [{id: a, type: spiral}]\n";
        let request = json!({"workflow": "-", "source": text, "file": "x.yaml"});
        for name in ["workflows.get", "workflows.plan", "workflows.graph"] {
            let refusal = call(named(name), request.clone()).expect_err("a refusal");
            let place = refusal.place.as_ref().map(|place| (place.file.as_str(), place.line));
            assert_eq!((refusal.code, place), (Code::InvalidWorkflow, Some(("x.yaml", 2))), "{refusal:?}");
            assert_eq!(refusal.message, refusal.diagnostics[0].message);
        }
    }
}
