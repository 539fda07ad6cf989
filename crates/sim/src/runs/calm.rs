//! The end of a simulation: faults stop, people and executors do their part, and every run must finish.

use super::executors::Stage;
use super::process::For;
use super::workflows::WORKFLOWS;
use super::world::{World, log};
use windlass_engine::{Choice, CoordinatorInput, GateDecision, Input, JobKey, Mail, Path, Resume, RunId};
use windlass_ir::Value;

/// The most rounds until every run has finished.
const ROUNDS: usize = 400;

impl World {
    /// Delivers everything that is pending.
    pub fn settle(&mut self) {
        for _ in 0..ROUNDS {
            self.carry_out_orders();
            self.hand_over();
            self.store.failing = 0;
            let now = self.time.now();
            if !self.store.is_idle() {
                self.store.write();
                self.answer();
            } else if !self.process.loads.is_empty() {
                self.finish_load(0);
            } else if let Some(job) = self.asked() {
                self.answer_adoption(&job);
            } else if self.runs.next_alarm(now).is_some_and(|alarm| alarm <= now.steady + 1) {
                // An overdue alarm is set to the next instant.
                self.time.passed += 1;
                self.tick();
            } else {
                return;
            }
        }
        panic!("the process is never quiet");
    }

    fn asked(&self) -> Option<JobKey> {
        let asked = |stage: Stage| matches!(stage, Stage::Asked { .. });
        let mut jobs = self.executors.jobs.iter().filter(|(job, _)| self.runs.serves(&job.run));
        jobs.find(|(_, held)| asked(held.stage)).map(|(job, _)| job.clone())
    }

    pub fn bring_to_an_end(&mut self) {
        log!(self, "-- calm --");
        self.calm = true;
        self.settle();
        self.check_quiet();
        if self.process.serves.take().is_some() {
            self.runs.serve_all();
            self.recover_all();
        }
        for _ in 0..ROUNDS {
            self.tally.steps += 1;
            self.settle();
            self.check_quiet();
            if self.open().is_empty() {
                return self.check_empty();
            }
            self.everyone_acts();
            self.settle();
            if !self.jump() {
                self.wait_for_the_next_timer();
            }
            self.check_limits();
        }
        let open = self.open();
        let asks: Vec<_> =
            open.iter().flat_map(|run| self.replayed(run).asks().collect::<Vec<_>>()).collect();
        panic!("never end: {open:?}, asking for {asks:?}, jobs {:?}", self.executors.jobs.keys());
    }

    /// The unfinished runs that can finish. A run that waits for an unusable one waits for a person.
    fn open(&self) -> Vec<RunId> {
        let waits = |run: &RunId| {
            let above = |child: &&RunId| self.specs[*child].parents.contains(run);
            self.damaged.contains(run) || self.damaged.iter().any(|damaged| above(&damaged))
        };
        self.unfinished().into_iter().filter(|run| !waits(run)).collect()
    }

    fn everyone_acts(&mut self) {
        let jobs: Vec<JobKey> = self.executors.jobs.keys().cloned().collect();
        for job in jobs {
            if self.executors.jobs.contains_key(&job) {
                self.work_on(&job);
                self.pump();
            }
        }
        for run in self.unfinished() {
            if self.random.chance(30) {
                self.help(&run);
                self.pump();
            }
        }
    }

    /// People do everything that a run may wait for.
    fn help(&mut self, run: &RunId) {
        let workflow = &WORKFLOWS[self.specs[run].workflow];
        let by = || "ann".into();
        let wanted = Some((by(), Value::map::<&str>([])));
        self.send(run, Mail::Resume(Resume { wanted, reopens: false }), Some(For::Nothing));
        for gate in workflow.gates {
            let path = Path::default().child((*gate).into(), None);
            let form = Value::map::<&str>([]);
            let decision = GateDecision { choice: Choice::Approve, by: by(), reason: None, form };
            let decide = Input::Decide { id: self.name("d").into(), path, decision };
            self.send(run, Mail::Input(decide), Some(For::Nothing));
        }
        for signal in workflow.signals {
            let (id, name, value) = (self.name("s").into(), (*signal).into(), Value::Int(1));
            let signal = Input::Signal { id, name, by: by(), value, to: None };
            self.send(run, Mail::Input(signal), Some(For::Nothing));
        }
    }

    fn wait_for_the_next_timer(&mut self) {
        let now = self.time.now();
        let alarm = self.runs.next_alarm(now).map(|alarm| alarm.saturating_sub(now.steady));
        let open = self.open().into_iter().filter(|run| self.is_in_use(run));
        let due = open.filter_map(|run| self.due(&run, &self.replayed(&run)));
        let due = due.map(|by| by.saturating_sub(self.time.passed)).min();
        if let Some(length) = alarm.into_iter().chain(due).min() {
            self.advance_time(length + 1);
        }
    }

    /// After every run has ended, no resource is held or waited for.
    fn check_empty(&mut self) {
        let tick = self.reply_to(For::Nothing);
        self.runs.tell(CoordinatorInput::Tick, Some(tick), self.time.now());
        self.settle();
        let coordinator = self.runs.coordinator();
        let good = |run: &RunId| {
            let called = self.damaged.iter().any(|damaged| self.specs[damaged].parents.contains(run));
            !self.damaged.contains(run) && !called
        };
        let holds: Vec<_> = coordinator.holds.keys().filter(|asker| good(&asker.run)).collect();
        assert!(holds.is_empty(), "held forever: {holds:?}");
        let waiting: Vec<_> = coordinator.waiting.keys().filter(|asker| good(&asker.run)).collect();
        assert!(waiting.is_empty(), "waiting forever: {waiting:?}");
        let key_owners: Vec<_> = coordinator.key_owners.keys().filter(|(run, _)| good(run)).collect();
        assert!(key_owners.is_empty(), "owns a key forever: {key_owners:?}");
        let subscribed: Vec<_> = coordinator.subscribed.keys().filter(|address| good(&address.run)).collect();
        assert!(subscribed.is_empty(), "subscribed forever: {subscribed:?}");
        let deliveries: Vec<_> = coordinator.deliveries.keys().filter(|address| good(&address.run)).collect();
        assert!(deliveries.is_empty(), "undelivered forever: {deliveries:?}");
        let reserved = coordinator.budgets.values().flat_map(|budget| budget.reserved.keys());
        let reserved: Vec<_> = reserved.filter(|asker| good(&asker.run)).collect();
        assert!(reserved.is_empty(), "reserved forever: {reserved:?}");
    }
}
