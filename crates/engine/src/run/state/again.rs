//! The ways back: a failed run is opened again, a gate sends steps back, a wait gets its signal.

use super::{Because, List, Misfit, Phase, Place, Role, RunClock, Sleep, Stage, State, Within};
use crate::event::Repeated;
use crate::keys::{Path, Reason};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::Value;

impl State {
    /// Opens settled instances again: a scope continues where it was, a leaf starts over. `paths` names scopes before what is
    /// inside them.
    pub(super) fn reopen(&mut self, paths: &[Path], inputs: &Value) -> Result<(), Misfit> {
        let settled = |path: &Path| self.find(path).filter(|place| self.at(*place).is_settled());
        let places: Option<Vec<Place>> = paths.iter().map(settled).collect();
        let places = places.ok_or_else(|| Misfit::new("paths of settled steps", "another path"))?;
        self.stage = Stage::Running;
        self.units[0].inputs = inputs.clone();
        (self.stop, self.clock, self.hooks.ended) = (None, RunClock::None, false);
        self.roots.clear_ends();
        places.iter().for_each(|place| self.reopen_one(*place));
        self.look_for_cancelled(None);
        places.iter().for_each(|place| self.look_for_cancelled(Some(*place)));
        for place in places {
            match self.at(place).phase {
                Phase::Waiting => self.count_needs(place),
                _ => self.go_on(place),
            }
        }
        Ok(())
    }

    fn reopen_one(&mut self, place: Place) {
        let failed = matches!(self.at(place).outcome(), Some(Outcome::Failed(_)));
        self.failures -= u64::from(failed);
        if let Some(trace) = self.trace(place) {
            trace.ended_at = None;
        }
        let instance = self.at_mut(place);
        instance.attempts_before = instance.attempts;
        instance.stop = None;
        // What belongs to the end of it is done once more at the next end.
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

    /// What a person has cancelled stays cancelled.
    fn look_for_cancelled(&mut self, scope: Option<Place>) {
        let is_cancelled = |place: &Place| matches!(self.at(*place).outcome(), Some(Outcome::Cancelled(_)));
        let cancelled =
            self.list(scope, Role::Body).and_then(|list| list.places().find(|place| is_cancelled(place)));
        if let Some(list) = self.list_mut(scope, Role::Body) {
            list.cancelled = cancelled;
        }
    }

    /// A scope that is open again continues with the steps inside; if none is open, it is complete.
    fn go_on(&mut self, place: Place) {
        self.open_frames(place);
        if self.list(Some(place), Role::Body).is_none_or(|list| list.open == 0) {
            self.index.attention.insert(place);
        }
    }

    /// A leaf that is open again waits for what it needs and is not done.
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

    /// The steps from the one that a gate goes back to up to the gate itself are done once more, as new instances.
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
        let old = old.ok_or_else(|| self.misfit_at(gate, "a gate that asks, and steps beside it"))?;
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

    /// How many attempts were made at the same step before a gate sent it back.
    pub fn attempts_in_earlier_passes(&self, path: &Path) -> u32 {
        let Some(place) = self.find(path) else { return 0 };
        let instance = self.at(place);
        let id = &self.program(place).step(instance.step).id;
        let around = path.parent().unwrap_or_default();
        let earlier = (1..instance.pass).filter_map(|pass| self.find(&around.pass(id, pass)));
        earlier.map(|place| self.at(place).attempts).sum()
    }

    /// What has not started and needs a step that is done once more waits for it.
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

    /// A gate that sends back is over without an outcome: another instance stands in its place.
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

    /// A wait has got what it waited for.
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
