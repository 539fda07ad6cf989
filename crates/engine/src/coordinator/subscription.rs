//! Messages that are not addressed to a run. Each current subscription receives a message once.

use super::CoordinatorEffect;
use super::Turn;
use super::event::{Address, CoordinatorWhat, Subscription};
use super::state::Message;
use crate::run::fits;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_ir::Value;

impl Turn<'_> {
    pub(super) fn subscribe(&mut self, subscription: Subscription) {
        let known = self
            .state
            .subscriptions
            .get(&subscription.name)
            .is_some_and(|known| known.contains(&subscription));
        let owed = self.state.deliveries.contains_key(&subscription.address);
        if !known && !owed {
            self.emit(CoordinatorWhat::Subscribed(Box::new(subscription)));
        }
    }

    pub(super) fn unsubscribe(&mut self, address: Address) {
        if self.state.subscribed.contains_key(&address) {
            self.emit(CoordinatorWhat::Unsubscribed { run: address.run, path: address.path });
        }
    }

    pub(super) fn published(&mut self, id: Arc<str>, name: Arc<str>, by: Arc<str>, value: Value) {
        if self.state.messages.contains(&id) {
            return;
        }
        let matches = |subscription: &&Subscription| {
            subscription.until.is_none_or(|until| until > self.now)
                && fits(&subscription.matching, &value, subscription.as_text)
        };
        let subscriptions = self.state.subscriptions.get(&name).into_iter().flatten().filter(matches);
        let to: BTreeSet<Address> = subscriptions.map(|subscription| subscription.address.clone()).collect();
        let to: Vec<Address> = to.into_iter().collect();
        let message = Message { id: id.clone(), name: name.clone(), by: by.clone(), value: value.clone() };
        self.emit(CoordinatorWhat::Published { id, name, by, value, to: to.clone() });
        let effects = to.into_iter().map(|to| CoordinatorEffect::Deliver { to, message: message.clone() });
        self.turn.effects.extend(effects);
    }

    pub(super) fn acknowledge(&mut self, id: Arc<str>, to: Address) {
        let owed =
            self.state.deliveries.get(&to).is_some_and(|deliveries| deliveries.iter().any(|it| it.id == id));
        if owed {
            self.emit(CoordinatorWhat::Acknowledged { id, to });
        }
    }
}
