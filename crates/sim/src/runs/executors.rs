//! Executors: jobs in the process, which die with it; jobs elsewhere, which survive; and calls of other workflows.

use super::process::For;
use super::tally::Fault;
use super::workflows::{named, program};
use super::world::{SECOND, Spec, World, log};
use std::collections::{BTreeMap, BTreeSet};
use windlass_engine::{
    Begin, CHILD, Failure, Input, Job, JobKey, Lineage, Mail, Outcome, Path, Refused, Reply, Resume,
    RunBudget, RunId, Start, Work,
};
use windlass_ir::workflow::CallMode;
use windlass_ir::{Duration, Value};

#[derive(Debug, Default)]
pub struct Executors {
    pub jobs: BTreeMap<JobKey, Held>,
    /// Every job that was ever started.
    pub started: BTreeSet<JobKey>,
}

/// A job of an executor.
#[derive(Debug)]
pub struct Held {
    pub job: Job,
    pub stage: Stage,
    /// It was aborted.
    pub aborted: bool,
    /// Its report was sent, perhaps by an earlier process.
    pub reported: bool,
    /// It ignores aborts.
    deaf: bool,
    /// The callers and budgets of a called run.
    family: Option<(Vec<RunId>, Vec<RunBudget>)>,
    /// The call is repeated because someone reopened the run.
    reopens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Here,
    /// It outlives this process, which does not know that yet.
    Handed,
    Elsewhere,
    /// Its report is pending.
    Reporting,
    /// A call waits until its note is durable.
    Noting,
    /// A call waits until its run has begun.
    Beginning,
    /// A call waits for the result of its run.
    Calling,
    /// The process asks whether this job is still running. It is if something elsewhere has it.
    Asked {
        elsewhere: bool,
    },
}

impl Held {
    pub fn is_call(&self) -> bool {
        is_call(&self.job)
    }
}

impl Executors {
    pub fn crash(&mut self) {
        let survives = |stage: Stage| match stage {
            Stage::Handed | Stage::Elsewhere | Stage::Reporting | Stage::Asked { elsewhere: true } => true,
            Stage::Here
            | Stage::Noting
            | Stage::Beginning
            | Stage::Calling
            | Stage::Asked { elsewhere: false } => false,
        };
        self.jobs.retain(|_, held| survives(held.stage) && !held.is_call());
        self.jobs.values_mut().for_each(|held| held.stage = Stage::Elsewhere);
    }

    /// The jobs of this process that stop when it shuts down.
    pub fn end_here(&mut self) -> Vec<JobKey> {
        let here =
            self.jobs.iter().filter(|(_, held)| held.stage == Stage::Here && held.aborted && !held.deaf);
        here.map(|(job, _)| job.clone()).collect()
    }
}

/// The run of a call: the same for all deliveries of an attempt.
fn called_by(job: &JobKey) -> RunId {
    let step = job.path.segments().last().map_or("", |segment| &segment.name);
    RunId::new(&format!("{}.{step}-{}", job.run, job.attempt)).expect("a valid id")
}

fn is_detached(job: &Job) -> bool {
    matches!(job.work.work, Work::Call { mode: CallMode::Detached, .. })
}

fn is_call(job: &Job) -> bool {
    matches!(job.work.work, Work::Call { .. })
}

impl World {
    pub fn start(&mut self, job: Job) {
        log!(self, "start {}", job.key);
        self.check_start(&job);
        self.tally.jobs += 1;
        let run = job.key.run.clone();
        if self.specs[&run].is_virtual && !is_call(&job) {
            let outcome = self.outcome();
            let at = self.runs.time_of(&run, self.time.now()).unwrap_or_else(|| self.last_at(&run));
            let at = at.plus(Duration(self.random.below(90 * SECOND as usize) as u64));
            let report = Mail::Input(Input::Reported { job: job.key, outcome });
            return self.runs.send_at(&run, at, report, None);
        }
        let far = matches!(&job.work.work, Work::Task { task, .. } if &**task == "far");
        let stage = match (is_call(&job), far) {
            (true, _) => Stage::Noting,
            (false, true) => Stage::Handed,
            (false, false) => Stage::Here,
        };
        let family = is_call(&job).then(|| {
            let caller = self.replayed(&run);
            (caller.parents().iter().cloned().chain([run.clone()]).collect(), caller.budgets().collect())
        });
        let reopens = is_call(&job) && self.replayed(&run).is_reopened(&job.key);
        let key = job.key.clone();
        let deaf = !self.calm && self.random.chance(5);
        self.executors
            .jobs
            .insert(key.clone(), Held { job, stage, aborted: false, reported: false, deaf, family, reopens });
        if stage == Stage::Noting {
            let value = Value::text(called_by(&key).as_str());
            let note = Input::Noted { job: key.clone(), key: CHILD.into(), value };
            self.send(&run, Mail::Input(note), Some(For::Noted(key)));
        }
    }

    /// Starts or continues the called run after the note about it is durable.
    pub fn noted(&mut self, job: &JobKey, reply: &Reply) {
        let Some(held) = self.executors.jobs.get_mut(job) else { return };
        if *reply != Reply::Done {
            self.executors.jobs.remove(job);
            return;
        }
        if held.aborted {
            return self.report(job, Outcome::Cancelled("told to stop".into()));
        }
        held.stage = Stage::Beginning;
        let child = called_by(job);
        match self.store.has(&child) {
            true => self.continue_call(job),
            false => self.begin_call(job, &child),
        }
    }

    fn begin_call(&mut self, job: &JobKey, child: &RunId) {
        let held = &self.executors.jobs[job];
        let Work::Call { workflow, lineage, .. } = &held.job.work.work else { return };
        let workflow = workflow.as_str().and_then(named).expect("a known workflow");
        let (parents, budgets) = match &held.family {
            Some(family) if !is_detached(&held.job) => family.clone(),
            Some(_) | None => (Vec::new(), Vec::new()),
        };
        let Spec { is_virtual, is_patient, .. } = self.specs[&job.run];
        let lineage = lineage.clone();
        let spec = Spec { workflow, is_virtual, is_patient, parents: parents.clone() };
        self.tally.called += 1;
        let begin = self.begin_of(child, spec, |start| Start { parents, budgets, lineage, ..start });
        self.send(child, Mail::Begin(Box::new(begin)), Some(For::Begun(job.clone())));
    }

    /// Starts a run that may already exist.
    pub fn begin_of(&mut self, run: &RunId, spec: Spec, more: impl FnOnce(Start) -> Start) -> Begin {
        let inputs = Value::map([("k", Value::text(*self.random.pick(&["a", "b"])))]);
        let start = more(Start { seed: 1, lineage: Lineage::default(), ..Start::with(inputs) });
        let execution = self.execution(&spec, self.time.now().wall);
        let program = program(spec.workflow).clone();
        self.specs.insert(run.clone(), spec);
        Begin { run: run.clone(), program, start, execution, is_new: false, once: None }
    }

    fn continue_call(&mut self, job: &JobKey) {
        let reopens = self.executors.jobs.get(job).is_some_and(|held| held.reopens);
        let resume = Mail::Resume(Resume { wanted: None, reopens });
        self.send(&called_by(job), resume, Some(For::Begun(job.clone())));
    }

    /// Handles the reply to the start of a called run.
    pub fn begun(&mut self, job: &JobKey, reply: Reply) {
        let Some(held) = self.executors.jobs.get_mut(job) else { return };
        let aborted = held.aborted;
        match reply {
            Reply::Done if is_detached(&held.job) => {
                self.report(job, Outcome::Done(Value::map([("n", Value::Int(1))])));
            }
            Reply::Done => {
                held.stage = Stage::Calling;
                self.send(&job.run, Mail::Elsewhere { job: job.clone() }, None);
                self.tell_result(job);
                if aborted {
                    self.stop_call(job);
                }
            }
            Reply::Refused(Refused::AlreadyStarted) => self.continue_call(job),
            Reply::NoRun => {
                self.executors.jobs.remove(job);
                self.send(&job.run, Mail::Input(Input::Lost { job: job.clone(), started: true }), None);
            }
            other => {
                let failure = Failure::new("error", format!("the call failed: {other:?}"));
                self.report(job, Outcome::Failed(failure));
            }
        }
    }

    /// Reports the result of a called run that had already ended.
    fn tell_result(&mut self, job: &JobKey) {
        let child = called_by(job);
        if let Some((outcome, at)) = self.store.result(&child) {
            self.caller_may_catch_up(&child);
            self.executors.jobs.remove(job);
            self.send(&job.run, Mail::Ended { child, outcome, at }, None);
        }
    }

    /// A called run has a result, which the process reports to its caller.
    pub fn call_ended(&mut self, child: &RunId) {
        self.caller_may_catch_up(child);
        self.executors.jobs.retain(|job, held| held.stage != Stage::Calling || called_by(job) != *child);
    }

    fn stop_call(&mut self, job: &JobKey) {
        let cancel =
            Input::Cancel { path: Path::default(), why: "the caller stops".into(), by: "caller".into() };
        self.send(&called_by(job), Mail::Input(cancel), None);
    }

    pub fn adopt(&mut self, job: Job) {
        log!(self, "adopt {}", job.key);
        self.check_served(&job.key);
        let key = job.key.clone();
        match self.executors.jobs.get_mut(&key) {
            Some(held) => held.stage = Stage::Asked { elsewhere: true },
            None => {
                let stage = Stage::Asked { elsewhere: false };
                let held = Held {
                    job,
                    stage,
                    aborted: false,
                    reported: false,
                    deaf: false,
                    family: None,
                    reopens: false,
                };
                self.executors.jobs.insert(key, held);
            }
        }
    }

    /// Replies whether a job of an earlier process is still running.
    pub fn answer_adoption(&mut self, job: &JobKey) {
        let Some(held) = self.executors.jobs.get_mut(job) else { return };
        let noted = held.job.notes.contains_key(CHILD);
        let elsewhere = held.stage == (Stage::Asked { elsewhere: true });
        let mail = Mail::Elsewhere { job: job.clone() };
        if is_call(&held.job) && noted && self.store.has(&called_by(job)) {
            self.tally.adopted += 1;
            held.stage = Stage::Beginning;
            return self.continue_call(job);
        }
        if elsewhere && !is_call(&held.job) && !self.random.chance(10) {
            self.tally.adopted += 1;
            if let Some(held) = self.executors.jobs.get_mut(job) {
                held.stage = Stage::Elsewhere;
            }
            return self.send(&job.run, mail, None);
        }
        self.lose(job);
    }

    pub fn lose(&mut self, job: &JobKey) {
        self.executors.jobs.remove(job);
        self.tally.met(Fault::LostJob, self.runs.presence(&job.run));
        let started = self.random.chance(80);
        self.send(&job.run, Mail::Input(Input::Lost { job: job.clone(), started }), None);
    }

    pub fn abort(&mut self, job: &JobKey) {
        log!(self, "abort {job}");
        if let Some(held) = self.executors.jobs.get_mut(job) {
            held.aborted = true;
            if held.stage == Stage::Calling {
                self.stop_call(job);
            }
        }
    }

    pub fn recall(&mut self, job: &Job) {
        log!(self, "recall {}", job.key);
        if let Some(held) = self.executors.jobs.get_mut(&job.key) {
            held.aborted = true;
        }
        if is_call(job) {
            self.stop_call(&job.key);
            self.tell_result(&job.key);
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.random.below(12) {
            0 if !self.calm => Outcome::Failed(Failure::new("auth_failure", "no")),
            1 | 2 if !self.calm => Outcome::Failed(Failure::new("transient", "it broke")),
            _ => Outcome::Done(Value::map([("n", Value::Int(1)), ("ok", Value::Bool(true))])),
        }
    }

    /// Lets one of the jobs make progress.
    pub fn work(&mut self) {
        let jobs: Vec<JobKey> = self.executors.jobs.keys().cloned().collect();
        if !jobs.is_empty() {
            let job = self.random.pick(&jobs).clone();
            self.work_on(&job);
        }
    }

    pub fn work_on(&mut self, job: &JobKey) {
        let held = &self.executors.jobs[job];
        match held.stage {
            Stage::Here | Stage::Elsewhere => {}
            Stage::Handed => {
                self.executors.jobs.get_mut(job).expect("a job").stage = Stage::Elsewhere;
                return self.send(&job.run, Mail::Elsewhere { job: job.clone() }, None);
            }
            Stage::Asked { .. } => return self.answer_adoption(job),
            Stage::Reporting | Stage::Noting | Stage::Beginning | Stage::Calling => return,
        }
        if held.aborted && held.deaf {
            return;
        }
        if held.aborted {
            return self.report(job, Outcome::Cancelled("told to stop".into()));
        }
        match self.random.below(10) {
            0 if !self.calm => self.lose(job),
            1 => {
                let (key, value) = ("turn".into(), Value::Int(1));
                let note = Input::Noted { job: job.clone(), key, value };
                self.send(&job.run, Mail::Input(note), Some(For::Nothing));
            }
            2 if !self.calm => {}
            _ => {
                let outcome = self.outcome();
                self.report(job, outcome);
            }
        }
    }

    /// A report from elsewhere is kept until it is durable; one from here is lost with the process.
    fn report(&mut self, job: &JobKey, outcome: Outcome) {
        self.reported.push((job.clone(), outcome.clone()));
        let elsewhere = match self.executors.jobs.get_mut(job) {
            Some(held) if held.stage == Stage::Elsewhere => {
                (held.stage, held.reported) = (Stage::Reporting, true);
                true
            }
            _ => false,
        };
        if !elsewhere {
            self.executors.jobs.remove(job);
        }
        let report = Mail::Input(Input::Reported { job: job.clone(), outcome });
        self.send(&job.run, report, elsewhere.then(|| For::Report(job.clone())));
    }

    pub fn report_stopped(&mut self, job: JobKey) {
        self.executors.jobs.remove(&job);
        let outcome = Outcome::Cancelled("the process ends".into());
        self.send(&job.run.clone(), Mail::Input(Input::Reported { job, outcome }), None);
    }
}
