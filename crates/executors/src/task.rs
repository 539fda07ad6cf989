//! `task`: the task of a worker, done by a command on this machine: JSON in, JSON out.

use crate::children::Children;
use crate::context::{Context, Environment};
use crate::executor::{BoxFuture, Executor, Returned, Traits};
use crate::process::{
    Ended, Exited, GRACE, METADATA, NOTES, Prepared, ROUND, ROUNDS_MAX, check_directory, found, stopped,
    surround,
};
use crate::scripted::{FAILURE_KEYS, failure};
use crate::secrets::Unsealer;
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::value::Map;

/// The maximum output of a step.
const STDOUT_BYTES_MAX: usize = 64 * 1024 * 1024;
const STDERR_BYTES_MAX: usize = 1024 * 1024;

/// The maximum of each stream that a failure shows.
const SHOWN_BYTES_MAX: usize = 16 * 1024;

/// The program for a task, started without a shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskCommand {
    /// A name is looked up in the caller's `PATH`; a path is relative to the folder of the tasks.
    pub program: String,
    pub arguments: Vec<String>,
}

/// Executes tasks with commands.
///
/// A command receives the input of its task as JSON on standard input, `null` if there is none, and prints its output
/// as JSON. It may print nothing, which is null; `{"continue": …}`, which requests another round; or `{"error": {…}}`
/// with `class`, `message` and `retry_after`, all optional. A nonzero exit code is a failure, of class `error` unless
/// an `error` was printed.
///
/// The rest of its group is ended together with the command.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// By the name of the task.
    pub commands: Arc<IndexMap<Arc<str>, TaskCommand>>,
    /// The working folder.
    pub folder: Arc<Path>,
    /// How long a command may take to end after SIGTERM before it is killed.
    pub grace: Duration,
    /// The limit of standard output; more is a failure.
    pub output_bytes_max: usize,
    /// Where process groups are recorded, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

/// None at all.
impl Default for Tasks {
    fn default() -> Self {
        Self::new(Path::new("."), IndexMap::new())
    }
}

impl Executor for Tasks {
    fn takes(&self, work: &Work) -> bool {
        self.does(work)
    }

    fn traits(&self, _: &Work) -> Traits {
        Traits { process: true, ..Traits::default() }
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed).into() })
    }
}

impl Tasks {
    pub fn new(folder: &Path, commands: IndexMap<Arc<str>, TaskCommand>) -> Self {
        Self {
            commands: Arc::new(commands),
            folder: folder.into(),
            grace: GRACE,
            output_bytes_max: STDOUT_BYTES_MAX,
            children: None,
        }
    }

    /// Whether there is a command for this.
    pub fn does(&self, work: &Work) -> bool {
        self.command_for(work).is_some()
    }

    fn command_for<'a>(&'a self, work: &Work) -> Option<&'a TaskCommand> {
        match work {
            Work::Task { task, .. } => self.commands.get(task),
            Work::Agent { .. }
            | Work::Shell { .. }
            | Work::Tool { .. }
            | Work::Http(_)
            | Work::Call { .. }
            | Work::Assistant(_)
            | Work::Builtin { .. }
            | Work::Notify { .. } => None,
        }
    }

    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let (Some(named), Work::Task { input, metadata, .. }) =
            (self.command_for(&job.work.work), &job.work.work)
        else {
            return Err(Failure::new(class::ERROR, format!("there is no command for `{}`", job.step)));
        };
        check_directory(&self.folder)?;
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut command = Command::new(self.find(&named.program, &context.environment)?);
        command.args(&named.arguments).current_dir(&self.folder);
        surround(&mut command, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let metadata =
            Value::map(metadata.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone()))));
        let notes = Value::map(job.notes.iter().map(|(key, value)| (key.clone(), value.clone())));
        command.env(METADATA, unsealer.json(&metadata)?).env(NOTES, unsealer.json(&notes)?);
        if let Some(round) = job.round {
            // From 1, like attempts, so that the last one is `rounds_max`.
            let number = round.number.saturating_add(1);
            command.env(ROUND, number.to_string()).env(ROUNDS_MAX, round.rounds_max.to_string());
        }
        let prepared = Prepared {
            command,
            stdin: Some((unsealer.json(input)? + "\n").into()),
            redactor: unsealer.redactor(&job.secrets),
            stdout_bytes_max: self.output_bytes_max,
            stderr_bytes_max: STDERR_BYTES_MAX,
            prints_data: true,
            may_leave: false,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "the notes or the metadata of the step are too large for an environment variable",
        };
        match prepared.run(job, context).await? {
            Ended::Stopped(printed) => Ok(stopped(context, || printed.outputs(-1, SHOWN_BYTES_MAX))),
            Ended::Exited(exited) => outcome(&exited),
        }
    }

    /// The file that a command starts. Resolved here, because the system would search in the wrong folder or `PATH`.
    fn find(&self, program: &str, environment: &Environment) -> Result<PathBuf, Failure> {
        if program.contains('/') {
            let file = self.folder.join(program);
            return match file.exists() {
                true => Ok(file),
                false => {
                    Err(Failure::new(class::NOT_RUNNABLE, format!("no such file: `{}`", file.display())))
                }
            };
        }
        found(program, &self.folder, environment).ok_or_else(|| {
            let message = format!(
                "there is no command `{program}` in the PATH of the user who started the run: install it, or \
                    write the path of a file"
            );
            Failure::new(class::NOT_RUNNABLE, message)
        })
    }
}

fn outcome(exited: &Exited) -> Result<Outcome, Failure> {
    let shown = |failure: Failure| {
        let outputs = exited.printed.outputs(exited.exit_code(), SHOWN_BYTES_MAX);
        Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure }
    };
    let broken = |problem: String| shown(Failure::new(class::CONTRACT_VIOLATION, problem));
    if !exited.status.success() {
        return match exited.printed.data().as_ref().ok().and_then(|data| data.get("error")) {
            Some(Value::Map(error)) => Err(said(error, exited).map_err(broken)?),
            Some(_) | None => Err(shown(exited.failure())),
        };
    }
    if exited.printed.stdout.is_blank() {
        return Ok(Outcome::Done(Value::Null));
    }
    let data = exited.printed.data().map_err(broken)?;
    match form(&data) {
        Some(("continue", value)) => Ok(Outcome::Continue(value.clone())),
        Some((_, Value::Map(error))) => Err(said(error, exited).map_err(broken)?),
        Some((_, other)) => Err(broken(format!(
            "`error` must be an object with `class`, `message` and `retry_after`, but it is {}",
            other.kind()
        ))),
        None => Ok(Outcome::Done(data)),
    }
}

/// An object with only `continue` or `error`. With more members it is an ordinary output, and so is one whose `error`
/// is null.
fn form(data: &Value) -> Option<(&str, &Value)> {
    let Value::Map(members) = data else { return None };
    let only = members.iter().next().filter(|_| members.len() == 1);
    only.map(|(name, value)| (&**name, value))
        .filter(|(name, value)| *name == "continue" || (*name == "error" && **value != Value::Null))
}

/// The failure that a command reports. Unknown keys are kept as detail.
fn said(error: &Map, exited: &Exited) -> Result<Failure, String> {
    let is_known = |key: &str| FAILURE_KEYS.contains(&key);
    let unsaid =
        |_: &str| exited.printed.stderr.last_line().unwrap_or_else(|| "the command gave no reason".into());
    let failure = failure(error, unsaid)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let more: Map = error
        .iter()
        .filter(|(key, _)| !is_known(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let detail = (!more.is_empty()).then(|| Value::Map(Arc::new(more)));
    Ok(Failure { detail, ..failure })
}
