//! `assistant`: a prompt or a Spec Kit command for a command-line agent, started without a shell.

mod docker_agent;
mod integrations;
mod project;
mod words;

pub(crate) use integrations::said;

use crate::children::Children;
use crate::context::{Context, Environment};
use crate::executor::{BoxFuture, Executor, Returned, Traits};
use crate::process::{
    Ended, GRACE, Prepared, Printed, check_directory, located, not_installed, stopped, surround,
};
use crate::secrets::Unsealer;
use crate::shell::unified;
use integrations::{Asked, Call, Integration};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::Command;
use windlass_engine::{AssistantAsk, AssistantWork, Failure, Job, Outcome, Work, class};
use windlass_ir::Value;
use windlass_ir::expr::{AssistantFields, Semantics, TextForm, text_form};
use windlass_ir::value::Map;
use windlass_ir::workflow::Capture;

/// The maximum kept of each stream, even if the step sets no limit.
const CAPTURE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Runs command-line agents.
///
/// The outputs are those of Spec Kit: the request, `exit_code`, `dispatched`, `stdout` and `stderr`. Output is
/// streamed live; it is kept only if the step asks for it, and then truncated silently at its limit, as
/// `stdout_truncated` says. A nonzero exit code is a failure of class `error`, a missing agent one of class
/// `not_runnable`.
#[derive(Clone, Debug)]
pub struct Assistants {
    /// How long an agent may take to end after SIGTERM before it is killed.
    pub grace: Duration,
    /// Where process groups are recorded, so that a later owner can end what a crash of this one leaves.
    pub children: Option<Arc<Children>>,
}

impl Default for Assistants {
    fn default() -> Self {
        Self { grace: GRACE, children: None }
    }
}

impl Executor for Assistants {
    fn takes(&self, work: &Work) -> bool {
        matches!(work, Work::Assistant(_))
    }

    fn traits(&self, _: &Work) -> Traits {
        Traits { process: true, ..Traits::default() }
    }

    fn start(&self, job: Job, context: Context) -> BoxFuture<'_, Returned> {
        Box::pin(async move { self.perform(&job, &context).await.unwrap_or_else(Outcome::Failed).into() })
    }
}

/// Whether there is an integration with this name.
pub(crate) fn is_known(key: &str) -> bool {
    integrations::find(key).is_some()
}

/// The program that starts the agent with this name; none for an unknown one, or one that runs in an editor.
pub fn agent_program(key: &str, environment: &Environment) -> Option<String> {
    let integration = integrations::find(key).filter(|integration| integration.can_be_started())?;
    Some(integration.program(environment))
}

/// A step with all values as text, and the outputs that it has in any case.
struct Asking {
    asked: Asked,
    integration: Option<String>,
    model: Option<String>,
    arguments: Vec<String>,
    settings: Vec<(String, String)>,
    outputs: Map,
    words: Words,
}

/// The user's words for the arguments and the settings.
#[derive(Clone, Copy)]
struct Words {
    arguments: &'static str,
    settings: &'static str,
}

fn words_of(rules: &Semantics) -> Words {
    match rules.results.assistant {
        AssistantFields::Integration => {
            Words { arguments: "integration_args", settings: "integration_options" }
        }
        AssistantFields::Arguments => Words { arguments: "arguments", settings: "settings" },
    }
}

impl Assistants {
    async fn perform(&self, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let Work::Assistant(work) = &job.work.work else {
            return Err(Failure::new(class::ERROR, format!("`{}` is not an assistant step", job.step)));
        };
        let directory = &context.environment.directory;
        check_directory(directory)?;
        let asking = asking(work, &job.rules, directory)?;
        let refused = |failure: Failure| {
            let mut outputs = asking.outputs.clone();
            outputs.insert("exit_code".into(), Value::Int(1));
            outputs.insert("dispatched".into(), Value::Bool(false));
            Failure { detail: Some(Value::Map(Arc::new(outputs))), ..failure }
        };
        let (program, arguments) = argv(&asking, &context.environment).map_err(refused)?;
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(directory);
        let mut unsealer = Unsealer::new(&*context.secrets);
        surround(&mut command, job, &context.environment, &mut unsealer, self.children.as_deref())?;
        let bytes_max = bytes_max(work.capture);
        let prepared = Prepared {
            command,
            stdin: None,
            redactor: unsealer.redactor(&job.secrets),
            stdout_bytes_max: bytes_max,
            stderr_bytes_max: bytes_max,
            prints_data: false,
            may_leave: true,
            grace: self.grace,
            children: self.children.as_deref(),
            too_long: "shorten the prompt, and let the agent read the rest from files",
        };
        match prepared.run(job, context).await? {
            Ended::Stopped(printed) => Ok(stopped(context, || {
                let mut left = asking.left(-1, &printed, work.capture);
                let said = match work.capture {
                    Some(_) => ("timed_out", Value::Bool(true)),
                    None => ("stderr", Value::text(time_is_up(job))),
                };
                left.insert(said.0.into(), said.1);
                left
            })),
            Ended::Exited(exited) => {
                let outputs = asking.left(exited.return_code(), &exited.printed, work.capture);
                let outputs = Value::Map(Arc::new(outputs));
                if exited.status.success() {
                    return Ok(Outcome::Done(outputs));
                }
                // Captured output may be long or private, so it is in the outputs but not in a message.
                let failure = match work.capture {
                    Some(_) => Failure::new(class::ERROR, exited.shown()),
                    None => exited.failure(),
                };
                let name = program.file_name().unwrap_or_default().display();
                let message = format!("{name}: {}", failure.message).into();
                Err(Failure { message, detail: Some(outputs), ..failure })
            }
        }
    }
}

fn bytes_max(capture: Option<Capture>) -> usize {
    let wanted = capture.map_or(0, |capture| capture.bytes_max.unwrap_or(u64::MAX));
    usize::try_from(wanted).unwrap_or(usize::MAX).min(CAPTURE_BYTES_MAX)
}

fn time_is_up(job: &Job) -> String {
    let limit =
        job.timeout.map(|limit| format!(" after {} seconds", limit.as_secs_f64())).unwrap_or_default();
    format!("Prompt timed out{limit}.")
}

impl Asking {
    fn left(&self, exit_code: i64, printed: &Printed, capture: Option<Capture>) -> Map {
        let mut outputs = self.outputs.clone();
        let dispatched = ("dispatched".into(), Value::Bool(true));
        outputs.insert("exit_code".into(), Value::Int(exit_code));
        match capture {
            None => {
                outputs.extend(["stdout", "stderr"].map(|name| (name.into(), Value::text(""))));
                outputs.extend([dispatched]);
            }
            Some(_) => {
                outputs.extend(unified(printed.cut()));
                outputs.extend([dispatched]);
                let cut = [
                    ("stdout_truncated", printed.stdout.is_cut()),
                    ("stderr_truncated", printed.stderr.is_cut()),
                    ("timed_out", false),
                    ("interrupted", false),
                ];
                outputs.extend(cut.map(|(name, is_so)| (name.into(), Value::Bool(is_so))));
            }
        }
        outputs
    }
}

fn asking(work: &AssistantWork, rules: &Semantics, root: &Path) -> Result<Asking, Failure> {
    let integration = match named("integration", work.integration.as_ref())? {
        // The integration that the project uses, if it states one.
        Some(auto) if auto == "auto" => Some(project::default_integration(root).unwrap_or(auto)),
        other => other,
    };
    let model = named("model", work.model.as_ref())?;
    let (mut arguments, mut settings, words) = (Vec::new(), Vec::new(), words_of(rules));
    let agent = [("integration", &integration, &work.integration), ("model", &model, &work.model)];
    let [by, with] = agent.map(|(name, resolved, given)| {
        let given = || given.clone().unwrap_or(Value::Null);
        (name.into(), resolved.as_ref().map_or_else(given, |name| Value::text(&**name)))
    });
    let (asked, outputs) = match &work.ask {
        AssistantAsk::Prompt(prompt) => {
            let prompt = said_text(prompt, rules)?;
            let said = ("prompt".into(), Value::text(&*prompt));
            let outputs = Map::from_iter([said, by, with]);
            (Asked::Prompt(prompt), outputs)
        }
        AssistantAsk::Command { command, input, arguments: given, settings: set } => {
            for value in given {
                arguments.push(text(words.arguments, value)?);
            }
            if let Value::Map(set) = set {
                for (name, value) in &**set {
                    settings.push((name.to_string(), text(&format!("{}.{name}", words.settings), value)?));
                }
            }
            let args = input.get("args").map(|args| said_text(args, rules)).transpose()?;
            let outputs = Map::from_iter([
                ("command".into(), Value::Text(command.clone())),
                by,
                with,
                ("options".into(), Value::map(work.options.clone())),
                ("input".into(), input.clone()),
                ("integration_args".into(), Value::list(given.iter().cloned())),
                ("integration_options".into(), set.clone()),
            ]);
            (Asked::Command { name: command.to_string(), args: args.unwrap_or_default() }, outputs)
        }
    };
    Ok(Asking { asked, integration, model, arguments, settings, outputs, words })
}

/// A name; `None` if it is empty.
fn named(field: &str, value: Option<&Value>) -> Result<Option<String>, Failure> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => Ok(Some(text(field, value)?).filter(|name| !name.is_empty())),
    }
}

fn text(field: &str, value: &Value) -> Result<String, Failure> {
    let broken = || {
        let message = format!("`{field}` must be a string, but it is {}", value.kind());
        Failure::new(class::CONTRACT_VIOLATION, message).in_field(field)
    };
    value.as_str().map(str::to_owned).ok_or_else(broken)
}

/// A value as an agent reads it. Python prints a missing value, too.
fn said_text(value: &Value, rules: &Semantics) -> Result<String, Failure> {
    if let (TextForm::Python, Value::Null) = (rules.text, value) {
        return Ok("None".to_owned());
    }
    let text = text_form(value, rules);
    text.map(|text| text.to_string()).map_err(|error| Failure::new(class::EXPRESSION_ERROR, error.message))
}

/// The program to start, or why there is none.
fn argv(asking: &Asking, environment: &Environment) -> Result<(PathBuf, Vec<String>), Failure> {
    let broken =
        |field: &str, message: String| Failure::new(class::CONTRACT_VIOLATION, message).in_field(field);
    let integration = integration(asking.integration.as_deref())?;
    let says_nothing = asking.arguments.is_empty() && asking.settings.is_empty();
    if !integration.takes_arguments() && !says_nothing {
        let Words { arguments, settings } = asking.words;
        let field = if asking.arguments.is_empty() { settings } else { arguments };
        let message = format!("the integration `{}` does not accept `{field}`: remove it", integration.key);
        return Err(broken(field, message));
    }
    if asking.asked == Asked::Prompt(String::new()) {
        return Err(broken("prompt", "the prompt is empty: write what the agent should do".to_owned()));
    }
    let call = Call {
        asked: &asking.asked,
        model: asking.model.as_deref(),
        arguments: &asking.arguments,
        settings: &asking.settings,
        root: &environment.directory,
        environment,
    };
    let arguments = integration.arguments(&call).map_err(|problem| broken("integration", problem))?;
    located_agent(integration, arguments, environment)
}

fn integration(key: Option<&str>) -> Result<&'static Integration, Failure> {
    let startable = || {
        let keys = integrations::ALL.iter().filter(|one| one.can_be_started()).map(|one| one.key);
        keys.collect::<Vec<_>>().join(", ")
    };
    let problem = match key {
        None => "no agent is set".to_owned(),
        Some(key) => match integrations::find(key) {
            Some(found) if found.can_be_started() => return Ok(found),
            Some(_) => format!("the integration `{key}` runs in an editor and cannot be started"),
            None => format!("unknown integration `{key}`"),
        },
    };
    let message =
        format!("{problem}: set `integration` of the step or of the workflow to one of {}", startable());
    Err(Failure::new(class::CONTRACT_VIOLATION, message).in_field("integration"))
}

fn located_agent(
    integration: &Integration,
    mut arguments: Vec<String>,
    environment: &Environment,
) -> Result<(PathBuf, Vec<String>), Failure> {
    let name = integration.program(environment);
    let plugin = |file: &Path| file.file_name().is_some_and(|name| name == "docker");
    let file = located(&name, environment);
    let file = match (file, integration.takes_arguments()) {
        // Docker Agent is a program or a plugin of Docker.
        (None, true) if name == integration.key => located("docker", environment),
        (file, _) => file,
    };
    let Some(file) = file else {
        let hint = format!("install it, or set its path in {}", integration.variable("EXECUTABLE"));
        return Err(not_installed(&name, &hint));
    };
    if integration.takes_arguments() && plugin(&file) {
        arguments.insert(0, "agent".to_owned());
    }
    Ok((file, arguments))
}
