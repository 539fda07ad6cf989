//! What the jobs of a run are done with: executors, a script in place of some of them, and the caller's surroundings.

use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_executors::{BoxFuture, Context, Environment, Executor, Script, Shell};

#[derive(Clone)]
pub struct Host {
    pub shell: Arc<dyn Executor>,
    /// For everything that is no command.
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
            Work::Agent { .. }
            | Work::Tool { .. }
            | Work::Task { .. }
            | Work::Http(_)
            | Work::Call { .. }
            | Work::Assistant(_)
            | Work::Builtin { .. }
            | Work::Notify { .. } => self.others.clone(),
        }
    }
}

/// Stands where no executor was given.
struct Nobody;

impl Executor for Nobody {
    fn run(&self, job: Job, _: Context) -> BoxFuture<'_, Outcome> {
        let nothing = match &job.work.work {
            Work::Agent { .. } => "nothing here does agents",
            Work::Tool { .. } => "nothing here does tools",
            Work::Task { .. } => "nothing here does tasks",
            Work::Shell { .. } => "nothing here does commands",
            Work::Http(_) => "nothing here sends requests",
            Work::Call { .. } => "nothing here starts other workflows yet",
            Work::Assistant(_) => "nothing here asks assistants",
            Work::Builtin { .. } => "nothing here does builtins",
            Work::Notify { .. } => "nothing here notifies anybody",
        };
        let message = format!("{nothing}: answer for `{}` with a script", job.step);
        Box::pin(async move { Outcome::Failed(Failure::new(class::ERROR, message)) })
    }
}
