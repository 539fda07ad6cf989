//! Reopening a failed run, sending steps back from a gate, and delivering signals.

use super::{Because, List, Misfit, Phase, Place, Role, RunClock, Sleep, Stage, State, Within};
use crate::event::Repeated;
use crate::keys::{Path, Reason};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::Value;

impl State {
    /// Reopens settled instances: a scope continues where it was, a leaf starts over. `paths` lists scopes before the
    /// steps inside them.
    pub(super) fn reopen(&mut self, paths: &[Path], inputs: &Value) -> Result<(), Misfit> {
        let settled = |path: &Path| self.find(path).filter(|place| self.at(*place).is_settled());
        let places: Option<Vec<Place>> = paths.iter().map(settled).collect();
        let places = places.ok_or_else(|| Misfit::new("paths of settled steps", "another path"))?;
        self.stage = Stage::Running;
        self.units[0].inputs = inputs.clone();
        (self.stop, self.clock, self.hooks.ended) = (None, RunClock::None, false);
        self.roots.clear_ends();
        places.iter().for_each(|place| self.reopen_one(*place));
        self.find_cancelled(None);
        places.iter().for_each(|place| self.find_cancelled(Some(*place)));
        for place in places {
            match self.at(place).phase {
                Phase::Waiting => self.count_needs(place),
                _ => self.continue_scope(place),
            }
        }
        Ok(())
    }

    fn reopen_one(&mut self, place: Place) {
        let failed = matches!(self.at(place).outcome(), Some(Outcome::Failed(_)));
        self.failures -= u64::from(failed);
        if let Some(trace) = self.trace(place) {
            (trace.ended_at, trace.is_undone) = (None, false);
        }
        let instance = self.at_mut(place);
        instance.attempts_before = instance.attempts;
        instance.stop = None;
        // `finally` and undo steps run again at the next end.
        instance.lists.retain(|list| list.role == Role::Body);
        instance.lists.iter_mut().for_each(List::clear_ends);
        let entered = match instance.within.as_deref_mut() {
            Some(Within::Items(items)) => {
                items.failed = None;
                true
            }
            Some(Within::Rounds(rounds)) => {
                rounds.due = false;
                true
            }
            Some(Within::Steps | Within::Arm { .. }) => true,
            Some(Within::TakenOver(_)) | None => {
                instance.within = None;
                instance.lists.clear();
                (instance.rounds, instance.started_at) = (0, None);
                false
            }
        };
        let (parent, role) = (instance.parent, instance.role);
        self.set_phase(place, if entered { Phase::Entered } else { Phase::Waiting });
        if let Some(list) = self.list_mut(parent, role) {
            list.open += 1;
            match entered {
                true => list.active.insert(place),
                false => list.unstarted.insert(place),
            };
        }
    }

    /// Steps that a person canceled stay canceled.
    fn find_cancelled(&mut self, scope: Option<Place>) {
        let is_cancelled = |place: &Place| matches!(self.at(*place).outcome(), Some(Outcome::Cancelled(_)));
        let cancelled =
            self.list(scope, Role::Body).and_then(|list| list.places().find(|place| is_cancelled(place)));
        if let Some(list) = self.list_mut(scope, Role::Body) {
            list.cancelled = cancelled;
        }
    }

    /// Continues a reopened scope with its open steps, or completes it if there are none.
    fn continue_scope(&mut self, place: Place) {
        self.open_frames(place);
        if self.list(Some(place), Role::Body).is_none_or(|list| list.open == 0) {
            self.index.attention.insert(place);
        }
    }

    /// Makes a reopened leaf wait for its open dependencies.
    fn count_needs(&mut self, place: Place) {
        if self.at(place).phase != Phase::Waiting {
            return;
        }
        let program = self.program(place).clone();
        let step = program.step(self.at(place).step);
        let counted = step.needs.iter().filter(|need| !step.takes_over && !program.step(**need).takes_over);
        let open = counted.filter_map(|need| self.beside(place, *need));
        let pending = open.filter(|need| !self.at(*need).is_settled()).count() as u32;
        self.at_mut(place).pending = pending;
        if pending == 0 {
            self.make_ready(place);
        }
    }

    /// Creates new instances of the steps from the target up to the gate.
    pub(super) fn send_back(
        &mut self,
        gate: Place,
        steps: &[Repeated],
        because: &Value,
    ) -> Result<(), Misfit> {
        let (parent, role) = (self.at(gate).parent, self.at(gate).role);
        let old = steps.iter().map(|step| {
            let place = self.find(&step.path)?;
            let instance = self.at(place);
            let is_beside = (instance.parent, instance.role) == (parent, role);
            (is_beside && instance.pass + 1 == step.pass).then_some((place, step.pass))
        });
        let asks = matches!(self.at(gate).phase, Phase::Gate(_));
        let old: Option<Vec<(Place, u32)>> = old.collect();
        let old = old.filter(|old| asks && old.iter().any(|(place, _)| *place == gate));
        let old = old.ok_or_else(|| self.misfit_at(gate, "an open gate, and steps of the same list"))?;
        self.leave_open(gate);
        let because = Arc::new(Because { failure: because.clone(), undo: Value::Null });
        let around = parent.map_or_else(Path::default, |place| self.at(place).path.clone());
        let mut new = Vec::new();
        for (place, pass) in old {
            let (unit, step) = (self.at(place).unit, self.at(place).step);
            let had_settled = self.at(place).is_settled();
            let program = self.program(place).clone();
            let again = self.add(unit, step, around.pass(&program.step(step).id, pass), parent, role);
            let sent_back = self.at(place).sent_back + u32::from(place == gate);
            let instance = self.at_mut(again);
            (instance.pass, instance.sent_back, instance.because) = (pass, sent_back, Some(because.clone()));
            self.put_instead(parent, role, program.place(step), again);
            new.push((again, had_settled));
        }
        for (place, had_settled) in &new {
            self.count_needs(*place);
            if *had_settled {
                self.wait_again(*place, &new);
            }
        }
        Ok(())
    }

    /// The number of attempts at the same step before a gate sent it back.
    pub fn attempts_in_earlier_passes(&self, path: &Path) -> u32 {
        let Some(place) = self.find(path) else { return 0 };
        let instance = self.at(place);
        let id = &self.program(place).step(instance.step).id;
        let around = path.parent().unwrap_or_default();
        let earlier = (1..instance.pass).filter_map(|pass| self.find(&around.pass(id, pass)));
        earlier.map(|place| self.at(place).attempts).sum()
    }

    /// Makes steps that have not started wait for the new instance of their dependency.
    fn wait_again(&mut self, place: Place, repeated: &[(Place, bool)]) {
        let program = self.program(place).clone();
        for dependent in program.dependents(self.at(place).step) {
            let Some(waiting) = self.beside(place, *dependent) else { continue };
            if repeated.iter().any(|(new, _)| *new == waiting) {
                continue;
            }
            let instance = self.at_mut(waiting);
            match instance.phase {
                Phase::Waiting => instance.pending += 1,
                Phase::Ready => {
                    instance.pending = 1;
                    self.set_phase(waiting, Phase::Waiting);
                }
                _ => {}
            }
        }
    }

    /// Closes a gate that sends steps back without an outcome, because a new instance replaces it.
    fn leave_open(&mut self, gate: Place) {
        self.timers.drop_all(gate);
        self.index.attention.remove(&gate);
        let (parent, role) = (self.at(gate).parent, self.at(gate).role);
        self.set_phase(gate, Phase::Dormant);
        if let Some(list) = self.list_mut(parent, role) {
            list.active.remove(&gate);
            list.open -= 1;
        }
    }

    /// Delivers a value to a wait.
    pub(super) fn got(&mut self, place: Place, value: &Value) -> Result<(), Misfit> {
        match &mut self.at_mut(place).phase {
            Phase::Wait(Sleep { signal: Some(_), got: got @ None, .. }) => *got = Some(value.clone()),
            _ => return Err(self.misfit_at(place, "a step that waits for a signal")),
        }
        self.timers.cancel(place, Reason::Wait);
        self.index.attention.insert(place);
        Ok(())
    }
}
