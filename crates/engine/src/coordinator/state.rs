//! The state of the coordinator, and the only function that changes it.

use super::claim::{Amount, Ask, Asker, Claim, End, Key};
use super::event::{Address, Came, CoordinatorEvent, CoordinatorWhat, Day, Order, Position, Subscription};
use crate::keys::{Path, RunId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// The number of message ids to remember, to recognize repeated messages.
const MESSAGES_KNOWN: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub last_at: Timestamp,
    /// The number of the next queued request.
    pub next: u64,
    pub slots: BTreeMap<Key, BTreeSet<Asker>>,
    /// When each rate is unused again.
    pub rates: BTreeMap<Key, Timestamp>,
    pub keys: BTreeMap<Key, KeyState>,
    /// The keys that each step owns.
    pub key_owners: BTreeMap<(RunId, Path), BTreeSet<Key>>,
    pub budgets: BTreeMap<Key, BudgetState>,
    pub holds: BTreeMap<Asker, Hold>,
    pub waiting: BTreeMap<Asker, Waiting>,
    /// The queued requests for each key, in order.
    pub queues: BTreeMap<Key, BTreeMap<Position, Arc<Ask>>>,
    /// The queues that can advance because of time.
    pub timed: BTreeSet<Key>,
    /// The waiting askers of any queue, by the slots that they need.
    pub wanted: BTreeMap<Key, BTreeSet<Asker>>,
    /// The requests with reserved slots: the first of each queue, by every slot that it needs.
    pub reserved: BTreeMap<Key, BTreeMap<Position, Arc<Ask>>>,
    pub subscriptions: BTreeMap<Arc<str>, Vec<Subscription>>,
    /// The names of the messages that each address waits for.
    pub subscribed: BTreeMap<Address, BTreeSet<Arc<str>>>,
    pub deliveries: BTreeMap<Address, VecDeque<Message>>,
    known: VecDeque<Arc<str>>,
    pub messages: HashSet<Arc<str>>,
    /// The last due instant of each trigger.
    pub firings: BTreeMap<Key, Timestamp>,
    /// When each will fire next.
    pub next_firings: BTreeMap<Key, Timestamp>,
    /// Runs that triggers ordered and that have not begun.
    pub orders: BTreeMap<RunId, (Key, Order)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum KeyState {
    Pending { run: RunId, path: Path, ttl: Option<Duration> },
    Kept { value: Value, until: Option<Timestamp> },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetState {
    /// `None` if no cap is set.
    pub cap: Option<Budget>,
    pub spent: Amount,
    pub reserved: BTreeMap<Asker, Amount>,
    pub day: Option<Day>,
}

impl BudgetState {
    pub fn committed(&self) -> Amount {
        self.reserved.values().fold(self.spent, |sum, amount| sum.plus(*amount))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub ask: Arc<Ask>,
    pub since: Timestamp,
    pub replaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    pub ask: Arc<Ask>,
    pub on: Key,
    pub position: Position,
    pub since: Timestamp,
    pub replaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub by: Arc<str>,
    pub value: Value,
}

/// Applies one event. Returns the keys whose queues can advance; replay ignores them.
pub fn evolve(state: &mut State, event: &CoordinatorEvent) -> Vec<Key> {
    let at = event.at;
    state.last_at = state.last_at.max(at);
    match &event.what {
        CoordinatorWhat::Snapshot => *state = State { last_at: state.last_at, ..State::default() },
        CoordinatorWhat::Queued { ask, on, position } => {
            state.queue(Arc::new((**ask).clone()), on.clone(), *position, at);
            return vec![on.clone()];
        }
        CoordinatorWhat::Moved { asker, on } => return state.move_to(asker, on),
        CoordinatorWhat::Granted { asker, ask } => {
            let (waited, freed) = state.leave_queue(asker);
            let ask = ask.as_ref().map(|ask| Arc::new((**ask).clone())).or(waited.map(|waited| waited.ask));
            if let Some(ask) = ask {
                state.take(ask, at);
            }
            return freed;
        }
        CoordinatorWhat::Withdrawn { asker } => {
            let (waited, mut freed) = state.leave_queue(asker);
            freed.extend(waited.map(|waited| waited.on));
            return freed;
        }
        CoordinatorWhat::Replaced { asker } => {
            if let Some(hold) = state.holds.get_mut(asker) {
                hold.replaced = true;
            }
            if let Some(waiting) = state.waiting.get_mut(asker) {
                waiting.replaced = true;
            }
        }
        CoordinatorWhat::Released { asker, used, end } => return state.release(asker, *used, end, at),
        CoordinatorWhat::KeysFreed { run, path } => return state.free_keys(&(run.clone(), path.clone())),
        CoordinatorWhat::Kept { key, value, until } => {
            state.keys.insert(key.clone(), KeyState::Kept { value: value.clone(), until: *until });
        }
        CoordinatorWhat::KeyTaken { key, run, path, ttl } => {
            state.take_key(key.clone(), (run.clone(), path.clone()), *ttl);
        }
        CoordinatorWhat::RateIs { key, whole_at } => drop(state.rates.insert(key.clone(), *whole_at)),
        CoordinatorWhat::BudgetIs { budget, cap, spent, day } => {
            let budget = state.budgets.entry(budget.clone()).or_default();
            (budget.cap, budget.spent, budget.day) = (cap.clone(), *spent, day.clone());
        }
        CoordinatorWhat::Subscribed(subscription) => state.subscribe(subscription),
        CoordinatorWhat::Unsubscribed { run, path } => {
            state.unsubscribe(&Address { run: run.clone(), path: path.clone() });
        }
        CoordinatorWhat::Published { id, name, by, value, to } => {
            state.remember(id);
            for address in to {
                state.unsubscribe(address);
                let message =
                    Message { id: id.clone(), name: name.clone(), by: by.clone(), value: value.clone() };
                state.deliveries.entry(address.clone()).or_default().push_back(message);
            }
        }
        CoordinatorWhat::Acknowledged { id, to } => {
            if let Some(deliveries) = state.deliveries.get_mut(to) {
                deliveries.retain(|message| message.id != *id);
                if deliveries.is_empty() {
                    state.deliveries.remove(to);
                }
            }
        }
        CoordinatorWhat::Fired(fired) => {
            match fired.next {
                Some(next) => drop(state.next_firings.insert(fired.trigger.clone(), next)),
                None => drop(state.next_firings.remove(&fired.trigger)),
            }
            let last = state.firings.entry(fired.trigger.clone()).or_insert(fired.due);
            *last = (*last).max(fired.due);
            if let Came::Started(order) = &fired.came {
                state.orders.insert(order.run.clone(), (fired.trigger.clone(), order.clone()));
            }
        }
        CoordinatorWhat::Arrived { run } => drop(state.orders.remove(run)),
        CoordinatorWhat::Retired => {}
    }
    Vec::new()
}

impl State {
    fn queue(&mut self, ask: Arc<Ask>, on: Key, position: Position, at: Timestamp) {
        self.next = self.next.max(position.number + 1);
        for (key, _) in slots(&ask) {
            self.wanted.entry(key.clone()).or_default().insert(ask.asker.clone());
        }
        self.enqueue(&on, position, ask.clone());
        self.waiting.insert(ask.asker.clone(), Waiting { ask, on, position, since: at, replaced: false });
    }

    fn enqueue(&mut self, on: &Key, position: Position, ask: Arc<Ask>) -> Vec<Key> {
        if ask.claims.iter().any(|claim| claim.key() == on && matches!(claim, Claim::Rate { .. })) {
            self.timed.insert(on.clone());
        }
        self.change_queue(on, |queue| drop(queue.insert(position, ask)))
    }

    /// Changes a queue and the reservations of its first request. Returns the keys of reservations that ended.
    fn change_queue(&mut self, on: &Key, change: impl FnOnce(&mut BTreeMap<Position, Arc<Ask>>)) -> Vec<Key> {
        let before = self.first_in_queue(on);
        let queue = self.queues.entry(on.clone()).or_default();
        change(queue);
        if queue.is_empty() {
            self.queues.remove(on);
            self.timed.remove(on);
        }
        let after = self.first_in_queue(on);
        let position = |first: &Option<(Position, Arc<Ask>)>| first.as_ref().map(|(position, _)| *position);
        if position(&before) == position(&after) {
            return Vec::new();
        }
        if let Some((position, ask)) = after {
            for key in reserved(&ask, on) {
                self.reserved.entry(key.clone()).or_default().insert(position, ask.clone());
            }
        }
        let Some((position, ask)) = before else { return Vec::new() };
        reserved(&ask, on).for_each(|key| take_out(&mut self.reserved, key, position));
        reserved(&ask, on).cloned().collect()
    }

    pub(super) fn first_in_queue(&self, key: &Key) -> Option<(Position, Arc<Ask>)> {
        let (position, ask) = self.queues.get(key)?.first_key_value()?;
        Some((*position, ask.clone()))
    }

    fn move_to(&mut self, asker: &Asker, on: &Key) -> Vec<Key> {
        let Some(waiting) = self.waiting.get_mut(asker) else { return Vec::new() };
        let from = std::mem::replace(&mut waiting.on, on.clone());
        let (position, ask) = (waiting.position, waiting.ask.clone());
        let mut freed = self.change_queue(&from, |queue| drop(queue.remove(&position)));
        freed.extend(self.enqueue(on, position, ask));
        freed
    }

    fn leave_queue(&mut self, asker: &Asker) -> (Option<Waiting>, Vec<Key>) {
        let Some(waiting) = self.waiting.remove(asker) else { return (None, Vec::new()) };
        let freed = self.change_queue(&waiting.on, |queue| drop(queue.remove(&waiting.position)));
        for (key, _) in slots(&waiting.ask) {
            if let Some(wanted) = self.wanted.get_mut(key) {
                wanted.remove(asker);
                if wanted.is_empty() {
                    self.wanted.remove(key);
                }
            }
        }
        (Some(waiting), freed)
    }

    fn take(&mut self, ask: Arc<Ask>, at: Timestamp) {
        let asker = ask.asker.clone();
        for claim in &ask.claims {
            match claim {
                Claim::Slot { key, .. } => {
                    self.slots.entry(key.clone()).or_default().insert(asker.clone());
                }
                Claim::Rate { key, limit, period, units } => {
                    let before = self.rates.get(key).copied().unwrap_or(at).max(at);
                    self.rates.insert(key.clone(), before.plus(share(*period, *units, *limit)));
                }
                Claim::Key { key, ttl } => self.take_key(key.clone(), asker.step(), *ttl),
                Claim::Spend { budget, cap, most } => {
                    let budget = self.budgets.entry(budget.clone()).or_default();
                    if budget.cap.is_none() && !cap.is_unlimited() {
                        budget.cap = Some(cap.clone());
                    }
                    budget.reserved.insert(asker.clone(), *most);
                }
            }
        }
        self.holds.insert(asker, Hold { ask, since: at, replaced: false });
    }

    fn release(&mut self, asker: &Asker, used: Amount, end: &End, at: Timestamp) -> Vec<Key> {
        let Some(hold) = self.holds.remove(asker) else { return Vec::new() };
        let mut freed = Vec::new();
        for claim in &hold.ask.claims {
            match claim {
                Claim::Slot { key, .. } => {
                    if let Some(holders) = self.slots.get_mut(key) {
                        holders.remove(asker);
                        if holders.is_empty() {
                            self.slots.remove(key);
                        }
                    }
                    freed.push(key.clone());
                }
                Claim::Rate { .. } => {}
                Claim::Key { key, ttl } => match end {
                    End::Attempt | End::Lost => {}
                    End::Done(value) => {
                        let until = ttl.map(|ttl| at.plus(ttl));
                        self.keys.insert(key.clone(), KeyState::Kept { value: value.clone(), until });
                        if let Some(owned) = self.key_owners.get_mut(&asker.step()) {
                            owned.remove(key);
                        }
                        freed.push(key.clone());
                    }
                    // Failures are never kept.
                    End::Over => freed.extend(self.free_keys(&asker.step())),
                },
                Claim::Spend { budget, .. } => {
                    if let Some(budget) = self.budgets.get_mut(budget) {
                        budget.reserved.remove(asker);
                        budget.spent = budget.spent.plus(used);
                    }
                }
            }
        }
        if self.key_owners.get(&asker.step()).is_some_and(BTreeSet::is_empty) {
            self.key_owners.remove(&asker.step());
        }
        freed
    }

    fn take_key(&mut self, key: Key, step: (RunId, Path), ttl: Option<Duration>) {
        let (run, path) = step.clone();
        self.keys.insert(key.clone(), KeyState::Pending { run, path, ttl });
        self.key_owners.entry(step).or_default().insert(key);
    }

    fn free_keys(&mut self, step: &(RunId, Path)) -> Vec<Key> {
        let owned = self.key_owners.remove(step).unwrap_or_default();
        for key in &owned {
            self.keys.remove(key);
        }
        owned.into_iter().collect()
    }

    fn subscribe(&mut self, subscription: &Subscription) {
        let subscriptions = self.subscriptions.entry(subscription.name.clone()).or_default();
        subscriptions
            .retain(|other| other.address != subscription.address || other.number != subscription.number);
        subscriptions.push(subscription.clone());
        self.subscribed.entry(subscription.address.clone()).or_default().insert(subscription.name.clone());
    }

    fn unsubscribe(&mut self, address: &Address) {
        for name in self.subscribed.remove(address).unwrap_or_default() {
            if let Some(subscriptions) = self.subscriptions.get_mut(&name) {
                subscriptions.retain(|subscription| subscription.address != *address);
                if subscriptions.is_empty() {
                    self.subscriptions.remove(&name);
                }
            }
        }
    }

    fn remember(&mut self, id: &Arc<str>) {
        if self.messages.insert(id.clone()) {
            self.known.push_back(id.clone());
        }
        if self.known.len() > MESSAGES_KNOWN
            && let Some(oldest) = self.known.pop_front()
        {
            self.messages.remove(&oldest);
        }
    }

    /// The events that describe this state, without its history.
    pub fn snapshot(&self, now: Timestamp) -> Vec<CoordinatorEvent> {
        let mut events = vec![CoordinatorEvent { at: now, what: CoordinatorWhat::Snapshot }];
        let mut tell = |at: Timestamp, what: CoordinatorWhat| events.push(CoordinatorEvent { at, what });
        for (asker, hold) in &self.holds {
            let ask = Some(Box::new((*hold.ask).clone()));
            tell(hold.since, CoordinatorWhat::Granted { asker: asker.clone(), ask });
            if hold.replaced {
                tell(now, CoordinatorWhat::Replaced { asker: asker.clone() });
            }
        }
        for (asker, waiting) in &self.waiting {
            let ask = Box::new((*waiting.ask).clone());
            tell(
                waiting.since,
                CoordinatorWhat::Queued { ask, on: waiting.on.clone(), position: waiting.position },
            );
            if waiting.replaced {
                tell(now, CoordinatorWhat::Replaced { asker: asker.clone() });
            }
        }
        for (key, key_state) in &self.keys {
            match key_state {
                KeyState::Kept { until: Some(until), .. } if *until <= now => {}
                KeyState::Kept { value, until } => {
                    tell(
                        now,
                        CoordinatorWhat::Kept { key: key.clone(), value: value.clone(), until: *until },
                    );
                }
                KeyState::Pending { run, path, ttl } => {
                    let (key, run, path) = (key.clone(), run.clone(), path.clone());
                    tell(now, CoordinatorWhat::KeyTaken { key, run, path, ttl: *ttl });
                }
            }
        }
        // The events above use rates in a different order than the original requests.
        let taken: BTreeSet<&Key> = self.holds.values().flat_map(|hold| rates(&hold.ask)).collect();
        for (key, whole_at) in self.rates.iter().filter(|(key, until)| **until > now || taken.contains(key)) {
            tell(now, CoordinatorWhat::RateIs { key: key.clone(), whole_at: *whole_at });
        }
        for (key, budget) in &self.budgets {
            let BudgetState { cap, spent, day, .. } = budget.clone();
            tell(now, CoordinatorWhat::BudgetIs { budget: key.clone(), cap, spent, day });
        }
        for subscription in self.subscriptions.values().flatten() {
            tell(now, CoordinatorWhat::Subscribed(Box::new(subscription.clone())));
        }
        // First all ids, so that messages are forgotten in the same order; then the undelivered messages.
        for id in &self.known {
            let to: Vec<Address> = Vec::new();
            let (name, by) = ("".into(), "".into());
            tell(now, CoordinatorWhat::Published { id: id.clone(), name, by, value: Value::Null, to });
        }
        for (address, deliveries) in &self.deliveries {
            for Message { id, name, by, value } in deliveries.iter().cloned() {
                tell(now, CoordinatorWhat::Published { id, name, by, value, to: vec![address.clone()] });
            }
        }
        for (trigger, last) in &self.firings {
            let skipped = Came::Skipped { because: "".into() };
            let next = self.next_firings.get(trigger).copied();
            let fired = super::event::Fired { trigger: trigger.clone(), due: *last, next, came: skipped };
            tell(now, CoordinatorWhat::Fired(Box::new(fired)));
        }
        for (trigger, order) in self.orders.values() {
            let due = self.firings.get(trigger).copied().unwrap_or(now);
            let (came, next) = (Came::Started(order.clone()), self.next_firings.get(trigger).copied());
            let fired = super::event::Fired { trigger: trigger.clone(), due, next, came };
            tell(now, CoordinatorWhat::Fired(Box::new(fired)));
        }
        events
    }
}

/// The time that this many of `limit` units take, rounded up.
pub fn share(period: Duration, units: u32, limit: u32) -> Duration {
    let whole = u128::from(period.0) * u128::from(units);
    Duration(u64::try_from(whole.div_ceil(u128::from(limit.max(1)))).unwrap_or(u64::MAX))
}

/// The slots that a request needs, with its limits.
pub fn slots(ask: &Ask) -> impl Iterator<Item = (&Key, u32)> {
    ask.claims.iter().filter_map(|claim| match claim {
        Claim::Slot { key, limit, .. } => Some((key, *limit)),
        Claim::Rate { .. } | Claim::Key { .. } | Claim::Spend { .. } => None,
    })
}

/// The slots that are reserved for the first request in the queue of `on`. A request that waits for an idempotency
/// key reserves none, because the work under the key may need them.
fn reserved<'a>(ask: &'a Ask, on: &Key) -> impl Iterator<Item = &'a Key> {
    let waits_for_work =
        ask.claims.iter().any(|claim| claim.key() == on && matches!(claim, Claim::Key { .. }));
    slots(ask).filter(move |_| !waits_for_work).map(|(key, _)| key)
}

fn rates(ask: &Ask) -> impl Iterator<Item = &Key> {
    ask.claims.iter().filter_map(|claim| match claim {
        Claim::Rate { key, .. } => Some(key),
        Claim::Slot { .. } | Claim::Key { .. } | Claim::Spend { .. } => None,
    })
}

fn take_out<T>(queues: &mut BTreeMap<Key, BTreeMap<Position, T>>, key: &Key, position: Position) {
    if let Some(queue) = queues.get_mut(key) {
        queue.remove(&position);
        if queue.is_empty() {
            queues.remove(key);
        }
    }
}
