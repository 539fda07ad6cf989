//! Every run of a process, and the one way to send something to a run.
//!
//! [`Runs`] is a state machine without IO, like [`Run`] and [`Coordinator`], and it owns both: mail goes in, records and orders come out,
//! and the machine is told which records are durable. A run is in one of three states. A **resting** run is nothing but an entry
//! with the instant at which it must wake. A **loading** run keeps its mail in order until its journal has been read. A **live** run
//! is in memory. [`Runs::send`] works in all three, and nothing else changes a run.
//!
//! What one call decides, for however many runs and for the coordinator, is one batch of records: it is written whole or not at
//! all. Nothing is carried out, answered or shown before its record is durable. If a batch is not written, everything that rests on
//! it is dropped, the runs that it touched and the coordinator are read again, and the mail is delivered again.
//!
//! `live` is one run in memory, `work` what all of them have in common, `writing` what happens when records are durable or lost,
//! `mail` what goes in and comes out, `clock` the time of a run, `rates` the rate limits of virtual time, and `planted` the bugs that
//! the simulator must find.

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

/// A scheduler for every run of a process. See the module's documentation.
#[derive(Debug)]
pub struct Runs {
    /// In the order of ids, so that the same mail leads to the same records.
    known: Known,
    /// When a run has to hear that time has passed, by the steady clock.
    alarms: BTreeSet<(u64, RunId)>,
    /// Runs in memory that do nothing, the least recently used first. An entry may be outdated.
    still: VecDeque<RunId>,
    serves: Serves,
    work: Work,
    /// All records up to this one are durable or lost.
    resolved: u64,
    stall: Option<Stall>,
    stopping: bool,
    /// This many runs stay in memory while they do nothing.
    still_max: usize,
}

/// Which runs this process executes. Others only record what they are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serves {
    Named(HashSet<RunId>),
    /// Every run but these: they were interrupted, and no one has resumed them.
    AllBut(HashSet<RunId>),
}

impl Serves {
    pub fn all() -> Self {
        Self::AllBut(HashSet::new())
    }

    /// Whether a run is executed because of this mail. To cancel an interrupted run is to end it, so no one has to resume it first.
    fn executes(&self, mail: &Mail) -> bool {
        match mail {
            Mail::Resume(_) => true,
            Mail::Input(Input::Cancel { path, .. }) => path.is_run() && matches!(self, Self::AllBut(_)),
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

/// The time of a run that this process serves and that is not in memory. It continues when the run is loaded.
#[derive(Clone, Copy, Debug)]
struct Kept {
    clock: Clock,
    /// This process has executed the run before.
    executed: bool,
    /// One of its timers may stand for an instant of the wall clock.
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

/// A run as its row tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// It has a result.
    pub ended: bool,
    /// It can never be reopened.
    pub closed: bool,
    /// None if the row does not know when the run must wake: then it is loaded to find out.
    pub wake: Option<Wake>,
    /// The time of its last event. Its timers count from there if the wall clock was set back since.
    pub last_at: Timestamp,
}

/// The state that a run is in, as far as memory is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Presence {
    Resting,
    Loading,
    Live,
}

impl Runs {
    /// `coordinator` is the coordinator as its stream tells it, with the number of its last record and of its events.
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

    /// Keeps this many runs in memory while they do nothing.
    #[must_use]
    pub fn keeping(self, still_max: usize) -> Self {
        Self { still_max, ..self }
    }

    /// What was ordered since the last call.
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.work.orders)
    }

    /// What must be written next, as one batch: all of it or nothing.
    pub fn take_records(&mut self) -> Vec<Record> {
        match self.stall {
            None => std::mem::take(&mut self.work.records),
            Some(_) => Vec::new(),
        }
    }

    pub fn presence(&self, run: &RunId) -> Presence {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => Presence::Resting,
            Some(Entry::Loading(_)) => Presence::Loading,
            Some(Entry::Live(_)) => Presence::Live,
        }
    }

    /// A run that is in memory.
    pub fn live(&self, run: &RunId) -> Option<&Run> {
        match self.known.get(run) {
            Some(Entry::Live(live)) => Some(&live.run),
            Some(Entry::Loading(_) | Entry::Resting { .. }) | None => None,
        }
    }

    /// The runs in memory and those on their way there.
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

    /// Executes this run too. Its mail does the rest.
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

    /// Executes every run from now on but these, which an earlier process left: they are marked as interrupted.
    pub fn serve_all_but(&mut self, mut unfinished: Vec<RunId>, now: Now) {
        unfinished.retain(|run| !self.known.contains_key(run));
        self.serves = Serves::AllBut(unfinished.iter().cloned().collect());
        for run in unfinished {
            self.work.post(run, Mail::Input(Input::Interrupt), None);
        }
        self.advance(now);
    }

    /// Tells about a run that a process finds when it opens a folder.
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

    /// Everything that is left to do when a process opens a folder: what the coordinator owes, and, if not every run is served here,
    /// the positions in queues of runs that no process executes.
    pub fn open(&mut self, now: Now) {
        let waiting = self.coordinator().waiting.keys().filter(|asker| !self.serves(&asker.run));
        let waiting: Vec<Asker> = waiting.cloned().collect();
        waiting.into_iter().for_each(|asker| self.work.give_back(asker, now));
        if matches!(self.serves, Serves::AllBut(_)) {
            self.work.pass_on_owed(None);
        }
        self.advance(now);
    }

    /// The one way to send something to a run, whatever state it is in.
    pub fn send(&mut self, run: RunId, mail: Mail, reply: Option<ReplyTo>, now: Now) {
        self.work.post(run, mail, reply);
        self.advance(now);
    }

    /// The same, at an instant of the run's own time. Forgotten if the run leaves memory before.
    pub fn send_at(&mut self, run: &RunId, at: Timestamp, mail: Mail, reply: Option<ReplyTo>) {
        let live = match self.known.get_mut(run) {
            Some(Entry::Live(live)) => Some(live),
            // It is read again after a failed write, and its agenda continues.
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

    /// Tells the coordinator something, and answers when that is durable.
    pub fn tell(&mut self, input: CoordinatorInput, reply: Option<ReplyTo>, now: Now) {
        self.work.post.push_back(Post { to: To::Coordinator(input), reply });
        self.advance(now);
    }

    /// The run that was started with this key before. Without one, this run is it from now on.
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
        let said = self.work.share(CoordinatorInput::Ask(Box::new(ask)), None, Some(run), now).ok()?;
        let found = said.own.into_iter().find_map(|(_, answer)| match answer {
            CoordinatorAnswer::Found(value) => value.as_str().and_then(RunId::written),
            CoordinatorAnswer::Granted | CoordinatorAnswer::Denied(_) => None,
        });
        if found.is_none() {
            let end = End::Done(Value::text(run.as_str()));
            self.work.tell(CoordinatorInput::Release { asker, used: Amount::default(), end }, now);
        }
        found
    }

    /// Time has passed.
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
                // It looks at its timers when it is loaded, or when its last record is durable.
                Some(Entry::Live(_) | Entry::Loading(_)) => {}
            }
        }
        self.advance(now);
    }

    /// The wall clock was set: waits for one of its instants end earlier or later. Runs that rest are loaded to set their timers again.
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

    /// Whether a run that this process executes waits for an instant.
    pub fn waits_for_time(&self) -> bool {
        !self.alarms.is_empty()
    }

    /// Lets the clocks of virtual runs jump to whatever comes next. Says whether any did; call it when nothing else is left to do.
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

    /// The process is about to end: nothing new starts, and jobs are told to stop. What has no result stays outstanding.
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

    /// Whether a run does something at the moment, or a run that it has called does.
    pub fn is_busy(&self, run: &RunId) -> bool {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => false,
            Some(Entry::Loading(_)) => true,
            Some(Entry::Live(live)) => {
                !live.is_at_rest()
                    || !live.agenda.is_empty()
                    || live.jump().is_some()
                    || live
                        .run
                        .asks()
                        .any(|asker| !waits_in_vain(&self.work, &asker, |run| self.executes(run)))
                    || live.called().any(|child| self.is_busy(&child))
            }
        }
    }

    /// Whether a run is at work here, so that it may release something soon.
    fn executes(&self, run: &RunId) -> bool {
        match self.known.get(run) {
            None | Some(Entry::Resting { .. }) => false,
            Some(Entry::Loading(_)) => true,
            Some(Entry::Live(live)) => !live.is_still,
        }
    }

    /// Whether something in this process, in another run's time, has to happen first.
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

    /// Delivers all mail, and then looks at every run that something happened to.
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

    /// Answers when everything before is durable.
    fn reply(&mut self, to: Option<ReplyTo>, reply: Reply, retry: To) {
        let (number, effects, retry) = (self.work.coordinator_tail.number(), Vec::new(), Some(retry));
        let reply = to.map(|to| (to, reply));
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
            mail if mail.is_for_the_living() && (!self.serves(&run) || self.stopping) => {
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
            return self.reply(reply, Reply::Earlier(earlier), retry);
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

    /// A run's journal was read.
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
                // A run whose first record was not written begins again.
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
                // No other run waits for something that this one holds.
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
        let (id, can_execute) = (run.id().clone(), execution.is_some());
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
        // After the mail: whoever resumes a run hears what became of it, also if a message cancels it.
        if executes {
            self.work.pass_on_owed(Some(&id));
        }
        self.work.touched.insert(id);
    }

    fn share(&mut self, input: CoordinatorInput, reply: Option<ReplyTo>, now: Now) {
        let retry = Some(To::Coordinator(input.clone()));
        let reply = match (self.work.share(input, None, None, now), reply) {
            (Ok(said), Some(to)) => Some((to, Reply::Published(said.delivered))),
            (Err(refused), Some(to)) => Some((to, Reply::NotShared(refused))),
            (_, None) => None,
        };
        let (number, effects) = (self.work.coordinator_tail.number(), Vec::new());
        let landing = work::Landing { number, run: None, retry, reply, events: None, effects, again: false };
        self.work.landings.push_back(landing);
    }

    /// Sets the alarm of a run that something happened to, says if it has come to rest, and lets it leave memory if it can.
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
        self.look_whether_still(&run);
    }

    fn look_whether_still(&mut self, run: &RunId) {
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

    /// Runs that wait for something that this one holds may wait in vain now.
    fn touch_waiting(&mut self, run: &RunId) {
        let state = self.work.coordinator.state();
        let first = Asker { run: run.clone(), path: crate::keys::Path::default(), attempt: 0 };
        let holds = state.holds.range(first..).next().is_some_and(|(asker, _)| asker.run == *run);
        if holds {
            let waiting = state.waiting.keys().map(|asker| asker.run.clone());
            self.work.touched.extend(waiting.filter(|run| self.known.contains_key(run)));
        }
    }

    /// Lets the runs leave memory that have done nothing for the longest time.
    fn evict(&mut self, now: Now) {
        while self.still.len() > self.still_max {
            let Some(run) = self.still.pop_front() else { return };
            let Some(Entry::Live(live)) = self.known.get(&run) else { continue };
            // It may be in the list again, further back.
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

    /// Leaves a run alone that contradicts itself.
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
