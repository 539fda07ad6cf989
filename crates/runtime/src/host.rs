//! What the jobs of a run are done with: executors, a script in place of some of them, and the caller's surroundings.

use crate::config::{Config, Limits};
use std::ffi::OsStr;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, View, Work, class};
use windlass_executors::{
    Answer, Asker, Assistants, BoxFuture, Builtins, Children, Context, Environment, Executor, Script, Shell,
    Tasks,
};
use windlass_ir::Value;

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
        }
    }

    /// Leaves everything that is no command of the workflow or of this machine to somebody else.
    #[must_use]
    pub fn with_others(self, others: impl Executor + 'static) -> Self {
        Self { others: Arc::new(others), assistants: None, builtins: None, ..self }
    }

    /// Takes over what a `windlass.toml` says.
    #[must_use]
    pub fn with_config(self, config: Config) -> Self {
        let folder = config.folder().to_owned();
        let tasks = Tasks::new(&folder, config.tasks);
        Self { tasks, config: Some(config.file), limits: config.limits, ..self }
    }

    /// Where the steps of a dialect run, if its own program would run them elsewhere than where it was started.
    pub(crate) fn in_project_of(self, dialect: &str) -> Self {
        let named = self.environment.variables.get(OsStr::new("SPECIFY_INIT_DIR"));
        match named.filter(|root| dialect == "speckit" && !root.is_empty()) {
            Some(root) => {
                let directory = self.environment.directory.join(root);
                self.in_directory(directory)
            }
            None => self,
        }
    }

    /// Where a run was started its steps run, whoever goes on with it from wherever.
    pub(crate) fn where_started(self, view: &View) -> Self {
        match view.about.get("directory").and_then(Value::as_str) {
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

    /// What the script answers. It comes first where it mentions a step; what it does not mention and nobody else does has no
    /// answer at all.
    pub(crate) fn answer(&self, job: &Job, asker: Asker<'_>) -> Option<Answer> {
        let script = self.script.as_ref()?;
        match self.tasks.does(&job.work.work) {
            true => script.entry(job, asker),
            false if !self.runs_commands && matches!(job.work.work, Work::Shell { .. }) => {
                Some(script.entry_or_none(job, asker))
            }
            false => script.answer(job, asker),
        }
    }

    /// Whether a job is done by a process of this machine.
    pub(crate) fn starts_process(&self, job: &Job) -> bool {
        let work = &job.work.work;
        match work {
            Work::Shell { .. } => true,
            Work::Assistant(_) => self.assistants.is_some(),
            Work::Builtin { .. } => self.builtins.is_some() && Builtins::does(work),
            Work::Task { .. } => self.tasks.does(work),
            Work::Agent { .. }
            | Work::Tool { .. }
            | Work::Http(_)
            | Work::Call { .. }
            | Work::Notify { .. } => false,
        }
    }

    pub(crate) fn executor(&self, job: &Job) -> Arc<dyn Executor> {
        let work = &job.work.work;
        match (work, &self.assistants, &self.builtins) {
            (Work::Shell { .. }, _, _) => self.shell.clone(),
            (Work::Assistant(_), Some(assistants), _) => Arc::new(assistants.clone()),
            (Work::Builtin { .. }, _, Some(builtins)) if Builtins::does(work) => Arc::new(builtins.clone()),
            (Work::Task { .. }, _, _) if self.tasks.does(work) => Arc::new(self.tasks.clone()),
            (
                Work::Agent { .. }
                | Work::Tool { .. }
                | Work::Task { .. }
                | Work::Http(_)
                | Work::Call { .. }
                | Work::Assistant(_)
                | Work::Builtin { .. }
                | Work::Notify { .. },
                _,
                _,
            ) => self.others.clone(),
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
        Box::pin(async move { Outcome::Failed(Failure::new(class::NO_SCRIPTED_ANSWER, message)) })
    }
}
