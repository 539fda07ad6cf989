//! `shell`: a command, run by `sh -c` in its own process group.

use crate::children::Children;
use crate::context::Context;
use crate::executor::{BoxFuture, Executor, Returned, Traits};
use crate::process::{Ended, Exited, GRACE, Prepared, Printed, check_directory, stopped, surround};
use crate::secrets::Unsealer;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::expr::ProcessShape;
use windlass_ir::value::Map;
use windlass_ir::workflow::ShellOutput;

/// With its folder: a name to be searched for in the child's own `PATH` would turn posix_spawn into a slow fork.
const SHELL: &str = "/bin/sh";

/// Runs shell commands.
///
/// The outputs are `exit_code`, `stdout` and `stderr`, exactly as printed as far as that is UTF-8, and with JSON
/// output also `data`, whose members become outputs too unless the name is taken. Other bytes are shown with
/// replacement characters and kept byte for byte in `stdout_base64` and `stderr_base64`. A nonzero exit code is a
/// failure of class `error`.
///
/// By the rules of Python, line endings are `\n`, the code of a killed command is negative, and after a timeout nothing is
/// kept but the message.
///
/// A failed or aborted job leaves nothing behind: the rest of its group is ended, because another attempt may follow
/// at once. A successful job may leave something running, for instance a server for later steps; its further output
/// is not read.
#[derive(Clone, Debug)]
pub struct Shell {
    /// How long a command may take to end after SIGTERM before it is killed.
    pub grace: Duration,
    /// How much of each of the two streams is kept.
    pub output_bytes_max: usize,
    /// Where process groups are recorded, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

impl Default for Shell {
    fn default() -> Self {
        Self { grace: GRACE, output_bytes_max: 1024 * 1024, children: None }
    }
}

impl Executor for Shell {
    fn takes(&self, work: &Work) -> bool {
        matches!(work, Work::Shell { .. })
    }

    fn traits(&self, _: &Work) -> Traits {
        Traits { process: true, ..Traits::default() }
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed).into() })
    }
}

impl Shell {
    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let Work::Shell { command, cwd, stdin, output } = &job.work.work else {
            let message = format!("`{}` is not a shell step", job.step);
            return Err(Failure::new(class::ERROR, message));
        };
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut shell = Command::new(SHELL);
        shell.arg("-c").arg(&*unsealer.text(command)?);
        surround(&mut shell, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let cwd = cwd.as_ref().map(|cwd| unsealer.text(cwd)).transpose()?;
        // The folder where the run was started, unless the step sets another one.
        let directory = context.environment.directory.join(cwd.as_deref().unwrap_or_default());
        check_directory(&directory)?;
        shell.current_dir(directory);
        let prepared = Prepared {
            command: shell,
            stdin: stdin.as_ref().map(|stdin| unsealer.text(&stdin.0)).transpose()?,
            redactor: unsealer.redactor(&job.secrets),
            stdout_bytes_max: self.output_bytes_max,
            stderr_bytes_max: self.output_bytes_max,
            prints_data: *output == ShellOutput::Json,
            may_leave: true,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "pass large values in `stdin` instead of in the command or `env`",
        };
        match prepared.run(job, context).await? {
            Ended::Stopped(printed) => {
                Ok(stopped(context, || left(&printed, job.rules.results.process, self.output_bytes_max)))
            }
            Ended::Exited(exited) => {
                result(&exited, *output, job.rules.results.process, self.output_bytes_max)
            }
        }
    }
}

/// The outputs of a command that was stopped.
fn left(printed: &Printed, shape: ProcessShape, bytes_max: usize) -> Map {
    match shape {
        ProcessShape::Python => Map::from_iter([
            ("exit_code".into(), Value::Int(-1)),
            ("stdout".into(), Value::text("")),
            ("stderr".into(), Value::text("timeout")),
        ]),
        ProcessShape::Exact => printed.outputs(-1, bytes_max),
    }
}

fn outputs(exited: &Exited, shape: ProcessShape, bytes_max: usize) -> Map {
    match shape {
        ProcessShape::Python => unified(exited.printed.outputs(exited.return_code(), bytes_max)),
        ProcessShape::Exact => exited.printed.outputs(exited.exit_code(), bytes_max),
    }
}

/// With one kind of line ending, as Python reads text.
pub fn unified(mut outputs: Map) -> Map {
    for name in ["stdout", "stderr"] {
        if let Some(Value::Text(text)) = outputs.get_mut(name)
            && text.contains('\r')
        {
            *text = text.replace("\r\n", "\n").replace('\r', "\n").into();
        }
    }
    outputs
}

fn result(
    exited: &Exited,
    output: ShellOutput,
    shape: ProcessShape,
    bytes_max: usize,
) -> Result<Outcome, Failure> {
    let mut outputs = outputs(exited, shape, bytes_max);
    let failed =
        |failure: Failure, outputs: Map| Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure };
    if shape == ProcessShape::Python
        && let Some(stream) =
            ["stdout", "stderr"].iter().find(|name| outputs.contains_key(&*format!("{name}_base64")))
    {
        let message = format!("{stream} is not UTF-8: print text, or write the bytes to a file");
        return Err(Failure::new(class::CONTRACT_VIOLATION, message).in_field(*stream));
    }
    if !exited.status.success() {
        return Err(failed(exited.failure(), outputs));
    }
    match output {
        ShellOutput::Text => {}
        ShellOutput::Json => match exited.printed.data() {
            Ok(data) if shape == ProcessShape::Python => drop(outputs.insert("data".into(), data)),
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
