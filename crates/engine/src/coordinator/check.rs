//! Events that cannot happen in the current state of the coordinator: the journal was edited, or two processes wrote it.

use super::claim::Asker;
use super::event::{Address, CoordinatorWhat};
use super::state::State;
use crate::keys::Path;
use crate::run::Contradiction;

const REQUEST: &str = "a queued request";

impl State {
    /// Whether an event can follow the events before it.
    pub(super) fn check(&self, what: &CoordinatorWhat) -> Result<(), Contradiction> {
        match what {
            CoordinatorWhat::Queued { ask, .. } => {
                let is_new = !self.waits(&ask.asker) && !self.holds(&ask.asker);
                need(is_new, "queued", &ask.asker.path, "a new request")
            }
            CoordinatorWhat::Moved { asker, .. } => need(self.waits(asker), "moved", &asker.path, REQUEST),
            CoordinatorWhat::Granted { asker, ask } => {
                let is_open = !self.holds(asker) && (ask.is_some() || self.waits(asker));
                need(is_open, "granted", &asker.path, "an open request")
            }
            CoordinatorWhat::Withdrawn { asker } => {
                need(self.waits(asker), "withdrawn", &asker.path, REQUEST)
            }
            CoordinatorWhat::Replaced { asker } => {
                let is_known = self.holds(asker) || self.waits(asker);
                need(is_known, "replaced", &asker.path, "an open or granted request")
            }
            CoordinatorWhat::Released { asker, .. } => {
                need(self.holds(asker), "released", &asker.path, "a granted request")
            }
            CoordinatorWhat::KeysFreed { run, path } => {
                let owns = self.key_owners.contains_key(&(run.clone(), path.clone()));
                need(owns, "keys_freed", path, "a step that owns keys")
            }
            CoordinatorWhat::Unsubscribed { run, path } => {
                let address = Address { run: run.clone(), path: path.clone() };
                need(self.subscribed.contains_key(&address), "unsubscribed", path, "a subscription")
            }
            CoordinatorWhat::Acknowledged { id, to } => {
                let mut messages = self.deliveries.get(to).into_iter().flatten();
                let is_owed = messages.any(|message| message.id == *id);
                need(is_owed, "acknowledged", &to.path, "an undelivered message")
            }
            CoordinatorWhat::Arrived { run } => {
                need(self.orders.contains_key(run), "arrived", &Path::default(), "a run that was ordered")
            }
            CoordinatorWhat::Snapshot
            | CoordinatorWhat::Kept { .. }
            | CoordinatorWhat::KeyTaken { .. }
            | CoordinatorWhat::RateIs { .. }
            | CoordinatorWhat::BudgetIs { .. }
            | CoordinatorWhat::Subscribed(_)
            | CoordinatorWhat::Published { .. }
            | CoordinatorWhat::Fired(_)
            | CoordinatorWhat::Retired => Ok(()),
        }
    }

    fn waits(&self, asker: &Asker) -> bool {
        self.waiting.contains_key(asker)
    }

    fn holds(&self, asker: &Asker) -> bool {
        self.holds.contains_key(asker)
    }
}

fn need(fits: bool, event: &'static str, path: &Path, expected: &'static str) -> Result<(), Contradiction> {
    let contradiction = || Contradiction { event, path: path.clone(), expected, found: "none".into() };
    if fits { Ok(()) } else { Err(contradiction()) }
}
