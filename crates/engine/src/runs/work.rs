//! What all runs of a process have in common: the records on their way to the journal, what happens once they are durable, and the
//! coordinator.

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

/// Who acts for the coordinator in what runs are told.
const COORDINATOR: &str = "limits";

/// The coordinator's stream starts over when this many events have been added, and more than twice as many as it started with.
const COMPACT_AFTER: usize = 2_000;

/// Mail that has not been delivered.
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

/// Something that happens as soon as a record is durable.
#[derive(Debug)]
pub(super) struct Landing {
    /// The last record that it rests on: of its run, or of the coordinator. 0 if that was durable before.
    pub number: u64,
    /// None for the coordinator.
    pub run: Option<RunId>,
    /// Delivered again if the record is not written.
    pub retry: Option<To>,
    pub reply: Option<(ReplyTo, Reply)>,
    pub events: Option<Arc<Vec<Event>>>,
    /// What must be done outside of this process.
    pub effects: Vec<Effect>,
    /// The run has more to decide and takes no mail before this.
    pub again: bool,
}

#[derive(Debug)]
pub(super) struct Work {
    pub coordinator: Coordinator,
    pub coordinator_tail: After,
    /// Events since the coordinator's stream started over, and how many that took.
    coordinator_events: usize,
    snapshot_events: usize,
    onward: Onward,
    pub post: VecDeque<Post>,
    /// Decided and not yet handed to the journal.
    pub records: Vec<Record>,
    /// The number of the last record.
    pub number: u64,
    pub landings: VecDeque<Landing>,
    pub orders: Vec<Order>,
    /// Runs that something happened to.
    pub touched: BTreeSet<RunId>,
}

/// The coordinator's answers for the run that asked, and the record that they rest on.
#[derive(Debug, Default)]
pub(super) struct Said {
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

    /// The coordinator as its stream tells it, after a write failed.
    pub fn replace_coordinator(&mut self, coordinator: Coordinator, tail: Option<u64>, events: usize) {
        (self.coordinator, self.coordinator_tail, self.coordinator_events) =
            (coordinator, After::Stored(tail), events);
        self.orders.push(Order::Budgets);
    }

    pub fn post(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>) {
        self.post.push_back(Post { to: To::Run(run, mail), reply });
    }

    /// Adds a record to those that are handed over next, and says its number.
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

    /// When the coordinator has to hear that time has passed, by the steady clock.
    pub fn coordinator_alarm(&self, now: Now) -> Option<u64> {
        let mut onward = self.onward;
        let due = self.coordinator.next_deadline()?;
        Some(now.steady.saturating_add(due.since(onward.read(now)).0))
    }

    /// Hands an input to the coordinator. Answers for `own` come back; everything else is put into the mail of the run it concerns.
    pub fn share(
        &mut self,
        input: CoordinatorInput,
        needs: Option<u64>,
        own: Option<&RunId>,
        now: Now,
    ) -> Result<Said, CoordinatorRefused> {
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
        let mut said = Said { rests_on, ..Said::default() };
        for effect in turn.effects {
            match effect {
                CoordinatorEffect::Answer { asker, answer } if own == Some(&asker.run) => {
                    said.own.push((asker, answer));
                }
                effect => {
                    said.delivered += usize::from(matches!(effect, CoordinatorEffect::Deliver { .. }));
                    self.pass_on(effect, rests_on);
                }
            }
        }
        Ok(said)
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

    /// Everything that the coordinator owes, or what it owes one run.
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

    /// Takes back what was granted to something that does not need it any more.
    pub fn give_back(&mut self, asker: Asker, now: Now) {
        let release = CoordinatorInput::Release { asker, used: Amount::default(), end: End::Attempt };
        self.tell(release, now);
    }

    /// Hands the coordinator an input that it never refuses.
    pub fn tell(&mut self, input: CoordinatorInput, now: Now) {
        let refused = self.share(input, None, None, now).is_err();
        debug_assert!(!refused, "only caps and resets are refused");
    }

    /// Releases what a run holds and does not need any more: its last owner died before it could.
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
        if run.outcome().is_some() {
            self.tell(CoordinatorInput::Gone { run: run.id().clone() }, now);
        }
    }
}
