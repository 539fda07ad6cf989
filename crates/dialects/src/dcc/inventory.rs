//! An index of all steps of a file and their order, built before the first step is read, because a reference may name
//! a step further down.

use super::inputs;
use super::table::is_null;
use crate::text::{Kind, Mapping, Node};
use indexmap::IndexMap;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use windlass_ir::suggest::GUESSES_MAX;
use windlass_ir::workflow::Parameter;

#[derive(Debug, Default)]
pub struct Inventory {
    steps: Vec<Known>,
    by_id: HashMap<Arc<str>, usize>,
    lists: usize,
    /// The inputs that the file declares.
    pub parameters: IndexMap<Arc<str>, Parameter>,
    /// Every key in the place where inputs are declared, whether it is an input or only describes one.
    pub input_words: HashSet<Arc<str>>,
    /// How many suggestions have been looked up.
    guessed: Cell<usize>,
}

/// The position of a step, or of a branch that is a list.
#[derive(Clone, Copy, Debug)]
struct Known {
    parent: Option<usize>,
    list: usize,
    place: usize,
    /// Whether the steps of its list run one after the other.
    in_order: bool,
}

impl Inventory {
    pub fn of(top: &Mapping) -> Self {
        let declared = top.get("inputs").map(|entry| &entry.value);
        let mut inventory = Self {
            parameters: declared.map(inputs::parameters).unwrap_or_default(),
            input_words: declared.map(inputs::words).unwrap_or_default(),
            ..Self::default()
        };
        inventory.list(top.get("steps").map(|entry| &entry.value), None, true);
        inventory
    }

    pub fn has_step(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// All ids, for suggestions; empty once enough suggestions have been made.
    pub fn step_ids(&self) -> impl Iterator<Item = &str> {
        let guessed = self.guessed.replace(self.guessed.get() + 1);
        let ids = (guessed < GUESSES_MAX).then(|| self.by_id.keys().map(|id| &**id));
        ids.into_iter().flatten()
    }

    /// Whether the step `first` is always done when `second` starts.
    pub fn is_before(&self, first: &str, second: &str) -> bool {
        let chain = |id: &str| {
            std::iter::successors(self.by_id.get(id).copied(), |at| self.steps[*at].parent)
                .map(|at| self.steps[at])
        };
        let around: HashMap<usize, Known> = chain(second).map(|known| (known.list, known)).collect();
        let beside = chain(first).find_map(|known| Some((known, around.get(&known.list)?)));
        beside.is_some_and(|(first, second)| first.in_order && first.place < second.place)
    }

    fn list(&mut self, node: Option<&Node>, parent: Option<usize>, in_order: bool) {
        let Some(Node { kind: Kind::List(items), .. }) = node else { return };
        let list = self.lists;
        self.lists += 1;
        for (place, item) in items.iter().enumerate() {
            let at = self.steps.len();
            self.steps.push(Known { parent, list, place, in_order });
            match &item.kind {
                Kind::Map(step) => self.step(step, at),
                Kind::List(_) => self.list(Some(item), Some(at), true),
                Kind::Scalar(_) => {}
            }
        }
    }

    fn step(&mut self, step: &Mapping, at: usize) {
        let value = |key: &str| step.get(key).map(|entry| &entry.value).filter(|node| !is_null(node));
        let text = |key: &str| match value(key).map(|node| &node.kind) {
            Some(Kind::Scalar(scalar)) => Some(scalar.text.clone()),
            Some(Kind::List(_) | Kind::Map(_)) | None => None,
        };
        if let Some(id) = text("id").filter(|id| !id.is_empty()) {
            self.by_id.entry(id).or_insert(at);
        }
        let in_order = text("kind").as_deref() != Some("parallel");
        self.list(value("steps"), Some(at), in_order);
        self.list(value("branches"), Some(at), false);
        self.list(value("then"), Some(at), true);
        self.list(value("else"), Some(at), true);
    }
}
