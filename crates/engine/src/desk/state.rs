//! What the desk knows, and the one function that changes it.

use super::claim::{Amount, Ask, Asker, Claim, End, Key};
use super::event::{Address, Came, Day, DeskEvent, DeskWhat, Listener, Order, Place};
use crate::keys::{Path, RunId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

/// A message that is sent again under the same id is recognised among this many.
const MESSAGES_KNOWN: usize = 10_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub last_at: Timestamp,
    /// The number that the next who waits gets.
    pub next: u64,
    pub slots: BTreeMap<Key, BTreeSet<Asker>>,
    /// When all that was taken of a rate will have come back.
    pub rates: BTreeMap<Key, Timestamp>,
    pub promises: BTreeMap<Key, Promise>,
    /// The keys that each step which has promised something does the work of.
    pub promisers: BTreeMap<(RunId, Path), BTreeSet<Key>>,
    pub accounts: BTreeMap<Key, Account>,
    pub holds: BTreeMap<Asker, Hold>,
    pub waiting: BTreeMap<Asker, Waiting>,
    /// Who waits for what, in order.
    pub lines: BTreeMap<Key, BTreeMap<Place, Arc<Ask>>>,
    /// The lines that time moves on.
    pub timed: BTreeSet<Key>,
    /// Who waits, whichever line it stands in, by the places it needs.
    pub wanted: BTreeMap<Key, BTreeSet<Asker>>,
    /// For whom a slot is reserved, by its key: the first of each line that needs it.
    pub reserved: BTreeMap<Key, BTreeMap<Place, Arc<Ask>>>,
    pub listeners: BTreeMap<Arc<str>, Vec<Listener>>,
    /// The names that somebody listens to, by who does.
    pub ears: BTreeMap<Address, BTreeSet<Arc<str>>>,
    pub letters: BTreeMap<Address, VecDeque<Letter>>,
    known: VecDeque<Arc<str>>,
    pub messages: HashSet<Arc<str>>,
    /// The last instant that each trigger was due at.
    pub fires: BTreeMap<Key, Timestamp>,
    /// When each will fire next.
    pub next_fires: BTreeMap<Key, Timestamp>,
    /// Runs that triggers have ordered and that have not begun.
    pub orders: BTreeMap<RunId, (Key, Order)>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Promise {
    Pending { run: RunId, path: Path, ttl: Option<Duration> },
    Kept { value: Value, until: Option<Timestamp> },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// None where its owner has set none.
    pub cap: Option<Budget>,
    pub spent: Amount,
    pub reserved: BTreeMap<Asker, Amount>,
    pub day: Option<Day>,
}

impl Account {
    pub fn committed(&self) -> Amount {
        self.reserved.values().fold(self.spent, |sum, amount| sum.plus(*amount))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub ask: Arc<Ask>,
    pub since: Timestamp,
    pub evicted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    pub ask: Arc<Ask>,
    pub on: Key,
    pub place: Place,
    pub since: Timestamp,
    pub evicted: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub by: Arc<str>,
    pub value: Value,
}

/// Applies one event. What it gives back are the keys at which somebody may have room now; whoever only replays has no use for them.
pub fn evolve(state: &mut State, event: &DeskEvent) -> Vec<Key> {
    let at = event.at;
    state.last_at = state.last_at.max(at);
    match &event.what {
        DeskWhat::Begun => *state = State { last_at: state.last_at, ..State::default() },
        DeskWhat::Queued { ask, on, place } => {
            state.queue(Arc::new((**ask).clone()), on.clone(), *place, at);
            return vec![on.clone()];
        }
        DeskWhat::Moved { asker, on } => return state.move_to(asker, on),
        DeskWhat::Granted { asker, ask } => {
            let (waited, freed) = state.leave_line(asker);
            let ask = ask.as_ref().map(|ask| Arc::new((**ask).clone())).or(waited.map(|waited| waited.ask));
            if let Some(ask) = ask {
                state.take(ask, at);
            }
            return freed;
        }
        DeskWhat::Withdrawn { asker } => {
            let (waited, mut freed) = state.leave_line(asker);
            freed.extend(waited.map(|waited| waited.on));
            return freed;
        }
        DeskWhat::Evicted { asker } => {
            if let Some(hold) = state.holds.get_mut(asker) {
                hold.evicted = true;
            }
            if let Some(waiting) = state.waiting.get_mut(asker) {
                waiting.evicted = true;
            }
        }
        DeskWhat::Released { asker, used, end } => return state.release(asker, *used, end, at),
        DeskWhat::Broken { run, path } => return state.break_promise(&(run.clone(), path.clone())),
        DeskWhat::Kept { key, value, until } => {
            state.promises.insert(key.clone(), Promise::Kept { value: value.clone(), until: *until });
        }
        DeskWhat::Promised { key, run, path, ttl } => {
            state.promise(key.clone(), (run.clone(), path.clone()), *ttl);
        }
        DeskWhat::RateIs { key, whole_at } => drop(state.rates.insert(key.clone(), *whole_at)),
        DeskWhat::AccountIs { account, cap, spent, day } => {
            let account = state.accounts.entry(account.clone()).or_default();
            (account.cap, account.spent, account.day) = (cap.clone(), *spent, day.clone());
        }
        DeskWhat::Listening(listener) => state.listen(listener),
        DeskWhat::Deaf { run, path } => state.deafen(&Address { run: run.clone(), path: path.clone() }),
        DeskWhat::Published { id, name, by, value, to } => {
            state.remember(id);
            for address in to {
                state.deafen(address);
                let letter =
                    Letter { id: id.clone(), name: name.clone(), by: by.clone(), value: value.clone() };
                state.letters.entry(address.clone()).or_default().push_back(letter);
            }
        }
        DeskWhat::Heard { id, to } => {
            if let Some(letters) = state.letters.get_mut(to) {
                letters.retain(|letter| letter.id != *id);
                if letters.is_empty() {
                    state.letters.remove(to);
                }
            }
        }
        DeskWhat::Fired(fired) => {
            match fired.next {
                Some(next) => drop(state.next_fires.insert(fired.trigger.clone(), next)),
                None => drop(state.next_fires.remove(&fired.trigger)),
            }
            let last = state.fires.entry(fired.trigger.clone()).or_insert(fired.due);
            *last = (*last).max(fired.due);
            if let Came::Started(order) = &fired.came {
                state.orders.insert(order.run.clone(), (fired.trigger.clone(), order.clone()));
            }
        }
        DeskWhat::Arrived { run } => drop(state.orders.remove(run)),
        DeskWhat::Retired => {}
    }
    Vec::new()
}

impl State {
    fn queue(&mut self, ask: Arc<Ask>, on: Key, place: Place, at: Timestamp) {
        self.next = self.next.max(place.number + 1);
        for (key, _) in slots(&ask) {
            self.wanted.entry(key.clone()).or_default().insert(ask.asker.clone());
        }
        self.line_up(&on, place, ask.clone());
        self.waiting.insert(ask.asker.clone(), Waiting { ask, on, place, since: at, evicted: false });
    }

    fn line_up(&mut self, on: &Key, place: Place, ask: Arc<Ask>) -> Vec<Key> {
        if ask.claims.iter().any(|claim| claim.key() == on && matches!(claim, Claim::Rate { .. })) {
            self.timed.insert(on.clone());
        }
        self.change_line(on, |line| drop(line.insert(place, ask)))
    }

    /// Changes a line, and with it what is reserved for the first in it. Gives back where something is not reserved any more.
    fn change_line(&mut self, on: &Key, change: impl FnOnce(&mut BTreeMap<Place, Arc<Ask>>)) -> Vec<Key> {
        let before = self.first_in_line(on);
        let line = self.lines.entry(on.clone()).or_default();
        change(line);
        if line.is_empty() {
            self.lines.remove(on);
            self.timed.remove(on);
        }
        let after = self.first_in_line(on);
        let place = |first: &Option<(Place, Arc<Ask>)>| first.as_ref().map(|(place, _)| *place);
        if place(&before) == place(&after) {
            return Vec::new();
        }
        if let Some((place, ask)) = after {
            for key in reserved(&ask, on) {
                self.reserved.entry(key.clone()).or_default().insert(place, ask.clone());
            }
        }
        let Some((place, ask)) = before else { return Vec::new() };
        reserved(&ask, on).for_each(|key| take_out(&mut self.reserved, key, place));
        reserved(&ask, on).cloned().collect()
    }

    pub(super) fn first_in_line(&self, key: &Key) -> Option<(Place, Arc<Ask>)> {
        let (place, ask) = self.lines.get(key)?.first_key_value()?;
        Some((*place, ask.clone()))
    }

    fn move_to(&mut self, asker: &Asker, on: &Key) -> Vec<Key> {
        let Some(waiting) = self.waiting.get_mut(asker) else { return Vec::new() };
        let from = std::mem::replace(&mut waiting.on, on.clone());
        let (place, ask) = (waiting.place, waiting.ask.clone());
        let mut freed = self.change_line(&from, |line| drop(line.remove(&place)));
        freed.extend(self.line_up(on, place, ask));
        freed
    }

    fn leave_line(&mut self, asker: &Asker) -> (Option<Waiting>, Vec<Key>) {
        let Some(waiting) = self.waiting.remove(asker) else { return (None, Vec::new()) };
        let freed = self.change_line(&waiting.on, |line| drop(line.remove(&waiting.place)));
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
                Claim::Promise { key, ttl } => self.promise(key.clone(), asker.step(), *ttl),
                Claim::Spend { account, cap, most } => {
                    let account = self.accounts.entry(account.clone()).or_default();
                    if account.cap.is_none() && !cap.is_unlimited() {
                        account.cap = Some(cap.clone());
                    }
                    account.reserved.insert(asker.clone(), *most);
                }
            }
        }
        self.holds.insert(asker, Hold { ask, since: at, evicted: false });
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
                Claim::Promise { key, ttl } => match end {
                    End::Attempt | End::Lost => {}
                    End::Done(value) => {
                        let until = ttl.map(|ttl| at.plus(ttl));
                        self.promises.insert(key.clone(), Promise::Kept { value: value.clone(), until });
                        if let Some(promised) = self.promisers.get_mut(&asker.step()) {
                            promised.remove(key);
                        }
                        freed.push(key.clone());
                    }
                    // Failures are never kept.
                    End::Over => freed.extend(self.break_promise(&asker.step())),
                },
                Claim::Spend { account, .. } => {
                    if let Some(account) = self.accounts.get_mut(account) {
                        account.reserved.remove(asker);
                        account.spent = account.spent.plus(used);
                    }
                }
            }
        }
        if self.promisers.get(&asker.step()).is_some_and(BTreeSet::is_empty) {
            self.promisers.remove(&asker.step());
        }
        freed
    }

    fn promise(&mut self, key: Key, step: (RunId, Path), ttl: Option<Duration>) {
        let (run, path) = step.clone();
        self.promises.insert(key.clone(), Promise::Pending { run, path, ttl });
        self.promisers.entry(step).or_default().insert(key);
    }

    fn break_promise(&mut self, step: &(RunId, Path)) -> Vec<Key> {
        let promised = self.promisers.remove(step).unwrap_or_default();
        for key in &promised {
            self.promises.remove(key);
        }
        promised.into_iter().collect()
    }

    fn listen(&mut self, listener: &Listener) {
        let listeners = self.listeners.entry(listener.name.clone()).or_default();
        listeners.retain(|other| other.address != listener.address || other.number != listener.number);
        listeners.push(listener.clone());
        self.ears.entry(listener.address.clone()).or_default().insert(listener.name.clone());
    }

    fn deafen(&mut self, address: &Address) {
        for name in self.ears.remove(address).unwrap_or_default() {
            if let Some(listeners) = self.listeners.get_mut(&name) {
                listeners.retain(|listener| listener.address != *address);
                if listeners.is_empty() {
                    self.listeners.remove(&name);
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

    /// The events that make this state anew, and nothing of how it came about.
    pub fn told_again(&self, now: Timestamp) -> Vec<DeskEvent> {
        let mut events = vec![DeskEvent { at: now, what: DeskWhat::Begun }];
        let mut tell = |at: Timestamp, what: DeskWhat| events.push(DeskEvent { at, what });
        for (asker, hold) in &self.holds {
            let ask = Some(Box::new((*hold.ask).clone()));
            tell(hold.since, DeskWhat::Granted { asker: asker.clone(), ask });
            if hold.evicted {
                tell(now, DeskWhat::Evicted { asker: asker.clone() });
            }
        }
        for (asker, waiting) in &self.waiting {
            let ask = Box::new((*waiting.ask).clone());
            tell(waiting.since, DeskWhat::Queued { ask, on: waiting.on.clone(), place: waiting.place });
            if waiting.evicted {
                tell(now, DeskWhat::Evicted { asker: asker.clone() });
            }
        }
        for (key, promise) in &self.promises {
            match promise {
                Promise::Kept { until: Some(until), .. } if *until <= now => {}
                Promise::Kept { value, until } => {
                    tell(now, DeskWhat::Kept { key: key.clone(), value: value.clone(), until: *until });
                }
                Promise::Pending { run, path, ttl } => {
                    let (key, run, path) = (key.clone(), run.clone(), path.clone());
                    tell(now, DeskWhat::Promised { key, run, path, ttl: *ttl });
                }
            }
        }
        // What is held was taken in another order than it is told in.
        let taken: BTreeSet<&Key> = self.holds.values().flat_map(|hold| rates(&hold.ask)).collect();
        for (key, whole_at) in self.rates.iter().filter(|(key, until)| **until > now || taken.contains(key)) {
            tell(now, DeskWhat::RateIs { key: key.clone(), whole_at: *whole_at });
        }
        for (key, account) in &self.accounts {
            let Account { cap, spent, day, .. } = account.clone();
            tell(now, DeskWhat::AccountIs { account: key.clone(), cap, spent, day });
        }
        for listener in self.listeners.values().flatten() {
            tell(now, DeskWhat::Listening(Box::new(listener.clone())));
        }
        // Ids first, then what is owed under them: the order in which messages are forgotten stays.
        for id in &self.known {
            let to: Vec<Address> = Vec::new();
            let (name, by) = ("".into(), "".into());
            tell(now, DeskWhat::Published { id: id.clone(), name, by, value: Value::Null, to });
        }
        for (address, letters) in &self.letters {
            for Letter { id, name, by, value } in letters.iter().cloned() {
                tell(now, DeskWhat::Published { id, name, by, value, to: vec![address.clone()] });
            }
        }
        for (trigger, last) in &self.fires {
            let skipped = Came::Skipped { because: "".into() };
            let next = self.next_fires.get(trigger).copied();
            let fired = super::event::Fired { trigger: trigger.clone(), due: *last, next, came: skipped };
            tell(now, DeskWhat::Fired(Box::new(fired)));
        }
        for (trigger, order) in self.orders.values() {
            let due = self.fires.get(trigger).copied().unwrap_or(now);
            let (came, next) = (Came::Started(order.clone()), self.next_fires.get(trigger).copied());
            let fired = super::event::Fired { trigger: trigger.clone(), due, next, came };
            tell(now, DeskWhat::Fired(Box::new(fired)));
        }
        events
    }
}

/// The time that so many of `limit` units take, rounded up.
pub fn share(period: Duration, units: u32, limit: u32) -> Duration {
    let whole = u128::from(period.0) * u128::from(units);
    Duration(u64::try_from(whole.div_ceil(u128::from(limit.max(1)))).unwrap_or(u64::MAX))
}

/// The places that an ask needs, and how many it allows there.
pub fn slots(ask: &Ask) -> impl Iterator<Item = (&Key, u32)> {
    ask.claims.iter().filter_map(|claim| match claim {
        Claim::Slot { key, limit, .. } => Some((key, *limit)),
        Claim::Rate { .. } | Claim::Promise { .. } | Claim::Spend { .. } => None,
    })
}

/// The slots that are reserved for the first in the line of `on`. Work that somebody else does under a key may need what would be
/// reserved meanwhile.
fn reserved<'a>(ask: &'a Ask, on: &Key) -> impl Iterator<Item = &'a Key> {
    let waits_for_work =
        ask.claims.iter().any(|claim| claim.key() == on && matches!(claim, Claim::Promise { .. }));
    slots(ask).filter(move |_| !waits_for_work).map(|(key, _)| key)
}

fn rates(ask: &Ask) -> impl Iterator<Item = &Key> {
    ask.claims.iter().filter_map(|claim| match claim {
        Claim::Rate { key, .. } => Some(key),
        Claim::Slot { .. } | Claim::Promise { .. } | Claim::Spend { .. } => None,
    })
}

fn take_out<T>(lines: &mut BTreeMap<Key, BTreeMap<Place, T>>, key: &Key, place: Place) {
    if let Some(line) = lines.get_mut(key) {
        line.remove(&place);
        if line.is_empty() {
            lines.remove(key);
        }
    }
}
