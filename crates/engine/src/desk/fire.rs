//! Fires of triggers: each instant at which one was due is decided once, whatever crashes.

use super::claim::{Ask, Asker, Claim, Full, Key};
use super::event::{Came, DeskWhat, Fired, Order};
use super::{DeskEffect, Turn};
use crate::keys::{RunId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_ir::Value;

/// A trigger is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Fire {
    pub trigger: Key,
    pub due: Timestamp,
    /// When it will fire next.
    pub next: Option<Timestamp>,
    pub run: RunId,
    /// The digest of the plan, and what the run is given.
    pub plan: Arc<str>,
    pub inputs: Value,
    /// How many runs of this trigger there may be at once.
    pub runs_max: Option<u32>,
    pub overlap: Overlap,
    /// It is not done, for a reason that whoever asks knows.
    pub skip: Option<Arc<str>>,
}

/// What becomes of a fire while as many runs of its trigger as there may be are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    Skip,
    Queue,
    /// The runs that are under way are told to stop.
    Cancel,
}

impl Turn<'_> {
    pub(super) fn fire(&mut self, fire: Fire) {
        let Fire { trigger, due, next, run, plan, inputs, runs_max, overlap, skip } = fire;
        if self.state.fires.get(&trigger).is_some_and(|last| *last >= due) {
            return;
        }
        let key: Key = format!("trigger:{trigger}").into();
        let held = self.state.slots.get(&key).map_or(0, BTreeSet::len);
        // Nobody goes before those who wait for their turn, whatever was allowed when they came.
        let waited_for = self.state.wanted.contains_key(&key);
        let full = runs_max.filter(|limit| held >= *limit as usize || waited_for);
        let because = match (skip, full, overlap) {
            (Some(because), _, _) => Some(because),
            (None, Some(limit), Overlap::Skip) => {
                let first = self.state.at(&key).next();
                let first = first.map(|first| first.run.to_string()).unwrap_or_default();
                Some(format!("{limit} at once, and {first} is still under way").into())
            }
            (None, _, Overlap::Queue | Overlap::Cancel) | (None, None, Overlap::Skip) => None,
        };
        if let Some(because) = because {
            let fired = Fired { trigger, due, next, came: Came::Skipped { because } };
            return self.emit(DeskWhat::Fired(Box::new(fired)));
        }
        let claim = runs_max.map(|limit| Claim::Slot { key: key.clone(), limit, full: Full::Wait });
        // A run that may have to wait asks for its place itself; one that was not skipped has it from now on.
        let (held, claims) = match overlap {
            Overlap::Skip => (claim, Vec::new()),
            Overlap::Queue | Overlap::Cancel => (None, claim.into_iter().collect()),
        };
        let order = Order { run: run.clone(), plan, inputs, claims };
        let fired = Fired { trigger, due, next, came: Came::Started(order.clone()) };
        self.emit(DeskWhat::Fired(Box::new(fired)));
        if overlap == Overlap::Cancel && full.is_some() {
            let under_way: BTreeSet<Asker> = self.state.at(&key).cloned().collect();
            self.evict(under_way);
        }
        if let Some(claim) = held {
            let asker = Asker::start(run, 0);
            let ask = Ask { asker, claims: vec![claim], since: self.now, ahead: 0, ancestors: Vec::new() };
            self.emit(DeskWhat::Granted { asker: ask.asker.clone(), ask: Some(Box::new(ask)) });
        }
        self.turn.effects.push(DeskEffect::Start(order));
    }
}
