//! A run as a tree: scopes with what is inside of them, items and rounds in their order. What stands for a step in the plan
//! and is none in the file (a guard around it, the body of a fan-out without a name) is one with the step.

use super::{Report, Shown, ShownFile, error};
use crate::types::{Failure, Gate, Wait};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;
use windlass_ir::{Duration, StepStatus};
use windlass_runtime::{Decision, HookTrace, Outcome, Path, StepPhase, StepView, Timestamp, View, ids};

/// A step, or one item or round of it.
#[derive(Clone, Debug)]
pub struct Node {
    /// As the user sees it.
    pub id: String,
    /// The name of an item, such as `mac, stable`.
    pub item: Option<String>,
    /// What kind of step it is, in the words of its file.
    pub word: Arc<str>,
    pub status: StepStatus,
    pub attempts: u32,
    /// How often a loop or a task has begun.
    pub rounds: u32,
    /// The attempts that failed, if there was more than one.
    pub failed: Vec<Attempt>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub error: Option<Failure>,
    /// Why it was skipped or canceled, in words.
    pub because: Option<String>,
    /// Which arm a branch took and why, or how a loop ended.
    pub decided: Option<String>,
    pub wait: Option<Wait>,
    /// A gate that has asked.
    pub gate: Option<Box<Gate>>,
    /// What an open gate shows with its question.
    pub file: Option<ShownFile>,
    /// For what it runs, if another step asked for it.
    pub handles: Option<Handler>,
    /// An earlier run did it.
    pub kept: bool,
    /// Whether it was undone; `false` if that failed or is under way.
    pub undone: Option<bool>,
    /// It did not stop within its grace period.
    pub abandoned: bool,
    /// Whether this is an item or a round.
    pub is_frame: bool,
    pub inside: Vec<Node>,
}

/// An attempt that failed.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub number: u32,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub error: Failure,
    /// Until the next attempt.
    pub delay: Option<Duration>,
}

/// For what a step runs that is not part of the usual order, with the step that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handler {
    Undoes(String),
    After(String),
    TakesOver(String),
}

impl Report<'_> {
    /// The steps of the run as a tree.
    pub fn tree(&self) -> Vec<Node> {
        let mut inside: HashMap<Path, Vec<Shows<'_>>> = HashMap::new();
        for (path, step) in self.view.steps() {
            inside.entry(around(path)).or_default().push((path, step));
        }
        let tree = Tree { report: *self, view: self.view, inside };
        let mut nodes = tree.nodes(&Path::default(), None);
        nodes.extend(self.view.hooks().map(|(path, hook)| self.hook_node(path, hook)));
        nodes
    }
}

impl Report<'_> {
    fn hook_node(&self, path: &Path, hook: &HookTrace) -> Node {
        let shown = self.hook(path, hook);
        Node {
            attempts: shown.attempts,
            started_at: hook.started_at,
            ended_at: hook.ended_at,
            error: shown.error,
            ..Node::new(shown.id, "hook".into(), shown.status)
        }
    }
}

impl Node {
    /// A step about which nothing else is known.
    pub fn new(id: String, word: Arc<str>, status: StepStatus) -> Self {
        Self {
            id,
            item: None,
            word,
            status,
            attempts: 0,
            rounds: 0,
            failed: Vec::new(),
            started_at: None,
            ended_at: None,
            error: None,
            because: None,
            decided: None,
            wait: None,
            gate: None,
            file: None,
            handles: None,
            kept: false,
            undone: None,
            abandoned: false,
            is_frame: false,
            inside: Vec::new(),
        }
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
        // A handler is shown where it was called.
        inside.retain(|(path, step)| Some(*path) != but && step.phase != StepPhase::Dormant);
        inside.sort_by_key(|(_, step)| step.frame);
        inside.into_iter().map(|shows| self.node(shows)).collect()
    }

    fn node(&self, (path, step): Shows<'v>) -> Node {
        let step = &step;
        if let Some(only) = self.stands_for(path, step) {
            let inner = self.node(only);
            if step.frame.is_some() {
                return Node { is_frame: true, item: self.report.item(path), ..inner };
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
            let undone = outer.undone.or(inner.undone);
            return Node {
                status,
                wait,
                inside,
                undone,
                rounds: inner.rounds,
                failed: inner.failed,
                decided: outer.decided.or(inner.decided),
                gate: inner.gate,
                file: inner.file,
                kept: outer.kept || inner.kept,
                ..outer
            };
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
        let (view, report) = (self.view, &self.report);
        let Shown { status, attempts, error, kept, item, .. } = report.shown(path, step);
        let name = report.id(path);
        let wait = report.wait(path, step);
        let gate = report.gate(path, "").filter(|gate| gate.asked_at.is_some());
        Node {
            id: match step.frame {
                Some(number) if !name.ends_with(']') => format!("{name}[{number}]"),
                Some(_) | None => name,
            },
            word: view.plan_step(step).word.clone(),
            status,
            attempts,
            rounds: step.rounds,
            failed: failed(report, path, step),
            started_at: step.started_at,
            ended_at: step.ended_at,
            error,
            because: report.because(path, step),
            decided: report.decided(path, step),
            file: report.shown_file(path).filter(|_| wait.is_some()),
            wait,
            gate: gate.map(Box::new),
            handles: self.handles(path, step),
            kept,
            undone: step.undone,
            item: item.filter(|_| step.frame.is_some()),
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
        let because = Some("its branch was not taken".into());
        Node { because, ..Node::new(known.id.to_string(), known.word.clone(), StepStatus::Skipped) }
    }

    fn handles(&self, path: &Path, step: &StepView<'_>) -> Option<Handler> {
        let scope = path.parent()?;
        let around = self.view.step(&scope).filter(|around| around.unit == step.unit)?;
        let name = self.report.id(&scope);
        if ids::is_handler(self.view, path) {
            let undoes = around.undone.is_some() && !self.report.id(path).ends_with(".finally");
            return Some(if undoes { Handler::Undoes(name) } else { Handler::After(name) });
        }
        // A step that runs on demand is inside the step that called it, not in its own scope.
        let is_called = self.view.plan_step(step).parent != Some(around.step);
        is_called.then_some(match around.undone {
            Some(_) => Handler::Undoes(name),
            None => Handler::TakesOver(name),
        })
    }
}

/// The failed attempts of a step with several, including the last one.
fn failed(report: &Report<'_>, path: &Path, step: &StepView<'_>) -> Vec<Attempt> {
    let id = Some(report.id(path));
    let earlier = step.failures.iter().map(|failed| Attempt {
        number: failed.attempt,
        started_at: failed.started_at,
        ended_at: failed.ended_at,
        error: error(&failed.failure, id.clone()),
        delay: Some(failed.delay),
    });
    let mut all: Vec<Attempt> = earlier.collect();
    let last = step.attempt_at.zip(step.ended_at).filter(|_| !all.is_empty());
    if let (Some((started_at, ended_at)), StepPhase::Settled(Outcome::Failed(failure))) = (last, &step.phase)
    {
        all.push(Attempt {
            number: step.attempts,
            started_at,
            ended_at,
            error: error(failure, id),
            delay: None,
        });
    }
    all
}
