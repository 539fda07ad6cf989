//! Who gets what, and who waits for it.
//!
//! Whoever cannot have everything it needs waits in one line: that of the first thing that is not to be had. When that comes free it looks
//! again, and is served or goes to the line of the next thing. So a place that comes free costs no more than those who wait
//! for it. Each slot that the first in a line needs is reserved for it, so that those who need fewer things cannot overtake it for
//! ever: the oldest of all is the first of its line and gets everything in the end.
//!
//! Nobody waits while it holds something for the same attempt, but a run that holds its place waits for its steps and for the runs
//! it calls. They are refused what it holds itself; that two runs wait for each other with the steps of each is kept off by
//! never asking for the places of runs together with those of steps.

use super::claim::{Amount, Ask, Asker, Claim, Denial, DeskAnswer, End, Full, Key};
use super::event::{DeskWhat, Place};
use super::state::{Promise, State, share, slots};
use super::{DeskEffect, Turn};
use crate::keys::{Path, RunId, Timestamp};
use std::collections::BTreeSet;
use windlass_ir::Value;

/// Why a run is told to make room.
pub(super) const REPLACED: &str = "replaced by a newer run";

/// What stands between an asker and what it asks for.
enum Found {
    Nothing,
    Value(Value),
    Denied(Denial),
    /// It has to wait for this.
    Wait(Key),
}

impl Turn<'_> {
    pub(super) fn ask(&mut self, ask: Ask) {
        let asker = ask.asker.clone();
        if self.state.holds.contains_key(&asker) {
            return self.answer(asker, DeskAnswer::Granted);
        }
        if self.state.waiting.contains_key(&asker) || self.is_past(&asker) {
            return;
        }
        self.let_go_of_others(&asker);
        self.renew_accounts(&ask);
        match look(self.state, &ask, None, self.now) {
            Found::Nothing => {
                self.emit(DeskWhat::Granted { asker: asker.clone(), ask: Some(Box::new(ask)) });
                self.answer(asker, DeskAnswer::Granted);
            }
            Found::Value(value) => self.answer(asker, DeskAnswer::Found(value)),
            Found::Denied(denial) => self.answer(asker, DeskAnswer::Denied(denial)),
            Found::Wait(on) => {
                self.make_room(&ask);
                let place = self.place(&ask);
                self.emit(DeskWhat::Queued { ask: Box::new(ask), on, place });
            }
        }
    }

    /// Whether a later attempt of the same step is there: then nobody waits for the answer any more.
    fn is_past(&self, asker: &Asker) -> bool {
        let holds = self.state.holds.range(asker..).next().map(|(later, _)| later);
        let waits = self.state.waiting.range(asker..).next().map(|(later, _)| later);
        holds.into_iter().chain(waits).any(|later| later.run == asker.run && later.path == asker.path)
    }

    /// Other attempts of a step are over if a later one asks, or if the step is.
    fn let_go_of_others(&mut self, asker: &Asker) {
        let first = Asker { attempt: 0, ..asker.clone() };
        let is_same = |other: &&Asker| other.run == asker.run && other.path == asker.path;
        let held = self.state.holds.range(&first..).map(|(other, _)| other).take_while(is_same);
        let waits = self.state.waiting.range(&first..).map(|(other, _)| other).take_while(is_same);
        // What a trigger holds for its run is no attempt of it.
        let others = held.chain(waits).filter(|other| *other != asker && other.attempt > 0);
        for other in others.cloned().collect::<Vec<_>>() {
            self.release(other, Amount::default(), End::Lost);
        }
    }

    fn place(&self, ask: &Ask) -> Place {
        let first = ask.since.min(self.now);
        let since = Timestamp(first.0.saturating_sub(i64::from(ask.ahead).saturating_mul(1_000_000)));
        Place { since, number: self.state.next }
    }

    /// Those who were there before and have to go are told so.
    fn make_room(&mut self, ask: &Ask) {
        let replaced = ask.claims.iter().filter(|claim| match claim {
            Claim::Slot { full: Full::Replace, .. } => {
                matches!(obstacle(self.state, ask, claim, None, self.now), Found::Wait(_))
            }
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Promise { .. } | Claim::Spend { .. } => false,
        });
        let others = replaced.flat_map(|claim| self.state.at(claim.key()));
        let others = others.filter(|other| other.run != ask.asker.run && !ask.ancestors.contains(&other.run));
        let others: BTreeSet<Asker> = others.cloned().collect();
        self.evict(others);
    }

    /// Tells some to stop who were not told before.
    pub(super) fn evict(&mut self, askers: BTreeSet<Asker>) {
        let mut runs: BTreeSet<RunId> = BTreeSet::new();
        for asker in askers.into_iter().filter(|asker| !self.state.is_evicted(asker)).collect::<Vec<_>>() {
            runs.insert(asker.run.clone());
            self.emit(DeskWhat::Evicted { asker });
        }
        let cancels = runs.into_iter().map(|run| DeskEffect::Cancel { run, why: REPLACED.into() });
        self.turn.effects.extend(cancels);
    }

    pub(super) fn release(&mut self, asker: Asker, used: Amount, end: End) {
        let (used, end) = match end {
            End::Lost => (self.reserved(&asker), End::Attempt),
            End::Attempt | End::Done(_) | End::Over => (used, end),
        };
        if end != End::Attempt {
            self.let_go_of_others(&asker);
        }
        let over = (end != End::Attempt).then(|| asker.step());
        if self.state.waiting.contains_key(&asker) {
            self.emit(DeskWhat::Withdrawn { asker });
        } else if self.state.holds.contains_key(&asker) {
            self.emit(DeskWhat::Released { asker, used, end });
        }
        if let Some((run, path)) = over {
            self.break_promise(run, path);
        }
    }

    /// A step will not do what it promised: the next who waits for it does.
    pub(super) fn break_promise(&mut self, run: RunId, path: Path) {
        if self.state.promisers.contains_key(&(run.clone(), path.clone())) {
            self.emit(DeskWhat::Broken { run, path });
        }
    }

    /// Looks again at those who wait for what has come free.
    pub(super) fn serve(&mut self) {
        while let Some(key) = self.freed.pop_front() {
            self.serve_line(&key);
        }
    }

    /// Serves those who wait for a key, in their order, until one of them still has to.
    fn serve_line(&mut self, key: &Key) {
        while let Some((place, ask)) = self.state.first_in_line(key) {
            let asker = ask.asker.clone();
            self.renew_accounts(&ask);
            let answer = match look(self.state, &ask, Some(place), self.now) {
                Found::Wait(on) if on == *key => return,
                Found::Wait(on) => {
                    self.emit(DeskWhat::Moved { asker, on });
                    continue;
                }
                Found::Nothing => {
                    self.emit(DeskWhat::Granted { asker: asker.clone(), ask: None });
                    DeskAnswer::Granted
                }
                Found::Value(value) => {
                    self.emit(DeskWhat::Withdrawn { asker: asker.clone() });
                    DeskAnswer::Found(value)
                }
                Found::Denied(denial) => {
                    self.emit(DeskWhat::Withdrawn { asker: asker.clone() });
                    DeskAnswer::Denied(denial)
                }
            };
            self.answer(asker, answer);
        }
    }

    /// What was set aside for an asker.
    pub(super) fn reserved(&self, asker: &Asker) -> Amount {
        let Some(hold) = self.state.holds.get(asker) else { return Amount::default() };
        let most = hold.ask.claims.iter().find_map(|claim| match claim {
            Claim::Spend { most, .. } => Some(*most),
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Promise { .. } => None,
        });
        most.unwrap_or_default()
    }
}

impl State {
    /// Everybody who holds a place or waits for it.
    pub(super) fn at(&self, key: &Key) -> impl Iterator<Item = &Asker> {
        let holders = self.slots.get(key).into_iter().flatten();
        holders.chain(self.wanted.get(key).into_iter().flatten())
    }

    fn is_evicted(&self, asker: &Asker) -> bool {
        let holds = self.holds.get(asker).is_some_and(|hold| hold.evicted);
        holds || self.waiting.get(asker).is_some_and(|waiting| waiting.evicted)
    }
}

/// What an ask would get now. `place` is where it stands if it waits already.
fn look(state: &State, ask: &Ask, place: Option<Place>, now: Timestamp) -> Found {
    for claim in &ask.claims {
        // A result that is there needs nothing else.
        if let Claim::Promise { key, .. } = claim
            && let Some(Promise::Kept { value, until }) = state.promises.get(key)
            && until.is_none_or(|until| until > now)
        {
            return Found::Value(value.clone());
        }
    }
    for claim in &ask.claims {
        match obstacle(state, ask, claim, place, now) {
            Found::Nothing => {}
            Found::Wait(key) => {
                return match holding_ancestor(state, ask, claim) {
                    Some(by) => Found::Denied(Denial::WouldDeadlock { key, by }),
                    None => Found::Wait(key),
                };
            }
            other => return other,
        }
    }
    Found::Nothing
}

fn obstacle(state: &State, ask: &Ask, claim: &Claim, place: Option<Place>, now: Timestamp) -> Found {
    let key = claim.key();
    // A run that waits for the asker cannot give back what it holds before: the asker goes before all others.
    let urgent = holding_ancestor(state, ask, claim).is_some();
    // Nobody who has just come goes before those who wait for the same.
    let is_before = |other: &Place| !urgent && place.is_none_or(|place| *other < place);
    let first = state.lines.get(key).and_then(|line| line.first_key_value());
    let overtakes = first.is_some_and(|(first, _)| is_before(first));
    match claim {
        Claim::Slot { limit: 0, .. } => Found::Denied(Denial::TooMuch { key: key.clone() }),
        Claim::Slot { limit, full, .. } => {
            let holders = state.slots.get(key);
            let held = holders.map_or(0, BTreeSet::len);
            let reserved = state.reserved.get(key).into_iter().flatten();
            let reserved: Vec<&Ask> =
                reserved.take_while(|(place, _)| is_before(place)).map(|(_, other)| &**other).collect();
            // Each has one place reserved, under the limit that it asks with.
            let theirs = reserved.iter().flat_map(|other| slots(other)).filter(|(slot, _)| *slot == key);
            let limit = theirs.map(|(_, limit)| limit).fold(*limit, u32::min);
            if held + reserved.len() < limit as usize && !overtakes {
                return Found::Nothing;
            }
            let waits =
                first.map(|(_, first)| &**first).into_iter().chain(reserved).map(|other| &other.asker);
            match (full, holders.into_iter().flatten().chain(waits).next()) {
                (Full::Deny, Some(by)) => {
                    Found::Denied(Denial::Taken { key: key.clone(), by: by.run.clone() })
                }
                (Full::Wait | Full::Deny | Full::Replace, _) => Found::Wait(key.clone()),
            }
        }
        Claim::Rate { limit, units, .. } => {
            if units > limit {
                return Found::Denied(Denial::TooMuch { key: key.clone() });
            }
            match room_at(state, ask, key) {
                Some(at) if at > now => Found::Wait(key.clone()),
                Some(_) | None if overtakes => Found::Wait(key.clone()),
                Some(_) | None => Found::Nothing,
            }
        }
        Claim::Promise { .. } => match state.promises.get(key) {
            Some(Promise::Pending { run, path, .. }) if *run == ask.asker.run && *path == ask.asker.path => {
                Found::Nothing
            }
            Some(Promise::Pending { .. }) => Found::Wait(key.clone()),
            Some(Promise::Kept { .. }) | None if overtakes => Found::Wait(key.clone()),
            Some(Promise::Kept { .. }) | None => Found::Nothing,
        },
        Claim::Spend { cap, most, .. } => {
            let account = state.accounts.get(key);
            let cap = account.and_then(|account| account.cap.as_ref()).unwrap_or(cap);
            let committed = account.map(super::state::Account::committed).unwrap_or_default();
            match committed.plus(*most).beyond(cap) {
                Some(what) => {
                    Found::Denied(Denial::BudgetExceeded { account: key.clone(), what: what.into() })
                }
                None => Found::Nothing,
            }
        }
    }
}

/// A run that waits for the asker and holds what it needs: one that called it, or its own, which waits for its steps.
fn holding_ancestor(state: &State, ask: &Ask, claim: &Claim) -> Option<RunId> {
    let own_run =
        |run: &RunId, path: &Path| *run == ask.asker.run && path.is_run() && !ask.asker.path.is_run();
    let waits_for_it = |run: &RunId, path: &Path| ask.ancestors.contains(run) || own_run(run, path);
    match claim {
        Claim::Slot { key, .. } => {
            let mut holders = state.slots.get(key).into_iter().flatten();
            holders.find(|holder| waits_for_it(&holder.run, &holder.path)).map(|holder| holder.run.clone())
        }
        Claim::Promise { key, .. } => match state.promises.get(key) {
            Some(Promise::Pending { run, path, .. }) if waits_for_it(run, path) => Some(run.clone()),
            Some(Promise::Pending { .. } | Promise::Kept { .. }) | None => None,
        },
        Claim::Rate { .. } | Claim::Spend { .. } => None,
    }
}

/// When a rate will have room for an ask; none when time does not make it.
fn room_at(state: &State, ask: &Ask, key: &Key) -> Option<Timestamp> {
    ask.claims.iter().find_map(|claim| match claim {
        Claim::Rate { key: own, limit, period, units } if own == key => {
            let whole_at = state.rates.get(key).copied().unwrap_or(Timestamp(i64::MIN));
            let after = whole_at.plus(share(*period, *units, *limit));
            Some(Timestamp(after.0.saturating_sub(i64::try_from(period.0).unwrap_or(i64::MAX))))
        }
        Claim::Rate { .. } | Claim::Slot { .. } | Claim::Promise { .. } | Claim::Spend { .. } => None,
    })
}

/// When time moves the first in a line on.
pub(super) fn moves_at(state: &State, key: &Key) -> Option<Timestamp> {
    let (_, first) = state.lines.get(key)?.first_key_value()?;
    room_at(state, first, key)
}
