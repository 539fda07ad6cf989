//! Idempotency keys within the run: the first step with a key does the work, and the others use its result.

use super::{Misfit, Phase, Place, State};
use crate::event::Assignment;
use crate::keys::Timestamp;
use crate::outcome::Outcome;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// The owner does the work, if there is one; the others wait.
    Pending {
        owner: Option<Place>,
        waiting: VecDeque<Place>,
        ttl: Option<Duration>,
    },
    Kept {
        value: Value,
        until: Option<Timestamp>,
    },
}

impl State {
    pub(super) fn own_key(&mut self, place: Place, assignment: &Assignment) {
        let Some(idempotency) = &assignment.key else { return };
        let mut waiting = match self.keys.remove(&idempotency.key) {
            Some(Held::Pending { waiting, .. }) => waiting,
            Some(Held::Kept { .. }) | None => VecDeque::new(),
        };
        waiting.retain(|waiter| *waiter != place);
        let held = Held::Pending { owner: Some(place), waiting, ttl: idempotency.ttl };
        self.keys.insert(idempotency.key.clone(), held);
        self.at_mut(place).key = Some(idempotency.key.clone());
    }

    pub(super) fn joined(&mut self, place: Place, key: &Arc<str>) -> Result<(), Misfit> {
        let is_new = matches!(self.at(place).phase, Phase::Ready | Phase::Joined(_));
        let fits = is_new && self.is_action(place) && self.keys.contains_key(key);
        self.need_at(place, fits, "a step that is ready to start")?;
        let last_at = self.last_at;
        self.begin(place, last_at);
        // If it does the work itself later, it starts then.
        self.at_mut(place).started_at = None;
        if let Some(trace) = self.trace(place) {
            trace.started_at.get_or_insert(last_at);
        }
        self.set_phase(place, Phase::Joined(key.clone()));
        if let Some(Held::Pending { waiting, .. }) = self.keys.get_mut(key) {
            waiting.retain(|waiter| *waiter != place);
            waiting.push_back(place);
        }
        Ok(())
    }

    /// Updates the key that a settled step owned or waited for.
    pub(super) fn answer_key(&mut self, place: Place, outcome: &Outcome, at: Timestamp) {
        let waited_for = match &self.at(place).phase {
            Phase::Joined(key) => Some(key.clone()),
            _ => None,
        };
        let Some(key) = self.at_mut(place).key.take().or(waited_for) else { return };
        let Some(Held::Pending { owner, waiting, ttl }) = self.keys.get_mut(&key) else { return };
        if *owner != Some(place) {
            let was_first = owner.is_none() && waiting.front() == Some(&place);
            waiting.retain(|waiter| *waiter != place);
            let next = waiting.front().copied();
            return match (was_first, next) {
                (true, Some(next)) => self.make_startable(next),
                (true, None) => drop(self.keys.remove(&key)),
                (false, _) => {}
            };
        }
        match outcome {
            Outcome::Done(value) => {
                let until = ttl.map(|ttl| at.plus(ttl));
                let waiters = std::mem::take(waiting);
                self.keys.insert(key, Held::Kept { value: value.clone(), until });
                self.answered.extend(waiters);
            }
            // Failures are not kept: the next step tries again.
            Outcome::Continue(_) | Outcome::Failed(_) | Outcome::Skipped(_) | Outcome::Cancelled(_) => {
                *owner = None;
                match waiting.front().copied() {
                    Some(next) => self.make_startable(next),
                    None => drop(self.keys.remove(&key)),
                }
            }
        }
    }
}
