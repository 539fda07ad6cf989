//! What a process that owns a data folder does, for those who look after it: trigger firings, and runs that begin and end.

use crate::triggers::PastFiring;
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;
use windlass_engine::{Event, RunId, What};
use windlass_ir::{RunStatus, Value};

/// One thing that happened, after it is durable.
#[derive(Clone, Debug)]
pub enum Activity {
    Fired(PastFiring),
    Started {
        run: RunId,
        workflow: String,
    },
    /// A process continues a failed run.
    Reopened(RunId),
    Ended {
        run: RunId,
        status: RunStatus,
    },
}

/// How many things may wait for a slow observer. Further ones are left out; the runs themselves are in the journal.
const WAITING_MAX: usize = 4_096;

/// The observer of a process, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Observer(Mutex<Option<mpsc::Sender<Activity>>>);

impl Observer {
    /// Replaces the observer.
    pub fn observe(&self) -> mpsc::Receiver<Activity> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        receiver
    }

    pub fn tell(&self, activity: Activity) {
        if let Some(observer) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // The observer may be gone or too slow.
            let _ = observer.try_send(activity);
        }
    }

    /// Tells what the events of a run mean.
    pub fn happened(&self, run: &RunId, events: &[Event]) {
        for event in events {
            let activity = match &event.what {
                What::Started { about, .. } => {
                    let workflow = about.get("workflow").and_then(Value::as_str).unwrap_or_default();
                    Activity::Started { run: run.clone(), workflow: workflow.to_owned() }
                }
                What::Reopened { .. } => Activity::Reopened(run.clone()),
                What::Concluded { outcome, .. } => {
                    Activity::Ended { run: run.clone(), status: crate::status::of_outcome(outcome) }
                }
                _ => continue,
            };
            self.tell(activity);
        }
    }
}
