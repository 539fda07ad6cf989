//! Shell completion: runs, steps, gates, workflows, templates, and the arguments of the command line.
//!
//! Completion must be fast and silent, so it reads only the view and ignores errors.

use crate::args::{Args, Data, Reading};
use crate::commands::template_names;
use crate::show::words::one_line;
use crate::{data, load, named};
use clap::builder::ValueHint;
use clap::{Arg, Command, CommandFactory};
use clap_complete::engine::{ArgValueCompleter, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use windlass_api::library::Library;
use windlass_dialects::DIALECTS;
use windlass_runtime::{Engine, Query, RunId, RunRow, StepPhase, glance, ids};

/// The script that `windlass completions` prints sets this variable to request candidates.
const VARIABLE: &str = "WINDLASS_COMPLETE";

/// The most runs to offer, and to search for workflow names.
const RUNS_MAX: usize = 200;

/// Answers a completion request. False if this is an ordinary call.
pub fn answer() -> Result<bool, clap::Error> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// The script that registers completion in a shell.
pub fn registration(shell: &str) -> Option<String> {
    let shells = Shells::builtins();
    let mut code = Vec::new();
    shells
        .completer(shell)?
        .write_registration(VARIABLE, "windlass", "windlass", "windlass", &mut code)
        .ok()?;
    String::from_utf8(code).ok()
}

/// The command line with a completer for each argument.
fn command() -> Command {
    with_values(Args::command())
}

fn with_values(command: Command) -> Command {
    command.mut_args(with_value).mut_subcommands(with_values)
}

/// Picks the completer by the value name, so that new commands need no code here.
fn with_value(arg: Arg) -> Arg {
    let names: Vec<String> = arg.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
    let is_option = arg.get_long().is_some();
    match (names.first().map(String::as_str), is_option) {
        (Some("RUN" | "BEFORE" | "AFTER"), _) => arg.add(ArgValueCompleter::new(runs)),
        (Some("NAME"), false) if arg.get_id() == "name" => {
            arg.add(ArgValueCompleter::new(runs_and_workflows))
        }
        (Some("FILE"), false) => arg.add(ArgValueCompleter::new(workflow_files)),
        (Some("ID"), true) if arg.get_id() == "workflow" => arg.add(ArgValueCompleter::new(workflow_ids)),
        (Some("STEP"), _) => arg.add(ArgValueCompleter::new(steps)),
        (Some("TEMPLATE"), _) => arg.add(ArgValueCompleter::new(templates)),
        (Some("FOLDER" | "DIR"), _) => arg.value_hint(ValueHint::DirPath),
        (_, _) => arg,
    }
}

/// The words of the command line so far, without the program.
fn words() -> Vec<String> {
    let words = std::env::args().skip_while(|word| word != "--").skip(2);
    let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse::<usize>().ok());
    words.take(index.map_or(usize::MAX, |index| index.saturating_sub(1))).collect()
}

/// The data folder that the command would use.
fn folder() -> PathBuf {
    let words = words();
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let next = pairs.find(|(word, _)| *word == "--data").map(|(_, folder)| folder.as_str());
    let same = words.iter().find_map(|word| word.strip_prefix("--data="));
    let variable = || std::env::var_os("WINDLASS_DATA").map(PathBuf::from);
    let named = next.or(same).map(PathBuf::from).or_else(variable);
    data::folder(&Data { folder: named }, None)
}

fn rows(prefix: &str) -> Vec<RunRow> {
    let folder = folder();
    glance(&folder, &Query { prefix: prefix.to_owned(), limit: RUNS_MAX, ..Query::default() })
}

fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let rows = rows(current);
    let last = (!rows.is_empty() && "last".starts_with(current))
        .then(|| candidate("last", "the run that was started last"));
    let runs = rows
        .iter()
        .map(|row| candidate(row.run.as_str(), &format!("{} {}", row.row.workflow, row.row.status)));
    last.into_iter().chain(runs).collect()
}

fn runs_and_workflows(current: &OsStr) -> Vec<CompletionCandidate> {
    runs(current).into_iter().chain(workflow_files(current)).collect()
}

fn workflow_files(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_str().unwrap_or_default();
    let library = match named::is_name(text) || text.is_empty() {
        true => Library::glance(&named::folders()),
        false => Library::default(),
    };
    let named = library.entries.iter().map(|entry| (entry.full_name(), entry.file.display().to_string()));
    let named: Vec<(String, String)> = named.filter(|(name, _)| name.starts_with(text)).collect();
    let named = named.iter().map(|(name, file)| candidate(name, file));
    named.chain(PathCompleter::any().complete(current)).collect()
}

/// The steps of the run or the workflow that the words before name; for a decision only gates that wait.
fn steps(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let words = words();
    let (Some(command), Some(given)) = (words.first(), words.get(1..)) else { return Vec::new() };
    let given: Vec<&String> = given.iter().filter(|word| !word.starts_with('-')).collect();
    let names = match command.as_str() {
        "run" => given.iter().find_map(|word| steps_of_workflow(word)),
        "approve" | "reject" => given.iter().find_map(|word| gates(word)),
        _ => given.iter().find_map(|word| steps_of_run(word)),
    };
    let names = names.unwrap_or_default().into_iter().filter(|name| name.starts_with(current));
    names.map(|name| CompletionCandidate::new(one_line(&name))).collect()
}

fn run_named(word: &str) -> Option<(std::sync::Arc<Engine>, RunId)> {
    let engine = data::look(&folder()).ok()?;
    let run = engine.find(word).ok()?;
    Some((engine, run))
}

fn steps_of_run(word: &str) -> Option<Vec<String>> {
    let (engine, run) = run_named(word)?;
    Some(named_steps(&engine.program(&run).ok()?.plan))
}

fn steps_of_workflow(word: &str) -> Option<Vec<String>> {
    Some(named_steps(&load::open(Path::new(word), &Reading::default()).ok()?.plan))
}

fn named_steps(plan: &windlass_ir::Plan) -> Vec<String> {
    plan.steps.iter().filter(|step| !step.implicit).map(|step| step.id.to_string()).collect()
}

fn gates(word: &str) -> Option<Vec<String>> {
    let (engine, run) = run_named(word)?;
    let view = engine.view(&run).ok()?;
    let waiting = view.steps().filter(|(_, step)| matches!(step.phase, StepPhase::Asking { .. }));
    Some(waiting.map(|(path, _)| ids::name(DIALECTS, &view, path).id).collect())
}

fn templates(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let meant = template_names().filter(|(name, _)| name.starts_with(current));
    meant.map(|(name, about)| candidate(name, about)).collect()
}

fn workflow_ids(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let mut ids: Vec<String> = rows("").into_iter().map(|row| row.row.workflow).collect();
    ids.sort();
    ids.dedup();
    ids.iter().filter(|id| id.starts_with(current)).map(|id| CompletionCandidate::new(one_line(id))).collect()
}

fn candidate(value: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(one_line(value)).help(Some(one_line(about).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_sets_the_variable() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            let code = registration(shell).expect("a known shell");
            assert!(code.contains(VARIABLE), "{shell}: {code}");
        }
        assert_eq!(registration("cmd"), None);
    }

    #[test]
    fn the_command_line_stays_well_formed() {
        command().debug_assert();
    }
}
