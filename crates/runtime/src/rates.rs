//! Rates of a run whose clock jumps. The desk lives in the time of the machine; a rate in a time of its own is this run's alone.

use std::collections::BTreeSet;
use windlass_engine::{
    Amount, Ask, Asker, Claim, Desk, DeskAnswer, DeskEffect, DeskInput, DeskTurn, End, Timestamp,
};

#[derive(Debug, Default)]
pub(crate) struct Rates {
    desk: Desk,
    waiting: BTreeSet<Asker>,
    /// Those whose time has come.
    passed: BTreeSet<Asker>,
}

/// What becomes of an ask at the rates.
pub(crate) enum Passed {
    /// The rest of it is for the desk.
    Through,
    Waits,
    /// There is no rest.
    Answered(DeskAnswer),
}

impl Rates {
    pub fn waits(&self, asker: &Asker) -> bool {
        self.waiting.contains(asker)
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.desk.next_deadline()
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
            let turn = self.desk.handle(now, DeskInput::Ask(Box::new(asked))).unwrap_or_default();
            self.waiting.insert(ask.asker.clone());
            if let Some(denial) = self.served(now, turn) {
                return Passed::Answered(denial);
            }
            if !self.passed.remove(&ask.asker) {
                return Passed::Waits;
            }
        }
        if ask.claims.is_empty() { Passed::Answered(DeskAnswer::Granted) } else { Passed::Through }
    }

    /// Time has passed. Whether anybody has come through because of it.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        if self.next().is_none_or(|next| next > now) {
            return false;
        }
        let turn = self.desk.handle(now, DeskInput::Tick).unwrap_or_default();
        self.served(now, turn);
        !self.passed.is_empty()
    }

    /// Whoever was served has taken its part of the rate, and holds nothing else.
    fn served(&mut self, now: Timestamp, turn: DeskTurn) -> Option<DeskAnswer> {
        let mut denied = None;
        for effect in turn.effects {
            let DeskEffect::Answer { asker, answer } = effect else { continue };
            self.waiting.remove(&asker);
            match answer {
                DeskAnswer::Granted | DeskAnswer::Found(_) => {
                    let (used, end) = (Amount::default(), End::Attempt);
                    let release = DeskInput::Release { asker: asker.clone(), used, end };
                    // What is given back is nothing to anybody.
                    drop(self.desk.handle(now, release));
                    self.passed.insert(asker);
                }
                DeskAnswer::Denied(_) => denied = Some(answer),
            }
        }
        denied
    }
}
