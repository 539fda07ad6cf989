//! `shell`: a command, run by `sh -c` in a process group of its own.

use crate::children::Children;
use crate::context::Context;
use crate::executor::{BoxFuture, Executor};
use crate::process::{Exited, GRACE, Prepared, aborted, check_directory, surround};
use crate::secrets::Unsealer;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::value::Map;
use windlass_ir::workflow::ShellOutput;

/// With its folder: a name to be searched for in the child's own `PATH` would turn posix_spawn into a slow fork.
const SHELL: &str = "/bin/sh";

/// Runs shell commands.
///
/// The outputs are `exit_code`, `stdout` and `stderr`, exactly as printed as far as that is UTF-8, and with JSON output also
/// `data`, whose members are outputs too where no other has the name. A status other than zero is a failure of class
/// `error`.
///
/// A job that failed or was aborted leaves nothing behind: whatever is left of its group is ended, because another attempt
/// may follow at once. One that succeeded may leave something running, for instance a server for the steps after it; what
/// that still prints is not read.
#[derive(Clone, Debug)]
pub struct Shell {
    /// How long a command that was asked to end may take before it is killed.
    pub grace: Duration,
    /// What is kept of each of the two streams.
    pub output_bytes_max: usize,
    /// Where groups are written down, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

impl Default for Shell {
    fn default() -> Self {
        Self { grace: GRACE, output_bytes_max: 1024 * 1024, children: None }
    }
}

impl Executor for Shell {
    fn run(&self, job: Job, context: Context) -> BoxFuture<'_, Outcome> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed) })
    }
}

impl Shell {
    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let Work::Shell { command, cwd, stdin, output } = &job.work.work else {
            let message = format!("`{}` is no shell step, so no shell can run it", job.step);
            return Err(Failure::new(class::ERROR, message));
        };
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut shell = Command::new(SHELL);
        shell.arg("-c").arg(&*unsealer.text(command)?);
        surround(&mut shell, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let cwd = cwd.as_ref().map(|cwd| unsealer.text(cwd)).transpose()?;
        // Where the run was started, unless the step says otherwise.
        let directory = context.environment.directory.join(cwd.as_deref().unwrap_or_default());
        check_directory(&directory)?;
        shell.current_dir(directory);
        let prepared = Prepared {
            command: shell,
            stdin: stdin.as_ref().map(|stdin| unsealer.text(&stdin.0)).transpose()?,
            redactor: unsealer.redactor(),
            stdout_bytes_max: self.output_bytes_max,
            stderr_bytes_max: self.output_bytes_max,
            prints_data: *output == ShellOutput::Json,
            may_leave: true,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "pass large values by `stdin` instead of in the command or `env`",
        };
        match prepared.run(job, context).await? {
            None => Ok(aborted()),
            Some(exited) => result(&exited, *output, self.output_bytes_max),
        }
    }
}

fn result(exited: &Exited, output: ShellOutput, bytes_max: usize) -> Result<Outcome, Failure> {
    let mut outputs = exited.outputs(bytes_max);
    let failed =
        |failure: Failure, outputs: Map| Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure };
    if !exited.status.success() {
        return Err(failed(exited.failure(), outputs));
    }
    match output {
        ShellOutput::Text => {}
        ShellOutput::Json => match exited.data() {
            Ok(data) => add_data(&mut outputs, data),
            Err(problem) => {
                let failure = Failure::new(class::CONTRACT_VIOLATION, problem).in_field("outputs.data");
                return Err(failed(failure, outputs));
            }
        },
    }
    Ok(Outcome::Done(Value::Map(Arc::new(outputs))))
}

fn add_data(outputs: &mut Map, data: Value) {
    outputs.insert("data".into(), data.clone());
    if let Value::Map(members) = data {
        for (name, value) in &*members {
            outputs.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}
