//! State shared by all runs of a process: records for the journal, pending effects, and the coordinator.

use super::clock::{Now, Onward};
use super::mail::{After, Body, Mail, Order, Record, Reply, ReplyTo, Wake};
use crate::coordinator::{
    Amount, Asker, Coordinator, CoordinatorAnswer, CoordinatorEffect, CoordinatorEvent, CoordinatorInput,
    CoordinatorRefused, CoordinatorWhat, End,
};
use crate::event::Event;
use crate::input::{Effect, Input};
use crate::keys::{Path, RunId};
use crate::run::Run;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The actor in inputs from the coordinator.
const COORDINATOR: &str = "limits";

/// The coordinator's stream is compacted after this many events, if it has also grown to more than twice its
/// compacted size.
const COMPACT_AFTER: usize = 2_000;

/// Undelivered mail.
#[derive(Debug)]
pub(super) struct Post {
    pub to: To,
    pub reply: Option<ReplyTo>,
}

#[derive(Clone, Debug)]
pub(super) enum To {
    Run(RunId, Mail),
    Coordinator(CoordinatorInput),
}

/// Effects and replies that wait for a record to become durable.
#[derive(Debug)]
pub(super) struct Landing {
    /// The last record that it depends on, of its run or of the coordinator. 0 if that was already durable.
    pub number: u64,
    /// `None` for the coordinator.
    pub run: Option<RunId>,
    /// Delivered again if the record is not written.
    pub retry: Option<To>,
    pub reply: Option<(ReplyTo, Reply)>,
    pub events: Option<Arc<Vec<Event>>>,
    /// Effects outside of this process.
    pub effects: Vec<Effect>,
    /// The run has more to decide and accepts no mail before this.
    pub again: bool,
}

#[derive(Debug)]
pub(super) struct Work {
    pub coordinator: Coordinator,
    pub coordinator_tail: After,
    /// Events since the last compaction, and the number of events that it wrote.
    coordinator_events: usize,
    snapshot_events: usize,
    onward: Onward,
    pub post: VecDeque<Post>,
    /// Records that were not taken yet.
    pub records: Vec<Record>,
    /// The number of the last record.
    pub number: u64,
    pub landings: VecDeque<Landing>,
    pub orders: Vec<Order>,
    /// Runs to check.
    pub touched: BTreeSet<RunId>,
}

/// The coordinator's answers to the run that asked, and the record that they depend on.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub own: Vec<(Asker, CoordinatorAnswer)>,
    pub rests_on: Option<u64>,
    pub delivered: usize,
}

impl Work {
    pub fn new(coordinator: Coordinator, tail: Option<u64>, events: usize, now: Now) -> Self {
        Self {
            coordinator,
            coordinator_tail: After::Stored(tail),
            coordinator_events: events,
            snapshot_events: 0,
            onward: Onward::starting(now),
            post: VecDeque::new(),
            records: Vec::new(),
            number: 0,
            landings: VecDeque::new(),
            orders: Vec::new(),
            touched: BTreeSet::new(),
        }
    }

    /// Replaces the coordinator after a failed write.
    pub fn replace_coordinator(&mut self, coordinator: Coordinator, tail: Option<u64>, events: usize) {
        (self.coordinator, self.coordinator_tail, self.coordinator_events) =
            (coordinator, After::Stored(tail), events);
        self.orders.push(Order::Budgets);
    }

    pub fn post(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>) {
        self.post.push_back(Post { to: To::Run(run, mail), reply });
    }

    /// Adds a record and returns its number.
    pub fn record(
        &mut self,
        run: Option<RunId>,
        after: After,
        needs: Option<u64>,
        body: Body,
        wake: Wake,
    ) -> u64 {
        self.number += 1;
        self.records.push(Record { number: self.number, run, after, needs, body, wake });
        self.number
    }

    /// When the coordinator must check the time, by the steady clock.
    pub fn coordinator_alarm(&self, now: Now) -> Option<u64> {
        let mut onward = self.onward;
        let due = self.coordinator.next_deadline()?;
        Some(now.steady.saturating_add(due.since(onward.read(now)).0))
    }

    /// Sends an input to the coordinator. Returns answers for `own`, and mails all others to their runs.
    pub fn share(
        &mut self,
        input: CoordinatorInput,
        needs: Option<u64>,
        own: Option<&RunId>,
        now: Now,
    ) -> Result<Shared, CoordinatorRefused> {
        let at = self.onward.read(now);
        let turn = self.coordinator.handle(at, input)?;
        if !turn.events.is_empty() {
            if turn.events.iter().any(|event| matches!(event.what, CoordinatorWhat::BudgetIs { .. })) {
                self.orders.push(Order::Budgets);
            }
            self.coordinator_record(turn.events, needs);
            if self.coordinator_events > COMPACT_AFTER + 2 * self.snapshot_events {
                let whole = self.coordinator.snapshot(at);
                let count = whole.len();
                self.coordinator_record(whole, None);
                (self.coordinator_events, self.snapshot_events) = (0, count);
            }
        }
        let rests_on = Some(self.coordinator_tail.number()).filter(|number| *number > 0);
        let mut shared = Shared { rests_on, ..Shared::default() };
        for effect in turn.effects {
            match effect {
                CoordinatorEffect::Answer { asker, answer } if own == Some(&asker.run) => {
                    shared.own.push((asker, answer));
                }
                effect => {
                    shared.delivered += usize::from(matches!(effect, CoordinatorEffect::Deliver { .. }));
                    self.pass_on(effect, rests_on);
                }
            }
        }
        Ok(shared)
    }

    fn coordinator_record(&mut self, events: Vec<CoordinatorEvent>, needs: Option<u64>) {
        self.coordinator_events += events.len();
        let body = Body::Coordinator(events);
        self.coordinator_tail =
            After::Record(self.record(None, self.coordinator_tail, needs, body, Wake::Never));
    }

    fn pass_on(&mut self, effect: CoordinatorEffect, needs: Option<u64>) {
        match effect {
            CoordinatorEffect::Answer { asker, answer } => {
                self.post(asker.run.clone(), Mail::Answered { asker, answer, needs }, None);
            }
            CoordinatorEffect::Deliver { to, message } => {
                self.post(to.run.clone(), Mail::Message { to, message, needs }, None);
            }
            CoordinatorEffect::Cancel { run, why } => {
                let cancel = Input::Cancel { path: Path::default(), why, by: COORDINATOR.into() };
                self.post(run, Mail::Input(cancel), None);
            }
            CoordinatorEffect::Start(order) => self.orders.push(Order::Begin(Box::new(order))),
        }
    }

    /// Delivers everything that the coordinator owes to all runs or to one.
    pub fn pass_on_owed(&mut self, only: Option<&RunId>) {
        for effect in self.coordinator.outstanding() {
            let run = match &effect {
                CoordinatorEffect::Deliver { to, .. } => Some(&to.run),
                CoordinatorEffect::Cancel { run, .. } => Some(run),
                CoordinatorEffect::Start(_) | CoordinatorEffect::Answer { .. } => None,
            };
            if only.is_none() || only == run {
                self.pass_on(effect, None);
            }
        }
    }

    /// Releases resources that were granted to an asker that no longer needs them.
    pub fn give_back(&mut self, asker: Asker, now: Now) {
        let release = CoordinatorInput::Release { asker, used: Amount::default(), end: End::Attempt };
        self.tell(release, now);
    }

    /// Sends the coordinator an input that it never refuses.
    pub fn tell(&mut self, input: CoordinatorInput, now: Now) {
        let refused = self.share(input, None, None, now).is_err();
        debug_assert!(!refused, "only caps and resets are refused");
    }

    /// Releases resources that a run no longer needs, because its last owner died before it could.
    pub fn settle(&mut self, run: &Run, now: Now) {
        let first = Asker { run: run.id().clone(), path: Path::default(), attempt: 0 };
        let state = self.coordinator.state();
        let holds = state.holds.range(&first..).map(|(asker, _)| asker);
        let waits = state.waiting.range(&first..).map(|(asker, _)| asker);
        let of_run = |asker: &&Asker| asker.run == *run.id();
        let own = holds.take_while(of_run).chain(waits.take_while(of_run));
        let over: Vec<Asker> = own.filter(|asker| !run.needs(asker)).cloned().collect();
        for asker in over {
            let (used, end) = run.ended(&asker);
            self.tell(CoordinatorInput::Release { asker, used, end }, now);
        }
        // A step between two attempts is not an asker, but owns its idempotency keys.
        let owned = self.coordinator.state().key_owners.range((run.id().clone(), Path::default())..);
        let owned = owned.map(|((owner, path), _)| (owner, path)).take_while(|(owner, _)| *owner == run.id());
        let over: Vec<Path> =
            owned.filter(|(_, path)| run.is_over(path)).map(|(_, path)| path.clone()).collect();
        for path in over {
            let asker = Asker { run: run.id().clone(), path, attempt: 0 };
            self.tell(CoordinatorInput::Release { asker, used: Amount::default(), end: End::Over }, now);
        }
        if run.outcome().is_some() {
            self.tell(CoordinatorInput::Gone { run: run.id().clone() }, now);
        }
    }
}
