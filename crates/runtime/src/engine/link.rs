//! The way to the scheduler: messages to runs and to the coordinator. The first message starts the scheduler.

use super::{Engine, Error, lock};
use crate::scheduler::{Asked, Message, Scheduler, Sender};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::{mpsc, oneshot};
use windlass_engine::{
    Coordinator, CoordinatorInput, CoordinatorState, Input, JobKey, Mail, Outcome, Reply, RunId, Runs,
};
use windlass_executors::Recorded;
use windlass_ir::Value;
use windlass_ir::policy::Budget;
use windlass_store::{Entry, Store};

#[derive(Debug)]
pub(super) struct Link {
    scheduler: OnceLock<Sender>,
    /// `None` once the scheduler has started, or if the folder is open read-only.
    opening: Mutex<Option<Opening>>,
}

impl Link {
    pub fn new(opening: Option<Opening>) -> Self {
        Self { scheduler: OnceLock::new(), opening: Mutex::new(opening) }
    }
}

/// The state that the scheduler starts with.
#[derive(Debug)]
pub(super) struct Opening {
    /// The coordinator, the number of its last record, and the number of its events.
    coordinator: (Coordinator, Option<u64>, usize),
    /// Finished runs that still hold something at the coordinator.
    settle: Vec<RunId>,
    /// Notes and costs that jobs record.
    recorded: mpsc::UnboundedReceiver<Recorded>,
}

impl Opening {
    /// Blocks.
    pub(super) fn of(store: &Store, recorded: mpsc::UnboundedReceiver<Recorded>) -> Result<Self, Error> {
        let coordinator = read_coordinator(store)?;
        let state = coordinator.0.state();
        let askers = coordinator.0.askers().map(|asker| asker.run.clone());
        let runs: BTreeSet<RunId> =
            askers.chain(state.subscribed.keys().map(|address| address.run.clone())).collect();
        let mut settle = Vec::new();
        for run in runs {
            let row = store.view.get(&run).wait()?;
            if row.is_some_and(|row| row.row.ended_at.is_some()) {
                settle.push(run);
            }
        }
        Ok(Self { coordinator, settle, recorded })
    }

    pub(super) fn state(&self) -> &CoordinatorState {
        self.coordinator.0.state()
    }
}

fn read_coordinator(store: &Store) -> Result<(Coordinator, Option<u64>, usize), Error> {
    match crate::coordinator::read(store) {
        Err(error) if error.is_of_one_run() => Err(Error::Limits(error)),
        found => Ok(found?),
    }
}

impl Engine {
    /// The scheduler. The first call starts it.
    fn scheduler(&self) -> &Sender {
        self.link.scheduler.get_or_init(|| {
            let mut opening = lock(&self.link.opening).take().expect("a read-only engine has no scheduler");
            let sender = Scheduler::start(self.this.clone(), self.dialects, opening.coordinator);
            for run in opening.settle {
                // The scheduler has just started, so the channel is open.
                let _ = sender.send(Message::Send { run, mail: Mail::Settle, reply: None });
            }
            let receiver = sender.downgrade();
            tokio::spawn(async move {
                while let (Some(recorded), Some(sender)) = (opening.recorded.recv().await, receiver.upgrade())
                {
                    // A stopped scheduler records nothing.
                    let _ = sender.send(Message::Recorded(recorded));
                }
            });
            sender
        })
    }

    /// Sends a message without a reply. A stopped scheduler learns everything again after the next start.
    pub(super) fn send(&self, message: Message) {
        let _ = self.scheduler().send(message);
    }

    /// Sends a message to the scheduler and waits for the reply. A stopped scheduler sends none.
    pub(super) async fn request<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> Message,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply));
        answer.await.map_err(|_| Error::Store(windlass_store::Error::Stopped))
    }

    /// The same for a message that also changes the ledger.
    pub(super) async fn ask(
        &self,
        entries: Vec<Entry>,
        message: impl FnOnce(Asked) -> Message,
    ) -> Result<Reply, Error> {
        self.request(|reply| message(Asked { reply, entries })).await
    }

    /// Reads the runs in memory.
    pub(super) async fn read_runs<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Runs) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.request(|reply| Message::Look(Box::new(move |runs: &Runs| drop(reply.send(look(runs)))))).await
    }

    /// Reads the coordinator of this process.
    pub(crate) async fn coordinator<T: Send + 'static>(
        &self,
        look: impl FnOnce(&CoordinatorState) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.read_runs(move |runs| look(runs.coordinator())).await
    }

    /// The state that runs share, read from the journal.
    pub fn shared(&self) -> Result<CoordinatorState, Error> {
        Ok(read_coordinator(&self.store)?.0.state().clone())
    }

    /// Sends an input to the coordinator without waiting until it is durable.
    pub(crate) fn share(&self, input: CoordinatorInput) {
        self.send(Message::Share { input, reply: None });
    }

    /// Reports the outcome of a job outside this process.
    pub(crate) fn reported(&self, job: JobKey, outcome: Outcome) {
        let mail = Mail::Input(Input::Reported { job: job.clone(), outcome });
        self.send(Message::Send { run: job.run, mail, reply: None });
    }

    /// Sends an input to a run in any state and waits until it is durable.
    pub async fn tell(self: &Arc<Self>, id: &RunId, input: Input) -> Result<(), Error> {
        self.tell_noting(id, input, Vec::new()).await
    }

    /// The same, and changes the ledger together with it.
    pub async fn tell_noting(
        self: &Arc<Self>,
        id: &RunId,
        input: Input,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        let (run, mail) = (id.clone(), Mail::Input(input));
        let reply = self.ask(entries, |reply| Message::Send { run, mail, reply: Some(reply) }).await?;
        self.done(id, reply).await
    }

    /// Changes the ledger alone.
    pub async fn note(&self, entries: Vec<Entry>) -> Result<(), Error> {
        Ok(self.store.ledger.write(entries).await?)
    }

    /// A document of the ledger.
    pub async fn document(&self, kind: &'static str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.store.ledger.get(kind, key).await?)
    }

    /// Publishes a message that names no run. Returns the number of its subscribers once the message is durable.
    pub async fn publish(
        &self,
        id: Arc<str>,
        name: Arc<str>,
        by: Arc<str>,
        value: Value,
        entries: Vec<Entry>,
    ) -> Result<usize, Error> {
        match self.share_noting(CoordinatorInput::Published { id, name, by, value }, entries).await? {
            Reply::Published(delivered) => Ok(delivered),
            _ => Ok(0),
        }
    }

    /// Sends an input to the coordinator and waits until it is durable.
    pub(crate) async fn tell_coordinator(&self, input: CoordinatorInput) -> Result<Reply, Error> {
        self.share_noting(input, Vec::new()).await
    }

    async fn share_noting(&self, input: CoordinatorInput, entries: Vec<Entry>) -> Result<Reply, Error> {
        match self.ask(entries, |reply| Message::Share { input, reply: Some(reply) }).await? {
            Reply::NotShared(refused) => Err(Error::Budget(refused)),
            reply => Ok(reply),
        }
    }

    /// Sets the cap of a budget. With a time zone, the budget starts over every day.
    pub async fn set_budget(
        &self,
        budget: Arc<str>,
        cap: Budget,
        zone: Option<Arc<str>>,
        entries: Vec<Entry>,
    ) -> Result<(), Error> {
        self.share_noting(CoordinatorInput::Cap { budget, cap, zone }, entries).await.map(drop)
    }

    /// Resets the amount spent from a budget.
    pub async fn reset_budget(&self, budget: Arc<str>, entries: Vec<Entry>) -> Result<(), Error> {
        self.share_noting(CoordinatorInput::Reset { budget }, entries).await.map(drop)
    }
}
