//! The runs that a run has called, as its driver sees them: who is followed, who rests, who is ended.

use super::{CallState, Calling, Driver};
use crate::calls::{self, Caller};
use crate::report;
use tokio_util::sync::CancellationToken;
use windlass_engine::{CHILD, Effect, Job, JobKey, RunId, Work};
use windlass_ir::Value;

impl Driver {
    /// A run that was called waits for people; unless something has happened to it meanwhile.
    pub(super) fn rest(&mut self, run: &RunId) {
        let Some(call) = self.calls.get_mut(run) else { return };
        match call.state {
            CallState::Stirred => self.call_again(run),
            CallState::Followed | CallState::Rests => call.state = CallState::Rests,
        }
    }

    /// Something has happened to a run that this one waits for.
    pub(super) fn stirred(&mut self, run: &RunId) {
        let Some(call) = self.calls.get_mut(run) else { return };
        match call.state {
            CallState::Followed | CallState::Stirred => call.state = CallState::Stirred,
            CallState::Rests => self.call_again(run),
        }
    }

    pub(super) fn call_again(&mut self, run: &RunId) {
        if self.only_record {
            return;
        }
        let job = self.calls.remove(run).and_then(|call| self.run.dispatched(&call.job));
        if let Some(job) = job {
            self.dispatch(job);
        }
    }

    /// The run of a call: a new one for each attempt, but one that goes on after a failure goes on with the run that it had.
    pub(super) fn run_of_call(&self, job: &Job) -> RunId {
        let before = job.notes.get(CHILD).and_then(Value::as_str).and_then(RunId::written);
        before.filter(|_| self.run.is_reopened(&job.key)).unwrap_or_else(|| calls::run_of(&job.key))
    }

    pub(super) fn caller(&self, job: &JobKey) -> Caller {
        let parents = self.run.parents().iter().cloned().chain([self.run.id().clone()]).collect();
        let file = crate::engine::file_of(&self.view);
        let folder = file.and_then(|file| file.parent().map(Into::into));
        let folder = folder.unwrap_or_else(|| self.host.environment.directory.clone());
        Caller {
            folder,
            dialect: report::Dialect::of(&self.view),
            parents,
            budgets: self.run.budgets().collect(),
            by: self.run.by().cloned(),
            reopened: self.run.is_reopened(job),
            host: self.host.clone(),
            clock: self.clock,
            patience: self.patience,
        }
    }

    /// Goes on with the calls that were made before the run was taken up.
    pub fn call_on(&mut self) {
        for effect in self.run.outstanding() {
            match effect {
                Effect::Dispatch(job) if self.calls_itself(&job) && !self.is_at_work(&job.key) => {
                    self.dispatch(*job);
                }
                Effect::Abort(key) if !self.is_at_work(&key) => self.end_called(&key),
                _ => {}
            }
        }
    }

    /// Whether a job is a call that no script answers for.
    pub fn calls_itself(&self, job: &Job) -> bool {
        let calls = matches!(job.work.work, Work::Call { .. }) && !job.key.path.is_hook();
        calls && self.desk.reads() && self.scripted(job).is_none()
    }

    /// Ends the run of a call that rests, or that was left.
    pub(super) fn end_called(&mut self, key: &JobKey) {
        let Some(run) = self.called_run(key) else { return };
        let call = Calling { job: key.clone(), state: CallState::Followed };
        self.calls.insert(run.clone(), call);
        let task = self.work.spawn(calls::end(self.desk.engine(), run, self.caller(key)));
        self.keys.insert(task.id(), key.clone());
        self.jobs.insert(key.clone(), CancellationToken::new());
    }

    /// The run that a call has started, as far as is known.
    pub fn called_run(&self, key: &JobKey) -> Option<RunId> {
        self.view.steps.get(&key.path)?.child.clone()
    }
}
