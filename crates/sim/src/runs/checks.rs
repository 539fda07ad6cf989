//! Invariants: after every step, with every order, and when nothing is pending.

use super::process::Seen;
use super::workflows::{CALLS, DAWN, LIMITS, SPENDS, WORKFLOWS};
use super::world::{SECOND, World};
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_engine::{Body, Effect, Event, Job, JobKey, Record, Run, RunId, Timestamp, What, budget_of};

impl World {
    /// Notes that the clock of a run has reached the time of its durable records.
    pub fn see(&mut self, run: &RunId) {
        if self.runs.serves(run) && !self.process.stopping && !self.process.recorded.contains(run) {
            let own = self.last_at(run);
            self.process.seen.insert(run.clone(), Seen { passed: self.time.passed, own });
        }
    }

    /// The clock of a caller may advance to the end of a called run.
    pub fn caller_may_catch_up(&mut self, child: &RunId) {
        let at = self.last_at(child).0 - self.time.passed as i64;
        if let Some(caller) = self.specs.get(child).and_then(|spec| spec.parents.last()) {
            let ahead = self.process.called.entry(caller.clone()).or_insert(at);
            *ahead = (*ahead).max(at);
        }
    }

    fn is_served(&self, run: &RunId) -> bool {
        match &self.process.serves {
            // A cancellation, even by the coordinator, executes an interrupted run to its end.
            Some(_) if self.process.interrupts => self.runs.serves(run),
            Some(serves) => serves.contains(run),
            None => true,
        }
    }

    /// No clock runs ahead of the machine, and no timer fires for a run that this process does not serve.
    pub fn check_record(&mut self, record: &Record) {
        let (Some(run), Body::Run(events)) = (&record.run, &record.body) else { return };
        let spec = &self.specs[run];
        let began = matches!(events.first(), Some(Event { what: What::Started { .. }, .. }));
        if began {
            let ahead = self.time.now().wall.0 - self.time.passed as i64;
            let before = self.process.ahead.entry(run.clone()).or_insert(ahead);
            *before = (*before).max(ahead);
        }
        let ahead = self.process.ahead.get(run).max(self.process.called.get(run));
        let latest = ahead.map(|ahead| Timestamp(self.time.passed as i64 + ahead));
        for event in events.iter() {
            let fired = matches!(event.what, What::TimerFired { .. });
            self.tally.timers += u64::from(fired);
            assert!(
                !fired || self.is_served(run),
                "a timer of {run} fired, which this process does not serve"
            );
            let (dawn, instant) = DAWN;
            let wakes = fired && event.what.path().is_some_and(|path| path.to_string() == dawn);
            let wall = self.time.now().wall.0;
            assert!(
                !wakes || spec.is_virtual || wall + SECOND as i64 >= instant,
                "{run} wakes {} µs before its time on the wall clock",
                instant - wall
            );
            let latest = latest.filter(|_| !spec.is_virtual);
            assert!(
                latest.is_none_or(|latest| event.at <= latest),
                "the clock of {run} is ahead by {} µs: {event:?}",
                latest.map_or(0, |latest| event.at.0 - latest.0)
            );
        }
    }

    /// Events are shown once they are durable, without gaps or repetitions.
    pub fn check_shown(&mut self, run: &RunId, seq: u64, events: &Arc<Vec<Event>>) {
        let shown = self.process.shown.entry(run.clone()).or_default();
        assert_eq!(seq, *shown + 1, "{run} shows events out of order");
        *shown += events.len() as u64;
        let durable = self.store.events(run).skip(seq as usize - 1);
        assert!(durable.take(events.len()).eq(events.iter()), "{run} shows events that are not durable");
    }

    /// A run is loaded when none of its records are pending, and at the start only if it has no result.
    pub fn check_load(&self, run: &RunId) {
        assert!(!self.store.is_writing(run), "{run} is read while records of it are being written");
        let ended = self.process.recovering && self.store.result(run).is_some();
        assert!(!ended, "{run} is loaded at the start, although it has a result");
    }

    pub fn check_served(&self, job: &JobKey) {
        assert!(self.is_served(&job.run), "{job} is executed, but this process does not serve its run");
    }

    /// A job starts once, after its record is durable, and later deliveries have higher numbers.
    pub fn check_start(&mut self, job: &Job) {
        let JobKey { run, path, attempt, delivery } = &job.key;
        self.check_served(&job.key);
        assert!(!self.process.stopping, "{} starts while the process shuts down", job.key);
        let scheduled = self.store.events(run).any(|event| {
            let What::Scheduled { path: at, attempt: number, delivery: time, .. } = &event.what else {
                return false;
            };
            at == path && number == attempt && time == delivery
        });
        assert!(scheduled, "{} starts before its record is durable", job.key);
        let first = JobKey { attempt: 0, delivery: 0, ..job.key.clone() };
        let same = |key: &&JobKey| key.run == *run && key.path == *path;
        let before = self.executors.started.range(first..).take_while(same).last();
        assert!(before.is_none_or(|before| *before < job.key), "{} starts after {before:?}", job.key);
        self.executors.started.insert(job.key.clone());
    }

    /// No limit is exceeded and no budget is overspent.
    pub fn check_limits(&self) {
        let coordinator = self.runs.coordinator();
        for (key, limit) in LIMITS {
            let holders = coordinator.slots.get(key).map_or(0, BTreeSet::len);
            assert!(holders <= limit, "{holders} hold {key}, and the limit is {limit}");
        }
        for (run, spec) in self.specs.iter().filter(|(_, spec)| WORKFLOWS[spec.workflow].name == SPENDS) {
            let budget = coordinator.budgets.get(&budget_of(run));
            let calls = budget.map_or(0, |budget| budget.committed().calls);
            assert!(calls <= CALLS, "{run} of {spec:?} has made {calls} calls");
        }
    }

    /// When nothing is pending, memory and journal agree, and no due timer is forgotten.
    pub fn check_quiet(&mut self) {
        self.tally.quiet += 1;
        assert!(self.process.replies.is_empty(), "never answered: {:?}", self.process.replies);
        let (replayed, ..) = self.store.coordinator_state();
        assert!(replayed.state() == self.runs.coordinator(), "the coordinator differs from its journal");
        for run in self.store.runs() {
            let replayed = self.replayed(&run);
            if let Some(live) = self.runs.live(&run) {
                assert!(*live == replayed, "{run} differs from its journal");
            }
            self.check_jobs(&run, &replayed);
            self.check_stopping(&run, &replayed);
            if self.is_in_use(&run) && replayed.outcome().is_none() {
                self.check_owed(&run, &replayed);
                if let Some(by) = self.due(&run, &replayed) {
                    assert!(
                        self.time.passed <= by,
                        "a timer of {run} ({:?}) is late by {} µs",
                        self.runs.presence(&run),
                        self.time.passed - by
                    );
                }
            }
        }
    }

    /// A process that interrupts unfinished runs still executes those that were canceled.
    fn check_stopping(&self, run: &RunId, replayed: &Run) {
        let interrupts = self.process.interrupts && !self.process.stopping && !self.damaged.contains(run);
        let left = interrupts && replayed.is_stopping() && !self.runs.serves(run);
        assert!(!left, "{run} was canceled, and a process that interrupts runs does not end it");
    }

    /// Whether this process executes the run and can read it.
    pub fn is_in_use(&self, run: &RunId) -> bool {
        self.runs.serves(run) && !self.damaged.contains(run)
    }

    /// The latest true time at which the next timer of a run must fire.
    pub fn due(&self, run: &RunId, replayed: &Run) -> Option<u64> {
        let Seen { passed, own } = self.process.seen.get(run).filter(|_| !self.specs[run].is_virtual)?;
        Some(passed + replayed.next_deadline()?.since(*own).0)
    }

    /// Every job that its run no longer waits for was aborted.
    fn check_jobs(&self, run: &RunId, replayed: &Run) {
        if !self.is_in_use(run) {
            return;
        }
        let outstanding = replayed.outstanding();
        let aborts =
            |job| outstanding.iter().any(|effect| matches!(effect, Effect::Abort(key) if key == job));
        let starts = |job: &JobKey| {
            outstanding.iter().any(|effect| matches!(effect, Effect::Dispatch(one) if one.key == *job))
        };
        let own = self.executors.jobs.iter().filter(|(job, _)| job.run == *run);
        for (job, held) in own.filter(|(_, held)| !held.reported) {
            let wanted = match held.is_call() {
                // A person may have reopened a called run after its caller received the result.
                true => !aborts(job) && !self.is_abandoned(job),
                false => starts(job) || job.path.is_hook(),
            };
            assert!(wanted || held.aborted, "{job} ({:?}) was not aborted", held.stage);
        }
    }

    fn is_abandoned(&self, job: &JobKey) -> bool {
        let is_start = |event: &&Event| match &event.what {
            What::Scheduled { path, attempt, delivery, .. } => {
                (path, attempt, delivery) == (&job.path, &job.attempt, &job.delivery)
            }
            _ => false,
        };
        let mut later = self.store.events(&job.run).skip_while(|event| !is_start(event));
        later.any(|event| {
            matches!(&event.what, What::Settled(settled) if settled.abandoned && settled.path == job.path)
        })
    }

    /// Everything that a run waits for is in progress.
    fn check_owed(&self, run: &RunId, replayed: &Run) {
        if self.specs[run].is_virtual {
            return;
        }
        for effect in replayed.outstanding() {
            let Some(key) = effect.job() else { continue };
            assert!(self.executors.jobs.contains_key(key), "{key} is outstanding, and no executor has it");
        }
        for asker in replayed.asks() {
            let waits = self.runs.coordinator().waiting.contains_key(&asker);
            assert!(waits, "{asker} waits for the coordinator, which does not know it");
        }
    }
}
