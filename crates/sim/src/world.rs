//! A hostile environment for one run: answers are late, repeated, lost or out of order; the process and the disk
//! fail; people cancel, pause, signal and decide at any time. The guarantees must hold regardless.

use crate::oracle::Oracle;
use crate::plan::{ITEMS, VERDICT};
use crate::random::Random;
use crate::tally::Tally;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::{
    Answer, Choice, Effect, Event, Failure, GateDecision, Input, JobKey, Outcome, Path, Program, Reason,
    Refused, Run, RunId, Start, StepPhase, Timestamp, View, What,
};
use windlass_ir::Duration;
use windlass_ir::value::Value;

pub(crate) const REPLAYS: &str = "a journal that the engine wrote can be replayed";

#[derive(Debug)]
pub struct World {
    random: Random,
    program: Arc<Program>,
    run: Run,
    now: Timestamp,
    journal: Vec<Event>,
    /// Each input, with its time and the number of events before it.
    taken: Vec<Taken>,
    view: View,
    /// The expected state; `None` for plans that the oracle does not support.
    oracle: Option<Oracle>,
    /// Jobs of executors, and whether they were aborted.
    working: BTreeMap<JobKey, bool>,
    /// Delivered reports, which may arrive again.
    delivered: Vec<(JobKey, Outcome)>,
    accepted: BTreeSet<JobKey>,
    notes: BTreeMap<Path, Value>,
    reopened: u32,
    signals: u32,
    /// How often in a row the run had more to decide than fits into one answer.
    in_a_row: u32,
    calm: bool,
    /// The kinds of faults to simulate.
    pub trouble: Trouble,
    pub tally: Tally,
    pub log: Vec<String>,
}

#[derive(Clone, Debug)]
struct Taken {
    now: Timestamp,
    input: Input,
    quiet: bool,
    /// The length of the journal afterward.
    journal: usize,
}

/// The kinds of faults to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// All faults.
    All,
    /// Successful answers, in any order.
    OnlyOrder,
}

/// A run with more steps than this hangs.
const STEPS_MAX: u64 = 2_500;
/// No simulated plan has this many decisions to make without an answer.
const IN_A_ROW_MAX: u32 = 20;
/// After this many steps, faults end, and every run must finish.
const CALM_AFTER: u64 = 300;

impl World {
    pub fn new(seed: u64, program: Arc<Program>) -> Self {
        let run = Run::new(run_id(), program.clone());
        Self {
            random: Random::new(seed),
            view: View::new(program.clone()),
            oracle: Oracle::knows(&program.plan)
                .then(|| Oracle::new(windlass_ir::Plan::clone(&program.plan), run_id())),
            run,
            program,
            now: Timestamp(1_000_000),
            journal: Vec::new(),
            taken: Vec::new(),
            working: BTreeMap::new(),
            delivered: Vec::new(),
            accepted: BTreeSet::new(),
            notes: BTreeMap::new(),
            reopened: 0,
            signals: 0,
            in_a_row: 0,
            calm: false,
            trouble: Trouble::All,
            tally: Tally::default(),
            log: Vec::new(),
        }
    }

    /// Simulates one run from start to end. Panics if a guarantee is broken.
    pub fn simulate(&mut self) {
        let inputs = self.inputs();
        let by = self.random.chance(50).then(|| Arc::from("ann"));
        self.offer(Input::Start(Box::new(Start { by, seed: 1, ..Start::with(inputs) })));
        loop {
            self.tally.steps += 1;
            assert!(self.tally.steps < STEPS_MAX, "the run does not end");
            self.calm = self.tally.steps > CALM_AFTER || self.trouble == Trouble::OnlyOrder;
            if self.run.outcome().is_some() && !self.reopen() {
                break;
            }
            self.step();
        }
        self.check_end();
    }

    fn inputs(&mut self) -> Value {
        let items = match self.random.below(3) {
            0 if self.trouble == Trouble::All => Value::text("no list"),
            _ => Value::list((0..self.random.below(3) as i64).map(Value::Int)),
        };
        let words = ["", "", "", "approve", "REJECT", "what?"];
        let verdict = match self.trouble {
            Trouble::All => *self.random.pick(&words),
            Trouble::OnlyOrder => "approve",
        };
        Value::map([(VERDICT, Value::text(verdict)), (ITEMS, items)])
    }

    fn step(&mut self) {
        let trouble = !self.calm && self.random.chance(30);
        match self.random.below(100) {
            0..=5 if trouble => self.crash(),
            6..=9 if trouble => self.repeat(),
            10..=14 if trouble => self.lose(),
            15..=16 if trouble => self.pause_or_resume(),
            17 if trouble && self.random.chance(10) => self.cancel(Path::default()),
            18 if trouble && self.random.chance(30) => self.cancel_somewhere(),
            19 if trouble => self.change_inputs(),
            20..=22 if trouble => self.note(),
            0..=54 if !self.working.is_empty() => self.report(),
            55..=69 => self.decide(),
            70..=76 => self.signal(),
            _ => self.pass_time(),
        }
        if self.calm && self.run.is_paused() {
            self.offer(Input::Resume { by: "bob".into() });
        }
    }

    /// Sends an input to the run, unless the write fails.
    fn offer(&mut self, input: Input) {
        // A process that does not execute the run only records some inputs.
        let may_be_quiet = matches!(
            input,
            Input::Decide { .. } | Input::Pause { .. } | Input::Signal { .. } | Input::Change { .. }
        );
        let quiet = !self.calm && may_be_quiet && self.random.chance(20);
        let waited_for = match &input {
            Input::Reported { job, .. } => self.owed().contains(job),
            _ => true,
        };
        let handled = match quiet {
            true => self.run.record(self.now, input.clone()),
            false => self.run.handle(self.now, input.clone()),
        };
        match handled {
            Err(refused) => {
                self.tally.count("fault", "refusal");
                self.log.push(format!("{:>9} refused  {}", self.now.0 / 1_000_000, shown(&input)));
                self.check_refusal(&input, &refused);
            }
            Ok(answer) => {
                assert!(waited_for, "the run accepted an unexpected report: {}", shown(&input));
                let word = if quiet { "recorded" } else { "taken" };
                // Skip ticks without effect in the log.
                if input != Input::Tick || !answer.events.is_empty() {
                    self.log.push(format!("{:>9} {word:<8} {}", self.now.0 / 1_000_000, shown(&input)));
                }
                self.append(answer, input, quiet);
            }
        }
        self.check_always();
    }

    fn append(&mut self, answer: Answer, input: Input, quiet: bool) {
        let again = answer.again;
        let fails = !self.calm && !answer.events.is_empty();
        match self.random.below(100) {
            // Another owner wrote first, so the state in memory is invalid.
            0..=2 if fails => {
                self.tally.count("fault", "conflict");
                self.replay();
                return self.offer(input);
            }
            // The disk is full for a while: nothing is stored, and the input is retried.
            3..=5 if fails => {
                self.tally.count("fault", "failed append");
                self.replay();
                return self.offer(input);
            }
            _ => {}
        }
        if let Input::Reported { job, .. } = &input {
            let first = self.accepted.insert(job.clone());
            assert!(first, "two reports of {job} were accepted");
        }
        if let Input::Noted { job, value, .. } = &input {
            self.notes.insert(job.path.clone(), value.clone());
        }
        self.tally.saw("input", &input);
        for event in &answer.events {
            let forwards = self.journal.last().is_none_or(|last| last.at <= event.at);
            assert!(forwards, "time went backwards: {event:?}");
            self.count(event);
            self.log.push(format!("{:>9}          -> {}", "", event_line(event)));
            self.view.apply(event).expect(REPLAYS);
        }
        // Time never goes back before the last known event.
        let last_at = self.journal.last().map_or(self.now, |last| last.at);
        self.journal.extend(answer.events);
        if let Some(oracle) = &mut self.oracle {
            oracle.accept(self.now.max(last_at), last_at, &input, quiet);
        }
        self.taken.push(Taken { now: self.now, input, quiet, journal: self.journal.len() });
        answer.effects.into_iter().for_each(|effect| self.carry_out(effect));
        self.in_a_row = if again { self.in_a_row + 1 } else { 0 };
        assert!(self.in_a_row < IN_A_ROW_MAX, "the run decides forever without input");
        if again {
            self.offer(Input::Tick);
        }
    }

    fn count(&mut self, event: &Event) {
        self.tally.saw("event", &event.what);
        match &event.what {
            What::Entered { decision, path } => {
                self.tally.saw("decision", decision);
                if let Some(step) = self.view.step(path) {
                    self.tally.count("step", &self.view.plan_step(&step).word);
                }
            }
            What::TimerFired { reason: Reason::Timeout, path } if path.is_run() => {
                self.tally.count("timer", "Timeout of the run");
            }
            What::TimerFired { reason, .. } => self.tally.saw("timer", reason),
            _ => {}
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Dispatch(job) => {
                self.check_dispatch(&job.key);
                let noted = job.notes.get("memory").cloned();
                let expected = self.notes.get(&job.key.path).cloned();
                assert_eq!(noted, expected, "{} was dispatched with the wrong notes", job.key);
                self.working.insert(job.key, false);
            }
            Effect::Abort(key) => {
                if let Some(aborted) = self.working.get_mut(&key) {
                    *aborted = true;
                }
            }
            // Sketches use no shared resources.
            Effect::Ask { .. }
            | Effect::Release { .. }
            | Effect::Subscribe(_)
            | Effect::Unsubscribe(_)
            | Effect::Conclude(_) => {}
        }
    }

    fn replay(&mut self) {
        let replayed = Run::replay(run_id(), self.program.clone(), &self.journal);
        self.run = replayed.expect(REPLAYS);
    }

    /// The owner dies with its memory and its jobs.
    fn crash(&mut self) {
        self.tally.count("fault", "crash");
        self.log.push("-- crash --".into());
        self.replay();
        // Some jobs survive and report when no one waits for them.
        let orphans = std::mem::take(&mut self.working).into_keys();
        self.delivered.extend(orphans.map(|job| (job, Outcome::Done(Value::map([("n", Value::Int(1))])))));
        let owed = self.owed();
        self.offer(Input::TakenUp);
        for job in owed {
            let started = self.random.chance(80);
            self.offer(Input::Lost { job, started });
        }
    }

    /// The jobs whose reports the run waits for.
    fn owed(&self) -> BTreeSet<JobKey> {
        self.run.outstanding().iter().filter_map(Effect::job).cloned().collect()
    }

    fn report(&mut self) {
        let keys: Vec<&JobKey> = self.working.keys().collect();
        let job = (*self.random.pick(&keys)).clone();
        let aborted = self.working.remove(&job).unwrap_or(false);
        let number = Value::map([("n", Value::Int(i64::from(job.attempt)))]);
        let failed = |class: &str| Outcome::Failed(Failure::new(class, "it broke"));
        let outcome = match self.random.below(20) {
            _ if self.trouble == Trouble::OnlyOrder => Outcome::Done(Value::map([("n", Value::Int(1))])),
            _ if aborted && self.random.chance(80) => Outcome::Cancelled("told to".into()),
            0..=9 => Outcome::Done(number),
            10..=12 if self.has_rounds(&job.path) => Outcome::Continue(Value::Int(i64::from(job.attempt))),
            10 => Outcome::Done(Value::map([("n", Value::text("not a number"))])),
            11 => Outcome::Done(Value::Null),
            12 | 13 => failed("fatal"),
            14 => failed("auth_failure"),
            15 => {
                let retry_after = Some(Duration::from_secs(self.random.below(90) as u64));
                Outcome::Failed(Failure { retry_after, ..Failure::new("rate_limit", "later") })
            }
            16 => Outcome::Cancelled("gave up".into()),
            17 => Outcome::Continue(number),
            _ => failed("transient"),
        };
        self.delivered.push((job.clone(), outcome.clone()));
        self.offer(Input::Reported { job, outcome });
    }

    fn has_rounds(&self, path: &Path) -> bool {
        self.view.step(path).is_some_and(|step| &*self.view.plan_step(&step).word == "rounds")
    }

    /// A job stores a note. Later attempts, deliveries and rounds of the step must receive it.
    fn note(&mut self) {
        let keys: Vec<&JobKey> = self.working.keys().collect();
        if keys.is_empty() {
            return;
        }
        let job = (*self.random.pick(&keys)).clone();
        let value = Value::Int(self.random.below(1000) as i64);
        self.offer(Input::Noted { job, key: "memory".into(), value });
    }

    /// A report arrives again, or much too late.
    fn repeat(&mut self) {
        if self.delivered.is_empty() {
            return;
        }
        self.tally.count("fault", "duplicate");
        let (job, outcome) = self.random.pick(&self.delivered).clone();
        self.offer(Input::Reported { job, outcome });
    }

    fn lose(&mut self) {
        let keys: Vec<&JobKey> = self.working.keys().collect();
        if keys.is_empty() {
            return;
        }
        self.tally.count("fault", "loss");
        let job = (*self.random.pick(&keys)).clone();
        self.working.remove(&job);
        self.delivered.push((job.clone(), Outcome::Done(Value::map([("n", Value::Int(1))]))));
        self.offer(Input::Lost { job, started: true });
    }

    fn pause_or_resume(&mut self) {
        self.tally.count("fault", "pause");
        let by: Arc<str> = "bob".into();
        self.offer(if self.run.is_paused() { Input::Resume { by } } else { Input::Pause { by } });
    }

    fn cancel(&mut self, path: Path) {
        self.tally.count("fault", "cancel");
        self.offer(Input::Cancel { path, why: "enough".into(), by: "bob".into() });
    }

    fn cancel_somewhere(&mut self) {
        let open = self.view.steps().filter(|(_, step)| match step.phase {
            StepPhase::Settled(_) => false,
            // Canceling a dormant step is refused.
            StepPhase::Dormant
            | StepPhase::Pending
            | StepPhase::Queued { .. }
            | StepPhase::Running
            | StepPhase::Backoff { .. }
            | StepPhase::Asking { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Joined
            | StepPhase::Inside => true,
        });
        let paths: Vec<Path> = open.map(|(path, _)| path.clone()).collect();
        if !paths.is_empty() {
            let path = self.random.pick(&paths).clone();
            self.cancel(path);
        }
    }

    fn change_inputs(&mut self) {
        let word = *self.random.pick(&["", "approve", "reject"]);
        let inputs = Value::map([(VERDICT, Value::text(word))]);
        self.offer(Input::Change { inputs, by: "bob".into() });
    }

    fn decide(&mut self) {
        let asking = self.view.steps().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
        let paths: Vec<Path> = asking.map(|(path, _)| path.clone()).collect();
        if paths.is_empty() {
            return self.pass_time();
        }
        let path = self.random.pick(&paths).clone();
        let by: Arc<str> = (*self.random.pick(&["ann", "cid", "dan", "mallory"])).into();
        let id: Arc<str> = format!("d{}", self.random.below(1000)).into();
        let choice = match self.random.below(10) {
            _ if self.trouble == Trouble::OnlyOrder => Choice::Approve,
            0..=4 => Choice::Approve,
            5..=7 => Choice::Reject,
            8 => Choice::Option("APPROVE".into()),
            _ => Choice::Option("perhaps".into()),
        };
        let decision = GateDecision { choice, by, reason: None, form: Value::Null };
        self.offer(Input::Decide { id, path, decision });
    }

    /// Sends a signal to the run, or delivers a message to a wait.
    fn signal(&mut self) {
        let wanted = self
            .view
            .steps()
            .any(|(_, step)| matches!(step.phase, StepPhase::Waiting { signal: Some(_), .. }));
        if self.signals > 20 && !wanted {
            return self.pass_time();
        }
        self.signals += 1;
        let waiting = self.view.steps().filter(|(_, step)| {
            matches!(&step.phase, StepPhase::Waiting { signal: Some(name), .. } if *name == "news")
        });
        let waiting: Vec<Path> = waiting.map(|(path, _)| path.clone()).collect();
        let (name, to) = match waiting.is_empty() || self.random.chance(50) {
            true => ("go", None),
            false => ("news", Some(self.random.pick(&waiting).clone())),
        };
        // A few arrive twice.
        let id = if self.random.chance(15) { self.signals.saturating_sub(1) } else { self.signals };
        let inner = Value::map([("v", Value::Int(self.random.below(2) as i64))]);
        let value = Value::map([("k", inner)]);
        let (id, name, by) = (format!("signal{id}").into(), Arc::from(name), Arc::from("eve"));
        self.offer(Input::Signal { id, name, by, value, to });
    }

    /// Moves to the next deadline, past it, or only a little; sometimes back.
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

    /// Sometimes reopens a failed run.
    fn reopen(&mut self) -> bool {
        if self.reopened >= 2 || self.calm || !self.random.chance(50) {
            return false;
        }
        self.reopened += 1;
        let before = self.journal.len();
        self.offer(Input::Reopen { inputs: Value::map::<&str>([]), by: "bob".into() });
        let opened = self.journal.len() > before;
        if opened {
            self.tally.count("fault", "reopen");
        }
        opened && self.run.outcome().is_none()
    }

    // Guarantees

    fn check_always(&self) {
        let replayed = Run::replay(run_id(), self.program.clone(), &self.journal).expect(REPLAYS);
        assert!(self.run == replayed, "the live run differs from its replay");
        let rebuilt = View::of(self.program.clone(), &self.journal).expect(REPLAYS);
        assert!(self.view == rebuilt, "the folded view differs from the rebuilt one");
        let owed = self.owed();
        for key in &owed {
            assert!(!self.accepted.contains(key), "{key} has reported and is still outstanding");
        }
        for path in self.run.timers() {
            let settled =
                self.view.step(path).is_some_and(|step| matches!(step.phase, StepPhase::Settled(_)));
            assert!(!settled, "a timer is set at {path}, which has settled");
        }
        self.check_oracle(&owed);
    }

    /// The independent oracle must reach the same state.
    fn check_oracle(&self, owed: &BTreeSet<JobKey>) {
        let Some(oracle) = &self.oracle else { return };
        let theirs = oracle.jobs();
        assert_eq!(*owed, theirs, "the run waits for jobs (left) other than expected (right)");
        let settled = oracle.settled();
        for (path, step) in self.view.steps() {
            let ours = match step.phase {
                StepPhase::Settled(outcome) => Some(outcome),
                _ => None,
            };
            let (ours, theirs) = (ours.map(summary), settled.get(path).map(summary));
            assert_eq!(ours, theirs, "{path}: found (left), expected (right)");
        }
        let (ours, theirs) = (self.run.outcome().map(summary), oracle.outcome().map(summary));
        assert_eq!(ours, theirs, "the run ended as (left), expected (right)");
    }

    /// Nothing starts under a settled path, and no attempt starts while another one is running, unless that one was
    /// aborted and its grace period is over.
    fn check_dispatch(&self, key: &JobKey) {
        let step = self.view.step(&key.path).expect("a dispatched step is in the view");
        let settled = matches!(step.phase, StepPhase::Settled(_));
        assert!(!settled, "{key} was dispatched after its step had settled");
        let twice =
            self.working.iter().any(|(other, aborted)| other.path == key.path && other != key && !aborted);
        assert!(!twice, "{key} was dispatched while another attempt of it runs");
    }

    fn check_refusal(&self, input: &Input, refused: &Refused) {
        let expected = match (input, refused) {
            (
                Input::Reported { job, .. } | Input::Lost { job, .. } | Input::Noted { job, .. },
                Refused::StaleJob(stale),
            ) => {
                assert_eq!(job, stale);
                true
            }
            (
                Input::Decide { decision, .. },
                Refused::NotAnApprover { by, .. } | Refused::OwnRun { by, .. },
            ) => *by == decision.by,
            (
                Input::Decide { .. },
                Refused::NoGate(_)
                | Refused::AlreadyDecided { .. }
                | Refused::Finished
                | Refused::NoSuchOption { .. },
            ) => true,
            (Input::Signal { .. }, Refused::NoWait(_) | Refused::Finished) => true,
            (Input::Reopen { .. }, Refused::NotFailed | Refused::Undoing) => true,
            (Input::Cancel { .. }, Refused::NothingThere(_) | Refused::Finished) => true,
            (Input::Pause { .. } | Input::Resume { .. } | Input::Change { .. }, Refused::Finished) => true,
            _ => false,
        };
        assert!(expected, "{input:?} was refused: {refused}");
    }

    fn check_end(&self) {
        let owed = self.run.outstanding();
        assert!(owed.is_empty(), "the run ended with outstanding jobs {owed:?}");
        assert_eq!(self.run.next_deadline(), None, "a timer survived the end of the run");
        for (path, step) in self.view.steps() {
            let over = matches!(step.phase, StepPhase::Settled(_) | StepPhase::Dormant);
            assert!(over, "{path} has not settled: {:?}", step.phase);
        }
        let reopened = self.journal.iter().any(|event| matches!(event.what, What::Reopened { .. }));
        if !reopened {
            let mut seen = BTreeSet::new();
            for event in &self.journal {
                if let What::Settled(settled) = &event.what {
                    assert!(seen.insert(&settled.path), "{} settled twice", settled.path);
                }
            }
        }
    }

    /// Replays the same inputs from every point of the journal, and expects the same end.
    pub fn check_prefixes(&self) {
        for (cut, taken) in self.taken.iter().enumerate() {
            let events = &self.journal[..taken.journal];
            let mut run = Run::replay(run_id(), self.program.clone(), events).expect(REPLAYS);
            for later in &self.taken[cut + 1..] {
                let handled = match later.quiet {
                    true => run.record(later.now, later.input.clone()),
                    false => run.handle(later.now, later.input.clone()),
                };
                assert!(handled.is_ok(), "after a crash {:?} was refused: {:?}", later.input, handled.err());
            }
            assert!(run == self.run, "continuing from event {} led to another end", taken.journal);
        }
    }

    /// The outcome of every step, to compare runs with different orders.
    pub fn end(&self) -> BTreeMap<Path, String> {
        let settled = self.view.steps().filter_map(|(path, step)| match &step.phase {
            StepPhase::Settled(outcome) => Some((path.clone(), summary(outcome))),
            _ => None,
        });
        settled.chain([(Path::default(), self.run.outcome().map(summary).unwrap_or_default())]).collect()
    }
}

pub fn run_id() -> RunId {
    RunId::new("sim").expect("a good name")
}

/// An outcome without its messages.
pub fn summary(outcome: &Outcome) -> String {
    let json = |value: &Value| value.to_json_text().unwrap_or_default();
    match outcome {
        Outcome::Done(value) => format!("done {}", json(value)),
        Outcome::Continue(value) => format!("continue {}", json(value)),
        Outcome::Failed(failure) => format!("failed {}", failure.class),
        Outcome::Skipped(skip) => {
            format!("skipped {} {}", skip.reason.word(), skip.because_of.as_deref().unwrap_or_default())
        }
        Outcome::Cancelled(_) => "cancelled".into(),
    }
}

fn shown(input: &Input) -> String {
    format!("{input:?}").chars().take(LINE).collect()
}

fn event_line(event: &Event) -> String {
    serde_json::to_string(event).unwrap_or_default().chars().take(LINE).collect()
}

/// Lines of a log are not longer.
const LINE: usize = 200;
