//! Events as everyone outside the process sees them: no plan, environment, seed, assignment or absolute path.

use super::{Report, data, error, given, instant, version};
use crate::types::{Event as Public, EventKind, Json, Seconds};
use serde_json::{Map, json};
use windlass_ir::Value;
use windlass_runtime::{
    CHILD, Claim, Decision, Event, Outcome, Path, RETRY_OF, Reason, StepView, Timestamp, Undone, What, Work,
};

/// Values above this are named instead of shown.
const VALUE_BYTES_MAX: u64 = 64 << 10;

impl Report<'_> {
    /// The public form of an event that the view has just taken in.
    pub fn event(&self, seq: u64, event: &Event) -> Public {
        let path = event.what.path().filter(|path| !path.is_run());
        Public {
            kind: EventKind::Event,
            run_id: self.run.to_string(),
            seq,
            at: event.at.to_string(),
            event: event_name(&event.what).to_owned(),
            step: path.map(|path| self.id(path)),
            path: path.map(Path::to_string),
            members: self.members(event),
        }
    }

    fn members(&self, event: &Event) -> Map<String, Json> {
        let members = match &event.what {
            What::Started { inputs, by, .. } => self.started(inputs, by.as_deref()),
            What::Kept(kept) => {
                let words = self.words_at(&kept.path);
                json!({
                    "status": words[0],
                    "dialect_status": words[1],
                    "output": output(&kept.outcome),
                    "from_run_id": self.retry_of(),
                })
            }
            What::Entered { path, decision } => self.entered(path, decision),
            What::Scheduled { path, attempt, delivery, deadline, .. } => {
                let step = self.view.step(path);
                let work = step.and_then(|step| step.assignment).map(|assignment| &assignment.work);
                let (tool, server, task) = match work {
                    Some(Work::Tool { tool, server, .. }) => (Some(tool), server.as_ref(), None),
                    Some(Work::Task { task, .. }) => (None, None, Some(task)),
                    _ => (None, None, None),
                };
                json!({
                    "attempt": attempt,
                    "delivery": delivery,
                    "executor": work.map(executor),
                    "tool": tool,
                    "server": server,
                    "task": task,
                    "input": step.map_or(Json::Null, |step| large(given(&step))),
                    "deadline": deadline.map(instant),
                })
            }
            What::Asked { attempt, assignment, .. } => {
                let claims = assignment.iter().flat_map(|assignment| &assignment.claims);
                json!({"attempt": attempt, "keys": claims.map(Claim::key).collect::<Vec<_>>()})
            }
            What::Admitted { path, attempt } => {
                let step = self.view.step(path);
                let claims = step.and_then(|step| step.assignment).map(|assignment| &assignment.claims);
                let keys: Vec<String> = match claims {
                    Some(claims) => claims.iter().map(|claim| claim.key().to_string()).collect(),
                    None => self.view.claims().map(ToString::to_string).collect(),
                };
                json!({"attempt": attempt, "keys": keys})
            }
            What::Spent { used, .. } => json!({"usage": {
                "tokens": used.tokens,
                "usd": used.micro_usd as f64 / 1e6,
                "calls": used.calls,
                "seconds": used.time.as_secs_f64(),
            }}),
            What::Noted { key, value, .. } => {
                let child = value.as_str().filter(|_| **key == *CHILD);
                json!({"key": key, "bytes": value.expanded_bytes(), "child_run_id": child})
            }
            What::AttemptFailed { attempt, failure, delay, path } => json!({
                "attempt": attempt,
                "error": error(failure, Some(self.id(path))),
                "delay_seconds": delay.as_secs_f64(),
                "next_at": event.at.plus(*delay).to_string(),
            }),
            What::Lost { attempt, delivery, .. } => json!({"attempt": attempt, "delivery": delivery}),
            What::Joined { key, .. } => json!({"key": key}),
            What::TimerSet { reason, until, .. } => {
                json!({"reason": word(*reason), "until": Some(*until).filter(|until| *until != Timestamp::NEVER).map(instant)})
            }
            What::TimerFired { reason, .. } => json!({"reason": word(*reason)}),
            What::Decided { id, path, .. } => {
                let step = self.view.step(path);
                let last = step.as_ref().and_then(|step| self.decision(step, step.votes.last()?));
                let is_final = step.is_some_and(|step| self.is_decided(&step));
                json!({
                    "id": id,
                    "by": last.as_ref().map(|last| &last.by),
                    "choice": last.as_ref().map(|last| &last.choice),
                    "reason": last.as_ref().and_then(|last| last.reason.as_ref()),
                    "fields": last.as_ref().map(|last| &last.fields),
                    "final": is_final,
                })
            }
            What::Signalled { id, name, by, value: sent, .. } => {
                json!({"id": id, "name": name, "by": by, "value": value(sent)})
            }
            What::CancelRequested { why, by, inside, .. } => {
                json!({"by": by, "reason": why, "inside": inside})
            }
            What::Paused { by, reached } => json!({"by": by, "reached": reached}),
            What::Resumed { by } => json!({"by": by}),
            What::Interrupted | What::Continued | What::Closed => json!({}),
            What::InputsChanged { inputs, by } => json!({"inputs": value(inputs), "by": by}),
            What::Rebound { inputs, .. } => json!({"inputs": value(inputs)}),
            What::Reopened { paths, inputs, by } => json!({
                "paths": paths.iter().map(Path::to_string).collect::<Vec<_>>(),
                "inputs": value(inputs),
                "by": by,
            }),
            What::SentBack { steps, because, .. } => json!({
                "steps": steps.iter().map(|step| self.id(&step.path)).collect::<Vec<_>>(),
                "because": value(because),
            }),
            What::Settled(settled) => self.settled(&settled.path, &settled.outcome, settled.abandoned),
            What::Concluded { outcome, has_failures, undone } => json!({
                "status": self.status(),
                "dialect_status": self.dialect_status(),
                "outputs": output(outcome),
                "error": self.error(),
                "has_failures": has_failures,
                "undone": undone.map(|undone| match undone {
                    Undone::Wholly => "all",
                    Undone::Partly => "part",
                }),
            }),
        };
        match members {
            Json::Object(members) => members,
            _ => Map::new(),
        }
    }

    fn started(&self, inputs: &Value, by: Option<&str>) -> Json {
        let plan = &self.view.program().plan;
        json!({
            "workflow": plan.header.id,
            "version": version(plan.digest.as_str()),
            "dialect": plan.dialect,
            "inputs": value(inputs),
            "by": by,
            "parent_run_id": self.view.parents().last(),
            "retry_of": self.retry_of(),
            "mocked": self.is_mocked(),
        })
    }

    fn entered(&self, path: &Path, decision: &Decision) -> Json {
        match decision {
            Decision::Steps => json!({"as": "steps"}),
            Decision::Arm { arm, .. } => json!({"as": "arm", "arm": arm}),
            Decision::Items { items, at_once, .. } => {
                let count = if let Value::List(items) = items { items.len() } else { 0 };
                json!({"as": "items", "count": count, "at_once": at_once})
            }
            Decision::Round { number, .. } => json!({"as": "round", "number": number}),
            Decision::Again { number, delay, .. } => {
                json!({"as": "again", "number": number, "delay_seconds": delay.as_secs_f64()})
            }
            Decision::Gate(_) => json!({"as": "gate", "gate": self.gate(path, "")}),
            Decision::Wait(_) => {
                let wait = self.view.step(path).and_then(|step| self.wait(path, &step));
                json!({"as": "wait", "wait": wait})
            }
            Decision::Fragment { plan, .. } => {
                json!({"as": "fragment", "workflow": plan.whole().map(|plan| plan.header.id.clone())})
            }
            Decision::Planned { plan, .. } => {
                let steps = plan.whole().map(|plan| plan.steps.iter().map(|step| step.id.clone()).collect());
                json!({"as": "planned", "steps": steps.unwrap_or_else(Vec::new)})
            }
            Decision::TakenOver { by, .. } => json!({"as": "taken_over", "by": by}),
            Decision::Finally => json!({"as": "finally"}),
            Decision::Undo { .. } => json!({"as": "undo"}),
            Decision::Finish { .. } => json!({"as": "finish"}),
        }
    }

    fn settled(&self, path: &Path, outcome: &Outcome, abandoned: bool) -> Json {
        let step = self.view.step(path);
        let words = self.words_at(path);
        let skipped = match outcome {
            Outcome::Skipped(skip) => {
                let because = skip.because_of.as_ref().map(|step| format!(": {step}")).unwrap_or_default();
                Some(format!("{}{because}", skip.reason.word()))
            }
            _ => None,
        };
        let failure = match outcome {
            Outcome::Failed(failure) => Some(error(failure, Some(self.id(path)))),
            _ => None,
        };
        json!({
            "status": words[0],
            "dialect_status": words[1],
            "output": output(outcome),
            "error": failure,
            "skipped_because": skipped,
            "duration_seconds": step.as_ref().and_then(|step| {
                Some(Seconds::from(step.ended_at?.since(step.started_at?)))
            }),
            "child_run_id": step.as_ref().and_then(StepView::child),
            "recovered": step.as_ref().is_some_and(|step| step.recovered),
            "abandoned": abandoned,
            "undone": step.is_some_and(|step| step.undone == Some(true)),
        })
    }
}

impl Report<'_> {
    fn retry_of(&self) -> Option<&str> {
        self.view.about().get(RETRY_OF).and_then(Value::as_str)
    }

    /// The status of a step, neutral and in the words of the dialect.
    fn words_at(&self, path: &Path) -> Json {
        self.view.step(path).map_or(Json::Null, |step| json!(self.words(&self.step_facts(&step))))
    }
}

fn output(outcome: &Outcome) -> Json {
    match outcome {
        Outcome::Done(output) | Outcome::Continue(output) => value(output),
        Outcome::Failed(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => Json::Null,
    }
}

/// Data as JSON; a large value is named by its hash and size.
fn value(value: &Value) -> Json {
    match value.fits(VALUE_BYTES_MAX) {
        true => data(value),
        false => named(&data(value).to_string()),
    }
}

/// The same for data that is JSON already.
fn large(json: Json) -> Json {
    let text = json.to_string();
    if text.len() as u64 > VALUE_BYTES_MAX { named(&text) } else { json }
}

fn named(text: &str) -> Json {
    let hash = format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex());
    json!({"$large": {"hash": hash, "bytes": text.len()}})
}

fn executor(work: &Work) -> &'static str {
    match work {
        Work::Agent { .. } => "agent",
        Work::Shell { .. } => "shell",
        Work::Tool { .. } => "tool",
        Work::Task { .. } => "task",
        Work::Http(_) => "http",
        Work::Call { .. } => "call",
        Work::Assistant(_) => "assistant",
        Work::Builtin { .. } => "builtin",
        Work::Notify { .. } => "notify",
    }
}

fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Retry => "retry",
        Reason::Timeout => "timeout",
        Reason::Wait => "wait",
        Reason::Grace => "grace",
    }
}

/// The public name of an event.
pub fn event_name(what: &What) -> &'static str {
    match what {
        What::Started { .. } => "started",
        What::Kept(_) => "kept",
        What::Entered { .. } => "entered",
        What::Scheduled { .. } => "scheduled",
        What::Asked { .. } => "asked",
        What::Admitted { .. } => "admitted",
        What::Spent { .. } => "spent",
        What::Noted { .. } => "noted",
        What::AttemptFailed { .. } => "attempt_failed",
        What::Lost { .. } => "lost",
        What::Joined { .. } => "joined",
        What::TimerSet { .. } => "timer_set",
        What::TimerFired { .. } => "timer_fired",
        What::Decided { .. } => "decided",
        What::Signalled { .. } => "signaled",
        What::CancelRequested { .. } => "cancel_requested",
        What::Paused { .. } => "paused",
        What::Resumed { .. } => "resumed",
        What::Interrupted => "interrupted",
        What::Continued => "continued",
        What::InputsChanged { .. } => "inputs_changed",
        What::Rebound { .. } => "rebound",
        What::Reopened { .. } => "reopened",
        What::SentBack { .. } => "sent_back",
        What::Settled(_) => "settled",
        What::Concluded { .. } => "concluded",
        What::Closed => "closed",
    }
}
