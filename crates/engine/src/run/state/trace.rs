//! History that only readers need. A process that executes a run keeps none of it, and forgets finished items and
//! rounds.

use super::{Instance, List, Place, State};
use crate::event::{Assignment, Decision, Undone};
use crate::keys::{Path, Timestamp};
use crate::outcome::{Failure, Outcome};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::{Duration, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The newest instance at each path, in order of appearance. An item or round appears with its first event, not
    /// when it is opened.
    pub shown: IndexMap<Path, Place>,
    /// By instance number.
    steps: Vec<StepTrace>,
    pub conclusion: Option<Conclusion>,
    /// The first request to cancel the run.
    pub cancel: Option<CancelRequest>,
    /// In the order in which they started.
    pub hooks: IndexMap<Path, HookTrace>,
}

/// Who canceled a run, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelRequest {
    pub by: Arc<str>,
    pub why: Arc<str>,
    pub at: Timestamp,
}

/// A hook. One that could not be rendered has no work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookTrace {
    pub assignment: Option<Arc<Assignment>>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub outcome: Option<Outcome>,
}

/// An attempt that failed and was followed by another one.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    pub attempt: u32,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub failure: Failure,
    /// Until the next attempt.
    pub delay: Duration,
}

/// A decision at a gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateVote {
    pub by: Arc<str>,
    pub at: Timestamp,
    /// What the gate returns for it.
    pub value: Value,
}

/// The last end of the run. It remains after the run is reopened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conclusion {
    pub at: Timestamp,
    pub has_failures: bool,
    pub undone: Option<Undone>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTrace {
    /// When it was dispatched or entered. Unlike that of the instance, not when it asked for a slot.
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Dispatched attempts, not those that only asked for a slot.
    pub attempts: u32,
    pub delays: Vec<Duration>,
    /// When the last attempt was dispatched.
    pub attempt_at: Option<Timestamp>,
    pub failures: Vec<FailedAttempt>,
    pub votes: Vec<GateVote>,
    /// Windlass began to undo it.
    pub is_undone: bool,
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
    /// Records a decision that starts a step.
    pub(super) fn enter(&mut self, decision: &Decision, at: Timestamp) {
        self.entered = Some(Box::new(decision.clone()));
        self.started_at.get_or_insert(at);
    }
}

impl State {
    pub(super) fn trace(&mut self, place: Place) -> Option<&mut StepTrace> {
        self.trace.as_mut().map(|trace| &mut trace.steps[place.index()])
    }

    /// Whether to forget instances that no decision needs.
    pub(super) fn forgets(&self) -> bool {
        self.trace.is_none()
    }

    /// Adds an instance. It is shown at once, unless it is an item or round, or inside one that is not shown.
    pub(super) fn trace_new(&mut self, place: Place, instance: &Instance, is_frame: bool) {
        let Some(trace) = &mut self.trace else { return };
        let before = trace.shown.get(&instance.path);
        // What happened before a gate sent the step back stays visible.
        let fresh = before.map_or_else(StepTrace::default, |before| {
            let StepTrace { attempts, failures, votes, .. } = &trace.steps[before.index()];
            StepTrace {
                attempts: *attempts,
                failures: failures.clone(),
                votes: votes.clone(),
                ..StepTrace::default()
            }
        });
        trace.steps.push(fresh);
        let around = instance.parent.map(|parent| &self.instances.at(parent).path);
        if !is_frame && around.is_none_or(|around| trace.shown.contains_key(around)) {
            trace.shown.insert(instance.path.clone(), place);
        }
    }

    /// Shows the items and rounds around an instance after its first event.
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
