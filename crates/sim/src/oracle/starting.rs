//! The start of steps: reasons to skip, the first action of each kind, and the items and rounds of loops.

use super::Oracle;
use super::reading::{Reader, expression_error, some_time};
use super::tree::{At, Count, Frame, Inside, Instance, List, ListAt, ListKind, RUN, Rounds, State};
use std::sync::Arc;
use windlass_engine::{Failure, Outcome, Skip, SkipReason, class};
use windlass_ir::Value;
use windlass_ir::expr::{SkipRule, StepId, text_form};
use windlass_ir::policy::{Bindings, IdempotencyScope, OnFailure};
use windlass_ir::value::Map;
use windlass_ir::workflow::{Choose, Finish, FinishStatus, ForEach, ItemFailure, Items, Kind, RepeatTest};

impl Oracle {
    /// Starts the first step that needs no executor; false if there is none.
    pub fn start_something(&mut self) -> bool {
        self.tree.all().any(|at| self.start(at))
    }

    fn start(&mut self, at: At) -> bool {
        match (&self.tree[at].state, &self.tree[at].inside) {
            (State::Pending, _) if self.is_ready(at) && !self.is_action(at) => {
                self.begin(at);
                true
            }
            (_, _) => false,
        }
    }

    /// Opens items and rounds as soon as possible, even if nothing in them may start.
    pub fn open_items(&mut self) -> bool {
        self.tree.all().any(|at| match (&self.tree[at].state, &self.tree[at].inside) {
            (State::Entered, Some(Inside::Items(_))) => self.next_item(at),
            (_, _) => false,
        })
    }

    pub fn open_rounds(&mut self) -> bool {
        self.tree.all().any(|at| match (&self.tree[at].state, &self.tree[at].inside) {
            (State::Entered, Some(Inside::Rounds(Rounds::Wanted { due: None }))) => self.next_round(at),
            (_, _) => false,
        })
    }

    /// Whether all dependencies have settled. Steps that only handle failures or undo others do not count.
    pub fn is_ready(&self, at: At) -> bool {
        let Some(list) = self.tree[at].list else { return false };
        !self.tree.lists[list].draining && self.needs(at).into_iter().all(|need| self.tree[need].is_settled())
    }

    fn needs(&self, at: At) -> Vec<At> {
        let Some(list) = self.tree[at].list else { return Vec::new() };
        self.step(at).needs.iter().filter_map(|need| self.tree.member(list, *need)).collect()
    }

    pub fn is_action(&self, at: At) -> bool {
        matches!(self.step(at).kind, Kind::Action(_))
    }

    pub fn begin(&mut self, at: At) {
        let plan = self.plan.clone();
        let step = plan.step(self.tree[at].step.expect("the run does not begin as a step"));
        if let Some((reason, need)) = self.needs(at).into_iter().find_map(|need| self.kept_by(need)) {
            self.tree[at].because_of = Some(need);
            return self.skip(at, reason);
        }
        let reader = Reader::new(self, at);
        match step.condition.as_ref().map(|condition| reader.holds(condition)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return self.skip(at, SkipReason::ConditionFalse),
            Some(Err(failure)) => return self.end(at, Outcome::Failed(failure)),
        }
        if let Err(failure) = self.begin_kind(at, &step.kind) {
            self.end(at, Outcome::Failed(failure));
        }
    }

    /// Why a settled dependency keeps its dependents from running, if it does.
    fn kept_by(&self, need: At) -> Option<(SkipReason, At)> {
        let step = self.step(need);
        let passed_on = self.plan.semantics.skips == SkipRule::PassedOn;
        let is_gate = || {
            let inner = self.tree[need].step.map(|step| self.plan.unguarded(step));
            inner.is_some_and(|inner| self.plan.step(inner).kind.is_gate())
        };
        let reason = match self.tree[need].outcome()? {
            Outcome::Failed(_) if step.policy.on_failure == OnFailure::Continue => return None,
            Outcome::Failed(_) => SkipReason::DependencyFailed,
            Outcome::Cancelled(_) => SkipReason::RunCancelled,
            Outcome::Skipped(skip) if passed_on => match skip.reason {
                SkipReason::GateSkipped | SkipReason::DependencyFailed | SkipReason::RunCancelled => {
                    skip.reason
                }
                SkipReason::ConditionFalse | SkipReason::BranchNotTaken | SkipReason::EmptySlot
                    if is_gate() =>
                {
                    SkipReason::GateSkipped
                }
                SkipReason::ConditionFalse
                | SkipReason::BranchNotTaken
                | SkipReason::EmptySlot
                | SkipReason::NotAsked => return None,
            },
            Outcome::Skipped(_) | Outcome::Done(_) | Outcome::Continue(_) => return None,
        };
        Some((reason, need))
    }

    fn skip(&mut self, at: At, reason: SkipReason) {
        let because_of = self.tree[at].because_of.map(|need| self.step(need).id.clone());
        self.settle(at, Outcome::Skipped(Skip { reason, because_of }));
    }

    fn begin_kind(&mut self, at: At, kind: &Kind<Vec<StepId>>) -> Result<(), Failure> {
        let reader = Reader::new(self, at);
        match kind {
            Kind::Action(_) => {
                let key = self.render_key(at)?;
                self.tree[at].key.text = key;
                self.tree[at].state = State::Queued;
            }
            Kind::Gate(gate) => self.ask(at, gate)?,
            Kind::Wait(wait) => self.wait(at, wait)?,
            Kind::Assign(set) => {
                let values = reader.render_all(set)?;
                self.end(at, Outcome::Done(Value::Map(Arc::new(values))));
            }
            Kind::Finish(finish) => {
                let outputs = reader.render_all(&finish.outputs)?;
                self.finish(at, finish, &outputs);
            }
            Kind::Slot(_) => self.skip(at, SkipReason::EmptySlot),
            Kind::Block(steps) => self.enter(at, Inside::Steps, ListKind::Body, steps),
            Kind::Parallel(parallel) => self.enter(at, Inside::Steps, ListKind::Body, &parallel.branches),
            Kind::Guard(guard) => self.enter(at, Inside::Steps, ListKind::Body, &guard.body),
            Kind::Choose(choose) => {
                let (arm, steps) = self.choose(&reader, choose)?;
                self.enter(at, Inside::Arm(arm), ListKind::Body, steps);
            }
            Kind::ForEach(each) => {
                let items = self.items(&reader, each)?;
                self.enter(at, Inside::Items(items), ListKind::Frames, &[]);
            }
            Kind::Repeat(_) => {
                self.enter(at, Inside::Rounds(Rounds::UnderWay), ListKind::Frames, &[]);
                self.decide_round(at);
            }
        }
        Ok(())
    }

    /// The idempotency key of an action, if it applies within this run.
    fn render_key(&self, at: At) -> Result<Option<Arc<str>>, Failure> {
        let idempotency = self.step(at).policy.idempotency.as_ref();
        let Some(key) = idempotency.filter(|key| key.scope == IdempotencyScope::Run) else { return Ok(None) };
        let value = Reader::new(self, at).render(&key.key.template)?;
        text_form(&value, &self.plan.semantics).map(Some).map_err(expression_error)
    }

    fn choose<'p>(
        &self,
        reader: &Reader<'_>,
        choose: &'p Choose<Vec<StepId>>,
    ) -> Result<(Arc<str>, &'p [StepId]), Failure> {
        match choose {
            Choose::If { condition, then, otherwise } => Ok(match reader.holds(condition)? {
                true => ("then".into(), then),
                false => ("else".into(), otherwise),
            }),
            Choose::Switch { value, cases, default } => {
                let value = reader.render(&value.template)?;
                let text = text_form(&value, &self.plan.semantics).map_err(expression_error)?;
                Ok(match cases.get(&text) {
                    Some(steps) => (text, steps),
                    None => ("default".into(), default),
                })
            }
        }
    }

    fn items(&self, reader: &Reader<'_>, each: &ForEach<Vec<StepId>>) -> Result<Vec<Value>, Failure> {
        let items = match &each.items {
            Items::List(bound) => listed(&reader.render(&bound.template)?)?,
            Items::Matrix(axes) => product(reader, axes)?,
        };
        match each.items_max {
            Some(max) if items.len() as u64 > max => {
                Err(Failure::new(class::FAN_OUT_SOURCE, "too many items"))
            }
            Some(_) | None => Ok(items),
        }
    }

    /// Enters a scope: creates its list, with an instance for each step that does not only handle failures or undo
    /// others.
    fn enter(&mut self, at: At, inside: Inside, kind: ListKind, steps: &[StepId]) {
        self.tree[at].state = State::Entered;
        self.tree[at].inside = Some(inside);
        self.tree[at].deadline = self.step(at).policy.timeout.map(|limit| self.now.plus(limit));
        self.add_list(at, kind, steps);
    }

    pub fn add_list(&mut self, owner: At, kind: ListKind, steps: &[StepId]) -> ListAt {
        let list = self.tree.lists.len();
        self.tree.lists.push(List {
            owner,
            kind,
            draining: false,
            halted: None,
            failed: None,
            sent_back: Vec::new(),
        });
        for step in steps {
            if !self.plan.step(*step).takes_over {
                self.add_member(list, *step, 1);
            }
        }
        list
    }

    pub fn add_member(&mut self, list: ListAt, step: StepId, pass: u32) -> At {
        let List { owner, kind, .. } = self.tree.lists[list];
        let step_in_plan = self.plan.step(step);
        let (id, implicit) = (step_in_plan.id.clone(), step_in_plan.implicit);
        // The body of a guard has the id of the guard, and so do unnamed steps next to the body.
        let name: Arc<str> = match (kind, implicit) {
            (ListKind::Undo, true) => "compensate".into(),
            (ListKind::Finally, true) => "finally".into(),
            (_, _) if pass > 1 => format!("{id}#{pass}").into(),
            (_, _) => id,
        };
        let path = self.tree[owner].path.child(name, None);
        // Continue the attempt numbers of an earlier instance at this path.
        let before = self.tree.instances.iter().rfind(|before| before.path == path);
        let attempt = before.map_or(0, |before| before.count.attempt);
        let count = Count { attempt, ..Count::default() };
        let instance = Instance { pass, count, ..Instance::new(path, Some(step), Some(list)) };
        self.tree.instances.push(instance);
        self.tree.instances.len() - 1
    }

    /// Opens the next item of a fan-out, unless it must wait or the list drains.
    fn next_item(&mut self, at: At) -> bool {
        let plan = self.plan.clone();
        let Kind::ForEach(each) = &plan.step(self.tree[at].step.expect("a fan-out is a step")).kind else {
            return false;
        };
        let Some(list) = self.tree.list_of(at, ListKind::Frames) else { return false };
        let frames = self.tree.members(list);
        let under_way = frames.iter().filter(|frame| self.tree[**frame].is_open()).count();
        let is_full = each.concurrency.is_some_and(|limit| under_way >= limit.max(1) as usize);
        let is_over = self.tree.lists[list].draining || self.is_halted_by_item(&frames, each);
        let Some(Inside::Items(items)) = &self.tree[at].inside else { return false };
        let Some(item) = items.get(frames.len()).cloned().filter(|_| !is_full && !is_over) else {
            return false;
        };
        self.add_frame(at, list, item, &each.body);
        true
    }

    pub fn is_halted_by_item(&self, frames: &[At], each: &ForEach<Vec<StepId>>) -> bool {
        each.on_failure == ItemFailure::Halt
            && frames.iter().any(|frame| self.tree[*frame].failure().is_some())
    }

    fn next_round(&mut self, at: At) -> bool {
        let plan = self.plan.clone();
        let Kind::Repeat(repeat) = &plan.step(self.tree[at].step.expect("a loop is a step")).kind else {
            return false;
        };
        let Some(list) = self.tree.list_of(at, ListKind::Frames) else { return false };
        if self.tree.lists[list].draining {
            return false;
        }
        self.tree[at].inside = Some(Inside::Rounds(Rounds::UnderWay));
        self.add_frame(at, list, Value::Null, &repeat.body);
        true
    }

    fn add_frame(&mut self, owner: At, list: ListAt, item: Value, body: &[StepId]) {
        let number = u32::try_from(self.tree.members(list).len()).expect("frames are counted in 32 bits");
        let path = self.tree[owner].path.frame(number);
        let frame = Instance {
            frame: Some(Frame { number, item }),
            state: State::Entered,
            inside: Some(Inside::Steps),
            ..Instance::new(path, self.tree[owner].step, Some(list))
        };
        self.tree.instances.push(frame);
        self.add_list(self.tree.instances.len() - 1, ListKind::Body, body);
    }

    /// Decides about the next round of a loop, at its start and after each round.
    pub fn decide_round(&mut self, at: At) {
        let plan = self.plan.clone();
        let Kind::Repeat(repeat) = &plan.step(self.tree[at].step.expect("a loop is a step")).kind else {
            return;
        };
        let rounds = self.frames(at).len() as u32;
        let asks_about = match repeat.test {
            RepeatTest::While => Some(rounds),
            RepeatTest::Until | RepeatTest::DoWhile => rounds.checked_sub(1),
        };
        let reader = Reader::new(self, at).with_inside(self.last_round(at));
        let holds = asks_about.map(|round| reader.in_round(round).holds(&repeat.condition));
        let continues = match (holds, repeat.test) {
            (None, _) => true,
            (Some(Ok(holds)), RepeatTest::While | RepeatTest::DoWhile) => holds,
            (Some(Ok(holds)), RepeatTest::Until) => !holds,
            (Some(Err(failure)), _) => return self.end(at, Outcome::Failed(failure)),
        };
        if !continues || rounds >= repeat.rounds_max {
            return self.end_loop(at, rounds, continues);
        }
        let delay = some_time(repeat.delay).filter(|_| rounds > 0);
        let due = delay.map(|delay| self.now.plus(delay));
        self.tree[at].inside = Some(Inside::Rounds(Rounds::Wanted { due }));
    }

    pub fn frames(&self, at: At) -> Vec<At> {
        self.tree.list_of(at, ListKind::Frames).map_or_else(Vec::new, |list| self.tree.members(list))
    }

    /// The list of the last round of a loop.
    pub fn last_round(&self, at: At) -> Option<ListAt> {
        self.frames(at).last().and_then(|frame| self.tree.list_of(*frame, ListKind::Body))
    }

    /// Ends the run early: it starts nothing new.
    fn finish(&mut self, at: At, finish: &Finish, outputs: &Map) {
        let outcome = match finish.status {
            FinishStatus::Success => {
                // Declared outputs that the finish step does not set have their defaults.
                let declared = self.plan.outputs.iter().map(|(name, output)| {
                    let given = outputs.get(name).filter(|value| **value != Value::Null).cloned();
                    let value = given.or_else(|| output.default.clone()).unwrap_or(Value::Null);
                    (name.clone(), value)
                });
                let mut all = outputs.clone();
                all.extend(declared.collect::<Vec<_>>());
                Outcome::Done(Value::Map(Arc::new(all)))
            }
            FinishStatus::Failed => {
                Outcome::Failed(Failure::new(class::ERROR, "a finish says that it failed"))
            }
            FinishStatus::Cancelled => Outcome::Cancelled("a finish says so".into()),
        };
        self.finished.get_or_insert(outcome);
        self.settle(at, Outcome::Done(Value::map::<&str>([])));
        let own = self.tree[at].list;
        let outermost = self.tree.list_of(RUN, ListKind::Body);
        outermost.into_iter().chain(own).for_each(|list| self.drain(list));
    }
}

fn listed(value: &Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::List(items) => Ok(items.to_vec()),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Text(_)
        | Value::Sealed(_)
        | Value::Map(_) => Err(Failure::new(class::FAN_OUT_SOURCE, "the items are not a list")),
    }
}

/// All combinations: the axes in order of their names; the last one varies fastest.
fn product(reader: &Reader<'_>, axes: &Bindings) -> Result<Vec<Value>, Failure> {
    let mut sorted = reader.render_all(axes)?;
    sorted.sort_keys();
    let mut rows = vec![Map::new()];
    for (name, values) in &sorted {
        let values = listed(values)?;
        let with = |row: &Map, value: &Value| {
            let mut row = row.clone();
            row.insert(name.clone(), value.clone());
            row
        };
        rows = rows
            .iter()
            .flat_map(|row| values.iter().map(|value| with(row, value)).collect::<Vec<_>>())
            .collect();
    }
    Ok(rows.into_iter().map(|row| Value::Map(Arc::new(row))).collect())
}
