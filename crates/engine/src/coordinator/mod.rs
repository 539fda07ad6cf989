//! Resources that runs share: slots, rates, idempotency keys, budgets, messages and trigger firings.
//!
//! A run knows only itself. The coordinator decides everything that runs compete for or must agree on. It is a state
//! machine like a run: [`Coordinator::handle`] takes an input and returns events and effects, and
//! [`Coordinator::replay`] restores it from its events. To the coordinator, keys are opaque.
//!
//! `claim` defines requests, `event` the events, and `state` the state and the only function that changes it. `check`
//! finds events that contradict the state. `queue` grants requests or makes them wait. `budget`, `subscription` and
//! `firing` handle budgets, messages and triggers.

mod budget;
mod check;
mod claim;
mod event;
mod firing;
mod queue;
mod state;
mod subscription;
#[cfg(test)]
mod tests;

use crate::keys::{Path, RunId, Timestamp};
use crate::run::Contradiction;
pub use claim::{Amount, Ask, Asker, Claim, CoordinatorAnswer, Denial, End, Full, Key};
pub use event::{
    Address, Came, CoordinatorEvent, CoordinatorWhat, Day, Fired, Order, Position, Subscription,
};
pub use firing::{Firing, Overlap};
pub use state::{BudgetState, Hold, KeyState, Message, State as CoordinatorState, Waiting as Waiter};
use state::{State, evolve};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::policy::Budget;

#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorInput {
    Ask(Box<Ask>),
    Release {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// A run ended: release everything it holds, waits for or subscribes to.
    Gone {
        run: RunId,
    },
    Subscribe(Box<Subscription>),
    Unsubscribe(Address),
    /// A message that is not addressed to a run.
    Published {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
    },
    /// A run received a message, or never will.
    Acknowledge {
        id: Arc<str>,
        to: Address,
    },
    Cap {
        budget: Key,
        cap: Budget,
        /// The time zone of a budget that is renewed every day.
        zone: Option<Arc<str>>,
    },
    /// Sets the cost so far to zero.
    Reset {
        budget: Key,
    },
    Fire(Box<Firing>),
    /// A run that a trigger ordered has begun.
    Arrived {
        run: RunId,
    },
    Tick,
}

/// An action that the caller carries out once the events of the same turn are durable.
#[derive(Clone, Debug, PartialEq)]
pub enum CoordinatorEffect {
    Answer {
        asker: Asker,
        answer: CoordinatorAnswer,
    },
    Deliver {
        to: Address,
        message: Message,
    },
    /// A newer run replaces this one.
    Cancel {
        run: RunId,
        why: Arc<str>,
    },
    Start(Order),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoordinatorRefused {
    #[error("there is no time zone of that name")]
    NoSuchZone,
    #[error("there is no such budget")]
    NoSuchBudget,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coordinator {
    state: State,
}

/// The result of one input.
#[derive(Debug, Default)]
pub struct CoordinatorTurn {
    pub events: Vec<CoordinatorEvent>,
    pub effects: Vec<CoordinatorEffect>,
}

impl Coordinator {
    /// Restores the coordinator from its events.
    pub fn replay<'e>(events: impl IntoIterator<Item = &'e CoordinatorEvent>) -> Result<Self, Contradiction> {
        let mut coordinator = Self::default();
        for event in events {
            coordinator.state.check(&event.what)?;
            coordinator.apply(event);
        }
        Ok(coordinator)
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &CoordinatorEvent) {
        // The freed keys are not needed, because each grant has an event of its own.
        drop(evolve(&mut self.state, event));
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn handle(
        &mut self,
        now: Timestamp,
        input: CoordinatorInput,
    ) -> Result<CoordinatorTurn, CoordinatorRefused> {
        let now = now.max(self.state.last_at);
        let mut turn =
            Turn { state: &mut self.state, now, freed: VecDeque::new(), turn: CoordinatorTurn::default() };
        turn.accept(input)?;
        turn.serve();
        Ok(turn.turn)
    }

    /// The earliest instant at which a timer fires.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let rate = self.state.timed.iter().filter_map(|key| queue::moves_at(&self.state, key));
        // An unused rate has room at any time.
        rate.min().map(|at| at.max(self.state.last_at))
    }

    /// The effects that a run has not acknowledged, except answers: a run that waits for one asks again.
    pub fn outstanding(&self) -> Vec<CoordinatorEffect> {
        let deliveries = self.state.deliveries.iter().flat_map(|(to, deliveries)| {
            deliveries
                .iter()
                .map(|message| CoordinatorEffect::Deliver { to: to.clone(), message: message.clone() })
        });
        let holders = self.state.holds.iter().filter(|(_, hold)| hold.replaced).map(|(asker, _)| asker);
        let waiting = self.state.waiting.iter().filter(|(_, waiting)| waiting.replaced);
        let replaced = holders.chain(waiting.map(|(asker, _)| asker));
        let replaced: BTreeSet<RunId> = replaced.map(|asker| asker.run.clone()).collect();
        let cancels =
            replaced.into_iter().map(|run| CoordinatorEffect::Cancel { run, why: queue::REPLACED.into() });
        let orders = self.state.orders.values().map(|(_, order)| CoordinatorEffect::Start(order.clone()));
        deliveries.chain(cancels).chain(orders).collect()
    }

    /// Drops expired entries, and returns events that describe the current state.
    pub fn snapshot(&mut self, now: Timestamp) -> Vec<CoordinatorEvent> {
        let events = self.state.snapshot(now.max(self.state.last_at));
        *self = Self::default();
        events.iter().for_each(|event| self.apply(event));
        events
    }

    /// Every asker that holds or waits for a resource. After a restart, the caller can release the resources that are
    /// no longer needed.
    pub fn askers(&self) -> impl Iterator<Item = &Asker> {
        self.state.holds.keys().chain(self.state.waiting.keys())
    }

    /// Every step that owns a key and is not among the askers, because it is between two attempts.
    pub fn key_owners(&self) -> impl Iterator<Item = &(RunId, Path)> {
        self.state.key_owners.keys().filter(|(run, path)| {
            let first = Asker { run: run.clone(), path: path.clone(), attempt: 0 };
            let holds = self.state.holds.range(&first..).next().map(|(asker, _)| asker);
            let waits = self.state.waiting.range(&first..).next().map(|(asker, _)| asker);
            !holds.into_iter().chain(waits).any(|asker| asker.run == *run && asker.path == *path)
        })
    }
}

/// One call of `handle`.
struct Turn<'d> {
    state: &'d mut State,
    now: Timestamp,
    /// The keys whose queues can advance.
    freed: VecDeque<Key>,
    turn: CoordinatorTurn,
}

impl Turn<'_> {
    fn emit(&mut self, what: CoordinatorWhat) {
        debug_assert_eq!(self.state.check(&what), Ok(()), "an event that could not be replayed");
        let event = CoordinatorEvent { at: self.now, what };
        self.freed.extend(evolve(self.state, &event));
        self.turn.events.push(event);
    }

    fn answer(&mut self, asker: Asker, answer: CoordinatorAnswer) {
        self.turn.effects.push(CoordinatorEffect::Answer { asker, answer });
    }

    fn accept(&mut self, input: CoordinatorInput) -> Result<(), CoordinatorRefused> {
        match input {
            CoordinatorInput::Ask(ask) => self.ask(*ask),
            CoordinatorInput::Release { asker, used, end } => self.release(asker, used, end),
            CoordinatorInput::Gone { run } => self.gone(&run),
            CoordinatorInput::Subscribe(subscription) => self.subscribe(*subscription),
            CoordinatorInput::Unsubscribe(address) => self.unsubscribe(address),
            CoordinatorInput::Published { id, name, by, value } => self.published(id, name, by, value),
            CoordinatorInput::Acknowledge { id, to } => self.acknowledge(id, to),
            CoordinatorInput::Cap { budget, cap, zone } => return self.cap(budget, cap, zone),
            CoordinatorInput::Reset { budget } => return self.reset(budget),
            CoordinatorInput::Fire(fire) => self.fire(*fire),
            CoordinatorInput::Arrived { run } => {
                if self.state.orders.contains_key(&run) {
                    self.emit(CoordinatorWhat::Arrived { run });
                }
            }
            CoordinatorInput::Tick => self.tick(),
        }
        Ok(())
    }

    /// Releases everything of a run.
    fn gone(&mut self, run: &RunId) {
        let first = Asker { run: run.clone(), path: Path::default(), attempt: 0 };
        let of_run = |asker: &&Asker| asker.run == *run;
        let held: Vec<Asker> =
            self.state.holds.range(&first..).map(|(asker, _)| asker).take_while(of_run).cloned().collect();
        let waits: Vec<Asker> =
            self.state.waiting.range(&first..).map(|(asker, _)| asker).take_while(of_run).cloned().collect();
        waits.into_iter().for_each(|asker| self.release(asker, Amount::default(), End::Over));
        for asker in held {
            let used = self.reserved(&asker);
            self.release(asker, used, End::Over);
        }
        let address = Address { run: run.clone(), path: Path::default() };
        let owned = self.state.key_owners.range((run.clone(), Path::default())..);
        let owned: Vec<Path> =
            owned.take_while(|((by, _), _)| by == run).map(|((_, path), _)| path.clone()).collect();
        owned.into_iter().for_each(|path| self.free_keys(run.clone(), path));
        let subscribed =
            self.state.subscribed.range(&address..).take_while(|(address, _)| address.run == *run);
        let subscribed: Vec<Address> = subscribed.map(|(address, _)| address.clone()).collect();
        subscribed.into_iter().for_each(|address| self.unsubscribe(address));
        let owed = self.state.deliveries.range(&address..).take_while(|(to, _)| to.run == *run);
        let owed: Vec<(Arc<str>, Address)> = owed
            .flat_map(|(to, deliveries)| deliveries.iter().map(|message| (message.id.clone(), to.clone())))
            .collect();
        owed.into_iter().for_each(|(id, to)| self.acknowledge(id, to));
    }

    fn tick(&mut self) {
        let due = self.state.timed.iter();
        let due = due.filter(|key| queue::moves_at(self.state, key).is_some_and(|at| at <= self.now));
        self.freed.extend(due.cloned());
    }
}
