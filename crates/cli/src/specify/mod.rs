//! Imitates Spec Kit's own program: its arguments, exit codes, JSON and run folder, on top of Windlass runs.
//!
//! `windlass specify workflow …` and `--compat speckit` both use this module. `follow` shows a run and asks at gates, `status`
//! reads runs, and `folder` keeps the run folder up to date. `state` and `tree` write its `state.json`, `log` its `log.jsonl`,
//! and `python` formats JSON the way Python does.

mod ask;
mod folder;
mod follow;
mod log;
mod python;
mod state;
mod status;
mod tree;

use crate::answer::{self, Answer, Exit, Refused};
use crate::args::{self, Compat, Driving, Json};
use crate::commands::face::{Audience, Face, Followed};
use crate::commands::follow::End;
use crate::commands::run::{begin, resume_one};
use crate::show::Screens;
use crate::show::words::one_line;
use crate::{data, files};
use clap::CommandFactory;
use std::io::IsTerminal;
use std::path::Path;
use windlass_api::Refusal;
use windlass_dialects::DIALECTS;
use windlass_ir::plan::Given;
use windlass_ir::workflow::RunInput;
use windlass_ir::{Plan, RunStatus};
use windlass_runtime::{Engine, Error, RunId, StoreError, View, is_resumable};

/// Sets the id of a new run.
const RUN_ID: &str = "SPECKIT_WORKFLOW_RUN_ID";

pub fn run(args: args::Specify, screens: &Screens) -> Answer {
    let args::SpecifyCommand::Workflow(command) = args.command;
    match command {
        args::WorkflowCommand::Run(args) => match pairs(&args.inputs) {
            Ok(params) => {
                let reading = args::Reading::default();
                let what = args::Plan { file: args.source, params, input_file: None, reading };
                let (going, driving) = (args::Going::default(), driving(args.json));
                let (run_id, detach, actor) = (None, false, args::Actor::default());
                start(args::Run { what, run_id, going, detach, actor, driving, data: args.data }, screens)
            }
            Err(answer) => answer,
        },
        args::WorkflowCommand::Resume(args) => match pairs(&args.inputs) {
            Ok(params) => {
                let (run, driving) = (Some(args.run_id), driving(args.json));
                let (all, schedules, actor) = (false, Vec::new(), args::Actor::default());
                resume(args::Resume { run, all, schedules, params, actor, driving, data: args.data }, screens)
            }
            Err(answer) => answer,
        },
        args::WorkflowCommand::Status(args) => status::run(&args),
        args::WorkflowCommand::Other(words) => other(&words),
    }
}

fn driving(json: bool) -> Driving {
    Driving {
        wait: false,
        mock: None,
        virtual_time: false,
        durability: args::Durability::Disk,
        json: json.then_some(Json::Final),
        compat: Some(Compat::Speckit),
    }
}

/// Parses `key=value` and trims both parts.
fn pairs(inputs: &[String]) -> Result<Vec<(String, String)>, Answer> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').ok_or_else(|| {
            let message = format!("Invalid input format: {} (expected key=value)", python::repr(text));
            failed(&message)
        })?;
        Ok((key.trim().to_owned(), value.trim().to_owned()))
    };
    inputs.iter().map(pair).collect()
}

/// Subcommands of Spec Kit's program that Windlass does not have.
fn other(words: &[String]) -> Answer {
    let name = one_line(words.first().map_or("", String::as_str));
    let stderr = format!(
        "error: unknown command `specify workflow {name}`; Windlass has run, resume and status\n  \
         help: install, list and change workflows with Spec Kit's own `specify` program\n"
    );
    Answer { stderr, ..Answer::new(Exit::Refused) }
}

fn failed(message: &str) -> Answer {
    Answer { stderr: format!("Error: {}\n", one_line(message)), ..Answer::new(Exit::Failed) }
}

/// Whether the arguments imitate Spec Kit's program, which prints no JSON about bad usage.
pub fn is_called() -> bool {
    std::env::args_os().nth(1).is_some_and(|word| word == "specify")
        || std::env::args_os().any(|word| word == "--compat" || word == "--compat=speckit")
}

/// Whether Spec Kit would report this usage error only after it has begun: a value without a name.
pub fn is_late(usage: &clap::Error) -> bool {
    let compat = || {
        let matches = args::Args::command().ignore_errors(true).try_get_matches().ok()?;
        matches.subcommand()?.1.try_get_one::<Compat>("compat").ok()?.copied()
    };
    usage.kind() == clap::error::ErrorKind::ValueValidation && compat().is_some()
}

/// Starts a run. An id names an installed workflow; a file named by its path has no overlays.
pub fn start(mut args: args::Run, screens: &Screens) -> Answer {
    args.what.reading.raises_late = true;
    let file = &args.what.file;
    let found = files::by_installed_name(file)
        .and_then(|found| files::enabled(found.as_ref().unwrap_or(file)).map(|()| found));
    match found {
        Ok(Some(found)) => args.what.file = found,
        Ok(None) => args.what.reading.as_written = true,
        Err(unreadable) => return translated(Err(unreadable.into()), screens),
    }
    let named = || std::env::var(RUN_ID).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    args.run_id = args.run_id.or_else(named);
    let manner = Manner::starting(&args.driving);
    translated(begin(args, &manner, screens), screens)
}

/// Resumes a run that is paused, has failed, or was interrupted.
pub fn resume(mut args: args::Resume, screens: &Screens) -> Answer {
    if !args.all {
        args.run.get_or_insert_with(|| data::LAST.to_owned());
    }
    let known = match args.run.as_ref().map(|name| resumable(&args.data, name)) {
        Some(Ok(known)) => known,
        Some(Err(answer)) => return answer,
        None => 0,
    };
    let manner = Manner { json: args.driving.json.is_some(), known: Some(known) };
    translated(resume_one(args, &manner, screens), screens)
}

/// The number of events of a run that can be resumed.
fn resumable(data: &args::Data, name: &str) -> Result<u64, Answer> {
    let (_, engine, run) = data::find(data, name).map_err(|error| unfound(name, &error))?;
    let view = engine.view(&run).map_err(|error| failed(&error.to_string()))?;
    let file = view.about().get("file").and_then(windlass_ir::Value::as_str);
    if let Some(workflow) = file.filter(|file| windlass_runtime::is_disabled(DIALECTS, Path::new(file))) {
        let id = Path::new(workflow).parent().and_then(Path::file_name).unwrap_or_default().display();
        let message = format!("Workflow '{id}' is disabled. Enable with: specify workflow enable {id}");
        return Err(failed(&message));
    }
    let status = state::report(&run, &view).payload()["status"].clone();
    match is_resumable(&view) {
        true => Ok(view.events),
        false => {
            let status = status.as_str().unwrap_or_default();
            Err(failed(&format!("Cannot resume run '{run}' with status '{status}'.")))
        }
    }
}

fn unfound(name: &str, error: &Error) -> Answer {
    match error {
        Error::NoRun(_) | Error::NoRunNear { .. } | Error::Store(StoreError::Missing { .. }) => {
            failed(&format!("Run not found: {name}"))
        }
        error => failed(&error.to_string()),
    }
}

/// Maps exit codes: 0 completed or paused, 1 any reported error, 2 bad usage. Refusals have no JSON.
fn translated(answer: Result<Answer, Refused>, screens: &Screens) -> Answer {
    let answer = answer.unwrap_or_else(|refused| Answer::refused(&refused, false, &screens.stderr));
    match answer.status {
        Exit::Done | Exit::Waiting | Exit::Stopped => Answer { status: Exit::Done, ..answer },
        Exit::Failed | Exit::Cancelled => Answer { status: Exit::Failed, ..answer },
        Exit::Refused => {
            let stderr = answer.stderr.lines().map(|line| format!("{}\n", plain(line))).collect();
            Answer { stdout: String::new(), stderr, status: Exit::Failed }
        }
        Exit::Bug => answer,
    }
}

/// Formats an error with `Error:` instead of a code.
fn plain(line: &str) -> String {
    let rest = line.strip_prefix("error[").and_then(|rest| rest.split_once("]: "));
    rest.map_or_else(|| line.to_owned(), |(_, message)| format!("Error: {message}"))
}

/// How Spec Kit starts, follows and reports a run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    json: bool,
    /// The number of events before the run is resumed; none for a new run.
    known: Option<u64>,
}

impl Manner {
    pub fn starting(driving: &Driving) -> Self {
        Self { json: driving.json.is_some(), known: None }
    }
}

impl Face for Manner {
    /// Spec Kit uses the `prompt` of an input only as a description.
    fn asks_for_inputs(&self) -> bool {
        false
    }

    /// Spec Kit trims values, and drops those that the workflow does not declare.
    fn given(&self, plan: &Plan, params: Vec<(String, String)>) -> Vec<(String, Given)> {
        let known = |name: &str| plan.input != RunInput::Declared || plan.parameters.contains_key(name);
        let (known, unknown): (Vec<_>, Vec<_>) = params.into_iter().partition(|(name, _)| known(name));
        for (name, _) in unknown {
            let name = one_line(&name);
            answer::remark(&format!("warning: this workflow has no input `{name}`; the value is ignored"));
        }
        known.into_iter().map(|(name, text)| (name, Given::Text(text.trim().to_owned()))).collect()
    }

    fn is_attended(&self) -> bool {
        std::io::stdin().is_terminal()
    }

    fn warns(&self) -> bool {
        false
    }

    fn begins(&self, plan: &Plan) {
        if !self.json {
            let header = &plan.header;
            let (name, version) = (one_line(&header.name), one_line(&header.version));
            answer::line(&format!("\nRunning workflow: {name} ({})\nVersion: {version}\n", header.id));
        }
    }

    fn audience(&self, followed: &Followed<'_>) -> Result<Option<Box<dyn Audience>>, Refusal> {
        let telling =
            follow::Follower::new(followed, self.known.unwrap_or(0), self.json, self.is_attended())?;
        Ok(Some(Box::new(telling)))
    }

    fn ended(&self, engine: &Engine, run: &RunId, view: &View, end: End) -> Answer {
        let rest = rest_of(end);
        match folder::Folder::open(engine, run) {
            Ok(mut folder) => folder.close(rest),
            Err(error) => answer::remark(&format!("the run folder is not up to date: {error}")),
        }
        let mut payload = state::report(run, view).payload();
        if rest == state::Rest::Interrupted {
            payload["status"] = "paused".into();
        }
        let stdout = match self.json {
            true => python::pretty(&payload, python::Letters::Ascii) + "\n",
            false => self.words(run, &payload),
        };
        let status = match payload["status"].as_str() {
            Some("failed" | "aborted") => Exit::Failed,
            _ => Exit::Done,
        };
        Answer { stdout, ..Answer::new(status) }
    }
}

impl Manner {
    fn words(&self, run: &RunId, payload: &serde_json::Value) -> String {
        let text = |key: &str| payload[key].as_str().map(one_line).unwrap_or_default();
        let mut words = format!("\nStatus: {}\n", text("status"));
        if self.known.is_none() {
            words += &format!("Run ID: {run}\n");
        }
        if payload["error"].is_string() {
            words += &format!("Error: {}\n", text("error"));
        }
        if payload["status"] == "paused" && self.known.is_none() {
            words += &format!("\nResume with: windlass specify workflow resume {run}\n");
        }
        words
    }
}

fn rest_of(end: End) -> state::Rest {
    match end {
        End::Rests(RunStatus::Success | RunStatus::Failed | RunStatus::Cancelled) => state::Rest::Over,
        End::Rests(RunStatus::Waiting | RunStatus::Paused | RunStatus::Pending) => state::Rest::Waiting,
        End::Rests(RunStatus::Running | RunStatus::Interrupted) | End::Stopped => state::Rest::Interrupted,
        End::Left => state::Rest::None,
    }
}
