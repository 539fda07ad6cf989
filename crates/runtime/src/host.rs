//! What the jobs of a run are done with: executors, a script in place of some of them, and the caller's surroundings.

use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_executors::{BoxFuture, Context, Environment, Executor, Script, Shell};

#[derive(Clone)]
pub struct Host {
    pub shell: Arc<dyn Executor>,
    /// For agents, tools and tasks.
    pub others: Arc<dyn Executor>,
    pub script: Option<Arc<Script>>,
    pub environment: Arc<Environment>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("scripted", &self.script.is_some()).finish_non_exhaustive()
    }
}

impl Host {
    pub fn new(environment: Environment) -> Self {
        Self {
            shell: Arc::new(Shell::default()),
            others: Arc::new(Nobody),
            script: None,
            environment: Arc::new(environment),
        }
    }

    pub(crate) fn executor(&self, job: &Job) -> Arc<dyn Executor> {
        match job.work.work {
            Work::Shell { .. } => self.shell.clone(),
            Work::Agent { .. } | Work::Tool { .. } | Work::Task { .. } => self.others.clone(),
        }
    }
}

/// Stands where no executor was given.
struct Nobody;

impl Executor for Nobody {
    fn run(&self, job: Job, _: Context) -> BoxFuture<'_, Outcome> {
        let kind = match &job.work.work {
            Work::Agent { .. } => "agents",
            Work::Tool { .. } => "tools",
            Work::Task { .. } => "tasks",
            Work::Shell { .. } => "commands",
        };
        let message = format!("nothing here does {kind}: answer for `{}` with a script", job.step);
        Box::pin(async move { Outcome::Failed(Failure::new(class::ERROR, message)) })
    }
}
