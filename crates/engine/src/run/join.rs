//! Steps that share a key: one does the work, the others take over what comes of it.

use super::Turn;
use super::state::{Held, Phase, Place};
use crate::event::{Assignment, What};
use crate::outcome::Outcome;
use windlass_ir::Value;

impl Turn<'_> {
    /// Whether the key of this work is held already, so that it is not done here.
    pub(super) fn joins(&mut self, place: Place, assignment: &Assignment) -> bool {
        let Some(idempotency) = &assignment.key else { return false };
        let key = idempotency.key.clone();
        let answered = match self.state().keys.get(&key) {
            Some(Held::Pending { owner: Some(_), .. }) => None,
            // Nobody does it at the moment: the first that waits will.
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

    /// What has come of the work that this step waits for, if it was done.
    fn answer(&self, place: Place) -> Option<Value> {
        let Phase::Joined(key) = &self.at(place).phase else { return None };
        match self.state().keys.get(key) {
            Some(Held::Kept { value, .. }) => Some(value.clone()),
            Some(Held::Pending { .. }) | None => None,
        }
    }

    /// Lets one step take over what was done under its key.
    pub(super) fn answer_one(&mut self) -> bool {
        let Some(place) = self.state().answered.front().copied() else { return false };
        let Some(value) = self.answer(place) else { return false };
        self.settle(place, Outcome::Done(value));
        true
    }
}
