//! An index of all steps of a file, built before any of them is read: which exist, which run only to handle a failure
//! or to undo another step, and which have no dependents.

use super::flow::Input;
use super::step::{StepType, TYPES};
use crate::table::{Context, Place, Table, is_null};
use crate::text::{Kind, Node};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Spanned;

#[derive(Debug, Default)]
pub struct Roster<'a> {
    cards: IndexMap<&'a str, Card>,
    /// Whether any step has a compensation.
    pub has_compensation: bool,
}

#[derive(Debug, Default)]
pub struct Card {
    pub ty: Option<StepType>,
    /// It handles the failure of another step.
    pub recovers: bool,
    /// It undoes another step.
    pub undoes: bool,
    /// A step that is not a target depends on it.
    needed: bool,
}

impl Card {
    /// It runs only because of a failure.
    pub fn is_target(&self) -> bool {
        self.recovers || self.undoes
    }
}

impl<'a> Roster<'a> {
    pub fn of(items: &'a [Node], context: &'a Context<'a>) -> Self {
        let mut roster = Self::default();
        let steps: Vec<Table<'a>> = items.iter().filter_map(|item| table(item, context)).collect();
        for step in &steps {
            if let Some(id) = text(step, "id") {
                let ty = text(step, "type").and_then(|word| TYPES.iter().find(|(name, _)| *name == word));
                roster.cards.entry(id).or_default().ty = ty.map(|(_, ty)| *ty);
            }
        }
        for step in &steps {
            roster.note_targets(step);
        }
        for step in &steps {
            roster.note_needs(step);
        }
        roster
    }

    fn note_targets(&mut self, step: &Table<'a>) {
        let id = text(step, "id");
        let target = |key| text(step, key).filter(|to| Some(*to) != id);
        if let Some(card) = target("on_failure").and_then(|to| self.cards.get_mut(to)) {
            card.recovers = true;
        }
        if let Some(card) = target("compensate").and_then(|to| self.cards.get_mut(to)) {
            card.undoes = true;
            self.has_compensation = true;
        }
    }

    fn note_needs(&mut self, step: &Table<'a>) {
        let is_target = text(step, "id").is_some_and(|id| self.is_target(id));
        let Some(entry) = step.lookup("depends_on").filter(|_| !is_target) else { return };
        let Kind::List(items) = &entry.value.kind else { return };
        for need in items.iter().filter_map(scalar) {
            if let Some(card) = self.cards.get_mut(need) {
                card.needed = true;
            }
        }
    }

    pub fn card(&self, id: &str) -> Option<&Card> {
        self.cards.get(id)
    }

    pub fn is_target(&self, id: &str) -> bool {
        self.card(id).is_some_and(Card::is_target)
    }

    /// Whether no step can start on its own: each runs only after a failure.
    pub fn is_stuck(&self) -> bool {
        !self.cards.is_empty() && self.cards.values().all(Card::is_target)
    }

    pub fn ids(&self) -> impl Iterator<Item = &'a str> {
        self.cards.keys().copied()
    }

    /// Whether the file has a step of this type.
    pub fn has(&self, ty: StepType) -> bool {
        self.cards.values().any(|card| card.ty == Some(ty))
    }

    /// The steps whose outputs form the result of the run: those without dependents.
    pub fn last(&self) -> Vec<Arc<str>> {
        let last = self.cards.iter().filter(|(_, card)| !card.needed && !card.is_target());
        last.map(|(id, _)| Arc::from(*id)).collect()
    }

    /// The input of a step that depends on `needs`.
    pub fn input(&self, id: &str, needs: &[Spanned<Arc<str>>]) -> Input {
        let card = self.card(id);
        match (card.is_some_and(|card| card.recovers), card.is_some_and(|card| card.undoes)) {
            (true, true) => return Input::FailureOrUndo,
            (true, false) => return Input::Failure,
            (false, true) => return Input::Undo,
            (false, false) => {}
        }
        let is_before =
            |need: &&Spanned<Arc<str>>| *need.value != *id && self.cards.contains_key(&*need.value);
        let known = needs.iter().filter(is_before);
        let mut known: Vec<Arc<str>> = known.map(|need| need.value.clone()).collect();
        match known.len() {
            0 => Input::Run,
            1 => Input::Step(known.swap_remove(0)),
            _ => Input::Several(known),
        }
    }
}

fn table<'a>(node: &'a Node, context: &'a Context<'a>) -> Option<Table<'a>> {
    match &node.kind {
        Kind::Map(map) => Some(Table::new(context, map, node.span, Place::default())),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

/// The text of a key, if it is not empty.
fn text<'a>(table: &Table<'a>, key: &str) -> Option<&'a str> {
    scalar(&table.lookup(key)?.value)
}

pub fn scalar(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(scalar) if !is_null(node) => Some(&*scalar.text).filter(|text| !text.is_empty()),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => None,
    }
}
