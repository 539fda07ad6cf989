//! What becomes of a step that can begin: it is skipped, it fails at once, or it starts.

use super::state::{Phase, Place};
use super::values::Sight;
use super::{Turn, values};
use crate::event::{Assignment, Decision, Question, What};
use crate::job::Work;
use crate::keys::Reason;
use crate::outcome::{Failure, Outcome, Skip, SkipReason};
use indexmap::IndexMap;
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::text_form;
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::{Bindings, OnFailure};
use windlass_ir::value::{Map, Sealable};
use windlass_ir::workflow::{Action, Choose, Gate, Kind};

impl Turn<'_> {
    /// Starts one step that is ready, in the order of the file.
    pub(super) fn start_one(&mut self) -> bool {
        if self.state().paused || self.state().cancelling.is_some() {
            return false;
        }
        let limits = &self.run.program.plan.policy.concurrency;
        let room = limits.steps_per_run.is_none_or(|limit| self.state().jobs.len() < limit as usize);
        let agents = self.state().agents < limits.agents_per_run;
        let action = self.state().ready_actions.first().filter(|_| room);
        let agent = self.state().ready_agents.first().filter(|_| room && agents);
        let next = self.state().ready.first().or_else(|| action.into_iter().chain(agent).min());
        let Some(place) = next.copied() else { return false };
        match &self.at(place).phase {
            Phase::Attempt(attempt) => {
                let next = attempt.attempt + 1;
                self.dispatch(place, next, 1);
            }
            Phase::Waiting | Phase::Ready | Phase::Gate { .. } | Phase::Entered | Phase::Settled { .. } => {
                if let Err(failure) = self.start(place) {
                    self.settle(place, Outcome::Failed(failure), false);
                }
            }
        }
        true
    }

    fn start(&mut self, place: Place) -> Result<(), Failure> {
        let program = self.run.program.clone();
        let step = program.plan.step(self.at(place).step);
        if let Some(skip) = self.blocked(place, step) {
            self.settle(place, Outcome::Skipped(skip), false);
            return Ok(());
        }
        if let Some(condition) = &step.condition
            && !self.sight(Some(place))?.holds(condition)?
        {
            let skip = Skip { reason: SkipReason::ConditionFalse, because_of: None };
            self.settle(place, Outcome::Skipped(skip), false);
            return Ok(());
        }
        match &step.kind {
            Kind::Action(action) => self.start_action(place, step, action),
            Kind::Gate(gate) => self.start_gate(place, step, gate),
            Kind::Assign(set) => self.assign(place, step, set),
            Kind::Block(_) => self.enter(place, Decision::Steps),
            Kind::Choose(choose) => self.choose(place, choose),
            Kind::Wait(_)
            | Kind::Finish(_)
            | Kind::Slot(_)
            | Kind::Parallel(_)
            | Kind::ForEach(_)
            | Kind::Repeat(_)
            | Kind::Guard(_) => {
                unreachable!("a program with such a step is refused")
            }
        }
    }

    /// Why what came before keeps this step from running, if it does.
    fn blocked(&self, place: Place, step: &PlanStep) -> Option<Skip> {
        let plan = &self.run.program.plan;
        step.needs.iter().find_map(|need| {
            let before = self.state().seen_from(Some(place), *need, &self.run.program)?;
            let needed = plan.step(*need);
            let skip = |reason| Some(Skip { reason, because_of: Some(needed.id.clone()) });
            match self.at(before).outcome()? {
                Outcome::Skipped(Skip { reason, .. }) => match reason {
                    SkipReason::GateSkipped => skip(SkipReason::GateSkipped),
                    SkipReason::DependencyFailed => skip(SkipReason::DependencyFailed),
                    SkipReason::ConditionFalse | SkipReason::BranchNotTaken | SkipReason::RunCancelled => {
                        if needed.kind.is_gate() {
                            skip(SkipReason::GateSkipped)
                        } else {
                            None
                        }
                    }
                },
                Outcome::Failed(_) if needed.policy.on_failure != OnFailure::Continue => {
                    skip(SkipReason::DependencyFailed)
                }
                Outcome::Cancelled(_) => skip(SkipReason::RunCancelled),
                Outcome::Done(_) | Outcome::Continue(_) | Outcome::Failed(_) => None,
            }
        })
    }

    /// The eyes of a step, with the environment that it and the scopes around it add.
    pub(super) fn sight(&self, from: Option<Place>) -> Result<Sight<'_>, Failure> {
        Ok(self.bare_sight(from, self.environment(from)?))
    }

    pub(super) fn bare_sight(&self, from: Option<Place>, env: Value) -> Sight<'_> {
        Sight { run: &self.run.id, program: &self.run.program, state: self.state(), from, env, failed: None }
    }

    /// The environment of the run with what a step and the scopes around it add, outermost first.
    pub(super) fn environment(&self, of: Option<Place>) -> Result<Value, Failure> {
        let outwards = std::iter::successors(of, |place| self.at(*place).parent);
        let mut chain: Vec<Place> = outwards.collect();
        chain.reverse();
        let mut env = self.state().env.clone();
        for place in chain {
            let step = self.run.program.plan.step(self.at(place).step);
            if !step.env.is_empty() {
                let added = rendered(&self.bare_sight(Some(place), env.clone()), &step.env)?;
                env = values_over(&env, added);
            }
        }
        Ok(env)
    }

    fn start_action(&mut self, place: Place, step: &PlanStep, action: &Action) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let input = sight.inputs(step)?;
        let work = work_of(action, &sight)?;
        let env = match &sight.env {
            Value::Map(map) => {
                map.iter().map(|(name, value)| (name.clone(), Sealable(value.clone()))).collect()
            }
            _ => IndexMap::new(),
        };
        let instance = self.at(place);
        let (path, attempt) = (instance.path.clone(), instance.attempts + 1);
        let deadline = step.policy.timeout.map(|timeout| self.now.plus(timeout));
        let assignment = Some(Arc::new(Assignment { input, work, env }));
        self.emit(What::Scheduled { path, attempt, delivery: 1, assignment, deadline });
        self.hand_out(place);
        Ok(())
    }

    fn start_gate(&mut self, place: Place, step: &PlanStep, gate: &Gate) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let input = sight.inputs(step)?;
        let message = sight.optional(gate.message.as_ref())?;
        let question = Question { message, input, on_timeout: gate.on_timeout };
        let path = self.at(place).path.clone();
        self.enter(place, Decision::Gate(question))?;
        if let Some(timeout) = gate.timeout {
            self.emit(What::TimerSet { path, reason: Reason::Wait, until: self.now.plus(timeout) });
        }
        Ok(())
    }

    fn assign(&mut self, place: Place, step: &PlanStep, set: &Bindings) -> Result<(), Failure> {
        let values = rendered(&self.sight(Some(place))?, set)?;
        let program = self.run.program.clone();
        let outputs = values::contracted(&program, &step.outputs, Value::Map(Arc::new(values)))?;
        self.settle(place, Outcome::Done(outputs), false);
        Ok(())
    }

    fn choose(
        &mut self,
        place: Place,
        choose: &Choose<Vec<windlass_ir::expr::StepId>>,
    ) -> Result<(), Failure> {
        let sight = self.sight(Some(place))?;
        let arm: Arc<str> = match choose {
            Choose::If { condition, .. } => if sight.holds(condition)? { "then" } else { "else" }.into(),
            Choose::Switch { value, cases, .. } => {
                let value = sight.value(value)?;
                let text = text_form(&value, &self.run.program.plan.semantics)
                    .map_err(|error| Failure::new(crate::outcome::class::EXPRESSION_ERROR, error.message))?;
                if cases.contains_key(&text) { text } else { "default".into() }
            }
        };
        self.enter(place, Decision::Arm(arm))
    }

    fn enter(&mut self, place: Place, decision: Decision) -> Result<(), Failure> {
        let path = self.at(place).path.clone();
        self.emit(What::Entered { path, decision });
        Ok(())
    }
}

pub(super) fn rendered(sight: &Sight<'_>, bindings: &Bindings) -> Result<Map, Failure> {
    bindings.iter().map(|(name, bound)| Ok((name.clone(), sight.value(bound)?))).collect()
}

fn values_over(outer: &Value, added: Map) -> Value {
    match outer {
        Value::Map(outer) if added.is_empty() => Value::Map(outer.clone()),
        Value::Map(outer) => {
            let mut all = (**outer).clone();
            all.extend(added);
            Value::Map(Arc::new(all))
        }
        _ => Value::Map(Arc::new(added)),
    }
}

/// The work of an action with every expression rendered.
fn work_of(action: &Action, sight: &Sight<'_>) -> Result<Work, Failure> {
    let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
    Ok(match action {
        Action::Agent(agent) => Work::Agent {
            artifact: agent.artifact.clone(),
            model: agent.model.clone(),
            instructions: sight.optional(agent.instructions.as_ref())?,
            tools: agent.tools.clone(),
            modules: agent.modules.clone(),
            handoff: agent.handoff.format,
        },
        Action::Shell(shell) => Work::Shell {
            command: sight.value(&shell.run)?,
            cwd: sight.optional(shell.cwd.as_ref())?,
            stdin: sight.optional(shell.stdin.as_ref())?.map(Sealable),
            output: shell.output,
        },
        Action::Tool(tool) => Work::Tool {
            tool: tool.tool.clone(),
            server: tool.server.clone(),
            args: Sealable(or_null(sight.optional(tool.args.as_ref())?)),
        },
        Action::Task(task) => Work::Task {
            task: task.task.clone(),
            group: task.group.clone(),
            input: or_null(sight.optional(task.input.as_ref())?),
        },
        Action::Http(_) | Action::Call(_) | Action::Assistant(_) | Action::Builtin(_) => {
            unreachable!("a program with such a step is refused")
        }
    })
}
