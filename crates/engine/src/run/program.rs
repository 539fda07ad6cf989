//! A plan made ready for running: what every run of it needs to know and none of them changes. Shared by all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use windlass_ir::contract::{Contract, Violation};
use windlass_ir::expr::{Semantics, StepId};
use windlass_ir::plan::PlanStep;
use windlass_ir::workflow::{Action, Gate, Kind, RunInput};
use windlass_ir::{Plan, Type, Value};

#[derive(Debug)]
pub struct Program {
    pub plan: Plan,
    /// The place of each step in the list that it stands in.
    places: Vec<u32>,
    dependents: Vec<Vec<StepId>>,
    contracts: HashMap<String, Contract>,
}

/// Steps that are ready wait in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Needs nobody to do it: starts at once.
    Free,
    Actions,
    Agents,
}

/// Why a plan cannot be run by this program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrunnable {
    #[error("`{step}` is of the type `{kind}`, which this version cannot run yet")]
    Kind { step: String, kind: String },
    #[error("`{step}` uses `{feature}`, which this version does not do yet")]
    Feature { step: String, feature: &'static str },
    #[error(
        "`{workflow}` goes by the rules of another dialect ({dialect}): this version reads and converts such workflows, and cannot run them yet"
    )]
    Rules { workflow: String, dialect: String },
    #[error("a type of step `{step}` cannot be checked: {message}")]
    Contract { step: String, message: String },
}

impl Program {
    pub fn new(plan: Plan) -> Result<Self, Unrunnable> {
        let mut program = Self {
            places: vec![0; plan.steps.len()],
            dependents: vec![Vec::new(); plan.steps.len()],
            contracts: HashMap::new(),
            plan,
        };
        program.check_kinds()?;
        program.compile_contracts()?;
        program.lay_out();
        Ok(program)
    }

    /// Nothing is started that could not be finished, and nothing that was asked for is left out in silence.
    fn check_kinds(&self) -> Result<(), Unrunnable> {
        let id = || self.plan.header.id.to_string();
        if self.plan.semantics != Semantics::HOUSE {
            return Err(Unrunnable::Rules { workflow: id(), dialect: self.plan.dialect.to_string() });
        }
        let policy = &self.plan.policy;
        let unkept = [
            (
                self.plan.input != RunInput::Declared || self.plan.result.is_some(),
                "an input or output as a whole",
            ),
            (policy.priority.is_some(), "priority"),
            (policy.singleton.is_some(), "singleton"),
            (policy.sticky.is_some(), "sticky"),
            (!policy.cancel_on.is_empty(), "cancel_on"),
            (policy.start_key.is_some(), "start_key"),
            (policy.compensate_on_cancel, "compensate_on_cancel"),
            (!policy.budget.is_unlimited(), "config.budget"),
            (policy.concurrency.runs_per_workflow.is_some(), "config.concurrency.per_workflow"),
        ];
        if let Some((_, feature)) = unkept.into_iter().find(|(asked, _)| *asked) {
            return Err(Unrunnable::Feature { step: id(), feature });
        }
        for step in &self.plan.steps {
            let id = || step.id.to_string();
            let runnable = match &step.kind {
                Kind::Action(Action::Task(task)) => task.rounds.is_none() && task.planner.is_none(),
                Kind::Action(Action::Agent(_) | Action::Shell(_) | Action::Tool(_)) => true,
                Kind::Gate(_) | Kind::Assign(_) | Kind::Block(_) | Kind::Choose(_) => true,
                Kind::Action(
                    Action::Http(_) | Action::Call(_) | Action::Assistant(_) | Action::Builtin(_),
                )
                | Kind::Slot(_)
                | Kind::Parallel(_)
                | Kind::Wait(_)
                | Kind::Finish(_)
                | Kind::ForEach(_)
                | Kind::Repeat(_)
                | Kind::Guard(_) => false,
            };
            if !runnable {
                return Err(Unrunnable::Kind { step: id(), kind: step.word.to_string() });
            }
            if step.takes_over {
                return Err(Unrunnable::Feature { step: id(), feature: "on_failure: {goto: …}" });
            }
            if !step.kind.bodies().is_empty() && step.policy.timeout.is_some() {
                return Err(Unrunnable::Feature { step: id(), feature: "error_policy.timeout" });
            }
            if let Some(feature) = unkept_of(step) {
                return Err(Unrunnable::Feature { step: id(), feature });
            }
            if step.policy.idempotency.is_some() {
                return Err(Unrunnable::Feature { step: id(), feature: "idempotency" });
            }
        }
        Ok(())
    }

    fn compile_contracts(&mut self) -> Result<(), Unrunnable> {
        for step in &self.plan.steps {
            let types = step
                .inputs
                .values()
                .map(|input| &input.ty)
                .chain(step.outputs.values().map(|output| &output.ty));
            let form = match &step.kind {
                Kind::Gate(gate) => gate.form.values().map(|field| &field.ty).collect(),
                _ => Vec::new(),
            };
            for ty in types.chain(form) {
                if let Entry::Vacant(entry) = self.contracts.entry(key_of(ty)) {
                    let contract = Contract::new(ty).map_err(|error| Unrunnable::Contract {
                        step: step.id.to_string(),
                        message: error.to_string(),
                    })?;
                    entry.insert(contract);
                }
            }
        }
        for output in self.plan.outputs.values() {
            if let Ok(contract) = Contract::new(&output.ty) {
                self.contracts.insert(key_of(&output.ty), contract);
            }
        }
        Ok(())
    }

    fn lay_out(&mut self) {
        let bodies =
            self.plan.steps.iter().flat_map(|step| step.kind.bodies().into_iter().map(|(_, body)| body));
        for list in bodies.chain([&self.plan.roots]) {
            for (place, id) in (0u32..).zip(list) {
                self.places[id.index()] = place;
            }
        }
        for (number, step) in (0u32..).map(StepId).zip(&self.plan.steps) {
            for need in &step.needs {
                self.dependents[need.index()].push(number);
            }
        }
    }

    /// What the plan asks for and this version does not do, though it runs the rest.
    pub fn left_out(&self) -> Vec<&'static str> {
        let hooks = (!self.plan.hooks.is_empty()).then_some("hooks");
        hooks.into_iter().collect()
    }

    pub fn place(&self, step: StepId) -> u32 {
        self.places[step.index()]
    }

    pub fn dependents(&self, step: StepId) -> &[StepId] {
        &self.dependents[step.index()]
    }

    /// Which limits a step waits for.
    pub fn lane(&self, step: StepId) -> Lane {
        match &self.plan.step(step).kind {
            Kind::Action(Action::Agent(_)) => Lane::Agents,
            Kind::Action(_) => Lane::Actions,
            Kind::Gate(_)
            | Kind::Wait(_)
            | Kind::Assign(_)
            | Kind::Finish(_)
            | Kind::Slot(_)
            | Kind::Block(_)
            | Kind::Parallel(_)
            | Kind::ForEach(_)
            | Kind::Repeat(_)
            | Kind::Choose(_)
            | Kind::Guard(_) => Lane::Free,
        }
    }

    pub fn check(&self, ty: &Type, value: &Value) -> Result<(), Violation> {
        match self.contracts.get(&key_of(ty)) {
            Some(contract) => contract.check(value),
            None => Ok(()),
        }
    }
}

/// What a step asks for that is not done yet.
fn unkept_of(step: &PlanStep) -> Option<&'static str> {
    let plain = Gate::plain();
    let (gate, task) = match &step.kind {
        Kind::Gate(gate) => (Some(gate), None),
        Kind::Action(Action::Task(task)) => (None, Some(task)),
        _ => (None, None),
    };
    let asked = [
        (step.policy.compensate.is_some(), "compensate"),
        (step.policy.rate.is_some(), "rate limits"),
        (step.policy.task_jobs_max.is_some(), "task limits"),
        (step.policy.retry.backoff.jitter > 0.0, "retry.jitter"),
        (gate.is_some_and(|gate| !gate.metadata.is_empty()), "gate.metadata"),
        (gate.is_some_and(|gate| gate.options != plain.options), "gate.options"),
        (gate.is_some_and(|gate| gate.on_reject != plain.on_reject), "gate.on_reject"),
        (gate.is_some_and(|gate| gate.verdict_input.is_some()), "gate.verdict_input"),
        (gate.is_some_and(|gate| gate.subject.is_some() || gate.show_file.is_some()), "gate.subject"),
        (
            task.is_some_and(|task| !task.metadata.is_empty() || !task.capabilities.is_empty()),
            "task metadata",
        ),
    ];
    asked.into_iter().find(|(asked, _)| *asked).map(|(_, feature)| feature)
}

fn key_of(ty: &Type) -> String {
    match ty {
        Type::Schema(schema) => schema.to_string(),
        plain => plain.to_string(),
    }
}
