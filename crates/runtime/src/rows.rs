//! What lists of runs show, folded from the events of each run without its plan.

use crate::{ids, report};
use windlass_engine::{
    CHILD, Decision, Event, Failure, Outcome, Path, Reason, RunId, Settled, Undone, What, is_abort,
};
use windlass_ir::dialect::{Dialects, RunFacts};
use windlass_ir::{RunStatus, Value};
use windlass_store::{Projection, Row};

/// What a run waits for that was started for later.
const BEGINNING: &str = "its time";

#[derive(Debug)]
pub struct Rows {
    pub dialects: Dialects,
}

impl Projection for Rows {
    fn version(&self) -> u32 {
        6
    }

    fn apply(&self, _: &RunId, row: &mut Row, events: &[Event]) {
        for event in events {
            apply(row, event);
            let ended = match &event.what {
                What::Concluded { outcome, undone, .. } => Some((outcome, *undone)),
                _ => None,
            };
            if ended.is_some() || !row.status.is_finished() {
                row.dialect_status =
                    self.dialects.named(&row.dialect).run_word(&facts(row.status, ended)).into();
            }
        }
    }
}

fn facts(status: RunStatus, ended: Option<(&Outcome, Option<Undone>)>) -> RunFacts {
    let aborted = matches!(ended, Some((Outcome::Failed(failure), _)) if is_abort(failure));
    RunFacts {
        status,
        marked: status == RunStatus::Interrupted,
        aborted,
        undone: report::undone(ended.and_then(|(_, undone)| undone)),
    }
}

/// What a list shows of a run of which only its row is known: no one executes a run that counts as running.
pub(crate) fn interrupt(row: &mut Row, dialects: Dialects) {
    row.status = RunStatus::Interrupted;
    let facts = RunFacts { marked: false, ..facts(row.status, None) };
    row.dialect_status = dialects.named(&row.dialect).run_word(&facts).into();
}

fn apply(row: &mut Row, event: &Event) {
    match &event.what {
        What::Started { about, shares, inputs, .. } => {
            row.inputs = searchable(inputs);
            let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            row.workflow = text("workflow");
            row.dialect = text("dialect");
            row.plan = text("plan");
            let pending = shares.as_ref().is_some_and(|shares| !shares.claims.is_empty());
            row.status = if pending { RunStatus::Pending } else { RunStatus::Running };
            row.started_at = Some(event.at);
        }
        What::Entered { path, decision } => match decision {
            Decision::Gate(_) => wait(row, path),
            Decision::Wait(waiting) if waiting.signal.is_some() => wait(row, path),
            Decision::Wait(_)
            | Decision::Steps
            | Decision::Arm { .. }
            | Decision::Items { .. }
            | Decision::Round { .. }
            | Decision::Again { .. }
            | Decision::Fragment { .. }
            | Decision::Planned { .. }
            | Decision::TakenOver { .. }
            | Decision::Finally
            | Decision::Undo { .. }
            | Decision::Finish { .. } => {}
        },
        What::Settled(settled) => {
            go_on(row, &settled.path);
            note_failure(row, settled);
        }
        What::SentBack { gate, .. } => go_on(row, gate),
        What::Paused { .. } => row.status = RunStatus::Paused,
        What::Resumed { .. } | What::Continued => row.status = under_way(row),
        What::Interrupted => row.status = RunStatus::Interrupted,
        What::CancelRequested { path, .. } => {
            if path.is_run() && row.status == RunStatus::Interrupted {
                row.status = under_way(row);
            }
        }
        What::Noted { path, key, .. } if **key == *CHILD => wait(row, path),
        What::Reopened { inputs, .. } => {
            row.inputs = searchable(inputs);
            row.status = RunStatus::Running;
            row.ended_at = None;
            (row.reason, row.failed_step) = (None, None);
        }
        What::Concluded { outcome, has_failures, .. } => {
            row.ended_at = Some(event.at);
            row.has_failures = *has_failures;
            row.waiting.clear();
            row.status = ended(outcome);
            let reason = match outcome {
                Outcome::Failed(failure) => Some(in_words(failure)),
                Outcome::Cancelled(why) => Some(why.to_string()),
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => None,
            };
            if reason.is_none() || reason != row.reason {
                row.failed_step = None;
            }
            row.reason = reason;
        }
        What::TimerSet { path, reason: Reason::Wait, .. } if path.is_run() => {
            if row.status != RunStatus::Pending {
                row.waiting.push(BEGINNING.into());
                row.status = RunStatus::Pending;
            }
        }
        What::TimerFired { path, reason: Reason::Wait } if path.is_run() => go_on_from(row, BEGINNING),
        What::Admitted { path, .. } if path.is_run() => row.status = RunStatus::Running,
        What::InputsChanged { inputs, .. } => row.inputs = searchable(inputs),
        What::Kept(_)
        | What::Rebound { .. }
        | What::Asked { .. }
        | What::Admitted { .. }
        | What::Spent { .. }
        | What::Scheduled { .. }
        | What::Noted { .. }
        | What::AttemptFailed { .. }
        | What::Lost { .. }
        | What::Joined { .. }
        | What::TimerSet { .. }
        | What::TimerFired { .. }
        | What::Decided { .. }
        | What::Signalled { .. }
        | What::Closed => {}
    }
}

fn in_words(failure: &Failure) -> String {
    format!("{}: {}", failure.class, failure.message)
}

/// A failure goes from the step outwards, and the run may fail with it: the innermost step that has it is where it happened.
fn note_failure(row: &mut Row, settled: &Settled) {
    let Outcome::Failed(failure) = &settled.outcome else { return };
    let reason = Some(in_words(failure));
    if row.ended_at.is_none() && settled.fails && !settled.recovered && row.reason != reason {
        (row.reason, row.failed_step) = (reason, Some(ids::rough(&settled.path)));
    }
}

/// Of what a run was started with, so much is searched.
const SEARCHED_BYTES_MAX: usize = 4096;

/// Values as JSON, up to a length. Without what is kept apart, and with a mask for what is secret.
fn searchable(inputs: &Value) -> String {
    let mut text = report::data(inputs).to_string();
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

fn wait(row: &mut Row, path: &Path) {
    let name = ids::rough(path);
    if !row.waiting.contains(&name) {
        row.waiting.push(name);
    }
    moved(row);
}

fn go_on(row: &mut Row, path: &Path) {
    let name = ids::rough(path);
    row.waiting.retain(|waiting| *waiting != name);
    moved(row);
}

/// A run that waited for nothing else is under way now; one that waits for a slot is still pending.
fn go_on_from(row: &mut Row, name: &str) {
    if row.waiting.iter().any(|waiting| waiting == name) {
        row.waiting.retain(|waiting| waiting != name);
        row.status = RunStatus::Running;
    }
}

/// What a run waits for has changed. That alone ends neither a pause nor an interruption.
fn moved(row: &mut Row) {
    if let RunStatus::Running | RunStatus::Waiting = row.status {
        row.status = under_way(row);
    }
}

/// The status of a run that has begun and has no result.
fn under_way(row: &Row) -> RunStatus {
    if row.waiting.is_empty() { RunStatus::Running } else { RunStatus::Waiting }
}

fn ended(outcome: &Outcome) -> RunStatus {
    match outcome {
        Outcome::Failed(_) => RunStatus::Failed,
        Outcome::Cancelled(_) => RunStatus::Cancelled,
        Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => RunStatus::Success,
    }
}
