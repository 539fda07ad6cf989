//! Rate limits of a run with a virtual clock. The coordinator lives in the machine's time, so a rate in another time is this run's
//! alone.

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
    /// Askers whose turn has come.
    passed: BTreeSet<Asker>,
}

/// What the rate limits say to a question.
pub(super) enum Passed {
    /// The rest of it is for the coordinator.
    Through,
    Waits,
    /// There is no rest.
    Answered(CoordinatorAnswer),
}

impl Rates {
    pub fn waits(&self, asker: &Asker) -> bool {
        self.waiting.contains(asker)
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.coordinator.next_deadline()
    }

    /// Takes the rates out of an ask, and waits for them.
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

    /// Time has passed; says whether an asker got through because of it.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        if self.next().is_none_or(|next| next > now) {
            return false;
        }
        let turn = self.coordinator.handle(now, CoordinatorInput::Tick).unwrap_or_default();
        self.served(now, turn);
        !self.passed.is_empty()
    }

    /// An asker that was served has used its units and holds nothing else.
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
