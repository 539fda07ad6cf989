//! Every change of status that the steps of a run went through.

use super::{Json, Report};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::dialect::Dialects;
use windlass_runtime::{Contradiction, Event, Path, Program, RunId, StepPhase, Timestamp, View, What};

/// A step got another status or began another attempt.
#[derive(Clone, Debug)]
pub(crate) struct Transition {
    pub step: String,
    /// In the words of the dialect.
    pub status: &'static str,
    pub attempt: u32,
    /// The output of a step that is done, the error of one that failed; null before.
    pub result: Json,
    pub at: Timestamp,
}

/// The run as its events tell it, and its transitions in order.
pub(crate) fn transitions(
    dialects: Dialects,
    run: &RunId,
    program: Arc<Program>,
    events: &[Event],
) -> Result<(View, Vec<Transition>), Contradiction> {
    let mut view = View::new(program);
    let (mut last, mut found) = (HashMap::<String, (&str, u32)>::new(), Vec::new());
    for event in events {
        view.apply(event)?;
        for path in touched(&view, event) {
            let Some(step) = view.step(&path).filter(|step| step.phase != StepPhase::Dormant) else {
                continue;
            };
            let report = Report::in_passing(dialects, run, &view);
            let (id, now) = (report.id(&path), report.shown(&path, &step));
            // An item shares its id with the step that does its work, which alone counts attempts.
            let before = last.get(&id).copied();
            let attempt = before.map_or(0, |(_, attempt)| attempt).max(now.attempts);
            if before != Some((now.word, attempt)) {
                last.insert(id.clone(), (now.word, attempt));
                let result = match now.error {
                    Some(error) => serde_json::to_value(error).unwrap_or_default(),
                    None => now.output,
                };
                found.push(Transition { step: id, status: now.word, attempt, result, at: event.at });
            }
        }
    }
    let named = Report::new(dialects, run, &view, false).steps();
    found.retain(|transition| named.contains_key(&transition.step));
    Ok((view, found))
}

/// The steps whose status an event may change.
fn touched(view: &View, event: &Event) -> Vec<Path> {
    match &event.what {
        What::Entered { path, .. }
        | What::Asked { path, .. }
        | What::Admitted { path, .. }
        | What::Scheduled { path, .. }
        | What::AttemptFailed { path, .. }
        | What::Lost { path, .. }
        | What::Joined { path, .. }
        | What::Decided { path, .. }
        | What::TimerSet { path, .. }
        | What::TimerFired { path, .. } => vec![path.clone()],
        What::Settled(settled) => vec![settled.path.clone()],
        // These change many steps, and happen rarely.
        What::Reopened { .. } | What::SentBack { .. } | What::Concluded { .. } => {
            view.steps().map(|(path, _)| path.clone()).collect()
        }
        What::Started { .. }
        | What::Kept(_)
        | What::Rebound { .. }
        | What::Spent { .. }
        | What::Noted { .. }
        | What::Signalled { .. }
        | What::CancelRequested { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Interrupted
        | What::Continued
        | What::InputsChanged { .. }
        | What::Closed => Vec::new(),
    }
}
