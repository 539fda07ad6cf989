//! What the jobs of a run are done with: executors, a script in place of some of them, and the caller's surroundings.

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
    /// For the tasks that a command of this machine does.
    pub tasks: Tasks,
    /// For command line agents and for builtins; without them they are left to the others.
    pub assistants: Option<Assistants>,
    pub builtins: Option<Builtins>,
    /// For everything else.
    pub others: Arc<dyn Executor>,
    pub script: Option<Arc<Script>>,
    /// Whether commands that the script does not mention are run.
    pub runs_commands: bool,
    pub environment: Arc<Environment>,
    /// The `windlass.toml` that the tasks and the limits are from.
    pub config: Option<PathBuf>,
    pub limits: Limits,
    /// The instant that the time of its runs starts at, if that is virtual.
    pub virtual_from: Option<Timestamp>,
    /// Whether virtual time also jumps over long waits for people.
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
            others: Arc::new(Nobody),
            script: None,
            runs_commands: true,
            environment: Arc::new(environment),
            config: None,
            limits: Limits::default(),
            virtual_from: None,
            patient: false,
        }
    }

    /// Leaves everything that is no command of the workflow or of this machine to somebody else.
    #[must_use]
    pub fn with_others(self, others: impl Executor + 'static) -> Self {
        Self { others: Arc::new(others), assistants: None, builtins: None, ..self }
    }

    /// Executes runs in this time. A virtual clock jumps over waits for people only if its follower waits for them too.
    #[must_use]
    pub(crate) fn in_time(self, clock: Clock, patience: Patience) -> Self {
        let virtual_from = match clock {
            Clock::Real => None,
            Clock::Virtual(from) => Some(from),
        };
        Self { virtual_from, patient: patience != Patience::Work, ..self }
    }

    /// Takes over what a `windlass.toml` says.
    #[must_use]
    pub fn with_config(self, config: Config) -> Self {
        let folder = config.folder().to_owned();
        let tasks = Tasks::new(&folder, config.tasks);
        Self { tasks, config: Some(config.file), limits: config.limits, ..self }
    }

    /// Runs steps where the dialect's own program would run them, if a variable says that this is elsewhere.
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

    /// Where a run was started its steps run, whoever goes on with it from wherever.
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

    /// Every process that is started is written down there.
    pub(crate) fn note_children(&mut self, children: &Arc<Children>) {
        self.shell = Arc::new(Shell { children: Some(children.clone()), ..Shell::default() });
        self.tasks.children = Some(children.clone());
        if let Some(assistants) = &mut self.assistants {
            assistants.children = Some(children.clone());
        }
        if let Some(builtins) = &mut self.builtins {
            builtins.children = Some(children.clone());
        }
    }

    /// What the mock file answers. It comes first for a step that it mentions; a step that it does not mention and no executor takes
    /// has no answer at all.
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

    /// Whether a job is done by a process of this machine.
    pub(crate) fn starts_process(&self, dialects: Dialects, run: &Run, job: &Job) -> bool {
        let work = &job.work.work;
        let taken = self.table().into_iter().flatten().find(|executor| executor.takes(work));
        let process = taken.is_some_and(|executor| executor.traits(work).process);
        process && self.mocked(dialects, run, job).is_none()
    }

    /// The executor for a job: the first of the table that takes it.
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

    /// The executors of this machine, in the order in which they are asked.
    fn table(&self) -> [Option<&dyn Executor>; 4] {
        let assistants = self.assistants.as_ref().map(|assistants| assistants as &dyn Executor);
        let builtins = self.builtins.as_ref().map(|builtins| builtins as &dyn Executor);
        [Some(&*self.shell), Some(&self.tasks), assistants, builtins]
    }
}

/// Stands where no executor was given.
struct Nobody;

impl Executor for Nobody {
    fn start(&self, job: Job, _: Context) -> BoxFuture<'_, Returned> {
        let nothing = match &job.work.work {
            Work::Agent { .. } => "nothing here does agents",
            Work::Tool { .. } => "nothing here does tools",
            Work::Task { .. } => "nothing here does tasks",
            Work::Shell { .. } => "nothing here does commands",
            Work::Http(_) => "nothing here sends requests",
            Work::Call { .. } => "nothing here reads other workflows",
            Work::Assistant(_) => "nothing here asks assistants",
            Work::Builtin { .. } => "nothing here does builtins",
            Work::Notify { .. } => "nothing here notifies anybody",
        };
        let command = match &job.work.work {
            Work::Task { task, .. } => format!(", or name a command for the task `{task}` in windlass.toml"),
            Work::Agent { .. }
            | Work::Tool { .. }
            | Work::Shell { .. }
            | Work::Http(_)
            | Work::Call { .. }
            | Work::Assistant(_)
            | Work::Builtin { .. }
            | Work::Notify { .. } => String::new(),
        };
        let message = format!("{nothing}: answer for `{}` with a script{command}", job.step);
        Box::pin(async move { Outcome::Failed(Failure::new(class::NO_SCRIPTED_ANSWER, message)).into() })
    }
}
