//! What is done around a run and cannot change it: commands are started, and what came of them is only said.

use super::Driver;
use crate::calls::Ended;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_engine::{Failure, Job, JobKey, Outcome, Work, class};
use windlass_executors::{Asker, Context, Output};

/// A command has so long; nobody waits longer for what changes nothing.
const TIME_MAX: Duration = Duration::from_secs(60);

impl Driver {
    /// Starts a hook, or finds out at once what comes of it.
    pub(super) fn begin_hook(&mut self, mut job: Job) {
        let moment = moment(&job.key);
        let asker = Asker { id: &moment, plain: &moment, attempt: 1 };
        let answer = self.host.script.as_ref().and_then(|script| script.entry(&job, asker));
        let outcome = match (answer, &job.work.work) {
            (Some(answer), _) => answer.outcome,
            (None, Work::Shell { .. }) => {
                job.step = moment.into();
                return self.start_hook(job);
            }
            (None, Work::Notify { .. }) => not_yet("notify"),
            (None, Work::Http(_)) => not_yet("webhook"),
            (
                None,
                Work::Agent { .. }
                | Work::Tool { .. }
                | Work::Task { .. }
                | Work::Call { .. }
                | Work::Assistant(_)
                | Work::Builtin { .. },
            ) => not_yet("this"),
        };
        self.hooks.push((job.key, outcome));
    }

    fn start_hook(&mut self, job: Job) {
        let abort = CancellationToken::new();
        let environment = self.host.environment.clone();
        let context = Context {
            abort: abort.clone(),
            overdue: CancellationToken::new(),
            // Whoever follows the run follows its steps.
            output: Output::nowhere(),
            notes: self.notes.clone(),
            secrets: environment.clone(),
            environment,
        };
        let (executor, key, stop) = (self.host.executor(&job), job.key.clone(), abort.clone());
        let task = self.work.spawn(async move {
            let mut work = executor.run(job, context);
            let outcome = tokio::select! {
                outcome = &mut work => outcome,
                () = tokio::time::sleep(TIME_MAX) => {
                    stop.cancel();
                    work.await
                }
            };
            Ended::Reported(outcome)
        });
        self.keys.insert(task.id(), key.clone());
        self.jobs.insert(key, abort);
    }

    /// Says what came of a hook, where that is worth a word.
    pub(super) fn hook_ended(&self, job: &JobKey, outcome: &Outcome) {
        let why = match outcome {
            Outcome::Failed(failure) => failure.message.clone(),
            Outcome::Cancelled(why) => why.clone(),
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => return,
        };
        self.notice(format!("the hook `{}` failed: {why}; the run stays as it is", moment(job)));
    }
}

fn not_yet(what: &str) -> Outcome {
    Outcome::Failed(Failure::new(class::ERROR, format!("{what} is not carried out yet")))
}

/// When it is done, in the word of the file.
fn moment(job: &JobKey) -> String {
    let name = job.path.segments().first().map(|segment| segment.name.to_string());
    name.map(|name| name.rsplit_once(':').map_or(name.clone(), |(_, moment)| moment.to_owned()))
        .unwrap_or_default()
}
