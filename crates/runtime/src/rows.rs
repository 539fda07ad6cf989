//! The rows of run lists, folded from the events of each run without its plan.

use crate::engine::{RETRY_OF, STEPS};
use crate::ids;
use crate::masked::data;
use crate::status::{self, Unfinished};
use windlass_engine::{
    Assignment, CHILD, Decision, Event, Failure, Outcome, Path, Reason, RunId, Segment, Settled, Timestamp,
    Undone, What, Work, class, is_abort,
};
use windlass_ir::dialect::{Dialects, RunFacts};
use windlass_ir::{RunStatus, Value};
use windlass_store::{Details, Progress, Projection, Row, RowWait, RowWaitKind};

#[derive(Debug)]
pub struct Rows {
    pub dialects: Dialects,
}

impl Projection for Rows {
    fn version(&self) -> u32 {
        8
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
        undone: status::undone(ended.and_then(|(_, undone)| undone)),
    }
}

/// Changes the row of a run from running to interrupted, because no process executes the run.
pub(crate) fn interrupt(row: &mut Row, dialects: Dialects) {
    row.status = RunStatus::Interrupted;
    let facts = RunFacts { marked: false, ..facts(row.status, None) };
    row.dialect_status = dialects.named(&row.dialect).run_word(&facts).into();
}

fn apply(row: &mut Row, event: &Event) {
    advance(&mut row.progress, &event.what);
    note_details(&mut row.details, event);
    match &event.what {
        What::Started { about, inputs, .. } => {
            row.inputs = searchable(inputs);
            let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            row.workflow = text("workflow");
            row.dialect = text("dialect");
            row.plan = text("plan");
            row.started_at = Some(event.at);
        }
        What::Settled(settled) => note_failure(row, settled),
        What::Reopened { inputs, .. } => {
            row.inputs = searchable(inputs);
            row.ended_at = None;
            (row.reason, row.failed_step) = (None, None);
            row.details.failed_at = None;
        }
        What::Concluded { outcome, has_failures, .. } => {
            row.ended_at = Some(event.at);
            row.has_failures = *has_failures;
            row.status = status::of_outcome(outcome);
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
        What::InputsChanged { inputs, .. } => row.inputs = searchable(inputs),
        _ => {}
    }
    if row.ended_at.is_none() {
        row.status = unfinished(&row.progress).status();
    }
}

fn unfinished(progress: &Progress) -> Unfinished {
    Unfinished {
        interrupted: progress.interrupted,
        paused: progress.paused,
        pending: progress.awaits_slots || progress.awaits_start,
        waits: !(progress.waiting.is_empty() && progress.queued.is_empty()),
        moves: !progress.moving.is_empty(),
    }
}

/// Follows what the run and its steps are doing. A view of the run derives the same status from its state.
fn advance(progress: &mut Progress, what: &What) {
    let path = what.path();
    if path.is_some_and(Path::is_run) {
        return advance_run(progress, what);
    }
    if path.is_some_and(Path::is_hook) {
        return;
    }
    match what {
        What::Started { shares, .. } => {
            progress.needs_slots = shares.as_ref().is_some_and(|shares| !shares.claims.is_empty());
            progress.awaits_slots = progress.needs_slots;
        }
        What::Reopened { .. } => progress.awaits_slots = progress.needs_slots,
        What::Paused { .. } => progress.paused = true,
        What::Resumed { .. } => progress.paused = false,
        What::Interrupted => progress.interrupted = true,
        What::Continued => progress.interrupted = false,
        What::Entered { path, decision } => entered(progress, path, decision),
        What::Asked { path, assignment, .. } => {
            note_call(progress, path, assignment.as_deref());
            leave(progress, path);
            progress.queued.insert(path.clone());
        }
        What::Scheduled { path, assignment, .. } => {
            note_call(progress, path, assignment.as_deref());
            leave(progress, path);
            match progress.called.contains(path) {
                true => progress.waiting.insert(path.clone()),
                false => progress.moving.insert(path.clone()),
            };
        }
        What::Noted { path, key, .. } if **key == *CHILD && progress.calls.contains(path) => {
            progress.called.insert(path.clone());
            leave(progress, path);
            progress.waiting.insert(path.clone());
        }
        What::AttemptFailed { path, .. } | What::Lost { path, .. } => move_on(progress, path),
        What::Joined { path, .. } | What::SentBack { gate: path, .. } => leave(progress, path),
        What::Settled(settled) => {
            let path = &settled.path;
            leave(progress, path);
            for set in [&mut progress.loops, &mut progress.calls, &mut progress.called] {
                set.remove(path);
            }
            // A loop whose round has ended starts the next one by itself.
            let frame = path.frames().last().filter(|(frame, ..)| frame == path);
            if let Some((_, owner, _)) = frame.filter(|(_, owner, _)| progress.loops.contains(owner)) {
                progress.moving.insert(owner);
            }
        }
        What::Noted { .. }
        | What::Kept(_)
        | What::Admitted { .. }
        | What::Spent { .. }
        | What::TimerSet { .. }
        | What::TimerFired { .. }
        | What::Decided { .. }
        | What::Signalled { .. }
        | What::CancelRequested { .. }
        | What::InputsChanged { .. }
        | What::Rebound { .. }
        | What::Concluded { .. }
        | What::Closed => {}
    }
}

/// Follows an event of the whole run.
fn advance_run(progress: &mut Progress, what: &What) {
    match what {
        // The run asks for its slots when it begins.
        What::TimerSet { reason: Reason::Wait, .. } => {
            (progress.awaits_start, progress.awaits_slots) = (true, false);
        }
        What::TimerFired { reason: Reason::Wait, .. } => {
            (progress.awaits_start, progress.awaits_slots) = (false, progress.needs_slots);
        }
        What::Admitted { .. } => progress.awaits_slots = false,
        What::CancelRequested { .. } | What::TimerFired { reason: Reason::Timeout, .. } => {
            (progress.paused, progress.interrupted) = (false, false);
        }
        _ => {}
    }
}

fn entered(progress: &mut Progress, path: &Path, decision: &Decision) {
    match decision {
        // The task ends in an event of its own.
        Decision::Planned { .. } => {}
        Decision::Again { .. } => move_on(progress, path),
        Decision::Wait(waiting) if waiting.signal.is_none() => move_on(progress, path),
        Decision::Gate(_) | Decision::Wait(_) => {
            leave(progress, path);
            progress.waiting.insert(path.clone());
        }
        Decision::Round { .. } => {
            leave(progress, path);
            progress.loops.insert(path.clone());
        }
        Decision::Steps
        | Decision::Arm { .. }
        | Decision::Items { .. }
        | Decision::Fragment { .. }
        | Decision::TakenOver { .. }
        | Decision::Finally
        | Decision::Undo { .. }
        | Decision::Finish { .. } => leave(progress, path),
    }
}

fn note_call(progress: &mut Progress, path: &Path, assignment: Option<&Assignment>) {
    if assignment.is_some_and(|assignment| matches!(assignment.work, Work::Call { .. })) {
        progress.calls.insert(path.clone());
    }
}

fn move_on(progress: &mut Progress, path: &Path) {
    leave(progress, path);
    progress.moving.insert(path.clone());
}

fn leave(progress: &mut Progress, path: &Path) {
    for set in [&mut progress.waiting, &mut progress.queued, &mut progress.moving] {
        set.remove(path);
    }
}

fn in_words(failure: &Failure) -> String {
    format!("{}: {}", failure.class, failure.message)
}

/// A failure propagates outwards from a step, possibly to the run. Records the innermost step, where the failure happened.
fn note_failure(row: &mut Row, settled: &Settled) {
    let Outcome::Failed(failure) = &settled.outcome else { return };
    let reason = Some(in_words(failure));
    let known = row.details.failed_at.as_ref();
    let is_same = row.reason == reason && known.is_some_and(|known| is_inside(known, &settled.path));
    if row.ended_at.is_none() && settled.fails && !settled.recovered && !is_same {
        (row.reason, row.failed_step) = (reason, Some(ids::rough(&settled.path)));
        row.details.failed_at = Some(settled.path.clone());
    }
}

/// Whether a step is inside another one, or one of its items or rounds.
fn is_inside(step: &Path, around: &Path) -> bool {
    let (step, around) = (step.segments(), around.segments());
    let same = |(inner, outer): (&Segment, &Segment)| {
        inner.name == outer.name && (outer.ordinal.is_none() || inner.ordinal == outer.ordinal)
    };
    around.len() <= step.len() && step.iter().zip(around).all(same)
}

/// How many waits of a run a list shows.
const WAITS_MAX: usize = 32;
/// How many characters of a question a list shows.
const MESSAGE_CHARS_MAX: usize = 200;

/// What lists show beyond the status.
fn note_details(details: &mut Details, event: &Event) {
    details.events += 1;
    let at = event.at;
    match &event.what {
        What::Started { about, shares, by, .. } => {
            let parents = shares.iter().flat_map(|shares| &shares.parents);
            let slots = shares.as_ref().is_some_and(|shares| !shares.claims.is_empty());
            *details = Details {
                by: by.as_ref().map(ToString::to_string),
                parent: parents.clone().last().map(ToString::to_string),
                root: parents.clone().next().map(ToString::to_string),
                retry_of: about.get(RETRY_OF).and_then(Value::as_str).map(str::to_owned),
                mocked: about.get("scripted") == Some(&Value::Bool(true)),
                steps: match about.get(STEPS) {
                    Some(Value::Int(steps)) => u32::try_from(*steps).ok(),
                    Some(_) | None => None,
                },
                waits: slots.then(|| waits(RowWaitKind::Slot, None, at)).into_iter().collect(),
                events: details.events,
                ..Details::default()
            };
        }
        What::Entered { path, decision: Decision::Gate(question) } => {
            let message = question.message.as_ref().and_then(Value::as_str);
            wait(details, path, waits(RowWaitKind::Gate, message, at));
        }
        What::Entered { path, decision: Decision::Wait(waiting) } => {
            if let Some(signal) = &waiting.signal {
                let until = waiting.on_wall.or(waiting.until);
                wait(details, path, RowWait { until, ..waits(RowWaitKind::Signal, Some(&signal.name), at) });
            }
        }
        What::Noted { path, key, value } if **key == *CHILD => {
            wait(details, path, waits(RowWaitKind::Run, value.as_str(), at));
        }
        What::Asked { path, .. } => wait(details, path, waits(RowWaitKind::Slot, None, at)),
        What::Admitted { path, .. } if path.is_run() => begin(details, RowWaitKind::Slot, at),
        What::Admitted { path, .. } => stop_waiting(details, path),
        What::TimerSet { path, reason: Reason::Wait, until } if path.is_run() => {
            details.waits.push(RowWait { until: Some(*until), ..waits(RowWaitKind::Start, None, at) });
        }
        What::TimerSet { path, reason: Reason::Wait, until } => {
            let step = Some(ids::rough(path));
            if let Some(wait) = details.waits.iter_mut().find(|wait| wait.step == step) {
                wait.until = Some(*until).filter(|until| *until != Timestamp::NEVER);
            }
        }
        What::TimerFired { path, reason: Reason::Wait } if path.is_run() => {
            begin(details, RowWaitKind::Start, at);
        }
        What::Settled(settled) => {
            stop_waiting(details, &settled.path);
            details.steps_over += u32::from(is_outermost(&settled.path));
        }
        What::SentBack { gate, steps, .. } => {
            stop_waiting(details, gate);
            let again = steps.iter().filter(|step| step.path != *gate && is_outermost(&step.path)).count();
            start_over(details, again);
        }
        What::Reopened { paths, .. } => {
            start_over(details, paths.iter().filter(|path| is_outermost(path)).count());
            (details.failure, details.aborted) = (None, false);
        }
        What::Concluded { outcome, undone, .. } => {
            details.waits.clear();
            details.undone = undone.map(|undone| undone == Undone::Wholly);
            (details.failure, details.aborted) = match outcome {
                Outcome::Failed(failure) => {
                    (Some((failure.class.to_string(), failure.message.to_string())), is_abort(failure))
                }
                Outcome::Cancelled(why) => (Some((class::CANCELLED.to_owned(), why.to_string())), false),
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => (None, false),
            };
        }
        _ => {}
    }
}

fn waits(kind: RowWaitKind, message: Option<&str>, since: Timestamp) -> RowWait {
    let message = message.map(|message| message.trim().chars().take(MESSAGE_CHARS_MAX).collect());
    RowWait { step: None, kind, message, since, until: None }
}

/// A gate that asks again replaces its question.
fn wait(details: &mut Details, path: &Path, wait: RowWait) {
    stop_waiting(details, path);
    if details.waits.len() < WAITS_MAX {
        details.waits.push(RowWait { step: Some(ids::rough(path)), ..wait });
    }
}

fn stop_waiting(details: &mut Details, path: &Path) {
    let step = Some(ids::rough(path));
    details.waits.retain(|wait| wait.step != step);
}

/// The run got what it waited for before it began. It may still wait for something else.
fn begin(details: &mut Details, waited_for: RowWaitKind, at: Timestamp) {
    details.waits.retain(|wait| wait.kind != waited_for || wait.step.is_some());
    if details.waits.iter().all(|wait| wait.step.is_some()) {
        details.began_at = Some(at);
    }
}

/// Whether a step is one of the outermost of its run, not an item of one or inside of one.
fn is_outermost(path: &Path) -> bool {
    matches!(path.segments(), [only] if only.ordinal.is_none()) && !path.is_hook()
}

fn start_over(details: &mut Details, steps: usize) {
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    details.steps_over = details.steps_over.saturating_sub(steps);
}

/// How many bytes of the inputs of a run are searchable.
const SEARCHED_BYTES_MAX: usize = 4096;

/// Inputs as JSON, up to a maximum length and with secrets masked.
fn searchable(inputs: &Value) -> String {
    let mut text = data(inputs).to_string();
    text.truncate(text.floor_char_boundary(SEARCHED_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use windlass_engine::{Program, View};

    /// A list and a report agree about a run after each of its events.
    #[test]
    fn lists_and_reports_show_the_same_status() {
        let stories = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim/stories");
        let mut compared = std::collections::BTreeMap::<&str, usize>::new();
        for story in std::fs::read_dir(stories).expect("stories").map(|story| story.expect("a file").path()) {
            if story.extension().is_none_or(|extension| extension != "journal") {
                continue;
            }
            let text = std::fs::read_to_string(&story).expect("a journal");
            let mut lines = text.lines();
            let plan: windlass_ir::Plan =
                serde_json::from_str(lines.next().expect("a plan")).expect("a plan");
            let mut view = View::new(Arc::new(Program::new(plan).expect("a program")));
            let mut row = Row::default();
            for line in lines {
                let event: Event = serde_json::from_str(line).expect("an event");
                view.apply(&event).expect("events of one run");
                apply(&mut row, &event);
                let expected = status::run_status(&view, true);
                assert_eq!(row.status, expected, "{} after {line}", story.display());
                *compared.entry(expected.word()).or_default() += 1;
                if !expected.is_finished() {
                    check_interrupted(&view, &row, event.at);
                }
            }
        }
        let unfinished = ["paused", "pending", "waiting", "running"];
        assert!(unfinished.iter().all(|word| compared.contains_key(word)), "{compared:?}");
    }

    /// An interruption hides the status, and the run has it again when it continues.
    fn check_interrupted(view: &View, row: &Row, at: Timestamp) {
        let (mut view, mut row) = (view.clone(), row.clone());
        for what in [What::Interrupted, What::Continued] {
            let event = Event { at, what };
            view.apply(&event).expect("any unfinished run can be interrupted");
            apply(&mut row, &event);
            assert_eq!(row.status, status::run_status(&view, true));
        }
    }
}
