//! One process: its start, its orders and its end.

use super::tally::Fault;
use super::workflows::{MACHINE, MACHINE_JOBS, program};
use super::world::{HOUR, SECOND, Spec, World, log};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Ask, Claim, Execution, Found, Full, Job, JobKey, Loaded, Mail, NoLimits, Policy, Presence, Reply,
    ReplyTo, Run, RunId, Runs, RunsOrder as Order, Serves, Timestamp, Wake,
};

/// The state that dies with a process.
#[derive(Debug, Default)]
pub struct Process {
    /// The runs that it may execute; `None` for all.
    pub serves: Option<BTreeSet<RunId>>,
    /// It executes only new runs, and runs that someone resumes or cancels.
    pub interrupts: bool,
    pub loads: Vec<Load>,
    pub replies: BTreeMap<ReplyTo, For>,
    /// The number of events of each run that were shown or existed before.
    pub shown: BTreeMap<RunId, u64>,
    /// A lower bound for the clock of each run.
    pub seen: BTreeMap<RunId, Seen>,
    /// How far the clock of each run may be ahead of true time.
    pub ahead: BTreeMap<RunId, i64>,
    /// The same for called runs that ended, by caller.
    pub called: BTreeMap<RunId, i64>,
    /// Runs whose clock starts when they are loaded.
    pub starting: BTreeSet<RunId>,
    /// Runs that were loaded only to record something.
    pub recorded: BTreeSet<RunId>,
    pub recovering: bool,
    pub stopping: bool,
}

/// The run's clock read at least `own` after this much true time.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub passed: u64,
    pub own: Timestamp,
}

/// A pending load of a run or of the coordinator.
#[derive(Debug)]
pub struct Load {
    pub run: Option<RunId>,
    execute: bool,
    /// The run was in memory before.
    again: bool,
    slow: bool,
    pub age: u32,
}

/// Who waits for a reply.
#[derive(Clone, Debug)]
pub enum For {
    Client(usize),
    /// An executor noted which run it calls.
    Noted(JobKey),
    /// The called run has begun or continues.
    Begun(JobKey),
    /// The report of a job elsewhere is durable.
    Report(JobKey),
    Nothing,
}

/// A machine that limits its concurrent jobs.
#[derive(Debug)]
struct LimitsJobs;

impl Policy for LimitsJobs {
    fn limits_jobs(&self) -> bool {
        true
    }

    fn add_claims(&self, _: &Run, _: &Job, ask: &mut Ask) {
        let (key, limit) = (MACHINE.into(), MACHINE_JOBS as u32);
        ask.claims.push(Claim::Slot { key, limit, full: Full::Wait });
    }
}

impl World {
    /// Starts a new process on the same data folder.
    pub fn begin_process(&mut self) {
        self.tally.processes += 1;
        let now = self.time.now();
        let runs = self.store.runs();
        let serves = match self.calm || self.random.chance(75) {
            true => None,
            false => Some(runs.iter().filter(|_| self.random.chance(50)).cloned().collect()),
        };
        let named = |serves: &BTreeSet<RunId>| Serves::Named(serves.iter().cloned().collect());
        let (coordinator, tail, events) = self.store.coordinator_state();
        let count = |run: &RunId| (run.clone(), self.store.events(run).count() as u64);
        self.process = Process { shown: runs.iter().map(count).collect(), ..Process::default() };
        let interrupts = serves.is_some() && self.random.chance(40);
        let (ended, unfinished): (BTreeSet<_>, BTreeSet<_>) =
            runs.iter().cloned().partition(|run| self.store.left(run).ended);
        let serves = if interrupts { Some(ended) } else { serves };
        self.runs =
            Runs::new(coordinator, tail, events, serves.as_ref().map_or_else(Serves::all, named), now)
                .keeping(self.random.below(4));
        log!(self, "-- a process opens the folder, serves {serves:?}, interrupts: {interrupts} --");
        (self.process.serves, self.process.interrupts) = (serves, interrupts);
        if interrupts {
            self.runs.serve_all_but(unfinished.into_iter().collect(), now);
            self.carry_out_orders();
        }
        self.recover_all();
    }

    /// Reports every run that this process serves.
    pub fn recover_all(&mut self) {
        let now = self.time.now();
        for run in self.store.runs() {
            let left = self.store.left(&run);
            if self.runs.serves(&run) {
                let rests = self.runs.presence(&run) == Presence::Resting;
                if rests && matches!(left.wake, Some(Wake::At(_))) && !self.process.seen.contains_key(&run) {
                    self.process.recorded.remove(&run);
                    self.start_time_of(&run);
                }
                self.process.recovering = true;
                log!(self, "recover {run} {left:?}");
                self.runs.recover(&run, left, now);
                self.carry_out_orders();
                self.process.recovering = false;
            }
            // Clients do not wait until everything is loaded.
            if !self.calm && self.random.chance(4) {
                self.ask();
                self.carry_out_orders();
            }
        }
        self.runs.open(now);
        self.carry_out_orders();
    }

    /// The clock of a run starts at the wall clock, or at its last event if that is later.
    pub fn start_time_of(&mut self, run: &RunId) {
        let own = self.time.now().wall.max(self.last_at(run));
        if !self.process.stopping && !self.process.recorded.contains(run) {
            self.process.seen.insert(run.clone(), Seen { passed: self.time.passed, own });
        }
        let (ahead, before) = (own.0 - self.time.passed as i64, self.process.ahead.get(run));
        let least = before.filter(|_| self.process.stopping).map_or(ahead, |before| ahead.max(*before));
        self.process.ahead.insert(run.clone(), least);
    }

    pub fn last_at(&self, run: &RunId) -> Timestamp {
        self.store.events(run).last().map_or(Timestamp(0), |event| event.at)
    }

    pub fn send(&mut self, run: &RunId, mail: Mail, reply: Option<For>) {
        if let (Some(serves), Mail::Begin(_) | Mail::Resume(_)) = (&mut self.process.serves, &mail) {
            serves.insert(run.clone());
        }
        match &mail {
            Mail::Begin(begin) => {
                log!(self, "to {run}: begin, new: {}, once: {:?}", begin.is_new, begin.once);
            }
            mail => log!(self, "to {run} ({:?}): {mail:?}", self.runs.presence(run)),
        }
        if self.process.loads.iter().any(|load| load.slow && load.run.as_ref() == Some(run)) {
            self.tally.met(Fault::SlowLoad, Presence::Loading);
        }
        let to = reply.map(|reply| self.reply_to(reply));
        self.runs.send(run.clone(), mail, to, self.time.now());
    }

    pub fn reply_to(&mut self, reply: For) -> ReplyTo {
        self.names += 1;
        let to = ReplyTo(self.names);
        self.process.replies.insert(to, reply);
        to
    }

    /// Carries out all orders and takes the records, usually at once.
    pub fn pump(&mut self) {
        self.carry_out_orders();
        if self.calm || self.random.chance(85) {
            self.hand_over();
        }
    }

    pub fn hand_over(&mut self) {
        let batch = self.runs.take_records();
        batch.iter().for_each(|record| self.check_record(record));
        self.tally.records += batch.len() as u64;
        self.store.hand_over(batch);
    }

    pub fn carry_out_orders(&mut self) {
        for _ in 0..1_000 {
            let orders = self.runs.take_orders();
            if orders.is_empty() {
                return;
            }
            orders.into_iter().for_each(|order| self.carry_out(order));
        }
        panic!("the orders never end");
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Load { run, execute } => self.begin_load(Some(run), execute),
            Order::LoadCoordinator => self.begin_load(None, false),
            Order::Start(job) => self.start(*job),
            Order::Adopt(job) => self.adopt(*job),
            Order::Abort { job, .. } => self.abort(&job),
            Order::Recall(job) => self.recall(&job),
            Order::Happened { run, seq, events } => self.check_shown(&run, seq, &events),
            Order::Reply(to, reply) => self.replied(to, reply),
            Order::Concluded { run, outcome } => {
                log!(self, "{run} ended: {outcome:?}");
                self.call_ended(&run);
            }
            Order::Evicted { run } => {
                log!(self, "{run} leaves memory");
                self.tally.evicted += 1;
            }
            Order::Parked { run } => {
                log!(self, "{run} is parked");
                assert!(self.damaged.contains(&run), "{run} is parked, and its journal is good");
                self.tally.parked += 1;
            }
            Order::Begin(order) => panic!("no trigger ordered {order:?}"),
            Order::Still { .. } | Order::Budgets => {}
        }
    }

    fn replied(&mut self, to: ReplyTo, reply: Reply) {
        self.tally.replies += 1;
        self.tally.refused += u64::from(matches!(reply, Reply::Refused(_)));
        log!(self, "reply {to:?}: {reply:?}");
        let waits = self.process.replies.remove(&to).expect("a client that waits for this reply");
        match waits {
            For::Client(number) => self.client_gets(number, &reply),
            For::Noted(job) => self.noted(&job, &reply),
            For::Begun(job) => self.begun(&job, reply),
            For::Report(job) => drop(self.executors.jobs.remove(&job)),
            For::Nothing => {}
        }
    }

    fn begin_load(&mut self, run: Option<RunId>, execute: bool) {
        // Runs affected by a failed write are read together with the coordinator.
        let again = self.process.loads.iter().any(|load| load.run.is_none());
        if let Some(run) = &run {
            self.check_load(run);
            self.process.starting.remove(run);
            if !again {
                self.process.recorded.remove(run);
            }
        }
        let slow = !self.calm && self.random.chance(25);
        if let (Some(_), true) = (&run, slow) {
            let was = if again { Presence::Live } else { Presence::Resting };
            self.tally.met(Fault::SlowLoad, was);
        }
        log!(self, "read {run:?} again: {again} slow: {slow}");
        self.process.loads.push(Load { run, execute, again, slow, age: 0 });
    }

    pub fn finish_a_load(&mut self) {
        let ready = |load: &Load| !load.slow || load.age > 25;
        let ready: Vec<usize> =
            (0..self.process.loads.len()).filter(|number| ready(&self.process.loads[*number])).collect();
        if !ready.is_empty() {
            let number = *self.random.pick(&ready);
            self.finish_load(number);
        }
    }

    pub fn finish_load(&mut self, number: usize) {
        let now = self.time.now();
        let load = self.process.loads.remove(number);
        let Some(run) = load.run.clone() else {
            let (coordinator, tail, events) = self.store.coordinator_state();
            return self.runs.loaded_coordinator(coordinator, tail, events, now);
        };
        let found = match self.store.tail(Some(&run)) {
            None => Found::Nothing,
            Some(_) if self.damaged.contains(&run) => {
                let was = if load.again { Presence::Live } else { Presence::Resting };
                let was = if load.age > 10 { Presence::Loading } else { was };
                self.tally.met(Fault::Unusable, was);
                Found::Unusable
            }
            Some(tail) => Found::Run(Box::new(self.read(&run, tail, &load))),
        };
        self.runs.loaded(&run, found, now);
    }

    fn read(&mut self, run: &RunId, tail: u64, load: &Load) -> Loaded {
        let replayed = self.replayed(run);
        let (last_at, events) = (self.last_at(run), self.store.events(run).count() as u64);
        // A run that waits for an instant keeps its clock while it is not in memory.
        let kept = replayed.next_deadline().is_some() && self.process.seen.contains_key(run);
        if !load.again && !kept {
            self.start_time_of(run);
            self.process.starting.insert(run.clone());
        }
        if !load.again && !load.execute {
            self.process.recorded.insert(run.clone());
            self.process.seen.remove(run);
        }
        let execution = Some(self.execution(&self.specs[run], last_at));
        Loaded { run: replayed, tail, last_at, events, execution }
    }

    pub fn replayed(&self, run: &RunId) -> Run {
        let program = program(self.specs[run].workflow).clone();
        let replayed = Run::replay(run.clone(), program, self.store.events(run));
        replayed.unwrap_or_else(|why| panic!("the journal of {run} contradicts itself: {why:?}"))
    }

    pub fn execution(&self, spec: &Spec, from: Timestamp) -> Execution {
        let policy: Arc<dyn Policy> =
            if self.limits_jobs { Arc::new(LimitsJobs) } else { Arc::new(NoLimits) };
        Execution { policy, virtual_from: spec.is_virtual.then_some(from), patient: spec.is_patient }
    }

    /// The process dies, perhaps with its machine, and another one starts later.
    pub fn crash(&mut self) {
        for run in self.unfinished() {
            self.tally.met(Fault::Crash, self.runs.presence(&run));
        }
        let lost = self.store.crash(&mut self.random);
        self.tally.lost_records += lost;
        log!(self, "-- crash, {lost} records are lost --");
        // A job elsewhere that its run abandoned ends by itself.
        let jobs: Vec<JobKey> = self.executors.jobs.keys().cloned().collect();
        for job in jobs {
            if self.replayed(&job.run).job_at(&job).is_none() {
                self.executors.jobs.remove(&job);
            }
        }
        self.executors.crash();
        self.clients.iter_mut().for_each(super::clients::Client::owner_died);
        if self.random.chance(40) {
            // Time passes without a process.
            self.time.passed += self.random.below(HOUR as usize) as u64;
            let reads = self.random.below(100 * SECOND as usize) as u64;
            self.time.restart_machine(reads);
        }
        self.begin_process();
    }

    /// The process shuts down cleanly.
    pub fn stop(&mut self) {
        log!(self, "-- stop --");
        self.process.stopping = true;
        self.process.seen.clear();
        self.runs.stop(self.time.now());
        self.pump();
        self.settle();
        self.executors.end_here().into_iter().for_each(|job| self.report_stopped(job));
        self.settle();
        self.crash();
    }
}
