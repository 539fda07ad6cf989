//! What must hold at the coordinator, kept apart from it: each event is judged when it comes, and the two states are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Account, Address, Amount, Ask, Asker, Came, Claim, Denial, DeskAnswer, DeskEffect, DeskEvent, DeskInput,
    DeskPromise, DeskState, DeskWhat, End, Fired, Key, LinePlace, Listener, Overlap, Path, RunId, Timestamp,
};
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    at: Timestamp,
    pub holds: BTreeMap<Asker, Ask>,
    pub waits: BTreeMap<Asker, (Ask, LinePlace)>,
    buckets: BTreeMap<Key, Bucket>,
    promises: BTreeMap<Key, DeskPromise>,
    accounts: BTreeMap<Key, Account>,
    /// The accounts that may be above their cap: a job cost more than was set aside, or the cap was set.
    may_be_over: BTreeSet<Key>,
    ears: Vec<Listener>,
    /// The messages that are on their way, and all that ever were.
    pub owed: BTreeSet<(Address, Arc<str>)>,
    pub promised: BTreeSet<(Address, Arc<str>)>,
    ids: BTreeSet<Arc<str>>,
    /// What came of every instant that a trigger was due at.
    fired: BTreeMap<Key, BTreeMap<Timestamp, Came>>,
    orders: BTreeSet<RunId>,
    /// Those who left without what they wanted in the last turn.
    left: BTreeMap<Asker, Ask>,
}

/// How much of a rate is used up, in units times its period, so that no fraction is lost.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    full: u128,
    at: Timestamp,
}

/// What an input must lead to.
#[derive(Debug, PartialEq)]
enum Due {
    Nothing,
    Message(BTreeSet<Address>),
    /// The run that a trigger starts, if it starts one.
    Fire(Option<RunId>),
}

impl Ledger {
    /// Judges what an input led to, and writes it down.
    pub fn apply(&mut self, now: Timestamp, input: &DeskInput, events: &[DeskEvent]) {
        let now = now.max(self.at);
        let due = self.due(now, input);
        self.left.clear();
        for event in events {
            assert_eq!(event.at, now, "an event of another time: {event:?}");
            self.at = now;
            self.follow(input, &event.what);
        }
        let decided = events.iter().filter_map(|event| match &event.what {
            DeskWhat::Published { to, .. } => Some(Due::Message(to.iter().cloned().collect())),
            DeskWhat::Fired(fired) => Some(Due::Fire(match &fired.came {
                Came::Started(order) => Some(order.run.clone()),
                Came::Skipped { .. } => None,
            })),
            _ => None,
        });
        let decided: Vec<Due> = decided.collect();
        let due: Vec<Due> = Some(due).filter(|due| *due != Due::Nothing).into_iter().collect();
        assert_eq!(decided, due, "this was decided (left) and not what should be (right)");
    }

    /// It is not earlier than this any more.
    pub fn is_at(&mut self, now: Timestamp) {
        self.at = self.at.max(now);
    }

    fn due(&self, now: Timestamp, input: &DeskInput) -> Due {
        match input {
            DeskInput::Published { id, name, value, .. } if !self.ids.contains(id) => {
                let listens = |ear: &&Listener| {
                    ear.name == *name && ear.until.is_none_or(|until| until > now) && suits(ear, value)
                };
                Due::Message(self.ears.iter().filter(listens).map(|ear| ear.address.clone()).collect())
            }
            DeskInput::Fire(fire) => {
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

    fn follow(&mut self, input: &DeskInput, what: &DeskWhat) {
        match what {
            DeskWhat::Begun
            | DeskWhat::Kept { .. }
            | DeskWhat::Promised { .. }
            | DeskWhat::RateIs { .. }
            | DeskWhat::Retired => panic!("told where nothing is told again: {what:?}"),
            DeskWhat::Queued { ask, on, place } => self.queued(ask, on, *place),
            DeskWhat::Moved { asker, on } => {
                let (ask, _) = self.waits.get(asker).expect("only who waits moves");
                self.check_can_wait(ask, on);
            }
            DeskWhat::Granted { asker, ask } => self.granted(asker, ask.as_deref()),
            DeskWhat::Withdrawn { asker } => {
                let (ask, _) = self.waits.remove(asker).expect("only who waits withdraws");
                self.left.insert(asker.clone(), ask);
            }
            DeskWhat::Evicted { asker } => {
                let there = self.holds.contains_key(asker) || self.waits.contains_key(asker);
                assert!(there, "{asker} was told to make room and is not there");
            }
            DeskWhat::Released { asker, used, end } => self.released(input, asker, *used, end),
            DeskWhat::Broken { run, path } => {
                let before = self.promises.len();
                self.promises.retain(|_, promise| !is_of(promise, run, path));
                assert!(self.promises.len() < before, "{run}:{path} had promised nothing");
            }
            DeskWhat::AccountIs { account: key, cap, spent, day } => {
                let reserved = self.accounts.get(key).map(|before| before.reserved.clone());
                let (cap, reserved) = (cap.clone(), reserved.unwrap_or_default());
                self.account_is(input, key, Account { cap, spent: *spent, reserved, day: day.clone() });
            }
            DeskWhat::Listening(listener) => {
                let same = |other: &Listener| {
                    other.address == listener.address
                        && other.number == listener.number
                        && other.name == listener.name
                };
                self.ears.retain(|other| !same(other));
                self.ears.push((**listener).clone());
            }
            DeskWhat::Deaf { run, path } => {
                self.ears.retain(|ear| ear.address.run != *run || ear.address.path != *path);
            }
            DeskWhat::Published { id, to, .. } => {
                assert!(self.ids.insert(id.clone()), "message {id} was taken twice");
                for address in to {
                    self.ears.retain(|ear| ear.address != *address);
                    self.owed.insert((address.clone(), id.clone()));
                    self.promised.insert((address.clone(), id.clone()));
                }
            }
            DeskWhat::Heard { id, to } => {
                assert!(self.owed.remove(&(to.clone(), id.clone())), "{id} was not owed");
            }
            DeskWhat::Fired(fired) => self.fired(fired),
            DeskWhat::Arrived { run } => assert!(self.orders.remove(run), "{run} was not ordered"),
        }
    }

    fn queued(&mut self, ask: &Ask, on: &Key, place: LinePlace) {
        let asker = &ask.asker;
        assert!(!self.waits.contains_key(asker), "{asker} waits twice");
        assert!(!self.holds.contains_key(asker), "{asker} waits for what it holds");
        self.check_can_wait(ask, on);
        let since = Timestamp(ask.since.min(self.at).0 - i64::from(ask.ahead) * 1_000_000);
        assert_eq!(place.since, since, "{asker} is taken for older or younger than it is");
        let later = self.waits.values().all(|(_, other)| other.number < place.number);
        assert!(later, "{asker} did not get the highest number");
        self.waits.insert(asker.clone(), (ask.clone(), place));
    }

    /// Nobody waits for what is held by somebody who waits for it.
    fn check_can_wait(&self, ask: &Ask, on: &Key) {
        let claim = ask.claims.iter().find(|claim| claim.key() == on).expect("it waits for what it needs");
        let asker = &ask.asker;
        let waits_for_it = |run: &RunId, path: &Path| waits_for(ask, run, path);
        match claim {
            Claim::Slot { .. } => {
                let circle = self.holders(on).find(|holder| waits_for_it(&holder.run, &holder.path));
                assert_eq!(circle, None, "{asker} waits for {on}, held by one that waits for it");
            }
            Claim::Promise { .. } => match self.promises.get(on) {
                Some(DeskPromise::Pending { run, path, .. }) => {
                    assert!(!waits_for_it(run, path), "{asker} waits for a promise of one that waits for it");
                }
                Some(DeskPromise::Kept { .. }) | None => {}
            },
            Claim::Rate { units, limit, .. } => {
                assert!(units <= limit, "{asker} waits for more of {on} than there ever is");
            }
            Claim::Spend { .. } => panic!("{asker} waits for money"),
        }
    }

    fn granted(&mut self, asker: &Asker, ask: Option<&Ask>) {
        let waited = self.waits.remove(asker);
        assert!(waited.is_some() != ask.is_some(), "{asker}: the ask is told again, or not at all");
        self.check_order(asker, ask, waited.as_ref());
        let ask = ask.cloned().or(waited.map(|(ask, _)| ask)).expect("one of them is there");
        for claim in &ask.claims {
            match claim {
                Claim::Slot { key, limit, .. } => {
                    let held = self.holders(key).count();
                    assert!(held < *limit as usize, "{asker} is one too many at {key}: {limit} may be there");
                }
                Claim::Rate { key, limit, period, units } => {
                    let bucket = self.buckets.entry(key.clone()).or_default();
                    bucket.leak(self.at, *limit);
                    bucket.full += u128::from(*units) * u128::from(period.0);
                    let most = u128::from(*limit) * u128::from(period.0);
                    assert!(bucket.full <= most, "{asker} takes more of {key} than its rate allows");
                }
                Claim::Promise { key, ttl } => {
                    match self.promises.get(key) {
                        Some(kept @ DeskPromise::Kept { .. }) => {
                            assert!(!is_fresh(kept, self.at), "{asker} does the work of {key} again");
                        }
                        Some(DeskPromise::Pending { run, path, .. }) => {
                            let own = *run == asker.run && *path == asker.path;
                            assert!(own, "{asker} works on {key}, and so does {run}:{path}");
                        }
                        None => {}
                    }
                    let (run, path) = (asker.run.clone(), asker.path.clone());
                    self.promises.insert(key.clone(), DeskPromise::Pending { run, path, ttl: *ttl });
                }
                Claim::Spend { account: key, cap, most } => {
                    let account = self.accounts.entry(key.clone()).or_default();
                    if account.cap.is_none() && !cap.is_unlimited() {
                        account.cap = Some(cap.clone());
                    }
                    account.reserved.insert(asker.clone(), *most);
                    let beyond = account.cap.as_ref().and_then(|cap| account.committed().beyond(cap));
                    assert_eq!(beyond, None, "{asker} spends more from {key} than may be: {account:?}");
                }
            }
        }
        assert!(self.holds.insert(asker.clone(), ask).is_none(), "{asker} was granted twice");
    }

    /// Of those who wait for the same single slot the first is served first, except that a run goes before all others where
    /// one that waits for it holds a slot.
    fn check_order(&self, asker: &Asker, ask: Option<&Ask>, waited: Option<&(Ask, LinePlace)>) {
        let Some(ask) = ask.or(waited.map(|(ask, _)| ask)) else { return };
        let Some(own) = single_slot(ask) else { return };
        if self.holders(own).any(|holder| waits_for(ask, &holder.run, &holder.path)) {
            return;
        }
        let place = waited.map(|(_, place)| *place);
        for (other, (ask, before)) in &self.waits {
            let same = single_slot(ask) == Some(own);
            let overtaken = same && place.is_none_or(|place| *before < place);
            assert!(!overtaken, "{asker} overtakes {other}, and both wait for {own}");
        }
    }

    fn released(&mut self, input: &DeskInput, asker: &Asker, used: Amount, end: &End) {
        let ask = self.holds.remove(asker).expect("only who holds gives back");
        let asked_for = match input {
            DeskInput::Release { asker: of, used: said, end: wanted }
                if of == asker && *wanted != End::Lost =>
            {
                assert_eq!((end, used), (wanted, *said), "{asker} was released otherwise than it said");
                true
            }
            _ => false,
        };
        for claim in &ask.claims {
            match claim {
                Claim::Slot { .. } | Claim::Rate { .. } => {}
                Claim::Promise { key, ttl } => match end {
                    End::Attempt | End::Lost => {}
                    End::Done(value) => {
                        let until = ttl.map(|ttl| self.at.plus(ttl));
                        self.promises.insert(key.clone(), DeskPromise::Kept { value: value.clone(), until });
                    }
                    End::Over => {
                        self.promises.retain(|_, promise| !is_of(promise, &asker.run, &asker.path));
                    }
                },
                Claim::Spend { account: key, most, .. } => {
                    // What nobody knows the cost of has cost the most that it could.
                    assert!(asked_for || used == *most, "{asker} was lost and costs {used:?}");
                    let account = self.accounts.get_mut(key).expect("an account that was drawn on");
                    account.reserved.remove(asker);
                    account.spent = account.spent.plus(used);
                    if used.tokens > most.tokens || used.calls > most.calls {
                        self.may_be_over.insert(key.clone());
                    }
                }
            }
        }
    }

    fn account_is(&mut self, input: &DeskInput, key: &Key, new: Account) {
        let old = self.accounts.insert(key.clone(), new.clone()).unwrap_or_default();
        let is_reset = new.spent == Amount::default() && new.cap == old.cap;
        match input {
            DeskInput::Cap { .. } => {
                assert_eq!(new.spent, old.spent, "a cap changed what was spent from {key}");
                self.may_be_over.insert(key.clone());
            }
            DeskInput::Reset { .. } => assert!(is_reset, "{key} was not reset: {new:?}"),
            _ => {
                let is_over = old.day.is_some_and(|day| day.ends <= self.at);
                let is_later = new.day.is_some_and(|day| day.ends > self.at);
                assert!(is_over && is_later && is_reset, "{key} begins no new day");
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

    /// Effects are what the events ask for, neither more nor less.
    pub fn check_effects(&self, input: &DeskInput, events: &[DeskEvent], effects: &[DeskEffect]) {
        let mut letters = BTreeSet::new();
        let (mut starts, mut evicted, mut granted) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for event in events {
            match &event.what {
                DeskWhat::Published { id, to, .. } => {
                    letters.extend(to.iter().map(|to| (to.clone(), id.clone())));
                }
                DeskWhat::Fired(fired) => {
                    if let Came::Started(order) = &fired.came {
                        starts.insert(order.run.clone());
                    }
                }
                DeskWhat::Evicted { asker } => drop(evicted.insert(asker.run.clone())),
                DeskWhat::Granted { asker, .. } if asker.attempt > 0 => drop(granted.insert(asker.clone())),
                _ => {}
            }
        }
        for effect in effects {
            match effect {
                DeskEffect::Answer { asker, answer } => {
                    granted.remove(asker);
                    self.check_answer(input, asker, answer);
                }
                DeskEffect::Deliver { to, letter } => {
                    let wanted = letters.remove(&(to.clone(), letter.id.clone()));
                    assert!(wanted, "{} goes to {to:?}, who is not to get it", letter.id);
                }
                DeskEffect::Cancel { run, .. } => {
                    assert!(evicted.remove(run), "{run} is told to stop for nothing");
                }
                DeskEffect::Start(order) => {
                    assert!(starts.remove(&order.run), "{} is started for nothing", order.run);
                }
            }
        }
        assert!(letters.is_empty(), "nobody delivers {letters:?}");
        assert!(starts.is_empty(), "nobody starts {starts:?}");
        assert!(evicted.is_empty(), "nobody stops {evicted:?}");
        assert!(granted.is_empty(), "nobody tells {granted:?}");
    }

    fn check_answer(&self, input: &DeskInput, asker: &Asker, answer: &DeskAnswer) {
        let just_asks = match input {
            DeskInput::Ask(ask) if ask.asker == *asker => Some(&**ask),
            _ => None,
        };
        let holds = self.holds.contains_key(asker);
        let waits = self.waits.contains_key(asker);
        let denial = match answer {
            DeskAnswer::Granted => return assert!(holds, "{asker} is told that it holds, and does not"),
            DeskAnswer::Found(found) => {
                let kept = |promise: &DeskPromise| {
                    matches!(promise, DeskPromise::Kept { value, .. } if value == found)
                        && is_fresh(promise, self.at)
                };
                assert!(self.promises.values().any(kept), "{asker} is given what nobody has kept");
                assert!(!holds && !waits, "{asker} found a result and does not go");
                return;
            }
            DeskAnswer::Denied(denial) => denial,
        };
        assert!(!holds && !waits, "{asker} was refused and does not go");
        let ask = just_asks.or(self.left.get(asker)).expect("only who asks is refused");
        match denial {
            Denial::TooMuch { key } => {
                let too_much = |claim: &Claim| match claim {
                    Claim::Slot { limit, .. } => *limit == 0,
                    Claim::Rate { units, limit, .. } => units > limit,
                    Claim::Promise { .. } | Claim::Spend { .. } => false,
                };
                let claim = ask.claims.iter().find(|claim| claim.key() == key);
                assert!(claim.is_some_and(too_much), "{asker} does not ask for too much of {key}");
            }
            Denial::WouldDeadlock { key, by } => {
                let family = ask.ancestors.contains(by) || *by == asker.run;
                assert!(family, "{by} does not wait for {asker}");
                assert!(ask.claims.iter().any(|claim| claim.key() == key), "{asker} does not need {key}");
            }
            Denial::Taken { key, by } => {
                let mut there = self.holds.keys().chain(self.waits.keys()).chain(self.left.keys());
                let there = there.any(|other| other.run == *by);
                assert!(there || just_asks.is_none(), "{key} is not taken by {by}");
            }
            Denial::BudgetExceeded { account, .. } => {
                let cap = ask.claims.iter().find_map(|claim| match claim {
                    Claim::Spend { account: own, cap, most } if own == account => Some((cap, *most)),
                    Claim::Spend { .. } | Claim::Slot { .. } | Claim::Rate { .. } | Claim::Promise { .. } => {
                        None
                    }
                });
                let (own, most) = cap.expect("only who spends spends too much");
                let known = self.accounts.get(account).cloned().unwrap_or_default();
                let today = known.day.as_ref().is_none_or(|day| day.ends > self.at);
                assert!(today, "{asker} is refused because of what was spent from {account} on another day");
                let cap = known.cap.as_ref().unwrap_or(own);
                let beyond = known.committed().plus(most).beyond(cap);
                assert!(just_asks.is_none() || beyond.is_some(), "{asker} may spend from {account}");
            }
        }
    }

    /// What the desk knows is what it should.
    pub fn check(&self, now: Timestamp, state: &DeskState) {
        let now = now.max(self.at);
        assert!(self.holds.keys().eq(state.holds.keys()), "others hold than should");
        assert!(self.waits.keys().eq(state.waiting.keys()), "others wait than should");
        assert!(self.holds.iter().all(|(asker, ask)| *state.holds[asker].ask == *ask), "another ask is held");
        self.check_steps();
        let mut slots: BTreeMap<Key, BTreeSet<Asker>> = BTreeMap::new();
        for (asker, ask) in &self.holds {
            for claim in &ask.claims {
                if let Claim::Slot { key, .. } = claim {
                    slots.entry(key.clone()).or_default().insert(asker.clone());
                }
            }
        }
        assert_eq!(slots, state.slots, "places are held by others (right) than should (left)");
        self.check_lines(state);
        let (ours, theirs) = (fresh(&self.promises, now), fresh(&state.promises, now));
        assert_eq!(ours, theirs, "other promises are known (right) than were given (left)");
        assert_eq!(self.accounts, state.accounts, "accounts differ (right) from what they should be (left)");
        for (key, account) in &state.accounts {
            let beyond = account.cap.as_ref().and_then(|cap| account.committed().beyond(cap));
            assert!(self.may_be_over.contains(key) || beyond.is_none(), "{key} is overdrawn: {account:?}");
        }
        let ears: BTreeSet<(&Arc<str>, &Address, u32)> =
            self.ears.iter().map(|ear| (&ear.name, &ear.address, ear.number)).collect();
        let theirs = state.listeners.values().flatten();
        let theirs: BTreeSet<(&Arc<str>, &Address, u32)> =
            theirs.map(|ear| (&ear.name, &ear.address, ear.number)).collect();
        assert_eq!(ears, theirs, "others listen (right) than should (left)");
        let letters = state.letters.iter();
        let letters: BTreeSet<(Address, Arc<str>)> = letters
            .flat_map(|(to, letters)| letters.iter().map(|letter| (to.clone(), letter.id.clone())))
            .collect();
        assert_eq!(self.owed, letters, "other messages are owed (right) than should be (left)");
        let fires: BTreeMap<&Key, Timestamp> = self
            .fired
            .iter()
            .filter_map(|(key, fired)| fired.last_key_value().map(|(at, _)| (key, *at)))
            .collect();
        assert!(
            fires.into_iter().eq(state.fires.iter().map(|(key, at)| (key, *at))),
            "the last fires differ"
        );
        assert!(self.orders.iter().eq(state.orders.keys()), "other runs are ordered than should be");
    }

    /// Of one step only one attempt is there, and it holds or waits.
    fn check_steps(&self) {
        let mut steps = BTreeSet::new();
        for asker in self.holds.keys().chain(self.waits.keys()).filter(|asker| asker.attempt > 0) {
            assert!(steps.insert((&asker.run, &asker.path)), "two attempts of the step of {asker} are there");
        }
    }

    fn check_lines(&self, state: &DeskState) {
        let mut standing = BTreeMap::new();
        for (key, line) in &state.lines {
            assert!(!line.is_empty(), "the empty line of {key} is kept");
            for (place, ask) in line {
                let before = standing.insert(&ask.asker, (key, place));
                assert_eq!(before, None, "{} stands in two lines", ask.asker);
            }
        }
        assert_eq!(standing.len(), self.waits.len(), "others stand in lines than wait");
        for (asker, (ask, place)) in &self.waits {
            let waiting = &state.waiting[asker];
            assert_eq!(standing.get(asker), Some(&(&waiting.on, &waiting.place)), "{asker} stands elsewhere");
            assert_eq!(waiting.place, *place, "the place of {asker}");
            self.check_has_to_wait(asker, ask);
        }
    }

    /// Who needs one place that is free, and that nobody else wants, does not wait for it.
    fn check_has_to_wait(&self, asker: &Asker, ask: &Ask) {
        let (Some(key), Some(Claim::Slot { limit, .. })) = (single_slot(ask), ask.claims.first()) else {
            return;
        };
        let free = self.holders(key).count() < *limit as usize;
        let wanted = |(other, (ask, _)): (&Asker, &(Ask, LinePlace))| other != asker && needs(ask, key);
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

/// The promises that have not expired.
pub fn fresh(promises: &BTreeMap<Key, DeskPromise>, now: Timestamp) -> BTreeMap<Key, DeskPromise> {
    let fresh = promises.iter().filter(|(_, promise)| is_fresh(promise, now));
    fresh.map(|(key, promise)| (key.clone(), promise.clone())).collect()
}

fn is_fresh(promise: &DeskPromise, now: Timestamp) -> bool {
    !matches!(promise, DeskPromise::Kept { until: Some(until), .. } if *until <= now)
}

fn is_of(promise: &DeskPromise, by: &RunId, at: &Path) -> bool {
    matches!(promise, DeskPromise::Pending { run, path, .. } if run == by && path == at)
}

/// Whether what is held there is held until the asker is done: by a run that called it, or by its own run.
fn waits_for(ask: &Ask, run: &RunId, path: &Path) -> bool {
    let own_run = *run == ask.asker.run && path.is_run() && !ask.asker.path.is_run();
    ask.ancestors.contains(run) || own_run
}

fn needs(ask: &Ask, key: &Key) -> bool {
    ask.claims.iter().any(|claim| claim.key() == key)
}

/// The key of an ask for one place and nothing else.
fn single_slot(ask: &Ask) -> Option<&Key> {
    match &ask.claims[..] {
        [Claim::Slot { key, .. }] => Some(key),
        _ => None,
    }
}

/// Simulated listeners compare one field at most.
fn suits(ear: &Listener, value: &Value) -> bool {
    ear.matching.iter().all(|(name, wanted)| value.get(name) == Some(wanted))
}
