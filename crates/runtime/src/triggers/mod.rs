//! Triggers that a clock fires, while somebody drives their data folder.
//!
//! The coordinator decides once for each instant whether a trigger fires; this module knows when to ask it. `due` says which instants
//! are to be decided, `scheduled` is one trigger with its workflow, `history` what became of past instants. What was decided and
//! not started because everything crashed in between is started when triggers are loaded again: the coordinator still has the order.

mod due;
mod history;
mod scheduled;
#[cfg(test)]
mod tests;

use crate::clock::Clock;
use crate::engine::{Engine, Error};
use due::Doing;
pub use history::PastFiring;
use scheduled::Ready;
pub use scheduled::{Scheduled, Unready};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{CoordinatorInput, Order, Timestamp};

/// Why a trigger that is seen for the first time does not fire for what was before.
const LOADED: &str = "loaded";

/// The longest that is slept at once; a timer cannot be set for all of time.
const SLEEP_MAX: windlass_ir::Duration = windlass_ir::Duration::from_secs(30 * 24 * 3_600);

/// The triggers of a data folder that a clock fires.
#[derive(Debug)]
pub struct Triggers {
    engine: Arc<Engine>,
    ready: Vec<Ready>,
    /// When somebody began to look: what was due before was missed.
    since: Timestamp,
}

/// A trigger that is left alone, and why.
#[derive(Debug)]
pub struct Parked {
    pub trigger: Arc<str>,
    pub why: Unready,
}

impl Engine {
    /// Starts what triggers have ordered and nobody has begun; all of it has when this returns, as far as it can.
    pub async fn start_orders(self: &Arc<Self>) {
        // Without a scheduler there is nothing to start.
        for order in self.orders().await.unwrap_or_default() {
            self.start_ordered(order).await;
        }
    }

    /// Runs that triggers have ordered and that have not begun.
    pub(crate) async fn orders(&self) -> Result<Vec<Order>, Error> {
        self.coordinator(|state| state.orders.values().map(|(_, order)| order.clone()).collect()).await
    }
}

impl Triggers {
    /// Takes up triggers. Those that could not fire are parked; the others go on. What was due before `now` was missed: that is
    /// decided, and what the coordinator has ordered has been started, when this returns.
    pub async fn load(engine: &Arc<Engine>, entries: Vec<Scheduled>, now: Timestamp) -> (Self, Vec<Parked>) {
        let (mut ready, mut parked, mut ids) = (Vec::new(), Vec::new(), BTreeSet::new());
        for entry in entries {
            let trigger = entry.id.clone();
            let made = match ids.insert(trigger.clone()) {
                true => Ready::new(engine, entry, now).await,
                false => Err(Unready::SameId),
            };
            match made {
                Ok(one) => ready.push(one),
                Err(why) => parked.push(Parked { trigger, why }),
            }
        }
        let triggers = Self { engine: engine.clone(), ready, since: now };
        triggers.look(now).await;
        engine.start_orders().await;
        (triggers, parked)
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Fires for as long as it is polled. What was decided stays decided when it is dropped.
    pub async fn run(self) {
        loop {
            let now = Clock::Real.now();
            let Some(next) = self.look(now).await else { return std::future::pending().await };
            let left = next.since(now).min(SLEEP_MAX);
            tokio::time::sleep(std::time::Duration::from_micros(left.0)).await;
        }
    }

    /// Has everything decided that is due, and says when to look again. [`Triggers::run`] does this at the right times.
    pub async fn look(&self, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        for one in &self.ready {
            next = next.into_iter().chain(self.look_at(one, now).await).min();
        }
        next
    }

    async fn look_at(&self, one: &Ready, now: Timestamp) -> Option<Timestamp> {
        let trigger = one.due.trigger.clone();
        let last = self.engine.coordinator(move |state| state.firings.get(&trigger).copied()).await.ok()?;
        let last = match last {
            Some(last) => last,
            None => {
                self.decide(one, now, Some(LOADED.into())).await;
                now
            }
        };
        let agenda = one.due.agenda(last, self.since, now);
        for (due, doing) in agenda.decide {
            let skip = match doing {
                Doing::Fire => None,
                Doing::Skip(because) => Some(because),
            };
            self.decide(one, due, skip).await;
        }
        agenda.next
    }

    /// Has an instant decided; it is durable when this returns.
    async fn decide(&self, one: &Ready, due: Timestamp, skip: Option<Arc<str>>) {
        // A scheduler that has ended decides it after the next start.
        let _ = self.engine.told(CoordinatorInput::Fire(Box::new(one.firing(due, skip)))).await;
    }
}
