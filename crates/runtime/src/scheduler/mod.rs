//! The tokio shell around [`Runs`]: one task that owns every run of the process.
//!
//! It takes all pending messages, lets `Runs` decide, carries out the orders, and writes the decisions to the journal in one batch.
//! `loading` reads runs, `jobs` starts executors, `orders` carries out other orders, `watching` updates followers and decides when
//! each of them leaves, and `writing` writes to the journal.

mod jobs;
mod loading;
mod orders;
mod watching;
mod writing;

use crate::clock::now;
use crate::engine::{Engine, Error};
use crate::host::Host;
use crate::mock::Player;
use jobs::Jobs;
use loading::Reading;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use tokio::sync::{mpsc, oneshot};
pub use watching::Patience;
use watching::Watched;
pub(crate) use watching::{Watch, Watching};
use windlass_engine::{
    Begin, Coordinator, CoordinatorInput, Mail, Now, Reply, ReplyTo, Resume, RunId, Runs, Serves,
};
use windlass_executors::Recorded;
use windlass_ir::dialect::Dialects;
use windlass_store::Entry;
use writing::{Note, Writing};

/// Where the reply to a message goes.
pub(crate) struct Asked {
    pub reply: oneshot::Sender<Reply>,
    /// Changes of the ledger, made together with what the message does. A refusal makes none.
    pub entries: Vec<Entry>,
}

/// A message to the scheduler.
pub(crate) enum Message {
    Send {
        run: RunId,
        mail: Mail,
        reply: Option<Asked>,
    },
    Begin {
        begin: Box<Begin>,
        host: Arc<Host>,
        watch: Option<Watch>,
        reply: Asked,
    },
    /// Execute a run with this host from now on.
    Resume {
        run: RunId,
        resume: Resume,
        host: Arc<Host>,
        watch: Option<Watch>,
        reply: Asked,
    },
    Share {
        input: CoordinatorInput,
        reply: Option<Asked>,
    },
    /// No reply if the run is not in memory and the follower does not wait for it.
    Watch {
        run: RunId,
        watch: Watch,
    },
    /// Execute every run. The reply lists the runs that cannot be executed, once all others are loaded.
    ServeAll {
        unfinished: Vec<(RunId, windlass_store::Wake)>,
        reply: oneshot::Sender<Vec<(RunId, Error)>>,
    },
    /// Execute every run but these, and mark these as interrupted.
    ServeAllBut(Vec<RunId>),
    ClockSet,
    Look(Box<dyn FnOnce(&Runs) + Send>),
    Stop(oneshot::Sender<()>),
    /// The reply comes when no run is busy. With `timers`, also when no run waits for a timer.
    Idle {
        timers: bool,
        reply: oneshot::Sender<()>,
    },
    Recorded(Recorded),
    Adopted {
        job: windlass_engine::JobKey,
        found: Option<windlass_executors::Returned>,
    },
    Loaded(Vec<(RunId, Reading)>),
    Coordinator(Box<(Coordinator, Option<u64>, usize)>),
    Fatal(windlass_store::Error),
}

impl Message {
    /// The number of runs it may change.
    fn size(&self) -> usize {
        match self {
            Self::Loaded(read) => read.len(),
            _ => 1,
        }
    }
}

/// Sends messages to the scheduler.
pub(crate) type Sender = mpsc::UnboundedSender<Message>;

/// The host of a run, and its mock client.
struct Hosted {
    host: Arc<Host>,
    player: Option<Box<Player>>,
}

impl Hosted {
    fn new(host: Arc<Host>, dialects: Dialects) -> Self {
        let player = host.script.clone().map(|script| Box::new(Player::new(script, dialects)));
        Self { host, player }
    }
}

pub(crate) struct Scheduler {
    engine: Weak<Engine>,
    dialects: Dialects,
    runs: Runs,
    inbox: mpsc::UnboundedReceiver<Message>,
    sender: mpsc::WeakUnboundedSender<Message>,
    hosts: HashMap<RunId, Hosted>,
    watched: HashMap<RunId, Watched>,
    jobs: Jobs,
    writing: Writing,
    replies: HashMap<ReplyTo, oneshot::Sender<Reply>>,
    replies_given: u64,
    /// Changes of the ledger that wait for a record or for a reply.
    notes: HashMap<ReplyTo, Note>,
    /// Runs to read, and whether to execute them.
    loads: Vec<(RunId, bool)>,
    recovery: Recovery,
    /// Mocked decisions and signals without a reply. Followers see refusals.
    decisions: HashMap<ReplyTo, (RunId, Option<windlass_engine::Path>)>,
    /// Finished runs that still wait for replies to mocked decisions.
    ending: HashMap<RunId, windlass_engine::Outcome>,
    stops: Vec<oneshot::Sender<()>>,
    idle: Vec<(bool, oneshot::Sender<()>)>,
}

/// The runs that an earlier process left unfinished, until they are loaded.
#[derive(Default)]
struct Recovery {
    waiting: HashSet<RunId>,
    parked: Vec<(RunId, Error)>,
    reply: Option<oneshot::Sender<Vec<(RunId, Error)>>>,
}

/// The maximum number of messages per batch, where every run that was read counts as one.
const AT_ONCE: usize = 1_024;

impl Scheduler {
    /// Starts the task. `found` is the coordinator, read from its stream.
    pub fn start(
        engine: Weak<Engine>,
        dialects: Dialects,
        found: (Coordinator, Option<u64>, usize),
    ) -> Sender {
        let (sender, inbox) = mpsc::unbounded_channel();
        let (coordinator, tail, events) = found;
        let runs = Runs::new(coordinator, tail, events, Serves::Named(HashSet::new()), now());
        let scheduler = Self {
            engine,
            dialects,
            runs,
            inbox,
            sender: sender.downgrade(),
            hosts: HashMap::new(),
            watched: HashMap::new(),
            jobs: Jobs::default(),
            writing: Writing::default(),
            replies: HashMap::new(),
            replies_given: 0,
            notes: HashMap::new(),
            loads: Vec::new(),
            recovery: Recovery::default(),
            decisions: HashMap::new(),
            ending: HashMap::new(),
            stops: Vec::new(),
            idle: Vec::new(),
        };
        tokio::spawn(scheduler.work());
        tokio::spawn(watch_clock(sender.downgrade()));
        sender
    }

    async fn work(mut self) {
        self.runs.open(now());
        self.settle();
        loop {
            self.finish();
            if self.jobs.take_started() {
                // Reports of jobs that end immediately share a commit.
                tokio::task::yield_now().await;
                self.take_arrived();
                self.finish();
            }
            let alarm = self.runs.next_alarm(now());
            tokio::select! {
                message = self.inbox.recv() => match message {
                    Some(message) => self.take(message),
                    None => return,
                },
                Some(done) = self.jobs.next() => self.returned(done),
                written = self.writing.next() => self.written(written),
                () = until(alarm) => {}
            }
            if self.engine.strong_count() == 0 {
                return;
            }
            self.take_arrived();
        }
    }

    /// Takes the messages in the queue and the jobs that have ended.
    fn take_arrived(&mut self) {
        let mut taken = 0;
        while taken < AT_ONCE
            && let Ok(message) = self.inbox.try_recv()
        {
            taken += message.size();
            self.take(message);
        }
        while let Some(done) = self.jobs.try_next() {
            self.returned(done);
        }
        self.settle();
    }

    /// Carries out all orders and lets virtual clocks jump.
    fn settle(&mut self) {
        loop {
            let now = now();
            if self.runs.next_alarm(now).is_some_and(|alarm| alarm <= now.steady) {
                self.runs.tick(now);
            }
            self.carry_out();
            if !self.runs.jump(now) {
                return;
            }
        }
    }

    /// Starts writes and reads, and replies to clients that wait for idleness.
    fn finish(&mut self) {
        self.hand_over();
        self.load();
        self.tell_idle();
    }

    fn take(&mut self, message: Message) {
        let now = now();
        match message {
            Message::Send { run, mail, reply } => {
                let reply = reply.map(|reply| self.reply_to(reply));
                self.runs.send(run, mail, reply, now);
            }
            Message::Begin { begin, host, watch, reply } => {
                let (run, reply) = (begin.run.clone(), self.reply_to(reply));
                self.host(&run, host);
                watch.into_iter().for_each(|watch| self.add_watch(&run, watch));
                self.runs.send(run, Mail::Begin(begin), Some(reply), now);
            }
            Message::Resume { run, resume, host, watch, reply } => {
                let reply = self.reply_to(reply);
                self.host(&run, host);
                watch.into_iter().for_each(|watch| self.add_watch(&run, watch));
                self.runs.send(run, Mail::Resume(resume), Some(reply), now);
            }
            Message::Share { input, reply } => {
                let reply = reply.map(|reply| self.reply_to(reply));
                self.runs.tell(input, reply, now);
            }
            Message::Watch { run, watch } => self.watch(&run, watch),
            Message::ServeAll { unfinished, reply } => self.serve_all(unfinished, reply, now),
            Message::ServeAllBut(unfinished) => {
                self.runs.serve_all_but(unfinished, now);
                self.runs.open(now);
            }
            Message::ClockSet => self.runs.clock_set(now),
            Message::Look(look) => look(&self.runs),
            Message::Stop(reply) => {
                self.stops.push(reply);
                self.runs.stop(now);
                self.release_resting();
            }
            Message::Idle { timers, reply } => self.idle.push((timers, reply)),
            Message::Recorded(recorded) => self.record(recorded, now),
            Message::Adopted { job, found } => self.adopted(job, found, now),
            Message::Loaded(read) => {
                read.into_iter().for_each(|(run, reading)| self.loaded(&run, reading, now));
            }
            Message::Coordinator(found) => {
                let (coordinator, tail, events) = *found;
                self.runs.loaded_coordinator(coordinator, tail, events, now);
            }
            Message::Fatal(error) => self.fail(&error),
        }
        self.carry_out();
    }

    fn reply_to(&mut self, asked: Asked) -> ReplyTo {
        self.replies_given += 1;
        let to = ReplyTo(self.replies_given);
        self.replies.insert(to, asked.reply);
        if !asked.entries.is_empty() {
            self.notes.insert(to, Note { entries: asked.entries, is_attached: false });
        }
        to
    }

    /// Sets the host of a run. A run in execution keeps its host.
    fn host(&mut self, run: &RunId, host: Arc<Host>) {
        if self.runs.live(run).is_none() || !self.hosts.contains_key(run) {
            self.hosts.insert(run.clone(), Hosted::new(host, self.dialects));
        }
    }

    fn serve_all(
        &mut self,
        unfinished: Vec<(RunId, windlass_store::Wake)>,
        reply: oneshot::Sender<Vec<(RunId, Error)>>,
        now: Now,
    ) {
        use windlass_engine::{Left, Wake};
        self.runs.serve_all();
        for (run, wake) in unfinished {
            let wake = match wake {
                windlass_store::Wake::Unknown => None,
                windlass_store::Wake::Owes => Some(Wake::Owes),
                windlass_store::Wake::At(due) => Some(Wake::At(due)),
                windlass_store::Wake::Never => Some(Wake::Never),
            };
            if matches!(wake, None | Some(Wake::Owes)) && self.runs.live(&run).is_none() {
                self.recovery.waiting.insert(run.clone());
            }
            self.runs.recover(&run, Left { ended: false, closed: false, wake, last_at: now.wall }, now);
        }
        self.recovery.reply = Some(reply);
        self.runs.open(now);
        self.tell_recovered();
    }

    fn tell_recovered(&mut self) {
        if self.recovery.waiting.is_empty()
            && let Some(reply) = self.recovery.reply.take()
        {
            // The client may have disconnected.
            let _ = reply.send(std::mem::take(&mut self.recovery.parked));
        }
    }

    /// Replies to clients that wait until no run is busy.
    fn tell_idle(&mut self) {
        if self.idle.is_empty() && self.stops.is_empty() {
            return;
        }
        if !self.stops.is_empty() && self.runs.present().next().is_none() && self.writing.is_empty() {
            for reply in self.stops.drain(..) {
                // The client may have disconnected.
                let _ = reply.send(());
            }
        }
        let busy = self.runs.present().any(|run| self.runs.is_busy(run)) || !self.writing.is_empty();
        let waits = self.runs.waits_for_time();
        for (_, reply) in self.idle.extract_if(.., |(timers, _)| !(busy || *timers && waits)) {
            // The client may have disconnected.
            let _ = reply.send(());
        }
    }

    /// The store is unusable, so this process must end.
    fn fail(&mut self, error: &windlass_store::Error) {
        if let Some(engine) = self.engine.upgrade() {
            engine.must_end(error);
        }
        for (_, watched) in self.watched.drain() {
            watched.fail(error);
        }
        self.replies.clear();
        self.stops.clear();
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.upgrade()
    }
}

/// Tells the scheduler when the wall clock is set. Where the system does not report that, runs adjust when they are loaded.
async fn watch_clock(sender: mpsc::WeakUnboundedSender<Message>) {
    while crate::clock::set().await.is_ok()
        && let Some(sender) = sender.upgrade()
    {
        // A stopped scheduler needs no clock.
        let _ = sender.send(Message::ClockSet);
    }
}

/// Waits until the steady clock reaches this time.
async fn until(alarm: Option<u64>) {
    match alarm {
        None => std::future::pending().await,
        Some(alarm) => {
            let left = alarm.saturating_sub(now().steady);
            tokio::time::sleep(std::time::Duration::from_micros(left)).await;
        }
    }
}
