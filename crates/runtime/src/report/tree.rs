//! A run as a tree: scopes with what is inside of them, items and rounds in their order. What stands for a step in the plan
//! and is none in the file (a guard around it, the body of a fan-out without a name) is one with the step.

use super::listing::NOT_TAKEN;
use super::{Report, Shown};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;
use windlass_engine::{Decision, Outcome, Path, StepPhase, StepView, Timestamp, View};
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, StepStatus};

/// A step, or one item or round of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// As the user sees it.
    pub id: String,
    /// What kind of step it is, in the words of its file.
    pub word: Arc<str>,
    pub status: StepStatus,
    pub attempts: u32,
    /// How often a loop or a task has begun.
    pub rounds: u32,
    /// The waits that were decided between attempts.
    pub delays: Vec<Duration>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// `code` and `message` of what went wrong.
    pub error: Option<(String, String)>,
    /// Why it was skipped or cancelled.
    pub because: Option<String>,
    /// What it waits for, as in the result of a run.
    pub wait: Option<Json>,
    /// It did not answer in time when it was told to stop, and was not waited for.
    pub abandoned: bool,
    /// Whether this is an item or a round.
    pub is_frame: bool,
    pub inside: Vec<Node>,
}

impl Report<'_> {
    /// The steps of the run as a tree.
    pub fn tree(&self) -> Vec<Node> {
        let mut inside: HashMap<Path, Vec<Shows<'_>>> = HashMap::new();
        for (path, step) in self.view.steps() {
            inside.entry(around(path)).or_default().push((path, step));
        }
        Tree { report: *self, view: self.view, inside }.nodes(&Path::default(), None)
    }
}

/// An item or a round stands in its step, everything else in its scope.
fn around(path: &Path) -> Path {
    let frame = path.frames().last().filter(|(frame, ..)| frame == path);
    frame.map(|(_, owner, _)| owner).or_else(|| path.parent()).unwrap_or_default()
}

/// An instance to show, and its path.
type Shows<'v> = (&'v Path, StepView<'v>);

struct Tree<'v> {
    report: Report<'v>,
    view: &'v View,
    inside: HashMap<Path, Vec<Shows<'v>>>,
}

impl<'v> Tree<'v> {
    fn nodes(&self, around: &Path, but: Option<&Path>) -> Vec<Node> {
        let mut inside = self.inside.get(around).cloned().unwrap_or_default();
        inside.retain(|(path, _)| Some(*path) != but);
        inside.sort_by_key(|(_, step)| step.frame);
        inside.into_iter().map(|shows| self.node(shows)).collect()
    }

    fn node(&self, (path, step): Shows<'v>) -> Node {
        let step = &step;
        if let Some(only) = self.stands_for(path, step) {
            let inner = self.node(only);
            if step.frame.is_some() {
                return Node { is_frame: true, ..inner };
            }
            let outer = self.own(path, step);
            let (status, wait) = match outer.status {
                StepStatus::Running | StepStatus::Pending => (inner.status, inner.wait),
                StepStatus::Waiting
                | StepStatus::Success
                | StepStatus::Failed
                | StepStatus::Recovered
                | StepStatus::Skipped
                | StepStatus::Cancelled => (outer.status, outer.wait),
            };
            let others = self.nodes(path, Some(only.0));
            let inside = inner.inside.into_iter().chain(others).collect();
            return Node { status, wait, inside, rounds: inner.rounds, ..outer };
        }
        let mut node = self.own(path, step);
        node.inside = self.nodes(path, None);
        node.inside.extend(self.passed_by(path, step));
        node
    }

    /// The one instance inside that does the work of this one and has no name of its own.
    fn stands_for(&self, path: &Path, step: &StepView<'_>) -> Option<Shows<'v>> {
        let known = self.view.plan_step(step);
        let is_body = |body: &[StepId], inner: &StepView<'_>| {
            body == [inner.step] && inner.unit == step.unit && inner.frame.is_none()
        };
        let inner = self.inside.get(path)?;
        match (&known.kind, step.frame) {
            (Kind::Guard(guard), None) => {
                let same = path.child(known.id.clone(), None);
                inner.iter().copied().find(|(path, inner)| **path == same && is_body(&guard.body, inner))
            }
            (Kind::ForEach(each), Some(_)) => self.only_unnamed(inner, |step| is_body(&each.body, step)),
            (Kind::Repeat(repeat), Some(_)) => self.only_unnamed(inner, |step| is_body(&repeat.body, step)),
            _ => None,
        }
    }

    fn only_unnamed(
        &self,
        inner: &[Shows<'v>],
        is_body: impl Fn(&StepView<'_>) -> bool,
    ) -> Option<Shows<'v>> {
        let [only] = inner else { return None };
        (self.view.plan_step(&only.1).implicit && is_body(&only.1)).then_some(*only)
    }

    fn own(&self, path: &Path, step: &StepView<'v>) -> Node {
        let view = self.view;
        let Shown { status, attempts, delays, error, skipped, .. } = self.report.shown(path, step);
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let name = self.report.id(path);
        Node {
            id: match step.frame {
                Some(number) if !name.ends_with(']') => format!("{name}[{number}]"),
                Some(_) | None => name,
            },
            word: view.plan_step(step).word.clone(),
            status,
            attempts,
            rounds: step.rounds,
            delays,
            started_at: step.started_at,
            ended_at: step.ended_at,
            error: error.is_object().then(|| (text(&error["code"]), text(&error["message"]))),
            because: skipped.or_else(|| cancelled(step)),
            wait: self.report.wait(path, step),
            abandoned: step.abandoned,
            is_frame: step.frame.is_some(),
            inside: Vec::new(),
        }
    }

    /// The steps of the arms that a choice has not taken.
    fn passed_by(&self, path: &Path, step: &StepView<'_>) -> Vec<Node> {
        let known = self.view.plan_step(step);
        let (Kind::Choose(choose), Some(Decision::Arm { arm, .. })) = (&known.kind, step.entered) else {
            return Vec::new();
        };
        let others = choose.arms().into_iter().filter(|(name, _)| **name != **arm);
        let steps = others.flat_map(|(_, body)| body.iter().copied());
        let born = |id: StepId| {
            let inside = self.inside.get(path).into_iter().flatten();
            inside.into_iter().any(|(_, step)| step.step == id)
        };
        steps.filter(|id| !born(*id)).map(|id| self.unborn(step, id)).collect()
    }

    fn unborn(&self, scope: &StepView<'_>, id: StepId) -> Node {
        let known = self.view.program_of(scope).step(id).clone();
        Node {
            id: known.id.to_string(),
            word: known.word.clone(),
            status: StepStatus::Skipped,
            attempts: 0,
            rounds: 0,
            delays: Vec::new(),
            started_at: None,
            ended_at: None,
            error: None,
            because: Some(NOT_TAKEN.into()),
            wait: None,
            abandoned: false,
            is_frame: false,
            inside: Vec::new(),
        }
    }
}

fn cancelled(step: &StepView<'_>) -> Option<String> {
    match &step.phase {
        StepPhase::Settled(Outcome::Cancelled(why)) => Some(why.to_string()),
        _ => None,
    }
}
