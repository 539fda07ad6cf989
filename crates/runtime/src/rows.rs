//! What lists of runs show, folded from the events of each run without its plan.

use windlass_engine::{Decision, Event, Outcome, RunId, What};
use windlass_ir::Value;
use windlass_store::{Projection, Row};

#[derive(Debug)]
pub struct Rows;

impl Projection for Rows {
    fn version(&self) -> u32 {
        1
    }

    fn apply(&self, _: &RunId, row: &mut Row, events: &[Event]) {
        events.iter().for_each(|event| apply(row, event));
    }
}

fn apply(row: &mut Row, event: &Event) {
    match &event.what {
        What::Started { about, .. } => {
            let text = |key: &str| about.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            row.workflow = text("workflow");
            row.dialect = text("dialect");
            row.plan = text("plan");
            row.status = "running".into();
            row.started_at = Some(event.at);
        }
        What::Entered { path, decision: Decision::Gate(_) } => row.waiting.push(name(path)),
        What::Settled { path, .. } => {
            let settled = name(path);
            row.waiting.retain(|waiting| *waiting != settled);
        }
        What::Reopened { .. } => {
            row.status = "running".into();
            row.ended_at = None;
            row.reason = None;
        }
        What::Concluded { outcome, has_failures } => {
            row.ended_at = Some(event.at);
            row.has_failures = *has_failures;
            row.waiting.clear();
            (row.status, row.reason) = match outcome {
                Outcome::Failed(failure) => {
                    ("failed".into(), Some(format!("{}: {}", failure.class, failure.message)))
                }
                Outcome::Cancelled(why) => ("cancelled".into(), Some(why.to_string())),
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => ("success".into(), None),
            };
        }
        What::Entered { .. }
        | What::Scheduled { .. }
        | What::Noted { .. }
        | What::AttemptFailed { .. }
        | What::TimerSet { .. }
        | What::TimerFired { .. }
        | What::Signalled { .. }
        | What::CancelRequested { .. }
        | What::Paused { .. }
        | What::Resumed { .. }
        | What::Closed => {}
    }
}

fn name(path: &windlass_engine::Path) -> String {
    path.segments().last().map(|segment| segment.name.to_string()).unwrap_or_default()
}
