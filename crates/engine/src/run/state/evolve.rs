//! The only function that changes a run. It and the methods it calls accept every legal pair of state and event; any
//! other pair is a contradiction.

use super::{
    Abort, Asked, Asking, Attempt, CancelRequest, Conclusion, Contradiction, Doing, FailedAttempt, GateVote,
    HookTrace, Misfit, Phase, Place, Role, RunClock, Sleep, Stage, State, Stop, Unread, Within, folder_in,
};
use crate::event::{Assignment, Decision, Event, Question, Waiting, What};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::Outcome;
use std::sync::Arc;
use windlass_ir::expr::{FanOutRule, StepId};
use windlass_ir::workflow::{Action, CallMode, Kind};
use windlass_ir::{Duration, Value};

const ACTION: &str = "an action with this attempt due";
const OF_STEP: &str = "an event of a step";

/// Applies one event. After an error, drop the state: part of the event may have been applied.
pub fn evolve(state: &mut State, event: &Event) -> Result<(), Contradiction> {
    state.last_at = state.last_at.max(event.at);
    let path = event.what.path();
    let applied = match (&state.stage, &event.what) {
        (Stage::New, what) => state.start(what, event.at),
        (Stage::Running | Stage::Concluded(_), what) if path.is_some_and(Path::is_hook) => {
            state.around(what, event.at)
        }
        (Stage::Running, what) if path.is_some_and(Path::is_run) => state.whole(what, event.at),
        (Stage::Running, what) => state.inside(what, event.at),
        (Stage::Concluded(outcome), what) => {
            let is_failed = matches!(outcome, Outcome::Failed(_));
            state.after_end(what, is_failed)
        }
        (Stage::Closed(_), _) => Err(state.misfit("no event after the end of the journal")),
    };
    applied.map_err(|misfit| misfit.at(event))
}

impl State {
    fn start(&mut self, what: &What, at: Timestamp) -> Result<(), Misfit> {
        let What::Started { inputs, env, seed, about, by, lineage, shares, reach } = what else {
            return Err(self.misfit("a run that has started"));
        };
        self.reach.clone_from(reach);
        self.shares = shares.as_deref().cloned().unwrap_or_default();
        self.apply();
        self.stage = Stage::Running;
        (self.units[0].inputs, self.units[0].env) = (inputs.clone(), env.0.clone());
        self.units[0].folder = folder_in(about);
        self.about = about.clone();
        (self.seed, self.by, self.lineage) = (*seed, by.clone(), lineage.clone());
        self.started_at = at;
        let roots = self.units[0].program.plan.roots.clone();
        self.open_list(None, Role::Body, 0, &roots);
        Ok(())
    }

    /// Applies an event of a hook.
    fn around(&mut self, what: &What, at: Timestamp) -> Result<(), Misfit> {
        const UNDER_WAY: &str = "a running hook";
        match what {
            What::Scheduled { path, attempt, delivery, assignment, .. } => {
                let new = assignment.as_ref().filter(|_| !self.hooks.open.contains_key(path));
                let assignment = new.ok_or_else(|| self.misfit("a new hook with its work"))?;
                self.count_hook();
                let hook = Attempt {
                    attempt: *attempt,
                    delivery: *delivery,
                    assignment: assignment.clone(),
                    doing: Doing::Running,
                    losses: 0,
                    again: None,
                };
                self.hooks.open.insert(path.clone(), hook);
                if let Some(trace) = &mut self.trace {
                    let (assignment, started_at) = (Some(assignment.clone()), Some(at));
                    let hook = HookTrace { assignment, started_at, ..HookTrace::default() };
                    trace.hooks.insert(path.clone(), hook);
                }
            }
            // A hook is dispatched only once, so its notes are not needed.
            What::Noted { path, .. } => self.need(self.hooks.open.contains_key(path), UNDER_WAY)?,
            What::Settled(settled) => {
                if self.hooks.open.remove(&settled.path).is_none() {
                    // A hook that cannot be rendered fails without starting.
                    self.need(matches!(settled.outcome, Outcome::Failed(_)), UNDER_WAY)?;
                    self.count_hook();
                }
                if let Some(trace) = &mut self.trace {
                    let hook = trace.hooks.entry(settled.path.clone()).or_default();
                    (hook.ended_at, hook.outcome) = (Some(at), Some(settled.outcome.clone()));
                }
            }
            _ => return Err(self.misfit(OF_STEP)),
        }
        Ok(())
    }

    fn count_hook(&mut self) {
        self.hooks.begun += 1;
        self.hooks.ended = matches!(self.stage, Stage::Concluded(_));
    }

    fn after_end(&mut self, what: &What, is_failed: bool) -> Result<(), Misfit> {
        match what {
            What::Reopened { paths, inputs, .. } if is_failed => {
                self.reopen(paths, inputs)?;
                self.apply();
                Ok(())
            }
            What::Closed => {
                self.need(self.hooks.open.is_empty(), "no running hook")?;
                if let Stage::Concluded(outcome) = &self.stage {
                    self.stage = Stage::Closed(outcome.clone());
                }
                Ok(())
            }
            _ => Err(self.misfit("a run in progress")),
        }
    }

    /// Whether no step has begun.
    fn is_untouched(&self) -> bool {
        self.roots.active.is_empty() && self.roots.open as usize == self.roots.unstarted.len()
    }

    /// Applies an event at the path of the run itself.
    fn whole(&mut self, what: &What, at: Timestamp) -> Result<(), Misfit> {
        match what {
            What::Admitted { attempt, .. } => {
                self.need(self.admission.request == Some(*attempt), "a run that waits to be admitted")?;
                self.admission.request = None;
            }
            What::TimerSet { reason: Reason::Wait, until, .. } => {
                self.need(
                    self.is_untouched() && self.admission.begins_at.is_none(),
                    "a run that has not begun",
                )?;
                // The run asks for its slots when it begins.
                (self.admission.begins_at, self.admission.request) = (Some(*until), None);
            }
            What::TimerSet { reason: Reason::Timeout, until, .. } => {
                self.need(self.clock != RunClock::Over, "a run with time left")?;
                self.set_clock(*until, at);
            }
            What::TimerFired { reason: Reason::Wait, .. } => {
                self.need(self.admission.begins_at.is_some_and(|begins| begins <= at), "a run that is due")?;
                self.admission.begins_at = None;
                self.apply();
            }
            What::TimerFired { reason: Reason::Timeout, .. } => {
                let is_up = matches!(self.clock, RunClock::Until(until) if until <= at);
                self.need(is_up, "a run that has timed out")?;
                self.clock = RunClock::Over;
                self.stop_run(&Stop::unwind("the run took too long"));
            }
            What::CancelRequested { why, by, .. } => {
                self.stop_run(&Stop::unwind(why.clone()));
                if let Some(trace) = &mut self.trace {
                    trace.cancel.get_or_insert(CancelRequest { by: by.clone(), why: why.clone(), at });
                }
            }
            _ => return Err(self.misfit(OF_STEP)),
        }
        Ok(())
    }

    /// Applies an event of a step, or one without a path, to a run in progress.
    fn inside(&mut self, what: &What, at: Timestamp) -> Result<(), Misfit> {
        match what {
            What::Started { .. } => return Err(self.misfit("a run that has not started")),
            What::Reopened { .. } | What::Closed => return Err(self.misfit("a run that has ended")),
            What::Kept(kept) => {
                let is_new = self.is_untouched() && !self.kept.contains_key(&kept.path);
                self.need(is_new, "a run that has not begun, and a path without a kept result")?;
                self.completed = self.completed.max(kept.order + 1);
                self.kept.insert(kept.path.clone(), Arc::new((**kept).clone()));
            }
            What::Entered { path, decision } => {
                let place = self.target(path, at)?;
                self.entered(place, decision, at)?;
            }
            What::Scheduled { path, attempt, delivery, assignment, deadline } => {
                let place = self.target(path, at)?;
                self.attempt(place, (*attempt, *delivery), assignment.as_ref(), Doing::Running, at)?;
                if let Some(deadline) = deadline {
                    self.timers.set(place, Reason::Timeout, *deadline);
                }
            }
            What::Asked { path, attempt, delivery, assignment } => {
                let (place, doing) = (self.target(path, at)?, Doing::Asking { granted: false });
                self.attempt(place, (*attempt, *delivery), assignment.as_ref(), doing, at)?;
            }
            What::Admitted { path, attempt: number } => {
                let place = self.target(path, at)?;
                let instance = self.at(place);
                let waits = instance.doing() == Some(&Doing::Asking { granted: false });
                let is_asked = instance.asked.as_ref().is_some_and(|asked| asked.number == *number);
                self.need_at(place, waits && is_asked, "an attempt that waits to be admitted")?;
                self.set_doing(place, Doing::Asking { granted: true });
            }
            What::Spent { path, used } => {
                let place = self.working(path, at)?;
                if let Some(asked) = &mut self.at_mut(place).asked {
                    asked.spent = Some(asked.spent.unwrap_or_default().plus(*used));
                }
            }
            What::Noted { path, key, value } => {
                let place = self.working(path, at)?;
                self.at_mut(place).notes.insert(key.clone(), value.clone());
            }
            What::AttemptFailed { path, attempt, failure, delay } => {
                let place = self.target(path, at)?;
                let fits = self.at(place).attempt().is_some_and(|current| {
                    let may_fail = matches!(current.doing, Doing::Running | Doing::Aborting(Abort::Timeout));
                    may_fail && current.attempt == *attempt
                });
                self.need_at(place, fits, "the attempt that failed")?;
                self.between(place);
                self.at_mut(place).give_back(at);
                if let Some(trace) = self.trace(place) {
                    trace.delays.push(*delay);
                    trace.failures.push(FailedAttempt {
                        attempt: *attempt,
                        started_at: trace.attempt_at.unwrap_or(at),
                        ended_at: at,
                        failure: failure.clone(),
                        delay: *delay,
                    });
                }
                self.timers.set(place, Reason::Retry, at.plus(*delay));
            }
            What::Lost { path, attempt, delivery, charged, started } => {
                let place = self.target(path, at)?;
                let lost = self.at(place).attempt().filter(|current| {
                    let is_same = (current.attempt, current.delivery) == (*attempt, *delivery);
                    is_same && current.doing == Doing::Running
                });
                let lost = lost.ok_or_else(|| self.misfit_at(place, "the delivery that was lost"))?;
                if *charged || lost.spends() {
                    self.at_mut(place).asked = None;
                }
                self.between(place);
                self.redeliver(place, *started);
            }
            What::Joined { path, key } => {
                let place = self.target(path, at)?;
                self.joined(place, key)?;
            }
            What::TimerSet { path, reason, until } => {
                let place = self.target(path, at)?;
                self.timer_set(place, *reason, *until)?;
            }
            What::TimerFired { path, reason } => {
                let place = self.target(path, at)?;
                let is_due = self.timers.at(place, *reason).is_some_and(|until| until <= at);
                self.need_at(place, is_due, "a timer that is due")?;
                self.timer_fired(place, *reason)?;
            }
            What::Decided { id, path, by, value } => {
                let place = self.target(path, at)?;
                let Phase::Gate(asking) = &mut self.at_mut(place).phase else {
                    return Err(self.misfit_at(place, "an open gate"));
                };
                asking.votes.push((by.clone(), value.clone()));
                self.decisions.entry(path.clone()).or_default().push((id.clone(), by.clone()));
                if let Some(trace) = self.trace(place) {
                    trace.decided = Some(value.clone());
                    trace.votes.push(GateVote { by: by.clone(), at, value: value.clone() });
                }
            }
            What::Signalled { id, name, value, path, .. } => {
                let is_new = self.signals.ids.insert(id.clone());
                self.need(is_new, "a new signal")?;
                match path {
                    Some(path) => {
                        let place = self.target(path, at)?;
                        self.got(place, value)?;
                    }
                    None => {
                        let unread = Unread { id: id.clone(), name: name.clone(), value: value.clone() };
                        self.signals.unread.push(unread);
                    }
                }
            }
            What::CancelRequested { path, why, inside: true, .. } => {
                let place = self.target(path, at)?;
                self.need_at(place, self.at(place).phase == Phase::Entered, "a step with inner steps")?;
                self.stop_scope(Some(place), &Stop::unwind(why.clone()));
            }
            What::CancelRequested { path, why, inside: false, .. } => {
                let place = self.target(path, at)?;
                let is_open = !matches!(self.at(place).phase, Phase::Settled(_) | Phase::Dormant);
                self.need_at(place, is_open, "an open step")?;
                self.stop_instance(place, &Stop { by_person: true, ..Stop::unwind(why.clone()) });
            }
            What::Paused { reached: true, .. } => {
                let was_limited = self.reach.take().is_some();
                self.need(was_limited, "a run that stops at a step")?;
                self.paused = true;
            }
            What::Paused { reached: false, .. } => {
                self.need(!self.paused, "a run that is not paused")?;
                self.paused = true;
            }
            What::Resumed { .. } => {
                self.need(self.paused, "a paused run")?;
                self.paused = false;
            }
            What::Interrupted => {
                self.need(!self.interrupted, "a run that was not interrupted")?;
                self.interrupted = true;
            }
            What::Continued => {
                self.need(self.interrupted, "an interrupted run")?;
                self.interrupted = false;
            }
            What::InputsChanged { inputs, .. } => {
                self.units[0].inputs = inputs.clone();
                if let Some(trace) = &mut self.trace {
                    trace.clear_decided();
                }
            }
            What::Rebound { path, inputs } => {
                let place = self.target(path, at)?;
                let Some(unit) = self.units.iter_mut().find(|unit| unit.call == Some(place)) else {
                    return Err(self.misfit_at(place, "a workflow that was called"));
                };
                unit.inputs = inputs.clone();
            }
            What::SentBack { gate, steps, because } => {
                let place = self.target(gate, at)?;
                self.send_back(place, steps, because)?;
            }
            What::Settled(settled) => {
                let place = self.target(&settled.path, at)?;
                self.settle(place, settled, at)?;
            }
            What::Concluded { outcome, has_failures, undone } => {
                let is_over = self.roots.open == 0 && !self.undo.under_way.contains_key(&None);
                self.need(is_over, "a run whose steps have all settled")?;
                self.stage = Stage::Concluded(outcome.clone());
                if let Some(trace) = &mut self.trace {
                    let (has_failures, undone) = (*has_failures, *undone);
                    trace.conclusion = Some(Conclusion { at, has_failures, undone });
                }
            }
        }
        Ok(())
    }

    fn target(&mut self, path: &Path, at: Timestamp) -> Result<Place, Misfit> {
        let place = self.find(path).ok_or_else(|| Misfit::new("a step at this path", "none"))?;
        self.show(place, at);
        Ok(place)
    }

    /// The step at a path, if an executor works on it.
    fn working(&mut self, path: &Path, at: Timestamp) -> Result<Place, Misfit> {
        let place = self.target(path, at)?;
        let works = matches!(self.at(place).doing(), Some(Doing::Running | Doing::Aborting(_)));
        self.need_at(place, works, "a step with a running attempt")?;
        Ok(place)
    }

    fn entered(&mut self, place: Place, decision: &Decision, at: Timestamp) -> Result<(), Misfit> {
        let instance = self.at(place);
        let (unit, is_ready) = (instance.unit, instance.phase == Phase::Ready);
        let is_running = instance.doing() == Some(&Doing::Running);
        self.index.attention.remove(&place);
        let program = self.program(place).clone();
        match (decision, &program.step(self.at(place).step).kind) {
            (Decision::Steps, Kind::Block(list)) if is_ready => self.enter_list(place, list, at),
            (Decision::Steps, Kind::Parallel(parallel)) if is_ready => {
                self.enter_list(place, &parallel.branches, at);
            }
            (Decision::Steps, Kind::Guard(guard)) if is_ready => {
                self.enter_list(place, &guard.body, at);
            }
            (Decision::Steps, _) => {
                return Err(self.misfit_at(place, "a block, a parallel or a guard that is ready to start"));
            }
            (Decision::Arm { arm, value }, Kind::Choose(choose)) => {
                let taken = choose.arms().into_iter().find(|(name, _)| is_ready && **name == **arm);
                let expected = "a branch that is ready to start and has this arm";
                let (_, list) = taken.ok_or_else(|| self.misfit_at(place, expected))?;
                self.enter(place, Within::Arm { arm: arm.clone(), value: value.clone() }, at);
                self.open_list(Some(place), Role::Body, unit, list);
            }
            (Decision::Items { items: Value::List(items), at_once, in_order }, Kind::ForEach(_))
                if is_ready =>
            {
                // Journals of earlier versions omit it.
                let in_order = in_order.unwrap_or(program.plan.semantics.fan_out == FanOutRule::InOrder);
                self.enter_items(place, items, *at_once, in_order, at);
            }
            (Decision::Round { number, value }, Kind::Repeat(_)) => {
                self.enter_round(place, *number, value, at)?;
            }
            (Decision::Again { number, input, delay }, Kind::Action(Action::Task(task))) => {
                let is_next = is_running && *number == self.at(place).rounds + 1;
                let fits = is_next && task.rounds.is_some();
                self.need_at(place, fits, "a running task with another round")?;
                self.again(place, *number, input, *delay, at)?;
            }
            (Decision::Gate(question), Kind::Gate(_)) => {
                let asks = is_ready || matches!(self.at(place).phase, Phase::Gate(_));
                self.need_at(place, asks, "a gate that is ready to start or open")?;
                self.ask(place, question, at);
            }
            (Decision::Wait(waiting), Kind::Wait(_)) if is_ready => self.sleep(place, waiting, at),
            (Decision::Fragment { plan, inputs, env }, Kind::Action(Action::Call(call))) => {
                let fits = is_running && call.mode == CallMode::Inline;
                self.need_at(place, fits, "a running call inside this run")?;
                self.enter_fragment(place, plan, inputs, &env.0, at)?;
            }
            (Decision::Planned { plan, .. }, Kind::Action(Action::Task(task))) => {
                let fits = is_running && task.planner.is_some();
                self.need_at(place, fits, "a running task that may add steps")?;
                self.add_planned(place, plan)?;
            }
            (Decision::TakenOver { by, failure }, _) => self.take_over(place, by, failure, at)?,
            (Decision::Finally, Kind::Guard(guard)) => {
                let is_first = self.list(Some(place), Role::Finally).is_none();
                let is_over = self.at(place).phase == Phase::Entered && self.is_done_inside(place);
                let list = guard.finally.as_ref().filter(|_| is_first && is_over);
                let list = list.ok_or_else(|| self.misfit_at(place, "a guard whose body has ended"))?;
                self.open_list(Some(place), Role::Finally, unit, list);
            }
            (Decision::Undo { because, uncertain }, _) => {
                self.undo(place, because, *uncertain)?;
                if let Some(trace) = self.trace(place) {
                    trace.is_undone = true;
                }
            }
            (Decision::Finish { outcome }, Kind::Finish(_)) => {
                let fits = self.finish.is_none() && self.at(place).is_settled();
                self.need_at(place, fits, "a step that ends the run, and no other before it")?;
                let id = &program.step(self.at(place).step).id;
                self.finish = Some(outcome.clone());
                self.stop_scope(None, &Stop::drain(format!("`{id}` ended the run")));
            }
            (
                Decision::Arm { .. }
                | Decision::Items { .. }
                | Decision::Round { .. }
                | Decision::Again { .. }
                | Decision::Gate(_)
                | Decision::Wait(_)
                | Decision::Fragment { .. }
                | Decision::Planned { .. }
                | Decision::Finally
                | Decision::Finish { .. },
                _,
            ) => return Err(self.misfit_at(place, "a step of another kind, or one that is ready to start")),
        }
        if let Some(trace) = self.trace(place).filter(|_| decision.starts()) {
            trace.enter(decision, at);
        }
        Ok(())
    }

    fn enter_list(&mut self, place: Place, list: &[StepId], at: Timestamp) {
        let unit = self.at(place).unit;
        self.enter(place, Within::Steps, at);
        self.open_list(Some(place), Role::Body, unit, list);
    }

    /// Opens a gate, for the first time or again.
    fn ask(&mut self, place: Place, question: &Question, at: Timestamp) {
        self.begin(place, at);
        if let Some(name) = &question.empties {
            let emptied = Value::map([(name.clone(), Value::text(""))]);
            let unit = self.at(place).unit as usize;
            self.units[unit].inputs = crate::run::merged(&self.units[unit].inputs, &emptied);
        }
        let (question, votes) = (Box::new(question.clone()), Vec::new());
        self.set_phase(place, Phase::Gate(Asking { question, votes }));
    }

    fn sleep(&mut self, place: Place, waiting: &Waiting, at: Timestamp) {
        self.begin(place, at);
        if let Some(until) = waiting.until {
            self.timers.set(place, Reason::Wait, until);
        }
        let (signal, on_wall) = (waiting.signal.clone(), waiting.on_wall);
        self.set_phase(place, Phase::Wait(Sleep { signal, on_wall, got: None }));
    }

    /// Removes the instance from the steps that wait to start.
    pub(super) fn begin(&mut self, place: Place, at: Timestamp) {
        let instance = self.at_mut(place);
        instance.started_at.get_or_insert(at);
        let (parent, role) = (instance.parent, instance.role);
        if let Some(list) = self.list_mut(parent, role) {
            list.unstarted.remove(&place);
            list.active.insert(place);
        }
    }

    pub(super) fn enter(&mut self, place: Place, within: Within, at: Timestamp) {
        self.begin(place, at);
        self.set_phase(place, Phase::Entered);
        self.at_mut(place).within = Some(Box::new(within));
        self.note_seen(place);
    }

    /// A run that shares resources from its start must be admitted.
    fn apply(&mut self) {
        if !self.shares.claims.is_empty() {
            self.admission.requests += 1;
            self.admission.requested_at = self.last_at;
            self.admission.request = Some(self.admission.requests);
        }
    }

    /// Starts an attempt, which asks for its slots or is dispatched.
    fn attempt(
        &mut self,
        place: Place,
        number: (u32, u32),
        assignment: Option<&Arc<Assignment>>,
        doing: Doing,
        at: Timestamp,
    ) -> Result<(), Misfit> {
        let instance = self.at(place);
        let before = instance.attempt();
        let next = match (&instance.phase, &doing) {
            (Phase::Ready | Phase::Joined(_), _) if assignment.is_some() => Some((instance.attempts + 1, 1)),
            (Phase::Attempt(before), doing) => match before.doing {
                Doing::Asking { granted: true } => {
                    (*doing == Doing::Running).then_some((before.attempt, before.delivery))
                }
                Doing::Between { lost: true, due: true } => Some((before.attempt, before.delivery + 1)),
                Doing::Between { lost: false, due: true } => Some((before.attempt + 1, 1)),
                Doing::Asking { granted: false }
                | Doing::Running
                | Doing::Aborting(_)
                | Doing::Between { due: false, .. } => None,
            },
            (_, _) => None,
        };
        let known = assignment.or(before.map(|before| &before.assignment)).cloned();
        let assignment = known.filter(|_| self.is_action(place) && next == Some(number));
        let assignment = assignment.ok_or_else(|| self.misfit_at(place, ACTION))?;
        let (attempt, delivery) = number;
        let same = before.filter(|before| before.attempt == attempt);
        let losses = same.map_or(0, |before| before.losses);
        self.begin(place, at);
        self.timers.drop_all(place);
        self.index.attention.remove(&place);
        self.own_key(place, &assignment);
        if let Some(trace) = self.trace(place) {
            trace.assignment = Some(assignment.clone());
            if doing == Doing::Running {
                (trace.attempts, trace.attempt_at) = (attempt, Some(at));
                trace.started_at.get_or_insert(at);
            }
        }
        let instance = self.at_mut(place);
        instance.attempts = attempt;
        match &doing {
            Doing::Asking { .. } => {
                instance.asks += 1;
                instance.asked = Some(Asked { number: instance.asks, since: at, begun: None, spent: None });
            }
            Doing::Running | Doing::Aborting(_) | Doing::Between { .. } => {
                if let Some(asked) = &mut instance.asked {
                    asked.begun.get_or_insert(at);
                }
            }
        }
        let attempt = Attempt { attempt, delivery, assignment, doing, losses, again: None };
        self.set_phase(place, Phase::Attempt(attempt));
        Ok(())
    }

    pub(super) fn is_action(&self, place: Place) -> bool {
        matches!(self.kind(place), Kind::Action(_)) && self.at(place).frame.is_none()
    }

    pub(super) fn is_done_inside(&self, place: Place) -> bool {
        self.list(Some(place), Role::Body).is_some_and(|list| list.open == 0)
    }

    /// Ends an attempt that another one follows.
    fn between(&mut self, place: Place) {
        self.timers.drop_all(place);
        self.index.attention.remove(&place);
        self.set_doing(place, Doing::Between { lost: false, due: false });
    }

    /// Makes a lost attempt due again at once.
    fn redeliver(&mut self, place: Place, started: bool) {
        if let Phase::Attempt(attempt) = &mut self.at_mut(place).phase {
            attempt.losses += u32::from(started);
        }
        self.set_doing(place, Doing::Between { lost: true, due: true });
    }

    /// Ends a round of a task that another one follows.
    fn again(
        &mut self,
        place: Place,
        number: u32,
        input: &Value,
        delay: Duration,
        at: Timestamp,
    ) -> Result<(), Misfit> {
        self.between(place);
        let instance = self.at_mut(place);
        instance.give_back(at);
        (instance.rounds, instance.attempts_before) = (number, instance.attempts);
        if let Phase::Attempt(attempt) = &mut instance.phase {
            attempt.again = Some(input.clone());
        }
        match delay {
            Duration::ZERO => self.timer_fired(place, Reason::Retry),
            delay => {
                self.timers.set(place, Reason::Retry, at.plus(delay));
                Ok(())
            }
        }
    }

    fn set_clock(&mut self, until: Timestamp, at: Timestamp) {
        self.clock = match self.clock {
            RunClock::Until(before) if until == Timestamp::NEVER => {
                RunClock::Still { left: before.since(at) }
            }
            RunClock::None | RunClock::Until(_) | RunClock::Still { .. } | RunClock::Over => {
                RunClock::Until(until)
            }
        };
    }
}
