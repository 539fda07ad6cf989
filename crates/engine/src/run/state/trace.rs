//! The part of a run's past that only readers need. A process that executes a run keeps none of it, and forgets items and
//! rounds that are done.

use super::{Instance, List, Place, State};
use crate::event::{Assignment, Decision, Undone};
use crate::keys::{Path, Timestamp};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The newest instance at each path, in the order in which the paths appeared. An item or round appears with the first
    /// event in it, however early it was opened.
    pub shown: IndexMap<Path, Place>,
    /// One for each instance, by number.
    steps: Vec<StepTrace>,
    pub conclusion: Option<Conclusion>,
    pub cancel_requested: bool,
}

/// The last end of the run. It stays known while the run is open again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusion {
    pub at: Timestamp,
    pub has_failures: bool,
    pub undone: Option<Undone>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTrace {
    /// When it was handed out or entered; unlike that of the instance, not when it asked for a slot.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Attempts that were handed out; one that only asked for a slot is not among them.
    pub attempts: u32,
    pub delays: Vec<Duration>,
    pub assignment: Option<Arc<Assignment>>,
    pub entered: Option<Box<Decision>>,
    pub decided: Option<Value>,
    pub abandoned: bool,
}

impl Trace {
    pub fn step(&self, place: Place) -> &StepTrace {
        &self.steps[place.index()]
    }

    pub(super) fn clear_decided(&mut self) {
        self.steps.iter_mut().for_each(|step| step.decided = None);
    }
}

impl StepTrace {
    /// Notes a decision that starts a step.
    pub(super) fn enter(&mut self, decision: &Decision, at: Timestamp) {
        self.entered = Some(Box::new(decision.clone()));
        self.started_at.get_or_insert(at);
    }
}

impl State {
    pub(super) fn trace(&mut self, place: Place) -> Option<&mut StepTrace> {
        self.trace.as_mut().map(|trace| &mut trace.steps[place.index()])
    }

    /// Whether instances that no decision needs anymore are given up.
    pub(super) fn forgets(&self) -> bool {
        self.trace.is_none()
    }

    /// Makes room for a new instance. It is shown at once unless it is an item or round, or inside one that is not shown.
    pub(super) fn trace_new(&mut self, place: Place, instance: &Instance, is_frame: bool) {
        let Some(trace) = &mut self.trace else { return };
        let before = trace.shown.get(&instance.path);
        let attempts = before.map_or(0, |before| trace.steps[before.index()].attempts);
        trace.steps.push(StepTrace { attempts, ..StepTrace::default() });
        let around = instance.parent.map(|parent| &self.instances.at(parent).path);
        if !is_frame && around.is_none_or(|around| trace.shown.contains_key(around)) {
            trace.shown.insert(instance.path.clone(), place);
        }
    }

    /// Shows the items and rounds around an instance to which something happens.
    pub(super) fn show(&mut self, place: Place, at: Timestamp) {
        let instance = self.instances.at(place);
        let Some(trace) = &mut self.trace else { return };
        if trace.shown.contains_key(&instance.path) {
            return;
        }
        let (parent, is_frame) = (instance.parent, instance.frame.is_some());
        if let Some(parent) = parent {
            self.show(parent, at);
        }
        if is_frame && let Some(trace) = &mut self.trace {
            let instance = self.instances.at(place);
            trace.steps[place.index()].started_at = Some(at);
            for place in [place].into_iter().chain(instance.lists.iter().flat_map(List::places)) {
                trace.shown.insert(self.instances.at(place).path.clone(), place);
            }
        }
    }
}
