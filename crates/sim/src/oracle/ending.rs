//! The end of steps: the effect of failures on lists, draining and stopping, the ends of scopes, handling failures,
//! undoing, and the end of the run.

use super::Oracle;
use super::reading::Reader;
use super::tree::{At, Inside, Key, ListAt, ListKind, RUN, Rounds, State, Stop};
use std::sync::Arc;
use windlass_engine::{Failure, Outcome, class};
use windlass_ir::expr::StepId;
use windlass_ir::policy::OnFailure;
use windlass_ir::value::Map;
use windlass_ir::workflow::{BranchFailure, ForEach, Guard, ItemFailure, Kind, Parallel};
use windlass_ir::{Duration, Value};

/// An aborted job that has not reported after this time is abandoned.
pub const GRACE: Duration = Duration::from_secs(10);

/// The progress of undoing.
enum Undoing {
    Over,
    WentOn,
    Waits,
}

impl Oracle {
    /// Ends a step. If it failed, another step may handle the failure first.
    pub fn end(&mut self, at: At, outcome: Outcome) {
        match (outcome, self.taken_over_by(at)) {
            (Outcome::Failed(failure), Some(target)) => {
                self.tree[at].state = State::TakenOver(failure);
                self.tree[at].stop = None;
                self.release_key(at);
                let list = self.add_list(at, ListKind::TakeOver, &[]);
                self.add_member(list, target, 1);
            }
            (outcome, _) => self.settle(at, outcome),
        }
    }

    /// The step that handles the failure of this one. A draining list starts nothing.
    fn taken_over_by(&self, at: At) -> Option<StepId> {
        let (list, step) = (self.tree[at].list?, self.tree[at].step?);
        let OnFailure::Goto(target) = &self.plan.step(step).policy.on_failure else { return None };
        let is_stopped = matches!(self.tree[at].stop, Some(Stop::Cancelled { .. }));
        let target =
            self.siblings(step).iter().copied().find(|step| self.plan.step(*step).id == target.value);
        target.filter(|_| !is_stopped && !self.tree.lists[list].draining && self.tree[at].frame.is_none())
    }

    /// The steps of the same list in the plan.
    pub fn siblings(&self, step: StepId) -> &[StepId] {
        let Some(around) = self.plan.step(step).parent else { return &self.plan.roots };
        let bodies = self.plan.step(around).kind.bodies();
        bodies.into_iter().map(|(_, body)| &body[..]).find(|body| body.contains(&step)).unwrap_or(&[])
    }

    /// Records an outcome, and applies its effect on the enclosing list.
    pub fn settle(&mut self, at: At, outcome: Outcome) {
        self.tree[at].state = State::Settled(outcome);
        self.tree[at].order = self.next_turn();
        self.release_key(at);
        if self.tree[at].failure().is_some() && !self.tree[at].recovered {
            self.weigh_failure(at);
        }
    }

    fn weigh_failure(&mut self, at: At) {
        let Some(list) = self.tree[at].list else { return };
        let plan = self.plan.clone();
        let (owner, kind) = (self.tree.lists[list].owner, self.tree.lists[list].kind);
        let around = self.tree[owner].step.filter(|_| self.tree[owner].frame.is_none());
        match (kind, around.map(|step| &plan.step(step).kind)) {
            (ListKind::Frames, _) => {}
            (ListKind::Body, Some(Kind::Guard(_))) => self.halt(list, at),
            (ListKind::Body, Some(Kind::Parallel(parallel))) => {
                if parallel.on_failure == BranchFailure::Abort && self.counts(at) {
                    self.abort_others(list);
                }
            }
            (
                ListKind::Body | ListKind::Gone | ListKind::Finally | ListKind::TakeOver | ListKind::Undo,
                _,
            ) => match self.step(at).policy.on_failure {
                OnFailure::Halt | OnFailure::Rollback | OnFailure::Goto(_) => self.halt(list, at),
                OnFailure::SkipDependents => drop(self.tree.lists[list].failed.get_or_insert(at)),
                OnFailure::Continue => {}
            },
        }
    }

    /// Whether the failure of a member fails its list.
    fn counts(&self, at: At) -> bool {
        let continues =
            self.tree[at].frame.is_none() && self.step(at).policy.on_failure == OnFailure::Continue;
        self.tree[at].failure().is_some() && !self.tree[at].recovered && !continues
    }

    fn abort_others(&mut self, list: ListAt) {
        let others: Vec<At> =
            self.tree.members(list).into_iter().filter(|at| self.tree[*at].is_open()).collect();
        for other in others {
            self.stop(other, &Stop::Cancelled { why: "another branch failed".into(), by_user: false });
        }
    }

    fn halt(&mut self, list: ListAt, because: At) {
        self.tree.lists[list].halted.get_or_insert(because);
        self.drain(list);
    }

    /// Starts nothing new in a list and the scopes inside it. Attempts and their retries finish.
    pub fn drain(&mut self, list: ListAt) {
        for inner in 0..self.tree.lists.len() {
            if self.tree.list_drains_with(Some(inner), list) {
                self.tree.lists[inner].draining = true;
            }
        }
        for at in self.tree.all() {
            let idle = matches!(
                self.tree[at].state,
                State::Pending
                    | State::Queued
                    | State::Joined { .. }
                    | State::Asking { .. }
                    | State::Waiting { .. }
            );
            if idle && self.tree.drains_with(at, list) {
                self.settle(at, Outcome::Cancelled("the list around it was halted".into()));
            }
        }
    }

    /// Stops an instance and everything below it.
    pub fn stop(&mut self, top: At, stop: &Stop) {
        // `finally` and undo steps continue, unless the run is stopped again.
        let again = top == RUN && self.tree[RUN].stop.is_some();
        for list in 0..self.tree.lists.len() {
            let owner = self.tree.lists[list].owner;
            let ends = matches!(self.tree.lists[list].kind, ListKind::Finally | ListKind::Undo);
            if self.tree.is_inside(owner, top) && (again || !ends && !self.belongs_to_an_end(owner, top)) {
                self.tree.lists[list].draining = true;
            }
        }
        if top == RUN && (again || !self.plan.policy.compensate_on_cancel) {
            self.undo_no_further();
        }
        self.stopped_twice |= again;
        for at in self.tree.all() {
            let reached = again || !self.belongs_to_an_end(at, top);
            if self.tree.is_inside(at, top) && self.tree[at].is_open() && reached {
                let stop = match stop {
                    Stop::TimedOut if at != top => {
                        Stop::Cancelled { why: "the enclosing scope timed out".into(), by_user: false }
                    }
                    stop => stop.clone(),
                };
                self.stop_one(at, stop);
            }
        }
    }

    /// The current undo step finishes, and no other one begins.
    fn undo_no_further(&mut self) {
        if let Some(undoing) = &mut self.tree[RUN].undoing {
            *undoing = undoing.pop().into_iter().collect();
        }
    }

    /// Whether an instance is part of `finally` or undo steps below `top`.
    fn belongs_to_an_end(&self, at: At, top: At) -> bool {
        let mut here = at;
        while here != top {
            let Some(list) = self.tree[here].list else { return false };
            if matches!(self.tree.lists[list].kind, ListKind::Finally | ListKind::Undo) {
                return true;
            }
            here = self.tree.lists[list].owner;
        }
        false
    }

    fn stop_one(&mut self, at: At, stop: Stop) {
        let grace = self.now.plus(GRACE);
        // An attempt that timed out can still be canceled; a scope that timed out has failed.
        let is_scope = matches!(self.tree[at].state, State::Entered | State::TakenOver(_));
        let decided = match &self.tree[at].stop {
            Some(Stop::Cancelled { .. }) => true,
            Some(Stop::TimedOut) => is_scope,
            None => false,
        };
        if !decided {
            self.tree[at].stop = Some(stop.clone());
        }
        match (&mut self.tree[at].state, stop) {
            (State::Out { grace: until, .. }, _) => drop(until.get_or_insert(grace)),
            (State::Entered | State::TakenOver(_), _) => {}
            (_, Stop::Cancelled { why, .. }) => self.settle(at, Outcome::Cancelled(why)),
            (_, Stop::TimedOut) => {}
        }
    }

    /// Ends the first instance that can end; false if there is none.
    pub fn end_something(&mut self) -> bool {
        self.tree.all().any(|at| match self.tree[at].state {
            State::Entered if at == RUN => self.end_run(),
            State::Entered => self.end_scope(at),
            State::TakenOver(_) => self.end_take_over(at),
            _ => false,
        })
    }

    fn end_take_over(&mut self, at: At) -> bool {
        let Some(list) = self.tree.list_of(at, ListKind::TakeOver) else { return false };
        if !self.tree.all_settled(list) {
            return false;
        }
        let State::TakenOver(failure) = &self.tree[at].state else { return false };
        let failure = Outcome::Failed(failure.clone());
        if let Some(Stop::Cancelled { why, .. }) = self.tree[at].stop.clone() {
            self.settle(at, Outcome::Cancelled(why));
            return true;
        }
        let is_done = |at: At| matches!(self.tree[at].outcome(), Some(Outcome::Done(_)));
        let recovered = self.tree.members(list).into_iter().all(is_done);
        self.tree[at].recovered = recovered;
        self.settle(at, failure);
        true
    }

    fn end_scope(&mut self, at: At) -> bool {
        let plan = self.plan.clone();
        let step = plan.step(self.tree[at].step.expect("only the run is not a step"));
        let outcome = match (&step.kind, self.tree[at].frame.is_some()) {
            (kind, true) => self.end_frame(at, kind),
            (Kind::Block(_) | Kind::Choose(_), _) => self.end_list(at),
            (Kind::Parallel(parallel), _) => self.end_parallel(at, parallel),
            (Kind::ForEach(each), _) => self.end_fan_out(at, each),
            (Kind::Repeat(_), _) => return self.end_round(at),
            (Kind::Guard(guard), _) => return self.end_guard(at, guard),
            (_, _) => None,
        };
        let Some(outcome) = outcome else { return false };
        self.end(at, self.stop_outcome(at).unwrap_or(outcome));
        true
    }

    /// The outcome of a scope that was stopped.
    fn stop_outcome(&self, at: At) -> Option<Outcome> {
        Some(match self.tree[at].stop.clone()? {
            Stop::Cancelled { why, .. } => Outcome::Cancelled(why),
            Stop::TimedOut => Outcome::Failed(Failure::new(class::TIMEOUT, "the scope timed out")),
        })
    }

    /// The failure of a list, or the cancellation of a member.
    fn verdict(&self, list: ListAt) -> Option<Outcome> {
        let list_state = &self.tree.lists[list];
        let failed = list_state.halted.or(list_state.failed);
        let cancelled = || self.tree.members(list).into_iter().find(|at| self.tree[*at].is_cancelled());
        failed.or_else(cancelled).and_then(|at| self.tree[at].outcome().cloned())
    }

    /// The list inside a scope, once all members have settled.
    fn ended_list(&self, at: At, kind: ListKind) -> Option<ListAt> {
        self.tree.list_of(at, kind).filter(|list| self.tree.all_settled(*list))
    }

    fn end_list(&self, at: At) -> Option<Outcome> {
        let list = self.ended_list(at, ListKind::Body)?;
        let arm = match &self.tree[at].inside {
            Some(Inside::Arm(arm)) => Some(("branch", Value::Text(arm.clone()))),
            Some(Inside::Steps | Inside::Items(_) | Inside::Rounds(_)) | None => None,
        };
        Some(self.verdict(list).unwrap_or_else(|| self.left_behind(at, Some(list), arm)))
    }

    /// The declared outputs of a scope, together with its own result.
    fn left_behind(
        &self,
        at: At,
        inside: Option<ListAt>,
        more: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Outcome {
        match Reader::new(self, at).with_inside(inside).gather(&self.step(at).outputs) {
            Ok(mut outputs) => {
                outputs.extend(more.into_iter().map(|(name, value)| (Arc::from(name), value)));
                Outcome::Done(Value::Map(Arc::new(outputs)))
            }
            Err(failure) => Outcome::Failed(failure),
        }
    }

    fn end_parallel(&self, at: At, parallel: &Parallel<Vec<StepId>>) -> Option<Outcome> {
        let list = self.ended_list(at, ListKind::Body)?;
        let branches = self.tree.members(list);
        let failed = branches.iter().copied().filter(|branch| self.counts(*branch));
        let decisive = match parallel.on_failure {
            BranchFailure::Wait => failed.min_by_key(|branch| self.tree[*branch].step),
            BranchFailure::Abort => failed.min_by_key(|branch| self.tree[*branch].order),
            BranchFailure::Continue => None,
        };
        let cancelled = || branches.iter().copied().find(|branch| self.tree[*branch].is_cancelled());
        let decisive = decisive.or_else(cancelled).and_then(|branch| self.tree[branch].outcome().cloned());
        Some(decisive.unwrap_or_else(|| {
            let mut in_order = branches.clone();
            in_order.sort_by_key(|branch| self.tree[*branch].step);
            let words = Value::list(in_order.iter().map(|branch| Value::text(self.status(*branch))));
            self.left_behind(at, Some(list), [("branch_results", words)])
        }))
    }

    fn end_fan_out(&self, at: At, each: &ForEach<Vec<StepId>>) -> Option<Outcome> {
        let list = self.ended_list(at, ListKind::Frames)?;
        let frames = self.tree.members(list);
        let Some(Inside::Items(items)) = &self.tree[at].inside else { return None };
        let is_whole = frames.len() == items.len();
        if !is_whole && !self.tree.lists[list].draining && !self.is_halted_by_item(&frames, each) {
            return None;
        }
        let outcome = |wanted: &dyn Fn(At) -> bool| {
            frames
                .iter()
                .copied()
                .find(|frame| wanted(*frame))
                .and_then(|frame| self.tree[frame].outcome().cloned())
        };
        let failed = match each.on_failure {
            ItemFailure::Halt => outcome(&|frame| self.tree[frame].failure().is_some()),
            ItemFailure::Continue => None,
        };
        let cancelled = outcome(&|frame| self.tree[frame].is_cancelled());
        let unfinished = (!is_whole).then(|| Outcome::Cancelled("not all items were started".into()));
        Some(failed.or(cancelled).or(unfinished).unwrap_or_else(|| {
            Outcome::Done(Value::list(frames.iter().map(|frame| match self.tree[*frame].outcome() {
                Some(Outcome::Done(value)) => value.clone(),
                _ => Value::Null,
            })))
        }))
    }

    /// The result of an item: the outputs of its only step, or of all steps by id. A round has none.
    fn end_frame(&self, at: At, kind: &Kind<Vec<StepId>>) -> Option<Outcome> {
        let list = self.ended_list(at, ListKind::Body)?;
        Some(self.verdict(list).unwrap_or_else(|| {
            let mut members = self.tree.members(list);
            members.sort_by_key(|at| self.tree[*at].step);
            Outcome::Done(match (kind, &members[..]) {
                (Kind::ForEach(_), [only]) => self.outputs_of(*only),
                (Kind::ForEach(_), several) => {
                    let named = several.iter().map(|at| (self.step(*at).id.clone(), self.outputs_of(*at)));
                    Value::map(named)
                }
                (_, _) => Value::Null,
            })
        }))
    }

    /// Continues or ends a loop after a round.
    fn end_round(&mut self, at: At) -> bool {
        let Some(list) = self.ended_list(at, ListKind::Frames) else { return false };
        let last = self.tree.members(list).last().and_then(|frame| self.tree[*frame].outcome().cloned());
        let broken = last.filter(|last| matches!(last, Outcome::Failed(_) | Outcome::Cancelled(_)));
        let wanted = matches!(self.tree[at].inside, Some(Inside::Rounds(Rounds::Wanted { .. })));
        let stuck = (wanted && self.tree.lists[list].draining)
            .then(|| Outcome::Cancelled("no further round was started".into()));
        if let Some(outcome) = self.stop_outcome(at).or(broken).or(stuck) {
            self.end(at, outcome);
            return true;
        }
        if !wanted {
            self.decide_round(at);
        }
        !wanted
    }

    /// Ends a loop. It is exhausted if its condition asks for another round.
    pub fn end_loop(&mut self, at: At, rounds: u32, exhausted: bool) {
        let more = [("iterations", Value::Int(rounds.into())), ("exhausted", Value::Bool(exhausted))];
        let outcome = self.left_behind(at, self.last_round(at), more);
        self.end(at, outcome);
    }

    /// The body, then the rollback, then the `finally` steps, then the outcome of the body.
    fn end_guard(&mut self, at: At, guard: &Guard<Vec<StepId>>) -> bool {
        let Some(list) = self.ended_list(at, ListKind::Body) else { return false };
        let body = self.tree.members(list).first().copied();
        let outcome = body.and_then(|body| self.tree[body].outcome().cloned());
        if self.tree[at].undoing.is_none() {
            // The policy of the guard applies to the failure of its body.
            let rolls_back = match &self.step(at).policy.on_failure {
                OnFailure::Rollback => true,
                OnFailure::Continue | OnFailure::SkipDependents => {
                    body.is_some_and(|body| self.rolled_back_inside(body))
                }
                OnFailure::Halt | OnFailure::Goto(_) => false,
            };
            let failed = body.is_some_and(|body| self.tree[body].failure().is_some());
            let undoes = guard.finally.is_some() && failed && rolls_back && self.stop_outcome(at).is_none();
            self.tree[at].undoing = Some(if undoes { self.undoable(at) } else { Vec::new() });
            return true;
        }
        match self.undo(at) {
            Undoing::WentOn => return true,
            Undoing::Waits => return false,
            Undoing::Over => {}
        }
        let mut late = None;
        if let Some(steps) = &guard.finally {
            let Some(list) = self.tree.list_of(at, ListKind::Finally) else {
                self.add_list(at, ListKind::Finally, steps);
                return true;
            };
            if !self.tree.all_settled(list) {
                return false;
            }
            late = self.verdict(list).filter(|outcome| matches!(outcome, Outcome::Failed(_)));
        }
        let late = late.filter(|_| !matches!(outcome, Some(Outcome::Failed(_))));
        let outcome = self.stop_outcome(at).or(late).or(outcome);
        self.end(at, outcome.unwrap_or(Outcome::Done(Value::Null)));
        true
    }

    /// Whether the step that halted the body of a guard asks for a rollback. Items and rounds are instances of the
    /// body.
    fn rolled_back_inside(&self, body: At) -> bool {
        let own = self.tree[body].step;
        let mut failed = body;
        while self.tree[failed].step == own {
            let body = self.tree.list_of(failed, ListKind::Body);
            let halted = body.and_then(|list| self.tree.lists[list].halted);
            let Some(inner) = halted.or_else(|| self.member_that_failed(failed)) else { return false };
            failed = inner;
        }
        self.step(failed).policy.on_failure == OnFailure::Rollback
    }

    /// The item, round or branch whose failure ended its scope first.
    fn member_that_failed(&self, at: At) -> Option<At> {
        let kind = match &self.step(at).kind {
            Kind::ForEach(each) if each.on_failure != ItemFailure::Halt => return None,
            Kind::Parallel(_) => ListKind::Body,
            _ => ListKind::Frames,
        };
        let members = self.tree.members(self.tree.list_of(at, kind)?).into_iter();
        members.filter(|member| self.counts(*member)).min_by_key(|member| self.tree[*member].order)
    }

    /// The completed steps inside an instance that can be undone, in order of completion. Undo steps are not undone.
    fn undoable(&self, around: At) -> Vec<At> {
        let is_undo =
            |at: At| self.tree.lists_around(at).any(|list| self.tree.lists[list].kind == ListKind::Undo);
        let can = |at: &At| {
            self.tree.is_inside(*at, around)
                && (matches!(self.tree[*at].outcome(), Some(Outcome::Done(_))) || self.is_lost(*at))
                && self.tree[*at].frame.is_none()
                && !self.tree[*at].undone
                && !is_undo(*at)
                && self.tree[*at].step.is_some_and(|step| self.compensation(step).is_some())
        };
        let mut found: Vec<At> = self.tree.all().filter(can).collect();
        found.sort_by_key(|at| self.tree[*at].order);
        found
    }

    /// Whether an action was lost for good, so that it may have taken effect.
    pub fn is_lost(&self, at: At) -> bool {
        let is_action = |step| matches!(self.plan.step(self.plan.unguarded(step)).kind, Kind::Action(_));
        let failed = self.tree[at].failure().is_some_and(|failure| &*failure.class == class::LOST);
        failed && self.tree[at].step.is_some_and(is_action)
    }

    fn compensation(&self, step: StepId) -> Option<Vec<StepId>> {
        let planned = self.plan.step(step);
        if let Kind::Guard(Guard { compensate: Some(steps), .. }) = &planned.kind {
            return Some(steps.clone());
        }
        let target = &planned.policy.compensate.as_ref()?.value;
        let target = self.siblings(step).iter().copied().find(|other| self.plan.step(*other).id == *target);
        target.map(|target| vec![target])
    }

    /// Undoes one step after the other, the last one first.
    fn undo(&mut self, undoer: At) -> Undoing {
        let current = self.tree[undoer].undoing.as_ref().and_then(|left| left.last().copied());
        let Some(current) = current else { return Undoing::Over };
        match self.tree.list_of(current, ListKind::Undo) {
            None => {
                let steps =
                    self.tree[current].step.and_then(|step| self.compensation(step)).unwrap_or_default();
                self.tree[current].undone = true;
                let list = self.add_list(current, ListKind::Undo, &[]);
                for step in steps {
                    self.add_member(list, step, 1);
                }
                Undoing::WentOn
            }
            Some(list) if self.tree.all_settled(list) => {
                self.tree[undoer].undoing.as_mut().map(Vec::pop);
                Undoing::WentOn
            }
            Some(_) => Undoing::Waits,
        }
    }

    fn end_run(&mut self) -> bool {
        let Some(list) = self.ended_list(RUN, ListKind::Body) else { return false };
        if self.tree[RUN].undoing.is_none() {
            self.tree[RUN].undoing = Some(if self.is_undone(list) { self.undoable(RUN) } else { Vec::new() });
            return true;
        }
        match self.undo(RUN) {
            Undoing::WentOn => true,
            Undoing::Waits => false,
            Undoing::Over => {
                self.outcome = Some(self.run_outcome(list));
                true
            }
        }
    }

    fn is_undone(&self, list: ListAt) -> bool {
        let halted = self.tree.lists[list].halted;
        let rolled_back = halted.is_some_and(|at| self.step(at).policy.on_failure == OnFailure::Rollback);
        match self.tree[RUN].stop {
            Some(_) => self.plan.policy.compensate_on_cancel && !self.stopped_twice,
            None => rolled_back,
        }
    }

    fn run_outcome(&self, list: ListAt) -> Outcome {
        let verdict = self.verdict(list);
        let (failed, cancelled) = match verdict {
            Some(Outcome::Failed(_)) => (verdict, None),
            other => (None, other),
        };
        let decided = self.stop_outcome(RUN).or(failed).or_else(|| self.finished.clone()).or(cancelled);
        decided.unwrap_or_else(|| {
            let reader = Reader::new(self, RUN).with_inside(Some(list));
            let value = match &self.plan.result {
                Some(result) => reader.gather_one("the result", result),
                None => reader.gather(&self.plan.outputs).map(|outputs: Map| Value::Map(Arc::new(outputs))),
            };
            value.map_or_else(Outcome::Failed, Outcome::Done)
        })
    }

    /// Reopens failed steps, and those canceled or skipped because of them.
    pub fn reopen(&mut self, at: At) {
        // `finally` and undo steps run again at the next end.
        for list in &mut self.tree.lists {
            if list.owner == at && !matches!(list.kind, ListKind::Body | ListKind::Frames) {
                list.kind = ListKind::Gone;
            }
        }
        let own = |list: &ListAt| {
            let list = &self.tree.lists[*list];
            list.owner == at && list.kind != ListKind::Gone
        };
        let lists: Vec<ListAt> = (0..self.tree.lists.len()).filter(own).collect();
        let (now, limit) =
            (self.now, self.tree[at].step.and_then(|step| self.plan.step(step).policy.timeout));
        let instance = &mut self.tree[at];
        instance.state = State::Entered;
        instance.stop = None;
        instance.undoing = None;
        if instance.frame.is_none() {
            instance.deadline = limit.map(|limit| now.plus(limit));
        }
        if let Some(Inside::Rounds(rounds)) = &mut instance.inside {
            *rounds = Rounds::UnderWay;
        }
        for list in lists {
            let state = &mut self.tree.lists[list];
            (state.draining, state.halted, state.failed) = (false, None, None);
            self.reopen_members(list);
        }
    }

    fn reopen_members(&mut self, list: ListAt) {
        let opens = |oracle: &Self, at: At| match (oracle.tree[at].outcome(), &oracle.tree[at].stop) {
            (Some(Outcome::Failed(_)), _) => oracle.ends_list(list, at),
            (Some(Outcome::Cancelled(_)), Some(Stop::Cancelled { by_user, .. })) => !by_user,
            (Some(Outcome::Cancelled(_)), _) => true,
            (Some(Outcome::Skipped(_)), _) => {
                oracle.tree[at].because_of.is_some_and(|need| oracle.tree[need].is_open())
            }
            (Some(Outcome::Done(_) | Outcome::Continue(_)) | None, _) => false,
        };
        while let Some(at) = self.tree.members(list).into_iter().find(|at| opens(self, *at)) {
            if self.tree[at].inside.is_some() {
                self.reopen(at);
            } else {
                let instance = &mut self.tree[at];
                instance.state = State::Pending;
                (instance.stop, instance.because_of) = (None, None);
                instance.key = Key::default();
            }
        }
    }

    /// Whether the failure of a member ended its list or the enclosing scope.
    fn ends_list(&self, list: ListAt, at: At) -> bool {
        let owner = self.tree.lists[list].owner;
        let around = self.tree[owner].step.map(|step| &self.plan.step(step).kind);
        match around {
            Some(Kind::ForEach(each)) if self.tree[at].frame.is_some() => {
                each.on_failure == ItemFailure::Halt
            }
            Some(Kind::Parallel(parallel)) if self.tree[owner].frame.is_none() => {
                parallel.on_failure != BranchFailure::Continue && self.counts(at)
            }
            _ => self.counts(at),
        }
    }
}
