//! A world that answers a run badly: late, twice, never, out of order; that loses its memory and its disk; that cancels,
//! pauses and decides when nobody expects it. Whatever it does, the run must keep its promises.

use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Answer, Effect, Event, Failure, GateDecision, Input, JobKey, Outcome, Path, Program, Refused, Run, RunId,
    StepPhase, Timestamp, View, What,
};
use windlass_ir::value::Value;

/// What happened in one simulated run, for the totals.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub steps: u64,
    pub crashes: u64,
    pub conflicts: u64,
    pub failed_appends: u64,
    pub duplicates: u64,
    pub losses: u64,
    pub cancels: u64,
    pub pauses: u64,
    pub reopens: u64,
    pub refusals: u64,
    /// Which events occurred, by name.
    pub events: BTreeSet<&'static str>,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.crashes += other.crashes;
        self.conflicts += other.conflicts;
        self.failed_appends += other.failed_appends;
        self.duplicates += other.duplicates;
        self.losses += other.losses;
        self.cancels += other.cancels;
        self.pauses += other.pauses;
        self.reopens += other.reopens;
        self.refusals += other.refusals;
        self.events.extend(&other.events);
    }
}

#[derive(Debug)]
pub struct World {
    random: Random,
    program: Arc<Program>,
    run: Run,
    now: Timestamp,
    journal: Vec<Event>,
    view: View,
    /// Jobs that executors are at work on; some were told to stop.
    working: BTreeMap<JobKey, bool>,
    /// Reports that were given and may arrive again.
    delivered: Vec<(JobKey, Outcome)>,
    accepted: BTreeSet<JobKey>,
    reopened: u32,
    calm: bool,
    pub tally: Tally,
    pub log: Vec<String>,
}

/// More steps than this without an end is a run that hangs.
const STEPS_MAX: u64 = 20_000;

impl World {
    pub fn new(seed: u64, program: Arc<Program>) -> Self {
        let run = Run::new(run_id(), program.clone());
        Self {
            random: Random::new(seed),
            view: View::new(program.clone()),
            run,
            program,
            now: Timestamp(1_000_000),
            journal: Vec::new(),
            working: BTreeMap::new(),
            delivered: Vec::new(),
            accepted: BTreeSet::new(),
            reopened: 0,
            calm: false,
            tally: Tally::default(),
            log: Vec::new(),
        }
    }

    /// Lives one run from start to end. Panics with a message when a promise is broken.
    pub fn live(&mut self) {
        self.offer(Input::Start { inputs: Value::map::<&str>([]), seed: 1, about: Value::Null });
        loop {
            self.tally.steps += 1;
            assert!(self.tally.steps < STEPS_MAX, "the run does not come to an end");
            // A world that is calm from here on must let every run end.
            self.calm = self.tally.steps > 300;
            if self.run.outcome().is_some() && !self.reopen() {
                break;
            }
            self.step();
        }
        self.check_end();
    }

    fn step(&mut self) {
        let trouble = !self.calm && self.random.chance(30);
        match self.random.below(100) {
            0..=5 if trouble => self.crash(),
            6..=9 if trouble => self.repeat(),
            10..=14 if trouble => self.lose(),
            15..=16 if trouble => self.pause_or_resume(),
            17 if trouble && self.random.chance(10) => {
                self.tally.cancels += 1;
                self.offer(Input::Cancel { why: "enough".into(), by: "bob".into() });
            }
            0..=59 if !self.working.is_empty() => self.report(),
            60..=74 => self.decide(),
            _ => self.pass_time(),
        }
        if self.calm && self.run.is_paused() {
            self.offer(Input::Resume { by: "bob".into() });
        }
    }

    /// Hands an input to the run and lives with the answer, unless the journal refuses or fails.
    fn offer(&mut self, input: Input) {
        let shown = format!("{input:?}");
        // Some inputs are only written down, by a process that does not drive the run.
        let quiet = !self.calm
            && matches!(input, Input::Decide { .. } | Input::Pause { .. })
            && self.random.chance(20);
        let handled = match quiet {
            true => self.run.record(self.now, input.clone()),
            false => self.run.handle(self.now, input.clone()),
        };
        match handled {
            Err(refused) => {
                self.tally.refusals += 1;
                self.check_refusal(&input, &refused);
            }
            Ok(answer) => {
                self.log.push(format!("{:>12} {shown:.100}", self.now.0 / 1000));
                self.append(answer, input);
            }
        }
        self.check_always();
    }

    fn append(&mut self, answer: Answer, input: Input) {
        let again = answer.again;
        match self.random.below(100) {
            // Somebody else wrote first: what is in memory is worth nothing.
            0..=2 if !self.calm && !answer.events.is_empty() => {
                self.tally.conflicts += 1;
                self.replay();
                return self.offer(input);
            }
            // The disk is full for a while: nothing was remembered, the input is kept and tried again.
            3..=5 if !self.calm && !answer.events.is_empty() => {
                self.tally.failed_appends += 1;
                self.replay();
                return self.offer(input);
            }
            _ => {}
        }
        if let Input::Reported { job, .. } = &input {
            let first = self.accepted.insert(job.clone());
            assert!(first, "two reports of {job} were accepted");
        }
        for event in &answer.events {
            assert!(
                self.journal.last().is_none_or(|last| last.at <= event.at),
                "time went backwards: {event:?}"
            );
            self.tally.events.insert(name(&event.what));
            self.view.apply(event);
        }
        self.journal.extend(answer.events);
        answer.effects.into_iter().for_each(|effect| self.carry_out(effect));
        if again {
            self.offer(Input::Tick);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(job) => {
                self.check_dispatch(&job.key);
                self.working.insert(job.key, false);
            }
            Effect::Abort(key) => {
                if let Some(told) = self.working.get_mut(&key) {
                    *told = true;
                }
            }
            Effect::Conclude(_) => {}
        }
    }

    fn replay(&mut self) {
        self.run = Run::replay(run_id(), self.program.clone(), &self.journal);
    }

    /// The owner dies with everything it had in memory, and so do the jobs it had started.
    fn crash(&mut self) {
        self.tally.crashes += 1;
        self.log.push("-- crash --".into());
        self.replay();
        self.working.clear();
        let owed = self.owed();
        self.offer(Input::TakenUp);
        for job in owed {
            self.offer(Input::Lost { job });
        }
    }

    /// The jobs that the run still waits for an answer about.
    fn owed(&self) -> BTreeSet<JobKey> {
        let jobs = self.run.outstanding().into_iter().filter_map(|effect| match effect {
            Effect::Dispatch(job) => Some(job.key),
            Effect::Abort(key) => Some(key),
            Effect::Conclude(_) => None,
        });
        jobs.collect()
    }

    fn report(&mut self) {
        let keys: Vec<&JobKey> = self.working.keys().collect();
        let job = (*self.random.pick(&keys)).clone();
        let told = self.working.remove(&job).unwrap_or(false);
        let outcome = match self.random.below(10) {
            _ if told && self.random.chance(80) => Outcome::Cancelled("told to".into()),
            0..=5 => Outcome::Done(Value::map([("n", Value::Int(1))])),
            6 => Outcome::Done(Value::map([("n", Value::text("not a number"))])),
            7 => Outcome::Failed(Failure::new("fatal", "broken")),
            _ => Outcome::Failed(Failure::new("transient", "try again")),
        };
        self.delivered.push((job.clone(), outcome.clone()));
        self.offer(Input::Reported { job, outcome });
    }

    /// A report arrives once more, or one from long ago.
    fn repeat(&mut self) {
        if self.delivered.is_empty() {
            return;
        }
        self.tally.duplicates += 1;
        let (job, outcome) = self.random.pick(&self.delivered).clone();
        self.offer(Input::Reported { job, outcome });
    }

    fn lose(&mut self) {
        let keys: Vec<&JobKey> = self.working.keys().collect();
        if keys.is_empty() {
            return;
        }
        self.tally.losses += 1;
        let job = (*self.random.pick(&keys)).clone();
        self.working.remove(&job);
        self.offer(Input::Lost { job });
    }

    fn pause_or_resume(&mut self) {
        self.tally.pauses += 1;
        let by: Arc<str> = "bob".into();
        self.offer(if self.run.is_paused() { Input::Resume { by } } else { Input::Pause { by } });
    }

    fn decide(&mut self) {
        let asking =
            self.view.steps.iter().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        let paths: Vec<Path> = asking.map(|(path, _)| path.clone()).collect();
        if paths.is_empty() {
            return self.pass_time();
        }
        let path = self.random.pick(&paths).clone();
        let by: Arc<str> = (*self.random.pick(&["ann", "ann", "mallory"])).into();
        let id: Arc<str> = format!("d{}", self.random.below(1000)).into();
        let decision = GateDecision { approve: self.random.chance(80), by, reason: None, form: Value::Null };
        self.offer(Input::Decide { id, path, decision });
    }

    /// To the next deadline, past it, or only a little; sometimes back.
    fn pass_time(&mut self) {
        let micros = 1_000_000 * (1 + self.random.below(40) as i64);
        let next = self.run.next_deadline();
        self.now = match (self.random.below(4), next) {
            (0, _) if !self.calm => Timestamp(self.now.0 - micros / 2),
            (0 | 1, Some(next)) => self.now.max(next),
            (2, Some(next)) => Timestamp(self.now.max(next).0 + micros),
            (_, Some(next)) if self.calm => self.now.max(next),
            _ => Timestamp(self.now.0 + micros),
        };
        self.offer(Input::Tick);
    }

    /// A failed run is opened again now and then.
    fn reopen(&mut self) -> bool {
        if self.reopened >= 2 || self.calm || !self.random.chance(50) {
            return false;
        }
        self.reopened += 1;
        let before = self.journal.len();
        self.offer(Input::Reopen { inputs: Value::map::<&str>([]), by: "bob".into() });
        let opened = self.journal.len() > before;
        if opened {
            self.tally.reopens += 1;
        }
        opened && self.run.outcome().is_none()
    }

    // The promises

    fn check_always(&self) {
        let replayed = Run::replay(run_id(), self.program.clone(), &self.journal);
        assert!(self.run == replayed, "the live run differs from its replay");
        let rebuilt = View::of(self.program.clone(), &self.journal);
        assert!(self.view.same_as(&rebuilt), "the folded view differs from the rebuilt one");
        let owed = self.owed();
        for key in &owed {
            assert!(!self.accepted.contains(key), "{key} was answered and is still owed");
        }
    }

    /// Nothing is started under a path that has settled, and no attempt while another one is at work that was not told to
    /// stop and given the time to do so.
    fn check_dispatch(&self, key: &JobKey) {
        let step = self.view.steps.get(&key.path).expect("a dispatched step is in the view");
        assert!(
            !matches!(step.phase, StepPhase::Settled(_)),
            "{key} was dispatched after its step had settled"
        );
        let twice = self.working.iter().any(|(other, told)| other.path == key.path && other != key && !told);
        assert!(!twice, "{key} was dispatched while another attempt of it runs");
    }

    fn check_refusal(&self, input: &Input, refused: &Refused) {
        let expected = match (input, refused) {
            (Input::Reported { job, .. } | Input::Lost { job }, Refused::StaleJob(stale)) => {
                assert_eq!(job, stale);
                true
            }
            (Input::Decide { decision, .. }, Refused::NotAnApprover { by, .. }) => *by == decision.by,
            (
                Input::Decide { .. },
                Refused::NoGate(_) | Refused::AlreadyDecided { .. } | Refused::Finished,
            ) => true,
            (Input::Reopen { .. }, Refused::NotFailed | Refused::Finished) => true,
            (Input::Cancel { .. } | Input::Pause { .. } | Input::Resume { .. }, Refused::Finished) => true,
            _ => false,
        };
        assert!(expected, "{input:?} was refused: {refused}");
    }

    fn check_end(&self) {
        assert!(
            self.run.outstanding().is_empty(),
            "the run ended and still owes {:?}",
            self.run.outstanding()
        );
        assert_eq!(self.run.next_deadline(), None, "a timer survived the end of the run");
        for (path, step) in &self.view.steps {
            assert!(matches!(step.phase, StepPhase::Settled(_)), "{path} has not settled: {:?}", step.phase);
        }
        let settled = self.journal.iter().filter(|event| matches!(event.what, What::Reopened { .. })).count();
        if settled == 0 {
            let mut seen = BTreeSet::new();
            for event in &self.journal {
                if let What::Settled { path, .. } = &event.what {
                    assert!(seen.insert(path), "{path} settled twice");
                }
            }
        }
    }
}

fn run_id() -> RunId {
    RunId::new("sim").expect("a good name")
}

fn name(what: &What) -> &'static str {
    match what {
        What::Started { .. } => "started",
        What::Entered { .. } => "entered",
        What::Scheduled { .. } => "scheduled",
        What::Noted { .. } => "noted",
        What::AttemptFailed { .. } => "attempt_failed",
        What::TimerSet { .. } => "timer_set",
        What::TimerFired { .. } => "timer_fired",
        What::Signalled { .. } => "signalled",
        What::CancelRequested { .. } => "cancel_requested",
        What::Paused { .. } => "paused",
        What::Resumed { .. } => "resumed",
        What::Reopened { .. } => "reopened",
        What::Settled { .. } => "settled",
        What::Concluded { .. } => "concluded",
        What::Closed => "closed",
    }
}
