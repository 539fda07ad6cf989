//! Two runs side by side: their inputs, their plans and their steps.

use super::super::sample;
use crate::operation::{About, Operation, Route, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::report::Report;
use crate::types::{Json, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::sync::Arc;
use windlass_dialects::Dialect;
use windlass_ir::plan::Parameters;
use windlass_ir::{Plan, RunStatus};
use windlass_runtime::{Engine, RunId};

/// Compare two runs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffRuns {
    pub run_id: String,
    /// The other run.
    pub with: String,
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunDiff {
    /// Always `diff`.
    #[serde(rename = "type")]
    pub kind: DiffKind,
    pub before: DiffSide,
    pub after: DiffSide,
    /// The inputs that differ, by name: `before` and `after`.
    pub inputs: Json,
    /// `same`, and otherwise the steps that were added, removed or changed, and what else differs around them.
    pub plan: Json,
    /// As inputs.
    pub outputs: Json,
    pub error: Json,
    /// By step: the members that differ, how long it took, and whether it is the same.
    pub steps: Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    Diff,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSide {
    pub run_id: String,
    pub workflow: String,
    pub status: RunStatus,
    /// The digest of the plan.
    pub version: String,
}

impl Operation for DiffRuns {
    type Reply = RunDiff;
    const ABOUT: About = About {
        name: "runs.diff",
        summary: "Compare two runs: inputs, plans and steps",
        subject: Subject::Run,
        http: &[Route::get("/workflow-runs/{run_id}/diff")],
        cli: &["diff"],
        ..About::READS
    };

    fn example() -> Self {
        Self { run_id: sample::FINISHED.into(), with: sample::FAILED.into() }
    }
}

impl Perform for DiffRuns {
    async fn perform(self, cx: &Context) -> Result<RunDiff, Refusal> {
        let runs = [cx.run_id(&self.run_id)?, cx.run_id(&self.with)?];
        cx.read(move |engine| Ok(compare(&side(engine, &runs[0])?, &side(engine, &runs[1])?))).await
    }
}

/// A run and its plan.
struct Side {
    run: Run,
    plan: Arc<Plan>,
}

fn side(engine: &Engine, run: &RunId) -> Result<Side, Refusal> {
    let view = engine.view(run)?;
    Ok(Side { run: Report::of(engine, run, &view).run(), plan: view.program().plan.clone() })
}

fn compare(before: &Side, after: &Side) -> RunDiff {
    let about = |side: &Side| DiffSide {
        run_id: side.run.run_id.clone(),
        workflow: side.run.workflow.clone(),
        status: side.run.status,
        version: side.run.version.clone(),
    };
    let json = |member: &dyn Fn(&Run) -> serde_json::Result<Json>| {
        [before, after].map(|side| member(&side.run).unwrap_or_default())
    };
    let errors = json(&|run| serde_json::to_value(&run.error));
    let both = json(&|run| serde_json::to_value(&run.steps));
    RunDiff {
        kind: DiffKind::Diff,
        before: about(before),
        after: about(after),
        inputs: members(&before.run.inputs, &after.run.inputs),
        plan: plans(&before.plan, &after.plan),
        outputs: members(&before.run.outputs, &after.run.outputs),
        error: pair(&errors[0], &errors[1]),
        steps: steps(&both[0], &both[1]),
    }
}

/// The members of two objects that differ, by name; or the two values if one is not an object.
pub fn members(before: &Json, after: &Json) -> Json {
    match (before, after) {
        (Json::Object(before), Json::Object(after)) => {
            let differ = names(before, after).filter_map(|name| {
                let changed =
                    pair(before.get(name).unwrap_or(&Json::Null), after.get(name).unwrap_or(&Json::Null));
                (!changed.is_null()).then(|| (name.clone(), changed))
            });
            Json::Object(differ.collect())
        }
        (before, after) if before == after => json!({}),
        (before, after) => json!({"": {"before": before, "after": after}}),
    }
}

/// The names in either, in their order, each once.
fn names<'j>(
    before: &'j Map<String, Json>,
    after: &'j Map<String, Json>,
) -> impl Iterator<Item = &'j String> {
    before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)))
}

/// Both, if they differ.
fn pair(before: &Json, after: &Json) -> Json {
    if before == after { Json::Null } else { json!({"before": before, "after": after}) }
}

/// Which steps of two plans differ, and in what.
fn plans(before: &Plan, after: &Plan) -> Json {
    if before.digest == after.digest {
        return json!({"same": true, "steps": {}, "around": []});
    }
    let (old, new) = (described(before, after), described(after, before));
    let empty = Map::new();
    let map = |json: &'_ Json| json.as_object().cloned().unwrap_or_else(|| empty.clone());
    let (old, new) = (map(&old), map(&new));
    let steps = names(&old, &new).filter_map(|name| {
        let change = match (old.get(name), new.get(name)) {
            (Some(_), None) => json!({"change": "removed", "fields": []}),
            (None, Some(_)) => json!({"change": "added", "fields": []}),
            (Some(before), Some(after)) if before != after => {
                let fields: Vec<String> = match members(before, after) {
                    Json::Object(fields) => fields.keys().cloned().collect(),
                    _ => Vec::new(),
                };
                json!({"change": "changed", "fields": fields})
            }
            (_, _) => return None,
        };
        Some((name.clone(), change))
    });
    let steps: Map<String, Json> = steps.collect();
    json!({"same": false, "steps": steps, "around": around(before, after)})
}

/// The parts of two plans that differ outside of their steps.
fn around(before: &Plan, after: &Plan) -> Vec<String> {
    let bare = |plan: &Plan| {
        let mut json = serde_json::to_value(plan).unwrap_or_default();
        if let Json::Object(fields) = &mut json {
            ["steps", "roots", "digest"].iter().for_each(|field| drop(fields.shift_remove(*field)));
        }
        json
    };
    match members(&bare(before), &bare(after)) {
        Json::Object(fields) => fields.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// The steps of a plan by name. If both plans list the same steps, everything about them is compared. Otherwise step numbers mean
/// different steps, so only what people see of a step is.
fn described(plan: &Plan, other: &Plan) -> Json {
    let names = plan.names();
    if names == other.names() {
        let steps = names.into_iter().zip(&plan.steps).filter(|(_, step)| !step.implicit);
        let whole = |step| serde_json::to_value(step).unwrap_or_default();
        return Json::Object(steps.map(|(name, step)| (name, whole(step))).collect());
    }
    let words = Dialect::by_name(&plan.dialect).unwrap_or(Dialect::Swdl).words();
    serde_json::to_value(&plan.outline(words, &Parameters::default()).steps).unwrap_or_default()
}

/// The results of the steps of either run.
fn steps(before: &Json, after: &Json) -> Json {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let differ = names(before, after).map(|name| {
        let nothing = json!({"status": null});
        let (old, new) = (before.get(name).unwrap_or(&nothing), after.get(name).unwrap_or(&nothing));
        let fields = ["status", "attempts", "input", "output", "error", "skipped_because"];
        let mut changed: Map<String, Json> = Map::new();
        for field in fields {
            let both = pair(&old[field], &new[field]);
            if !both.is_null() {
                changed.insert(field.to_owned(), both);
            }
        }
        let same = changed.is_empty();
        let took = json!({"before": old["duration_seconds"], "after": new["duration_seconds"]});
        changed.insert("duration_seconds".to_owned(), took);
        changed.insert("same".to_owned(), same.into());
        (name.clone(), Json::Object(changed))
    });
    Json::Object(differ.collect())
}
