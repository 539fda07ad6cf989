//! Cron triggers, which fire while a process owns the data folder.
//!
//! The coordinator decides once for each instant whether a trigger fires; this module knows when to ask it. `due` computes the
//! instants to decide, `scheduled` is one trigger with its workflow, and `history` lists past firings. After a crash, loading the
//! triggers starts the runs that were ordered but not started, because the coordinator still has the orders.

mod due;
mod history;
mod scheduled;
#[cfg(test)]
mod tests;

use crate::activity::Activity;
use crate::clock::Clock;
use crate::engine::{Engine, Error};
use due::Doing;
pub use history::PastFiring;
use scheduled::Ready;
pub use scheduled::{Scheduled, Unready};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{CoordinatorInput, Order, Timestamp};

/// Why a new trigger does not fire for earlier instants.
const LOADED: &str = "loaded";

/// The longest single sleep, because timers have a limited range.
const SLEEP_MAX: windlass_ir::Duration = windlass_ir::Duration::from_secs(30 * 24 * 3_600);

/// The cron triggers of a data folder.
#[derive(Debug)]
pub struct Triggers {
    engine: Arc<Engine>,
    ready: Vec<Ready>,
    /// When this process began to watch the clock. Earlier instants count as missed.
    since: Timestamp,
}

/// A trigger that cannot fire, and why.
#[derive(Debug)]
pub struct Parked {
    pub trigger: Arc<str>,
    pub why: Unready,
}

impl Engine {
    /// Starts all ordered runs that have not begun.
    pub async fn start_orders(self: &Arc<Self>) {
        // If the scheduler has stopped, there is nothing to start.
        for order in self.orders().await.unwrap_or_default() {
            self.start_ordered(order).await;
        }
    }

    /// The runs that triggers have ordered and that have not begun.
    pub(crate) async fn orders(&self) -> Result<Vec<Order>, Error> {
        self.coordinator(|state| state.orders.values().map(|(_, order)| order.clone()).collect()).await
    }
}

impl Triggers {
    /// Loads triggers and returns those that cannot fire. Instants before `now` count as missed. When this returns, they are decided
    /// and all ordered runs are started.
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

    /// How many triggers fire.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// The trigger that fires next, and when.
    pub fn next(&self, now: Timestamp) -> Option<(Arc<str>, Timestamp)> {
        let next =
            self.ready.iter().filter_map(|one| Some((one.due.next_after(now)?, one.due.trigger.clone())));
        next.min().map(|(at, trigger)| (trigger, at))
    }

    /// Fires triggers until it is dropped. Decisions made by then stay.
    pub async fn run(self) {
        loop {
            let now = Clock::Real.now();
            let Some(next) = self.look(now).await else { return std::future::pending().await };
            let left = next.since(now).min(SLEEP_MAX);
            tokio::time::sleep(std::time::Duration::from_micros(left.0)).await;
        }
    }

    /// Decides all instants that are due, and returns when to check again. [`Triggers::run`] calls this at the right times.
    pub async fn look(&self, now: Timestamp) -> Option<Timestamp> {
        let mut next = None;
        for one in &self.ready {
            next = next.into_iter().chain(self.look_at_one(one, now).await).min();
        }
        next
    }

    async fn look_at_one(&self, one: &Ready, now: Timestamp) -> Option<Timestamp> {
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

    /// Lets the coordinator decide an instant. The decision is durable when this returns.
    async fn decide(&self, one: &Ready, due: Timestamp, skip: Option<Arc<str>>) {
        // If the scheduler has stopped, the next process decides it.
        let _ = self.engine.tell_coordinator(CoordinatorInput::Fire(Box::new(one.firing(due, skip)))).await;
        self.tell(one.due.trigger.clone(), due).await;
    }

    /// Tells the observer of the process about a firing. The one that only begins the history of a new trigger is left out.
    async fn tell(&self, trigger: Arc<str>, due: Timestamp) {
        let engine = self.engine.clone();
        let read = tokio::task::spawn_blocking(move || engine.firings(None, 1, |one| one.trigger == trigger));
        if let Ok(Ok(firings)) = read.await {
            let is_this = |firing: &PastFiring| {
                firing.due == due && !matches!(&firing.came, Err(why) if **why == *LOADED)
            };
            firings
                .into_iter()
                .filter(is_this)
                .for_each(|firing| self.engine.observer.tell(Activity::Fired(firing)));
        }
    }
}
