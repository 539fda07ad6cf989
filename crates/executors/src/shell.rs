//! `shell`: a command, run by a shell or another program in its own process group.

use crate::children::Children;
use crate::context::{Context, Environment};
use crate::executor::{BoxFuture, Executor, Returned, Traits};
use crate::process::{
    Ended, Exited, GRACE, Prepared, Printed, check_directory, located, not_installed, stopped, surround,
};
use crate::secrets::Unsealer;
use crate::shell_outputs::OutputFile;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::expr::ProcessShape;
use windlass_ir::value::Map;
use windlass_ir::workflow::{Interpreter, OUTPUT_FILE, ShellOutput};

/// With its folder: a name to be searched for in the child's own `PATH` would turn posix_spawn into a slow fork.
const SH: &str = "/bin/sh";

/// Runs shell commands.
///
/// The outputs are `exit_code`, `stdout` and `stderr`, exactly as printed as far as that is UTF-8, and with JSON
/// output also `data`, whose members become outputs too unless the name is taken. Other bytes are shown with
/// replacement characters and kept byte for byte in `stdout_base64` and `stderr_base64`. A nonzero exit code is a
/// failure of class `error`.
///
/// By the native rules, `stdout` has no line breaks at its end and `stdout_raw` is exact. A command can then leave more
/// outputs in the file that `WINDLASS_OUTPUT` names; they win over members of the data. What a failed command has left is
/// part of its failure.
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
        let Work::Shell { command, cwd, stdin, output, shell: interpreter } = &job.work.work else {
            let message = format!("`{}` is not a shell step", job.step);
            return Err(Failure::new(class::ERROR, message));
        };
        let mut unsealer = Unsealer::new(&*context.secrets);
        let mut shell = program(interpreter, &context.environment)?;
        shell.arg(&*unsealer.text(command)?);
        surround(&mut shell, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let shape = job.rules.results.process;
        let left_file = match shape {
            ProcessShape::Trimmed => Some(OutputFile::create(&self.outputs_folder(&context.environment))?),
            ProcessShape::Exact | ProcessShape::Python => None,
        };
        shell.envs(left_file.as_ref().map(|file| (OUTPUT_FILE, file.path())));
        let cwd = cwd.as_ref().map(|cwd| unsealer.text(cwd)).transpose()?;
        // The folder where the run was started, unless the step sets another one.
        let directory = context.environment.directory.join(cwd.as_deref().unwrap_or_default());
        check_directory(&directory)?;
        shell.current_dir(directory);
        let redactor = unsealer.redactor(&job.secrets);
        let prepared = Prepared {
            command: shell,
            stdin: stdin.as_ref().map(|stdin| unsealer.text(&stdin.0)).transpose()?,
            redactor: redactor.clone(),
            stdout_bytes_max: self.output_bytes_max,
            stderr_bytes_max: self.output_bytes_max,
            prints_data: *output == ShellOutput::Json,
            may_leave: true,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "pass large values in `stdin` instead of in the command or `env`",
        };
        let given = || left_file.as_ref().map_or(Ok(Map::new()), |file| file.read(&redactor));
        match prepared.run(job, context).await? {
            Ended::Stopped(printed) => Ok(stopped(context, || {
                let mut outputs = left(&printed, shape, self.output_bytes_max);
                // What cannot be read is lost with the command.
                let _ = given().and_then(|given| add_given(&mut outputs, given));
                outputs
            })),
            Ended::Exited(exited) => {
                let given = given();
                result(&exited, *output, shape, self.output_bytes_max, given)
            }
        }
    }
}

impl Shell {
    /// In the data folder, which others cannot read; else where the system keeps temporary files.
    fn outputs_folder(&self, environment: &Environment) -> PathBuf {
        match &self.children {
            Some(children) => children.outputs(),
            None => environment.directory.join(std::env::temp_dir()),
        }
    }
}

/// The program that runs a command, without the command.
fn program(interpreter: &Interpreter, environment: &Environment) -> Result<Command, Failure> {
    let Some((name, arguments)) = interpreter.0.split_first() else {
        return Err(Failure::new(class::NOT_RUNNABLE, "the list of `shell` is empty").in_field("shell"));
    };
    let file = match &**name {
        "sh" => PathBuf::from(SH),
        other => located(other, environment)
            .ok_or_else(|| not_installed(other, "install it, or set another `shell`").in_field("shell"))?,
    };
    let mut command = Command::new(file);
    command.args(arguments.iter().map(|argument| &**argument));
    Ok(command)
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
        ProcessShape::Trimmed => trimmed(printed.outputs(-1, bytes_max)),
    }
}

fn outputs(exited: &Exited, shape: ProcessShape, bytes_max: usize) -> Map {
    match shape {
        ProcessShape::Python => unified(exited.printed.outputs(exited.return_code(), bytes_max)),
        ProcessShape::Exact => exited.printed.outputs(exited.exit_code(), bytes_max),
        ProcessShape::Trimmed => trimmed(exited.printed.outputs(exited.exit_code(), bytes_max)),
    }
}

/// `stdout` as `$(…)` reads it, and `stdout_raw` as it was printed.
fn trimmed(mut outputs: Map) -> Map {
    if let Some(Value::Text(raw)) = outputs.get("stdout").cloned() {
        outputs.insert("stdout".into(), Value::text(raw.trim_end_matches('\n')));
        let after = outputs.get_index_of("stdout").map_or(outputs.len(), |at| at + 1);
        outputs.shift_insert(after, "stdout_raw".into(), Value::Text(raw));
    }
    outputs
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
    given: Result<Map, String>,
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
    let success = exited.status.success();
    let unreadable = given.and_then(|given| add_given(&mut outputs, given)).err();
    // A failed command need not have printed any data.
    let mut no_data = None;
    if output == ShellOutput::Json && (success || shape == ProcessShape::Trimmed) {
        match exited.printed.data() {
            Ok(data) if shape == ProcessShape::Python => drop(outputs.insert("data".into(), data)),
            Ok(data) => add_data(&mut outputs, data),
            Err(problem) => no_data = Some(problem),
        }
    }
    let failure = match (success, unreadable, no_data) {
        (true, None, None) => return Ok(Outcome::Done(Value::Map(Arc::new(outputs)))),
        (false, _, _) => exited.failure(),
        (true, Some(problem), _) => Failure::new(class::CONTRACT_VIOLATION, problem).in_field("outputs"),
        (true, None, Some(problem)) => {
            Failure::new(class::CONTRACT_VIOLATION, problem).in_field("outputs.data")
        }
    };
    Err(failed(failure, outputs))
}

/// Names that are always taken.
const OWN: [&str; 7] =
    ["exit_code", "stdout", "stdout_raw", "stderr", "data", "stdout_base64", "stderr_base64"];

/// Adds the outputs that a command left in its file.
fn add_given(outputs: &mut Map, given: Map) -> Result<(), String> {
    if let Some(taken) = given.keys().find(|name| OWN.contains(&&***name)) {
        return Err(format!("${OUTPUT_FILE} sets `{taken}`, which Windlass sets itself: use another name"));
    }
    outputs.extend(given);
    Ok(())
}

fn add_data(outputs: &mut Map, data: Value) {
    outputs.insert("data".into(), data.clone());
    if let Value::Map(members) = data {
        for (name, value) in &*members {
            outputs.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}
