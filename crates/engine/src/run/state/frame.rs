//! Items and rounds. Each is an instance of the loop or fan-out, with the steps of the body inside.

use super::{Items, List, Misfit, Phase, Place, Role, Rounds, State, Within};
use crate::keys::Timestamp;
use crate::outcome::Outcome;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;

impl State {
    pub(super) fn enter_items(
        &mut self,
        place: Place,
        items: &Arc<[Value]>,
        at_once: Option<u32>,
        in_order: bool,
        at: Timestamp,
    ) {
        let (items, results) = (items.clone(), BTreeMap::new());
        let within = Items { items, at_once, in_order, next: 0, results, collected: 0, failed: None };
        self.enter(place, Within::Items(within), at);
        self.open_list(Some(place), Role::Body, self.at(place).unit, &[]);
        self.open_frames(place);
    }

    fn has_halted(&self, place: Place) -> bool {
        self.list(Some(place), Role::Body).is_some_and(|list| list.halted.is_some())
    }

    /// Opens as many items as may run at once.
    pub(super) fn open_frames(&mut self, place: Place) {
        loop {
            let open = self.list(Some(place), Role::Body).map_or(0, |list| list.open);
            let stopped = self.stop_of(place).is_some() || self.has_halted(place);
            let Some(Within::Items(items)) = self.at_mut(place).within.as_deref_mut() else { return };
            let next = items.next;
            let taken = if items.in_order { next - items.collected } else { open };
            let room = items.at_once.is_none_or(|limit| taken < limit);
            if next as usize >= items.items.len() || !room || stopped {
                return;
            }
            items.next += 1;
            self.open_frame(place, next);
        }
    }

    pub(super) fn enter_round(
        &mut self,
        place: Place,
        number: u32,
        value: &Value,
        at: Timestamp,
    ) -> Result<(), Misfit> {
        let is_over = self.at(place).phase == Phase::Entered && self.is_done_inside(place);
        let instance = self.at_mut(place);
        match instance.within.as_deref_mut() {
            Some(Within::Rounds(rounds)) if is_over && rounds.begun == number => {
                (rounds.begun, rounds.due) = (number + 1, false);
                self.index.delayed.remove(&place);
            }
            None if instance.phase == Phase::Ready && number == 0 => {
                let within = Rounds { begun: 1, last: None, value: value.clone(), due: false };
                self.enter(place, Within::Rounds(within), at);
                self.open_list(Some(place), Role::Body, self.at(place).unit, &[]);
            }
            Some(_) | None => return Err(self.misfit_at(place, "a loop before its next round")),
        }
        let frame = self.open_frame(place, number);
        let before = match self.at_mut(place).within.as_deref_mut() {
            Some(Within::Rounds(rounds)) => rounds.last.replace(frame),
            _ => None,
        };
        if self.forgets() {
            before.into_iter().for_each(|round| self.forget(round));
        }
        Ok(())
    }

    fn open_frame(&mut self, place: Place, number: u32) -> Place {
        let (unit, step) = (self.at(place).unit, self.at(place).step);
        let path = self.at(place).path.frame(number);
        let frame = self.add_frame(unit, step, path, place);
        let remembers = self.program(place).remembers(step);
        let is_kept = self.kept.contains_key(&self.at(frame).path);
        let instance = self.at_mut(frame);
        (instance.frame, instance.within) = (Some(number), Some(Box::new(Within::Steps)));
        instance.seen = remembers.then(HashMap::new);
        self.set_phase(frame, Phase::Entered);
        if let Some(list) = self.list_mut(Some(place), Role::Body) {
            list.add_frame(frame);
        }
        let body: Vec<StepId> = match self.kind(place) {
            Kind::ForEach(each) => each.body.clone(),
            Kind::Repeat(repeat) => repeat.body.clone(),
            _ => Vec::new(),
        };
        // A kept item settles as a whole.
        self.open_list(Some(frame), Role::Body, unit, if is_kept { &[] } else { &body });
        self.index.attention.remove(&place);
        frame
    }

    /// Stores the result of an item or round, and opens the next item.
    pub(super) fn frame_settled(&mut self, frame: Place) {
        let instance = self.at(frame);
        let (Some(number), Some(place)) = (instance.frame, instance.parent) else { return };
        let (result, failed) = match instance.outcome() {
            Some(Outcome::Done(value)) => (Some(value.clone()), false),
            Some(Outcome::Failed(_)) => (None, true),
            Some(Outcome::Continue(_) | Outcome::Skipped(_) | Outcome::Cancelled(_)) | None => (None, false),
        };
        if result.is_some() && self.forgets() && !self.program(frame).can_undo() {
            // The lookup by name is only for steps inside the item.
            self.at_mut(frame).seen = None;
        }
        if let Some(Within::Items(items)) = self.at_mut(place).within.as_deref_mut() {
            items.results.extend(result.map(|value| (number, value)));
            while items.results.contains_key(&items.collected) {
                items.collected += 1;
            }
            if failed {
                items.failed = Some(items.failed.map_or(number, |before| before.min(number)));
            }
        }
        self.open_frames(place);
        if self.forgets() && matches!(self.kind(place), Kind::ForEach(_)) {
            // Decisions after this event may still read the item, which may be the last reopened one.
            let before = self.done_item.replace(frame).filter(|before| *before != frame);
            before.into_iter().for_each(|item| self.forget(item));
        }
    }

    /// Frees the memory of a finished item or round if only its result is still needed.
    fn forget(&mut self, frame: Place) {
        let instance = self.at(frame);
        let Some(parent) = instance.parent else { return };
        let is_done = matches!(instance.outcome(), Some(Outcome::Done(_)));
        if !is_done || !self.program(frame).forgets(instance.step) {
            return;
        }
        let (unit, mut inside, mut seen) = (instance.unit, vec![frame], 0);
        while let Some(place) = inside.get(seen) {
            let instance = self.at(*place);
            // An open step may still report, and granted resources must be released with its result.
            let is_over = matches!(instance.phase, Phase::Settled(_) | Phase::Dormant);
            if !is_over || instance.unit != unit || instance.asks > 0 {
                return;
            }
            inside.extend(instance.lists.iter().flat_map(List::places));
            seen += 1;
        }
        for place in inside {
            if let Some(instance) = self.instances.forget(place) {
                self.by_path.remove(&instance.path);
            }
        }
        if let Some(list) = self.list_mut(Some(parent), Role::Body) {
            list.forget_frame(frame);
        }
    }
}
