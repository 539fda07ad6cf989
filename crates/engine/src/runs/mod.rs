//! The scheduler for all runs of a process.
//!
//! [`Runs`] is a state machine without I/O, like [`Run`] and [`Coordinator`], and it owns both. Mail goes in, records
//! and orders come out, and the caller reports which records are durable. A run is in one of three states. A
//! **resting** run is only an entry with the time of its next timer. A **loading** run queues its mail until its
//! journal has been read. A **live** run is in memory. [`Runs::send`] works in all three states and is the only way
//! to change a run.
//!
//! All decisions of one call, for any number of runs and the coordinator, form one batch of records, which is written
//! as a whole or not at all. The scheduler carries out, answers and shows nothing before its record is durable. If a
//! batch fails, the scheduler drops everything that depends on it, reads the affected runs and the coordinator again,
//! and delivers the mail again.
//!
//! `live` is one run in memory, `work` is shared by all runs, `writing` handles durable and lost records, `mail`
//! defines inputs and outputs, `clock` is the clock of a run, `rates` limits rates in virtual time, and `planted`
//! contains bugs that the simulator must find.

mod clock;
mod known;
mod live;
mod mail;
mod planted;
mod rates;
mod work;
mod writing;

use crate::coordinator::{Asker, Coordinator, CoordinatorInput, CoordinatorState};
use crate::input::{Input, Refused};
use crate::keys::{RunId, Timestamp};
use crate::run::Run;
pub use clock::{Clock, Now, Onward};
use known::Known;
use live::{Live, Turn, waits_in_vain};
pub use mail::{
    After, Begin, Body, Execution, Found, Loaded, Mail, NoLimits, Order, Policy, Record, Reply, ReplyTo,
    Resume, Still, Wake,
};
pub use planted::Bug;
#[cfg(feature = "planted-bugs")]
pub use planted::plant;
use planted::planted;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use windlass_ir::{Duration, Value};
use work::{Post, To, Work};
use writing::Stall;

/// The scheduler for all runs of a process; see the module documentation.
#[derive(Debug)]
pub struct Runs {
    /// Ordered by id, so that the same mail produces the same records.
    known: Known,
    /// When runs must check their timers, by the steady clock.
    alarms: BTreeSet<(u64, RunId)>,
    /// Idle runs in memory, least recently used first. An entry can be outdated.
    still: VecDeque<RunId>,
    serves: Serves,
    work: Work,
    /// All records up to this one are durable or lost.
    resolved: u64,
    stall: Option<Stall>,
    stopping: bool,
    /// The most idle runs to keep in memory.
    still_max: usize,
}

/// The runs that this process executes. Other runs only record their mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    Named(HashSet<RunId>),
    /// Every run except these, which were interrupted and not resumed.
    AllBut(HashSet<RunId>),
}

impl Serves {
    pub fn all() -> Self {
        Self::AllBut(HashSet::new())
    }

    /// Whether this mail makes the process execute the run. Canceling an interrupted run ends it, so it need not be
    /// resumed first.
    fn executes(&self, mail: &Mail) -> bool {
        match mail {
            Mail::Resume(_) => true,
            Mail::Input(Input::Cancel { path, .. }) => path.is_run() && matches!(self, Self::AllBut(_)),
            // A message to the run itself cancels it.
            Mail::Message { to, .. } => to.path.is_run() && matches!(self, Self::AllBut(_)),
            _ => false,
        }
    }
}

#[derive(Debug)]
enum Entry {
    Resting { alarm: u64, time: Kept },
    Loading(Box<Loading>),
    Live(Box<Live>),
}

/// The clock of a resting run. It continues when the run is loaded.
#[derive(Clone, Copy, Debug)]
struct Kept {
    clock: Clock,
    /// This process has executed the run before.
    executed: bool,
    /// One of its timers may be for a wall-clock instant.
    on_wall: bool,
}

#[derive(Debug)]
struct Loading {
    mail: VecDeque<(Mail, Option<ReplyTo>)>,
    execute: bool,
    time: Option<Kept>,
    /// The run before a write failed.
    was: Option<Box<Live>>,
}

/// A run according to its database row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// It has a result.
    pub ended: bool,
    /// It can never be reopened.
    pub closed: bool,
    /// `None` if the row does not contain it: then the run is loaded to find out.
    pub wake: Option<Wake>,
    /// The time of its last event. If the wall clock was set back since, timers count from there.
    pub last_at: Timestamp,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Presence {
    Resting,
    Loading,
    Live,
}

impl Runs {
    /// `coordinator` is restored from its stream; `tail` is the number of its last record, and `events` the number of
    /// its events.
    pub fn new(coordinator: Coordinator, tail: Option<u64>, events: usize, serves: Serves, now: Now) -> Self {
        Self {
            known: Known::default(),
            alarms: BTreeSet::new(),
            still: VecDeque::new(),
            serves,
            work: Work::new(coordinator, tail, events, now),
            resolved: 0,
            stall: None,
            stopping: false,
            still_max: 256,
        }
    }

    /// Keeps this many idle runs in memory.
    #[must_use]
    pub fn keeping(self, still_max: usize) -> Self {
        Self { still_max, ..self }
    }

    /// The orders since the last call.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.work.orders)
    }

    /// The next batch of records, to be written as a whole or not at all.
    pub fn take_records(&mut self) -> Vec<Record> {
        match self.stall {
            None => std::mem::take(&mut self.work.records),
            Some(_) => Vec::new(),
        }
    }

    /// Who is answered once a record is durable, with the number of the record, for records from a number on. Leaves
    /// out callers that are refused.
    pub fn answered_from(&self, first: u64) -> impl Iterator<Item = (u64, ReplyTo)> {
        let landings = self.work.landings.iter().filter(move |landing| landing.number >= first);
        landings.filter_map(|landing| match landing.reply.as_ref()? {
            (to, Reply::Done | Reply::Published(_) | Reply::Earlier(_)) => Some((landing.number, *to)),
            (_, Reply::Refused(_) | Reply::NotShared(_) | Reply::NoRun | Reply::Unusable) => None,
        })
    }

    pub fn presence(&self, run: &RunId) -> Presence {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => Presence::Resting,
            Some(Entry::Loading(_)) => Presence::Loading,
            Some(Entry::Live(_)) => Presence::Live,
        }
    }

    pub fn live(&self, run: &RunId) -> Option<&Run> {
        match self.known.get(run) {
            Some(Entry::Live(live)) => Some(&live.run),
            Some(Entry::Loading(_) | Entry::Resting { .. }) | None => None,
        }
    }

    /// The live and loading runs.
    pub fn present(&self) -> impl Iterator<Item = &RunId> {
        self.known.present()
    }

    pub fn coordinator(&self) -> &CoordinatorState {
        self.work.coordinator.state()
    }

    /// Whether this process executes the run.
    pub fn serves(&self, run: &RunId) -> bool {
        match &self.serves {
            Serves::Named(named) => named.contains(run),
            Serves::AllBut(others) => !others.contains(run),
        }
    }

    /// Executes this run from now on.
    pub fn serve(&mut self, run: &RunId) {
        match &mut self.serves {
            Serves::Named(named) => named.insert(run.clone()),
            Serves::AllBut(others) => others.remove(run),
        };
    }

    /// Executes every run from now on. The caller names the unfinished ones with [`Runs::recover`].
    pub fn serve_all(&mut self) {
        self.serves = Serves::all();
    }

    /// Executes every run from now on except these, which an earlier process left unfinished. They are marked as
    /// interrupted, but a run that was canceled or has timed out is executed to its end.
    pub fn serve_all_but(&mut self, mut unfinished: Vec<RunId>, now: Now) {
        unfinished.retain(|run| !self.known.contains_key(run));
        self.serves = Serves::AllBut(unfinished.iter().cloned().collect());
        for run in unfinished {
            self.work.post(run, Mail::Input(Input::Interrupt), None);
        }
        self.advance(now);
    }

    /// Adds a run that was found when the process opened the data folder.
    pub fn recover(&mut self, run: &RunId, left: Left, now: Now) {
        let over = if planted(Bug::FailedAtStart) { left.closed } else { left.ended };
        if over || self.known.contains_key(run) {
            return;
        }
        match left.wake {
            None | Some(Wake::Owes) => self.send(run.clone(), Mail::Resume(Resume::default()), None, now),
            Some(Wake::At(due)) => {
                let clock = Clock::starting(now).not_before(left.last_at, now);
                let time = Kept { clock, executed: false, on_wall: true };
                self.rest(run.clone(), time.clock.alarm(due), time);
            }
            Some(Wake::Never) => {}
        }
    }

    /// Finishes opening a data folder: delivers what the coordinator owes, and removes runs from queues that no
    /// process executes.
    pub fn open(&mut self, now: Now) {
        let waiting = self.coordinator().waiting.keys().filter(|asker| !self.serves(&asker.run));
        let waiting: Vec<Asker> = waiting.cloned().collect();
        waiting.into_iter().for_each(|asker| self.work.give_back(asker, now));
        if matches!(self.serves, Serves::AllBut(_)) {
            self.work.pass_on_owed(None);
        }
        self.advance(now);
    }

    /// Sends mail to a run in any state.
    pub fn send(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>, now: Now) {
        self.work.post(run, mail, reply);
        self.advance(now);
    }

    /// Sends mail to a run at an instant of its own clock. It is dropped if the run leaves memory first.
    pub fn send_at(&mut self, run: &RunId, at: Timestamp, mail: Mail, reply: Option<ReplyTo>) {
        let live = match self.known.get_mut(run) {
            Some(Entry::Live(live)) => Some(live),
            // The run is being read again after a failed write, and its agenda continues.
            Some(Entry::Loading(loading)) => loading.was.as_mut(),
            Some(Entry::Resting { .. }) | None => None,
        };
        if let Some(live) = live {
            live.plan(at, mail, reply);
            live.is_still = false;
            self.work.touched.insert(run.clone());
        }
    }

    /// The time of a run in memory.
    pub fn time_of(&self, run: &RunId, now: Now) -> Option<Timestamp> {
        match self.known.get(run) {
            Some(Entry::Live(live)) => Some(live.clock.read(now)),
            Some(Entry::Loading(loading)) => loading.was.as_ref().map(|live| live.clock.read(now)),
            Some(Entry::Resting { .. }) | None => None,
        }
    }

    /// Sends an input to the coordinator, and replies when its records are durable.
    pub fn tell(&mut self, input: CoordinatorInput, reply: Option<ReplyTo>, now: Now) {
        self.work.post.push_back(Post { to: To::Coordinator(input), reply });
        self.advance(now);
    }

    /// The run that was started with this key before, if any. Otherwise the key now belongs to this run.
    fn started_with(&mut self, key: &Arc<str>, run: &RunId, ttl: Duration, now: Now) -> Option<RunId> {
        use crate::coordinator::{Amount, Ask, Claim, CoordinatorAnswer, End};
        let asker = Asker::start(run.clone(), 0);
        let ask = Ask {
            asker: asker.clone(),
            claims: vec![Claim::Key { key: key.clone(), ttl: Some(ttl) }],
            since: now.wall,
            ahead: 0,
            ancestors: Vec::new(),
        };
        let shared = self.work.share(CoordinatorInput::Ask(Box::new(ask)), None, Some(run), now).ok()?;
        let found = shared.own.into_iter().find_map(|(_, answer)| match answer {
            CoordinatorAnswer::Found(value) => value.as_str().and_then(RunId::written),
            CoordinatorAnswer::Granted | CoordinatorAnswer::Denied(_) => None,
        });
        if found.is_none() {
            let end = End::Done(Value::text(run.as_str()));
            self.work.tell(CoordinatorInput::Release { asker, used: Amount::default(), end }, now);
        }
        found
    }

    /// Handles everything that is due.
    pub fn tick(&mut self, now: Now) {
        if self.stall.is_some() {
            return;
        }
        if self.work.coordinator_alarm(now).is_some_and(|alarm| alarm <= now.steady) {
            self.work.tell(CoordinatorInput::Tick, now);
        }
        while let Some((_, run)) = self.alarms.first().filter(|(alarm, _)| *alarm <= now.steady).cloned() {
            self.clear_alarm(&run);
            match self.known.get_mut(&run) {
                Some(Entry::Live(live)) if !live.held => {
                    Turn { live, work: &mut self.work, now }.wake();
                    self.work.touched.insert(run);
                }
                Some(Entry::Resting { .. }) | None => self.work.post(run, Mail::Input(Input::Tick), None),
                // It checks its timers when it is loaded, or when its last record is durable.
                Some(Entry::Live(_) | Entry::Loading(_)) => {}
            }
        }
        self.advance(now);
    }

    /// Resets the timers for wall-clock instants after the clock was set. Resting runs are loaded for it.
    pub fn clock_set(&mut self, now: Now) {
        let concerned: Vec<RunId> = self.known.on_wall().cloned().collect();
        for run in concerned {
            self.work.post(run, Mail::Input(Input::ClockSet), None);
        }
        self.advance(now);
    }

    /// When [`Runs::tick`] is due, by the steady clock.
    pub fn next_alarm(&self, now: Now) -> Option<u64> {
        let runs = self.alarms.first().map(|(alarm, _)| *alarm);
        runs.into_iter().chain(self.work.coordinator_alarm(now)).min().filter(|_| self.stall.is_none())
    }

    /// Whether a run that this process executes has a timer.
    pub fn waits_for_time(&self) -> bool {
        !self.alarms.is_empty()
    }

    /// Lets virtual clocks jump to their next deadline, and returns whether any did. Call it when nothing else is
    /// left to do.
    pub fn jump(&mut self, now: Now) -> bool {
        if self.stall.is_some() {
            return false;
        }
        let due = |run: &RunId| match self.known.get(run)? {
            Entry::Live(live) => {
                live.jump().filter(|_| !self.waits_for_others(run)).map(|due| (due, run.clone()))
            }
            Entry::Loading(_) | Entry::Resting { .. } => None,
        };
        let jumps: Vec<(Timestamp, RunId)> = self.known.virtuals().filter_map(due).collect();
        for (due, run) in &jumps {
            if let Some(Entry::Live(live)) = self.known.get_mut(run) {
                live.clock = live.clock.not_before(*due, now);
                Turn { live, work: &mut self.work, now }.wake();
                self.work.touched.insert(run.clone());
            }
        }
        self.advance(now);
        !jumps.is_empty()
    }

    /// Prepares for the end of the process: starts nothing and aborts jobs. Unfinished jobs stay outstanding.
    pub fn stop(&mut self, now: Now) {
        self.stopping = true;
        let runs: Vec<RunId> = self.known.present().cloned().collect();
        runs.into_iter().for_each(|run| self.stop_run(run, now));
        self.advance(now);
    }

    fn stop_run(&mut self, run: RunId, now: Now) {
        if let Some(Entry::Live(live)) = self.known.get_mut(&run) {
            Turn { live, work: &mut self.work, now }.stop();
            self.work.touched.insert(run);
        }
    }

    /// Whether a run, or a run that it called, is doing something.
    pub fn is_busy(&self, run: &RunId) -> bool {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => false,
            Some(Entry::Loading(_)) => true,
            Some(Entry::Live(live)) => {
                !live.is_at_rest()
                    || !live.agenda.is_empty()
                    || live.jump().is_some()
                    || live.run.asks().any(|asker| !self.in_vain(&asker))
                    || live.called().any(|child| self.is_busy(&child))
            }
        }
    }

    /// Whether this process is working on a run, so that it may release resources soon.
    fn executes(&self, run: &RunId) -> bool {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => false,
            Some(Entry::Loading(_)) => true,
            Some(Entry::Live(live)) => !live.is_still,
        }
    }

    /// Whether the run waits for something in this process that happens by another clock.
    fn waits_for_others(&self, run: &RunId) -> bool {
        let Some(Entry::Live(live)) = self.known.get(run) else { return true };
        let asks = |asker: Asker| !live.rates.as_ref().is_some_and(|rates| rates.waits(&asker));
        let own = !live.agenda.is_empty();
        live.called().any(|child| self.is_busy(&child))
            || !own && live.run.asks().any(|asker| asks(asker.clone()) && !self.in_vain(&asker))
    }

    fn in_vain(&self, asker: &Asker) -> bool {
        waits_in_vain(&self.work, asker, |run| self.executes(run))
    }

    /// Delivers all mail, then checks every run that was touched.
    fn advance(&mut self, now: Now) {
        loop {
            if let Some(stall) = &mut self.stall {
                self.work.post.drain(..).for_each(|post| stall.keep(post));
                return;
            }
            while let Some(post) = self.work.post.pop_front() {
                self.deliver(post, now);
            }
            if self.land(now) {
                continue;
            }
            let Some(run) = self.work.touched.pop_first() else { break };
            self.look_at(run, now);
        }
        self.evict(now);
    }

    fn deliver(&mut self, post: Post, now: Now) {
        let reply = post.reply;
        match post.to {
            To::Coordinator(input) => self.share(input, reply, now),
            To::Run(run, mail) => self.deliver_to(run, mail, reply, now),
        }
    }

    fn deliver_to(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>, now: Now) {
        let mail = match (self.known.get(&run), mail) {
            // A run that is ending needs no one to resume it.
            (Some(Entry::Live(live)), Mail::Input(Input::Interrupt))
                if live.run.is_stopping() && live.can_execute =>
            {
                Mail::Resume(Resume::default())
            }
            (_, mail) => mail,
        };
        let executes = self.serves.executes(&mail);
        if executes {
            self.serve(&run);
        }
        match self.known.get_mut(&run) {
            Some(Entry::Loading(loading)) => loading.mail.push_back((mail, reply)),
            Some(Entry::Live(live)) => {
                let reload = executes && live.only_records() && !self.stopping;
                match live.held || reload {
                    true => live.waiting.push_back((mail, reply)),
                    false => Turn { live, work: &mut self.work, now }.take(mail, reply),
                }
                self.work.touched.insert(run);
            }
            Some(Entry::Resting { .. }) | None => self.deliver_to_resting(run, mail, reply, now),
        }
    }

    /// Replies after all previous records are durable.
    fn reply(&mut self, reply: Option<(ReplyTo, Reply)>, retry: To) {
        let (number, effects, retry) = (self.work.coordinator_tail.number(), Vec::new(), Some(retry));
        let landing = work::Landing { number, run: None, retry, reply, events: None, effects, again: false };
        self.work.landings.push_back(landing);
    }

    fn deliver_to_resting(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>, now: Now) {
        if planted(Bug::FinishedAtRest) && matches!(mail, Mail::Input(Input::Cancel { .. })) {
            self.work.orders.extend(reply.map(|to| Order::Reply(to, Reply::Refused(Refused::Finished))));
            return;
        }
        match mail {
            Mail::Begin(begin) if begin.is_new => self.begin(*begin, reply, now),
            mail if mail.is_droppable() && (!self.serves(&run) || self.stopping) => {
                if let Mail::Answered { asker, .. } = mail {
                    self.work.give_back(asker, now);
                }
            }
            mail => {
                self.clear_alarm(&run);
                let execute = self.serves(&run) && !self.stopping;
                let mail = VecDeque::from([(mail, reply)]);
                let time = match self.known.get(&run) {
                    Some(Entry::Resting { time, .. }) => Some(*time),
                    Some(Entry::Live(_) | Entry::Loading(_)) | None => None,
                };
                let loading = Loading { mail, execute, time, was: None };
                self.known.insert(run.clone(), Entry::Loading(Box::new(loading)));
                self.work.orders.push(Order::Load { run, execute });
            }
        }
    }

    fn begin(&mut self, begin: Begin, reply: Option<ReplyTo>, now: Now) {
        let (id, execution) = (begin.run.clone(), begin.execution.clone());
        let clock = execution.clock(now);
        if let Some((key, ttl)) = &begin.once
            && let Some(earlier) = self.started_with(key, &id, *ttl, now)
        {
            let retry = To::Run(id, Mail::Begin(Box::new(begin)));
            return self.reply(reply.map(|to| (to, Reply::Earlier(earlier))), retry);
        }
        self.serve(&id);
        let run = Run::new(id.clone(), begin.program.clone());
        let start = Box::new(begin.start.clone());
        let mut live = Box::new(Live::new(run, Some(execution), After::Stored(None), 0, clock));
        live.stopping = self.stopping;
        let retry = Some(To::Run(id.clone(), Mail::Begin(Box::new(begin))));
        Turn { live: &mut live, work: &mut self.work, now }.offer(Input::Start(start), None, reply, retry);
        self.known.insert(id.clone(), Entry::Live(live));
        self.work.touched.insert(id);
    }

    /// Handles the result of reading a journal.
    pub fn loaded(&mut self, run: &RunId, found: Found, now: Now) {
        let Some(Entry::Loading(loading)) = self.known.get_mut(run) else { return };
        if let (Some(stall), true) = (&mut self.stall, loading.was.is_none()) {
            return stall.loads.push((run.clone(), found));
        }
        let (mail, was) = (std::mem::take(&mut loading.mail), loading.was.take());
        let (execute, time) = (loading.execute && !self.stopping, loading.time);
        match (found, was) {
            (Found::Run(loaded), Some(mut live)) => {
                live.reload(*loaded);
                live.waiting.extend(mail);
                self.known.insert(run.clone(), Entry::Live(live));
                if self.stopping {
                    self.stop_run(run.clone(), now);
                }
            }
            (Found::Run(loaded), None) => self.take_over(*loaded, mail, time, execute, now),
            (Found::Nothing, was) => {
                self.known.remove(run);
                // A run whose first record was not written starts again.
                let held = was.into_iter().flat_map(|live| live.waiting).chain(mail);
                for (mail, reply) in held {
                    match mail {
                        Mail::Begin(begin) => self.begin(*begin, reply, now),
                        _ if self.known.contains_key(run) => self.work.post(run.clone(), mail, reply),
                        _ => self.work.orders.extend(reply.map(|to| Order::Reply(to, Reply::NoRun))),
                    }
                }
            }
            (Found::Unusable, was) => {
                self.known.remove(run);
                let (jobs, waiting) = was.map_or_else(Default::default, |live| (live.jobs, live.waiting));
                let here = jobs.into_iter().filter(|(_, holder)| *holder == live::Holder::Here);
                self.work.orders.extend(here.map(|(job, _)| Order::Abort { job, overdue: false }));
                let replies = waiting.into_iter().chain(mail).filter_map(|(_, reply)| reply);
                self.work.orders.extend(replies.map(|to| Order::Reply(to, Reply::Unusable)));
                self.work.orders.push(Order::Parked { run: run.clone() });
                // Other runs must not wait for resources of this one.
                let gone = To::Coordinator(CoordinatorInput::Gone { run: run.clone() });
                self.work.post.push_back(Post { to: gone, reply: None });
            }
        }
        self.recovered(run, now);
        self.advance(now);
    }

    fn take_over(
        &mut self,
        loaded: Loaded,
        mail: VecDeque<(Mail, Option<ReplyTo>)>,
        time: Option<Kept>,
        execute: bool,
        now: Now,
    ) {
        let Loaded { run, tail, last_at, events, execution } = loaded;
        // Only a load for execution finds out whether this process can execute the run.
        let (id, can_execute) = (run.id().clone(), execution.is_some() || !execute);
        let execution = execution.filter(|_| execute);
        let clock = execution.as_ref().map_or_else(|| Clock::starting(now), |how| how.clock(now));
        let clock = time.map_or(clock, |time| time.clock).not_before(last_at, now);
        let executes = execution.is_some();
        let mut live = Box::new(Live::new(run, execution, After::Stored(Some(tail)), events, clock));
        live.can_execute = can_execute;
        let mut turn = Turn { live: &mut live, work: &mut self.work, now };
        match executes {
            true => turn.recover(time.is_some_and(|time| time.executed)),
            false => turn.work.settle(&turn.live.run, now),
        }
        for (mail, reply) in mail {
            if planted(Bug::MailBesideDriver) && matches!(mail, Mail::Input(Input::Cancel { .. })) {
                let execution = live.execution.take();
                Turn { live: &mut live, work: &mut self.work, now }.take(mail, reply);
                if let Some(landing) = self.work.landings.back_mut() {
                    landing.effects.clear();
                }
                live.execution = execution;
                continue;
            }
            self.work.post(id.clone(), mail, reply);
        }
        self.known.insert(id.clone(), Entry::Live(live));
        // After the mail, so that a client that resumes a run gets its reply, even if a message then cancels the run.
        if executes {
            self.work.pass_on_owed(Some(&id));
        }
        self.work.touched.insert(id);
    }

    fn share(&mut self, input: CoordinatorInput, reply: Option<ReplyTo>, now: Now) {
        let retry = To::Coordinator(input.clone());
        let reply = match (self.work.share(input, None, None, now), reply) {
            (Ok(shared), Some(to)) => Some((to, Reply::Published(shared.delivered))),
            (Err(refused), Some(to)) => Some((to, Reply::NotShared(refused))),
            (_, None) => None,
        };
        self.reply(reply, retry);
    }

    /// Updates the alarm of a run, reports it if it is idle, and removes it from memory if possible.
    fn look_at(&mut self, run: RunId, now: Now) {
        let Some(Entry::Live(live)) = self.known.get_mut(&run) else { return };
        if live.is_broken {
            return self.park(&run);
        }
        if !live.held
            && let Some((mail, reply)) = live.waiting.pop_front()
        {
            if self.serves.executes(&mail) && live.only_records() && !self.stopping {
                if live.underway == 0 {
                    let rest = std::mem::take(&mut live.waiting);
                    self.forget(&run);
                    self.work.post(run.clone(), mail, reply);
                    rest.into_iter().for_each(|(mail, reply)| self.work.post(run.clone(), mail, reply));
                } else {
                    live.waiting.push_front((mail, reply));
                }
                return;
            }
            Turn { live, work: &mut self.work, now }.take(mail, reply);
            self.work.touched.insert(run);
            return;
        }
        let alarm = match live.execution.is_some() && !live.stopping && !live.held {
            true => live.due().and_then(|due| live.clock.alarm(due)).map(|alarm| alarm.max(now.steady + 1)),
            false => None,
        };
        if live.alarm != alarm {
            let before = std::mem::replace(&mut live.alarm, alarm);
            before.map(|before| self.alarms.remove(&(before, run.clone())));
            alarm.map(|alarm| self.alarms.insert((alarm, run.clone())));
        }
        live.is_fresh = false;
        self.check_idle(&run);
    }

    fn check_idle(&mut self, run: &RunId) {
        let busy = self.is_busy(run);
        let Some(Entry::Live(live)) = self.known.get_mut(run) else { return };
        let caller = live.run.parents().last().cloned();
        let changed = std::mem::replace(&mut live.is_still, !busy) == busy;
        if !busy && changed {
            let still = live.still();
            self.work.orders.push(Order::Still { run: run.clone(), still });
            self.still.push_back(run.clone());
            self.touch_waiting(run);
        }
        if changed && let Some(caller) = caller.filter(|caller| self.live(caller).is_some()) {
            self.work.touched.insert(caller);
        }
        let Some(Entry::Live(live)) = self.known.get_mut(run) else { return };
        let over = live.run.outcome().is_some() || live.execution.is_none() || live.stopping;
        if over && live.is_at_rest() {
            if live.stopping {
                let still =
                    Still { by_itself: live.run.moves_by_itself() || live.run.owes(), ..live.still() };
                self.work.orders.push(Order::Still { run: run.clone(), still });
            }
            self.forget(run);
        }
    }

    /// Runs that wait for resources of this one may now wait in vain.
    fn touch_waiting(&mut self, run: &RunId) {
        let state = self.work.coordinator.state();
        let first = Asker { run: run.clone(), path: crate::keys::Path::default(), attempt: 0 };
        let holds = state.holds.range(first..).next().is_some_and(|(asker, _)| asker.run == *run);
        if holds {
            let waiting = state.waiting.keys().map(|asker| asker.run.clone());
            self.work.touched.extend(waiting.filter(|run| self.known.contains_key(run)));
        }
    }

    /// Removes the runs from memory that have been idle for the longest time.
    fn evict(&mut self, now: Now) {
        while self.still.len() > self.still_max {
            let Some(run) = self.still.pop_front() else { return };
            let Some(Entry::Live(live)) = self.known.get(&run) else { continue };
            // It can be in the list again, further back.
            if !live.is_still || !live.agenda.is_empty() || self.still.contains(&run) {
                continue;
            }
            if live.shared > self.resolved {
                return self.still.push_front(run);
            }
            let alarm =
                live.due().and_then(|due| live.clock.alarm(due)).map(|alarm| alarm.max(now.steady + 1));
            let time = Kept { clock: live.clock, executed: true, on_wall: live.run.waits_on_wall() };
            self.forget(&run);
            self.rest(run, alarm, time);
        }
    }

    fn rest(&mut self, run: RunId, alarm: Option<u64>, time: Kept) {
        if let Some(alarm) = alarm {
            self.alarms.insert((alarm, run.clone()));
            self.known.insert(run, Entry::Resting { alarm, time });
        }
    }

    fn forget(&mut self, run: &RunId) {
        self.clear_alarm(run);
        if let Some(Entry::Live(live)) = self.known.remove(run) {
            if let (Serves::Named(named), Some(_)) = (&mut self.serves, live.run.outcome()) {
                named.remove(run);
            }
            let planned = live.agenda.into_values().filter_map(|(_, reply)| reply);
            self.work.orders.extend(planned.map(|to| Order::Reply(to, Reply::NoRun)));
            self.work.orders.push(Order::Evicted { run: run.clone() });
        }
    }

    /// Parks a run that contradicts itself.
    fn park(&mut self, run: &RunId) {
        if let Some(Entry::Live(live)) = self.known.get_mut(run) {
            let held = std::mem::take(&mut live.waiting).into_iter().filter_map(|(_, reply)| reply);
            self.work.orders.extend(held.map(|to| Order::Reply(to, Reply::Unusable)));
        }
        self.forget(run);
        self.work.orders.push(Order::Parked { run: run.clone() });
    }

    fn clear_alarm(&mut self, run: &RunId) {
        let alarm = match self.known.get_mut(run) {
            Some(Entry::Live(live)) => live.alarm.take(),
            Some(Entry::Resting { alarm, .. }) => Some(*alarm),
            Some(Entry::Loading(_)) | None => None,
        };
        if let Some(alarm) = alarm {
            self.alarms.remove(&(alarm, run.clone()));
        }
    }
}
