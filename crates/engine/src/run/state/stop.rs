//! Two ways to stop early: *drain* starts no more steps but lets running ones finish, and *unwind* also aborts
//! running ones.

use super::{Abort, Attempt, Doing, Phase, Place, Role, State, Within};
use crate::keys::Reason;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    /// Abort running steps, too.
    pub unwind: bool,
    pub timed_out: bool,
    /// A person asked for it, so the step stays canceled when the run is reopened.
    pub by_person: bool,
    pub why: Arc<str>,
}

impl Stop {
    pub fn drain(why: impl Into<Arc<str>>) -> Self {
        Self { unwind: false, timed_out: false, by_person: false, why: why.into() }
    }

    pub fn unwind(why: impl Into<Arc<str>>) -> Self {
        Self { unwind: true, timed_out: false, by_person: false, why: why.into() }
    }
}

impl State {
    /// Stops the whole run. A second stop also cancels `finally` and undo steps.
    pub(super) fn stop_run(&mut self, stop: &Stop) {
        (self.paused, self.interrupted) = (false, false);
        let again = self.stop.as_ref().is_some_and(|before| before.unwind);
        if again {
            let undoing: Vec<Place> = self.undo.under_way.values().copied().collect();
            undoing.into_iter().for_each(|place| self.stop_list(Some(place), Role::Undo, stop));
            self.undo.steps.clear();
        }
        if !again {
            self.stop = Some(stop.clone());
        }
        self.stop_scope(None, stop);
        if again {
            self.stop_ends(None, stop);
        }
    }

    /// Stops `finally` steps, too.
    fn stop_ends(&mut self, scope: Option<Place>, stop: &Stop) {
        let active: Vec<Place> = match scope {
            None => self.roots.active.iter().copied().collect(),
            Some(place) => self.at(place).lists.iter().flat_map(|list| list.active.iter().copied()).collect(),
        };
        if scope.is_some() {
            self.stop_list(scope, Role::Finally, stop);
        }
        active.into_iter().for_each(|place| self.stop_ends(Some(place), stop));
    }

    /// Starts no more steps in a scope and the scopes inside it.
    pub(super) fn stop_scope(&mut self, scope: Option<Place>, stop: &Stop) {
        self.stop_list(scope, Role::Body, stop);
        self.stop_list(scope, Role::TakeOver, stop);
    }

    pub(super) fn stop_list(&mut self, scope: Option<Place>, role: Role, stop: &Stop) {
        let Some(list) = self.list_mut(scope, role) else { return };
        list.draining = true;
        let open: Vec<Place> = list.unstarted.iter().chain(&list.active).copied().collect();
        open.into_iter().for_each(|place| self.stop_instance(place, stop));
    }

    pub(super) fn stop_instance(&mut self, place: Place, stop: &Stop) {
        let instance = self.at_mut(place);
        if instance.is_settled() {
            return;
        }
        // Unwinding overrides draining.
        if instance.stop.as_ref().is_none_or(|before| stop.unwind && !before.unwind) {
            instance.stop = Some(stop.clone());
        }
        match &mut instance.phase {
            Phase::Waiting | Phase::Ready | Phase::Gate(_) | Phase::Wait(_) | Phase::Joined(_) => {
                self.index.stopping.insert(place);
            }
            Phase::Attempt(Attempt { doing, .. }) if stop.unwind => match doing {
                Doing::Running => {
                    self.set_doing(place, Doing::Aborting(Abort::Cancel));
                    self.timers.cancel(place, Reason::Timeout);
                }
                // The grace period has begun or is about to.
                Doing::Aborting(abort) => *abort = Abort::Cancel,
                Doing::Asking { .. } | Doing::Between { .. } => {
                    self.index.stopping.insert(place);
                }
            },
            Phase::Attempt(Attempt { doing: Doing::Asking { .. }, .. })
                if instance.rounds == 0 && instance.attempts == instance.attempts_before + 1 =>
            {
                // An attempt that is still queued has not begun.
                self.index.stopping.insert(place);
            }
            Phase::Attempt(_) => {}
            Phase::Entered => {
                let waits = matches!(instance.within.as_deref(), Some(Within::Items(_) | Within::Rounds(_)));
                // Only the step itself timed out, not the steps inside.
                self.stop_scope(Some(place), &Stop { timed_out: false, ..stop.clone() });
                let idle = self.list(Some(place), Role::Body).is_none_or(|list| list.open == 0);
                if waits && idle {
                    self.index.attention.insert(place);
                }
            }
            Phase::Dormant | Phase::Settled(_) => {}
        }
    }
}
