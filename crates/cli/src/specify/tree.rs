//! The tree of a run in `state.json`: every step with its phase, its result and its inner steps.

use super::log::{Before, Log};
use super::state::{Origin, Rest, report};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use windlass_api::report::Report;
use windlass_dialects::speckit::{ascii, case, member};
use windlass_dialects::text::{Kind as NodeKind, Node};
use windlass_ir::policy::OnFailure;
use windlass_ir::workflow::{Action, Kind};
use windlass_ir::{Plan, Value};
use windlass_runtime::{
    Decision, Outcome, Path, RunId, StepPhase, StepView, View, Work, is_abort, is_raised,
};

/// The version of the tree that Spec Kit 1.2 reads.
const VERSION: u32 = 2;

/// The inputs of called workflows.
pub type Bound = HashMap<Path, Value>;

pub fn execution(run: &RunId, view: &View, origin: &Origin, log: &Log, rest: Rest) -> Option<Json> {
    let steps = origin.definition.as_ref()?.steps()?;
    let tree = Tree { view, report: report(run, view), origin, log, rest };
    let sequence = tree.sequence(&Path::default(), steps, true);
    Some(json!({"version": VERSION, "sequence": sequence, "offset": 0, "initial": {}}))
}

struct Tree<'a> {
    view: &'a View,
    report: Report<'a>,
    origin: &'a Origin,
    log: &'a Log,
    rest: Rest,
}

/// The progress of a step.
enum Stage {
    Active,
    /// The process left before the step ended.
    Left,
    Ended {
        outcome: &'static str,
        error: Json,
    },
}

impl<'a> Tree<'a> {
    /// A list of steps inside the step at `around`; with `owned` the list includes its source.
    fn sequence(&self, around: &Path, steps: &Node, owned: bool) -> Json {
        let nodes: Vec<Json> = items(steps).iter().map(|step| self.node(around, step)).collect();
        match owned {
            true => json!({"source": ascii(steps), "nodes": nodes}),
            false => json!({"nodes": nodes}),
        }
    }

    fn node(&self, around: &Path, config: &Node) -> Json {
        let path = around.child(id_of(config).into(), None);
        let Some(step) = self.view.step(&path) else { return json!({"phase": "ready"}) };
        let children = self.children(&path, &step, config);
        // A branch, a loop or a fan-out never handles failures inside it.
        let catches = children.is_empty() || is_call(self.view, &step);
        let Some(stage) = self.stage(&step, catches) else { return json!({"phase": "ready"}) };
        match is_call(self.view, &step) && !children.is_empty() {
            true => self.call(&path, &step, &stage, children),
            false if children.is_empty() => self.leaf(&path, &step, &stage),
            false => self.scope(&path, &step, &stage, (config, children)),
        }
    }

    fn stage(&self, step: &StepView<'_>, catches: bool) -> Option<Stage> {
        let at_work = || if self.rest == Rest::None { Stage::Active } else { Stage::Left };
        let ended = |outcome, error| Stage::Ended { outcome, error };
        Some(match &step.phase {
            StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued { .. } => return None,
            StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Joined => at_work(),
            StepPhase::Asking { .. } | StepPhase::Waiting { .. } | StepPhase::Inside => match self.rest {
                Rest::Waiting => ended("paused", Json::Null),
                Rest::None | Rest::Over | Rest::Interrupted => at_work(),
            },
            StepPhase::Settled(Outcome::Done(_) | Outcome::Continue(_)) => ended("completed", Json::Null),
            StepPhase::Settled(Outcome::Skipped(_)) => match self.view.plan_step(step).kind {
                Kind::Slot(_) => ended("completed", Json::Null),
                _ => return None,
            },
            StepPhase::Settled(Outcome::Cancelled(_)) => step.started_at.map(|_| Stage::Left)?,
            StepPhase::Settled(Outcome::Failed(failure)) if is_raised(failure) => Stage::Left,
            StepPhase::Settled(Outcome::Failed(failure)) => {
                let caught = catches && self.view.plan_step(step).policy.on_failure == OnFailure::Continue;
                let outcome = match () {
                    () if is_abort(failure) => "aborted",
                    () if caught => "completed",
                    () => "failed",
                };
                ended(outcome, json!(failure.message))
            }
        })
    }

    fn leaf(&self, path: &Path, step: &StepView<'a>, stage: &Stage) -> Json {
        match (stage, self.log.before.get(path)) {
            (Stage::Ended { outcome, error }, _) => json!({
                "phase": if *outcome == "completed" { "done" } else { "blocked" },
                "active": false,
                "result": self.report.record(path, step),
                "outcome": outcome,
                "error": error,
            }),
            (stage, Some(Before { outcome, error, record })) if !is_call(self.view, step) => json!({
                "phase": "blocked",
                "active": matches!(stage, Stage::Active),
                "result": record,
                "outcome": outcome,
                "error": error,
            }),
            (stage, _) => begun("ready", stage).into(),
        }
    }

    /// A step with inner steps. Its result is the one from when it was entered.
    fn scope(
        &self,
        path: &Path,
        step: &StepView<'a>,
        stage: &Stage,
        (config, children): (&Node, Vec<Json>),
    ) -> Json {
        let mut result = self.report.record(path, step);
        let results = |record: &mut Json| record["output"].as_object_mut()?.shift_remove("results");
        let now = results(&mut result);
        let mut node = begun("children", stage);
        node.insert("result".into(), result);
        node.insert("children".into(), children.into());
        if let Some(template) = member(config, "step") {
            node.insert("template".into(), ascii(template).into());
        }
        let ended = match (stage, self.log.before.get(path)) {
            (Stage::Ended { outcome, error }, _) => Some((*outcome, error, now)),
            (_, Some(before)) => Some((before.outcome, &before.error, results(&mut before.record.clone()))),
            (Stage::Active | Stage::Left, None) => None,
        };
        if let Some((outcome, error, results)) = ended {
            if outcome == "completed" {
                node.insert("phase".into(), "done".into());
            }
            node.extend([("outcome".into(), json!(outcome)), ("error".into(), error.clone())]);
            node.extend(results.map(|results| ("fan_results".into(), results)));
        }
        node.into()
    }

    fn call(&self, path: &Path, step: &StepView<'a>, stage: &Stage, children: Vec<Json>) -> Json {
        let id = called_id(self.view, path);
        let called = id.as_str().and_then(|id| self.origin.called(id));
        let mut node = begun("children", stage);
        let binding = json!({
            "workflow": id,
            "definition": called.as_ref().map(|(definition, _)| definition.ascii()),
            "inputs": self.log.bound.get(path).and_then(Value::to_json),
            "workflow_dir": called.as_ref().map(|(_, folder)| folder),
        });
        node.extend([("binding".into(), binding), ("children".into(), children.into())]);
        if let Stage::Ended { outcome, error } = stage {
            node.insert("phase".into(), if *outcome == "completed" { "done" } else { "blocked" }.into());
            let result = self.report.record(path, step);
            let ended = [("result", result), ("outcome", json!(outcome)), ("error", error.clone())];
            node.extend(ended.map(|(name, value)| (name.into(), value)));
        }
        node.into()
    }

    /// The contents of an entered step: the branch, the rounds, the items, or the steps of another workflow.
    fn children(&self, path: &Path, step: &StepView<'_>, config: &Node) -> Vec<Json> {
        let frames = |count: u32, steps: &Node, owned: bool| {
            let frame = |number| self.sequence(&path.frame(number), steps, owned && number == 0);
            (0..count).map(frame).collect()
        };
        match (step.entered, &self.view.plan_step(step).kind) {
            (Some(Decision::Arm { arm, .. }), Kind::Choose(_)) => branch(config, arm)
                .filter(|steps| !items(steps).is_empty())
                .map(|steps| self.sequence(path, steps, true))
                .into_iter()
                .collect(),
            (Some(Decision::Round { .. }), Kind::Repeat(_)) => {
                let begun = (0..).take_while(|number| self.view.step(&path.frame(*number)).is_some()).count();
                let count = u32::try_from(begun).unwrap_or(u32::MAX);
                let steps = member(config, "steps").filter(|steps| !items(steps).is_empty());
                steps.map_or_else(Vec::new, |steps| frames(count, steps, true))
            }
            (Some(Decision::Items { items: Value::List(items), .. }), Kind::ForEach(_)) => {
                let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                let template = member(config, "step");
                let item = |number, template| json!({"nodes": [self.node(&path.frame(number), template)]});
                template.map_or_else(Vec::new, |template| {
                    (0..count).map(|number| item(number, template)).collect()
                })
            }
            (_, Kind::Action(Action::Call(_))) if self.log.bound.contains_key(path) => {
                let id = called_id(self.view, path);
                let called = id.as_str().and_then(|id| self.origin.called(id));
                let steps = called.as_ref().and_then(|(definition, _)| definition.steps());
                steps.map(|steps| self.sequence(path, steps, false)).into_iter().collect()
            }
            (_, _) => Vec::new(),
        }
    }
}

fn begun(phase: &str, stage: &Stage) -> Map<String, Json> {
    let active = matches!(stage, Stage::Active);
    Map::from_iter([("phase".to_owned(), json!(phase)), ("active".to_owned(), json!(active))])
}

fn items(node: &Node) -> &[Node] {
    match &node.kind {
        NodeKind::List(items) => items,
        NodeKind::Scalar(_) | NodeKind::Map(_) => &[],
    }
}

fn id_of(config: &Node) -> &str {
    match member(config, "id").map(|id| &id.kind) {
        Some(NodeKind::Scalar(scalar)) => &scalar.text,
        Some(NodeKind::List(_) | NodeKind::Map(_)) | None => "",
    }
}

/// The steps of the chosen arm.
fn branch<'n>(config: &'n Node, arm: &str) -> Option<&'n Node> {
    match member(config, "cases") {
        Some(cases) => case(cases, arm).or_else(|| member(config, "default")),
        None => member(config, arm),
    }
}

fn is_call(view: &View, step: &StepView<'_>) -> bool {
    step.frame.is_none() && matches!(view.plan_step(step).kind, Kind::Action(Action::Call(_)))
}

/// The calls around a step, the innermost first.
pub fn calls_around(view: &View, path: &Path) -> Vec<Path> {
    let around = std::iter::successors(path.parent(), Path::parent);
    around.filter(|around| view.step(around).is_some_and(|step| is_call(view, &step))).collect()
}

/// The id of the workflow that a step has called.
pub fn called_id(view: &View, call: &Path) -> Json {
    let step = view.step(call);
    match step.and_then(|step| step.assignment).map(|assignment| &assignment.work) {
        Some(Work::Call { workflow, .. }) => workflow.to_json().unwrap_or_default(),
        Some(_) | None => Json::Null,
    }
}

/// The position of a step in the tree: the numbers of steps, rounds and items from the outside in.
pub fn execution_path(view: &View, path: &Path) -> Json {
    let mut parts = Vec::new();
    let mut around = Path::default();
    let count = path.segments().len();
    for (number, segment) in path.segments().iter().enumerate() {
        let owner = around.child(segment.name.clone(), None);
        if let Some(step) = view.step(&owner) {
            let plan = &view.program_of(&step).plan;
            parts.push(json!(place(plan, &step)));
            match (segment.ordinal, &view.plan_step(&step).kind) {
                (Some(item), Kind::ForEach(_)) => parts.extend([json!("item"), json!(item)]),
                (Some(round), _) => parts.push(json!(round)),
                (None, Kind::Action(Action::Call(_))) if number + 1 < count => parts.push(json!("workflow")),
                (None, _) if number + 1 < count => parts.push(json!(0)),
                (None, _) => {}
            }
        }
        around = around.child(segment.name.clone(), segment.ordinal);
    }
    parts.into()
}

/// The index of a step in its list.
fn place(plan: &Plan, step: &StepView<'_>) -> usize {
    let lists = match plan.step(step.step).parent {
        Some(around) => plan.step(around).kind.bodies().into_iter().map(|(_, list)| list).collect(),
        None => vec![&plan.roots],
    };
    lists.into_iter().find_map(|list| list.iter().position(|id| *id == step.step)).unwrap_or_default()
}
