//! The jobs of this process: starts their executors, aborts them and takes their results.

use super::{Message, Scheduler};
use crate::artifacts::Artifacts;
use crate::clock::now;
use crate::ids;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use windlass_engine::{Failure, Input, Job, JobKey, Mail, Now, Outcome, RunId, Work, class};
use windlass_executors::{Asker, Context, Executor, Output, Returned};

/// The longest time that a hook may take. Hooks do not affect the result, so a run does not wait longer.
const HOOK_MAX: Duration = Duration::from_secs(60);

/// The result of the task of a job.
type Done = Result<(Id, Returned), JoinError>;

#[derive(Default)]
pub(super) struct Jobs {
    /// Dropping it ends everything that the jobs started.
    work: JoinSet<Returned>,
    keys: HashMap<Id, JobKey>,
    tokens: HashMap<JobKey, Tokens>,
    /// Some new jobs have not had a chance to run.
    started: bool,
}

struct Tokens {
    abort: CancellationToken,
    overdue: CancellationToken,
}

impl Jobs {
    pub async fn next(&mut self) -> Option<Done> {
        self.work.join_next_with_id().await
    }

    /// Whether jobs were started since the last call.
    pub fn take_started(&mut self) -> bool {
        std::mem::take(&mut self.started)
    }

    pub fn try_next(&mut self) -> Option<Done> {
        self.work.try_join_next_with_id()
    }

    /// Aborts the jobs of a run that left memory.
    pub fn forget(&mut self, run: &RunId) {
        let left: Vec<JobKey> = self.tokens.keys().filter(|job| job.run == *run).cloned().collect();
        left.iter().filter_map(|job| self.tokens.remove(job)).for_each(|tokens| tokens.abort.cancel());
    }
}

impl Scheduler {
    pub(super) fn start_job(&mut self, mut job: Job) {
        if job.key.path.is_hook() {
            return self.start_hook(job);
        }
        let Some((executor, context)) = self.prepare(&mut job) else { return self.lose(job.key, false) };
        let traits = executor.traits(&job.work.work);
        let artifacts = self.artifacts(&job);
        let key = job.key.clone();
        let work = async move {
            let returned = executor.start(job, context).await;
            kept(artifacts, returned).await
        };
        match traits.immediate {
            true => self.start_at_once(key, work),
            false => self.spawn(key, work),
        }
    }

    fn spawn(&mut self, key: JobKey, work: impl Future<Output = Returned> + Send + 'static) {
        let task = self.jobs.work.spawn(work);
        self.jobs.keys.insert(task.id(), key);
        self.jobs.started = true;
    }

    /// Polls an executor that responds immediately right here, so that responses keep the order of the jobs.
    fn start_at_once(&mut self, key: JobKey, work: impl Future<Output = Returned> + Send + 'static) {
        let mut work = Box::pin(work);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match work.as_mut().poll(&mut context) {
            std::task::Poll::Ready(returned) => self.take_returned(key, Some(returned), now()),
            std::task::Poll::Pending => self.spawn(key, work),
        }
    }

    /// The executor for a job, and its context.
    fn prepare(&mut self, job: &mut Job) -> Option<(Arc<dyn Executor>, Context)> {
        let engine = self.engine()?;
        let live = self.runs.live(&job.key.run)?;
        job.step = ids::name(engine.dialects(), live, &job.key.path).id.into();
        let hosted = self.hosts.get(&job.key.run)?;
        let executor = hosted.host.executor(&engine, live, job);
        let environment = hosted.host.environment.clone();
        let overdue = CancellationToken::new();
        let abort = overdue.child_token();
        let run = job.key.run.clone();
        let output = match executor.traits(&job.work.work).immediate {
            true => Output::nowhere(),
            false => {
                let watched = self.watched.entry(run.clone()).or_default();
                watched.output(|followers| {
                    let log = engine.logs().map(|logs| logs.writer(&run, false));
                    crate::printing::channel(followers, log)
                })
            }
        };
        let context = Context {
            abort: abort.clone(),
            overdue: overdue.clone(),
            output,
            notes: engine.notes.clone(),
            secrets: environment.clone(),
            environment,
        };
        self.jobs.tokens.insert(job.key.clone(), Tokens { abort, overdue });
        Some((executor, context))
    }

    fn artifacts(&self, job: &Job) -> Option<Artifacts> {
        let (engine, hosted) = (self.engine()?, self.hosts.get(&job.key.run)?);
        let directory = &hosted.host.environment.directory;
        let run = &job.key.run;
        Artifacts::apply_to(job).then(|| Artifacts::new(engine.artifacts.clone(), run.clone(), directory))
    }

    fn lose(&mut self, job: JobKey, started: bool) {
        self.runs.send(job.run.clone(), Mail::Input(Input::Lost { job, started }), None, now());
    }

    pub(super) fn returned(&mut self, done: Done) {
        let (id, returned) = match done {
            Ok((id, returned)) => (id, Some(returned)),
            // The executor panicked.
            Err(error) => (error.id(), None),
        };
        if let Some(key) = self.jobs.keys.remove(&id) {
            self.take_returned(key, returned, now());
        }
    }

    fn take_returned(&mut self, job: JobKey, returned: Option<Returned>, now: Now) {
        let run = job.run.clone();
        let hook = job.path.is_hook();
        match returned {
            Some(Returned::Reported(outcome)) => {
                self.jobs.tokens.remove(&job);
                if hook {
                    self.hook_ended(&job, &outcome);
                }
                self.runs.send(run.clone(), Mail::Input(Input::Reported { job, outcome }), None, now);
            }
            Some(Returned::Elsewhere) => {
                let aborted = self.jobs.tokens.remove(&job).is_some_and(|tokens| tokens.abort.is_cancelled());
                self.runs.send(run.clone(), Mail::Elsewhere { job: job.clone() }, None, now);
                if aborted && let Some(job) = self.runs.live(&run).and_then(|live| live.job_at(&job)) {
                    self.recall(job);
                }
            }
            Some(Returned::Later { after, outcome, used }) => {
                let at = self.runs.time_of(&run, now).unwrap_or(now.wall).plus(after);
                if let Some(used) = used {
                    let spent = Input::Spent { job: job.clone(), used };
                    self.runs.send_at(&run, at, Mail::Input(spent), None);
                }
                self.jobs.tokens.remove(&job);
                self.runs.send_at(&run, at, Mail::Input(Input::Reported { job, outcome }), None);
            }
            None => {
                self.jobs.tokens.remove(&job);
                self.runs.send(run.clone(), Mail::Input(Input::Lost { job, started: true }), None, now);
            }
        }
        if hook && let Some(outcome) = self.runs.live(&run).and_then(|live| live.outcome().cloned()) {
            self.concluded(&run, &outcome);
        }
    }

    pub(super) fn abort(&mut self, job: &JobKey, overdue: bool) {
        match self.jobs.tokens.get(job) {
            Some(tokens) if overdue => tokens.overdue.cancel(),
            Some(tokens) => tokens.abort.cancel(),
            // The job now outlives this process, so only its executor can end it.
            None => {
                if let Some(job) = self.runs.live(&job.run).and_then(|live| live.job_at(job)) {
                    self.recall(job);
                }
            }
        }
    }

    pub(super) fn recall(&mut self, job: Job) {
        let Some(engine) = self.engine() else { return };
        let Some((live, hosted)) = self.runs.live(&job.key.run).zip(self.hosts.get(&job.key.run)) else {
            return;
        };
        let executor = hosted.host.executor(&engine, live, &job);
        tokio::spawn(async move { executor.recall(job).await });
    }

    /// Asks the executor for a job of an earlier process. Most jobs die with their process and are lost.
    pub(super) fn adopt(&mut self, mut job: Job) {
        let Some((executor, context)) = self.prepare(&mut job) else { return self.lose(job.key, true) };
        let traits = executor.traits(&job.work.work);
        if !traits.outlives {
            self.jobs.tokens.remove(&job.key);
            let children = self.engine().and_then(|engine| engine.children().cloned());
            let started = children.is_none_or(|children| children.may_have_started(&job.key));
            return self.lose(job.key, !traits.process || started);
        }
        let (key, sender) = (job.key.clone(), self.sender.clone());
        tokio::spawn(async move {
            let found = executor.adopt(job, context).await;
            if let Some(sender) = sender.upgrade() {
                // If the scheduler has stopped, it asks again after the next start.
                let _ = sender.send(Message::Adopted { job: key, found });
            }
        });
    }

    pub(super) fn adopted(&mut self, job: JobKey, found: Option<Returned>, now: Now) {
        self.take_returned(job, found, now);
    }

    /// Starts a hook, or takes its mock response.
    fn start_hook(&mut self, mut job: Job) {
        let moment = moment(&job.key);
        let asker = Asker { id: &moment, plain: &moment, attempt: 1 };
        let script = self.hosts.get(&job.key.run).and_then(|hosted| hosted.host.script.clone());
        let answer = script.and_then(|script| script.entry(&job, asker));
        let outcome = match (answer, &job.work.work) {
            (Some(answer), _) => answer.outcome,
            (None, Work::Shell { .. }) => {
                let Some((executor, context)) = self.prepare(&mut job) else {
                    return self.lose(job.key, false);
                };
                job.step = moment.into();
                let (key, stop) = (job.key.clone(), context.abort.clone());
                return self.spawn(key, async move {
                    let mut work = executor.start(job, context);
                    tokio::select! {
                        returned = &mut work => returned,
                        () = tokio::time::sleep(HOOK_MAX) => {
                            stop.cancel();
                            work.await
                        }
                    }
                });
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
        self.take_returned(job.key, Some(Returned::Reported(outcome)), now());
    }

    /// Notifies followers if a hook failed.
    fn hook_ended(&self, job: &JobKey, outcome: &Outcome) {
        let why = match outcome {
            Outcome::Failed(failure) => &failure.message,
            Outcome::Cancelled(why) => why,
            Outcome::Done(_) | Outcome::Continue(_) | Outcome::Skipped(_) => return,
        };
        self.notice(&job.run, &format!("the hook `{}` failed: {why}; the run stays as it is", moment(job)));
    }
}

/// Stores the files that an outcome returns, off tokio's workers.
async fn kept(artifacts: Option<Artifacts>, returned: Returned) -> Returned {
    let Some(artifacts) = artifacts else { return returned };
    let keep = move |outcome| artifacts.keep(outcome, now().wall);
    match returned {
        Returned::Reported(outcome) => {
            let fallback = Outcome::Failed(Failure::new(class::LOST, "its files could not be stored"));
            tokio::task::spawn_blocking(move || keep(outcome)).await.unwrap_or(fallback).into()
        }
        // Mocked results must keep their order, so this stores the files without leaving the task.
        Returned::Later { after, outcome, used } => Returned::Later { after, outcome: keep(outcome), used },
        Returned::Elsewhere => Returned::Elsewhere,
    }
}

fn not_yet(what: &str) -> Outcome {
    Outcome::Failed(Failure::new(class::ERROR, format!("{what} is not carried out yet")))
}

/// The name of a hook in the file, such as `on_failure`.
fn moment(job: &JobKey) -> String {
    let name = job.path.segments().first().map(|segment| segment.name.to_string());
    name.map(|name| name.rsplit_once(':').map_or(name.clone(), |(_, moment)| moment.to_owned()))
        .unwrap_or_default()
}
