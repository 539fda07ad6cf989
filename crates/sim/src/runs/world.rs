//! The main loop: random actions and time.

use super::clients::Client;
use super::executors::Executors;
use super::process::Process;
use super::store::Store;
use super::tally::{Fault, Tally};
use crate::Random;
use std::collections::{BTreeMap, BTreeSet};
use windlass_engine::{Coordinator, JobKey, Now, Outcome, Presence, RunId, Runs, Serves, Timestamp};

/// The start of every simulation: 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600_000_000;

pub const SECOND: u64 = 1_000_000;
pub const MINUTE: u64 = 60 * SECOND;
pub const HOUR: u64 = 60 * MINUTE;

/// Faults end after this many steps.
const STEPS: u64 = 220;

/// Adds a line to the log, if one is kept.
macro_rules! log {
    ($world:expr, $($what:tt)*) => {
        if let Some(log) = &mut $world.log {
            let line = format!("{:>8} ms  {}", $world.time.passed / 1_000, format_args!($($what)*));
            log.push(line.chars().take(260).collect());
        }
    };
}
pub(super) use log;

/// Both clocks of the machine.
#[derive(Debug)]
pub struct Time {
    /// True time since the start.
    pub passed: u64,
    /// When the machine started, and the reading of its steady clock.
    started: (u64, u64),
    /// The error of the wall clock.
    pub skew: i64,
}

impl Time {
    pub fn now(&self) -> Now {
        let wall = Timestamp(BEGINNING + self.passed as i64 + self.skew);
        Now { wall, steady: self.started.1 + self.passed - self.started.0 }
    }

    pub fn restart_machine(&mut self, reads: u64) {
        self.started = (self.passed, reads);
    }
}

/// Facts about a run that the journal does not contain.
#[derive(Clone, Debug)]
pub struct Spec {
    pub workflow: usize,
    pub is_virtual: bool,
    pub is_patient: bool,
    /// The runs that wait for it, outermost first.
    pub parents: Vec<RunId>,
}

#[derive(Debug)]
pub struct World {
    pub random: Random,
    pub time: Time,
    pub runs: Runs,
    pub store: Store,
    pub process: Process,
    pub executors: Executors,
    pub clients: Vec<Client>,
    pub specs: BTreeMap<RunId, Spec>,
    /// Runs with unusable journals.
    pub damaged: BTreeSet<RunId>,
    /// Reports that may arrive a second time.
    pub reported: Vec<(JobKey, Outcome)>,
    /// A counter for unique names.
    pub names: u64,
    /// Whether this machine limits its jobs.
    pub limits_jobs: bool,
    pub calm: bool,
    pub tally: Tally,
    pub log: Option<Vec<String>>,
}

impl World {
    pub fn new(seed: u64, logs: bool) -> Self {
        let mut random = Random::new(seed);
        let time = Time { passed: 0, started: (0, 7 * SECOND), skew: 0 };
        let clients = (0..3 + random.below(3)).map(|_| Client::default()).collect();
        let runs = Runs::new(Coordinator::default(), None, 0, Serves::all(), time.now());
        let limits_jobs = random.chance(25);
        let mut world = Self {
            random,
            time,
            runs,
            store: Store::default(),
            process: Process::default(),
            executors: Executors::default(),
            clients,
            specs: BTreeMap::new(),
            damaged: BTreeSet::new(),
            reported: Vec::new(),
            names: 0,
            limits_jobs,
            calm: false,
            tally: Tally::default(),
            log: logs.then(Vec::new),
        };
        world.begin_process();
        world
    }

    pub fn simulate(&mut self) {
        while self.tally.steps < STEPS {
            self.tally.steps += 1;
            self.step();
            self.pump();
            self.check_limits();
        }
        self.bring_to_an_end();
    }

    fn step(&mut self) {
        self.process.loads.iter_mut().for_each(|load| load.age += 1);
        match self.random.below(100) {
            0..=17 => self.store.write(),
            18..=33 => self.answer(),
            34..=43 => self.finish_a_load(),
            44..=61 => self.work(),
            62..=78 => self.ask(),
            79..=89 => self.pass_time(),
            90 | 91 => self.set_the_clock(),
            92 | 93 => self.store.failing += 1 + self.random.below(3) as u32,
            94 => self.damage(),
            95 => drop(self.jump()),
            96 | 97 => {
                self.settle();
                self.check_quiet();
            }
            98 if self.random.chance(30) => self.stop(),
            _ => self.crash(),
        }
    }

    /// Reports the result of the next batch to `Runs`.
    pub fn answer(&mut self) {
        let Some(answer) = self.store.answer() else { return };
        let now = self.time.now();
        log!(self, "batch {}..={} written: {}", answer.from, answer.through, answer.written);
        if answer.written {
            answer.runs.iter().for_each(|run| self.see(run));
            return self.runs.written(answer.through, now);
        }
        for run in self.unfinished() {
            self.tally.met(Fault::FailedWrite, self.runs.presence(&run));
        }
        self.runs.failed(answer.from, answer.through, self.store.handed_over(), now);
    }

    /// Every run without a result.
    pub fn unfinished(&self) -> Vec<RunId> {
        let runs = self.store.runs().into_iter();
        runs.filter(|run| self.store.result(run).is_none()).collect()
    }

    fn pass_time(&mut self) {
        let next = self.runs.next_alarm(self.time.now());
        let length = match self.random.below(20) {
            0..=8 => self.random.below(2 * SECOND as usize) as u64,
            9..=14 => next.map_or(SECOND, |next| next.saturating_sub(self.time.now().steady)),
            15..=17 => self.random.below(5 * MINUTE as usize) as u64,
            _ => self.random.below(6 * HOUR as usize) as u64,
        };
        self.advance_time(length);
    }

    pub fn advance_time(&mut self, length: u64) {
        // The time of every record must be the time at which it was taken.
        self.hand_over();
        self.time.passed += length;
        self.start_times();
        log!(self, "{length} µs pass");
        // A busy machine handles its alarms late.
        if self.calm || self.random.chance(90) {
            self.tick();
        }
    }

    pub fn tick(&mut self) {
        let now = self.time.now();
        if self.runs.next_alarm(now).is_some_and(|alarm| alarm <= now.steady) {
            self.runs.tick(now);
        }
    }

    fn set_the_clock(&mut self) {
        let most = *self.random.pick(&[SECOND, 10 * MINUTE, 4 * HOUR, 48 * HOUR]);
        let by = 1 + self.random.below(most as usize) as i64;
        let forward = self.random.chance(50);
        self.hand_over();
        self.time.skew += if forward { by } else { -by };
        let fault = if forward { Fault::ClockForward } else { Fault::ClockBack };
        log!(self, "the wall clock is set by {} ms", if forward { by } else { -by } / 1_000);
        for run in self.unfinished() {
            self.tally.met(fault, self.runs.presence(&run));
        }
        self.runs.clock_set(self.time.now());
        self.carry_out_orders();
        self.start_times();
    }

    /// A load during a failed write is used later, and the run's clock starts then.
    fn start_times(&mut self) {
        self.process.starting.retain(|run| self.runs.presence(run) == Presence::Loading);
        for run in self.process.starting.clone() {
            self.start_time_of(&run);
        }
    }

    pub fn jump(&mut self) -> bool {
        let jumped = self.runs.jump(self.time.now());
        self.tally.jumps += u64::from(jumped);
        jumped
    }

    /// Makes the journal of one run unusable, which shows when it is read.
    fn damage(&mut self) {
        let runs = self.unfinished();
        if runs.is_empty() || self.random.chance(60) {
            return;
        }
        let run = self.random.pick(&runs).clone();
        log!(self, "the journal of {run} is damaged");
        self.damaged.insert(run);
    }

    /// A unique name.
    pub fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }
}
