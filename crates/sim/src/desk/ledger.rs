//! What should be so at the desk, kept apart from it: every event is judged when it comes, and what the desk knows is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Address, Amount, Ask, Asker, Came, Claim, Denial, DeskAnswer, DeskEffect, DeskEvent, DeskInput,
    DeskPromise, DeskState, DeskWhat, End, Fired, Key, LinePlace, Listener, Overlap, Path, RunId, Timestamp,
};
use windlass_ir::policy::Budget;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    at: Timestamp,
    pub holds: BTreeMap<Asker, Ask>,
    pub waits: BTreeMap<Asker, (Ask, LinePlace)>,
    buckets: BTreeMap<Key, Bucket>,
    promises: BTreeMap<Key, Word>,
    accounts: BTreeMap<Key, Purse>,
    ears: Vec<Listener>,
    /// Who must get which message, and who has.
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

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Given { run: RunId, path: Path },
    Kept { value: Value, until: Option<Timestamp> },
}

#[derive(Clone, Debug, Default)]
struct Purse {
    cap: Option<Budget>,
    spent: Amount,
    reserved: BTreeMap<Asker, Amount>,
    day_ends: Option<Timestamp>,
    /// Somebody spent more than was set aside, or the cap was lowered.
    may_be_over: bool,
}

impl Purse {
    fn committed(&self) -> Amount {
        self.reserved.values().fold(self.spent, |sum, amount| sum.plus(*amount))
    }
}

/// What an input must lead to.
enum Due {
    Nothing,
    Message(BTreeSet<Address>),
    Fire(Came),
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
        let told = |wanted: &dyn Fn(&DeskWhat) -> bool| events.iter().filter(|it| wanted(&it.what)).count();
        let published = told(&|what| matches!(what, DeskWhat::Published { .. }));
        let fired = told(&|what| matches!(what, DeskWhat::Fired(_)));
        match due {
            Due::Nothing => assert_eq!((published, fired), (0, 0), "decided again: {events:?}"),
            Due::Message(to) => {
                let found = events.iter().find_map(|event| match &event.what {
                    DeskWhat::Published { to, .. } => Some(to.iter().cloned().collect::<BTreeSet<_>>()),
                    _ => None,
                });
                assert_eq!(found, Some(to), "a message went to others (left) than listened (right)");
                assert_eq!((published, fired), (1, 0), "a message led to {events:?}");
            }
            Due::Fire(came) => {
                let found = events.iter().find_map(|event| match &event.what {
                    DeskWhat::Fired(fired) => Some(&fired.came),
                    _ => None,
                });
                let same = match (found, &came) {
                    (Some(Came::Started(order)), Came::Started(wanted)) => order.run == wanted.run,
                    (Some(Came::Skipped { .. }), Came::Skipped { .. }) => true,
                    (Some(Came::Started(_) | Came::Skipped { .. }) | None, _) => false,
                };
                assert!(same, "a fire should have come to {came:?}, not {found:?}");
                assert_eq!((published, fired), (0, 1), "a fire led to {events:?}");
            }
        }
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
                Due::Fire(match fire.skip.is_some() || (full && fire.overlap == Overlap::Skip) {
                    true => Came::Skipped { because: "".into() },
                    false => Came::Started(windlass_engine::Order {
                        run: fire.run.clone(),
                        plan: "".into(),
                        inputs: Value::Null,
                        claims: Vec::new(),
                    }),
                })
            }
            DeskInput::Published { .. }
            | DeskInput::Ask(_)
            | DeskInput::Release { .. }
            | DeskInput::Gone { .. }
            | DeskInput::Listen(_)
            | DeskInput::Deaf(_)
            | DeskInput::Heard { .. }
            | DeskInput::Cap { .. }
            | DeskInput::Reset { .. }
            | DeskInput::Arrived { .. }
            | DeskInput::Tick => Due::Nothing,
        }
    }

    fn follow(&mut self, input: &DeskInput, what: &DeskWhat) {
        match what {
            DeskWhat::Begun
            | DeskWhat::Kept { .. }
            | DeskWhat::Promised { .. }
            | DeskWhat::RateIs { .. }
            | DeskWhat::TurnsAre { .. } => panic!("told where nothing is told again: {what:?}"),
            DeskWhat::Queued { ask, on, place } => self.queued(ask, on, *place),
            DeskWhat::Moved { asker, on } => {
                let (ask, _) = self.waits.get(asker).expect("only who waits moves");
                self.check_can_wait(ask, on);
            }
            DeskWhat::Insisted { asker } => {
                let (ask, place) = self.waits.get_mut(asker).expect("only who waits insists");
                assert!(ask.claims.len() > 1, "{asker} insists on a single thing");
                // Whoever insists does not wait for its turn any more.
                place.turn = 0;
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
                self.promises.retain(|_, word| !word.is_of(run, path));
                assert!(self.promises.len() < before, "{run}:{path} had promised nothing");
            }
            DeskWhat::AccountIs { account, cap, spent, day } => {
                let day_ends = day.as_ref().map(|day| day.ends);
                self.account_is(input, account, cap.as_ref(), *spent, day_ends);
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
        let turned = ask.claims.iter().any(|claim| matches!(claim, Claim::Slot { turns: true, .. }));
        assert!(turned || place.turn == 0, "{asker} waits for a turn where none are taken");
        let later = self.waits.values().all(|(_, other)| other.number < place.number);
        assert!(later, "{asker} did not get the highest number");
        self.waits.insert(asker.clone(), (ask.clone(), place));
    }

    /// Nobody waits for what is held by somebody who waits for it.
    fn check_can_wait(&self, ask: &Ask, on: &Key) {
        let claim = ask.claims.iter().find(|claim| claim.key() == on).expect("it waits for what it needs");
        let asker = &ask.asker;
        let waits_for_it =
            |run: &RunId, path: &Path| ask.ancestors.contains(run) || is_around(run, path, asker);
        match claim {
            Claim::Slot { .. } => {
                let circle = self.holders(on).find(|holder| waits_for_it(&holder.run, &holder.path));
                assert_eq!(circle, None, "{asker} waits for {on}, held by one that waits for it");
            }
            Claim::Promise { .. } => match self.promises.get(on) {
                Some(Word::Given { run, path }) => {
                    assert!(!waits_for_it(run, path), "{asker} waits for a promise of one that waits for it");
                }
                Some(Word::Kept { .. }) | None => {}
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
                Claim::Promise { key, .. } => {
                    match self.promises.get(key) {
                        Some(Word::Kept { until, .. }) => {
                            let fresh = until.is_none_or(|until| until > self.at);
                            assert!(!fresh, "{asker} does the work of {key} again");
                        }
                        Some(Word::Given { run, path }) => {
                            let own = *run == asker.run && *path == asker.path;
                            assert!(own, "{asker} works on {key}, and so does {run}:{path}");
                        }
                        None => {}
                    }
                    let word = Word::Given { run: asker.run.clone(), path: asker.path.clone() };
                    self.promises.insert(key.clone(), word);
                }
                Claim::Spend { account, cap, most } => {
                    let purse = self.accounts.entry(account.clone()).or_default();
                    if purse.cap.is_none() && !cap.is_unlimited() {
                        purse.cap = Some(cap.clone());
                    }
                    purse.reserved.insert(asker.clone(), *most);
                    let committed = purse.committed();
                    let beyond = purse.cap.as_ref().and_then(|cap| committed.beyond(cap));
                    assert_eq!(beyond, None, "{asker} spends more from {account} than may be: {purse:?}");
                }
            }
        }
        assert!(self.holds.insert(asker.clone(), ask).is_none(), "{asker} was granted twice");
    }

    /// Of those who wait for the same single place, whoever comes first is served first.
    fn check_order(&self, asker: &Asker, ask: Option<&Ask>, waited: Option<&(Ask, LinePlace)>) {
        let own = ask.or(waited.map(|(ask, _)| ask)).and_then(single_slot);
        let Some(own) = own else { return };
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
            DeskInput::Release { asker: of, used: said, end: wanted } if of == asker => match wanted {
                End::Lost => None,
                End::Attempt | End::Done(_) | End::Over => {
                    assert_eq!((end, used), (wanted, *said), "{asker} was released otherwise than it said");
                    Some(())
                }
            },
            _ => None,
        };
        for claim in &ask.claims {
            match claim {
                Claim::Slot { .. } | Claim::Rate { .. } => {}
                Claim::Promise { key, ttl } => match end {
                    End::Attempt | End::Lost => {}
                    End::Done(value) => {
                        let until = ttl.map(|ttl| self.at.plus(ttl));
                        self.promises.insert(key.clone(), Word::Kept { value: value.clone(), until });
                    }
                    End::Over => self.promises.retain(|_, word| !word.is_of(&asker.run, &asker.path)),
                },
                Claim::Spend { account, most, .. } => {
                    // What nobody knows the cost of has cost the most that it could.
                    assert!(asked_for.is_some() || used == *most, "{asker} was lost and costs {used:?}");
                    let purse = self.accounts.get_mut(account).expect("an account that was drawn on");
                    purse.reserved.remove(asker);
                    purse.spent = purse.spent.plus(used);
                    purse.may_be_over |= used.tokens > most.tokens || used.calls > most.calls;
                }
            }
        }
    }

    fn account_is(
        &mut self,
        input: &DeskInput,
        account: &Key,
        cap: Option<&Budget>,
        spent: Amount,
        day_ends: Option<Timestamp>,
    ) {
        let at = self.at;
        let purse = self.accounts.entry(account.clone()).or_default();
        let is_over = purse.day_ends.is_some_and(|ends| ends <= at);
        match input {
            DeskInput::Cap { .. } => {
                assert_eq!(spent, purse.spent, "a cap changed what was spent from {account}");
                purse.may_be_over = true;
            }
            DeskInput::Reset { .. } => {
                assert_eq!((spent, cap), (Amount::default(), purse.cap.as_ref()), "{account} was not reset");
            }
            _ => {
                assert!(is_over, "{account} begins a day before the old one is over");
                assert_eq!((spent, cap), (Amount::default(), purse.cap.as_ref()), "{account} has no new day");
                assert!(day_ends.is_some_and(|ends| ends > at), "the new day of {account} is over already");
            }
        }
        (purse.cap, purse.spent, purse.day_ends) = (cap.cloned(), spent, day_ends);
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
                let fresh = |word: &Word| match word {
                    Word::Kept { value, until } => {
                        value == found && until.is_none_or(|until| until > self.at)
                    }
                    Word::Given { .. } => false,
                };
                assert!(self.promises.values().any(fresh), "{asker} is given what nobody has kept");
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
                let purse = self.accounts.get(account).cloned().unwrap_or_default();
                let today = purse.day_ends.is_none_or(|ends| ends > self.at);
                assert!(today, "{asker} is refused because of what was spent from {account} on another day");
                let cap = purse.cap.as_ref().unwrap_or(own);
                let beyond = purse.committed().plus(most).beyond(cap);
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
        self.check_promises(now, state);
        for (key, account) in &state.accounts {
            let purse = self.accounts.get(key).cloned().unwrap_or_default();
            assert_eq!(account.spent, purse.spent, "what was spent from {key}");
            assert_eq!(account.reserved, purse.reserved, "what is set aside in {key}");
            let beyond = account.cap.as_ref().and_then(|cap| account.committed().beyond(cap));
            assert!(purse.may_be_over || beyond.is_none(), "{key} is overdrawn: {account:?}");
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
            for (place, asker) in line {
                let before = standing.insert(asker, (key, place));
                assert_eq!(before, None, "{asker} stands in two lines");
            }
        }
        assert_eq!(standing.len(), self.waits.len(), "others stand in lines than wait");
        for (asker, (ask, place)) in &self.waits {
            let waiting = &state.waiting[asker];
            assert_eq!(standing.get(asker), Some(&(&waiting.on, &waiting.place)), "{asker} stands elsewhere");
            assert_eq!(waiting.place, *place, "the place of {asker}");
            self.check_has_to_wait(asker, ask);
        }
        for (_, asker) in &state.patience {
            assert!(self.waits.contains_key(asker), "{asker} is still patient");
        }
        for ask in state.insisting.values().chain(state.insisters.values()).flat_map(|line| line.values()) {
            assert!(self.waits.contains_key(&ask.asker), "{} still insists", ask.asker);
        }
        let wanted = state.wanted.values().flatten();
        wanted.for_each(|asker| assert!(self.waits.contains_key(asker), "{asker} still wants a place"));
        assert!(
            state.timed.iter().all(|key| state.lines.contains_key(key)),
            "time moves a line that is none"
        );
        for key in state.turns.keys() {
            let waited_for = self.waits.values().any(|(ask, _)| needs(ask, key));
            assert!(waited_for, "turns are taken at {key}, where nobody waits");
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

    fn check_promises(&self, now: Timestamp, state: &DeskState) {
        let fresh = |until: &Option<Timestamp>| until.is_none_or(|until| until > now);
        let ours = self.promises.iter().filter_map(|(key, word)| match word {
            Word::Kept { until, .. } if !fresh(until) => None,
            Word::Kept { .. } | Word::Given { .. } => Some((key.clone(), word.clone())),
        });
        let theirs = state.promises.iter().filter_map(|(key, promise)| match promise {
            DeskPromise::Kept { until, .. } if !fresh(until) => None,
            DeskPromise::Kept { value, until } => {
                Some((key.clone(), Word::Kept { value: value.clone(), until: *until }))
            }
            DeskPromise::Pending { run, path, .. } => {
                Some((key.clone(), Word::Given { run: run.clone(), path: path.clone() }))
            }
        });
        let (ours, theirs): (BTreeMap<Key, Word>, BTreeMap<Key, Word>) = (ours.collect(), theirs.collect());
        assert_eq!(ours, theirs, "other promises are known (right) than were given (left)");
    }

    /// In the end nobody holds or waits, and nothing is owed.
    pub fn check_end(&self, state: &DeskState) {
        assert_eq!(state.holds.keys().next(), None, "still held");
        assert_eq!(state.waiting.keys().next(), None, "still waits");
        assert!(state.slots.is_empty() && state.lines.is_empty(), "places or lines are left");
        assert!(state.timed.is_empty() && state.patience.is_empty(), "time still moves something");
        let insists = state.insisting.keys().chain(state.insisters.keys()).chain(state.wanted.keys()).next();
        assert_eq!(insists, None, "somebody still insists on it, or wants it");
        assert!(state.turns.is_empty(), "turns are left: {:?}", state.turns);
        let given = self.promises.iter().find(|(_, word)| matches!(word, Word::Given { .. }));
        assert_eq!(given, None, "a promise is left");
        assert!(state.promisers.is_empty(), "still promising: {:?}", state.promisers);
        let reserved = state.accounts.iter().find(|(_, account)| !account.reserved.is_empty());
        assert_eq!(reserved, None, "money is left aside");
        assert!(state.listeners.is_empty() && state.ears.is_empty(), "somebody listens");
        assert!(state.letters.is_empty(), "letters are left: {:?}", state.letters);
        assert!(state.orders.is_empty(), "orders are left: {:?}", state.orders);
    }
}

impl Word {
    fn is_of(&self, by: &RunId, at: &Path) -> bool {
        match self {
            Self::Given { run, path } => run == by && path == at,
            Self::Kept { .. } => false,
        }
    }
}

impl Bucket {
    fn leak(&mut self, now: Timestamp, limit: u32) {
        let passed: Duration = now.since(self.at);
        self.full = self.full.saturating_sub(u128::from(passed.0) * u128::from(limit));
        self.at = now;
    }
}

/// Whether what is held there is held until the asker is done.
fn is_around(run: &RunId, path: &Path, asker: &Asker) -> bool {
    *run == asker.run && path.is_run() && !asker.path.is_run()
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
