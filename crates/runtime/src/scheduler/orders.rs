//! Carries out the orders of `Runs`.

use super::{Asked, Hosted, Scheduler};
use crate::clock::now;
use crate::mock::Planned;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;
use windlass_engine::{
    Decision, Event, Input, Mail, Now, Path, Reply, ReplyTo, Run, RunId, RunsOrder as Order, What,
};
use windlass_executors::{Recorded, ToRecord};
use windlass_store::Entry;

impl Scheduler {
    /// Carries out all orders, including those that follow immediately.
    pub(super) fn carry_out(&mut self) {
        loop {
            let orders = self.runs.take_orders();
            if orders.is_empty() {
                return;
            }
            orders.into_iter().for_each(|order| self.carry_out_one(order));
        }
    }

    fn carry_out_one(&mut self, order: Order) {
        match order {
            Order::Load { run, execute } => self.loads.push((run, execute)),
            Order::LoadCoordinator => self.load_coordinator(),
            Order::Start(job) => self.start_job(*job),
            Order::Adopt(job) => self.adopt(*job),
            Order::Abort { job, overdue } => self.abort(&job, overdue),
            Order::Recall(job) => self.recall(*job),
            Order::Happened { run, seq, events } => self.happened(&run, seq, &events),
            Order::Reply(to, reply) => self.reply(to, reply),
            Order::Still { run, still } => self.come_to_rest(&run, still),
            Order::Concluded { run, outcome } => {
                if let Some(engine) = self.engine() {
                    engine.note_ended(&run);
                }
                self.concluded(&run, &outcome);
            }
            Order::Evicted { run } => self.evicted(&run),
            Order::Parked { run } => self.park(&run),
            Order::Begin(order) => {
                if let Some(engine) = self.engine() {
                    tokio::spawn(async move { engine.start_ordered(*order).await });
                }
            }
            Order::Budgets => {
                if let Some(engine) = self.engine() {
                    engine.note_budgets(self.runs.coordinator());
                }
            }
        }
    }

    fn reply(&mut self, to: ReplyTo, reply: Reply) {
        if let Some(waiting) = self.replies.remove(&to) {
            let refused =
                matches!(reply, Reply::Refused(_) | Reply::NotShared(_) | Reply::NoRun | Reply::Unusable);
            match self.notes.remove(&to).filter(|note| !note.is_attached && !refused) {
                // Nothing was left to record, so the notes are written alone.
                Some(note) => self.note_then_reply(note.entries, waiting, reply),
                // The client may have disconnected.
                None => drop(waiting.send(reply)),
            }
        } else if let Some((run, gate)) = self.decisions.remove(&to) {
            self.mocked(&run, gate, reply);
        }
    }

    fn note_then_reply(&self, entries: Vec<Entry>, to: oneshot::Sender<Reply>, reply: Reply) {
        let Some(engine) = self.engine() else { return };
        let written = engine.store().ledger.write(entries);
        tokio::spawn(async move {
            // Without the notes there is no reply, and the client asks again.
            if written.await.is_ok() {
                let _ = to.send(reply);
            }
        });
    }

    /// Takes the reply to a mocked decision or signal. Shows a refusal to followers.
    fn mocked(&mut self, run: &RunId, gate: Option<Path>, reply: Reply) {
        if let Reply::Refused(refused) = reply {
            self.notice(run, &refused.to_string());
            let at = self.runs.time_of(run, now()).unwrap_or_default();
            let player = self.hosts.get_mut(run).and_then(|hosted| hosted.player.as_mut());
            let next = player.zip(gate).and_then(|(player, gate)| player.after_one(&gate, at));
            self.plan(run, next.into_iter().collect());
        }
        if let Some(outcome) = self.ending.remove(run) {
            self.concluded(run, &outcome);
        }
    }

    fn happened(&mut self, run: &RunId, seq: u64, events: &Arc<Vec<Event>>) {
        if let Some(engine) = self.engine() {
            engine.observer.happened(run, events);
        }
        if let Some(watched) = self.watched.get_mut(run) {
            watched.tell(seq, events);
        }
        let Some(Hosted { player: Some(player), .. }) = self.hosts.get_mut(run) else { return };
        if let Some(live) = self.runs.live(run) {
            let gate = |event: &Event| match &event.what {
                What::Entered { path, decision: Decision::Gate(_) } => Some(path.clone()),
                _ => None,
            };
            events.iter().filter_map(gate).for_each(|path| player.learn(live, &path));
        }
        let now = now();
        let planned = player.receive(events, self.runs.time_of(run, now).unwrap_or(now.wall));
        self.plan(run, planned);
    }

    /// Lets the mock client of a run that was just loaded plan its decisions and signals.
    pub(super) fn resume_mock_client(&mut self, run: &RunId, decided: HashMap<String, usize>, now: Now) {
        let live: Option<&Run> = self.runs.live(run);
        if let (Some(live), Some(Hosted { player: Some(player), .. })) = (live, self.hosts.get_mut(run)) {
            let at = self.runs.time_of(run, now).unwrap_or(now.wall);
            let planned = player.resumed(live, decided, at);
            self.plan(run, planned);
        }
    }

    fn plan(&mut self, run: &RunId, planned: Vec<Planned>) {
        for Planned { at, input, gate } in planned {
            self.replies_given += 1;
            let to = ReplyTo(self.replies_given);
            self.decisions.insert(to, (run.clone(), gate));
            match self.runs.live(run).is_some() {
                true => self.runs.send_at(run, at, Mail::Input(input), Some(to)),
                // The run has just ended. It refuses the input, and followers see the refusal.
                false => self.runs.send(run.clone(), Mail::Input(input), Some(to), now()),
            }
        }
    }

    /// Records the notes or costs of a job in one batch.
    pub(super) fn record(&mut self, recorded: Recorded, now: Now) {
        let Recorded { job, what, durable } = recorded;
        let inputs: Vec<Input> = match what {
            ToRecord::Notes(notes) => {
                let noted = |(key, value)| Input::Noted { job: job.clone(), key, value };
                notes.into_iter().map(noted).collect()
            }
            ToRecord::Spent(used) => vec![Input::Spent { job: job.clone(), used }],
        };
        let (reply, answered) = oneshot::channel();
        let asked = Asked { reply, entries: Vec::new() };
        let (to, last) = (self.reply_to(asked), inputs.len().saturating_sub(1));
        for (number, input) in inputs.into_iter().enumerate() {
            let to = (number == last).then_some(to);
            self.runs.send(job.run.clone(), Mail::Input(input), to, now);
        }
        tokio::spawn(async move {
            if let Ok(Reply::Done) = answered.await {
                // The job may have ended in the meantime.
                let _ = durable.send(());
            }
        });
    }

    fn evicted(&mut self, run: &RunId) {
        self.writing.forget(run);
        self.jobs.forget(run);
        // Keep the host of a client until the run ends. The default host can be recreated.
        if !self.engine().is_some_and(|engine| engine.is_live(run)) {
            self.hosts.remove(run);
        }
        if let Some(watched) = self.watched.get_mut(run) {
            watched.close_output();
        }
    }

    fn park(&mut self, run: &RunId) {
        self.hosts.remove(run);
        self.jobs.forget(run);
        // Followers learn the reason when they read the run.
        self.watched.remove(run);
    }
}
