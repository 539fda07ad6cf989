//! Resolves a step to the instance that another instance can read.

use super::{Place, State};
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;

impl State {
    /// Stores an instance as the last one of its step, for lookup by name.
    pub(super) fn note_seen(&mut self, place: Place) {
        let instance = self.at(place);
        let (unit, step) = (instance.unit, instance.step);
        if instance.frame.is_some() || !self.program(place).is_flat() {
            return;
        }
        let mut here = place;
        while let Some(parent) = self.at(here).parent {
            let around = self.at_mut(parent);
            if around.unit != unit {
                break;
            }
            if around.frame.is_some() {
                if let Some(seen) = &mut around.seen {
                    seen.insert(step, place);
                }
                if matches!(self.kind(parent), Kind::ForEach(each) if each.isolated) {
                    return;
                }
            }
            here = parent;
        }
        self.units[unit as usize].latest.insert(step, place);
    }

    /// The instance of a step that a reader sees. With `inside`, the reader looks from inside its own scope.
    pub fn seen_from(&self, from: Option<Place>, inside: bool, step: StepId) -> Option<Place> {
        let unit = self.unit(from);
        match unit.program.is_flat() {
            true => self.seen_by_name(from, step),
            false => self.seen_in_scope(from, inside, step),
        }
    }

    fn seen_by_name(&self, from: Option<Place>, step: StepId) -> Option<Place> {
        let unit = self.unit(from);
        let number = from.map_or(0, |from| self.at(from).unit);
        let mut here = from;
        while let Some(place) = here {
            let instance = self.at(place);
            if instance.unit != number {
                break;
            }
            if let (Some(_), Kind::ForEach(each)) = (instance.frame, self.kind(place))
                && unit.program.is_inside(step, instance.step)
            {
                if let Some(found) = instance.seen.as_ref().and_then(|seen| seen.get(&step)) {
                    return Some(*found);
                }
                // Concurrent items do not see each other.
                if each.isolated || each.concurrency != Some(1) {
                    return None;
                }
            }
            here = instance.parent;
        }
        unit.latest.get(&step).copied()
    }

    fn seen_in_scope(&self, from: Option<Place>, inside: bool, step: StepId) -> Option<Place> {
        let unit = from.map_or(0, |from| self.at(from).unit);
        let program = &self.units[unit as usize].program;
        let wanted = program.step(step).parent;
        let mut scope = if inside { from } else { from.and_then(|from| self.at(from).parent) };
        let mut reader = from;
        loop {
            let owner = scope.filter(|scope| self.at(*scope).unit == unit).map(|scope| self.at(scope).step);
            if owner == wanted {
                let lists = match scope {
                    None => std::slice::from_ref(&self.roots),
                    Some(scope) => &self.at(scope).lists,
                };
                let planned = reader.and_then(|reader| self.planned_beside(reader, step));
                let listed = lists.iter().filter_map(|list| list.place(program.place(step)));
                let found = |place: &Place| self.at(*place).step == step && self.at(*place).unit == unit;
                return planned.or_else(|| listed.into_iter().find(found));
            }
            let inner = scope?;
            (reader, scope) = (scope, self.at(inner).parent);
        }
    }

    fn planned_beside(&self, reader: Place, step: StepId) -> Option<Place> {
        self.unit(Some(reader)).planned.and_then(|_| self.beside(reader, step))
    }
}
