//! Steps that are ready: each is skipped, fails at once, or starts.

use super::Turn;
use super::state::{Phase, Place};
use crate::event::{Decision, Reach, What};
use crate::keys::Reason;
use crate::outcome::{Failure, Outcome, Skip, SkipReason};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::SkipRule;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::{Bindings, OnFailure};
use windlass_ir::workflow::Kind;

impl Turn<'_> {
    /// Starts one ready step, in file order.
    pub(super) fn start_one(&mut self) -> bool {
        if self.state().is_suspended() || self.state().admission.is_pending() {
            return false;
        }
        let limits = &self.run.program.plan.policy.concurrency;
        let room = limits.steps_per_run.is_none_or(|limit| self.state().index.jobs.len() < limit as usize);
        let agents = self.state().index.agents < limits.agents_per_run;
        let action = self.state().index.ready_actions.first().filter(|_| room);
        let agent = self.state().index.ready_agents.first().filter(|_| room && agents);
        let due = self.state().index.due.first();
        let works = || due.into_iter().chain(action).chain(agent).min();
        let next = self.state().index.ready.first().or_else(works);
        let Some(place) = next.copied() else { return false };
        match &self.at(place).phase {
            Phase::Attempt(_) => self.next_attempt(place),
            _ => {
                if let Err(failure) = self.start(place) {
                    self.settle(place, Outcome::Failed(failure));
                }
            }
        }
        true
    }

    fn start(&mut self, place: Place) -> Result<(), Failure> {
        let program = self.program(place);
        let step = program.step(self.at(place).step);
        if let (Phase::Joined(_), Kind::Action(action)) = (&self.at(place).phase, &step.kind) {
            // It waited for another step with the same key, which did not succeed.
            return self.start_action(place, step, action);
        }
        if self.is_beside_only(place) {
            if !self.take_kept(place, step) {
                self.skip(place, SkipReason::NotAsked);
            }
            return Ok(());
        }
        if let Some(skip) = self.blocked(place, step) {
            self.settle(place, Outcome::Skipped(skip));
            return Ok(());
        }
        if let Some(condition) = &step.condition
            && !self.sight(Some(place))?.holds(condition)?
        {
            self.skip(place, SkipReason::ConditionFalse);
            return Ok(());
        }
        if self.take_kept(place, step) {
            return Ok(());
        }
        match &step.kind {
            Kind::Action(action) => self.start_action(place, step, action),
            Kind::Gate(gate) => self.start_gate(place, step, gate),
            Kind::Wait(wait) => self.start_wait(place, wait),
            Kind::Assign(set) => self.assign(place, step, set),
            Kind::Finish(finish) => self.finish(place, finish),
            Kind::Slot(_) => {
                self.skip(place, SkipReason::EmptySlot);
                Ok(())
            }
            Kind::Block(_) | Kind::Parallel(_) | Kind::Guard(_) => {
                self.enter(place, step, Decision::Steps);
                Ok(())
            }
            Kind::Choose(choose) => self.choose(place, step, choose),
            Kind::ForEach(each) => self.fan_out(place, step, each),
            Kind::Repeat(repeat) => self.start_loop(place, step, repeat),
        }
    }

    fn skip(&mut self, place: Place, reason: SkipReason) {
        self.settle(place, Outcome::Skipped(Skip { reason, because_of: None }));
    }

    /// Why the outcome of its dependencies keeps this step from running, if it does.
    fn blocked(&self, place: Place, step: &PlanStep) -> Option<Skip> {
        if step.takes_over {
            return None;
        }
        let program = self.state().program(place);
        let passed_on = program.plan.semantics.skips == SkipRule::PassedOn;
        step.needs.iter().find_map(|need| {
            let before = self.state().beside(place, *need)?;
            let needed = program.step(*need);
            let skip = |reason| Some(Skip { reason, because_of: Some(needed.id.clone()) });
            let settlement = self.at(before).settlement()?;
            match &settlement.outcome {
                Outcome::Skipped(_) if !passed_on => None,
                Outcome::Skipped(Skip { reason, .. }) => match reason {
                    SkipReason::GateSkipped => skip(SkipReason::GateSkipped),
                    SkipReason::DependencyFailed => skip(SkipReason::DependencyFailed),
                    SkipReason::RunCancelled => skip(SkipReason::RunCancelled),
                    SkipReason::NotAsked => None,
                    SkipReason::ConditionFalse | SkipReason::BranchNotTaken | SkipReason::EmptySlot => {
                        let gate = program.step(program.plan.unguarded(*need)).kind.is_gate();
                        if gate { skip(SkipReason::GateSkipped) } else { None }
                    }
                },
                Outcome::Failed(_) if settlement.recovered => skip(SkipReason::DependencyFailed),
                Outcome::Failed(_) if *program.on_failure(*need) != OnFailure::Continue => {
                    skip(SkipReason::DependencyFailed)
                }
                Outcome::Cancelled(_) => skip(SkipReason::RunCancelled),
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Failed(_) => None,
            }
        })
    }

    /// Whether the run is limited to one step, and this step is neither that one, nor around it, nor inside it.
    fn is_beside_only(&self, place: Place) -> bool {
        let Some(Reach::Only(only)) = &self.state().reach else { return false };
        let (own, only) = (self.at(place).path.segments(), only.segments());
        // A step with items is on the way to each of its items.
        let on_the_way = own.iter().zip(only).enumerate().all(|(at, (own_one, only_one))| {
            own_one == only_one
                || at + 1 == own.len() && own_one.name == only_one.name && own_one.ordinal.is_none()
        });
        !on_the_way
    }

    /// Uses the result of an earlier run, if the step is unchanged.
    fn take_kept(&mut self, place: Place, step: &PlanStep) -> bool {
        let Some(kept) = self.state().kept.get(&self.at(place).path).cloned() else { return false };
        // The input of an action and the question of a gate are compared after they are rendered.
        let later = matches!(step.kind, Kind::Action(_) | Kind::Gate(_));
        let only = self.is_beside_only(place);
        let is_same = || kept.unchanged || kept.seen == crate::keep::of_step(&self.program(place).plan, step);
        if !only && (later || !is_same()) {
            return false;
        }
        self.settle(place, kept.outcome.clone());
        true
    }

    fn assign(&mut self, place: Place, step: &PlanStep, set: &Bindings) -> Result<(), Failure> {
        let values = super::render::bindings(&self.sight(Some(place))?, set)?;
        let program = self.program(place);
        let outputs = super::values::contracted(&program, &step.outputs, Value::Map(Arc::new(values)))?;
        self.settle(place, Outcome::Done(outputs));
        Ok(())
    }

    /// Enters a step with steps inside, and starts its timeout.
    pub(super) fn enter(&mut self, place: Place, step: &PlanStep, decision: Decision) {
        let path = self.path(place);
        self.emit(What::Entered { path: path.clone(), decision });
        let is_scope = !step.kind.bodies().is_empty();
        if let Some(timeout) = step.policy.timeout.filter(|_| is_scope)
            && matches!(self.at(place).phase, Phase::Entered)
        {
            let until = self.now.plus(timeout);
            self.emit(What::TimerSet { path, reason: Reason::Timeout, until });
        }
    }
}
