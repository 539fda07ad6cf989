//! Durable and lost records.

use super::live::{Holder, Turn};
use super::mail::{Found, Mail, Order, Reply};
use super::planted::{Bug, planted};
use super::work::{Landing, Post, To};
use super::{Entry, Loading, Now, Runs};
use crate::coordinator::Coordinator;
use crate::event::Event;
use crate::input::{Effect, Input, Refused};
use crate::keys::RunId;
use crate::outcome::{Failure, Outcome};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The recovery from a failed write. The scheduler decides nothing until everything that depends on the write has
/// been read again.
#[derive(Debug, Default)]
pub(super) struct Stall {
    /// Mail to deliver afterward, in order.
    mail: VecDeque<Post>,
    /// The runs to read again.
    runs: BTreeSet<RunId>,
    coordinator: bool,
    /// Reading has begun, because no batch is in progress.
    reading: bool,
    /// The number of the last record of the last batch.
    until: u64,
    /// Runs that were read meanwhile for other reasons.
    pub loads: Vec<(RunId, Found)>,
    /// Replies that a planted bug sends too early.
    early: Vec<Landing>,
}

impl Stall {
    pub fn keep(&mut self, post: Post) {
        if !matches!(&post.to, To::Run(_, mail) if mail.is_from_the_coordinator()) {
            self.mail.push_back(post);
        }
    }
}

impl Runs {
    /// Marks the batch that ends with this record as durable, together with all earlier batches that did not fail.
    pub fn written(&mut self, through: u64, now: Now) {
        self.resolved = self.resolved.max(through);
        if self.stall.is_some() {
            self.land(now);
            self.read_again();
        }
        self.advance(now);
    }

    /// Handles a batch that cannot be written because one of its records is too large. The attempt that the record
    /// reports fails instead.
    pub fn unstorable(
        &mut self,
        from: u64,
        through: u64,
        culprit: u64,
        failure: &Failure,
        handed_over: u64,
        now: Now,
    ) {
        let landing = self
            .work
            .landings
            .iter_mut()
            .find(|landing| landing.number == culprit && landing.events.is_some());
        if let Some(landing) = landing {
            match &mut landing.retry {
                Some(To::Run(_, Mail::Input(Input::Reported { outcome, .. }))) => {
                    *outcome = Outcome::Failed(failure.clone());
                }
                _ => {
                    landing.retry = None;
                    let refused = Refused::BadInput(failure.message.to_string());
                    let reply = landing.reply.take().map(|(to, _)| Order::Reply(to, Reply::Refused(refused)));
                    self.work.orders.extend(reply);
                }
            }
        }
        self.failed(from, through, handed_over.max(through), now);
    }

    /// Handles a batch that was not written. `handed_over` is the last record of the last batch that was taken.
    pub fn failed(&mut self, from: u64, through: u64, handed_over: u64, now: Now) {
        self.resolved = self.resolved.max(through);
        let mut stall = self.stall.take().unwrap_or_default();
        stall.until = handed_over;
        // Records that were not taken yet depend on the lost ones.
        let unsent = self.work.records.first().map_or(u64::MAX, |record| record.number);
        self.work.records.clear();
        let lost = |number: u64| (from..=through).contains(&number) || number >= unsent;
        let (undone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.work.landings).into_iter().partition(|landing| lost(landing.number));
        self.work.landings = kept.into();
        for landing in undone {
            self.undo(landing, &mut stall);
        }
        while let Some(post) = self.work.post.pop_front() {
            stall.keep(post);
        }
        let present: Vec<RunId> = self.known.present().cloned().collect();
        for run in present {
            match self.known.get_mut(&run) {
                Some(Entry::Loading(loading)) => {
                    loading.mail.retain(|(mail, _)| !mail.is_from_the_coordinator());
                }
                Some(Entry::Live(live)) => live.waiting.retain(|(mail, _)| !mail.is_from_the_coordinator()),
                Some(Entry::Resting { .. }) | None => {}
            }
        }
        self.stall = Some(stall);
        self.land(now);
        self.read_again();
        self.advance(now);
    }

    fn undo(&mut self, mut landing: Landing, stall: &mut Stall) {
        if let Some(run) = &landing.run {
            stall.runs.insert(run.clone());
            if let Some(Entry::Live(live)) = self.known.get_mut(run) {
                live.underway = live.underway.saturating_sub(1);
                // Its job was started, and its report is delivered again.
                if let Some(To::Run(_, Mail::Input(Input::Reported { job, .. } | Input::Lost { job, .. }))) =
                    &landing.retry
                {
                    live.jobs.insert(job.clone(), Holder::Here);
                }
            }
        }
        if planted(Bug::EarlyAck) && landing.run.is_none() && landing.reply.is_some() {
            landing.retry = None;
            stall.early.push(landing);
            return;
        }
        let reply = landing.reply.map(|(to, _)| to);
        if let Some(to) = landing.retry {
            stall.keep(Post { to, reply });
        }
    }

    /// Reads the coordinator and the affected runs again, after all batches have finished.
    fn read_again(&mut self) {
        let Some(stall) = &mut self.stall else { return };
        if stall.reading || self.resolved < stall.until {
            return;
        }
        (stall.reading, stall.coordinator) = (true, true);
        self.work.orders.push(Order::LoadCoordinator);
        for run in &stall.runs {
            if let Some(Entry::Live(live)) = self.known.remove(run) {
                if let Some(alarm) = live.alarm {
                    self.alarms.remove(&(alarm, run.clone()));
                }
                let loading = Loading { mail: VecDeque::new(), execute: false, time: None, was: Some(live) };
                self.known.insert(run.clone(), Entry::Loading(Box::new(loading)));
                self.work.orders.push(Order::Load { run: run.clone(), execute: false });
            }
        }
        let known = &self.known;
        stall
            .runs
            .retain(|run| matches!(known.get(run), Some(Entry::Loading(loading)) if loading.was.is_some()));
    }

    /// Handles the result of reading the coordinator's stream.
    pub fn loaded_coordinator(
        &mut self,
        coordinator: Coordinator,
        tail: Option<u64>,
        events: usize,
        now: Now,
    ) {
        self.work.replace_coordinator(coordinator, tail, events);
        if let Some(stall) = &mut self.stall {
            stall.coordinator = false;
        }
        self.end_stall(now);
        self.advance(now);
    }

    /// Marks a run as read again.
    pub(super) fn recovered(&mut self, run: &RunId, now: Now) {
        if let Some(stall) = &mut self.stall {
            stall.runs.remove(run);
        }
        self.end_stall(now);
    }

    /// Continues after everything was read: runs repeat their requests, and the mail is delivered.
    fn end_stall(&mut self, now: Now) {
        let done = |stall: &Stall| stall.reading && !stall.coordinator && stall.runs.is_empty();
        let Some(stall) = self.stall.take_if(|stall| done(stall)) else { return };
        let present: Vec<RunId> = self.known.present().cloned().collect();
        for run in present {
            if let Some(Entry::Live(live)) = self.known.get_mut(&run) {
                live.alarm = None;
                let mut turn = Turn { live, work: &mut self.work, now };
                turn.work.settle(&turn.live.run, now);
                if !turn.live.is_quiet() {
                    turn.reconcile();
                    turn.clock_set();
                    turn.ask_again();
                }
                self.work.touched.insert(run);
            }
        }
        self.alarms.retain(|(_, run)| matches!(self.known.get(run), Some(Entry::Resting { .. })));
        self.work.pass_on_owed(None);
        self.work.post.extend(stall.mail);
        for (run, found) in stall.loads {
            self.loaded(&run, found, now);
        }
        for landing in stall.early {
            self.work.landings.push_back(Landing { number: self.work.number, ..landing });
        }
    }

    /// Carries out everything that waited for durable records. Returns whether there was anything.
    pub(super) fn land(&mut self, now: Now) -> bool {
        let mut landed = false;
        while let Some(landing) = self.work.landings.pop_front_if(|landing| landing.number <= self.resolved) {
            landed = true;
            let Landing { run, reply, events, effects, again, .. } = landing;
            if let Some(run) = run {
                self.land_in(run, events, effects, again, now);
            }
            self.work.orders.extend(reply.map(|(to, reply): (_, Reply)| Order::Reply(to, reply)));
        }
        landed
    }

    fn land_in(
        &mut self,
        run: RunId,
        events: Option<Arc<Vec<Event>>>,
        effects: Vec<Effect>,
        again: bool,
        now: Now,
    ) {
        let Some(Entry::Live(live)) = self.known.get_mut(&run) else { return };
        live.underway = live.underway.saturating_sub(1);
        let at =
            events.as_ref().and_then(|events| events.last()).map_or(live.run.last_at(), |event| event.at);
        if let Some(events) = events {
            let seq = live.durable + 1;
            live.durable += events.len() as u64;
            self.work.orders.push(Order::Happened { run: run.clone(), seq, events });
        }
        let mut turn = Turn { live, work: &mut self.work, now };
        turn.carry_out(effects, at);
        if again {
            turn.live.held = false;
            self.work.post(run.clone(), Mail::Input(Input::Tick), None);
        }
        self.work.touched.insert(run);
    }
}
