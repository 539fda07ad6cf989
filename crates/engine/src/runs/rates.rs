//! Rate limits of a run with a virtual clock. The coordinator uses the machine's clock, so these limits apply to this
//! run alone.

use crate::coordinator::{
    Amount, Ask, Asker, Claim, Coordinator, CoordinatorAnswer, CoordinatorEffect, CoordinatorInput,
    CoordinatorTurn, End,
};
use crate::keys::Timestamp;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Rates {
    coordinator: Coordinator,
    waiting: BTreeSet<Asker>,
    /// Askers that were granted their rates.
    passed: BTreeSet<Asker>,
}

/// The answer of the rate limits.
pub(super) enum Passed {
    /// The rest of the request is for the coordinator.
    Through,
    Waits,
    /// The request had no other claims.
    Answered(CoordinatorAnswer),
}

impl Rates {
    pub fn waits(&self, asker: &Asker) -> bool {
        self.waiting.contains(asker)
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.coordinator.next_deadline()
    }

    /// Removes the rates from a request, and waits for them.
    pub fn pass(&mut self, now: Timestamp, ask: &mut Ask) -> Passed {
        let (rates, rest): (Vec<Claim>, Vec<Claim>) = std::mem::take(&mut ask.claims)
            .into_iter()
            .partition(|claim| matches!(claim, Claim::Rate { .. }));
        ask.claims = rest;
        if rates.is_empty() {
            return Passed::Through;
        }
        if self.waits(&ask.asker) {
            return Passed::Waits;
        }
        if !self.passed.remove(&ask.asker) {
            let asked = Ask { claims: rates, ..ask.clone() };
            let turn =
                self.coordinator.handle(now, CoordinatorInput::Ask(Box::new(asked))).unwrap_or_default();
            self.waiting.insert(ask.asker.clone());
            if let Some(denial) = self.served(now, turn) {
                return Passed::Answered(denial);
            }
            if !self.passed.remove(&ask.asker) {
                return Passed::Waits;
            }
        }
        if ask.claims.is_empty() { Passed::Answered(CoordinatorAnswer::Granted) } else { Passed::Through }
    }

    /// Returns whether an asker was granted its rates because of the time that passed.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        if self.next().is_none_or(|next| next > now) {
            return false;
        }
        let turn = self.coordinator.handle(now, CoordinatorInput::Tick).unwrap_or_default();
        self.served(now, turn);
        !self.passed.is_empty()
    }

    /// Releases the asker that was granted its rates: it holds nothing else here.
    fn served(&mut self, now: Timestamp, turn: CoordinatorTurn) -> Option<CoordinatorAnswer> {
        let mut denied = None;
        for effect in turn.effects {
            let CoordinatorEffect::Answer { asker, answer } = effect else { continue };
            self.waiting.remove(&asker);
            match answer {
                CoordinatorAnswer::Granted | CoordinatorAnswer::Found(_) => {
                    let (used, end) = (Amount::default(), End::Attempt);
                    let release = CoordinatorInput::Release { asker: asker.clone(), used, end };
                    drop(self.coordinator.handle(now, release));
                    self.passed.insert(asker);
                }
                CoordinatorAnswer::Denied(_) => denied = Some(answer),
            }
        }
        denied
    }
}
