//! The tokio shell around [`Runs`]: one task that owns every run of the process.
//!
//! It takes everything that has arrived, lets `Runs` decide, carries out the orders, and hands what was decided to the journal as one
//! batch. `loading` reads runs, `jobs` starts executors, `orders` carries out the rest, `watching` tells followers and knows when each
//! of them has seen enough, `writing` is the way to the journal.

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
use writing::Writing;

/// What the scheduler is asked, or told.
pub(crate) enum Message {
    Send {
        run: RunId,
        mail: Mail,
        reply: Option<oneshot::Sender<Reply>>,
    },
    Begin {
        begin: Box<Begin>,
        host: Box<Host>,
        watch: Option<Watch>,
        reply: oneshot::Sender<Reply>,
    },
    /// Execute a run with this host from now on.
    Resume {
        run: RunId,
        resume: Resume,
        host: Box<Host>,
        watch: Option<Watch>,
        reply: oneshot::Sender<Reply>,
    },
    Share {
        input: CoordinatorInput,
        reply: Option<oneshot::Sender<Reply>>,
    },
    /// Dropped unanswered if the run is not in memory and the follower does not wait for it.
    Watch {
        run: RunId,
        watch: Watch,
    },
    /// Execute every run. Answered with the runs that cannot be, once all others have been loaded.
    ServeAll {
        unfinished: Vec<(RunId, windlass_store::Wake)>,
        reply: oneshot::Sender<Vec<(RunId, Error)>>,
    },
    /// Execute every run but these, and mark these as interrupted.
    ServeAllBut(Vec<RunId>),
    ClockSet,
    Look(Box<dyn FnOnce(&Runs) + Send>),
    Stop(oneshot::Sender<()>),
    /// Answered when no run does anything, and with `timers` when no timer is left either.
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

/// The way to the scheduler.
pub(crate) type Sender = mpsc::UnboundedSender<Message>;

/// How a run is executed here.
struct Hosted {
    host: Host,
    player: Option<Player>,
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
    /// Runs to read, and whether to execute them.
    loads: Vec<(RunId, bool)>,
    recovery: Recovery,
    /// Mocked decisions and signals whose refusal is shown.
    decisions: HashMap<ReplyTo, (RunId, Option<windlass_engine::Path>)>,
    /// Runs with a result whose mocked decisions are not all answered.
    ending: HashMap<RunId, windlass_engine::Outcome>,
    stops: Vec<oneshot::Sender<()>>,
    idle: Vec<(bool, oneshot::Sender<()>)>,
}

/// The runs that were found when the folder was opened and have not been loaded.
#[derive(Default)]
struct Recovery {
    waiting: HashSet<RunId>,
    parked: Vec<(RunId, Error)>,
    reply: Option<oneshot::Sender<Vec<(RunId, Error)>>>,
}

/// The most messages that are taken before what follows is written.
const AT_ONCE: usize = 1_024;

impl Scheduler {
    /// Starts the task. `found` is the coordinator as its stream tells it.
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
        let mut messages = Vec::with_capacity(AT_ONCE);
        self.runs.open(now());
        self.settle();
        loop {
            self.finish();
            if self.jobs.take_started() {
                // The reports of jobs that end at once share a commit.
                tokio::task::yield_now().await;
                self.take_arrived(&mut messages);
                self.finish();
            }
            let alarm = self.runs.next_alarm(now());
            tokio::select! {
                count = self.inbox.recv_many(&mut messages, AT_ONCE) => if count == 0 { return },
                Some(done) = self.jobs.next() => self.returned(done),
                written = self.writing.next() => self.written(written),
                () = until(alarm) => {}
            }
            if self.engine.strong_count() == 0 {
                return;
            }
            self.take_arrived(&mut messages);
        }
    }

    /// Takes everything that has arrived: these messages, those behind them, and the jobs that have ended.
    fn take_arrived(&mut self, messages: &mut Vec<Message>) {
        while messages.len() < AT_ONCE
            && let Ok(message) = self.inbox.try_recv()
        {
            messages.push(message);
        }
        messages.drain(..).for_each(|message| self.take(message));
        while let Some(done) = self.jobs.try_next() {
            self.returned(done);
        }
        self.settle();
    }

    /// Carries out everything that was decided and lets virtual clocks jump.
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

    /// Hands over what is to be written and read, and answers those who wait for that.
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
                self.host(&run, *host);
                watch.into_iter().for_each(|watch| self.add_watch(&run, watch));
                self.runs.send(run, Mail::Begin(begin), Some(reply), now);
            }
            Message::Resume { run, resume, host, watch, reply } => {
                let reply = self.reply_to(reply);
                self.host(&run, *host);
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
                self.leave_resting();
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

    fn reply_to(&mut self, reply: oneshot::Sender<Reply>) -> ReplyTo {
        self.replies_given += 1;
        let to = ReplyTo(self.replies_given);
        self.replies.insert(to, reply);
        to
    }

    /// A run that is executed already keeps its host.
    fn host(&mut self, run: &RunId, host: Host) {
        if self.runs.live(run).is_none() || !self.hosts.contains_key(run) {
            let player = host.script.clone().map(|script| Player::new(script, self.dialects));
            self.hosts.insert(run.clone(), Hosted { host, player });
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
            // Whoever asked may have gone away.
            let _ = reply.send(std::mem::take(&mut self.recovery.parked));
        }
    }

    /// Answers those who wait until nothing happens any more.
    fn tell_idle(&mut self) {
        if self.idle.is_empty() && self.stops.is_empty() {
            return;
        }
        if !self.stops.is_empty() && self.runs.present().next().is_none() && self.writing.is_empty() {
            for reply in self.stops.drain(..) {
                // Whoever asked may have gone away.
                let _ = reply.send(());
            }
        }
        let busy = self.runs.present().any(|run| self.runs.is_busy(run)) || !self.writing.is_empty();
        let waits = self.runs.waits_for_time();
        for (_, reply) in self.idle.extract_if(.., |(timers, _)| !(busy || *timers && waits)) {
            // Whoever asked may have gone away.
            let _ = reply.send(());
        }
    }

    /// The store cannot be used any more: what is true is on the disk, and another process has to read it.
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

/// Tells the scheduler when the wall clock is set. If that cannot be noticed, runs follow the clock when they are loaded.
async fn watch_clock(sender: mpsc::WeakUnboundedSender<Message>) {
    while crate::clock::set().await.is_ok()
        && let Some(sender) = sender.upgrade()
    {
        // A scheduler that has ended follows no clock.
        let _ = sender.send(Message::ClockSet);
    }
}

/// Waits until the steady clock reads this.
async fn until(alarm: Option<u64>) {
    match alarm {
        None => std::future::pending().await,
        Some(alarm) => {
            let left = alarm.saturating_sub(now().steady);
            tokio::time::sleep(std::time::Duration::from_micros(left)).await;
        }
    }
}
