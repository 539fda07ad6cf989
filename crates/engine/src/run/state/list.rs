//! Lists of steps in one scope. A step becomes ready when its dependencies settle, and the scope is complete when all
//! steps have settled.

use super::{Abort, Because, Doing, Instance, Misfit, Phase, Place, Settlement, State, Stop, Unit, Within};
use crate::event::{AddedPlan, Settled};
use crate::keys::{Path, Reason, Timestamp};
use crate::outcome::{Failure, Outcome};
use crate::run::program::{Compensation, Program, Unrunnable};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use windlass_ir::Value;
use windlass_ir::expr::StepId;
use windlass_ir::workflow::Kind;

/// The list of a parent that an instance belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Body,
    /// The step that handles its failure.
    TakeOver,
    /// The steps that always run after the body.
    Finally,
    /// The steps that undo it.
    Undo,
}

impl Role {
    /// The name of a step in a list of this role: its id, unless it is unnamed and would be confused with the body.
    pub fn name_of(self, program: &Program, step: StepId) -> Arc<str> {
        match (self, program.step(step).implicit) {
            (Self::Finally, true) => "finally".into(),
            (Self::Undo, true) => "compensate".into(),
            (Self::Body | Self::TakeOver, true) | (_, false) => program.name(step).clone(),
        }
    }
}

/// The steps of one scope or of the run, or the items or rounds of a loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    pub role: Role,
    first: u32,
    pub count: u32,
    /// Later instances that replace the first one of their step, by index in the list.
    instead: BTreeMap<u32, Place>,
    /// Steps that planners added.
    added: BTreeSet<Place>,
    /// The number of steps that are neither settled nor dormant.
    pub open: u32,
    /// Neither started nor settled.
    pub unstarted: BTreeSet<Place>,
    /// Started and not settled.
    pub active: BTreeSet<Place>,
    /// It starts no more steps.
    pub draining: bool,
    /// The step whose failure ended this list.
    pub halted: Option<Place>,
    /// The first step that failed this list, whether or not it ended it.
    pub failed: Option<Place>,
    /// The first step that was canceled.
    pub cancelled: Option<Place>,
}

impl List {
    /// The current instance of the step at this index.
    pub fn place(&self, number: u32) -> Option<Place> {
        match self.instead.get(&number) {
            Some(place) => Some(*place),
            None => (number < self.count).then(|| Place(self.first + number)),
        }
    }

    /// Forgets how the list ended.
    pub(super) fn clear_ends(&mut self) {
        (self.draining, self.halted, self.failed, self.cancelled) = (false, None, None, None);
    }

    pub(super) fn add_frame(&mut self, frame: Place) {
        self.open += 1;
        self.active.insert(frame);
        self.added.insert(frame);
    }

    pub(super) fn forget_frame(&mut self, frame: Place) {
        self.added.remove(&frame);
    }

    /// All instances: in file order, then in the order in which planners added them.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        (0..self.count).filter_map(|number| self.place(number)).chain(self.added.iter().copied())
    }
}

impl State {
    /// Creates instances for a list of steps. Those without dependencies are ready at once.
    pub(super) fn open_list(&mut self, scope: Option<Place>, role: Role, unit: u32, steps: &[StepId]) {
        let program = self.units[unit as usize].program.clone();
        let first = self.instances.count();
        let around = scope.map_or_else(Path::default, |place| self.at(place).path.clone());
        let mut list = List { role, first, count: steps.len() as u32, ..List::default() };
        for step in steps {
            let name = role.name_of(&program, *step);
            let place = self.add(unit, *step, around.child(name, None), scope, role);
            // A step that handles a failure is dormant unless it is the list itself.
            let dormant = program.step(*step).takes_over && matches!(role, Role::Body);
            if dormant {
                self.set_phase(place, Phase::Dormant);
            } else {
                self.at_mut(place).pending = program.needs(*step);
                list.open += 1;
                list.unstarted.insert(place);
            }
        }
        let (open, ready) = (list.open, list.unstarted.clone());
        match scope {
            None => self.roots = list,
            Some(place) => self.at_mut(place).lists.push(list),
        }
        for place in ready {
            if self.at(place).pending == 0 {
                self.make_ready(place);
            }
        }
        if let (0, Some(scope)) = (open, scope) {
            self.index.attention.insert(scope);
        }
    }

    /// Creates an instance outside of any list.
    pub(super) fn add(
        &mut self,
        unit: u32,
        step: StepId,
        path: Path,
        parent: Option<Place>,
        role: Role,
    ) -> Place {
        self.add_instance(Instance::new(unit, step, path, parent, role), false)
    }

    /// Creates an item or round of a step.
    pub(super) fn add_frame(&mut self, unit: u32, step: StepId, path: Path, parent: Place) -> Place {
        self.add_instance(Instance::new(unit, step, path, Some(parent), Role::Body), true)
    }

    fn add_instance(&mut self, mut instance: Instance, is_frame: bool) -> Place {
        let place = Place(self.instances.count());
        self.trace_new(place, &instance, is_frame);
        if let Some(before) = self.by_path.insert(instance.path.clone(), place) {
            // Continue the numbering of the earlier instance at this path, and keep its notes.
            let before = self.at(before);
            (instance.attempts_before, instance.attempts) = (before.attempts, before.attempts);
            instance.notes = before.notes.clone();
        }
        self.instances.add(instance)
    }

    pub(super) fn make_ready(&mut self, place: Place) {
        self.set_phase(place, Phase::Ready);
    }

    pub(super) fn settle(&mut self, place: Place, settled: &Settled, at: Timestamp) -> Result<(), Misfit> {
        self.need_at(place, self.can_settle(place, settled, at), "a step that can have this outcome")?;
        self.begin(place, at);
        self.timers.drop_all(place);
        self.answer_key(place, &settled.outcome, at);
        self.answered.retain(|answered| *answered != place);
        if let Some(taken) = &settled.took {
            self.signals.unread.retain(|unread| unread.id != *taken);
        }
        let order = self.order_of(place);
        if settled.undoable {
            self.undo.steps.insert(order, place);
        }
        self.failures += u64::from(matches!(settled.outcome, Outcome::Failed(_)));
        let (outcome, fails, recovered) = (settled.outcome.clone(), settled.fails, settled.recovered);
        // Only failed or canceled steps can be reopened, but a step that is undone may read its items.
        let forgets = self.forgets() && !self.program(place).can_undo();
        if let Some(trace) = self.trace(place) {
            (trace.ended_at, trace.abandoned) = (Some(at), settled.abandoned);
        }
        let instance = self.at_mut(place);
        instance.give_back(at);
        if matches!(outcome, Outcome::Done(_)) && forgets {
            instance.within = None;
        }
        self.set_phase(place, Phase::Settled(Settlement { outcome, fails, recovered }));
        self.note_seen(place);
        self.leave_list(place, settled);
        self.wake_dependents(place);
        self.frame_settled(place);
        self.look_at_parent(place);
        Ok(())
    }

    /// Whether the step can have this outcome. Before it starts, it can only be skipped, canceled or kept, or fail to
    /// start.
    fn can_settle(&self, place: Place, settled: &Settled, at: Timestamp) -> bool {
        use Outcome::{Cancelled, Continue, Done, Failed, Skipped};
        let instance = self.at(place);
        let is_stopping = self.index.stopping.contains(&place);
        let attended = self.index.attention.contains(&place);
        let fits = match (&instance.phase, &settled.outcome) {
            (_, Continue(_)) | (Phase::Settled(_) | Phase::Dormant, _) => false,
            (Phase::Waiting, outcome) => is_stopping && matches!(outcome, Cancelled(_)),
            (Phase::Ready | Phase::Joined(_) | Phase::Gate(_) | Phase::Wait(_), Cancelled(_)) => is_stopping,
            (Phase::Ready, Done(_)) => {
                let at_once = matches!(self.kind(place), Kind::Assign(_) | Kind::Finish(_) | Kind::Repeat(_));
                at_once || self.kept.contains_key(&instance.path)
            }
            (Phase::Ready | Phase::Joined(_), Failed(_) | Skipped(_)) => true,
            (Phase::Joined(key), Done(_)) => self.keys.contains_key(key),
            (Phase::Attempt(attempt), outcome) => match (&attempt.doing, outcome) {
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
                attended || is_due || sleep.got.is_some() || settled.took.is_some()
            }
            (Phase::Gate(_) | Phase::Wait(_), Failed(_)) => true,
            (Phase::Gate(_) | Phase::Wait(_), Skipped(_)) => false,
            (Phase::Entered, _) => attended,
        };
        let is_taken_over = matches!(instance.within.as_deref(), Some(Within::TakenOver(_)));
        let can_undo = self.program(place).compensation(instance.step).is_some();
        fits && settled
            .took
            .as_ref()
            .is_none_or(|id| self.signals.unread.iter().any(|unread| unread.id == *id))
            && (is_taken_over || !settled.recovered)
            && (can_undo || !settled.undoable)
    }

    /// The number of a settling step in the order of completion.
    fn order_of(&mut self, place: Place) -> u64 {
        if let Some(kept) = self.kept.get(&self.at(place).path) {
            return kept.order;
        }
        self.completed += 1;
        self.completed - 1
    }

    fn leave_list(&mut self, place: Place, settled: &Settled) {
        let (parent, role) = (self.at(place).parent, self.at(place).role);
        let Some(list) = self.list_mut(parent, role) else { return };
        list.active.remove(&place);
        list.open = list.open.saturating_sub(1);
        match &settled.outcome {
            Outcome::Failed(_) => {
                if settled.fails {
                    list.failed.get_or_insert(place);
                }
                if settled.halts {
                    list.halted.get_or_insert(place);
                }
                // Open items finish, but no more items start.
                if settled.halts && self.at(place).frame.is_none() {
                    let id = self.program(place).step(self.at(place).step).id.clone();
                    self.stop_list(parent, role, &Stop::drain(format!("`{id}` failed")));
                }
            }
            Outcome::Cancelled(_) => drop(list.cancelled.get_or_insert(place)),
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => {}
        }
        let unhelpful = match &settled.outcome {
            Outcome::Failed(_) => settled.fails,
            Outcome::Cancelled(_) => true,
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => false,
        };
        self.undo.is_partial |= unhelpful && matches!(role, Role::Undo | Role::TakeOver);
    }

    /// Counts down the open dependencies of the steps that wait for it.
    fn wake_dependents(&mut self, place: Place) {
        let instance = self.at(place);
        let step = instance.step;
        if instance.frame.is_some() {
            return;
        }
        let program = self.program(place).clone();
        for dependent in program.dependents(step) {
            let Some(waiting) = self.beside(place, *dependent) else { continue };
            let instance = self.at_mut(waiting);
            if instance.phase == Phase::Waiting {
                instance.pending = instance.pending.saturating_sub(1);
                if instance.pending == 0 {
                    self.make_ready(waiting);
                }
            }
        }
    }

    /// The instance of another step in the same list.
    pub fn beside(&self, place: Place, step: StepId) -> Option<Place> {
        let instance = self.at(place);
        let unit = self.unit(Some(place));
        let number = unit.program.place(step);
        let found = match unit.planned {
            Some(first) => Some(Place(first.0 + number)),
            None => self.list(instance.parent, instance.role)?.place(number),
        };
        found.filter(|found| self.at(*found).step == step && self.at(*found).unit == instance.unit)
    }

    /// Marks a scope whose steps have all settled.
    fn look_at_parent(&mut self, place: Place) {
        let (parent, role) = (self.at(place).parent, self.at(place).role);
        if self.list(parent, role).is_none_or(|list| list.open > 0) {
            return;
        }
        match (role, parent) {
            (Role::Undo, Some(undone)) => {
                let waiting =
                    self.undo.under_way.iter().find(|(_, what)| **what == undone).map(|(who, _)| *who);
                if let Some(who) = waiting {
                    self.undo.under_way.remove(&who);
                    self.index.attention.extend(who);
                }
            }
            (Role::Body | Role::TakeOver | Role::Finally, Some(parent)) => {
                self.index.attention.insert(parent);
            }
            (_, None) => {}
        }
    }

    /// Starts the step that handles a failure, inside the failed step.
    pub(super) fn take_over(
        &mut self,
        place: Place,
        by: &Arc<str>,
        failure: &Failure,
        at: Timestamp,
    ) -> Result<(), Misfit> {
        let instance = self.at(place);
        let is_begun = match &instance.phase {
            Phase::Ready | Phase::Joined(_) | Phase::Attempt(_) | Phase::Gate(_) | Phase::Wait(_) => true,
            Phase::Entered => !matches!(instance.within.as_deref(), Some(Within::TakenOver(_))),
            Phase::Dormant | Phase::Waiting | Phase::Settled(_) => false,
        };
        let program = self.program(place);
        let handler = program.goto(instance.step).filter(|_| is_begun && instance.frame.is_none());
        let handler = handler.filter(|handler| program.step(*handler).id == *by);
        let expected = "a started step whose failure this step handles";
        let handler = handler.ok_or_else(|| self.misfit_at(place, expected))?;
        let step = &program.step(instance.step).id;
        let because = Because { failure: failure_value(step, failure), undo: Value::Null };
        // Steps that wait for the same key must not wait for this one any longer.
        self.answer_key(place, &Outcome::Failed(failure.clone()), at);
        self.enter(place, Within::TakenOver(failure.clone()), at);
        self.timers.drop_all(place);
        self.at_mut(place).stop = None;
        self.call_for(place, Role::TakeOver, handler, because);
        Ok(())
    }

    /// Starts undoing a step, inside that step.
    pub(super) fn undo(&mut self, place: Place, because: &Value, uncertain: bool) -> Result<(), Misfit> {
        // Usually the last one.
        let order = self.undo.steps.iter().rev().find(|(_, undoable)| **undoable == place);
        let order = order.map(|(order, _)| *order);
        let order = order.ok_or_else(|| self.misfit_at(place, "a step that can still be undone"))?;
        self.undo.steps.remove(&order);
        let program = self.program(place).clone();
        let step = self.at(place).step;
        let output = match self.at(place).outcome() {
            Some(Outcome::Done(value)) => value.clone(),
            Some(_) | None => Value::Null,
        };
        let undo = Value::map([
            ("step", Value::Text(program.step(step).id.clone())),
            ("output", output),
            ("uncertain", Value::Bool(uncertain)),
        ]);
        let because = Because { failure: because.clone(), undo };
        self.undo.has_begun = true;
        let waits = self.undo_waits_for(place);
        if let Some(guard) = waits {
            self.index.attention.remove(&guard);
        }
        self.undo.under_way.insert(waits, place);
        match program.compensation(step) {
            Some(Compensation::List(list)) => {
                let unit = self.at(place).unit;
                self.open_list(Some(place), Role::Undo, unit, list);
                // A settled step needs no attention.
                self.index.attention.remove(&place);
                let inner: Vec<Place> =
                    self.list(Some(place), Role::Undo).into_iter().flat_map(List::places).collect();
                let because = Arc::new(because);
                inner.into_iter().for_each(|inner| self.at_mut(inner).because = Some(because.clone()));
            }
            Some(Compensation::Step(target)) => {
                self.call_for(place, Role::Undo, target, because);
            }
            None => {}
        }
        Ok(())
    }

    /// The nearest open guard with `finally` steps around a step that is undone, or the run.
    fn undo_waits_for(&self, place: Place) -> Option<Place> {
        let outwards = std::iter::successors(self.at(place).parent, |place| self.at(*place).parent);
        outwards.into_iter().find(|around| {
            let guard = matches!(self.kind(*around), Kind::Guard(_));
            guard && !self.at(*around).is_settled()
        })
    }

    /// Creates an instance of a step that runs on demand, inside the step that needs it.
    fn call_for(&mut self, caller: Place, role: Role, target: StepId, because: Because) {
        let program = self.program(caller).clone();
        let (unit, parent) = (self.at(caller).unit, self.at(caller).parent);
        let number = self.instances.count();
        self.open_list(Some(caller), role, unit, &[target]);
        let place = Place(number);
        self.at_mut(place).because = Some(Arc::new(because));
        let (slot, role) = (program.place(target), self.at(caller).role);
        if let Some(list) = self.list_mut(parent, role) {
            list.instead.insert(slot, place);
        }
    }

    /// Adds the steps of a called workflow.
    pub(super) fn enter_fragment(
        &mut self,
        place: Place,
        plan: &AddedPlan,
        inputs: &Value,
        env: &Value,
        at: Timestamp,
    ) -> Result<(), Misfit> {
        let program = self.runnable(plan)?;
        let unit = self.units.len() as u32;
        let roots = program.plan.roots.clone();
        self.units.push(Unit {
            program,
            inputs: inputs.clone(),
            env: env.clone(),
            folder: Value::Null,
            call: Some(place),
            planned: None,
            latest: HashMap::new(),
        });
        self.enter(place, Within::Steps, at);
        self.open_list(Some(place), Role::Body, unit, &roots);
        Ok(())
    }

    /// Adds steps of a planner next to it.
    pub(super) fn add_planned(&mut self, planner: Place, plan: &AddedPlan) -> Result<(), Misfit> {
        let program = self.runnable(plan)?;
        let (parent, role) = (self.at(planner).parent, self.at(planner).role);
        let around = parent.map_or_else(Path::default, |place| self.at(place).path.clone());
        let outer = self.unit(Some(planner));
        let (inputs, env, folder) = (outer.inputs.clone(), outer.env.clone(), outer.folder.clone());
        let unit = self.units.len() as u32;
        let roots = program.plan.roots.clone();
        self.planned += roots.len() as u32;
        let latest = HashMap::new();
        let planned = Some(Place(self.instances.count()));
        self.units.push(Unit {
            program: program.clone(),
            inputs,
            env,
            folder,
            call: parent,
            planned,
            latest,
        });
        let mut places = Vec::new();
        for step in &roots {
            let place =
                self.add(unit, *step, around.child(program.step(*step).id.clone(), None), parent, role);
            self.at_mut(place).pending = program.needs(*step);
            places.push(place);
        }
        if let Some(list) = self.list_mut(parent, role) {
            list.open += places.len() as u32;
            list.unstarted.extend(&places);
            list.added.extend(&places);
        }
        for place in places {
            if self.at(place).pending == 0 {
                self.make_ready(place);
            }
        }
        Ok(())
    }

    /// Replaces the current instance of a step in its list.
    pub(super) fn put_instead(&mut self, parent: Option<Place>, role: Role, number: u32, place: Place) {
        if let Some(list) = self.list_mut(parent, role) {
            list.instead.insert(number, place);
            list.open += 1;
            list.unstarted.insert(place);
        }
    }

    /// The program of a plan in an event.
    fn runnable(&self, plan: &AddedPlan) -> Result<Arc<Program>, Misfit> {
        let unrunnable =
            |error: Unrunnable| Misfit::new("a plan that this version can run", error.to_string());
        self.units[0].program.added(plan).map_err(unrunnable)
    }
}

/// The readable description of a failure.
pub fn failure_value(step: &Arc<str>, failure: &Failure) -> Value {
    Value::map([
        ("step", Value::Text(step.clone())),
        ("class", Value::Text(failure.class.clone())),
        ("message", Value::Text(failure.message.clone())),
        ("detail", failure.detail.clone().unwrap_or(Value::Null)),
    ])
}
