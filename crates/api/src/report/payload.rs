//! The object that Spec Kit's own program prints about a run.

use super::record::{is_call, position};
use super::{Report, ids};
use serde_json::{Value as Json, json};
use windlass_ir::Value;
use windlass_ir::expr::text_form;
use windlass_runtime::{Outcome, Path, RunPhase, StepPhase, StepView, is_abort};

impl<'v> Report<'v> {
    pub fn payload(&self) -> Json {
        let (run, view, plan) = (self.run, self.view, &self.view.program().plan);
        let current = self.last_begun();
        let root = current.and_then(|path| path.segments().first()).map(|first| first.name.clone());
        let index = plan.roots.iter().position(|step| root.as_ref() == Some(&plan.step(*step).id));
        let status = self.dialect_status();
        let mut payload = json!({
            "run_id": run,
            "workflow_id": plan.header.id,
            "status": status,
            "current_step_id": current.map(|path| ids::within(self.dialects, view, path)),
            "current_step_index": index.unwrap_or(0),
        });
        if let Some((path, step)) = current.and_then(|path| Some((path, view.step(path)?)))
            && matches!(status, "paused" | "aborted")
            && view.plan_step(&step).kind.is_gate()
        {
            payload["gate"] = self.gate_payload(path, &step);
        }
        if let RunPhase::Ended(Outcome::Failed(failure)) = view.phase() {
            payload["error"] = json!(failure.message);
        }
        let scopes = self.called();
        if !scopes.is_empty() {
            payload["workflow_scopes"] = json!(scopes);
        }
        payload
    }

    fn gate_payload(&self, path: &Path, step: &StepView<'v>) -> Json {
        let view = self.view;
        let output = self.shown(path, step).output;
        let message = match &output["message"] {
            text @ Json::String(_) => text.clone(),
            other => text_form(&Value::from(other), &view.program().plan.semantics)
                .map_or(Json::Null, |text| json!(text)),
        };
        let mut gate = json!({
            "step_id": ids::within(self.dialects, view, path),
            "message": message,
            "options": output["options"],
            "choice": output["choice"],
        });
        let around = path.parent().map(|around| scope_path(&around)).unwrap_or_default();
        if !around.is_empty() {
            gate["scope_path"] = json!(around);
        }
        gate
    }

    /// The workflows that were called and have begun.
    fn called(&self) -> Vec<Json> {
        let view = self.view;
        let inside = |path: &Path| {
            view.steps().find(|(other, _)| other.parent().as_ref() == Some(path)).map(|(_, step)| step)
        };
        let calls = view.steps().filter(|(_, step)| is_call(view, step));
        let mut entered: Vec<(&Path, StepView<'_>, StepView<'_>)> =
            calls.filter_map(|(path, step)| Some((path, step, inside(path)?))).collect();
        entered.sort_by_key(|(path, _, _)| position(view, path));
        let told = entered.into_iter().map(|(path, step, first)| {
            let status = match &step.phase {
                StepPhase::Settled(Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_)) => {
                    "completed"
                }
                StepPhase::Settled(Outcome::Failed(failure)) if is_abort(failure) => "aborted",
                StepPhase::Settled(Outcome::Failed(_)) => "failed",
                StepPhase::Settled(Outcome::Cancelled(_)) => "aborted",
                StepPhase::Dormant
                | StepPhase::Pending
                | StepPhase::Queued { .. }
                | StepPhase::Running
                | StepPhase::Backoff { .. }
                | StepPhase::Asking { .. }
                | StepPhase::Waiting { .. }
                | StepPhase::Joined
                | StepPhase::Inside => self.dialect_status(),
            };
            let workflow = &view.program_of(&first).plan.header.id;
            json!({"scope_path": scope_path(path), "workflow_id": workflow, "status": status})
        });
        told.collect()
    }
}

/// The steps from the outermost in, each with the number of its item or round.
fn scope_path(path: &Path) -> Vec<String> {
    let parts = path.segments().iter().flat_map(|segment| {
        let number = segment.ordinal.map(|number| number.to_string());
        std::iter::once(segment.name.to_string()).chain(number)
    });
    parts.collect()
}
