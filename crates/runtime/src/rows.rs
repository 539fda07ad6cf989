//! What lists of runs show, folded from the events of each run without its plan.

use crate::report::{Dialect, ids};
use windlass_engine::{
    Decision, Event, Failure, Outcome, Path, Reason, RunId, Settled, Undone, What, is_abort,
};
use windlass_ir::Value;
use windlass_store::{Projection, Row};

/// What a run waits for that was started for later.
const BEGINNING: &str = "its time";

/// The status of a run that no process continues before someone resumes it.
pub(crate) const INTERRUPTED: &str = "interrupted";

#[derive(Debug)]
pub struct Rows;

impl Projection for Rows {
    fn version(&self) -> u32 {
        5
    }

    fn apply(&self, _: &RunId, row: &mut Row, events: &[Event]) {
        events.iter().for_each(|event| apply(row, event));
    }
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
            row.status = if pending { pending_word(row).into() } else { "running".into() };
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
        What::Paused { .. } if Dialect::named(&row.dialect) == Dialect::Speckit => {
            row.status = "paused".into();
        }
        What::Paused { .. } => {}
        What::Resumed { .. } | What::Continued => row.status = waiting_word(row).into(),
        What::Interrupted => row.status = INTERRUPTED.into(),
        What::CancelRequested { path, .. } => {
            if path.is_run() && row.status == INTERRUPTED {
                row.status = waiting_word(row).into();
            }
        }
        What::Reopened { inputs, .. } => {
            row.inputs = searchable(inputs);
            row.status = "running".into();
            row.ended_at = None;
            (row.reason, row.failed_step) = (None, None);
        }
        What::Concluded { outcome, has_failures, undone } => {
            row.ended_at = Some(event.at);
            row.has_failures = *has_failures;
            row.waiting.clear();
            row.status = ended(Dialect::named(&row.dialect), outcome, *undone).into();
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
            let pending = pending_word(row);
            if row.status != pending {
                row.waiting.push(BEGINNING.into());
                row.status = pending.into();
            }
        }
        What::TimerFired { path, reason: Reason::Wait } if path.is_run() => go_on_from(row, BEGINNING),
        What::Admitted { path, .. } if path.is_run() => row.status = "running".into(),
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
    let mut text = crate::report::data(inputs).to_string();
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

/// The word for a run that has not been let in.
fn pending_word(row: &Row) -> &'static str {
    match Dialect::named(&row.dialect) {
        Dialect::Speckit => "created",
        Dialect::Swdl | Dialect::Dagnats | Dialect::Dcc => "pending",
    }
}

fn wait(row: &mut Row, path: &Path) {
    let name = ids::rough(path);
    if !row.waiting.contains(&name) {
        row.waiting.push(name);
    }
    row.status = waiting_word(row).into();
}

fn go_on(row: &mut Row, path: &Path) {
    let name = ids::rough(path);
    row.waiting.retain(|waiting| *waiting != name);
    if row.ended_at.is_none() && row.status != INTERRUPTED {
        row.status = waiting_word(row).into();
    }
}

/// A run that waited for nothing else is under way now; one that has to be let in is still pending.
fn go_on_from(row: &mut Row, name: &str) {
    if row.waiting.iter().any(|waiting| waiting == name) {
        row.waiting.retain(|waiting| waiting != name);
        row.status = "running".into();
    }
}

/// The word for a run that has not ended.
fn waiting_word(row: &Row) -> &'static str {
    match Dialect::named(&row.dialect) {
        Dialect::Speckit if !row.waiting.is_empty() => "paused",
        Dialect::Swdl | Dialect::Speckit | Dialect::Dagnats | Dialect::Dcc => "running",
    }
}

fn ended(dialect: Dialect, outcome: &Outcome, undone: Option<Undone>) -> &'static str {
    match (outcome, dialect, undone) {
        (_, Dialect::Dagnats, Some(Undone::Wholly)) => "compensated",
        (_, Dialect::Dagnats, Some(Undone::Partly)) => "compensate_failed",
        (Outcome::Failed(failure), Dialect::Speckit, _) if is_abort(failure) => "aborted",
        (Outcome::Failed(_), _, _) => "failed",
        (Outcome::Cancelled(_), Dialect::Speckit, _) => "aborted",
        (Outcome::Cancelled(_), _, _) => "cancelled",
        (Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_), Dialect::Swdl, _) => "success",
        (Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_), _, _) => "completed",
    }
}
