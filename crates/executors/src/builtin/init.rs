//! Sets up a Spec Kit project with the `specify` program, without prompts.

use super::{Builtins, OUTPUT_BYTES_MAX, with_outputs};
use crate::assistant;
use crate::context::{Context, Environment};
use crate::process::{Ended, located, not_installed, stopped};
use crate::shell::unified;
use std::path::Path;
use std::sync::Arc;
use windlass_engine::{Failure, Job, Outcome, class};
use windlass_ir::Value;
use windlass_ir::expr::{Semantics, TextForm, Truthiness, is_truthy, text_form};
use windlass_ir::value::Map;

/// How the program `specify` reads values.
const PYTHON: Semantics =
    Semantics { truthiness: Truthiness::Empty, text: TextForm::Python, ..Semantics::HOUSE };

/// The default integration.
const DEFAULT_INTEGRATION: &str = "copilot";

/// What a run itself may have put into an otherwise empty folder.
const OWN: [&str; 2] = [".specify", ".windlass"];

/// The settings of the step as command-line arguments.
struct Setup {
    argv: Vec<String>,
    outputs: Map,
    force: bool,
    /// The project is set up in the folder where the run was started.
    is_here: bool,
}

impl Builtins {
    pub(super) async fn init(&self, args: &Value, job: &Job, context: &Context) -> Result<Outcome, Failure> {
        let environment = &context.environment;
        let mut setup = Setup::read(args, environment)?;
        let specify = located("specify", environment).ok_or_else(|| {
            let hint = "install Spec Kit, which includes it: `uv tool install specify-cli`";
            with_outputs(not_installed("specify", hint), setup.ended(1, "", ""))
        })?;
        if setup.is_here && !setup.force {
            match content(&environment.directory) {
                Ok(Content::Nothing) => {}
                // The program would ask whether to merge, and no one is there to answer.
                Ok(Content::Own) => setup.force = true,
                Ok(Content::Others) => {
                    let message = format!(
                        "the folder `{}` is not empty: write `force: true` to merge into it",
                        environment.directory.display()
                    );
                    let outputs = setup.ended(1, "", &message);
                    return Err(with_outputs(Failure::new(class::ERROR, message), outputs));
                }
                Err(error) => {
                    let message =
                        format!("cannot read the folder `{}`: {error}", environment.directory.display());
                    let outputs = setup.ended(1, "", &message);
                    return Err(with_outputs(Failure::new(class::ERROR, message), outputs));
                }
            }
        }
        let argv = setup.argv();
        let arguments: Vec<&str> = argv.iter().map(String::as_str).collect();
        match self.program(&specify, &arguments, None, (job, context)).await? {
            Ended::Stopped(printed) => Ok(stopped(context, || {
                let mut left = setup.ended(-1, "", "");
                left.extend(unified(printed.outputs(-1, OUTPUT_BYTES_MAX)));
                left
            })),
            Ended::Exited(exited) => {
                let mut outputs = setup.ended(0, "", "");
                outputs.extend(unified(exited.printed.outputs(exited.return_code(), OUTPUT_BYTES_MAX)));
                if exited.status.success() {
                    return Ok(Outcome::Done(Value::Map(Arc::new(outputs))));
                }
                // The program prints its errors to standard output, where they would go unnoticed.
                if exited.printed.stderr.is_blank() {
                    let said =
                        outputs.get("stdout").and_then(Value::as_str).unwrap_or_default().trim().to_owned();
                    outputs.insert("stderr".into(), Value::text(said));
                }
                let last_line =
                    exited.printed.stderr.last_line().or_else(|| exited.printed.stdout.last_line());
                let last_line = last_line.map(|line| format!(": {line}")).unwrap_or_default();
                let message = format!("specify: {}{last_line}", exited.shown());
                Err(with_outputs(Failure::new(class::ERROR, message), outputs))
            }
        }
    }
}

enum Content {
    Nothing,
    Own,
    Others,
}

fn content(folder: &Path) -> std::io::Result<Content> {
    let mut content = Content::Nothing;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let is_own = OWN.iter().any(|own| entry.file_name() == *own) && entry.file_type()?.is_dir();
        if !is_own {
            return Ok(Content::Others);
        }
        content = Content::Own;
    }
    Ok(content)
}

impl Setup {
    fn read(args: &Value, environment: &Environment) -> Result<Self, Failure> {
        let given = |name: &str| args.get(name).cloned().unwrap_or(Value::Null);
        let (project, here, force) = (given("project"), is_set(&given("here"))?, is_set(&given("force"))?);
        let ignore_agent_tools = match given("ignore_agent_tools") {
            Value::Null => true,
            value => is_set(&value)?,
        };
        let integration = match given("integration") {
            value if holds(&value)? => value,
            _ => Value::text(default_integration(environment)),
        };
        let target = match (here, holds(&project)?) {
            (true, _) => "--here".to_owned(),
            (false, true) => shown(&project)?,
            (false, false) => ".".to_owned(),
        };
        let mut argv = vec!["init".to_owned(), target];
        let options = [
            ("--integration", integration.clone()),
            ("--integration-options", given("integration_options")),
            ("--script", given("script")),
            ("--preset", given("preset")),
        ];
        for (flag, value) in &options {
            if holds(value)? {
                argv.extend([(*flag).to_owned(), shown(value)?]);
            }
        }
        if ignore_agent_tools {
            argv.push("--ignore-agent-tools".to_owned());
        }
        let is_here = here || !holds(&project)? || shown(&project)? == ".";
        // `argv` and `force` are known at the end; they are here for the order.
        let outputs = Map::from_iter([
            ("argv".into(), Value::Null),
            ("project".into(), project),
            ("here".into(), Value::Bool(here)),
            ("integration".into(), integration),
            ("integration_options".into(), given("integration_options")),
            ("script".into(), given("script")),
            ("preset".into(), given("preset")),
            ("force".into(), Value::Bool(force)),
            ("ignore_agent_tools".into(), Value::Bool(ignore_agent_tools)),
        ]);
        Ok(Self { argv, outputs, force, is_here })
    }

    fn argv(&self) -> Vec<String> {
        let force = self.force.then(|| "--force".to_owned());
        self.argv.iter().cloned().chain(force).collect()
    }

    fn ended(&self, exit_code: i64, stdout: &str, stderr: &str) -> Map {
        let mut outputs = self.outputs.clone();
        outputs.insert("argv".into(), Value::list(self.argv().into_iter().map(Value::text)));
        outputs.insert("force".into(), Value::Bool(self.force));
        outputs.insert("exit_code".into(), Value::Int(exit_code));
        outputs.insert("stdout".into(), Value::text(stdout));
        outputs.insert("stderr".into(), Value::text(stderr));
        outputs
    }
}

fn default_integration(environment: &Environment) -> String {
    let said = assistant::said(environment, "SPECKIT_INTEGRATION_DEFAULT");
    said.filter(|key| assistant::is_known(key)).unwrap_or_else(|| DEFAULT_INTEGRATION.to_owned())
}

fn holds(value: &Value) -> Result<bool, Failure> {
    let truth = is_truthy(value, &PYTHON);
    truth.map_err(|error| Failure::new(class::EXPRESSION_ERROR, error.message))
}

/// Text counts as true by its words.
fn is_set(value: &Value) -> Result<bool, Failure> {
    match value.as_str() {
        Some(text) => Ok(["true", "1", "yes"].contains(&&*text.trim().to_lowercase())),
        None => holds(value),
    }
}

fn shown(value: &Value) -> Result<String, Failure> {
    let text = text_form(value, &PYTHON);
    text.map(|text| text.to_string()).map_err(|error| Failure::new(class::EXPRESSION_ERROR, error.message))
}
