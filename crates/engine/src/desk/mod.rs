//! What runs share: places, rates, promises, accounts, messages and the fires of triggers.
//!
//! A run knows only itself. Whatever two runs compete for or must agree on is decided here, by a second state machine of the
//! same shape: [`Desk::handle`] takes an input and gives events and effects, [`Desk::replay`] makes it again from its events. It
//! knows keys, numbers and instants; what they stand for is known by those who ask.
//!
//! `claim` is what can be asked for, `event` what is remembered, `state` the memory and the one function that changes it. `line`
//! decides who gets what and who waits; `listen` and `fire` are about messages and triggers.

mod account;
mod claim;
mod event;
mod fire;
mod line;
mod listen;
mod state;
#[cfg(test)]
mod tests;

use crate::keys::{Path, RunId, Timestamp};
pub use claim::{Amount, Ask, Asker, Claim, Denial, DeskAnswer, End, Full, Key};
pub use event::{Address, Came, Day, DeskEvent, DeskWhat, Fired, Listener, Order, Place};
pub use fire::{Fire, Overlap};
pub use state::{Account, Hold, Letter, Promise, State as DeskState, Waiting as Waiter};
use state::{State, evolve};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::policy::Budget;

#[derive(Clone, Debug, PartialEq)]
pub enum DeskInput {
    Ask(Box<Ask>),
    Release {
        asker: Asker,
        used: Amount,
        end: End,
    },
    /// A run has come to its end: whatever it held, waited for or listened to is given up.
    Gone {
        run: RunId,
    },
    Listen(Box<Listener>),
    /// A step does not listen any more.
    Deaf(Address),
    /// A message that names no run.
    Published {
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
    },
    /// A run has taken a message, or will never.
    Heard {
        id: Arc<str>,
        to: Address,
    },
    Cap {
        account: Key,
        cap: Budget,
        /// The zone in which its days begin, for one that starts anew every day.
        zone: Option<Arc<str>>,
    },
    /// What was spent is forgotten.
    Reset {
        account: Key,
    },
    Fire(Box<Fire>),
    /// A run that was ordered has begun.
    Arrived {
        run: RunId,
    },
    Tick,
}

/// What must be done because of what was decided. Carried out only once its record is durable.
#[derive(Clone, Debug, PartialEq)]
pub enum DeskEffect {
    Answer {
        asker: Asker,
        answer: DeskAnswer,
    },
    Deliver {
        to: Address,
        letter: Letter,
    },
    /// This run has to make room for another one.
    Cancel {
        run: RunId,
        why: Arc<str>,
    },
    Start(Order),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeskRefused {
    #[error("there is no time zone of that name")]
    NoSuchZone,
    #[error("there is no such account")]
    NoSuchAccount,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desk {
    state: State,
}

/// What one input led to.
#[derive(Debug, Default)]
pub struct DeskTurn {
    pub events: Vec<DeskEvent>,
    pub effects: Vec<DeskEffect>,
}

impl Desk {
    /// The desk that these events describe.
    pub fn replay<'e>(events: impl IntoIterator<Item = &'e DeskEvent>) -> Self {
        let mut desk = Self::default();
        events.into_iter().for_each(|event| desk.apply(event));
        desk
    }

    /// Takes over what was decided elsewhere.
    pub fn apply(&mut self, event: &DeskEvent) {
        // Whoever was given something that came free is in an event of its own.
        drop(evolve(&mut self.state, event));
    }

    /// All that it knows, to be looked at.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn handle(&mut self, now: Timestamp, input: DeskInput) -> Result<DeskTurn, DeskRefused> {
        let now = now.max(self.state.last_at);
        let mut turn =
            Turn { state: &mut self.state, now, freed: VecDeque::new(), turn: DeskTurn::default() };
        turn.accept(input)?;
        turn.serve();
        Ok(turn.turn)
    }

    /// The earliest instant at which time alone changes something.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let rate = self.state.timed.iter().filter_map(|key| line::moves_at(&self.state, key));
        // A rate of which nothing is taken has had room for ever.
        rate.min().map(|at| at.max(self.state.last_at))
    }

    /// What was decided and is owed to somebody until they say that they have it. Answers are not among it: whoever waits for one
    /// asks again.
    pub fn outstanding(&self) -> Vec<DeskEffect> {
        let letters = self.state.letters.iter().flat_map(|(to, letters)| {
            letters.iter().map(|letter| DeskEffect::Deliver { to: to.clone(), letter: letter.clone() })
        });
        let holders = self.state.holds.iter().filter(|(_, hold)| hold.evicted).map(|(asker, _)| asker);
        let waiting = self.state.waiting.iter().filter(|(_, waiting)| waiting.evicted);
        let evicted = holders.chain(waiting.map(|(asker, _)| asker));
        let evicted: BTreeSet<RunId> = evicted.map(|asker| asker.run.clone()).collect();
        let cancels = evicted.into_iter().map(|run| DeskEffect::Cancel { run, why: line::REPLACED.into() });
        let orders = self.state.orders.values().map(|(_, order)| DeskEffect::Start(order.clone()));
        letters.chain(cancels).chain(orders).collect()
    }

    /// The events from which the same desk can be made again, without all that led to it. From now on it is that one, without what
    /// has expired.
    pub fn told_again(&mut self, now: Timestamp) -> Vec<DeskEvent> {
        let events = self.state.told_again(now.max(self.state.last_at));
        *self = Self::replay(&events);
        events
    }

    /// Everybody who holds something or waits for it, so that whoever has read the journal can give up what is not needed any more.
    pub fn askers(&self) -> impl Iterator<Item = &Asker> {
        self.state.holds.keys().chain(self.state.waiting.keys())
    }

    /// Every step that has promised something and is not among them, for the same reason: between two attempts it neither holds nor
    /// waits.
    pub fn promisers(&self) -> impl Iterator<Item = &(RunId, Path)> {
        self.state.promisers.keys().filter(|(run, path)| {
            let first = Asker { run: run.clone(), path: path.clone(), attempt: 0 };
            let holds = self.state.holds.range(&first..).next().map(|(asker, _)| asker);
            let waits = self.state.waiting.range(&first..).next().map(|(asker, _)| asker);
            !holds.into_iter().chain(waits).any(|asker| asker.run == *run && asker.path == *path)
        })
    }
}

/// One call of `handle` under way.
struct Turn<'d> {
    state: &'d mut State,
    now: Timestamp,
    /// Where somebody may have room now.
    freed: VecDeque<Key>,
    turn: DeskTurn,
}

impl Turn<'_> {
    fn emit(&mut self, what: DeskWhat) {
        let event = DeskEvent { at: self.now, what };
        self.freed.extend(evolve(self.state, &event));
        self.turn.events.push(event);
    }

    fn answer(&mut self, asker: Asker, answer: DeskAnswer) {
        self.turn.effects.push(DeskEffect::Answer { asker, answer });
    }

    fn accept(&mut self, input: DeskInput) -> Result<(), DeskRefused> {
        match input {
            DeskInput::Ask(ask) => self.ask(*ask),
            DeskInput::Release { asker, used, end } => self.release(asker, used, end),
            DeskInput::Gone { run } => self.gone(&run),
            DeskInput::Listen(listener) => self.listen(*listener),
            DeskInput::Deaf(address) => self.deaf(address),
            DeskInput::Published { id, name, by, value } => self.published(id, name, by, value),
            DeskInput::Heard { id, to } => self.heard(id, to),
            DeskInput::Cap { account, cap, zone } => return self.cap(account, cap, zone),
            DeskInput::Reset { account } => return self.reset(account),
            DeskInput::Fire(fire) => self.fire(*fire),
            DeskInput::Arrived { run } => {
                if self.state.orders.contains_key(&run) {
                    self.emit(DeskWhat::Arrived { run });
                }
            }
            DeskInput::Tick => self.tick(),
        }
        Ok(())
    }

    /// Nothing of a run is left at the desk.
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
        let promised = self.state.promisers.range((run.clone(), Path::default())..);
        let promised: Vec<Path> =
            promised.take_while(|((by, _), _)| by == run).map(|((_, path), _)| path.clone()).collect();
        promised.into_iter().for_each(|path| self.break_promise(run.clone(), path));
        let ears = self.state.ears.range(&address..).take_while(|(ear, _)| ear.run == *run);
        let ears: Vec<Address> = ears.map(|(ear, _)| ear.clone()).collect();
        ears.into_iter().for_each(|ear| self.deaf(ear));
        let owed = self.state.letters.range(&address..).take_while(|(to, _)| to.run == *run);
        let owed: Vec<(Arc<str>, Address)> = owed
            .flat_map(|(to, letters)| letters.iter().map(|letter| (letter.id.clone(), to.clone())))
            .collect();
        owed.into_iter().for_each(|(id, to)| self.heard(id, to));
    }

    fn tick(&mut self) {
        let due = self.state.timed.iter();
        let due = due.filter(|key| line::moves_at(self.state, key).is_some_and(|at| at <= self.now));
        self.freed.extend(due.cloned());
    }
}
