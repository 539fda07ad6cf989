//! Messages that name no run: whoever listens at that moment gets each of them once.

use super::DeskEffect;
use super::Turn;
use super::event::{Address, DeskWhat, Listener};
use super::state::Letter;
use crate::run::fits;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_ir::Value;

impl Turn<'_> {
    pub(super) fn listen(&mut self, listener: Listener) {
        let known = self.state.listeners.get(&listener.name).is_some_and(|known| known.contains(&listener));
        let owed = self.state.letters.contains_key(&listener.address);
        if !known && !owed {
            self.emit(DeskWhat::Listening(Box::new(listener)));
        }
    }

    pub(super) fn deaf(&mut self, address: Address) {
        if self.state.ears.contains_key(&address) {
            self.emit(DeskWhat::Deaf { run: address.run, path: address.path });
        }
    }

    pub(super) fn published(&mut self, id: Arc<str>, name: Arc<str>, by: Arc<str>, value: Value) {
        if self.state.messages.contains(&id) {
            return;
        }
        let listens = |listener: &&Listener| {
            listener.until.is_none_or(|until| until > self.now)
                && fits(&listener.matching, &value, listener.as_text)
        };
        let listeners = self.state.listeners.get(&name).into_iter().flatten().filter(listens);
        let to: BTreeSet<Address> = listeners.map(|listener| listener.address.clone()).collect();
        let to: Vec<Address> = to.into_iter().collect();
        let letter = Letter { id: id.clone(), name: name.clone(), by: by.clone(), value: value.clone() };
        self.emit(DeskWhat::Published { id, name, by, value, to: to.clone() });
        let effects = to.into_iter().map(|to| DeskEffect::Deliver { to, letter: letter.clone() });
        self.turn.effects.extend(effects);
    }

    pub(super) fn heard(&mut self, id: Arc<str>, to: Address) {
        let owed = self.state.letters.get(&to).is_some_and(|letters| letters.iter().any(|it| it.id == id));
        if owed {
            self.emit(DeskWhat::Heard { id, to });
        }
    }
}
