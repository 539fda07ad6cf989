//! `log.jsonl`: the events of a run in Spec Kit's words, one per line.
//!
//! Spec Kit exits while a run waits for a decision, and the journal has no event for that. Windlass writes those lines when its
//! process leaves the run, and reproduces them when a later event shows that a process had left.

use super::state::{Rest, id_of, report};
use super::{python, tree};
use indexmap::IndexSet;
use serde_json::{Value as Json, json};
use std::collections::{HashMap, HashSet};
use windlass_dialects::DIALECTS;
use windlass_ir::RunStatus;
use windlass_ir::workflow::{Action, Ask, Kind};
use windlass_runtime::run_status;
use windlass_runtime::{
    Decision, Event, Failure, Outcome, Path, RunId, StepView, Timestamp, View, What, ids, is_abort, is_raised,
};

#[derive(Debug)]
pub struct Log {
    run: RunId,
    pub lines: Vec<Json>,
    /// Steps that have begun since the caller last asked.
    pub begun: Vec<Begun>,
    /// The time of the last event.
    pub last_at: Timestamp,
    /// The names of recorded steps, in the order in which Spec Kit first recorded them.
    pub recorded: IndexSet<String>,
    /// Steps whose start is in the log.
    started: HashSet<Path>,
    /// Scopes that count as completed as soon as they are entered.
    expanded: HashSet<Path>,
    /// Gates that wait for a decision.
    asking: Vec<Path>,
    /// The gate of the last decision.
    decided: Option<Path>,
    /// Jobs are running.
    working: HashSet<Path>,
    is_resumed: bool,
    /// The inputs of called workflows.
    pub bound: tree::Bound,
    /// Previous results of steps that have begun again. Spec Kit keeps them until the steps end again.
    pub before: HashMap<Path, Before>,
}

/// A step that has begun.
#[derive(Debug)]
pub struct Begun {
    /// The sequence number of its event.
    pub event: u64,
    pub id: String,
    /// The command, or the type of the step.
    pub label: String,
}

/// The last step result that kept the run from continuing.
#[derive(Debug)]
pub struct Before {
    pub outcome: &'static str,
    pub error: Json,
    pub record: Json,
}

impl Log {
    pub fn new(run: &RunId) -> Self {
        Self {
            run: run.clone(),
            lines: Vec::new(),
            begun: Vec::new(),
            last_at: Timestamp::default(),
            recorded: IndexSet::new(),
            started: HashSet::new(),
            expanded: HashSet::new(),
            asking: Vec::new(),
            decided: None,
            working: HashSet::new(),
            is_resumed: false,
            bound: tree::Bound::new(),
            before: HashMap::new(),
        }
    }

    pub fn apply(&mut self, view: &View, event: &Event) {
        match &event.what {
            What::Lost { path, .. } => {
                self.interrupt();
                self.forget(view, path);
            }
            What::Continued | What::Resumed { .. } | What::InputsChanged { .. } => self.resume(view),
            What::Reopened { paths, .. } => {
                self.is_resumed = true;
                paths.iter().for_each(|path| self.forget(view, path));
            }
            What::Rebound { path, inputs } => drop(self.bound.insert(path.clone(), inputs.clone())),
            What::Decided { path, .. } => self.decided = Some(path.clone()),
            What::Entered { path, decision } => self.enter(view, path, decision, event.at),
            What::Scheduled { path, .. } if view.step(path).is_some() => {
                self.begin(view, path, event.at);
                self.working.insert(path.clone());
            }
            What::Settled(settled) => {
                self.working.remove(&settled.path);
                self.asking.retain(|path| *path != settled.path);
                if let Some(step) = shown(view, &settled.path) {
                    let halts = settled.halts || settled.fails;
                    self.settle(view, &settled.path, &step, (&settled.outcome, halts), event.at);
                }
            }
            What::Concluded { outcome, .. } => self.conclude(outcome, event.at),
            What::Started { .. }
            | What::Kept(_)
            | What::Scheduled { .. }
            | What::Asked { .. }
            | What::Admitted { .. }
            | What::Spent { .. }
            | What::Noted { .. }
            | What::AttemptFailed { .. }
            | What::Joined { .. }
            | What::TimerSet { .. }
            | What::TimerFired { .. }
            | What::Signalled { .. }
            | What::CancelRequested { .. }
            | What::Paused { .. }
            | What::Interrupted
            | What::SentBack { .. }
            | What::Closed => {}
        }
        self.last_at = event.at;
    }

    /// The process leaves the run.
    pub fn rest(&mut self, view: &View, rest: Rest) {
        match rest {
            Rest::None | Rest::Over => {}
            Rest::Waiting => self.wait(view),
            Rest::Interrupted => self.interrupt(),
        }
    }

    fn enter(&mut self, view: &View, path: &Path, decision: &Decision, at: Timestamp) {
        match decision {
            // After a rejection the gate asks again at once; Spec Kit waits for the next resume.
            Decision::Gate(_) if self.decided.take().is_some_and(|decided| decided == *path) => {
                self.asking.push(path.clone());
            }
            Decision::Gate(_) => {
                if self.asking.contains(path) {
                    self.resume(view);
                }
                self.begin(view, path, at);
                self.asking.push(path.clone());
            }
            Decision::Arm { .. } | Decision::Items { .. } | Decision::Round { number: 0, .. } => {
                self.begin(view, path, at);
                if self.expanded.insert(path.clone()) {
                    self.complete(view, path, "completed", at);
                }
            }
            Decision::Fragment { inputs, .. } => {
                self.begin(view, path, at);
                self.bound.insert(path.clone(), inputs.clone());
            }
            Decision::Steps
            | Decision::Round { .. }
            | Decision::Again { .. }
            | Decision::Wait(_)
            | Decision::Planned { .. }
            | Decision::TakenOver { .. }
            | Decision::Finally
            | Decision::Undo { .. }
            | Decision::Finish { .. } => {}
        }
    }

    fn settle(
        &mut self,
        view: &View,
        path: &Path,
        step: &StepView<'_>,
        (outcome, halts): (&Outcome, bool),
        at: Timestamp,
    ) {
        match outcome {
            Outcome::Failed(failure) if is_raised(failure) => {}
            Outcome::Failed(failure) if halts => {
                let outcome = if is_abort(failure) { "aborted" } else { "failed" };
                self.remember(view, path, outcome, error(failure));
            }
            _ => drop(self.before.remove(path)),
        }
        if self.expanded.contains(path) {
            return;
        }
        match outcome {
            Outcome::Done(_) | Outcome::Continue(_) => {
                self.begin(view, path, at);
                self.complete(view, path, "completed", at);
            }
            Outcome::Skipped(_) if matches!(view.plan_step(step).kind, Kind::Slot(_)) => {
                self.begin(view, path, at);
                self.complete(view, path, "skipped", at);
            }
            Outcome::Failed(failure) if is_raised(failure) => self.begin(view, path, at),
            Outcome::Failed(failure) => {
                self.begin(view, path, at);
                self.complete(view, path, "failed", at);
                let event = match (is_abort(failure), halts) {
                    (true, _) => "workflow_aborted",
                    (false, true) => "step_failed",
                    (false, false) => "step_continue_on_error",
                };
                self.record(view, event, path, ("error", error(failure)), at);
            }
            Outcome::Skipped(_) | Outcome::Cancelled(_) => {}
        }
    }

    fn conclude(&mut self, outcome: &Outcome, at: Timestamp) {
        let line = match outcome {
            Outcome::Failed(failure) if is_raised(failure) => {
                let event = if self.is_resumed { "resume_failed" } else { "workflow_failed" };
                json!({"event": event, "error": failure.message})
            }
            Outcome::Failed(failure) if is_abort(failure) => finished("aborted"),
            Outcome::Failed(_) => finished("failed"),
            Outcome::Cancelled(_) => finished("aborted"),
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => finished("completed"),
        };
        self.push(line, at);
    }

    /// Another process resumes the run.
    fn resume(&mut self, view: &View) {
        self.is_resumed = true;
        if !self.asking.is_empty() && run_status(view, true) == RunStatus::Waiting {
            self.wait(view);
        }
    }

    /// Records the gates that the run waits at, and the calls around them.
    fn wait(&mut self, view: &View) {
        let at = self.last_at;
        for gate in std::mem::take(&mut self.asking) {
            let around = std::iter::successors(gate.parent(), Path::parent);
            for path in std::iter::once(gate.clone()).chain(around).filter(|path| shown(view, path).is_some())
            {
                self.remember(view, &path, "paused", Json::Null);
            }
            let calls = tree::calls_around(view, &gate);
            for path in std::iter::once(&gate).chain(&calls) {
                if self.started.remove(path) {
                    self.complete(view, path, "paused", at);
                }
            }
        }
        self.push(finished("paused"), at);
    }

    fn remember(&mut self, view: &View, path: &Path, outcome: &'static str, error: Json) {
        if let Some(step) = shown(view, path) {
            let record = report(&self.run, view).record(path, &step);
            self.before.insert(path.clone(), Before { outcome, error, record });
        }
    }

    fn interrupt(&mut self) {
        if !self.working.is_empty() {
            self.working.clear();
            self.is_resumed = true;
            self.push(json!({"event": "workflow_interrupted"}), self.last_at);
        }
    }

    /// Records that the step begins again, and the calls around it.
    fn forget(&mut self, view: &View, path: &Path) {
        let calls = tree::calls_around(view, path);
        self.started.retain(|started| started != path && !calls.contains(started));
    }

    fn begin(&mut self, view: &View, path: &Path, at: Timestamp) {
        if shown(view, path).is_none() {
            return;
        }
        for call in tree::calls_around(view, path).iter().rev() {
            self.begin_one(view, call, at);
        }
        self.begin_one(view, path, at);
    }

    fn begin_one(&mut self, view: &View, path: &Path, at: Timestamp) {
        let Some(step) = shown(view, path).filter(|_| self.started.insert(path.clone())) else { return };
        let known = view.plan_step(&step);
        let label = match &known.kind {
            Kind::Action(Action::Assistant(assistant)) => match &assistant.ask {
                Ask::Command { command, .. } if !command.is_empty() => command,
                Ask::Command { .. } | Ask::Prompt(_) => &known.word,
            },
            _ => &known.word,
        };
        let label = label.to_string();
        self.begun.push(Begun { event: view.events, id: id_of(view, path), label });
        self.record(view, "step_started", path, ("type", json!(known.word)), at);
    }

    fn complete(&mut self, view: &View, path: &Path, status: &str, at: Timestamp) {
        let name = ids::name(DIALECTS, view, path);
        self.recorded.extend([name.plain.to_string(), name.id]);
        self.record(view, "step_completed", path, ("status", json!(status)), at);
    }

    fn record(&mut self, view: &View, event: &str, path: &Path, (name, value): (&str, Json), at: Timestamp) {
        let mut line = json!({"event": event, "step_id": id_of(view, path), name: value});
        if let Some(call) = tree::calls_around(view, path).first() {
            line["execution_path"] = tree::execution_path(view, path);
            line["workflow_id"] = tree::called_id(view, call);
        }
        self.push(line, at);
    }

    fn push(&mut self, mut line: Json, at: Timestamp) {
        line["timestamp"] = python::isoformat(at).into();
        self.lines.push(line);
    }
}

fn finished(status: &str) -> Json {
    json!({"event": "workflow_finished", "status": status})
}

fn error(failure: &Failure) -> Json {
    json!(failure.message)
}

/// Whether this is a step of the file, not an item, a round or an implicit step.
fn shown<'v>(view: &'v View, path: &Path) -> Option<StepView<'v>> {
    view.step(path).filter(|step| step.frame.is_none() && !view.plan_step(step).implicit)
}
