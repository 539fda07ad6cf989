//! Trigger firings. The coordinator decides each due instant once, despite crashes.

use super::claim::{Ask, Asker, Claim, Full, Key};
use super::event::{Came, CoordinatorWhat, Fired, Order};
use super::{CoordinatorEffect, Turn};
use crate::keys::{RunId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_ir::Value;

/// A trigger is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    pub trigger: Key,
    pub due: Timestamp,
    /// When it will fire next.
    pub next: Option<Timestamp>,
    pub run: RunId,
    /// The digest of the plan and the inputs of the run.
    pub plan: Arc<str>,
    pub inputs: Value,
    /// The most runs of this trigger at once.
    pub runs_max: Option<u32>,
    pub overlap: Overlap,
    /// Why this firing starts no run.
    pub skip: Option<Arc<str>>,
}

/// The policy for a firing when the trigger has as many runs as allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    #[default]
    Skip,
    Queue,
    /// Cancels the active runs.
    Cancel,
}

impl Turn<'_> {
    pub(super) fn fire(&mut self, fire: Firing) {
        let Firing { trigger, due, next, run, plan, inputs, runs_max, overlap, skip } = fire;
        if self.state.firings.get(&trigger).is_some_and(|last| *last >= due) {
            return;
        }
        let key: Key = format!("trigger:{trigger}").into();
        let held = self.state.slots.get(&key).map_or(0, BTreeSet::len);
        // A firing does not overtake waiting runs, even if they asked with another limit.
        let waited_for = self.state.wanted.contains_key(&key);
        let full = runs_max.filter(|limit| held >= *limit as usize || waited_for);
        let because = match (skip, full, overlap) {
            (Some(because), _, _) => Some(because),
            (None, Some(limit), Overlap::Skip) => {
                let first = self.state.at(&key).next();
                let first = first.map(|first| first.run.to_string()).unwrap_or_default();
                Some(format!("at most {limit} at once, and {first} is still running").into())
            }
            (None, _, Overlap::Queue | Overlap::Cancel) | (None, None, Overlap::Skip) => None,
        };
        if let Some(because) = because {
            let fired = Fired { trigger, due, next, came: Came::Skipped { because } };
            return self.emit(CoordinatorWhat::Fired(Box::new(fired)));
        }
        let claim = runs_max.map(|limit| Claim::Slot { key: key.clone(), limit, full: Full::Wait });
        // A run that may have to wait asks for its slot itself; any other run holds it from now on.
        let (held, claims) = match overlap {
            Overlap::Skip => (claim, Vec::new()),
            Overlap::Queue | Overlap::Cancel => (None, claim.into_iter().collect()),
        };
        let order = Order { run: run.clone(), plan, inputs, claims };
        let fired = Fired { trigger, due, next, came: Came::Started(order.clone()) };
        self.emit(CoordinatorWhat::Fired(Box::new(fired)));
        if overlap == Overlap::Cancel && full.is_some() {
            let under_way: BTreeSet<Asker> = self.state.at(&key).cloned().collect();
            self.replace(under_way);
        }
        if let Some(claim) = held {
            let asker = Asker::start(run, 0);
            let ask = Ask { asker, claims: vec![claim], since: self.now, ahead: 0, ancestors: Vec::new() };
            self.emit(CoordinatorWhat::Granted { asker: ask.asker.clone(), ask: Some(Box::new(ask)) });
        }
        self.turn.effects.push(CoordinatorEffect::Start(order));
    }
}
