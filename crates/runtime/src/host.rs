//! How the jobs of a run are executed: the executors, mock responses in place of some of them, and the environment.

use crate::calls::Call;
use crate::clock::Clock;
use crate::config::{Config, Limits};
use crate::engine::Engine;
use crate::ids::{self, Name, Steps as _};
use crate::mock::Mock;
use crate::scheduler::Patience;
use std::ffi::OsStr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, Run, Timestamp, Work, class};
use windlass_executors::{
    Answer, Asker, Assistants, BoxFuture, Builtins, Children, Context, Environment, Executor, Returned,
    Script, Shell, Tasks,
};
use windlass_ir::Value;
use windlass_ir::dialect::{Dialect, Dialects};

#[derive(Clone)]
pub struct Host {
    pub shell: Arc<dyn Executor>,
    /// For tasks that have a command in `windlass.toml`.
    pub tasks: Tasks,
    /// For command-line agents and for builtins. Without them, `others` takes this work.
    pub assistants: Option<Assistants>,
    pub builtins: Option<Builtins>,
    /// For all other work.
    pub others: Arc<dyn Executor>,
    pub script: Option<Arc<Script>>,
    /// Whether to run commands that the mock file does not mention.
    pub runs_commands: bool,
    pub environment: Arc<Environment>,
    /// The `windlass.toml` of the tasks and the limits.
    pub config: Option<PathBuf>,
    pub limits: Limits,
    /// The start of virtual time, if its runs use a virtual clock.
    pub virtual_from: Option<Timestamp>,
    /// Whether virtual time also skips long waits for people.
    pub patient: bool,
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
            tasks: Tasks::default(),
            assistants: Some(Assistants::default()),
            builtins: Some(Builtins::default()),
            others: Arc::new(NoExecutor),
            script: None,
            runs_commands: true,
            environment: Arc::new(environment),
            config: None,
            limits: Limits::default(),
            virtual_from: None,
            patient: false,
        }
    }

    /// Uses `others` for everything except commands of the workflow and tasks of this machine.
    #[must_use]
    pub fn with_others(self, others: impl Executor + 'static) -> Self {
        Self { others: Arc::new(others), assistants: None, builtins: None, ..self }
    }

    /// Sets the clock of its runs. A virtual clock skips waits for people only if the follower waits for them too.
    #[must_use]
    pub(crate) fn in_time(self, clock: Clock, patience: Patience) -> Self {
        let virtual_from = match clock {
            Clock::Real => None,
            Clock::Virtual(from) => Some(from),
        };
        Self { virtual_from, patient: patience != Patience::Work, ..self }
    }

    /// Applies a `windlass.toml`.
    #[must_use]
    pub fn with_config(self, config: Config) -> Self {
        let folder = config.folder().to_owned();
        let tasks = Tasks::new(&folder, config.tasks);
        Self { tasks, config: Some(config.file), limits: config.limits, ..self }
    }

    /// Runs steps in the directory that the dialect's environment variable names, if it is set.
    pub(crate) fn in_project_of(self, dialect: &dyn Dialect) -> Self {
        let variable = dialect.layout().directory_variable;
        let named = variable.and_then(|name| self.environment.variables.get(OsStr::new(name)));
        match named.filter(|root| !root.is_empty()) {
            Some(root) => {
                let directory = self.environment.directory.join(root);
                self.in_directory(directory)
            }
            None => self,
        }
    }

    /// Runs steps in the directory that the run was started in, wherever it continues.
    pub(crate) fn where_started(self, about: &Value) -> Self {
        match about.get("directory").and_then(Value::as_str) {
            Some(directory) if self.environment.directory != FilePath::new(directory) => {
                self.in_directory(directory.into())
            }
            Some(_) | None => self,
        }
    }

    fn in_directory(self, directory: PathBuf) -> Self {
        let variables = self.environment.variables.clone();
        Self { environment: Arc::new(Environment { variables, directory }), ..self }
    }

    /// Whether jobs are executed in the same way with the other host, if one engine has equipped both.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    fn identity(&self) -> impl PartialEq + '_ {
        let Self { shell, tasks, assistants, builtins, others, script, .. } = self;
        let Self { runs_commands, environment, config, limits, virtual_from, patient, .. } = self;
        let Tasks { commands, folder, grace, output_bytes_max, children: _ } = tasks;
        let executors = [shell, others].map(|executor| Arc::as_ptr(executor).cast::<()>());
        let graces = (
            grace,
            assistants.as_ref().map(|assistants| assistants.grace),
            builtins.as_ref().map(|builtins| builtins.grace),
        );
        let time = (virtual_from, patient);
        let script = (script.as_ref().map(Arc::as_ptr), runs_commands);
        (executors, script, limits, time, graces, commands, folder, output_bytes_max, config, environment)
    }

    /// Records every process that the executors start. `shell` is the executor of an equipped host.
    pub(crate) fn note_children(&mut self, children: &Arc<Children>, shell: Option<&Arc<dyn Executor>>) {
        let new = || Arc::new(Shell { children: Some(children.clone()), ..Shell::default() }) as Arc<_>;
        self.shell = shell.cloned().unwrap_or_else(new);
        self.tasks.children = Some(children.clone());
        if let Some(assistants) = &mut self.assistants {
            assistants.children = Some(children.clone());
        }
        if let Some(builtins) = &mut self.builtins {
            builtins.children = Some(children.clone());
        }
    }

    /// The mock response for a job. It takes precedence over executors. `None` if the mock file does not mention the step and an
    /// executor takes the job.
    pub(crate) fn mocked(&self, dialects: Dialects, run: &Run, job: &Job) -> Option<Answer> {
        let script = self.script.as_ref()?;
        let Name { id, plain } = ids::mocked(dialects, run, &job.key.path);
        let attempt = job.key.attempt + run.attempts_before(&job.key.path);
        let asker = Asker { id: &id, plain: &plain, attempt };
        match self.tasks.takes(&job.work.work) {
            true => script.entry(job, asker),
            false if !self.runs_commands && matches!(job.work.work, Work::Shell { .. }) => {
                Some(script.entry_or_none(job, asker))
            }
            false => script.answer(job, asker),
        }
    }

    /// Whether a job starts a process on this machine.
    pub(crate) fn starts_process(&self, dialects: Dialects, run: &Run, job: &Job) -> bool {
        let work = &job.work.work;
        let taken = self.table().into_iter().flatten().find(|executor| executor.takes(work));
        let process = taken.is_some_and(|executor| executor.traits(work).process);
        process && self.mocked(dialects, run, job).is_none()
    }

    /// The executor for a job: the first in the table that takes it.
    pub(crate) fn executor(&self, engine: &Arc<Engine>, run: &Run, job: &Job) -> Arc<dyn Executor> {
        let work = &job.work.work;
        if let Some(answer) = self.mocked(engine.dialects(), run, job).filter(|_| !job.key.path.is_hook()) {
            return Arc::new(Mock(answer));
        }
        if let Work::Call { .. } = work
            && engine.reads()
        {
            return Arc::new(Call::of(engine, self, run, job));
        }
        let taken = self.table().iter().position(|own| own.is_some_and(|executor| executor.takes(work)));
        match (taken, &self.assistants, &self.builtins) {
            (Some(0), _, _) => self.shell.clone(),
            (Some(1), _, _) => Arc::new(self.tasks.clone()),
            (Some(2), Some(assistants), _) => Arc::new(assistants.clone()),
            (Some(3), _, Some(builtins)) => Arc::new(builtins.clone()),
            (_, _, _) => self.others.clone(),
        }
    }

    /// The executors of this machine, in order of precedence.
    fn table(&self) -> [Option<&dyn Executor>; 4] {
        let assistants = self.assistants.as_ref().map(|assistants| assistants as &dyn Executor);
        let builtins = self.builtins.as_ref().map(|builtins| builtins as &dyn Executor);
        [Some(&*self.shell), Some(&self.tasks), assistants, builtins]
    }
}

/// Fails all jobs, because the host has no executor for them.
struct NoExecutor;

impl Executor for NoExecutor {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let kind = match &job.work.work {
            Work::Agent { .. } => "agent",
            Work::Tool { .. } => "tool",
            Work::Task { .. } => "task",
            Work::Shell { .. } => "command",
            Work::Http(_) => "HTTP request",
            Work::Call { .. } => "call",
            Work::Assistant(_) => "assistant",
            Work::Builtin { .. } => "builtin",
            Work::Notify { .. } => "notification",
        };
        let command = match &job.work.work {
            Work::Task { task, .. } => format!(", or name a command for the task `{task}` in windlass.toml"),
            _ => String::new(),
        };
        let step = &job.step;
        let message =
            format!("no executor for step `{step}` (type {kind}); mock it with `--mock FILE`{command}");
        Box::pin(async move { Outcome::Failed(Failure::new(class::NO_MOCK_RESPONSE, message)).into() })
    }
}
