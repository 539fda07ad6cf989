//! What became of each instant at which a trigger was due, from the stream of the coordinator.

use crate::engine::{Engine, Error};
use std::sync::Arc;
use windlass_engine::{Came, CoordinatorEvent, CoordinatorWhat, Fired, RunId, Timestamp};

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastFiring {
    pub trigger: Arc<str>,
    pub due: Timestamp,
    pub decided_at: Timestamp,
    /// The run that was started, or why none was.
    pub came: Result<RunId, Arc<str>>,
}

/// Records that are read at once.
const PAGE: usize = 256;

impl Engine {
    /// The firings of one trigger or of all, the newest first.
    pub fn firings(&self, trigger: Option<&str>, limit: usize) -> Result<Vec<PastFiring>, Error> {
        let (stream, store) = (RunId::coordinator(), self.store());
        let (mut before, mut firings, mut at_once) = (None, Vec::new(), PAGE);
        while firings.len() < limit {
            let page = match store.journal.back(&stream, before, at_once).wait() {
                Err(error) if error.is_of_one_run() && at_once > 1 => {
                    // One at a time, up to the damage.
                    at_once = 1;
                    continue;
                }
                Err(error) if error.is_of_one_run() && before.is_none() => return Err(Error::Limits(error)),
                // Whatever was before that is lost.
                Err(error) if error.is_of_one_run() => break,
                page => page?,
            };
            let Some(last) = page.last() else { break };
            before = Some(last.lsn);
            for record in &page {
                let events = record.coordinator_events(&*store.blobs).wait()?;
                // A snapshot repeats what was decided before.
                if events.first().is_some_and(|first| first.what != CoordinatorWhat::Snapshot) {
                    let asked =
                        |firing: &PastFiring| trigger.is_none_or(|trigger| *firing.trigger == *trigger);
                    firings.extend(events.into_iter().rev().filter_map(fired).filter(asked));
                }
            }
        }
        firings.truncate(limit);
        Ok(firings)
    }
}

fn fired(event: CoordinatorEvent) -> Option<PastFiring> {
    let CoordinatorWhat::Fired(fired) = event.what else { return None };
    let Fired { trigger, due, came, .. } = *fired;
    let came = match came {
        Came::Started(order) => Ok(order.run),
        Came::Skipped { because } => Err(because),
    };
    Some(PastFiring { trigger, due, decided_at: event.at, came })
}
