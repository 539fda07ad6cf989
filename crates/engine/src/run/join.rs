//! Steps with the same idempotency key: one does the work, the others use its result.

use super::Turn;
use super::state::{Held, Phase, Place};
use crate::event::{Assignment, What};
use crate::outcome::Outcome;
use windlass_ir::Value;

impl Turn<'_> {
    /// Whether another step has done or is doing the work under this key, so that this step waits for its result.
    pub(super) fn joins(&mut self, place: Place, assignment: &Assignment) -> bool {
        let Some(idempotency) = &assignment.key else { return false };
        let key = idempotency.key.clone();
        let answered = match self.state().keys.get(&key) {
            Some(Held::Pending { owner: Some(_), .. }) => None,
            // The owner of the key is gone: the first waiting step takes over.
            Some(Held::Pending { waiting, .. }) if waiting.front().is_some_and(|first| *first != place) => {
                None
            }
            Some(Held::Kept { value, until }) if until.is_none_or(|until| until > self.now) => {
                Some(value.clone())
            }
            Some(Held::Pending { .. } | Held::Kept { .. }) | None => return false,
        };
        let path = self.path(place);
        self.emit(What::Joined { path, key });
        if let Some(value) = answered {
            self.settle(place, Outcome::Done(value));
        }
        true
    }

    /// The result under the key that this step waits for, if it is known.
    fn answer(&self, place: Place) -> Option<Value> {
        let Phase::Joined(key) = &self.at(place).phase else { return None };
        match self.state().keys.get(key) {
            Some(Held::Kept { value, .. }) => Some(value.clone()),
            Some(Held::Pending { .. }) | None => None,
        }
    }

    /// Settles one step with the result under its key.
    pub(super) fn answer_one(&mut self) -> bool {
        let Some(place) = self.state().answered.front().copied() else { return false };
        let Some(value) = self.answer(place) else { return false };
        self.settle(place, Outcome::Done(value));
        true
    }
}
