//! Which events a run can take, and in which of its phases a step can take them. Every legal pair is listed here; any other
//! is a contradiction, and `evolve` returns it as an error instead of skipping the event.

use super::{Abort, Attempt, Doing, Instance, Phase, Place, Role, RunClock, Stage, State, Within};
use crate::event::{Decision, Event, Repeated, Settled, What};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::Outcome;
use windlass_ir::Value;
use windlass_ir::workflow::{Action, CallMode, Kind};

/// An event that cannot happen to its run: the journal does not belong to the plan, or somebody changed it. In a live run
/// it is a bug of the engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event `{event}` at {path} contradicts the events before it: expected {expected}, found {found}")]
pub struct Contradiction {
    pub event: &'static str,
    pub path: Path,
    pub expected: &'static str,
    pub found: String,
}

/// What an event needed, and what there was instead.
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

/// Nothing, or what the event needs and does not find.
type Needs = Option<&'static str>;

fn unless(fits: bool, expected: &'static str) -> Needs {
    (!fits).then_some(expected)
}

const NEW: &str = "a step that is ready to start";
const WORKING: &str = "a step with an attempt under way";
const RUNNING: &str = "a run in progress";

impl State {
    /// Whether the run can take the event.
    pub(super) fn fits(&self, event: &Event) -> Result<(), Misfit> {
        let needs = match (&self.stage, &event.what) {
            (Stage::New, What::Started { .. }) => None,
            (Stage::New, _) => Some("a run that has started"),
            (Stage::Running, what) => self.fits_running(what, event.at),
            (Stage::Concluded(Outcome::Failed(_)), What::Reopened { .. }) => None,
            (Stage::Concluded(_), What::Closed) => unless(self.hooks.is_empty(), "no hook under way"),
            (Stage::Concluded(_), what) => {
                let is_hook = what.path().is_some_and(Path::is_hook);
                unless(is_hook, RUNNING).or_else(|| self.fits_hook(what))
            }
            (Stage::Closed(_), _) => Some("no event after the end of the journal"),
        };
        let found = match self.stage {
            Stage::New => "a run that has not started",
            Stage::Running => RUNNING,
            Stage::Concluded(_) => "a run that has ended",
            Stage::Closed(_) => "a closed journal",
        };
        needs.map_or(Ok(()), |expected| Err(Misfit::new(expected, found)))
    }

    fn fits_running(&self, what: &What, at: Timestamp) -> Needs {
        let is_run = what.path().is_some_and(Path::is_run);
        let untouched =
            self.roots.active.is_empty() && self.roots.open as usize == self.roots.unstarted.len();
        match what {
            What::Started { .. } => Some("a run that has not started"),
            What::Reopened { .. } | What::Closed => Some("a run that has ended"),
            What::Concluded { .. } => {
                let is_over = self.roots.open == 0 && !self.undoing.contains_key(&None);
                unless(is_over, "a run whose steps have all settled")
            }
            What::Kept(kept) => {
                let is_new = untouched && !self.kept.contains_key(&kept.path);
                unless(is_new, "a run that has not begun, and a path that is kept once")
            }
            What::Admitted { attempt, .. } if is_run => {
                unless(self.applies == Some(*attempt), "a run that waits to be admitted")
            }
            What::TimerSet { reason, .. } if is_run => match reason {
                Reason::Wait => unless(untouched && self.begins.is_none(), "a run that has not begun"),
                Reason::Timeout => unless(self.clock != RunClock::Over, "a run with time left"),
                Reason::Retry | Reason::Grace => Some("a timer of a step"),
            },
            What::TimerFired { reason, .. } if is_run => match reason {
                Reason::Wait => unless(self.begins.is_some_and(|begins| begins <= at), "a run that is due"),
                Reason::Timeout => {
                    let is_up = matches!(self.clock, RunClock::Until(until) if until <= at);
                    unless(is_up, "a run whose time is up")
                }
                Reason::Retry | Reason::Grace => Some("a timer of a step"),
            },
            What::Signalled { id, .. } => {
                unless(!self.signals.contains(id), "a signal that has not come before")
            }
            What::Paused { reached: true, .. } => unless(self.reach.is_some(), "a run that stops at a step"),
            What::Paused { reached: false, .. } => unless(!self.paused, "a run that is not paused"),
            What::Resumed { .. } => unless(self.paused, "a paused run"),
            What::Interrupted => unless(!self.interrupted, "a run that was not interrupted"),
            What::Continued => unless(self.interrupted, "an interrupted run"),
            What::InputsChanged { .. } | What::CancelRequested { .. } => None,
            What::Scheduled { .. } | What::Noted { .. } | What::Settled(_) => match what.path() {
                Some(path) if path.is_hook() => self.fits_hook(what),
                Some(_) | None => None,
            },
            What::Entered { .. }
            | What::Asked { .. }
            | What::Admitted { .. }
            | What::Spent { .. }
            | What::AttemptFailed { .. }
            | What::Lost { .. }
            | What::Joined { .. }
            | What::TimerSet { .. }
            | What::TimerFired { .. }
            | What::Decided { .. }
            | What::Rebound { .. }
            | What::SentBack { .. } => None,
        }
    }

    fn fits_hook(&self, what: &What) -> Needs {
        let is_begun = what.path().is_some_and(|path| self.hooks.contains_key(path));
        match what {
            What::Scheduled { assignment, .. } => {
                unless(assignment.is_some() && !is_begun, "a hook that has not begun, with its work")
            }
            What::Settled(settled) => {
                // One whose work cannot be rendered fails without having begun.
                let fails = matches!(settled.outcome, Outcome::Failed(_));
                unless(is_begun || fails, "a hook under way")
            }
            What::Noted { .. } => unless(is_begun, "a hook under way"),
            _ => Some("an event of a step"),
        }
    }

    /// The step at a path, if it can take the event.
    pub(super) fn target(&self, path: &Path, event: &Event) -> Result<Place, Misfit> {
        let place = self.find(path).ok_or_else(|| Misfit::new("a step at this path", "none"))?;
        match self.fits_step(place, event) {
            None => Ok(place),
            Some(expected) => Err(Misfit::new(expected, self.found(place))),
        }
    }

    fn found(&self, place: Place) -> String {
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
            Phase::Gate(_) => "a gate that asks",
            Phase::Wait(_) => "waiting for time or a signal",
            Phase::Joined(_) => "waiting for a step with the same key",
            Phase::Entered => "under way with steps inside",
            Phase::Settled(_) => "settled",
        };
        let step = &self.program(place).step(instance.step).id;
        format!("`{step}`, which is {doing}")
    }

    /// The one table of phases and events.
    fn fits_step(&self, place: Place, event: &Event) -> Needs {
        let instance = self.at(place);
        let phase = &instance.phase;
        let attempt = instance.attempt();
        let doing = attempt.map(|attempt| &attempt.doing);
        match &event.what {
            What::Entered { decision, .. } => self.can_enter(place, instance, decision),
            What::Scheduled { attempt, delivery, assignment, .. } => {
                let is_granted = matches!(doing, Some(Doing::Asking { granted: true }));
                let same = instance.attempt().map(|attempt| (attempt.attempt, attempt.delivery));
                match is_granted {
                    true => unless(same == Some((*attempt, *delivery)), "the attempt that was admitted"),
                    false => self.can_attempt(place, (*attempt, *delivery), assignment.is_some()),
                }
            }
            What::Asked { attempt, delivery, assignment, .. } => {
                self.can_attempt(place, (*attempt, *delivery), assignment.is_some())
            }
            What::Admitted { attempt: number, .. } => {
                let waits = matches!(doing, Some(Doing::Asking { granted: false }));
                let is_asked = instance.asked.as_ref().is_some_and(|asked| asked.number == *number);
                unless(waits && is_asked, "an attempt that waits to be admitted")
            }
            What::Spent { .. } | What::Noted { .. } => {
                unless(matches!(doing, Some(Doing::Running | Doing::Aborting(_))), WORKING)
            }
            What::AttemptFailed { attempt: number, .. } => {
                let at_work = matches!(doing, Some(Doing::Running | Doing::Aborting(Abort::Timeout)));
                let is_same = attempt.is_some_and(|attempt| attempt.attempt == *number);
                unless(at_work && is_same, "the attempt that failed")
            }
            What::Lost { attempt: number, delivery, .. } => {
                let is_same = attempt
                    .is_some_and(|attempt| (attempt.attempt, attempt.delivery) == (*number, *delivery));
                unless(is_same && matches!(doing, Some(Doing::Running)), "the delivery that was lost")
            }
            What::Joined { key, .. } => {
                let is_new = matches!(phase, Phase::Ready | Phase::Joined(_));
                unless(is_new && self.is_action(place) && self.promises.contains_key(key), NEW)
            }
            What::TimerSet { reason, .. } => self.can_set_timer(place, instance, *reason),
            What::TimerFired { reason, .. } => {
                let fits = match (phase, reason) {
                    (Phase::Attempt(attempt), Reason::Retry) => {
                        matches!(attempt.doing, Doing::Between { .. })
                    }
                    (Phase::Attempt(attempt), Reason::Timeout) => attempt.doing == Doing::Running,
                    (Phase::Attempt(attempt), Reason::Grace) => matches!(attempt.doing, Doing::Aborting(_)),
                    (Phase::Gate(_) | Phase::Wait(_), Reason::Wait)
                    | (Phase::Entered, Reason::Wait | Reason::Timeout) => true,
                    (_, _) => false,
                };
                let is_due = self.timers.at(place, *reason).is_some_and(|until| until <= event.at);
                unless(fits && is_due, "a timer that is due")
            }
            What::Decided { .. } => unless(matches!(phase, Phase::Gate(_)), "a gate that asks"),
            What::Signalled { .. } => {
                let listens =
                    matches!(phase, Phase::Wait(sleep) if sleep.signal.is_some() && sleep.got.is_none());
                unless(listens, "a step that waits for a signal")
            }
            What::CancelRequested { inside: true, .. } => {
                unless(*phase == Phase::Entered, "a step with others inside")
            }
            What::CancelRequested { inside: false, .. } => {
                let is_open = !matches!(phase, Phase::Settled(_) | Phase::Dormant);
                unless(is_open, "a step that has not settled and was called for")
            }
            What::Rebound { .. } => {
                unless(self.units.iter().any(|unit| unit.call == Some(place)), "a workflow that was called")
            }
            What::SentBack { steps, .. } => self.can_send_back(place, steps),
            What::Settled(settled) => self.can_settle(place, instance, settled, event.at),
            What::Started { .. }
            | What::Kept(_)
            | What::Paused { .. }
            | What::Resumed { .. }
            | What::Interrupted
            | What::Continued
            | What::InputsChanged { .. }
            | What::Reopened { .. }
            | What::Concluded { .. }
            | What::Closed => Some("an event of a step"),
        }
    }

    fn is_action(&self, place: Place) -> bool {
        matches!(self.kind(place), Kind::Action(_)) && self.at(place).frame.is_none()
    }

    /// Whether everything inside a scope has settled.
    fn is_done_inside(&self, place: Place) -> bool {
        self.list(Some(place), Role::Body).is_some_and(|list| list.open == 0)
    }

    fn can_enter(&self, place: Place, instance: &Instance, decision: &Decision) -> Needs {
        let kind = self.kind(place);
        let is_ready = instance.phase == Phase::Ready;
        let at_work = matches!(&instance.phase, Phase::Attempt(attempt) if attempt.doing == Doing::Running);
        let within = instance.within.as_deref();
        let program = self.program(place);
        match decision {
            Decision::Steps => {
                let is_scope = matches!(kind, Kind::Block(_) | Kind::Parallel(_) | Kind::Guard(_));
                unless(is_ready && is_scope, "a block, a parallel or a guard that is ready to start")
            }
            Decision::Arm { arm, .. } => {
                let is_arm = match kind {
                    Kind::Choose(choose) => choose.arms().iter().any(|(name, _)| **name == **arm),
                    _ => false,
                };
                unless(is_ready && is_arm, "a branch that is ready to start and has this arm")
            }
            Decision::Items { items, .. } => {
                let is_list = matches!((kind, items), (Kind::ForEach(_), Value::List(_)));
                unless(is_ready && is_list, "a fan-out that is ready to start, and a list of items")
            }
            Decision::Round { number, .. } => {
                let is_next = match within {
                    Some(Within::Rounds(rounds)) => {
                        instance.phase == Phase::Entered
                            && rounds.begun == *number
                            && self.is_done_inside(place)
                    }
                    Some(_) => false,
                    None => is_ready && *number == 0,
                };
                unless(is_next && matches!(kind, Kind::Repeat(_)), "a loop before its next round")
            }
            Decision::Again { number, .. } => {
                let is_next = at_work && *number == instance.rounds + 1;
                let is_task = matches!(kind, Kind::Action(Action::Task(task)) if task.rounds.is_some());
                unless(is_next && is_task, "a task at work before its next round")
            }
            Decision::Gate(_) => {
                let asks = is_ready || matches!(instance.phase, Phase::Gate(_));
                unless(asks && kind.is_gate(), "a gate that is ready to start or asks")
            }
            Decision::Wait(_) => {
                unless(is_ready && matches!(kind, Kind::Wait(_)), "a wait that is ready to start")
            }
            Decision::Fragment { .. } => {
                let is_call =
                    matches!(kind, Kind::Action(Action::Call(call)) if call.mode == CallMode::Inline);
                unless(at_work && is_call, "a call at work that runs inside this run")
            }
            Decision::Planned { .. } => {
                let plans = matches!(kind, Kind::Action(Action::Task(task)) if task.planner.is_some());
                unless(at_work && plans, "a task at work that may add steps")
            }
            Decision::TakenOver { by, .. } => {
                let handler = program.goto(instance.step).filter(|_| instance.frame.is_none());
                let is_named = handler.is_some_and(|handler| program.step(handler).id == *by);
                let is_begun = match &instance.phase {
                    Phase::Ready | Phase::Joined(_) | Phase::Attempt(_) | Phase::Gate(_) | Phase::Wait(_) => {
                        true
                    }
                    Phase::Entered => !matches!(within, Some(Within::TakenOver(_))),
                    Phase::Dormant | Phase::Waiting | Phase::Settled(_) => false,
                };
                unless(is_begun && is_named, "a step under way whose failure this step takes over")
            }
            Decision::Finally => {
                let has_end = matches!(kind, Kind::Guard(guard) if guard.finally.is_some());
                let is_first = self.list(Some(place), Role::Finally).is_none();
                let is_over = instance.phase == Phase::Entered && self.is_done_inside(place);
                unless(has_end && is_first && is_over, "a guard whose body has ended")
            }
            Decision::Undo { .. } => {
                let is_done = self.undoable.values().rev().any(|undoable| *undoable == place);
                unless(is_done, "a step that can be undone and was not")
            }
            Decision::Finish { .. } => {
                let is_end = matches!(kind, Kind::Finish(_)) && self.finish.is_none();
                unless(is_end && instance.is_settled(), "a step that ends the run, and no other before it")
            }
        }
    }

    /// Whether this is the next attempt or delivery of a step.
    fn can_attempt(&self, place: Place, number: (u32, u32), has_work: bool) -> Needs {
        let instance = self.at(place);
        let next = match &instance.phase {
            Phase::Ready | Phase::Joined(_) if has_work => Some((instance.attempts + 1, 1)),
            Phase::Attempt(Attempt { attempt, delivery, doing: Doing::Between { lost, due }, .. }) => {
                let next = if *lost { (*attempt, delivery + 1) } else { (attempt + 1, 1) };
                due.then_some(next)
            }
            Phase::Ready
            | Phase::Joined(_)
            | Phase::Attempt(_)
            | Phase::Dormant
            | Phase::Waiting
            | Phase::Gate(_)
            | Phase::Wait(_)
            | Phase::Entered
            | Phase::Settled(_) => None,
        };
        let fits = self.is_action(place) && next == Some(number);
        unless(fits, "an action that is due for this attempt")
    }

    fn can_set_timer(&self, place: Place, instance: &Instance, reason: Reason) -> Needs {
        let fits = match (&instance.phase, reason) {
            (Phase::Attempt(_), Reason::Grace) => self.index.ungraced.contains(&place),
            (Phase::Gate(_), Reason::Wait) => true,
            (Phase::Entered, Reason::Wait) => {
                let loops = matches!(instance.within.as_deref(), Some(Within::Rounds(_)));
                loops && self.is_done_inside(place)
            }
            (Phase::Entered, Reason::Timeout) => instance.frame.is_none(),
            (_, _) => false,
        };
        unless(fits, "a step that waits for this reason")
    }

    fn can_send_back(&self, gate: Place, steps: &[Repeated]) -> Needs {
        let around = (self.at(gate).parent, self.at(gate).role);
        let is_next = |step: &Repeated| {
            self.find(&step.path).is_some_and(|place| {
                let instance = self.at(place);
                (instance.parent, instance.role) == around && instance.pass + 1 == step.pass
            })
        };
        let has_gate = steps.iter().any(|step| self.find(&step.path) == Some(gate));
        let asks = matches!(self.at(gate).phase, Phase::Gate(_));
        unless(asks && has_gate && steps.iter().all(is_next), "a gate that asks, and steps beside it")
    }

    /// Whether settled steps are opened again: all of them are known.
    pub(super) fn reopened(&self, paths: &[Path]) -> Result<Vec<Place>, Misfit> {
        let settled = |path: &Path| self.find(path).filter(|place| self.at(*place).is_settled());
        let found = paths.iter().map(settled).collect::<Option<_>>();
        found.ok_or_else(|| Misfit::new("paths of settled steps", "another path"))
    }

    /// Whether a step can end like this. Before it has started it is only skipped, stopped, kept, or fails to start.
    fn can_settle(&self, place: Place, instance: &Instance, settled: &Settled, at: Timestamp) -> Needs {
        use Outcome::{Cancelled, Continue, Done, Failed, Skipped};
        let is_kept = self.kept.contains_key(&instance.path);
        let is_stopping = self.index.stopping.contains(&place);
        let attended = self.index.attention.contains(&place);
        let takes_over = matches!(instance.within.as_deref(), Some(Within::TakenOver(_)));
        let takes = settled.took.as_ref();
        let fits = match (&instance.phase, &settled.outcome) {
            (_, Continue(_)) | (Phase::Settled(_) | Phase::Dormant, _) => false,
            (Phase::Waiting, outcome) => is_stopping && matches!(outcome, Cancelled(_)),
            (Phase::Ready | Phase::Joined(_) | Phase::Gate(_) | Phase::Wait(_), Cancelled(_)) => is_stopping,
            (Phase::Ready, Done(_)) => is_kept || self.is_done_at_once(place),
            (Phase::Ready, Failed(_) | Skipped(_)) => true,
            (Phase::Joined(key), Done(_)) => self.promises.contains_key(key),
            (Phase::Joined(_), Failed(_) | Skipped(_)) => true,
            (Phase::Attempt(attempt), outcome) => match (attempt.doing.clone(), outcome) {
                (Doing::Running, Done(_) | Failed(_))
                | (Doing::Aborting(Abort::Cancel), Cancelled(_))
                | (Doing::Aborting(Abort::Timeout), Failed(_))
                | (Doing::Asking { granted: false }, Done(_) | Failed(_))
                | (Doing::Between { .. }, Failed(_)) => true,
                (Doing::Asking { .. } | Doing::Between { .. }, Cancelled(_)) => is_stopping,
                (_, _) => false,
            },
            (Phase::Gate(asking), Done(_)) => attended || !asking.votes.is_empty(),
            (Phase::Wait(sleep), Done(_)) => {
                let is_due = self.timers.at(place, Reason::Wait).is_some_and(|until| until <= at);
                attended || is_due || sleep.got.is_some() || takes.is_some()
            }
            (Phase::Gate(_) | Phase::Wait(_), Failed(_)) => true,
            (Phase::Gate(_) | Phase::Wait(_), Skipped(_)) => false,
            (Phase::Entered, _) => attended,
        };
        let took = takes.is_none_or(|id| self.letters.iter().any(|letter| letter.id == *id));
        let can_undo = self.program(place).compensation(instance.step).is_some();
        let details = took && (takes_over || !settled.recovered) && (can_undo || !settled.undoable);
        unless(fits && details, "a step that can end like this")
    }

    /// Whether a step of this kind needs nothing but itself to be done.
    fn is_done_at_once(&self, place: Place) -> bool {
        matches!(self.kind(place), Kind::Assign(_) | Kind::Finish(_) | Kind::Repeat(_))
    }
}
