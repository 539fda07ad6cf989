//! The instances that something can move on, by what moves them. Which sets an instance is in follows from its phase, and only
//! this file says how. `attention`, `stopping` and `delayed` also depend on what happened to it; settling ends all three.

use super::{Attempt, Doing, Phase, Place, State};
use crate::run::program::Lane;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Index {
    /// Instances that can start, in the order in which they came into being, by what they wait for.
    pub ready: BTreeSet<Place>,
    pub ready_actions: BTreeSet<Place>,
    pub ready_agents: BTreeSet<Place>,
    /// Steps whose next attempt is due. They keep their slot, so they wait for no other step.
    pub due: BTreeSet<Place>,
    /// Attempts under way, and steps between two attempts.
    pub jobs: BTreeSet<Place>,
    /// How many of them are agents.
    pub agents: u32,
    /// Attempts that wait for what runs share.
    pub waiting: BTreeSet<Place>,
    /// Attempts that were told to stop and have no grace timer yet.
    pub ungraced: BTreeSet<Place>,
    /// Gates that ask.
    pub asking: BTreeSet<Place>,
    /// Waits that listen or sleep.
    pub sleeping: BTreeSet<Place>,
    /// Instances to be settled as canceled.
    pub stopping: BTreeSet<Place>,
    /// Instances that something happened to: scopes that are complete, gates and waits whose time is up, attempts whose grace
    /// is over.
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

    /// The only way to change what an attempt is doing.
    pub(super) fn set_doing(&mut self, place: Place, doing: Doing) {
        if let Phase::Attempt(Attempt { doing: before, .. }) = &mut self.instances.at_mut(place).phase {
            self.index.stop_doing(place, before);
            self.index.start_doing(place, &doing);
            *before = doing;
        }
    }

    /// A step that has joined another one does the work itself after all.
    pub(super) fn make_startable(&mut self, place: Place) {
        let lane = self.program(place).lane(self.at(place).step);
        self.index.lane(lane).insert(place);
    }
}
