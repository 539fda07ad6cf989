//! Invariants of the coordinator, checked independently: the ledger judges each event, and compares its own state
//! with that of the coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Address, Amount, Ask, Asker, BudgetState, Came, Claim, CoordinatorAnswer, CoordinatorEffect,
    CoordinatorEvent, CoordinatorInput, CoordinatorState, CoordinatorWhat, Denial, End, Fired, Key, KeyState,
    Overlap, Path, QueuePosition, RunId, Subscription, Timestamp,
};
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    at: Timestamp,
    pub holds: BTreeMap<Asker, Ask>,
    pub waits: BTreeMap<Asker, (Ask, QueuePosition)>,
    buckets: BTreeMap<Key, Bucket>,
    keys: BTreeMap<Key, KeyState>,
    budgets: BTreeMap<Key, BudgetState>,
    /// The budgets that may exceed their cap, because a job cost more than was reserved or the cap was lowered.
    may_be_over: BTreeSet<Key>,
    subscriptions: Vec<Subscription>,
    /// Undelivered messages, and all messages ever published.
    pub owed: BTreeSet<(Address, Arc<str>)>,
    pub sent: BTreeSet<(Address, Arc<str>)>,
    ids: BTreeSet<Arc<str>>,
    /// The result of every due instant of a trigger.
    fired: BTreeMap<Key, BTreeMap<Timestamp, Came>>,
    orders: BTreeSet<RunId>,
    /// The requests that left their queue without a grant in the last turn.
    left: BTreeMap<Asker, Ask>,
}

/// The used part of a rate, in units times its period, to avoid fractions.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full: u128,
    at: Timestamp,
}

/// The expected result of an input.
#[derive(Debug, PartialEq)]
enum Due {
    Nothing,
    Message(BTreeSet<Address>),
    /// The run that a trigger starts, if any.
    Fire(Option<RunId>),
}

impl Ledger {
    /// Judges the events of an input, and applies them.
    pub fn apply(&mut self, now: Timestamp, input: &CoordinatorInput, events: &[CoordinatorEvent]) {
        let now = now.max(self.at);
        let due = self.due(now, input);
        self.left.clear();
        for event in events {
            assert_eq!(event.at, now, "an event of another time: {event:?}");
            self.at = now;
            self.follow(input, &event.what);
        }
        let decided = events.iter().filter_map(|event| match &event.what {
            CoordinatorWhat::Published { to, .. } => Some(Due::Message(to.iter().cloned().collect())),
            CoordinatorWhat::Fired(fired) => Some(Due::Fire(match &fired.came {
                Came::Started(order) => Some(order.run.clone()),
                Came::Skipped { .. } => None,
            })),
            _ => None,
        });
        let decided: Vec<Due> = decided.collect();
        let due: Vec<Due> = Some(due).filter(|due| *due != Due::Nothing).into_iter().collect();
        assert_eq!(decided, due, "decided (left), expected (right)");
    }

    /// Advances the time.
    pub fn is_at(&mut self, now: Timestamp) {
        self.at = self.at.max(now);
    }

    fn due(&self, now: Timestamp, input: &CoordinatorInput) -> Due {
        match input {
            CoordinatorInput::Published { id, name, value, .. } if !self.ids.contains(id) => {
                let subscribes = |subscription: &&Subscription| {
                    subscription.name == *name
                        && subscription.until.is_none_or(|until| until > now)
                        && suits(subscription, value)
                };
                Due::Message(
                    self.subscriptions
                        .iter()
                        .filter(subscribes)
                        .map(|subscription| subscription.address.clone())
                        .collect(),
                )
            }
            CoordinatorInput::Fire(fire) => {
                let last = self.fired.get(&fire.trigger).and_then(|fired| fired.last_key_value());
                if last.is_some_and(|(last, _)| *last >= fire.due) {
                    return Due::Nothing;
                }
                let key = format!("trigger:{}", fire.trigger).into();
                let (held, waited_for) =
                    (self.holders(&key).count(), self.waits.values().any(|(ask, _)| needs(ask, &key)));
                let full = fire.runs_max.is_some_and(|limit| held >= limit as usize || waited_for);
                let skipped = fire.skip.is_some() || (full && fire.overlap == Overlap::Skip);
                Due::Fire((!skipped).then(|| fire.run.clone()))
            }
            _ => Due::Nothing,
        }
    }

    fn follow(&mut self, input: &CoordinatorInput, what: &CoordinatorWhat) {
        match what {
            CoordinatorWhat::Snapshot
            | CoordinatorWhat::Kept { .. }
            | CoordinatorWhat::KeyTaken { .. }
            | CoordinatorWhat::RateIs { .. }
            | CoordinatorWhat::Retired => panic!("outside of a snapshot: {what:?}"),
            CoordinatorWhat::Queued { ask, on, position } => self.queued(ask, on, *position),
            CoordinatorWhat::Moved { asker, on } => {
                let (ask, _) = self.waits.get(asker).expect("only a waiting asker moves");
                self.check_can_wait(ask, on);
            }
            CoordinatorWhat::Granted { asker, ask } => self.granted(asker, ask.as_deref()),
            CoordinatorWhat::Withdrawn { asker } => {
                let (ask, _) = self.waits.remove(asker).expect("only a waiting asker withdraws");
                self.left.insert(asker.clone(), ask);
            }
            CoordinatorWhat::Replaced { asker } => {
                let there = self.holds.contains_key(asker) || self.waits.contains_key(asker);
                assert!(there, "{asker} was replaced but does not exist");
            }
            CoordinatorWhat::Released { asker, used, end } => self.released(input, asker, *used, end),
            CoordinatorWhat::KeysFreed { run, path } => {
                let before = self.keys.len();
                self.keys.retain(|_, key| !is_of(key, run, path));
                assert!(self.keys.len() < before, "{run}:{path} owned no key");
            }
            CoordinatorWhat::BudgetIs { budget: key, cap, spent, day } => {
                let reserved = self.budgets.get(key).map(|before| before.reserved.clone());
                let (cap, reserved) = (cap.clone(), reserved.unwrap_or_default());
                self.budget_is(input, key, BudgetState { cap, spent: *spent, reserved, day: day.clone() });
            }
            CoordinatorWhat::Subscribed(subscription) => {
                let same = |other: &Subscription| {
                    other.address == subscription.address
                        && other.number == subscription.number
                        && other.name == subscription.name
                };
                self.subscriptions.retain(|other| !same(other));
                self.subscriptions.push((**subscription).clone());
            }
            CoordinatorWhat::Unsubscribed { run, path } => {
                self.subscriptions.retain(|subscription| {
                    subscription.address.run != *run || subscription.address.path != *path
                });
            }
            CoordinatorWhat::Published { id, to, .. } => {
                assert!(self.ids.insert(id.clone()), "message {id} was taken twice");
                for address in to {
                    self.subscriptions.retain(|subscription| subscription.address != *address);
                    self.owed.insert((address.clone(), id.clone()));
                    self.sent.insert((address.clone(), id.clone()));
                }
            }
            CoordinatorWhat::Acknowledged { id, to } => {
                assert!(self.owed.remove(&(to.clone(), id.clone())), "{id} was not pending");
            }
            CoordinatorWhat::Fired(fired) => self.fired(fired),
            CoordinatorWhat::Arrived { run } => assert!(self.orders.remove(run), "{run} was not ordered"),
        }
    }

    fn queued(&mut self, ask: &Ask, on: &Key, position: QueuePosition) {
        let asker = &ask.asker;
        assert!(!self.waits.contains_key(asker), "{asker} waits twice");
        assert!(!self.holds.contains_key(asker), "{asker} waits for what it holds");
        self.check_can_wait(ask, on);
        let since = Timestamp(ask.since.min(self.at).0 - i64::from(ask.ahead) * 1_000_000);
        assert_eq!(position.since, since, "{asker} has the wrong age");
        let later = self.waits.values().all(|(_, other)| other.number < position.number);
        assert!(later, "{asker} did not get the highest number");
        self.waits.insert(asker.clone(), (ask.clone(), position));
    }

    /// No request waits for a resource of a run that waits for it.
    fn check_can_wait(&self, ask: &Ask, on: &Key) {
        let claim = ask.claims.iter().find(|claim| claim.key() == on).expect("it waits for what it needs");
        let asker = &ask.asker;
        let waits_for_it = |run: &RunId, path: &Path| waits_for(ask, run, path);
        match claim {
            Claim::Slot { .. } => {
                let circle = self.holders(on).find(|holder| waits_for_it(&holder.run, &holder.path));
                assert_eq!(circle, None, "{asker} waits for {on}, held by a run that waits for it");
            }
            Claim::Key { .. } => match self.keys.get(on) {
                Some(KeyState::Pending { run, path, .. }) => {
                    assert!(
                        !waits_for_it(run, path),
                        "{asker} waits for the work of a step that waits for it"
                    );
                }
                Some(KeyState::Kept { .. }) | None => {}
            },
            Claim::Rate { units, limit, .. } => {
                assert!(units <= limit, "{asker} waits for more of {on} than the limit allows");
            }
            Claim::Spend { .. } => panic!("{asker} waits for a budget"),
        }
    }

    fn granted(&mut self, asker: &Asker, ask: Option<&Ask>) {
        let waited = self.waits.remove(asker);
        assert!(waited.is_some() != ask.is_some(), "{asker}: the ask is repeated, or missing");
        self.check_order(asker, ask, waited.as_ref());
        let ask = ask.cloned().or(waited.map(|(ask, _)| ask)).expect("one of them is there");
        for claim in &ask.claims {
            match claim {
                Claim::Slot { key, limit, .. } => {
                    let held = self.holders(key).count();
                    assert!(held < *limit as usize, "{asker} exceeds the limit {limit} of {key}");
                }
                Claim::Rate { key, limit, period, units } => {
                    let bucket = self.buckets.entry(key.clone()).or_default();
                    bucket.leak(self.at, *limit);
                    bucket.full += u128::from(*units) * u128::from(period.0);
                    let most = u128::from(*limit) * u128::from(period.0);
                    assert!(bucket.full <= most, "{asker} takes more of {key} than its rate allows");
                }
                Claim::Key { key, ttl } => {
                    match self.keys.get(key) {
                        Some(kept @ KeyState::Kept { .. }) => {
                            assert!(!is_fresh(kept, self.at), "{asker} does the work of {key} again");
                        }
                        Some(KeyState::Pending { run, path, .. }) => {
                            let own = *run == asker.run && *path == asker.path;
                            assert!(own, "{asker} works on {key}, and so does {run}:{path}");
                        }
                        None => {}
                    }
                    let (run, path) = (asker.run.clone(), asker.path.clone());
                    self.keys.insert(key.clone(), KeyState::Pending { run, path, ttl: *ttl });
                }
                Claim::Spend { budget: key, cap, most } => {
                    let budget = self.budgets.entry(key.clone()).or_default();
                    if budget.cap.is_none() && !cap.is_unlimited() {
                        budget.cap = Some(cap.clone());
                    }
                    budget.reserved.insert(asker.clone(), *most);
                    let beyond = budget.cap.as_ref().and_then(|cap| budget.committed().beyond(cap));
                    assert_eq!(
                        beyond, None,
                        "{asker} spends more from {key} than its cap allows: {budget:?}"
                    );
                }
            }
        }
        assert!(self.holds.insert(asker.clone(), ask).is_none(), "{asker} was granted twice");
    }

    /// Requests for the same single slot are granted in order, except that a run goes first if a run that waits for
    /// it holds a slot.
    fn check_order(&self, asker: &Asker, ask: Option<&Ask>, waited: Option<&(Ask, QueuePosition)>) {
        let Some(ask) = ask.or(waited.map(|(ask, _)| ask)) else { return };
        let Some(own) = single_slot(ask) else { return };
        if self.holders(own).any(|holder| waits_for(ask, &holder.run, &holder.path)) {
            return;
        }
        let position = waited.map(|(_, position)| *position);
        for (other, (ask, before)) in &self.waits {
            let same = single_slot(ask) == Some(own);
            let overtaken = same && position.is_none_or(|position| *before < position);
            assert!(!overtaken, "{asker} overtakes {other}, and both wait for {own}");
        }
    }

    fn released(&mut self, input: &CoordinatorInput, asker: &Asker, used: Amount, end: &End) {
        let ask = self.holds.remove(asker).expect("only a holder releases");
        let asked_for = match input {
            CoordinatorInput::Release { asker: of, used: said, end: wanted }
                if of == asker && *wanted != End::Lost =>
            {
                assert_eq!((end, used), (wanted, *said), "{asker} was released in another way than it asked");
                true
            }
            _ => false,
        };
        for claim in &ask.claims {
            match claim {
                Claim::Slot { .. } | Claim::Rate { .. } => {}
                Claim::Key { key, ttl } => match end {
                    End::Attempt | End::Lost => {}
                    End::Done(value) => {
                        let until = ttl.map(|ttl| self.at.plus(ttl));
                        self.keys.insert(key.clone(), KeyState::Kept { value: value.clone(), until });
                    }
                    End::Over => {
                        self.keys.retain(|_, key| !is_of(key, &asker.run, &asker.path));
                    }
                },
                Claim::Spend { budget: key, most, .. } => {
                    // An unknown cost is charged as the maximum.
                    assert!(asked_for || used == *most, "{asker} was lost and costs {used:?}");
                    let budget = self.budgets.get_mut(key).expect("a budget that was drawn on");
                    budget.reserved.remove(asker);
                    budget.spent = budget.spent.plus(used);
                    if used.tokens > most.tokens || used.calls > most.calls {
                        self.may_be_over.insert(key.clone());
                    }
                }
            }
        }
    }

    fn budget_is(&mut self, input: &CoordinatorInput, key: &Key, new: BudgetState) {
        let old = self.budgets.insert(key.clone(), new.clone()).unwrap_or_default();
        let is_reset = new.spent == Amount::default() && new.cap == old.cap;
        match input {
            CoordinatorInput::Cap { .. } => {
                assert_eq!(new.spent, old.spent, "a cap changed what was spent from {key}");
                self.may_be_over.insert(key.clone());
            }
            CoordinatorInput::Reset { .. } => assert!(is_reset, "{key} was not reset: {new:?}"),
            _ => {
                let is_over = old.day.is_some_and(|day| day.ends <= self.at);
                let is_later = new.day.is_some_and(|day| day.ends > self.at);
                assert!(is_over && is_later && is_reset, "{key} does not begin a new day");
            }
        }
    }

    fn fired(&mut self, fired: &Fired) {
        let before = self.fired.entry(fired.trigger.clone()).or_default();
        let first = before.insert(fired.due, fired.came.clone()).is_none();
        assert!(first, "{} at {} was decided twice", fired.trigger, fired.due);
        if let Came::Started(order) = &fired.came {
            assert!(self.orders.insert(order.run.clone()), "{} was ordered twice", order.run);
        }
    }

    fn holders<'l>(&'l self, key: &'l Key) -> impl Iterator<Item = &'l Asker> {
        let holds = move |ask: &Ask| {
            ask.claims.iter().any(|claim| matches!(claim, Claim::Slot { key: held, .. } if held == key))
        };
        self.holds.iter().filter(move |(_, ask)| holds(ask)).map(|(asker, _)| asker)
    }

    /// The effects match the events exactly.
    pub fn check_effects(
        &self,
        input: &CoordinatorInput,
        events: &[CoordinatorEvent],
        effects: &[CoordinatorEffect],
    ) {
        let mut deliveries = BTreeSet::new();
        let (mut starts, mut replaced, mut granted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for event in events {
            match &event.what {
                CoordinatorWhat::Published { id, to, .. } => {
                    deliveries.extend(to.iter().map(|to| (to.clone(), id.clone())));
                }
                CoordinatorWhat::Fired(fired) => {
                    if let Came::Started(order) = &fired.came {
                        starts.insert(order.run.clone());
                    }
                }
                CoordinatorWhat::Replaced { asker } => drop(replaced.insert(asker.run.clone())),
                CoordinatorWhat::Granted { asker, .. } if asker.attempt > 0 => {
                    granted.insert(asker.clone());
                }
                _ => {}
            }
        }
        for effect in effects {
            match effect {
                CoordinatorEffect::Answer { asker, answer } => {
                    granted.remove(asker);
                    self.check_answer(input, asker, answer);
                }
                CoordinatorEffect::Deliver { to, message } => {
                    let wanted = deliveries.remove(&(to.clone(), message.id.clone()));
                    assert!(wanted, "{} goes to {to:?}, which did not subscribe", message.id);
                }
                CoordinatorEffect::Cancel { run, .. } => {
                    assert!(replaced.remove(run), "{run} is canceled without a reason");
                }
                CoordinatorEffect::Start(order) => {
                    assert!(starts.remove(&order.run), "{} is started without a reason", order.run);
                }
            }
        }
        assert!(deliveries.is_empty(), "not delivered: {deliveries:?}");
        assert!(starts.is_empty(), "not started: {starts:?}");
        assert!(replaced.is_empty(), "not canceled: {replaced:?}");
        assert!(granted.is_empty(), "not answered: {granted:?}");
    }

    fn check_answer(&self, input: &CoordinatorInput, asker: &Asker, answer: &CoordinatorAnswer) {
        let just_asks = match input {
            CoordinatorInput::Ask(ask) if ask.asker == *asker => Some(&**ask),
            _ => None,
        };
        let holds = self.holds.contains_key(asker);
        let waits = self.waits.contains_key(asker);
        let denial = match answer {
            CoordinatorAnswer::Granted => {
                return assert!(holds, "{asker} was granted what it does not hold");
            }
            CoordinatorAnswer::Found(found) => {
                let kept = |key: &KeyState| {
                    matches!(key, KeyState::Kept { value, .. } if value == found) && is_fresh(key, self.at)
                };
                assert!(self.keys.values().any(kept), "{asker} found a result that is not kept");
                assert!(!holds && !waits, "{asker} found a result but stays");
                return;
            }
            CoordinatorAnswer::Denied(denial) => denial,
        };
        assert!(!holds && !waits, "{asker} was refused but stays");
        let ask = just_asks.or(self.left.get(asker)).expect("only an asker is refused");
        match denial {
            Denial::TooMuch { key } => {
                let too_much = |claim: &Claim| match claim {
                    Claim::Slot { limit, .. } => *limit == 0,
                    Claim::Rate { units, limit, .. } => units > limit,
                    Claim::Key { .. } | Claim::Spend { .. } => false,
                };
                let claim = ask.claims.iter().find(|claim| claim.key() == key);
                assert!(claim.is_some_and(too_much), "{asker} does not ask for too much of {key}");
            }
            Denial::WouldDeadlock { key, by } => {
                let family = ask.ancestors.contains(by) || *by == asker.run;
                assert!(family, "{by} does not wait for {asker}");
                let claim = ask.claims.iter().find(|claim| claim.key() == key);
                let free = match claim.expect("it waits for what it needs") {
                    Claim::Slot { limit, .. } => self.holders(key).count() < *limit as usize,
                    Claim::Key { .. } | Claim::Rate { .. } | Claim::Spend { .. } => false,
                };
                assert!(!free || just_asks.is_none(), "{asker} is refused {key}, which is free");
            }
            Denial::Taken { key, by } => {
                let mut there = self.holds.keys().chain(self.waits.keys()).chain(self.left.keys());
                let there = there.any(|other| other.run == *by);
                assert!(there || just_asks.is_none(), "{key} is not taken by {by}");
            }
            Denial::BudgetExceeded { budget, .. } => {
                let cap = ask.claims.iter().find_map(|claim| match claim {
                    Claim::Spend { budget: own, cap, most } if own == budget => Some((cap, *most)),
                    Claim::Spend { .. } | Claim::Slot { .. } | Claim::Rate { .. } | Claim::Key { .. } => None,
                });
                let (own, most) = cap.expect("only a spending asker exceeds a budget");
                let known = self.budgets.get(budget).cloned().unwrap_or_default();
                let today = known.day.as_ref().is_none_or(|day| day.ends > self.at);
                assert!(today, "{asker} is refused because of what was spent from {budget} on another day");
                let cap = known.cap.as_ref().unwrap_or(own);
                let beyond = known.committed().plus(most).beyond(cap);
                assert!(just_asks.is_none() || beyond.is_some(), "{asker} may spend from {budget}");
            }
        }
    }

    /// The state of the coordinator matches the ledger.
    pub fn check(&self, now: Timestamp, state: &CoordinatorState) {
        let now = now.max(self.at);
        assert!(self.holds.keys().eq(state.holds.keys()), "unexpected holders");
        assert!(self.waits.keys().eq(state.waiting.keys()), "unexpected waiters");
        assert!(
            self.holds.iter().all(|(asker, ask)| *state.holds[asker].ask == *ask),
            "an unexpected request is held"
        );
        self.check_steps();
        let mut slots: BTreeMap<Key, BTreeSet<Asker>> = BTreeMap::new();
        for (asker, ask) in &self.holds {
            for claim in &ask.claims {
                if let Claim::Slot { key, .. } = claim {
                    slots.entry(key.clone()).or_default().insert(asker.clone());
                }
            }
        }
        assert_eq!(slots, state.slots, "slots: expected (left), found (right)");
        self.check_queues(state);
        let (ours, theirs) = (fresh(&self.keys, now), fresh(&state.keys, now));
        assert_eq!(ours, theirs, "keys: expected (left), found (right)");
        assert_eq!(self.budgets, state.budgets, "budgets: expected (left), found (right)");
        for (key, budget) in &state.budgets {
            let beyond = budget.cap.as_ref().and_then(|cap| budget.committed().beyond(cap));
            assert!(self.may_be_over.contains(key) || beyond.is_none(), "{key} is overdrawn: {budget:?}");
        }
        let subscriptions: BTreeSet<(&Arc<str>, &Address, u32)> = self
            .subscriptions
            .iter()
            .map(|subscription| (&subscription.name, &subscription.address, subscription.number))
            .collect();
        let theirs = state.subscriptions.values().flatten();
        let theirs: BTreeSet<(&Arc<str>, &Address, u32)> = theirs
            .map(|subscription| (&subscription.name, &subscription.address, subscription.number))
            .collect();
        assert_eq!(subscriptions, theirs, "subscriptions: expected (left), found (right)");
        let deliveries = state.deliveries.iter();
        let deliveries: BTreeSet<(Address, Arc<str>)> = deliveries
            .flat_map(|(to, deliveries)| deliveries.iter().map(|message| (to.clone(), message.id.clone())))
            .collect();
        assert_eq!(self.owed, deliveries, "pending messages: expected (left), found (right)");
        let firings: BTreeMap<&Key, Timestamp> = self
            .fired
            .iter()
            .filter_map(|(key, fired)| fired.last_key_value().map(|(at, _)| (key, *at)))
            .collect();
        assert!(
            firings.into_iter().eq(state.firings.iter().map(|(key, at)| (key, *at))),
            "the last firings differ"
        );
        assert!(self.orders.iter().eq(state.orders.keys()), "unexpected orders");
    }

    /// Each step has at most one attempt, which holds or waits.
    fn check_steps(&self) {
        let mut steps = BTreeSet::new();
        for asker in self.holds.keys().chain(self.waits.keys()).filter(|asker| asker.attempt > 0) {
            assert!(steps.insert((&asker.run, &asker.path)), "the step of {asker} has two attempts");
        }
    }

    fn check_queues(&self, state: &CoordinatorState) {
        let mut queued = BTreeMap::new();
        for (key, queue) in &state.queues {
            assert!(!queue.is_empty(), "the empty queue of {key} is kept");
            for (position, ask) in queue {
                let before = queued.insert(&ask.asker, (key, position));
                assert_eq!(before, None, "{} is in two queues", ask.asker);
            }
        }
        assert_eq!(queued.len(), self.waits.len(), "queues and waiters differ");
        for (asker, (ask, position)) in &self.waits {
            let waiting = &state.waiting[asker];
            assert_eq!(
                queued.get(asker),
                Some(&(&waiting.on, &waiting.position)),
                "{asker} is in another queue"
            );
            assert_eq!(waiting.position, *position, "the position of {asker}");
            self.check_has_to_wait(asker, ask);
        }
    }

    /// A request for one free slot that no other request wants does not wait.
    fn check_has_to_wait(&self, asker: &Asker, ask: &Ask) {
        let (Some(key), Some(Claim::Slot { limit, .. })) = (single_slot(ask), ask.claims.first()) else {
            return;
        };
        let free = self.holders(key).count() < *limit as usize;
        let wanted = |(other, (ask, _)): (&Asker, &(Ask, QueuePosition))| other != asker && needs(ask, key);
        assert!(!free || self.waits.iter().any(wanted), "{asker} waits for {key}, which is free");
    }
}

impl Bucket {
    fn leak(&mut self, now: Timestamp, limit: u32) {
        let passed: Duration = now.since(self.at);
        self.full = self.full.saturating_sub(u128::from(passed.0) * u128::from(limit));
        self.at = now;
    }
}

/// The keys that have not expired.
pub fn fresh(keys: &BTreeMap<Key, KeyState>, now: Timestamp) -> BTreeMap<Key, KeyState> {
    let fresh = keys.iter().filter(|(_, key)| is_fresh(key, now));
    fresh.map(|(key, state)| (key.clone(), state.clone())).collect()
}

fn is_fresh(key: &KeyState, now: Timestamp) -> bool {
    !matches!(key, KeyState::Kept { until: Some(until), .. } if *until <= now)
}

fn is_of(key: &KeyState, by: &RunId, at: &Path) -> bool {
    matches!(key, KeyState::Pending { run, path, .. } if run == by && path == at)
}

/// Whether the holder waits until the asker is done: a caller, or its own run.
fn waits_for(ask: &Ask, run: &RunId, path: &Path) -> bool {
    let own_run = *run == ask.asker.run && path.is_run() && !ask.asker.path.is_run();
    ask.ancestors.contains(run) || own_run
}

fn needs(ask: &Ask, key: &Key) -> bool {
    ask.claims.iter().any(|claim| claim.key() == key)
}

/// The key of a request for a single slot.
fn single_slot(ask: &Ask) -> Option<&Key> {
    match &ask.claims[..] {
        [Claim::Slot { key, .. }] => Some(key),
        _ => None,
    }
}

/// Simulated subscriptions compare at most one field.
fn suits(subscription: &Subscription, value: &Value) -> bool {
    subscription.matching.iter().all(|(name, wanted)| value.get(name) == Some(wanted))
}
