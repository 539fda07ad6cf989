//! Who gets what, and who waits for it.
//!
//! Whoever cannot have everything it needs waits in one line: that of the first thing that is not to be had. When that comes free it looks
//! again, and is served or goes to the line of the next thing. So a place that comes free costs no more than those who wait
//! for it. Those who need several things can be overtaken meanwhile, but not for ever: after a while they insist, and nobody
//! behind them is given anything that they need.

use super::claim::{Amount, Ask, Asker, Claim, Denial, DeskAnswer, End, Full, Key};
use super::event::{DeskWhat, Place};
use super::state::{Promise, State, share, turned};
use super::{DeskEffect, Turn};
use crate::keys::{Path, RunId, Timestamp};
use std::collections::{BTreeMap, VecDeque};
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
        if self.state.waiting.contains_key(&asker) {
            return;
        }
        self.let_go_of_earlier(&asker);
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
                self.emit(DeskWhat::Queued { ask: Box::new(ask), on: on.clone(), place });
                self.serve(vec![on]);
            }
        }
    }

    /// An earlier attempt of the same step is over if a later one asks.
    fn let_go_of_earlier(&mut self, asker: &Asker) {
        let first = Asker { attempt: 0, ..asker.clone() };
        let is_same = |other: &&Asker| other.run == asker.run && other.path == asker.path;
        let same = |askers: &mut dyn Iterator<Item = &Asker>| -> Vec<Asker> {
            askers.take_while(is_same).filter(|other| other.attempt < asker.attempt).cloned().collect()
        };
        let held = same(&mut self.state.holds.range(&first..).map(|(asker, _)| asker));
        let waits = same(&mut self.state.waiting.range(&first..).map(|(asker, _)| asker));
        // What a trigger holds for its run is no attempt of it.
        for earlier in held.into_iter().chain(waits).filter(|earlier| earlier.attempt > 0) {
            let used = self.reserved(&earlier);
            self.release(earlier, used, End::Attempt);
        }
    }

    fn place(&self, ask: &Ask) -> Place {
        let turns = turned(ask).filter_map(|key| {
            let turns = self.state.turns.get(key)?;
            let own = turns.last.get(&ask.flow).map_or(0, |last| last + 1);
            Some(own.max(turns.now))
        });
        let first = ask.since.min(self.now);
        let since = Timestamp(first.0.saturating_sub(i64::from(ask.ahead).saturating_mul(1_000_000)));
        Place { turn: turns.max().unwrap_or(0), since, number: self.state.next }
    }

    /// Those who were there before and have to go are told so.
    fn make_room(&mut self, ask: &Ask) {
        let replaced = ask.claims.iter().filter_map(|claim| match claim {
            Claim::Slot { key, full: Full::Replace, .. } => Some(key),
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Promise { .. } | Claim::Spend { .. } => None,
        });
        let mut others: Vec<Asker> = Vec::new();
        for key in replaced {
            others.extend(self.state.slots.get(key).into_iter().flatten().cloned());
            let waiting = self.state.waiting.values().filter(|other| needs(&other.ask, key));
            others.extend(waiting.map(|other| other.ask.asker.clone()));
        }
        for asker in others {
            self.turn.effects.push(DeskEffect::Cancel { run: asker.run.clone(), why: REPLACED.into() });
            self.emit(DeskWhat::Evicted { asker });
        }
    }

    pub(super) fn release(&mut self, asker: Asker, used: Amount, end: End) {
        let step = asker.step();
        let (used, end) = match end {
            End::Lost => (self.reserved(&asker), End::Attempt),
            End::Attempt | End::Done(_) | End::Over => (used, end),
        };
        let over = end != End::Attempt;
        let mut freed: Vec<Key> = Vec::new();
        if let Some(waiting) = self.state.waiting.get(&asker) {
            // Whoever insisted kept others from what it needs.
            if waiting.insists {
                freed.extend(waiting.ask.claims.iter().map(|claim| claim.key().clone()));
            }
            self.emit(DeskWhat::Withdrawn { asker });
        } else if let Some(hold) = self.state.holds.get(&asker) {
            freed.extend(hold.ask.claims.iter().map(|claim| claim.key().clone()));
            self.emit(DeskWhat::Released { asker, used, end });
        }
        if over {
            self.break_promise(step.0, step.1);
        }
        self.serve(freed);
    }

    /// A step will not do what it promised: the next who waits for it does.
    pub(super) fn break_promise(&mut self, run: RunId, path: Path) {
        let Some(key) = self.state.promisers.get(&(run.clone(), path.clone())).cloned() else { return };
        self.emit(DeskWhat::Broken { run, path });
        self.serve(vec![key]);
    }

    /// Looks again at those who wait for these keys.
    pub(super) fn serve(&mut self, keys: Vec<Key>) {
        let mut keys: VecDeque<Key> = keys.into();
        while let Some(key) = keys.pop_front() {
            self.serve_line(&key, &mut keys);
        }
    }

    /// Serves those who wait for a key, in their order, until one of them still has to. `more` gets what others may have now.
    fn serve_line(&mut self, key: &Key, more: &mut VecDeque<Key>) {
        let first =
            |line: &BTreeMap<Place, Asker>| line.first_key_value().map(|(at, asker)| (*at, asker.clone()));
        while let Some((place, asker)) = self.state.lines.get(key).and_then(first) {
            let Some(waiting) = self.state.waiting.get(&asker) else { return };
            let (ask, insisted) = (waiting.ask.clone(), waiting.insists);
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
            if insisted {
                more.extend(ask.claims.iter().map(|claim| claim.key().clone()));
            }
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

fn needs(ask: &Ask, key: &Key) -> bool {
    ask.claims.iter().any(|claim| claim.key() == key)
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
    let insisting = state.insisting.get(key).and_then(|line| line.first_key_value());
    if insisting.is_some_and(|(first, _)| place.is_none_or(|place| *first < place)) {
        return Found::Wait(key.clone());
    }
    // Nobody who has just come goes before those who wait for the same.
    let first = state.lines.get(key).and_then(|line| line.first_key_value()).map(|(first, _)| *first);
    let overtakes = match (first, place) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(first), Some(place)) => first < place,
    };
    match claim {
        Claim::Slot { limit, full, .. } => {
            let holders = state.slots.get(key);
            let held = holders.map_or(0, std::collections::BTreeSet::len);
            if held < *limit as usize && !overtakes {
                return Found::Nothing;
            }
            match (full, holders.and_then(|holders| holders.first())) {
                (Full::Deny, Some(holder)) if held >= *limit as usize => {
                    Found::Denied(Denial::Taken { key: key.clone(), by: holder.run.clone() })
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

/// A run that waits for the asker and holds what it needs.
fn holding_ancestor(state: &State, ask: &Ask, claim: &Claim) -> Option<RunId> {
    let is_ancestor = |run: &&RunId| ask.ancestors.contains(run);
    match claim {
        Claim::Slot { key, .. } => {
            let holders = state.slots.get(key).into_iter().flatten();
            holders.map(|holder| &holder.run).find(is_ancestor).cloned()
        }
        Claim::Promise { key, .. } => match state.promises.get(key) {
            Some(Promise::Pending { run, .. }) => Some(run).filter(is_ancestor).cloned(),
            Some(Promise::Kept { .. }) | None => None,
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
    room_at(state, &state.waiting.get(first)?.ask, key)
}
