//! Sets of instances by what they wait for. An instance belongs to sets according to its phase, and only this module
//! updates them. `attention`, `stopping` and `delayed` also depend on events; settling an instance removes it from
//! all three.

use super::{Attempt, Doing, Phase, Place, State};
use crate::run::program::Lane;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// Instances that can start, in order of creation, by the limits that apply to them.
    pub ready: BTreeSet<Place>,
    pub ready_actions: BTreeSet<Place>,
    pub ready_agents: BTreeSet<Place>,
    /// Steps whose next attempt is due. They keep their slot, so they wait for no other step.
    pub due: BTreeSet<Place>,
    /// Running attempts, and steps between two attempts.
    pub jobs: BTreeSet<Place>,
    /// The number of agents among them.
    pub agents: u32,
    /// Attempts that wait for the coordinator.
    pub waiting: BTreeSet<Place>,
    /// Aborted attempts without a grace timer.
    pub ungraced: BTreeSet<Place>,
    /// Gates that wait for a decision.
    pub asking: BTreeSet<Place>,
    /// Open waits.
    pub sleeping: BTreeSet<Place>,
    /// Instances to settle as canceled.
    pub stopping: BTreeSet<Place>,
    /// Instances to look at: complete scopes, gates and waits that timed out, and attempts whose grace period is
    /// over.
    pub attention: BTreeSet<Place>,
    /// Loops between two rounds.
    pub delayed: BTreeSet<Place>,
}

impl Index {
    fn lane(&mut self, lane: Lane) -> &mut BTreeSet<Place> {
        match lane {
            Lane::Free => &mut self.ready,
            Lane::Actions => &mut self.ready_actions,
            Lane::Agents => &mut self.ready_agents,
        }
    }

    fn leave(&mut self, place: Place, lane: Lane, phase: &Phase) {
        match phase {
            Phase::Ready | Phase::Joined(_) => drop(self.lane(lane).remove(&place)),
            Phase::Attempt(attempt) => {
                self.jobs.remove(&place);
                self.agents -= u32::from(lane == Lane::Agents);
                self.stop_doing(place, &attempt.doing);
            }
            Phase::Gate(_) => drop(self.asking.remove(&place)),
            Phase::Wait(_) => drop(self.sleeping.remove(&place)),
            Phase::Dormant | Phase::Waiting | Phase::Entered | Phase::Settled(_) => {}
        }
    }

    fn enter(&mut self, place: Place, lane: Lane, phase: &Phase) {
        match phase {
            Phase::Ready => drop(self.lane(lane).insert(place)),
            Phase::Attempt(attempt) => {
                self.jobs.insert(place);
                self.agents += u32::from(lane == Lane::Agents);
                self.start_doing(place, &attempt.doing);
            }
            Phase::Gate(_) => drop(self.asking.insert(place)),
            Phase::Wait(_) => drop(self.sleeping.insert(place)),
            Phase::Settled(_) => {
                self.stopping.remove(&place);
                self.attention.remove(&place);
                self.delayed.remove(&place);
            }
            Phase::Dormant | Phase::Waiting | Phase::Joined(_) | Phase::Entered => {}
        }
    }

    fn stop_doing(&mut self, place: Place, doing: &Doing) {
        match doing {
            Doing::Asking { granted: false } => drop(self.waiting.remove(&place)),
            Doing::Asking { granted: true } | Doing::Between { due: true, .. } => {
                self.due.remove(&place);
            }
            Doing::Aborting(_) => drop(self.ungraced.remove(&place)),
            Doing::Running | Doing::Between { due: false, .. } => {}
        }
    }

    fn start_doing(&mut self, place: Place, doing: &Doing) {
        match doing {
            Doing::Asking { granted: false } => drop(self.waiting.insert(place)),
            Doing::Asking { granted: true } | Doing::Between { due: true, .. } => {
                self.due.insert(place);
            }
            Doing::Aborting(_) => drop(self.ungraced.insert(place)),
            Doing::Running | Doing::Between { due: false, .. } => {}
        }
    }
}

impl State {
    /// The only way to change the phase of an instance.
    pub(super) fn set_phase(&mut self, place: Place, phase: Phase) {
        let lane = self.program(place).lane(self.at(place).step);
        let instance = self.instances.at_mut(place);
        self.index.leave(place, lane, &instance.phase);
        self.index.enter(place, lane, &phase);
        instance.phase = phase;
    }

    /// The only way to change the activity of an attempt.
    pub(super) fn set_doing(&mut self, place: Place, doing: Doing) {
        if let Phase::Attempt(Attempt { doing: before, .. }) = &mut self.instances.at_mut(place).phase {
            self.index.stop_doing(place, before);
            self.index.start_doing(place, &doing);
            *before = doing;
        }
    }

    /// Lets a step that waited for another one with the same key do the work itself.
    pub(super) fn make_startable(&mut self, place: Place) {
        let lane = self.program(place).lane(self.at(place).step);
        self.index.lane(lane).insert(place);
    }
}
