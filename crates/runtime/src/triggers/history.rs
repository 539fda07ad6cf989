//! What became of each instant at which a trigger was due, as the stream of the desk tells it.

use crate::engine::{Engine, Error};
use std::sync::Arc;
use windlass_engine::{Came, DeskEvent, DeskWhat, Fired, RunId, Timestamp};

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastFire {
    pub trigger: Arc<str>,
    pub due: Timestamp,
    pub decided_at: Timestamp,
    /// The run that was started, or why none was.
    pub came: Result<RunId, Arc<str>>,
}

/// Records that are read at once.
const PAGE: usize = 256;

impl Engine {
    /// The fires of one trigger or of all, the newest first.
    pub fn fires(&self, trigger: Option<&str>, limit: usize) -> Result<Vec<PastFire>, Error> {
        let (stream, store) = (RunId::desk(), self.store());
        let (mut before, mut fires, mut at_once) = (None, Vec::new(), PAGE);
        while fires.len() < limit {
            let page = match store.journal.back(&stream, before, at_once).wait() {
                Err(error) if error.is_of_one_run() && at_once > 1 => {
                    // One at a time, up to the damage.
                    at_once = 1;
                    continue;
                }
                Err(error) if error.is_of_one_run() && before.is_none() => return Err(Error::Desk(error)),
                // Whatever was before that is lost.
                Err(error) if error.is_of_one_run() => break,
                page => page?,
            };
            let Some(last) = page.last() else { break };
            before = Some(last.lsn);
            for record in &page {
                let events = record.desk_events(&*store.blobs).wait()?;
                // Where the stream begins anew everything is only said again.
                if events.first().is_some_and(|first| first.what != DeskWhat::Begun) {
                    let asked = |fire: &PastFire| trigger.is_none_or(|trigger| *fire.trigger == *trigger);
                    fires.extend(events.into_iter().rev().filter_map(fired).filter(asked));
                }
            }
        }
        fires.truncate(limit);
        Ok(fires)
    }
}

fn fired(event: DeskEvent) -> Option<PastFire> {
    let DeskWhat::Fired(fired) = event.what else { return None };
    let Fired { trigger, due, came, .. } = *fired;
    let came = match came {
        Came::Started(order) => Ok(order.run),
        Came::Skipped { because } => Err(because),
    };
    Some(PastFire { trigger, due, decided_at: event.at, came })
}
