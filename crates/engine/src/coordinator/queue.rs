//! Grants and queues.
//!
//! A request that cannot get everything it needs waits in one queue: that of the first missing resource. When the
//! resource is released, the request is checked again and is either granted or moves to the queue of the next missing
//! resource. So a release costs no more than the number of requests in its queue. All slots that the first request of
//! a queue needs are reserved for it, so smaller requests cannot overtake it forever: the oldest request of all is
//! the first of its queue and eventually gets everything.
//!
//! An asker holds nothing for the same attempt while it waits. But a run that holds a slot waits for its steps and
//! for the runs that it calls, so these are denied the slots it holds. Two runs cannot wait for each other through
//! their steps, because no request combines slots of runs with slots of steps.

use super::claim::{Amount, Ask, Asker, Claim, CoordinatorAnswer, Denial, End, Full, Key};
use super::event::{CoordinatorWhat, Position};
use super::state::{KeyState, State, share, slots};
use super::{CoordinatorEffect, Turn};
use crate::keys::{Path, RunId, Timestamp};
use std::collections::BTreeSet;
use windlass_ir::Value;

/// Why a run that was replaced is canceled.
pub(super) const REPLACED: &str = "replaced by a newer run";

/// What an asker can get now.
enum Found {
    Nothing,
    Value(Value),
    Denied(Denial),
    /// It must wait for this.
    Wait(Key),
}

impl Turn<'_> {
    pub(super) fn ask(&mut self, ask: Ask) {
        let asker = ask.asker.clone();
        if self.state.holds.contains_key(&asker) {
            return self.answer(asker, CoordinatorAnswer::Granted);
        }
        if self.state.waiting.contains_key(&asker) || self.is_past(&asker) {
            return;
        }
        self.let_go_of_others(&asker);
        self.renew_budgets(&ask);
        match look(self.state, &ask, None, self.now) {
            Found::Nothing => {
                self.emit(CoordinatorWhat::Granted { asker: asker.clone(), ask: Some(Box::new(ask)) });
                self.answer(asker, CoordinatorAnswer::Granted);
            }
            Found::Value(value) => self.answer(asker, CoordinatorAnswer::Found(value)),
            Found::Denied(denial) => self.answer(asker, CoordinatorAnswer::Denied(denial)),
            Found::Wait(on) => {
                self.make_room(&ask);
                let position = self.position(&ask);
                self.emit(CoordinatorWhat::Queued { ask: Box::new(ask), on, position });
            }
        }
    }

    /// Whether a later attempt of the same step has asked, so that this one needs no answer.
    fn is_past(&self, asker: &Asker) -> bool {
        let holds = self.state.holds.range(asker..).next().map(|(later, _)| later);
        let waits = self.state.waiting.range(asker..).next().map(|(later, _)| later);
        holds.into_iter().chain(waits).any(|later| later.run == asker.run && later.path == asker.path)
    }

    /// Releases the other attempts of a step, because a later one asks or because the step is over.
    fn let_go_of_others(&mut self, asker: &Asker) {
        let first = Asker { attempt: 0, ..asker.clone() };
        let is_same = |other: &&Asker| other.run == asker.run && other.path == asker.path;
        let held = self.state.holds.range(&first..).map(|(other, _)| other).take_while(is_same);
        let waits = self.state.waiting.range(&first..).map(|(other, _)| other).take_while(is_same);
        // A slot that a trigger holds for its run belongs to no attempt.
        let others = held.chain(waits).filter(|other| *other != asker && other.attempt > 0);
        for other in others.cloned().collect::<Vec<_>>() {
            self.release(other, Amount::default(), End::Lost);
        }
    }

    fn position(&self, ask: &Ask) -> Position {
        let first = ask.since.min(self.now);
        let since = Timestamp(first.0.saturating_sub(i64::from(ask.ahead).saturating_mul(1_000_000)));
        Position { since, number: self.state.next }
    }

    /// Cancels the runs that this one replaces.
    fn make_room(&mut self, ask: &Ask) {
        let replaced = ask.claims.iter().filter(|claim| match claim {
            Claim::Slot { full: Full::Replace, .. } => {
                matches!(obstacle(self.state, ask, claim, None, self.now), Found::Wait(_))
            }
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Key { .. } | Claim::Spend { .. } => false,
        });
        let others = replaced.flat_map(|claim| self.state.at(claim.key()));
        let others = others.filter(|other| other.run != ask.asker.run && !ask.ancestors.contains(&other.run));
        let others: BTreeSet<Asker> = others.cloned().collect();
        self.replace(others);
    }

    /// Cancels the runs of these askers, unless they were canceled before.
    pub(super) fn replace(&mut self, askers: BTreeSet<Asker>) {
        let mut runs: BTreeSet<RunId> = BTreeSet::new();
        for asker in askers.into_iter().filter(|asker| !self.state.is_replaced(asker)).collect::<Vec<_>>() {
            runs.insert(asker.run.clone());
            self.emit(CoordinatorWhat::Replaced { asker });
        }
        let cancels = runs.into_iter().map(|run| CoordinatorEffect::Cancel { run, why: REPLACED.into() });
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
            self.emit(CoordinatorWhat::Withdrawn { asker });
        } else if self.state.holds.contains_key(&asker) {
            self.emit(CoordinatorWhat::Released { asker, used, end });
        }
        if let Some((run, path)) = over {
            self.free_keys(run, path);
        }
    }

    /// Gives up the keys of a step, so that the next step in each queue does the work.
    pub(super) fn free_keys(&mut self, run: RunId, path: Path) {
        if self.state.key_owners.contains_key(&(run.clone(), path.clone())) {
            self.emit(CoordinatorWhat::KeysFreed { run, path });
        }
    }

    /// Checks the requests that wait for a released resource.
    pub(super) fn serve(&mut self) {
        while let Some(key) = self.freed.pop_front() {
            self.serve_queue(&key);
        }
    }

    /// Grants the requests in the queue of a key, in order, until one must still wait.
    fn serve_queue(&mut self, key: &Key) {
        while let Some((position, ask)) = self.state.first_in_queue(key) {
            let asker = ask.asker.clone();
            self.renew_budgets(&ask);
            let answer = match look(self.state, &ask, Some(position), self.now) {
                Found::Wait(on) if on == *key => return,
                Found::Wait(on) => {
                    self.emit(CoordinatorWhat::Moved { asker, on });
                    continue;
                }
                Found::Nothing => {
                    self.emit(CoordinatorWhat::Granted { asker: asker.clone(), ask: None });
                    CoordinatorAnswer::Granted
                }
                Found::Value(value) => {
                    self.emit(CoordinatorWhat::Withdrawn { asker: asker.clone() });
                    CoordinatorAnswer::Found(value)
                }
                Found::Denied(denial) => {
                    self.emit(CoordinatorWhat::Withdrawn { asker: asker.clone() });
                    CoordinatorAnswer::Denied(denial)
                }
            };
            self.answer(asker, answer);
        }
    }

    /// The amount that is reserved for an asker.
    pub(super) fn reserved(&self, asker: &Asker) -> Amount {
        let Some(hold) = self.state.holds.get(asker) else { return Amount::default() };
        let most = hold.ask.claims.iter().find_map(|claim| match claim {
            Claim::Spend { most, .. } => Some(*most),
            Claim::Slot { .. } | Claim::Rate { .. } | Claim::Key { .. } => None,
        });
        most.unwrap_or_default()
    }
}

impl State {
    /// Every asker that holds a slot or waits for it.
    pub(super) fn at(&self, key: &Key) -> impl Iterator<Item = &Asker> {
        let holders = self.slots.get(key).into_iter().flatten();
        holders.chain(self.wanted.get(key).into_iter().flatten())
    }

    fn is_replaced(&self, asker: &Asker) -> bool {
        let holds = self.holds.get(asker).is_some_and(|hold| hold.replaced);
        holds || self.waiting.get(asker).is_some_and(|waiting| waiting.replaced)
    }
}

/// What a request would get now. `position` is that of a request that is already queued.
fn look(state: &State, ask: &Ask, position: Option<Position>, now: Timestamp) -> Found {
    for claim in &ask.claims {
        // A known result needs nothing else.
        if let Claim::Key { key, .. } = claim
            && let Some(KeyState::Kept { value, until }) = state.keys.get(key)
            && until.is_none_or(|until| until > now)
        {
            return Found::Value(value.clone());
        }
    }
    for claim in &ask.claims {
        match obstacle(state, ask, claim, position, now) {
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

fn obstacle(state: &State, ask: &Ask, claim: &Claim, position: Option<Position>, now: Timestamp) -> Found {
    let key = claim.key();
    // A run that waits for the asker releases nothing until the asker is done, so the asker overtakes all others.
    let urgent = holding_ancestor(state, ask, claim).is_some();
    // A new request does not overtake those that wait for the same resource.
    let is_before = |other: &Position| !urgent && position.is_none_or(|position| *other < position);
    let first = state.queues.get(key).and_then(|queue| queue.first_key_value());
    let overtakes = first.is_some_and(|(first, _)| is_before(first));
    match claim {
        Claim::Slot { limit: 0, .. } => Found::Denied(Denial::TooMuch { key: key.clone() }),
        Claim::Slot { limit, full, .. } => {
            let holders = state.slots.get(key);
            let held = holders.map_or(0, BTreeSet::len);
            let reserved = state.reserved.get(key).into_iter().flatten();
            let reserved: Vec<&Ask> =
                reserved.take_while(|(position, _)| is_before(position)).map(|(_, other)| &**other).collect();
            // Each has one slot reserved, under the limit that it asked with.
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
        Claim::Key { .. } => match state.keys.get(key) {
            Some(KeyState::Pending { run, path, .. }) if *run == ask.asker.run && *path == ask.asker.path => {
                Found::Nothing
            }
            Some(KeyState::Pending { .. }) => Found::Wait(key.clone()),
            Some(KeyState::Kept { .. }) | None if overtakes => Found::Wait(key.clone()),
            Some(KeyState::Kept { .. }) | None => Found::Nothing,
        },
        Claim::Spend { cap, most, .. } => {
            let budget = state.budgets.get(key);
            let cap = budget.and_then(|budget| budget.cap.as_ref()).unwrap_or(cap);
            let committed = budget.map(super::state::BudgetState::committed).unwrap_or_default();
            match committed.plus(*most).beyond(cap) {
                Some(what) => {
                    Found::Denied(Denial::BudgetExceeded { budget: key.clone(), what: what.into() })
                }
                None => Found::Nothing,
            }
        }
    }
}

/// A run that waits for the asker and holds what it needs: a caller, or its own run, which waits for its steps.
fn holding_ancestor(state: &State, ask: &Ask, claim: &Claim) -> Option<RunId> {
    let own_run =
        |run: &RunId, path: &Path| *run == ask.asker.run && path.is_run() && !ask.asker.path.is_run();
    let waits_for_it = |run: &RunId, path: &Path| ask.ancestors.contains(run) || own_run(run, path);
    match claim {
        Claim::Slot { key, .. } => {
            let mut holders = state.slots.get(key).into_iter().flatten();
            holders.find(|holder| waits_for_it(&holder.run, &holder.path)).map(|holder| holder.run.clone())
        }
        Claim::Key { key, .. } => match state.keys.get(key) {
            Some(KeyState::Pending { run, path, .. }) if waits_for_it(run, path) => Some(run.clone()),
            Some(KeyState::Pending { .. } | KeyState::Kept { .. }) | None => None,
        },
        Claim::Rate { .. } | Claim::Spend { .. } => None,
    }
}

/// When a rate has room for a request; `None` for other keys.
fn room_at(state: &State, ask: &Ask, key: &Key) -> Option<Timestamp> {
    ask.claims.iter().find_map(|claim| match claim {
        Claim::Rate { key: own, limit, period, units } if own == key => {
            let whole_at = state.rates.get(key).copied().unwrap_or(Timestamp(i64::MIN));
            let after = whole_at.plus(share(*period, *units, *limit));
            Some(Timestamp(after.0.saturating_sub(i64::try_from(period.0).unwrap_or(i64::MAX))))
        }
        Claim::Rate { .. } | Claim::Slot { .. } | Claim::Key { .. } | Claim::Spend { .. } => None,
    })
}

/// When a queue can advance because of time.
pub(super) fn moves_at(state: &State, key: &Key) -> Option<Timestamp> {
    let (_, first) = state.queues.get(key)?.first_key_value()?;
    room_at(state, first, key)
}
