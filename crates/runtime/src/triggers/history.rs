//! Past trigger firings, read from the coordinator's stream.

use crate::engine::{Engine, Error};
use std::sync::Arc;
use windlass_engine::{Came, CoordinatorEvent, CoordinatorWhat, Fired, RunId, Timestamp};
use windlass_store::Lsn;

/// The decision about one instant of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastFiring {
    pub trigger: Arc<str>,
    pub due: Timestamp,
    pub decided_at: Timestamp,
    /// Its position in the journal. Two firings never share one.
    pub position: u64,
    /// The started run, or why none was started.
    pub came: Result<RunId, Arc<str>>,
}

/// The number of records in a page.
const PAGE: usize = 256;

/// More events than a record can have, so that a position names one of them.
const FIRINGS_MAX: u64 = 1 << 20;

impl Engine {
    /// The firings that `takes` accepts, the newest first; only those before a position, if one is given.
    pub fn firings(
        &self,
        position: Option<u64>,
        limit: usize,
        takes: impl Fn(&PastFiring) -> bool,
    ) -> Result<Vec<PastFiring>, Error> {
        let (stream, store) = (RunId::coordinator(), self.store());
        // The record of the position itself may contain earlier firings.
        let begin = position.map(|position| Lsn(position / FIRINGS_MAX + 1));
        let (mut before, mut firings, mut at_once) = (begin, Vec::new(), PAGE);
        while firings.len() < limit {
            let page = match store.journal.back(&stream, before, at_once).wait() {
                Err(error) if error.is_of_one_run() && at_once > 1 => {
                    // Read single records up to the damage.
                    at_once = 1;
                    continue;
                }
                Err(error) if error.is_of_one_run() && before.is_none() => return Err(Error::Limits(error)),
                // The damage hides all earlier firings.
                Err(error) if error.is_of_one_run() => break,
                page => page?,
            };
            let Some(last) = page.last() else { break };
            before = Some(last.lsn);
            for record in &page {
                let events = record.coordinator_events(&*store.blobs).wait()?;
                // A snapshot repeats earlier decisions.
                if events.first().is_some_and(|first| first.what != CoordinatorWhat::Snapshot) {
                    let earlier =
                        |firing: &PastFiring| position.is_none_or(|position| firing.position < position);
                    let found =
                        (0..).zip(events).filter_map(|(number, event)| fired(record.lsn, number, event));
                    let found: Vec<PastFiring> = found.filter(|f| earlier(f) && takes(f)).collect();
                    firings.extend(found.into_iter().rev());
                }
            }
        }
        firings.truncate(limit);
        Ok(firings)
    }
}

fn fired(lsn: Lsn, number: u64, event: CoordinatorEvent) -> Option<PastFiring> {
    let CoordinatorWhat::Fired(fired) = event.what else { return None };
    let Fired { trigger, due, came, .. } = *fired;
    let came = match came {
        Came::Started(order) => Ok(order.run),
        Came::Skipped { because } => Err(because),
    };
    let position = lsn.0.saturating_mul(FIRINGS_MAX) + number.min(FIRINGS_MAX - 1);
    Some(PastFiring { trigger, due, decided_at: event.at, position, came })
}
