//! Errors for events that cannot happen in the current state of a run.

use super::{Doing, Phase, Place, Stage, State};
use crate::event::Event;
use crate::keys::Path;

/// An event that cannot happen to its run: the journal belongs to another plan, or it was edited. In a live run it is
/// a bug in the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event `{event}` at {path} contradicts the events before it: expected {expected}, found {found}")]
pub struct Contradiction {
    pub event: &'static str,
    pub path: Path,
    pub expected: &'static str,
    pub found: String,
}

/// The state that an event needs, and the actual one.
#[derive(Debug)]
pub(super) struct Misfit {
    expected: &'static str,
    found: String,
}

impl Misfit {
    pub(super) fn new(expected: &'static str, found: impl Into<String>) -> Self {
        Self { expected, found: found.into() }
    }

    pub(super) fn at(self, event: &Event) -> Contradiction {
        let Self { expected, found } = self;
        let path = event.what.path().cloned().unwrap_or_default();
        Contradiction { event: event.what.word(), path, expected, found }
    }
}

impl State {
    pub(super) fn need(&self, fits: bool, expected: &'static str) -> Result<(), Misfit> {
        if fits { Ok(()) } else { Err(self.misfit(expected)) }
    }

    pub(super) fn need_at(&self, place: Place, fits: bool, expected: &'static str) -> Result<(), Misfit> {
        if fits { Ok(()) } else { Err(self.misfit_at(place, expected)) }
    }

    pub(super) fn misfit(&self, expected: &'static str) -> Misfit {
        let found = match self.stage {
            Stage::New => "a run that has not started",
            Stage::Running => "a run in progress",
            Stage::Concluded(_) => "a run that has ended",
            Stage::Closed(_) => "a closed journal",
        };
        Misfit::new(expected, found)
    }

    pub(super) fn misfit_at(&self, place: Place, expected: &'static str) -> Misfit {
        let instance = self.at(place);
        let doing = match &instance.phase {
            Phase::Dormant => "dormant",
            Phase::Waiting => "waiting for other steps",
            Phase::Ready => "ready to start",
            Phase::Attempt(attempt) => match attempt.doing {
                Doing::Asking { .. } => "queued",
                Doing::Running => "running",
                Doing::Aborting(_) => "being stopped",
                Doing::Between { .. } => "between two attempts",
            },
            Phase::Gate(_) => "an open gate",
            Phase::Wait(_) => "waiting for time or a signal",
            Phase::Joined(_) => "waiting for a step with the same key",
            Phase::Entered => "in progress with inner steps",
            Phase::Settled(_) => "settled",
        };
        let step = &self.program(place).step(instance.step).id;
        Misfit::new(expected, format!("`{step}`, which is {doing}"))
    }
}
