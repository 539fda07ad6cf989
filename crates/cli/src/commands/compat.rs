//! The exit status and the words of another program, for scripts that were written for it.

use crate::answer::{self, Answer, Status};
use crate::args::Compat;
use crate::show::words::one_line;
use serde_json::Value as Json;
use windlass_ir::Plan;
use windlass_ir::plan::Given;
use windlass_ir::workflow::RunInput;
use windlass_runtime::RunId;
use windlass_runtime::report::Report;

/// Values from the command line. Spec Kit takes the blanks around them away, and passes over what the workflow does not declare.
pub fn given(compat: Option<Compat>, plan: &Plan, params: Vec<(String, String)>) -> Vec<(String, Given)> {
    let known = |name: &str| plan.input != RunInput::Declared || plan.parameters.contains_key(name);
    let kept = params.into_iter().filter_map(move |(name, text)| match compat {
        None => Some((name, Given::Text(text))),
        Some(Compat::Speckit) if known(&name) => Some((name, Given::Text(text.trim().to_owned()))),
        Some(Compat::Speckit) => {
            answer::remark(&format!(
                "warning: this workflow has no input `{}`; it is not used",
                one_line(&name)
            ));
            None
        }
    });
    kept.collect()
}

/// What the environment says a new run is to be called.
pub fn run_id(compat: Compat) -> Option<String> {
    let Compat::Speckit = compat;
    std::env::var("SPECKIT_WORKFLOW_RUN_ID").ok().filter(|id| !id.is_empty())
}

/// Whether a mistake on the command line is one that the other program finds only when it has begun: a value without a name.
pub fn is_late(usage: &clap::Error) -> bool {
    let mut words = std::env::args().skip_while(|word| !word.starts_with("--compat")).take(2);
    let speckit = words.any(|word| word.ends_with("speckit"));
    speckit && usage.kind() == clap::error::ErrorKind::ValueValidation
}

/// What is said when a run begins.
pub fn beginning(compat: Compat, plan: &Plan) -> String {
    match compat {
        Compat::Speckit => {
            let header = &plan.header;
            let version = &header.version;
            format!(
                "Running workflow: {} ({})\nVersion: {}\n",
                one_line(&header.title()),
                header.id,
                one_line(version)
            )
        }
    }
}

/// What is said when a run has ended or waits.
pub fn ending(compat: Compat, run: &RunId, report: &Report<'_>, json: bool) -> String {
    let Compat::Speckit = compat;
    let payload = report.payload();
    if json {
        return serde_json::to_string_pretty(&payload).unwrap_or_default() + "\n";
    }
    let text = |key: &str| payload[key].as_str().map(one_line).unwrap_or_default();
    let mut words = format!("\nStatus: {}\nRun ID: {run}\n", text("status"));
    if payload["error"] != Json::Null {
        words += &format!("Error: {}\n", text("error"));
    }
    if payload["status"] == "paused" {
        words += &format!("\nResume with: windlass resume {run} --compat speckit\n");
    }
    words
}

/// 0 completed or paused, 1 anything that was reported as wrong; 2 stays for bad usage. What was refused has no JSON.
pub fn answer(compat: Compat, answer: Answer) -> Answer {
    let Compat::Speckit = compat;
    match answer.status {
        Status::Done | Status::Waiting | Status::Stopped => Answer { status: Status::Done, ..answer },
        Status::Failed | Status::Cancelled => Answer { status: Status::Failed, ..answer },
        Status::Refused => {
            let stderr = answer.stderr.lines().map(|line| format!("{}\n", plain(line))).collect();
            Answer { stdout: String::new(), stderr, status: Status::Failed }
        }
        Status::Bug => answer,
    }
}

/// `Error:` instead of a word with a code.
fn plain(line: &str) -> String {
    let rest = line.strip_prefix("error[").and_then(|rest| rest.split_once("]: "));
    rest.map_or_else(|| line.to_owned(), |(_, message)| format!("Error: {message}"))
}
