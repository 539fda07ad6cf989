//! What a step has on record from the moment it is entered, for dialects whose programs keep such records. Scopes have theirs before
//! anything inside is done, and gates before a decision.

use super::{Report, Shown, data, ids};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;
use windlass_ir::expr::{StepState, is_truthy};
use windlass_ir::workflow::{Action, Ask, Choose, ForEach, Gate, Kind, OnReject, Recorded, RepeatTest};
use windlass_ir::{RunStatus, Value};
use windlass_runtime::{
    AssistantAsk, Decision, Outcome, Path, Question, SkipReason, StepPhase, StepView, View, Work, class,
    is_raised,
};

impl<'v> Report<'v> {
    /// The steps on record, in the order in which they came into being: not those inside another workflow or deeper in an item.
    pub(super) fn recorded(&self) -> impl Iterator<Item = (&'v Path, StepView<'v>)> {
        let (view, report) = (self.view, *self);
        view.steps().filter(move |(path, step)| {
            let hidden = step.frame.is_some() || view.plan_step(step).implicit;
            let recorded = has_begun(step) && !report.has_raised(path, step);
            !hidden && recorded && report.is_on_record(path)
        })
    }

    /// Whether a step can be on record: none inside another workflow or deeper in an item is.
    pub fn is_on_record(&self, path: &Path) -> bool {
        !ids::is_called(self.view, path) && !is_private(self.view, path)
    }

    /// The records of the steps that are over or wait for a decision, and of scopes from the moment they are entered.
    pub fn records(&self) -> IndexMap<String, Json> {
        let is_over = |step: &StepView<'_>| match step.phase {
            StepPhase::Running | StepPhase::Backoff { .. } | StepPhase::Joined => false,
            StepPhase::Inside => !is_call(self.view, step) || self.status() != RunStatus::Running,
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Settled(_) => true,
        };
        let mut all = IndexMap::new();
        for (path, step) in self.recorded().filter(|(_, step)| is_over(step)) {
            let (name, record) = (ids::name(self.dialects, self.view, path), self.record(path, &step));
            if *name.id != *name.plain && !self.is_template(path) {
                all.insert(name.plain.to_string(), record.clone());
            }
            all.insert(name.id, record);
        }
        all
    }

    /// Everything on record about a step.
    pub fn record(&self, path: &Path, step: &StepView<'v>) -> Json {
        let known = self.view.plan_step(step);
        let Shown { word, output, error, .. } = self.shown(path, step);
        let output = if output.is_null() { json!({}) } else { output };
        let plain = Recorded::default();
        let recorded = known.recorded.as_deref().unwrap_or(&plain);
        let mut record = Map::from_iter([("type".to_owned(), json!(known.word))]);
        let beside = recorded.beside(|name| output.get(name).map(Value::from));
        record.extend(beside.map(|(name, value)| (name.to_owned(), data(&value))));
        let runtime =
            ["integration_args", "integration_options"].map(|name| (name, output.get(name).cloned()));
        record.extend([
            ("output".to_owned(), output),
            ("status".to_owned(), json!(word)),
            ("error".to_owned(), json!(error.map(|error| error.message))),
        ]);
        if let Kind::Action(Action::Assistant(assistant)) = &known.kind
            && matches!(assistant.ask, Ask::Command { .. })
        {
            record.extend(runtime.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        Json::Object(record)
    }

    /// The step that failed, or else the one that began last, in whichever workflow that is. Steps follow each other in the
    /// order of the file, and rounds and items in that of their numbers.
    pub(super) fn last_begun(&self) -> Option<&'v Path> {
        let view = self.view;
        let begun = view
            .steps()
            .filter(|(_, step)| step.frame.is_none() && !view.plan_step(step).implicit && has_begun(step));
        let last = || begun.max_by_key(|(path, _)| position(view, path)).map(|(path, _)| path);
        view.failed_at().or_else(last)
    }

    /// Whether nothing is known of a step because its own expressions, or those in a call, have no value. An item of a fan-out is
    /// on record only when everything in it has ended.
    fn has_raised(&self, path: &Path, step: &StepView<'_>) -> bool {
        let raised =
            matches!(&step.phase, StepPhase::Settled(Outcome::Failed(failure)) if is_raised(failure));
        raised && (step.entered.is_none() || self.is_template(path))
    }

    /// Whether a step is the one that a fan-out does for each item.
    pub(super) fn is_template(&self, path: &Path) -> bool {
        let around = path.parent().and_then(|around| self.view.step(&around));
        around.is_some_and(|around| {
            around.frame.is_some() && matches!(self.view.plan_step(&around).kind, Kind::ForEach(_))
        })
    }

    /// What a scope that failed leaves behind: which arm was taken, and what became of branches.
    pub(super) fn show_progress(&self, path: &Path, step: &StepView<'_>, shown: &mut Shown) {
        if !matches!(step.phase, StepPhase::Settled(Outcome::Failed(_))) {
            return;
        }
        let (view, status) = (self.view, &self.view.program().plan.semantics.status);
        shown.output = match (&view.plan_step(step).kind, step.entered) {
            (Kind::Choose(_), Some(Decision::Arm { arm, value })) => {
                json!({"condition": data(value), "taken": arm})
            }
            (Kind::Parallel(_), _) if step.frame.is_none() => {
                let inside = view.steps().filter(|(inside, _)| inside.parent().as_ref() == Some(path));
                let words = inside.filter_map(|(_, step)| match &step.phase {
                    StepPhase::Settled(outcome) => Some(status.word(ended(outcome))),
                    _ => None,
                });
                json!({"branch_results": words.collect::<Vec<_>>()})
            }
            (_, _) => Json::Null,
        };
    }

    pub(super) fn show_record(&self, path: &Path, step: &StepView<'v>, shown: &mut Shown) {
        let known = self.view.plan_step(step);
        match (self.container(path, step), &step.phase, &known.kind) {
            (Some(output), _, _) => (shown.output, shown.error) = (output, None),
            // It never came to its items.
            (None, StepPhase::Settled(Outcome::Failed(_)), Kind::ForEach(each)) => {
                shown.output =
                    json!({"items": [], "max_concurrency": at_once(each, Some(1)), "item_count": 0});
            }
            (None, StepPhase::Settled(outcome), _) => shown.output = output(outcome),
            (None, StepPhase::Asking { .. }, Kind::Gate(gate)) => shown.output = undecided(step, gate),
            (None, StepPhase::Inside, Kind::Action(Action::Call(_))) => {
                shown.output = json!({"workflow": called_name(step), "status": shown.word});
            }
            (None, _, _) => {}
        }
        match (&known.kind, &mut shown.output) {
            // The members of data that a command printed are not also beside it.
            (Kind::Action(Action::Shell(_)), Json::Object(outputs)) => {
                let own = ["exit_code", "stdout", "stderr", "stdout_base64", "stderr_base64", "data"];
                outputs.retain(|name, _| own.contains(&name.as_str()));
            }
            (Kind::Action(Action::Assistant(_)), Json::Object(outputs)) => {
                outputs.retain(|name, _| !name.ends_with("_base64"));
            }
            (Kind::Slot(name), output) if output.is_null() => *output = json!({"slot": name}),
            (_, _) => {}
        }
    }

    /// The record of a branch, a loop or a fan-out.
    fn container(&self, path: &Path, step: &StepView<'v>) -> Option<Json> {
        let view = self.view;
        let known = view.plan_step(step);
        let semantics = &view.program().plan.semantics;
        let holds = |value: &Value| is_truthy(value, semantics).unwrap_or(false);
        if let (
            StepPhase::Settled(Outcome::Done(value)),
            Kind::Choose(_) | Kind::Repeat(_) | Kind::ForEach(_),
        ) = (&step.phase, &known.kind)
        {
            return Some(data(value));
        }
        Some(match (step.entered?, &known.kind) {
            (Decision::Arm { arm, .. }, Kind::Choose(Choose::If { .. })) => {
                json!({"condition_result": &**arm == "then"})
            }
            (Decision::Arm { arm, value }, Kind::Choose(Choose::Switch { .. })) => {
                let matched = if &**arm == "default" { "__default__" } else { arm };
                json!({"matched_case": matched, "expression_value": data(value)})
            }
            (Decision::Round { value, .. }, Kind::Repeat(repeat)) => match repeat.test {
                RepeatTest::While => {
                    json!({"condition_result": holds(value), "max_iterations": repeat.rounds_max, "loop_type": "while"})
                }
                RepeatTest::Until | RepeatTest::DoWhile => {
                    json!({"condition": repeat.as_written.as_ref().map(data), "max_iterations": repeat.rounds_max, "loop_type": "do-while"})
                }
            },
            (Decision::Items { items, at_once: limit, .. }, Kind::ForEach(each)) => {
                let count = if let Value::List(items) = items { items.len() } else { 0 };
                let mut told = json!({"items": data(items), "max_concurrency": at_once(each, *limit), "item_count": count});
                let raised =
                    matches!(&step.phase, StepPhase::Settled(Outcome::Failed(failure)) if is_raised(failure));
                let template = each.body.first().filter(|_| !raised);
                if let Some(template) = template.map(|body| &view.program_of(step).step(*body).id) {
                    told["results"] = json!(self.results(path, template, count));
                }
                told
            }
            (_, _) => return None,
        })
    }

    /// What the items have come to, in order, up to the first that has failed or is not done.
    fn results(&self, path: &Path, template: &Arc<str>, count: usize) -> Vec<Json> {
        let mut results = Vec::new();
        for number in 0..u32::try_from(count).unwrap_or(u32::MAX) {
            let path = path.frame(number).child(template.clone(), None);
            let Some(step) = self.view.step(&path) else { break };
            let is_done = match &step.phase {
                StepPhase::Settled(outcome) => {
                    matches!(outcome, Outcome::Done(_)) || goes_on(self.view, path.parent())
                }
                StepPhase::Asking { .. } => false,
                _ => break,
            };
            results.push(self.shown(&path, &step).output);
            if !is_done {
                break;
            }
        }
        results
    }
}

fn ended(outcome: &Outcome) -> StepState {
    match outcome {
        Outcome::Done(_) | Outcome::Continue(_) => StepState::Done,
        Outcome::Failed(failure) => {
            StepState::Failed { timed_out: &*failure.class == class::TIMEOUT, recovered: false }
        }
        Outcome::Skipped(_) => StepState::Skipped,
        Outcome::Cancelled(_) => StepState::Cancelled,
    }
}

/// The position of an instance in the order of the file.
pub(super) fn position(view: &View, path: &Path) -> Vec<(u32, u32)> {
    let prefixes = std::iter::successors(Some(path.clone()), Path::parent);
    let mut position: Vec<(u32, u32)> = prefixes
        .filter_map(|prefix| {
            let step = view.step(&prefix)?;
            Some((step.step.0, step.frame.unwrap_or_default()))
        })
        .collect();
    position.reverse();
    position
}

fn has_begun(step: &StepView<'_>) -> bool {
    match &step.phase {
        StepPhase::Dormant | StepPhase::Pending | StepPhase::Queued { .. } => false,
        StepPhase::Settled(Outcome::Cancelled(_)) => step.started_at.is_some(),
        StepPhase::Settled(Outcome::Skipped(skip)) => skip.reason == SkipReason::EmptySlot,
        StepPhase::Settled(_)
        | StepPhase::Running
        | StepPhase::Backoff { .. }
        | StepPhase::Asking { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Joined
        | StepPhase::Inside => true,
    }
}

pub(super) fn is_call(view: &View, step: &StepView<'_>) -> bool {
    matches!(view.plan_step(step).kind, Kind::Action(Action::Call(_)))
}

/// Whether a frame is an item of a fan-out, not a round of a loop.
fn is_item(view: &View, frame: &Path) -> bool {
    view.step(frame).is_some_and(|step| matches!(view.plan_step(&step).kind, Kind::ForEach(_)))
}

/// Whether a step is inside an item and not the step itself that is done for it.
fn is_private(view: &View, path: &Path) -> bool {
    let around = path.parent();
    path.frames().any(|(frame, _, _)| is_item(view, &frame) && Some(&frame) != around.as_ref())
}

fn output(outcome: &Outcome) -> Json {
    match outcome {
        Outcome::Done(value) | Outcome::Continue(value) => data(value),
        Outcome::Failed(failure) => failure.detail.as_ref().map_or_else(|| json!({}), data),
        Outcome::Skipped(_) | Outcome::Cancelled(_) => Json::Null,
    }
}

/// What an agent or a called workflow was asked.
pub(super) fn asked(step: &StepView<'_>) -> Json {
    match step.assignment.map(|assignment| &assignment.work) {
        Some(Work::Assistant(work)) => match &work.ask {
            AssistantAsk::Command { input, .. } => data(input),
            AssistantAsk::Prompt(_) => Json::Null,
        },
        Some(Work::Call { input, .. }) => data(input),
        Some(_) | None => Json::Null,
    }
}

/// How many at once, as the file says it.
fn at_once<B>(each: &ForEach<B>, limit: Option<u32>) -> Json {
    each.as_written.as_ref().map_or_else(|| json!(limit.unwrap_or(1)), data)
}

fn called_name(step: &StepView<'_>) -> Json {
    match step.assignment.map(|assignment| &assignment.work) {
        Some(Work::Call { workflow, .. }) => data(workflow),
        Some(_) | None => Json::Null,
    }
}

/// Whether an item counts as done although its step may have failed.
fn goes_on(view: &View, frame: Option<Path>) -> bool {
    let frame = frame.and_then(|frame| view.step(&frame));
    frame.is_some_and(|frame| matches!(frame.phase, StepPhase::Settled(Outcome::Done(_))))
}

/// A gate without a decision.
fn undecided(step: &StepView<'_>, gate: &Gate) -> Json {
    let nothing = Question {
        message: None,
        show_file: None,
        input: Value::Null,
        on_timeout: gate.on_timeout,
        empties: None,
    };
    let question = match step.entered {
        Some(Decision::Gate(question)) => question,
        _ => &nothing,
    };
    let on_reject = match &gate.on_reject {
        OnReject::Fail => "fail",
        OnReject::Abort => "abort",
        OnReject::Skip => "skip",
        OnReject::Retry => "retry",
        OnReject::Back { .. } => "back",
    };
    json!({
        "message": question.message.as_ref().map(data),
        "options": gate.options,
        "on_reject": on_reject,
        "show_file": question.show_file.as_ref().map(data),
        "choice": step.decided.as_ref().and_then(|decided| decided.get("choice")).map(data),
    })
}
