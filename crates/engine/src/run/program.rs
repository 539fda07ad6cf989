//! A plan prepared for execution: everything that all runs of it share and none of them changes.

use crate::event::AddedPlan;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use windlass_ir::contract::{Contract, Violation};
use windlass_ir::expr::{ResultShapes, StepId, Visibility};
use windlass_ir::plan::PlanStep;
use windlass_ir::policy::OnFailure;
use windlass_ir::workflow::{Action, Gate, Kind, RunInput};
use windlass_ir::{Plan, Type, Value};

#[derive(Debug)]
pub struct Program {
    pub plan: Arc<Plan>,
    /// Precomputed facts about each step, by number.
    notes: Vec<StepNote>,
    contracts: HashMap<String, Contract>,
    can_undo: bool,
    /// Compiled plans that runs of this program added, by digest, for as long as a run uses them.
    added: Mutex<HashMap<String, Weak<Program>>>,
}

#[derive(Debug, Default)]
struct StepNote {
    /// Its name in paths if that is not its id: several unnamed steps in one list get numbers.
    name: Option<Arc<str>>,
    /// Its index in its list.
    place: u32,
    /// The number of steps it waits for.
    needs: u32,
    dependents: Vec<StepId>,
    /// The step in the same list that handles its failure.
    goto: Option<StepId>,
    /// The step in the same list that undoes it.
    undoes: Option<StepId>,
    /// It is the body of a guard, whose policy applies instead.
    guarded: bool,
    /// The number of steps inside it, at any depth.
    inner: u32,
    /// A gate or a call is inside it, at any depth.
    asked_about: bool,
}

/// The queues for steps that are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Needs no executor and starts at once.
    Free,
    Actions,
    Agents,
}

/// How to undo a completed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compensation<'p> {
    /// Steps that belong to it.
    List(&'p [StepId]),
    /// Another step of its list.
    Step(StepId),
}

/// Why this program cannot run a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrunnable {
    #[error("step `{step}` uses {feature}, which is not supported")]
    Feature { step: String, feature: &'static str },
    #[error("a type of step `{step}` cannot be checked: {message}")]
    Contract { step: String, message: String },
    #[error("the plan of `{0}` is broken: a step in it does not exist")]
    Broken(String),
    #[error("the plan `{0}`, which is stored separately, was not loaded")]
    Apart(Arc<str>),
}

impl Program {
    pub fn new(plan: impl Into<Arc<Plan>>) -> Result<Self, Unrunnable> {
        let plan = plan.into();
        if !is_whole(&plan) {
            return Err(Unrunnable::Broken(plan.header.id.to_string()));
        }
        let mut program = Self {
            notes: Vec::new(),
            contracts: HashMap::new(),
            can_undo: false,
            added: Mutex::default(),
            plan,
        };
        program.check_features()?;
        program.compile_contracts()?;
        program.lay_out();
        Ok(program)
    }

    /// The program of a plan that a run adds to itself. It is compiled only once.
    pub fn added(&self, plan: &AddedPlan) -> Result<Arc<Self>, Unrunnable> {
        let plan = match plan {
            AddedPlan::Whole(plan) => plan,
            AddedPlan::Apart { id } => return Err(Unrunnable::Apart(id.clone())),
        };
        if let Some(known) = self.added_before(plan.digest.as_str()) {
            return Ok(known);
        }
        let program = Arc::new(Self::new(plan.clone())?);
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        added.retain(|_, program| program.strong_count() > 0);
        added.insert(plan.digest.as_str().to_owned(), Arc::downgrade(&program));
        Ok(program)
    }

    pub(super) fn added_before(&self, digest: &str) -> Option<Arc<Self>> {
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        added.get(digest).and_then(Weak::upgrade)
    }

    /// Refuses plans that use unsupported features, before anything starts.
    fn check_features(&self) -> Result<(), Unrunnable> {
        for step in &self.plan.steps {
            if let Some(feature) = unsupported_feature(step) {
                return Err(Unrunnable::Feature { step: step.id.to_string(), feature });
            }
        }
        Ok(())
    }

    fn compile_contracts(&mut self) -> Result<(), Unrunnable> {
        let plan = &self.plan;
        let header = plan.header.id.to_string();
        let mut types: Vec<(String, &Type)> = Vec::new();
        for step in &plan.steps {
            let id = || step.id.to_string();
            types.extend(step.inputs.values().map(|input| (id(), &input.ty)));
            types.extend(step.outputs.values().map(|output| (id(), &output.ty)));
            if let Kind::Gate(gate) = &step.kind {
                types.extend(gate.form.values().map(|field| (id(), &field.ty)));
            }
        }
        types.extend(plan.outputs.values().chain(&plan.result).map(|output| (header.clone(), &output.ty)));
        if let RunInput::Open(ty) = &plan.input {
            types.push((header, ty));
        }
        for (step, ty) in types {
            if let Entry::Vacant(entry) = self.contracts.entry(key_of(ty)) {
                let contract = Contract::new(ty)
                    .map_err(|error| Unrunnable::Contract { step, message: error.to_string() })?;
                entry.insert(contract);
            }
        }
        Ok(())
    }

    fn lay_out(&mut self) {
        let plan = &self.plan;
        let mut notes: Vec<StepNote> = plan.steps.iter().map(|_| StepNote::default()).collect();
        let bodies = plan.steps.iter().flat_map(|step| step.kind.bodies().into_iter().map(|(_, body)| body));
        for list in bodies.chain([&plan.roots]) {
            let by_id: HashMap<&str, StepId> = list.iter().map(|id| (&*plan.step(*id).id, *id)).collect();
            let mut unnamed: HashMap<&str, u32> = HashMap::new();
            for (place, id) in (0u32..).zip(list) {
                let step = plan.step(*id);
                if step.implicit {
                    let count = unnamed.entry(&step.id).or_default();
                    *count += 1;
                    notes[id.index()].name = (*count > 1).then(|| format!("{}.{count}", step.id).into());
                }
                let policy = &plan.step(*id).policy;
                let note = &mut notes[id.index()];
                note.place = place;
                note.goto = match &policy.on_failure {
                    OnFailure::Goto(target) => by_id.get(&*target.value).copied(),
                    OnFailure::Halt
                    | OnFailure::Rollback
                    | OnFailure::Continue
                    | OnFailure::SkipDependents => None,
                };
                note.undoes = policy.compensate.as_ref().and_then(|to| by_id.get(&*to.value).copied());
            }
        }
        for (number, step) in (0u32..).map(StepId).zip(&plan.steps) {
            if let Kind::Guard(guard) = &step.kind {
                guard.body.iter().for_each(|body| notes[body.index()].guarded = true);
            }
            // A step that handles a failure or undoes another one runs on demand, and no step waits for it.
            let counts = |need: &&StepId| !step.takes_over && !plan.step(**need).takes_over;
            for need in step.needs.iter().filter(counts) {
                notes[need.index()].dependents.push(number);
                notes[number.index()].needs += 1;
            }
            let outwards = std::iter::successors(step.parent, |parent| plan.step(*parent).parent);
            let asked_about = matches!(step.kind, Kind::Gate(_) | Kind::Action(Action::Call(_)));
            for around in outwards {
                let note = &mut notes[around.index()];
                note.inner += 1;
                note.asked_about |= asked_about;
            }
        }
        self.notes = notes;
        self.can_undo =
            (0..self.plan.steps.len() as u32).any(|step| self.compensation(StepId(step)).is_some());
    }

    fn note(&self, step: StepId) -> &StepNote {
        &self.notes[step.index()]
    }

    pub fn step(&self, step: StepId) -> &PlanStep {
        self.plan.step(step)
    }

    /// The name of a step in paths.
    pub fn name(&self, step: StepId) -> &Arc<str> {
        self.note(step).name.as_ref().unwrap_or(&self.step(step).id)
    }

    pub fn place(&self, step: StepId) -> u32 {
        self.note(step).place
    }

    /// The number of steps it waits for.
    pub fn needs(&self, step: StepId) -> u32 {
        self.note(step).needs
    }

    pub fn dependents(&self, step: StepId) -> &[StepId] {
        &self.note(step).dependents
    }

    pub fn goto(&self, step: StepId) -> Option<StepId> {
        self.note(step).goto.filter(|_| !self.note(step).guarded)
    }

    /// The failure policy that applies to a step.
    pub fn on_failure(&self, step: StepId) -> &OnFailure {
        if self.note(step).guarded { &OnFailure::Halt } else { &self.step(step).policy.on_failure }
    }

    /// Whether it is the body of a guard, whose failure policy applies instead.
    pub fn is_guarded(&self, step: StepId) -> bool {
        self.note(step).guarded
    }

    pub fn compensation(&self, step: StepId) -> Option<Compensation<'_>> {
        if let Kind::Guard(guard) = &self.step(step).kind
            && let Some(list) = guard.compensate.as_ref().filter(|list| !list.is_empty())
        {
            return Some(Compensation::List(list));
        }
        self.note(step).undoes.filter(|_| !self.note(step).guarded).map(Compensation::Step)
    }

    /// Whether any step can be undone.
    pub fn can_undo(&self) -> bool {
        self.can_undo
    }

    /// Whether one step is inside another, at any depth.
    pub fn is_inside(&self, step: StepId, scope: StepId) -> bool {
        let outwards = std::iter::successors(self.step(step).parent, |parent| self.step(*parent).parent);
        outwards.into_iter().any(|around| around == scope)
    }

    /// Whether each item of a fan-out remembers its own steps, because they may read each other by name.
    pub fn remembers(&self, fan_out: StepId) -> bool {
        self.is_flat() && self.note(fan_out).inner > 1
    }

    /// Whether a finished item or round of this step can be reduced to its result, because its steps are never read
    /// from outside, undone, or asked about again.
    pub fn forgets(&self, scope: StepId) -> bool {
        !self.is_flat() && !self.can_undo && !self.note(scope).asked_about
    }

    pub fn is_flat(&self) -> bool {
        self.plan.semantics.visibility == Visibility::Flat
    }

    pub fn shapes(&self) -> &ResultShapes {
        &self.plan.semantics.results
    }

    pub fn lane(&self, step: StepId) -> Lane {
        match &self.step(step).kind {
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

/// Two programs are equal if their plans have the same digest.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.plan.digest == other.plan.digest
    }
}

/// Whether every step number in the plan is valid. A plan can come from outside.
fn is_whole(plan: &Plan) -> bool {
    let count = plan.steps.len();
    let known = |id: &StepId| id.index() < count;
    let lists_known = |step: &PlanStep| step.kind.bodies().iter().all(|(_, list)| list.iter().all(known));
    let step_known = |(number, step): (usize, &PlanStep)| {
        // A parent comes before its steps, so walking outward always ends.
        let parent_known = step.parent.is_none_or(|parent| parent.index() < number);
        parent_known && step.needs.iter().all(known) && lists_known(step)
    };
    plan.roots.iter().all(known) && plan.steps.iter().enumerate().all(step_known)
}

/// An unsupported feature that the step uses.
fn unsupported_feature(step: &PlanStep) -> Option<&'static str> {
    let key = step.policy.idempotency.as_ref();
    let is_action = matches!(step.kind, Kind::Action(_));
    let asked = [
        (step.policy.rate.is_some() && !is_action, "a rate limit on a step that is not an action"),
        (key.is_some() && !is_action, "an idempotency key on a step that is not an action"),
    ];
    asked.into_iter().find(|(asked, _)| *asked).map(|(_, feature)| feature)
}

fn key_of(ty: &Type) -> String {
    match ty {
        Type::Schema(schema) => schema.to_string(),
        plain => plain.to_string(),
    }
}

/// Whether an option of a gate rejects.
pub fn says_no(option: &str) -> bool {
    ["reject", "abort"].iter().any(|no| option.eq_ignore_ascii_case(no))
}

/// The option of the gate that a choice selects.
pub fn option_of(gate: &Gate, choice: &crate::input::Choice) -> Option<Arc<str>> {
    use crate::input::Choice;
    let mut options = gate.options.iter();
    match choice {
        Choice::Approve => options.find(|option| !says_no(option)),
        Choice::Reject => options.find(|option| says_no(option)),
        Choice::Option(word) => options.find(|option| option.eq_ignore_ascii_case(word)),
    }
    .cloned()
}
